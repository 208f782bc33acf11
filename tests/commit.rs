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
use support::git::{command, git_in};

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
      main [ID]   9 files, 2.9 kB new
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
    let message = place.git(&["log", "-1", "--format=%an <%ae>%n%ad%n%B", "--date=iso"]);
    let host = rustix::system::uname()
        .nodename()
        .to_str()
        .unwrap()
        .to_owned();
    assert_snapshot!(message.replace(&host, "[HOST]"), @r"
    wbhome <wbhome@[HOST]>
    2024-06-15 12:00:00 +0000
    3 sessions: +2 ~1 -1 turns, 1 memory, 1 checkpoint

    20240603_crawler: +2 ~1 turns, 1 checkpoint
    20240604_数据清洗: 1 memory
    20240605_api_refactor: -1 turn
    agents: 1 file
    ");
    place.git_is_content();

    place.put_home("sessions/20240604_数据清洗/memory/notes.md", "忘了\n");
    place.ok(["commit", "-q", "-m", "改了\n\n为什么"]);
    assert_eq!(
        place.git(&["log", "-1", "--format=%B"]).trim(),
        "改了\n\n为什么"
    );
    place.run(["commit", "-m", " "]).expect(2);
}

/// The mistakes of every day, noticed a commit too late: found through the history, and back by one command each.
#[test]
fn a_deleted_turn_and_an_overwritten_memory_come_back() {
    let place = Place::with_sessions();
    let (turn, notes) = ("context/turn_001.json", "memory/笔记.md");
    let at = |name: &str| format!("sessions/20240603_crawler/{name}");
    place.put_home(&at(notes), "价格在第三列\n");
    place.ok(["commit", "-q"]);
    let before = place.home_text(&at(turn));
    std::fs::remove_file(place.home().join(at(turn))).unwrap();
    place.put_home(&at(notes), "(empty)\n");
    place.ok(["commit", "-q"]);

    let history = place.ok(["history", "crawler"]);
    assert!(
        history.contains("-turn_001") && history.contains("~memory/笔记.md"),
        "{history}"
    );
    let of_notes = place.json(["history", "crawler/memory/笔记.md"]);
    assert_eq!(of_notes["total"], 2);
    let first = of_notes["commits"][1]["short"].as_str().unwrap();
    place.ok([
        "restore",
        "crawler/memory/笔记.md",
        "--from",
        "git",
        "--at",
        first,
    ]);
    assert_eq!(place.home_text(&at(notes)), "价格在第三列\n");
    // The last commit has the turn no more; the message names the one that does.
    let refused = place.run(["restore", "crawler/context/turn_001.json", "--from", "git"]);
    refused
        .expect(1)
        .says(&[&format!("the last one that does: --at {first}")]);
    place.ok([
        "restore",
        "crawler/context/turn_001.json",
        "--from",
        "git",
        "--at",
        first,
    ]);
    assert_eq!(place.home_text(&at(turn)), before);
}

/// What a session may hold that git alone would get wrong.
#[test]
fn every_kind_of_file_is_right() {
    let place = Place::with_sessions();
    let s = "sessions/20240603_crawler";
    let root = place.home().join(s);
    // Line ends, and attributes that would change them.
    place.put_home(
        &format!("{s}/artifacts/.gitattributes"),
        "* text eol=crlf\n*.md filter=evil ident\n",
    );
    place.put_home(&format!("{s}/artifacts/crlf.txt"), "one\r\ntwo\r\n");
    place.put_home(&format!("{s}/artifacts/lf.md"), "one\ntwo $Id$\n");
    place.git(&["config", "filter.evil.clean", "rev"]);
    place.git(&["config", "filter.evil.smudge", "rev"]);
    place.git(&["config", "core.autocrlf", "true"]);
    // Names.
    let names = [
        "带 空格的.md",
        "emoji 🦀.md",
        "new\nline.md",
        "\"quoted\".md",
        "tab\t.md",
        "-dash",
        "back\\slash.md",
        " lead",
        "trail ",
    ];
    for name in names {
        place.put_home(&format!("{s}/artifacts/{name}"), name);
    }
    // Modes and links.
    let script = place.put_home(&format!("{s}/artifacts/run.sh"), "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("run.sh", root.join("artifacts/link")).unwrap();
    std::os::unix::fs::symlink("/nowhere/到", root.join("artifacts/dangling")).unwrap();
    std::os::unix::fs::symlink("..", root.join("artifacts/loop")).unwrap();
    std::os::unix::fs::symlink("x", root.join("artifacts/.gitmodules")).unwrap();
    // What is left out.
    place.put_home(&format!("{s}/artifacts/picture [1]*.png"), b"\x89PNG\0\0");
    place.put_home(&format!("{s}/artifacts/bin\nary "), b"\0");
    place.put_home(&format!("{s}/artifacts/.GIT"), "no");
    place.put_home(&format!("{s}/artifacts/git~1"), "no");
    let long = format!("{} text\n", "x".repeat(3000));
    place.put_home(&format!("{s}/artifacts/deep/.gitattributes"), long);
    let large = std::fs::File::create(root.join("artifacts/large.jsonl")).unwrap();
    large.set_len(4 << 30).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, root.join("artifacts/pipe"), kind, mode, 0).unwrap();
    // What is ignored, here and deeper.
    place.put_home(&format!("{s}/logs/run.log"), "log\n");
    place.put_home(&format!("{s}/artifacts/table.csv"), "a,b\n");
    place.put_home(
        &format!("{s}/artifacts/.gitignore"),
        "*.tmp\n!keep.tmp\n/only-here\n",
    );
    for name in ["a.tmp", "keep.tmp", "only-here", "deep/only-here"] {
        place.put_home(&format!("{s}/artifacts/{name}"), "");
    }

    let ran = place.run(["commit", "-v"]);
    ran.expect(0);
    for said in [
        "2 binary",
        "1 larger than",
        "4 no name or content for a repository",
        "1 no file",
    ] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
    place.git_is_content();
    let held = place.committed();
    let taken = [
        "crlf.txt",
        "lf.md",
        "run.sh",
        "link",
        "dangling",
        "loop",
        "keep.tmp",
        "deep/only-here",
        ".gitattributes",
    ];
    for name in names.iter().chain(&taken) {
        assert!(
            held.contains(&format!("{s}/artifacts/{name}")),
            "{name} in {held:?}"
        );
    }
    for name in [
        "a.tmp",
        "only-here",
        "table.csv",
        "pipe",
        "large.jsonl",
        ".GIT",
        "git~1",
        ".gitmodules",
        "deep/.gitattributes",
    ] {
        assert!(
            !held.contains(&format!("{s}/artifacts/{name}")),
            "{name} in {held:?}"
        );
    }
    let tree = place.git(&[
        "ls-tree",
        "HEAD",
        &format!("{s}/artifacts/run.sh"),
        &format!("{s}/artifacts/link"),
    ]);
    assert!(tree.contains("100755") && tree.contains("120000"), "{tree}");
    clone_holds(&place, &held);
}

