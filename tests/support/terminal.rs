//! A terminal with a program in it, for what can only be seen by typing: keys go in, and what is drawn comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::Place;

/// Longer than anything takes, on a machine that does other things besides.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Terminal {
    keys: File,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    drawing: Option<JoinHandle<()>>,
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
        command.args(["--ctty", "--wait"]).args(program);
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
        let drawing = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = drawn.read(&mut buffer) {
                into.lock().unwrap().extend(&buffer[..length]);
            }
        });
        Terminal {
            keys,
            child,
            shown,
            drawing: Some(drawing),
        }
    }

    /// From now on the terminal does not draw the keys that are pressed: they would stand in the middle of a character that
    /// a program is writing.
    pub fn hides_keys(&self) {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let mut set = tcgetattr(&self.keys).unwrap();
        set.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&self.keys, OptionalActions::Now, &set).unwrap();
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// All that the program drew until it ended by itself.
    pub fn end(mut self) -> Vec<u8> {
        self.child.wait().unwrap();
        self.drawing.take().unwrap().join().unwrap();
        std::mem::take(&mut self.shown.lock().unwrap())
    }

    /// How the terminal is set: what a program that leaves it as it was does not change.
    pub fn state(&self) -> String {
        let set = rustix::termios::tcgetattr(&self.keys).unwrap();
        format!(
            "{:?} {:?} {:?}",
            set.input_modes, set.output_modes, set.local_modes
        )
    }

    /// All that the program drew until it ended by itself, and how the terminal is set then.
    pub fn end_with_state(mut self) -> (Vec<u8>, String) {
        self.child.wait().unwrap();
        let state = self.state();
        (self.end(), state)
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

impl Place {
    /// What a person sees on a terminal so wide, standard output and standard error as they come. No pager is run, and no
    /// key is pressed.
    pub fn on_terminal(&self, columns: u16, args: &[&str]) -> String {
        self.on_terminal_with(columns, &[("PAGER", "cat")], args)
    }

    /// The same, with this in the environment.
    pub fn on_terminal_with(&self, columns: u16, env: &[(&str, &str)], args: &[&str]) -> String {
        let wbhome = self.command();
        let mut program = vec![wbhome.get_program().to_str().unwrap()];
        program.extend(args);
        let terminal = Terminal::start(&program, columns, |command| {
            command.current_dir(self.root()).env_clear();
            let set = wbhome.get_envs();
            command.envs(set.filter_map(|(name, value)| Some((name, value?))));
            command.env("TERM", "xterm").envs(env.iter().copied());
        });
        String::from_utf8(terminal.end())
            .unwrap()
            .replace("\r\n", "\n")
    }
}
