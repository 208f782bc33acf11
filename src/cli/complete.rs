//! `wbhome completions`, and what is offered at the press of the tab key.
//!
//! The shell asks this very program for candidates. What is installed is only a line that loads the
//! protocol of the program that is there: it may change from version to version, so a stored script of it
//! would break. Candidates come fast, take no lock, and are empty on any error.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::{Args, ValueEnum};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use super::output::Console;
use crate::base::{Exit, Result};
use crate::home::{self, Entry, Home, Index};

/// Print what turns completion on in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo 'source <(wbhome completions bash)' >> ~/.bashrc
  echo 'source <(wbhome completions zsh)' >> ~/.zshrc
  wbhome completions fish > ~/.config/fish/completions/wbhome.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(name = "powershell")]
    Power,
}

pub(super) fn run(args: CompletionsArgs, console: &Console) -> Result<Exit> {
    console.print(match args.shell {
        Shell::Bash => "# wbhome completion for bash: asks the installed wbhome at shell start.\nsource <(COMPLETE=bash wbhome)\n",
        Shell::Zsh => "#compdef wbhome\n# wbhome completion for zsh: asks the installed wbhome at shell start.\nsource <(COMPLETE=zsh wbhome)\n",
        Shell::Fish => "# wbhome completion for fish: asks the installed wbhome at shell start.\nCOMPLETE=fish wbhome | source\n",
        Shell::Elvish => "# wbhome completion for elvish: asks the installed wbhome at shell start.\neval (E:COMPLETE=elvish wbhome | slurp)\n",
        Shell::Power => "# wbhome completion for PowerShell: asks the installed wbhome at shell start.\n$env:COMPLETE = \"powershell\"\nwbhome | Out-String | Invoke-Expression\nRemove-Item Env:\\COMPLETE\n",
    })?;
    Ok(Exit::Done)
}

/// Session ids, with status and title.
pub(super) fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |entry| {
            let title = entry.title().map(|t| format!(", {t}")).unwrap_or_default();
            vec![(
                entry.id().to_owned(),
                format!("{}{title}", entry.status().as_str()),
            )]
        })
    })
}

/// Where `restore` takes from, and folders: that of a store.
pub(super) fn restore_places() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let places = super::restore::PLACES.iter();
        let fits = places.filter(|(name, _)| name.starts_with(&*typed.to_string_lossy()));
        let mut all: Vec<CompletionCandidate> = fits
            .map(|(name, what)| CompletionCandidate::new(*name).help(Some((*what).into())))
            .collect();
        all.extend(PathCompleter::dir().complete(typed));
        all
    })
}

/// Tags in use.
pub(super) fn tags() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |entry| {
            entry
                .tags()
                .iter()
                .map(|t| ((*t).to_owned(), String::new()))
                .collect()
        })
    })
}

/// Projects in use.
pub(super) fn projects() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |entry| {
            entry
                .project()
                .map(|p| (p.to_owned(), String::new()))
                .into_iter()
                .collect()
        })
    })
}

/// Agents in use.
pub(super) fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |entry| {
            entry
                .agent()
                .map(|a| (a.to_owned(), String::new()))
                .into_iter()
                .collect()
        })
    })
}

fn candidates(
    typed: &OsStr,
    offer: impl Fn(&Entry) -> Vec<(String, String)>,
) -> Vec<CompletionCandidate> {
    let Some(home) = home_of_the_line() else {
        return Vec::new();
    };
    let index = Index::read(&home).unwrap_or_default();
    let typed = typed.to_string_lossy();
    let offered: BTreeSet<(String, String)> = index
        .entries()
        .flat_map(offer)
        .filter(|(value, _)| value.starts_with(&*typed) && !value.chars().any(char::is_control))
        .collect();
    offered
        .into_iter()
        .map(|(value, help)| {
            let help =
                (!help.is_empty()).then(|| crate::base::human::escape(&help).into_owned().into());
            CompletionCandidate::new(value).help(help)
        })
        .collect()
}

/// The home that the command line being typed means: `--home` counts here too.
fn home_of_the_line() -> Option<Home> {
    let words: Vec<_> = std::env::args_os().collect();
    let after_flag = words
        .windows(2)
        .find(|pair| pair[0] == "--home")
        .map(|pair| pair[1].clone());
    let joined = words
        .iter()
        .find_map(|w| w.to_str()?.strip_prefix("--home=").map(Into::into));
    let named = after_flag
        .or(joined)
        .map(|home: std::ffi::OsString| (home.into(), "--home"))
        .or_else(|| std::env::var_os("WBHOME").map(|home| (home.into(), "$WBHOME")));
    let cwd = std::env::current_dir().ok()?;
    let found = home::find(named, &cwd, super::place::user_home().as_deref()).ok()?;
    Home::open(found.root.0, found.trust).ok()
}
