//! Who has a file open below a folder.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::process::{link_of, pids, process};

/// A file that a process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Who.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// Which file, as the kernel names it.
    pub path: PathBuf,
    /// Whether it is open for writing.
    pub writing: bool,
    /// Whether each write goes to the end (`O_APPEND`).
    pub appending: bool,
}

/// What could be learned of open files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFiles {
    /// Those that were seen.
    pub seen: Vec<OpenFile>,
    /// Folders that are open, or somebody's current folder: what is written by a relative name goes there, whatever
    /// the folder is called by then. Not those that this very program has open in another process, such as a backup
    /// that reads: it writes into a home only while it has the lock.
    pub folders: Vec<OpenFile>,
    /// Processes that we may not look into: "unknown" is not "none".
    pub hidden: usize,
}

/// Whether the system tells who has files open.
pub fn tells_open_files() -> bool {
    Path::new("/proc/self/fd").is_dir()
}

/// Every file and folder below `folder` (a real path) that some process other than this one has open.
pub fn open_below(folder: &Path) -> OpenFiles {
    let mut found = OpenFiles::default();
    let me = std::process::id();
    for pid in pids().into_iter().filter(|pid| *pid != me) {
        // Asked of those alone that have something open there.
        let program = || process(pid).map_or(String::new(), |process| process.name);
        let open_folder = |path: PathBuf| OpenFile {
            pid,
            program: program(),
            path,
            writing: false,
            appending: false,
        };
        if let Ok(path) = link_of(pid, "cwd")
            && path.starts_with(folder)
        {
            found.folders.push(open_folder(path));
        }
        let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            // Gone since it was listed is not the same as hidden.
            found.hidden += usize::from(process(pid).is_some());
            continue;
        };
        let mut is_ours = None;
        for fd in fds.flatten() {
            let Some(fd) = fd.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let Ok(path) = link_of(pid, &format!("fd/{fd}")) else {
                continue;
            };
            if !path.starts_with(folder) {
                continue;
            }
            if path.is_dir() {
                if !*is_ours.get_or_insert_with(|| runs_this_program(pid)) {
                    found.folders.push(open_folder(path));
                }
                continue;
            }
            let flags = flags_of(pid, &fd).unwrap_or(0);
            found.seen.push(OpenFile {
                pid,
                program: program(),
                path,
                writing: flags & 0o3 != 0,
                appending: flags & 0o2000 != 0,
            });
        }
    }
    found
}

/// Whether a process runs the same file as this one.
fn runs_this_program(pid: u32) -> bool {
    let program = |of: &str| {
        let meta = std::fs::metadata(format!("/proc/{of}/exe")).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    program(&pid.to_string()).is_some_and(|found| program("self") == Some(found))
}

/// The flags of an open file, which `/proc` prints in octal. See proc_pid_fdinfo(5).
fn flags_of(pid: u32, fd: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let flags = text.lines().find_map(|l| l.strip_prefix("flags:"))?;
    u32::from_str_radix(flags.trim(), 8).ok()
}
