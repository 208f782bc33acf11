//! Every verb of the program, one after the other, over a home that somebody has made to do harm.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::outside::{CANARY, Outside};
use super::{Place, Ran};

/// The session that the harm is done with, and one that is as it should be.
pub const VICTIM: &str = "20240603_crawler";
pub const SOUND: &str = "20240604_数据清洗";

/// How long a command may take: far longer than any does, far shorter than for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// KiB that a command may take: what it reads is never held whole, whatever it is.
const MEMORY: u64 = 200 << 10;

/// What only looks.
pub const LOOKING: &[&[&str]] = &[
    &["ls", "-l"],
    &["ls", "--status", "running", "--json"],
    &["show", VICTIM],
    &["show", "20240603_crawler/context"],
    &["show", "20240603_crawler/memory/notes.md"],
    &["show", "20240603_crawler/artifacts/out"],
    &["show", SOUND],
    &["path", "20240603_crawler/logs/run.log"],
    &["search", "-C1", "canary|一"],
    &["search", "canary", VICTIM],
    &["search", "canary", "--archived", "--json"],
    &["du", "-v"],
    &["du", VICTIM],
    &["check", "-v", "--archives"],
    &["check", VICTIM],
    &["doctor"],
    &["history", VICTIM],
    &["diff", VICTIM],
    &["lease", "ls", "--all"],
    &["relay", "status", "-v"],
    &["backup", "ls"],
    &["backup", "ls", VICTIM],
    &["backup", "verify"],
    &["restore", "--from", "trash"],
    &["migrate", "status"],
    &["migrate", "verify"],
    &["schedule", "show"],
    &["index", "-n"],
    &["rotate", "-n", "--force"],
    &["commit", "-n"],
    &["archive", "-n", VICTIM],
    &["relink", "-n", "--force", "/old/place", "/new/place"],
    &["rm", "-n", VICTIM],
    &["mv", "-n", VICTIM, "other"],
    &["nightly", "-n"],
    &["check", "--repair", "-n", "--fill"],
    &["check", "--empty-trash", "-n"],
    &["export", "-n", "--to", "exported", VICTIM],
];

/// What changes something, in an order in which most find something to do.
pub const CHANGING: &[&[&str]] = &[
    &["index", "-v"],
    &[
        "label",
        VICTIM,
        "--tag",
        "t",
        "--project",
        "p",
        "--sync-tag",
        "s",
    ],
    &["new", "another"],
    &["rotate", "--force", "-v"],
    &["commit", "-v"],
    &["backup", "run", "-v"],
    &["relay", "sync", "-v"],
    &["lease", "take", VICTIM],
    &["export", "--to", "exported", "--logs", VICTIM, SOUND],
    &["archive", "--keep", VICTIM],
    &["relink", "--force", "/old/place", "/new/place"],
    &["relink", "undo"],
    &["check", "--repair", "--fill", "-v"],
    &["rm", VICTIM],
    &["restore", VICTIM, "--from", "trash"],
    &["archive", VICTIM, "--force"],
    &["show", VICTIM],
    &["search", "canary", VICTIM],
    &["unarchive", VICTIM, "--force"],
    &["restore", VICTIM, "--from", "git", "--force"],
    &["restore", VICTIM, "--from", "backup", "--force"],
    &["restore", "20240603_crawler/context", "--from", "twin"],
    &["restore", "--from", "backup", "--to", "beside", VICTIM],
    &["mv", VICTIM, "20240603_moved"],
    &["mv", "20240603_moved", VICTIM],
    &["nightly", "-v"],
    &["drill"],
    &["index", "--rebuild"],
    &["restore", "--all", "--from", "store", "--to", "anew"],
    &["migrate", "me/workbuddy_home", "moved", "--force"],
    &["check", "--home", "moved", "-v"],
    &["relay", "fetch", "--to", "fetched", VICTIM],
    &["relay", "take", VICTIM, "--force"],
    &["lease", "release", VICTIM],
    &["check", "--empty-trash"],
    &["init", "me/workbuddy_home"],
];

/// Of each kind some: what reads, what writes, what clears and what removes.
pub const BRIEFLY: &[&[&str]] = &[
    &["ls", "-l"],
    &["search", "canary|一"],
    &["check", "-v"],
    &["doctor"],
    &["restore", "--from", "trash"],
    &[
        "label",
        VICTIM,
        "--tag",
        "t",
        "--project",
        "p",
        "--sync-tag",
        "s",
    ],
    &["rotate", "--force", "-v"],
    &["nightly", "-v"],
    &["relink", "--force", "/old/place", "/new/place"],
    &["archive", VICTIM],
    &["rm", SOUND],
    &["drill"],
    &["check", "--empty-trash"],
    &["init", "me/workbuddy_home"],
];

/// Who runs the program over a home, and what came of it.
pub struct Siege {
    pub place: Place,
    pub outside: Outside,
    /// What every command line begins with.
    pub before: Vec<String>,
    /// What is to be seen of whatever the program reads by a name outside; empty: it may read nothing.
    pub may_read: &'static [&'static str],
    /// A folder that was named to be used, so that it is looked at.
    pub may_look_into: Option<&'static str>,
    /// The folder that the program is run in, when it is to find the home there.
    pub from: Option<String>,
    /// How long a command may take.
    pub patience: Duration,
    /// How much memory, in KiB.
    pub memory: u64,
    /// Whether what is typed may be no session at all.
    pub mistypes: bool,
    /// Whether each command is told.
    pub tells: bool,
    /// Whether the canary may be shown: it was put into the home itself.
    pub may_show: bool,
    /// What was wrong, a text each.
    wrong: Vec<String>,
    kind: &'static str,
}

