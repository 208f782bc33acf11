//! What speaks against taking a version.

use std::path::Path;

use super::super::place::Relay;
use super::super::record::{self, Holds};
use super::super::side::is_left_by_others;
use super::super::standing::Side;
use super::compare::digest;
use super::{Plan, is_log};
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Buffers};
use crate::home::{Home, Index, Record, SessionId, candidates, folded, identity_of};
use crate::state::{Agent, AtWork};

pub(super) fn refuse_archived(home: &Home, id: &SessionId, here: bool) -> Result<()> {
    if here || !disk::exists(&home.archive_of(id)) {
        return Ok(());
    }
    let quoted = human::quoted(Path::new(id.as_str()));
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

pub(super) fn refuse_unleased(relay: &Relay, id: &SessionId) -> Result<()> {
    let name = human::name(id.as_str());
    let quoted = human::quoted(Path::new(id.as_str()));
    let error = match relay.devices.holder(id.as_str()) {
        Some(holder) if holder.ours => return Ok(()),
        Some(holder) => Error::failed(format!(
            "the lease of `{name}` is held by {}, since {}",
            human::name(&holder.name),
            holder.since
        )),
        None => Error::failed(format!("nobody holds the lease of `{name}`")),
    };
    Err(error.hint(format!(
        "`wbhome lease take {quoted}` first: only who holds it writes"
    )))
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
        Some(who) => Err(Error::failed(format!(
            "`{}` can not be replaced: {who}",
            human::name(id.as_str())
        ))
        .hint("end its session first; nothing was changed")),
    }
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

    /// Whether the version is one that some device says to have sent, as far as any says. Half of one, or one in which a
    /// sync client has left a conflict copy, is not.
    fn is_as_sent(&self, relay: &Relay, context: &Context) -> Result<bool> {
        let said = relay.devices.all();
        let said: Vec<&str> = said
            .filter_map(|said| said.sessions.get(self.session.as_str()))
            .map(|sent| sent.version.as_str())
            .filter(|version| !version.is_empty())
            .collect();
        if said.is_empty() {
            return Ok(true);
        }
        let mut buffers = Buffers::new();
        let mut names = Vec::new();
        for (path, item) in self.there.content() {
            let name = path.file_name().unwrap_or_default();
            let holds = match (&item.link, self.compared.equal.get(path)) {
                _ if is_left_by_others(name) => continue,
                (Some(target), _) => Holds::Link(target.clone()),
                (None, Some(digest)) => Holds::File(*digest),
                (None, None) => match digest(&self.there, path, item, &mut buffers, context)? {
                    Some(digest) => Holds::File(digest),
                    None => return Ok(false),
                },
            };
            names.push((path.as_path(), holds));
        }
        let version = record::version(names.iter().map(|(path, holds)| (*path, holds)));
        Ok(said.contains(&version.as_str()))
    }

    /// Refuses a version that a sync client has not brought whole yet, or that is another session.
    pub(super) fn refuse_half(
        &self,
        home: &Home,
        index: &Index,
        relay: &Relay,
        record: &Result<Option<Record>>,
        force: bool,
        context: &Context,
    ) -> Result<()> {
        let path = relay.path.join(self.session.as_str());
        let apart = |path: &Path| self.without_logs && is_log(path);
        if self.there.content().all(|(path, _)| apart(path)) {
            return Err(Error::failed(
                "holds no file: the sync client may not have begun with it:",
            )
            .at(path)
            .hint("wait until it is done"));
        }
        let name = Path::new("session.json");
        let has_one = |side: &Side| side.items.contains_key(name);
        let what = match record {
            Err(error) => format!("its session.json can not be understood ({error})"),
            Ok(None) if self.here.as_ref().is_some_and(has_one) => {
                "it has no session.json, and the home's own version has one".to_owned()
            }
            Ok(_) if !force && !self.is_as_sent(relay, context)? => {
                "it is not what any device says to have sent".to_owned()
            }
            Ok(record) => {
                let theirs = record.as_ref().and_then(|r| r.session_id.as_deref());
                let ours = identity_of(home, Some(index), &self.session).filter(|_| !self.new);
                match (theirs, ours.as_deref()) {
                    (Some(theirs), Some(ours)) if theirs != ours && !force => {
                        return Err(Error::failed(
                            "is another session of the same name: its session_id is not that of the home's own:",
                        )
                        .at(path)
                        .hint("`wbhome mv` gives the home's own another name; then take this one")
                        .hint("--force takes it all the same; the former one goes into the trash"));
                    }
                    _ => return Ok(()),
                }
            }
        };
        match force {
            true => Ok(()),
            false => Err(Error::failed(format!("may be still on its way, {what}:"))
                .at(path)
                .hint("wait until the sync client is done")
                .hint("--force takes it as it is; the former one goes into the trash")),
        }
    }
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