/// A clone, as `docs/disaster.md` says to make it, has every file byte for byte.
fn clone_holds(place: &Place, held: &[String]) {
    let (from, to) = (place.home(), place.path("clone"));
    let (of, at) = (from.to_str().unwrap(), to.to_str().unwrap());
    // The person's own configuration would change line ends.
    place.put("global", "[core]\n\tautocrlf = true\n");
    let git = |folder: &Path, args: &[&str]| {
        let ran = support::git::command(folder, args)
            .env("GIT_CONFIG_GLOBAL", place.path("global"))
            .output()
            .unwrap();
        support::Ran::of(ran).expect(0);
    };
    let clone = ["clone", "-q", "--no-checkout", "-c", "core.autocrlf=false"];
    git(&place.root(), &[&clone[..], &[of, at]].concat());
    std::fs::create_dir_all(to.join(".git/info")).unwrap();
    place.put(
        "clone/.git/info/attributes",
        "* -text -filter -ident -working-tree-encoding\n",
    );
    git(&to, &["checkout", "-q", "HEAD", "--", "."]);
    for name in held {
        let (one, other) = (from.join(name), to.join(name));
        match std::fs::read_link(&one) {
            Ok(target) => assert_eq!(std::fs::read_link(&other).unwrap(), target, "{name}"),
            Err(_) => assert_eq!(
                std::fs::read(&other).unwrap(),
                std::fs::read(&one).unwrap(),
                "{name}"
            ),
        }
    }
    std::fs::remove_dir_all(&to).unwrap();
}

#[test]
fn repositories_inside_sessions_are_plain_files() {
    let place = Place::with_sessions();
    let s = "sessions/20240603_crawler/artifacts";
    let at = |rel: &str| place.home().join(s).join(rel);
    let git = |folder: &Path, args: &[&str]| git_in(folder, args).expect(0).stdout.clone();
    let make = |name: &str, args: &[&str]| {
        std::fs::create_dir_all(at(name)).unwrap();
        git(&at(name), &[&["init", "-q"], args].concat());
    };
    make("empty", &[]);
    make("unborn", &[]);
    place.put_home(&format!("{s}/unborn/draft.py"), "print('草稿')\n");
    make("full", &[]);
    place.put_home(&format!("{s}/full/src/main.py"), "print(1)\n");
    git(&at("full"), &["add", "-A"]);
    git(&at("full"), &["commit", "-qm", "x"]);
    place.put_home(&format!("{s}/full/later.py"), "print(2)\n");
    git(
        &at("full"),
        &["worktree", "add", "-q", at("tree").to_str().unwrap()],
    );
    make("bare.git", &["--bare"]);
    make("super", &[]);
    let full = at("full");
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        full.to_str().unwrap(),
        "part",
    ];
    git(&at("super"), &add);
    git(&at("super"), &["commit", "-qm", "sub"]);

    let ran = place.run(["commit", "-v"]);
    ran.expect(0);
    assert!(
        ran.stdout.contains("6 repositories inside sessions"),
        "{}",
        ran.stdout
    );
    place.git_is_content();
    let held = place.committed();
    for name in [
        "unborn/draft.py",
        "full/src/main.py",
        "full/later.py",
        "tree/src/main.py",
        "super/.gitmodules",
        "super/part/src/main.py",
        "bare.git/HEAD",
        "bare.git/config",
    ] {
        assert!(held.contains(&format!("{s}/{name}")), "{name} in {held:#?}");
    }
    assert!(
        !held
            .iter()
            .any(|name| name.contains("/.git/") || name.ends_with("/.git"))
    );
    assert!(!place.git(&["ls-tree", "-r", "HEAD"]).contains("160000"));
    clone_holds(&place, &held);
    // What comes into the empty one is taken.
    place.put_home(&format!("{s}/empty/now.py"), "1\n");
    place.ok(["commit", "-q"]);
    assert!(place.committed().contains(&format!("{s}/empty/now.py")));
    place.git_is_content();
}

