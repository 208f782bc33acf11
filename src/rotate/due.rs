//! Whether a log is due, as people know it from logrotate(8): decided on what is known alone.

use jiff::ZonedDateTime;
use jiff::civil::{Date, Weekday};
use serde::Serialize;

use crate::home::{Every, Known, Rotate};

/// Why a log is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// `--force`.
    Forced,
    /// It is larger than `size`.
    Size,
    /// The day has changed since it was cut.
    Day,
    /// The week has changed since it was cut.
    Week,
}

impl Why {
    /// In words that follow `because`.
    pub fn told(self) -> &'static str {
        match self {
            Why::Forced => "it was asked for",
            Why::Size => "it is larger than [rotate] size",
            Why::Day => "the day has changed",
            Why::Week => "the week has changed",
        }
    }
}

/// Why a log is not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rest {
    /// Nothing was written since it was cut, or ever.
    Empty,
    /// It is seen for the first time: its day begins now.
    New,
    /// It was cut, or seen for the first time, today.
    Today,
    /// It was cut, or seen for the first time, this week.
    ThisWeek,
    /// It is cut by its size alone, and is not large enough.
    Small,
}

impl Rest {
    /// In words that follow `because`.
    pub fn told(self) -> &'static str {
        match self {
            Rest::Empty => "it is empty",
            Rest::New => "it is seen for the first time",
            Rest::Today => "it was cut or first seen today",
            Rest::ThisWeek => "it was cut or first seen this week",
            Rest::Small => "it is not larger than [rotate] size",
        }
    }
}

/// Whether a log with so many bytes in it is due, and why, or why not. A record of the future is one of another day: a
/// clock that went wrong once must not stop the logs from being cut for years.
pub(super) fn decide(
    settings: &Rotate,
    known: Option<&Known>,
    bytes: u64,
    force: bool,
    now: &ZonedDateTime,
) -> Result<Why, Rest> {
    if bytes == 0 && settings.not_empty {
        return Err(Rest::Empty);
    }
    if force {
        return Ok(Why::Forced);
    }
    if settings.size.is_some_and(|size| bytes > size) {
        return Ok(Why::Size);
    }
    if settings.every == Every::Never {
        return Err(Rest::Small);
    }
    let Some(known) = known else {
        return Err(Rest::New);
    };
    let last = known.cut.unwrap_or(known.seen);
    let last = last.to_zoned_datetime(now.time_zone().clone()).date();
    match settings.every {
        Every::Weekly if monday(last) == monday(now.date()) => Err(Rest::ThisWeek),
        Every::Weekly => Ok(Why::Week),
        _ if last == now.date() => Err(Rest::Today),
        _ => Ok(Why::Day),
    }
}

/// The Monday of a day's week (ISO 8601).
fn monday(date: Date) -> Date {
    let days = i64::from(date.weekday().since(Weekday::Monday));
    date.checked_sub(jiff::Span::new().days(days))
        .unwrap_or(date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn known(cut: Option<&str>) -> Known {
        Known {
            seen: at("2024-06-01T00:00:00Z"),
            cut: cut.map(at),
            id: None,
            blank: 0,
        }
    }

    fn decided(
        settings: &Rotate,
        known: Option<&Known>,
        bytes: u64,
        now: &str,
    ) -> Result<Why, Rest> {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        decide(
            settings,
            known,
            bytes,
            false,
            &at(now).to_zoned_datetime(zone),
        )
    }

    #[test]
    fn daily_is_a_change_of_the_persons_own_day() {
        let settings = Rotate::default();
        let cut = known(Some("2024-06-15T03:00:00+08:00"));
        let on = |now| decided(&settings, Some(&cut), 1, now);
        assert_eq!(on("2024-06-15T23:59:59+08:00"), Err(Rest::Today));
        assert_eq!(on("2024-06-16T00:00:00+08:00"), Ok(Why::Day));
        assert_eq!(on("2024-06-17T03:00:00+08:00"), Ok(Why::Day));
        // The clock was set back.
        assert_eq!(on("2024-05-01T03:00:00+08:00"), Ok(Why::Day));
        assert_eq!(
            decided(&settings, None, 1, "2024-06-16T00:00:00Z"),
            Err(Rest::New)
        );
        assert_eq!(
            decided(&settings, Some(&known(None)), 1, "2024-06-01T01:00:00Z"),
            Err(Rest::Today)
        );
        assert_eq!(
            decided(&settings, Some(&known(None)), 1, "2024-06-02T01:00:00Z"),
            Ok(Why::Day)
        );
    }

    #[test]
    fn weekly_is_a_change_of_the_week_which_begins_on_monday() {
        let settings = Rotate {
            every: Every::Weekly,
            ..Rotate::default()
        };
        // A Saturday.
        let cut = known(Some("2024-06-15T03:00:00+08:00"));
        let on = |now| decided(&settings, Some(&cut), 1, now);
        assert_eq!(on("2024-06-16T23:00:00+08:00"), Err(Rest::ThisWeek));
        assert_eq!(on("2024-06-17T00:00:00+08:00"), Ok(Why::Week));
        assert_eq!(on("2025-06-14T00:00:00+08:00"), Ok(Why::Week));
        // Across the end of a year: Monday the 30th to Sunday the 5th.
        let cut = known(Some("2024-12-30T03:00:00+08:00"));
        let on = |now| decided(&settings, Some(&cut), 1, now);
        assert_eq!(on("2025-01-05T23:00:00+08:00"), Err(Rest::ThisWeek));
        assert_eq!(on("2025-01-06T00:00:00+08:00"), Ok(Why::Week));
    }

    #[test]
    fn a_large_log_is_due_whatever_the_day() {
        let mut settings = Rotate {
            size: Some(100),
            ..Rotate::default()
        };
        let cut = known(Some("2024-06-15T03:00:00+08:00"));
        let with = |settings: &Rotate, bytes| {
            decided(settings, Some(&cut), bytes, "2024-06-15T04:00:00+08:00")
        };
        assert_eq!(with(&settings, 101), Ok(Why::Size));
        assert_eq!(with(&settings, 100), Err(Rest::Today));
        assert_eq!(
            decided(&settings, None, 101, "2024-06-15T04:00:00Z"),
            Ok(Why::Size)
        );
        settings.every = Every::Never;
        assert_eq!(with(&settings, 101), Ok(Why::Size));
        assert_eq!(with(&settings, 100), Err(Rest::Small));
    }

    #[test]
    fn an_empty_log_is_due_only_where_that_is_set_and_force_does_not_change_it() {
        let mut settings = Rotate::default();
        let now = at("2024-06-16T00:00:00Z").to_zoned_datetime(TimeZone::UTC);
        let cut = known(Some("2024-06-15T03:00:00Z"));
        assert_eq!(
            decide(&settings, Some(&cut), 0, true, &now),
            Err(Rest::Empty)
        );
        assert_eq!(decide(&settings, None, 1, true, &now), Ok(Why::Forced));
        settings.not_empty = false;
        assert_eq!(decide(&settings, Some(&cut), 0, false, &now), Ok(Why::Day));
        assert_eq!(
            decide(&settings, Some(&cut), 0, true, &now),
            Ok(Why::Forced)
        );
    }
}
