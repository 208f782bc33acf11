//! The line that is being typed, as the shell will understand it: words, and in which kind of quotes it stops.
//!
//! A shell hands the line over as it stands there, unfinished. Nothing in it is run. What only the shell could
//! work out (`$(…)`, a glob) stays as it is written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How a shell quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Dialect {
    /// bash and zsh.
    Posix,
    Fish,
}

/// The quotes that are open at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Quote {
    None,
    /// `'…`
    Single,
    /// `"…`
    Double,
    /// `$'…`
    Dollar,
}

impl Quote {
    /// The sign that closes them.
    pub fn sign(self) -> Option<u8> {
        match self {
            Quote::None => None,
            Quote::Single | Quote::Dollar => Some(b'\''),
            Quote::Double => Some(b'"'),
        }
    }
}

/// A word of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Word {
    /// Where it begins in the line.
    pub at: usize,
    /// What it means.
    pub value: OsString,
    /// The quotes that are open at its end: only the last word can have any.
    pub quote: Quote,
    /// Whether it is where something is read from or written to: no argument.
    redirected: bool,
}

/// Values of variables: those that are known take their place outside of single quotes, and `HOME` that of `~`.
pub(in crate::cli) type Lookup<'l> = &'l dyn Fn(&str) -> Option<OsString>;

/// Of no variable.
pub(in crate::cli) fn nothing(_: &str) -> Option<OsString> {
    None
}

/// The words of the last command of a line. The last one is being typed, and may be empty.
pub(in crate::cli) fn words(line: &[u8], dialect: Dialect, lookup: Lookup) -> Vec<Word> {
    let mut reader = Reader::new(line, dialect, lookup);
    reader.read(true);
    reader.words.retain(|word| !word.redirected);
    reader.words
}

/// Whether what is being typed is where something is read from or written to.
pub(super) fn is_redirected(line: &[u8], dialect: Dialect) -> bool {
    let mut reader = Reader::new(line, dialect, &nothing);
    reader.read(true);
    reader.words.last().is_some_and(|word| word.redirected)
}

/// One word that the shell has cut out of the line already.
pub(super) fn word(raw: &[u8], dialect: Dialect, lookup: Lookup) -> Word {
    let mut reader = Reader::new(raw, dialect, lookup);
    reader.read(false);
    reader.words.pop().unwrap_or(Word {
        at: 0,
        value: OsString::new(),
        quote: Quote::None,
        redirected: false,
    })
}

struct Reader<'l> {
    line: &'l [u8],
    dialect: Dialect,
    lookup: Lookup<'l>,
    at: usize,
    words: Vec<Word>,
    /// The word that is being read: where it began, and its value.
    open: Option<(usize, Vec<u8>)>,
    quote: Quote,
    redirected: bool,
}

impl<'l> Reader<'l> {
    fn new(line: &'l [u8], dialect: Dialect, lookup: Lookup<'l>) -> Self {
        Reader {
            line,
            dialect,
            lookup,
            at: 0,
            words: Vec::new(),
            open: None,
            quote: Quote::None,
            redirected: false,
        }
    }

    fn read(&mut self, split: bool) {
        while let Some(&byte) = self.line.get(self.at) {
            match self.quote {
                Quote::None => self.plain(byte, split),
                Quote::Single => self.single(byte),
                Quote::Double => self.double(byte),
                Quote::Dollar => self.dollar(byte),
            }
        }
        self.begin();
        self.end();
    }

    fn begin(&mut self) -> &mut Vec<u8> {
        &mut self.open.get_or_insert((self.at, Vec::new())).1
    }

    fn end(&mut self) {
        if let Some((at, value)) = self.open.take() {
            self.words.push(Word {
                at,
                value: OsString::from_vec(value),
                quote: self.quote,
                redirected: std::mem::take(&mut self.redirected),
            });
        }
    }

    fn push(&mut self, byte: u8) {
        self.begin().push(byte);
        self.at += 1;
    }

