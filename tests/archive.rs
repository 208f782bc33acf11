//! `wbhome archive`: a session becomes one file that stock tools unpack, and nothing of it is lost on the way.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use support::home::tool;
use support::{Entry, Place, differences, has_tool, tree};

const ID: &str = "20240603_crawler";
const PACK: &str = "archive/20240603_crawler.tar.zst";

/// A session with everything that a folder can hold, and two plain ones.
fn place() -> Place {
    let place = Place::with_sessions();
    let at = |rel: &str| format!("sessions/{ID}/{rel}");
    let root = place.home().join(at(""));
    place.put_home(&at("memory/记忆/长期.md"), "数据\n".repeat(500));
    place.put_home(&at("artifacts/empty"), "");
    place.put_home(&at("artifacts/zeros.bin"), vec![0u8; 300_000]);
    place.put_home(&at("logs/run.log"), "line\n".repeat(4000));
    place.put_home(&at(&format!("artifacts/{}.txt", "长".repeat(80))), "long");
    fs::write(
        root.join("artifacts")
            .join(std::ffi::OsStr::from_bytes(b"a\xff\n")),
        "x",
    )
    .unwrap();
    fs::create_dir_all(root.join("artifacts/空/更空")).unwrap();
    symlink("../memory/记忆", root.join("artifacts/latest")).unwrap();
    symlink("/nowhere/没有", root.join("artifacts/dangling")).unwrap();
    fs::hard_link(root.join("logs/run.log"), root.join("logs/same.log")).unwrap();
    for (rel, mode) in [
        ("artifacts/empty", 0o400),
        ("artifacts/zeros.bin", 0o755),
        ("memory", 0o700),
    ] {
        fs::set_permissions(root.join(rel), fs::Permissions::from_mode(mode)).unwrap();
    }
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(root.join("logs/run.log"), "user.备注", b"a\0b", flags).unwrap();
    let mut nanos = 1;
    for entry in walkdir::WalkDir::new(&root).contents_first(true) {
        let entry = entry.unwrap();
        if !entry.file_type().is_symlink() {
            nanos += 7;
            let then = SystemTime::UNIX_EPOCH + Duration::new(1_717_405_200, nanos);
            fs::File::open(entry.path())
                .unwrap()
                .set_modified(then)
                .unwrap();
        }
    }
    place.ok([
        "label",
        "crawler",
        "--project",
        "alpha",
        "--tag",
        "网",
        "-q",
    ]);
    place
}

fn session(place: &Place, id: &str) -> BTreeMap<Vec<u8>, Entry> {
    tree(&place.home().join("sessions").join(id))
}

fn entry(place: &Place, id: &str) -> serde_json::Value {
    let index = place.index();
    let found = index.as_array().unwrap().iter().find(|e| e["id"] == id);
    found.unwrap().clone()
}

