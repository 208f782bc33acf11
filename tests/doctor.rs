//! `wbhome doctor`: each check broken, and cured by the command that it prints.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it breaks set-ups"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::cold::night;
use support::disks::Disk;
use support::mount::Mount;
use support::{NOW, Place, Ran, has_tool, is_root, tree};

/// What depends on the machine that the tests run on, or on where their folders lie.
const ELSEWHERE: [&str; 2] = ["room", "filesystem"];

/// A home with everything, looked after until this very night.
fn sound() -> Place {
    let place = Place::with_store();
    place.at(15, &["commit", "-q"]).expect(0);
    place.at(15, &["backup", "run", "-q"]).expect(0);
    place
}

/// The checks of that name: verdict and line.
fn told(report: &Value, name: &str) -> Vec<(String, String)> {
    let checks = report["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == name);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    checks
        .map(|check| (text(&check["verdict"]), text(&check["says"])))
        .collect()
}

fn is_ok(place: &Place, name: &str) -> bool {
    let report = place.json(["doctor"]);
    told(&report, name)
        .iter()
        .all(|(verdict, _)| verdict == "ok")
}

/// The one check of that name that is of this verdict and says this.
#[track_caller]
fn finds(place: &Place, name: &str, verdict: &str, says: &str) -> Value {
    let ran = place.run(["doctor", "--json"]);
    let report = ran.json();
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| {
        check["name"] == name
            && check["verdict"] == verdict
            && check["says"].as_str().unwrap().contains(says)
    });
    let errors = report["errors"].as_u64().unwrap();
    assert_eq!(ran.code, Some(if errors > 0 { 4 } else { 0 }), "{ran:?}");
    found
        .unwrap_or_else(|| panic!("no {verdict} of {name} says {says:?}: {report:#}"))
        .clone()
}

