//! What is cut out of `run.log` is called `run.log-20240615T030000Z`, compressed `run.log-20240615T030000Z.zst`: a name
//! that never changes, so that nothing has to be renamed when there is one more.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use jiff::{Span, Timestamp};

use crate::base::stamp;
use crate::home::Compress;

/// What the name of a cut log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Of which log.
    pub log: OsString,
    /// When it was cut out.
    pub at: Timestamp,
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

/// The name of what is cut out of a log.
pub(super) fn name(log: &OsStr, at: Timestamp) -> OsString {
    let mut name = log.to_owned();
    name.push("-");
    name.push(stamp::name(at));
    name
}

/// When what is cut out now is said to be cut out, `newest` being what that was for the last one: a second later at least,
/// so that the order of the names is that of the lines, whatever the clock does. None: there is no later name.
pub(super) fn after(newest: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match newest.filter(|newest| newest.as_second() >= now.as_second()) {
        Some(newest) => newest.checked_add(Span::new().seconds(1)).ok(),
        None => Some(now),
    }
}

/// How much longer than that of its log a name may become.
pub(super) const LONGER: usize = "-20240615T030000Z.zst".len();

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
    let name = Name {
        log: OsStr::from_bytes(log).to_owned(),
        at: stamp::read(rest)?,
        compress,
    };
    (!log.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_no_other_is_taken_for_one() {
        let at: Timestamp = "2024-06-15T03:00:00Z".parse().unwrap();
        for log in ["run.log", "数据-1.log", "a-20240615T030000Z"] {
            for compress in [Compress::None, Compress::Zstd, Compress::Gzip] {
                let mut made = name(OsStr::new(log), at);
                made.push(ending(compress));
                assert!(made.len() <= log.len() + LONGER);
                let read = read(&made).unwrap();
                assert_eq!((read.log.as_os_str(), read.at), (OsStr::new(log), at));
                assert_eq!(read.compress, compress);
            }
        }
        for other in [
            "run.log",
            "run.log.1",
            "run.log-20240615",
            "run.log-20240615T030000",
            "run.log-20240615T030000Z.bz2",
            "run.log-20240615T030000Z_2",
            "run.log-20241315T030000Z",
            "run.log-2024615T030000Z",
            "-20240615T030000Z",
            "run.log-20240615T030000Z.zst.gz",
        ] {
            assert_eq!(read(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn every_name_is_later_than_the_last_whatever_the_clock_does() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(after(None, at(5)), Some(at(5)));
        assert_eq!(after(Some(at(4)), at(5)), Some(at(5)));
        assert_eq!(after(Some(at(5)), at(5)), Some(at(6)));
        // The clock was set back, or a name tells of the future.
        assert_eq!(after(Some(at(900)), at(5)), Some(at(901)));
        assert_eq!(after(Some(Timestamp::MAX), at(5)), None);
    }
}
