//! How a failure is told: one line of what, where and why, then what to do; as JSON, one document.

use std::ffi::OsString;
use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::json;

use super::Cli;
use super::output::{Console, ERROR, FAINT, json_line, styled};
use super::place;
use crate::base::{Error, Exit, human};

/// Tells an error on standard error and gives its exit code. `again` is how the program is called once more.
pub(super) fn report(console: &Console, error: &Error, again: &str) -> Exit {
    let exit = error.kind().exit();
    let hints = error.hints().iter();
    let hints: Vec<String> = hints.map(|hint| place::spelled(hint, again)).collect();
    if console.json {
        let document = json!({
            "schema": "wbhome/error/1",
            "kind": error.kind().as_str(),
            "message": error.to_string(),
            "hints": hints,
            "exit": exit.code(),
        });
        console.say(&json_line(&document));
        return exit;
    }
    console.say(&format!("{} {error}\n", styled(ERROR, "error:")));
    for hint in &hints {
        console.say(&format!(
            "{} {}\n",
            styled(FAINT, "hint:"),
            human::escape(hint)
        ));
    }
    exit
}

/// Tells a command line that makes no sense; help and version come this way too.
pub(super) fn usage(error: &clap::Error) -> Exit {
    let shown = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    let asked_json = std::env::args_os().any(|arg| arg == "--json");
    if shown || !asked_json {
        let text = error.render().ansi().to_string();
        let color = asked_color(std::env::args_os());
        // Nothing can be done when nobody reads it.
        let _ = match error.use_stderr() {
            true => AutoStream::new(io::stderr(), color).write_all(text.as_bytes()),
            false => AutoStream::new(io::stdout(), color).write_all(text.as_bytes()),
        };
    } else {
        let (message, hints) = told(error);
        let document = json!({
            "schema": "wbhome/error/1", "kind": "usage", "message": message,
            "hints": hints, "exit": 2,
        });
        let _ = io::stderr().write_all(json_line(&document).as_bytes());
    }
    match shown {
        true => Exit::Done,
        false => Exit::Usage,
    }
}

/// What people call commands elsewhere: the letters are no help there.
const CALLED: [(&str, &str); 13] = [
    ("cat", "show"),
    ("cd", "path"),
    ("delete", "rm"),
    ("del", "rm"),
    ("find", "search"),
    ("fsck", "check"),
    ("grep", "search"),
    ("list", "ls"),
    ("log", "history"),
    ("remove", "rm"),
    ("rename", "mv"),
    ("tag", "label"),
    ("view", "show"),
];

/// With the command that was meant, where it is called otherwise.
pub(super) fn with_its_name(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    if typed == "help" {
        let help = "`wbhome --help` lists the commands, `wbhome COMMAND --help` tells of one";
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![help.into()]),
        );
    } else if let Some((_, called)) = CALLED.iter().find(|(elsewhere, _)| *elsewhere == typed) {
        let called = ContextValue::Strings(vec![(*called).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, called);
    }
    error
}

/// What the command line says of colour, although it was not understood as a whole.
fn asked_color(line: impl Iterator<Item = OsString>) -> ColorChoice {
    let mut asked = ColorChoice::Auto;
    let mut is_next = false;
    for word in line {
        let word = word.to_string_lossy();
        let when = word.strip_prefix("--color=");
        match when.or_else(|| is_next.then_some(&*word)) {
            Some("always") => asked = ColorChoice::Always,
            Some("never") => asked = ColorChoice::Never,
            _ => {}
        }
        is_next = word == "--color";
    }
    asked
}

/// The message as it may be printed: the parser quotes what was typed as it is, in the middle of its own colours. So it
/// is asked once more, with everything escaped; where that makes sense, the message is told without colours.
pub(super) fn harmless(error: clap::Error, line: &[OsString]) -> clap::Error {
    let escaped: Vec<String> = line.iter().map(|arg| human::path(arg.as_ref())).collect();
    if escaped
        .iter()
        .zip(line)
        .all(|(shown, arg)| shown.as_str() == arg)
    {
        return error;
    }
    match Cli::try_parse_from(escaped) {
        Err(shown) if shown.kind() == error.kind() => shown,
        _ => {
            let text = error.render().to_string();
            let lines: Vec<_> = text.trim_end().lines().map(human::escape).collect();
            let text = lines.join("\n");
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            clap::Error::raw(error.kind(), format!("{text}\n"))
        }
    }
}

/// What the parser says to people, as one line and hints.
fn told(error: &clap::Error) -> (String, Vec<String>) {
    let help = "wbhome --help lists the commands and options".to_owned();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return ("no command was given".into(), vec![help]);
    }
    let (mut message, mut hints) = (Vec::new(), Vec::new());
    for line in error.render().to_string().lines().map(str::trim) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if line.starts_with("Usage: ") || line.starts_with("For more information") {
            break;
        } else if !line.is_empty() {
            message.push(line.strip_prefix("error: ").unwrap_or(line).to_owned());
        }
    }
    hints.push(help);
    (message.join(" "), hints)
}
