//! Whatever a session, a label, a file or what is in it is called: the terminal that shows it stays whole.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::ffi::OsString;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use support::Place;
use support::git::git_in;
use support::home::HOME;
use support::hostile::{KINDS, May, Watched, harm, os, texts, together};
use unicode_width::UnicodeWidthStr;

/// The id of the session that has everything of a kind.
fn id(text: &str) -> String {
    format!("20240603_{}", text.replace('/', "_"))
}

/// What people and sync drives can write into the entry of a session.
fn entry(text: &str) -> Value {
    json!({
        "id": id(text), "status": "active", "title": text.repeat(4000 / text.len()), "agent": text, "project": text,
        "tags": [text, "plain"], "sync_tag": text, "session_id": text,
    })
}

/// What an agent, or somebody else, leaves in a session: a name of any bytes, and a text in all that is read.
fn fill(place: &Place, id: &str, name: &[u8], text: &str) {
    let session = PathBuf::from(HOME).join("sessions").join(id);
    let record = json!({
        "id": id, "session_id": format!("identity {text}"), "agent": text, "title": text, "project": text,
        "tags": [text], "cwd": format!("/former/{text}"),
    });
    place.put(session.join("session.json"), record.to_string());
    let turn = json!({
        "turn": 1, "timestamp": text, "messages": [
            {"role": "user", "content": format!("needle {text}")},
            {"role": text, "timestamp": text, "content": [
                {"type": "text", "text": text},
                {"type": "tool_use", "name": text, "input": {"command": text, "path": text}},
            ]},
        ],
    });
    place.put(session.join("context/turn_001.json"), turn.to_string());
    place.put(
        session.join("context/turn_002.json"),
        format!("{{\"torn\": \"{text}"),
    );
    let raw = [b"# needle ", name, b"\nneedle ", text.as_bytes(), b"\n"].concat();
    place.put(session.join("context/checkpoint.md"), &raw);
    place.put(session.join("logs/run.log"), &raw);
    place.put(session.join("memory").join(os(name)).join("note.md"), &raw);
    place.put(
        session.join("artifacts").join(os(name)).join(os(name)),
        &raw,
    );
    place.put(
        session.join("logs").join(os(&[name, b".log"].concat())),
        &raw,
    );
    // What a sync client leaves.
    place.put(
        session
            .join("memory")
            .join(os(&[name, b" (1).md"].concat())),
        "other\n",
    );
    place.put(
        session.join("memory").join(os(&[name, b".md"].concat())),
        "one\n",
    );
    let long = [name.repeat(255).as_slice()].concat();
    let long: Vec<u8> = long.into_iter().take(254).collect();
    place.put(
        session
            .join("artifacts")
            .join(os(&[b"l", long.as_slice()].concat())),
        "x",
    );
    let link = place.path(&session).join("artifacts/link");
    std::os::unix::fs::symlink(os(&[b"/former/", name].concat()), link).unwrap();
}

/// A home in which everything is hostile: a session for each kind, one with all of them, and one for the bytes that no
/// text holds.
fn hostile() -> Place {
    let place = Place::with_home();
    let mut index = Vec::new();
    for (_, text) in texts() {
        place.put_home(
            &format!("agents/{}/agent.yaml", text.replace('/', "_")),
            text,
        );
        fill(&place, &id(text), text.replace('/', "_").as_bytes(), text);
        index.push(entry(text));
    }
    let all: String = texts().map(|(_, text)| text).collect();
    let mut short = String::from("20240604_");
    short.extend(all.chars().filter(|c| *c != '/').take_while({
        let mut left = 180;
        move |c| {
            left -= c.len_utf8() as i32;
            left > 0
        }
    }));
    fill(&place, &short, b"all", &all);
    index.push(json!({"id": short, "status": all, "title": all, "tags": texts().map(|(_, t)| t).collect::<Vec<_>>()}));
    fill(
        &place,
        "20240605_raw",
        &[KINDS[9].1, KINDS[10].1].concat(),
        "数据",
    );
    for (n, status) in [
        "archived",
        "missing",
        "removed",
        "\u{1b}[2J\u{9b}8m\u{202e}",
    ]
    .iter()
    .enumerate()
    {
        index.push(json!({"id": format!("2024052{n}_\u{1b}[2J\r"), "status": status, "title": "\u{1b}[2J"}));
    }
    place.put_home("index.json", Value::Array(index).to_string());
    place
}

