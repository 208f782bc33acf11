//! `wbhome export`: what a person carries to another machine, or uploads, by hand.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::archive::{content, interrupted};
use super::args::Global;
use super::output::{Console, FAINT, STRONG, styled};
use super::{complete, place};
use crate::base::{Context, Exit, Result, human};
use crate::browse::show::meant_all;
use crate::home::Config;
use crate::relay::export::{
    self, Finding, Item, Kind, Outcome, Part, Plan, Refused, Request, Wanted,
};

/// So many findings of an item are named when not all are.
const NAMED: usize = 20;

/// Put sessions, or what is in them, into a folder, to be carried by hand
///
/// A session becomes one .tar.zst, which `tar --zstd -xf` unpacks too; a file or folder in one is copied as it is. All of
/// it is looked at for secrets first: an item in which one is found stays here, unless [secrets] on_find is "warn". What is
/// written is read back, and never takes the place of anything. Nothing in the home is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wbhome export 20240603_crawler --to /media/stick
  wbhome export crawler/artifacts/prices.csv crawler/memory --to ~/upload
  wbhome export @1 --to ~/upload --logs -n    whether a secret is in it, with its logs")]
pub(super) struct ExportArgs {
    /// Sessions, archived or not, or what is in them
    #[arg(required = true, value_name = "SESSION[/PATH]", add = complete::inside_sessions())]
    items: Vec<OsString>,
    /// The folder that they are put in
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    to: PathBuf,
    /// Put the logs of sessions in, too [default: [relay] logs in wbhome.toml]
    #[arg(long)]
    logs: bool,
}

pub(super) fn run(
    args: ExportArgs,
    global: &Global,
    console: &Console,
    ctx: &Context,
) -> Result<Exit> {
    let home = place::open(global)?;
    place::refuse_untrusted(&home)?;
    let config = Config::load(&home)?;
    let items = meant_all(&home, &args.items)?;
    let items = items.into_iter().map(|(id, path)| Wanted { id, path });
    let request = Request {
        items: items.collect(),
        to: place::absolute(&args.to)?,
        logs: args.logs || config.relay.logs,
        on_find: config.secrets.on_find,
        level: config.archive.level,
    };
    let check = place::secrets(&home, &config)?;
    if global.dry_run {
        let plan = export::plan(&home, &request, &check, ctx)?;
        tell(&plan.items, &plan.held_back, &plan.refused, global, console);
        console.result("export-plan/1", &plan, |out| write_plan(out, &plan))?;
        return Ok(exit(&plan.items, &plan.held_back, &plan.refused));
    }
    let done = export::apply(&home, &request, &check, ctx)?;
    tell(
        &done.exported,
        &done.held_back,
        &done.refused,
        global,
        console,
    );
    console.report("export/1", &done, |out| write(out, &done))?;
    Ok(match done.interrupted {
        true => interrupted(console),
        false => exit(&done.exported, &done.held_back, &done.refused),
    })
}

/// The gravest of what happened; a failure is one only when nothing leaves.
fn exit(done: &[Item], held: &[Item], refused: &[Refused]) -> Exit {
    let gravest = refused
        .iter()
        .map(|one| one.exit)
        .fold(Exit::Done, Exit::merge);
    let partial = !held.is_empty()
        || !refused.is_empty()
        || done.iter().any(|item| !item.left_out.is_empty());
    match gravest {
        Exit::Done | Exit::Failed | Exit::Usage if partial => {
            let nothing = done.is_empty() && held.is_empty();
            if nothing { Exit::Failed } else { Exit::Partial }
        }
        gravest => gravest,
    }
}

/// What a person should know besides what is done.
fn tell(done: &[Item], held: &[Item], refused: &[Refused], global: &Global, console: &Console) {
    for item in done {
        aside(item, console);
        if !item.findings.is_empty() {
            let leaves = match global.dry_run {
                true => "would be exported",
                false => "was exported",
            };
            console.warn(&format!(
                "{} {leaves} with {} ([secrets] on_find is \"warn\"):",
                named(item),
                secrets(item)
            ));
            findings(item, console);
        }
    }
    for item in held {
        let stays = match global.dry_run {
            true => "would stay here",
            false => "stays here",
        };
        console.warn(&format!("{} {stays}: {} in it", named(item), secrets(item)));
        findings(item, console);
    }
    ways_out(held, console);
    let again = place::again(global);
    for one in refused {
        console.warn(&format!(
            "{}: {}",
            spelled(&one.id, one.inside.as_ref().map(|path| &*path.0)),
            place::spelled(&one.why, &again)
        ));
        for hint in &one.hints {
            console.hint(&place::spelled(hint, &again));
        }
    }
}

