//! `wbhome commit`: session text in git, complete, and in a repository that any git understands.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use support::Place;
use support::git::git_in;

fn ids(place: &Place) -> String {
    place.git(&["log", "--format=%H"])
}

/// Commit ids depend on what else the machine says of itself.
fn without_ids(text: &str) -> String {
    let mut out = String::new();
    let word = |word: &str| word.len() == 10 && word.bytes().all(|b| b.is_ascii_hexdigit());
    for part in text.split_inclusive(' ') {
        match word(part.trim()) {
            true => out.push_str("[ID] "),
            false => out.push_str(part),
        }
    }
    out
}

#[test]
fn a_day_of_work_is_told_in_the_history() {
    let place = Place::with_sessions();
    assert_snapshot!(without_ids(&place.run(["commit"]).shown(&place)), @r"
    exit: 0
    --- stdout
    3 sessions: +3 turns, 3 files
      main [ID]   9 files, 2.8 kB new
    --- stderr
    ");
    place.git_is_content();
    assert_eq!(
        place.committed(),
        [
            ".gitignore",
            "index.json",
            "sessions/20240603_crawler/context/turn_001.json",
            "sessions/20240603_crawler/session.json",
            "sessions/20240604_数据清洗/context/turn_001.json",
            "sessions/20240604_数据清洗/session.json",
            "sessions/20240605_api_refactor/context/turn_001.json",
            "sessions/20240605_api_refactor/session.json",
            "wbhome.toml",
        ]
    );
    let before = ids(&place);
    assert_snapshot!(place.run(["commit"]).shown(&place), @r"
    exit: 0
    --- stdout
    Nothing has changed since the last commit, which holds 9 files.
    --- stderr
    ");
    assert_eq!(ids(&place), before);

    place.put_home("sessions/20240603_crawler/context/turn_002.json", "{}\n");
    place.put_home("sessions/20240603_crawler/context/turn_003.json", "{}\n");
    place.put_home(
        "sessions/20240603_crawler/context/turn_001.json",
        "{\"turn\": 1}\n",
    );
    place.put_home("sessions/20240603_crawler/checkpoint.md", "# 到这里\n");
    place.put_home("sessions/20240604_数据清洗/memory/notes.md", "记住\n");
    std::fs::remove_file(
        place
            .home()
            .join("sessions/20240605_api_refactor/context/turn_001.json"),
    )
    .unwrap();
    place.put_home("agents/researcher/agent.yaml", "name: researcher\n");
    let dry = place.run(["commit", "-n"]);
    assert_eq!(ids(&place), before);
    assert_snapshot!(dry.shown(&place), @r"
    exit: 0
    --- stdout
    3 sessions: +2 ~1 -1 turns, 1 memory, 1 checkpoint
      7 files would be committed
    Nothing was changed.
    --- stderr
    ");
    assert_snapshot!(without_ids(&place.run(["commit", "-v"]).shown(&place)), @r"
    exit: 0
    --- stdout
    3 sessions: +2 ~1 -1 turns, 1 memory, 1 checkpoint
      main [ID]   7 files, 1.2 kB new
      20240603_crawler: +2 ~1 turns, 1 checkpoint
      20240604_数据清洗: 1 memory
      20240605_api_refactor: -1 turn
    --- stderr
    ");
    assert_snapshot!(place.git(&["log", "-1", "--format=%an <%ae>%n%ad%n%B", "--date=iso"]).replace(
        &format!("wbhome@r"
    wbhome <wbhome@[HOST]>
    2024-06-15 12:00:00 +0000
    3 sessions: +2 ~1 -1 turns, 1 memory, 1 checkpoint

    20240603_crawler: +2 ~1 turns, 1 checkpoint
    20240604_数据清洗: 1 memory
    20240605_api_refactor: -1 turn
    agents: 1 file
    "}\n").as_bytes())
                    .unwrap();
            }
        });
        for _ in 0..50 {
            place.run(["commit", "-q"]).expect(0);
        }
        done.store(true, Ordering::Relaxed);
    });
    let last = std::fs::read(&path).unwrap();
    let mut versions = 0;
    for id in ids(&place).lines() {
        let held = support::git::command(&place.home(), &["show", &format!("{id}:{turn}")])
            .output()
            .unwrap();
        if held.status.success() {
            versions += 1;
            assert!(last.starts_with(&held.stdout), "{id}");
        }
    }
    assert!(versions > 10, "{versions}");
    place.fsck();
}

