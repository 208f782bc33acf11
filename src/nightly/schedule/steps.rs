//! Doing what was planned: the texts are checked first, then written, then turned on.

use std::path::Path;

use serde::Serialize;

use super::{Plan, With, complaint, cron, launchd, systemd};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Written};
use crate::home::LockedHome;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Step {
    /// A file gets this text.
    Write {
        /// The file.
        #[serde(flatten)]
        path: WirePath,
        /// Its text.
        text: String,
        /// The text that it has now, if it is there.
        replaces: Option<String>,
    },
    /// A file goes.
    Remove {
        /// The file.
        #[serde(flatten)]
        path: WirePath,
        /// The text that it has.
        text: String,
    },
    /// The crontab changes by these lines.
    Crontab {
        /// The line that it gets.
        added: Option<String>,
        /// Those that it loses.
        removed: Vec<String>,
        /// All of it, before.
        #[serde(skip)]
        former: Vec<u8>,
        /// All of it, after.
        #[serde(skip)]
        new: Vec<u8>,
    },
    /// A program is run.
    Run {
        /// Its words.
        command: Vec<String>,
    },
}

/// What came of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was planned.
    #[serde(flatten)]
    pub plan: Plan,
    /// Whether that was done.
    pub done: bool,
    /// What has looked at the texts before they were installed; none where there is nothing that could.
    pub checked: Option<String>,
}

impl Outcome {
    /// A plan that was only looked at.
    pub fn only_shown(plan: Plan) -> Outcome {
        Outcome {
            plan,
            done: false,
            checked: None,
        }
    }
}

/// Does it. The lock is held so that one at a time does.
///
/// # Errors
/// What hinders it; texts that the machine does not take; what can not be written or run.
pub fn apply(home: &LockedHome, plan: Plan, context: &Context) -> Result<Outcome> {
    if let (Some(hindrance), true) = (&plan.hindrance, plan.with.is_some()) {
        return Err(Error::failed(hindrance.clone()).hint(
            "`wbhome schedule show` prints what would be installed; --with names another way; where there is neither systemd nor cron, your system has a package for it (`apt install cron`)",
        ));
    }
    context.stop.check()?;
    let checked = check(home, &plan, context)?;
    for step in &plan.steps {
        step.take()?;
    }
    Ok(Outcome {
        plan,
        done: true,
        checked: checked.map(str::to_owned),
    })
}

/// Has the machine look at the files that would be written.
fn check(home: &LockedHome, plan: &Plan, context: &Context) -> Result<Option<&'static str>> {
    let files: Vec<(&Path, &str)> = plan
        .entries
        .iter()
        .filter_map(|entry| Some((&*entry.file.as_ref()?.0, entry.text.as_str())))
        .collect();
    if files.is_empty() || plan.steps.is_empty() {
        return Ok(None);
    }
    let scratch = home.scratch(context)?;
    let mut written = Vec::new();
    for (path, text) in files {
        let copy = scratch.path().join(path.file_name().unwrap_or_default());
        disk::write_new(&copy, text.as_bytes(), 0o644)?;
        written.push(copy);
    }
    match (plan.with, written.first()) {
        (Some(With::Systemd), _) => systemd::verify(&written),
        (Some(With::Launchd), Some(list)) => launchd::verify(list),
        _ => Ok(None),
    }
}

impl Step {
    fn take(&self) -> Result<()> {
        match self {
            Step::Write {
                path,
                text,
                replaces,
            } => {
                if let Some(parent) = path.parent() {
                    disk::create_folder(parent)?;
                }
                let former = replaces.as_ref().map(String::as_bytes);
                match disk::replace(path, former, text.as_bytes(), 0o644)? {
                    Written::Done => Ok(()),
                    Written::Changed(_) => Err(changed(path)),
                }
            }
            Step::Remove { path, text } => match disk::read(path)? {
                Some(content) if content == text.as_bytes() => disk::remove_file(path),
                Some(_) => Err(changed(path)),
                None => Ok(()),
            },
            Step::Crontab { former, new, .. } => cron::replace(former, new),
            Step::Run { command } => run(command),
        }
    }
}

fn changed(path: &Path) -> Error {
    Error::failed("somebody has changed it just now:")
        .at(path)
        .hint("run the same command again")
}

fn run(command: &[String]) -> Result<()> {
    let Some((program, words)) = command.split_first() else {
        return Ok(());
    };
    let fail = |why: String| {
        let command = human::escape(&command.join(" ")).into_owned();
        Error::failed(format!("`{command}` has failed: {why}"))
            .hint("what was written stays; the same command goes on, `wbhome schedule remove` takes it out")
    };
    match disk::run_program(program, words, b"") {
        Ok(Some(said)) if said.is_good() => Ok(()),
        Ok(Some(said)) => Err(fail(complaint(&said))),
        Ok(None) => Err(fail("it is not installed".to_owned())),
        Err(error) => Err(fail(human::io(&error))),
    }
}
