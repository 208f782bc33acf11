//! What a session may hold: names and kinds that do harm, files that are also somewhere else, repositories.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use super::support::home::HOME;
use super::support::is_root;
use super::support::verbs::Siege;
use super::{at, besiege, besiege_briefly, clear, fifo, special, within};

/// `/dev/zero`: whoever reads it never comes to an end.
const ENDLESS: u64 = 0x105;

#[test]
fn what_is_no_file() {
    besiege(&[
        ("pipes, sockets and devices", |s| {
            for name in [
                "context/turn_009.json",
                "memory/pipe.md",
                "artifacts/pipe",
                "logs/pipe.log",
            ] {
                fifo(&within(s, name));
            }
            fifo(&at(s, "agents/pipe"));
            fifo(&at(s, "sessions/20240606_pipe"));
            fifo(&at(s, "archive/20240607_pipe.tar.zst"));
            fifo(&at(s, "projects/pipe"));
            // A path of a socket is short.
            let socket = s.place.path("s");
            drop(UnixListener::bind(&socket).unwrap());
            fs::rename(&socket, within(s, "memory/socket")).unwrap();
            if is_root() {
                for name in ["context/turn_010.json", "logs/zero.log", "artifacts/zero"] {
                    special(
                        &within(s, name),
                        rustix::fs::FileType::CharacterDevice,
                        ENDLESS,
                    );
                }
            }
        }),
        ("session.json is a pipe", |s| {
            fifo(&within(s, "session.json"))
        }),
        ("session.json is a folder", |s| {
            fs::remove_file(within(s, "session.json")).unwrap();
            fs::create_dir_all(within(s, "session.json/session.json")).unwrap();
        }),
        ("folders are pipes", |s| {
            for folder in ["context", "memory", "artifacts", "logs"] {
                fifo(&within(s, folder));
            }
        }),
    ]);
}

/// Each of these stands alone: what the whole home needs is waited for by nobody.
#[test]
fn pipes_where_the_home_has_files() {
    besiege_briefly(&[
        ("index.json", |s| fifo(&at(s, "index.json"))),
        ("wbhome.toml", |s| fifo(&at(s, "wbhome.toml"))),
        (".gitignore", |s| fifo(&at(s, ".gitignore"))),
        (".wbhome", |s| {
            for name in [
                "cache.json",
                "du.json",
                "rotate.json",
                "relay.json",
                "relay.log",
                "leases.json",
            ] {
                fifo(&at(s, &format!(".wbhome/{name}")));
            }
            for record in ["trash", "relinks", "migrations"] {
                fifo(&at(
                    s,
                    &format!(".wbhome/{record}/20240614T120000Z/note.json"),
                ));
                fifo(&at(
                    s,
                    &format!(".wbhome/{record}/20240614T120000Z/outcome.json"),
                ));
            }
            fifo(&at(s, ".wbhome/runs/20240614T120000Z.json"));
            fifo(&at(s, ".wbhome/drills/20240614T120000Z.json"));
            fifo(&at(s, ".wbhome/tmp/pipe"));
        }),
        ("the lock", |s| fifo(&at(s, ".wbhome/lock"))),
        ("home.json", |s| fifo(&at(s, ".wbhome/home.json"))),
        ("the journal", |s| {
            fifo(&at(
                s,
                ".wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json",
            ));
        }),
        ("a plan of a migration", |s| {
            fifo(&at(s, ".wbhome/migrations/20240614T120000Z/plan.json"))
        }),
    ]);
}

