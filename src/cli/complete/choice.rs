//! No shell: `wbcd` alone asks for all sessions that one can go to, for a person to choose from.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::line;
use super::offers::places_to_go;
use super::shells::{Offer, Protocol, described, quoted};

pub(super) static CHOICE: Protocol = Protocol {
    name: "choice",
    also: &[],
    script: "",
    quoted,
    answer,
};

/// `ID <tab> ID  description <newline>`: the first is for the program, the second for eyes.
fn answer(
    _command: &mut clap::Command,
    _args: Vec<OsString>,
    _folder: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    line::note(Vec::new(), 0, true);
    let mut offers = places_to_go();
    // A line each: such a name can be typed, and not be chosen.
    offers.retain(|offer| !offer.value.to_string_lossy().chars().any(char::is_control));
    let shown = |offer: &Offer| crate::base::human::path(offer.value.as_ref());
    let names: Vec<String> = offers.iter().map(shown).collect();
    for (line, offer) in described(&names, &offers, 200).into_iter().zip(&offers) {
        buf.write_all(offer.value.as_bytes())?;
        writeln!(buf, "\t{line}")?;
    }
    Ok(())
}
