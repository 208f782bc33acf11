//! `wbhome nightly`: every stage is done, all is told once, and a night in which all is well is silent.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders"
)]

mod support;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::Value;
use support::cold::rest;
use support::{Place, Ran, differences, has_tool, is_root, tree};

/// A home with three sessions and a store beside it, and these lines below `[nightly]`.
fn place(settings: &str) -> Place {
    let place = Place::with_sessions();
    place.ok(["backup", "init", "store", "-q"]);
    let text = place.home_text("wbhome.toml");
    place.put_home(
        "wbhome.toml",
        text.replace("\n[nightly]\n", &format!("\n[nightly]\n{settings}\n")),
    );
    place
}

fn night(place: &Place, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = place.command();
    command.envs(env.iter().copied()).arg("nightly").args(args);
    Ran::of(command.output().unwrap())
}

/// The records that are kept, oldest first.
fn records(place: &Place) -> Vec<Value> {
    let names = place.names(".wbhome/runs");
    let read =
        |name: &String| serde_json::from_str(&place.home_text(&format!(".wbhome/runs/{name}")));
    names.iter().map(|name| read(name).unwrap()).collect()
}

fn stage<'r>(record: &'r Value, name: &str) -> &'r Value {
    let stages = record["stages"].as_array().unwrap();
    stages
        .iter()
        .find(|stage| stage["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {record}"))
}

