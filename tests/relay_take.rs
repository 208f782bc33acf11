//! `wbhome relay take`: the relay's version of a session becomes the home's own.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it lays out folders, and says what does not fit"
)]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use support::home::tool;
use support::hostile::Watched;
use support::relayed::{OTHER, run_unprivileged};
use support::{NOW, Place, Ran, differences, tree};

const ID: &str = "20240604_数据清洗";
const NEW: &str = "20240610_远程任务";

fn take(place: &Place, more: &[&str]) -> Ran {
    place.run(["relay", "take"].iter().chain(more))
}

fn entry(place: &Place, id: &str) -> Value {
    let index = place.index();
    let found = index.as_array().unwrap().iter().find(|e| e["id"] == id);
    found.unwrap_or(&Value::Null).clone()
}

/// A session of the home, labelled and with logs, of which another device has sent another version; this device holds the
/// lease.
fn differing() -> Place {
    let place = Place::with_relay();
    place.ok([
        "label",
        ID,
        "--tag",
        "清洗",
        "--project",
        "alpha",
        "--sync-tag",
        "工作",
        "-q",
    ]);
    place.put_home(&format!("sessions/{ID}/memory/own.md"), "here alone\n");
    place.put_home(&format!("sessions/{ID}/memory/shared.md"), "the same\n");
    place.put_home(&format!("sessions/{ID}/logs/run.log"), "line\n");
    place.date(ID, 4);
    let (here, there) = (
        place.home().join("sessions").join(ID),
        place.relay().join(ID),
    );
    tool(
        "cp",
        &["-a", here.to_str().unwrap(), there.to_str().unwrap()],
    );
    std::fs::remove_dir_all(there.join("logs")).unwrap();
    std::fs::remove_file(there.join("memory/own.md")).unwrap();
    place.put(
        format!("relay/{ID}/context/turn_001.json"),
        "{\"turn\": 1, \"text\": \"改\"}\n",
    );
    place.put(
        format!("relay/{ID}/context/turn_002.json"),
        "{\"turn\": 2}\n",
    );
    place.sent(ID);
    place.hold_lease(ID);
    place
}

/// The session as the relay has it and with the logs that were here.
fn is_taken(place: &Place) -> bool {
    let mut here = tree(&place.home().join("sessions").join(ID));
    let logs = here.remove(&b"logs/run.log"[..]);
    here.remove(&b"logs"[..]);
    let there = tree(&place.relay().join(ID));
    let same = here.len() == there.len()
        && here.iter().all(|(path, entry)| {
            there.get(path).is_some_and(|there| {
                (there.kind, &there.content, there.mtime)
                    == (entry.kind, &entry.content, entry.mtime)
            })
        });
    same && logs.is_some()
}

