//! What became of a push: told by whichever verb has pushed.

use std::fmt::Write as _;
use std::path::Path;

use super::args::Global;
use super::output::{Console, FAINT, styled};
use super::place;
use crate::base::{Exit, human};
use crate::history::push::{Leak, Part, Push, State};

/// So many findings are named when not all are.
const NAMED: usize = 20;

/// With the commands in its hints as the program was called.
pub(super) fn spelled(mut push: Push, global: &Global) -> Push {
    let again = place::again(global);
    for hint in &mut push.hints {
        *hint = place::spelled(hint, &again);
    }
    push
}

/// The line among the results. `one_more`: a commit that a dry run has not made.
pub(super) fn write(out: &mut String, push: &Push, one_more: bool) {
    let to = to(push);
    let commits = human::plural(push.commits + u64::from(one_more), "commit", "commits");
    let _ = match push.state {
        State::Pushed => writeln!(out, "pushed {commits} to {to}"),
        State::Nothing if one_more => writeln!(
            out,
            "{commits} would be pushed to {to}, after a look for secrets"
        ),
        State::Nothing => writeln!(out, "nothing to push: {to} has all commits"),
        State::WouldPush if one_more && push.findings.is_empty() => writeln!(
            out,
            "{commits} would be pushed to {to}; no secret is in the {} that are made",
            human::count(push.commits)
        ),
        State::WouldPush => writeln!(out, "{commits} would be pushed to {to}"),
        State::HeldBack | State::Failed => Ok(()),
    };
}

/// `origin/main`
fn to(push: &Push) -> String {
    match (&push.remote, &push.branch) {
        (Some(remote), Some(branch)) => {
            format!("{}/{}", human::name(remote), human::name(branch))
        }
        _ => "the remote".to_owned(),
    }
}

/// Warns of what was found and of what was not done, and gives the exit code.
pub(super) fn tell(push: Option<&Push>, global: &Global, console: &Console) -> Exit {
    let Some(push) = push else {
        return Exit::Done;
    };
    match (&push.why, push.findings.len() as u64) {
        (Some(why), _) if global.dry_run => console.warn(&format!("would not be pushed: {why}")),
        (Some(why), _) => console.warn(&format!("not pushed: {why}")),
        (None, 0) => {}
        (None, found) => console.warn(&format!(
            "{} with {} ([secrets] on_find is \"warn\"):",
            if global.dry_run {
                "would be pushed"
            } else {
                "pushed"
            },
            human::plural(found, "secret", "secrets")
        )),
    }
    let named = match console.verbose {
        true => push.findings.len(),
        false => NAMED,
    };
    for leak in push.findings.iter().take(named) {
        console.say(&format!("  {}\n", line(leak)));
    }
    if let Some(more @ 1..) = push.findings.len().checked_sub(named) {
        let more = human::count(more as u64);
        console.say(&format!("  and {more} more; -v names each\n"));
    }
    for hint in &push.hints {
        console.hint(&human::escape(hint));
    }
    push.exit()
}

/// `20240603_crawler/context/turn_002.json:3   github-token ghp_…ab   commit 4f1c2a9b03   digest 5bc1…`
fn line(leak: &Leak) -> String {
    let path = leak.path.as_ref().map(|path| &*path.0);
    let path = path.map(|path| path.strip_prefix("sessions").unwrap_or(path));
    let path = human::path(path.unwrap_or(Path::new("")));
    let at = match leak.part {
        Part::Content => format!("{path}:{}", leak.found.line),
        Part::Name => format!("{path} (its name)"),
        Part::Message => "the message of the commit".to_owned(),
        Part::Header => "the author or another line of the commit".to_owned(),
    };
    format!(
        "{at}   {} {}   commit {}   {}",
        human::escape(&leak.found.rule),
        leak.found.shown,
        &leak.commit[..10],
        styled(FAINT, format!("digest {}", leak.found.digest))
    )
}