#[test]
fn it_becomes_one_file_that_stock_tools_unpack_to_the_exact_tree() {
    let place = place();
    let before = session(&place, ID);
    let ran = place.run(["archive", "crawler"]);
    ran.expect(0);
    let line = ran.stdout.lines().next().unwrap();
    assert!(
        line.starts_with("20240603_crawler   9 files, ") && line.contains(" → "),
        "{line}"
    );
    assert!(
        ran.stdout
            .ends_with("Back again: wbhome unarchive 20240603_crawler\n"),
        "{ran:?}"
    );
    assert!(!place.home().join("sessions").join(ID).exists());
    assert!(!place.home().join("projects/alpha").join(ID).exists());
    assert_eq!(place.acts(), [""; 0]);
    assert!(place.names(".wbhome/journal").is_empty());
    assert_eq!(place.mode(format!("{}/{PACK}", support::home::HOME)), 0o600);
    let entry = entry(&place, ID);
    assert_eq!(
        (&entry["status"], &entry["tags"][0]),
        (&"archived".into(), &"网".into())
    );
    assert_eq!(entry["archived_at"], support::NOW);
    let pack = place.home().join(PACK);
    assert_eq!(entry["archive"]["blake3"], support::digest(&pack));
    assert_eq!(
        entry["archive"]["bytes"],
        fs::metadata(&pack).unwrap().len()
    );
    place.ok(["check"]);
    place.ok(["index", "-q"]);
    assert_eq!(self::entry(&place, ID), entry, "the index agrees already");

    if !has_tool("zstd") || !has_tool("tar") {
        return;
    }
    let pack = pack.to_str().unwrap();
    tool("zstd", &["-t", "-q", pack]);
    tool("zstd", &["-l", pack]);
    for (unpacker, args) in [
        (
            "tar",
            &["--zstd", "--xattrs", "--xattrs-include=*", "-xpf"][..],
        ),
        ("bsdtar", &["-xpf"]),
    ] {
        if !has_tool(unpacker) {
            continue;
        }
        let into = place.path(unpacker);
        fs::create_dir(&into).unwrap();
        tool(
            unpacker,
            &[args, &[pack, "-C", into.to_str().unwrap()]].concat(),
        );
        let names: Vec<_> = fs::read_dir(&into)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, [ID]);
        assert_eq!(
            differences(&before, &tree(&into.join(ID))),
            "",
            "{unpacker}"
        );
        let log = into.join(ID).join("logs/run.log");
        let mut note = [0; 8];
        let length = rustix::fs::getxattr(log, "user.备注", &mut note).unwrap();
        assert_eq!(&note[..length], b"a\0b", "{unpacker}");
    }
}

