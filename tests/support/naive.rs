//! A slow and obvious reader of references, to judge the program by. It shares nothing with the program and nothing
//! with the corpus: every spelling is written out, and looked for at every byte.

/// OLD and NEW in the same spelling.
struct Pair {
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Every spelling of one path, beside the same spelling of another.
pub struct Spellings {
    /// The longest OLD first.
    pairs: Vec<Pair>,
}

/// What a comparison has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// OLD in the source, NEW in its place.
    pub changed: u64,
    /// OLD on both sides.
    pub left: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, more: Seen) {
        self.changed += more.changed;
        self.left += more.left;
    }
}

/// How a JSON writer escapes: slashes, and characters beyond ASCII in lower or upper case.
#[derive(Clone, Copy)]
struct Escapes {
    slashes: bool,
    ascii: Option<bool>,
}

const ESCAPES: [Escapes; 4] = [
    Escapes {
        slashes: false,
        ascii: None,
    },
    Escapes {
        slashes: true,
        ascii: None,
    },
    Escapes {
        slashes: false,
        ascii: Some(false),
    },
    Escapes {
        slashes: false,
        ascii: Some(true),
    },
];

fn json(text: &str, escapes: Escapes) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match (c, escapes.ascii) {
            ('/', _) if escapes.slashes => out.push_str("\\/"),
            ('\\' | '"', _) => out.extend(['\\', c]),
            (c, Some(upper)) if !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&match upper {
                        true => format!("\\u{unit:04X}"),
                        false => format!("\\u{unit:04x}"),
                    });
                }
            }
            (c, _) => out.push(c),
        }
    }
    out
}

fn shell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if " ()[]&;'\"$*?`".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn percent(text: &str, upper: bool, plain: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        let as_it_is = c.is_ascii_alphanumeric() || "/-_.~".contains(c) || plain.contains(c);
        match (as_it_is, upper) {
            (true, _) => out.push(c),
            (false, true) => out.push_str(&format!("%{byte:02X}")),
            (false, false) => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

/// All spellings, in an order that is the same for every path.
fn all(path: &str) -> Vec<String> {
    let mut bare = vec![path.to_owned(), shell(path)];
    for upper in [true, false] {
        for plain in ["", "()[]+", "()", "+"] {
            bare.push(percent(path, upper, plain));
        }
    }
    let mut spellings = Vec::new();
    for text in bare {
        for outer in ESCAPES {
            spellings.push(json(&text, outer));
            for inner in ESCAPES {
                spellings.push(json(&json(&text, inner), outer));
            }
        }
        spellings.push(text);
    }
    spellings
}

impl Spellings {
    pub fn new(old: &str, new: &str) -> Spellings {
        let both = all(old).into_iter().zip(all(new));
        let mut pairs: Vec<Pair> = both
            .map(|(old, new)| Pair {
                old: old.into_bytes(),
                new: new.into_bytes(),
            })
            .collect();
        pairs.sort_by(|a, b| (b.old.len(), &a.old, &a.new).cmp(&(a.old.len(), &b.old, &b.new)));
        pairs.dedup_by(|a, b| a.old == b.old && a.new == b.new);
        Spellings { pairs }
    }

    /// Walks through both contents: where one has OLD the other must have NEW in the same spelling, or OLD too; every
    /// other byte must be the same. Says where they part.
    pub fn compare(&self, source: &[u8], home: &[u8]) -> Result<Seen, String> {
        let (mut seen, mut i, mut j) = (Seen::default(), 0, 0);
        'bytes: while i < source.len() || j < home.len() {
            let (from, to) = (&source[i..], &home[j..]);
            if matches!(from.first(), Some(b'/' | b'\\')) {
                let here = || self.pairs.iter().filter(|p| from.starts_with(&p.old));
                if let Some(pair) = here().find(|p| to.starts_with(&p.new)) {
                    seen.changed += 1;
                    (i, j) = (i + pair.old.len(), j + pair.new.len());
                    continue 'bytes;
                }
                if let Some(pair) = here().find(|p| to.starts_with(&p.old)) {
                    seen.left += 1;
                    (i, j) = (i + pair.old.len(), j + pair.old.len());
                    continue 'bytes;
                }
            }
            if from.first() != to.first() {
                let near = |text: &[u8], at: usize| {
                    let range = at.saturating_sub(60)..text.len().min(at + 160);
                    String::from_utf8_lossy(&text[range]).into_owned()
                };
                return Err(format!(
                    "they part at byte {i} of the source, {j} of the home\n  {}\n  {}",
                    near(source, i),
                    near(home, j)
                ));
            }
            (i, j) = (i + 1, j + 1);
        }
        Ok(seen)
    }

    /// How often OLD is there, in any spelling, as a reference or as the beginning or end of something else.
    pub fn count(&self, content: &[u8]) -> u64 {
        let same = Spellings {
            pairs: self
                .pairs
                .iter()
                .map(|p| Pair {
                    old: p.old.clone(),
                    new: p.old.clone(),
                })
                .collect(),
        };
        same.compare(content, content)
            .map_or(0, |seen| seen.changed)
    }
}
