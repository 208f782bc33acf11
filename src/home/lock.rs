//! One writer at a time.

use std::io;
use std::ops::Deref;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Home;
use super::journal::{self, Settled};
use crate::base::{Context, Error, Kind, Result, human};
use crate::disk::{self, FileLock, Finished, LockAttempt};

const PAUSE: Duration = Duration::from_millis(25);

/// A home that nobody else changes as long as this value lives. Only [`Home::lock`] makes one.
#[derive(Debug)]
pub struct LockedHome {
    home: Home,
    settled: Vec<Settled>,
    lock: FileLock,
    /// The second and the number of the last act that was made in the trash.
    pub(super) last_act: Mutex<Option<(String, u64)>>,
}

impl LockedHome {
    /// What a command that was killed had left and that was settled when the lock was taken: a line each for
    /// the person.
    pub fn settled(&self) -> &[Settled] {
        &self.settled
    }

    /// Runs the installed `git`, which changes the repository, in the home. Nobody else changes the home before git has
    /// ended, even when this process is killed meanwhile. `None` when it is not installed.
    ///
    /// # Errors
    /// When it is there and can not be started.
    pub fn run_git(&self, arguments: &[&str]) -> io::Result<Option<Finished>> {
        let run = |lock| disk::run_git(self.root(), arguments, false, Some(lock));
        self.lock.lent("git", run)
    }
}

impl Deref for LockedHome {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Home {
    /// Takes the lock, waiting for at most `wait`, and settles what a killed command left. `command` is the
    /// verb that others are told of while they wait.
    ///
    /// # Errors
    /// [`Kind::Locked`] with the holder's name, [`Kind::Interrupted`], or a journal that can not be settled.
    pub fn lock(&self, wait: Duration, command: &str, context: &Context) -> Result<LockedHome> {
        let locked = self.lock_while_moving(wait, command, context)?;
        match self.unfinished_move()? {
            true => Err(
                Error::failed("the home is not complete yet, its migration was stopped:")
                    .at(self.root())
                    .hint("`wbhome migrate status` shows the command that goes on with it"),
            ),
            false => Ok(locked),
        }
    }

    /// Whether the newest migration into this home has begun and not ended.
    ///
    /// # Errors
    /// When the migrations can not be listed.
    pub fn unfinished_move(&self) -> Result<bool> {
        let all = self.migrations();
        let newest = disk::read_dir_names(&all)?.into_iter().next_back();
        Ok(newest.is_some_and(|(name, _)| {
            let record = all.join(name);
            disk::exists(&record.join("plan.json")) && !disk::exists(&record.join("outcome.json"))
        }))
    }

    /// Like [`Home::lock`], for the migration itself, which goes on in a home that is not complete.
    ///
    /// # Errors
    /// As [`Home::lock`].
    pub fn lock_while_moving(
        &self,
        wait: Duration,
        command: &str,
        context: &Context,
    ) -> Result<LockedHome> {
        let lock = self.wait_for_lock(wait, command, context)?;
        let mut locked = LockedHome {
            home: self.clone(),
            settled: Vec::new(),
            lock,
            last_act: Mutex::default(),
        };
        locked.settled = journal::settle(&locked, context)?;
        Ok(locked)
    }

    fn wait_for_lock(&self, wait: Duration, command: &str, context: &Context) -> Result<FileLock> {
        let path = self.lock_file();
        let since = context.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ");
        let holder = format!(
            "wbhome {command} (process {}, since {since})",
            std::process::id()
        );
        let begun = Instant::now();
        loop {
            let attempt = FileLock::attempt(&path, &holder)
                .map_err(|e| Error::io("can not take the lock", &path, e))?;
            let other = match attempt {
                LockAttempt::Got(lock) => return Ok(lock),
                LockAttempt::HeldBy(other) => other,
            };
            context
                .stop
                .check()
                .map_err(|e| e.hint("nothing was changed"))?;
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.locked_by(&other));
            }
            std::thread::sleep(left.min(PAUSE));
        }
    }

    fn locked_by(&self, holder: &str) -> Error {
        let holder = match holder.trim() {
            "" => "another process".into(),
            text => human::escape(text),
        };
        Error::new(Kind::Locked, format!("the home is in use by {holder}:"))
            .at(self.root())
            .hint("wait until it is done, or longer: --lock-wait 10m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{NoProgress, Stop};
    use crate::home::testing;

    #[test]
    fn the_second_is_told_who_holds_it() {
        let place = testing::home();
        let held = place.locked("migrate");
        let stop = Stop::new();
        let context = Context {
            clock: &place.clock,
            progress: &NoProgress,
            stop: &stop,
        };
        let error = place
            .home
            .lock(Duration::from_millis(60), "label", &context)
            .unwrap_err();
        assert_eq!(error.kind(), Kind::Locked);
        let text = error.to_string();
        assert!(text.contains("wbhome migrate (process "), "{text}");
        assert!(text.contains("since 2024-06-15T"), "{text}");
        stop.raise();
        let wait = Duration::from_secs(60);
        let error = place.home.lock(wait, "label", &context).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
        drop(held);
        place.locked("label");
    }
}
