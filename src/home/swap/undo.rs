//! Taking a swap back: what was replaced gets its place again, byte for byte, unless somebody has changed
//! since what would go.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::carry::{below, find};
use super::moves::Moves;
use super::{DONE, Draft, FORMER, Seen, Step, Swap, split};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Buffers, Dir, FileKind, Meta, Tree};
use crate::home::journal;
use crate::home::trash::{self, Note, Was};
use crate::home::{LockedHome, RelPath};

/// Something that is not any more as the swap has left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Where it is.
    #[serde(flatten)]
    pub path: WirePath,
    /// What has happened to it.
    pub what: &'static str,
}

/// What was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Files and links that are again as they were.
    pub restored: u64,
    /// Files and folders that have their former name again.
    pub moved: u64,
    /// What had been changed since, and went to the trash.
    pub replaced: Vec<Changed>,
    /// Where that is: a path below the home.
    pub trash: Option<String>,
    /// What somebody changed in the last moment: it is kept in `overtaken` of the record.
    pub overtaken: Vec<WirePath>,
}

/// What is not any more as the swap has left it, in the order of its steps.
///
/// # Errors
/// What can not be looked at.
pub fn changed_since(swap: &Swap, ctx: &Context) -> Result<Vec<Changed>> {
    Ok(looked_at(swap, ctx)?.changed)
}

/// Refuses when something is not any more as the swap has left it.
///
/// # Errors
/// What was changed, by name.
pub fn refuse_if_changed(swap: &Swap, ctx: &Context) -> Result<()> {
    match changed_since(swap, ctx)? {
        changed if changed.is_empty() => Ok(()),
        changed => Err(refused(&changed)),
    }
}

/// What is there now, step by step.
struct Look {
    moves: Moves,
    /// The same, from where things are to where they were.
    back: Moves,
    roots: Vec<Dir>,
    changed: Vec<Changed>,
}

/// Something stands where something else was moved away from.
const AGAIN: &str = "is there again, where something is to go back to";

impl Look {
    /// Whether a file has this content still, whatever else was done to it.
    fn is_still(
        &self,
        root: usize,
        path: &Path,
        digest: Option<&str>,
        ctx: &Context,
    ) -> Result<bool> {
        let (Some(digest), (parent, name)) = (digest, split(path)) else {
            return Ok(false);
        };
        let fail = |e| Error::io("can not read", path, e);
        let dir = self.roots[root].open_beneath(parent).map_err(fail)?;
        match dir.stat(name).map_err(fail)?.kind {
            FileKind::File => {}
            FileKind::Symlink => {
                let target = dir.read_link(name).map_err(fail)?;
                return Ok(disk::digest(&target).to_hex().as_str() == digest);
            }
            _ => return Ok(false),
        }
        let checked = disk::check_file(&dir, name, &mut Buffers::new(), ctx.stop, &mut |_, _| {});
        Ok(checked.is_ok_and(|checked| checked.digest.to_hex().as_str() == digest))
    }

    fn has_folder(&self, root: usize, path: &Path) -> Result<bool> {
        let folder = below(&self.roots[root], path);
        let folder = folder.map_err(|e| Error::io("can not open the folder", path, e))?;
        Ok(folder.is_some())
    }

    fn find(&self, root: usize, path: &Path) -> Result<Option<Meta>> {
        find(&self.roots[root], path).map_err(|e| Error::io("can not look at", path, e))
    }
}

