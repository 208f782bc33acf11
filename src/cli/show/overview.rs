//! A session at a glance.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::backup::list::{self, Held};
use crate::backup::{Standing, Store};
use crate::base::wire::WirePath;
use crate::base::{Context, Exit, Result, human};
use crate::browse::ls::Holds;
use crate::browse::show::{self, Archive, ArchiveForm, From, Session, Thing};
use crate::cli::output::{Console, FAINT, STRONG, WARNING, styled, terminal_width};
use crate::cli::place;
use crate::cli::when::dated;
use crate::cli::width::{end_of, fit, fold};
use crate::history::{self, Told};
use crate::home::{Home, SessionId, Tally};

/// What `--json` prints of a session.
#[derive(Serialize)]
struct Printed<'s> {
    #[serde(flatten)]
    session: &'s Session,
    commit: Option<Told>,
    backups: Vec<Backup>,
}

/// What a cold store has of it.
#[derive(Serialize)]
struct Backup {
    store: WirePath,
    /// `None` when the store has no snapshot, or why it is not known stands below.
    held: Option<Held>,
    /// Why nothing is known.
    why: Option<String>,
}

pub(super) fn overview(
    home: &Home,
    id: &SessionId,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let agents = place::agents(home, console);
    let leases = place::leases_to_show(home, console, ctx);
    let session = show::session(home, id, &agents, &leases, ctx)?;
    // What is wrong with the repository, `check` tells.
    let commit = history::last_touch(home, id, ctx);
    ctx.stop.check()?;
    let printed = Printed {
        session: &session,
        commit: commit.unwrap_or_default(),
        backups: backups(home, id),
    };
    for warning in &session.warnings {
        console.warn(warning);
    }
    console.result("show/1", &printed, |out| write(out, &printed, ctx))?;
    Ok(Exit::Done)
}

/// What the cold stores have of it. One that is not there says so: that is what one wants to know of a backup.
fn backups(home: &Home, id: &SessionId) -> Vec<Backup> {
    // Settings that are not understood, or set none: `doctor` tells.
    let stores = place::stores(home).unwrap_or_default();
    let look = |path: PathBuf| {
        let held = Store::open_of(&path, home).and_then(|store| list::held(&store, id));
        let (held, why) = match held {
            Ok(held) => (held, None),
            Err(error) => (None, Some(error.to_string())),
        };
        Backup {
            store: path.into(),
            held,
            why,
        }
    };
    stores.into_iter().map(look).collect()
}

/// `  created    2024-06-03 09:00`
fn line(out: &mut String, name: &str, text: impl std::fmt::Display) {
    let name = styled(FAINT, format!("{name:<10}"));
    let text = fold(&text.to_string(), 13, terminal_width());
    let _ = writeln!(out, "  {name} {text}");
}

/// What goes on below it.
fn below(out: &mut String, text: &str) {
    let _ = writeln!(out, "{:13}{}", "", fold(text, 13, terminal_width()));
}

fn write(out: &mut String, printed: &Printed, ctx: &Context) {
    let session = printed.session;
    write_head(out, session);
    write_labels(out, session, ctx);
    write_content(out, session, ctx);
    write_copies(out, printed, ctx);
    if !session.turns.is_empty() {
        write_turns(out, session);
    }
    if !session.checkpoint.is_empty() {
        let _ = writeln!(out, "\n{}", styled(FAINT, "context/checkpoint.md"));
        for text in &session.checkpoint {
            let text = fold(&human::escape(text), 2, terminal_width());
            let _ = writeln!(out, "  {text}");
        }
    }
}

/// Its id, how it stands, and its title.
fn write_head(out: &mut String, session: &Session) {
    let id = styled(STRONG, human::name(session.id.as_str()));
    let status = match (&session.running, session.indexed) {
        (Some(running), _) => format!("running, process {}", running.pid),
        (None, true) => human::name(&session.status).into_owned(),
        (None, false) => format!("{}, not in the index", human::name(&session.status)),
    };
    let limit = terminal_width();
    let wide = human::name(session.id.as_str()).width() + 3 + status.width();
    let _ = match limit.is_some_and(|limit| wide > limit) {
        true => writeln!(out, "{id}\n  {status}"),
        false => writeln!(out, "{id}   {status}"),
    };
    if let Some(title) = &session.title {
        let _ = writeln!(out, "{}", fold(&human::name(title), 0, limit));
    }
    out.push('\n');
}

/// What the index, the leases and its own record say of it.
fn write_labels(out: &mut String, session: &Session, ctx: &Context) {
    for (name, value) in [
        ("agent", &session.agent),
        ("project", &session.project),
        ("shared", &session.sync_tag),
    ] {
        if let Some(value) = value {
            line(out, name, human::name(value));
        }
    }
    if let Some(holder) = &session.held_by {
        let since = dated(holder.since, ctx);
        let told = match holder.ours {
            true => format!("held by this device since {since}"),
            false => format!(
                "held by {} since {since}: read-only here",
                human::name(&holder.name)
            ),
        };
        line(out, "lease", told);
    }
    if !session.tags.is_empty() {
        line(out, "tags", human::name(&session.tags.join(", ")));
    }
    if let Some(created) = session.created {
        line(out, "created", dated(created, ctx));
    }
    if let Some(updated) = session.updated {
        line(out, "active", dated(updated, ctx));
    }
}

