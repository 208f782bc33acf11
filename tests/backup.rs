//! `wbhome backup`: what the nights pack, what they keep, and what they say of what is not there any more.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what went wrong"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use support::cold::{item, named, noise, packed, read, rest};
use support::{Place, differences, tree};

const CRAWLER: &str = "20240603_crawler";
const CLEANING: &str = "20240604_数据清洗";
const API: &str = "20240605_api_refactor";

fn turn(place: &Place, id: &str, n: u32) {
    place.put_home(
        &format!("sessions/{id}/context/turn_{n:03}.json"),
        format!("{{\"turn\": {n}, \"text\": \"第 {n} 轮\"}}\n"),
    );
}

/// A month of nights, each followed by a prune: what rests for longer than `keep` is there all the same.
#[test]
fn a_month_of_nights() {
    if !support::has_tool("tar") || !support::has_tool("zstd") {
        return;
    }
    let place = Place::with_home();
    let ids: Vec<String> = (1..=40)
        .map(|n| format!("202406{:02}_任务_{n}", n % 28 + 1))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        place.session(id, n as u64 % 28 + 1);
    }
    place.ok(["index", "-q"]);
    place.ok(["backup", "init", "cold", "-q"]);
    let mut on_day_20 = BTreeMap::new();
    for day in 1..=31 {
        for (n, id) in ids.iter().enumerate() {
            // The first ten rest from the third day on; the others are written to every second to eighth night.
            if n < 10 && day <= 3 || n >= 10 && day % (n as i64 % 7 + 2) == 0 {
                turn(&place, id, day as u32 + 1);
            }
        }
        let ran = place.backup(day, 0);
        assert_eq!(ran["unread"].as_array().unwrap().len(), 0, "{ran}");
        place.at(day, &["backup", "prune", "-q"]).expect(0);
        if day == 20 {
            on_day_20 = ids.iter().map(|id| (id, place.of_session(id))).collect();
        }
    }
    let newest = place.snapshot();
    for id in &ids {
        let item = item(&newest, id).unwrap();
        let top = place.unpack(item["newest"]["file"].as_str().unwrap());
        assert_eq!(differences(&place.of_session(id), &tree(&top)), "", "{id}");
        assert_eq!(item["standing"], "present");
        // Whoever has no wbhome takes the newest file of each folder.
        let folder = top.file_name().unwrap().to_str().unwrap().to_owned();
        let of_session = |pack: &&String| pack.starts_with(&format!("packs/sessions/{folder}/"));
        let last = place.packs();
        assert_eq!(
            last.iter().rfind(of_session).unwrap(),
            item["newest"]["file"].as_str().unwrap()
        );
    }
    // The sixteenth was superseded on the seventeenth, fourteen days ago and no longer.
    let snapshots = place.snapshots();
    let first = snapshots[0].file_name().unwrap().to_str().unwrap();
    assert_eq!((snapshots.len(), first), (16, "20240616T030000Z.json"));
    let needed: BTreeSet<String> = snapshots.iter().flat_map(|s| named(&read(s))).collect();
    assert_eq!(needed, place.packs().into_iter().collect::<BTreeSet<_>>());
    for id in &ids[..10] {
        let item = item(&newest, id).unwrap();
        assert!(item["newest"]["at"].as_str().unwrap() < "2024-06-04");
    }
    let then = read(&place.path("cold/snapshots/20240620T030000Z.json"));
    for (id, as_it_was) in on_day_20 {
        let top = place.unpack(item(&then, id).unwrap()["newest"]["file"].as_str().unwrap());
        assert_eq!(differences(&as_it_was, &tree(&top)), "", "{id}");
    }
    place.at(31, &["backup", "verify", "--all", "-q"]).expect(0);
}