fn looked_at(swap: &Swap, ctx: &Context) -> Result<Look> {
    let open = |root: &super::Root| {
        Dir::open(&root.path).map_err(|e| {
            Error::io("can not open the folder", &root.path, e)
                .hint("what was done there can be taken back only where it was done: put the folder back there first")
        })
    };
    let mut look = Look {
        back: Moves::of(&swap.steps).reversed(),
        moves: Moves::of(&swap.steps),
        roots: swap.roots().iter().map(open).collect::<Result<_>>()?,
        changed: Vec::new(),
    };
    let mut ours: BTreeSet<(usize, PathBuf)> = BTreeSet::new();
    let mut changed = Vec::new();
    let since = disk::stat(&swap.folder.join(DONE))?.map(|done| done.ctime);
    for step in &swap.steps {
        let (root, at) = step.place();
        let now = look.moves.follow(root, at);
        let there = look.find(root, &now)?;
        let what = match (step, &there) {
            (Step::Put { .. }, None) => Some("is gone"),
            (Step::Put { new, digest, .. }, Some(meta)) => {
                let same =
                    Seen::from(meta) == *new && since.is_some_and(|since| meta.ctime <= since);
                let same = same || look.is_still(root, &now, digest.as_deref(), ctx)?;
                (!same).then_some("was changed")
            }
            // The shared-memory file is a cache, and an empty log says nothing.
            (Step::Take { at, .. }, Some(meta)) => {
                let says = meta.size > 0 && !at.as_os_str().as_encoded_bytes().ends_with(b"-shm");
                says.then_some("is there again")
            }
            (Step::Move { .. }, None) => Some("is gone"),
            (Step::Move { ino, .. }, Some(meta)) if meta.ino != *ino => Some("is another one"),
            (Step::Drop { .. }, Some(_)) => Some("is there again"),
            _ => None,
        };
        if let Step::Move { at, .. } = step
            && !look.back.leaves(root, at)
            && look.find(root, at)?.is_some()
        {
            changed.push((root, at.to_path_buf(), AGAIN));
        }
        if let Step::Put { .. } | Step::Take { .. } = step {
            ours.insert((root, now.clone()));
        }
        if let Some(what) = what {
            changed.push((root, now, what));
        }
    }
    changed.extend(newer_in_moved(swap, &look, &ours, ctx)?);
    let path = |root: usize, now: PathBuf| swap.roots()[root].path.join(now);
    look.changed = changed
        .into_iter()
        .map(|(root, now, what)| Changed {
            path: path(root, now).into(),
            what,
        })
        .collect();
    Ok(look)
}

