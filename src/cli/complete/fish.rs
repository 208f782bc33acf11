//! fish. It quotes what it puts into the line, and finds by itself what has the word somewhere inside.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::shells::{Protocol, argument, ask, quoted, whole_line};
use super::words::{Dialect, is_redirected};

const SCRIPT: &str = r#"function __wbhome_complete
    set -l before (commandline --current-process --cut-at-cursor | string collect)
    set -l all (commandline --current-process | string collect)
    VAR=fish command PROGRAM -- "$before" "$all" 2>/dev/null | string split0
end
complete --command BIN --no-files --keep-order --arguments '(__wbhome_complete)'
"#;

pub(super) static FISH: Protocol = Protocol {
    name: "fish",
    also: &[],
    script: SCRIPT,
    quoted: quoted_for_fish,
    answer,
};

/// `args`: the command before the cursor, and all of it.
fn answer(
    command: &mut clap::Command,
    args: Vec<OsString>,
    folder: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let before = argument(&args, 0).as_bytes();
    if is_redirected(before, Dialect::Fish) {
        return Ok(());
    }
    let after = argument(&args, 1).as_bytes().strip_prefix(before);
    let line = whole_line(before, after.unwrap_or_default(), Dialect::Fish);
    for offer in ask(command, line, true, folder)?.all {
        // A tab is where the description begins.
        if offer.value.as_bytes().contains(&b'\t') {
            continue;
        }
        buf.write_all(offer.value.as_bytes())?;
        if let Some(help) = &offer.help {
            write!(buf, "\t{help}")?;
        }
        buf.write_all(b"\0")?;
    }
    Ok(())
}

/// Of the signs in single quotes fish also minds the backslash.
fn quoted_for_fish(text: &str) -> String {
    match text.contains(['\'', '\\']) {
        true => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        false => quoted(text),
    }
}