#[test]
fn several_go_one_by_one_and_one_that_is_refused_stops_no_other() {
    let place = Place::with_sessions();
    let log = place.put_home("sessions/20240603_crawler/logs/run.log", "一\n");
    let open = fs::File::options().append(true).open(log).unwrap();
    let before = session(&place, ID);
    let ran = place.run(["archive", "crawler", "清洗", "api"]);
    ran.expect(3).says(&[
        "`20240603_crawler` can not be archived",
        "open for writing",
        "hint: end its session first",
    ]);
    assert!(ran.stdout.contains("\n2 sessions: 4 files, "), "{ran:?}");
    assert_eq!(differences(&before, &session(&place, ID)), "");
    assert_eq!(place.names("sessions").len(), before.len());
    place.run(["archive", "crawler"]).expect(1);
    // One that has its archive is nothing to do, one that is not there is refused.
    assert_snapshot!(place.run(["archive", "api"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240605_api_refactor   is archived already
    --- stderr
    ");
    drop(open);
    place.agent_in("sessions/20240603_crawler/context");
    place
        .run(["archive", "crawler"])
        .expect(1)
        .says(&["is at work in it"]);
    assert_eq!(differences(&before, &session(&place, ID)), "");
}

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let place = Place::with_sessions();
    let before = place.apart_from_own();
    assert_snapshot!(place.ok(["archive", "-n", "crawler"]), @r"
    20240603_crawler   2 files, 138 B
    1 session would be archived: 2 files, 138 B. Nothing was changed.
    ");
    assert_snapshot!(place.ok(["archive", "-n", "--idle", "11d"]), @r"
    20240603_crawler   2 files, 138 B
    20240604_数据清洗   2 files, 148 B
    1 session left, active since:
      20240605_api_refactor   2024-06-05
    2 sessions would be archived: 4 files, 286 B. Nothing was changed.
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn idle_takes_those_that_have_rested_and_names_the_others() {
    let place = Place::with_sessions();
    assert_snapshot!(place.ok(["archive", "--idle"]), @r"
    3 sessions left, active since:
      20240603_crawler   2024-06-03
      20240604_数据清洗   2024-06-04
      20240605_api_refactor   2024-06-05
    Nothing to archive.
    ");
    let settings = place
        .home_text("wbhome.toml")
        .replace("idle = \"30d\"", "idle = \"11d\"");
    place.put_home("wbhome.toml", settings);
    place.agent_in("sessions/20240603_crawler");
    let ran = place.run(["archive", "--idle"]);
    ran.expect(0);
    assert!(
        ran.stdout
            .starts_with("20240604_数据清洗   2 files, 148 B → "),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("1 session left, still at work:\n  20240603_crawler   an agent"),
        "{ran:?}"
    );
    assert!(place.home().join("sessions").join(ID).exists());
    place.run(["archive", "--idle", "crawler"]).expect(2);
    place.run(["archive"]).expect(2);
    place.run(["archive", "--idle", "30"]).expect(2);
}

#[test]
fn kept_it_has_both_and_the_next_time_there_is_nothing_to_pack() {
    let place = place();
    let before = session(&place, ID);
    place.ok(["archive", "crawler", "--keep"]);
    assert_eq!(differences(&before, &session(&place, ID)), "");
    let noted = entry(&place, ID);
    assert_eq!(noted["status"], "active");
    assert!(noted["archived_at"].is_null());
    assert_eq!(noted["archive"]["file"], PACK);
    assert!(place.home().join("projects/alpha").join(ID).exists());
    let pack = place.read(format!("{}/{PACK}", support::home::HOME));
    let again = place.json(["archive", "crawler", "--keep"]);
    assert_eq!(again["sessions"][0]["reused"], true);
    assert_eq!(entry(&place, ID), noted);
    // Without --keep only the folder goes.
    let done = place.json(["archive", "crawler"]);
    assert_eq!(done["sessions"][0]["reused"], true);
    assert_eq!(place.read(format!("{}/{PACK}", support::home::HOME)), pack);
    assert!(!place.home().join("sessions").join(ID).exists());
    assert_eq!(entry(&place, ID)["status"], "archived");
}

#[test]
fn an_archive_of_other_content_is_never_written_over() {
    let place = place();
    place.ok(["archive", "crawler", "--keep", "-q"]);
    place.put_home("sessions/20240603_crawler/memory/new.md", "新");
    let (before, contents) = (place.files(), place.contents());
    place.run(["archive", "crawler"]).expect(1).says(&[
        "has an archive already",
        "memory/new.md",
        "hint: --force puts the former archive into the trash",
    ]);
    assert_eq!(differences(&before, &place.files()), "");
    place.run(["archive", "crawler", "--force"]).expect(0);
    assert!(!place.home().join("sessions").join(ID).exists());
    assert_eq!(place.acts().len(), 1);
    let former = format!(".wbhome/trash/{}/{PACK}", place.acts()[0]);
    assert!(place.home().join(former).exists());
    place.ok(["unarchive", "crawler"]);
    place.nothing_lost(&contents);

    // One that was put there by hand says nothing, and what is no archive at all neither.
    place.put_home("archive/20240605_api_refactor.tar.zst", "packed");
    place
        .run(["archive", "api"])
        .expect(1)
        .says(&["has an archive already"]);
    place.run(["archive", "api", "--force"]).expect(0);
}

#[test]
fn what_is_being_written_is_packed_only_with_force_and_stays_where_it_is() {
    let place = Place::with_sessions();
    let log = place.put_home("sessions/20240603_crawler/logs/run.log", "一\n".repeat(100));
    let mut open = fs::File::options().append(true).open(&log).unwrap();
    let ran = place.run(["archive", "crawler", "--force"]);
    ran.expect(3)
        .says(&["its folder is where it was", "open for writing"]);
    open.write_all("二\n".as_bytes()).unwrap();
    assert!(fs::read_to_string(&log).unwrap().ends_with("二\n"));
    assert!(place.home().join(PACK).exists());
    assert_eq!(entry(&place, ID)["status"], "active");
    assert_eq!(entry(&place, ID)["archive"]["file"], PACK);
}

/// A writer that opens the file anew each time is seen by no look at open files.
#[test]
fn a_log_that_never_stops_growing_keeps_its_session_whole() {
    let place = Place::with_sessions();
    let log = place.put_home(
        "sessions/20240603_crawler/logs/run.log",
        "line\n".repeat(200_000),
    );
    place.put_home(
        "sessions/20240603_crawler/artifacts/big.bin",
        vec![7u8; 8 << 20],
    );
    let done = std::sync::atomic::AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                // Without O_CREAT: a session that was put away is not made anew.
                if let Ok(mut file) = fs::File::options().append(true).open(&log) {
                    file.write_all(b"more\n").unwrap();
                    written += 1;
                }
            }
            written
        });
        let ran = place.run(["archive", "crawler"]);
        let code = ran.code;
        let forced = place.run(["archive", "crawler", "--force"]);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(code, Some(0 | 1)), "{ran:?}");
        assert!(matches!(forced.code, Some(0 | 3)), "{forced:?}");
        writer.join().unwrap()
    });
    // Whatever came of it, every line that was written is in the folder, or in the archive.
    if !log.exists() {
        place.ok(["unarchive", "crawler"]);
    }
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches("more\n").count() as u64, written);
    assert!(place.names(".wbhome/journal").is_empty());
}

