//! Which strings of a JSON text identify a place: what `--fields-only` may change.
//!
//! A field identifies a place by its key, whose last word is one of `PLACES` (`cwd`, `source_cwd`, `filePath`,
//! `workspaceRoot`, `cwds` …). The elements of an array belong to the key of the array; the fields of an object to
//! their own keys only. JSON inside a string (the arguments of a tool call) is read by the same rules, one layer deep.
//!
//! This is no parser: it never fails, takes a fixed amount of memory, and recovers. A raw newline or NUL inside a
//! string ends the string, because neither is allowed there: the text is torn. In a text of one value a line, each
//! line starts anew; so does any text behind a NUL.

/// The last word of a key that identifies a place, in the singular.
const PLACES: &[&str] = &[
    "cwd",
    "dir",
    "directory",
    "file",
    "filename",
    "filepath",
    "folder",
    "gitdir",
    "home",
    "location",
    "path",
    "pwd",
    "root",
    "uri",
    "url",
    "workdir",
    "workspace",
    "worktree",
];

/// Keys that are one word to the eye: `rootdir`, `homepath`.
const PLACE_ENDINGS: &[&str] = &["dir", "path", "folder", "directory"];

/// Whether a key identifies a place.
pub(super) fn is_place(key: &[u8]) -> bool {
    let Ok(key) = std::str::from_utf8(key) else {
        return false;
    };
    let word = last_word(key).to_ascii_lowercase();
    let single = match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(&word).to_owned(),
    };
    let ends = |word: &str| PLACE_ENDINGS.iter().any(|end| word.ends_with(end));
    [word, single]
        .iter()
        .any(|w| PLACES.contains(&w.as_str()) || (ends(w) && w != "xpath"))
}

/// `source_cwd`, `file-path`, `workspaceRoot`, `targetURI` → `cwd`, `path`, `Root`, `URI`.
fn last_word(key: &str) -> &str {
    let tail = key.rsplit(['_', '-', '.', ' ']).next().unwrap_or(key);
    let bytes = tail.as_bytes();
    let begin = (1..bytes.len())
        .rev()
        .find(|&i| bytes[i].is_ascii_uppercase() && !bytes[i - 1].is_ascii_uppercase())
        .unwrap_or(0);
    tail.get(begin..).unwrap_or(tail)
}

/// Beyond this depth nothing is a place.
const MAX_DEPTH: usize = 512;
/// No key that identifies a place is longer.
const MAX_KEY: usize = 64;

#[derive(Clone, Copy, Default, Debug)]
struct Level {
    array: bool,
    /// The key read last, or that of the array, identifies a place.
    place: bool,
    /// Behind a colon.
    value: bool,
}

/// One layer of JSON.
#[derive(Debug, Default)]
struct Layer {
    levels: Vec<Level>,
    /// Levels above [`MAX_DEPTH`].
    deeper: usize,
    in_string: bool,
    is_key: bool,
    key: Vec<u8>,
}

impl Layer {
    fn reset(&mut self) {
        self.levels.clear();
        self.deeper = 0;
        self.in_string = false;
    }

    fn open_string(&mut self) {
        self.in_string = true;
        self.is_key = self.deeper == 0 && self.levels.last().is_some_and(|l| !l.array && !l.value);
        self.key.clear();
    }

    /// A byte of a string's content.
    fn content(&mut self, byte: u8) {
        if self.is_key && self.key.len() <= MAX_KEY {
            self.key.push(byte);
        }
    }

    /// A byte between strings.
    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' if self.levels.len() >= MAX_DEPTH => self.deeper += 1,
            b'{' | b'[' => {
                let array = byte == b'[';
                let place = array
                    && self
                        .levels
                        .last()
                        .is_some_and(|l| l.place && (l.array || l.value));
                self.levels.push(Level {
                    array,
                    place,
                    value: false,
                });
            }
            b'}' | b']' if self.deeper > 0 => self.deeper -= 1,
            b'}' | b']' => {
                self.levels.pop();
            }
            b':' if self.deeper == 0 => {
                let place = self.key.len() <= MAX_KEY && is_place(&self.key);
                if let Some(level) = self.levels.last_mut().filter(|l| !l.array) {
                    level.value = true;
                    level.place = place;
                }
            }
            b',' if self.deeper == 0 => {
                if let Some(level) = self.levels.last_mut() {
                    level.value = false;
                }
            }
            _ => {}
        }
    }

    /// Inside a string value that identifies a place.
    fn in_place(&self) -> bool {
        self.in_string
            && !self.is_key
            && self.deeper == 0
            && self
                .levels
                .last()
                .is_some_and(|l| l.place && (l.array || l.value))
    }
}

/// Reads a JSON text and knows whether the place it has come to may be changed.
#[derive(Debug)]
pub(super) struct Fields {
    lines: bool,
    outer: Layer,
    inner: Layer,
    /// Whether the string is JSON itself; unknown until its first character.
    nested: Option<bool>,
    /// Behind a backslash of the outer, of the inner string.
    escaped: bool,
    inner_escaped: bool,
}

impl Fields {
    /// `lines`: one value a line.
    pub(super) fn new(lines: bool) -> Fields {
        Fields {
            lines,
            outer: Layer::default(),
            inner: Layer::default(),
            nested: None,
            escaped: false,
            inner_escaped: false,
        }
    }

    /// Starts anew.
    pub(super) fn reset(&mut self) {
        self.outer.reset();
        self.inner.reset();
        self.escaped = false;
    }

    /// Whether the text read so far ends inside a string that identifies a place.
    pub(super) fn in_place(&self) -> bool {
        self.outer.in_place()
            || (self.outer.in_string && self.nested == Some(true) && self.inner.in_place())
    }

    /// Reads on.
    pub(super) fn read(&mut self, text: &[u8]) {
        for &byte in text {
            match byte {
                0 => self.reset(),
                b'\n' if self.lines => self.reset(),
                b'\n' if self.outer.in_string => {
                    self.outer.in_string = false;
                    self.escaped = false;
                }
                _ if self.outer.in_string => self.string(byte),
                b'"' => {
                    self.outer.open_string();
                    self.inner.reset();
                    self.inner_escaped = false;
                    self.nested = if self.outer.is_key { Some(false) } else { None };
                }
                _ => self.outer.structure(byte),
            }
        }
    }

    fn string(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
            // What an escape means matters to the inner layer only in so far as it is a quote, a backslash or not.
            self.content(match byte {
                b'"' | b'\\' | b'/' => byte,
                b'n' | b'r' | b't' => b' ',
                _ => b'x',
            });
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.outer.in_string = false;
        } else {
            self.content(byte);
        }
    }

    fn content(&mut self, byte: u8) {
        self.outer.content(byte);
        if self.nested.is_none() && byte != b' ' {
            self.nested = Some(matches!(byte, b'{' | b'['));
        }
        if self.nested != Some(true) {
            return;
        }
        if !self.inner.in_string {
            match byte {
                b'"' => self.inner.open_string(),
                _ => self.inner.structure(byte),
            }
        } else if self.inner_escaped {
            self.inner_escaped = false;
            self.inner.content(b'x');
        } else if byte == b'\\' {
            self.inner_escaped = true;
        } else if byte == b'"' {
            self.inner.in_string = false;
        } else {
            self.inner.content(byte);
        }
    }
}