/// Types the cure into a shell, with an editor that writes what a person would write.
fn type_in(place: &Place, check: &Value, editor: &str) -> Ran {
    let cure = check["cure"]
        .as_str()
        .unwrap_or_else(|| panic!("no cure: {check}"));
    let program = Path::new(env!("CARGO_BIN_EXE_wbhome")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", cure])
        .current_dir(place.root())
        .env_clear()
        .env("PATH", format!("{}:{path}", program.display()))
        .env("HOME", place.user_home())
        .env("TZ", "UTC")
        .env("WBHOME_NOW", NOW)
        .env("EDITOR", editor)
        .stdin(Stdio::null());
    Ran::of(shell.output().unwrap())
}

/// Breaks are found, and what is printed cures them.
#[track_caller]
fn cured(place: &Place, name: &str, verdict: &str, says: &str) {
    let check = finds(place, name, verdict, says);
    type_in(place, &check, "false").expect(0);
    assert!(is_ok(place, name), "{:#}", place.json(["doctor"]));
}

#[test]
fn a_sound_set_up_is_a_list_of_oks_and_nothing_is_touched() {
    let place = sound();
    let before = (tree(&place.home()), tree(&place.path("cold")));
    let report = place.json(["doctor"]);
    for check in report["checks"].as_array().unwrap() {
        let (name, says) = (
            check["name"].as_str().unwrap(),
            check["says"].as_str().unwrap(),
        );
        let one_disk = says.contains("same filesystem");
        let is_ok = check["verdict"] == "ok";
        assert!(is_ok || one_disk || ELSEWHERE.contains(&name), "{check}");
    }
    let after = (tree(&place.home()), tree(&place.path("cold")));
    assert!(
        before == after,
        "nothing is written, not even a lock is taken"
    );
    let names = [
        "home",
        "settings",
        "permissions",
        "lock",
        "journal",
        "index",
        "history",
        "backup",
        "drill",
        "trash",
    ];
    for name in names {
        assert!(!told(&report, name).is_empty(), "{name} is looked at");
    }
    // What nobody uses is no lack, and what is not there is not spoken of.
    for name in ["schedule", "secrets", "retention", "night", "agent"] {
        let told = told(&report, name);
        assert!(told.iter().all(|(verdict, _)| verdict == "ok"), "{told:?}");
    }
}

#[test]
fn a_fresh_home_lacks_a_backup_and_nothing_else() {
    let place = Place::with_home();
    let ran = place.run(["doctor", "-q"]);
    ran.expect(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let lines: Vec<&&str> = lines
        .iter()
        .filter(|line| line.starts_with("warning") || line.starts_with("error"))
        .filter(|line| !ELSEWHERE.iter().any(|name| line.contains(name)))
        .collect();
    assert_eq!(lines.len(), 1, "{ran:?}");
    let check = finds(&place, "backup", "warning", "no backup store");
    // DIR is what only a person can say: typed as it stands it would be a folder of that name.
    assert!(check["cure"].is_null(), "{check}");
    let hint = check["hints"][0].as_str().unwrap();
    let command = hint.split('`').nth(1).unwrap();
    assert_eq!(command, "wbhome backup init DIR");
    let check = json!({ "cure": command.replace("DIR", "cold") });
    type_in(&place, &check, "false").expect(0);
    let report = place.json(["doctor"]);
    let told = told(&report, "backup");
    assert!(
        told.iter()
            .all(|(_, says)| !says.contains("no backup store")),
        "{told:?}"
    );
}

#[test]
fn which_home_and_why() {
    let place = Place::with_home();
    let home = place.home();
    finds(&place, "home", "ok", "your usual one");
    let other = place.path("other home");
    place.ok(["init", "-q", other.to_str().unwrap()]);
    let report = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = place.command();
        command
            .current_dir(other.join("sessions"))
            .envs(env.iter().copied())
            .args(args);
        Ran::of(command.arg("--json").output().unwrap()).json()
    };
    let found = report(&["doctor"], &[]);
    assert_eq!(found["trust"], "found");
    let home_check = &found["checks"][0];
    assert_eq!(home_check["verdict"], "warning");
    assert!(
        home_check["says"]
            .as_str()
            .unwrap()
            .contains("found above the current folder")
    );
    // The cure names the home in the environment.
    let cure = home_check["cure"].as_str().unwrap();
    let value = cure
        .strip_prefix("export WBHOME=")
        .unwrap()
        .trim_matches('\'');
    let named = report(&["doctor"], &[("WBHOME", value)]);
    assert_eq!(
        (&named["trust"], &named["checks"][0]["verdict"]),
        (&"named".into(), &"ok".into())
    );
    assert!(
        named["checks"][0]["says"]
            .as_str()
            .unwrap()
            .ends_with("named by $WBHOME")
    );
    let flag = report(&["doctor", "--home", home.to_str().unwrap()], &[]);
    assert!(
        flag["checks"][0]["says"]
            .as_str()
            .unwrap()
            .ends_with("named by --home")
    );
    // Each command that is printed is for the home that was named.
    let again = format!("`wbhome --home {} backup init DIR`", home.display());
    let checks = flag["checks"].to_string();
    assert!(checks.contains(&again), "{checks}");
    place.run(["doctor", "--home", "nowhere"]).expect(10);
}

#[test]
fn settings_that_are_not_understood() {
    let place = sound();
    place.put_home("wbhome.toml", "[rotate]\nkep = 3\n");
    let check = finds(&place, "settings", "error", "[rotate] has no key `kep`");
    assert_eq!(check["hints"][0], "did you mean `keep`?");
    finds(&place, "backup", "warning", "not looked at");
    type_in(&place, &check, "sed -i s/kep/keep/").expect(0);
    assert!(is_ok(&place, "settings"));
    std::fs::remove_file(place.home().join("wbhome.toml")).unwrap();
    finds(&place, "settings", "ok", "there is no wbhome.toml");
    cured(&place, "layout", "warning", "missing: wbhome.toml");
}

#[test]
fn permissions() {
    let place = sound();
    let set = |rel: &str, mode| {
        let path = place.home().join(rel);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("", 0o755);
    cured(
        &place,
        "permissions",
        "warning",
        "everybody on this machine can look into",
    );
    // What the usual umask of some systems makes.
    set("", 0o775);
    cured(
        &place,
        "permissions",
        "warning",
        "everybody on this machine can look into /",
    );
    set(".wbhome", 0o770);
    cured(
        &place,
        "permissions",
        "warning",
        "its group on this machine can look into and change",
    );
    set("", 0o500);
    cured(&place, "permissions", "error", "can not work in");
    assert_eq!(place.mode(support::home::HOME), 0o700);
}

#[test]
fn what_makes_a_home_is_there() {
    let place = sound();
    std::fs::remove_dir_all(place.home().join("agents")).unwrap_or_default();
    std::fs::remove_dir_all(place.home().join("projects")).unwrap();
    cured(&place, "layout", "warning", "projects/");
    std::fs::remove_dir_all(place.home().join("projects")).unwrap();
    symlink("/tmp", place.home().join("projects")).unwrap();
    finds(
        &place,
        "layout",
        "error",
        "projects: expected a folder, found a symbolic link",
    );
}

#[test]
fn a_home_on_a_sync_drive_has_not_moved_yet() {
    let place = Place::new();
    place.put("Dropbox/.dropbox", "");
    let synced = place.path("Dropbox/home");
    place.ok(["init", "-q", synced.to_str().unwrap()]);
    let named = ["doctor", "--home", synced.to_str().unwrap()];
    let report = place.json(named);
    let check = report["checks"].as_array().unwrap().iter();
    let mut check = check.filter(|c| c["name"] == "filesystem" && c["verdict"] == "error");
    let check = check.next().unwrap();
    assert!(
        check["says"]
            .as_str()
            .unwrap()
            .contains("a folder of Dropbox"),
        "{check}"
    );
    type_in(&place, check, "false").expect(0);
    let report = place.json(["doctor"]);
    assert_eq!(report["path"], place.home().to_str().unwrap());
    assert!(!report["checks"].to_string().contains("Dropbox"));
}

#[test]
fn a_home_in_memory_and_one_without_room() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place.root(), "tmpfs", 32) else {
        return;
    };
    let on_it = Place::on(disk.path());
    finds(&on_it, "filesystem", "warning", "tmpfs: it is in memory");
    let check = finds(&on_it, "room", "error", "left");
    assert_eq!(check["cure"], "wbhome du");
    type_in(&on_it, &check, "false").expect(0);
}

