//! What a sync has done, told to a person.

use std::fmt::Write as _;

use super::*;
use crate::relay::{Difference, Happened, Leak, Outcome, Session, State, Why};

/// So many things of a kind are named when not all are.
const NAMED: usize = 10;

/// The counts, which add up, and what was sent.
pub(super) fn write(out: &mut String, told: &Outcome, again: &str, dry_run: bool) {
    let total = told.sessions.len() as u64;
    let relay = human::path(&told.relay);
    let mode = told.mode.word();
    let _ = writeln!(
        out,
        "{}   {relay} ({mode})",
        styled(STRONG, human::plural(total, "session", "sessions"))
    );
    let words = match dry_run {
        false => ["sent", "updated", "removed"],
        true => ["to send", "to update", "to remove"],
    };
    let states = [State::Sent, State::Updated, State::Removed];
    for (word, state) in words.into_iter().zip(states) {
        let n = told.count(state);
        if n > 0 {
            let _ = writeln!(
                out,
                "  {word:<10}{:>6}   {}",
                human::count(n),
                sums(told, state)
            );
        }
    }
    for (word, state) in [
        ("the same", State::Same),
        ("left", State::Left),
        ("held back", State::Held),
    ] {
        let n = told.count(state);
        if n > 0 || state == State::Same {
            let _ = writeln!(out, "  {word:<10}{:>6}", human::count(n));
        }
    }
    let others = told.strangers.len() as u64;
    if others > 0 {
        let others = human::plural(others, "session", "sessions");
        let _ = writeln!(out, "{others} of other devices: {again} relay status");
    }
}

/// `120 names, 1.2 MB`, or which session it is.
fn sums(told: &Outcome, state: State) -> String {
    let sessions = || told.sessions.iter().filter(move |s| s.state == state);
    let sum = |of: fn(&Session) -> u64| sessions().map(of).sum::<u64>();
    let parts = [
        (sum(|s| s.added), "new"),
        (sum(|s| s.replaced), "replaced"),
        (sum(|s| s.removed), "gone"),
    ];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    let mut parts: Vec<String> = parts
        .map(|(n, what)| format!("{} {what}", human::count(n)))
        .collect();
    if let Some(first) = parts.first_mut() {
        first.insert_str(0, "files and folders: ");
    }
    let bytes = sum(|s| s.bytes);
    if bytes > 0 {
        parts.push(human::size(bytes));
    }
    if let (Some(only), None) = (sessions().next(), sessions().nth(1)) {
        parts.insert(0, human::name(&only.id).into_owned());
    }
    parts.join(", ")
}

