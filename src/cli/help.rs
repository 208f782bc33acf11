//! `--help` of the whole and of each command: commands in groups, a screen each.
//!
//! What people read here is made of the same words as the manual, in a denser form: the flags that every command takes
//! are named in one line, and told of once, in `wbhome --help`. The plain command line of `args` stays what is parsed.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory};

use super::Cli;
use super::output::terminal_width;
use super::width::fold;

/// Every command in its group.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Making and browsing",
        &[
            "init", "new", "ls", "show", "path", "search", "browse", "du", "label", "mv", "rm",
            "index", "check", "relink", "doctor",
        ],
    ),
    ("Moving in", &["migrate"]),
    (
        "Keeping",
        &[
            "commit",
            "history",
            "diff",
            "archive",
            "unarchive",
            "rotate",
            "backup",
            "restore",
            "drill",
            "nightly",
            "schedule",
        ],
    ),
    ("Sharing", &["relay", "lease", "export"]),
    ("In the shell", &["completions", "shell-init", "man"]),
];

/// Where commands are shown that have no group.
const REST: &str = "More";

/// The message for a command line that asks for help, or for which help is all there is to say; else `error` itself.
pub(super) fn in_place_of(error: clap::Error, line: impl Iterator<Item = OsString>) -> clap::Error {
    let asks = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    match asks.then(|| command(terminal_width()).try_get_matches_from(line)) {
        Some(Err(dressed)) if dressed.kind() == error.kind() => dressed,
        _ => error,
    }
}

/// The command line as `--help` shows it, on a terminal so wide.
fn command(limit: Option<usize>) -> Command {
    let whole = Cli::command();
    let style = *whole.get_styles().get_header();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{style}Options:{style:#}\n{{options}}{{after-help}}",
        groups(&whole, limit)
    );
    let global: Vec<clap::Arg> = whole
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .map(|arg| arg.clone().hide(true))
        .collect();
    let dense = |command: Command| dense(command, &global, limit);
    whole.help_template(template).mut_subcommands(dense)
}