#[test]
fn whoever_holds_the_lock_is_named() {
    let place = sound();
    finds(&place, "lock", "ok", "free");
    // Killed: its text is there, its process is not.
    let text = "wbhome backup run (process 4194304, since 2024-06-15T11:59:00Z)";
    place.put_home(".wbhome/lock", text);
    finds(&place, "lock", "ok", "free");
    // One that lives: a sleeping program of that name stands for it.
    let sleeper = place.path("wbhome-sleeps");
    std::fs::copy("/bin/sleep", &sleeper).unwrap();
    let mut sleeping = Command::new(&sleeper).arg("600").spawn().unwrap();
    let held = |since: &str| {
        let text = format!("wbhome drill (process {}, since {since})", sleeping.id());
        place.put_home(".wbhome/lock", text);
    };
    held("2024-06-15T11:59:00Z");
    finds(&place, "lock", "ok", "held by wbhome drill (process ");
    held("2024-06-13T11:59:00Z");
    let check = finds(
        &place,
        "lock",
        "warning",
        "held for more than a day by wbhome drill",
    );
    type_in(&place, &check, "false").expect(0);
    sleeping.wait().unwrap();
    finds(&place, "lock", "ok", "free");
}

#[cfg(feature = "failpoints")]
#[test]
fn what_a_killed_command_has_left() {
    let place = sound();
    let env = [("WBHOME_FAILPOINT", "journal.begun")];
    let ran = place.run_with(&env, &["rm", "crawler", "--yes"]);
    assert_ne!(ran.code, Some(0));
    cured(
        &place,
        "journal",
        "warning",
        "1 command was stopped in the middle",
    );
}

#[test]
fn an_index_that_does_not_agree() {
    let place = sound();
    place.session("20240607_by_hand", 7);
    std::fs::rename(
        place.home().join("sessions/20240603_crawler"),
        place.path("crawler"),
    )
    .unwrap();
    let check = finds(
        &place,
        "index",
        "warning",
        "1 session is not in it as they stand",
    );
    assert!(
        check["says"]
            .as_str()
            .unwrap()
            .contains("1 session in it, and not on the disk")
    );
    type_in(&place, &check, "false").expect(0);
    // Gone is not well, until somebody has said that it is meant.
    let missing = "1 session is missing: 20240603_crawler";
    let check = finds(&place, "index", "warning", missing);
    assert_eq!(
        check["cure"],
        "wbhome restore 20240603_crawler --from backup"
    );
    assert!(
        check["hints"][0]
            .as_str()
            .unwrap()
            .contains("`wbhome rm 20240603_crawler`")
    );
    cured(&place, "index", "warning", missing);
    place.put_home("index.json", "[{\"id\": ");
    cured(&place, "index", "error", "the index is broken at line 1");
}

#[test]
fn sessions_that_are_all_gone_are_not_forgotten() {
    let place = sound();
    let sessions = place.home().join("sessions");
    let away = place.path("away");
    std::fs::rename(&sessions, &away).unwrap();
    for emptied in [false, true] {
        if emptied {
            std::fs::create_dir(&sessions).unwrap();
        }
        let report = place.run(["doctor", "--json"]).json();
        for check in report["checks"].as_array().unwrap() {
            let cure = check["cure"].as_str().unwrap_or_default();
            let forgets = cure.contains(" index") || cure.contains(" init /");
            assert!(!forgets, "{check}");
        }
    }
    let check = finds(&place, "index", "error", "is its disk mounted?");
    assert!(
        check["says"].as_str().unwrap().contains("3 of the 3"),
        "{check}"
    );
    assert_eq!(
        check["cure"],
        "wbhome restore 20240603_crawler --from backup"
    );
    type_in(&place, &check, "false").expect(0);
    for id in ["20240604_数据清洗", "20240605_api_refactor"] {
        let check = finds(&place, "index", "warning", &format!("missing: {id}"));
        assert_eq!(check["cure"], format!("wbhome restore {id} --from backup"));
        type_in(&place, &check, "false").expect(0);
    }
    assert!(is_ok(&place, "index"));
    // And when the index is gone as well, the cure does not make one that knows nothing else.
    place.ok(["label", "crawler", "--title", "Prices", "-q"]);
    place.ok(["commit", "-q"]);
    std::fs::remove_dir_all(&sessions).unwrap();
    std::fs::create_dir(&sessions).unwrap();
    std::fs::remove_file(place.home().join("index.json")).unwrap();
    let check = finds(&place, "index", "error", "is its disk mounted?");
    type_in(&place, &check, "false").expect(0);
    let index = place.index();
    assert_eq!(index.as_array().unwrap().len(), 3, "{index}");
    assert_eq!(index[0]["title"], "Prices");
    // Without a store the history has them.
    std::fs::remove_dir_all(&sessions).unwrap();
    std::fs::remove_dir_all(place.path("cold")).unwrap();
    std::fs::create_dir(&sessions).unwrap();
    place.ok(["index", "-q"]);
    let check = finds(&place, "index", "warning", "3 sessions are missing");
    assert_eq!(check["cure"], "wbhome restore 20240603_crawler --from git");
    type_in(&place, &check, "false").expect(0);
    finds(&place, "index", "warning", "2 sessions are missing");
    // And where nobody has them, that is looked into.
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    let check = finds(&place, "index", "warning", "2 sessions are missing");
    assert_eq!(check["cure"], "wbhome check");
}

