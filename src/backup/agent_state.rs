//! The agent application's own folder, divided into what a store keeps apart: its databases, which SQLite has to copy;
//! what is packed every night; what is packed now and then; and the conversations of each work folder.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Place, StatePart};
use crate::base::{Context, Error, Kind, Result};
use crate::disk::{self, Buffers, CopyError, Dir, Entry, FileKind, Identity, Meta};
use crate::paths::database::COMPANIONS;
use crate::state::live_copy::{copy_database, databases_in};
use crate::state::{Part, Saved};

/// Whether a walk leaves something out.
pub type Skip = Box<dyn Fn(&Path, &Entry) -> bool + Send + Sync>;

/// A part of the folder that is packed on its own.
pub struct Portion {
    /// What it is.
    pub place: Place,
    /// The folder that its pack is of.
    pub root: Dir,
    /// The path of that.
    pub path: PathBuf,
    /// What in `root` is not part of it.
    pub skip: Skip,
    /// Of [`StatePart::Databases`]: which, relative to `root`.
    pub databases: Vec<PathBuf>,
}

/// Divides a state folder. What is not there makes no part.
///
/// # Errors
/// A folder that can not be opened or has no name, and interruption. What in it can not be read is told by whoever packs.
pub fn portions(folder: &Path, saved: &Arc<Saved>, context: &Context) -> Result<Vec<Portion>> {
    let name = folder.file_name().ok_or_else(|| {
        Error::failed("the state folder has no name that a backup could go by:").at(folder)
    })?;
    let name = name.to_string_lossy().into_owned();
    let open = |path: &Path| Dir::open(path).map_err(|e| Error::io("can not open", path, e));
    let root = open(folder)?;
    let choose = Arc::clone(saved);
    let tree = disk::walk(
        &root,
        &move |rel, entry| !is_chosen(&choose, &rel.join(&entry.name), entry),
        context.stop,
    )?;
    // What of them can not be read is packed as a file, and named there.
    let databases = databases_in(&root, &tree);
    let of_databases: Arc<HashSet<PathBuf>> = Arc::new(
        databases
            .iter()
            .flat_map(|rel| {
                let with = |suffix: &str| beside(rel, suffix);
                std::iter::once(rel.clone()).chain(COMPANIONS.map(with))
            })
            .collect(),
    );

    let mut portions = Vec::new();
    if !databases.is_empty() {
        portions.push(Portion {
            place: Place::State(StatePart::Databases, name.clone()),
            root: open(folder)?,
            path: folder.to_path_buf(),
            skip: only(&databases),
            databases,
        });
    }
    let daily = |(rel, _): (PathBuf, &Entry)| Saved::place_of(&rel) == Part::Daily;
    for (part, here) in [
        (StatePart::Daily, tree.entries().any(daily)),
        (StatePart::Settings, true),
    ] {
        if here {
            portions.push(Portion {
                place: Place::State(part, name.clone()),
                root: open(folder)?,
                path: folder.to_path_buf(),
                skip: rest_of(part, saved, &of_databases),
                databases: Vec::new(),
            });
        }
    }
    let projects = Path::new("projects");
    let slugs = tree.folders.iter().filter(|folder| folder.rel == projects);
    for entry in slugs.flat_map(|folder| &folder.entries) {
        let Some(slug) = entry
            .name
            .to_str()
            .filter(|_| entry.meta.kind == FileKind::Folder)
        else {
            continue;
        };
        let rel = projects.join(slug);
        let dir = match root.open_beneath(&rel) {
            Ok(dir) => dir,
            // Gone since, or not to be read: it stays among the settings, whose pack names it.
            Err(_) => continue,
        };
        portions.push(Portion {
            place: Place::Transcripts(name.clone(), slug.to_owned()),
            root: dir,
            path: folder.join(&rel),
            skip: transcripts(rel, saved, &of_databases),
            databases: Vec::new(),
        });
    }
    Ok(portions)
}

