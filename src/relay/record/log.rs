//! `.wbhome/relay.log`: what a sync is about to leave in the relay, a line a session. After a kill it tells what is ours
//! although the record does not know it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::{Begun, Holds, held, told};
use crate::base::wire::ExactPath;
use crate::base::{Error, Result};
use crate::disk::{self, Lines, Written};
use crate::home::{Home, LockedHome};

/// What was begun in the relay in this folder, by session.
pub(super) fn read(home: &Home, relay: &Path) -> Result<BTreeMap<String, Begun>> {
    let mut all: BTreeMap<String, Begun> = BTreeMap::new();
    Lines::read(&log_file(home), |line| {
        // A torn last line: what it speaks of was not begun.
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        if *line.relay != *relay {
            return;
        }
        let session = all.entry(line.session).or_default();
        for (path, kind, value) in line.names {
            let holds = kind.and_then(|kind| held(kind, &value));
            add(session, path.0, holds);
        }
    })?;
    Ok(all)
}

fn log_file(home: &Home) -> PathBuf {
    home.own().join("relay.log")
}

/// What a session's names will hold, before that is so. A name of no kind is about to be removed.
#[derive(Serialize, Deserialize)]
struct Line {
    relay: ExactPath,
    session: String,
    names: Vec<(ExactPath, Option<char>, String)>,
}

fn add(begun: &mut Begun, path: PathBuf, holds: Option<Holds>) {
    let known = begun.entry(path).or_default();
    if !known.contains(&holds) {
        known.push(holds);
    }
}

/// Adds what was begun later.
pub fn merge(begun: &mut Begun, later: &Begun) {
    for (path, all) in later {
        for holds in all {
            add(begun, path.clone(), holds.clone());
        }
    }
}

/// Puts a log in the place of the one that is there.
pub(super) fn write(
    home: &LockedHome,
    relay: &Path,
    begun: &BTreeMap<String, Begun>,
) -> Result<()> {
    let path = log_file(home);
    if begun.is_empty() {
        return disk::remove_file(&path);
    }
    let mut text = Vec::new();
    for (session, begun) in begun {
        let names = begun.iter().flat_map(|(path, all)| {
            let one = |holds: &Option<Holds>| {
                let (kind, value) = holds.as_ref().map(told).unzip();
                (path.clone().into(), kind, value.unwrap_or_default())
            };
            all.iter().map(one)
        });
        let line = Line {
            relay: relay.to_path_buf().into(),
            session: session.clone(),
            names: names.collect(),
        };
        serde_json::to_writer(&mut text, &line)
            .map_err(|e| Error::io("can not write", &path, e))?;
        text.push(b'\n');
    }
    let mut former = disk::read_own(&path)?;
    while let Written::Changed(now) = disk::replace(&path, former.as_deref(), &text, 0o600)? {
        former = now;
    }
    Ok(())
}

/// The log, open for writing; shared by all threads.
#[derive(Debug)]
pub struct Log {
    lines: Mutex<(Lines, BTreeMap<String, Begun>)>,
    path: PathBuf,
    relay: PathBuf,
}

impl Log {
    /// Opens it.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn open(home: &LockedHome, relay: &Path) -> Result<Log> {
        let path = log_file(home);
        let lines = Lines::open(&path).map_err(|e| Error::io("can not write", &path, e))?;
        Ok(Log {
            lines: Mutex::new((lines, BTreeMap::new())),
            path,
            relay: relay.to_path_buf(),
        })
    }

    /// Writes down what is about to be done with a session.
    ///
    /// # Errors
    /// When it can not be written: then it may not be done.
    pub fn begin<'a>(
        &self,
        session: &str,
        names: impl Iterator<Item = (&'a Path, Option<&'a Holds>)>,
    ) -> Result<()> {
        let mut line = Line {
            relay: self.relay.clone().into(),
            session: session.to_owned(),
            names: Vec::new(),
        };
        let mut begun = Begun::new();
        for (path, holds) in names {
            let (kind, value) = holds.map(told).unzip();
            let value = value.unwrap_or_default();
            line.names.push((path.to_path_buf().into(), kind, value));
            add(&mut begun, path.to_path_buf(), holds.cloned());
        }
        let fail = |e: std::io::Error| Error::io("can not write", &self.path, e);
        let mut text = serde_json::to_vec(&line).map_err(|e| fail(e.into()))?;
        text.push(b'\n');
        let mut log = self.locked();
        log.0.append(&text).map_err(fail)?;
        merge(log.1.entry(session.to_owned()).or_default(), &begun);
        Ok(())
    }

    /// What was begun of a session since the log was opened.
    pub fn begun(&self, session: &str) -> Begun {
        self.locked().1.get(session).cloned().unwrap_or_default()
    }

    /// Keeps no more in mind what was begun of a session: it was done, and nobody asks for it any more.
    pub fn forget(&self, session: &str) {
        self.locked().1.remove(session);
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, (Lines, BTreeMap<String, Begun>)> {
        match self.lines.lock() {
            Ok(log) => log,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
