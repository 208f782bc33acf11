//! The agent application's own folder follows a move, wholly or not at all: its registry and settings, the lines
//! of its transcripts, the folders that are named for a working directory, and its database.
//!
//! What is to be is built in a swap ([`Draft`]); the former state is kept with the record, and [`undo`] gives it
//! back. Nothing is done while the application runs.

mod looked;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(super) use self::looked::Looked;
use super::References;
use super::in_place::InPlace;
use super::preview::references;
use super::scan::count;
use super::taking_back;
use super::tally::Tally;
use crate::base::wire::{self, WirePath};
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Buffers, Dir, Entry, FileKind, Space};
use crate::home::swap::{Draft, Root, Swap};
use crate::home::{Home, LockedHome, RelPath};
use crate::paths::database::COMPANIONS;
use crate::paths::{self, Mapping, Rewriter};
use crate::state::slugs::{self, Slugs};
use crate::state::{self, DATABASE};

/// What a record's folder of a swap in a state folder begins with.
const FOLDER: &str = "state-";
const OUTCOME: &str = "outcome.json";

/// What has moved, compiled twice.
pub(super) struct Moved<'m> {
    /// For texts: with `--fields-only`, only fields that identify a place.
    pub text: &'m Rewriter,
    /// For what is a path and nothing else.
    pub place: &'m Rewriter,
    /// Folders in which sessions are known to have worked, as they were spelled before.
    pub folders: &'m BTreeSet<String>,
}

/// Both compiled forms, owned.
pub(super) struct Compiled {
    pub text: Rewriter,
    pub place: Rewriter,
    pub folders: BTreeSet<String>,
}

impl Compiled {
    /// Compiles mappings. `ids` are the sessions of the home, whose folders may be known by name alone.
    pub fn new(
        mappings: &[Mapping],
        fields_only: bool,
        user_home: Option<&str>,
        ids: &[String],
    ) -> Result<Compiled> {
        let compile = |fields_only: bool| {
            let options = paths::Options {
                fields_only,
                user_home: user_home.map(str::to_owned),
                known_ids: Vec::new(),
            };
            Rewriter::new(mappings.to_vec(), options)
                .map_err(|e| Error::usage(format!("these paths can not be looked for: {e}")))
        };
        let mut folders = BTreeSet::new();
        for Mapping { old, .. } in mappings {
            let old = old.trim_end_matches('/');
            folders.insert(old.to_owned());
            folders.extend(ids.iter().map(|id| format!("{old}/sessions/{id}")));
        }
        Ok(Compiled {
            text: compile(fields_only)?,
            place: compile(false)?,
            folders,
        })
    }

    pub fn moved(&self) -> Moved<'_> {
        Moved {
            text: &self.text,
            place: &self.place,
            folders: &self.folders,
        }
    }
}

/// What a state folder would have to follow; found without changing anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The folder.
    #[serde(with = "wire::exact_path")]
    pub folder: PathBuf,
    /// Files and links that refer to what has moved.
    pub files: u64,
    /// How often they do.
    pub references: u64,
    /// Project folders, or entries of them, that would get another name.
    pub renamed: u64,
    /// How often the database and its log mention it: more than there are rows, for pages are not erased.
    pub database_mentions: u64,
    /// The bytes of what would be written anew.
    #[serde(skip)]
    pub bytes: u64,
}

impl Survey {
    /// Whether there is anything to follow.
    pub fn is_empty(&self) -> bool {
        self.files == 0 && self.renamed == 0 && self.database_mentions == 0
    }
}

/// What was changed in a state folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// The folder.
    #[serde(with = "wire::exact_path")]
    pub folder: PathBuf,
    /// Files that were looked at.
    pub files: u64,
    /// Of them, files that were written anew.
    pub rewritten: u64,
    /// Symbolic links that were pointed to the new place.
    pub links: u64,
    /// References that were changed in files and links.
    pub references: References,
    /// Project folders, or entries of them, that got another name.
    pub renamed: u64,
    /// The application's database, when it has one.
    pub database: Option<state::database::Rewritten>,
    /// Files with what may be a reference or prose: left as they are.
    pub doubtful: Vec<Mention>,
    /// Binary files, and databases that are not the application's own, that mention it: left as they are.
    pub binary: Vec<Mention>,
    /// Project folders whose owner nobody can tell, and why: left as they are.
    pub unclear: Vec<Unclear>,
    /// Where the former state is kept: a path below the home; none after a renaming, which the former name takes
    /// back.
    pub record: Option<String>,
    /// Whether it was taken back since.
    #[serde(default)]
    pub undone: bool,
}