#[test]
fn the_other_version_takes_the_place_and_the_former_is_in_the_trash() {
    let place = differing();
    let session = place.home().join("sessions").join(ID);
    let shared = session.join("memory/shared.md");
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o644)).unwrap();
    let script = place.put(format!("relay/{ID}/artifacts/跑.sh"), "#!/bin/sh\n");
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o6775)).unwrap();
    place.sent(ID);
    let (former, relay, contents) = (tree(&session), tree(&place.relay()), place.contents());

    let ran = take(&place, &["清洗"]);
    ran.expect(0);
    for line in [
        "sent by   笔记本, 2024-06-15 11:00 by its clock",
        "changed   context/turn_001.json   here 27 B, 11 days ago · there ",
        "added     context/turn_002.json   there 12 B",
        "gone      memory/own.md   here 11 B, 11 days ago",
        "stays     logs/   1 file",
        "Back again: wbhome restore 20240615T120000Z --from trash --force",
    ] {
        assert!(
            ran.stdout.contains(line),
            "{line:?} is not in {}",
            ran.stdout
        );
    }
    assert!(is_taken(&place));
    assert_eq!(relay, tree(&place.relay()), "the relay is not touched");
    place.nothing_lost(&contents);
    let mode = |rel: &str| std::fs::metadata(session.join(rel)).unwrap().mode() & 0o7777;
    assert_eq!(mode("context/turn_002.json"), 0o600);
    assert_eq!(mode("artifacts/跑.sh"), 0o700);
    assert_eq!(
        mode("memory/shared.md"),
        0o644,
        "what is the same stays as it is"
    );
    // Labels stay, what is counted is counted anew.
    let known = entry(&place, ID);
    assert_eq!(
        (&known["tags"][0], &known["sync_tag"], &known["status"]),
        (&"清洗".into(), &"工作".into(), &"active".into())
    );
    assert!(place.home().join(format!("projects/alpha/{ID}")).exists());
    assert_eq!(place.json(["ls"])["stale"], false);
    assert_eq!(place.json(["show", ID])["holds"]["turns"], 2);
    assert_eq!(place.run(["check"]).code, Some(0));
    let note = place.home_text(".wbhome/trash/20240615T120000Z/note.json");
    assert!(
        note.contains("was replaced by the version of 笔记本"),
        "{note}"
    );

    // What is the same by now needs nothing, not even a lease.
    place.say(&place.device(), json!({"leases": {}}));
    let again = take(&place, &[ID]);
    again.expect(0);
    assert!(again.stdout.contains("nothing to do"), "{again:?}");
    assert_eq!(place.acts().len(), 1);

    // And the former one back again.
    place
        .run(["restore", ID, "--from", "trash"])
        .expect(1)
        .says(&["--force"]);
    place
        .run(["restore", ID, "--from", "trash", "--force"])
        .expect(0);
    let back = tree(&session);
    assert!(former == back, "{}", differences(&former, &back));
    place.nothing_lost(&contents);
}

#[test]
fn one_that_is_new_here_is_indexed_and_gets_a_sync_tag() {
    let place = Place::with_relay();
    place.send(NEW, "{\"turn\": 1}\n");
    place.put(format!("relay/{NEW}/logs/run.log"), "theirs\n");
    place.hold_lease(NEW);
    let ran = take(&place, &["远程"]);
    ran.expect(0);
    assert!(
        ran.stdout.contains("new here") && ran.stdout.contains("sync tag  工作"),
        "{ran:?}"
    );
    let known = entry(&place, NEW);
    assert_eq!(
        (
            &known["title"],
            &known["sync_tag"],
            &known["status"],
            &known["session_id"]
        ),
        (
            &"远程".into(),
            &"工作".into(),
            &"active".into(),
            &format!("identity-of-{NEW}").into()
        )
    );
    assert_eq!(
        place.home_text(&format!("sessions/{NEW}/logs/run.log")),
        "theirs\n"
    );
    assert_eq!(
        place.mode(format!("me/workbuddy_home/sessions/{NEW}")),
        0o700
    );
    assert!(place.acts().is_empty() && place.names(".wbhome/tmp").is_empty());
    assert_eq!(place.run(["check"]).code, Some(0));

    // Another tag on request; what a device says is not believed when it can be none.
    for (id, said, more, tag) in [
        ("20240611_a", "\u{1b}[31m", &[][..], "relay"),
        ("20240612_b", "工作", &["--sync-tag", "桌面"], "桌面"),
    ] {
        place.send(id, "{}");
        place.say(OTHER, json!({"sessions": {id: place.word(id, said)}}));
        place.hold_lease(id);
        take(&place, &[&[id], more].concat()).expect(0);
        assert_eq!(entry(&place, id)["sync_tag"], tag);
    }
    take(&place, &[NEW, "--sync-tag", " "])
        .expect(2)
        .says(&["can not be a sync tag"]);
}

#[test]
fn one_that_was_removed_here_comes_with_its_labels() {
    let place = differing();
    place.ok(["rm", ID, "-q"]);
    take(&place, &[ID]).expect(0);
    let known = entry(&place, ID);
    assert_eq!(
        (&known["status"], &known["tags"][0], &known["sync_tag"]),
        (&"active".into(), &"清洗".into(), &"工作".into())
    );
    assert!(known.get("removed_at").is_none());
    // What was removed is still in the trash.
    assert_eq!(place.acts().len(), 1);
}