    /// Opens or closes quotes; `length` is that of the sign.
    fn turn(&mut self, quote: Quote, length: usize) {
        self.begin();
        self.quote = quote;
        self.at += length;
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at + 1).copied()
    }

    fn plain(&mut self, byte: u8, split: bool) {
        match byte {
            b'\\' if self.dialect == Dialect::Fish => self.escape(),
            b'\\' => self.literally(|_| true),
            b'\'' => self.turn(Quote::Single, 1),
            b'"' => self.turn(Quote::Double, 1),
            b'$' if self.dialect == Dialect::Posix && self.peek() == Some(b'\'') => {
                self.turn(Quote::Dollar, 2);
            }
            b'$' if self.dialect == Dialect::Posix && self.peek() == Some(b'"') => {
                self.turn(Quote::Double, 2);
            }
            b'$' => self.variable(),
            b'~' if self.open.is_none() && matches!(self.peek(), None | Some(b'/')) => {
                let home = (self.lookup)("HOME");
                let home = home.as_deref().unwrap_or(OsStr::new("~")).as_bytes();
                self.begin().extend(home);
                self.at += 1;
            }
            b' ' | b'\t' if split => {
                self.end();
                self.at += 1;
            }
            b';' | b'|' | b'&' | b'\n' | b'(' | b')' if split => {
                (self.open, self.redirected) = (None, false);
                self.words.clear();
                self.at += 1;
            }
            b'<' | b'>' if split => {
                // `2>` is one sign.
                let number = |(_, value): &(_, Vec<u8>)| value.iter().all(u8::is_ascii_digit);
                if self.open.as_ref().is_some_and(number) {
                    self.open = None;
                }
                self.end();
                self.redirected = true;
                self.at += 1;
            }
            byte => self.push(byte),
        }
    }

    fn single(&mut self, byte: u8) {
        match byte {
            b'\'' => self.turn(Quote::None, 1),
            b'\\' if self.dialect == Dialect::Fish => self.literally(|b| b"\\'".contains(&b)),
            byte => self.push(byte),
        }
    }

    fn double(&mut self, byte: u8) {
        match (byte, self.dialect) {
            (b'"', _) => self.turn(Quote::None, 1),
            (b'\\', Dialect::Posix) => self.literally(|b| b"$`\"\\\n".contains(&b)),
            (b'\\', Dialect::Fish) => self.literally(|b| b"$\"\\\n".contains(&b)),
            (b'$', _) => self.variable(),
            (byte, _) => self.push(byte),
        }
    }

    fn dollar(&mut self, byte: u8) {
        match byte {
            b'\'' => self.turn(Quote::None, 1),
            b'\\' => self.escape(),
            byte => self.push(byte),
        }
    }

    /// A backslash, which takes its meaning from what follows; from anything else it takes nothing, and stays.
    fn literally(&mut self, has_meaning: impl Fn(u8) -> bool) {
        match self.peek() {
            None => self.at += 1,
            Some(b'\n') if has_meaning(b'\n') => self.at += 2,
            Some(next) if has_meaning(next) => {
                self.begin().push(next);
                self.at += 2;
            }
            Some(_) => self.push(b'\\'),
        }
    }

    /// A backslash that may stand for a control character.
    fn escape(&mut self) {
        let Some(next) = self.peek() else {
            self.at += 1;
            return;
        };
        self.at += 2;
        let byte = match next {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 0x07,
            b'b' => 0x08,
            b'e' | b'E' => 0x1b,
            b'f' => 0x0c,
            b'v' => 0x0b,
            b'x' | b'X' => return self.number(16, 2, false),
            b'u' => return self.number(16, 4, true),
            b'U' => return self.number(16, 8, true),
            b'0'..=b'7' => {
                self.at -= 1;
                return self.number(8, 3, false);
            }
            other => other,
        };
        self.begin().push(byte);
    }

    fn number(&mut self, radix: u32, most: usize, is_char: bool) {
        let digits = self.line[self.at..].iter().take(most);
        let digits = digits
            .take_while(|b| char::from(**b).is_digit(radix))
            .count();
        let text = str::from_utf8(&self.line[self.at..self.at + digits]).unwrap_or_default();
        let number = u32::from_str_radix(text, radix).unwrap_or(0);
        self.at += digits;
        match (char::from_u32(number), is_char) {
            (Some(c), true) => {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).as_bytes();
                self.begin().extend(bytes);
            }
            _ => self.begin().push(number.to_le_bytes()[0]),
        }
    }

    /// `$NAME` or `${NAME}`.
    fn variable(&mut self) {
        let rest = &self.line[self.at + 1..];
        let (braced, rest) = match rest.strip_prefix(b"{") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let is_of_name = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        let length = rest.iter().take_while(is_of_name).count();
        let closed = !braced || rest.get(length) == Some(&b'}');
        let name = str::from_utf8(&rest[..length]).unwrap_or_default();
        match (self.lookup)(name) {
            Some(value) if closed && length > 0 => {
                self.begin().extend(value.as_bytes());
                self.at += 1 + length + if braced { 2 } else { 0 };
            }
            _ => self.push(b'$'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, dialect: Dialect) -> Vec<String> {
        let lookup = |name: &str| match name {
            "HOME" => Some("/me".into()),
            "X" => Some("a b".into()),
            _ => None,
        };
        let words = words(line.as_bytes(), dialect, &lookup);
        words
            .into_iter()
            .map(|word| word.value.into_string().unwrap())
            .collect()
    }

    #[test]
    fn words_mean_what_the_shell_takes_them_for() {
        for (line, meant) in [
            ("wbhome show ", vec!["wbhome", "show", ""]),
            ("a b", vec!["a", "b"]),
            (r#"a 'b c' "d $X" e\ f"#, vec!["a", "b c", "d a b", "e f"]),
            (
                r#"a 'it'\''s' "q\"\\\n" '"#,
                vec!["a", "it's", "q\"\\\\n", ""],
            ),
            (r"a $'b\n\x41\'数\u6570' $Y", vec!["a", "b\nA'数数", "$Y"]),
            (
                "x --home=~/y ~/z ${X}! ~",
                vec!["x", "--home=~/y", "/me/z", "a b!", "/me"],
            ),
            ("ls; cd x && wbhome pa", vec!["wbhome", "pa"]),
            ("echo $(wbhome path 2", vec!["wbhome", "path", "2"]),
            ("wbhome ls 2>/dev/null >out x", vec!["wbhome", "ls", "x"]),
            (r"a b\", vec!["a", "b"]),
            ("a \"b", vec!["a", "b"]),
            ("", vec![""]),
        ] {
            assert_eq!(read(line, Dialect::Posix), meant, "{line}");
        }
        for (line, meant) in [
            (r"a 'it\'s' b\n\ c", vec!["a", "it's", "b\n c"]),
            ("a \"$X\" $'b", vec!["a", "a b", "$b"]),
            ("a; and b ", vec!["and", "b", ""]),
        ] {
            assert_eq!(read(line, Dialect::Fish), meant, "{line}");
        }
    }

    #[test]
    fn quotes_that_are_open_are_told() {
        for (line, quote) in [
            ("a b", Quote::None),
            ("a 'b", Quote::Single),
            ("a b\"c", Quote::Double),
            ("a \"b\"", Quote::None),
            ("a $'b", Quote::Dollar),
        ] {
            let words = words(line.as_bytes(), Dialect::Posix, &nothing);
            assert_eq!(words.last().unwrap().quote, quote, "{line}");
            assert_eq!(words.last().unwrap().at, 2);
        }
        assert!(is_redirected(b"wbhome ls > fi", Dialect::Posix));
        assert!(is_redirected(b"wbhome ls > ", Dialect::Posix));
        assert!(!is_redirected(b"wbhome ls > file x", Dialect::Posix));
        assert_eq!(word(b"a b;", Dialect::Posix, &nothing).value, "a b;");
    }
}