/// Every verb that only looks, at each of the sessions.
fn look(watched: &mut Watched) {
    for args in [
        &["ls"][..],
        &["ls", "-l"],
        &["ls", "--status", "\u{1b}[2J"],
        &["ls", "nothing \u{1b}[2J is called so"],
        &["search", "needle"],
        &["search", "needle", "-l"],
        &["search", "needle", "--count"],
        &["search", "-C2", "needle|\u{1b}"],
        &["search", "-F", "\u{1b}[2J"],
        &["search", "--archived", "needle"],
        &["du"],
        &["du", "-v"],
        &["du", "--top", "50", "-v"],
        &["check"],
        &["check", "-v"],
        &["check", "--archives", "-v"],
        &["check", "--repair", "-n", "-v"],
        &["index", "-n"],
        &["index", "-n", "-v"],
        &["index", "--rebuild", "-n", "-v"],
        &["commit", "-n", "-v"],
        &["rotate", "-n", "-v", "--force"],
        &["archive", "-n", "-v", "--idle", "1d"],
        &["doctor", "-v"],
        &["restore", "--from", "trash"],
        &["schedule", "show", "--with", "cron"],
        &[
            "relink",
            "/former",
            "/\u{1b}[2J\u{202e}",
            "-n",
            "-v",
            "--force",
        ],
        &["nightly", "-n"],
        &["backup", "ls"],
        &["backup", "verify", "-v"],
        &["drill", "-n"],
    ] {
        watched.looks(args);
    }
    let sessions: Vec<String> = texts()
        .map(|(_, text)| id(text))
        .chain(["20240605_raw".into()])
        .collect();
    for id in &sessions {
        watched.looks(["show", "--", id]);
        watched.does(["path", "--", id]);
    }
    for id in sessions.iter().take(3) {
        for below in [
            "context",
            "memory",
            "artifacts",
            "logs",
            "context/turn_001.json",
            "artifacts/link",
        ] {
            watched.does(["show", "--no-pager", "--", &format!("{id}/{below}")]);
        }
        watched.looks(["history", "-v", "--", id]);
        watched.looks(["diff", "--no-pager", "--", id]);
        watched.does(["diff", "--no-pager", "--raw", "--", id]);
        watched.looks(["rm", "-n", "--", id]);
        watched.looks(["archive", "-n", "--", id]);
        watched.looks(["backup", "ls", "--", id]);
    }
}

#[test]
fn what_looks() {
    let place = hostile();
    let mut watched = Watched::new(&place);
    look(&mut watched);
    watched.is_whole();
}

