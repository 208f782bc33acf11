//! Running another program to its end, with what it says kept.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

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

    /// The last lines that it wrote to standard error, for a message.
    pub fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.errors);
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

/// Runs the installed `git` in a folder and waits for it; it gets no input. `None` when it is not installed.
///
/// # Errors
/// When it is there and can not be started.
pub fn run_git(
    folder: &Path,
    arguments: &[impl AsRef<OsStr>],
    ask: bool,
) -> io::Result<Option<Finished>> {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null());
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
