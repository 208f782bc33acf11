//! Ctrl-C, and what asks a program to end: the first time at the next safe point, the second time at once.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::base::Stop;

/// From now on signals raise the flag.
pub(super) fn listen(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registered first, so that it sees the flag as the signal before has left it.
        flag::register_conditional_default(signal, stop.flag())?;
        flag::register(signal, stop.flag())?;
    }
    Ok(())
}