#[test]
fn an_index_that_is_gone() {
    let place = sound();
    place.ok(["label", "crawler", "--project", "爬", "-q"]);
    place.at(15, &["commit", "-q"]).expect(0);
    let index = place.home().join("index.json");
    let gone = || {
        std::fs::remove_file(&index).unwrap();
        let check = finds(&place, "index", "error", "index.json is gone");
        assert_eq!(check["cure"], "wbhome index --rebuild");
        check
    };
    let has_labels = || place.home_text("index.json").contains("\"爬\"");
    let check = gone();
    type_in(&place, &check, "false").expect(0);
    assert!(has_labels() && is_ok(&place, "index"));
    // What layout says, and what people type by themselves.
    gone();
    let check = finds(&place, "layout", "warning", "missing: index.json");
    type_in(&place, &check, "false").expect(0);
    assert!(has_labels() && is_ok(&place, "index"));
    gone();
    let ran = place.run(["index"]);
    assert!(ran.stderr.contains("index.json is gone: the labels are"));
    assert!(has_labels() && is_ok(&place, "index"));
    gone();
    place.run(["nightly", "-q"]);
    assert!(has_labels());
    gone();
    place.run(["check", "--repair", "-q"]);
    assert!(has_labels());
    // Without any commit there are none, and the sessions are indexed.
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    type_in(&place, &gone(), "false").expect(0);
    assert!(is_ok(&place, "index"));
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let check = finds(&place, "index", "error", "index.json is a folder");
    assert!(check["cure"].is_null(), "{check}");
}

#[test]
fn a_migration_that_was_stopped() {
    let place = sound();
    let record = ".wbhome/migrations/20240601T000000Z/plan.json";
    place.put_home(record, "{");
    let check = finds(&place, "journal", "error", "was stopped");
    assert!(check["cure"].is_null(), "{check}");
    let hints = check["hints"].to_string();
    assert!(hints.contains("plan.json"), "{hints}");
    let away = place.path("stopped");
    let home = place.home();
    let migrate = ["migrate", home.to_str().unwrap(), away.to_str().unwrap()];
    std::fs::remove_dir_all(home.join(".wbhome/migrations")).unwrap();
    place.ok(migrate);
    // Stopped before its record has come to an end, and before there was an index.
    for name in walkdir::WalkDir::new(away.join(".wbhome/migrations")) {
        let name = name.unwrap().into_path();
        if name.ends_with("outcome.json") {
            std::fs::remove_file(name).unwrap();
        }
    }
    std::fs::remove_file(away.join("index.json")).unwrap();
    let report = place.run(["doctor", "--json", "--home", away.to_str().unwrap()]);
    report.expect(4);
    let report = report.json();
    for check in report["checks"].as_array().unwrap() {
        let cure = check["cure"].as_str().unwrap_or_default();
        let no_use = cure.contains(" index") || cure.contains(" init /");
        assert!(!no_use, "{check}");
    }
    let checks = report["checks"].as_array().unwrap().iter();
    let mut check = checks.filter(|check| check["name"] == "journal");
    let check = check.next().unwrap();
    assert_eq!(check["verdict"], "error");
    let shown = type_in(&place, check, "false");
    assert!(shown.stderr.contains("wbhome migrate "), "{shown:?}");
}

#[test]
fn junk_in_the_journal() {
    let place = sound();
    place.put_home(".wbhome/journal/junk.json", "{");
    let check = finds(&place, "journal", "error", "junk.json");
    assert!(check["cure"].is_null(), "nothing takes the lock: {check}");
    assert!(
        check["hints"][0]
            .as_str()
            .unwrap()
            .contains("moved away, it is forgotten")
    );
    std::fs::rename(
        place.home().join(".wbhome/journal/junk.json"),
        place.path("junk"),
    )
    .unwrap();
    assert!(is_ok(&place, "journal"));
}

#[test]
fn what_waits_for_a_commit() {
    if !has_tool("git") {
        return;
    }
    let place = Place::with_sessions();
    place.at(10, &["commit", "-q"]).expect(0);
    let check = finds(&place, "history", "ok", "everything in it");
    assert!(
        check["says"]
            .as_str()
            .unwrap()
            .contains("last commit 5 days ago"),
        "{check}"
    );
    place.put_home("sessions/20240603_crawler/memory/new.md", "x");
    cured(
        &place,
        "history",
        "warning",
        "1 file in 1 session in no commit",
    );
    let config = place.home().join(".git/HEAD");
    std::fs::write(&config, "nonsense\n").unwrap();
    let report = place.json(["doctor"]);
    assert_eq!(told(&report, "history")[0].0, "error");
}

#[test]
fn a_history_that_nobody_has_begun_is_missed_after_two_days() {
    let place = Place::with_home();
    place.session("20240614_fresh", 14);
    place.ok(["index", "-q"]);
    finds(&place, "history", "ok", "no commit yet");
    place.session("20240605_old", 5);
    place.ok(["index", "-q"]);
    cured(&place, "history", "warning", "no commit yet");
}

