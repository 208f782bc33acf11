//! elvish and PowerShell. Both know values from text: they get each candidate as a line of JSON.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use super::super::output::json_line;
use super::shells::{Offer, Protocol, ask, quoted};

const ELVISH_SCRIPT: &str = r#"set edit:completion:arg-completer[BIN] = {|@words|
    env VAR=elvish PROGRAM -- $@words 2>/dev/null | from-json | each {|offer|
        edit:complex-candidate $offer[value] &display=$offer[display] &code-suffix=$offer[suffix]
    }
}
"#;

pub(super) static ELVISH: Protocol = Protocol {
    name: "elvish",
    also: &[],
    script: ELVISH_SCRIPT,
    quoted: for_elvish,
    answer: to_elvish,
};

/// `args`: the words, as they are meant, up to the cursor.
fn to_elvish(
    command: &mut clap::Command,
    args: Vec<OsString>,
    folder: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let current = args.len().saturating_sub(1);
    for offer in ask(command, (args, current), true, folder)?.all {
        let Some(value) = offer.value.to_str() else {
            continue;
        };
        let suffix = if offer.goes_on() { "" } else { " " };
        let offer = json!({"value": value, "display": shown(&offer), "suffix": suffix});
        buf.write_all(json_line(&offer).as_bytes())?;
    }
    Ok(())
}

/// Quotes in quotes are doubled.
fn for_elvish(text: &str) -> String {
    match text.contains('\'') {
        true => format!("'{}'", text.replace('\'', "''")),
        false => quoted(text),
    }
}

fn shown(offer: &Offer) -> String {
    let name = crate::base::human::path(offer.value.as_ref());
    match &offer.help {
        Some(help) => format!("{name}  {help}"),
        None => name,
    }
}

/// The words go through the environment: before version 7.3 PowerShell loses empty arguments, and quotes in them.
const POWER_SCRIPT: &str = r#"Register-ArgumentCompleter -Native -CommandName BIN -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition } | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    if ($wordToComplete -eq '') { $words += '' }
    $before = $env:VAR
    $env:VAR = 'powershell'
    $env:_WBHOME_WORDS = ConvertTo-Json -Compress -InputObject @($words)
    $offers = @(& PROGRAM -- words 2>$null)
    Remove-Item Env:\_WBHOME_WORDS
    if ($null -eq $before) { Remove-Item Env:\VAR } else { $env:VAR = $before }
    $offers | ForEach-Object {
        $offer = $_ | ConvertFrom-Json
        [System.Management.Automation.CompletionResult]::new($offer.text, $offer.display, 'ParameterValue', $offer.help)
    }
}
"#;

pub(super) static POWER: Protocol = Protocol {
    name: "powershell",
    also: &["pwsh", "powershell_ise"],
    script: POWER_SCRIPT,
    quoted: for_power,
    answer: to_power,
};

/// The words, as they are meant, stand in the environment as a JSON array.
fn to_power(
    command: &mut clap::Command,
    _args: Vec<OsString>,
    folder: Option<&Path>,
    buf: &mut dyn Write,
) -> io::Result<()> {
    let words = std::env::var("_WBHOME_WORDS").unwrap_or_default();
    let words: Vec<String> = serde_json::from_str(&words)?;
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let current = words.len().saturating_sub(1);
    for offer in ask(command, (words, current), true, folder)?.all {
        let Some(value) = offer.value.to_str() else {
            continue;
        };
        let display = crate::base::human::escape(value);
        let help = offer.help.as_deref().unwrap_or(value);
        let offer = json!({"text": for_power(value), "display": display, "help": help});
        buf.write_all(json_line(&offer).as_bytes())?;
    }
    Ok(())
}

/// Quotes in quotes are doubled; what looks like quotes counts as such.
fn for_power(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '=' | ':');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut out = String::from("'");
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(for_elvish("/a b/it's"), "'/a b/it''s'");
        assert_eq!(for_elvish("wbhome"), "wbhome");
        assert_eq!(for_power("20240603_数据"), "20240603_数据");
        assert_eq!(for_power("it's $x"), "'it''s $x'");
    }
}
