//! What a drill has found, and where that is kept.

use std::ffi::OsStr;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use super::super::rebuild::{Missing, Older};
use crate::base::wire::{ExactPath, WirePath};
use crate::base::{Error, Result};
use crate::check::Finding;
use crate::disk;
use crate::history::{Damage, Told};
use crate::home::Home;

/// A kind of data, as a person thinks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// Session folders.
    Sessions,
    /// Sessions in `archive/`.
    Archives,
    /// `agents/`.
    Agents,
    /// The index, settings, records, views, and single files.
    Home,
    /// Other folders in the home.
    Folders,
    /// The agent application's conversations.
    Conversations,
    /// Its databases.
    Databases,
    /// Its settings, plans and memory.
    Settings,
    /// The commits.
    History,
}

/// What would become of a kind of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfKind {
    /// Which.
    pub data: Data,
    /// How many things of it the live home has.
    pub things: u64,
    /// How many would be back as they are now.
    pub as_now: u64,
    /// How many would be back as they were.
    pub as_then: u64,
    /// As of when: the oldest of these.
    pub as_of: Option<Timestamp>,
    /// How many of their files are newer in the live home.
    pub newer_files: u64,
    /// How many would be lost.
    pub lost: u64,
}

/// Something that would be back as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Then {
    /// Of which kind.
    pub data: Data,
    /// How a person calls it.
    pub thing: String,
    /// As of when.
    pub as_of: Timestamp,
    /// How many of its files are newer in the live home.
    pub newer_files: u64,
    /// The first of them, below the thing.
    #[serde(flatten)]
    pub first: WirePath,
}

/// Something that would be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Of which kind.
    pub data: Data,
    /// How a person calls it.
    pub thing: String,
    /// Why.
    pub why: String,
}

/// A file that came back and is not what its times say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// How a person calls the thing that it belongs to.
    pub thing: String,
    /// Which, below the thing.
    #[serde(flatten)]
    pub path: WirePath,
    /// What is wrong.
    pub why: String,
}

/// What no backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlindSpot {
    /// Where it lies.
    #[serde(flatten)]
    pub path: WirePath,
    /// How many files.
    pub files: u64,
    /// And bytes.
    pub bytes: u64,
    /// Why it is not held.
    pub why: String,
}

/// The repository that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repository {
    /// Where it lies.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whether that is in the home.
    pub in_home: bool,
    /// Its newest commit.
    pub tip: Told,
    /// How many files came from it because they are newer there.
    pub newer_files: u64,
}

/// What became of `[drill] command`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// The command.
    pub command: String,
    /// Its exit code; none when a signal ended it.
    pub exit: Option<i32>,
}

/// The report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When the drill was begun.
    pub at: Timestamp,
    /// The home.
    pub home: ExactPath,
    /// The store.
    pub store: ExactPath,
    /// Its newest snapshot.
    pub snapshot: Timestamp,
    /// The repository, if there is one.
    pub repository: Option<Repository>,
    /// Whether everything would be back, at least in an earlier state.
    pub recovered: bool,
    /// What would become of it, kind by kind.
    pub kinds: Vec<OfKind>,
    /// What would be lost.
    pub lost: Vec<Lost>,
    /// What came from an older pack, because the newest is broken.
    pub older: Vec<Older>,
    /// What in a thing would not come back.
    pub missing: Vec<Missing>,
    /// Files that differ from the live ones, though their times say that nobody has changed them.
    pub wrong: Vec<Wrong>,
    /// What would be back as it was.
    pub then: Vec<Then>,
    /// How many entries `wbhome index` would change in the rebuilt home, beyond those in the live one.
    pub index_changes: u64,
    /// What is wrong with the rebuilt home, and not with the live one.
    pub findings: Vec<Finding>,
    /// What is wrong with the rebuilt history.
    pub history: Vec<Damage>,
    /// How many databases were checked.
    pub databases: u64,
    /// Those that are not sound.
    pub unsound: Vec<Wrong>,
    /// What the user's own test said.
    pub command: Option<Command>,
    /// What no backup holds.
    pub blind_spots: Vec<BlindSpot>,
    /// How old the oldest state is among what differs from now, in seconds (RPO).
    pub rpo_seconds: Option<u64>,
    /// How long the rebuilding took (RTO).
    pub rto_seconds: f64,
    /// Files that were compared.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where the rebuilt home was left.
    pub kept: Option<ExactPath>,
    /// What else a person should know.
    pub warnings: Vec<String>,
}

impl Report {
    /// Whether everything would be back, at least in an earlier state, and is sound.
    pub(super) fn is_recovered(&self) -> bool {
        self.lost.is_empty()
            && self.older.is_empty()
            && self.missing.iter().all(|missing| missing.vanished)
            && self.wrong.is_empty()
            && self.unsound.is_empty()
            && self.history.is_empty()
            && self.command.as_ref().is_none_or(|run| run.exit == Some(0))
    }

    /// Keeps the report in the home.
    ///
    /// # Errors
    /// What can not be written.
    pub(super) fn keep(&self, home: &Home) -> Result<PathBuf> {
        let folder = home.drills();
        disk::create_private_folder(&folder)?;
        let text = serde_json::to_value(self)
            .and_then(|value| {
                let mut document = serde_json::Map::new();
                document.insert("schema".into(), "wbhome/drill/1".into());
                if let serde_json::Value::Object(fields) = value {
                    document.extend(fields);
                }
                serde_json::to_vec_pretty(&document)
            })
            .map_err(|e| Error::io("can not write the report into", &folder, e))?;
        let stamp = self.at.strftime(STAMP).to_string();
        // Two in one second.
        for n in 1.. {
            let name = match n {
                1 => format!("{stamp}.json"),
                n => format!("{stamp}-{n}.json"),
            };
            let path = folder.join(name);
            if !disk::exists(&path) {
                disk::write_new(&path, &text, 0o600)?;
                return Ok(path);
            }
        }
        Ok(folder)
    }
}

/// How a report is named.
const STAMP: &str = "%Y%m%dT%H%M%SZ";

/// When the last drill of a home was, whatever it found.
///
/// # Errors
/// When the reports can not be listed.
pub fn last_drill(home: &Home) -> Result<Option<Timestamp>> {
    let moment = |name: &OsStr| {
        let stamp = name.to_str()?.strip_suffix(".json")?.split('-').next()?;
        let at = jiff::civil::DateTime::strptime(STAMP, stamp).ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(at).ok()
    };
    let names = disk::read_dir_names(&home.drills())?;
    Ok(names.iter().filter_map(|(name, _)| moment(name)).max())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn the_last_drill_is_the_newest_report() {
        let place = testing::home();
        assert_eq!(last_drill(&place.home).unwrap(), None);
        place.put(".wbhome/drills/20240603T030000Z.json", "{}");
        place.put(".wbhome/drills/20240610T030000Z-2.json", "{}");
        place.put(".wbhome/drills/notes.txt", "99990101T000000Z");
        let last = last_drill(&place.home).unwrap().unwrap();
        assert_eq!(last.to_string(), "2024-06-10T03:00:00Z");
    }
}
