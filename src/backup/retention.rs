//! What may go: as pure functions over moments and names, so that every history can be tried.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::home::folded;

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

/// The packs that no snapshot names. Some filesystems know no case, or write an accent in one way only: there a folder may
/// be listed as nobody has named it. So names that differ in nothing else count as one.
pub(super) fn unnamed<'p>(
    packs: impl IntoIterator<Item = &'p str>,
    named: &BTreeSet<String>,
) -> Vec<&'p str> {
    let named: BTreeSet<String> = named.iter().map(|name| folded(name)).collect();
    packs
        .into_iter()
        .filter(|pack| !named.contains(&folded(pack)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp::from_second(n * 86_400).unwrap()
    }

    #[test]
    fn a_pack_that_is_spelled_otherwise_is_named_all_the_same() {
        let named = BTreeSet::from(["packs/sessions/20240603_Api/1.tar.zst".to_owned()]);
        let there = [
            "packs/sessions/20240603_API/1.tar.zst",
            "packs/sessions/20240603_API/2.tar.zst",
        ];
        assert_eq!(unnamed(there, &named), [there[1]]);
        let composed =
            BTreeSet::from(["packs/sessions/20240603_r\u{e9}sum\u{e9}/1.tar.zst".to_owned()]);
        let decomposed = "packs/sessions/20240603_re\u{301}sume\u{301}/1.tar.zst";
        assert_eq!(unnamed([decomposed], &composed), [""; 0]);
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