#[test]
fn locks_that_a_killed_git_has_left() {
    let place = sound();
    let since = |path: &Path, seconds: u64| {
        let now: jiff::Timestamp = NOW.parse().unwrap();
        let now = u64::try_from(now.as_second()).unwrap();
        let then =
            std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(now - seconds);
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(then).unwrap();
    };
    let git = place.home().join(".git");
    for name in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        let lock = git.join(name);
        since(&lock, 600);
        assert!(is_ok(&place, "history"), "a git at work");
        since(&lock, 7200);
        let check = finds(&place, "history", "warning", "git refuses to work");
        assert!(check["says"].as_str().unwrap().contains(name), "{check}");
        assert!(check["cure"].is_null());
        let hint = check["hints"][0].as_str().unwrap();
        let (_, command) = hint.split_once(": ").unwrap();
        type_in(&place, &json!({ "cure": command }), "false").expect(0);
        assert!(is_ok(&place, "history"));
    }
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_pipe_where_git_has_a_file_is_not_waited_for() {
    let place = sound();
    for name in ["config", "index", "HEAD", "packed-refs", "refs/heads/x"] {
        let path = place.home().join(".git").join(name);
        let kept = place.path("kept");
        let was_there = std::fs::rename(&path, &kept).is_ok();
        fifo(&path);
        let check = finds(&place, "history", "error", "is a pipe");
        assert!(check["says"].as_str().unwrap().contains(name), "{check}");
        place.run(["commit", "-q"]).expect(1);
        std::fs::remove_file(&path).unwrap();
        if was_there {
            std::fs::rename(&kept, &path).unwrap();
        }
    }
    assert!(is_ok(&place, "history"));
}

