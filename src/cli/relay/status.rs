//! `wbhome relay status`.

use std::fmt::Write as _;

use super::*;
use crate::cli::table::{self, Cells, Column};
use crate::home::OnFind;
use crate::relay::sync::{self, Request};
use crate::relay::{Outcome, Session, State};

/// Show what differs between here and the relay
///
/// Nothing is changed, and nothing is looked at for secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome relay status
  wbhome relay status -v    each file that somebody else has changed")]
pub(super) struct StatusArgs {}

pub(super) fn run(
    _: StatusArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    let relay = place::open_relay(&home)?;
    let request = Request {
        search: false,
        on_find: OnFind::Warn,
        // To look at it does no harm.
        all_may_leave: true,
        ..super::request(&home, None)?
    };
    let told = sync::plan(&home, &relay, &request, ctx)?.told;
    console.result("relay-status/1", &told, |out| {
        write(out, &told, console, ctx)
    })?;
    let again = place::again(global);
    for hint in told::hints(&told, &again) {
        console.hint(&hint);
    }
    if told.strangers.iter().any(|stranger| !stranger.known_here) {
        console.hint(&format!(
            "one from elsewhere comes here by {again} lease take SESSION, then {again} relay take SESSION"
        ));
    }
    if told.count(State::Sent) + told.count(State::Updated) + told.count(State::Removed) > 0 {
        console.hint(&format!("{again} relay sync sends what differs"));
    }
    Ok(Exit::Done)
}

fn write(out: &mut String, told: &Outcome, console: &Console, ctx: &Context) {
    let now = ctx.clock.now();
    let age = |at: Option<jiff::Timestamp>| {
        at.map_or_else(|| "-".to_owned(), |at| human::brief_age(now, at))
    };
    let mut rows: Vec<[String; 5]> = Vec::new();
    let shown = |s: &&Session| console.verbose || s.state != State::Same;
    for session in told.sessions.iter().filter(shown) {
        let there = session
            .differences
            .iter()
            .filter_map(|d| d.changed_there)
            .max();
        rows.push([
            human::name(&session.id).into_owned(),
            session.word().to_owned(),
            age(session.changed_here_at),
            age(there),
            told::more(session),
        ]);
    }
    for stranger in &told.strangers {
        rows.push([
            human::path(&stranger.name),
            match stranger.known_here {
                true => "not tagged here".to_owned(),
                false => "from elsewhere".to_owned(),
            },
            "-".to_owned(),
            age(stranger.sent),
            stranger
                .from
                .as_deref()
                .map_or_else(String::new, |from| human::name(from).into_owned()),
        ]);
    }
    if !rows.is_empty() {
        let titles = ["SESSION", "STATE", "HERE", "THERE", "MORE"];
        let holds = [
            Cells::Text,
            Cells::Words,
            Cells::Words,
            Cells::Words,
            Cells::Text,
        ];
        let columns = titles.into_iter().zip(holds).enumerate();
        let columns = columns.map(|(n, (title, holds))| Column {
            title,
            holds,
            cells: rows.iter().map(|row| row[n].clone()).collect(),
        });
        table::write(out, columns.collect(), 1, true);
    }
    let _ = writeln!(
        out,
        "{} the same here and in {}.",
        human::plural(told.count(State::Same), "session is", "sessions are"),
        human::path(&told.relay)
    );
    if console.verbose {
        for session in told.stuck() {
            told::details(out, session);
        }
    }
}