/// What is in it, and where that lies.
fn write_content(out: &mut String, session: &Session, ctx: &Context) {
    let turns = human::count(session.holds.turns);
    match &session.last_turn {
        Some(last) => line(
            out,
            "turns",
            format!("{turns}, the last {}", human::escape(last)),
        ),
        None => line(out, "turns", turns),
    }
    write_holds(out, &session.holds);
    if session.from == From::Folder {
        line(out, "folder", human::path(&session.path));
    }
    if let Some(archive) = &session.archive {
        write_archive(out, archive, session.from, ctx);
    }
    if !session.largest.is_empty() {
        write_largest(out, &session.largest);
    }
}

/// Which commit and which backups hold it.
fn write_copies(out: &mut String, printed: &Printed, ctx: &Context) {
    if printed.commit.is_none() && printed.backups.is_empty() && printed.session.archive.is_none() {
        line(
            out,
            "kept",
            "nowhere else: no commit and no backup holds it",
        );
    }
    if let Some(commit) = &printed.commit {
        let subject = human::escape(&commit.subject);
        line(
            out,
            "commit",
            format!("{} {}", commit.short, dated(commit.at, ctx)),
        );
        below(out, &subject);
    }
    for backup in &printed.backups {
        write_backup(out, backup, ctx);
    }
}

fn write_holds(out: &mut String, holds: &Holds) {
    let files = human::plural(holds.files, "file", "files");
    line(
        out,
        "holds",
        format!("{files}, {}", human::size(holds.bytes)),
    );
    let kinds: [(&str, Tally); 5] = [
        ("context", holds.context),
        ("memory", holds.memory),
        ("artifacts", holds.artifacts),
        ("logs", holds.logs),
        ("other", holds.other),
    ];
    let kinds = kinds.iter().filter(|(_, tally)| tally.files > 0);
    let kinds: Vec<(String, String)> = kinds
        .map(|(name, tally)| {
            let size = human::size(tally.bytes);
            let files = human::plural(tally.files, "file", "files");
            (format!("{:13}{name:<9} {size:>9}", ""), files)
        })
        .collect();
    // In all lines or in none: a number that stands alone in one would be read as something else.
    let widest = kinds
        .iter()
        .map(|(size, files)| size.len() + 3 + files.len());
    let has_room = terminal_width().is_none_or(|limit| widest.max() <= Some(limit));
    for (size, files) in kinds {
        let _ = match has_room {
            true => writeln!(out, "{size}   {files}"),
            false => writeln!(out, "{size}"),
        };
    }
    if holds.unreadable > 0 {
        let folders = human::plural(holds.unreadable, "folder", "folders");
        below(
            out,
            &styled(WARNING, format!("{folders} could not be read")),
        );
    }
}

fn write_largest(out: &mut String, largest: &[Thing]) {
    for (n, thing) in largest.iter().filter(|thing| thing.bytes > 0).enumerate() {
        let (size, path) = (human::size(thing.bytes), human::path(&thing.path));
        let room = terminal_width().map_or(usize::MAX, |limit| limit.saturating_sub(25));
        let path = end_of(&path, room.max(8));
        let name = if n == 0 { "largest" } else { "" };
        let name = styled(FAINT, format!("{name:<10}"));
        let _ = writeln!(out, "  {name} {size:>9}   {path}");
    }
}

fn write_backup(out: &mut String, backup: &Backup, ctx: &Context) {
    let store = human::path(&backup.store);
    let told = match (&backup.held, &backup.why) {
        (_, Some(why)) => styled(WARNING, why),
        (None, None) => format!("{store} has no snapshot yet"),
        (Some(held), None) => {
            let when = dated(held.at, ctx);
            match (held.standing, held.complete) {
                (None, _) => format!("{store} {when}: {}", styled(WARNING, "not in it")),
                (Some(Standing::Missing), _) => {
                    format!("{store} {when}: it was missing then, its last pack is kept")
                }
                (Some(Standing::Removed), _) => format!("{store} {when}: it was removed then"),
                (Some(Standing::Present), false) => {
                    format!("{store} {when}: {}", styled(WARNING, "only in part"))
                }
                (Some(Standing::Present), true) => format!("{store} {when}"),
            }
        }
    };
    line(out, "backup", told);
}

fn write_turns(out: &mut String, session: &Session) {
    let _ = writeln!(out, "\n{}", styled(FAINT, "last turns"));
    for turn in &session.turns {
        let name = turn.file.strip_prefix("context/").unwrap_or(&turn.file);
        let name = name.strip_suffix(".json").unwrap_or(name);
        for (n, said) in turn.said.iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            let who = format!("{:<10}", human::escape(&said.role));
            let text = format!("  {name:<9} {who}{}", human::escape(&said.text));
            let _ = writeln!(out, "{}", fit(&text, terminal_width()));
        }
    }
}

fn write_archive(out: &mut String, archive: &Archive, from: From, ctx: &Context) {
    let file = human::name(&archive.file);
    let kept = match from {
        From::Folder => ", kept beside the folder",
        From::Archive => "",
    };
    line(
        out,
        "archive",
        format!("{file}, {}{kept}", human::size(archive.bytes)),
    );
    let made = archive
        .made
        .map(|made| format!("made {}, ", dated(made, ctx)));
    let what = match (archive.form, &archive.damage) {
        (ArchiveForm::Whole, _) => "with a digest of each file".to_owned(),
        (ArchiveForm::Foreign, _) => "by hand, with checksums alone".to_owned(),
        (ArchiveForm::Damaged, damage) => {
            let damage = damage.as_deref().map(human::escape).unwrap_or_default();
            styled(WARNING, format!("damaged: {damage}"))
        }
    };
    below(out, &format!("{}{what}", made.unwrap_or_default()));
    if archive.flaws > 0 {
        let files = human::plural(archive.flaws, "file", "files");
        below(
            out,
            &styled(WARNING, format!("{files} could not be packed as they were")),
        );
    }
}
