//! What a person should know of a version that nothing speaks against.

use super::super::names::bad_names;
use super::Plan;
use crate::base::human;
use crate::home::{Entry, Index};

/// So many names are told, and how many more there are.
const NAMED: usize = 3;

impl Plan {
    /// That it does not travel from here.
    pub(super) fn warn_without_tag(&mut self, entry: Option<&Entry>) {
        if self.new || self.sync_tag.is_some() || entry.and_then(Entry::sync_tag).is_some() {
            return;
        }
        let typed = human::argument_with(self.session.as_str(), "--sync-tag TAG");
        self.warnings.push(format!(
            "it carries no sync tag, so that it does not travel from here: `wbhome label {typed}` gives it one"
        ));
    }

    /// What will be in the way later.
    pub(super) fn warn(&mut self, index: &Index) {
        let twin = self.twin(index);
        let names = self.names_that_do_not_travel();
        self.warnings.extend(twin.into_iter().chain(names));
    }

    /// Another session of the home that its record says to be the same.
    fn twin(&self, index: &Index) -> Option<String> {
        let theirs = self.record.as_ref()?.session_id.as_deref()?;
        let twin = index.entries().find(|entry| {
            entry.session_id() == Some(theirs)
                && entry.id() != self.session.as_str()
                && (entry.status().is_active() || entry.archive().is_some())
        })?;
        let (name, twin) = (human::name(self.session.as_str()), human::name(twin.id()));
        Some(format!(
            "`{name}` has the session_id of `{twin}`, which the home has, too: if it is a copy of it, or has another name on the other device, one of the two is to go"
        ))
    }

    /// Names that `relay sync` would refuse.
    fn names_that_do_not_travel(&self) -> Vec<String> {
        let bad = bad_names(self.session.as_str(), self.there.items.keys());
        let told = bad.iter().take(NAMED).map(|bad| {
            let path = match bad.path.as_os_str().is_empty() {
                true => human::name(self.session.as_str()).into_owned(),
                false => human::path(&bad.path),
            };
            format!(
                "`relay sync` will hold it back for a name: {path}: {}",
                human::escape(&bad.why)
            )
        });
        let more = bad.len().saturating_sub(NAMED) as u64;
        let more = (more > 0)
            .then(|| format!("and for {}", human::plural(more, "more name", "more names")));
        told.chain(more).collect()
    }
}