/// What was held back, and what can be done about it.
pub(super) fn warn(told: &Outcome, warns: bool, global: &Global, console: &Console) {
    let again = place::again(global);
    for session in told.sessions.iter().filter(|s| s.state == State::Held) {
        let name = human::name(&session.id);
        if let Some(holder) = &session.holder {
            let who = human::name(&holder.name);
            console.note(&format!(
                "{name}: {who} holds its lease since {}, so nothing of it was touched",
                date(holder.since)
            ));
            continue;
        }
        console.warn(&format!("{name} was held back: {}", session.word()));
        for line in lines(session, console.verbose) {
            console.say(&format!("  {line}\n"));
        }
    }
    for session in &told.sessions {
        if let Some(act) = &session.kept {
            let name = human::name(&session.id);
            console.note(&format!("{name}: what stood in the relay is in the trash: {again} restore {act} --from trash --force"));
        }
    }
    for session in told.sessions.iter().filter(|s| s.state == State::Left) {
        let name = human::name(&session.id);
        console.note(&format!(
            "{name} does not travel from here any more; somebody else has changed it in the relay, so it stays there"
        ));
    }
    for session in told.sessions.iter().filter(|s| s.state != State::Held) {
        let name = human::name(&session.id);
        if warns && !session.leaks.is_empty() {
            let found = human::plural(session.leaks.len() as u64, "secret", "secrets");
            console.warn(&format!(
                "{name} {} with {found} ([secrets] on_find is \"warn\"):",
                if global.dry_run {
                    "would be sent"
                } else {
                    "was sent"
                }
            ));
            for line in lines(session, console.verbose) {
                console.say(&format!("  {line}\n"));
            }
        }
        if !session.left_out.is_empty() {
            let first = session.left_out.first().map(|path| human::path(path));
            let n = human::plural(session.left_out.len() as u64, "thing", "things");
            console.note(&format!(
                "{name}: {n}, no file, folder or link: left out, such as {}",
                first.unwrap_or_default()
            ));
        }
        if session.written_through > 0 {
            let n = human::plural(session.written_through, "file", "files");
            console.note(&format!(
                "{name}: {n} written to in place, which both sides see at once; who has written is not known"
            ));
        }
    }
    for lost in &told.overtaken {
        console.warn(&format!(
            "the lease of {} is given up: {}",
            human::name(&lost.session),
            match &lost.holder {
                Some(holder) => format!(
                    "{} has a better claim, since {}",
                    human::name(&holder.name),
                    date(holder.since)
                ),
                None => "another device has taken it, and let go of it since".to_owned(),
            }
        ));
    }
    for session in &told.released {
        let session = human::name(session);
        console.note(&format!(
            "the lease of {session} is released: it does not travel any more"
        ));
    }
    for hint in hints(told, &again) {
        console.hint(&hint);
    }
}

/// What can be done, once for each kind.
pub(super) fn hints(told: &Outcome, again: &str) -> Vec<String> {
    let first = |why: Why| told.stuck().find(|session| session.why == Some(why));
    let quoted = |session: &Session| human::argument(&session.id);
    let with = |session: &Session, options| human::argument_with(&session.id, options);
    let mut hints = Vec::new();
    if let Some(session) = first(Why::Secret) {
        let id = human::name(&session.id);
        hints.push(format!("take the secret out of the file; or, if it is none, put its digest into allow = [] of [secrets] in wbhome.toml; {id} waits until then"));
    }
    // A whole version stands there, or nothing does, or something that is no session, or what bears no name of its own.
    let kind = |session: &Session| match (session.detail.is_some(), session.word()) {
        (true, _) => "strange",
        (false, "deleted there") => "deleted there",
        _ if session.differs_in_temporary_names() => "aside",
        _ => "changed",
    };
    for what in ["changed", "aside", "deleted there", "strange"] {
        let mut all = told.stuck().filter(|s| s.why == Some(Why::ChangedThere));
        let Some(session) = all.find(|session| kind(session) == what) else {
            continue;
        };
        let id = quoted(session);
        let (to, kept) = (with(session, "--to DIR"), with(session, "--no-sync-tag"));
        hints.push(match what {
            "changed" => format!("{again} relay fetch {to} shows what stands there; {again} relay take {id} makes it the home's; {again} relay sync --ours {id} replaces it"),
            "aside" => format!("what lies in the relay's {id} under a temporary name is nothing that this home has sent, and no fetch or take looks at it: give it a name of its own there, if it is of use; {again} relay sync --ours {id} puts it into the trash"),
            "strange" => format!("{again} relay sync --ours {id} puts the session in its place; what stands there goes to the trash"),
            _ => format!("{again} relay sync --ours {id} sends it again; {again} label {kept} keeps it here alone; {again} rm {id} removes it here, too"),
        });
    }
    if first(Why::Name).is_some() {
        hints.push("give those files other names, and run it again".to_owned());
    }
    if let Some(session) = first(Why::Clash) {
        let id = quoted(session);
        hints.push(format!("{again} mv {id} NEW gives it another name"));
    }
    if let Some(session) = first(Why::MissingHere) {
        let (id, name) = (quoted(session), human::name(&session.id));
        hints.push(format!("{again} check says what is known of {name}; its files in the relay stay until it is back, or until {again} rm {id} says that it is meant to be gone (where the index does not know it any more: until its folder there is removed)"));
    }
    if let Some(session) = first(Why::EmptiedHere) {
        let (id, lost) = (quoted(session), with(session, "--from git"));
        hints.push(format!("{again} restore {lost} (or backup) brings its files back; if they are meant to be gone: {again} relay sync --ours {id}"));
    }
    hints
}

