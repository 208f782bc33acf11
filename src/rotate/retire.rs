//! Which cut logs go: decided on their ages and sizes alone.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

/// Why a cut log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// There are more than `keep`.
    Keep,
    /// It is older than `max_age`.
    MaxAge,
    /// All of the session's together are larger than `max_total`.
    MaxTotal,
}

impl Beyond {
    /// The setting.
    pub fn told(self) -> &'static str {
        match self {
            Beyond::Keep => "keep",
            Beyond::MaxAge => "max_age",
            Beyond::MaxTotal => "max_total",
        }
    }
}

/// Of what was cut out of one log, the newest first: why each goes, if it does. The newest never goes by its age.
pub(super) fn by_count_and_age(
    cut_at: &[Timestamp],
    keep: u32,
    max_age: Option<Duration>,
    now: Timestamp,
) -> Vec<Option<Beyond>> {
    let is_old = |at: Timestamp| {
        let age = now.duration_since(at);
        max_age.is_some_and(|most| Duration::try_from(age).is_ok_and(|age| age > most))
    };
    let each = cut_at.iter().enumerate();
    each.map(|(n, at)| match n {
        n if n >= keep as usize => Some(Beyond::Keep),
        0 => None,
        _ => is_old(*at).then_some(Beyond::MaxAge),
    })
    .collect()
}

/// Of what was cut out of all logs of a session, each with when, its bytes and whether it is the newest of its log: which
/// go, the oldest first, until the rest is small enough. The newest of each log stays.
pub(super) fn by_total(all: &[(Timestamp, u64, bool)], most: u64) -> Vec<usize> {
    let mut total: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
    let mut oldest: Vec<usize> = (0..all.len()).filter(|n| !all[*n].2).collect();
    oldest.sort_by_key(|n| all[*n].0);
    let mut go = Vec::new();
    for n in oldest {
        if total <= most {
            break;
        }
        total -= all[n].1;
        go.push(n);
    }
    go
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp::from_second(n * 86_400).unwrap()
    }

    #[test]
    fn so_many_stay() {
        let three = [day(3), day(2), day(1)];
        let stay = |keep| {
            let why = by_count_and_age(&three, keep, None, day(9));
            why.iter().filter(|why| why.is_none()).count()
        };
        assert_eq!([0, 1, 2, 3, 7].map(stay), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn what_is_older_goes_and_what_is_exactly_as_old_stays_and_the_newest_anyway() {
        let age = Some(Duration::from_secs(7 * 86_400));
        let all = [day(3), day(2), day(1)];
        let why = by_count_and_age(&all, 9, age, day(9));
        assert_eq!(why, [None, None, Some(Beyond::MaxAge)]);
        let why = by_count_and_age(&all, 9, age, day(99));
        assert_eq!(why, [None, Some(Beyond::MaxAge), Some(Beyond::MaxAge)]);
        // Of the future.
        assert_eq!(by_count_and_age(&all, 9, age, day(0)), [None, None, None]);
    }

    #[test]
    fn the_oldest_go_until_the_rest_is_small_enough() {
        let all = [
            (day(9), 50, true),
            (day(8), 10, false),
            (day(5), 70, true),
            (day(2), 20, false),
            (day(4), 30, false),
        ];
        assert_eq!(by_total(&all, 180), [0; 0]);
        assert_eq!(by_total(&all, 179), [3]);
        assert_eq!(by_total(&all, 150), [3, 4]);
        assert_eq!(by_total(&all, 0), [3, 4, 1]);
    }
}
