//! A line in the user's crontab. See crontab(1), crontab(5).
//!
//! The rest of the crontab is somebody's own and stays byte for byte as it is. Ours is one line with a comment at its
//! end, which the shell passes over; it stands last, so that the settings of the person (`MAILTO`) hold for it.

use super::job::{At, Job, differences, shell_word};
use super::{Entry, Found, Installed, Plan, Step, With, complaint};
use crate::base::{Error, Result, human};
use crate::disk;

/// What cron takes of a command; a longer one is cut, or the whole table refused. MAX_COMMAND in Vixie cron.
const LONGEST: usize = 990;

/// At the end of the marker when the line before ours had no end, and got one from us.
const ENDED: &str = " (ended the line above)";

/// The crontab of this user.
#[derive(Debug)]
pub(super) struct Crontab {
    /// None where there is no `crontab`, or it lets this user have none.
    text: Option<Vec<u8>>,
    /// Why there is none.
    why: Option<String>,
    marker: String,
}

impl Crontab {
    /// # Errors
    /// A crontab that is there and can not be read.
    pub fn read(job: &Job) -> Result<Crontab> {
        let (text, why) = match current()? {
            Ok(text) => (Some(text), None),
            Err(why) => (None, Some(why)),
        };
        Ok(Crontab {
            text,
            why,
            marker: format!(" # {}", job.marker()),
        })
    }

    pub fn is_possible(&self) -> bool {
        self.text.is_some()
    }

    fn text(&self) -> &[u8] {
        self.text.as_deref().unwrap_or_default()
    }

    /// Whether a line, with its end, is ours.
    fn is_ours(&self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(ENDED.as_bytes()).unwrap_or(line);
        line.ends_with(self.marker.as_bytes()) && !line.starts_with(b"#")
    }

    fn ours(&self) -> impl Iterator<Item = String> {
        let lines = self.text().split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| self.is_ours(line)).map(|line| {
            String::from_utf8_lossy(line)
                .trim_end_matches('\n')
                .to_owned()
        })
    }

    pub fn has_ours(&self) -> bool {
        self.ours().next().is_some()
    }

    pub fn at(&self) -> Option<At> {
        self.ours().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let minute = fields.next()?;
            At::of(fields.next()?, minute)
        })
    }

    pub fn installed(&self, job: &Job) -> Vec<Installed> {
        let mut job = job.clone();
        job.at = self.at().unwrap_or(job.at);
        let (program, home) = (
            escaped(&shell_word(&job.program)),
            escaped(&shell_word(&job.home)),
        );
        let wanted = line(&job);
        let installed = self.ours().map(|text| {
            let mut differs = differences(&text, &program, &home, &job);
            let bare = text.strip_suffix(ENDED).unwrap_or(&text);
            if differs.is_empty() && bare != wanted {
                differs.push("the line is not what this version writes".to_owned());
            }
            Installed {
                with: With::Cron,
                file: None,
                text,
                differs,
            }
        });
        installed.collect()
    }

    /// Everything but ours, as it was before we came.
    fn rest(&self) -> Vec<u8> {
        let mut rest: Vec<u8> = Vec::new();
        for line in self.text().split_inclusive(|byte| *byte == b'\n') {
            if !self.is_ours(line) {
                rest.extend_from_slice(line);
            } else if line.trim_ascii_end().ends_with(ENDED.as_bytes()) && rest.ends_with(b"\n") {
                rest.pop();
            }
        }
        rest
    }

    /// The step that takes ours out.
    pub fn without_ours(&self) -> Option<Step> {
        self.step(None)
    }

    /// The step that makes this line ours.
    fn with_ours(&self, line: &str) -> Option<Step> {
        self.step(Some(line))
    }

    fn step(&self, line: Option<&str>) -> Option<Step> {
        let mut new = self.rest();
        let mut added = None;
        if let Some(line) = line {
            let open = !new.is_empty() && !new.ends_with(b"\n");
            let line = match open {
                true => format!("{line}{ENDED}"),
                false => line.to_owned(),
            };
            if open {
                new.push(b'\n');
            }
            new.extend_from_slice(line.as_bytes());
            new.push(b'\n');
            added = Some(line);
        }
        let mut removed: Vec<String> = self.ours().collect();
        if removed.len() == 1 && added.as_ref() == removed.first() {
            // It is there: where it stands is the person's own business.
            return None;
        }
        removed.retain(|line| added.as_ref() != Some(line));
        (new != self.text()).then(|| Step::Crontab {
            added,
            removed,
            former: self.text().to_vec(),
            new,
        })
    }
}

/// The crontab as it is now; or why this user has none and can have none.
pub(super) fn current() -> Result<Result<Vec<u8>, String>> {
    let fail = |why: String| Error::failed(format!("the crontab can not be read: {why}"));
    let asked = disk::ask_program("crontab", &["-l"]);
    let said = match asked.map_err(|error| fail(human::io(&error)))? {
        Some(said) => said,
        None => return Ok(Err("there is no `crontab` here".to_owned())),
    };
    let text = String::from_utf8_lossy(&said.errors);
    match said.is_good() {
        true => Ok(Ok(said.output)),
        false if text.contains("no crontab for") || text.contains("can't open your crontab") => {
            Ok(Ok(Vec::new()))
        }
        // See cron.allow and cron.deny in crontab(1).
        false if text.contains("not allowed") => Ok(Err(complaint(&said))),
        // Whatever is there must not be replaced unseen.
        false => Err(fail(complaint(&said))),
    }
}

/// Writes it, if it still is what was looked at.
pub(super) fn replace(former: &[u8], new: &[u8]) -> Result<()> {
    let fail = |why: String| {
        Error::failed(format!("the crontab was not changed: {why}"))
            .hint("`crontab -l` shows it as it is")
    };
    if current()?.as_deref() != Ok(former) {
        return Err(fail("somebody has changed it just now".to_owned()));
    }
    let write = |words: &[&str], text: &[u8]| match disk::run_program("crontab", words, text) {
        Ok(Some(said)) if said.is_good() => Ok(()),
        Ok(Some(said)) => Err(complaint(&said)),
        Ok(None) => Err("there is no `crontab` here".to_owned()),
        Err(error) => Err(human::io(&error)),
    };
    if new.is_empty() {
        return write(&["-r"], b"").map_err(fail);
    }
    match write(&["-"], new) {
        // Some refuse a last line without an end, and do not run it either.
        Err(_) if !new.ends_with(b"\n") => write(&["-"], &[new, b"\n"].concat()),
        written => written,
    }
    .map_err(fail)
}

/// `%` ends a command, and a backslash before it takes that meaning away.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%")
}

/// The line, without its end.
pub(super) fn line(job: &Job) -> String {
    format!(
        "{} {} * * * {} # {}",
        job.at.minute,
        job.at.hour,
        escaped(&job.command()),
        job.marker()
    )
}

pub(super) fn plan(job: &Job, found: &Found, plan: &mut Plan) -> Result<()> {
    let line = line(job);
    if line.len() > LONGEST {
        return Err(Error::failed(format!(
            "the line would be {} bytes long, and cron takes {LONGEST}",
            line.len()
        ))
        .hint("put the command into a script with a shorter name"));
    }
    plan.hindrance = found.crontab.why.clone();
    plan.steps.extend(found.crontab.with_ours(&line));
    plan.entries = vec![Entry {
        file: None,
        text: line,
    }];
    Ok(())
}