#[test]
fn what_changes() {
    let place = hostile();
    place.put_home(
        "wbhome.toml",
        "[rotate]\nlogs = [\"sessions/*/logs/*.log\"]\n",
    );
    let mut watched = Watched::new(&place);
    watched.does(["index", "-v"]);
    watched.does([
        "commit",
        "-v",
        "-m",
        "first \u{1b}[2J\u{1b}[8m\r\u{9b}8m\u{202e}\n\nmore \u{1b}[2J",
    ]);
    watched.does(["backup", "init", "cold \u{1b}[2J\u{9b}8m\u{202e}\n"]);
    watched.does(["backup", "run", "-v"]);
    let all: Vec<String> = texts().map(|(_, text)| id(text)).collect();
    for (n, (_, text)) in texts().enumerate().take(5) {
        let id = &all[n];
        let session = format!("sessions/{id}");
        place.put_home(
            &format!("{session}/context/checkpoint.md"),
            format!("now {text}\n- {text}\n"),
        );
        place.put_home(
            &format!("{session}/memory/{}.md", text.replace('/', "_")),
            format!("new {text}\n"),
        );
        watched.does([
            "label",
            "-v",
            "--tag",
            "a \u{1b}[2J",
            "--title",
            text,
            "--project",
            "p\u{1b}[2J",
            "--",
            id,
        ]);
        watched.does(["label", "-v", "--untag", text, "--no-project", "--", id]);
    }
    let git = |args: &[&str]| git_in(&place.home(), args).expect(0).stdout.clone();
    git(&["config", "user.name", "Eve \u{1b}[2J\u{202e}"]);
    git(&["checkout", "-q", "-b", "branch\u{9b}8m\u{202e}"]);
    watched.does(["commit", "-v"]);
    git(&[
        "-c",
        "user.name=\u{1b}[2J\u{202e}",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "\u{1b}[2J\u{9b}8m\u{202e}",
    ]);
    for id in &all[..2] {
        watched.does(["history", "-v", "--", id]);
        watched.does(["diff", "--no-pager", "--", id, "HEAD~2"]);
        watched.does(["diff", "--no-pager", "--raw", "--", id, "HEAD~2"]);
        watched.does([
            "restore",
            "--from",
            "git",
            "--at",
            "HEAD~2",
            "--force",
            "-v",
            "--",
            &format!("{id}/context/checkpoint.md"),
        ]);
        watched.does(["restore", "--from", "twin", "-n", "-v", "--", id]);
    }
    watched.does(["rotate", "-v", "--force"]);
    for id in &all[4..7] {
        watched.does(["archive", "-v", "--", id]);
        watched.looks(["show", "--", id]);
        watched.looks(["path", "--", id]);
        watched.does([
            "restore",
            "--from",
            "archive",
            "-v",
            "--force",
            "--",
            &format!("{id}/context/checkpoint.md"),
        ]);
    }
    watched.looks(["search", "needle|now", "--archived"]);
    watched.looks(["check", "--archives", "-v"]);
    watched.does(["unarchive", "-v", "--", &all[4], &all[5]]);
    for (n, id) in all[8..10].iter().enumerate() {
        watched.does(["mv", "-v", "--force", "--", id, &format!("moved_{n}")]);
        watched.does([
            "mv",
            "-v",
            "--force",
            "--",
            &format!("20240603_moved_{n}"),
            id,
        ]);
    }
    for id in &all[11..13] {
        watched.does(["rm", "-v", "--", id]);
        watched.does(["restore", "--from", "trash", "-v", "--", id]);
        watched.does(["rm", "--", id]);
        watched.does(["restore", "--from", "backup", "-v", "--", id]);
        watched.looks(["backup", "ls", "--", id]);
    }
    watched.does(["backup", "run", "-v"]);
    watched.does(["backup", "verify", "--all", "-v"]);
    watched.does(["backup", "accept", "-v"]);
    watched.does(["drill", "-v"]);
    watched.does([
        "relink",
        "/former",
        "/now \u{1b}[2J\u{202e}",
        "-v",
        "--force",
    ]);
    watched.does(["relink", "undo", "-v"]);
    watched.does(["check", "--repair", "-v"]);
    watched.does(["check", "--fill", "-v"]);
    watched.does(["index", "--rebuild", "-v"]);
    watched.does(["nightly", "-v"]);
    watched.does(["restore", "--from", "trash", "-v"]);
    look(&mut watched);
    let store = place.path("cold \u{1b}[2J\u{9b}8m\u{202e}\n");
    let to = place.path("whole \u{1b}[2J\u{202e}");
    watched.does([
        os(b"restore"),
        os(b"--all"),
        os(b"-v"),
        os(b"--from"),
        store.as_os_str(),
        os(b"--to"),
        to.as_os_str(),
    ]);
    watched.looks([os(b"ls"), os(b"--home"), to.as_os_str()]);
    let moved = place.path("moved \u{1b}[2J\u{202e}\n");
    let (from, moved) = (place.home().into_os_string(), moved.into_os_string());
    let map = OsString::from("/former\u{1b}[2J=/new\u{9b}8m\u{202e}");
    watched.does([
        os(b"migrate"),
        os(b"-n"),
        os(b"-v"),
        &from,
        &moved,
        os(b"--map"),
        &map,
    ]);
    watched.does([os(b"migrate"), os(b"-v"), &from, &moved, os(b"--map"), &map]);
    for then in ["status", "verify", "finish", "undo"] {
        watched.does([
            os(b"migrate"),
            os(then.as_bytes()),
            os(b"-v"),
            os(b"--home"),
            &moved,
        ]);
    }
    watched.looks([os(b"doctor"), os(b"-v"), os(b"--home"), &moved]);
    watched.does(["check", "--empty-trash", "-v"]);
    watched.does(["check", "--empty-trash", "--yes", "-v"]);
    watched.is_whole();
}

