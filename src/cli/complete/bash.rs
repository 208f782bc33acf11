//! bash. It puts what it is given into the line as it is, so the escaping is ours, in the quotes that are open; and
//! what it replaces is not the word but its end, behind the last `:` or `=` or opening quote.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::escape::for_bash;
use super::shells::{
    Offer, Offers, Protocol, argument, ask, described, number, quoted, whole_line,
};
use super::words::{Dialect, Quote, is_redirected, nothing, word, words};

/// Values of `COMP_TYPE`: the list after the second press, and the two that put in one candidate after the other.
const LIST: usize = b'?' as usize;
const MENU: [usize; 2] = [b'%' as usize, b'*' as usize];

/// Up to so many candidates are listed with what they are: each takes a line.
const DESCRIBED: usize = 200;

const SCRIPT: &str = r#"_wbhome_complete() {
    local before=${COMP_LINE:0:COMP_POINT} after=${COMP_LINE:COMP_POINT} line
    COMPREPLY=()
    if type mapfile >/dev/null 2>&1; then
        mapfile -t COMPREPLY < <(VAR=bash command PROGRAM -- "$before" "$after" "$2" "$COMP_TYPE" "${COLUMNS:-80}" 2>/dev/null)
    else
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(VAR=bash command PROGRAM -- "$before" "$after" "$2" "$COMP_TYPE" "${COLUMNS:-80}" 2>/dev/null)
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o nosort -F _wbhome_complete BIN 2>/dev/null ||
    complete -o bashdefault -F _wbhome_complete BIN
"#;

pub(super) static BASH: Protocol = Protocol {
    name: "bash",
    also: &[],
    script: SCRIPT,
    quoted,
    answer,
};

/// `args`: the line before and behind the cursor, what is replaced, `COMP_TYPE`, the width of the screen.
fn answer(
    command: &mut clap::Command,
    args: Vec<OsString>,
    folder: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let before = argument(&args, 0).as_bytes();
    if is_redirected(before, Dialect::Posix) {
        return Ok(());
    }
    let line = whole_line(before, argument(&args, 1).as_bytes(), Dialect::Posix);
    let raw = words(before, Dialect::Posix, &nothing);
    let raw = raw.last().map_or(&b""[..], |word| &before[word.at..]);
    let kind = number(&args, 3).unwrap_or(0);
    let offers = ask(command, line, kind == LIST, folder)?;
    let columns = number(&args, 4).unwrap_or(80);
    let typed = Typed::new(raw, argument(&args, 2).as_bytes());
    for line in typed.reply(&offers, kind, columns) {
        buf.write_all(&line)?;
        buf.write_all(b"\n")?;
    }
    Ok(())
}

/// The word, and what of it stays.
struct Typed {
    /// What stays, as it is meant.
    stays: OsString,
    /// The quotes that are open where the new text begins.
    quote: Quote,
    /// Whether the word begins with a `~` that the shell expands. That of a session's name is quoted.
    tilde: bool,
}

impl Typed {
    fn new(raw: &[u8], replaced: &[u8]) -> Typed {
        let stays = raw.strip_suffix(replaced).unwrap_or_default();
        let stays = word(stays, Dialect::Posix, &nothing);
        Typed {
            quote: stays.quote,
            tilde: stays.value.is_empty() && raw.starts_with(b"~/"),
            stays: stays.value,
        }
    }

    fn escaped(&self, offer: &Offer) -> Option<Vec<u8>> {
        let value = offer.value.as_bytes();
        let new = value.strip_prefix(self.stays.as_bytes())?;
        let escape = |new: &[u8]| for_bash(std::ffi::OsStr::from_bytes(new), self.quote);
        Some(match new.strip_prefix(b"~") {
            Some(rest) if self.tilde => [b"~", &escape(rest)[..]].concat(),
            _ => escape(new),
        })
    }

    fn reply(&self, offers: &Offers, kind: usize, columns: usize) -> Vec<Vec<u8>> {
        let known = offers.all.iter();
        let known = known.filter_map(|offer| Some((self.escaped(offer)?, offer.clone())));
        let (mut reply, offers_left): (Vec<Vec<u8>>, Vec<Offer>) = known.unzip();
        let is_menu = MENU.contains(&kind);
        match &offers_left[..] {
            [one] if !one.goes_on() && !is_menu => {
                // bash adds them behind the only candidate, unless that ends with a sign like them.
                let closing = self.quote.sign();
                if closing.is_some() && reply[0].last().copied() == closing {
                    reply[0].extend(closing);
                }
            }
            // bash closes the quotes behind the only candidate. Of two, it puts in what they have in common.
            [one] if one.goes_on() && self.quote != Quote::None && !is_menu => {
                let mut more = reply[0].clone();
                more.extend("…".bytes());
                reply.push(more);
            }
            [] | [_] => {}
            all => {
                let names = || {
                    reply
                        .iter()
                        .map(|n| String::from_utf8_lossy(n).into_owned())
                };
                if kind == LIST && all.len() <= DESCRIBED {
                    let names: Vec<String> = names().collect();
                    let lines = described(&names, all, columns);
                    reply = lines.into_iter().map(String::into_bytes).collect();
                    // More than half a screen wide: then bash gives each a line of its own.
                    let room = (columns / 2).saturating_sub(reply[0].len());
                    reply[0].extend(std::iter::repeat_n(b' ', room));
                }
                // What they have in common would take the place of what was typed, which none begins with. With
                // this one they have nothing in common.
                if offers.is_part && !is_menu {
                    reply.push(Vec::new());
                }
            }
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(raw: &str, replaced: &str, values: &[&str]) -> Vec<String> {
        let all = values.iter().map(|value| Offer {
            value: value.into(),
            help: None,
        });
        let offers = Offers {
            all: all.collect(),
            is_part: false,
        };
        let reply = Typed::new(raw.as_bytes(), replaced.as_bytes()).reply(&offers, 9, 80);
        let text = reply
            .into_iter()
            .map(|line| String::from_utf8(line).unwrap());
        text.collect()
    }

    #[test]
    fn only_what_bash_replaces_is_given() {
        assert_eq!(reply("a", "a", &["a b", "a'c"]), [r"a\ b", r"a\'c"]);
        assert_eq!(reply("--tag=a", "a", &["--tag=a b"]), [r"a\ b"]);
        assert_eq!(reply("x:y\\ z", "y\\ z", &["x:y z!"]), [r"y\ z\!"]);
        assert_eq!(reply("\"a b", "a b", &["a b$"]), [r"a b\$"]);
        assert_eq!(reply("a'b ", "b ", &["ab c'"]), [r"b c'\'''"]);
        assert_eq!(reply("~/a", "~/a", &["~/a b/"]), [r"~/a\ b/"]);
        assert_eq!(reply("", "", &["~a"]), [r"\~a"]);
        assert_eq!(reply("\"a", "a", &["a/"]), ["a/", "a/…"]);
        assert_eq!(reply("\"a", "a", &["a\""]), ["a\\\"\""]);
    }
}