#[test]
fn what_holds_no_bytes_is_named_and_does_not_stop_the_rest() {
    let place = Place::with_sessions();
    let folder = place.home().join("sessions").join(ID);
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("agent.sock")).unwrap();
    place.run(["archive", "crawler"]).expect(3).says(&[
        "20240603_crawler: agent.sock",
        "holds no bytes, and is not in the archive",
    ]);
    assert!(!folder.exists());
    assert_eq!(place.acts(), [""; 0]);
    assert_eq!(entry(&place, ID)["status"], "archived");
}

#[test]
fn an_archive_folder_that_is_a_link_is_refused_before_anything_is_touched() {
    let place = Place::with_sessions();
    fs::create_dir(place.path("cold")).unwrap();
    fs::remove_dir(place.home().join("archive")).unwrap();
    symlink(place.path("cold"), place.home().join("archive")).unwrap();
    let before = place.files();
    let ran = place.run(["archive", "crawler"]);
    ran.expect(1)
        .says(&["hint: if it is a link, put the folder itself there"]);
    assert_eq!(differences(&before, &place.files()), "");
    assert!(place.names(".wbhome/journal").is_empty());
    assert_eq!(fs::read_dir(place.path("cold")).unwrap().count(), 0);
}

#[test]
fn what_can_not_be_read_is_not_archived() {
    let place = Place::with_sessions();
    let secret = place.put_home("sessions/20240603_crawler/memory/secret", "x");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::File::open(&secret).is_ok() {
        eprintln!("SKIPPED: root reads everything");
        return;
    }
    let before = session(&place, "20240604_数据清洗");
    place
        .run(["archive", "crawler"])
        .expect(1)
        .says(&["memory/secret", "can not be read whole"]);
    assert!(!place.home().join(PACK).exists() && !before.is_empty());
}

#[test]
fn what_is_not_there_is_refused_with_what_to_do() {
    let place = Place::with_sessions();
    place.ok(["rm", "crawler", "-q"]);
    place.run(["archive", ID]).expect(1).says(&[
        "has been removed",
        "wbhome restore 20240603_crawler --from trash",
    ]);
    fs::remove_dir_all(place.home().join("sessions/20240605_api_refactor")).unwrap();
    place
        .run(["archive", "api"])
        .expect(1)
        .says(&["is neither in sessions/ nor in archive/"]);
    place.run(["archive", "nothing"]).expect(1);
}

/// Read-only folders, as package caches have them, do not keep the session in the trash.
#[test]
fn read_only_folders_go_too() {
    let place = Place::with_sessions();
    place.put_home(
        "sessions/20240603_crawler/artifacts/cache/mod/a.go",
        "package a",
    );
    let cache = place
        .home()
        .join("sessions/20240603_crawler/artifacts/cache");
    for folder in [cache.join("mod"), cache.clone()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let before = session(&place, ID);
    place.ok(["archive", "crawler"]);
    assert_eq!(place.acts(), [""; 0]);
    place.ok(["unarchive", "crawler"]);
    assert_eq!(differences(&before, &session(&place, ID)), "");
}

/// A limit on the length of files stands for a disk that is full.
#[test]
fn a_full_disk_is_told_and_leaves_nothing_behind() {
    let place = Place::with_sessions();
    // What can not be compressed: no pack of it fits into a file of 64 kB.
    let noise: Vec<u8> = (0..200_000u64)
        .flat_map(|n| {
            n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(17)
                .to_le_bytes()
        })
        .collect();
    place.put_home("sessions/20240603_crawler/artifacts/noise.bin", noise);
    let before = place.apart_from_own();
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 128; exec \"$0\" archive crawler",
        ])
        .arg(env!("CARGO_BIN_EXE_wbhome"))
        .current_dir(place.root())
        .env_clear()
        .env("HOME", place.user_home())
        .env("WBHOME_NOW", support::NOW);
    let ran = support::Ran::of(command.output().unwrap());
    ran.expect(1).says(&["archive/20240603_crawler.tar.zst"]);
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    assert_eq!(place.names("archive"), [""; 0]);
    place.ok(["archive", "crawler"]);
}