/// `Keeping:`, and a line for each command in it.
fn groups(whole: &Command, limit: Option<usize>) -> String {
    let style = *whole.get_styles().get_header();
    let name_style = *whole.get_styles().get_literal();
    let shown = || whole.get_subcommands().filter(|verb| !verb.is_hide_set());
    let width = shown().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let rest: Vec<&str> = shown()
        .map(Command::get_name)
        .filter(|n| !listed(n))
        .collect();
    let mut out = String::new();
    for (title, names) in GROUPS.iter().copied().chain([(REST, &rest[..])]) {
        let verbs: Vec<&Command> = names
            .iter()
            .filter_map(|n| shown().find(|v| v.get_name() == *n))
            .collect();
        if verbs.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{style}{title}:{style:#}");
        for verb in verbs {
            let about = verb
                .get_about()
                .map(StyledStr::to_string)
                .unwrap_or_default();
            let name = verb.get_name();
            let about = fold(&about, width + 4, limit);
            let _ = writeln!(out, "  {name_style}{name:<width$}{name_style:#}  {about}");
        }
        out.push('\n');
    }
    out
}

/// The whole description, and each option in as few lines as it takes.
fn dense(command: Command, global: &[clap::Arg], limit: Option<usize>) -> Command {
    let about = command.get_long_about().or(command.get_about()).cloned();
    let style = *command.get_styles().get_header();
    let has_verbs = command.has_subcommands();
    let mut command = command
        .long_about(None::<&str>)
        .about(about.unwrap_or_default())
        .mut_args(|arg| {
            let help = arg.get_long_help().or(arg.get_help()).cloned();
            arg.long_help(None::<&str>).help(help.unwrap_or_default())
        });
    // Those of a command come before those that it inherits.
    for arg in global {
        command = command.arg(arg.clone());
    }
    let global_options = format!(
        "{style}Global options:{style:#} --home DIR, --json, -n, -q, -v, -y, --color WHEN, --no-progress, --lock-wait TIME"
    );
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{all-args}}\n\n{}{{after-help}}",
        fold(&global_options, 0, limit)
    );
    let command = command.help_template(template);
    match has_verbs {
        true => command.mut_subcommands(|verb| dense(verb, global, limit)),
        false => command,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::complete::words::{Dialect, nothing, words};
    use super::*;

    /// Every command with its names: `backup run`.
    fn commands(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let name = format!("{name} {}", verb.get_name());
            commands(verb, &name, all);
            all.push((name.trim().to_owned(), verb.clone()));
        }
    }

    fn all() -> Vec<(String, Command)> {
        let mut all = Vec::new();
        commands(&Cli::command(), "", &mut all);
        assert!(all.len() > 30);
        all
    }

    fn help(line: &str) -> String {
        let line = format!("wbhome {line} --help");
        let error = command(None).try_get_matches_from(line.split_whitespace());
        error.unwrap_err().render().to_string()
    }

    #[test]
    fn every_command_has_one_group() {
        for verb in Cli::command().get_subcommands() {
            let groups = GROUPS
                .iter()
                .filter(|(_, names)| names.contains(&verb.get_name()));
            assert_eq!(groups.count(), 1, "{}", verb.get_name());
        }
        let help = help("");
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
        assert!(at("Making and browsing:") < at("\n  init "));
        assert!(at("\n  init ") < at("Moving in:") && at("Moving in:") < at("\n  migrate "));
        assert!(at("Keeping:") < at("\n  commit ") && at("\n  commit ") < at("In the shell:"));
        assert!(at("In the shell:") < at("\n  man ") && at("\n  man ") < at("--home"));
        assert!(!help.contains(REST));
    }

    #[test]
    fn help_fits_a_screen() {
        for (name, _) in all() {
            let help = help(&name);
            let lines = help.lines().count();
            assert!(lines <= 45, "{name}: {lines} lines\n{help}");
            let wide = help.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "{name}");
            assert_eq!(help.matches("--lock-wait").count(), 1, "{name}: {help}");
            assert!(help.contains("--help"), "{name}");
        }
        assert!(help("").lines().count() <= 68, "{}", help(""));
    }

    #[test]
    fn purposes_are_one_line() {
        for (name, command) in all() {
            let about = command
                .get_about()
                .map(StyledStr::to_string)
                .unwrap_or_default();
            assert!(
                (10..=85).contains(&about.chars().count()),
                "{name}: {about}"
            );
            assert!(!about.ends_with('.'), "{name}: {about}");
        }
    }

    /// The commands in the examples of a help text.
    fn examples(command: &Command) -> Vec<String> {
        let text = command
            .get_after_help()
            .map(StyledStr::to_string)
            .unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
        lines
            .filter_map(|line| {
                // Two spaces lead to what it does.
                let line = line.split("  ").next()?;
                let (_, typed) = line.split_at(line.find("wbhome ")?);
                Some(
                    typed
                        .split([')', '|', '>', ';', '&'])
                        .next()?
                        .trim_end()
                        .to_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn examples_are_there_and_are_understood() {
        for (name, command) in all() {
            let examples = examples(&command);
            assert!(!examples.is_empty(), "{name} has no example");
            assert!(help(&name).contains(&examples[0]), "{name}");
            let own = format!("wbhome {name}");
            assert!(
                examples.iter().any(|typed| typed.contains(&own)),
                "{name}: {examples:?}"
            );
            for typed in examples {
                let words = words(typed.as_bytes(), Dialect::Posix, &nothing);
                let words: Vec<OsString> = words.into_iter().map(|word| word.value).collect();
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{name}: `{typed}`: {error}");
                }
            }
        }
    }

    #[test]
    fn slips_are_corrected() {
        for (typed, meant) in [
            ("shwo x", "show"),
            ("archvie x", "archive"),
            ("backup verfiy", "verify"),
            ("ls --stauts active", "--status"),
        ] {
            let line = format!("wbhome {typed}");
            let error = Cli::try_parse_from(line.split(' '))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("tip: ") && error.contains(&format!("'{meant}'")),
                "{error}"
            );
        }
    }
}