#[test]
fn one_without_a_sync_tag_stays_so_and_it_is_said() {
    let place = differing();
    place.ok(["label", ID, "--no-sync-tag", "-q"]);
    take(&place, &[ID, "-n"])
        .expect(0)
        .says(&["carries no sync tag"]);
    take(&place, &[ID, "--sync-tag", "桌面"]).expect(0);
    assert_eq!(entry(&place, ID)["sync_tag"], "桌面");
}

#[test]
fn nothing_is_written_by_a_dry_run() {
    let place = differing();
    let before = tree(&place.root());
    let ran = take(&place, &[ID, "-n"]);
    ran.expect(0);
    assert!(ran.stdout.contains("Nothing was changed."), "{ran:?}");
    assert_eq!(before, tree(&place.root()));
    let ran = take(&place, &[ID, "-q"]);
    assert_eq!(
        (ran.expect(0).stdout.as_str(), ran.stderr.as_str()),
        ("", "")
    );
}

#[test]
fn only_who_holds_the_lease_takes() {
    let place = differing();
    let before = place.apart_from_own();
    place.say(&place.device(), json!({"leases": {}}));
    take(&place, &[ID]).expect(1).says(&[
        "nobody holds the lease",
        "`wbhome lease take 20240604_数据清洗` first",
    ]);
    place.hold_lease(ID);
    let lease = json!({ID: {"epoch": 2, "since": NOW}});
    place.say(OTHER, json!({"sessions": {}, "leases": lease}));
    take(&place, &[ID])
        .expect(1)
        .says(&["笔记本", "lease release", "lease steal"]);
    take(&place, &[ID, "--force"]).expect(1);
    assert_eq!(before, place.apart_from_own());
    assert!(place.acts().is_empty());
}

#[test]
fn where_an_agent_is_at_work_nothing_is_taken() {
    let place = differing();
    let before = place.apart_from_own();
    place.agent_in(&format!("sessions/{ID}/context"));
    take(&place, &[ID])
        .expect(1)
        .says(&["is at work in it", "end its session first"]);
    place.agent_in("sessions/20240603_crawler");
    take(&place, &[ID, "-n"]).expect(0);
    let log = place.home().join(format!("sessions/{ID}/logs/run.log"));
    let mut writer = std::process::Command::new("sleep");
    let file = std::fs::File::options().append(true).open(log).unwrap();
    let mut writer = writer.arg("600").stdout(file).spawn().unwrap();
    let ran = take(&place, &[ID]);
    writer.kill().unwrap();
    writer.wait().unwrap();
    ran.expect(1).says(&["has a file of it open for writing"]);
    assert_eq!(before, place.apart_from_own());
}

#[test]
fn what_may_be_still_on_its_way_is_refused() {
    let place = differing();
    let there = place.relay().join(ID);
    let record = std::fs::read(there.join("session.json")).unwrap();
    let before = place.apart_from_own();
    std::fs::write(there.join("session.json"), &record[..20]).unwrap();
    take(&place, &[ID]).expect(1).says(&[
        "still on its way",
        "session.json can not be understood",
        "wait until",
    ]);
    std::fs::remove_file(there.join("session.json")).unwrap();
    take(&place, &[ID])
        .expect(1)
        .says(&["still on its way", "it has no session.json"]);
    std::fs::write(there.join("session.json"), "{\"session_id\": \"another\"}").unwrap();
    place.sent(ID);
    take(&place, &[ID])
        .expect(1)
        .says(&["another session of the same name", "wbhome mv"]);
    std::fs::create_dir_all(place.relay().join(NEW).join("context")).unwrap();
    place.hold_lease(NEW);
    take(&place, &[NEW]).expect(1).says(&["holds no file"]);
    take(&place, &[NEW, "--force"]).expect(1);
    assert_eq!(before, place.apart_from_own());

    // By force, it is another session from now on.
    place.hold_lease(ID);
    take(&place, &[ID, "--force"]).expect(0);
    assert_eq!(entry(&place, ID)["session_id"], "another");
    assert!(is_taken(&place));
}