/// A message quotes what was typed, set or read.
#[test]
fn what_fails() {
    let place = hostile();
    place.ok(["index", "-q"]);
    let mut watched = Watched::new(&place);
    for name in &together() {
        let name = os(name);
        let flag = [b"--", name.as_encoded_bytes()].concat();
        let value = [b"--color=", name.as_encoded_bytes()].concat();
        let pair = [
            b"/x",
            name.as_encoded_bytes(),
            b"=",
            name.as_encoded_bytes(),
        ]
        .concat();
        let below = [b"20240605_raw/", name.as_encoded_bytes()].concat();
        for args in [
            &[name][..],
            &[os(&flag)],
            &[os(b"ls"), os(&flag)],
            &[os(b"ls"), os(&value)],
            &[os(b"ls"), os(b"--sort"), name],
            &[os(b"ls"), os(b"--since"), name],
            &[os(b"ls"), os(b"--lock-wait"), name],
            &[os(b"ls"), name, name],
            &[os(b"backup"), name],
            &[os(b"show"), os(b"--"), name],
            &[os(b"show"), os(b"--"), os(&below)],
            &[
                os(b"search"),
                os(b"--"),
                os(&[b"(", name.as_encoded_bytes()].concat()),
            ],
            &[os(b"search"), os(b"x"), os(b"--"), name],
            &[os(b"search"), os(b"--in"), name, os(b"x")],
            &[os(b"new"), os(b"--"), name],
            &[os(b"new"), os(b"x"), os(b"--agent"), name],
            &[os(b"new"), os(b"x"), os(b"--date"), name],
            &[
                os(b"new"),
                os(b"x"),
                os(b"-n"),
                os(b"--tag"),
                name,
                os(b"--project"),
                name,
            ],
            &[os(b"mv"), os(b"-n"), os(b"--"), os(b"20240605_raw"), name],
            &[os(b"diff"), os(b"--"), os(b"20240605_raw"), name],
            &[os(b"restore"), os(b"--from"), name, os(b"--"), name],
            &[os(b"restore"), os(b"--from"), os(b"trash"), os(b"--"), name],
            &[
                os(b"restore"),
                os(b"--from"),
                os(b"git"),
                os(b"--at"),
                name,
                os(b"20240605_raw"),
            ],
            &[os(b"backup"), os(b"run"), os(b"--store"), name],
            &[os(b"check"), os(b"--empty-trash"), os(b"--older"), name],
            &[os(b"ls"), os(b"--home"), name],
            &[os(b"migrate"), name, name],
            &[
                os(b"migrate"),
                os(b"me"),
                os(b"there"),
                os(b"--map"),
                os(&pair),
            ],
            &[os(b"migrate"), os(b"me"), os(b"there"), os(b"--map"), name],
            &[
                os(b"migrate"),
                os(b"me"),
                os(b"there"),
                os(b"--exclude"),
                os(&[b"[", name.as_encoded_bytes()].concat()),
            ],
            &[
                os(b"migrate"),
                os(b"me"),
                os(b"there"),
                os(b"--state"),
                name,
            ],
            &[os(b"relink"), name, name],
            &[
                os(b"schedule"),
                os(b"install"),
                os(b"-n"),
                os(b"--at"),
                name,
            ],
            &[os(b"completions"), name],
            &[
                os(b"man"),
                os(b"--"),
                os(&[b"not/", name.as_encoded_bytes()].concat()),
            ],
        ] {
            watched.does(args);
            let args: Vec<OsString> = args.iter().map(|arg| (*arg).to_owned()).collect();
            watched.piped(&args, Some("--json"));
        }
    }
    watched.is_whole();
}

