//! Who holds the lease of which session, as a home goes by it.
//!
//! What another device holds is read-only here. `relay` finds out who it is; whoever changes sessions is handed this
//! value, as they are handed the agents that are at work.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::SessionId;
use crate::base::{Error, Result, human};
use crate::pack::ENDING;

/// The device that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldBy {
    /// Its id.
    pub device: String,
    /// What its machine is called. Not escaped.
    pub name: String,
    /// Since when, by its own clock.
    pub since: Timestamp,
    /// Whether it is this device.
    pub ours: bool,
}

impl HeldBy {
    /// Who holds the lease of a session and since when, for a person: `laptop holds its lease since … by its clock`.
    pub fn told(&self, zone: TimeZone) -> String {
        self.told_of("its lease", zone)
    }

    /// Like [`HeldBy::told`], where the session is to be named: `laptop holds the lease of …`.
    pub fn told_of(&self, lease: &str, zone: TimeZone) -> String {
        let since = human::moment(self.since, zone);
        match self.ours {
            true => format!("this device holds {lease} since {since}"),
            false => format!(
                "{} holds {lease} since {since} by its clock",
                human::name(&self.name)
            ),
        }
    }
}

/// What can be done about a lease that another device holds.
pub fn lease_hint(session: &str) -> String {
    let named = human::argument(session);
    format!(
        "`wbhome lease release {named}` there lets go of it; `wbhome lease steal {named}` here asks nobody"
    )
}

/// A session that a command over many has left as it is, because another device holds its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// Its id.
    pub session: String,
    /// Who holds its lease, for a person.
    pub why: String,
}

/// Who holds the leases of the sessions that carry a sync tag. Without a relay nobody holds any.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    held: BTreeMap<String, HeldBy>,
    noted: Option<Timestamp>,
    unknown: Option<Unknown>,
    zone: Option<TimeZone>,
}

/// Why it is not known which device this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// For a person.
    pub why: String,
    /// What can be done about it.
    pub hints: Vec<String>,
}

impl From<&Error> for Unknown {
    fn from(error: &Error) -> Unknown {
        Unknown {
            why: error.to_string(),
            hints: error.hints().to_vec(),
        }
    }
}

impl Leases {
    /// By session. `noted` says when that was known, if it can not be learned now; times are told in `zone`.
    pub fn new(held: BTreeMap<String, HeldBy>, noted: Option<Timestamp>, zone: TimeZone) -> Leases {
        Leases {
            held,
            noted,
            unknown: None,
            zone: Some(zone),
        }
    }

    /// The same where it can not be learned which device this is: any of the leases may be its own, and none is taken for
    /// that.
    pub fn of_unknown(self, unknown: Option<Unknown>) -> Leases {
        Leases { unknown, ..self }
    }

    /// Why it is not known which device this is, where somebody holds a lease and that is so.
    pub fn unknown(&self) -> Option<&Unknown> {
        self.unknown.as_ref().filter(|_| !self.held.is_empty())
    }

    /// Who holds the lease of a session, this device or another.
    pub fn of(&self, session: &str) -> Option<&HeldBy> {
        self.held.get(session)
    }

    /// Who holds it, when that is another device, for a person: `laptop holds its lease since …`.
    pub fn elsewhere(&self, session: &str) -> Option<String> {
        let holder = self.of(session).filter(|holder| !holder.ours)?;
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        let noted = match self.noted {
            Some(at) => format!(
                " (noted on {}; the relay can not be reached now)",
                human::moment(at, zone.clone())
            ),
            None => String::new(),
        };
        let unknown = match &self.unknown {
            Some(unknown) => format!(
                "; it is not known whether that is this device: {}",
                unknown.why
            ),
            None => String::new(),
        };
        Some(format!("{}{noted}{unknown}", holder.told(zone)))
    }

    /// Every session that another device holds, and who.
    pub fn all_elsewhere(&self) -> impl Iterator<Item = PassedOver> {
        let sessions = self.held.keys();
        sessions.filter_map(|session| {
            Some(PassedOver {
                why: self.elsewhere(session)?,
                session: session.clone(),
            })
        })
    }

    /// Refuses to change a session that another device holds.
    ///
    /// # Errors
    /// The refusal.
    pub fn refuse(&self, session: &SessionId) -> Result<()> {
        let Some(who) = self.elsewhere(session.as_str()) else {
            return Ok(());
        };
        let name = human::name(session.as_str());
        let refused = Error::failed(format!("`{name}` is read-only here: {who}"));
        let hints = match &self.unknown {
            Some(unknown) => unknown.hints.clone(),
            None => vec![lease_hint(session.as_str())],
        };
        let hints = hints.into_iter();
        Err(hints
            .fold(refused, Error::hint)
            .hint("docs/devices.md says what a lease is"))
    }

    /// Refuses to change something below the home that belongs to a session which another device holds.
    ///
    /// # Errors
    /// The refusal.
    pub fn refuse_path(&self, path: &Path) -> Result<()> {
        match session_at(path) {
            Some(session) => self.refuse(&session),
            None => Ok(()),
        }
    }
}

/// The session that a path below the home belongs to, by its folder or its archive.
fn session_at(path: &Path) -> Option<SessionId> {
    let mut names = path.iter();
    let (top, name) = (names.next()?, names.next()?);
    match top.to_str()? {
        "sessions" => SessionId::of_folder(name),
        "archive" => SessionId::of_folder(name.to_str()?.strip_suffix(ENDING)?.as_ref()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(ours: bool, noted: Option<Timestamp>) -> Leases {
        let holder = HeldBy {
            device: "a".repeat(32),
            name: "laptop\u{1b}".into(),
            since: Timestamp::UNIX_EPOCH,
            ours,
        };
        Leases::new([("任务".into(), holder)].into(), noted, TimeZone::UTC)
    }

    #[test]
    fn what_another_device_holds_is_refused() {
        let id = SessionId::adopt("任务").unwrap();
        let error = leases(false, None).refuse(&id).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`任务` is read-only here: laptop\\x1b holds its lease since 1970-01-01 00:00 by its clock"
        );
        let noted = leases(false, Some(Timestamp::UNIX_EPOCH)).elsewhere("任务");
        assert!(noted.unwrap().ends_with("can not be reached now)"));
        let unknown = Unknown {
            why: "HOME is not set".into(),
            hints: vec!["set HOME".into()],
        };
        let error = leases(false, None).of_unknown(Some(unknown));
        let error = error.refuse(&id).unwrap_err();
        assert!(error.to_string().ends_with("this device: HOME is not set"));
        assert_eq!(error.hints()[0], "set HOME");
        assert!(leases(true, None).refuse(&id).is_ok());
        assert!(leases(true, None).of("任务").is_some());
        let other = SessionId::adopt("other").unwrap();
        assert!(leases(false, None).refuse(&other).is_ok());
        assert!(Leases::default().refuse(&id).is_ok());
    }

    #[test]
    fn a_path_belongs_to_a_session() {
        let held = leases(false, None);
        for path in [
            "sessions/任务",
            "sessions/任务/logs/a.log",
            "archive/任务.tar.zst",
        ] {
            assert!(held.refuse_path(Path::new(path)).is_err(), "{path}");
        }
        for path in [
            "",
            "sessions",
            "sessions/x/任务",
            "archive/任务",
            "agents/任务/x",
        ] {
            assert!(held.refuse_path(Path::new(path)).is_ok(), "{path}");
        }
    }
}
