//! Filesystems of one's own, where root and the tools are there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{has_tool, is_root};

/// A filesystem in a file or in memory, gone when it is dropped.
pub struct Disk {
    at: PathBuf,
    _image: Option<tempfile::NamedTempFile>,
}

fn run(tool: &str, args: &[&str]) -> bool {
    let done = Command::new(tool).args(args).output();
    let done = done.unwrap_or_else(|e| panic!("{tool}: {e}"));
    if !done.status.success() {
        eprintln!("{tool} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    done.status.success()
}

impl Disk {
    /// One of this kind (`ext4`, `xfs`, `btrfs`, `tmpfs`) and of so many MiB, mounted below `folder`. `None`, and said
    /// so, where that can not be had.
    pub fn new(folder: &Path, kind: &str, mib: u64) -> Option<Disk> {
        let at = folder.join(format!("disk-{kind}"));
        let mounted = at.to_str().unwrap().to_owned();
        if !is_root() || !has_tool("mount") {
            return None;
        }
        if kind == "tmpfs" {
            std::fs::create_dir(&at).unwrap();
            let size = format!("size={mib}m");
            let done = run("mount", &["-t", "tmpfs", "-o", &size, "none", &mounted]);
            return done.then_some(Disk { at, _image: None });
        }
        let make = format!("mkfs.{kind}");
        let sbin = Path::new("/usr/sbin").join(&make);
        if !sbin.exists() && !has_tool(&make) {
            return None;
        }
        let make = if sbin.exists() {
            sbin.to_str().unwrap().to_owned()
        } else {
            make
        };
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(mib << 20).unwrap();
        let file = image.path().to_str().unwrap();
        let quiet: &[&str] = match kind {
            "ext4" => &["-q", "-F"],
            _ => &["-q"],
        };
        std::fs::create_dir(&at).unwrap();
        let done =
            run(&make, &[quiet, &[file]].concat()) && run("mount", &["-o", "loop", file, &mounted]);
        if !done {
            eprintln!("SKIPPED: no {kind} can be mounted here");
            return None;
        }
        Some(Disk {
            at,
            _image: Some(image),
        })
    }

    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l", self.at.to_str().unwrap()]);
    }
}
