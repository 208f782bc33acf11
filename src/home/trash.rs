//! What was replaced, removed or repaired away is kept here, with a note on why and where it was.
//!
//! A folder of the trash is an *act*: one thing that a command did, and that can be taken back as one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::{Home, LockedHome, RelPath};
use crate::base::{Context, Error, Result, failpoint};
use crate::disk;

mod acts;
pub mod empty;
mod note;

pub use acts::{Act, OF_RELAY, act, acts};
pub(crate) use acts::{TRASH, close};
use note::lies;
pub use note::{Added, Former, Mark, ModeChange, Note, Was};

/// The note's name in each folder of the trash.
pub const NOTE: &str = "note.json";

/// Moves something of the home into the trash; `rel` is its path below the home. Returns where it is now.
///
/// # Errors
/// When it is not there, or can not be moved; then it is where it was.
pub fn put(home: &LockedHome, rel: &RelPath, why: &str, context: &Context) -> Result<PathBuf> {
    let (act, to) = make_room(home, Was::new(rel.as_path()), why, context)?;
    failpoint::hit("trash.noted");
    match disk::rename_no_replace(&home.root().join(rel.as_path()), &to) {
        Ok(()) => Ok(to),
        Err(error) => Err(without(home, &act, error)),
    }
}

/// What was to go into an act stays where it was: an act that holds nothing says nothing.
fn without(home: &LockedHome, act: &str, error: Error) -> Error {
    let _ = close(home, act);
    error
}

/// Like [`put`], for a name in an open folder, which may lie deeper than a path can say. `rel` is where that is
/// below the home; in the trash it lies directly beside the note.
///
/// # Errors
/// When it is not there, or can not be moved; then it is where it was.
pub fn put_entry(
    home: &LockedHome,
    dir: &disk::Dir,
    name: &OsStr,
    rel: &Path,
    why: &str,
    context: &Context,
) -> Result<PathBuf> {
    let to = match name == NOTE {
        true => OsStr::new("_note.json"),
        false => name,
    };
    let was = Was {
        lies: to.into(),
        ..Was::new(rel)
    };
    let act = open(home, note_on(was, why, context), context)?;
    let folder = home.trash().join(&act);
    let moved = disk::Dir::open(&folder).and_then(|trash| {
        dir.rename(name, &trash, to)?;
        trash.sync()
    });
    match moved {
        Ok(()) => Ok(folder.join(to)),
        Err(error) => {
            let error = Error::io("can not be put into the trash:", rel, error);
            Err(without(home, &act, error))
        }
    }
}

/// Keeps a copy of a content in the trash that is about to be replaced at `rel`, by what is known. Returns where.
///
/// # Errors
/// When it can not be written.
pub fn keep_before(
    home: &LockedHome,
    rel: &str,
    content: &[u8],
    replaced_by: Option<Mark>,
    why: &str,
    context: &Context,
) -> Result<PathBuf> {
    let was = Was::new(RelPath::new(rel)?.as_path()).replaced_by(replaced_by);
    let (_, to) = make_room(home, was, why, context)?;
    disk::write_new(&to, content, 0o600)?;
    give_to_owner(home, &to)?;
    Ok(to)
}

/// Opens an act for one thing. Its name, and where the thing is to lie.
fn make_room(
    home: &LockedHome,
    was: Was,
    why: &str,
    context: &Context,
) -> Result<(String, PathBuf)> {
    if was.path.as_os_str().is_empty() || was.path.starts_with(TRASH) {
        return Err(Error::failed("can not be put into the trash:").at(&was.path));
    }
    let lies = was.lies.clone();
    let act = open(home, note_on(was, why, context), context)?;
    let folder = home.trash().join(&act);
    let to = folder.join(lies);
    let parent = to.parent().unwrap_or(&folder);
    disk::create_private_folder(parent)?;
    for made in parent.ancestors().take_while(|made| *made != folder) {
        give_to_owner(home, made)?;
    }
    Ok((act, to))
}

