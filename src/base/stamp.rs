//! Moments as they stand in names: `20240603T030000Z`, which sort as they follow each other.

use jiff::Timestamp;

/// The form of a name.
const FORM: &str = "%Y%m%dT%H%M%SZ";

/// A moment as a name, in whole seconds of UTC.
pub fn name(at: Timestamp) -> String {
    at.strftime(FORM).to_string()
}

/// The moment that a name stands for; `None` when it is another name.
pub fn read(name: &str) -> Option<Timestamp> {
    let at = jiff::civil::DateTime::strptime(FORM, name).ok()?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(at).ok()?;
    // The parser takes shorter forms, too.
    (self::name(at) == name).then_some(at)
}

/// The moment in whole seconds.
pub fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_moment() {
        let at: Timestamp = "2024-06-03T03:00:00.5Z".parse().unwrap();
        assert_eq!(name(at), "20240603T030000Z");
        assert_eq!(read("20240603T030000Z"), Some(whole(at)));
        for other in [
            "",
            "20240603T030000",
            "2024063T030000Z",
            "20240603T030000Z.json",
            "20241303T030000Z",
            "zzz",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
