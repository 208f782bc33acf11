//! Which home it is, and what it lies on.

use std::ffi::OsStr;
use std::path::Path;

use super::{Check, Visit};
use crate::base::human;
use crate::disk::{self, Dir, FileKind, Lack, Space};
use crate::home::{self, How, USUAL_NAME};

/// Less room than that is soon none, and less than that is none: an agent writes megabytes a day.
const SCARCE: u64 = 1 << 30;
const NONE: u64 = 64 << 20;

/// The same for the number of files.
const FEW: u64 = 10_000;
const NO_FILES: u64 = 500;

/// Which home, and why.
pub(super) fn home(visit: &Visit) -> Vec<Check> {
    let root = visit.home.root();
    let why = match visit.request.how {
        How::Named(by) => format!("named by {by}"),
        How::Ancestor => "found above the current folder".to_owned(),
        How::Usual => "your usual one".to_owned(),
    };
    let says = format!("{}, {why}", human::path(root));
    vec![match visit.home.is_trusted() {
        true => Check::ok("home", says),
        false => Check::warning(
            "home",
            format!("{says}: its commands are not run, its journal and git settings not obeyed"),
        )
        .cure(format!("export WBHOME={}", human::quoted(root)))
        .hint("name it, if it is yours; --home DIR does so for one command"),
    }]
}

/// Whether others can look into it, and whose it is.
pub(super) fn permissions(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "permissions";
    let me = disk::current_user();
    let mut checks = Vec::new();
    for folder in [visit.home.root().to_path_buf(), visit.home.own()] {
        let meta = match disk::stat(&folder) {
            Ok(Some(meta)) => meta,
            Ok(None) => continue,
            Err(error) => {
                checks.push(Check::failed(NAME, &error));
                continue;
            }
        };
        let shown = human::path(&folder);
        let open = meta.mode & 0o077;
        if open != 0 {
            let (who, may) = match open & 0o007 {
                0 => ("its group", open >> 3),
                may => ("everybody", may),
            };
            let can = match may & 0o002 {
                0 => "look into",
                _ => "look into and change",
            };
            let says = format!(
                "{who} on this machine can {can} {shown} (mode {:04o})",
                meta.mode
            );
            // The tool's own folder is behind the home's, unless that is open, too.
            let check = Check::warning(NAME, says);
            checks.push(check.cure(format!("chmod 700 {}", human::quoted(&folder))));
        } else if meta.mode & 0o700 != 0o700 {
            let says = format!("its owner can not work in {shown} (mode {:04o})", meta.mode);
            let check = Check::error(NAME, says);
            checks.push(check.cure(format!("chmod 700 {}", human::quoted(&folder))));
        }
        if meta.uid != me {
            let says = format!("{shown} belongs to another user (number {})", meta.uid);
            let check = Check::warning(NAME, says);
            checks.push(check.hint("git and the backup refuse what belongs to others"));
        }
        if !Dir::open(&folder).is_ok_and(|dir| disk::may_write(&dir)) {
            let check = Check::error(NAME, format!("{shown} can not be written"));
            checks.push(
                check.hint("is the disk mounted read-only, or full of errors? `dmesg` tells"),
            );
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "0700, yours alone"));
    }
    checks
}