/// What a device says that has sent a session, when only a part of it has arrived, is what tells that.
#[test]
fn what_nobody_says_to_have_sent_is_taken_only_by_force() {
    let place = differing();
    let before = place.apart_from_own();
    let unsaid = "it is not known yet what was sent, because the file of the device that sent it has not arrived";
    let hints = ["wait until the sync client is done", "--force"];
    let word = place.word(ID, "工作");
    let own = |version: &str| {
        let sent = json!({ID: {"tag": "工作", "at": NOW, "version": version}});
        let leases = json!({ID: {"epoch": 1, "since": NOW}});
        place.say(&place.device(), json!({"sessions": sent, "leases": leases}));
    };
    // No file of another device, one that knows nothing of it, one that does not say what it was.
    std::fs::remove_file(place.relay().join(format!(".leases/{OTHER}.json"))).unwrap();
    take(&place, &[ID])
        .expect(1)
        .says(&[unsaid, hints[0], hints[1]]);
    place.say(OTHER, json!({"sessions": {}}));
    take(&place, &[ID]).expect(1).says(&[unsaid]);
    place.say(OTHER, json!({"sessions": {ID: {"tag": "工作", "at": NOW}}}));
    take(&place, &[ID]).expect(1).says(&[unsaid]);
    // What this home has sent before says nothing of what another has.
    own(&"0".repeat(32));
    take(&place, &[ID]).expect(1).says(&[unsaid]);
    assert_eq!(before, place.apart_from_own());
    // As soon as it is said, it is known.
    place.say(OTHER, json!({"sessions": {ID: word}}));
    take(&place, &[ID, "-n"]).expect(0);
    place.say(OTHER, json!({"sessions": {}}));
    take(&place, &[ID, "--force"]).expect(0);
    assert!(is_taken(&place));

    // One that is new here, too: half of it is a session of its own.
    place.send(NEW, "{}\n");
    place.hold_lease(NEW);
    place.say(OTHER, json!({"sessions": {}}));
    take(&place, &[NEW]).expect(1).says(&[unsaid]);
    std::fs::remove_file(place.relay().join(NEW).join("session.json")).unwrap();
    place.sent(NEW);
    let ran = take(&place, &[NEW]);
    ran.expect(1).says(&["it has no session.json"]);
    assert!(!ran.stderr.contains("former"), "{ran:?}");
    assert!(!place.home().join("sessions").join(NEW).exists());
    take(&place, &[NEW, "--force"]).expect(0);
}

#[test]
fn what_this_home_has_sent_is_gone_back_to_only_by_force() {
    let place = differing();
    let before = place.apart_from_own();
    let leases = json!({ID: {"epoch": 1, "since": NOW}});
    let own = json!({"sessions": {ID: place.word(ID, "工作")}, "leases": leases});
    place.say(&place.device(), own);
    // Also when another device has taken that since.
    for others in [json!({}), json!({ID: place.word(ID, "工作")})] {
        place.say(OTHER, json!({"sessions": others}));
        take(&place, &[ID]).expect(1).says(&[
            "holds what this home has sent; taking it would go back to that",
            "`wbhome relay sync`",
            "--force",
        ]);
    }
    assert_eq!(before, place.apart_from_own());
    take(&place, &[ID, "--force"]).expect(0);
    assert!(is_taken(&place));
    // Of one that is gone here it is the way back.
    std::fs::remove_dir_all(place.home().join("sessions").join(ID)).unwrap();
    take(&place, &[ID]).expect(0);
}

/// Logs are no part of what a device says to have sent: one sends them, another does not.
#[test]
fn a_version_is_the_same_with_logs_and_without() {
    for logs in [false, true] {
        let place = differing();
        place.put_home(
            "wbhome.toml",
            format!(
                "[relay]\ndir = {:?}\nmode = \"clone\"\nlogs = {logs}\n",
                place.relay()
            ),
        );
        place.put(format!("relay/{ID}/logs/run.log"), "theirs\n");
        take(&place, &[ID]).expect(0);
        let log = place.home_text(&format!("sessions/{ID}/logs/run.log"));
        assert_eq!(log, if logs { "theirs\n" } else { "line\n" });
    }
}