/// A link to a commit, as `git add` leaves one, becomes the files that it stands for.
#[test]
fn a_link_to_a_commit_is_expanded() {
    let place = Place::with_sessions();
    let inner = "sessions/20240603_crawler/artifacts/inner";
    place.put_home(&format!("{inner}/a.py"), "1\n");
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "x"]] {
        git_in(&place.home().join(inner), args).expect(0);
    }
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "by hand"]);
    assert!(place.git(&["ls-tree", "-r", "HEAD"]).contains("160000"));
    place.ok(["commit", "-q"]);
    assert!(!place.git(&["ls-tree", "-r", "HEAD"]).contains("160000"));
    assert!(place.committed().contains(&format!("{inner}/a.py")));
    place.git_is_content();
}

#[test]
fn what_git_tracks_is_committed_though_it_is_ignored() {
    let place = Place::with_sessions();
    let log = "sessions/20240603_crawler/logs/run.log";
    place.put_home(log, "one\n");
    place.git(&["add", "-f", log]);
    place.ok(["commit", "-q"]);
    assert!(place.committed().contains(&log.to_owned()));
    place.put_home(log, "one\ntwo\n");
    place.ok(["commit", "-q"]);
    assert_eq!(place.git(&["show", &format!("HEAD:{log}")]), "one\ntwo\n");
    std::fs::remove_file(place.home().join(log)).unwrap();
    place.ok(["commit", "-q"]);
    assert!(!place.committed().contains(&log.to_owned()));
    place.git_is_content();
}

/// Files that are left out come in when they become text, and the other way round.
#[test]
fn what_is_left_out_may_change() {
    let place = Place::with_sessions();
    let file = "sessions/20240603_crawler/artifacts/data";
    place.put_home(file, b"\0\0");
    place.ok(["commit", "-q"]);
    let exclude = place.home_text(".git/info/exclude");
    assert!(exclude.contains(&format!("\n/{file}\n")), "{exclude}");
    place.put_home(file, "text\n");
    place.ok(["commit", "-q"]);
    assert!(place.committed().contains(&file.to_owned()));
    assert!(!place.home_text(".git/info/exclude").contains(file));
    // What was text and is torn stays, so that its history shows the day.
    place.put_home(file, b"te\0\0\0");
    place.ok(["commit", "-q"]);
    assert!(place.committed().contains(&file.to_owned()));
    place.git_is_content();
    // What grows beyond the limit goes, and is told.
    place.put_home("wbhome.toml", "[git]\nmax_file = \"1KiB\"\n");
    place.put_home(file, "x".repeat(1025));
    let ran = place.run(["commit"]);
    ran.expect(0);
    assert!(ran.stdout.contains("1 larger than"), "{}", ran.stdout);
    assert!(!place.committed().contains(&file.to_owned()));
    place.git_is_content();
    // A person's own lines in the file stay.
    let own = format!("{}# mine\n*.swp\n", place.home_text(".git/info/exclude"));
    place.put_home(".git/info/exclude", own);
    place.put_home("sessions/20240603_crawler/a.swp", "");
    place.put_home(file, "small\n");
    place.ok(["commit", "-q"]);
    assert!(
        place
            .home_text(".git/info/exclude")
            .ends_with("# mine\n*.swp\n")
    );
    assert!(!place.committed().iter().any(|name| name.ends_with(".swp")));
    place.git_is_content();
}

/// A change in the same tick of the clock that leaves the size as it was is found, by us and by git.
#[test]
fn a_change_right_after_is_seen() {
    let place = Place::with_sessions();
    let file = "sessions/20240603_crawler/memory/notes.md";
    for n in 0..20 {
        place.put_home(file, format!("{:04}", n * 2));
        place.ok(["commit", "-q"]);
        place.put_home(file, format!("{:04}", n * 2 + 1));
        assert_eq!(
            place.git(&["status", "--porcelain"]),
            format!(" M {file}\n")
        );
        place.ok(["commit", "-q"]);
        assert_eq!(
            place.git(&["show", &format!("HEAD:{file}")]),
            format!("{:04}", n * 2 + 1)
        );
    }
    place.git_is_content();
}

#[test]
fn some_sessions_alone() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    place.put_home("sessions/20240603_crawler/context/turn_002.json", "{}\n");
    place.put_home("sessions/20240604_数据清洗/context/turn_002.json", "{}\n");
    place.put_home("sessions/20240604_数据清洗/artifacts/b.bin", b"\0");
    place.ok(["commit", "-q", "crawler"]);
    let changed = || place.git(&["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(
        changed(),
        "sessions/20240603_crawler/context/turn_002.json\n"
    );
    assert!(
        place
            .git(&["status", "--porcelain"])
            .contains("turn_002.json")
    );
    place.ok(["commit", "-q", "清洗"]);
    assert_eq!(changed().lines().count(), 1);
    place.git_is_content();
    // The first commit may be of one session, too.
    let other = Place::with_sessions();
    other.ok(["commit", "-q", "crawler"]);
    assert_eq!(other.committed().len(), 2);
    other.ok(["commit", "-q"]);
    other.git_is_content();
}

