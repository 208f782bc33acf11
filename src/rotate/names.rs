//! What is cut out of `run.log` is called `run.log-20240615T030000Z`, compressed `run.log-20240615T030000Z.zst`: a name
//! that never changes, so that nothing has to be renamed when there is one more.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::home::Compress;

const FORM: &str = "%Y%m%dT%H%M%SZ";

/// What the name of a cut log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Of which log.
    pub log: OsString,
    /// When it was cut out, and a number where that was done more than once in a second: the order of age.
    pub age: (Timestamp, u32),
    /// How it is compressed.
    pub compress: Compress,
}

/// The end of the name of what is compressed so.
pub(super) fn ending(compress: Compress) -> &'static str {
    match compress {
        Compress::Zstd => ".zst",
        Compress::Gzip => ".gz",
        Compress::None => "",
    }
}

/// The name of what is cut out of a log, for the `n`-th time in that second.
pub(super) fn name(log: &OsStr, at: Timestamp, n: u32) -> OsString {
    let mut name = log.to_owned();
    name.push("-");
    name.push(at.strftime(FORM).to_string());
    if n > 1 {
        name.push(format!("_{n}"));
    }
    name
}

/// Reads a name; none when it is not that of a cut log.
pub(super) fn read(name: &OsStr) -> Option<Name> {
    let bytes = name.as_bytes();
    let (bytes, compress) = [Compress::Zstd, Compress::Gzip]
        .into_iter()
        .find_map(|c| Some((bytes.strip_suffix(ending(c).as_bytes())?, c)))
        .unwrap_or((bytes, Compress::None));
    let dash = memchr::memrchr(b'-', bytes)?;
    let (log, rest) = (
        &bytes[..dash],
        std::str::from_utf8(&bytes[dash + 1..]).ok()?,
    );
    let (stamp, n) = match rest.split_once('_') {
        Some((stamp, n)) => (stamp, n.parse().ok().filter(|n| *n > 1)?),
        None => (rest, 1),
    };
    let at = jiff::civil::DateTime::strptime(FORM, stamp).ok()?;
    let at = TimeZone::UTC.to_timestamp(at).ok()?;
    let name = Name {
        log: OsStr::from_bytes(log).to_owned(),
        age: (at, n),
        compress,
    };
    // Nothing but what this program writes: `2024061T…` would be read as well.
    (stamp.len() == 16 && !log.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_no_other_is_taken_for_one() {
        let at: Timestamp = "2024-06-15T03:00:00Z".parse().unwrap();
        for log in ["run.log", "数据-1.log", "a-20240615T030000Z"] {
            for n in [1, 2, 10] {
                for compress in [Compress::None, Compress::Zstd, Compress::Gzip] {
                    let mut made = name(OsStr::new(log), at, n);
                    made.push(ending(compress));
                    let read = read(&made).unwrap();
                    assert_eq!((read.log.as_os_str(), read.age), (OsStr::new(log), (at, n)));
                    assert_eq!(read.compress, compress);
                }
            }
        }
        for other in [
            "run.log",
            "run.log.1",
            "run.log-20240615",
            "run.log-20240615T030000",
            "run.log-20240615T030000Z.bz2",
            "run.log-20240615T030000Z_1",
            "run.log-20240615T030000Z_x",
            "run.log-20241315T030000Z",
            "run.log-2024615T030000Z",
            "-20240615T030000Z",
            "run.log-20240615T030000Z.zst.gz",
        ] {
            assert_eq!(read(OsStr::new(other)), None, "{other}");
        }
    }
}
