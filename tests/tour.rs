//! `docs/tour.md` is true: its commands are typed into a terminal one after the other, and each shows what stands there.
//!
//! `WBHOME_REFRESH=1` writes into the page what the commands show.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::path::PathBuf;

use regex::Regex;
use support::terminal::Terminal;
use support::{Place, has_tool};

/// When the hour of the page was, and whose home it is in.
const DAY: &str = "2024-06-03";
const OWNER: &str = "/home/mei";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/tour.md")
}

/// The page in parts: prose, and commands with what they show.
enum Part {
    Prose(String),
    Command { line: String, shows: Option<String> },
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut block = "";
    for line in text.lines() {
        match (block, line.strip_prefix("```")) {
            ("", Some(language)) => block = language,
            (_, Some(_)) => block = "",
            ("console", None) => {
                if let Some(typed) = line.strip_prefix("$ ") {
                    let (line, shows) = (typed.to_owned(), Some(String::new()));
                    parts.push(Part::Command { line, shows });
                } else if let Some(Part::Command {
                    shows: Some(shows), ..
                }) = parts.last_mut()
                {
                    *shows += &format!("{line}\n");
                }
                continue;
            }
            ("sh", None) => {
                let (line, shows) = (line.to_owned(), None);
                parts.push(Part::Command { line, shows });
                continue;
            }
            _ => {}
        }
        parts.push(Part::Prose(format!("{line}\n")));
    }
    parts
}

/// A person at a terminal, who stays in the folder where they are.
struct Person {
    place: Place,
}

impl Person {
    fn types(&self, line: &str) -> String {
        let at = self.place.path("at");
        let script = format!(
            "cd \"$(cat '{at}')\"; {line}\npwd > '{at}'",
            at = at.display()
        );
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_wbhome"));
        let mut path = vec![program.parent().unwrap().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let terminal = Terminal::start(&["sh", "-c", &script], 120, |command| {
            command
                .env_clear()
                .current_dir(self.place.user_home())
                .env("HOME", self.place.user_home())
                .env("PATH", std::env::join_paths(path).unwrap())
                .env("LC_ALL", "C.UTF-8")
                .env("PAGER", "cat")
                .env("TERM", "xterm")
                .env("NO_COLOR", "1")
                .env("TZ", "UTC");
        });
        String::from_utf8(terminal.end())
            .unwrap()
            .replace("\r\n", "\n")
    }

    /// What is shown, as it would have been for the owner of the page on that day.
    fn shown(&self, output: &str, today: &str) -> String {
        let brief = |day: &str| day.replace('-', "");
        let home = self.place.user_home();
        let output = output.replace(home.to_str().unwrap(), OWNER);
        let output = output.replace(&brief(today), &brief(DAY));
        let clock = Regex::new(&format!(r"{today} \d\d:\d\d")).unwrap();
        let output = clock.replace_all(&output, format!("{DAY} 09:41"));
        // The ends of lines are filled up by some tools.
        output
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect()
    }
}

/// Without what differs from one hour to the next: sizes, commits, and the spaces that align them.
fn essence(shown: &str) -> String {
    let varying = Regex::new(r"\d+(\.\d+)? (B|kB)\b|\b[0-9a-f]{7,40}\b").unwrap();
    let text = varying.replace_all(shown, "#");
    let spaces = Regex::new(" +").unwrap();
    spaces.replace_all(&text, " ").into_owned()
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

#[test]
fn the_tour_is_true() {
    if !has_tool("git") || !has_tool("zstd") || !has_tool("tar") {
        return;
    }
    let text = std::fs::read_to_string(page()).unwrap();
    let person = Person {
        place: Place::new(),
    };
    person
        .place
        .put("at", person.place.user_home().to_str().unwrap());
    let day = today();
    let mut fresh = String::new();
    let mut wrong = Vec::new();
    let mut commands = 0;
    for part in parts(&text) {
        match part {
            Part::Prose(line) => fresh += &line,
            Part::Command { line, shows } => {
                commands += 1;
                let shown = person.shown(&person.types(&line), &day);
                match shows {
                    Some(told) => {
                        fresh += &format!("$ {line}\n{shown}");
                        if essence(&told) != essence(&shown) {
                            wrong.push(format!("$ {line}\n{shown}the page says:\n{told}"));
                        }
                    }
                    None => {
                        fresh += &format!("{line}\n");
                        if shown.contains("error:") || shown.is_empty() {
                            wrong.push(format!("$ {line}\n{shown}"));
                        }
                    }
                }
            }
        }
    }
    if today() != day {
        // Midnight came in between.
        return;
    }
    if std::env::var_os("WBHOME_REFRESH").is_some() {
        std::fs::write(page(), fresh).unwrap();
        return;
    }
    assert!(commands > 25, "the page has {commands} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
