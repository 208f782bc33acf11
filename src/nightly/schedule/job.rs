//! What is to be run and when: the same for all who could run it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use super::{Machine, Request};
use crate::base::{Error, Result, human};
use crate::disk;
use crate::home::Home;

/// A time of the day, in the machine's own zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
}

impl At {
    /// When nobody says when.
    const USUAL: At = At { hour: 3, minute: 0 };

    /// The time of two numbers, when they are one.
    pub(super) fn of(hour: &str, minute: &str) -> Option<At> {
        let number = |text: &str, below: u8| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse().ok().filter(|number| *number < below);
            number.filter(|_| digits && text.len() <= 2)
        };
        Some(At {
            hour: number(hour, 24)?,
            minute: number(minute, 60)?,
        })
    }
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<At, String> {
        let at = text.split_once(':');
        at.and_then(|(hour, minute)| At::of(hour, minute))
            .ok_or_else(|| "write a time of the day such as 03:00 or 21:30".to_owned())
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl Serialize for At {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The command, and what tells its entry from all others.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The id of the home: letters and digits.
    pub id: String,
    /// This program.
    pub program: String,
    /// The home.
    pub home: String,
    pub at: At,
}

impl Job {
    /// # Errors
    /// Names that can not be written into any of them.
    pub fn of(home: &Home, machine: &Machine, at: Option<At>) -> Result<Job> {
        let id = home.id();
        if id.len() < 8 || id.len() > 64 || !id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(
                Error::failed("the id of the home is not one that wbhome has made, in")
                    .at(home.own().join("home.json")),
            );
        }
        Ok(Job {
            id: id.to_owned(),
            program: writable(&machine.program)?,
            home: writable(&disk::real_path(home.root())?)?,
            at: at.unwrap_or(At::USUAL),
        })
    }

    /// What an entry of ours has in it, and nothing else has.
    pub fn marker(&self) -> String {
        format!("wbhome-nightly {}", self.id)
    }

    /// The name of what has a name.
    pub fn name(&self) -> String {
        format!("wbhome-nightly-{}", &self.id[..8])
    }

    /// The words of the command.
    pub fn words(&self) -> [&str; 4] {
        [&self.program, "nightly", "--home", &self.home]
    }

    /// The command as a person would type it.
    pub fn command(&self) -> String {
        self.words().map(shell_word).join(" ")
    }
}

/// A word for a POSIX shell. Without a backslash: cron has a meaning of its own for some.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+@:,=".contains(&b);
    match word.bytes().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\"'\"'")),
    }
}

/// A path as text of one line.
fn writable(path: &Path) -> Result<String> {
    let text = path
        .to_str()
        .filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        Error::failed("a schedule can not name a path that is not UTF-8 or holds a line break:")
            .at(path)
            .hint("rename it, or run `wbhome nightly` from a script of yours")
    })
}

impl Request {
    /// The flags, to be typed once more.
    pub fn again(&self) -> String {
        let with = self.with.map(|with| match with {
            super::With::Systemd => " --with systemd",
            super::With::Cron => " --with cron",
            super::With::Launchd => " --with launchd",
        });
        let at = self.at.map(|at| format!(" --at {at}"));
        format!("{}{}", with.unwrap_or_default(), at.unwrap_or_default())
    }
}

/// What of an installed text is not as it would be written now.
pub(super) fn differences(text: &str, program: &str, home: &str, job: &Job) -> Vec<String> {
    let mut differs = Vec::new();
    if !text.contains(program) {
        differs.push(format!(
            "it does not run this program, {}",
            human::escape(&job.program)
        ));
    }
    if !text.contains(home) {
        differs.push(format!(
            "it names another place of the home than {}",
            human::escape(&job.home)
        ));
    }
    differs
}
