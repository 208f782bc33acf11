//! Writing NEW the way OLD was written.
//!
//! What the reference itself shows is kept: the backslashes before each slash, escapes of characters beyond ASCII and
//! their hex case, which ASCII characters are percent-encoded, a shell's backslashes. What it cannot show, because
//! OLD has no such character, follows from the place: a character that would end or break the string there is escaped,
//! as deep as the quotes around the place are.

use super::TextKind;
use super::mapping::{Folder, Move};
use super::pattern::{Form, Pattern};
use super::reading::run_before;
use super::spell::{Match, Separator, Style, bit};

/// NEW, prepared.
#[derive(Debug)]
pub(super) struct Target {
    new: Folder,
    plain: Vec<u8>,
    /// NEW from the user's home on, if it is below it.
    below_home: Option<String>,
    /// Whether NEW holds characters whose writing depends on the place.
    special: bool,
}

impl Target {
    pub(super) fn new(mapping: &Move, home: Option<&Folder>) -> Target {
        let new = mapping.new.clone();
        let special = new
            .as_str()
            .chars()
            .any(|c| matches!(c, '"' | '\\' | '\'') || c.is_control());
        Target {
            plain: new.as_str().as_bytes().to_vec(),
            below_home: home.and_then(|home| new.below(home)).map(str::to_owned),
            special,
            new,
        }
    }
}

const MAX_LAYERS: u32 = 4;

/// How far [`replacement`] looks to either side for the quotes around a place.
pub(super) const REACH: usize = 1024;

/// Appends what is to stand instead of the match.
pub(super) fn replacement(
    target: &Target,
    pattern: &Pattern,
    found: &Match,
    text: &[u8],
    kind: TextKind,
    out: &mut Vec<u8>,
) {
    if let Form::Slug(new) = &pattern.form {
        out.extend_from_slice(new.as_bytes());
        return;
    }
    let style = found.style;
    let bare = Style {
        raw_ascii: 0,
        raw_wide: false,
        separator: None,
        ..style
    } == Style::default();
    let slashes = matches!(style.separator, None | Some(Separator::Slash(0)));
    if bare && slashes && !target.special && pattern.form == Form::Posix {
        out.extend_from_slice(&target.plain);
        return;
    }
    let layers = if target.special {
        layers(found, text, kind)
    } else {
        0
    };
    let quoted = text.get(..found.start).is_some_and(|t| t.ends_with(b"'"));
    let mut writer = Writer {
        style,
        layers,
        quoted,
        out,
    };
    writer.path(target, &pattern.form, found, text);
}

/// In how many layers of JSON (or another double-quoted string with backslash escapes) a place is written.
fn layers(found: &Match, text: &[u8], kind: TextKind) -> u32 {
    let style = found.style;
    let mut layers = u32::from(matches!(kind, TextKind::Json | TextKind::JsonLines));
    // A quote or slash takes 2^layers - 1, a separator or a shell's backslash 2^layers, `\u` at least one.
    let log = |run: usize| run.checked_ilog2().unwrap_or(0);
    let seen = [
        style.unicode.map(|run| log(run) + 1),
        style.quote.map(|run| log(run + 1)),
        style.backslash.map(log),
        (style.shell > 0).then(|| log(style.shell)),
        match style.separator {
            Some(Separator::Slash(run)) => Some(log(run + 1)),
            Some(Separator::Back(run)) => Some(log(run)),
            _ => Some(log(style.lead + 1)),
        },
    ];
    layers = seen.into_iter().flatten().fold(layers, u32::max);
    let opens = text.get(..found.start).is_some_and(|t| t.ends_with(b"\""));
    // Inside JSON the quote that opened and the one that will close have the same backslashes. Elsewhere only a quote
    // that touches the path says that this is a string with escapes.
    let around = if layers > 0 {
        quote_before(text, found.start).min(quote_after(text, found.end))
    } else if opens {
        run_before(text, found.start - 1)
    } else {
        return 0;
    };
    layers.max(log(around + 1) + 1).min(MAX_LAYERS)
}

fn quote_before(text: &[u8], at: usize) -> usize {
    let near = text.get(at.saturating_sub(REACH)..at).unwrap_or_default();
    let Some(found) = memchr::memrchr3(b'"', b'\n', b'\0', near) else {
        return 0;
    };
    match near.get(found) {
        Some(b'"') => run_before(near, found),
        _ => 0,
    }
}

fn quote_after(text: &[u8], at: usize) -> usize {
    let end = text.len().min(at.saturating_add(REACH));
    let near = text.get(at..end).unwrap_or_default();
    match memchr::memchr3(b'"', b'\n', b'\0', near) {
        Some(found) if near.get(found) == Some(&b'"') => run_before(near, found),
        _ => 0,
    }
}

