//! What a note says, before it is gone by.

use std::path::Path;

use crate::base::{Error, Result, Stop, human};
use crate::disk::Dir;
use crate::home::mend;
use crate::home::trash::{self, Act};
use crate::home::{Home, RelPath};

/// What the note names and is neither in the act nor where it belongs any more, a line each.
pub(super) fn gone(
    home: &Home,
    root: &Dir,
    act: &Act,
    concerned: &dyn Fn(&Path) -> bool,
    stop: &Stop,
) -> Result<Vec<String>> {
    let mut others = None;
    let mut gone = Vec::new();
    for was in act.note.was.iter().filter(|was| concerned(&was.path)) {
        if act.look(root, &was.lies).is_some() {
            continue;
        }
        if mend::look(root, &was.path)?.is_some() {
            let now = mend::mark(root, &was.path, stop)?;
            if was.replaced_by.is_none() || now != was.replaced_by {
                // It was taken back before.
                continue;
            }
        }
        let others: &Vec<Act> = match &mut others {
            Some(others) => others,
            none => none.insert(trash::acts(home)?),
        };
        let elsewhere =
            |other: &Act| other.name != act.name && other.place_of(root, &was.path).is_some();
        if !others.iter().any(elsewhere) {
            let path = human::path(&was.path);
            gone.push(format!("{path} is not in the trash any more"));
        }
    }
    Ok(gone)
}

/// A note is a file that anybody may have written: it must not lead out of the home or of its act, nor into what
/// belongs to this tool or to git, where a file is as good as a command.
pub(super) fn refuse_what_no_command_wrote(act: &Act) -> Result<()> {
    let own = |path: &Path| {
        let is = |name: &std::ffi::OsStr, own: &str| name.eq_ignore_ascii_case(own);
        path.iter().next().is_some_and(|first| is(first, ".wbhome"))
            || path.iter().any(|name| is(name, ".git"))
    };
    let honest =
        |path: &Path| RelPath::new(path).is_ok_and(|path| !path.is_empty() && !own(path.as_path()));
    let note = &act.note;
    let lies = |lies: &Path| {
        RelPath::new(lies)
            .is_ok_and(|lies| !lies.is_empty() && lies.as_path() != Path::new(trash::NOTE))
    };
    let was = note
        .was
        .iter()
        .all(|was| honest(&was.path) && lies(&was.lies));
    let added = note.added.iter().all(|added| honest(&added.path));
    let modes = note.modes.iter().map(|mode| &mode.path);
    let modes = modes
        .into_iter()
        .all(|path| path.as_os_str().is_empty() || honest(path));
    match was && added && modes {
        true => Ok(()),
        false => Err(Error::failed(
            "its note names what no command puts into the trash; nothing was changed:",
        )
        .at(act.folder().join(trash::NOTE))
        .hint("look into it: what lies there can be moved back by hand")),
    }
}
