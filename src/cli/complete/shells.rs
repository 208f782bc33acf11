//! What is the same in every shell: asking the engine, and which of its candidates are worth showing.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::EnvCompleter;

use super::line;
use super::words::{Dialect, Word, nothing, word, words};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// The whole word.
    pub value: OsString,
    /// What it is; it can not drive a terminal.
    pub help: Option<String>,
}

impl Offer {
    /// Whether it goes on, as a folder and the key of a condition do: no space follows it.
    pub fn goes_on(&self) -> bool {
        matches!(self.value.as_bytes().last(), Some(b'/' | b'='))
    }
}

/// All candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offers {
    pub all: Vec<Offer>,
    /// Whether they have the word only somewhere inside.
    pub is_part: bool,
}

/// What stands for all offers of an argument while the engine is at work: it copies each candidate dozens of times. In no
/// word of a line there is a NUL.
const STAND_IN: &str = "\0";

thread_local! {
    static STASH: RefCell<Vec<Offer>> = const { RefCell::new(Vec::new()) };
}

/// Puts offers aside, and gives the candidate that stands for them.
pub(super) fn stand_in(offers: Vec<Offer>) -> Vec<CompletionCandidate> {
    if offers.is_empty() {
        return Vec::new();
    }
    STASH.with_borrow_mut(|stash| *stash = offers);
    vec![CompletionCandidate::new(STAND_IN)]
}

