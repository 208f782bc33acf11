//! How people write moments and durations on the command line and in settings.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, ZonedDateTime, civil};

use super::{Error, Result};

/// A duration: `90s`, `15m`, `12h`, `14d`, `2w`. A bare number is seconds.
///
/// # Errors
/// Anything else, with the forms that are understood.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let bad = || {
        Error::usage(format!(
            "`{}` is not a duration",
            super::human::escape(text)
        ))
        .hint("write a number and a unit, such as 90s, 15m, 12h, 14d or 2w")
    };
    let text_ = text.trim();
    let digits = text_.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text_[..digits].parse().map_err(|_| bad())?;
    let unit = match &text_[digits..] {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(bad()),
    };
    number
        .checked_mul(unit)
        .map(Duration::from_secs)
        .ok_or_else(bad)
}

/// A moment: `2024-06-03`, `2024-06-03 14:00`, `yesterday`, `today`, `2w` (ago), or RFC 3339.
/// Dates and times without an offset are read in the zone of `now`.
///
/// # Errors
/// Anything else, with the forms that are understood.
pub fn parse_when(text: &str, now: &ZonedDateTime) -> Result<Timestamp> {
    let bad = || {
        Error::usage(format!("`{}` is not a moment", super::human::escape(text))).hint(
            "write a date such as 2024-06-03, 2024-06-03 14:00, yesterday, or an age such as 2w",
        )
    };
    let text = text.trim();
    let start = |date: civil::Date| {
        date.to_zoned_datetime(now.time_zone().clone())
            .map(|z| z.timestamp())
            .map_err(|_| bad())
    };
    match text {
        "now" => return Ok(now.timestamp()),
        "today" => return start(now.date()),
        "yesterday" => return start(now.date().yesterday().map_err(|_| bad())?),
        _ => {}
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    // A date-time first: jiff reads the date out of one and would forget the hour.
    if text.contains([':', 'T']) {
        let moment: civil::DateTime = text.parse().map_err(|_| bad())?;
        return moment
            .to_zoned_datetime(now.time_zone().clone())
            .map(|z| z.timestamp())
            .map_err(|_| bad());
    }
    if let Ok(date) = text.parse::<civil::Date>() {
        return start(date);
    }
    let ago = parse_duration(text).map_err(|_| bad())?;
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let seconds = i64::try_from(ago.as_secs()).map_err(|_| bad())?;
    now.timestamp()
        .checked_sub(SignedDuration::from_secs(seconds))
        .map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> ZonedDateTime {
        "2024-06-15T12:00:00+08:00[Asia/Shanghai]".parse().unwrap()
    }

    #[test]
    fn durations() {
        let good = |t: &str| parse_duration(t).unwrap().as_secs();
        assert_eq!(
            [
                good("10s"),
                good("2m"),
                good("1h"),
                good("14d"),
                good("2w"),
                good("7")
            ],
            [10, 120, 3600, 1_209_600, 1_209_600, 7]
        );
        for bad in [
            "",
            "d",
            "1y",
            "-3d",
            "1.5h",
            "99999999999999999999d",
            "9999999999999999999w",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments() {
        let good = |t: &str| parse_when(t, &now()).unwrap().to_string();
        assert_eq!(good("2024-06-03"), "2024-06-02T16:00:00Z");
        assert_eq!(good("2024-06-03 14:00"), "2024-06-03T06:00:00Z");
        assert_eq!(good("2024-06-03T14:00:00Z"), "2024-06-03T14:00:00Z");
        assert_eq!(good("yesterday"), "2024-06-13T16:00:00Z");
        assert_eq!(good("2w"), "2024-06-01T04:00:00Z");
        for bad in ["", "12", "tomorrowish", "2024-13-01", "99999999999w"] {
            assert!(parse_when(bad, &now()).is_err(), "{bad}");
        }
    }
}