struct Writer<'a> {
    style: Style,
    layers: u32,
    /// Directly behind a single quote.
    quoted: bool,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn path(&mut self, target: &Target, form: &Form, found: &Match, text: &[u8]) {
        let before = text.get(found.start..found.core).unwrap_or_default();
        if *form == Form::Home
            && let Some(rest) = &target.below_home
        {
            let lead = before.len().saturating_sub(self.style.lead);
            self.out
                .extend_from_slice(before.get(..lead).unwrap_or_default());
            return self.folders(rest, target.new.drive().is_some());
        }
        let Some((letter, rest)) = target.new.drive() else {
            return self.folders(target.new.as_str(), false);
        };
        let letter = if self.style.lower_drive {
            letter.to_ascii_lowercase()
        } else {
            letter
        };
        match form {
            Form::Drive => {
                self.out.extend_from_slice(before);
                self.drive(letter);
            }
            Form::DriveUnix { mnt } => {
                if *mnt {
                    self.folders("/mnt", false);
                }
                self.slash();
                self.out.extend(u8::try_from(u32::from(letter)).ok());
            }
            _ => {
                if self.style.url || self.style.percent {
                    self.slash();
                } else if matches!(self.style.separator, None | Some(Separator::Slash(_))) {
                    // A POSIX path gives way to a Windows one.
                    self.style.separator = Some(Separator::Back(1 << self.layers));
                }
                self.drive(letter);
            }
        }
        self.folders(rest, true);
    }

    fn drive(&mut self, letter: char) {
        self.out.extend(u8::try_from(u32::from(letter)).ok());
        self.char(':');
    }

    fn folders(&mut self, path: &str, drive: bool) {
        for c in path.chars() {
            match c {
                '/' => self.slash(),
                '\\' if drive => self.separator(),
                c => self.char(c),
            }
        }
    }

    fn separator(&mut self) {
        match self.style.separator {
            Some(Separator::Back(run)) => self.backslashes(run),
            Some(Separator::PercentBack) => self.percent(b'\\'),
            _ => self.slash(),
        }
    }

    fn slash(&mut self) {
        match self.style.separator {
            Some(Separator::Slash(run)) => {
                self.backslashes(run);
                self.out.push(b'/');
            }
            Some(Separator::UnicodeSlash(_)) => self.unicode('/'),
            Some(Separator::PercentSlash | Separator::PercentBack) => self.percent(b'/'),
            Some(Separator::Back(_)) => self.out.push(b'/'),
            None => {
                self.backslashes(self.style.lead);
                self.out.push(b'/');
            }
        }
    }

    fn char(&mut self, c: char) {
        let style = self.style;
        if style.percent || (style.url && style.unicode.is_none()) {
            if self.is_percent(c) {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    self.percent(byte);
                }
                return;
            }
        } else if style.unicode.is_some()
            && (!c.is_ascii() || style.unicode_ascii & unicode_class(c) != 0)
        {
            return self.unicode(c);
        }
        self.escaped(c);
    }

    /// A character outside of URLs and `\u`: with the backslashes that a shell and the layers around ask for.
    fn escaped(&mut self, c: char) {
        let one = 1usize << self.layers; // one backslash, in all layers
        match c {
            '"' if self.style.shell > 0 => self.backslashes(2 * self.shell_run() - 1),
            '"' => self.backslashes(self.style.quote.unwrap_or(one - 1)),
            '\\' if self.style.shell > 0 => return self.backslashes(2 * self.shell_run()),
            '\\' => return self.backslashes(self.style.backslash.unwrap_or(one)),
            '\'' if self.quoted => {
                // A shell cannot escape inside single quotes: leave them, and come back.
                self.out.push(b'\'');
                self.backslashes(one);
                self.out.push(b'\'');
            }
            c if self.style.shell > 0 && is_shell_special(c) => self.backslashes(self.style.shell),
            c if self.layers > 0 && u32::from(c) < 0x20 => {
                self.backslashes(one / 2);
                let short = match c {
                    '\n' => "n".to_owned(),
                    '\r' => "r".to_owned(),
                    '\t' => "t".to_owned(),
                    c => format!("u{:04x}", u32::from(c)),
                };
                return self.out.extend_from_slice(short.as_bytes());
            }
            _ => {}
        }
        self.out
            .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn shell_run(&self) -> usize {
        self.style.shell.max(1 << self.layers)
    }

    fn backslashes(&mut self, run: usize) {
        self.out.extend(std::iter::repeat_n(b'\\', run));
    }

    fn percent(&mut self, byte: u8) {
        let text = match self.style.percent_upper {
            Some(false) => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"), // as RFC 3986, 2.1 prefers
        };
        self.out.extend_from_slice(text.as_bytes());
    }

    fn unicode(&mut self, c: char) {
        let run = match self.style.separator {
            Some(Separator::UnicodeSlash(run)) => run,
            _ => self.style.unicode.unwrap_or(1),
        };
        for unit in c.encode_utf16(&mut [0; 2]) {
            self.backslashes(run);
            let text = match self.style.unicode_upper {
                Some(true) => format!("u{unit:04X}"),
                _ => format!("u{unit:04x}"),
            };
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    /// Whether this writer would percent-encode `c`: it did so before, or must; it did not before; or it does so with
    /// others of that kind (`()[]+` and the other reserved ones, RFC 3986, 2.2).
    fn is_percent(&self, c: char) -> bool {
        const RESERVED: &str = "!$&'()*+,;=:@[]";
        let style = self.style;
        let seen = |set: u128| set & bit(c) != 0;
        if !c.is_ascii() {
            return style.percent || !style.raw_wide;
        }
        if c.is_ascii_alphanumeric() || "-_.~".contains(c) {
            return false;
        }
        if c == ' ' {
            return !seen(style.raw_ascii);
        }
        if !RESERVED.contains(c) || seen(style.percent_ascii) {
            return true;
        }
        !seen(style.raw_ascii)
            && RESERVED
                .chars()
                .any(|other| style.percent_ascii & bit(other) != 0)
    }
}

/// The characters that are special in a shell when they are not quoted.
fn is_shell_special(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t'
            | '\n'
            | '|'
            | '&'
            | ';'
            | '('
            | ')'
            | '<'
            | '>'
            | '$'
            | '`'
            | '\''
            | '*'
            | '?'
            | '['
            | ']'
            | '#'
            | '!'
            | '{'
            | '}'
    )
}

/// Writers that `\u`-encode one of these encode all of them (.NET, and whoever embeds JSON in HTML).
fn unicode_class(c: char) -> u128 {
    const HTML: &str = "<>&'+`\"";
    if HTML.contains(c) {
        HTML.chars().fold(0, |set, c| set | bit(c))
    } else {
        bit(c)
    }
}
