//! Small filesystems of a test's own, unmounted when they are dropped, also by a test that fails.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::FallocateFlags;

use super::{has_tool, is_root};

/// A filesystem at a folder, and the file that it lies in, if any.
pub struct Mount {
    pub at: PathBuf,
    image: Option<PathBuf>,
}

impl Mount {
    /// A filesystem in memory. `None`, and said so, where nothing can be mounted.
    pub fn memory(at: PathBuf, size: &str) -> Option<Mount> {
        Mount::may()?;
        std::fs::create_dir(&at).unwrap();
        let mount = Mount { at, image: None };
        let options = format!("size={size},mode=700");
        let done = mount.run("mount", &["-t", "tmpfs", "-o", &options, "none"]);
        mount.or_skip(done)
    }

    /// An ext4 in a file beside the folder, which is read and written through a loop device. `None`, and said so, where
    /// there is no such thing.
    pub fn image(at: PathBuf, megabytes: u64) -> Option<Mount> {
        Mount::may()?;
        if !has_tool("mkfs.ext4") || !has_tool("losetup") {
            return None;
        }
        let image = at.with_extension("img");
        let file = File::create(&image).unwrap();
        file.set_len(megabytes << 20).unwrap();
        std::fs::create_dir(&at).unwrap();
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-m", "0", "-N", "4096"]).arg(&image);
        let mount = Mount {
            at,
            image: Some(image),
        };
        let done = succeeds(&mut make) && mount.mount("loop");
        mount.or_skip(done)
    }

    /// Mounts the file, again if need be. What was mounted before must have let go of it: two filesystems on one file
    /// destroy each other.
    pub fn mount(&self, options: &str) -> bool {
        let image = self.image.as_deref().unwrap_or(Path::new("none"));
        let is_free = || {
            let used = Command::new("losetup").arg("-j").arg(image).output();
            used.is_ok_and(|used| used.status.success() && used.stdout.is_empty())
        };
        (0..400).any(|_| is_free() || sleep_a_little())
            && self.run("mount", &["-o", options, image.to_str().unwrap()])
    }

    /// The file that it lies in.
    pub fn file(&self) -> &Path {
        self.image.as_deref().unwrap()
    }

    /// How many bytes there is room for.
    pub fn room(&self) -> u64 {
        let found = rustix::fs::statvfs(&self.at).unwrap();
        found.f_bavail * found.f_frsize
    }

    /// As a disk that is pulled out while somebody writes to it: what is open stays open, the path leads elsewhere.
    pub fn pull(&self) -> bool {
        self.run("umount", &["-l"])
    }

    pub fn remount(&self, options: &str) {
        assert!(self.run("mount", &["-o", &format!("remount,{options}")]));
    }

    /// Fills it with a file `filler` until nothing fits any more but `left` bytes.
    pub fn fill(&self, left: u64) {
        let mut filler = File::create(self.at.join("filler")).unwrap();
        let block = vec![7u8; 64 << 10];
        while filler.write_all(&block).is_ok() {}
        filler.sync_all().ok();
        // The last blocks, one by one.
        while filler.write_all(&block[..1 << 10]).is_ok() {}
        filler.sync_all().ok();
        let length = filler.metadata().unwrap().len();
        filler.set_len(length.saturating_sub(left)).unwrap();
        filler.sync_all().unwrap();
    }

    /// Like [`Mount::fill`], at once and not to the byte: a large filesystem is not written full in a moment.
    pub fn fill_roughly(&self, left: u64) {
        let filler = File::create(self.at.join("filler")).unwrap();
        let mut most = self.room().saturating_sub(left);
        let fits = |most| rustix::fs::fallocate(&filler, FallocateFlags::empty(), 0, most).is_ok();
        // Where the blocks are noted takes room as well.
        while most > 0 && !fits(most) {
            most = most.saturating_sub(64 << 10);
        }
    }

    /// Takes the filler away.
    pub fn make_room(&self) {
        std::fs::remove_file(self.at.join("filler")).unwrap();
    }

    fn may() -> Option<()> {
        (is_root() && has_tool("mount") && has_tool("umount")).then_some(())
    }

    fn or_skip(self, done: bool) -> Option<Mount> {
        if !done {
            eprintln!("SKIPPED: nothing can be mounted here");
        }
        done.then_some(self)
    }

    fn run(&self, tool: &str, args: &[&str]) -> bool {
        succeeds(Command::new(tool).args(args).arg(&self.at))
    }
}

fn sleep_a_little() -> bool {
    std::thread::sleep(Duration::from_millis(10));
    false
}

fn succeeds(command: &mut Command) -> bool {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily, lest something that a failed test has left running holds it. More than one may lie there.
        while self.pull() {}
    }
}