#[test]
fn programs_that_never_answer_are_not_waited_for() {
    let place = sound();
    for tool in ["systemctl", "crontab"] {
        let bin = place.path(format!("bin-{tool}"));
        for (name, text) in [("systemctl", "exit 1"), ("crontab", "exit 1")] {
            let text = if name == tool { "sleep 600" } else { text };
            let path = place.put(format!("bin-{tool}/{name}"), format!("#!/bin/sh\n{text}\n"));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let begun = std::time::Instant::now();
        let ran = place.run_with(&[("PATH", &path)], &["doctor", "--json"]);
        assert!(begun.elapsed().as_secs() < 60);
        let told = told(&ran.json(), "schedule");
        let wanted = format!("`{tool}` did not answer within 5 s");
        assert!(told[0].1.contains(&wanted), "{told:?}");
    }
}

#[test]
fn a_home_of_somebody_else() {
    if !is_root() {
        return;
    }
    let place = sound();
    for folder in [place.home(), place.home().join(".wbhome")] {
        std::os::unix::fs::chown(&folder, Some(4321), None).unwrap();
    }
    let ran = place.run(["doctor", "--json", "--home", place.home().to_str().unwrap()]);
    let told = told(&ran.json(), "permissions");
    let theirs = |(verdict, says): &(String, String)| {
        verdict == "warning" && says.contains("belongs to another user (number 4321)")
    };
    assert!(told.iter().any(theirs), "{told:?}");
}

#[test]
fn a_state_folder_and_its_settings_that_are_something_else() {
    let place = sound();
    place.put("me/.workbuddy/memory/x.md", "x");
    fifo(&place.path("me/.workbuddy/settings.json"));
    let check = finds(&place, "agent", "error", "settings.json");
    assert!(
        check["hints"][0]
            .as_str()
            .unwrap()
            .contains("move this away")
    );
    assert!(is_ok(&place, "retention"));
    std::fs::remove_file(place.path("me/.workbuddy/settings.json")).unwrap();
    let file = place.put("state", "x");
    let dir = format!("[state]\ndir = {:?}\n", file.to_str().unwrap());
    place.put_home("wbhome.toml", dir);
    let check = finds(&place, "agent", "error", "the state folder is a file");
    type_in(&place, &check, "sed -i /state/d").expect(0);
    assert!(is_ok(&place, "agent"));
}

#[test]
fn a_home_without_git_is_not_warned_of_it() {
    let place = sound();
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    finds(&place, "history", "ok", "none; `wbhome commit` begins one");
}

#[test]
fn snapshots_grow_old() {
    let place = Place::with_store();
    let first = finds(&place, "backup", "warning", "holds no snapshot");
    assert_eq!(first["cure"], "wbhome backup run");
    place.at(14, &["backup", "run", "-q"]).expect(0);
    finds(
        &place,
        "backup",
        "ok",
        "last snapshot 33 hours ago".split(' ').next().unwrap(),
    );
    let old = |n: i64, verdict: &str| {
        let place = Place::with_store();
        place.at(n, &["backup", "run", "-q"]).expect(0);
        let check = finds(&place, "backup", verdict, "last snapshot ");
        type_in(&place, &check, "false").expect(0);
        finds(&place, "backup", "ok", "last snapshot just now");
    };
    old(12, "warning");
    old(7, "error");
}

#[test]
fn a_store_that_is_not_there_or_is_another_home_s() {
    let place = sound();
    std::fs::rename(place.path("cold"), place.path("away")).unwrap();
    let check = finds(&place, "backup", "error", "there is no backup store");
    assert!(check["cure"].is_null(), "nothing to type: {check}");
    assert!(check["hints"][0].as_str().unwrap().contains("mount it"));
    let again = check["hints"][1].as_str().unwrap();
    let again = again.split('`').nth(1).unwrap();
    type_in(&place, &json!({ "cure": again }), "false").expect(0);
    std::fs::remove_dir_all(place.path("cold")).unwrap();
    std::fs::rename(place.path("away"), place.path("cold")).unwrap();
    assert!(
        told(&place.json(["doctor"]), "backup")
            .iter()
            .any(|(v, _)| v == "ok")
    );
    // The home was moved, and the store still belongs to where it was.
    let mut marker: Value = serde_json::from_str(&place.text("cold/wbhome-store.json")).unwrap();
    marker["path"] = "/somewhere/else".into();
    place.put("cold/wbhome-store.json", marker.to_string());
    let check = finds(&place, "backup", "error", "the store is not this home's");
    type_in(&place, &check, "false").expect(0);
    assert!(
        told(&place.json(["doctor"]), "backup")
            .iter()
            .all(|(v, _)| v != "error")
    );
}

#[test]
fn a_store_of_another_home_or_of_one_that_is_still_there() {
    let place = sound();
    // The home that lives on elsewhere is the store's, and this one its copy.
    let other = place.path("copy");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(place.home())
        .arg(&other)
        .status();
    assert!(copied.unwrap().success());
    let doctor = || {
        let ran = place.run(["doctor", "--json", "--home", other.to_str().unwrap()]);
        let report = ran.json();
        let mut checks = report["checks"].as_array().unwrap().clone();
        checks.retain(|check| check["name"] == "backup" && check["verdict"] == "error");
        checks.remove(0)
    };
    let check = doctor();
    assert!(check["cure"].is_null(), "{check}");
    assert!(check["hints"].to_string().contains("is still there"));
    let cold = place.path("cold");
    let adopt = |more: &[&str]| {
        let words = ["--home", other.to_str().unwrap(), "backup", "adopt"];
        let words = [&words[..], &[cold.to_str().unwrap()], more].concat();
        place.run(words)
    };
    let marker = place.text("cold/wbhome-store.json");
    let refused = adopt(&[]);
    refused.expect(1);
    assert!(refused.stderr.contains("is still there"), "{refused:?}");
    assert_eq!(place.text("cold/wbhome-store.json"), marker);
    // It is gone: moved, and not copied.
    std::fs::rename(place.home(), place.path("gone")).unwrap();
    assert!(doctor()["cure"].is_string());
    std::fs::rename(place.path("gone"), place.home()).unwrap();
    adopt(&["--force"]).expect(0);
    assert_ne!(place.text("cold/wbhome-store.json"), marker);
    // Another home's, which nothing that is printed takes away.
    let mut marker: Value = serde_json::from_str(&marker).unwrap();
    marker["home"] = "ffff".into();
    place.put("cold/wbhome-store.json", marker.to_string());
    let check = finds(&place, "backup", "error", "it belongs to another home");
    assert!(check["cure"].is_null(), "{check}");
    assert!(check["hints"][0].as_str().unwrap().contains("init DIR"));
}

#[test]
fn a_store_that_has_lost_its_marker() {
    let place = sound();
    std::fs::remove_file(place.path("cold/wbhome-store.json")).unwrap();
    cured_errors(&place, "has lost its marker");
}

/// Breaks of a store are found, and what is printed cures them; that it lies on the same disk stays.
#[track_caller]
fn cured_errors(place: &Place, says: &str) {
    let check = finds(place, "backup", "error", says);
    type_in(place, &check, "false").expect(0);
    let told = told(&place.json(["doctor"]), "backup");
    assert!(told.iter().all(|(v, _)| v != "error"), "{told:?}");
}

#[test]
fn packs_and_snapshots_that_are_gone() {
    let place = sound();
    let packs = || {
        let mut all: Vec<_> = walkdir::WalkDir::new(place.path("cold/packs"))
            .into_iter()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().is_file())
            .map(walkdir::DirEntry::into_path)
            .collect();
        all.sort();
        all
    };
    let one = packs().pop().unwrap();
    let whole = std::fs::read(&one).unwrap();
    std::fs::write(&one, &whole[..whole.len() - 1]).unwrap();
    let check = finds(&place, "backup", "error", "1 pack that the newest snapshot");
    assert_eq!(check["cure"], "wbhome backup verify");
    std::fs::remove_file(&one).unwrap();
    let check = finds(&place, "backup", "error", "1 pack that the newest snapshot");
    let verified = type_in(&place, &check, "false");
    let name = one.file_name().unwrap().to_str().unwrap();
    let printed = format!("{}{}", verified.stdout, verified.stderr);
    assert!(printed.contains(name), "{verified:?}");
    place.ok(["backup", "run", "-q"]);
    finds(&place, "backup", "ok", "last snapshot just now");
    // The newest snapshot is torn, and then all of them.
    let snapshots = support::cold::files_in(place.path("cold/snapshots"));
    assert_eq!(snapshots.len(), 2);
    std::fs::write(&snapshots[1], "{").unwrap();
    let check = finds(
        &place,
        "backup",
        "warning",
        "1 newer snapshot that can not be read",
    );
    assert_eq!(check["cure"], "wbhome backup verify");
    let verified = type_in(&place, &check, "false");
    let printed = format!("{}{}", verified.stdout, verified.stderr);
    assert!(printed.contains("20240615T120000Z"), "{verified:?}");
    std::fs::write(&snapshots[0], "").unwrap();
    let check = finds(
        &place,
        "backup",
        "error",
        "holds no snapshot that can be read",
    );
    // It is told of the damage, and makes a new one.
    type_in(&place, &check, "false").expect(3);
    finds(&place, "backup", "ok", "last snapshot just now");
}