impl Followed {
    /// Whether the folder is as it was.
    pub fn is_unchanged(&self) -> bool {
        let database = self.database.as_ref();
        self.rewritten == 0
            && self.links == 0
            && self.renamed == 0
            && database.is_none_or(state::database::Rewritten::is_unchanged)
    }
}

/// A file that mentions something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// Relative to the state folder.
    #[serde(flatten)]
    pub path: WirePath,
    /// How often.
    pub count: u64,
}

/// A project folder that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclear {
    /// Relative to the state folder.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
}

/// The application's database and what belongs to it: changed by SQL, not as files.
fn is_database(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    name.strip_prefix(DATABASE.as_bytes()).is_some_and(|rest| {
        rest.is_empty() || COMPANIONS.iter().any(|suffix| suffix.as_bytes() == rest)
    })
}

/// Looks for what a state folder would have to follow.
///
/// # Errors
/// A folder that can not be read; project folders that would have to become one and can not.
pub(super) fn survey(folder: &Path, moved: &Moved, ctx: &Context) -> Result<Survey> {
    let looked = Looked::at(folder, ctx)?;
    let counted = count(
        &looked.dir,
        &looked.tree,
        moved.text,
        &|path| !is_database(path),
        ctx,
    )?;
    let (mut database_mentions, mut bytes) = (0, counted.bytes);
    for entry in looked.root().iter().flat_map(|root| &root.entries) {
        let name = Path::new(&entry.name);
        if is_database(name) {
            let mut buffers = Buffers::new();
            let n = mentions(&looked, name, entry, moved.place, &mut buffers, ctx)?;
            database_mentions += n;
            // Copied, and written anew.
            bytes += 2 * entry.meta.size * u64::from(n > 0);
        }
    }
    let tally = counted.tally;
    let slugs = slugs::plan(
        &looked.dir,
        &looked.tree,
        &looked.noted(moved.folders)?,
        moved.place,
    )?;
    Ok(Survey {
        folder: looked.path.clone(),
        files: tally.rewritten + tally.links_rewritten,
        references: tally.references(),
        renamed: slugs.moves.len() as u64,
        database_mentions,
        bytes,
    })
}

/// How often the bytes of a file mention what has moved, whatever the file is.
fn mentions(
    looked: &Looked,
    path: &Path,
    entry: &Entry,
    rewriter: &Rewriter,
    buffers: &mut Buffers,
    ctx: &Context,
) -> Result<u64> {
    if entry.meta.kind != FileKind::File {
        return Ok(0);
    }
    let fail = |e| Error::io("can not read", looked.path.join(path), e);
    let folder = looked
        .dir
        .open_beneath(path.parent().unwrap_or(Path::new("")));
    let file = folder
        .and_then(|folder| folder.open_file(&entry.name))
        .map_err(fail)?;
    let mut scan = rewriter.scan_binary();
    let checked = disk::check_open(&file, buffers, ctx.stop, &mut |chunk, _| {
        scan.push(chunk.unwrap_or(&[0]));
    });
    match checked {
        Ok(_) => Ok(scan.count()),
        Err(disk::CopyError::Read(error) | disk::CopyError::Write(error)) => Err(fail(error)),
        Err(disk::CopyError::Stopped) => ctx.stop.check().map(|()| 0),
    }
}

/// There must be room for what is written anew.
pub(super) fn room(survey: &Survey) -> Result<()> {
    let dir = Dir::open(&survey.folder)
        .map_err(|e| Error::io("can not open the folder", &survey.folder, e))?;
    let space =
        Space::of(&dir).map_err(|e| Error::io("can not ask for the room on", &survey.folder, e))?;
    let needed = survey.bytes + survey.bytes / 20;
    if needed > space.bytes {
        return Err(Error::failed(format!(
            "not enough room: {} needed, {} left on the disk of",
            human::size(needed),
            human::size(space.bytes)
        ))
        .at(&survey.folder)
        .hint("make room; --no-state leaves the state folder as it is"));
    }
    Ok(())
}

