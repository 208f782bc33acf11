//! The three things that grow in a home while nobody looks: context that is saved whole with each turn, logs, and results
//! that were left behind. What helps with the first two is a command; what may be deleted only a person knows.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::OfSession;
use super::weigh::{Session, Weighed};
use crate::base::wire::WirePath;

/// So many sessions are named.
const NAMED: usize = 3;

/// With fewer turns nobody can tell whether they repeat.
const TURNS: usize = 5;

/// Something that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Growing {
    /// Turns that hold all that was said before, again and again.
    ContextSnapshots,
    /// Logs.
    Logs,
    /// Large results in sessions that rest.
    ArtifactsLeftBehind,
}

/// What of it there is, and what helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grows {
    /// Which.
    pub what: Growing,
    /// Its bytes; of context, those that are said again.
    pub bytes: u64,
    /// The sessions that have most of it, the worst first.
    pub sessions: Vec<WirePath>,
    /// How many sessions have some.
    pub of: u64,
    /// Files that a person may look at and delete, the largest first.
    pub files: Vec<OldFile>,
    /// The command that helps, if one does.
    pub helps: Option<String>,
}

/// A file that nobody has touched for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OldFile {
    /// Below the home.
    #[serde(flatten)]
    pub path: WirePath,
    /// Its length.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Timestamp,
}

/// Finds them.
pub(super) fn grows(
    sessions: &[OfSession],
    weighed: &Weighed,
    idle: Duration,
    now: Timestamp,
) -> Vec<Grows> {
    let of = |session: &OfSession| weighed.by_name.get(session.name.as_os_str());
    let rests = |session: &OfSession| is_idle(session.updated, idle, now);
    let repeated = |session: &OfSession| of(session).map_or(0, said_again);
    let mut context = most(Growing::ContextSnapshots, sessions, &repeated);
    // A session that is at work stays where it is.
    let resting: Vec<&OfSession> = sessions
        .iter()
        .filter(|s| s.all.files > 0 && rests(s) && repeated(s) > 0)
        .collect();
    context.helps = match resting.as_slice() {
        [] => None,
        _ => Some(format!("wbhome archive --idle {}", spelled(idle))),
    };
    let mut logs = most(Growing::Logs, sessions, &|session| session.logs.bytes);
    logs.helps = (logs.bytes > 0).then(|| "wbhome rotate --force".to_owned());
    vec![context, logs, left_behind(sessions, &of, &rests)]
}

fn most(what: Growing, sessions: &[OfSession], bytes: &dyn Fn(&OfSession) -> u64) -> Grows {
    let weights = sessions.iter().map(|session| (bytes(session), session));
    let mut having: Vec<(u64, &OfSession)> = weights.filter(|(bytes, _)| *bytes > 0).collect();
    having.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
    Grows {
        what,
        bytes: having.iter().map(|(bytes, _)| bytes).sum(),
        of: having.len() as u64,
        sessions: having
            .iter()
            .take(NAMED)
            .map(|(_, s)| s.name.clone())
            .collect(),
        files: Vec::new(),
        helps: None,
    }
}

fn left_behind<'w>(
    sessions: &[OfSession],
    of: &dyn Fn(&OfSession) -> Option<&'w Session>,
    rests: &dyn Fn(&OfSession) -> bool,
) -> Grows {
    let large = |session: &OfSession| match of(session) {
        Some(weighed) if rests(session) => weighed.large.as_slice(),
        _ => &[],
    };
    let bytes = |session: &OfSession| large(session).iter().map(|file| file.bytes).sum();
    let mut found = most(Growing::ArtifactsLeftBehind, sessions, &bytes);
    for file in sessions.iter().flat_map(large) {
        found.files.push(OldFile {
            path: file.path.clone(),
            bytes: file.bytes,
            modified: file.modified,
        });
    }
    let order = |a: &OldFile, b: &OldFile| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path));
    found.files.sort_by(order);
    found
}

/// The bytes of the turns that are only there to say again what a later one says, too: where each turn is at least as
/// long as the one before it (but for one in ten), all but the longest. By their lengths alone.
fn said_again(session: &Session) -> u64 {
    let mut turns = session.turns.clone();
    turns.sort_unstable();
    if turns.len() < TURNS {
        return 0;
    }
    let shorter = turns.windows(2).filter(|pair| pair[1].1 < pair[0].1);
    let all: u64 = turns.iter().map(|(_, bytes)| bytes).sum();
    let longest = turns.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let first = turns.first().map_or(0, |(_, bytes)| *bytes);
    let grew = longest >= first.saturating_mul(2);
    match grew && shorter.count() * 10 <= turns.len() {
        true => all - longest,
        false => 0,
    }
}

fn is_idle(updated: Option<Timestamp>, idle: Duration, now: Timestamp) -> bool {
    let idle = SignedDuration::try_from(idle).unwrap_or(SignedDuration::MAX);
    updated.is_some_and(|updated| now.duration_since(updated) >= idle)
}

/// A duration as it is typed.
fn spelled(idle: Duration) -> String {
    match idle.as_secs() {
        seconds if seconds > 0 && seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        seconds if seconds > 0 && seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(turns: &[u64]) -> Session {
        Session {
            turns: turns
                .iter()
                .enumerate()
                .map(|(n, bytes)| (n as u64, *bytes))
                .collect(),
            ..Session::default()
        }
    }

    #[test]
    fn turns_that_say_everything_again_are_told_by_their_lengths() {
        assert_eq!(said_again(&session(&[10, 20, 30, 40, 50])), 100);
        assert_eq!(
            said_again(&session(&[10, 20, 30, 40])),
            0,
            "too few to tell"
        );
        assert_eq!(
            said_again(&session(&[50, 10, 40, 20, 60])),
            0,
            "each says something else"
        );
        assert_eq!(
            said_again(&session(&[50, 50, 50, 50, 51])),
            0,
            "they do not grow"
        );
        let mut turns: Vec<u64> = (1..=20).map(|n| n * 100).collect();
        turns[10] = 5;
        let all: u64 = turns.iter().sum();
        assert_eq!(
            said_again(&session(&turns)),
            all - 2000,
            "one was cut short"
        );
    }

    #[test]
    fn durations_as_they_are_typed() {
        let of = |seconds| spelled(Duration::from_secs(seconds));
        assert_eq!([of(2_592_000), of(7200), of(90)], ["30d", "2h", "90s"]);
    }
}
