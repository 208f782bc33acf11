//! What of ours is installed in files: the units of systemd, the agent of launchd.

use std::path::PathBuf;

use serde::Serialize;

use super::job::{At, Job, differences};
use super::{Entry, Step, With, launchd, systemd};
use crate::base::wire::WirePath;
use crate::base::{Error, Result};
use crate::disk;

/// Larger than any that we write.
const LONGEST: u64 = 1 << 20;

/// An entry of this home that is there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Installed {
    /// What runs it.
    pub with: With,
    /// Its file; none for the crontab.
    pub file: Option<WirePath>,
    /// All of the file, or the line.
    pub text: String,
    /// In what it is not as this program would write it now; empty when it is.
    pub differs: Vec<String>,
}

/// The files of one kind, and what is in them.
#[derive(Debug)]
pub(super) struct Files {
    with: With,
    /// Their content, where they are there and ours.
    pub found: Vec<(PathBuf, Option<String>)>,
}

impl Files {
    /// # Errors
    /// One that has our name and not our marker, or can not be read.
    pub fn read(with: With, job: &Job, files: Vec<PathBuf>) -> Result<Files> {
        let mut found = Vec::new();
        for path in files {
            let content = disk::read_small(&path, LONGEST)?;
            let text = content.map(|content| String::from_utf8_lossy(&content).into_owned());
            if text
                .as_ref()
                .is_some_and(|text| !text.contains(&job.marker()))
            {
                return Err(Error::failed(
                    "has the name of an entry of this home, and is not wbhome's:",
                )
                .at(path)
                .hint("move it away, then run the same command again"));
            }
            found.push((path, text));
        }
        Ok(Files { with, found })
    }

    pub fn any(&self) -> bool {
        self.found.iter().any(|(_, text)| text.is_some())
    }

    /// Those that are there.
    fn there(&self) -> impl Iterator<Item = (&PathBuf, &String)> {
        let found = self.found.iter();
        found.filter_map(|(path, text)| Some((path, text.as_ref()?)))
    }

    /// When it runs.
    pub fn at(&self) -> Option<At> {
        self.there().find_map(|(_, text)| match self.with {
            With::Systemd => systemd::at(text),
            _ => launchd::at(text),
        })
    }

    /// What is there, compared with what would be written for the time that it has.
    pub fn installed(&self, job: &Job) -> Vec<Installed> {
        let mut job = job.clone();
        job.at = self.at().unwrap_or(job.at);
        let wanted = match self.with {
            With::Systemd => systemd::texts(&job).to_vec(),
            _ => vec![launchd::text(&job)],
        };
        let (program, home) = match self.with {
            With::Systemd => (systemd::program(&job.program), systemd::word(&job.home)),
            _ => (launchd::word(&job.program), launchd::word(&job.home)),
        };
        let there = self.found.iter().zip(wanted);
        there
            .filter_map(|((path, text), wanted)| {
                let text = text.clone()?;
                let mut differs = match wanted.contains(&program) {
                    true => differences(&text, &program, &home, &job),
                    false => Vec::new(),
                };
                if differs.is_empty() && text != wanted {
                    differs.push("its text is not what this version writes".to_owned());
                }
                Some(Installed {
                    with: self.with,
                    file: Some(path.clone().into()),
                    text,
                    differs,
                })
            })
            .collect()
    }

    /// The steps that make the files hold these texts.
    pub fn write(&self, texts: impl IntoIterator<Item = String>) -> (Vec<Entry>, Vec<Step>) {
        let mut entries = Vec::new();
        let mut steps = Vec::new();
        for ((path, former), text) in self.found.iter().zip(texts) {
            entries.push(Entry {
                file: Some(path.clone().into()),
                text: text.clone(),
            });
            if former.as_ref() != Some(&text) {
                steps.push(Step::Write {
                    path: path.clone().into(),
                    text,
                    replaces: former.clone(),
                });
            }
        }
        (entries, steps)
    }

    /// The steps that remove them.
    pub fn remove(&self) -> Vec<Step> {
        self.there()
            .map(|(path, text)| Step::Remove {
                path: path.clone().into(),
                text: text.clone(),
            })
            .collect()
    }
}
