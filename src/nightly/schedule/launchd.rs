//! The agent of launchd. See launchd.plist(5).

use std::path::PathBuf;

use super::job::{At, Job};
use super::{Found, Machine, Plan, Step, complaint, homeless};
use crate::base::{Error, Result};
use crate::disk;

/// The property list, alone.
pub(super) fn files(job: &Job, machine: &Machine) -> Result<Vec<PathBuf>> {
    let user = machine.user_home.as_ref().ok_or_else(homeless)?;
    let folder = user.join("Library/LaunchAgents");
    Ok(vec![folder.join(format!("{}.plist", job.name()))])
}

/// A value in XML.
pub(super) fn word(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    format!("<string>{text}</string>")
}

/// The property list.
pub(super) fn text(job: &Job) -> String {
    let words = job.words().map(|text| format!("    {}\n", word(text)));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {}: made by `wbhome schedule install`, taken out by `wbhome schedule remove`. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  {}
  <key>ProgramArguments</key>
  <array>
{}  </array>
  <key>StartCalendarInterval</key>
  <dict>
    <key>Hour</key>
    <integer>{}</integer>
    <key>Minute</key>
    <integer>{}</integer>
  </dict>
  <key>ProcessType</key>
  <string>Background</string>
  <key>LowPriorityIO</key>
  <true/>
  <key>Nice</key>
  <integer>10</integer>
</dict>
</plist>
"#,
        job.marker(),
        word(&job.name()),
        words.concat(),
        job.at.hour,
        job.at.minute
    )
}

/// When an agent of ours runs.
pub(super) fn at(text: &str) -> Option<At> {
    let number = |key: &str| {
        let after = text.split_once(&format!("<key>{key}</key>"))?.1;
        let (number, _) = after
            .trim_start()
            .strip_prefix("<integer>")?
            .split_once('<')?;
        Some(number.trim().to_owned())
    };
    At::of(&number("Hour")?, &number("Minute")?)
}

pub(super) fn plan(job: &Job, machine: &Machine, found: &Found, plan: &mut Plan) -> Result<()> {
    let files = found.launchd.as_ref().ok_or_else(homeless)?;
    if !cfg!(target_os = "macos") {
        plan.hindrance = Some("launchd is there on macOS alone".to_owned());
    }
    (plan.entries, plan.steps) = files.write([text(job)]);
    if !plan.steps.is_empty() {
        if files.any() {
            plan.steps.insert(0, bootout(job));
        }
        let path = self::files(job, machine)?.remove(0);
        plan.steps.push(Step::Run {
            command: vec![
                "launchctl".to_owned(),
                "bootstrap".to_owned(),
                domain(),
                path.to_string_lossy().into_owned(),
            ],
        });
    }
    plan.notes
        .push("launchd shows nobody what a night has said: [nightly] on_failure can".to_owned());
    Ok(())
}

pub(super) fn take_out(job: &Job, found: &Found, plan: &mut Plan) {
    if cfg!(target_os = "macos") {
        plan.steps.push(bootout(job));
    }
    plan.steps
        .extend(found.launchd.iter().flat_map(|files| files.remove()));
}

fn domain() -> String {
    format!("gui/{}", disk::current_user())
}

fn bootout(job: &Job) -> Step {
    Step::Run {
        command: vec![
            "launchctl".to_owned(),
            "bootout".to_owned(),
            format!("{}/{}", domain(), job.name()),
        ],
    }
}

/// Has the system look at a property list. Gives the name of what has looked; none where there is nothing that could.
///
/// # Errors
/// What it says of it.
pub(super) fn verify(list: &std::path::Path) -> Result<Option<&'static str>> {
    let words = [std::ffi::OsStr::new("-lint"), list.as_os_str()];
    match disk::ask_program("plutil", &words) {
        Ok(Some(said)) if said.is_good() => Ok(Some("plutil -lint")),
        Ok(Some(said)) => Err(Error::failed(format!(
            "the property list is not sound: {}",
            complaint(&said)
        ))
        .hint("nothing was installed")),
        _ => Ok(None),
    }
}