/// What a person has staged elsewhere is theirs.
#[test]
fn what_is_staged_elsewhere_stays_staged() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    place.put_home("notes/mine.md", "a\n");
    place.git(&["add", "notes/mine.md"]);
    place.put_home("sessions/20240603_crawler/context/turn_002.json", "{}\n");
    place.ok(["commit", "-q"]);
    assert!(
        !place
            .committed()
            .iter()
            .any(|name| name.starts_with("notes/"))
    );
    assert_eq!(place.git(&["status", "--porcelain"]), "A  notes/mine.md\n");
    place.git(&["commit", "-qm", "mine"]);
    place.put_home("sessions/20240603_crawler/context/turn_003.json", "{}\n");
    place.ok(["commit", "-q"]);
    assert!(place.committed().contains(&"notes/mine.md".to_owned()));
    place.git_is_content();
}

#[test]
fn a_foreign_lock_is_named() {
    let place = Place::with_sessions();
    // Empty while an editor is open that git has started; or with an index in it.
    for content in ["", "DIRC"] {
        let lock = place.put_home(".git/index.lock", content);
        place
            .run(["commit", "--lock-wait", "0s"])
            .expect(11)
            .says(&["a git command holds the repository", "index.lock", "rm "]);
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), content);
        std::fs::remove_file(&lock).unwrap();
    }
    place.ok(["commit", "-q"]);
    place.git_is_content();
}

/// `git status` holds the index for a moment, again and again in an editor that shows it.
#[test]
fn a_lock_that_is_given_back_is_waited_for() {
    let place = Place::with_sessions();
    let lock = place.put_home(".git/index.lock", "");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::fs::remove_file(&lock).unwrap();
        });
        place.ok(["commit", "-q"]);
    });
    place.git_is_content();
}

#[test]
fn a_repository_that_is_not_sound_is_not_made_worse() {
    let refused = |lay: &dyn Fn(&Place), says: &[&str]| {
        let place = Place::with_sessions();
        place.ok(["commit", "-q"]);
        place.put_home("sessions/20240603_crawler/context/turn_002.json", "{}\n");
        lay(&place);
        let before = support::tree(&place.home().join(".git"));
        place.run(["commit"]).expect(1).says(says);
        let mut after = support::tree(&place.home().join(".git"));
        // The lock was taken and given back.
        after.get_mut(&b""[..]).unwrap().mtime = before[&b""[..]].mtime;
        assert_eq!(support::differences(&before, &after), "", "{says:?}");
    };
    let git = |args: &'static [&'static str]| move |place: &Place| drop(place.git(args));
    refused(
        &git(&["checkout", "-q", "--detach"]),
        &["HEAD is detached", "git switch"],
    );
    let merging = |place: &Place| {
        place.git(&["checkout", "-q", "-b", "side"]);
        place.git(&["commit", "-q", "--allow-empty", "-m", "side"]);
        place.git(&["checkout", "-q", "main"]);
        place.git(&["commit", "-q", "--allow-empty", "-m", "main"]);
        place.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    };
    refused(&merging, &["in the middle of a merge", "git merge --abort"]);
    refused(
        &git(&["config", "core.bare", "true"]),
        &["is bare", "core.bare false"],
    );
    refused(
        &|place| drop(place.put_home(".git/HEAD", "")),
        &["repository", ".git"],
    );
    refused(
        &|place| drop(place.put_home(".git/refs/heads/main", "")),
        &["can not be read"],
    );
    refused(
        &|place| drop(place.put_home(".git/index", "DIRC")),
        &["the index", "git reset"],
    );
    let torn = |place: &Place| {
        let main = place.home().join(".git/refs/heads/main");
        std::fs::rename(&main, main.with_file_name("main 2")).unwrap();
    };
    refused(&torn, &["the branch main is gone", "git update-ref"]);
    let foreign = |place: &Place| {
        place.put("other/x", "");
        place.git(&[
            "config",
            "core.worktree",
            place.path("other").to_str().unwrap(),
        ]);
    };
    refused(&foreign, &["belongs to another folder", "core.worktree"]);
}

/// Cut off, a loose object would be read without end.
#[test]
fn an_object_that_is_cut_off_is_named() {
    let place = Place::with_sessions();
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "by hand"]);
    for what in ["HEAD", "HEAD^{tree}", "HEAD:sessions"] {
        let id = place.git(&["rev-parse", what]);
        let path = place
            .home()
            .join(".git/objects")
            .join(&id[..2])
            .join(id[2..].trim_end());
        let whole = std::fs::read(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for cut in [1, 5, whole.len() / 2] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            place
                .run(["commit"])
                .expect(1)
                .says(&["is cut off", id[2..].trim_end()]);
            place
                .run(["history", "crawler"])
                .expect(1)
                .says(&["is cut off"]);
            let found = place.run(["check"]);
            found.expect(4);
            assert!(found.stdout.contains("torn-history"), "{}", found.stdout);
        }
        std::fs::write(&path, &whole).unwrap();
    }
    place.ok(["commit", "-q"]);
    place.git_is_content();
}

