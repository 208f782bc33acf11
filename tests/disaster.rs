//! `wbhome restore --all`: the home is gone, and comes back from a store, and from the repository that survived.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it breaks what it has laid out, and says what does not fit"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::cold::{damage, files_in, kept};
use support::{Entry, Place, Ran, differences, tree};

/// The store of a test.
const STORE: &str = "cold/主页";

/// Where the home comes back.
const BACK: &str = "back/新家";

/// A later moment than that of the tests.
const LATER: &str = "2024-06-16T03:00:00Z";

trait Disaster {
    fn backed_up() -> Place;
    fn run_at(&self, now: &str, args: &[&str]) -> Ran;
    fn lose_home(&self) -> PathBuf;
    fn restore(&self, more: &[&str]) -> Ran;
    fn back(&self) -> PathBuf;
}

impl Disaster for Place {
    /// A home with sessions, an archive, agents, a folder of somebody's and odd names, backed up.
    fn backed_up() -> Place {
        let place = Place::with_sessions();
        place.session("20240601_旧任务", 1);
        place.ok(["index", "-q"]);
        place.ok([
            "label",
            "20240603_crawler",
            "--tag",
            "爬虫",
            "--project",
            "alpha",
            "-q",
        ]);
        place.ok(["archive", "20240601_旧任务", "-q"]);
        place.put_home("agents/研究/agent.yaml", "name: research\n");
        place.put_home("资料/a b/x.csv", "1,2\n");
        place.put_home("README.md", "mine\n");
        place.put_home(
            "sessions/20240603_crawler/logs/run.log",
            "a line\n".repeat(10_000),
        );
        let odd = place.put_home("sessions/20240603_crawler/artifacts/run.sh", "#!/bin/sh\n");
        std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let link = place
            .home()
            .join("sessions/20240603_crawler/artifacts/same.sh");
        std::fs::hard_link(&odd, link).unwrap();
        std::os::unix::fs::symlink("a b/x.csv", place.home().join("资料/link")).unwrap();
        place.date("20240603_crawler", 3);
        place.ok(["backup", "init", STORE, "-q"]);
        place.ok(["backup", "run", "-q"]);
        place
    }

    fn run_at(&self, now: &str, args: &[&str]) -> Ran {
        self.run_with(&[("WBHOME_NOW", now)], args)
    }

    /// The home is gone from its place; where it is now.
    fn lose_home(&self) -> PathBuf {
        let lost = self.path("lost");
        std::fs::rename(self.home(), &lost).unwrap();
        lost
    }

    fn restore(&self, more: &[&str]) -> Ran {
        let args = ["restore", "--all", "--from", STORE, "--to", BACK];
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        self.run_at(LATER, &args)
    }

    fn back(&self) -> PathBuf {
        self.path(BACK)
    }
}

#[track_caller]
fn same(one: &Path, other: &Path) {
    let (one, other) = (kept(one), kept(other));
    assert!(one == other, "{}", differences(&one, &other));
}

#[test]
fn the_home_comes_back_as_it_was() {
    let place = Place::backed_up();
    let lost = place.lose_home();
    let counts = |ran: &Ran| -> Vec<String> {
        let lines = ran.stdout.lines().filter(|line| line.contains(" files, "));
        lines.map(str::to_owned).collect()
    };
    let foreseen = counts(&place.restore(&["-n"]));
    let ran = place.restore(&[]);
    ran.expect(0);
    same(&lost, &place.back());
    assert_eq!(ran.stderr, "");
    assert_eq!(foreseen.len(), 2);
    assert_eq!(counts(&ran), foreseen);
    for part in [
        "sessions         4",
        "1 as archives",
        "relink",
        "backup adopt",
        "check",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:#?}");
    }
    // It is a home, and nothing is wrong in it.
    let back = place.back();
    let home = ["--home", back.to_str().unwrap()];
    place.run_at(LATER, &[home[0], home[1], "check"]).expect(0);
    let listed = place.json([home[0], home[1], "ls"]);
    assert_eq!(listed["stale"], false, "{listed}");
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 4);
    // And its archive is one.
    place.ok([home[0], home[1], "unarchive", "旧任务", "-q"]);
    // It may be restored into its own place, too, and then nothing has moved.
    let ran = place.run_at(
        LATER,
        &[
            "restore",
            "--all",
            "--from",
            STORE,
            "--to",
            support::home::HOME,
        ],
    );
    ran.expect(0);
    assert!(!ran.stdout.contains("relink"), "{ran:#?}");
    place.run_at(LATER, &["backup", "run"]).expect(0);
}

