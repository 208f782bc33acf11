//! Whether a log was cut while its session was packed. A cut changes a log in the middle while its writer goes on at the
//! end, so that the log itself looks as if it had merely grown; and its copy may have got its name too late to be packed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::Dir;
use crate::home::{is_log, journal};
use crate::pack::Manifest;

/// How often is looked whether a cut has ended, and how long is waited in between: together two seconds. A log whose cut
/// takes longer, or was left by a kill, is packed as it stands.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A session that is about to be packed.
pub(super) struct Cuts<'a> {
    root: &'a Dir,
    folder: &'a Path,
    /// A log was being cut all the time.
    pub is_stuck: bool,
}

impl<'a> Cuts<'a> {
    /// Waits until no log of the session, which lies in `folder` below the home, is being cut.
    pub fn wait(root: &'a Dir, folder: &'a Path) -> Cuts<'a> {
        let mut looks = 0;
        let is_cut = || journal::cuts_below(root, folder);
        while is_cut() && looks < LOOKS {
            std::thread::sleep(PAUSE);
            looks += 1;
        }
        Cuts {
            root,
            folder,
            is_stuck: looks == LOOKS,
        }
    }

    /// Whether one was cut since. One that was begun and ended meanwhile has left a file that was not there before.
    pub fn were_made(&self, session: &Dir, packed: &Manifest) -> bool {
        self.is_stuck || journal::cuts_below(self.root, self.folder) || has_more(session, packed)
    }
}

/// Whether there is a name beside the logs that were packed that was not packed.
fn has_more(session: &Dir, packed: &Manifest) -> bool {
    let members: BTreeSet<&Path> = packed.members.iter().map(|m| &*m.path).collect();
    let logs = members
        .iter()
        .filter(|path| is_log(path) || path.extension().is_some_and(|ending| ending == "log"));
    let folders: BTreeSet<PathBuf> = logs
        .filter_map(|path| path.parent())
        .map(Path::to_path_buf)
        .collect();
    folders.iter().any(|folder| {
        let Ok(names) = session.open_beneath(folder).and_then(|dir| dir.names()) else {
            return false;
        };
        let mut names = names.iter().map(|(name, _)| folder.join(name));
        names.any(|name| !members.contains(name.as_path()) && is_rotated(&name))
    })
}

/// Whether it has the name of what was cut out of a log: that of the log, and a moment.
fn is_rotated(name: &Path) -> bool {
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let moment = name.rsplit_once('-').map(|(_, moment)| moment);
    moment.is_some_and(|moment| moment.starts_with(|c: char| c.is_ascii_digit()))
}