fn date(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// More of it, in some words.
pub(super) fn more(session: &Session) -> String {
    if let Some(holder) = &session.holder {
        return format!(
            "by {} since {}",
            human::name(&holder.name),
            date(holder.since)
        );
    }
    if let Some(detail) = &session.detail {
        return human::escape(detail).into_owned();
    }
    let differences = session.differences.len() as u64;
    match session.state {
        State::Held if differences > 0 => human::plural(differences, "name", "names"),
        State::Held => lines(session, false).into_iter().next().unwrap_or_default(),
        State::Same => String::new(),
        _ => {
            let parts = [
                (session.added, "new"),
                (session.replaced, "changed"),
                (session.removed, "gone"),
            ];
            let parts = parts.into_iter().filter(|(n, _)| *n > 0);
            let parts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
            parts.join(", ")
        }
    }
}

/// Each thing that holds a session back.
pub(super) fn details(out: &mut String, session: &Session) {
    let _ = writeln!(out, "\n{}", styled(STRONG, human::name(&session.id)));
    for line in lines(session, true) {
        let _ = writeln!(out, "  {line}");
    }
}

fn lines(session: &Session, all: bool) -> Vec<String> {
    let mut lines: Vec<String> = session
        .detail
        .iter()
        .map(|d| human::escape(d).into_owned())
        .collect();
    lines.extend(session.leaks.iter().map(leak));
    lines.extend(session.differences.iter().filter_map(difference));
    lines.extend(session.bad_names.iter().map(|bad| {
        let suggestion = bad.suggestion.as_deref();
        let suggestion = suggestion.map(|s| format!("; {} would do", human::name(s)));
        let path = match bad.path.as_os_str().is_empty() {
            true => "its own name".to_owned(),
            false => human::path(&bad.path),
        };
        format!(
            "{path}: {}{}",
            human::escape(&bad.why),
            suggestion.unwrap_or_default()
        )
    }));
    lines.extend(
        session
            .unreadable
            .iter()
            .map(|one| format!("{}: {}", human::path(&one.path), human::escape(&one.why))),
    );
    if !all && lines.len() > NAMED {
        let more = lines.len() - NAMED;
        lines.truncate(NAMED);
        lines.push(format!("and {} more: -v", human::count(more as u64)));
    }
    lines
}

/// `artifacts/.env:3   github-token ghp_…ab   digest 5bc1…`
fn leak(leak: &Leak) -> String {
    let at = match leak.path.as_os_str().is_empty() {
        true => "its name, or its sync tag".to_owned(),
        false => format!("{}:{}", human::path(&leak.path), leak.found.line),
    };
    format!(
        "{at}   {} {}   {}",
        human::escape(&leak.found.rule),
        leak.found.shown,
        styled(FAINT, format!("digest {}", leak.found.digest))
    )
}

fn difference(difference: &Difference) -> Option<String> {
    if difference.path.as_os_str().is_empty() {
        return None;
    }
    let there = match difference.there {
        Happened::Added => "added there",
        Happened::Changed => "changed there",
        Happened::Deleted => "deleted there",
    };
    let at = |at: Option<jiff::Timestamp>| at.map(|at| format!(" {}", date(at)));
    let here = match difference.here_too {
        true => format!(
            ", changed here{}",
            at(difference.changed_here).unwrap_or_else(|| " (removed)".to_owned())
        ),
        false => String::new(),
    };
    Some(format!(
        "{}: {there}{}{here}",
        human::path(&difference.path),
        at(difference.changed_there).unwrap_or_default()
    ))
}