/// The packs of a session in the store, the oldest first.
fn packs(place: &Place, session: &str) -> Vec<PathBuf> {
    let folder = place.path(STORE).join("packs/sessions").join(session);
    files_in(folder)
}

#[test]
fn a_damaged_pack_is_told_and_the_one_before_it_comes_back() {
    let place = Place::backed_up();
    let before = tree(&place.home().join("sessions/20240604_数据清洗"));
    place.put_home("sessions/20240604_数据清洗/context/turn_002.json", "{}\n");
    place.run_at(LATER, &["backup", "run", "-q"]).expect(0);
    damage(packs(&place, "20240604_数据清洗").last().unwrap());
    place.lose_home();
    let ran = place.run_at(
        "2024-06-17T03:00:00Z",
        &["restore", "--all", "--from", STORE, "--to", BACK],
    );
    ran.expect(3).says(&[
        "a pack of 20240604_数据清洗 is of no use, packs/sessions/20240604_数据清洗/20240616T030000Z.tar.zst",
        "20240604_数据清洗 is as of 2024-06-15 12:00",
    ]);
    let back = tree(&place.back().join("sessions/20240604_数据清洗"));
    assert_eq!(before, back, "{}", differences(&before, &back));
}

#[test]
fn of_a_pack_that_is_the_only_one_comes_back_what_is_proved_good() {
    let place = Place::backed_up();
    let only = &packs(&place, "20240605_api_refactor")[0];
    // The end of the data: the manifest stays.
    let content = std::fs::read(only).unwrap();
    std::fs::write(only, &content[..content.len() - 10]).unwrap();
    place.lose_home();
    let ran = place.restore(&[]);
    ran.expect(3).says(&["20240605_api_refactor"]);
    let turn = "sessions/20240605_api_refactor/context/turn_001.json";
    assert!(place.back().join(turn).exists(), "{ran:#?}");
    // The others are not touched by it.
    assert!(
        place
            .back()
            .join("sessions/20240603_crawler/logs/run.log")
            .exists()
    );
}

