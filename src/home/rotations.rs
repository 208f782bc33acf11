//! `.wbhome/rotate.json`: when each log was cut last, and what that has left at its head.
//!
//! An entry a line: of a file that a power cut or an editor has torn, every line that can be understood is kept. One that
//! is lost costs little: its log counts as seen for the first time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Home, LockedHome, RelPath, trash};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Kind, Result};
use crate::disk::{self, Written};

const FORMAT: u64 = 1;
const LIMIT: u64 = 1 << 30;

/// A log that was not found for so long is forgotten.
const FORGOTTEN: i64 = 400 * 86_400;

/// What is known of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// When it was seen for the first time.
    pub seen: Timestamp,
    /// When it was cut last.
    #[serde(default)]
    pub cut: Option<Timestamp>,
    /// The number of that cut.
    #[serde(default)]
    pub id: Option<String>,
    /// How long the blank line is that was left at its head.
    #[serde(default)]
    pub blank: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    path: WirePath,
    #[serde(flatten)]
    known: Known,
}

/// What is known of all logs, by their path: relative to the home, or absolute where they lie in the application's own
/// folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotations {
    known: BTreeMap<PathBuf, Known>,
    /// So many entries could not be understood, or none of the file could.
    broken: Option<u64>,
    /// What the file held when it was read.
    content: Option<Vec<u8>>,
    /// So many notes have not been written.
    unwritten: usize,
}

impl Rotations {
    /// Reads it.
    ///
    /// # Errors
    /// When it can not be read, or a newer program has written it. What can not be understood is left out.
    pub fn read(home: &Home) -> Result<Rotations> {
        #[derive(Deserialize)]
        struct Document {
            format: u64,
            logs: Vec<Line>,
        }
        let path = home.rotate_file();
        let Some(content) = disk::read_small(&path, LIMIT)? else {
            return Ok(Rotations::default());
        };
        let whole = serde_json::from_slice::<Document>(&content).ok();
        let (logs, broken) = match whole.filter(|document| document.format <= FORMAT) {
            Some(document) => (document.logs, None),
            None => salvage(&path, &content)?,
        };
        let known = logs.into_iter().map(|line| (line.path.0, line.known));
        Ok(Rotations {
            known: known.collect(),
            broken,
            content: Some(content),
            unwritten: 0,
        })
    }

    /// What is known of a log.
    pub fn of(&self, log: &Path) -> Option<&Known> {
        self.known.get(log)
    }

    /// How many entries could not be understood, when some could not.
    pub fn broken(&self) -> Option<u64> {
        self.broken
    }

    /// Notes that a log is there. Whether that is new.
    pub fn see(&mut self, log: &Path, now: Timestamp) -> bool {
        if self.known.contains_key(log) {
            return false;
        }
        let known = Known {
            seen: now,
            cut: None,
            id: None,
            blank: 0,
        };
        self.known.insert(log.to_path_buf(), known);
        true
    }

    /// Notes that a log was cut.
    pub fn note_cut(&mut self, log: &Path, at: Timestamp, id: &str, blank: u64) {
        let seen = self.of(log).map_or(at, |known| known.seen);
        let known = Known {
            seen,
            cut: Some(at),
            id: Some(id.to_owned()),
            blank,
        };
        self.known.insert(log.to_path_buf(), known);
    }

    /// Forgets logs that were last heard of long ago, but for those that `is_there` knows. Whether there were any.
    pub fn forget(&mut self, now: Timestamp, is_there: impl Fn(&Path) -> bool) -> bool {
        let before = self.known.len();
        let limit = now.as_second().saturating_sub(FORGOTTEN);
        self.known.retain(|path, known| {
            known.cut.unwrap_or(known.seen).as_second() >= limit || is_there(path)
        });
        self.known.len() < before
    }

    /// Writes it, unless it is long and little has been noted since: to write all of it after each of ten thousand cuts
    /// takes minutes. [`Rotations::write_rest`] has to be called in the end; a kill before costs that some logs are due once
    /// more.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write_soon(&mut self, home: &LockedHome, context: &Context) -> Result<()> {
        self.unwritten += 1;
        match self.unwritten > self.known.len() / 500 {
            true => self.write(home, context),
            false => Ok(()),
        }
    }

    /// Writes what [`Rotations::write_soon`] has left.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write_rest(&mut self, home: &LockedHome, context: &Context) -> Result<()> {
        match self.unwritten {
            0 => Ok(()),
            _ => self.write(home, context),
        }
    }

    /// Writes it. What could not be understood goes to the trash.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write(&mut self, home: &LockedHome, context: &Context) -> Result<()> {
        let path = home.rotate_file();
        if self.broken.take().is_some() {
            let why = "it could not be understood wholly";
            trash::put(home, &RelPath::new(".wbhome/rotate.json")?, why, context)?;
            self.content = None;
        }
        let content = self
            .text()
            .map_err(|e| Error::io("can not write", &path, e))?;
        while let Written::Changed(now) =
            disk::replace(&path, self.content.as_deref(), &content, 0o600)?
        {
            self.content = now;
        }
        self.content = Some(content);
        self.unwritten = 0;
        Ok(())
    }

    fn text(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = format!("{{\"format\": {FORMAT}, \"logs\": [").into_bytes();
        for (n, (path, known)) in self.known.iter().enumerate() {
            text.extend_from_slice(if n == 0 { b"\n" } else { b",\n" });
            let line = Line {
                path: path.clone().into(),
                known: known.clone(),
            };
            serde_json::to_writer(&mut text, &line)?;
        }
        text.extend_from_slice(b"\n]}\n");
        Ok(text)
    }
}

