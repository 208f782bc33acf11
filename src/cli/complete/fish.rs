//! fish. It quotes what it puts into the line, and finds by itself what has the word somewhere inside.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap_complete::env::EnvCompleter;

use super::shells::{argument, ask, quoted, register, whole_line};
use super::words::{Dialect, is_redirected};

#[derive(Clone, Copy, Debug)]
pub(super) struct Fish;

const SCRIPT: &str = r#"function __wbhome_complete
    set -l before (commandline --current-process --cut-at-cursor | string collect)
    set -l all (commandline --current-process | string collect)
    VAR=fish command PROGRAM -- "$before" "$all" 2>/dev/null | string split0
end
complete --command BIN --no-files --keep-order --arguments '(__wbhome_complete)'
"#;

impl EnvCompleter for Fish {
    fn name(&self) -> &'static str {
        "fish"
    }

    fn is(&self, name: &str) -> bool {
        name == "fish"
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        register(SCRIPT, var, bin, &quoted_for_fish(completer), buf)
    }

    /// `args`: the command before the cursor, and all of it.
    fn write_complete(
        &self,
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
}

/// Of the signs in single quotes fish also minds the backslash.
pub(super) fn quoted_for_fish(text: &str) -> String {
    match text.contains(['\'', '\\']) {
        true => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        false => quoted(text),
    }
}
