//! `wbhome shell-init`: what a shell takes in at its start: completion, and `wbcd`.
//!
//! The text is made of nothing but the name of this program. Nothing is read, asked or kept.

use std::path::Path;

use clap::Args;

use super::complete::Shell;
use super::output::Console;
use super::place;
use crate::base::{Exit, Result};

/// Print what a shell takes in at its start: completion, and wbcd
///
/// `wbcd SESSION` goes to the folder of a session, named as anywhere: by its id, a unique part of it, or @1. `wbcd`
/// alone lets you choose one, through fzf where that is installed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo 'eval \"$(wbhome shell-init bash)\"' >> ~/.bashrc
  echo 'eval \"$(wbhome shell-init zsh)\"' >> ~/.zshrc
  echo 'wbhome shell-init fish | source' >> ~/.config/fish/config.fish")]
pub(super) struct ShellInitArgs {
    /// The shell
    shell: Shell,
}

/// For bash and zsh. The dot keeps what a name ends with: `$(…)` takes line ends away.
const POSIX: &str = r#"
wbcd() {
    local folder session
    if [ $# -eq 0 ]; then
        if ! command -v fzf >/dev/null 2>&1; then
            echo 'wbcd: to choose a session without naming one, fzf has to be installed; or: wbcd SESSION' >&2
            return 1
        fi
        session=$(COMPLETE=choice PROGRAM -- wbcd | fzf --delimiter='\t' --with-nth=2 --no-sort --prompt='session> ') || return
        set -- "${session%%"$(printf '\t')"*}"
    fi
    folder=$(PROGRAM path "$@" && printf .) || return
    folder=${folder%.}
    folder=${folder%?}
    if [ -d "$folder" ]; then
        cd -- "$folder"
    else
        printf '%s\n' "$folder"
        # What is no path is help, or JSON.
        case $folder in /*) echo 'wbcd: that is no folder' >&2; return 1;; esac
    fi
}
"#;

const BASH: &str = "complete -o nosort -F _wbhome_complete wbcd 2>/dev/null || complete -F _wbhome_complete wbcd\n";

/// Without `compinit` there is no completion in zsh. No dump is written, and nothing asked.
const ZSH_BEFORE: &str =
    "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D -i }\n";

const ZSH: &str = "compdef _wbhome_complete wbcd\n";

const FISH: &str = r#"
function wbcd --description 'Go to the folder of a session'
    set -l session $argv
    if test (count $argv) -eq 0
        if not command --query fzf
            echo 'wbcd: to choose a session without naming one, fzf has to be installed; or: wbcd SESSION' >&2
            return 1
        end
        set -l line (COMPLETE=choice PROGRAM -- wbcd | fzf --delimiter='\t' --with-nth=2 --no-sort --prompt='session> ')
        or return
        if test -z "$line"
            return 1
        end
        set session (string split --max 1 \t -- $line)[1]
    end
    set -l folder (PROGRAM path $session | string collect)
    or return
    if test -d "$folder"
        cd $folder
    else
        echo $folder
        # What is no path is help, or JSON.
        if string match --quiet '/*' -- $folder
            echo 'wbcd: that is no folder' >&2
            return 1
        end
    end
end
complete --command wbcd --no-files --keep-order --arguments '(__wbhome_complete)'
"#;

const ELVISH: &str = r#"edit:add-var wbcd~ {|@session|
    use str
    if (== 0 (count $session)) {
        if (not (has-external fzf)) {
            fail 'to choose a session without naming one, fzf has to be installed; or: wbcd SESSION'
        }
        var line = (env COMPLETE=choice PROGRAM -- wbcd | fzf --delimiter="\t" --with-nth=2 --no-sort --prompt='session> ')
        set session = [(str:split &max=2 "\t" $line | take 1)]
    }
    var folder = (str:trim-suffix (PROGRAM path $@session | slurp) "\n")
    use path
    if (path:is-dir &follow-symlink=$true $folder) {
        cd $folder
    } else {
        echo $folder
        # What is no path is help, or JSON.
        if (str:has-prefix $folder /) { fail 'that is no folder' }
    }
}
set edit:completion:arg-completer[wbcd] = $edit:completion:arg-completer[wbhome]
"#;

const POWER: &str = r#"function wbcd {
    $session = $args
    if ($session.Count -eq 0) {
        if (-not (Get-Command fzf -ErrorAction SilentlyContinue)) {
            Write-Error 'to choose a session without naming one, fzf has to be installed; or: wbcd SESSION'
            return
        }
        $env:COMPLETE = 'choice'
        $line = & PROGRAM -- wbcd | fzf --delimiter='\t' --with-nth=2 --no-sort --prompt='session> '
        Remove-Item Env:\COMPLETE
        if (-not $line) { return }
        $session = @($line.Split("`t")[0])
    }
    $folder = (& PROGRAM path @session) -join "`n"
    if ($LASTEXITCODE -ne 0) { return }
    if (Test-Path -LiteralPath $folder -PathType Container) { Set-Location -LiteralPath $folder }
    else { $folder }
}
"#;

pub(super) fn run(args: ShellInitArgs, console: &Console) -> Result<Exit> {
    let program = program();
    let shell = args.shell;
    let protocol = shell.script(&program);
    let quoted = shell.quoted(&program);
    let (before, goes, after) = match shell {
        Shell::Bash => ("", POSIX, BASH),
        Shell::Zsh => (ZSH_BEFORE, POSIX, ZSH),
        Shell::Fish => ("", FISH, ""),
        Shell::Elvish => ("", ELVISH, ""),
        Shell::Power => ("", POWER, ""),
    };
    // A function or alias of that name is not asked.
    let called = match shell {
        Shell::Bash | Shell::Zsh | Shell::Fish => format!("command {quoted}"),
        Shell::Elvish | Shell::Power => quoted,
    };
    let goes = goes.replace("PROGRAM", &called);
    console.print(&format!("{before}{protocol}{goes}{after}"))?;
    Ok(Exit::Done)
}

/// How this program is called: by its name where the shell finds it, else by its absolute path.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let called = Path::new(&called);
    let found = match called.components().count() {
        0 => return "wbhome".to_owned(),
        1 => called.to_path_buf(),
        _ => place::current_folder().map_or_else(|_| called.to_path_buf(), |cwd| cwd.join(called)),
    };
    found.to_string_lossy().into_owned()
}
