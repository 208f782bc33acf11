//! What a person types and reads. A verb's file reads like its help text: arguments, call, print.
//!
//! This is the only room that reads the environment, and the only one that prints.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the environment and printing belong to this room"
)]

mod archive;
mod args;
mod backup;
mod check;
mod commit;
mod complete;
mod diff;
mod doctor;
mod drill;
mod du;
mod errors;
mod export;
mod findings;
mod followed;
mod help;
mod history;
mod index;
mod init;
mod label;
mod lease;
mod ls;
mod man;
mod migrate;
mod mv;
mod new;
mod nightly;
mod output;
mod pager;
mod path;
mod place;
mod progress;
mod pushed;
mod relay;
mod relink;
mod restore;
mod rm;
mod rotate;
mod schedule;
mod search;
mod shell_init;
mod shortened;
mod show;
mod signals;
mod table;
mod unarchive;
mod when;
mod width;

use std::ffi::OsString;

use clap::Parser;

pub use args::Cli;

use crate::base::{Clock, Context, Exit, FixedClock, Stop, SystemClock};
use args::Verb;
use output::Console;

/// Runs the program: reads the command line, does what it says, prints what came of it.
pub fn run() -> Exit {
    if complete::answer() {
        return Exit::Done;
    }
    arm_failpoint();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let line: Vec<OsString> = std::env::args_os().collect();
            let error = errors::with_its_name(errors::harmless(error, &line));
            return errors::usage(&help::in_place_of(error, line.into_iter()));
        }
    };
    let console = Console::new(&cli.global);
    let stop = Stop::new();
    if let Err(error) = signals::listen(&stop) {
        console.warn(&format!("signals can not be caught: {error}"));
    }
    let clock = clock();
    let progress = progress::Bar::new(&cli.global);
    let ctx = Context {
        clock: clock.as_ref(),
        progress: &progress,
        stop: &stop,
    };
    let again = place::again(&cli.global);
    let done = dispatch(cli, &console, &ctx);
    // A bar that a failure left on the screen would stand above the message.
    crate::base::Progress::finish(&progress);
    match done {
        Ok(exit) => exit,
        Err(error) => errors::report(&console, &error, &again),
    }
}

fn dispatch(cli: Cli, console: &Console, ctx: &Context) -> crate::base::Result<Exit> {
    let global = &cli.global;
    match cli.verb {
        Verb::Init(args) => init::run(args, global, console, ctx),
        Verb::New(args) => new::run(args, global, console, ctx),
        Verb::Ls(args) => ls::run(args, global, console, ctx),
        Verb::Show(args) => show::run(args, global, console, ctx),
        Verb::Path(args) => path::run(args, global, console),
        Verb::Search(args) => search::run(args, global, console, ctx),
        Verb::Du(args) => du::run(args, global, console, ctx),
        Verb::Label(args) => label::run(args, global, console, ctx),
        Verb::Lease(args) => lease::run(args, global, console, ctx),
        Verb::Rm(args) => rm::run(args, global, console, ctx),
        Verb::Restore(args) => restore::run(args, global, console, ctx),
        Verb::History(args) => history::run(args, global, console, ctx),
        Verb::Diff(args) => diff::run(args, global, console, ctx),
        Verb::Index(args) => index::run(args, global, console, ctx),
        Verb::Check(args) => check::run(args, global, console, ctx),
        Verb::Commit(args) => commit::run(args, global, console, ctx),
        Verb::Archive(args) => archive::run(args, global, console, ctx),
        Verb::Unarchive(args) => unarchive::run(args, global, console, ctx),
        Verb::Backup(args) => backup::run(args, global, console, ctx),
        Verb::Drill(args) => drill::run(args, global, console, ctx),
        Verb::Doctor(args) => doctor::run(args, global, console, ctx),
        Verb::Export(args) => export::run(args, global, console, ctx),
        Verb::Mv(args) => mv::run(args, global, console, ctx),
        Verb::Rotate(args) => rotate::run(args, global, console, ctx),
        Verb::Relay(args) => relay::run(args, global, console, ctx),
        Verb::Relink(args) => relink::run(args, global, console, ctx),
        Verb::Nightly(args) => nightly::run(args, global, console, ctx),
        Verb::Schedule(args) => schedule::run(args, global, console, ctx),
        Verb::Migrate(args) => migrate::run(args, global, console, ctx),
        Verb::Completions(args) => complete::run(args, console),
        Verb::ShellInit(args) => shell_init::run(args, console),
        Verb::Man(args) => man::run(args, global, console),
    }
}

/// The clock, which a test may stop by `WBHOME_NOW`.
fn clock() -> Box<dyn Clock> {
    match std::env::var("WBHOME_NOW")
        .ok()
        .and_then(|now| now.parse().ok())
    {
        Some(now) => Box::new(FixedClock::new(now)),
        None => Box::new(SystemClock),
    }
}

/// A test names in `WBHOME_FAILPOINT` where the program shall die.
fn arm_failpoint() {
    #[cfg(feature = "failpoints")]
    if let Ok(name) = std::env::var("WBHOME_FAILPOINT") {
        crate::base::failpoint::arm(name);
    }
}