/// Names that are flags, too long, too deep, or those of a repository.
#[test]
fn names() {
    besiege(&[("names", |s| {
        let long = "长".repeat(85);
        for name in [
            "-rf",
            "--help",
            "-",
            "~",
            "$(touch pwned)",
            "`touch pwned`",
            "a\nb",
            "\u{1b}[2J",
            &long,
        ] {
            for folder in ["context", "memory", "artifacts", "logs"] {
                s.place.put(within(s, folder).join(name), "x /old/place\n");
            }
        }
        let deep = vec!["d"; 200].join("/");
        s.place.put(within(s, "artifacts").join(deep), "x");
        // Longer than what the system takes for a path.
        fs::create_dir(within(s, "memory/deep")).unwrap();
        let mut at = rustix::fs::open(
            within(s, "memory/deep"),
            rustix::fs::OFlags::PATH,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        for _ in 0..20 {
            rustix::fs::mkdirat(&at, &*long, rustix::fs::Mode::RWXU).unwrap();
            at = rustix::fs::openat(
                &at,
                &*long,
                rustix::fs::OFlags::PATH,
                rustix::fs::Mode::empty(),
            )
            .unwrap();
        }
        for id in [
            "-rf",
            "--home",
            "--",
            ".git",
            "-",
            "con",
            "a b",
            &long[..198],
            "20240609_\u{202e}x",
        ] {
            s.place
                .put(format!("{HOME}/sessions/{id}/session.json"), "{}");
            s.place
                .put(format!("{HOME}/sessions/{id}/logs/-rf.log"), "x\n");
            s.place.put(
                format!("{HOME}/sessions/{id}/.git/HEAD"),
                "ref: refs/heads/main\n",
            );
        }
    })]);
}

/// A name that is a flag is named as every command tells to: after `--`.
#[test]
fn a_session_that_is_called_like_a_flag() {
    let mut s = Siege::new("-rf");
    s.place
        .put(format!("{HOME}/sessions/-rf/session.json"), "{}");
    s.place
        .put(format!("{HOME}/sessions/-rf/logs/-rf.log"), "x\n");
    s.outside.watch();
    for args in [
        &["index"][..],
        &["show", "--", "-rf"],
        &["path", "--", "-rf"],
        &["label", "--tag", "t", "--sync-tag", "s", "--", "-rf"],
        &["commit", "--", "-rf"],
        &["rotate", "--force", "--", "-rf"],
        &["backup", "run"],
        &["relay", "sync"],
        &["lease", "take", "--", "-rf"],
        &["export", "--to", "exported", "--", "-rf"],
        &["archive", "--", "-rf"],
        &["unarchive", "--", "-rf"],
        &["rm", "--", "-rf"],
        &["restore", "--from", "trash", "--", "-rf"],
        &["mv", "--", "-rf", "20240609_named"],
        &["history", "20240609_named"],
    ] {
        // What is typed behind `--` is no flag of ours.
        let ran = s.run_plain(args);
        assert_eq!(ran.code, Some(0), "{args:?} {ran:#?}");
    }
    let place = s.end();
    assert!(place.home().join("sessions/20240609_named/logs").exists());
    assert_ne!(fs::read_dir(place.path("exported")).unwrap().count(), 0);
}

/// Files that are also somewhere else: their other name keeps its content, its mode and its time.
#[test]
fn files_that_have_a_name_outside_as_well() {
    besiege(&[
        ("hard links", |s| {
            for name in [
                "logs/run.log",
                "memory/notes.md",
                "context/turn_001.json",
                "session.json",
            ] {
                let path = within(s, name);
                clear(&path);
                fs::hard_link(s.outside.path(&format!("session/{name}")), path).unwrap();
            }
            for name in [
                "cache.json",
                "rotate.json",
                "relay.json",
                "leases.json",
                "du.json",
            ] {
                let path = at(s, &format!(".wbhome/{name}"));
                clear(&path);
                fs::hard_link(s.outside.path("file"), path).unwrap();
            }
            s.may_show = true;
        }),
        ("the lock and the log of the relay", |s| {
            for (name, other) in [("lock", "file"), ("relay.log", "old/stale.json")] {
                let path = at(s, &format!(".wbhome/{name}"));
                clear(&path);
                fs::hard_link(s.outside.path(other), path).unwrap();
            }
            s.may_show = true;
        }),
        ("index.json", |s| {
            let path = at(s, "index.json");
            clear(&path);
            fs::hard_link(s.outside.path("index.json"), path).unwrap();
            s.may_show = true;
        }),
    ]);
}

/// Rights that a file has are not taken further than it.
#[test]
fn set_user_id() {
    besiege(&[("set user id", |s| {
        for name in ["artifacts/run.sh", "context/turn_001.json"] {
            let path = s.place.put(within(s, name), "#!/bin/sh\n");
            fs::set_permissions(path, fs::Permissions::from_mode(0o6755)).unwrap();
        }
        fs::set_permissions(within(s, "memory"), fs::Permissions::from_mode(0o3777)).unwrap();
        fs::set_permissions(within(s, "artifacts"), fs::Permissions::from_mode(0o777)).unwrap();
    })]);
}