#[test]
fn what_the_environment_and_the_settings_say() {
    let place = hostile();
    place.ok(["index", "-q"]);
    let mut watched = Watched::new(&place);
    for name in &together() {
        for variable in [
            "WBHOME",
            "HOME",
            "WBHOME_PAGER",
            "PAGER",
            "TERM",
            "COLUMNS",
            "TZ",
            "WBHOME_NOW",
        ] {
            watched.env = vec![(variable.into(), os(name).to_owned())];
            watched.does(["ls", "-l"]);
        }
    }
    watched.env.clear();
    for text in &together() {
        let Ok(text) = std::str::from_utf8(text) else {
            continue;
        };
        // As TOML writes it, and as nobody may write it.
        let quoted: String = text
            .chars()
            .map(|c| format!("\\U{:08X}", c as u32))
            .collect();
        let raw = text.replace('\n', " ");
        for settings in [
            format!("\"{quoted}\" = 1\n"),
            format!("[\"{quoted}\"]\nx = 1\n"),
            format!("[git]\nmax_file = \"{quoted}\"\ndir = \"{quoted}\"\n"),
            format!("[rotate]\nevery = \"{quoted}\"\n"),
            format!("[secrets]\nrules = \"{quoted}\"\nallow = [\"{quoted}\"]\n"),
            format!("[state]\ndir = \"{quoted}\"\n"),
            format!("[rotate]\nlogs = [\"[{quoted}\"]\n"),
            format!("[[backup.store]]\ndir = \"{quoted}\"\n"),
            format!("[git]\n{raw} = 1\n"),
            format!("[git]\npush = \"{raw}\n"),
        ] {
            place.put_home("wbhome.toml", settings);
            for args in [
                &["doctor"][..],
                &["ls"],
                &["rotate", "-n"],
                &["commit", "-n"],
                &["backup", "ls"],
                &["archive", "-n", "@1"],
            ] {
                watched.does(args);
            }
        }
        std::fs::remove_file(place.home().join("wbhome.toml")).unwrap();
    }
    watched.is_whole();
}

/// JSON that is no JSON, and a registry of whoever is running.
#[test]
fn what_the_records_say() {
    let place = hostile();
    place.ok(["index", "-q"]);
    let index = place.home_text("index.json");
    let mut watched = Watched::new(&place);
    for text in &together() {
        let Ok(text) = std::str::from_utf8(text) else {
            continue;
        };
        let told = serde_json::to_string(text).unwrap();
        let broken = format!("[{{\"id\": {told}, \"status\": {text}}}]");
        let odd = format!(
            "[{{\"id\": {told}, \"status\": 1, {told}: 2, \"archive\": {told}}}, {told}, {{\"id\": {told}}}]"
        );
        for index in [broken, odd, format!("{{{told}: {told}}}")] {
            place.put_home("index.json", index);
            for args in [&["ls"][..], &["check", "-v"], &["index", "-n"], &["doctor"]] {
                watched.does(args);
            }
        }
    }
    place.put_home("index.json", index);
    let name = "\u{1b}[2J\u{9b}8m\u{202e}";
    place.at_work(
        "me/.workbuddy",
        place.home().join("sessions").join(id("a\tb\x0b\x0c")),
        json!({"kind": name, "sessionId": name, "version": name}),
    );
    place.put(
        "me/.workbuddy/sessions/2.json",
        format!("{{\"pid\": \"{name}"),
    );
    place.put(format!("me/.workbuddy/sessions/{name}.json"), "{}");
    for args in [
        &["ls", "-l"][..],
        &["check"],
        &["rm", "--", &id("a\tb\x0b\x0c")],
        &["check", "--repair"],
        &["relink", "/a", "/b"],
        &["mv", "--", &id("a\tb\x0b\x0c"), "x"],
        &["show", "--", &id("a\tb\x0b\x0c")],
    ] {
        watched.does(args);
    }
    watched.is_whole();
}

