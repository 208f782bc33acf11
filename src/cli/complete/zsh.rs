//! zsh. It quotes what it puts into the line, and shows a list that we lay out.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::shells::{Offer, Protocol, ask, cut_words, described, number, quoted};
use super::words::Dialect;
use crate::base::human;

/// The reply, each part ended by a NUL: `part` or nothing; `lines` or nothing; how many words, and the words; how many
/// lines that show them, and the lines; the same of folders.
const SCRIPT: &str = r#"_wbhome_complete() {
    local -a reply found show how
    local -i n at=3
    local kind
    reply=("${(@0)"$(VAR=zsh command PROGRAM -- $((CURRENT - 1)) ${COLUMNS:-80} "${(@)words[1,CURRENT-1]}" "$QIPREFIX$IPREFIX$PREFIX" "${(@)words[CURRENT+1,-1]}" 2>/dev/null)"}")
    (( ${#reply} > 5 )) || return 1
    # A tilde that is quoted is none.
    [[ $PREFIX == '~'*/* ]] && compset -P '[^/]##/'
    how=(-V wbhome)
    [[ -n $reply[2] ]] && how+=(-l)
    if [[ -n $reply[1] ]]; then
        # They have what was typed somewhere inside: one takes its place, several are shown first.
        how+=(-U)
        if (( reply[3] > 1 )) && [[ $compstate[insert] == *unambiguous* ]]; then
            compstate[insert]= compstate[list]='list force'
        fi
    fi
    for kind in words folders; do
        # Nothing follows a folder.
        [[ $kind == folders ]] && how+=(-S '')
        n=$reply[at]
        found=("${(@)reply[at+1,at+n]}")
        (( at += n + 1 ))
        n=$reply[at]
        show=("${(@)reply[at+1,at+n]}")
        (( at += n + 1 ))
        [[ $IPREFIX == '~'* ]] && found=("${(@)found#$IPREFIX}")
        if (( n )); then
            compadd "${(@)how}" -d show -a found
        elif (( ${#found} )) && [[ -n $found[1] ]]; then
            compadd "${(@)how}" -a found
        fi
    done
    return 0
}
compdef _wbhome_complete BIN
"#;

pub(super) static ZSH: Protocol = Protocol {
    name: "zsh",
    also: &[],
    script: SCRIPT,
    quoted,
    answer,
};

/// `args`: the number of the word, the width of the screen, the words as they are written, up to the cursor.
fn answer(
    command: &mut clap::Command,
    args: Vec<OsString>,
    folder: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let current = number(&args, 0).unwrap_or(0);
    let columns = number(&args, 1).unwrap_or(80);
    let raw = args.get(2..).unwrap_or_default();
    let words = cut_words(raw, current, Dialect::Posix);
    let offers = ask(command, (words, current), true, folder)?;
    let mut part = |text: &[u8]| {
        buf.write_all(text)?;
        buf.write_all(b"\0")
    };
    let is_described = offers.all.iter().any(|offer| offer.help.is_some());
    part(if offers.is_part { b"part" } else { b"" })?;
    part(if is_described { b"lines" } else { b"" })?;
    let (folders, words): (Vec<Offer>, Vec<Offer>) =
        offers.all.into_iter().partition(Offer::goes_on);
    for group in [words, folders] {
        part(group.len().to_string().as_bytes())?;
        for offer in &group {
            part(offer.value.as_bytes())?;
        }
        let shown = |offer: &Offer| human::bytes(offer.value.as_bytes());
        let drives = |offer: &Offer| shown(offer).as_bytes() != offer.value.as_bytes();
        // As they are, zsh shows them without being told.
        let lines = match is_described || group.iter().any(drives) {
            true => described(
                &group.iter().map(shown).collect::<Vec<_>>(),
                &group,
                columns,
            ),
            false => Vec::new(),
        };
        part(lines.len().to_string().as_bytes())?;
        for line in lines {
            part(line.as_bytes())?;
        }
    }
    Ok(())
}