type Found = (usize, PathBuf, &'static str);

/// What was made or written below the folders that were moved, after they were: nobody has a record of it, but
/// the filesystem knows when anything about a file changed, and nobody can set that.
fn newer_in_moved(
    swap: &Swap,
    look: &Look,
    ours: &BTreeSet<(usize, PathBuf)>,
    ctx: &Context,
) -> Result<Vec<Found>> {
    let Some(done) = disk::stat(&swap.folder.join(DONE))? else {
        return Ok(Vec::new());
    };
    let mut newer = Vec::new();
    for (root, _, to) in look.moves.iter() {
        let tree = match look.roots[root].open_beneath(to) {
            Ok(dir) => disk::walk(&dir, &|_, _| false, ctx.stop)?,
            // Not a folder, or gone, which is told already.
            Err(_) => Tree::default(),
        };
        for (path, entry) in tree.entries() {
            let path = to.join(path);
            if entry.meta.kind != FileKind::Folder
                && entry.meta.ctime > done.ctime
                && !ours.contains(&(root, path.clone()))
            {
                newer.push((root, path, "is new, or was changed"));
            }
        }
    }
    Ok(newer)
}

/// Takes a swap back, whose record is at `rel`. With `force` what was changed since goes to the trash first.
///
/// # Errors
/// What was changed since, without `force`; a swap that was not carried out, or was taken back already; what is
/// not in its record any more.
pub fn undo(
    home: &LockedHome,
    rel: &RelPath,
    command: &str,
    force: bool,
    ctx: &Context,
) -> Result<Taken> {
    let swap = Swap::read(home, rel)?.filter(|swap| swap.is_done && !swap.is_undone);
    let Some(swap) = swap else {
        return Err(Error::failed("there is nothing to be taken back:").at(rel.as_path()));
    };
    let look = looked_at(&swap, ctx)?;
    if !look.changed.is_empty() && !force {
        return Err(refused(&look.changed));
    }
    let in_the_way: Vec<Changed> = look
        .changed
        .iter()
        .filter(|changed| changed.what == AGAIN)
        .cloned()
        .collect();
    if !in_the_way.is_empty() {
        return Err(
            refused(&in_the_way).hint("move it away first: two folders can not become one here")
        );
    }
    let own = format!("undo-{}", ctx.clock.stamp());
    let own = RelPath::new(rel.as_path().join(own))?;
    let then = vec![journal::Step::Undone {
        record: rel.as_path().to_string_lossy().into_owned(),
    }];
    let draft = Draft::begin(home, &own, command, swap.roots().to_vec(), then, ctx)?;
    let mut taken = Taken {
        moved: look.moves.len() as u64,
        ..Taken::default()
    };
    // Databases by the name that their new form waited under then, and the one of their former form now.
    let mut databases = HashMap::new();
    for step in &swap.steps {
        take_back_file(&swap, &look, step, &draft, &mut taken, &mut databases, ctx)?;
    }
    for step in &swap.steps {
        take_back_companion(&swap, &look, step, &draft, &mut taken, &databases, ctx)?;
    }
    for step in swap.steps.iter().rev() {
        take_back_place(&look, step, &draft)?;
    }
    if !look.changed.is_empty() {
        taken.trash = put_away(home, &swap, &look, command, ctx)?;
    }
    taken.overtaken = draft.commit()?.overtaken;
    taken.replaced = look.changed;
    Ok(taken)
}

/// Keeps what was changed since, and will be replaced, in an act of the trash: what is the home's under its path
/// there, so that `restore` finds it; what is another folder's in a folder beside. Returns where that is.
fn put_away(
    home: &LockedHome,
    swap: &Swap,
    look: &Look,
    command: &str,
    ctx: &Context,
) -> Result<Option<String>> {
    let mut kept: BTreeSet<(usize, PathBuf)> = BTreeSet::new();
    for step in &swap.steps {
        let (root, at) = step.place();
        let now = look.moves.follow(root, at);
        let is_changed = |path: &Path| {
            let path = swap.roots()[root].path.join(path);
            look.changed.iter().any(|changed| *changed.path == *path)
        };
        if !is_changed(&now) || look.find(root, &now)?.is_none() {
            continue;
        }
        match step {
            Step::Put { .. } => {
                kept.insert((root, now));
            }
            Step::Take { with, .. } => {
                kept.insert((root, now));
                // A log is worth nothing without its database.
                kept.extend(swap.steps.iter().filter_map(|step| match step {
                    Step::Put {
                        root, at, built, ..
                    } if built == with => Some((*root, look.moves.follow(*root, at))),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    if kept.is_empty() {
        return Ok(None);
    }
    let of_home = kept
        .iter()
        .filter(|(root, _)| !swap.roots()[*root].application);
    let note = Note {
        why: "was changed since, and had to give way to what was there before".to_owned(),
        at: ctx.clock.now().to_string(),
        command: Some(format!("{command} --force")),
        was: of_home.map(|(_, path)| Was::new(path)).collect(),
        ..Note::default()
    };
    let folder = home.trash().join(trash::open(home, note, ctx)?);
    for (root, path) in &kept {
        let base = match swap.roots()[*root].application {
            true => folder.join(format!("state-{root}")),
            false => folder.clone(),
        };
        let (parent, name) = split(path);
        let fail = |e| Error::io("can not keep", swap.roots()[*root].path.join(path), e);
        disk::create_private_folder(&base)?;
        let from = look.roots[*root].open_beneath(parent).map_err(fail)?;
        let to = Dir::open(&base).and_then(|dir| dir.make_beneath(parent));
        to.and_then(|to| disk::duplicate_as(&from, name, &to, name, ctx.stop))
            .map_err(fail)?;
    }
    Ok(Some(trash::shown(home, &folder)))
}

fn refused(changed: &[Changed]) -> Error {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = changed
        .iter()
        .take(SHOWN)
        .map(|changed| format!("{} {}", human::path(&changed.path), changed.what))
        .collect();
    if changed.len() > SHOWN {
        let more = human::count((changed.len() - SHOWN) as u64);
        lines.push(format!("and {more} more"));
    }
    Error::failed(format!(
        "nothing was taken back, something was changed since: {}",
        lines.join("; ")
    ))
    .hint("--force puts what is there now into the trash and takes everything back")
}

fn take_back_file(
    swap: &Swap,
    look: &Look,
    step: &Step,
    draft: &Draft,
    taken: &mut Taken,
    databases: &mut HashMap<String, String>,
    ctx: &Context,
) -> Result<()> {
    let Step::Put {
        root,
        at,
        built: name,
        ..
    } = step
    else {
        return Ok(());
    };
    let now = look.moves.follow(*root, at);
    if !look.has_folder(*root, split(&now).0)? {
        return Err(
            Error::failed("was taken away, with all that was to be put back into it:")
                .at(swap.roots()[*root].path.join(split(&now).0))
                .hint("put it back where it was, or take back first what has moved it"),
        );
    }
    let there = look.find(*root, &now)?;
    let built = rebuild(swap, *root, at, draft, ctx)?;
    draft.put_prepared(*root, &now, &built, None, there.as_ref().map(Seen::from))?;
    databases.insert(name.clone(), built);
    taken.restored += 1;
    Ok(())
}

fn take_back_companion(
    swap: &Swap,
    look: &Look,
    step: &Step,
    draft: &Draft,
    taken: &mut Taken,
    databases: &HashMap<String, String>,
    ctx: &Context,
) -> Result<()> {
    let Step::Take {
        root,
        at,
        old,
        with,
        ..
    } = step
    else {
        return Ok(());
    };
    let Some(database) = databases.get(with) else {
        return Ok(());
    };
    let now = look.moves.follow(*root, at);
    let there = look.find(*root, &now)?;
    draft.take_kept(*root, &now, there.as_ref().map(Seen::from), database);
    if old.is_some() {
        let built = rebuild(swap, *root, at, draft, ctx)?;
        draft.put_prepared(*root, &now, &built, None, None)?;
        taken.restored += 1;
    }
    Ok(())
}

fn take_back_place(look: &Look, step: &Step, draft: &Draft) -> Result<()> {
    let (root, at) = step.place();
    match step {
        Step::Move { to, .. } => {
            if let Some(there) = look.find(root, to)? {
                draft.shift(root, to, at, there.ino);
            }
        }
        Step::Make { looks, .. } => draft.drop_like(root, at, *looks),
        Step::Drop { looks, .. } => {
            if look.find(root, at)?.is_none() {
                draft.make_like(root, at, *looks);
            }
        }
        Step::Dress { mtime, .. } if !at.as_os_str().is_empty() => {
            draft.dress(root, &look.back.follow(root, at), *mtime);
        }
        Step::Dress { .. } | Step::Put { .. } | Step::Take { .. } => {}
    }
    Ok(())
}

/// Puts the former file into the staging folder, and gives its name there.
fn rebuild(swap: &Swap, root: usize, at: &Path, draft: &Draft, ctx: &Context) -> Result<String> {
    let former = swap.folder.join(FORMER).join(root.to_string());
    let (parent, name) = split(at);
    let fail = |e| {
        Error::io(
            "can not bring back the former state of",
            swap.roots()[root].path.join(at),
            e,
        )
    };
    let from = Dir::open(&former)
        .and_then(|dir| dir.open_beneath(parent))
        .map_err(fail)?;
    let built = draft.new_name();
    let to = draft.staging(root);
    let built_name = std::ffi::OsStr::new(&built);
    let is_file = from.stat(name).map_err(fail)?.kind == FileKind::File;
    // One that is written in place is copied, so that the record stays as it is until all of it is done.
    let in_place = swap.steps.iter().any(|step| match step {
        Step::Take {
            root: r, at: path, ..
        } => *r == root && split(path).0 == parent,
        _ => false,
    });
    if is_file && !in_place && to.hard_link(&from, name, built_name).is_ok() {
        return Ok(built);
    }
    disk::duplicate_as(&from, name, to, built_name, ctx.stop).map_err(fail)?;
    Ok(built)
}