impl Siege {
    /// A home with two sessions, a store and a relay, and what lies outside.
    pub fn new(kind: &'static str) -> Siege {
        let place = Place::with_home();
        let outside = Outside::new(place.path("outside"));
        for (id, day) in [(VICTIM, 3), (SOUND, 4)] {
            place.put_home(&format!("sessions/{id}/memory/notes.md"), "in /old/place\n");
            place.put_home(&format!("sessions/{id}/logs/run.log"), "line\n".repeat(50));
            place.session(id, day);
        }
        place.ok(["index", "-q"]);
        place.ok(["backup", "init", "-q", "store"]);
        let clone = ["relay", "init", "-q", "relay", "--mode", "clone"];
        place.ok(clone);
        for folder in ["exported", "fetched"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        Siege {
            place,
            outside,
            before: Vec::new(),
            may_read: &[],
            may_look_into: None,
            mistypes: false,
            from: None,
            patience: PATIENCE,
            memory: MEMORY,
            tells: std::env::var_os("WBHOME_SIEGE_TELLS").is_some(),
            may_show: false,
            wrong: Vec::new(),
            kind,
        }
    }

    /// Runs these command lines, and looks after each.
    pub fn runs(&mut self, all: &[&[&str]]) {
        for args in all {
            self.run(args);
        }
    }

    /// Runs a command line to its end, and looks what it has done.
    pub fn run(&mut self, args: &[&str]) -> Ran {
        self.run_plain(&[&["--yes"], args].concat())
    }

    /// Like [`Siege::run`], for one that ends with what is no flag.
    pub fn run_plain(&mut self, args: &[&str]) -> Ran {
        let mut command = match self.before.split_first() {
            None => self.place.command(),
            Some((first, rest)) => {
                let plain = self.place.command();
                let mut command = Command::new(first);
                command.args(rest).arg(plain.get_program()).env_clear();
                for (name, value) in plain.get_envs() {
                    command.env(name, value.unwrap_or_default());
                }
                command.current_dir(self.place.root()).stdin(Stdio::null());
                command
            }
        };
        command
            .args(["--no-progress", "--lock-wait", "1s"])
            .args(args);
        if let Some(from) = &self.from {
            command.current_dir(self.place.path(from));
        }
        let begun = Instant::now();
        let (ran, memory) = finish(command, self.patience);
        let told = format!(
            "{}: wbhome {} ({:?}, {} ms, {memory} KiB)",
            self.kind,
            args.join(" "),
            ran.as_ref().map(|ran| ran.code),
            begun.elapsed().as_millis()
        );
        if memory > self.memory {
            self.wrong.push(format!("{told} takes too much memory"));
        }
        if self.tells {
            eprintln!("{told}\n{ran:#?}");
        }
        let Some(ran) = ran else {
            self.wrong.push(format!("{told} does not end"));
            return Ran {
                code: None,
                stdout: String::new(),
                stderr: String::new(),
            };
        };
        for what in self.faults(&ran) {
            self.wrong.push(format!("{told} {what}\n{ran:#?}"));
        }
        ran
    }

    fn faults(&mut self, ran: &Ran) -> Vec<String> {
        let mut faults = Vec::new();
        match ran.code {
            Some(0 | 1 | 3 | 4 | 10 | 11 | 12) => {}
            // What a record says is no mistake of who typed the command, but what is typed may lead out, too.
            Some(2) if self.mistypes => {}
            Some(2) => faults.push("is called wrongly".to_owned()),
            code => faults.push(format!("ends with {code:?}")),
        }
        if ran.stderr.contains("panicked") {
            faults.push("panics".to_owned());
        }
        // What and where: a warning, a finding or an error that names something.
        if !matches!(ran.code, Some(0 | 4)) && ran.stdout.is_empty() && !ran.stderr.contains(": ") {
            faults.push("says nothing".to_owned());
        }
        if !self.may_show && (ran.stdout.contains(CANARY) || ran.stderr.contains(CANARY)) {
            faults.push("shows what lies outside".to_owned());
        }
        let may = self.may_read;
        let seen: BTreeSet<String> = self
            .outside
            .seen()
            .into_iter()
            .filter(|line| !may.iter().any(|may| line.ends_with(may)))
            .filter(|line| {
                let looks =
                    line.starts_with("ReadFlags(OPEN)") || line.starts_with("ReadFlags(ACCESS)");
                let into = self.may_look_into;
                !(looks && into.is_some_and(|into| line.contains(into)))
            })
            .collect();
        if !seen.is_empty() {
            faults.push(format!("touches {seen:#?}"));
        }
        faults
    }

    /// Nothing was wrong, and outside all is as it was.
    #[track_caller]
    pub fn end(mut self) -> Place {
        let wrong = self.wrongs();
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        self.place
    }

    /// What was wrong, a text each, with what has changed outside.
    pub fn wrongs(&mut self) -> Vec<String> {
        let changes = self.outside.changes();
        if !changes.is_empty() {
            let told = format!("{}: outside has changed:\n{changes}", self.kind);
            self.wrong.push(told);
        }
        std::mem::take(&mut self.wrong)
    }
}

/// Runs a program to its end, and says how many KiB it took; `None`, and it is ended, when its end does not come.
fn finish(mut command: Command, patience: Duration) -> (Option<Ran>, u64) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = read_beside(child.stdout.take().unwrap());
    let stderr = read_beside(child.stderr.take().unwrap());
    let begun = Instant::now();
    let mut memory = 0;
    let status = loop {
        memory = memory.max(peak(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            return (None, memory);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let ran = Ran {
        code: status.code(),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    };
    (Some(ran), memory)
}

fn read_beside(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        pipe.read_to_end(&mut all).unwrap();
        String::from_utf8(all).unwrap()
    })
}

/// The most memory that a process has taken so far, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}
