//! How a failure is told: one line of what, where and why, then what to do; as JSON, one document.

use clap::error::ErrorKind;
use serde_json::json;

use super::output::{Console, ERROR, FAINT, styled};
use crate::base::{Error, Exit, human};

/// Tells an error on standard error and gives its exit code.
pub(super) fn report(console: &Console, error: &Error) -> Exit {
    let exit = error.kind().exit();
    if console.json {
        let document = json!({
            "schema": "wbhome/error/1",
            "kind": error.kind().as_str(),
            "message": error.to_string(),
            "hints": error.hints(),
            "exit": exit.code(),
        });
        console.say(&format!("{document}\n"));
        return exit;
    }
    console.say(&format!("{} {error}\n", styled(ERROR, "error:")));
    for hint in error.hints() {
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
        // Nothing can be done when nobody reads it.
        let _ = error.print();
    } else {
        let text = error.render().to_string();
        let message = text
            .trim_start_matches("error: ")
            .lines()
            .next()
            .unwrap_or_default();
        let document = json!({
            "schema": "wbhome/error/1", "kind": "usage", "message": message,
            "hints": ["wbhome --help lists the commands"], "exit": 2,
        });
        eprintln!("{document}");
    }
    match shown {
        true => Exit::Done,
        false => Exit::Usage,
    }
}