/// What kind of filesystem it lies on, and whether a sync client carries it away.
pub(super) fn filesystem(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "filesystem";
    let root = visit.home.root();
    let mut checks = Vec::new();
    if let Some((folder, client)) = disk::sync_folder(root) {
        let says = format!(
            "the home lies in {}, a folder of {client}: what agents write there is damaged and deleted from elsewhere",
            human::path(folder)
        );
        let usual = visit
            .request
            .user_home
            .as_ref()
            .map(|me| me.join(USUAL_NAME));
        let free = usual.filter(|usual| disk::sync_folder(usual).is_none() && !disk::exists(usual));
        let check = Check::error(NAME, says);
        checks.push(match free {
            Some(to) => check.cure(format!(
                "wbhome migrate {} {}",
                human::quoted(root),
                human::quoted(&to)
            )),
            None => check.hint("`wbhome migrate SRC DEST` moves it to the local disk"),
        });
    }
    let look = || -> std::io::Result<_> {
        let dir = Dir::open(root)?;
        let folds = match dir.find(OsStr::new("index.json"))? {
            Some(_) => disk::folds_case(&dir, OsStr::new("index.json"))?,
            None => false,
        };
        Ok((disk::filesystem(&dir)?, folds))
    };
    let (kind, folds) = match look() {
        Ok(found) => found,
        Err(error) => {
            checks.push(Check::error(
                NAME,
                format!("can not be looked at: {}", human::io(&error)),
            ));
            return checks;
        }
    };
    let name = kind.name.unwrap_or("a filesystem that is not known here");
    let lack = match kind.lack {
        Lack::Nothing => None,
        Lack::Network => Some("locks and renames are as good as the other side makes them"),
        Lack::Program => Some("a program decides what of modes, links and locks is kept"),
        Lack::ModesAndLinks => Some("it keeps no modes and no symbolic links, which sessions have"),
        Lack::Memory => Some("it is in memory: all of it is gone when the machine stops"),
    };
    if let Some(lack) = lack {
        let check = Check::warning(NAME, format!("{name}: {lack}"));
        checks
            .push(check.hint("a home belongs on a local disk: `wbhome migrate SRC DEST` moves it"));
    }
    if folds {
        let says = "names that differ only in case are one name here: of two such sessions one would hide the other";
        checks.push(Check::warning(NAME, says).hint("`wbhome check` names them as name-collision"));
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, format!("{name}, on this machine")));
    }
    checks
}

/// How much room is left.
pub(super) fn room(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "room";
    let root = visit.home.root();
    let space = match Dir::open(root).and_then(Space::of) {
        Ok(space) => space,
        Err(error) => {
            let why = human::io(&error);
            return vec![Check::error(NAME, format!("can not be asked for: {why}"))];
        }
    };
    let few = space.inodes.is_some_and(|inodes| inodes < FEW);
    let says = match space.inodes {
        Some(inodes) if few => format!(
            "{} left, and no more than {}",
            human::size(space.bytes),
            human::plural(inodes, "new file", "new files")
        ),
        _ => format!("{} left", human::size(space.bytes)),
    };
    let none = space.bytes < NONE || space.inodes.is_some_and(|inodes| inodes < NO_FILES);
    vec![match (none, few || space.bytes < SCARCE) {
        (false, false) => Check::ok(NAME, says),
        (none, _) => match none {
            true => Check::error(NAME, says),
            false => Check::warning(NAME, says),
        }
        .cure("wbhome du")
        .hint("it names what takes the room, and what helps"),
    }]
}

/// Whether everything that makes a home is there.
pub(super) fn layout(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "layout";
    let root = visit.home.root();
    if super::writing::is_moving(visit) {
        return vec![Check::ok(
            NAME,
            "not looked at: the migration is not finished",
        )];
    }
    let (mut missing, mut other) = (Vec::new(), Vec::new());
    for (name, kind) in home::layout() {
        match disk::stat(&root.join(name)) {
            Ok(Some(meta)) if meta.kind == kind => {}
            Ok(Some(meta)) => other.push(expected(name, kind, meta.kind)),
            Ok(None) => missing.push(match kind {
                FileKind::Folder => format!("{name}/"),
                _ => name.to_owned(),
            }),
            Err(error) => other.push(error.to_string()),
        }
    }
    let mut checks = Vec::new();
    if !other.is_empty() {
        let check = Check::error(NAME, other.join("; "));
        checks.push(check.hint("a link can not stand there: put the folder or file itself there"));
    }
    if !missing.is_empty() {
        let check = Check::warning(NAME, format!("missing: {}", missing.join(", ")));
        checks.push(match super::indexed::is_lost(visit) {
            false => check.cure(init(root)),
            true => check.hint("is its disk mounted? When the sessions are back, `wbhome init` writes what is missing"),
        });
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "everything that makes a home is there"));
    }
    checks
}

fn expected(name: &str, kind: FileKind, found: FileKind) -> String {
    let (kind, found) = (kind.described(), found.described());
    format!("{name}: expected {kind}, found {found}")
}

/// `init` writes only what is missing.
fn init(root: &Path) -> String {
    format!("wbhome init {}", human::quoted(root))
}