#[test]
fn what_has_not_changed_is_not_packed_and_what_has_is_named() {
    let place = Place::with_store();
    let first = place.backup(1, 0);
    assert_eq!(
        packed(&first),
        [CRAWLER, CLEANING, API, "agents/", "the home itself"]
    );
    let second = place.backup(2, 0);
    assert_eq!(
        (packed(&second).len(), &second["unchanged"]),
        (0, &5.into())
    );
    turn(&place, CRAWLER, 2);
    place.session("20240606_new", 6);
    rest();
    let (home, store) = (tree(&place.home()), place.store());
    let plan = place.at(3, &["backup", "run", "-n"]);
    plan.expect(0);
    assert!(
        plan.stdout.contains("context/turn_002.json is new"),
        "{plan:?}"
    );
    assert!(plan.stdout.contains("20240606_new"), "{plan:?}");
    assert_eq!(differences(&home, &tree(&place.home())), "");
    assert_eq!(differences(&store, &place.store()), "");
    assert_eq!(packed(&place.backup(3, 0)), [CRAWLER, "20240606_new"]);
    // The same bytes at another time: packed, because a time is part of a session.
    place.date(API, 9);
    let plan = place.at(4, &["backup", "run", "-n"]).stdout;
    assert!(plan.contains("turn_001.json was changed"), "{plan}");
    assert_eq!(packed(&place.backup(4, 0)), [API]);
    // What the index says changes the home itself, and the entry that stands in the snapshot.
    place.ok(["label", "crawler", "--tag", "爬虫", "-q"]);
    assert_eq!(packed(&place.backup(5, 0)), ["the home itself"]);
    let snapshot = place.snapshot();
    assert_eq!(
        item(&snapshot, CRAWLER).unwrap()["entry"]["tags"][0],
        "爬虫"
    );
    assert_eq!(item(&snapshot, CRAWLER).unwrap()["newest"]["turns"], 2);
}