/// Asks for the candidates of one of the words.
pub(super) fn ask(
    command: &mut clap::Command,
    (words, current): (Vec<OsString>, usize),
    describes: bool,
    folder: Option<&Path>,
) -> io::Result<Offers> {
    let (words, current) = line::note(words, current, describes);
    let typed = words.get(current).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for candidate in complete(command, words, current, folder)? {
        let value = candidate.get_value();
        match value.as_bytes().strip_suffix(STAND_IN.as_bytes()) {
            None => all.push(Offer {
                value: value.to_owned(),
                help: candidate
                    .get_help()
                    .map(|help| first_line(&help.to_string())),
            }),
            Some(before) => {
                let mut offers = STASH.take();
                for offer in offers.iter_mut().filter(|_| !before.is_empty()) {
                    let value = [before, offer.value.as_bytes()].concat();
                    offer.value = OsString::from_vec(value);
                }
                all.append(&mut offers);
            }
        }
    }
    // Who has not begun an option does not look for one.
    if !typed.as_bytes().starts_with(b"-") {
        all.retain(|offer| !offer.value.as_bytes().starts_with(b"-"));
    }
    let begins = |offer: &Offer| offer.value.as_bytes().starts_with(typed.as_bytes());
    Ok(Offers {
        is_part: !all.is_empty() && !all.iter().any(begins),
        all,
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The words of a line of which the shell knows only what stands before and behind the cursor, and which of them that is
/// in. The one that is being typed keeps its variables, as they stand there.
pub(super) fn whole_line(before: &[u8], after: &[u8], dialect: Dialect) -> (Vec<OsString>, usize) {
    let mut line = words(before, dialect, &variable);
    let as_typed = words(before, dialect, &nothing).pop();
    if let (Some(last), Some(typed)) = (line.last_mut(), as_typed) {
        *last = typed;
    }
    let current = line.len().saturating_sub(1);
    // A sign at the cursor, so that there is a word.
    let whole = [before, b"x", after].concat();
    let rest = words(&whole, dialect, &variable);
    let all = line.into_iter().chain(rest.into_iter().skip(current + 1));
    (all.map(|word| word.value).collect(), current)
}

/// A variable that the words of a line may speak of.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Words that the shell has cut out of the line, each as it is written there. The one that is being typed keeps its
/// variables, as they stand in the line.
pub(super) fn cut_words(raw: &[OsString], current: usize, dialect: Dialect) -> Vec<OsString> {
    let meant = |(n, raw): (usize, &OsString)| -> Word {
        match n == current {
            true => word(raw.as_bytes(), dialect, &nothing),
            false => word(raw.as_bytes(), dialect, &variable),
        }
    };
    raw.iter().enumerate().map(meant).map(|w| w.value).collect()
}

/// An argument that should be a number.
pub(super) fn number(args: &[OsString], n: usize) -> Option<usize> {
    args.get(n)?.to_str()?.parse().ok()
}

/// An argument.
pub(super) fn argument(args: &[OsString], n: usize) -> &OsStr {
    args.get(n).map_or(OsStr::new(""), OsString::as_os_str)
}

/// A list for the screen: names of one width, each with its description behind it, cut to the screen's width.
pub(super) fn described(names: &[String], offers: &[Offer], columns: usize) -> Vec<String> {
    // A few long names shall not push all descriptions out of sight.
    let most = (columns / 2).max(10);
    let widths = names.iter().map(|name| name.width());
    let width = widths.filter(|w| *w <= most).max().unwrap_or(0);
    let pairs = names.iter().zip(offers);
    pairs
        .map(|(name, offer)| match &offer.help {
            None => name.clone(),
            Some(help) => {
                let pad = width.saturating_sub(name.width());
                fit(&format!("{name}{:pad$}  {help}", ""), columns)
            }
        })
        .collect()
}

fn fit(text: &str, columns: usize) -> String {
    let mut width = 0;
    let mut cut = String::with_capacity(text.len());
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width >= columns {
            break;
        }
        cut.push(c);
    }
    cut
}

/// A text as one word of a script for bash, zsh, fish, elvish.
pub(super) fn quoted(text: &str) -> String {
    crate::base::human::quoted(text.as_ref())
}

/// How one shell asks, and is answered.
pub(super) struct Protocol {
    pub name: &'static str,
    /// What else it is called.
    pub also: &'static [&'static str],
    /// What it takes in, but for the words `VAR`, `BIN` and `PROGRAM`.
    pub script: &'static str,
    /// A text as one word of that.
    pub quoted: fn(&str) -> String,
    /// Writes the candidates. The arguments are those that the script gives.
    pub answer: Answer,
}

type Answer =
    fn(&mut clap::Command, Vec<OsString>, Option<&Path>, &mut dyn io::Write) -> io::Result<()>;

impl Protocol {
    /// What the shell takes in: with the variable that tells the program of a question, what is completed, and the program.
    pub fn script(&self, var: &str, bin: &str, program: &str) -> String {
        self.script
            .replace("VAR", var)
            .replace("BIN", bin)
            .replace("PROGRAM", &(self.quoted)(program))
    }
}

impl EnvCompleter for Protocol {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is(&self, name: &str) -> bool {
        self.name == name || self.also.contains(&name)
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn io::Write,
    ) -> io::Result<()> {
        buf.write_all(self.script(var, bin, completer).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        args: Vec<OsString>,
        folder: Option<&Path>,
        buf: &mut dyn io::Write,
    ) -> io::Result<()> {
        (self.answer)(command, args, folder, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_line_is_known() {
        let read = |before: &str, after: &str| {
            whole_line(before.as_bytes(), after.as_bytes(), Dialect::Posix)
        };
        let all = ["wbhome", "restore", "20", "--from", "trash"].map(OsString::from);
        let typed = read("wbhome restore \"20", "24\" --from trash");
        assert_eq!(typed, (all.to_vec(), 2));
        let (words, current) = read("wbhome restore ", " --from trash");
        assert_eq!((words.len(), current), (5, 2));
        assert_eq!((words[2].len(), &words[4]), (0, &all[4]));
        assert_eq!(read("wbhome ", "").1, 1);
    }

    #[test]
    fn lists_are_cut_to_the_screen() {
        let offers = ["a", "数据"].map(|name| Offer {
            value: name.into(),
            help: Some("active, with a long title".to_owned()),
        });
        let names = offers
            .each_ref()
            .map(|o| o.value.to_str().unwrap().to_owned());
        let lines = described(&names, &offers, 20);
        assert_eq!(lines, ["a     active, with ", "数据  active, with "]);
    }
}