#[test]
fn many_small_commits_stay_few_files() {
    let place = Place::with_sessions();
    let most = (0..150).map(|n| {
        place.put_home(
            "sessions/20240603_crawler/memory/notes.md",
            format!("{n}\n"),
        );
        place.ok(["commit", "-q"]);
        place.names(".git").len()
    });
    // Unfolded, they would be twice as many as the commits.
    assert!(most.max().unwrap() < 140);
    assert_eq!(ids(&place).lines().count(), 150);
    place.git_is_content();
    let held = place.ok(["commit", "--consolidate"]);
    assert!(held.contains("The history takes"), "{held}");
    assert!(place.names(".git/objects/pack").len() <= 4);
    place.git_is_content();
}

/// Without git on the machine the repository is kept small all the same.
#[test]
fn consolidation_needs_no_git() {
    let place = Place::with_sessions();
    for n in 0..30 {
        place.put_home(
            "sessions/20240603_crawler/memory/notes.md",
            format!("{n}\n"),
        );
        place.git(&["add", "sessions"]);
        place.git(&["commit", "-qm", "by hand"]);
    }
    place.put_home("sessions/20240603_crawler/memory/notes.md", "unreached\n");
    place.git(&["stash", "-q"]);
    let loose = place.names(".git/objects").len();
    assert!(loose > 100);
    let log = ids(&place);
    let ran = support::Ran::of(
        place
            .command()
            .env("PATH", "/nonexistent")
            .args(["commit", "-q", "--consolidate"])
            .output()
            .unwrap(),
    );
    ran.expect(0);
    assert!(ids(&place).contains(&log));
    assert!(
        place.names(".git/objects/pack").len() <= 3,
        "{:?}",
        place.names(".git/objects")
    );
    assert!(
        !place
            .names(".git/objects")
            .iter()
            .any(|name| name.len() > 40 && !name.contains("pack"))
    );
    place.fsck();
    place.git(&["stash", "pop", "-q"]);
    assert_eq!(
        place.home_text("sessions/20240603_crawler/memory/notes.md"),
        "unreached\n"
    );
}

#[cfg(feature = "failpoints")]
mod killed {
    use super::*;

    /// Dead at each step: git finds nothing missing, and the next commit makes up for it.
    #[test]
    fn at_each_step() {
        for point in [
            "commit.locked",
            "commit.packed",
            "commit.indexed",
            "commit.named",
            "commit.folding",
        ] {
            for first in [true, false] {
                let place = Place::with_sessions();
                if !first {
                    for n in 0..25 {
                        place.put_home(
                            "sessions/20240603_crawler/memory/notes.md",
                            format!("{n}\n"),
                        );
                        place.ok(["commit", "-q"]);
                    }
                }
                if point == "commit.folding" && first {
                    continue;
                }
                place.put_home("sessions/20240603_crawler/memory/notes.md", "last\n");
                let ran = place.run_with(&[("WBHOME_FAILPOINT", point)], &["commit", "-q"]);
                assert_ne!(ran.code, Some(0), "{point} {first}");
                if ran.code != Some(0) && place.home().join(".git/refs/heads/main").exists() {
                    place.fsck();
                }
                place.run(["commit", "-q"]).expect(0);
                assert_eq!(
                    place.git(&["show", "HEAD:sessions/20240603_crawler/memory/notes.md"]),
                    "last\n"
                );
                place.git_is_content();
                assert!(!place.home().join(".git/index.lock").exists());
            }
        }
    }
}