#[test]
fn what_is_missing_of_packs_and_index_is_found() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let packs = place.home().join(".git/objects/pack");
    let named = |ending: &str| {
        let names = std::fs::read_dir(&packs)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        names
            .into_iter()
            .find(|path| path.extension().is_some_and(|e| e == ending))
            .unwrap()
    };
    let (pack, idx, index) = (named("pack"), named("idx"), place.home().join(".git/index"));
    for path in [&pack, &idx, &index] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let whole = std::fs::read(path).unwrap();
        std::fs::write(path, &whole[..whole.len() - 30]).unwrap();
        let found = place.run(["check"]);
        found.expect(4);
        assert!(
            found.stdout.contains("torn-history"),
            "{path:?}: {}",
            found.stdout
        );
        if path != &index {
            std::fs::remove_file(path).unwrap();
            let found = place.run(["check"]);
            found.expect(4);
            assert!(
                found.stdout.contains("torn-history"),
                "{path:?}: {}",
                found.stdout
            );
        }
        std::fs::write(path, &whole).unwrap();
    }
    assert_eq!(place.run(["check"]).code, Some(0));
}

/// A sync client removes the ref, and an older one in `packed-refs` takes its place.
#[test]
fn a_branch_that_has_gone_back_is_not_built_on() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    place.git(&["pack-refs", "--all"]);
    place.put_home("sessions/20240603_crawler/memory/a.md", "1\n");
    place.ok(["commit", "-q"]);
    let tip = place.git(&["rev-parse", "HEAD"]);
    std::fs::remove_file(place.home().join(".git/refs/heads/main")).unwrap();
    place.put_home("sessions/20240603_crawler/memory/a.md", "2\n");
    let back = format!("git update-ref refs/heads/main {}", tip.trim());
    place
        .run(["commit"])
        .expect(1)
        .says(&["the branch main has gone back", &back]);
    assert_eq!(place.run(["check"]).code, Some(4));
    place.git(&["update-ref", "refs/heads/main", tip.trim()]);
    place.ok(["commit", "-q"]);
    // A person who goes back leaves a line in the log.
    place.git(&["reset", "-q", "--soft", "HEAD~1"]);
    place.ok(["commit", "-q"]);
    place.git_is_content();
}

/// git calls a file clean although it has put other bytes into the object.
#[test]
fn what_git_has_converted_is_committed_as_it_is() {
    let place = Place::with_sessions();
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    let file = "sessions/20240603_crawler/artifacts/crlf.txt";
    place.put_home(file, "a\r\nb\r\n");
    place.git(&["init", "-q", "-b", "main"]);
    place.git(&["config", "core.autocrlf", "input"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "by hand"]);
    assert_eq!(place.git(&["show", &format!("HEAD:{file}")]), "a\nb\n");
    place.git(&["config", "core.autocrlf", "false"]);
    place.put_home(
        ".git/info/attributes",
        "* -text -filter -ident -working-tree-encoding\n",
    );
    place.ok(["commit", "-q"]);
    assert_eq!(place.git(&["show", &format!("HEAD:{file}")]), "a\r\nb\r\n");
    place.git_is_content();
}

/// Labels survive an `index.json` that was torn and committed before anybody looked.
#[test]
fn labels_outlive_a_torn_index_that_was_committed() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "--title", "价格", "--tag", "web", "-q"]);
    place.ok(["commit", "-q"]);
    let torn = place.home_text("index.json");
    place.put_home("index.json", &torn[..40]);
    place
        .run(["commit"])
        .expect(0)
        .says(&["index.json", "index --rebuild"]);
    place
        .run(["index", "--rebuild"])
        .expect(0)
        .says(&["the last commit that has a whole one"]);
    assert_eq!(place.index()[0]["title"], "价格");
    assert_eq!(place.index()[0]["tags"][0], "web");
}

/// Two runs at once: git drops what no branch reaches, and nothing of a commit is without a name while it is made.
#[test]
fn a_repack_beside_it_takes_nothing_away() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                git_in(&place.home(), &["repack", "-a", "-d", "-q"]);
                git_in(&place.home(), &["prune", "--expire=now"]);
            }
        });
        for n in 0..40 {
            place.put_home("sessions/20240603_crawler/memory/a.md", format!("{n}\n"));
            place.run(["commit", "-q"]).expect(0);
            assert_eq!(
                git_in(&place.home(), &["cat-file", "-e", "HEAD^{tree}"]).code,
                Some(0)
            );
        }
        done.store(true, Ordering::Relaxed);
    });
    place.git_is_content();
    assert!(
        !place
            .names(".git/objects/pack")
            .iter()
            .any(|name| name.ends_with(".keep"))
    );
}

#[test]
fn a_home_without_its_sessions_is_not_recorded_as_empty() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let sessions = place.home().join("sessions");
    std::fs::rename(&sessions, place.path("elsewhere")).unwrap();
    let refused = |says: &[&str]| {
        for args in [
            &["commit"][..],
            &["commit", "crawler"],
            &["commit", "@1"],
            &["commit", "-n"],
        ] {
            place.run(args).expect(1).says(says);
        }
    };
    refused(&[
        "folder of the sessions is not there",
        "is its disk mounted?",
    ]);
    // What is left of a disk that is not mounted, and a file that a file manager has left in it.
    std::fs::create_dir(&sessions).unwrap();
    refused(&["is empty", "3 sessions", "is its disk mounted?"]);
    std::fs::write(sessions.join(".DS_Store"), "").unwrap();
    refused(&["is empty", "3 sessions"]);
    let index = place.home_text("index.json");
    place.put_home("index.json", "[{");
    place.run(["commit"]).expect(1).says(&["is empty"]);
    place.put_home("index.json", index);
    std::fs::remove_dir_all(&sessions).unwrap();
    std::os::unix::fs::symlink(place.path("elsewhere"), &sessions).unwrap();
    refused(&["found a symbolic link"]);
    std::fs::remove_file(&sessions).unwrap();
    std::fs::write(&sessions, "").unwrap();
    place.run(["commit"]).expect(1).says(&["expected a folder"]);
}

