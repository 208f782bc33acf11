//! What speaks against taking a version.

use std::path::Path;

use super::super::devices::Said;
use super::super::place::Relay;
use super::super::record::{self, Holds};
use super::super::standing::Side;
use super::Plan;
use super::compare::Reading;
use crate::base::{Context, Error, Result, human};
use crate::disk;
use crate::home::{Home, Index, Record, SessionId, candidates, folded, identity_of, is_log};
use crate::state::{Agent, AtWork};

pub(super) fn refuse_archived(home: &Home, id: &SessionId, here: bool) -> Result<()> {
    if here || !disk::exists(&home.archive_of(id)) {
        return Ok(());
    }
    let quoted = human::argument(id.as_str());
    Err(
        Error::failed(format!("`{}` is archived", human::name(id.as_str())))
            .hint(format!(
                "`wbhome unarchive {quoted}` brings it back; then take the version"
            ))
            .hint(format!(
                "or put the archive into the trash first: `wbhome rm {quoted}`"
            )),
    )
}

pub(super) fn refuse_at_work(
    home: &Home,
    index: &Index,
    id: &SessionId,
    agents: &[Agent],
) -> Result<()> {
    let at_work = AtWork::look(home.root(), agents);
    let identity = identity_of(home, Some(index), id);
    let folder = home.session(id);
    let who = at_work
        .agent_in_session(&folder, identity.as_deref())
        .or_else(|| at_work.writer_of(&folder));
    match who {
        None => Ok(()),
        Some(who) => Err(not_replaced(id, &who)),
    }
}

pub(super) fn not_replaced(id: &SessionId, who: &str) -> Error {
    Error::failed(format!(
        "`{}` can not be replaced: {who}",
        human::name(id.as_str())
    ))
    .hint("end its session first; nothing was changed")
}

impl Plan {
    pub(super) fn refuse_unread(&self, home: &Home, relay: &Relay) -> Result<()> {
        if let Some((path, why)) = self.there.unread.first() {
            return Err(unreadable(relay, &self.session, path, why));
        }
        // Logs that are not seen would stay behind unsaid.
        let logs = |path: &Path| path.as_os_str().is_empty() || is_log(path);
        let mut unread = self.here.iter().flat_map(|here| &here.unread);
        match unread.find(|(path, _)| self.without_logs && logs(path)) {
            None => Ok(()),
            Some((path, why)) => Err(not_carried(home, &self.session, path, why)),
        }
    }

    /// Refuses one that is new here and has the name of another session in another case or Unicode form: sync clients
    /// and other systems take the two for one.
    pub(super) fn refuse_alike(&self, home: &Home) -> Result<()> {
        let name = self.session.as_str();
        if !self.new {
            return Ok(());
        }
        let all = candidates(home, false)?;
        let alike = all
            .iter()
            .map(|candidate| candidate.id.as_str())
            .find(|id| *id != name && folded(id) == folded(name));
        match alike {
            None => Ok(()),
            Some(alike) => Err(Error::failed(format!(
                "`{}` differs from `{}`, which the home has, only in case or Unicode form",
                human::name(name),
                human::name(alike)
            ))
            .hint("if they are the same session, give the folder in the relay the name that it has here")
            .hint("if not, `wbhome mv` gives the home's own another name")),
        }
    }

    /// How the version stands to what the devices say to have sent.
    fn against_said(&self, relay: &Relay, context: &Context) -> Result<Against> {
        let said = |said: &Said| -> Option<String> {
            let sent = said.sessions.get(self.session.as_str())?;
            (!sent.version.is_empty()).then(|| sent.version.clone())
        };
        let own = relay.devices.own().and_then(said);
        let others: Vec<String> = relay.devices.others().filter_map(said).collect();
        if own.is_none() && others.is_empty() {
            return Ok(Against::Unsaid);
        }
        let version = self.version(relay, context)?;
        Ok(match version {
            Some(version) if own.as_ref() == Some(&version) => Against::Own,
            Some(version) if others.contains(&version) => Against::Whole,
            _ if others.is_empty() => Against::Unsaid,
            _ => Against::Other,
        })
    }

    /// The digest of the version; none when a file of it changes.
    fn version(&self, relay: &Relay, context: &Context) -> Result<Option<String>> {
        let mut reading = Reading::of(&self.there);
        let mut names = Vec::new();
        for (path, item) in self.there.content() {
            let holds = match (&item.link, self.compared.equal.get(path)) {
                (Some(target), _) => Holds::Link(target.clone()),
                (None, Some(digest)) => Holds::File(*digest),
                (None, None) => match reading.digest(path, item, context)? {
                    Some(digest) => Holds::File(digest),
                    None => {
                        return match reading.why_not(path) {
                            None => Ok(None),
                            Some(why) => Err(unreadable(relay, &self.session, path, &why)),
                        };
                    }
                },
            };
            names.push((path.as_path(), holds));
        }
        let names = names.iter().map(|(path, holds)| (*path, holds));
        Ok(Some(record::version(names)))
    }

