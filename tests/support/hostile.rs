//! Names that would drive a terminal, and a terminal that says who has let one through.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use super::Place;
use super::terminal::Terminal;

/// What somebody, or a sync drive, could put into a name. The sequences in it are none that the program draws itself.
pub const KINDS: [(&str, &[u8]); 22] = [
    ("clear", b"\x1b[2J\x1b[8mgone"),
    ("title", b"\x1b]0;owned\x07"),
    ("clipboard", b"\x1b]52;c;eA==\x1b\\"),
    ("answer", b"\x1bP$qm\x1b\\\x1b[c"),
    ("return", b"innocent\rguilty"),
    ("line", b"one\n2 sessions are fine"),
    ("tab", b"a\tb\x0b\x0c"),
    ("bell", b"a\x07\x08\x08\x7f"),
    ("c1", "\u{9b}8m\u{9d}0;owned\u{9c}\u{85}\u{90}".as_bytes()),
    ("raw-c1", b"\x9b8m\x9d0;owned\x9c"),
    ("not-utf8", b"\xff\xfe\xc3"),
    (
        "embed",
        "\u{202a}a\u{202b}b\u{202d}c\u{202e}txt.exe\u{202c}".as_bytes(),
    ),
    ("isolate", "\u{2066}a\u{2067}b\u{2068}c\u{2069}".as_bytes()),
    ("marks", "a\u{200e}b\u{200f}c\u{61c}d".as_bytes()),
    ("separators", "a\u{2028}b\u{2029}c".as_bytes()),
    (
        "zero-width",
        "a\u{200b}b\u{2060}c\u{feff}d\u{ad}e\u{180e}".as_bytes(),
    ),
    ("tags", "a\u{e0001}\u{e0041}\u{e007f}".as_bytes()),
    (
        "annotation",
        "a\u{fff9}b\u{fffa}c\u{fffb}\u{206e}".as_bytes(),
    ),
    ("spelled", br"a\x1b[2J\n\u{202e}\\"),
    (
        "zalgo",
        "z\u{300}\u{301}\u{302}\u{303}\u{304}\u{489}\u{20dd}".as_bytes(),
    ),
    ("emoji", "👩‍💻🕷️❤\u{fe0e}数据🏳️‍🌈\u{200d}\u{200c}".as_bytes()),
    ("shell", br#"-$(reboot)`x`'"%s%n{}"#),
];

/// The kinds that can stand in a text: in a session's id, in JSON, in a message.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = |(kind, bytes)| Some((kind, std::str::from_utf8(bytes).ok()?));
    KINDS.into_iter().filter_map(text)
}

/// All of them at once, as far as they are text; the bytes that are none; and a single one, which a message may quote as
/// it is where it cuts the long one.
pub fn together() -> [Vec<u8>; 3] {
    let all: String = texts().map(|(_, text)| text).collect();
    let raw = KINDS
        .iter()
        .filter(|(_, bytes)| std::str::from_utf8(bytes).is_err());
    let raw: Vec<&[u8]> = raw.map(|(_, bytes)| *bytes).collect();
    [all.into_bytes(), raw.concat(), KINDS[0].1.to_vec()]
}

/// What may be seen of a run.
#[derive(Clone, Copy)]
pub struct May {
    /// Colours of the program's own.
    pub color: bool,
    /// A carriage return before the end of a line, which the terminal itself puts there.
    pub returns: bool,
}

/// Walks what was drawn, and says where it would drive a terminal, and what stands there.
pub fn harm(drawn: &[u8], may: May) -> Option<String> {
    let told = |what: &str, at: usize| {
        let around = &drawn[at.saturating_sub(60)..drawn.len().min(at + 40)];
        Some(format!("{what} at byte {at}, in {}", around.escape_ascii()))
    };
    let (mut at, mut styled) = (0, false);
    for chunk in drawn.utf8_chunks() {
        let begin = at;
        for (i, c) in chunk.valid().char_indices() {
            if begin + i < at {
                continue;
            }
            at = begin + i + c.len_utf8();
            let rest = &drawn[at..];
            match c {
                '\n' if styled => return told("a style beyond the end of the line", at - 1),
                '\n' => {}
                '\r' if may.returns && rest.first() == Some(&b'\n') => {}
                '\x1b' if may.color => {
                    let Some(length) = own_style(rest) else {
                        return told("a sequence", at - 1);
                    };
                    styled = &rest[..length] != b"[0m";
                    at += length;
                }
                c if c.is_control() => return told(&format!("U+{:04X}", c as u32), at - 1),
                c if is_invisible(c) => return told(&format!("U+{:04X}", c as u32), begin + i),
                _ => {}
            }
        }
        at = begin + chunk.valid().len();
        if !chunk.invalid().is_empty() {
            return told("a byte that is not UTF-8", at);
        }
    }
    match styled {
        true => told("a style that goes on", drawn.len()),
        false => None,
    }
}