/// Ref and log are gone; what was committed here is known all the same.
#[test]
fn a_branch_that_is_lost_with_its_log_is_not_begun_anew() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let tip = place.git(&["rev-parse", "HEAD"]);
    std::fs::remove_dir_all(place.home().join(".git/logs")).unwrap();
    std::fs::remove_file(place.home().join(".git/refs/heads/main")).unwrap();
    let back = format!("git update-ref refs/heads/main {}", tip.trim());
    place
        .run(["commit"])
        .expect(1)
        .says(&["the branch main is gone", &back]);
    let found = place.run(["check"]);
    assert!(found.stdout.contains("torn-history"), "{}", found.stdout);
    place.git(&["update-ref", "refs/heads/main", tip.trim()]);
    place.ok(["commit", "-q"]);
    place.git_is_content();
}

#[test]
fn the_repository_may_lie_elsewhere() {
    let place = Place::with_home();
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    std::fs::create_dir(place.path("cold")).unwrap();
    let at = place.path("cold/home.git");
    let settings = format!("[git]\ndir = {:?}\n", at.to_str().unwrap());
    place.put_home("wbhome.toml", &settings);
    place.session("20240603_crawler", 3);
    place.ok(["init", "-q"]);
    assert!(place.home().join(".git").is_file());
    place.ok(["commit", "-q"]);
    place.git_is_content();
    assert_eq!(place.mode("cold/home.git"), 0o700);
    // The disk is not there.
    std::fs::rename(&at, place.path("cold/away")).unwrap();
    place
        .run(["commit"])
        .expect(1)
        .says(&["is its disk mounted?"]);
    std::fs::rename(place.path("cold/away"), &at).unwrap();
    // The link was lost: it is the same repository.
    std::fs::remove_file(place.home().join(".git")).unwrap();
    place.ok(["init", "-q"]);
    place.ok(["commit", "-q"]);
    place.git_is_content();
    // Another home does not take it.
    let other = Place::with_home();
    std::fs::remove_dir_all(other.home().join(".git")).unwrap();
    other.put_home("wbhome.toml", &settings);
    other
        .run(["commit"])
        .expect(1)
        .says(&["that of another folder"]);
}

/// The settings were changed when a history was there already: nothing goes on in either place unseen.
#[test]
fn a_history_that_is_not_where_the_settings_say_is_named_until_it_is_moved() {
    let place = Place::with_sessions();
    place.ok(["commit", "-q"]);
    let tip = place.git(&["rev-parse", "main"]);
    std::fs::create_dir(place.path("cold")).unwrap();
    let (from, to) = (place.home().join(".git"), place.path("cold/home.git"));
    let set = format!("[git]\ndir = {:?}\n", to.to_str().unwrap());
    place.put_home("wbhome.toml", set);
    let configure = format!(
        "git --git-dir={} config core.worktree {}",
        to.display(),
        place.home().display()
    );
    let moving = format!("mv {} {} && {configure}", from.display(), to.display());
    let looks: [&[&str]; 4] = [
        &["commit"],
        &["commit", "-n"],
        &["history", "crawler"],
        &["diff", "crawler"],
    ];
    let refused = |looks: &[&[&str]], parts: &[&str]| {
        for args in looks {
            place.run(*args).expect(1).says(parts);
        }
        let checks = place.json(["doctor"])["checks"].to_string();
        let night = place.json(["nightly"]);
        let mut stages = night["stages"].as_array().unwrap().iter();
        let commit = stages.find(|stage| stage["name"] == "commit").unwrap();
        assert_eq!(commit["exit"], 1, "{night:#}");
        for part in parts {
            assert!(checks.contains(part), "{part} is not in {checks}");
            assert!(commit.to_string().contains(part), "{part}: {commit:#}");
        }
    };
    let still = "[git] dir names [TO], and the history is still in another place"
        .replace("[TO]", to.to_str().unwrap());
    refused(&looks, &[&still, &moving]);
    assert_eq!(place.git(&["rev-parse", "main"]), tip);
    assert!(!to.exists());
    // What lies there already is not to be taken for the place.
    place.put("cold/home.git/x", "");
    refused(&looks, &["move what lies in"]);
    std::fs::remove_dir_all(&to).unwrap();
    // The first half of it.
    std::fs::rename(&from, &to).unwrap();
    refused(&looks[2..], &["that of another folder", &configure]);
    place.run(["commit"]).expect(1).says(&[&configure]);
    // All of it.
    git_in(
        &place.root(),
        &[
            &format!("--git-dir={}", to.display()),
            "config",
            "core.worktree",
            place.home().to_str().unwrap(),
        ],
    )
    .expect(0);
    refused(&looks[2..], &["nothing in the home leads there"]);
    place.ok(["commit", "-q"]);
    assert!(from.is_file());
    place.git_is_content();
    assert_eq!(place.git(&["rev-parse", "main~1"]), tip);
    place.ok(["history", "crawler"]);
    // In the other direction: the settings name none, and what `.git` says is what counts.
    place.put_home("wbhome.toml", "");
    place.ok(["commit", "-q"]);
}