/// Who has a file open is named in hints; a program may call itself anything.
#[test]
fn what_a_program_is_called() {
    let place = hostile();
    place.ok(["index", "-q"]);
    let program = place.path("\u{1b}[2J\u{9b}8m\r\u{202e}");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let id = id("a\tb\x0b\x0c");
    let log = place.home().join("sessions").join(&id).join("logs/run.log");
    let log = std::fs::File::options().append(true).open(log).unwrap();
    let mut writer = std::process::Command::new(&program)
        .arg("600")
        .stdout(log)
        .spawn()
        .unwrap();
    let mut watched = Watched::new(&place);
    let mut named = String::new();
    for args in [
        ["archive", "-v", "--", &id],
        ["rm", "-v", "--", &id],
        ["rotate", "-v", "--force", &id],
        ["check", "-v", "--", &id],
    ] {
        named += &watched.does(args);
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    watched.is_whole();
    assert!(named.contains(r"\x1b[2J\u{9b}8m"), "{named}");
}

/// What shells show of an answer, or put into the line.
#[test]
fn what_is_completed() {
    let place = hostile();
    place.ok(["index", "-q"]);
    for words in [
        &["wbhome", "show", "2"][..],
        &["wbhome", "ls", "--tag", ""],
        &["wbhome", "ls", "--project", ""],
        &["wbhome", "show", "20240605_raw/memory/"],
    ] {
        let line = words.join(" ");
        let word = words.last().unwrap();
        let json = json!(words).to_string();
        for (shell, args) in [
            ("bash", vec![&*line, "", word, "9", "80"]),
            ("bash", vec![&*line, "", word, "63", "80"]),
            ("elvish", words.to_vec()),
            ("powershell", vec!["words"]),
        ] {
            let mut command = place.command();
            command
                .env("COMPLETE", shell)
                .env("_WBHOME_WORDS", &json)
                .arg("--")
                .args(args);
            let output = command.output().unwrap();
            assert!(
                !output.stdout.is_empty() || word.ends_with('/'),
                "{shell} {words:?}"
            );
            for seen in [output.stdout, output.stderr] {
                let harm = harm(
                    &seen,
                    May {
                        color: false,
                        returns: false,
                    },
                );
                assert_eq!(harm, None, "{shell} {words:?}");
            }
        }
    }
}

#[test]
fn every_session_has_its_line_and_no_line_is_wider_than_the_terminal() {
    let place = hostile();
    place.ok(["index", "-q"]);
    let listed = place.json(["ls"]);
    let ids: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["id"].as_str().unwrap())
        .collect();
    // As they were: nobody who reads the document is shown something else.
    assert!(
        texts().all(|(_, text)| ids.contains(&&*id(text))),
        "{ids:?}"
    );
    let mut watched = Watched::new(&place);
    for columns in [200, 80, 40, 10] {
        for args in [&["ls"][..], &["ls", "-l"]] {
            let args: Vec<OsString> = args.iter().map(|arg| arg.into()).collect();
            let drawn = watched.drawn(&args, columns, false);
            let lines: Vec<&str> = drawn
                .lines()
                .filter(|line| line.starts_with("2024"))
                .collect();
            assert_eq!(lines.len(), ids.len(), "{drawn}");
            for line in lines {
                // An id is never cut.
                let id = ids
                    .iter()
                    .map(|id| wbhome::base::human::name(id))
                    .find(|id| line.trim_end() == *id);
                assert!(
                    id.is_some() || line.width() <= usize::from(columns),
                    "{line}"
                );
            }
        }
    }
    watched.is_whole();
}

