//! Backups that nobody has tried to restore for a month.

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};

use super::{Night, Warning};
use crate::backup::Store;
use crate::disaster::last_drill;

/// After so many days without a drill a person is told.
const LIMIT: i64 = 30;

/// When nobody watches: on the first of these days, and then on each that is so many later.
const EVERY: i64 = 7;

/// The warning that is due; none where there is no store yet, or none that is old enough.
pub(super) fn warning(night: &Night) -> Option<Warning> {
    let zone = night.context.clock.time_zone();
    let today = night.context.clock.zoned().date();
    let days = |then: Timestamp| days_between(date(then, &zone), today);
    let stores = match &night.config {
        Ok(config) if !config.backup.store.is_empty() => (night.request.stores)(night.home).ok()?,
        _ => return None,
    };
    let (days, message) = match last_drill(night.home).ok()? {
        Some(last) => {
            let days = days(last);
            (days, format!("the last drill was {days} days ago"))
        }
        None => {
            let made = stores.iter().filter_map(|store| {
                let store = Store::open_of(store, night.home).ok()?;
                Some(store.marker().created)
            });
            let days = days(made.min()?);
            let since = format!("for {days} days, and was never tried by a drill");
            (days, format!("there has been a backup {since}"))
        }
    };
    (days >= LIMIT).then(|| Warning {
        message,
        hints: vec![
            "`wbhome drill` rehearses a restore: a backup that was never restored is a hope"
                .to_owned(),
        ],
        pressing: (days - LIMIT) % EVERY == 0,
    })
}

fn date(at: Timestamp, zone: &TimeZone) -> Date {
    at.to_zoned_datetime(zone.clone()).date()
}

/// Days of the calendar: nights begin at about the same hour, so each of them sees another number.
fn days_between(then: Date, now: Date) -> i64 {
    (now.duration_since(then)).as_hours() / 24
}
