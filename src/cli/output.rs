//! Results go to standard output, everything else to standard error. For people, what is printed may change
//! from version to version; JSON may not.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use serde::Serialize;

use super::args::Global;
use crate::base::{Error, Exit, Kind, Result, human};

/// Bold, for what the eye should find first.
pub(super) const STRONG: Style = Style::new().bold();
/// Dimmed, for what may be passed over.
pub(super) const FAINT: Style = Style::new().dimmed();
/// For warnings.
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// For errors.
pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Text in a style; the stream takes the style out again where colour is not wanted.
pub(super) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A JSON document on a line: on a terminal it is looked at, too, and its texts must not drive it.
pub(super) fn json_line(document: &serde_json::Value) -> String {
    format!("{}\n", human::json(&document.to_string()))
}

/// Where a verb prints.
#[derive(Debug)]
pub(super) struct Console {
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    color: anstream::ColorChoice,
}

impl Console {
    pub fn new(global: &Global) -> Self {
        let color = match global.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        Console {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            color,
        }
    }

    /// What the person said of colour.
    pub fn color_choice(&self) -> anstream::ColorChoice {
        self.color
    }

    /// Prints what was asked for: as one JSON document, or as `human` writes it.
    pub fn result(
        &self,
        schema: &str,
        value: &impl Serialize,
        human: impl FnOnce(&mut String),
    ) -> Result<()> {
        if self.json {
            return self.document(schema, value);
        }
        let mut text = String::new();
        human(&mut text);
        self.print(&text)
    }

    /// Like [`Console::result`], for a verb that changes something: with `--quiet` people are told nothing.
    pub fn report(
        &self,
        schema: &str,
        value: &impl Serialize,
        human: impl FnOnce(&mut String),
    ) -> Result<()> {
        if self.quiet && !self.json {
            return Ok(());
        }
        self.result(schema, value, human)
    }

    /// Prints one JSON document on a line, with its schema.
    pub fn document(&self, schema: &str, value: &impl Serialize) -> Result<()> {
        self.print(&self.line(schema, value)?)
    }

    /// One JSON document as a line, with its schema.
    pub fn line(&self, schema: &str, value: &impl Serialize) -> Result<String> {
        let value = serde_json::to_value(value).map_err(|e| {
            Error::new(Kind::Bug, "the result can not be written as JSON").because(e)
        })?;
        let mut document = serde_json::Map::new();
        document.insert("schema".into(), format!("wbhome/{schema}").into());
        if let serde_json::Value::Object(fields) = value {
            document.extend(fields);
        }
        Ok(json_line(&serde_json::Value::Object(document)))
    }

    /// Writes to standard output. Somebody who has stopped reading is not an error.
    pub fn print(&self, text: &str) -> Result<()> {
        self.stream(text).map(|_| ())
    }

    /// Writes to standard output what is followed by more. To break says that nobody reads any more.
    pub fn stream(&self, text: &str) -> Result<ControlFlow<()>> {
        let mut stream = AutoStream::new(io::stdout(), self.color).lock();
        match stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush())
        {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(error) => Err(Error::failed("can not write to standard output").because(error)),
        }
    }

    /// Writes bytes to standard output as they are.
    pub fn print_bytes(&self, bytes: &[u8]) -> Result<()> {
        let mut stream = io::stdout().lock();
        match stream.write_all(bytes).and_then(|()| stream.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done.map_err(|e| Error::failed("can not write to standard output").because(e)),
        }
    }

    /// Something that a person should know.
    pub fn warn(&self, text: &str) {
        self.say(&format!("{} {text}\n", styled(WARNING, "warning:")));
    }

    /// Says on standard error that something was refused: an error where the whole command has come to nothing by it.
    pub fn refuse(&self, text: &str, exit: Exit) {
        match exit {
            Exit::Failed | Exit::Newer => {
                self.say(&format!("{} {text}\n", styled(ERROR, "error:")))
            }
            _ => self.warn(text),
        }
    }

    /// What a person may want to know, and may not.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.say(&format!("{text}\n"));
        }
    }

    /// What a person can do next.
    pub fn hint(&self, text: &str) {
        if !self.quiet && !self.json {
            self.say(&format!("{} {text}\n", styled(FAINT, "hint:")));
        }
    }

    /// Writes to standard error; nothing can be done when nobody reads it.
    pub fn say(&self, text: &str) {
        let _ = AutoStream::new(io::stderr(), self.color)
            .lock()
            .write_all(text.as_bytes());
    }

    /// Asks on a terminal. Elsewhere nobody can answer: `otherwise` is taken.
    pub fn ask(&self, question: &str, otherwise: bool) -> bool {
        if !can_ask() {
            return otherwise;
        }
        self.say(&format!("{question} [y/N] "));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        if !answer.ends_with('\n') {
            // The end of the input leaves the cursor behind the question.
            self.say("\n");
        }
        read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }
}

/// Whether somebody is there who could answer a question.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard output is a terminal.
pub(super) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// How wide the terminal is; `None` where there is none.
pub(super) fn terminal_width() -> Option<usize> {
    if !stdout_is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns
        .or_else(|| crate::disk::terminal_columns(io::stdout()))
        .filter(|columns| *columns > 0)
}
