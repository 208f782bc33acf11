//! `wbhome backup ls`.

use std::fmt::Write as _;

use super::*;
use crate::backup::list::{self, OfSession, Outcome};
use crate::base::human;
use crate::cli::when::moments;
use crate::home::SessionId;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome backup ls
  wbhome backup ls crawler               the packs of a session
  wbhome backup ls 20240603_crawler      also of one that is not in the home any more")]
pub(super) struct LsArgs {
    /// A session: its packs
    #[arg(value_name = "SESSION", add = complete::sessions())]
    session: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn run(args: LsArgs, global: &Global, console: &Console, ctx: &Context) -> Result<Exit> {
    let home = place::open(global)?;
    let folders = args.store.folders(&home)?;
    let Some(query) = &args.session else {
        let act = |folder: &Path| {
            let listed = list::list(&Store::open_of(folder, &home)?)?;
            let exit = match listed.unreadable.is_empty() {
                true => Exit::Done,
                false => Exit::Partial,
            };
            Ok((listed, exit))
        };
        let write = |out: &mut String, listed: &Outcome| write(out, listed, ctx);
        return in_each(folders, "backup-ls/1", global, console, act, write);
    };
    // What is meant may be in the store alone.
    let session = crate::home::resolve_in(&home, query);
    let session = session.or_else(|error| SessionId::adopt(query).map_err(|_| error))?;
    let act = |folder: &Path| {
        let listed = list::of_session(&Store::open_of(folder, &home)?, &session)?;
        match listed.packs.is_empty() {
            false if listed.unreadable.is_empty() => Ok((listed, Exit::Done)),
            false => Ok((listed, Exit::Partial)),
            true => Err(Error::failed(format!(
                "no snapshot knows a session `{}`:",
                human::name(session.as_str())
            ))
            .at(folder)),
        }
    };
    let write = |out: &mut String, listed: &OfSession| write_session(out, listed, ctx);
    in_each(folders, "backup-ls-session/1", global, console, act, write)
}

fn write(out: &mut String, listed: &Outcome, ctx: &Context) {
    let _ = writeln!(out, "{}", styled(STRONG, human::path(&listed.store)));
    for unreadable in &listed.unreadable {
        let _ = writeln!(out, "  can not be read: {unreadable}");
    }
    let moments = moments(listed.snapshots.iter().map(|snapshot| snapshot.at), ctx);
    for (snapshot, moment) in listed.snapshots.iter().zip(moments) {
        let mut notes = String::new();
        for (n, what) in [(snapshot.missing, "missing"), (snapshot.partial, "partial")] {
            if n > 0 {
                let _ = write!(notes, ", {} {what}", human::count(n));
            }
        }
        let _ = writeln!(
            out,
            "  {moment}  {:>12}  {:>10} packed  {:>10}{notes}",
            human::plural(snapshot.sessions, "session", "sessions"),
            human::count(snapshot.packed),
            human::size(snapshot.bytes)
        );
    }
    let _ = writeln!(
        out,
        "{}, {}, {}",
        human::plural(listed.snapshots.len() as u64, "snapshot", "snapshots"),
        human::plural(listed.packs, "pack", "packs"),
        human::size(listed.bytes)
    );
}

fn write_session(out: &mut String, listed: &OfSession, ctx: &Context) {
    for unreadable in &listed.unreadable {
        let _ = writeln!(out, "  can not be read: {unreadable}");
    }
    let _ = writeln!(out, "{}", styled(STRONG, human::path(&listed.store)));
    let moments = moments(listed.packs.iter().map(|pack| pack.at), ctx);
    for (pack, moment) in listed.packs.iter().zip(moments) {
        let mut notes = String::new();
        if let Some(turns) = pack.turns {
            let _ = write!(notes, ", {}", human::plural(turns, "turn", "turns"));
        }
        if pack.form == backup::Form::Archive {
            notes += ", its archive";
        }
        if !pack.complete {
            notes += ", partial";
        }
        if let Some(why) = &pack.kept {
            let _ = write!(notes, ", kept: since then {why}");
        }
        let _ = writeln!(
            out,
            "  {moment}  {:>12}  {:>10}{notes}\n      {}",
            human::plural(pack.files, "file", "files"),
            human::size(pack.content),
            human::name(&pack.file)
        );
    }
}