/// What is worth a line, and no warning but for what is missing.
fn aside(item: &Item, console: &Console) {
    for left in &item.left_out {
        let path = human::path(&left.path);
        console.warn(&format!(
            "{path} ({}) was left out",
            human::escape(&left.why)
        ));
    }
    for path in &item.being_written {
        let path = human::path(path);
        console.note(&format!(
            "{path} was being written: what is exported is its text of a moment"
        ));
    }
    if item.logs > 0 {
        let logs = human::plural(item.logs, "file", "files");
        console.note(&format!(
            "{}: {logs} of logs left out; --logs takes them",
            named(item)
        ));
    }
    for note in &item.notes {
        console.note(&format!("{}: {note}", named(item)));
    }
}

fn secrets(item: &Item) -> String {
    human::plural(item.findings.len() as u64, "secret", "secrets")
}

fn findings(item: &Item, console: &Console) {
    let named = match console.verbose {
        true => item.findings.len(),
        false => NAMED,
    };
    for finding in item.findings.iter().take(named) {
        console.say(&format!("  {}\n", line(finding)));
    }
    if let Some(more @ 1..) = item.findings.len().checked_sub(named) {
        let more = human::count(more as u64);
        console.say(&format!("  and {more} more; -v names each\n"));
    }
}

/// `20240603_crawler/context/turn_002.json:3   github-token ghp_…ab   digest 5bc1…`
fn line(finding: &Finding) -> String {
    let path = human::path(&finding.path);
    let at = match finding.part {
        Part::Content => format!("{path}:{}", finding.found.line),
        Part::Name => format!("{path} (its name)"),
        Part::Link => format!("{path} (what it points to)"),
        Part::Attribute => format!("{path} (an attribute)"),
    };
    format!(
        "{at}   {} {}   {}",
        human::escape(&finding.found.rule),
        finding.found.shown,
        styled(FAINT, format!("digest {}", finding.found.digest))
    )
}

fn ways_out(held: &[Item], console: &Console) {
    let mut digests: Vec<String> = Vec::new();
    for finding in held.iter().flat_map(|item| &item.findings) {
        let quoted = format!("\"{}\"", finding.found.digest);
        if !digests.contains(&quoted) {
            digests.push(quoted);
        }
    }
    if digests.is_empty() {
        return;
    }
    console.hint("a real one: take it out of use where it was issued, and out of the file");
    console.hint(&match digests.len() {
        1..=3 => format!(
            "a harmless one: allow = [{}] in [secrets] of wbhome.toml",
            digests.join(", ")
        ),
        _ => "harmless ones: their digests into `allow` in [secrets] of wbhome.toml".to_owned(),
    });
}

/// `20240603_crawler/context/turn_002.json`, as a person knows it.
fn named(item: &Item) -> String {
    spelled(&item.id, item.inside.as_ref().map(|path| &*path.0))
}

fn spelled(id: &str, inside: Option<&Path>) -> String {
    match inside {
        Some(path) => human::path(&Path::new(id).join(path)),
        None => human::name(id).into_owned(),
    }
}

fn write(out: &mut String, done: &Outcome) {
    for item in &done.exported {
        let packed = match (item.kind, item.written) {
            (Kind::Session, Some(written)) => format!(" → {}", human::size(written)),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "{}   {}{packed}   {}",
            styled(STRONG, named(item)),
            content(item.files, item.bytes),
            human::path(&item.to)
        );
    }
}

fn write_plan(out: &mut String, plan: &Plan) {
    for item in &plan.items {
        let _ = writeln!(
            out,
            "{}   {}   {}",
            styled(STRONG, named(item)),
            content(item.files, item.bytes),
            human::path(&item.to)
        );
    }
    let many = human::plural(plan.items.len() as u64, "item", "items");
    let _ = writeln!(out, "{many} would be exported. Nothing was changed.");
}