/// Root that works for another user must not lock them out of their own trash: what it makes there is the owner's of the
/// home.
fn give_to_owner(home: &LockedHome, path: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let Some(owner) = disk::stat(home.root())?.filter(|_| disk::is_root()) else {
        return Ok(());
    };
    disk::Dir::open(parent)
        .and_then(|dir| dir.set_owner_of(name, owner.uid, owner.gid))
        .map_err(|e| Error::io("can not give to the owner of the home:", path, e))
}

fn note_on(was: Was, why: &str, context: &Context) -> Note {
    Note {
        was: vec![was],
        ..Note::of(why, context)
    }
}

/// Makes the folder of an act, with its note; nothing else lies in it yet. Returns its name.
///
/// # Errors
/// When it can not be written.
pub fn open(home: &LockedHome, note: Note, context: &Context) -> Result<String> {
    let folder = new_folder(home, context)?;
    write_note(&folder, &note)?;
    give_to_owner(home, &folder.join(NOTE))?;
    let name = folder.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

fn write_note(folder: &Path, note: &Note) -> Result<()> {
    disk::write_new(&folder.join(NOTE), &text_of(folder, note)?, 0o600)
}

fn text_of(folder: &Path, note: &Note) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(note)
        .map_err(|e| Error::io("can not write a note into", folder, e))?;
    text.push(b'\n');
    Ok(text)
}

/// Removes an act in which nothing but copies lies and of which nobody has been told, as far as that can be done.
pub(crate) fn discard(home: &LockedHome, act: &str) {
    let trash = disk::Dir::open(home.trash());
    let _ = trash.and_then(|trash| disk::remove_tree(&trash, OsStr::new(act)));
}

/// Says of something in an act what stands in its place since.
///
/// # Errors
/// When the note can not be written.
pub fn mark(home: &LockedHome, act: &str, path: &Path, by: &Mark) -> Result<()> {
    change_note(home, act, |note| {
        for was in note.was.iter_mut().filter(|was| was.path == path) {
            was.replaced_by = Some(by.clone());
        }
    })
}

/// Says of an act that what lies in it is not to be brought back as what it was: it is a rest, for a person to look at.
///
/// # Errors
/// When the note can not be written.
pub fn let_go(home: &LockedHome, act: &str, why: &str) -> Result<()> {
    change_note(home, act, |note| {
        why.clone_into(&mut note.why);
        note.was.clear();
    })
}

/// Of a note that can not be read nothing is changed.
fn change_note(home: &LockedHome, act: &str, change: impl FnOnce(&mut Note)) -> Result<()> {
    let Some(mut found) = self::act(home, act).filter(|act| act.noted) else {
        return Ok(());
    };
    change(&mut found.note);
    let folder = home.trash().join(act);
    disk::replace_any(&folder.join(NOTE), &text_of(&folder, &found.note)?, 0o600)
}

/// A folder of its own for each act: `<stamp>`, and with `-2` … when the second has had several. The newest has the
/// highest number, also where one of them is gone again.
fn new_folder(home: &LockedHome, context: &Context) -> Result<PathBuf> {
    let trash = home.trash();
    disk::create_private_folder(&trash)?;
    give_to_owner(home, &trash)?;
    let fail = |e| Error::io("can not write to", &trash, e);
    let dir = disk::Dir::open(&trash).map_err(fail)?;
    let stamp = context.clock.stamp();
    let mut last_act = home.last_act.lock().unwrap_or_else(PoisonError::into_inner);
    let last = match &*last_act {
        // Nobody else makes acts in a locked home: it is not listed for each of thousands.
        Some((second, n)) if *second == stamp => Some(*n),
        _ => last_of(&dir, &stamp).map_err(fail)?,
    };
    for n in last.map_or(1, |last| last.saturating_add(1)).. {
        let name = match n {
            1 => stamp.clone(),
            n => format!("{stamp}-{n}"),
        };
        match dir.make(OsStr::new(&name)) {
            Ok(()) => {
                dir.sync().map_err(fail)?;
                give_to_owner(home, &trash.join(&name))?;
                *last_act = Some((stamp, n));
                return Ok(trash.join(name));
            }
            // Another act of the same second, perhaps of another worker of ours.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail(error)),
        }
    }
    Err(Error::failed("is full:").at(&trash))
}