#[test]
fn what_file_managers_leave_is_no_difference_and_stays_where_it_is() {
    let place = differing();
    place.put_home(&format!("sessions/{ID}/artifacts/desktop.ini"), "of here\n");
    place.put_home(&format!("sessions/{ID}/.DS_Store"), "of here\n");
    place.put_home(
        &format!("sessions/{ID}/gone/Thumbs.db"),
        "of a folder that goes\n",
    );
    place.put_home(
        &format!("sessions/{ID}/both/Icon\r"),
        "of a place that is taken\n",
    );
    place.put_home(&format!("sessions/{ID}/logs/.directory"), "of here\n");
    std::fs::create_dir_all(place.relay().join(ID).join("artifacts")).unwrap();
    // A link of that name is somebody's.
    std::fs::create_dir(place.relay().join(ID).join("both")).unwrap();
    symlink("x", place.relay().join(ID).join("both/Icon\r")).unwrap();
    place.put(format!("relay/{ID}/artifacts/.DS_Store"), "theirs\n");
    place.put(format!("relay/{ID}/.DS_Store"), "theirs\n");
    place.sent(ID);
    let contents = place.contents();
    let ran = take(&place, &[ID]);
    ran.expect(0);
    for name in [".DS_Store", "desktop.ini", "Thumbs.db", ".directory"] {
        assert!(!ran.stdout.contains(name), "{ran:?}");
    }
    let session = place.home().join("sessions").join(ID);
    for kept in [".DS_Store", "artifacts/desktop.ini", "logs/.directory"] {
        assert_eq!(
            std::fs::read_to_string(session.join(kept)).unwrap(),
            "of here\n",
            "{kept}"
        );
    }
    assert!(!session.join("artifacts/.DS_Store").exists() && !session.join("gone").exists());
    assert_eq!(
        std::fs::read_link(session.join("both/Icon\r")).unwrap(),
        Path::new("x")
    );
    // What has no place any more is in the trash.
    place.nothing_lost(&contents);

    // They alone are no difference, and no version.
    place.say(&place.device(), json!({"leases": {}}));
    let again = take(&place, &[ID]);
    again.expect(0);
    assert!(again.stdout.contains("nothing to do"), "{again:?}");
    place.put(format!("relay/{NEW}/.DS_Store"), "x");
    place.hold_lease(NEW);
    take(&place, &[NEW, "--force"])
        .expect(1)
        .says(&["holds no file"]);
}

