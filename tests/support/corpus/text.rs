//! Text that counts the paths in it; JSON escapes; random numbers; dates.

use super::Planted;

/// Text under construction.
#[derive(Debug, Clone, Default)]
pub struct Doc {
    pub text: Vec<u8>,
    pub planted: Planted,
    /// Where the text may be cut without cutting a path in two, and what was planted up to there.
    cuts: Vec<(usize, Planted)>,
}

impl Doc {
    /// Text without the old path.
    pub fn raw(&mut self, text: &str) -> &mut Doc {
        self.text.extend_from_slice(text.as_bytes());
        self
    }

    /// One reference.
    pub fn reference(&mut self, text: &str) -> &mut Doc {
        self.planted.references += 1;
        self.raw(text)
    }

    /// Text that is counted by the caller.
    pub fn counted(&mut self, text: &str, planted: Planted) -> &mut Doc {
        self.planted += planted;
        self.raw(text)
    }

    /// The whole of another one.
    pub fn append(&mut self, other: &Doc) -> &mut Doc {
        self.planted += other.planted;
        self.text.extend_from_slice(&other.text);
        self
    }

    /// The text may be cut here.
    pub fn cut(&mut self) -> &mut Doc {
        self.cuts.push((self.text.len(), self.planted));
        self
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.cuts.clear();
        self.planted = Planted::default();
    }

    /// The beginning, up to the last permitted cut in the first half, at least to the first one.
    pub fn first_half(&self) -> Doc {
        let half = self.text.len() / 2;
        let fitting = self.cuts.iter().rev().find(|(at, _)| *at <= half);
        match fitting.or(self.cuts.first()) {
            Some((at, planted)) => Doc {
                text: self.text[..*at].to_vec(),
                planted: *planted,
                cuts: Vec::new(),
            },
            None => Doc::default(),
        }
    }
}

/// How a program writes JSON strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// UTF-8 as it is.
    Utf8,
    /// UTF-8, with `\/` for `/`, as PHP does.
    Slashes,
    /// `\u4e3b`, as Python does by default.
    Ascii,
    /// `\u4E3B`.
    AsciiUpper,
}

impl Style {
    pub const ALL: [Style; 4] = [Style::Utf8, Style::Slashes, Style::Ascii, Style::AsciiUpper];

    /// `text` as the inside of a JSON string.
    pub fn escape(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '/' if self == Style::Slashes => out.push_str("\\/"),
                c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
                c if c.is_ascii() => out.push(c),
                c => match self {
                    Style::Utf8 | Style::Slashes => out.push(c),
                    Style::Ascii => units(c, |unit| out.push_str(&format!("\\u{unit:04x}"))),
                    Style::AsciiUpper => units(c, |unit| out.push_str(&format!("\\u{unit:04X}"))),
                },
            }
        }
        out
    }

    /// `text` inside a JSON string that stands inside another one.
    pub fn escape_twice(self, text: &str) -> String {
        self.escape(&self.escape(text))
    }
}

fn units(c: char, mut each: impl FnMut(u16)) {
    c.encode_utf16(&mut [0; 2])
        .iter()
        .for_each(|unit| each(*unit));
}

/// SplitMix64, by Sebastiano Vigna: <https://prng.di.unimi.it/splitmix64.c>
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A sequence for `seed` and each `stream` of it.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut mixed = Rng(seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
        Rng(mixed.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0; even enough for filling files.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn phrase<'a>(&mut self, from: &'a [impl AsRef<str>]) -> &'a str {
        self.pick(from).as_ref()
    }

    /// `n` random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(n + 8);
        while out.len() < n {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(n);
        out
    }
}

/// Year, month and day of a moment in seconds since 1970. By Howard Hinnant:
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>
fn civil(seconds: i64) -> (i64, i64, i64) {
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// `20250210`
pub fn compact_date(seconds: i64) -> String {
    let (year, month, day) = civil(seconds);
    format!("{year:04}{month:02}{day:02}")
}

/// `2025-02-10T01:00:00Z`
pub fn iso_time(seconds: i64) -> String {
    let (year, month, day) = civil(seconds);
    let of_day = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}