/// The length of one of the program's own: bold, dim, underlined, and the eight colours.
fn own_style(rest: &[u8]) -> Option<usize> {
    let end = rest.iter().position(|b| *b == b'm')?;
    let inside = std::str::from_utf8(rest[..end].strip_prefix(b"[")?).ok()?;
    let own = [
        "0", "1", "2", "4", "30", "31", "32", "33", "34", "35", "36", "37",
    ];
    inside
        .split(';')
        .all(|part| own.contains(&part))
        .then_some(end + 1)
}

/// Reorders, ends a line, or is not to be seen. Written down here once more, so that a gap in the program's own list is
/// one that two people have left.
fn is_invisible(c: char) -> bool {
    let ranges = [
        (0xad, 0xad),
        (0x61c, 0x61c),
        (0x180e, 0x180e),
        (0x200b, 0x200b),
        (0x200e, 0x200f),
        (0x2028, 0x202e),
        (0x2060, 0x206f),
        (0xfeff, 0xfeff),
        (0xfff9, 0xfffb),
        (0xe0000, 0xe007f),
    ];
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&(c as u32)))
}

/// Runs the program in every way that somebody sees it in, and remembers what should not have been seen.
pub struct Watched<'p> {
    pub place: &'p Place,
    pub env: Vec<(OsString, OsString)>,
    pub harm: Vec<String>,
}

impl<'p> Watched<'p> {
    pub fn new(place: &'p Place) -> Self {
        let env = Vec::new();
        Watched {
            place,
            env,
            harm: Vec::new(),
        }
    }

    /// What only looks: on a terminal with and without colour, in a pipe, and as JSON. Gives what stands in the pipe.
    #[track_caller]
    pub fn looks<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) -> String {
        let args: Vec<OsString> = args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .collect();
        self.drawn(&args, 80, true);
        self.drawn(&args, 40, false);
        self.piped(&args, Some("--json"));
        self.piped(&args, None)
    }

    /// What changes something: on a terminal.
    #[track_caller]
    pub fn does<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) -> String {
        let args: Vec<OsString> = args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .collect();
        self.drawn(&args, 80, true)
    }

    /// On a terminal, whose own state must be afterwards what it was.
    pub fn drawn(&mut self, args: &[OsString], columns: u16, color: bool) -> String {
        let wbhome = self.place.command();
        let program = wbhome.get_program().to_str().unwrap();
        let mut terminal = Terminal::start(&[program], columns, |command| {
            command.current_dir(self.place.root()).env_clear();
            command.envs(
                wbhome
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            command
                .envs([("TERM", "xterm"), ("PAGER", "cat")])
                .envs(self.env.iter().cloned());
            // Before what `--` would make a name of.
            command.args([
                "--no-progress",
                "--color",
                if color { "always" } else { "never" },
            ]);
            command.args(args);
        });
        terminal.hides_keys();
        let before = terminal.state();
        // To whatever is asked.
        terminal.press("n\n");
        let (drawn, after) = terminal.end_with_state();
        if before != after {
            self.harm.push(format!(
                "{args:?} leaves the terminal as {after}, and it was {before}"
            ));
        }
        let may = May {
            color,
            returns: true,
        };
        self.judge(args, "terminal", &drawn, may);
        String::from_utf8_lossy(&drawn).replace("\r\n", "\n")
    }

    /// Where nobody looks yet, and somebody may print it later.
    pub fn piped(&mut self, args: &[OsString], more: Option<&str>) -> String {
        let mut command: Command = self.place.command();
        let output = command
            .envs(self.env.iter().cloned())
            .args(more)
            .args(args)
            .output()
            .unwrap();
        let may = May {
            color: false,
            returns: false,
        };
        let way = more.unwrap_or("pipe");
        self.judge(args, way, &output.stdout, may);
        self.judge(args, way, &output.stderr, may);
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }

    fn judge(&mut self, args: &[OsString], way: &str, drawn: &[u8], may: May) {
        if contains(drawn, b"panicked at") {
            self.harm
                .push(format!("{args:?} ({way}) panics: {}", drawn.escape_ascii()));
        }
        if let Some(harm) = harm(drawn, may) {
            self.harm.push(format!("{args:?} ({way}): {harm}"));
        }
    }

    /// Nothing of all that should not have been seen.
    #[track_caller]
    pub fn is_whole(&self) {
        let harm = self.harm.join("\n\n");
        assert!(self.harm.is_empty(), "{} times:\n{harm}", self.harm.len());
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A name of any bytes.
pub fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
