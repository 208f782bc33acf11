//! The files of a commit are built, compared, and take the places of what is there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};

use super::{Back, Outcome, Plan};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, FileKind, NewFile};
use crate::history::Repository;
use crate::history::committed::LINK;
use crate::history::diff::read;
use crate::home::journal::{self, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Added, Former, Mark, Note, TRASH, Was};
use crate::home::{LockedHome, Status};

/// Where in the act the files are built.
const BUILT: &str = "_git";

/// Brings it back.
///
/// # Errors
/// When nothing can be written; the next command goes on from there.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    if plan.files.is_empty() {
        return Ok(Outcome {
            done: plan,
            kept: None,
        });
    }
    let repository = Repository::expect(home)?;
    let keeps_index = plan.indexed && disk::exists(&home.index_file());
    let mut note = note(&repository, &plan, context)?;
    if keeps_index {
        note.was.push(Was::new(mend::INDEX));
    }
    let act = trash::open(home, note, context)?;
    if let Err(error) = build(home, &repository, &plan, &act, context) {
        trash::discard(home, &act);
        return Err(error);
    }
    let steps = steps(&plan, &act, keeps_index);
    let pending = journal::begin(home, "restore", steps, context)?;
    let completed = pending.complete_telling(home, context)?;
    if keeps_index {
        // As long as it is this one, taking the act back puts the former one in its place.
        let index = Path::new(mend::INDEX);
        if let Some(present) = mend::mark(&home.dir()?, index, context.stop)? {
            trash::mark(home, &act, index, &present)?;
        }
    }
    let mut done = plan;
    let left: BTreeSet<&PathBuf> = completed.left.iter().map(|left| &left.path).collect();
    done.files.retain(|back| !left.contains(&back.path.0));
    done.left
        .extend(completed.left.iter().map(mend::Left::to_string));
    Ok(Outcome {
        kept: trash::act(home, &act).map(|act| act.name),
        done,
    })
}

fn note(repository: &Repository, plan: &Plan, context: &Context) -> Result<Note> {
    let why = format!("what the commit {} holds came back", plan.from.short);
    let mut note = Note::by("restore", why, context);
    let folder = |path: &PathBuf| Added {
        path: path.clone().into(),
        mark: None,
    };
    note.added.extend(plan.folders.iter().map(folder));
    for back in &plan.files {
        context.stop.check()?;
        let content = repository.content(back.held.oid)?;
        let mark = match back.held.mode {
            LINK => Mark::Link(ExactPath(link(&content))),
            _ => Mark::of(disk::digest(&content)),
        };
        match back.former {
            Some(_) => note
                .was
                .push(Was::new(back.path.0.clone()).replaced_by(Some(mark))),
            None => note.added.push(Added {
                path: back.path.clone(),
                mark: Some(mark),
            }),
        }
    }
    Ok(note)
}

fn link(content: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(content)).to_path_buf()
}

/// Writes every file under a number, and compares it with the name of its blob.
fn build(
    home: &LockedHome,
    repository: &Repository,
    plan: &Plan,
    act: &str,
    context: &Context,
) -> Result<()> {
    let folder = home.trash().join(act).join(BUILT);
    let fail = |e| Error::io("can not write to", &folder, e);
    disk::create_private_folder(&folder)?;
    let dir = Dir::open(&folder).map_err(fail)?;
    for (n, back) in plan.files.iter().enumerate() {
        context.stop.check()?;
        let name = n.to_string();
        let name = OsStr::new(&name);
        let content = repository.content(back.held.oid)?;
        if back.held.mode == LINK {
            dir.symlink(&content, name).map_err(fail)?;
        } else {
            build_file(&dir, name, &content, back, context).map_err(fail)?;
        }
        let meta = dir.stat(name).map_err(fail)?;
        let written = read(&dir, Path::new(name), &meta).map_err(fail)?;
        if Oid::hash_object(ObjectType::Blob, &written).ok() != Some(back.held.oid) {
            return Err(
                Error::failed("what was written is not what the commit holds:")
                    .at(&*back.path)
                    .hint("git fsck looks at the repository; the disk may be failing. Nothing was changed"),
            );
        }
    }
    disk::sync_filesystem(&dir).map_err(fail)
}

fn build_file(
    dir: &Dir,
    name: &OsStr,
    content: &[u8],
    back: &Back,
    context: &Context,
) -> std::io::Result<()> {
    let former = back.former.filter(|meta| meta.kind == FileKind::File);
    let mode = back.held.mode_on_disk(former.as_ref());
    let owner = former
        .filter(|_| disk::is_root())
        .map(|meta| (meta.uid, meta.gid));
    let mut file = NewFile::create(dir)?;
    file.file().write_all(content)?;
    disk::dress_file(file.file(), owner, mode, context.clock.now().into())?;
    file.publish(name)
}

fn steps(plan: &Plan, act: &str, keeps_index: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    if keeps_index {
        let act = act.to_owned();
        steps.push(Mend::KeepIndex { act });
    }
    for (n, back) in plan.files.iter().enumerate() {
        if let Some(former) = &back.former {
            steps.push(Mend::PutAway {
                path: back.path.0.clone().into(),
                act: act.to_owned(),
                lies: Was::new(back.path.0.clone()).lies.into(),
                seen: Seen::of(former),
                held_by: None,
            });
        }
        steps.push(Mend::BringBack {
            act: act.to_owned(),
            lies: Path::new(BUILT).join(n.to_string()).into(),
            path: back.path.0.clone().into(),
        });
    }
    let built = Path::new(TRASH).join(act).join(BUILT);
    steps.push(Mend::Prune { path: built.into() });
    let mend = |step| Step::Mend { step };
    let mut steps: Vec<Step> = steps.into_iter().map(mend).collect();
    if plan.indexed {
        steps.push(match &plan.entry {
            Some(entry) => Step::Entry {
                entry: entry.fields().clone(),
            },
            None => mend(Mend::Return {
                entries: vec![Former {
                    id: plan.session.to_string(),
                    status: Some(Status::Active.as_str().to_owned()),
                }],
            }),
        });
        steps.push(Step::Views {
            ids: Some(vec![plan.session.to_string()]),
        });
    }
    let act = act.to_owned();
    steps.push(mend(Mend::Close { act }));
    steps
}
