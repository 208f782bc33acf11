//! `wbhome commit`: session text into git, and with `--push` to the remote.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::args::Global;
use super::complete;
use super::output::{Console, FAINT, STRONG, can_ask, styled};
use super::{place, pushed};
use crate::base::{Context, Error, Exit, Kind, Result, human};
use crate::history::commit::{self, Outcome, Request};
use crate::history::push::{self, Push};
use crate::history::{self, Repository, Why};
use crate::home::{Config, Index, resolve_all};

/// Put session text into git: what changed, in one commit
///
/// Takes sessions/, agents/, index.json, wbhome.toml and .gitignore: all text that no .gitignore leaves out. When
/// nothing has changed, nothing is committed.
///
/// With --push, or [git] push in wbhome.toml, the commits that the remote does not have are looked at for secrets, and
/// pushed when there are none. The commit stands whatever becomes of that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome commit                                all that has changed
  wbhome commit crawler -m 'Before the rewrite'  one session
  wbhome commit --push                         and to the remote, if no secret is in it
  wbhome commit -n                             what would be committed")]
pub(super) struct CommitArgs {
    /// Only these sessions: ids, unique parts of ids, or @1 for the most recent
    #[arg(value_name = "SESSION", add = complete::active_sessions())]
    sessions: Vec<String>,
    /// The message, instead of one that says what changed
    #[arg(short, long, value_name = "MSG")]
    message: Option<String>,
    /// Push what the remote does not have yet, also when nothing has changed since the last commit
    #[arg(long)]
    push: bool,
    /// Pack the repository as small as git can, now
    #[arg(long, conflicts_with = "sessions")]
    consolidate: bool,
}

pub(super) fn run(
    args: CommitArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    if args
        .message
        .as_deref()
        .is_some_and(|message| message.trim().is_empty())
    {
        return Err(Error::usage("the message is empty").hint("without -m it says what changed"));
    }
    let home = place::open(global)?;
    let config = Config::load(&home)?;
    let wants_push = args.push || config.git.push;
    let request = Request {
        sessions: resolve_all(&home, &args.sessions)?,
        message: args.message,
        max_file: config.git.max_file,
        wait: global.lock_wait,
    };
    let elsewhere = place::git_dir(&config);
    if global.dry_run {
        history::refuse_astray(&home, elsewhere.as_deref())?;
        let repository = Repository::expect(&home)?;
        let plan = commit::plan(&home, &repository, &request, ctx)?;
        let done = commit::preview(&home, &repository, plan, ctx)?;
        let push = wants_push.then(|| push::preview(&home, &repository, &config, ctx));
        let push = push.map(|push| pushed::spelled(push, global));
        warn(&done, console);
        console.result("commit-plan/1", &Document::of(&done, &push), |out| {
            write(out, &done, console.verbose);
            if let Some(push) = &push {
                pushed::write(out, push, done.subject.is_some());
            }
            let _ = writeln!(out, "Nothing was changed.");
        })?;
        return Ok(done
            .exit()
            .merge(pushed::tell(push.as_ref(), global, console)));
    }
    let locked = place::lock(&home, "commit", global, console, ctx)?;
    let repository = match Repository::open(&locked)? {
        Some(repository) => {
            history::refuse_astray(&locked, elsewhere.as_deref())?;
            repository
        }
        None => {
            let began = history::begin(&locked, elsewhere.as_deref(), ctx)?;
            console.note(&format!(
                "The history begins in {}.",
                human::path(&began.dir)
            ));
            Repository::expect(&locked)?
        }
    };
    let mut done = commit::apply(&locked, &repository, &request, ctx)?;
    if args.consolidate {
        match history::consolidate::now(&locked, &repository, ctx) {
            Ok(consolidated) => done.consolidated = Some(consolidated),
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => {
                let hints = error.hints().iter().map(|hint| format!("; {hint}"));
                done.not_consolidated = Some(format!("{error}{}", hints.collect::<String>()));
            }
        }
    }
    let push = wants_push.then(|| push::push(&locked, &repository, &config, can_ask(), ctx));
    let push = push.map(|push| pushed::spelled(push, global));
    warn(&done, console);
    if let Err(error) = Index::read(&locked) {
        console.warn(&format!(
            "{error}; it was committed as it is. `{} index --rebuild` takes the labels of the last commit that has a whole one",
            place::again(global)
        ));
    }
    console.report("commit/1", &Document::of(&done, &push), |out| {
        write(out, &done, console.verbose);
        if let Some(push) = &push {
            pushed::write(out, push, false);
        }
    })?;
    Ok(done
        .exit()
        .merge(pushed::tell(push.as_ref(), global, console)))
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    done: &'a Outcome,
    /// None when none was asked for.
    push: Option<&'a Push>,
}

impl<'a> Document<'a> {
    fn of(done: &'a Outcome, push: &'a Option<Push>) -> Self {
        Document {
            done,
            push: push.as_ref(),
        }
    }
}

fn warn(done: &Outcome, console: &Console) {
    for unread in &done.unread {
        let path = match unread.path.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => human::path(&unread.path),
        };
        console.warn(&format!(
            "not in the commit: {path}: {}",
            human::escape(&unread.why)
        ));
    }
    if let Some(why) = &done.not_consolidated {
        console.warn(&human::escape(why));
    }
}

fn write(out: &mut String, done: &Outcome, verbose: bool) {
    match (&done.subject, &done.commit) {
        (None, _) => {
            let _ = writeln!(
                out,
                "Nothing has changed since the last commit, which holds {}.",
                human::plural(done.held, "file", "files")
            );
        }
        (Some(subject), made) => {
            let _ = writeln!(out, "{}", styled(STRONG, human::escape(subject)));
            let files = human::plural(done.files.total(), "file", "files");
            let _ = match made {
                Some(made) => writeln!(
                    out,
                    "  {} {}   {files}, {} new",
                    human::name(&made.branch),
                    &made.id[..10],
                    human::size(made.bytes)
                ),
                None => writeln!(out, "  {files} would be committed"),
            };
        }
    }
    if verbose && done.subject.is_some() {
        for session in &done.sessions {
            let _ = writeln!(out, "  {}", human::name(&session.to_string()));
        }
    }
    write_left_out(out, done, verbose);
    if let Some(consolidated) = &done.consolidated {
        let _ = writeln!(out, "{consolidated}");
    }
}

fn write_left_out(out: &mut String, done: &Outcome, verbose: bool) {
    let mut reasons: BTreeMap<Why, (u64, u64)> = BTreeMap::new();
    for left in &done.left_out {
        let (files, bytes) = reasons.entry(left.why).or_default();
        *files += 1;
        *bytes += left.bytes;
    }
    if !reasons.is_empty() {
        let mut parts = Vec::new();
        for (why, (files, bytes)) in &reasons {
            parts.push(format!(
                "{} {} ({})",
                human::count(*files),
                why.described(),
                human::size(*bytes)
            ));
        }
        let more = if verbose { "" } else { "   -v names each" };
        let _ = writeln!(out, "Left out: {}{}", parts.join(", "), styled(FAINT, more));
    }
    if verbose {
        for left in &done.left_out {
            let _ = writeln!(
                out,
                "  {}   {}, {}",
                human::path(&left.path),
                left.why.described(),
                human::size(left.bytes)
            );
        }
    }
    if !done.nested.is_empty() {
        let _ = writeln!(
            out,
            "{} inside sessions, taken in as plain files without their .git",
            human::plural(done.nested.len() as u64, "repository", "repositories")
        );
        if verbose {
            for nested in &done.nested {
                let _ = writeln!(out, "  {}", human::path(nested));
            }
        }
    }
}
