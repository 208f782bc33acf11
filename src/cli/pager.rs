//! Long output, a page at a time: on a terminal alone, by the pager that the person has chosen.

use std::io::{ErrorKind, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use anstream::{AutoStream, ColorChoice};

use super::output::{Console, stdout_is_terminal};
use crate::base::{Error, Result, human};

/// Prints a text, through a pager where one is wanted. Somebody who has stopped reading is not an error.
///
/// # Errors
/// When nothing can be written.
pub(super) fn print(text: &str, console: &Console, paged: bool) -> Result<()> {
    let mut out = Paged::open(console, paged);
    let _ = out.print(text)?;
    out.close()
}

/// A pager that could not be started has read no more than this: a pipe holds 64 KiB.
const UNREAD: usize = 256 << 10;

/// What is printed bit by bit, through a pager where one is wanted.
pub(super) struct Paged<'c> {
    console: &'c Console,
    pager: Option<Pager>,
    /// Whether somebody has stopped reading.
    is_over: bool,
}

struct Pager {
    command: String,
    child: Child,
    color: bool,
    /// What was written, as long as it is not sure that there is a pager.
    unread: Option<String>,
}

impl<'c> Paged<'c> {
    /// Starts the pager, when one is wanted.
    pub fn open(console: &'c Console, paged: bool) -> Paged<'c> {
        let chosen = match paged && stdout_is_terminal() && std::io::stdin().is_terminal() {
            true => chosen(),
            false => None,
        };
        Paged {
            console,
            pager: chosen.and_then(|command| Pager::start(command, console)),
            is_over: false,
        }
    }

    /// Prints a text. To break says that nobody reads any more.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn print(&mut self, text: &str) -> Result<ControlFlow<()>> {
        if self.is_over {
            return Ok(ControlFlow::Break(()));
        }
        let Some(pager) = &mut self.pager else {
            let flow = self.console.stream(text)?;
            self.is_over = flow.is_break();
            return Ok(flow);
        };
        match pager.write(text) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.ended(),
            Err(error) => Err(Error::failed("can not write to the pager").because(error)),
        }
    }

    /// Waits for whoever reads.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn close(mut self) -> Result<()> {
        self.ended().map(|_| ())
    }

    /// Waits for the pager. What one that could not be started has not shown is printed.
    fn ended(&mut self) -> Result<ControlFlow<()>> {
        let Some(mut pager) = self.pager.take() else {
            return Ok(ControlFlow::Continue(()));
        };
        drop(pager.child.stdin.take());
        let ended = pager.child.wait();
        let ended = ended.map_err(|e| Error::failed("can not write to the pager").because(e))?;
        let command = human::escape(&pager.command);
        match Ended::of(ended) {
            Ended::NotStarted => {
                let warning = format!("the pager `{command}` can not be started");
                self.console.warn(&warning);
                return self.print(&pager.unread.unwrap_or_default());
            }
            Ended::Failed(code) => self.console.warn(&format!(
                "the pager `{command}` failed (exit code {code}); --no-pager does without it"
            )),
            Ended::Read => {}
        }
        self.is_over = true;
        Ok(ControlFlow::Break(()))
    }
}

impl Pager {
    fn start(pager: String, console: &Console) -> Option<Pager> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &pager]).stdin(Stdio::piped());
        for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        match command.spawn() {
            Ok(child) => Some(Pager {
                command: pager,
                child,
                color: console.color_on_stdout(),
                unread: Some(String::new()),
            }),
            Err(error) => {
                let why = human::io(&error);
                console.warn(&format!("no pager can be started: {why}"));
                None
            }
        }
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        if let Some(unread) = &mut self.unread {
            unread.push_str(text);
        }
        let plain;
        let shown = match self.color {
            true => text,
            false => {
                plain = anstream::adapter::strip_str(text).to_string();
                &plain
            }
        };
        if let Some(stdin) = &mut self.child.stdin {
            stdin.write_all(shown.as_bytes())?;
        }
        if self
            .unread
            .as_ref()
            .is_some_and(|unread| unread.len() > UNREAD)
        {
            self.unread = None;
        }
        Ok(())
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