#[test]
fn a_store_without_the_pack_of_the_home_still_has_the_labels() {
    let place = Place::backed_up();
    let id = place.home_text(".wbhome/home.json");
    let former = place.index();
    std::fs::remove_dir_all(place.path(STORE).join("packs/home")).unwrap();
    place.lose_home();
    let ran = place.restore(&[]);
    ran.expect(3).says(&["did not come back: the home itself"]);
    let index = std::fs::read(place.back().join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let tags = |index: &serde_json::Value| -> Vec<(String, String, String)> {
        let entries = index.as_array().unwrap().iter();
        entries
            .map(|e| {
                (
                    e["id"].to_string(),
                    e["tags"].to_string(),
                    e["status"].to_string(),
                )
            })
            .collect()
    };
    assert_eq!(tags(&index), tags(&former));
    let back = std::fs::read_to_string(place.back().join(".wbhome/home.json")).unwrap();
    let id_of = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["id"].clone();
    assert_eq!(id_of(&back), id_of(&id));
}

#[test]
fn an_older_state_comes_back_when_it_is_asked_for() {
    let place = Place::backed_up();
    let before = kept(&place.home());
    place.put_home("sessions/20240604_数据清洗/context/turn_002.json", "{}\n");
    place.session("20240616_新任务", 16);
    place.run_at(LATER, &["index", "-q"]).expect(0);
    place.run_at(LATER, &["backup", "run", "-q"]).expect(0);
    place.lose_home();
    let at = |when: &str| {
        let args = [
            "restore", "--all", "--from", STORE, "--to", BACK, "--at", when,
        ];
        place.run_at("2024-06-17T03:00:00Z", &args)
    };
    at("2024-06-01")
        .expect(1)
        .says(&["no snapshot as old as", "the oldest is of"]);
    assert!(!place.back().exists());
    at("2024-06-15 20:00").expect(0);
    let back = kept(&place.back());
    assert!(before == back, "{}", differences(&before, &back));
}

#[test]
fn what_was_removed_stays_away_and_what_was_lost_comes_back() {
    let place = Place::backed_up();
    place.ok(["rm", "20240605_api_refactor", "-q"]);
    std::fs::remove_dir_all(place.home().join("sessions/20240603_crawler")).unwrap();
    place.run_at(LATER, &["backup", "run", "-q"]);
    place.lose_home();
    let ran = place.run_at(
        "2024-06-17T03:00:00Z",
        &["restore", "--all", "--from", STORE, "--to", BACK],
    );
    ran.expect(0);
    assert!(!place.back().join("sessions/20240605_api_refactor").exists());
    assert!(
        place
            .back()
            .join("sessions/20240603_crawler/session.json")
            .exists()
    );
    assert!(
        ran.stdout
            .contains("the home itself had lost them, and they are back: 20240603_crawler"),
        "{ran:#?}"
    );
    let back = place.back();
    let listed = place.json(["--home", back.to_str().unwrap(), "ls"]);
    let sessions = listed["sessions"].as_array().unwrap();
    let crawler = sessions
        .iter()
        .find(|s| s["id"] == "20240603_crawler")
        .unwrap();
    assert_eq!(
        (&crawler["status"], &crawler["tags"]),
        (&"active".into(), &serde_json::json!(["爬虫"]))
    );
}

#[test]
fn nothing_is_restored_over_anything() {
    let place = Place::backed_up();
    let before = tree(&place.home());
    let to = |to: &str| place.run_at(LATER, &["restore", "--all", "--from", STORE, "--to", to]);
    to(support::home::HOME)
        .expect(1)
        .says(&["there is a home already"]);
    to("me/workbuddy_home/sessions/new")
        .expect(1)
        .says(&["inside another home"]);
    to("cold/主页/new").expect(1).says(&["inside the store"]);
    place.put("full/notes.md", "mine");
    to("full").expect(1).says(&["not empty", "notes.md"]);
    to("full/notes.md")
        .expect(1)
        .says(&["there is a file already"]);
    assert_eq!(before, tree(&place.home()));
    place
        .restore(&["--state-to", BACK])
        .expect(1)
        .says(&["lie in each other"]);
    let nothing = place.run_at(
        LATER,
        &["restore", "--all", "--from", "nowhere", "--to", BACK],
    );
    nothing.expect(1).says(&["no backup store"]);
    place.run(["restore", "--all", "--from", STORE]).expect(2);
    let alone = ["restore", "--all", "--from", STORE, "--state-to", "状态"];
    let ran = place.run_at(LATER, &alone);
    ran.expect(1)
        .says(&["holds nothing of the agent application"]);
    assert!(!place.path("状态").exists());
    place
        .run(["restore", "--from", STORE])
        .expect(2)
        .says(&["--all"]);
    assert!(!place.back().exists());
    // A fresh filesystem is empty but for this.
    std::fs::create_dir_all(place.back().join("lost+found")).unwrap();
    place.restore(&["-n"]).expect(0);
    assert!(!place.back().join("index.json").exists());
    place.restore(&[]).expect(0);
    assert!(place.back().join("lost+found").exists());
}

#[test]
fn a_full_disk_leaves_nothing_half_done() {
    let place = Place::backed_up();
    let big = vec![1; 3 << 20];
    place.put_home("sessions/20240603_crawler/artifacts/big.bin", big);
    place.run_at(LATER, &["backup", "run", "-q"]).expect(0);
    let lost = place.lose_home();
    let ran = Ran::of(
        place
            .command()
            .env("WBHOME_NOW", LATER)
            .arg("-c")
            .args(["restore", "--all"])
            .args(["--from", STORE, "--to", BACK])
            .limited()
            .output()
            .unwrap(),
    );
    ran.expect(1).says(&["big.bin"]);
    assert!(!place.back().exists(), "{:?}", tree(&place.back()).keys());
    place.restore(&[]).expect(0);
    same(&lost, &place.back());
}

trait Limited {
    fn limited(&self) -> std::process::Command;
}

impl Limited for std::process::Command {
    /// The same command under a limit for the length of files, which works as a full disk does.
    fn limited(&self) -> std::process::Command {
        let mut limited = std::process::Command::new("bash");
        limited
            .arg("-c")
            .arg("trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"")
            .arg(self.get_program())
            .args(self.get_args().filter(|arg| *arg != "-c"))
            .env_clear()
            .envs(self.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .stdin(std::process::Stdio::null());
        if let Some(folder) = self.get_current_dir() {
            limited.current_dir(folder);
        }
        limited
    }
}

/// A home whose store has what the application had, too.
#[cfg(feature = "failpoints")]
fn with_state() -> Place {
    let place = Place::with_sessions();
    for (file, text) in [
        ("settings.json", "{}"),
        ("plans/计划.md", "plan"),
        ("memory/a.md", "a"),
        ("projects/Users-a/1.jsonl", "{}\n"),
    ] {
        place.put(format!("me/.workbuddy/{file}"), text);
    }
    let set = place.home_text("wbhome.toml");
    let set = set.replace("\n[state]\n", "\n[state]\ndir = \"~/.workbuddy\"\n");
    place.put_home("wbhome.toml", set);
    place.ok(["backup", "init", STORE, "-q"]);
    place.ok(["backup", "run", "-q"]);
    place
}

#[cfg(feature = "failpoints")]
#[test]
fn a_restore_that_was_killed_while_the_state_folder_moved_up_is_gone_on_with() {
    let place = with_state();
    let was = tree(&place.path("me/.workbuddy"));
    for point in [
        "restore-all.state-ready",
        "restore-all.laid",
        "restore-all.ready",
        "restore-all.state-moved",
        "restore-all.moved",
    ] {
        let args = [
            "restore",
            "--all",
            "--from",
            STORE,
            "--to",
            BACK,
            "--state-to",
            "状态",
        ];
        let env = [("WBHOME_NOW", LATER), ("WBHOME_FAILPOINT", point)];
        assert_eq!(place.run_with(&env, &args).code, None, "{point}");
        place.restore(&["--state-to", "状态"]).expect(0);
        let is = tree(&place.path("状态"));
        assert!(was == is, "{point}: {}", differences(&was, &is));
        for folder in [place.path("状态"), place.back()] {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn what_a_killed_restore_has_laid_is_not_for_another_to_take_away() {
    let place = with_state();
    let was = tree(&place.path("me/.workbuddy"));
    let big = vec![1; 3 << 20];
    place.put_home("sessions/20240603_crawler/artifacts/big.bin", big);
    place.run_at(LATER, &["backup", "run", "-q"]).expect(0);
    let env = [
        ("WBHOME_NOW", LATER),
        ("WBHOME_FAILPOINT", "restore-all.ready"),
    ];
    let to = |to| {
        let args = ["restore", "--all", "--from", STORE, "--to", to];
        [&args[..], &["--state-to", "状态"]].concat()
    };
    assert_eq!(place.run_with(&env, &to(BACK)).code, None);
    let laid = tree(&place.path("状态"));
    // One of another snapshot, and one that fails.
    let older = [&to("other")[..], &["--at", "2024-06-15 20:00"]].concat();
    place
        .run_at(LATER, &older)
        .expect(1)
        .says(&["was stopped there", "the same command again finishes it"]);
    let mut full = place.command();
    full.env("WBHOME_NOW", LATER).args(to("other"));
    Ran::of(full.limited().output().unwrap()).expect(1);
    assert!(!place.path("other").exists());
    let still = tree(&place.path("状态"));
    assert!(laid == still, "{}", differences(&laid, &still));
    place.restore(&["--state-to", "状态"]).expect(0);
    let is = tree(&place.path("状态"));
    assert!(was == is, "{}", differences(&was, &is));
}

#[test]
fn a_repository_of_another_home_is_not_laid_over() {
    let place = with_history();
    place.lose_home();
    let other = Place::with_sessions();
    other.put_home("sessions/20240603_crawler/memory/notes.md", "another's\n");
    other.ok(["commit", "-q"]);
    let theirs = other.home();
    let git = ["--git", theirs.to_str().unwrap()];
    place
        .restore(&git)
        .expect(1)
        .says(&["may be another home's", "--force"]);
    assert!(!place.back().exists());
    place.restore(&[&git[..], &["--force"]].concat()).expect(0);
}

#[cfg(feature = "failpoints")]
#[test]
fn a_killed_restore_is_no_home_and_the_next_one_is_whole() {
    let place = Place::backed_up();
    let lost = place.lose_home();
    for point in [
        "restore-all.begun",
        "restore-all.laid",
        "restore-all.ready",
        "restore-all.moved",
        "restore-all.home",
    ] {
        let args = ["restore", "--all", "--from", STORE, "--to", BACK];
        let env = [("WBHOME_NOW", LATER), ("WBHOME_FAILPOINT", point)];
        let ran = place.run_with(&env, &args);
        assert_eq!(ran.code, None, "{point}: {ran:?}");
        let is_home = place.back().join(".wbhome/home.json").exists();
        assert_eq!(is_home, point == "restore-all.home", "{point}");
        let ran = place.restore(&[]);
        ran.expect(0);
        same(&lost, &place.back());
        assert!(!place.back().join(".wbhome-restoring").exists());
        std::fs::remove_dir_all(place.back()).unwrap();
    }
}

/// A home with a history, backed up, and worked in since.
fn with_history() -> Place {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/memory/old.md", "old\n");
    place.put_home("sessions/20240603_crawler/memory/notes.md", "one\n");
    place.ok(["commit", "-q"]);
    place.ok(["backup", "init", STORE, "-q"]);
    place
        .run_at("2024-06-15T13:00:00Z", &["backup", "run", "-q"])
        .expect(0);
    place.put_home("sessions/20240603_crawler/memory/notes.md", "two\n");
    place.put_home(
        "sessions/20240603_crawler/context/turn_002.json",
        "{\"turn\": 2}\n",
    );
    std::fs::remove_file(place.home().join("sessions/20240603_crawler/memory/old.md")).unwrap();
    place.session("20240616_晚上的", 16);
    place
        .run_at("2024-06-15T20:00:00Z", &["index", "-q"])
        .expect(0);
    place
        .run_at("2024-06-15T20:00:00Z", &["commit", "-q"])
        .expect(0);
    place
}

#[test]
fn newer_text_in_a_surviving_repository_is_laid_over() {
    let place = with_history();
    let log = place.git(&["log", "--format=%H %s"]);
    let lost = place.lose_home();
    let ran = place.restore(&["--git", "lost"]);
    ran.expect(0);
    let read = |rel: &str| std::fs::read_to_string(place.back().join(rel)).unwrap();
    assert_eq!(read("sessions/20240603_crawler/memory/notes.md"), "two\n");
    assert_eq!(
        read("sessions/20240603_crawler/context/turn_002.json"),
        "{\"turn\": 2}\n"
    );
    // Nothing goes because git has it not any more.
    assert_eq!(read("sessions/20240603_crawler/memory/old.md"), "old\n");
    // A session that only git has: its text.
    assert!(read("sessions/20240616_晚上的/context/turn_001.json").contains("turn"));
    for part in [
        "text only        1",
        "20240616_晚上的",
        "old.md",
        "memory/notes.md",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:#?}");
    }
    // All else is as it was; what came from git has the time of its commit.
    let (was, is) = (kept(&lost), kept(&place.back()));
    let committed = 1_718_481_600;
    for (name, entry) in &is {
        let name_ = String::from_utf8_lossy(name);
        let newer = [
            "notes.md",
            "turn_002.json",
            "index.json",
            "20240616_晚上的",
            "old.md",
        ];
        if newer.iter().any(|part| name_.contains(part)) {
            if entry.kind == 'f' && !name_.ends_with("old.md") && !name_.ends_with("index.json") {
                assert_eq!(entry.mtime, (committed, 0), "{name_}");
            }
            continue;
        }
        let same = was.get(name);
        let time = |e: Option<&Entry>| e.map(|e| (e.kind, e.mode, e.content.clone()));
        assert_eq!(time(same), time(Some(entry)), "{name_}");
    }
    // The history goes on.
    let back = place.back();
    let git = support::git::git_in(&back, &["log", "--format=%H %s"]);
    assert_eq!(git.stdout, log);
    support::git::git_in(&back, &["fsck", "--full"]).expect(0);
    let home = back.to_str().unwrap();
    place.run_at(LATER, &["--home", home, "commit"]).expect(0);
    let status = support::git::git_in(&back, &["status", "--porcelain"]);
    assert_eq!(status.stdout, "");
    place.run_at(LATER, &["--home", home, "check"]).expect(0);
    let index = place.json(["--home", home, "index", "-n"]);
    assert_eq!(index["added"], serde_json::json!([]), "{index}");
}

#[test]
fn a_repository_elsewhere_belongs_to_the_new_home() {
    let place = Place::with_home();
    let config = place.home_text("wbhome.toml");
    let elsewhere = place.path("git/历史");
    std::fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    let set = format!("[git]\ndir = {:?}\n", elsewhere.to_str().unwrap());
    let config = config.replacen("[git]\n", &set, 1);
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    place.put_home("wbhome.toml", config);
    place.session("20240603_crawler", 3);
    place.ok(["index", "-q"]);
    place.ok(["init", "-q"]);
    place.ok(["commit", "-q"]);
    place.ok(["backup", "init", STORE, "-q"]);
    place.ok(["backup", "run", "-q"]);
    place.lose_home();
    place.restore(&["--git", "git/历史"]).expect(0);
    let link = std::fs::read_to_string(place.back().join(".git")).unwrap();
    assert!(link.contains("git/历史"), "{link}");
    let back = place.back();
    place.put(
        format!("{BACK}/sessions/20240603_crawler/memory/new.md"),
        "new\n",
    );
    place
        .run_at(LATER, &["--home", back.to_str().unwrap(), "commit", "-q"])
        .expect(0);
    let log = support::git::git_in(&back, &["log", "--oneline"]);
    assert_eq!(log.stdout.lines().count(), 2, "{log:?}");
}

/// The blocks of commands in a part of `docs/disaster.md`, with the paths of a test.
fn documented(place: &Place, from: &str, until: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/disaster.md");
    let text = std::fs::read_to_string(path).unwrap();
    let part = text
        .split(from)
        .nth(1)
        .unwrap()
        .split(until)
        .next()
        .unwrap();
    let blocks = part.split("\n```sh\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|block| block.split("\n```").next().unwrap())
        .collect();
    assert!(!blocks.is_empty());
    let quoted = |rel: &str| format!("'{}'", place.path(rel).display());
    blocks
        .join("\n")
        .replace("/mnt/cold/wbhome", &quoted(STORE))
        .replace("~/workbuddy_home", &quoted("by hand/家"))
        .replace("~/workbuddy_state", &quoted("by hand/state"))
        .replace("/path/to/old/home", &quoted("lost"))
}

#[track_caller]
fn by_hand(place: &Place, commands: &str) {
    std::fs::create_dir_all(place.path("by hand")).unwrap();
    let commands = format!("set -euo pipefail\n{commands}\n");
    let ran = std::process::Command::new("bash")
        .args(["-c", &commands])
        .env("HOME", place.user_home())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    Ran::of(ran).expect(0);
}

#[test]
fn the_page_leads_to_the_same_home_with_stock_tools() {
    let tools = ["bash", "tar", "zstd", "jq"];
    if !tools.iter().all(|tool| support::has_tool(tool)) {
        return;
    }
    let place = Place::backed_up();
    let lost = place.lose_home();
    by_hand(
        &place,
        &documented(&place, "\n## From the store\n", "\n### Then what is newer"),
    );
    // What is stripped from the names does not give its time to the home's own folder.
    let without_top = |root: &Path| {
        let mut tree = kept(root);
        tree.remove(&b""[..]);
        tree
    };
    place.restore(&[]).expect(0);
    let hand = without_top(&place.path("by hand/家"));
    for other in [without_top(&lost), without_top(&place.back())] {
        assert!(other == hand, "{}", differences(&other, &hand));
    }
    let home = place.path("by hand/家");
    place
        .run_at(LATER, &["--home", home.to_str().unwrap(), "check"])
        .expect(0);
}

#[test]
fn and_to_the_same_text_out_of_the_repository() {
    let tools = ["bash", "tar", "zstd", "jq", "git"];
    if !tools.iter().all(|tool| support::has_tool(tool)) {
        return;
    }
    let place = with_history();
    place.lose_home();
    let whole = documented(&place, "\n## From the store\n", "\n## From the repository");
    by_hand(&place, &whole);
    place.restore(&["--git", "lost"]).expect(0);
    let content = |root: &Path| -> BTreeMap<Vec<u8>, (char, String)> {
        let files = kept(root)
            .into_iter()
            .filter(|(_, entry)| entry.kind != 'd');
        files
            .filter(|(name, _)| !name.ends_with(b"index.json") && !name.starts_with(b"projects/"))
            .map(|(name, entry)| (name, (entry.kind, entry.content)))
            .collect()
    };
    assert_eq!(content(&place.back()), content(&place.path("by hand/家")));
}

/// The newest snapshot, as JSON, with its path.
fn snapshot(place: &Place) -> (PathBuf, serde_json::Value) {
    let folder = place.path(STORE).join("snapshots");
    let all = std::fs::read_dir(folder).unwrap();
    let newest = all.map(|entry| entry.unwrap().path()).max().unwrap();
    let value = serde_json::from_slice(&std::fs::read(&newest).unwrap()).unwrap();
    (newest, value)
}

fn item<'v>(snapshot: &'v mut serde_json::Value, name: &str) -> &'v mut serde_json::Value {
    let items = snapshot["items"].as_array_mut().unwrap();
    items.iter_mut().find(|item| item["name"] == name).unwrap()
}

#[test]
fn of_a_partial_pack_the_complete_one_before_it_comes_and_the_text_since() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/memory/notes.md", "one\n");
    place.ok(["commit", "-q"]);
    place.ok(["backup", "init", STORE, "-q"]);
    place.ok(["backup", "run", "-q"]);
    let former = item(&mut snapshot(&place).1, "20240603_crawler")["newest"].clone();
    place.put_home("sessions/20240603_crawler/memory/notes.md", "two\n");
    place.put_home("sessions/20240603_crawler/artifacts/x.csv", "1\n");
    place
        .run_at("2024-06-15T20:00:00Z", &["commit", "-q"])
        .expect(0);
    place
        .run_at("2024-06-15T21:00:00Z", &["backup", "run", "-q"])
        .expect(0);
    // As a run leaves it in which a file could not be read.
    let (path, mut newest) = snapshot(&place);
    let partial = item(&mut newest, "20240603_crawler");
    partial["newest"]["unreadable"] = 1.into();
    partial["complete"] = former;
    std::fs::write(path, newest.to_string()).unwrap();
    place.lose_home();
    let ran = place.restore(&[]);
    ran.expect(3).says(&[
        "20240603_crawler is as of 2024-06-15 12:00",
        "1 file could not be read when it was packed",
        "packs/sessions/20240603_crawler/20240615T210000Z.tar.zst",
    ]);
    let notes = place
        .back()
        .join("sessions/20240603_crawler/memory/notes.md");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\n");
    std::fs::remove_dir_all(place.back()).unwrap();
    place.restore(&["--git", "lost"]).expect(3);
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "two\n");
}

#[test]
fn the_state_folder_goes_where_it_is_told_and_nowhere_else() {
    if !["tar", "zstd"].iter().all(|tool| support::has_tool(tool)) {
        return;
    }
    let place = Place::backed_up();
    // A state folder as it is packed: settings, databases, plans, and the conversations of a work folder.
    place.put("s/.workbuddy/settings.json", "{}");
    place.put("s/.workbuddy/skills/a/x.md", "x");
    place.put("s/.workbuddy/projects/loose.json", "1");
    place.put("d/.workbuddy/workbuddy.db", "rows");
    place.put("p/.workbuddy/plans/计划.md", "plan");
    place.put("t/Users-a-x/1.jsonl", "{}\n");
    let (path, mut newest) = snapshot(&place);
    let items = newest["items"].as_array_mut().unwrap();
    let mut add = |from: &str, top: &str, folder: &str, mut item: serde_json::Value| {
        let file = format!("packs/{folder}/20240615T120000Z.tar.zst");
        let pack = place.path(STORE).join(&file);
        std::fs::create_dir_all(pack.parent().unwrap()).unwrap();
        let (from, out) = (place.path(from), pack.to_str().unwrap().to_owned());
        support::home::tool(
            "tar",
            &[
                "--zstd",
                "--format=posix",
                "-cf",
                &out,
                "-C",
                from.to_str().unwrap(),
                top,
            ],
        );
        item["standing"] = "present".into();
        item["newest"] = serde_json::json!({
            "file": file, "form": "packed", "at": "2024-06-15T12:00:00Z",
            "bytes": std::fs::metadata(&pack).unwrap().len(), "blake3": support::digest(&pack),
            "files": 1, "content": 1, "seen": null,
        });
        items.push(item);
    };
    let state =
        |part: &str| serde_json::json!({"kind": "state", "part": part, "state": ".workbuddy"});
    add("s", ".workbuddy", "state-settings/x", state("settings"));
    add("d", ".workbuddy", "state-databases/x", state("databases"));
    add("p", ".workbuddy", "state/x", state("daily"));
    let talk =
        serde_json::json!({"kind": "transcripts", "name": "Users-a-x", "state": ".workbuddy"});
    add("t", "Users-a-x", "state-projects/x/Users-a-x", talk);
    newest["home"]["state"] =
        serde_json::json!([{"name": ".workbuddy", "path": "/old/.workbuddy"}]);
    std::fs::write(path, newest.to_string()).unwrap();
    place.lose_home();

    let before = tree(&place.user_home());
    let ran = place.restore(&[]);
    ran.expect(0);
    assert!(ran.stdout.contains("--state-to DIR"), "{ran:#?}");
    assert_eq!(before, tree(&place.user_home()));
    std::fs::remove_dir_all(place.back()).unwrap();
    let ran = place.restore(&["--state-to", "out/状态"]);
    ran.expect(0);
    for (rel, content) in [
        ("settings.json", "{}"),
        ("skills/a/x.md", "x"),
        ("projects/loose.json", "1"),
        ("projects/Users-a-x/1.jsonl", "{}\n"),
        ("workbuddy.db", "rows"),
        ("plans/计划.md", "plan"),
    ] {
        assert_eq!(place.text(format!("out/状态/{rel}")), content, "{rel}");
    }
    let was = tree(&place.path("s/.workbuddy"));
    let is = tree(&place.path("out/状态"));
    for rel in ["skills", "skills/a", "settings.json", "skills/a/x.md"] {
        assert_eq!(was[rel.as_bytes()], is[rel.as_bytes()], "{rel}");
    }
    for part in ["/old/.workbuddy", "cleanupPeriodDays"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:#?}");
    }
    assert_eq!(before, tree(&place.user_home()));
    // Alone, for a home that is there.
    let home = tree(&place.back());
    let alone = |more: &[&str]| {
        let args = [
            "restore",
            "--all",
            "--from",
            STORE,
            "--state-to",
            "alone/状态",
        ];
        place.run_at(LATER, &[&args[..], more].concat())
    };
    alone(&["-n"]).expect(0);
    assert!(!place.path("alone").exists());
    let ran = alone(&[]);
    ran.expect(0);
    assert!(!ran.stdout.contains("Next:"), "{ran:#?}");
    let alone_is = tree(&place.path("alone/状态"));
    assert!(is == alone_is, "{}", differences(&is, &alone_is));
    assert!(home == tree(&place.back()));
    alone(&[]).expect(1).says(&["not empty"]);
    alone(&["--git", "lost"]).expect(2).says(&["--git"]);
}
