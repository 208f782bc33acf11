//! `wbhome man`: the manual pages, made from the same words as `--help`.

use std::path::PathBuf;

use clap::{Args, CommandFactory, ValueHint};

use super::args::{Cli, Global};
use super::output::Console;
use crate::base::{Error, Exit, Result, human};
use crate::disk;

/// Write the manual pages into a folder
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wbhome man ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// The folder; it is made when it is not there
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

const SECTIONS: &str = r#".SH "EXIT STATUS"
.TP
.B 0
Done; also: nothing to do.
.TP
.B 1
Failed, for a reason that a person can act on.
.TP
.B 2
The command line makes no sense.
.TP
.B 3
Done in part: something could not be read, copied or sent; each is named.
.TP
.B 4
Looked, and found problems.
.TP
.B 10, 11, 12
No home here; locked by somebody else; written by a newer version.
.TP
.B 101
A bug in wbhome.
.TP
.B 130
Interrupted.
.SH ENVIRONMENT
.TP
.B WBHOME
The home, when \-\-home is not given.
.TP
.B HOME
Where workbuddy_home is looked for, and what ~ means in references.
.TP
.B NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS
Colour and width of what is printed.
.TP
.B COMPLETE
Set by a shell that asks for completion; see shell\-init.
.SH FILES
.TP
.I index.json
Identity, labels and status of every session. May be edited by hand.
.TP
.I wbhome.toml
The settings of the home, each with a comment.
.TP
.I sessions/, archive/, projects/
The sessions, packed sessions, links to the sessions of each project.
.TP
.I .wbhome/
The tool's own: lock, journal, trash, the records of migrations.
"#;

pub(super) fn run(args: ManArgs, global: &Global, console: &Console) -> Result<Exit> {
    let pages = pages()?;
    if !global.dry_run {
        disk::create_folder(&args.dir)?;
    }
    for (name, page) in &pages {
        let path = args.dir.join(name);
        if !global.dry_run {
            disk::overwrite(&path, page)?;
        }
        console.note(&human::path(&path));
    }
    Ok(Exit::Done)
}

/// Every page with its file name.
fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    page("wbhome", &command, &mut pages)?;
    Ok(pages)
}

fn page(name: &str, command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    // The pages say nothing of the day they were made on, so that the same program makes the same pages.
    let titled = command
        .clone()
        .name(name.to_owned())
        .display_name(name.to_owned());
    let man = clap_mangen::Man::new(titled)
        .title(name.to_uppercase())
        .date("")
        .manual("wbhome");
    let mut text = Vec::new();
    man.render(&mut text)
        .map_err(|e| Error::failed("can not write a manual page").because(e))?;
    let text = with_usage(&String::from_utf8_lossy(&text), command);
    let text = with_examples(&text) + SECTIONS;
    pages.push((format!("{name}.1"), text.into_bytes()));
    for verb in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        page(&format!("{name}-{}", verb.get_name()), verb, pages)?;
    }
    Ok(())
}

/// The synopsis is what `--help` shows as usage, instead of all options without what they take.
fn with_usage(page: &str, command: &clap::Command) -> String {
    const SYNOPSIS: &str = ".SH SYNOPSIS\n";
    let Some((before, rest)) = page.split_once(SYNOPSIS) else {
        return page.to_owned();
    };
    let end = rest.find(".SH ").unwrap_or(rest.len());
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let lines = usage.lines().map(str::trim).map(|line| {
        let line = line.replace('\\', "\\\\").replace('-', "\\-");
        format!("{line}\n")
    });
    let lines: String = lines.collect();
    format!("{before}{SYNOPSIS}.nf\n{lines}.fi\n{}", &rest[end..])
}

/// What `--help` ends with comes as a section EXTRA, filled to the width of the screen. It becomes EXAMPLES, line
/// by line as it was written; where it is none (the exit codes, which have a section), it goes.
fn with_examples(page: &str) -> String {
    const EXTRA: &str = ".SH EXTRA\n";
    let Some((before, rest)) = page.split_once(EXTRA) else {
        return page.to_owned();
    };
    let end = rest.find("\n.SH ").map_or(rest.len(), |at| at + 1);
    let (extra, after) = rest.split_at(end);
    match extra.split_once('\n') {
        Some(("Examples:" | "Example:", lines)) => {
            let lines = lines.split_inclusive('\n');
            let lines: String = lines.take_while(|line| line.starts_with(' ')).collect();
            format!("{before}.SH EXAMPLES\n.nf\n{lines}.fi\n{after}")
        }
        _ => format!("{before}{after}"),
    }
}
