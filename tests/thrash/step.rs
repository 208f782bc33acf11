//! What is done in a step, with which session, and the trouble that it meets: a kill, a full disk, company.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::deeds::{DECK, Deed};
use crate::support::Ran;
use crate::written::Lies;
use crate::{FEWEST, MOST, Thrash, Trouble, found};

impl Thrash {
    pub fn clock(&mut self) {
        self.now += match self.rng.below(12) {
            0 => 86_400 * (1 + self.rng.below(9) as i64),
            _ => 600 + self.rng.below(20_000) as i64,
        };
        self.back = match self.rng.below(16) {
            0 => {
                self.effect("clock set back", 1);
                3600 * (1 + self.rng.below(30) as i64)
            }
            // It stays wrong for a while.
            1..8 => self.back,
            _ => 0,
        };
    }

    pub fn moment(&self) -> i64 {
        self.now - self.back
    }

    /// What is done next, with which session, and what more stands on its command line.
    pub fn choose(&mut self) -> Option<(Deed, Option<String>, Vec<String>)> {
        if self.deck.is_empty() {
            self.deck = DECK.to_vec();
            for n in (1..self.deck.len()).rev() {
                let other = self.rng.below(n as u64 + 1) as usize;
                self.deck.swap(n, other);
            }
        }
        let deed = self.deck.pop().unwrap();
        let mut more = Vec::new();
        let target = match deed {
            Deed::Remove if self.living() <= FEWEST => return None,
            Deed::New if self.living() >= MOST => return None,
            Deed::ByHand if self.living() >= MOST => return None,
            Deed::ByHand => {
                let shared = Arc::clone(&self.shared);
                let _still = shared.hold_still.write().unwrap();
                self.by_hand();
                None
            }
            Deed::CommitOne => Some(self.some(Lies::Folder)?),
            Deed::Label => {
                let lies = match self.chance(3) {
                    true => Lies::Archive,
                    false => Lies::Folder,
                };
                let id = self.some(lies)?;
                more = self.some_labels(&id);
                Some(id)
            }
            Deed::New => {
                self.made += 1;
                more = vec![format!("新_{}", self.made)];
                None
            }
            _ => match deed.moves() {
                Some((from, _)) => Some(self.some(from)?),
                None => None,
            },
        };
        // Mostly a session that is put away rests; who writes to it all the same must lose nothing.
        if let (Some(id), Some(_)) = (&target, deed.moves()) {
            let rests = !self.chance(3);
            self.change(id, |session| session.rests = rests);
            while rests
                && self.all()[id].is_open
                && !self.agents.iter().any(JoinHandle::is_finished)
            {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Some((deed, target, more))
    }

    pub fn some_labels(&mut self, id: &str) -> Vec<String> {
        let all = self.all();
        let labels = &all[id].labels;
        let word = ["甲", "beta", "c d"][self.rng.below(3) as usize].to_owned();
        let pairs: Vec<&str> = match self.rng.below(6) {
            0 if labels.tags.contains(&word) => vec!["--untag", &word],
            0 => vec!["--tag", &word],
            1 => vec!["--title", &word],
            2 if labels.project.is_some() => vec!["--no-project"],
            2 => vec!["--project", "甲"],
            _ if labels.sync_tag.is_none() => vec!["--sync-tag", "两台"],
            _ => vec!["--no-sync-tag"],
        };
        pairs.into_iter().map(str::to_owned).collect()
    }

    pub fn snapshots(&self) -> Vec<Vec<PathBuf>> {
        let stores = self.stores.iter();
        stores
            .map(|store| found::names(&store.join("snapshots")))
            .collect()
    }

    pub fn command(&self, deed: Deed, target: Option<&str>, more: &[String]) -> Command {
        let mut command = self.place.command();
        let now = jiff::Timestamp::from_second(self.moment()).unwrap();
        command
            .env("WBHOME_NOW", now.to_string())
            .args(deed.verb())
            .args(target)
            .args(more)
            .args(["--json", "--lock-wait", "60s", "--no-progress"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it; `None` when it was killed.
    pub fn carry_out(
        &mut self,
        deed: Deed,
        target: Option<&str>,
        more: &[String],
        trouble: Trouble,
    ) -> Option<Ran> {
        if trouble.full {
            let left = self.rng.below(600_000);
            self.mount.as_ref().unwrap().fill_roughly(left);
            self.effect("disk full", 1);
        }
        let usual = self.takes.get(&deed).copied();
        let usual = usual.unwrap_or(Duration::from_millis(100));
        let after = self.rng.within(usual);
        let began = Instant::now();
        let company = trouble.company.map(|company| {
            let child = self.command(company, None, &[]).spawn().unwrap();
            (company, child)
        });
        let mut child = self.command(deed, target, more).spawn().unwrap();
        let killed = trouble.kill && kill_after(&mut child, after);
        let ran = Ran::of(child.wait_with_output().unwrap());
        let took = began.elapsed();
        if let Some((company, child)) = company {
            let ran = Ran::of(child.wait_with_output().unwrap());
            self.ended_right(company, &ran, trouble.full, false);
        }
        if trouble.full {
            self.mount.as_ref().unwrap().make_room();
        }
        let tally = self.tally.entry(deed).or_default();
        if trouble.full {
            tally.full += 1;
        }
        if killed && ran.code.is_none() {
            tally.killed += 1;
            return None;
        }
        match ran.code {
            Some(0) => tally.done += 1,
            _ => tally.otherwise += 1,
        }
        self.takes.insert(deed, (usual * 3 + took) / 4);
        let rests = target.is_some_and(|id| self.all()[id].rests);
        self.ended_right(deed, &ran, trouble.full, rests);
        Some(ran)
    }

    pub fn ended_right(&mut self, deed: Deed, ran: &Ran, full: bool, rests: bool) {
        let code = ran.code.unwrap_or(-1);
        // Nothing but a writer keeps a session where it is.
        let mut right = deed.ends().contains(&code) && !(rests && code != 0);
        right |= full && [0, 1, 3].contains(&code);
        // Behind the newest snapshot, nothing is pruned, and that is told.
        right |= self.back > 0 && deed.backs_up() && [1, 3].contains(&code);
        if !right || ran.stderr.contains("panicked") {
            self.fail(&[format!("{deed:?} ended so: {ran:#?}")]);
        }
    }

    /// The next command that takes the lock completes what was left.
    pub fn recover(&mut self) {
        let mut command = self.command(Deed::Index, None, &[]);
        let ran = Ran::of(command.output().unwrap());
        if ran.code != Some(0) {
            self.fail(&[format!("the next command ended so: {ran:#?}")]);
        }
        self.effect("recovered", 1);
    }
}

/// Whether it was still running then.
fn kill_after(child: &mut Child, after: Duration) -> bool {
    let until = Instant::now() + after;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().is_ok()
}
