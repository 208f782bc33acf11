//! Writes a home of any size for the races: `scale_home OUT --sessions 420` makes just over 50,000 files and 300 MB.
//!
//! The content is that of the tests (`tests/support/corpus.rs`): the same arguments give the same bytes.
// A program for developers: it may print and read its arguments.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

#[path = "../tests/support/corpus.rs"]
mod corpus;

use corpus::Corpus;

const USAGE: &str =
    "scale_home OUT [--sessions N] [--turns N] [--old-path P] [--user-home DIR] [--snapshots]
                    [--log-kb N] [--artifact-kb N] [--damage] [--seed N]";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("scale_home: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: impl Iterator<Item = String>) -> Result<String, String> {
    let (out, corpus) = parse(args)?;
    if out
        .read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
    {
        return Err(format!("{} is not empty", out.display()));
    }
    let written = corpus
        .write(&out)
        .map_err(|e| format!("{}: {e}", out.display()))?;
    Ok(format!(
        "{}: {} sessions, {} files, {} symlinks, {:.1} MB, {} references to {}, {} damaged",
        out.display(),
        written.ids.len(),
        written.files,
        written.symlinks,
        written.bytes as f64 / 1e6,
        written.planted.references,
        corpus.old_path,
        written.damage.len(),
    ))
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<(PathBuf, Corpus), String> {
    // 119 files and 0.7 MB a session.
    let mut corpus = Corpus {
        sessions: 40,
        turns: 106,
        old_path: "/Users/me/Cloud Drive/workbuddy_home".into(),
        log_bytes: 160 << 10,
        artifact_bytes: 256 << 10,
        ..Corpus::default()
    };
    let mut out = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--sessions" => corpus.sessions = value(&arg, args.next())?,
            "--turns" => corpus.turns = value(&arg, args.next())?,
            "--old-path" => corpus.old_path = value(&arg, args.next())?,
            "--user-home" => corpus.user_home = Some(value(&arg, args.next())?),
            "--snapshots" => corpus.snapshots = true,
            "--log-kb" => corpus.log_bytes = value::<usize>(&arg, args.next())? << 10,
            "--artifact-kb" => corpus.artifact_bytes = value::<usize>(&arg, args.next())? << 10,
            "--damage" => corpus.damage = true,
            "--seed" => corpus.seed = value(&arg, args.next())?,
            "--help" | "-h" => return Err(format!("usage: {USAGE}")),
            _ if arg.starts_with('-') || out.is_some() => {
                return Err(format!("{arg}: not understood\nusage: {USAGE}"));
            }
            _ => out = Some(PathBuf::from(arg)),
        }
    }
    Ok((out.ok_or_else(|| format!("usage: {USAGE}"))?, corpus))
}

fn value<T: FromStr>(name: &str, given: Option<String>) -> Result<T, String> {
    let text = given.ok_or_else(|| format!("{name} needs a value"))?;
    text.parse()
        .map_err(|_| format!("{name} {text}: not understood"))
}
