//! What a night has done: kept below `.wbhome/runs/`, handed to the hook, printed as JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

use super::{Hook, told};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Exit, Result};
use crate::disk::{self, FileKind};
use crate::home::Home;

/// So many records are kept.
const KEPT: usize = 100;

/// A night.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The home.
    #[serde(flatten)]
    pub home: WirePath,
    /// Its id.
    pub id: String,
    /// The version of the program.
    pub program: &'static str,
    /// When it began.
    pub began: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The gravest of all exit codes.
    #[serde(serialize_with = "code")]
    pub exit: Exit,
    /// What was done, in order.
    pub stages: Vec<Stage>,
    /// What a person should know though nothing has failed.
    pub warnings: Vec<Warning>,
    /// What was run at the end; none when nothing is set.
    pub hook: Option<Hook>,
    /// Where this is kept; none when it could not be, or nothing was done.
    pub record: Option<WirePath>,
    /// Why it could not be kept.
    pub not_kept: Option<Trouble>,
}

/// One stage of it.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// The store that it was about, if one.
    pub store: Option<WirePath>,
    /// When it began.
    pub began: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What came of it.
    #[serde(serialize_with = "code")]
    pub exit: Exit,
    /// What it did, for a person.
    pub did: String,
    /// The same in numbers.
    pub counts: BTreeMap<&'static str, u64>,
    /// Why it was not done, when that is as it should be.
    pub skipped: Option<String>,
    /// What went wrong.
    pub troubles: Vec<Trouble>,
    /// What a person may want to know.
    pub notes: Vec<String>,
    /// What of it stands among the warnings of the night.
    #[serde(skip)]
    pub(super) warnings: Vec<Warning>,
    #[serde(skip)]
    begun: Instant,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What, where and why.
    pub message: String,
    /// What a person can do about it.
    pub hints: Vec<String>,
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What.
    pub message: String,
    /// What a person can do about it.
    pub hints: Vec<String>,
    /// Whether it is told this night though nobody watches. What is told every night is read by nobody.
    pub pressing: bool,
}

fn code<S: serde::Serializer>(exit: &Exit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(exit.code())
}

fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

impl Stage {
    /// A stage that begins now.
    pub(super) fn begin(name: &'static str, store: Option<&Path>, context: &Context) -> Stage {
        Stage {
            name,
            store: store.map(|store| store.to_path_buf().into()),
            began: context.clock.now(),
            took_ms: 0,
            exit: Exit::Done,
            did: String::new(),
            counts: BTreeMap::new(),
            skipped: None,
            troubles: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            begun: Instant::now(),
        }
    }

    /// The stage that does this; what goes wrong stands in it.
    pub(super) fn of(
        name: &'static str,
        store: Option<&Path>,
        context: &Context,
        run: impl FnOnce(&mut Stage) -> Result<()>,
    ) -> Stage {
        let mut stage = Stage::begin(name, store, context);
        if context.stop.raised() {
            stage.exit = Exit::Interrupted;
            stage.skipped = Some("interrupted before it began".to_owned());
        } else if let Err(error) = run(&mut stage) {
            stage.fail(&error);
        }
        stage.took_ms = milliseconds(stage.begun.elapsed());
        stage
    }

    /// Something went wrong.
    pub(super) fn fail(&mut self, error: &Error) {
        let (exit, trouble) = told(error);
        self.exit = self.exit.merge(exit);
        self.troubles.push(trouble);
    }

    /// Something was not done wholly.
    pub(super) fn lacks(&mut self, message: impl Into<String>, hints: Vec<String>) {
        self.exit = self.exit.merge(Exit::Partial);
        let message = message.into();
        self.troubles.push(Trouble { message, hints });
    }

    /// It is not done, and that is as it should be.
    pub(super) fn skip(&mut self, why: impl Into<String>) {
        self.skipped = Some(why.into());
    }

    /// What a person has to know this very night, though nothing has failed.
    pub(super) fn warn(&mut self, message: String, hint: &str) {
        self.warnings.push(Warning {
            message,
            hints: vec![hint.to_owned()],
            pressing: true,
        });
    }

    /// A number of what it did.
    pub(super) fn count(&mut self, what: &'static str, n: u64) {
        self.counts.insert(what, n);
    }
}

impl Record {
    pub(super) fn begin(home: &Home, context: &Context) -> Record {
        Record {
            home: home.root().to_path_buf().into(),
            id: home.id().to_owned(),
            program: env!("CARGO_PKG_VERSION"),
            began: context.clock.now(),
            took_ms: 0,
            exit: Exit::Done,
            stages: Vec::new(),
            warnings: Vec::new(),
            hook: None,
            record: None,
            not_kept: None,
        }
    }

    pub(super) fn take_time(&mut self, took: Duration) {
        self.took_ms = milliseconds(took);
    }

    /// As it is kept and handed on.
    pub(super) fn document(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: &'static str,
            #[serde(flatten)]
            record: &'a Record,
        }
        let document = Document {
            schema: "wbhome/nightly/1",
            record: self,
        };
        let mut text = serde_json::to_vec(&document).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Writes it below `.wbhome/runs/`, and removes those that are old. Gives what was written. A disk that is full must not
    /// keep the rest from being told.
    pub(super) fn keep(&mut self, home: &Home) -> Vec<u8> {
        let runs = home.runs();
        let written = disk::create_private_folder(&runs)
            .and_then(|()| free_name(&runs, self.began))
            .and_then(|path| {
                self.record = Some(path.clone().into());
                let text = self.document();
                disk::write_new(&path, &text, 0o600).map(|()| text)
            })
            .and_then(|text| retire(&runs).map(|()| text));
        written.unwrap_or_else(|error| {
            self.unkept(&error);
            Vec::new()
        })
    }