/// What stands in a hint is copied into a shell.
#[test]
fn a_shell_reads_a_quoted_name_as_it_is() {
    let together = together();
    let names: Vec<&[u8]> = KINDS
        .iter()
        .map(|(_, name)| *name)
        .chain(together.iter().map(Vec::as_slice))
        .collect();
    let quoted = |name: &&[u8]| wbhome::base::human::quoted(os(name).as_ref());
    let words: Vec<String> = names.iter().map(quoted).collect();
    assert_eq!(
        harm(
            words.join(" ").as_bytes(),
            May {
                color: false,
                returns: false
            }
        ),
        None
    );
    for shell in ["bash", "zsh"]
        .into_iter()
        .filter(|shell| support::has_tool(shell))
    {
        let script = format!("printf '%s\\0' {}", words.join(" "));
        let output = std::process::Command::new(shell)
            .args(["-c", &script])
            .output()
            .unwrap();
        let read: Vec<&[u8]> = output.stdout.split(|b| *b == 0).collect();
        assert_eq!(read[..names.len()], names, "{shell}");
    }
}

/// A scanner that lets everything through would hold nothing.
#[test]
fn harm_is_seen() {
    let plain = May {
        color: false,
        returns: false,
    };
    let colored = May {
        color: true,
        returns: true,
    };
    for (kind, bytes) in KINDS {
        let harmless = matches!(kind, "line" | "spelled" | "zalgo" | "emoji" | "shell");
        assert_eq!(harm(bytes, colored).is_none(), harmless, "{kind}");
    }
    assert_eq!(harm(b"\x1b[1mid\x1b[0m\r\n", colored), None);
    for bytes in [&b"\x1b[1mid\x1b[0m"[..], b"\r\n", b"\x7f"] {
        assert!(harm(bytes, plain).is_some(), "{}", bytes.escape_ascii());
    }
    for bytes in [
        &b"\x1b[1mid\n\x1b[0m"[..],
        b"\x1b[1mid",
        b"\rx",
        b"\x1b[1;5mx\x1b[0m",
        b"\x1b[1",
    ] {
        assert!(harm(bytes, colored).is_some(), "{}", bytes.escape_ascii());
    }
}

/// A name out of all that can stand in one.
fn name() -> impl Strategy<Value = String> {
    let kinds: Vec<&str> = texts().map(|(_, text)| text).collect();
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        proptest::sample::select(kinds).prop_map(str::to_owned),
        (0u32..0x20).prop_map(|c| char::from_u32(c).unwrap().into()),
        (0x7fu32..0xa0).prop_map(|c| char::from_u32(c).unwrap().into()),
        (0x2000u32..0x2070).prop_map(|c| char::from_u32(c).unwrap().into()),
        "[\\\\a-z0-9\\[;数据]{1,4}",
    ];
    proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat().replace(['/', '\0'], "_"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn whatever_it_is_called(names in proptest::collection::vec(name(), 4)) {
        let place = Place::with_home();
        let mut index = Vec::new();
        for name in &names {
            let name: String = name.chars().take(40).collect();
            let id = id(&name);
            fill(&place, &id, name.as_bytes(), &name);
            index.push(entry(&name));
        }
        place.put_home("index.json", Value::Array(index).to_string());
        let mut watched = Watched::new(&place);
        for args in [&["index", "-v"][..], &["ls", "-l"], &["search", "needle"], &["du", "-v"], &["check", "-v"], &["show", "@1"], &["show", "@2/memory"]] {
            watched.looks(args);
        }
        watched.is_whole();
    }
}
