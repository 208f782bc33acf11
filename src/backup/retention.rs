//! What may go: as pure functions over moments and names, so that every history can be tried.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

/// How many of the snapshots, the oldest first, may go. What counts is when a snapshot was superseded, which is when the
/// next one was made: one that was the newest until yesterday is needed, however old it is. The newest always stays.
pub(super) fn expired(snapshots: &[Timestamp], now: Timestamp, keep: Duration) -> usize {
    let superseded = snapshots.iter().skip(1);
    superseded
        .take_while(|next| is_older(**next, now, keep))
        .count()
}

/// Whether that was longer ago than `age`.
pub(super) fn is_older(then: Timestamp, now: Timestamp, age: Duration) -> bool {
    let age = jiff::SignedDuration::try_from(age).unwrap_or(jiff::SignedDuration::MAX);
    now.duration_since(then) > age
}

/// The packs that no snapshot names.
pub(super) fn unnamed<'p>(
    packs: impl IntoIterator<Item = &'p str>,
    named: &BTreeSet<String>,
) -> Vec<&'p str> {
    packs
        .into_iter()
        .filter(|pack| !named.contains(*pack))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp::from_second(n * 86_400).unwrap()
    }

    const KEEP: Duration = Duration::from_secs(14 * 86_400);

    #[test]
    fn what_was_superseded_lately_stays_however_old_it_is() {
        // Two weeks without a night: what was the newest all that time has been superseded just now.
        assert_eq!(expired(&[day(1), day(30)], day(30), KEEP), 0);
        assert_eq!(expired(&[day(1), day(30)], day(44), KEEP), 0);
        assert_eq!(expired(&[day(1), day(30)], day(45), KEEP), 1);
        assert_eq!(expired(&[day(1)], day(1000), KEEP), 0);
        assert_eq!(expired(&[], day(1), KEEP), 0);
        let nightly: Vec<Timestamp> = (1..=31).map(day).collect();
        assert_eq!(expired(&nightly, day(31), KEEP), 15);
        // A clock that is behind lets nothing go.
        assert_eq!(expired(&nightly, day(2), KEEP), 0);
        assert_eq!(expired(&nightly, day(31), Duration::MAX), 0);
    }
}
