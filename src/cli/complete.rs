//! `wbhome completions`, and what is offered at the press of the tab key.
//!
//! The shell asks this very program for candidates. What is installed is only a line that loads the protocol of the
//! program that is there: it may change from version to version, so a stored script of it would break. The protocols
//! are our own, one file a shell: those of `clap_complete` leave names with spaces unquoted, and quotes dangling.
//! Candidates come fast, take no lock, write nothing, and are none on any error.

use std::ffi::OsString;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::{EnvCompleter, Shells};

use self::shells::Protocol;
use super::Cli;
use super::output::Console;
use crate::base::{Exit, Result};

mod bash;
mod choice;
mod escape;
mod fish;
mod line;
mod offers;
mod others;
mod shells;
pub(super) mod words;
mod zsh;

pub(super) use offers::{
    active_sessions, agents, archived_sessions, conditions, inside_active_sessions,
    inside_sessions, projects, relayed_sessions, restorable, restore_places, sessions, statuses,
    stores, sync_tags, tags, travelling_sessions,
};

/// What tells the program that a shell is asking.
const VARIABLE: &str = "COMPLETE";

/// Print what turns completion on in a shell
///
/// It is a line that loads the rest from the installed program whenever a shell starts. `wbhome shell-init` turns
/// completion on as well, and adds `wbcd`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo 'eval \"$(wbhome completions bash)\"' >> ~/.bashrc
  echo 'eval \"$(wbhome completions zsh)\"' >> ~/.zshrc
  wbhome completions fish > ~/.config/fish/completions/wbhome.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(name = "powershell")]
    Power,
}

impl Shell {
    fn protocol(self) -> &'static Protocol {
        match self {
            Shell::Bash => &bash::BASH,
            Shell::Zsh => &zsh::ZSH,
            Shell::Fish => &fish::FISH,
            Shell::Elvish => &others::ELVISH,
            Shell::Power => &others::POWER,
        }
    }

    /// What a shell has to be told to ask the program for candidates.
    pub(super) fn script(self, program: &str) -> String {
        self.protocol().script(VARIABLE, "wbhome", program)
    }

    /// A text as one word of a script.
    pub(super) fn quoted(self, text: &str) -> String {
        (self.protocol().quoted)(text)
    }
}

pub(super) fn run(args: CompletionsArgs, console: &Console) -> Result<Exit> {
    console.print(match args.shell {
        Shell::Bash => "# wbhome completion for bash: asks the installed wbhome at shell start.\neval \"$(COMPLETE=bash wbhome)\"\n",
        Shell::Zsh => "#compdef wbhome\n# wbhome completion for zsh: asks the installed wbhome at shell start.\neval \"$(COMPLETE=zsh wbhome)\"\n# Loaded by the first press of the tab key, it answers that, too.\nif [[ $funcstack[1] == _wbhome ]]; then _wbhome_complete \"$@\"; fi\n",
        Shell::Fish => "# wbhome completion for fish: asks the installed wbhome at shell start.\nCOMPLETE=fish wbhome | source\n",
        Shell::Elvish => "# wbhome completion for elvish: asks the installed wbhome at shell start.\neval (env COMPLETE=elvish wbhome | slurp)\n",
        Shell::Power => "# wbhome completion for PowerShell: asks the installed wbhome at shell start.\n$env:COMPLETE = \"powershell\"\nwbhome | Out-String | Invoke-Expression\nRemove-Item Env:\\COMPLETE\n",
    })?;
    Ok(Exit::Done)
}

/// Answers a shell that asks for candidates, or for the protocol; whether one did.
pub(super) fn answer() -> bool {
    let shells: [&dyn EnvCompleter; 6] = [
        &bash::BASH,
        &zsh::ZSH,
        &fish::FISH,
        &others::ELVISH,
        &others::POWER,
        &choice::CHOICE,
    ];
    let args: Vec<OsString> = std::env::args_os().collect();
    let is_typing = args.iter().any(|arg| arg == "--");
    let folder = std::env::current_dir().ok();
    let answered = CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .shells(Shells(&shells))
        .try_complete(args, folder.as_deref());
    match answered {
        Ok(answered) => answered,
        // Whoever is typing must not be disturbed.
        Err(_) if is_typing => true,
        Err(error) => error.exit(),
    }
}