/// The number of the last act of a second, as far as it is still there.
fn last_of(trash: &disk::Dir, stamp: &str) -> std::io::Result<Option<u64>> {
    let names = trash.names()?;
    let numbers = names.iter().filter_map(|(name, _)| {
        let number = name.to_str()?.strip_prefix(stamp)?;
        match number {
            "" => Some(1),
            number => number.strip_prefix('-')?.parse::<u64>().ok(),
        }
    });
    Ok(numbers.max())
}

/// Where something in the trash would be shown: its path below the home.
pub fn shown(home: &Home, kept: &Path) -> String {
    let below = kept.strip_prefix(home.root()).unwrap_or(kept);
    crate::base::human::path(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn names_never_clash_and_the_note_says_where_it_was() {
        let place = testing::home();
        let home = place.locked("check");
        let mut kept = Vec::new();
        for content in ["一", "二"] {
            place.put("sessions/数据/a.md", content);
            let rel = RelPath::new("sessions/数据/a.md").unwrap();
            kept.push(put(&home, &rel, "the same as b.md", &place.context()).unwrap());
        }
        assert_eq!(
            kept.iter().map(|k| shown(&home, k)).collect::<Vec<_>>(),
            [
                ".wbhome/trash/20240615T120000Z/sessions/数据/a.md",
                ".wbhome/trash/20240615T120000Z-2/sessions/数据/a.md"
            ]
        );
        assert_eq!(disk::read(&kept[1]).unwrap().unwrap(), "二".as_bytes());
        let note = place
            .get(".wbhome/trash/20240615T120000Z-2/note.json")
            .unwrap();
        let note: serde_json::Value = serde_json::from_str(&note).unwrap();
        assert_eq!(note["why"], "the same as b.md");
        assert_eq!(note["was"][0], "sessions/数据/a.md");
        assert_eq!(note["at"], "2024-06-15T12:00:00Z");

        let at = keep_before(&home, "note.json", b"x", None, "a test", &place.context()).unwrap();
        assert_eq!(
            shown(&home, &at),
            ".wbhome/trash/20240615T120000Z-3/_/note.json"
        );

        // One that was brought back leaves no gap that a later one would fall into.
        disk::remove_tree(
            &disk::Dir::open(home.trash()).unwrap(),
            OsStr::new("20240615T120000Z"),
        )
        .unwrap();
        let at = keep_before(&home, "index.json", b"x", None, "a test", &place.context()).unwrap();
        assert!(shown(&home, &at).contains("20240615T120000Z-4/"));
        let own = RelPath::new(".wbhome/trash/20240615T120000Z-2").unwrap();
        assert!(put(&home, &own, "", &place.context()).is_err());
    }

    /// Without being root there is nothing to see.
    #[test]
    fn the_owner_of_the_home_keeps_what_root_puts_there() {
        use std::os::unix::fs::{MetadataExt, chown};
        if !disk::is_root() {
            return;
        }
        let place = testing::home();
        chown(place.home.root(), Some(1234), Some(1235)).unwrap();
        let home = place.locked("check");
        let kept = keep_before(&home, "notes/一.md", b"x", None, "", &place.context()).unwrap();
        let act = place.home.trash().join("20240615T120000Z");
        for path in [
            place.home.trash(),
            act.join(NOTE),
            act.clone(),
            act.join("notes"),
            kept,
        ] {
            let meta = std::fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.gid()), (1234, 1235), "{}", path.display());
        }
    }
}
