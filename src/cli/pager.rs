//! Long output, a page at a time: on a terminal alone, by the pager that the person has chosen.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anstream::{AutoStream, ColorChoice};

use super::output::{Console, stdout_is_terminal};
use crate::base::{Error, Result, human};

/// Prints a text, through a pager where one is wanted. Somebody who has stopped reading is not an error.
///
/// # Errors
/// When nothing can be written.
pub(super) fn print(text: &str, console: &Console, paged: bool) -> Result<()> {
    let pager = match paged && stdout_is_terminal() && std::io::stdin().is_terminal() {
        true => chosen(),
        false => None,
    };
    let Some(pager) = pager else {
        return console.print(text);
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            console.warn(&format!("no pager can be started: {}", human::io(&error)));
            return console.print(text);
        }
    };
    let plain;
    let shown = match console.color_on_stdout() {
        true => text,
        false => {
            plain = anstream::adapter::strip_str(text).to_string();
            &plain
        }
    };
    let written = match child.stdin.take() {
        Some(mut stdin) => stdin.write_all(shown.as_bytes()),
        None => Ok(()),
    };
    let ended = child.wait();
    let fail = |error| Error::failed("can not write to the pager").because(error);
    match Ended::of(ended.map_err(fail)?) {
        Ended::NotStarted => {
            console.warn(&format!(
                "the pager `{}` can not be started",
                human::escape(&pager)
            ));
            return console.print(text);
        }
        Ended::Failed(code) => console.warn(&format!(
            "the pager `{}` failed (exit code {code}); --no-pager does without it",
            human::escape(&pager)
        )),
        Ended::Read => {}
    }
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(fail(error)),
        _ => Ok(()),
    }
}

/// What became of the pager.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The person has read what they wanted to read.
    Read,
    /// There is no such program, or it may not be run.
    NotStarted,
    Failed(i32),
}

impl Ended {
    /// A signal is the person's own way to end it; a shell tells of one by a code above 128.
    fn of(status: ExitStatus) -> Ended {
        match status.code() {
            None | Some(0) | Some(129..) => Ended::Read,
            Some(126 | 127) => Ended::NotStarted,
            Some(code) => Ended::Failed(code),
        }
    }
}

/// The command line of the pager; `None` for none, which `cat` and an empty one mean, too.
fn chosen() -> Option<String> {
    let set = ["WBHOME_PAGER", "PAGER"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    match set {
        Some(set) => Some(set).filter(|set| !matches!(set.trim(), "" | "cat")),
        None => is_installed("less").then(|| "less -FRX".to_owned()),
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

impl Console {
    /// Whether what goes to standard output is coloured.
    fn color_on_stdout(&self) -> bool {
        AutoStream::new(std::io::stdout(), self.color_choice()).current_choice()
            != ColorChoice::Never
    }
}