/// Makes state folders follow a move, all of them or none. The record of the swap comes below `record`, a path
/// below the home.
///
/// # Errors
/// Whoever uses a folder; what can not be read or written. Then nothing was changed, or the next command
/// completes it.
pub(super) fn follow(
    home: &LockedHome,
    record: &RelPath,
    command: &str,
    folders: &[&Path],
    moved: &Moved,
    ctx: &Context,
) -> Result<Vec<Followed>> {
    taking_back::nothing_pending(home)?;
    let name = format!(
        "{FOLDER}{}-{:08x}",
        ctx.clock.stamp(),
        ctx.clock.random() as u32
    );
    let rel = RelPath::new(record.as_path().join(name))?;
    let mut roots = Vec::new();
    for folder in folders {
        state::refuse_while_in_use(folder)?;
        roots.push(Root {
            path: disk::real_path(folder)?,
            application: true,
        });
    }
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let draft = Draft::begin(home, &rel, command, roots, Vec::new(), ctx)?;
    let mut all = Vec::new();
    for (root, folder) in folders.iter().enumerate() {
        let looked = Looked::at(folder, ctx)?;
        let mut followed = stage(&draft, root, &looked, moved, ctx)?;
        followed.record = Some(former_of(&rel, root));
        if !followed.is_unchanged() {
            all.push(followed);
        }
    }
    if draft.is_empty() {
        return Ok(Vec::new());
    }
    let path = draft.folder().join(OUTCOME);
    let mut text =
        serde_json::to_vec_pretty(&all).map_err(|e| Error::io("can not write", &path, e))?;
    text.push(b'\n');
    disk::write_new(&path, &text, 0o600)?;
    draft.commit()?;
    Ok(all)
}

/// Where the former state of a root is kept: a path below the home.
pub(super) fn former_of(swap: &RelPath, root: usize) -> String {
    format!("{}/former/{root}", swap.as_path().display())
}

/// Prepares everything that a state folder has to follow, as the draft's root of that number.
pub(super) fn stage(
    draft: &Draft,
    root: usize,
    looked: &Looked,
    moved: &Moved,
    ctx: &Context,
) -> Result<Followed> {
    let total = looked
        .tree
        .entries()
        .filter(|(_, e)| e.meta.kind == FileKind::File);
    let total = total.fold(Total::default(), |sum, (_, entry)| Total {
        items: sum.items + 1,
        bytes: sum.bytes + entry.meta.size,
    });
    ctx.progress.stage("Rewriting the state folder", total);
    let texts = InPlace::new(draft, root, moved.text, ctx)?;
    let mut tally = texts.run(&looked.tree, &|path| !is_database(path))?;
    if let Some(failed) = tally.skipped.iter().find(|skipped| skipped.failed) {
        return Err(Error::failed(format!(
            "{}, and half a move is worse than none:",
            failed.reason
        ))
        .at(looked.path.join(&*failed.path))
        .hint("nothing was changed; --no-state leaves the state folder as it is"));
    }
    let mut known = looked.noted(moved.folders)?;
    let database = match looked.database() {
        Some(_) => {
            let path = looked.path.join(DATABASE);
            let refused = |error: Error| {
                Error::failed(format!("the database can not follow ({error}):"))
                    .at(&path)
                    .hint("nothing was changed; mend it with the application or sqlite3, or leave the state folder as it is: --no-state")
            };
            let (rewritten, folders) = texts.database(Path::new(DATABASE), |copy| {
                let folders = state::database::folders(copy).map_err(refused)?;
                let rewritten = state::database::rewrite(copy, moved.place).map_err(refused)?;
                Ok((!rewritten.is_unchanged(), (rewritten, folders)))
            })?;
            known.extend(folders);
            Some(rewritten)
        }
        None => None,
    };
    let slugs = slugs::plan(&looked.dir, &looked.tree, &known, moved.place)?;
    rename(draft, root, looked, &slugs);
    ctx.progress.finish();
    let binary = foreign_databases(looked, &mut tally, moved, ctx)?;
    Ok(Followed {
        folder: looked.path.clone(),
        files: total.items,
        rewritten: tally.rewritten,
        links: tally.links_rewritten,
        references: references(moved.text.mappings(), &tally),
        renamed: slugs.moves.len() as u64,
        database,
        doubtful: mentioned(tally.doubtful.iter().map(|(path, _, n)| (path, *n))),
        binary,
        unclear: unclear(looked, slugs, moved.text),
        record: None,
        undone: false,
    })
}