#[test]
fn all_is_done_and_nothing_is_said() {
    let place = place("");
    let ran = night(&place, &[], &[]);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "", "")
    );
    let record = records(&place).remove(0);
    assert_eq!(record["schema"], "wbhome/nightly/1");
    assert_eq!(record["exit"], 0);
    let names: Vec<&Value> = record["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["name"])
        .collect();
    assert_eq!(names, ["rotate", "index", "commit", "backup", "prune"]);
    // What it says it did is done.
    assert_eq!(stage(&record, "index")["counts"]["entries"], 3);
    assert_eq!(stage(&record, "commit")["counts"]["sessions"], 3);
    assert!(
        stage(&record, "backup")["counts"]["packed"]
            .as_u64()
            .unwrap()
            >= 3
    );
    assert_eq!(
        place.json(["commit"])["commit"],
        Value::Null,
        "everything is committed"
    );
    let listed = place.json(["backup", "ls"]);
    assert_eq!(
        listed["stores"][0]["snapshots"].as_array().unwrap().len(),
        1
    );
    // What the night itself has written last is fresh when its backup looks at it, or is not: packed once more, it rests.
    rest();
    place.ok(["backup", "run", "-q"]);
    // A second one in the same second has a record of its own.
    let ran = night(&place, &[], &["-v"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    rotate   no log is due
    index    3 entries, all as on the disk
    commit   nothing has changed; 9 files in the history
    backup   [ROOT]/store: nothing has changed; 5 as they were
    prune    [ROOT]/store: nothing to let go of; 3 snapshots kept
    The record: [ROOT]/me/workbuddy_home/.wbhome/runs/20240615T120000Z_2.json
    --- stderr
    ");
    assert_eq!(records(&place).len(), 2);
}

#[test]
fn a_dry_run_says_what_each_stage_would_do() {
    let place = place("on_success = \"touch ran\"");
    place.session("20240606_new", 6);
    let (home, store) = (tree(&place.home()), tree(&place.path("store")));
    let ran = night(&place, &[], &["-n"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    rotate   no log is due
    index    1 added; 4 entries
    commit   4 sessions: +4 turns, 4 files
    backup   [ROOT]/store: 6 things to pack, 4.5 kB; 0 unchanged
    prune    [ROOT]/store: nothing to let go of; 0 snapshots kept
    Nothing was changed.
    --- stderr
    ");
    let plan = night(&place, &[], &["-n", "--json"]).json();
    assert_eq!(plan["schema"], "wbhome/nightly-plan/1");
    assert_eq!(stage(&plan, "index")["counts"]["added"], 1);
    assert_eq!(differences(&home, &tree(&place.home())), "");
    assert_eq!(differences(&store, &tree(&place.path("store"))), "");
}

/// What is in no backup yet must not go because of its number.
#[test]
fn cut_logs_go_only_when_the_backup_of_the_night_is_good() {
    let place = place("");
    let logs = "sessions/20240603_crawler/logs";
    let settings = place.home_text("wbhome.toml");
    place.put_home("wbhome.toml", settings.replace("keep = 7\n", "keep = 1\n"));
    place.session("20240603_crawler", 3);
    let night_of = |day: u32, line: &str| {
        let log = place.home().join(logs).join("run.log");
        let mut options = std::fs::OpenOptions::new();
        let mut log = options.append(true).create(true).open(log).unwrap();
        std::io::Write::write_all(&mut log, line.as_bytes()).unwrap();
        let now = format!("2024-06-{day:02}T03:00:00Z");
        let ran = place.run_with(&[("WBHOME_NOW", &now)], &["nightly", "-v"]);
        let record = records(&place).pop().unwrap();
        (ran, record)
    };
    let cut = || place.names(logs).len() - 1;
    night_of(16, "one\n");
    night_of(17, "two\n");
    std::fs::rename(place.path("store"), place.path("away")).unwrap();
    let (ran, record) = night_of(18, "three\n");
    ran.expect(1);
    assert_eq!(cut(), 2, "{record}");
    assert!(stage(&record, "logs")["skipped"].is_string(), "{record}");
    night_of(19, "four\n");
    assert_eq!(cut(), 3);
    std::fs::rename(place.path("away"), place.path("store")).unwrap();
    let (ran, record) = night_of(20, "five\n");
    ran.expect(0);
    assert_eq!(cut(), 1);
    assert_eq!(stage(&record, "logs")["counts"]["removed"], 3, "{record}");
    let notes = stage(&record, "logs")["notes"].to_string();
    assert!(notes.contains("run.log-20240617T030000Z"), "{notes}");
}

#[test]
fn a_store_that_is_missing_is_said_once_and_the_rest_is_done() {
    let place = place("on_failure = \"cat > told.json; echo to nobody\"");
    std::fs::rename(place.path("store"), place.path("away")).unwrap();
    let ran = night(&place, &[], &[]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 1
    --- stdout
    backup   [ROOT]/store: failed
    rotate   no log is due
    index    3 entries, all as on the disk
    commit   3 sessions: +3 turns, 3 files
    prune    [ROOT]/store: not done: its backup has not been good, so everything stays
    The record: [ROOT]/me/workbuddy_home/.wbhome/runs/20240615T120000Z.json
    --- stderr
    to nobody
    error: backup: there is no backup store: [ROOT]/store
    hint: if it is on a disk that is not mounted, mount it
    ");
    let told: Value = serde_json::from_str(&place.home_text("told.json")).unwrap();
    assert_eq!(
        (&told["schema"], &told["exit"]),
        (&"wbhome/nightly/1".into(), &1.into())
    );
    assert_eq!(stage(&told, "backup")["exit"], 1);
    let hints = stage(&told, "backup")["troubles"][0]["hints"]
        .as_array()
        .unwrap();
    assert!(!hints.is_empty(), "{told}");
    assert_eq!(stage(&told, "commit")["exit"], 0);
    // The record that is kept knows of the hook, too.
    let kept = records(&place).remove(0);
    assert_eq!(
        kept["hook"],
        serde_json::json!({"name": "on_failure", "code": 0, "trouble": null})
    );
    assert!(
        !place.path("store").exists(),
        "nothing is written where the store was"
    );
}

#[test]
fn without_a_store_the_night_goes_well_and_says_so_to_whoever_looks() {
    let place = Place::with_sessions();
    let ran = night(&place, &[], &[]);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "", "")
    );
    let record = records(&place).remove(0);
    let why = stage(&record, "backup")["skipped"].as_str().unwrap();
    assert!(why.contains("`wbhome backup init DIR`"), "{why}");
    // Then cut logs beyond the settings go at once, and a dry run says so, too.
    let logs = place.home().join("sessions/20240603_crawler/logs");
    for n in 1..9 {
        std::fs::write(logs.join(format!("run.log-2024010{n}T030000Z")), "x\n").unwrap();
    }
    std::fs::write(logs.join("run.log"), "y\n").unwrap();
    for args in ["-n", "-v"] {
        assert_eq!(place.names("sessions/20240603_crawler/logs").len(), 8 + 1);
        let ran = night(&place, &[], &[args]);
        let told = "no log is due; 1 former one let go of";
        assert!(ran.stdout.contains(told), "{ran:?}");
    }
    assert_eq!(place.names("sessions/20240603_crawler/logs").len(), 7 + 1);
}

#[test]
fn a_history_that_nobody_has_begun_is_not_begun() {
    let place = place("");
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    night(&place, &[], &[]).expect(0);
    assert!(!place.home().join(".git").exists());
    let record = records(&place).remove(0);
    assert!(stage(&record, "commit")["skipped"].is_string(), "{record}");
}

#[test]
fn somebody_at_work_stops_only_what_needs_the_lock() {
    let place = place("");
    let path = place.home().join(".wbhome/lock");
    let held = File::options().read(true).write(true).open(path).unwrap();
    held.lock().unwrap();
    let ran = night(&place, &[], &["--lock-wait", "0s"]);
    ran.expect(11).says(&[
        "error: index: the home is in use",
        "error: commit: the home is in use",
    ]);
    let record = records(&place).remove(0);
    assert_eq!(stage(&record, "backup")["exit"], 0, "{record}");
    assert_eq!(stage(&record, "prune")["exit"], 0, "{record}");
    drop(held);
    // The store's own lock is another one.
    let held = File::options()
        .read(true)
        .write(true)
        .open(place.path("store/lock"))
        .unwrap();
    held.lock().unwrap();
    let ran = night(&place, &[], &["--lock-wait", "0s"]);
    ran.expect(11)
        .says(&["error: backup: the backup store is in use"]);
    let record = records(&place).pop().unwrap();
    assert_eq!(stage(&record, "commit")["exit"], 0, "{record}");
    assert!(stage(&record, "prune")["skipped"].is_string(), "{record}");
}

#[test]
fn an_interrupt_ends_the_night_and_is_kept() {
    let place = place("on_failure = \"cat > told.json\"");
    let path = place.home().join(".wbhome/lock");
    let held = File::options().read(true).write(true).open(path).unwrap();
    held.lock().unwrap();
    let mut command = place.command();
    command
        .args(["nightly", "--lock-wait", "10m"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    Ran::of(child.wait_with_output().unwrap()).expect(130);
    let record = records(&place).remove(0);
    assert_eq!(record["exit"], 130);
    assert!(stage(&record, "backup")["skipped"].is_string(), "{record}");
    assert!(place.home_text("told.json").contains("\"exit\":130"));
}

#[test]
fn a_hook_may_read_or_not_and_what_fails_is_told() {
    let place1 = place("on_success = \"cat > told.json\"");
    night(&place1, &[], &[]).expect(0);
    let told: Value = serde_json::from_str(&place1.home_text("told.json")).unwrap();
    assert_eq!(told["exit"], 0);
    // It does not read, and its child never will.
    let place2 = place("on_success = \"sleep 20 >/dev/null 2>&1 & exit 0\"");
    let begun = Instant::now();
    night(&place2, &[], &[]).expect(0);
    assert!(begun.elapsed() < Duration::from_secs(15));
    let place3 = place("on_success = \"exit 7\"");
    let ran = night(&place3, &[], &[]);
    ran.expect(1)
        .says(&["error: [nightly] on_success (`exit 7`) ended with exit code 7"]);
    let record = records(&place3).remove(0);
    assert_eq!(
        (&record["exit"], &record["hook"]["code"]),
        (&1.into(), &7.into())
    );
    // It runs without a lock: it may call the program.
    let program = env!("CARGO_BIN_EXE_wbhome");
    let place4 = place(&format!(
        "on_success = \"{program} label crawler --tag hooked --lock-wait 0s -q\""
    ));
    night(&place4, &[], &[]).expect(0);
    assert!(place4.home_text("index.json").contains("hooked"));
}

#[test]
fn in_a_home_that_was_merely_found_no_command_is_run() {
    let place = place("on_success = \"touch ran\"\non_failure = \"touch ran\"");
    std::fs::rename(place.home(), place.path("theirs")).unwrap();
    let ran = place.run_in("theirs", &["nightly"]);
    ran.expect(1).says(&[
        "error: backup: the home was merely found",
        "name it, if it is yours",
    ]);
    assert!(!place.path("theirs/ran").exists());
    assert!(place.path("theirs/.wbhome/runs").exists());
}

#[test]
fn settings_that_are_not_understood_stop_only_what_needs_them() {
    let place = place("on_sucess = \"true\"");
    place.session("20240606_new", 6);
    let ran = night(&place, &[], &[]);
    ran.expect(1)
        .says(&["error: settings: ", "did you mean `on_success`?"]);
    let record = records(&place).remove(0);
    assert_eq!(stage(&record, "index")["counts"]["added"], 1);
    assert!(stage(&record, "backup")["skipped"].is_string());
}

#[test]
fn a_session_that_is_gone_is_told_the_night_it_is_missed() {
    let place = place("");
    night(&place, &[], &[]).expect(0);
    std::fs::remove_dir_all(place.home().join("sessions/20240603_crawler")).unwrap();
    let ran = night(&place, &[], &[]);
    ran.expect(0)
        .says(&["warning: 20240603_crawler is found nowhere any more"]);
    assert_eq!(ran.stdout, "");
    assert_eq!(night(&place, &[], &[]).stderr, "", "once");
    // And once a week, for as long as nobody says that it is right.
    let later = |day: u8| {
        let now = format!("2024-06-{day:02}T12:00:00Z");
        night(&place, &[("WBHOME_NOW", &now)], &[]).stderr
    };
    assert_eq!(later(21), "");
    let told = later(22);
    assert!(
        told.contains("20240603_crawler is not there any more") && told.contains("backup accept"),
        "{told}"
    );
}

#[test]
fn a_month_without_a_drill_is_told_on_every_seventh_day() {
    let place = place("");
    let said = |day: &str, args: &[&str]| {
        let ran = night(
            &place,
            &[("WBHOME_NOW", &format!("2024-{day}T03:00:00Z"))],
            args,
        );
        ran.expect(0).stderr.clone()
    };
    let warning = "there has been a backup for";
    assert_eq!(said("07-14", &[]), "", "29 days");
    assert!(said("07-15", &[]).contains(warning));
    assert_eq!(said("07-16", &[]), "");
    assert!(
        said("07-17", &["-v"]).contains(warning),
        "whoever looks is told"
    );
    assert!(said("07-22", &[]).contains(warning));
    let record = records(&place).pop().unwrap();
    assert_eq!(record["warnings"][0]["pressing"], true);
    place.put_home(".wbhome/drills/20240722T100000Z.json", "{}");
    assert_eq!(said("07-29", &["-v"]), "");
    assert!(said("08-21", &[]).contains("the last drill was 30 days ago"));
}

#[test]
fn many_things_that_are_gone_at_once_are_one_warning_and_one_command() {
    let place = place("");
    let names = ["一", "二 b", "三", "四", "五"];
    for name in names {
        place.put_home(&format!("{name}/x.txt"), name);
    }
    let on = |day: u32, args: &[&str]| {
        let now = format!("2024-07-{day:02}T03:00:00Z");
        night(&place, &[("WBHOME_NOW", &now)], args)
    };
    on(1, &[]).expect(0);
    for name in names {
        std::fs::remove_dir_all(place.home().join(name)).unwrap();
    }
    let ran = on(2, &["-v"]);
    ran.expect(0);
    assert_eq!(
        ran.stderr.matches("not there any more").count(),
        1,
        "{ran:?}"
    );
    let hint = ran
        .stderr
        .lines()
        .find(|line| line.contains("backup accept"));
    let (_, command) = hint.unwrap().split_once("`wbhome ").unwrap();
    let command = command.trim_end_matches('`');
    let typed = format!(
        "{} --home {} {command}",
        env!("CARGO_BIN_EXE_wbhome"),
        place.home().display()
    );
    let accepted = std::process::Command::new("sh")
        .args(["-c", &typed])
        .env("WBHOME_NOW", "2024-07-02T04:00:00Z")
        .env("HOME", place.user_home())
        .output()
        .unwrap();
    support::Ran::of(accepted).expect(0);
    let ran = on(9, &["-v"]);
    assert!(
        !ran.expect(0).stderr.contains("not there any more"),
        "{ran:?}"
    );
}

#[test]
fn a_store_is_pruned_after_a_good_backup_only() {
    let place = place("");
    let text = place.home_text("wbhome.toml");
    place.put_home(
        "wbhome.toml",
        text.replace("keep = \"14d\"", "keep = \"1d\""),
    );
    let on = |day: u32| {
        place.put_home(
            "sessions/20240603_crawler/context/turn_002.json",
            format!("{{\"day\": {day}}}\n"),
        );
        let now = format!("2024-07-{day:02}T03:00:00Z");
        night(&place, &[("WBHOME_NOW", &now)], &[])
    };
    for day in 1..=4 {
        on(day).expect(0);
    }
    let pruned = |record: &Value| stage(record, "prune")["counts"]["snapshots"].as_u64();
    assert!(records(&place).iter().filter_map(pruned).sum::<u64>() > 0);
    if is_root() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let secret = place.put_home("sessions/20240603_crawler/context/turn_003.json", "{}");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o0)).unwrap();
    on(5)
        .expect(3)
        .says(&["warning: backup: could not be read"]);
    let record = records(&place).pop().unwrap();
    assert!(stage(&record, "prune")["skipped"].is_string(), "{record}");
}

/// Runs a script in a mount namespace of its own: nothing that it mounts is seen outside, and all goes with it.
fn in_own_mounts(place: &Place, script: &str) -> Option<Ran> {
    if !is_root() || !has_tool("unshare") || !has_tool("mount") {
        return None;
    }
    let script = format!("set -e\nmount --make-rprivate /\n{script}");
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", &script])
        .current_dir(place.root())
        .stdin(Stdio::null());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    command
        .env("HOME", place.user_home())
        .env("W", env!("CARGO_BIN_EXE_wbhome"));
    let ran = Ran::of(command.output().unwrap());
    if ran.stderr.contains("unshare failed") || ran.stderr.contains("permission denied") {
        eprintln!("SKIPPED: nothing can be mounted here");
        return None;
    }
    Some(ran)
}

#[test]
fn a_full_disk_of_the_home_does_not_stop_the_backup() {
    let place = place("on_failure = \"cat > ../../told.json\"");
    let Some(ran) = in_own_mounts(
        &place,
        "mkdir full; mount -t tmpfs -o size=8m tmpfs full; cp -a me/workbuddy_home/. full\n\
         mount --bind full me/workbuddy_home; cat /dev/zero >full/sessions/20240603_crawler/logs/big.bin || :\n\
         \"$W\" nightly --home me/workbuddy_home",
    ) else {
        return;
    };
    ran.expect(1)
        .says(&["the record of the night could not be kept", "no space left"]);
    let told: Value = serde_json::from_str(&place.text("told.json")).unwrap();
    assert_eq!(stage(&told, "backup")["exit"], 0, "{told}");
    assert!(place.names("../../store/snapshots").len() == 1, "{ran:?}");
}

/// The line that `schedule install` writes, run by a real cron that has nothing in its environment; and what it mails.
#[test]
fn a_real_cron_runs_the_line() {
    let cron = ["/usr/sbin/cron", "/usr/sbin/crond"]
        .map(PathBuf::from)
        .into_iter()
        .find(|p| p.exists());
    let Some(cron) = cron.filter(|_| has_tool("crontab")) else {
        eprintln!("SKIPPED: there is no cron here");
        return;
    };
    let place = place("on_failure = \"cat > told.json\"");
    // A name that cron, a shell and the crontab would all like to read otherwise.
    let hard = "50% 主 'x' $HOME \\%";
    std::fs::rename(place.home(), place.path(hard)).unwrap();
    place.ok(["backup", "adopt", "store", "--home", hard, "-y"]);
    std::fs::create_dir(place.path("away")).unwrap();
    let mail = place.path("mail");
    let script = format!(
        "cp {cron} cron.saved; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/spool/cron/crontabs\n\
         chmod 1730 /var/spool/cron/crontabs; mount -t tmpfs tmpfs /usr/sbin\n\
         printf '#!/bin/sh\\ncat >>%s\\n' '{mail}' >/usr/sbin/sendmail; chmod 755 /usr/sbin/sendmail\n\
         home=$(printf %s {hard}); mkdir -p \"$home/.wbhome/drills\"\n\
         : >\"$home/.wbhome/drills/$(date -u +%Y%m%dT%H%M%SZ).json\"\n\
         line() {{ \"$W\" schedule install --with cron -y -q --home \"$home\" --at \"$(date -d '+61 seconds' +%H:%M)\"; }}\n\
         wait_for() {{ n=0; while [ ! -e \"$1\" ]; do n=$((n+1)); [ $n -lt 1400 ] || exit 9; sleep 0.1; done; sleep 2; }}\n\
         line; env -i ./cron.saved -f & cron=$!; trap 'kill $cron' EXIT\n\
         wait_for \"$home/.wbhome/runs\"; test ! -e {mail}; cp -a \"$home/.wbhome/runs\" first\n\
         mv store away/store; line; wait_for \"$home/told.json\"\n\
         \"$W\" schedule remove -y -q --home \"$home\"; ! crontab -l 2>/dev/null",
        cron = cron.display(),
        mail = mail.display(),
        hard = "'50% 主 '\"'\"'x'\"'\"' $HOME \\%'",
    );
    let Some(ran) = in_own_mounts(&place, &script) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // All was well: silent, and everything done.
    let first = std::fs::read_dir(place.path("first"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let first: Value = serde_json::from_slice(&std::fs::read(first.path()).unwrap()).unwrap();
    assert_eq!(first["exit"], 0, "{first}");
    // The store was missing: one clear message.
    let mail = std::fs::read_to_string(mail).unwrap();
    let said: Vec<&str> = mail
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert!(
        said.len() == 1 && said[0].starts_with("error: backup: "),
        "{mail}"
    );
    let told: Value = serde_json::from_str(&place.text(format!("{hard}/told.json"))).unwrap();
    assert_eq!(told["exit"], 1);
}

/// A disk that is not mounted leaves an empty folder: nobody is there to be asked.
#[test]
fn sessions_that_are_all_gone_are_not_noted_as_missing() {
    if !has_tool("git") {
        return;
    }
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let before = place.read("me/workbuddy_home/index.json");
    for id in [
        "20240603_crawler",
        "20240604_数据清洗",
        "20240605_api_refactor",
    ] {
        std::fs::remove_dir_all(place.home().join("sessions").join(id)).unwrap();
    }
    let night = place.run(["nightly"]);
    assert_eq!(night.code, Some(1), "{night:?}");
    assert!(
        format!("{night:?}").contains("is its disk mounted?"),
        "{night:?}"
    );
    assert_eq!(place.read("me/workbuddy_home/index.json"), before);
    let repair = place.run(["check", "--repair", "-y"]);
    assert_eq!(repair.code, Some(1), "{repair:?}");
    assert_eq!(place.read("me/workbuddy_home/index.json"), before);
    let doctor = place.run(["doctor"]);
    assert_eq!(doctor.code, Some(4), "{doctor:?}");
}

#[test]
fn the_relay_is_the_last_stage_where_one_is_set() {
    let place = place("");
    let last = |place: &Place| {
        let record = records(place).pop().unwrap();
        record["stages"].as_array().unwrap().last().unwrap().clone()
    };
    night(&place, &[], &[]).expect(0);
    assert_ne!(last(&place)["name"], "relay");
    place.ok(["relay", "init", "relay", "--mode", "clone", "-q"]);
    place.ok([
        "label",
        "20240603_crawler",
        "20240604_数据清洗",
        "--sync-tag",
        "x",
        "-q",
    ]);
    let ran = night(&place, &[], &["-n", "-v"]);
    assert!(ran.stdout.contains("2 sent"), "{ran:?}");
    assert!(!place.path("relay/20240603_crawler").exists());
    let ran = night(&place, &[], &[]);
    ran.expect(0);
    assert_eq!((ran.stdout, ran.stderr), (String::new(), String::new()));
    let stage = last(&place);
    assert_eq!(
        (&stage["name"], &stage["counts"]["sent"]),
        (&"relay".into(), &2.into())
    );
    assert!(place.path("relay/20240604_数据清洗/session.json").exists());

    // Nothing else is stopped by what is held back, or by a relay that is gone.
    place.put("relay/20240603_crawler/session.json", "theirs");
    let ran = night(&place, &[], &[]);
    ran.expect(3)
        .says(&["relay: not sent: 20240603_crawler: changed there"]);
    std::fs::rename(place.path("relay"), place.path("away")).unwrap();
    night(&place, &[], &[])
        .expect(1)
        .says(&["error: relay: the relay folder is not there"]);
    assert_eq!(stage_exit(&place, "backup"), 0);
}

fn stage_exit(place: &Place, name: &str) -> u64 {
    stage(&records(place).pop().unwrap(), name)["exit"]
        .as_u64()
        .unwrap()
}
