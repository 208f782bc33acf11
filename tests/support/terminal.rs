//! A terminal with a shell in it, for what can only be seen by typing: keys go in, and what is drawn comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Longer than anything takes, on a machine that does other things besides.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Terminal {
    keys: File,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts a program in a terminal of its own, of so many columns. `setsid` gives it that as the controlling one.
    pub fn start(program: &[&str], columns: u16, dress: impl FnOnce(&mut Command)) -> Terminal {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = File::from(rustix::fs::open(&*name, flags, Mode::empty()).unwrap());
        let size = Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&keys, size).unwrap();
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(program);
        dress(&mut command);
        command
            .stdin(line.try_clone().unwrap())
            .stdout(line.try_clone().unwrap())
            .stderr(line);
        let child = command.spawn().unwrap();
        // What holds the other ends open in this process.
        drop(command);
        let keys = File::from(keys);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut drawn, into) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = drawn.read(&mut buffer) {
                into.lock().unwrap().extend(&buffer[..length]);
            }
        });
        Terminal { keys, child, shown }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// How much was drawn so far.
    pub fn mark(&self) -> usize {
        self.shown.lock().unwrap().len()
    }

    /// What was drawn since, control sequences and all.
    pub fn since(&self, mark: usize) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()[mark..]).into_owned()
    }

    /// Waits until something is so.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut is_so: impl FnMut(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = is_so(self) {
                return found;
            }
            let drawn = || self.since(0);
            assert!(begun.elapsed() < PATIENCE, "{what}, in:\n{}", drawn());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until all of this was drawn since.
    #[track_caller]
    pub fn shows(&self, mark: usize, parts: &[&str]) -> String {
        self.until(&format!("{parts:?} should be shown"), |terminal| {
            let drawn = terminal.since(mark);
            parts
                .iter()
                .all(|part| drawn.contains(part))
                .then_some(drawn)
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
