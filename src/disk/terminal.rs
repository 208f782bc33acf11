//! What the kernel knows of a terminal.

use std::os::fd::AsFd;

/// How many columns it has; `None` when it is none, or does not say.
pub fn terminal_columns(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
