//! Links out of the home: in the place of its own folders and files, of a session, and of what is in one.

use std::fs;
use std::os::unix::fs::symlink;

use super::support::verbs::VICTIM;
use super::{at, besiege, besiege_briefly, link_out, within};

#[test]
fn a_sound_home() {
    besiege(&[("sound", |_| {})]);
}

#[test]
fn folders_of_the_tool_that_lead_out() {
    besiege_briefly(&[
        ("journal", |s| link_out(s, ".wbhome/journal", "empty")),
        ("trash", |s| link_out(s, ".wbhome/trash", "")),
        ("tmp", |s| link_out(s, ".wbhome/tmp", "")),
        ("migrations", |s| link_out(s, ".wbhome/migrations", "")),
        ("relinks", |s| link_out(s, ".wbhome/relinks", "")),
        ("runs", |s| link_out(s, ".wbhome/runs", "")),
        ("drills", |s| link_out(s, ".wbhome/drills", "")),
        (".wbhome", |s| link_out(s, ".wbhome", "")),
        ("a home half made", |s| {
            link_out(s, ".wbhome/tmp", "");
            fs::remove_file(at(s, ".wbhome/home.json")).unwrap();
        }),
    ]);
}

#[test]
fn files_of_the_tool_that_lead_out() {
    besiege_briefly(&[
        ("lock", |s| link_out(s, ".wbhome/lock", "file")),
        ("cache.json", |s| link_out(s, ".wbhome/cache.json", "file")),
        ("du.json", |s| link_out(s, ".wbhome/du.json", "file")),
        ("rotate.json", |s| {
            link_out(s, ".wbhome/rotate.json", "file")
        }),
        ("relay.json", |s| link_out(s, ".wbhome/relay.json", "file")),
        ("relay.log", |s| link_out(s, ".wbhome/relay.log", "file")),
        ("leases.json", |s| {
            link_out(s, ".wbhome/leases.json", "file")
        }),
        ("home.json", |s| link_out(s, ".wbhome/home.json", "file")),
    ]);
}

/// One step deeper: what a record, an act of the trash or an entry of the journal is.
#[test]
fn records_that_lead_out() {
    besiege_briefly(&[
        ("an act", |s| {
            link_out(s, ".wbhome/trash/20240614T120000Z", "act")
        }),
        ("the note of an act", |s| {
            link_out(
                s,
                ".wbhome/trash/20240614T120000Z/note.json",
                "act/note.json",
            )
        }),
        ("a record of a migration", |s| {
            link_out(s, ".wbhome/migrations/20240614T120000Z", "act")
        }),
        ("a plan of a migration", |s| {
            link_out(s, ".wbhome/migrations/20240614T120000Z/plan.json", "file")
        }),
        ("a record of a relink", |s| {
            link_out(s, ".wbhome/relinks/20240614T120000Z-00000000", "act")
        }),
        ("what is being built", |s| {
            link_out(s, ".wbhome/tmp/old", "")
        }),
        ("a record of a night", |s| {
            link_out(s, ".wbhome/runs/20240614T120000Z.json", "file")
        }),
        ("a record of a drill", |s| {
            link_out(s, ".wbhome/drills/20240614T120000Z.json", "file")
        }),
        ("an entry of the journal", |s| {
            link_out(
                s,
                ".wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json",
                "file",
            );
        }),
    ]);
}

#[test]
fn folders_of_the_home_that_lead_out() {
    besiege_briefly(&[
        ("sessions", |s| link_out(s, "sessions", "sessions")),
        ("archive", |s| link_out(s, "archive", "empty")),
        ("projects", |s| link_out(s, "projects", "")),
        ("agents", |s| link_out(s, "agents", "")),
        // What a person edits may be a link of theirs. It is read, and not written.
        ("index.json", |s| {
            link_out(s, "index.json", "index.json");
            s.may_read = &["outside/index.json"];
            s.may_show = true;
        }),
        ("wbhome.toml", |s| {
            link_out(s, "wbhome.toml", "file");
            s.may_read = &["outside/file"];
        }),
        (".gitignore", |s| link_out(s, ".gitignore", "file")),
    ]);
}

#[test]
fn sessions_that_lead_out() {
    besiege(&[
        ("a session", |s| {
            link_out(s, &format!("sessions/{VICTIM}"), "session")
        }),
        ("a session that is everything", |s| {
            let session = within(s, "");
            fs::remove_dir_all(&session).unwrap();
            symlink("/", session.to_str().unwrap().trim_end_matches('/')).unwrap();
        }),
        ("folders of a session", |s| {
            for folder in ["context", "memory", "artifacts", "logs"] {
                link_out(
                    s,
                    &format!("sessions/{VICTIM}/{folder}"),
                    &format!("session/{folder}"),
                );
            }
            link_out(
                s,
                &format!("sessions/{VICTIM}/session.json"),
                "session/session.json",
            );
        }),
        ("files of a session", |s| {
            for file in [
                "logs/run.log",
                "logs/run.log-20240602",
                "memory/notes.md",
                "context/turn_001.json",
            ] {
                let to = format!("session/{}", file.replace("0240602", "0240601"));
                link_out(s, &format!("sessions/{VICTIM}/{file}"), &to);
            }
            link_out(s, &format!("sessions/{VICTIM}/artifacts/out"), "");
            link_out(s, &format!("sessions/{VICTIM}/artifacts/pipe"), "pipe");
            symlink("/", within(s, "artifacts/root")).unwrap();
            link_out(s, "projects/p", "sessions");
            link_out(s, "sessions/20240605_link", "session");
        }),
        ("an archive", |s| {
            link_out(s, "archive/20240603_crawler.tar.zst", "file")
        }),
        ("a repository", |s| link_out(s, ".git", "repository/.git")),
    ]);
}