/// Copies the databases of a portion into a fresh folder, each at its relative path. Returns those that SQLite does not
/// copy: somebody held them, or they are damaged. Of these the files are taken as they lie, which is better than nothing.
///
/// # Errors
/// A folder that can not be written, and interruption.
pub fn stage_databases(
    portion: &Portion,
    into: &Path,
    context: &Context,
) -> Result<Vec<(PathBuf, Error)>> {
    let fail = |e| Error::io("can not write", into, e);
    let top = Dir::open(into).map_err(fail)?;
    let mut failed = Vec::new();
    for rel in &portion.databases {
        context.stop.check()?;
        let parent = rel.parent().unwrap_or(Path::new(""));
        top.make_beneath(parent).map_err(fail)?;
        match copy_database(&portion.path.join(rel), &into.join(rel), context) {
            Ok(()) => {}
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => {
                as_they_lie(portion, rel, &top, context)?;
                failed.push((rel.clone(), error));
            }
        }
    }
    let mut folders: Vec<&Path> = portion
        .databases
        .iter()
        .flat_map(|rel| rel.ancestors().skip(1))
        .collect();
    // Deepest first, so that dressing one does not change another's time.
    folders.sort_by_key(|rel| std::cmp::Reverse(rel.iter().count()));
    folders.dedup();
    for rel in folders {
        let Ok(meta) = portion.root.open_beneath(rel).and_then(|dir| dir.meta()) else {
            continue;
        };
        let copy = top.open_beneath(rel).map_err(fail)?;
        copy.set_mode(meta.mode)
            .and_then(|()| copy.set_time(meta.mtime))
            .map_err(fail)?;
    }
    Ok(failed)
}

/// Copies the files of a database, one after the other. What of them can not be read stays away.
fn as_they_lie(portion: &Portion, rel: &Path, top: &Dir, context: &Context) -> Result<()> {
    let parent = rel.parent().unwrap_or(Path::new(""));
    let Ok(from) = portion.root.open_beneath(parent) else {
        return Ok(());
    };
    let fail = |e| Error::io("can not write", portion.path.join(rel), e);
    let into = top.open_beneath(parent).map_err(fail)?;
    for path in [rel.to_owned(), beside(rel, "-wal"), beside(rel, "-journal")] {
        let Some(name) = path.file_name() else {
            continue;
        };
        let Ok(opened) = from.open_file(name) else {
            continue;
        };
        let Ok(meta) = Meta::of(&opened) else {
            continue;
        };
        let copied = disk::copy_file(
            &opened,
            &meta,
            &into,
            &mut Identity,
            &mut Buffers::new(),
            context.stop,
        );
        match copied {
            Ok((new, _)) => new
                .dress(None, 0o600, meta.mtime)
                .and_then(|()| new.publish_over(name))
                .map_err(fail)?,
            Err(CopyError::Read(_)) => {}
            Err(CopyError::Write(error)) => return Err(fail(error)),
            Err(CopyError::Stopped) => context.stop.check()?,
        }
    }
    Ok(())
}

/// Whether a backup takes it, or may take something in it.
fn is_chosen(saved: &Saved, rel: &Path, entry: &Entry) -> bool {
    match entry.meta.kind {
        FileKind::Folder => !saved.skip_folder(rel),
        FileKind::File | FileKind::Symlink => saved.part(rel).is_some(),
        // What two processes talk through holds nothing.
        FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Unknown => false,
    }
}

fn beside(rel: &Path, suffix: &str) -> PathBuf {
    let mut path = rel.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Leaves out everything but databases and what their state depends on. The index of a log is not among that: whoever
/// reads the database changes it.
fn only(databases: &[PathBuf]) -> Skip {
    let files: HashSet<PathBuf> = databases
        .iter()
        .flat_map(|rel| [rel.clone(), beside(rel, "-wal"), beside(rel, "-journal")])
        .collect();
    let folders: HashSet<PathBuf> = databases
        .iter()
        .flat_map(|rel| rel.ancestors().skip(1).map(Path::to_path_buf))
        .collect();
    Box::new(move |folder, entry| {
        let rel = folder.join(&entry.name);
        match entry.meta.kind {
            FileKind::Folder => !folders.contains(&rel),
            _ => !files.contains(&rel),
        }
    })
}

/// Leaves out what belongs to another part.
fn rest_of(part: StatePart, saved: &Arc<Saved>, of_databases: &Arc<HashSet<PathBuf>>) -> Skip {
    let (saved, of_databases) = (Arc::clone(saved), Arc::clone(of_databases));
    let wanted = match part {
        StatePart::Daily => Part::Daily,
        StatePart::Databases | StatePart::Settings => Part::Settings,
    };
    Box::new(move |folder, entry| {
        let rel = folder.join(&entry.name);
        // A folder of conversations is told from a file beside it by what it is.
        let inside = match entry.meta.kind {
            FileKind::Folder => rel.join("x"),
            _ => rel.clone(),
        };
        Saved::place_of(&inside) != wanted
            || !is_chosen(&saved, &rel, entry)
            || of_databases.contains(&rel)
    })
}

fn transcripts(slug: PathBuf, saved: &Arc<Saved>, of_databases: &Arc<HashSet<PathBuf>>) -> Skip {
    let (saved, of_databases) = (Arc::clone(saved), Arc::clone(of_databases));
    Box::new(move |folder, entry| {
        let rel = slug.join(folder).join(&entry.name);
        !is_chosen(&saved, &rel, entry) || of_databases.contains(&rel)
    })
}

#[cfg(test)]
mod tests;