#[test]
fn what_is_written_now_is_packed_again_next_time() {
    let place = Place::with_store();
    place.backup(1, 0);
    let log = place
        .home()
        .join("sessions")
        .join(CRAWLER)
        .join("logs/agent.log");
    std::fs::write(&log, vec![b'x'; 4 << 20]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::File::options().append(true).open(&log).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::io::Write::write_all(&mut file, b"a line\n").unwrap();
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        let ran = place.at(2, &["backup", "run", "--json"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        ran
    });
    ran.expect(0);
    let snapshot = place.snapshot();
    let pack = &item(&snapshot, CRAWLER).unwrap()["newest"];
    assert!(pack["seen"].is_null(), "{pack}");
    let packed_log = std::fs::read(
        place
            .unpack(pack["file"].as_str().unwrap())
            .join("logs/agent.log"),
    );
    assert!(
        std::fs::read(&log)
            .unwrap()
            .starts_with(&packed_log.unwrap())
    );
    let next = place.backup(3, 0);
    assert_eq!(
        (packed(&next), &next["packed"][0]["why"]),
        (vec![CRAWLER.to_owned()], &"restless".into())
    );
    assert_eq!(packed(&place.backup(4, 0)).len(), 0);
}

#[test]
fn an_archive_is_copied_as_it_is_and_back_again() {
    let place = Place::with_store();
    place.backup(1, 0);
    place.ok(["archive", "crawler", "-q"]);
    place.ok(["archive", "api", "--keep", "-q"]);
    place.backup(2, 0);
    let snapshot = place.snapshot();
    let of = |id: &str| place.read(format!("me/workbuddy_home/archive/{id}.tar.zst"));
    let crawler = item(&snapshot, CRAWLER).unwrap();
    let file = format!("packs/sessions/{CRAWLER}/20240602T030000Z-archive.tar.zst");
    assert_eq!(
        (
            &crawler["newest"]["form"],
            crawler["newest"]["file"].as_str()
        ),
        (&"archive".into(), Some(&*file))
    );
    assert_eq!(place.read(format!("cold/{file}")), of(CRAWLER));
    assert_eq!(crawler["newest"]["turns"], 1);
    assert_eq!(crawler["kept"], Value::Null);
    let api = item(&snapshot, API).unwrap();
    assert_eq!(api["newest"]["form"], "packed");
    assert_eq!(
        place.read(format!("cold/{}", api["archive"]["file"].as_str().unwrap())),
        of(API)
    );
    place.ok(["unarchive", "crawler", "-q"]);
    let back = place.backup(3, 0);
    assert!(packed(&back).contains(&CRAWLER.to_owned()), "{back}");
    let snapshot = place.snapshot();
    let crawler = item(&snapshot, CRAWLER).unwrap();
    assert_eq!(
        (&crawler["newest"]["form"], &crawler["archive"]),
        (&"packed".into(), &Value::Null)
    );
    assert_eq!(back["missing"].as_array().unwrap().len(), 0);
}

#[test]
fn a_session_that_was_renamed_is_not_missing() {
    let place = Place::with_store();
    turn(&place, API, 2);
    place.backup(1, 0);
    place.ok(["mv", "crawler", "20240603_spider", "-q"]);
    // One lost something on the way.
    place.ok(["mv", "api", "20240605_gateway", "-q"]);
    let lost = place
        .home()
        .join("sessions/20240605_gateway/context/turn_002.json");
    std::fs::remove_file(lost).unwrap();
    let ran = place.backup(2, 0);
    let snapshot = place.snapshot();
    assert!(item(&snapshot, CRAWLER).is_none(), "{ran}");
    assert!(item(&snapshot, "20240603_spider").is_some());
    assert_eq!(item(&snapshot, API).unwrap()["standing"], "missing");
    assert_eq!(ran["missing"][0]["what"], API);
    assert_eq!(ran["missing"].as_array().unwrap().len(), 1);
}

#[test]
fn a_former_pack_is_not_forgotten_with_the_name() {
    let place = Place::with_store();
    turn(&place, CRAWLER, 2);
    place.backup(1, 0);
    let whole = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
    std::fs::remove_file(
        place
            .home()
            .join("sessions")
            .join(CRAWLER)
            .join("context/turn_002.json"),
    )
    .unwrap();
    place.backup(2, 0);
    place.ok(["mv", "crawler", "20240603_spider", "-q"]);
    place.backup(3, 0);
    assert!(
        named(&place.snapshot()).iter().any(|file| *file == whole),
        "{whole}"
    );
}

#[test]
fn what_was_removed_goes_in_time_and_what_is_missing_never() {
    let place = Place::with_store();
    place.session("20240606_four", 6);
    place.session("20240607_five", 7);
    place.ok(["index", "-q"]);
    place.backup(1, 0);
    place.at(1, &["rm", "crawler", "-q"]).expect(0);
    std::fs::remove_dir_all(place.home().join("sessions").join(API)).unwrap();
    let ran = place.at(2, &["backup", "run"]);
    ran.expect(0).says(&[API, "its last pack is kept"]);
    for day in [3, 92] {
        let ran = place.backup(day, 0);
        assert_eq!(
            (&ran["removed"][0]["what"], &ran["missing"][0]["what"]),
            (&CRAWLER.into(), &API.into())
        );
        assert_eq!(
            (&ran["removed"][0]["since"], &ran["missing"][0]["new"]),
            (&"2024-06-02T03:00:00Z".into(), &false.into())
        );
        place.at(day, &["backup", "prune", "-q"]).expect(0);
        assert!(place.packs().iter().any(|pack| pack.contains(CRAWLER)));
    }
    let ran = place.backup(93, 0);
    assert_eq!(ran["removed"].as_array().unwrap().len(), 0, "{ran}");
    place.backup(1000, 0);
    place.at(1015, &["backup", "run", "-q"]).expect(0);
    place.at(1100, &["backup", "prune", "-q"]).expect(0);
    let packs = place.packs();
    assert!(
        !packs.iter().any(|pack| pack.contains(CRAWLER)),
        "{packs:?}"
    );
    assert!(!place.path("cold/packs/sessions").join(CRAWLER).exists());
    let missing = item(&place.snapshot(), API).unwrap()["newest"]["file"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(packs.contains(&missing), "{packs:?}");
    // It is back.
    let top = place.unpack(&missing);
    support::home::tool(
        "cp",
        &[
            "-a",
            top.to_str().unwrap(),
            place.home().join("sessions").to_str().unwrap(),
        ],
    );
    let ran = place.backup(1101, 0);
    assert_eq!(ran["missing"].as_array().unwrap().len(), 0, "{ran}");
    // Said to be gone, it goes.
    std::fs::remove_dir_all(place.home().join("sessions").join(API)).unwrap();
    place.backup(1102, 0);
    let (store, said) = (
        place.store(),
        place.at(1102, &["backup", "accept", API, "-n"]),
    );
    said.expect(0);
    assert_eq!(differences(&store, &place.store()), "");
    place.at(1102, &["backup", "accept", API]).expect(0);
    assert_eq!(place.backup(1103, 0)["removed"][0]["what"], API);
    place.backup(1200, 0);
    assert!(item(&place.snapshot(), API).is_none());
    place.at(1200, &["backup", "accept", API]).expect(1);
}

#[test]
fn what_has_shrunk_keeps_its_former_pack_until_somebody_says_so() {
    let place = Place::with_store();
    turn(&place, CRAWLER, 2);
    turn(&place, CRAWLER, 3);
    place.put_home(
        &format!("sessions/{CLEANING}/artifacts/table.csv"),
        vec![b'1'; 100_000],
    );
    place.backup(1, 0);
    let before = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"]
        .as_str()
        .unwrap()
        .to_owned();
    let crawler = place.home().join("sessions").join(CRAWLER);
    std::fs::remove_file(crawler.join("context/turn_002.json")).unwrap();
    std::fs::remove_file(
        place
            .home()
            .join(format!("sessions/{CLEANING}/artifacts/table.csv")),
    )
    .unwrap();
    for day in [2, 3, 60] {
        let ran = place.backup(day, 0);
        let told: Vec<(&str, &str)> = ran["shrunken"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| (s["what"].as_str().unwrap(), s["why"].as_str().unwrap()))
            .collect();
        assert_eq!(told[0], (CRAWLER, "1 of the 3 turns gone"), "{ran}");
        assert_eq!(told[1].0, CLEANING);
        assert_eq!(ran["shrunken"][0]["since"], "2024-06-02T03:00:00Z");
        assert_eq!(ran["shrunken"][0]["pack"], before);
    }
    place.at(100, &["backup", "prune", "-q"]).expect(0);
    assert!(place.packs().contains(&before));
    let listed = place.at(100, &["backup", "ls", "crawler"]).stdout;
    assert!(
        listed.contains("kept: since then 1 of the 3 turns gone"),
        "{listed}"
    );
    place
        .at(100, &["backup", "run"])
        .expect(0)
        .says(&["holds less than it did", "backup accept"]);
    place
        .at(101, &["backup", "accept", CRAWLER, CLEANING])
        .expect(0);
    assert_eq!(
        place.backup(102, 0)["shrunken"].as_array().unwrap().len(),
        0
    );
    place.at(140, &["backup", "prune", "-q"]).expect(0);
    assert!(!place.packs().contains(&before));
    // Emptied: everything is gone of it, and the former pack is kept.
    std::fs::remove_dir_all(&crawler).unwrap();
    std::fs::create_dir(&crawler).unwrap();
    let ran = place.backup(141, 0);
    assert_eq!(ran["shrunken"][0]["why"], "2 of the 2 turns gone");
}

#[test]
fn a_folder_that_was_emptied_or_is_gone_keeps_its_pack_until_somebody_says_so() {
    let place = Place::with_store();
    place.put_home("笔记/计划.md", "a plan\n".repeat(100));
    place.put_home("笔记/short.md", "b\n");
    let packs_of = |place: &Place| {
        let packs = place.packs().into_iter();
        packs
            .filter(|pack| pack.contains("笔记"))
            .collect::<Vec<_>>()
    };
    place.backup(1, 0);
    std::fs::remove_file(place.home().join("笔记/计划.md")).unwrap();
    let ran = place.backup(2, 0);
    assert_eq!(ran["shrunken"][0]["what"], "笔记/");
    assert_eq!(ran["shrunken"][0]["why"], "2 B of the 702 B left");
    std::fs::remove_dir_all(place.home().join("笔记")).unwrap();
    assert_eq!(place.backup(3, 0)["missing"][0]["what"], "笔记/");
    place.backup(300, 0);
    place.at(300, &["backup", "prune", "-q"]).expect(0);
    assert_eq!(packs_of(&place).len(), 2);
    let told = place.at(300, &["backup", "accept", "笔记"]);
    told.expect(1).says(&[
        "knows nothing of the name",
        "as `wbhome backup run` has named it",
    ]);
    place.at(300, &["backup", "accept", "笔记/"]).expect(0);
    assert_eq!(place.backup(301, 0)["removed"][0]["what"], "笔记/");
    place.backup(400, 0);
    place.backup(420, 0);
    place.at(420, &["backup", "prune", "-q"]).expect(0);
    assert_eq!(packs_of(&place), [""; 0]);
}

/// Logs are there to be cut.
#[test]
fn a_session_whose_log_was_rotated_has_not_shrunk() {
    let place = Place::with_store();
    let log = format!("sessions/{CRAWLER}/logs/agent_run.log");
    place.put_home(&log, "a line\n".repeat(100_000));
    place.backup(1, 0);
    place.put_home(&log, "");
    place.put_home(&format!("{log}-20240602.zst"), "small");
    let ran = place.backup(2, 0);
    assert_eq!(packed(&ran), [CRAWLER]);
    assert_eq!(ran["shrunken"].as_array().unwrap().len(), 0, "{ran}");
}

#[test]
fn half_of_the_sessions_gone_is_a_folder_that_is_not_there() {
    let place = Place::with_store();
    place.backup(1, 0);
    let sessions = place.home().join("sessions");
    std::fs::rename(&sessions, place.path("elsewhere")).unwrap();
    std::fs::create_dir(&sessions).unwrap();
    let store = place.store();
    let ran = place.at(2, &["backup", "run"]);
    ran.expect(1)
        .says(&["3 of the 3 sessions", CRAWLER, "mount it", "backup accept"]);
    std::fs::remove_dir(&sessions).unwrap();
    place
        .at(2, &["backup", "run"])
        .expect(1)
        .says(&["sessions"]);
    assert_eq!(place.snapshots().len(), 1);
    assert_eq!(differences(&store, &place.store()), "");
    std::fs::rename(place.path("elsewhere"), &sessions).unwrap();
    for id in [CRAWLER, API] {
        std::fs::remove_dir_all(sessions.join(id)).unwrap();
    }
    place
        .at(3, &["backup", "run"])
        .expect(1)
        .says(&["2 of the 3 sessions"]);
    place.at(3, &["backup", "accept", CRAWLER, API]).expect(0);
    let ran = place.backup(3, 0);
    assert_eq!(ran["removed"].as_array().unwrap().len(), 2);
    let packs = place.packs();
    assert!(packs.iter().any(|pack| pack.contains(CRAWLER)), "{packs:?}");
}

#[test]
fn everything_that_lies_in_a_home_is_in_the_store() {
    let place = Place::with_store();
    let home = place.home();
    let odd = home.join(OsStr::from_bytes(b"\xff\xfe odd"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join(OsStr::from_bytes(b"\xff")), "bytes").unwrap();
    place.put_home("我的 笔记\n二/一 二.txt", "一");
    place.put_home(".hidden/x", "x");
    place.put_home("stray.txt", "stray");
    place.put_home("sessions/stray.txt", "stray");
    place.put_home("sessions/.hidden/x", "x");
    place.put_home("archive/readme", "x");
    place.put_home("agents/研究/agent.yaml", "name: x\n");
    place.put_home(".git/config", "x");
    let crawler = home.join("sessions").join(CRAWLER);
    std::fs::write(
        crawler.join(OsStr::from_bytes(b"artifacts/\xe4\xb8 half")),
        "x",
    )
    .unwrap();
    std::fs::create_dir(crawler.join("artifacts/empty")).unwrap();
    std::os::unix::fs::symlink("/etc", crawler.join("artifacts/etc")).unwrap();
    std::os::unix::fs::symlink("/etc", home.join("sessions/20240601_link")).unwrap();
    std::os::unix::fs::symlink("/etc", home.join("link")).unwrap();
    let before = tree(&crawler);
    support::home::tool("mkfifo", &[crawler.join("logs/pipe").to_str().unwrap()]);
    let _socket = std::os::unix::net::UnixListener::bind(crawler.join("logs/socket")).unwrap();
    place.backup(1, 0);
    let snapshot = place.snapshot();
    let pack = |kind: &str, name: Option<&str>| {
        let items = snapshot["items"].as_array().unwrap();
        let found = items
            .iter()
            .find(|item| item["kind"] == kind && name.is_none_or(|name| item["name"] == name));
        let found = found.unwrap_or_else(|| panic!("{kind} {name:?}: {snapshot}"));
        found["newest"]["file"].as_str().unwrap().to_owned()
    };
    let mut got = tree(&place.unpack(&pack("session", Some(CRAWLER))));
    // The folder's time is that of the pipe.
    let logs = got.remove(&b"logs"[..]).unwrap();
    assert_eq!(logs.kind, 'd');
    let mut before = before;
    before.remove(&b"logs"[..]);
    assert_eq!(differences(&before, &got), "");
    let top = place.unpack(&pack("folder", Some("我的 笔记\n二")));
    assert_eq!(
        std::fs::read_to_string(top.join("一 二.txt")).unwrap(),
        "一"
    );
    assert!(
        place
            .unpack(&pack("folder", Some(".hidden")))
            .join("x")
            .exists()
    );
    assert!(
        place
            .unpack(&pack("agents", None))
            .join("研究/agent.yaml")
            .exists()
    );
    let top = place.unpack(&pack("home", None));
    assert_eq!(top.file_name().unwrap(), "home");
    for file in [
        "index.json",
        "wbhome.toml",
        ".gitignore",
        ".wbhome/home.json",
        "stray.txt",
        "sessions/stray.txt",
        "sessions/.hidden/x",
        "archive/readme",
    ] {
        assert_eq!(
            std::fs::read(top.join(file)).unwrap(),
            std::fs::read(home.join(file)).unwrap(),
            "{file}"
        );
    }
    assert_eq!(
        std::fs::read(
            top.join(odd.file_name().unwrap())
                .join(OsStr::from_bytes(b"\xff"))
        )
        .unwrap(),
        b"bytes"
    );
    for link in ["link", "sessions/20240601_link"] {
        assert_eq!(
            std::fs::read_link(top.join(link)).unwrap().to_str(),
            Some("/etc")
        );
    }
    for apart in [
        ".git",
        "agents",
        ".hidden",
        ".wbhome/lock",
        ".wbhome/trash",
        ".wbhome/cache.json",
        &format!("sessions/{CRAWLER}"),
    ] {
        assert!(!top.join(apart).exists(), "{apart}");
    }
    assert_eq!(packed(&place.backup(2, 0)).len(), 0);
}

#[test]
fn what_only_the_owner_may_read_stays_so() {
    let place = Place::with_store();
    place.backup(1, 0);
    for entry in walkdir::WalkDir::new(place.path("cold")) {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let expected = if entry.file_type().is_dir() {
            0o700
        } else {
            0o600
        };
        assert_eq!(mode, expected, "{}", entry.path().display());
    }
    // Nothing of a run is left but what it is for.
    let names: BTreeSet<String> = std::fs::read_dir(place.path("cold"))
        .unwrap()
        .map(|name| name.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        names,
        ["lock", "packs", "snapshots", "wbhome-store.json"]
            .map(str::to_owned)
            .into()
    );
}

#[test]
fn several_stores_do_without_each_other() {
    let place = Place::with_store();
    place.ok(["backup", "init", "second", "-q"]);
    place.backup(1, 0);
    assert_eq!(
        std::fs::read_dir(place.path("second/snapshots"))
            .unwrap()
            .count(),
        1
    );
    std::fs::rename(place.path("cold"), place.path("unplugged")).unwrap();
    turn(&place, CRAWLER, 2);
    rest();
    let ran = place.at(2, &["backup", "run", "--json"]);
    ran.expect(1).says(&["there is no backup store"]);
    assert_eq!(packed(&ran.json()["stores"][0]), [CRAWLER]);
    assert_eq!(ran.json()["failed"][0]["kind"], "failed");
    assert!(!place.path("cold").exists());
    std::fs::rename(place.path("unplugged"), place.path("cold")).unwrap();
    let both = place.at(3, &["backup", "run", "--json"]).json();
    assert_eq!(
        (packed(&both["stores"][0]), packed(&both["stores"][1]).len()),
        (vec![CRAWLER.to_owned()], 0)
    );
    let alone = place
        .at(4, &["backup", "run", "--store", "second", "--json"])
        .json();
    assert_eq!(alone["stores"].as_array().unwrap().len(), 1);
}

/// A sync client has cut it short since it was copied.
#[test]
fn a_damaged_archive_does_not_take_the_place_of_the_copy_that_was_whole() {
    let place = Place::with_store();
    place.put_home(
        &format!("sessions/{CRAWLER}/artifacts/a.bin"),
        noise(1, 50_000),
    );
    place.at(1, &["archive", CRAWLER, "-y", "-q"]).expect(0);
    place.backup(1, 0);
    let whole = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
    let archive = place.home().join(format!("archive/{CRAWLER}.tar.zst"));
    let bytes = std::fs::read(&archive).unwrap();
    for (day, length) in [(2, bytes.len() * 3 / 5), (3, 0)] {
        std::fs::write(&archive, &bytes[..length]).unwrap();
        let ran = place.backup(day, 3);
        assert_eq!(ran["unread"][0]["what"], CRAWLER, "{ran}");
        assert!(
            ran["unread"][0]["why"]
                .as_str()
                .unwrap()
                .contains("the archive is damaged"),
            "{ran}"
        );
        // It is told again, and not copied again.
        assert_eq!(packed(&place.backup(day, 3)), [""; 0]);
        assert_eq!(
            item(&place.snapshot(), CRAWLER).unwrap()["complete"]["file"],
            whole
        );
    }
    place.at(60, &["backup", "run", "-q"]).expect(3);
    place.at(60, &["backup", "prune", "-q"]).expect(0);
    place
        .at(60, &["restore", CRAWLER, "--from", "backup", "--to", "out"])
        .expect(3);
    let back = std::fs::read(place.path(format!("out/{CRAWLER}.tar.zst"))).unwrap();
    assert!(back == bytes);
    // Beside a folder, too.
    std::fs::write(&archive, &bytes).unwrap();
    place
        .at(61, &["unarchive", CRAWLER, "--keep", "-q"])
        .expect(0);
    place.backup(61, 0);
    std::fs::write(&archive, "").unwrap();
    place.backup(62, 3);
    place.at(100, &["backup", "run", "-q"]).expect(3);
    place.at(100, &["backup", "prune", "-q"]).expect(0);
    place
        .at(100, &["restore", "--all", "--from", "cold", "--to", "back"])
        .expect(3)
        .says(&["is damaged: packs/sessions/20240603_crawler/20240801T030000Z-archive.tar.zst"]);
    let back = std::fs::read(place.path(format!("back/archive/{CRAWLER}.tar.zst"))).unwrap();
    assert!(back == bytes);
    let kept = item(&place.snapshot(), CRAWLER).unwrap()["kept"][0]["pack"].clone();
    let kept = std::fs::read(place.path("cold").join(kept["file"].as_str().unwrap())).unwrap();
    assert!(kept == bytes);
}

/// Sync clients leave them so.
#[test]
fn a_turn_that_was_emptied_is_a_turn_that_is_gone() {
    let place = Place::with_store();
    turn(&place, CRAWLER, 2);
    place.put_home(
        &format!("sessions/{CRAWLER}/artifacts/a.bin"),
        noise(1, 50_000),
    );
    place.backup(1, 0);
    place.put_home(&format!("sessions/{CRAWLER}/context/turn_002.json"), "");
    let ran = place.backup(2, 0);
    assert_eq!(ran["shrunken"][0]["why"], "1 of the 2 turns gone", "{ran}");
}

/// Its last pack was lost or cut short in the store: the one before it is what is left.
#[test]
fn the_pack_before_the_last_one_of_what_is_gone_is_kept_when_that_is_damaged() {
    for damage in ["gone", "short"] {
        let place = Place::with_store();
        place.backup(1, 0);
        let first = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
        turn(&place, CRAWLER, 2);
        place.backup(2, 0);
        let last = item(&place.snapshot(), CRAWLER).unwrap()["newest"]["file"].clone();
        std::fs::remove_dir_all(place.home().join("sessions").join(CRAWLER)).unwrap();
        place.backup(3, 0);
        let file = place.path("cold").join(last.as_str().unwrap());
        match damage {
            "gone" => std::fs::remove_file(file).unwrap(),
            _ => std::fs::OpenOptions::new()
                .write(true)
                .open(file)
                .unwrap()
                .set_len(100)
                .unwrap(),
        }
        let ran = place.backup(4, 3);
        assert_eq!(ran["missing"][0]["what"], CRAWLER, "{ran}");
        let again = if damage == "gone" { 0 } else { 3 };
        assert_eq!(place.backup(40, again)["missing"][0]["what"], CRAWLER);
        place.at(41, &["backup", "prune", "-q"]).expect(0);
        assert!(
            place.packs().contains(&first.as_str().unwrap().to_owned()),
            "{damage}"
        );
        let ran = place.at(41, &["restore", "--all", "--from", "cold", "--to", "back"]);
        ran.expect(if damage == "gone" { 0 } else { 3 });
        assert!(
            place
                .path("back/sessions")
                .join(CRAWLER)
                .join("context/turn_001.json")
                .exists()
        );
    }
}

/// The only snapshot that knew a session is lost, and the session, too.
#[test]
fn a_pack_that_no_snapshot_knows_stays_for_a_while() {
    let place = Place::with_store();
    place.backup(1, 0);
    turn(&place, "20240701_晚", 1);
    place.backup(2, 0);
    let pack = item(&place.snapshot(), "20240701_晚").unwrap()["newest"]["file"].clone();
    let pack = pack.as_str().unwrap().to_owned();
    std::fs::remove_file(place.snapshots().pop().unwrap()).unwrap();
    std::fs::remove_dir_all(place.home().join("sessions/20240701_晚")).unwrap();
    place.backup(3, 0);
    let pruned = place.at(80, &["backup", "prune", "--json"]).json();
    assert_eq!(pruned["stores"][0]["unknown"][0]["file"], *pack);
    assert!(place.packs().contains(&pack));
    place.at(100, &["backup", "prune", "-q"]).expect(0);
    assert!(!place.packs().contains(&pack));
}

#[test]
fn a_store_that_has_lost_its_marker_is_read_all_the_same() {
    for garbled in [None, Some("")] {
        let place = Place::with_store();
        place.backup(1, 0);
        let marker = place.path("cold/wbhome-store.json");
        match garbled {
            None => std::fs::remove_file(&marker).unwrap(),
            Some(text) => std::fs::write(&marker, text).unwrap(),
        }
        let restore = ["restore", "--all", "--from", "cold", "--to", "back"];
        place.at(2, &restore).expect(0);
        place
            .at(2, &["restore", CRAWLER, "--from", "backup", "--to", "out"])
            .expect(0);
        let store = place.store();
        place
            .at(2, &["backup", "run"])
            .expect(1)
            .says(&["marker", "backup adopt --force"]);
        place
            .at(2, &["backup", "adopt", "cold"])
            .expect(1)
            .says(&["--force"]);
        assert_eq!(differences(&store, &place.store()), "");
        place
            .at(2, &["backup", "adopt", "--force", "cold"])
            .expect(0);
        assert_eq!(packed(&place.backup(3, 0)), ["the home itself"; 0]);
    }
}

#[test]
fn no_store_is_made_where_one_is_missed_or_in_another() {
    let place = Place::with_store();
    place.backup(1, 0);
    let inner = place.at(2, &["backup", "init", "cold/packs/in"]);
    inner.expect(1).says(&["inside another backup store"]);
    std::fs::rename(place.path("cold"), place.path("unplugged")).unwrap();
    std::fs::create_dir(place.path("cold")).unwrap();
    let again = place.at(2, &["backup", "init", "cold"]);
    again
        .expect(1)
        .says(&["it is not there", "mount it", "--again"]);
    assert_eq!(std::fs::read_dir(place.path("cold")).unwrap().count(), 0);
    place
        .at(2, &["backup", "init", "--again", "cold"])
        .expect(0);
    place.backup(2, 0);
}

#[test]
fn a_snapshot_of_a_newer_format_is_not_passed_over() {
    let place = Place::with_store();
    place.backup(1, 0);
    place.put_home("wbhome.md", "more");
    place.backup(2, 0);
    let newest = place.snapshots().pop().unwrap();
    let text = std::fs::read_to_string(&newest).unwrap();
    std::fs::write(&newest, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    let restore = ["restore", "--all", "--from", "cold", "--to", "back"];
    for args in [
        &["backup", "run"][..],
        &["backup", "prune"],
        &["backup", "verify"],
        &["backup", "ls"],
        &restore,
    ] {
        let ran = place.at(3, args);
        ran.expect(12).says(&["use the newer wbhome"]);
    }
    let older = [&restore[..], &["--at", "2024-06-01T12:00:00Z"]].concat();
    place.at(3, &older).expect(0);
}
