//! Which invariants are looked at after which step.

use std::io::Write as _;
use std::path::PathBuf;

use crate::deeds::Deed;
use crate::judge::Sessions;
use crate::support::Ran;
use crate::support::cold::is_snapshot;
use crate::written::{Lies, TRANSCRIPT};
use crate::{Thrash, Trouble, judge};

impl Thrash {
    pub fn invariants(
        &mut self,
        deed: Deed,
        target: Option<&str>,
        before: &Sessions,
        snapshots: &[Vec<PathBuf>],
        ran: Option<&Ran>,
        trouble: Trouble,
    ) {
        let home = self.home();
        let mut wrong = Vec::new();
        let ids: Vec<String> = self.all().into_keys().collect();
        for id in &ids {
            let all = self.shared.sessions.read().unwrap();
            let mut session = all[id].lock().unwrap();
            let lies = judge::lies(&home, id);
            if lies != session.lies {
                wrong.push(format!("{id} lies in {lies:?}, not in {:?}", session.lies));
                continue;
            }
            wrong.extend(self.judge.bytes(&home, &mut session, deed.rotates()));
        }
        let now = self.all();
        wrong.extend(judge::index(&home, &now));
        wrong.extend(judge::nothing_pending(&home));
        let clean = ran.filter(|_| !trouble.full && trouble.company.is_none());
        let done = clean.is_some_and(|ran| ran.code == Some(0));
        if done && matches!(deed, Deed::Commit | Deed::CommitOne | Deed::Nightly) {
            wrong.extend(judge::committed(&home, before, &now, target));
        }
        if done && matches!(deed, Deed::Relay | Deed::Nightly) {
            wrong.extend(judge::relayed(&self.relay, before, &now));
        }
        let touched = deed.backs_up() || trouble.company == Some(Deed::Backup);
        if touched {
            let after = self.snapshots();
            for (n, store) in self.stores.clone().iter().enumerate() {
                wrong.extend(self.judge.snapshots(store));
                wrong.extend(judge::pruned(&snapshots[n], &after[n], self.moment()));
                let new = after[n].iter().rfind(|path| is_snapshot(path))
                    != snapshots[n].iter().rfind(|path| is_snapshot(path));
                if clean.is_some() && new && matches!(deed, Deed::Backup | Deed::Nightly) {
                    wrong.extend(self.judge.backed_up(store, before, &now, self.now));
                } else {
                    wrong.extend(self.judge.still_backed_up(store, before, &now, self.now));
                }
            }
        }
        if !wrong.is_empty() {
            if let Some(ran) = ran {
                self.story.push_back(format!("{ran:#?}"));
            }
            self.fail(&wrong);
        }
    }

    /// What takes longer: every now and then, and at the end. Nobody writes meanwhile.
    pub fn deep(&mut self) {
        for (id, session) in self.all() {
            if session.lies == Lies::Folder && !session.unfinished.is_empty() {
                self.finish(&id);
            }
        }
        judge::sound(&self.home(), &self.stores);
        let mut check = self.place.command();
        let ran = Ran::of(check.args(["check", "-v"]).output().unwrap());
        if ran.code != Some(0) {
            self.fail(&[format!("check: {ran:#?}")]);
        }
        self.effect("found sound", 1);
    }

    /// Writes what did not fit, as its agent would: a record that ends in the middle is a damage that `check` tells.
    fn finish(&self, id: &str) {
        let path = self.home().join("sessions").join(id).join(TRANSCRIPT);
        let mut file = std::fs::File::options().append(true).open(path).unwrap();
        self.change(id, |session| {
            let rest = std::mem::take(&mut session.unfinished);
            file.write_all(&rest).unwrap();
            session.appended(self.step, TRANSCRIPT, &rest);
        });
    }
}