#[test]
fn a_snapshot_of_a_day_that_is_still_to_come() {
    let place = sound();
    let later = [("WBHOME_NOW", "2024-09-01T03:00:00Z")];
    place.run_with(&later, &["backup", "run", "-q"]).expect(0);
    let check = finds(&place, "backup", "warning", "which is still to come");
    assert!(check["hints"][0].as_str().unwrap().contains("clock"));
    place.ok(["backup", "run", "-q"]);
    let told = |now: &str| {
        let ran = place.run_with(&[("WBHOME_NOW", now)], &["doctor", "--json"]);
        told(&ran.json(), "backup")
    };
    let now = told(NOW);
    assert!(
        !now.iter().any(|(_, says)| says.contains("still to come")),
        "{now:?}"
    );
    // And it grows old from the day on which it was made.
    let old = told("2024-06-25T12:00:00Z");
    assert!(old.iter().any(|(v, _)| v == "error"), "{old:?}");
}

#[test]
fn where_a_store_really_lies() {
    let place = sound();
    std::fs::create_dir(place.path("Dropbox")).unwrap();
    std::fs::rename(place.path("cold"), place.path("Dropbox/cold")).unwrap();
    symlink(place.path("Dropbox/cold"), place.path("cold")).unwrap();
    finds(&place, "backup", "warning", "lies in a folder of Dropbox");
    finds(&place, "backup", "warning", "on the same filesystem");
    let Some(_mount) = is_root()
        .then(|| Mount::memory(place.path("disk"), "64m"))
        .flatten()
    else {
        return;
    };
    std::fs::remove_file(place.path("cold")).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .arg(place.path("Dropbox/cold"))
        .arg(place.path("disk/cold"))
        .status();
    assert!(copied.unwrap().success());
    symlink(place.path("disk/cold"), place.path("cold")).unwrap();
    assert!(is_ok(&place, "backup"), "{:#}", place.json(["doctor"]));
    // No room for what a night brings.
    let filler = place.path("disk/filler");
    std::fs::write(&filler, vec![1; 60 << 20]).unwrap();
    let check = finds(&place, "backup", "warning", " left");
    type_in(&place, &check, "false").expect(0);
    std::fs::write(&filler, vec![1; (64 << 20) - (600 << 10)]).unwrap();
    finds(&place, "backup", "error", " left");
}

#[test]
fn a_store_on_the_same_disk_and_one_that_can_not_be_written() {
    let place = sound();
    finds(
        &place,
        "backup",
        "warning",
        "lies on the same filesystem as the home",
    );
    if !is_root() {
        return;
    }
    let Some(mount) = Mount::memory(place.path("disk"), "64m") else {
        return;
    };
    let on_it = place.path("disk/cold");
    place.put_home("wbhome.toml", "");
    place.ok(["backup", "init", "-q", on_it.to_str().unwrap()]);
    place.at(15, &["backup", "run", "-q"]).expect(0);
    assert!(is_ok(&place, "backup"));
    mount.remount("ro");
    finds(&place, "backup", "error", "can not be written");
}

#[test]
fn a_drill_that_was_long_ago() {
    let place = Place::with_sessions();
    place.run_with(
        &[("WBHOME_NOW", "2024-05-01T03:00:00Z")],
        &["backup", "init", "cold", "-q"],
    );
    place.at(15, &["backup", "run", "-q"]).expect(0);
    cured(
        &place,
        "drill",
        "warning",
        "none yet; there has been a store since 6 weeks ago",
    );
    finds(&place, "drill", "ok", "the last one was just now");
    let later = place.run_with(
        &[("WBHOME_NOW", "2024-07-20T12:00:00Z")],
        &["doctor", "--json"],
    );
    let told = told(&later.json(), "drill");
    assert_eq!(told[0].0, "warning", "{told:?}");
}

#[test]
fn nights_that_ended_badly_or_not_at_all() {
    let place = sound();
    assert!(
        told(&place.json(["doctor"]), "night").is_empty(),
        "nobody uses it"
    );
    // A night in which the store was not there.
    std::fs::rename(place.path("cold"), place.path("away")).unwrap();
    place.run(["nightly", "-q"]).expect(1);
    std::fs::rename(place.path("away"), place.path("cold")).unwrap();
    let check = finds(&place, "night", "warning", "ended with exit code 1: backup");
    type_in(&place, &check, "false").expect(0);
    finds(&place, "night", "ok", "all was well");
    let later = place.run_with(
        &[("WBHOME_NOW", "2024-06-19T12:00:00Z")],
        &["doctor", "--json"],
    );
    assert_eq!(told(&later.json(), "night")[0].0, "warning");
}

