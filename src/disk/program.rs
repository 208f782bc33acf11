//! Running another program to its end, with what it says kept.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::base::{Error, Result, Stop, human};

/// What a program has said.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// What it wrote to standard error.
    pub errors: Vec<u8>,
}

impl Finished {
    /// Whether it ended well.
    pub fn is_good(&self) -> bool {
        self.code == Some(0)
    }

    /// What it wrote to standard error, without its colours: those are for who sees it run, and here it is quoted.
    pub fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.errors);
        anstream::adapter::strip_str(&text).to_string()
    }

    /// The last lines that it wrote to standard error, for a message.
    pub fn complaint(&self) -> String {
        let text = self.words();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        match lines.len() {
            0 => match self.code {
                Some(code) => format!("exit code {code}"),
                None => "a signal ended it".to_owned(),
            },
            n => lines[n.saturating_sub(3)..].join("; "),
        }
    }
}

/// Variables that lead git to another repository than the one it is called for: a hook that calls us has them set.
const LEADING: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_PREFIX",
];

/// Runs the installed `git` in a folder and waits for it; with a `lock` it holds that, too
/// ([`super::FileLock::lent`]). `None` when it is not installed.
///
/// # Errors
/// When it is there and can not be started.
pub fn run_git(
    folder: &Path,
    arguments: &[impl AsRef<OsStr>],
    ask: bool,
    lock: Option<std::fs::File>,
) -> io::Result<Option<Finished>> {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments);
    command.stdin(lock.map_or_else(Stdio::null, Stdio::from));
    LEADING.iter().for_each(|name| {
        command.env_remove(name);
    });
    if !ask {
        // A question that nobody sees would stop the night.
        command.env("GIT_TERMINAL_PROMPT", "0");
    }
    match command.output() {
        Ok(output) => Ok(Some(Finished {
            code: output.status.code(),
            output: output.stdout,
            errors: output.stderr,
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs an installed program with this on its standard input, and waits for it. `None` when it is not installed.
///
/// # Errors
/// When it is there and can not be started.
pub fn run_program(
    name: &str,
    arguments: &[impl AsRef<OsStr>],
    input: &[u8],
) -> io::Result<Option<Finished>> {
    let mut command = Command::new(name);
    // What it says is looked at, and must not be in the person's own language.
    command.args(arguments).env("LC_ALL", "C");
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match streams.stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    feed(&mut child, input);
    let output = child.wait_with_output()?;
    Ok(Some(Finished {
        code: output.status.code(),
        output: output.stdout,
        errors: output.stderr,
    }))
}

/// How long a program that is only asked something is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks an installed program something: like [`run_program`] without input, and it is ended, with all that it has
/// started, when it does not answer within five seconds.
///
/// # Errors
/// Also when it does not answer: [`io::ErrorKind::TimedOut`].
pub fn ask_program(name: &str, arguments: &[impl AsRef<OsStr>]) -> io::Result<Option<Finished>> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(name);
    command.args(arguments).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let until = Instant::now() + PATIENCE;
    // What it has started may hold the pipes open after it has ended.
    let output = child.stdout.take().map(read_beside);
    let errors = child.stderr.take().map(read_beside);
    let answer = |beside: Option<Receiver<Vec<u8>>>| match beside {
        Some(beside) => {
            let left = until.saturating_duration_since(Instant::now());
            beside.recv_timeout(left).ok()
        }
        None => Some(Vec::new()),
    };
    if let (Some(output), Some(errors)) = (answer(output), answer(errors)) {
        while Instant::now() < until {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(Finished {
                    code: status.code(),
                    output,
                    errors,
                }));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    end(&mut child, Duration::from_millis(200));
    let why = format!(
        "`{}` did not answer within {} s",
        human::escape(name),
        PATIENCE.as_secs()
    );
    Err(io::Error::new(io::ErrorKind::TimedOut, why))
}

/// Reads all that comes out of a pipe, and waits for it somewhere else.
fn read_beside(mut pipe: impl io::Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // What was read before an error is what it has said.
        let _ = pipe.read_to_end(&mut all);
        let _ = told.send(all);
    });
    heard
}

/// How long a command that was asked to end is given for it.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a person's own command line by the shell in a home and waits for it, with something on its standard input. Whether
/// it reads that is its own business: one that ends without reading is no error. What it prints goes to our standard
/// error, so that standard output holds our result alone. If it calls this program, that means this home. Returns its exit
/// code, or `None` when a signal ended it.
///
/// # Errors
/// When the shell can not be started; and interruption, which ends the command, too.
pub fn run_in(home: &Path, command: &str, input: &[u8], stop: &Stop) -> Result<Option<i32>> {
    use std::os::fd::AsFd;
    use std::os::unix::process::CommandExt;
    let folder = home;
    let fail = |e| {
        let what = format!("can not run `{}` in", human::escape(command));
        Error::io(what, folder, e)
    };
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(fail)?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(folder);
    shell.env("WBHOME", folder);
    // A group of its own: who presses Ctrl-C means us, and we end all of it.
    shell.process_group(0);
    match input {
        [] => shell.stdin(Stdio::null()),
        _ => shell.stdin(Stdio::piped()),
    };
    let mut child = shell.stdout(Stdio::from(output)).spawn().map_err(fail)?;
    feed(&mut child, input);
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().map_err(fail)? {
            return Ok(status.code());
        }
        if let Err(interrupted) = stop.check() {
            end(&mut child, GRACE);
            return Err(interrupted);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Ends a command and what it has started: asks first, and does not ask after `grace`.
fn end(child: &mut Child, grace: Duration) {
    use rustix::process::{Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok();
    let group = group.and_then(rustix::process::Pid::from_raw);
    let send = |signal| group.map(|group| kill_process_group(group, signal));
    send(Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < grace && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    send(Signal::KILL);
    let _ = child.wait();
}

/// Hands it over beside, and waits for nobody: what never reads would stop us, and what has ended breaks the pipe.
fn feed(child: &mut Child, input: &[u8]) {
    let input = input.to_vec();
    if let Some(mut pipe) = child.stdin.take() {
        std::thread::spawn(move || {
            let _ = pipe.write_all(&input);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_ended() {
        let begun = Instant::now();
        // What it has started holds its output open.
        let error = ask_program("/bin/sh", &["-c", "sleep 600 & exit 0"]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(
            error.to_string().ends_with("did not answer within 5 s"),
            "{error}"
        );
        assert!(begun.elapsed() < PATIENCE * 2);
        let said = ask_program("/bin/sh", &["-c", "echo yes; echo no >&2; exit 3"]);
        let said = said.unwrap().unwrap();
        assert_eq!(
            (said.code, &said.output[..], &said.errors[..]),
            (Some(3), &b"yes\n"[..], &b"no\n"[..])
        );
        assert!(
            ask_program("no-such-program-at-all", &["x"])
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn an_interrupt_ends_a_command_and_what_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !folder.path().join("begun").exists() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                stop.raise();
            });
            let command = "(sleep 60; echo late > late) & echo $! > child; touch begun; wait";
            let ran = run_in(folder.path(), command, b"", &stop);
            assert_eq!(ran.unwrap_err().kind(), crate::base::Kind::Interrupted);
        });
        assert!(begun.elapsed() < Duration::from_secs(50));
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        assert!(state.is_err() || state.unwrap().contains(" Z "));
    }

    #[test]
    fn a_command_reads_its_input_or_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let much = vec![b'x'; 1 << 20];
        let run = |command: &str| run_in(folder.path(), command, &much, &Stop::new()).unwrap();
        assert_eq!(run("cat > got"), Some(0));
        assert_eq!(std::fs::read(folder.path().join("got")).unwrap(), much);
        assert_eq!(run("exit 3"), Some(3));
        // Its child keeps the pipe open, and never reads.
        assert_eq!(run("sleep 5 2>/dev/null & exit 0"), Some(0));
        assert_eq!(run("kill -9 $$"), None);
    }

    #[test]
    fn a_program_that_is_not_installed_is_none() {
        let none = run_program("wbhome-is-not-there", &["x"], b"").unwrap();
        assert!(none.is_none());
        let cat = run_program("cat", &["-"], b"in").unwrap().unwrap();
        assert!(cat.is_good());
        assert_eq!(cat.output, b"in");
    }
}