/// What stays as it is because nobody can tell, or because it lies elsewhere.
fn unclear(looked: &Looked, slugs: Slugs, rewriter: &Rewriter) -> Vec<Unclear> {
    let links = looked.tree.entries().filter_map(|(path, entry)| {
        if entry.meta.kind != FileKind::Symlink {
            return None;
        }
        let folder = looked
            .dir
            .open_beneath(path.parent().unwrap_or(Path::new("")));
        let target = folder
            .and_then(|folder| folder.read_link(&entry.name))
            .ok()?;
        let leads = rewriter.link_target(&target).is_none();
        leads.then(|| {
            (
                path,
                "is a link: what it leads to was not looked at".to_owned(),
            )
        })
    });
    let doubtful = slugs.doubtful.iter().cloned();
    doubtful
        .chain(links)
        .map(|(path, why)| Unclear {
            path: path.into(),
            why,
        })
        .collect()
}

pub(super) fn mentioned<'p>(found: impl Iterator<Item = (&'p PathBuf, u64)>) -> Vec<Mention> {
    found
        .map(|(path, count)| Mention {
            path: path.clone().into(),
            count,
        })
        .collect()
}

/// Binary files that mention what has moved, databases among them.
fn foreign_databases(
    looked: &Looked,
    tally: &mut Tally,
    moved: &Moved,
    ctx: &Context,
) -> Result<Vec<Mention>> {
    let mut binary = mentioned(tally.binary.iter().map(|(path, n)| (path, *n)));
    for path in std::mem::take(&mut tally.databases) {
        let Some(entry) = looked.entry(&path) else {
            continue;
        };
        let mut buffers = Buffers::new();
        let count = mentions(looked, &path, entry, moved.place, &mut buffers, ctx)?;
        if count > 0 {
            binary.push(Mention {
                path: path.into(),
                count,
            });
        }
    }
    binary.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(binary)
}

/// Prepares the new names of project folders, in an order in which each finds its place free.
fn rename(draft: &Draft, root: usize, looked: &Looked, slugs: &Slugs) {
    let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
    // Folders that have gone, and folders that have come, so far.
    let (mut left, mut there) = (BTreeSet::new(), BTreeSet::new());
    for moved in &slugs.moves {
        let Some(entry) = looked.entry(&moved.from) else {
            continue;
        };
        let (from, to) = (parent(&moved.from), parent(&moved.to));
        let stands = looked.entry(&to).is_some() && !left.contains(&to) || there.contains(&to);
        if !stands && let Some(like) = looked.entry(&from) {
            draft.make(root, &to, &like.meta);
            there.insert(to);
        }
        draft.shift(root, &moved.from, &moved.to, entry.meta.ino);
        if entry.meta.kind == FileKind::Folder {
            left.insert(moved.from.clone());
            there.insert(moved.to.clone());
        }
    }
    for folder in &slugs.emptied {
        if let Some(entry) = looked.entry(folder) {
            draft.drop_empty(root, folder, &entry.meta);
        }
    }
}

/// What was done in state folders by a migration or a relink, the oldest first. `record` is its folder, a path
/// below the home.
///
/// # Errors
/// A record that can not be read.
pub(super) fn followed_by(home: &Home, record: &RelPath) -> Result<Vec<Followed>> {
    let mut all = Vec::new();
    for rel in swaps_of(home, record)? {
        let Some(swap) = Swap::read(home, &rel)?.filter(|swap| swap.is_done) else {
            continue;
        };
        let path = home.root().join(rel.as_path()).join(OUTCOME);
        if let Some(content) = disk::read_own(&path)? {
            let mut followed: Vec<Followed> = serde_json::from_slice(&content)
                .map_err(|e| Error::io("can not understand the record", &path, e))?;
            for followed in &mut followed {
                followed.undone = swap.is_undone;
            }
            all.append(&mut followed);
        }
    }
    Ok(all)
}

/// The swaps in state folders that are recorded below `record`.
pub(super) fn swaps_of(home: &Home, record: &RelPath) -> Result<Vec<RelPath>> {
    disk::read_dir_names(&home.root().join(record.as_path()))?
        .into_iter()
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(FOLDER.as_bytes()))
        .map(|(name, _)| RelPath::new(record.as_path().join(name)))
        .collect()
}