#[test]
fn the_conversations_of_the_agent() {
    let place = sound();
    place.put("me/.workbuddy/memory/x.md", "x");
    finds(
        &place,
        "retention",
        "ok",
        "after 30 days, as it is when nobody says otherwise",
    );
    let settings = "me/.workbuddy/settings.json";
    place.put(settings, r#"{"cleanupPeriodDays": 7}"#);
    let check = finds(&place, "retention", "warning", "after 7 days");
    type_in(&place, &check, "sed -i s/7/365/").expect(0);
    finds(
        &place,
        "retention",
        "ok",
        "after 365 days, as its settings say",
    );
    place.put(settings, "{");
    finds(&place, "retention", "warning", "EOF");
    place.put_home("wbhome.toml", "[state]\ndir = \"/nowhere/at/all\"\n");
    let check = finds(&place, "agent", "error", "there is no state folder");
    type_in(&place, &check, "sed -i /nowhere/d").expect(0);
    assert!(is_ok(&place, "agent"));
}

#[test]
fn rules_for_secrets_that_are_not_there() {
    let place = sound();
    place.put_home("wbhome.toml", "[secrets]\nrules = \"mine.toml\"\n");
    let check = finds(&place, "secrets", "error", "mine.toml");
    type_in(&place, &check, "sed -i /mine.toml/d").expect(0);
    assert!(is_ok(&place, "secrets"));
    // Nobody reads them below the user's own folder.
    std::fs::write(place.user_home().join("mine.toml"), "").unwrap();
    place.put_home("wbhome.toml", "[secrets]\nrules = \"~/mine.toml\"\n");
    finds(&place, "secrets", "error", "~/mine.toml");
    place.put_home("wbhome.toml", "[secrets]\nallow = [\"zzz\"]\n");
    let check = finds(&place, "secrets", "error", "is no digest");
    type_in(&place, &check, "sed -i /zzz/d").expect(0);
    assert!(is_ok(&place, "secrets"));
}

/// A file that is long and takes no room.
fn sparse(path: &Path, bytes: u64) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    file.set_len(bytes).unwrap();
}

#[test]
fn a_trash_that_nobody_empties() {
    let place = sound();
    finds(&place, "trash", "ok", "empty");
    let early = [("WBHOME_NOW", "2024-05-01T12:00:00Z")];
    sparse(
        &place
            .home()
            .join("sessions/20240603_crawler/artifacts/big.bin"),
        2 << 30,
    );
    place
        .run_with(&early, &["rm", "crawler", "--yes", "-q"])
        .expect(0);
    cured(&place, "trash", "warning", "is older than 30 days");
    finds(&place, "trash", "ok", "empty");
}

#[test]
fn logs_that_nobody_cuts() {
    let place = sound();
    let log = place.home().join("sessions/20240603_crawler/logs/run.log");
    sparse(&log, (1 << 30) + 4096);
    place.ok(["index", "-q"]);
    let check = finds(&place, "logs", "warning", "none was ever cut");
    assert_eq!(check["cure"], "wbhome rotate --force");
    // Cutting a gigabyte takes its time: a short one does as well here.
    sparse(&log, 4096);
    type_in(&place, &check, "false").expect(0);
    place.ok(["index", "-q"]);
    assert!(is_ok(&place, "logs"));
}

#[test]
fn a_night_that_is_installed_for_another_program() {
    let place = sound();
    // A crontab that is a file, and no systemd.
    let bin = place.path("bin");
    let table = place.path("table");
    place.put(
        "bin/crontab",
        format!(
            "#!/bin/sh\ncase \"$1\" in\n-l) cat '{0}' 2>/dev/null || {{ echo 'no crontab for me' >&2; exit 1; }};;\n*) cat \"$1\" 2>/dev/null > '{0}' || cat > '{0}';;\nesac\n",
            table.display()
        ),
    );
    place.put("bin/systemctl", "#!/bin/sh\nexit 1\n");
    for tool in ["crontab", "systemctl"] {
        std::fs::set_permissions(bin.join(tool), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let env = [("PATH", path.as_str())];
    place
        .run_with(
            &env,
            &["schedule", "install", "--with", "cron", "--yes", "-q"],
        )
        .expect(0);
    let report = || place.run_with(&env, &["doctor", "--json"]).json();
    let verdicts = |report: &Value| told(report, "schedule");
    let now = verdicts(&report());
    assert_eq!(now[0].0, "ok", "{now:?}");
    assert!(now[0].1.contains("runs the night at 03:00"), "{now:?}");
    let text = std::fs::read_to_string(&table).unwrap();
    let program = std::fs::canonicalize(env!("CARGO_BIN_EXE_wbhome")).unwrap();
    std::fs::write(
        &table,
        text.replace(program.to_str().unwrap(), "/old/wbhome"),
    )
    .unwrap();
    let broken = report();
    assert_eq!(verdicts(&broken)[0].0, "warning");
    let check = broken["checks"].as_array().unwrap().iter();
    let cure = check.clone().find(|c| c["name"] == "schedule").unwrap()["cure"].clone();
    assert_eq!(cure, "wbhome schedule install --yes");
    let words: Vec<&str> = cure.as_str().unwrap().split(' ').skip(1).collect();
    place.run_with(&env, &words).expect(0);
    assert_eq!(verdicts(&report())[0].0, "ok");
}

#[test]
fn names_can_not_drive_the_terminal() {
    let place = Place::new();
    let odd = place.path("a\u{1b}[31m b");
    place.ok(["init", "-q", odd.to_str().unwrap()]);
    let ran = place.run(["doctor", "--home", odd.to_str().unwrap()]);
    for stream in [&ran.stdout, &ran.stderr] {
        assert!(
            stream.chars().all(|c| c == '\n' || !c.is_control()),
            "{ran:?}"
        );
    }
}

#[test]
fn it_looks_while_somebody_writes() {
    let place = sound();
    let night = night(15);
    let env = [("WBHOME_NOW", night.as_str())];
    let ran = place.run_with(&env, &["doctor", "--lock-wait", "0s"]);
    ran.expect(0);
    assert!(ran.stdout.trim_end().ends_with('.'), "{ran:?}");
}