#[test]
fn ctrl_c_leaves_everything_as_it_was() {
    let place = Place::with_sessions();
    let noise: Vec<u8> = (0..4_000_000u64)
        .flat_map(|n| {
            n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(17)
                .to_le_bytes()
        })
        .collect();
    place.put_home("sessions/20240603_crawler/artifacts/noise.bin", noise);
    let before = session(&place, ID);
    let child = place
        .command()
        .args(["archive", "crawler"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(60));
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    let ran = support::Ran::of(child.wait_with_output().unwrap());
    match ran.code {
        Some(130) => {
            assert_eq!(differences(&before, &session(&place, ID)), "");
            assert_eq!(place.names("archive"), [""; 0]);
            assert_eq!(place.acts(), [""; 0]);
        }
        code => assert_eq!(code, Some(0), "{ran:?}"),
    }
    assert!(place.names(".wbhome/journal").is_empty());
}

/// Somebody makes the session anew while its folder is in the trash.
#[cfg(feature = "failpoints")]
#[test]
fn a_place_that_was_taken_meanwhile_loses_neither() {
    let place = Place::with_sessions();
    let contents = place.contents();
    killed(&place, "archive.away", &["archive", "crawler"]);
    place.put_home("sessions/20240603_crawler/context/turn_002.json", "{}");
    place.run(["index", "-q"]).expect(0);
    place.nothing_lost(&contents);
    assert!(place.names(".wbhome/journal").is_empty());
    assert_eq!(place.acts().len(), 1);
}

#[cfg(feature = "failpoints")]
fn killed(place: &Place, failpoint: &str, args: &[&str]) {
    let ran = place.run_with(&[("WBHOME_FAILPOINT", failpoint)], args);
    assert_eq!(ran.code, None, "{failpoint}: {ran:?}");
}

#[cfg(feature = "failpoints")]
#[test]
fn a_kill_leaves_the_session_whole_and_the_next_command_settles_it() {
    // Up to the moment at which the note of how it comes back is replaced, it comes back.
    for (failpoint, archived) in [
        ("archive.published", false),
        ("journal.begun", false),
        ("archive.away", false),
        ("journal.turned", false),
        ("journal.turned:2", true),
        ("index.before", true),
        ("index.written", true),
        ("mend.archived", true),
        ("journal.viewed", true),
        ("mend.discarded", true),
        ("journal.done", true),
    ] {
        let place = place();
        let before = session(&place, ID);
        killed(&place, failpoint, &["archive", "crawler"]);
        place.ok(["index", "-q"]);
        assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
        assert_eq!(place.acts(), [""; 0], "{failpoint}");
        let folder = place.home().join("sessions").join(ID);
        assert_eq!(folder.exists(), !archived, "{failpoint}");
        let status = if archived { "archived" } else { "active" };
        assert_eq!(entry(&place, ID)["status"], status, "{failpoint}");
        assert_eq!(entry(&place, ID)["tags"][0], "网", "{failpoint}");
        let linked = place.home().join("projects/alpha").join(ID);
        assert_eq!(
            fs::symlink_metadata(linked).is_ok(),
            !archived,
            "{failpoint}"
        );
        if !archived {
            assert_eq!(
                differences(&before, &session(&place, ID)),
                "",
                "{failpoint}"
            );
            // What was packed then would stand in the way of what it becomes.
            assert!(!place.home().join(PACK).exists(), "{failpoint}");
            place.ok(["archive", "crawler"]);
        }
        place.ok(["unarchive", "crawler"]);
        assert_eq!(
            differences(&before, &session(&place, ID)),
            "",
            "{failpoint}"
        );
        place.ok(["check"]);
    }
}

/// Several are completed at once, and each is whole for all that.
#[cfg(feature = "failpoints")]
#[test]
fn a_kill_among_several_leaves_each_whole() {
    let ids = [
        "20240603_crawler",
        "20240604_数据清洗",
        "20240605_api_refactor",
    ];
    for (verb, failpoints) in [
        (
            "archive",
            [
                "archive.away:2",
                "journal.turned:2",
                "index.written",
                "mend.discarded:2",
                "journal.done:2",
            ],
        ),
        (
            "unarchive",
            [
                "journal.renamed:2",
                "mend.discarded:2",
                "index.written",
                "mend.unarchived:2",
                "journal.done:2",
            ],
        ),
    ] {
        for failpoint in failpoints {
            let place = Place::with_sessions();
            let before = ids.map(|id| session(&place, id));
            if verb == "unarchive" {
                place.ok(["archive", ids[0], ids[1], ids[2]]);
            }
            killed(&place, failpoint, &[verb, ids[0], ids[1], ids[2]]);
            place.ok(["index", "-q"]);
            assert!(place.names(".wbhome/journal").is_empty(), "{failpoint}");
            assert_eq!(place.acts(), [""; 0], "{failpoint}");
            for id in ids {
                let folder = place.home().join("sessions").join(id).exists();
                let pack = place.home().join(format!("archive/{id}.tar.zst"));
                assert!(folder || pack.exists(), "{failpoint}: {id}");
                let status = if folder { "active" } else { "archived" };
                assert_eq!(entry(&place, id)["status"], status, "{failpoint}: {id}");
            }
            place.ok(["archive", ids[0], ids[1], ids[2]]);
            place.ok(["unarchive", ids[0], ids[1], ids[2]]);
            for (id, before) in ids.iter().zip(&before) {
                assert_eq!(differences(before, &session(&place, id)), "", "{failpoint}");
            }
        }
    }
}

/// Many, and one in the middle that can not be: what comes before it and what comes after is completed.
#[test]
fn many_sessions_are_archived_around_one_that_is_refused() {
    let place = Place::with_home();
    let ids: Vec<String> = (1..=70).map(|n| format!("20240603_任务_{n}")).collect();
    for id in &ids {
        place.session(id, 3);
    }
    place.ok(["index", "-q"]);
    place.put_home(&format!("archive/{}.tar.zst", ids[9]), "no pack");
    let before = place.contents();
    let command = |verb: &'static str| {
        let verb = ["--json", verb].into_iter();
        verb.chain(ids.iter().map(String::as_str))
    };
    let archived = place.run(command("archive"));
    let told = archived.json();
    let sessions = |told: &serde_json::Value| -> Vec<String> {
        let done = told["sessions"].as_array().unwrap().iter();
        done.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let others: Vec<String> = ids.iter().filter(|id| **id != ids[9]).cloned().collect();
    assert_eq!(sessions(&told), others);
    assert_eq!(told["refused"][0]["id"], ids[9].as_str());
    for entry in place.index().as_array().unwrap() {
        let status = if entry["id"] == ids[9].as_str() {
            "active"
        } else {
            "archived"
        };
        assert_eq!(entry["status"], status, "{entry}");
    }
    assert!(place.names(".wbhome/journal").is_empty());
    assert_eq!(place.acts(), [""; 0]);
    let back = place.run(command("unarchive"));
    assert_eq!(sessions(&back.json()), others);
    place.nothing_lost(&before);
    assert_eq!(
        place
            .names("sessions")
            .iter()
            .filter(|name| name.ends_with("session.json"))
            .count(),
        70
    );
}

/// What the folder is compared with must be there when the folder goes for good.
#[cfg(feature = "failpoints")]
#[test]
fn a_folder_whose_archive_went_meanwhile_stays_in_the_trash() {
    let place = place();
    let contents = place.contents();
    killed(&place, "journal.turned:2", &["archive", "crawler"]);
    fs::remove_file(place.home().join(PACK)).unwrap();
    place
        .run(["index"])
        .expect(0)
        .says(&["left ", "has changed meanwhile"]);
    place.nothing_lost(&contents);
    let act = &place.acts()[0];
    place.ok(["restore", act, "--from", "trash"]);
    assert!(Path::new(&place.home().join("sessions").join(ID)).exists());
}

/// What was written between the comparison and the removal, as by a process whose current folder was in it, stays.
#[cfg(feature = "failpoints")]
#[test]
fn what_came_after_the_comparison_is_left_and_named() {
    let place = place();
    killed(&place, "journal.turned:2", &["archive", "crawler"]);
    let act = place.home().join(".wbhome/trash").join(&place.acts()[0]);
    let folder = act.join("sessions").join(ID);
    let log = folder.join("logs/run.log");
    let mut file = fs::File::options().append(true).open(&log).unwrap();
    file.write_all("更多\n".as_bytes()).unwrap();
    fs::write(folder.join("memory/new.md"), "新").unwrap();
    let ran = place.run(["index"]);
    ran.expect(0).says(&[
        "changed after it had been compared",
        "is archived in the index",
    ]);
    assert!(fs::read_to_string(&log).unwrap().ends_with("更多\n"));
    assert_eq!(
        fs::read_to_string(folder.join("memory/new.md")).unwrap(),
        "新"
    );
    let left: Vec<_> = walkdir::WalkDir::new(&folder)
        .into_iter()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    // The other name of the log is the same file.
    assert_eq!(left.len(), 3, "{left:?}");
    // It is not taken for the session.
    let act = place.acts()[0].clone();
    assert_ne!(
        place.run(["restore", &act, "--from", "trash"]).code,
        Some(0)
    );
    place.ok(["unarchive", "crawler"]);
}

#[test]
fn a_session_that_somebody_has_as_their_current_folder_is_left() {
    let place = place();
    let before = session(&place, ID);
    let folder = place.home().join("sessions").join(ID).join("logs");
    let mut child = Command::new("sleep")
        .arg("60")
        .current_dir(folder)
        .spawn()
        .unwrap();
    let ran = place.run(["archive", "crawler"]);
    child.kill().unwrap();
    child.wait().unwrap();
    ran.expect(1).says(&["works in its folder"]);
    assert_eq!(differences(&before, &session(&place, ID)), "");
    place.ok(["archive", "crawler"]);
}

/// The archive that was compared is the only proof: one that took its place meanwhile is none.
#[test]
fn an_archive_that_is_replaced_meanwhile_costs_no_session() {
    for delay in [5, 15, 30, 60, 120] {
        let place = Place::with_sessions();
        place.put_home(
            "sessions/20240603_crawler/artifacts/big.bin",
            vec![3u8; 40 << 20],
        );
        place.ok(["archive", "crawler", "--keep"]);
        let other = place.put_home("archive/other", "another file");
        let mut contents = place.contents();
        // The archive that is written over here, by this test.
        contents.remove(&format!("f:{}", support::digest(&place.home().join(PACK))));
        let ran = std::thread::scope(|scope| {
            let run = scope.spawn(|| place.run(["archive", "crawler"]));
            std::thread::sleep(Duration::from_millis(delay));
            fs::rename(&other, place.home().join(PACK)).unwrap();
            run.join().unwrap()
        });
        // Either it was put away before the other came, or it is where it was; or in the trash, when the other came
        // between the two, which is said.
        let stays = place.home().join("sessions").join(ID).exists();
        match stays || ran.code == Some(3) {
            true => place.nothing_lost(&contents),
            false => assert_eq!(ran.code, Some(0), "{delay} ms: {ran:?}"),
        }
    }
}

#[test]
fn a_pipe_that_came_after_the_archive_is_named_as_well() {
    let place = place();
    place.ok(["archive", "crawler", "--keep"]);
    let folder = place.home().join("sessions").join(ID).join("artifacts");
    let modified = fs::metadata(&folder).unwrap().modified().unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(folder.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    fs::File::open(&folder)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    place
        .run(["archive", "crawler"])
        .expect(3)
        .says(&["artifacts/pipe"]);
}