    /// Writes it once more, with what has come of the hook.
    pub(super) fn keep_again(&mut self, kept: &[u8]) {
        if let (Some(path), false) = (&self.record, kept.is_empty()) {
            let written = disk::replace(path, Some(kept), &self.document(), 0o600);
            if let Err(error) = written {
                self.unkept(&error);
            }
        }
    }

    fn unkept(&mut self, error: &Error) {
        let (exit, mut trouble) = told(error);
        trouble.message = format!(
            "the record of the night could not be kept: {}",
            trouble.message
        );
        self.exit = self.exit.merge(exit);
        self.record = None;
        self.not_kept = Some(trouble);
    }
}

/// The name of a record: its moment, and a number where two nights begin in one second.
fn free_name(runs: &Path, began: Timestamp) -> Result<PathBuf> {
    let stamp = began.strftime("%Y%m%dT%H%M%SZ").to_string();
    let names = (1..1000).map(|n| match n {
        1 => format!("{stamp}.json"),
        n => format!("{stamp}_{n}.json"),
    });
    let mut paths = names.map(|name| runs.join(name));
    let free = paths.find(|path| !disk::exists(path));
    free.ok_or_else(|| Error::failed("a thousand nights have begun in this second, in").at(runs))
}

/// The moment and the number in the name of a record; `None` for what is none.
fn read_name(name: &str) -> Option<(Timestamp, u32)> {
    let name = name.strip_suffix(".json")?;
    let (stamp, n) = match name.split_once('_') {
        Some((stamp, n)) => (stamp, n.parse().ok()?),
        None => (name, 1),
    };
    let form = "%Y%m%dT%H%M%SZ";
    let at = jiff::civil::DateTime::strptime(form, stamp).ok()?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(at).ok()?;
    (stamp.len() == 16).then_some((at, n))
}

/// What is known of a night that has been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// When it began, as the name of its record says.
    pub began: Timestamp,
    /// Its exit code; `None` when the record can not be understood.
    pub exit: Option<u8>,
    /// The stages that did not end well.
    pub failed: Vec<String>,
}

/// The last night of a home, by its newest record.
///
/// # Errors
/// When the records can not be listed or read.
pub fn last_night(home: &Home) -> Result<Option<Past>> {
    #[derive(Default, serde::Deserialize)]
    struct Short {
        exit: Option<u8>,
        #[serde(default)]
        stages: Vec<ShortStage>,
    }
    #[derive(serde::Deserialize)]
    struct ShortStage {
        name: String,
        exit: u8,
    }
    let runs = home.runs();
    let names = disk::read_dir_names(&runs)?;
    let newest = names
        .iter()
        .filter(|(_, kind)| *kind == FileKind::File)
        .filter_map(|(name, _)| Some((read_name(name.to_str()?)?, name)))
        .max();
    let Some(((began, _), name)) = newest else {
        return Ok(None);
    };
    let text = disk::read_own(&runs.join(name))?.unwrap_or_default();
    let short: Short = serde_json::from_slice(&text).unwrap_or_default();
    let failed = short.stages.into_iter().filter(|stage| stage.exit != 0);
    Ok(Some(Past {
        began,
        exit: short.exit,
        failed: failed.map(|stage| stage.name).collect(),
    }))
}

/// Removes the records beyond the newest; whatever else lies there stays.
fn retire(runs: &Path) -> Result<()> {
    let names = disk::read_dir_names(runs)?;
    let mut records: Vec<_> = names
        .iter()
        .filter(|(_, kind)| *kind == FileKind::File)
        .filter_map(|(name, _)| Some((read_name(name.to_str()?)?, name)))
        .collect();
    records.sort();
    let old = records.len().saturating_sub(KEPT);
    for (_, name) in &records[..old] {
        disk::remove_file(&runs.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_hundred_stay_and_so_does_what_is_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path();
        for n in 0..130 {
            let day = jiff::civil::date(2024, 1, 1).saturating_add(jiff::Span::new().days(n));
            let name = day.strftime("%Y%m%dT030000Z.json").to_string();
            std::fs::write(runs.join(name), "{}").unwrap();
        }
        for other in ["notes.json", "20240101T030000Z.json.bak", "2024.json"] {
            std::fs::write(runs.join(other), "mine").unwrap();
        }
        std::fs::create_dir(runs.join("20230101T030000Z.json")).unwrap();
        retire(runs).unwrap();
        let mut left: Vec<String> = std::fs::read_dir(runs)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), 104);
        assert!(
            left.contains(&"20240131T030000Z.json".to_owned()),
            "{left:?}"
        );
        assert!(!left.contains(&"20240130T030000Z.json".to_owned()));
    }

    #[test]
    fn two_nights_in_one_second_have_two_names() {
        let folder = tempfile::tempdir().unwrap();
        let began: Timestamp = "2024-06-15T03:00:00Z".parse().unwrap();
        for expected in ["20240615T030000Z.json", "20240615T030000Z_2.json"] {
            let path = free_name(folder.path(), began).unwrap();
            assert_eq!(path.file_name().unwrap(), expected);
            std::fs::write(path, "").unwrap();
        }
        let number = |name| read_name(name).map(|(_, n)| n);
        assert_eq!(number("20240615T030000Z_2.json"), Some(2));
        assert_eq!(number("20240615T030000Z.json"), Some(1));
        assert_eq!(number("20240615T03000Z.json"), None);
    }
}