#[test]
fn an_adopted_repository_keeps_its_configuration() {
    let place = Place::with_sessions();
    std::fs::remove_dir_all(place.home().join(".git")).unwrap();
    place.git(&["init", "-q", "-b", "trunk"]);
    place.git(&["config", "core.autocrlf", "true"]);
    place.git(&["config", "user.name", "王 <小>明"]);
    place.git(&["config", "user.email", "me@example.org"]);
    let config = place.home_text(".git/config");
    place
        .run(["init"])
        .expect(0)
        .says(&["core.autocrlf is true", "info/attributes"]);
    assert_eq!(place.home_text(".git/config"), config);
    let file = "sessions/20240603_crawler/artifacts/crlf.txt";
    place.put_home(file, "a\r\nb\r\n");
    place.ok(["commit", "-q"]);
    assert_eq!(place.home_text(".git/config"), config);
    assert_eq!(place.git(&["show", &format!("HEAD:{file}")]), "a\r\nb\r\n");
    let who = place.home().join(".git");
    let who = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(who)
        .args(["log", "-1", "--format=%an <%ae> %D"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(who.stdout).unwrap().trim(),
        "王 小明 <me@example.org> HEAD -> trunk"
    );
    place.fsck();
}

/// As git ignores, with every kind of pattern, at every depth.
#[test]
fn ignored_as_git_ignores() {
    let place = Place::with_home();
    let s = "sessions/20240603_x";
    let names = [
        "a.txt",
        "b.md",
        "!odd",
        "#hash",
        "build",
        "foo bar",
        "trail ",
        "x[1]",
        "é",
        "文件.txt",
        "A.TXT",
    ];
    for folder in [
        "",
        "one/",
        "one/two/",
        "one/two/three/",
        "build2/",
        "doc/build/",
        "vendor/lib/",
    ] {
        for name in names {
            place.put_home(&format!("{s}/{folder}{name}"), "x\n");
        }
    }
    for (folder, text) in [
        (
            "",
            "*.md\n!b.md\nvendor/*\n!vendor/lib/\n/build\ndoc/**/build\n\\!odd\n\\#hash\nfoo\\ bar\ntrail\\ \nx\\[1\\]\n# no\n\n",
        ),
        ("one", "/a.txt\n**/three/*\n!**/three/a.txt\ntwo/b.*\r\n"),
        ("one/two", "!b.md\n*.TXT\n[é文]*\n"),
        ("build2", "*\n!.gitignore\n!*/\n!a.???\n"),
        ("doc", "a.txt/\nbuild/\n!build/a.txt\n"),
    ] {
        place.put_home(&format!("{s}/{folder}/.gitignore"), text);
    }
    let wanted = place.git(&["ls-files", "-z", "--others", "--exclude-standard"]);
    let mut wanted: Vec<String> = wanted.split_terminator('\0').map(str::to_owned).collect();
    wanted.sort();
    place.ok(["commit", "-q"]);
    assert_eq!(place.committed(), wanted);
    place.git_is_content();
}

/// An agent appends while it is committed: each version that is kept is a beginning of the last.
#[test]
fn what_is_being_written_is_committed_as_a_beginning_of_it() {
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let place = Place::with_sessions();
    let turn = "sessions/20240603_crawler/context/turn_002.json";
    let path = place.put_home(turn, "");
    /// Also when an assertion fails the writer has to end.
    struct End<'a>(&'a AtomicUsize);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(usize::MAX, Ordering::Relaxed);
        }
    }
    const COMMITS: usize = 50;
    // Not beyond the limit for text before the last commit, however long each takes.
    const LINES: usize = 4000;
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = std::fs::OpenOptions::new().append(true).open(&path);
            let mut file = file.unwrap();
            let mut n = 0;
            loop {
                let upto = begun.load(Ordering::Relaxed);
                if upto > COMMITS {
                    return;
                }
                if n >= upto * LINES || n % 500 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(4));
                }
                if n < upto * LINES {
                    file.write_all(format!("{{\"n\": {n}, \"text\": \"第{n}行\"}}\n").as_bytes())
                        .unwrap();
                    n += 1;
                }
            }
        });
        let _end = End(&begun);
        let length = || std::fs::metadata(&path).unwrap().len();
        for n in 1..=COMMITS {
            let before = length();
            begun.store(n, Ordering::Relaxed);
            while length() == before {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            place.run(["commit", "-q"]).expect(0);
        }
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
    assert!(versions > COMMITS / 2, "{versions}");
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
            "commit.noted",
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

    /// What libgit2 had in its hands when it was killed: its lock of the branch, its lock of our draft of the index, a
    /// line in the log that the branch never followed.
    #[test]
    fn with_locks_in_its_hands() {
        for (first, lock) in [(true, ""), (false, ""), (true, "oid"), (false, "oid")] {
            let place = Place::with_sessions();
            if !first {
                place.ok(["commit", "-q"]);
                place.put_home("sessions/20240603_crawler/memory/notes.md", "last\n");
            }
            let ran = place.run_with(&[("WBHOME_FAILPOINT", "commit.noted")], &["commit", "-q"]);
            assert_ne!(ran.code, Some(0));
            let note = place.home_text(".git/wbhome/moving");
            let oid = note.split(' ').next().unwrap();
            let held = if lock.is_empty() {
                String::new()
            } else {
                format!("{oid}\n")
            };
            place.put_home(".git/refs/heads/main.lock", held);
            place.put_home(".git/wbhome/index.lock", "");
            place.put_home(".git/info/.wbhome-tmp-0123", "an edit by hand");
            let zero = "0".repeat(40);
            let line = format!("{zero} {oid} x <x@y> 1718452800 +0000\tcommit: x\n");
            let log = place.home().join(".git/logs/refs/heads/main");
            let before = std::fs::read_to_string(&log).unwrap_or_default();
            place.put_home(".git/logs/refs/heads/main", format!("{before}{line}"));
            place.ok(["commit", "-q"]);
            place.git_is_content();
            let names = place.names(".git");
            let left = |name: &&String| {
                name.ends_with(".lock") || name.ends_with(".keep") || name.contains("wbhome-tmp")
            };
            assert_eq!(names.iter().find(left), None);
            let kept = place.names(".wbhome/trash");
            let kept = kept.iter().find(|name| name.ends_with(".wbhome-tmp-0123"));
            let kept = kept.expect("what may be an edit by hand is in the trash");
            assert_eq!(
                place.home_text(&format!(".wbhome/trash/{kept}")),
                "an edit by hand"
            );
        }
    }

    /// Killed when the branch had moved and the lock had not gone yet.
    #[test]
    fn with_the_branch_moved_and_its_lock_left() {
        let place = Place::with_sessions();
        place.ok(["commit", "-q"]);
        place.put_home("sessions/20240603_crawler/memory/notes.md", "last\n");
        place.run_with(&[("WBHOME_FAILPOINT", "commit.noted")], &["commit", "-q"]);
        let note = place.home_text(".git/wbhome/moving");
        let oid = note.split(' ').next().unwrap().to_owned();
        place.git(&["update-ref", "refs/heads/main", &oid]);
        place.put_home(".git/refs/heads/main.lock", format!("{oid}\n"));
        // With nothing to commit as well.
        place.ok(["commit", "-q"]);
        assert!(!place.home().join(".git/refs/heads/main.lock").exists());
        assert!(!place.home().join(".git/wbhome/moving").exists());
        place.git_is_content();
    }

    /// Somebody else's lock of the branch is theirs.
    #[test]
    fn a_foreign_lock_of_the_branch_stays() {
        let place = Place::with_sessions();
        place.ok(["commit", "-q"]);
        place.put_home("sessions/20240603_crawler/memory/notes.md", "last\n");
        let lock = place.put_home(".git/refs/heads/main.lock", "");
        place
            .run(["commit", "--lock-wait", "0s"])
            .expect(11)
            .says(&["a git command holds the branch"]);
        assert!(lock.exists());
        std::fs::remove_file(&lock).unwrap();
        place.ok(["commit", "-q"]);
        place.git_is_content();
    }
}

