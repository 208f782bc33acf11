//! `wbhome relay fetch`: a read-only copy of what another device has sent.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it lays out folders, and says what does not fit"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;
use support::home::tool;
use support::relayed::{OTHER, run_unprivileged};
use support::{Place, tree};

const ID: &str = "20240610_远程任务";

fn fetch(place: &Place, session: &str) -> support::Ran {
    place.run(["relay", "fetch", session, "--to", "look"])
}

fn note(place: &Place) -> Value {
    serde_json::from_str(&place.text(format!("look/{ID}.origin.json"))).unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_copy_is_read_only_and_says_where_it_came_from() {
    let place = Place::with_relay();
    place.send(ID, "{\"turn\": 1}\n");
    let script = place.put(format!("relay/{ID}/artifacts/运行.sh"), "#!/bin/sh\n");
    set_mode(&script, 0o6777);
    place.put(format!("relay/{ID}/memory/copy (1).md"), "another");
    let (home, relay) = (place.apart_from_own(), tree(&place.relay()));

    let plan = fetch(&place, "远程").stdout;
    assert!(
        plan.contains("笔记本, 2024-06-15 11:00 by its clock"),
        "{plan}"
    );
    let copy = tree(&place.path("look").join(ID));
    let there = tree(&place.relay().join(ID));
    assert_eq!(copy.len(), there.len());
    for (name, entry) in &there {
        let copied = &copy[name];
        assert_eq!(
            (copied.kind, copied.mtime),
            (entry.kind, entry.mtime),
            "{name:?}"
        );
        assert_eq!(copied.content, entry.content);
        let wanted = match (entry.kind, name.ends_with(b".sh")) {
            ('d', _) | (_, true) => 0o500,
            _ => 0o400,
        };
        assert_eq!(copied.mode, wanted, "{name:?}");
    }
    let note = note(&place);
    assert_eq!((&note["format"], &note["id"]), (&1.into(), &ID.into()));
    assert_eq!(note["relay"]["path"], place.relay().to_str().unwrap());
    assert_eq!(
        (&note["sent_by"]["device"], &note["sent_by"]["tag"]),
        (&OTHER.into(), &"工作".into())
    );
    assert_eq!(
        (&note["fetched_at"], &note["files"]),
        (&support::NOW.into(), &4.into())
    );
    assert_eq!(note["lease"], Value::Null);

    // Neither the home nor the relay knows of it, and nothing is written over.
    assert!(home == place.apart_from_own() && relay == tree(&place.relay()));
    fetch(&place, ID)
        .expect(1)
        .says(&["is there already", "--to names another folder"]);
    assert_eq!(copy, tree(&place.path("look").join(ID)));
    place.run(["relay", "fetch", ID, "--to", "look2"]).expect(0);
}

#[test]
fn nothing_is_written_by_a_dry_run() {
    let place = Place::with_relay();
    place.send(ID, "{}\n");
    let before = tree(&place.root());
    let ran = place.run(["relay", "fetch", ID, "--to", "look", "-n"]);
    ran.expect(0);
    assert!(ran.stdout.contains("It would be copied to"), "{ran:?}");
    assert_eq!(before, tree(&place.root()));
}

#[test]
fn only_a_session_of_the_relay_is_meant() {
    let place = Place::with_relay();
    place.send("20240610_one", "{}\n");
    place.send("20240610_other", "{}\n");
    place.put("relay/desktop.ini", "x");
    symlink(
        place.home().join("sessions/20240603_crawler"),
        place.relay().join("20240603_crawler"),
    )
    .unwrap();
    symlink("/etc", place.relay().join("20240611_etc")).unwrap();
    fetch(&place, "20240610").expect(1).says(&[
        "may mean 2 sessions",
        "20240610_one",
        "20240610_other",
    ]);
    fetch(&place, "20240610_ohter")
        .expect(1)
        .says(&["the relay has no session", "did you mean 20240610_other?"]);
    fetch(&place, "@1")
        .expect(1)
        .says(&["the relay has no session"]);
    for path in ["20240610_one/context", "../relay/20240610_one", "/etc"] {
        fetch(&place, path).expect(2).says(&["is a path"]);
    }
    for hidden in ["..", ".", ".leases", ""] {
        assert_ne!(fetch(&place, hidden).code, Some(0), "{hidden}");
    }
    fetch(&place, "desktop.ini")
        .expect(1)
        .says(&["is a file, and a session is a folder"]);
    fetch(&place, "crawler")
        .expect(1)
        .says(&["this home's own session"]);
    fetch(&place, "etc")
        .expect(1)
        .says(&["is a symbolic link, which is not followed"]);
    assert!(!place.path("look").exists());
}

#[test]
fn the_copy_does_not_travel_and_is_none_of_the_home() {
    let place = Place::with_relay();
    place.send(ID, "{}\n");
    symlink(place.relay(), place.path("link")).unwrap();
    for to in ["relay", "relay/deep/er", "link/x"] {
        place
            .run(["relay", "fetch", ID, "--to", to])
            .expect(1)
            .says(&["lies in the relay"]);
    }
    for to in ["me/workbuddy_home", "me/workbuddy_home/sessions/x"] {
        place
            .run(["relay", "fetch", ID, "--to", to])
            .expect(1)
            .says(&["lies in the home"]);
    }
    place.put("file", "x");
    place
        .run(["relay", "fetch", ID, "--to", "file"])
        .expect(1)
        .says(&["there is a file already"]);
    place.put(format!("look/{ID}.origin.json"), "of somebody else");
    fetch(&place, ID)
        .expect(1)
        .says(&["origin.json", "nothing is written over"]);
    assert!(!place.relay().join("deep").exists());
    // In the folder of another sync client it is said.
    let ran = place.run(["relay", "fetch", ID, "--to", "Dropbox/look"]);
    ran.expect(0).says(&["synced by Dropbox"]);
}

#[test]
fn hostile_content_is_copied_and_followed_nowhere() {
    let place = Place::with_relay();
    place.send(ID, "{}\n");
    let folder = place.relay().join(ID);
    let secret = place.put("secret", "of this device");
    symlink(&secret, folder.join("context/turn_002.json")).unwrap();
    symlink("../../../secret", folder.join("escape")).unwrap();
    symlink("/etc", folder.join("memory")).unwrap();
    symlink("turn_001.json", folder.join("context/最新")).unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    tool("mkfifo", &[folder.join("context/管道").to_str().unwrap()]);
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("agent.sock")).unwrap();
    for name in [
        "CON",
        "nul.txt",
        "\u{1b}[31mred",
        "a\nb",
        "-rf",
        "~",
        "...",
        "x\u{202e}gpj",
    ] {
        place.put(format!("relay/{ID}/{name}"), "x");
    }
    let deep = "deep/".repeat(900);
    let mut below = folder.clone();
    for name in deep.split('/').take(300) {
        below.push(name);
    }
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(below.join("x"), "deep").unwrap();
    place.put(format!("relay/{ID}/.wbhome-tmp-0123"), "being written");

    let ran = fetch(&place, ID);
    ran.expect(0).says(&[
        "context/turn_002.json -> ",
        "escape -> ../../../secret",
        "memory -> /etc",
    ]);
    assert!(
        !ran.stderr.contains("最新") && !ran.stderr.contains("loop ->"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("context/管道   a FIFO"), "{ran:?}");
    assert!(ran.stdout.contains("agent.sock   a socket"), "{ran:?}");
    let copy = place.path("look").join(ID);
    assert_eq!(
        std::fs::read_link(copy.join("memory")).unwrap(),
        Path::new("/etc")
    );
    assert_eq!(
        std::fs::read_link(copy.join("context/turn_002.json")).unwrap(),
        secret
    );
    assert_eq!(std::fs::read_to_string(copy.join("a\nb")).unwrap(), "x");
    assert!(!copy.join(".wbhome-tmp-0123").exists() && !copy.join("context/管道").exists());
    let left: Vec<String> = note(&place)["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|odd| odd["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(left, ["agent.sock", "context/管道"]);
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "of this device");
}

#[test]
fn what_can_not_be_read_is_named_and_the_rest_is_there() {
    let place = Place::with_relay();
    place.send(ID, "{}\n");
    let closed = place.put(format!("relay/{ID}/memory/秘密.md"), "x");
    set_mode(&closed, 0o000);
    std::fs::create_dir(place.relay().join(ID).join("closed")).unwrap();
    set_mode(&place.relay().join(ID).join("closed"), 0o000);
    let args = ["relay", "fetch", ID, "--to", "look"];
    let Some(ran) = run_unprivileged(&place, &args) else {
        return;
    };
    ran.expect(3)
        .says(&["can not be read: memory/秘密.md", "can not be read: closed"]);
    let copy = place.path("look").join(ID);
    assert!(copy.join("context/turn_001.json").exists() && !copy.join("memory/秘密.md").exists());
    assert_eq!(note(&place)["left_out"].as_array().unwrap().len(), 2);
}

/// Whatever somebody writes meanwhile: the copy is one state of it, or there is none.
#[test]
fn a_version_that_is_being_synced_is_never_half_there() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::with_relay();
    place.send(ID, "0");
    for n in 0..40 {
        place.put(format!("relay/{ID}/memory/{n}.md"), "0");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each file in turn; what was written before is never newer than what follows.
            for round in 1..u64::MAX {
                for n in 0..40 {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = place.relay().join(ID).join(format!("memory/{n}.md"));
                    std::fs::rename(place.put("new", round.to_string()), path).unwrap();
                }
            }
        });
        for n in 0..6 {
            let to = format!("look{n}");
            let ran = place.run(["relay", "fetch", ID, "--to", &to]);
            let copy = place.path(&to).join(ID);
            match ran.code {
                Some(0) => {
                    let read =
                        |n| std::fs::read_to_string(copy.join(format!("memory/{n}.md"))).unwrap();
                    let rounds: Vec<u64> = (0..40).map(|n| read(n).parse().unwrap()).collect();
                    assert!(
                        rounds.is_sorted_by(|a, b| a >= b) && rounds[0] - rounds[39] <= 1,
                        "{rounds:?}"
                    );
                }
                _ => {
                    ran.expect(1).says(&["is still being synced"]);
                    assert_eq!(std::fs::read_dir(place.path(&to)).unwrap().count(), 0);
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn without_a_relay_there_is_nothing_to_fetch() {
    let place = Place::with_sessions();
    fetch(&place, ID).expect(1).says(&["no relay is set"]);
    place.bind_relay("mode = \"clone\"");
    std::fs::remove_dir_all(place.relay()).unwrap();
    fetch(&place, ID)
        .expect(1)
        .says(&["the relay folder is not there"]);
}

#[test]
fn a_full_disk_leaves_nothing() {
    let place = Place::with_relay();
    place.send(ID, "{}\n");
    place.put(format!("relay/{ID}/artifacts/large"), vec![7; 3 << 20]);
    let Some(disk) = support::disks::Disk::new(&place.root(), "tmpfs", 1) else {
        return;
    };
    let to = disk.path().join("look");
    let ran = place.run(["relay", "fetch", ID, "--to", to.to_str().unwrap()]);
    ran.expect(1)
        .says(&["can not write a copy of artifacts/large"]);
    assert_eq!(std::fs::read_dir(to).unwrap().count(), 0);
}

#[cfg(feature = "failpoints")]
#[test]
fn one_that_was_killed_is_done_anew() {
    for failpoint in ["relay-fetch.built", "relay-fetch.noted"] {
        let place = Place::with_relay();
        place.send(ID, "{}\n");
        let args = ["relay", "fetch", ID, "--to", "look"];
        let killed = place.run_with(&[("WBHOME_FAILPOINT", failpoint)], &args);
        assert_eq!(killed.code, None, "{failpoint}: {killed:?}");
        assert!(!place.path("look").join(ID).exists());
        fetch(&place, ID).expect(0);
        let mut names: Vec<String> = std::fs::read_dir(place.path("look"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [ID.to_owned(), format!("{ID}.origin.json")]);
    }
}

#[test]
fn what_file_managers_leave_is_no_part_of_a_version() {
    let place = Place::with_relay();
    place.send(ID, "{}\n");
    let plain = tree(&place.relay().join(ID)).len();
    place.put(format!("relay/{ID}/.DS_Store"), "x");
    place.put(format!("relay/{ID}/context/desktop.ini"), "x");
    symlink("/etc", place.relay().join(ID).join("context/Thumbs.db")).unwrap();
    fetch(&place, ID)
        .expect(0)
        .says(&["context/Thumbs.db -> /etc"]);
    let copy = tree(&place.path("look").join(ID));
    assert_eq!(copy.len(), plain + 1);
    assert!(copy.contains_key(&b"context/Thumbs.db"[..]));
    assert_eq!(note(&place)["files"], 3);

    place.put("relay/20240611_空/.DS_Store", "x");
    fetch(&place, "20240611_空")
        .expect(0)
        .says(&["holds no file"]);
}
