//! How single settings are written.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::base::parse_duration;
use crate::home::{Home, Trust};

/// A command for the shell. It can be had only for a home that is trusted: whoever merely stands in a folder
/// that somebody else prepared must not run what is written there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Command(String);

impl Command {
    /// The command, when the home is trusted.
    pub fn of(&self, home: &Home) -> Option<&str> {
        (home.trust() == Trust::Named).then_some(self.0.as_str())
    }

    /// The command, to be shown and not to be run.
    pub fn shown(&self) -> &str {
        &self.0
    }
}

/// `[rotate] every`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Every {
    /// When the day has changed.
    Daily,
    /// When the week has changed.
    Weekly,
    /// Only by size.
    Never,
}

/// `[rotate] compress`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// `.zst`
    Zstd,
    /// `.gz`
    Gzip,
    /// As it is.
    None,
}

/// `[relay] mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelayMode {
    /// A copy, sharing blocks where the filesystem can.
    Clone,
    /// Each file a hard link.
    Hardlink,
    /// Each session a symbolic link.
    Symlink,
}

impl RelayMode {
    /// The word for it, as the settings and the command line have it.
    pub fn word(self) -> &'static str {
        match self {
            RelayMode::Clone => "clone",
            RelayMode::Hardlink => "hardlink",
            RelayMode::Symlink => "symlink",
        }
    }
}

/// `[secrets] on_find`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFind {
    /// The session stays here.
    Refuse,
    /// It goes, and a person is told.
    Warn,
}

pub(super) const fn days(n: u64) -> Duration {
    Duration::from_secs(n * 86_400)
}

/// A size in bytes: `100MiB`, `1.5GB`, `64k`. A bare `k`, `M`, `G`, `T` is binary, as in logrotate.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .count();
    let (number, unit) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let unit = unit.trim().to_ascii_lowercase();
    let (prefix, base) = match unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')) {
        Some(prefix) if !unit.ends_with("ib") => (prefix, 1000_u64),
        Some(prefix) => (prefix, 1024),
        None => (unit.as_str(), 1024),
    };
    let power = match prefix {
        "" if unit.ends_with("ib") => return None,
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let unit = base.pow(power);
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    // Below one unit, which is at most 2⁴⁰.
    whole.checked_add((fraction * unit as f64) as u64)
}

struct Size;

impl Visitor<'_> for Size {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a size such as \"100MiB\"")
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<u64, E> {
        u64::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        parse_size(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

struct Span;

impl Visitor<'_> for Span {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a duration such as \"14d\", \"12h\" or \"2w\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        // A bare number means seconds on the command line; here it is more likely a forgotten unit.
        let unit = text.trim().ends_with(|c: char| c.is_ascii_alphabetic());
        match parse_duration(text) {
            Ok(duration) if unit => Ok(duration),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

pub(super) fn size<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    d.deserialize_any(Size)
}

pub(super) fn some_size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    size(d).map(Some)
}

pub(super) fn duration<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    d.deserialize_any(Span)
}

pub(super) fn some_duration<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    duration(d).map(Some)
}

pub(super) fn count<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    let n = i64::deserialize(d)?;
    u32::try_from(n).map_err(|_| {
        de::Error::invalid_value(de::Unexpected::Signed(n), &"a number from 0 to 4294967295")
    })
}

pub(super) fn level<'de, D: Deserializer<'de>>(d: D) -> Result<i32, D::Error> {
    let level = i64::deserialize(d)?;
    match i32::try_from(level) {
        Ok(level @ 1..=19) => Ok(level),
        _ => Err(de::Error::invalid_value(
            de::Unexpected::Signed(level),
            &"a level from 1 to 19",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("100MiB", 100 << 20),
            ("10 MB", 10_000_000),
            ("64k", 64 << 10),
            ("1.5GiB", 3 << 29),
            ("7", 7),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for bad in [
            "",
            "MiB",
            "-1",
            "1.2.3M",
            "1ib",
            "99999999T",
            "5 apples",
            ".",
        ] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
