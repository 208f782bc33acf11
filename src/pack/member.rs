//! One member of a pack: a file, folder, link, or one more name of a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::wire::ExactPath;
use crate::disk::Stamp;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// One more name of a file that stands before it.
    HardLink,
}

impl MemberKind {
    /// Whether it is a regular file by this name: what people count as files.
    pub fn is_file(self) -> bool {
        matches!(self, MemberKind::File | MemberKind::HardLink)
    }
}

/// A member as the manifest describes it, and as it is compared with the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Below the top folder; empty for the top folder itself.
    pub path: ExactPath,
    /// What it is.
    pub kind: MemberKind,
    /// Permission bits: `mode & 0o7777`. Zero for further names of a file.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When its content changed last, in seconds since 1970 with up to nine decimals.
    #[serde(with = "decimal")]
    pub mtime: Stamp,
    /// Length in bytes; zero for all but files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: u64,
    /// BLAKE3 of a file's content, the first 16 bytes of it in hexadecimal digits ([`short_digest`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    /// Where a symbolic link points; of a further name the path, below the top folder, of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<ExactPath>,
    /// Extended attributes: name → value in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub xattrs: BTreeMap<String, String>,
    /// The frame that its first header stands in.
    pub frame: u32,
    /// Where in the content of that frame.
    pub at: u64,
}

/// A digest as the manifest holds it, and as `b3sum --length 16` prints it. Nothing shrinks a digest, and a session of
/// small files has one every few hundred bytes: 128 bits tell damage as surely as 256, at half the room.
pub fn short_digest(digest: &blake3::Hash) -> String {
    digest.to_hex()[..32].to_owned()
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A time as tar's PAX records write it: exact, and a number for `jq`'s `tonumber`.
mod decimal {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::disk::Stamp;

    pub(super) fn serialize<S: Serializer>(time: &Stamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::write_time(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Stamp, D::Error> {
        let text = String::deserialize(from)?;
        super::read_time(&text).ok_or_else(|| D::Error::custom("is no time in seconds"))
    }
}

/// A time in decimal seconds, as a PAX record has it: `1717405200.000000001`, `-0.5`.
pub(super) fn write_time(time: Stamp) -> String {
    // Nanoseconds count upward from the second below; a decimal fraction counts away from zero.
    let (sign, seconds, nanos) = match (time.seconds, time.nanos) {
        (seconds, 0) if seconds < 0 => ("-", seconds.unsigned_abs(), 0),
        (seconds, nanos) if seconds < 0 => {
            ("-", (seconds + 1).unsigned_abs(), 1_000_000_000 - nanos)
        }
        (seconds, nanos) => ("", seconds.unsigned_abs(), nanos),
    };
    let digits = format!("{nanos:09}");
    match digits.trim_end_matches('0') {
        "" => format!("{sign}{seconds}"),
        digits => format!("{sign}{seconds}.{digits}"),
    }
}

/// The time that [`write_time`] or any other writer of PAX records wrote; digits beyond nanoseconds are dropped.
pub(super) fn read_time(text: &str) -> Option<Stamp> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if seconds.is_empty() || !all_digits(seconds) || !all_digits(fraction) {
        return None;
    }
    let seconds: i64 = seconds.parse().ok()?;
    let nanos: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Some(match (negative, nanos) {
        (false, nanos) => Stamp { seconds, nanos },
        (true, 0) => Stamp {
            seconds: -seconds,
            nanos: 0,
        },
        (true, nanos) => Stamp {
            seconds: -seconds - 1,
            nanos: 1_000_000_000 - nanos,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_decimal_seconds() {
        let stamp = |seconds, nanos| Stamp { seconds, nanos };
        for (time, text) in [
            (stamp(0, 0), "0"),
            (stamp(1_717_405_200, 1), "1717405200.000000001"),
            (stamp(5, 500_000_000), "5.5"),
            (stamp(-1, 500_000_000), "-0.5"),
            (stamp(-2, 0), "-2"),
            (stamp(-2, 999_999_999), "-1.000000001"),
        ] {
            assert_eq!(write_time(time), text);
            assert_eq!(read_time(text), Some(time));
        }
        assert_eq!(read_time("1.0000000019"), Some(stamp(1, 1)));
        for text in ["", "-", ".5", "1e9", "1,5", "+1", "99999999999999999999"] {
            assert_eq!(read_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_comes_back(
            seconds in i64::from(i32::MIN) * 100..i64::from(i32::MAX) * 100,
            nanos in 0u32..1_000_000_000,
        ) {
            let time = Stamp { seconds, nanos };
            prop_assert_eq!(read_time(&write_time(time)), Some(time));
        }
    }
}