#[test]
fn what_will_be_in_the_way_later_is_said() {
    let place = Place::with_relay();
    place.send(NEW, "{}\n");
    place.hold_lease(NEW);
    take(&place, &[NEW]).expect(0);
    let copy = "20240611_副本";
    let record = place.relay().join(NEW).join("session.json");
    place.send(copy, "{}\n");
    std::fs::copy(record, place.relay().join(copy).join("session.json")).unwrap();
    for name in ["a:b", "CON", "x.tmp", "~$计划", "\u{1b}[31mred"] {
        place.put(format!("relay/{copy}/artifacts/{name}"), "x");
    }
    place.sent(copy);
    place.hold_lease(copy);
    let ran = take(&place, &[copy]);
    let twin = format!("`{copy}` has the session_id of `{NEW}`");
    ran.expect(0).says(&[
        &twin,
        "`relay sync` will hold it back for a name: artifacts/CON: con is the name of a device",
        "2 more names",
    ]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn what_is_no_version_is_refused() {
    let place = differing();
    let elsewhere = place.put("elsewhere/session.json", "{}");
    symlink(
        elsewhere.parent().unwrap(),
        place.relay().join("20240611_link"),
    )
    .unwrap();
    place.put("relay/20240612_file", "x");
    for (id, what) in [
        ("20240611_link", "is a symbolic link"),
        ("20240612_file", "is a file, and a session is a folder"),
        ("20240603_crawler", "the relay has no version of"),
        ("20240699_nothing", "the relay has no session"),
        ("..", "the relay has no session"),
    ] {
        take(&place, &[id]).expect(1).says(&[what]);
    }
    take(&place, &["../elsewhere"])
        .expect(2)
        .says(&["is a path"]);
    place.ok(["archive", ID, "-q"]);
    take(&place, &[ID])
        .expect(1)
        .says(&["is archived", "wbhome unarchive"]);
    place.put_home(&format!("sessions/{ID}"), "a file");
    take(&place, &[ID])
        .expect(1)
        .says(&["a file stands in the way"]);
    assert!(place.acts().is_empty());
}

#[test]
fn a_deletion_is_followed_only_by_a_word() {
    let place = differing();
    std::fs::remove_dir_all(place.relay().join(ID)).unwrap();
    let sent = json!({ID: {"tag": "工作", "at": NOW}});
    place.say(
        &place.device(),
        json!({"sessions": sent, "leases": {ID: {"epoch": 1, "since": NOW}}}),
    );
    take(&place, &["清洗"]).expect(1).says(&[
        "has deleted what this home had sent",
        "wbhome rm 20240604_数据清洗",
        "--no-sync-tag",
        "wbhome relay sync --ours",
    ]);
}

#[test]
fn hostile_content_is_taken_and_followed_nowhere() {
    let place = differing();
    let there = place.relay().join(ID);
    let secret = place.put("secret", "of this device");
    symlink(&secret, there.join("artifacts/报告.md")).unwrap();
    symlink("../../../../..", there.join("up")).unwrap();
    std::fs::remove_dir_all(there.join("memory")).unwrap();
    symlink("/etc", there.join("memory")).unwrap();
    // A folder where a file was, and a file where a folder was.
    std::fs::create_dir(there.join("logs")).unwrap();
    symlink("/etc/passwd", there.join("logs/run.log")).unwrap();
    std::fs::remove_file(there.join("context/turn_001.json")).unwrap();
    place.put(format!("relay/{ID}/context/turn_001.json/x"), "{}");
    tool("mkfifo", &[there.join("pipe").to_str().unwrap()]);
    tool(
        "mkfifo",
        &[place
            .home()
            .join(format!("sessions/{ID}/here"))
            .to_str()
            .unwrap()],
    );
    for name in ["\u{1b}[31mred", "a\nb", "-rf", "CON"] {
        place.put(format!("relay/{ID}/{name}"), "x");
    }
    // What the device says of itself is as hostile.
    let sent = json!({ID: place.word(ID, "\u{1b}]0;x")});
    place.say(
        OTHER,
        json!({"name": "\u{1b}[31m\u{202e}x", "sessions": sent}),
    );
    let mut watched = Watched::new(&place);
    watched.looks(["relay", "take", ID, "-n", "-v"]);
    watched.looks(["relay", "fetch", ID, "--to", "look", "-n"]);
    watched.is_whole();
    let contents = place.contents();
    let ran = take(&place, &[ID]);
    ran.expect(0).says(&[
        "artifacts/报告.md -> ",
        "up -> ../../../../..",
        "memory -> /etc",
    ]);
    assert!(
        !(ran.stdout.clone() + &ran.stderr).contains('\u{1b}'),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("left out  pipe   a FIFO"), "{ran:?}");
    assert!(ran.stdout.contains("gone      here   a FIFO"), "{ran:?}");
    let session = place.home().join("sessions").join(ID);
    assert_eq!(
        std::fs::read_link(session.join("memory")).unwrap(),
        Path::new("/etc")
    );
    assert_eq!(
        std::fs::read(session.join("context/turn_001.json/x")).unwrap(),
        b"{}"
    );
    assert_eq!(
        std::fs::read(session.join("logs/run.log")).unwrap(),
        b"line\n",
        "of here"
    );
    assert!(!session.join("pipe").exists() && session.join("a\nb").exists());
    place.nothing_lost(&contents);
}

#[test]
fn logs_that_travel_are_compared_as_the_rest() {
    let place = differing();
    place.put_home(
        "wbhome.toml",
        format!(
            "[relay]\ndir = {:?}\nmode = \"clone\"\nlogs = true\n",
            place.relay()
        ),
    );
    place.put(format!("relay/{ID}/logs/run.log"), "line\nmore\n");
    let ran = take(&place, &[ID]);
    ran.expect(0);
    assert!(ran.stdout.contains("changed   logs/run.log"), "{ran:?}");
    assert_eq!(
        place.home_text(&format!("sessions/{ID}/logs/run.log")),
        "line\nmore\n"
    );
}

#[test]
fn what_can_not_be_read_is_not_taken() {
    let place = differing();
    let before = place.apart_from_own();
    let closed = place.put(format!("relay/{ID}/memory/秘密.md"), "x");
    place.sent(ID);
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).unwrap();
    let Some(ran) = run_unprivileged(&place, &["relay", "take", ID]) else {
        return;
    };
    ran.expect(1)
        .says(&["memory/秘密.md", "taken whole or not at all"]);
    assert_eq!(before, place.apart_from_own());
    assert!(place.names(".wbhome/tmp").is_empty() && place.acts().is_empty());
}

#[test]
fn logs_that_can_not_be_carried_over_stop_it() {
    let place = differing();
    let before = place.apart_from_own();
    let log = place.home().join(format!("sessions/{ID}/logs/run.log"));
    std::fs::set_permissions(&log, PermissionsExt::from_mode(0o000)).unwrap();
    let Some(ran) = run_unprivileged(&place, &["relay", "take", ID]) else {
        return;
    };
    ran.expect(1)
        .says(&["workbuddy_home/sessions", "logs/run.log", "carried over"]);
    std::fs::set_permissions(&log, PermissionsExt::from_mode(0o600)).unwrap();
    let logs = log.parent().unwrap();
    std::fs::set_permissions(logs, PermissionsExt::from_mode(0o000)).unwrap();
    let ran = run_unprivileged(&place, &["relay", "take", ID]).unwrap();
    ran.expect(1).says(&["carried over", "nothing was changed"]);
    std::fs::set_permissions(logs, PermissionsExt::from_mode(0o755)).unwrap();
    let kept = |place: &Place| {
        place
            .apart_from_own()
            .into_iter()
            .map(|(path, e)| (path, e.content))
            .collect::<Vec<_>>()
    };
    let before: Vec<_> = before
        .into_iter()
        .map(|(path, e)| (path, e.content))
        .collect();
    assert_eq!(before, kept(&place));
}

#[test]
fn one_name_in_two_forms_is_not_taken_for_two_sessions() {
    let place = Place::with_relay();
    for (id, other) in [
        ("20240603_Crawler", "20240603_crawler"),
        ("20240620_e\u{301}tude", "20240620_\u{e9}tude"),
    ] {
        if id.ends_with("tude") {
            place.session(other, 5);
        }
        place.send(id, "{}\n");
        place.hold_lease(id);
        take(&place, &[id])
            .expect(1)
            .says(&["only in case or Unicode form", other]);
    }
}

/// Whatever somebody writes meanwhile: what is taken is one state of it, or nothing is.
#[test]
fn a_version_that_is_being_synced_is_never_half_taken() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = differing();
    for n in 0..40 {
        place.put(format!("relay/{ID}/memory/{n}.md"), "0");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
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
        for _ in 0..6 {
            let before = place.apart_from_own();
            let ran = take(&place, &[ID, "--force"]);
            if ran.code == Some(0) {
                let read = |n| place.home_text(&format!("sessions/{ID}/memory/{n}.md"));
                let rounds: Vec<u64> = (0..40).map(|n| read(n).parse().unwrap()).collect();
                assert!(
                    rounds.is_sorted_by(|a, b| a >= b) && rounds[0] - rounds[39] <= 1,
                    "{rounds:?}"
                );
            } else {
                ran.expect(1).says(&["is still being synced"]);
                assert_eq!(before, place.apart_from_own());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    place.ok(["relay", "take", ID, "--force"]);
    assert!(is_taken(&place));
}

#[test]
fn a_full_disk_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = support::disks::Disk::new(folder.path(), "tmpfs", 4) else {
        return;
    };
    let place = differing();
    place.put(format!("relay/{ID}/artifacts/large"), vec![7; 6 << 20]);
    place.sent(ID);
    // The home lies on the small disk, and the relay does not.
    let small = disk.path().join("workbuddy_home");
    tool(
        "cp",
        &[
            "-a",
            place.home().to_str().unwrap(),
            small.to_str().unwrap(),
        ],
    );
    std::fs::remove_dir_all(place.home()).unwrap();
    symlink(&small, place.home()).unwrap();
    place.hold_lease(ID);
    let before = tree(&small.join("sessions"));
    let ran = take(&place, &[ID]);
    ran.expect(1)
        .says(&["can not write a copy of artifacts/large"]);
    assert_eq!(before, tree(&small.join("sessions")));
    assert!(place.names(".wbhome/tmp").is_empty() && place.acts().is_empty());
    std::fs::remove_file(place.relay().join(ID).join("artifacts/large")).unwrap();
    place.sent(ID);
    take(&place, &[ID]).expect(0);
}

#[cfg(feature = "failpoints")]
mod killed {
    use super::*;

    /// Killed there, the session is the old one or the new one, and the next command completes what was begun.
    fn kill(place: &Place, failpoint: &str, id: &str) {
        let contents = place.contents();
        let args = ["relay", "take", id];
        let killed = place.run_with(&[("WBHOME_FAILPOINT", failpoint)], &args);
        assert_eq!(killed.code, None, "{failpoint}: {killed:?}");
        place.nothing_lost(&contents);
        let settled = place.run(["index", "-q"]);
        settled.expect(0);
        assert!(
            !settled.stderr.contains("left "),
            "{failpoint}: {settled:?}"
        );
        place.nothing_lost(&contents);
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        assert!(place.names(".wbhome/tmp").is_empty(), "{failpoint}");
        assert_eq!(place.run(["check"]).code, Some(0), "{failpoint}");
    }

    #[test]
    fn one_that_differs() {
        for (failpoint, begun) in [
            ("relay-take.built", false),
            ("relay-take.noted", false),
            ("journal.begun", false),
            ("relay-take.away", false),
            ("journal.turned", true),
            ("journal.renamed", true),
            ("mend.unarchived", true),
            ("mend.labelled", true),
            ("journal.viewed", true),
            ("journal.done", true),
        ] {
            let place = differing();
            let before = tree(&place.home().join("sessions").join(ID));
            kill(&place, failpoint, ID);
            assert_eq!(is_taken(&place), begun, "{failpoint}");
            let now = tree(&place.home().join("sessions").join(ID));
            assert_eq!(before == now, !begun, "{failpoint}");
            assert_eq!(entry(&place, ID)["tags"][0], "清洗");
            take(&place, &[ID]).expect(0);
            assert!(is_taken(&place), "{failpoint}");
            place
                .run(["restore", ID, "--from", "trash", "--force"])
                .expect(0);
            let back = tree(&place.home().join("sessions").join(ID));
            assert!(
                before == back,
                "{failpoint}: {}",
                differences(&before, &back)
            );
        }
    }

    #[test]
    fn one_that_is_new() {
        for (failpoint, begun) in [
            ("relay-take.built", false),
            ("relay-take.noted", false),
            ("journal.begun", true),
            ("journal.renamed", true),
            ("mend.unarchived", true),
            ("journal.done", true),
        ] {
            let place = Place::with_relay();
            place.send(NEW, "{}\n");
            place.hold_lease(NEW);
            kill(&place, failpoint, NEW);
            assert_eq!(
                place.home().join("sessions").join(NEW).exists(),
                begun,
                "{failpoint}"
            );
            take(&place, &[NEW]).expect(0);
            assert_eq!(entry(&place, NEW)["sync_tag"], "工作", "{failpoint}");
        }
    }
}