/// Every entry that can be understood, and how many can not.
fn salvage(path: &Path, content: &[u8]) -> Result<(Vec<Line>, Option<u64>)> {
    let whole = serde_json::from_slice::<Value>(content).ok();
    let format = whole
        .as_ref()
        .and_then(|whole| whole.get("format")?.as_u64());
    if format.is_some_and(|format| format > FORMAT) {
        return Err(Error::new(Kind::Newer, "was written by a newer wbhome:").at(path));
    }
    let mut broken = 0;
    let mut logs = Vec::new();
    let mut take = |line: Option<Line>| match line {
        Some(line) => logs.push(line),
        None => broken += 1,
    };
    match whole
        .as_ref()
        .and_then(|whole| whole.get("logs")?.as_array())
    {
        Some(entries) => entries
            .iter()
            .for_each(|entry| take(serde_json::from_value(entry.clone()).ok())),
        None => content
            .split(|b| *b == b'\n')
            .map(|line| {
                line.trim_ascii()
                    .strip_suffix(b",")
                    .unwrap_or(line.trim_ascii())
            })
            .filter(|line| line.len() > 2 && !line.starts_with(b"{\"format\""))
            .for_each(|line| take(serde_json::from_slice(line).ok())),
    }
    Ok((logs, Some(broken)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn what_is_torn_costs_only_itself() {
        let place = testing::home();
        let home = place.locked("rotate");
        let context = place.context();
        let mut all = Rotations::read(&home).unwrap();
        let now = context.clock.now();
        for n in 0..9 {
            assert!(all.see(Path::new(&format!("sessions/{n}/logs/a.log")), now));
        }
        all.note_cut(Path::new("sessions/3/logs/a.log"), now, "b", 77);
        all.write(&home, &context).unwrap();
        let read = Rotations::read(&home).unwrap();
        assert_eq!(read, all);
        assert_eq!(
            read.of(Path::new("sessions/3/logs/a.log")).unwrap().blank,
            77
        );
        let text = place.get(".wbhome/rotate.json").unwrap();
        for (torn, left) in [
            (text[..text.len() * 2 / 3].to_owned(), 5..9),
            (text.replacen("\"seen\":\"2", "\"seen\":\"x", 1), 8..9),
            (text.replacen("{\"path\"", "\0\0{\"path\"", 2), 7..8),
            (String::new(), 0..1),
            ("[]".to_owned(), 0..1),
        ] {
            place.put(".wbhome/rotate.json", &torn);
            let mut read = Rotations::read(&home).unwrap();
            assert!(
                left.contains(&read.known.len()),
                "{} {torn}",
                read.known.len()
            );
            assert!(read.broken().is_some(), "{torn}");
            read.write(&home, &context).unwrap();
            assert_eq!(Rotations::read(&home).unwrap().known, read.known);
            assert_eq!(Rotations::read(&home).unwrap().broken(), None);
        }
        // What could not be understood is in the trash, each time.
        assert_eq!(disk::read_dir_names(&home.trash()).unwrap().len(), 5);
        place.put(".wbhome/rotate.json", "{\"format\": 2, \"logs\": 7}");
        assert_eq!(Rotations::read(&home).unwrap_err().kind(), Kind::Newer);
    }

    #[test]
    fn a_log_that_is_gone_for_long_is_forgotten() {
        let mut all = Rotations::default();
        let day = |n: i64| Timestamp::from_second(n * 86_400).unwrap();
        all.see(Path::new("old"), day(0));
        all.see(Path::new("old and there"), day(0));
        all.see(Path::new("new"), day(400));
        assert!(all.forget(day(401), |path| path.ends_with("old and there")));
        assert!(all.of(Path::new("old")).is_none());
        assert!(all.of(Path::new("old and there")).is_some() && all.of(Path::new("new")).is_some());
    }
}