/// With them, `git status` compares nothing, and git takes them for what the index makes.
#[test]
fn the_index_knows_its_trees() {
    let place = Place::with_sessions();
    let index = place.home().join(".git/index");
    let knows = || {
        let index = std::fs::read(&index).unwrap();
        index.windows(4).any(|bytes| bytes == b"TREE")
    };
    let whole = || {
        assert_eq!(
            place.git(&["write-tree"]),
            place.git(&["rev-parse", "HEAD^{tree}"])
        );
        place.git_is_content();
    };
    place.ok(["commit", "-q"]);
    assert!(knows());
    whole();
    place.put_home("sessions/20240604_数据清洗/memory/深/一.md", "1\n");
    std::fs::remove_file(
        place
            .home()
            .join("sessions/20240603_crawler/context/turn_001.json"),
    )
    .unwrap();
    place.ok(["commit", "-q"]);
    assert!(knows());
    whole();
    // What others have staged is none of the commit's trees.
    place.put_home("README", "mine\n");
    place.git(&["add", "README"]);
    place.put_home("sessions/20240604_数据清洗/memory/深/一.md", "2\n");
    place.ok(["commit", "-q"]);
    assert!(!knows());
    let tree = place.git(&["write-tree"]);
    assert_ne!(tree, place.git(&["rev-parse", "HEAD^{tree}"]));
    assert!(
        place
            .git(&["ls-tree", "--name-only", tree.trim()])
            .contains("README")
    );
}

/// A commit that names what nobody has would be the end of the history.
#[test]
fn no_commit_names_an_object_that_is_not_there() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/memory/a.md", "alone\n");
    place.ok(["commit", "-q"]);
    let tip = ids(&place);
    // Loose, so that one can go.
    let packs = place.home().join(".git/objects/pack");
    let pack = std::fs::read_dir(&packs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "pack"))
        .unwrap();
    let aside = place.home().join(".git/aside.pack");
    std::fs::rename(&pack, &aside).unwrap();
    std::fs::remove_dir_all(&packs).unwrap();
    let unpacked = command(&place.home(), &["unpack-objects", "-q"])
        .stdin(std::fs::File::open(&aside).unwrap())
        .status()
        .unwrap();
    assert!(unpacked.success());
    std::fs::remove_file(&aside).unwrap();
    let blob = "HEAD:sessions/20240603_crawler/memory/a.md";
    let blob = place.git(&["rev-parse", blob]);
    let (folder, name) = blob.trim().split_at(2);
    let object = place.home().join(".git/objects").join(folder).join(name);
    let content = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    place.put_home("sessions/20240603_crawler/memory/b.md", "beside it\n");
    place.run(["commit"]).expect(1).says(&[
        "an object that the commit needs can not be read",
        "git fsck",
    ]);
    assert_eq!(ids(&place), tip);
    std::fs::write(&object, content).unwrap();
    place.ok(["commit", "-q"]);
    place.git_is_content();
}