    /// Refuses a version without anything that would come: not even by force is that one.
    pub(super) fn refuse_empty(&self, relay: &Relay) -> Result<()> {
        let apart = |path: &Path| self.without_logs && is_log(path);
        match self.there.content().all(|(path, _)| apart(path)) {
            false => Ok(()),
            true => Err(Error::failed(
                "holds no file: the sync client may not have begun with it:",
            )
            .at(relay.path.join(self.session.as_str()))
            .hint("wait until it is done")),
        }
    }

    /// Refuses a version that a sync client has not brought whole yet, and one that is older than what is here.
    pub(super) fn refuse_half(
        &self,
        relay: &Relay,
        record: &Result<Option<Record>>,
        context: &Context,
    ) -> Result<()> {
        let had_one = |here: &Side| here.items.contains_key(Path::new("session.json"));
        let what = match record {
            Err(error) => format!("its session.json can not be understood ({error})"),
            Ok(None) if self.new => "it has no session.json".to_owned(),
            Ok(None) if self.here.as_ref().is_some_and(had_one) => {
                "it has no session.json, and the home's own version has one".to_owned()
            }
            Ok(_) => match self.against_said(relay, context)? {
                Against::Whole => return Ok(()),
                // Versions are told without logs: where logs alone differ, they are somebody's.
                Against::Own if self.new || self.differs_in_logs_alone() => return Ok(()),
                Against::Own => return Err(self.going_back(relay)),
                Against::Other => "it is not what any device says to have sent".to_owned(),
                Against::Unsaid => {
                    "it is not known yet what was sent, because the file of the device that sent it has not arrived"
                        .to_owned()
                }
            },
        };
        let force = match self.new {
            true => "--force takes it as it is",
            false => "--force takes it as it is; the former one goes into the trash",
        };
        Err(Error::failed(format!("may be still on its way, {what}:"))
            .at(relay.path.join(self.session.as_str()))
            .hint("wait until the sync client is done")
            .hint(force))
    }

    fn differs_in_logs_alone(&self) -> bool {
        self.changes.iter().all(|change| is_log(&change.path))
    }

    fn going_back(&self, relay: &Relay) -> Error {
        let quoted = human::argument(self.session.as_str());
        Error::failed("holds what this home has sent; taking it would go back to that:")
            .at(relay.path.join(self.session.as_str()))
            .hint("`wbhome relay sync` sends what is here")
            .hint(format!(
                "`wbhome relay take --force {quoted}` goes back; what is here goes into the trash"
            ))
    }

    /// Refuses one that is another session.
    pub(super) fn refuse_another(
        &self,
        home: &Home,
        index: &Index,
        relay: &Relay,
        record: &Result<Option<Record>>,
    ) -> Result<()> {
        let record = record.as_ref().ok().and_then(Option::as_ref);
        let theirs = record.and_then(|record| record.session_id.as_deref());
        let ours = identity_of(home, Some(index), &self.session).filter(|_| !self.new);
        match (theirs, ours.as_deref()) {
            (Some(theirs), Some(ours)) if theirs != ours => Err(Error::failed(
                "is another session of the same name: its session_id is not that of the home's own:",
            )
            .at(relay.path.join(self.session.as_str()))
            .hint("`wbhome mv` gives the home's own another name; then take this one")
            .hint("--force takes it all the same; the former one goes into the trash")),
            _ => Ok(()),
        }
    }
}

/// How a version stands to what the devices say to have sent.
enum Against {
    /// It is what another device says.
    Whole,
    /// It is what this home has sent itself.
    Own,
    /// It is none of them: half of one, or one in which a sync client has left a conflict copy.
    Other,
    /// No other device says what it has sent.
    Unsaid,
}

pub(super) fn not_carried(home: &Home, id: &SessionId, path: &Path, why: &str) -> Error {
    Error::io(
        "can not be read, and so not be carried over into the new version:",
        home.session(id).join(path),
        std::io::Error::other(why.to_owned()),
    )
    .hint("nothing was changed")
}

pub(super) fn unreadable(relay: &Relay, id: &SessionId, path: &Path, why: &str) -> Error {
    Error::io(
        "can not be read, and a version is taken whole or not at all:",
        relay.path.join(id.as_str()).join(path),
        std::io::Error::other(why.to_owned()),
    )
    .hint("`wbhome relay fetch` copies what can be read; nothing was changed")
}
