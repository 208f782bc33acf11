//! `wbhome commit --push`: what leaves has been looked at, all of it and nothing else; and the commit stands whatever
//! becomes of the push.

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
use serde_json::{Value, json};
use support::git::git_in;
use support::home::HOME;
use support::{Place, Ran};

const TURN: &str = "sessions/20240603_crawler/context/turn_002.json";

/// A token that is none, put together here so that no scanner trips over this file.
fn token() -> String {
    ["ghp", "_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat()
}

/// Another one, of another service.
fn other_token() -> String {
    ["glpat", "-", "x7Kq2Lm9Pz4Rt6Wv8Ys3"].concat()
}

/// A home with a first commit, and an empty remote called `origin`.
fn with_remote() -> Place {
    let place = Place::with_sessions();
    // So that sizes do not hang on the name of the machine.
    git_in(&place.home(), &["init", "-q", "-b", "main"]).expect(0);
    place.git(&["config", "user.name", "王"]);
    place.git(&["config", "user.email", "w@example.org"]);
    place.ok(["commit", "-q"]);
    bare(&place, "remote.git");
    place.git(&[
        "remote",
        "add",
        "origin",
        path(&place, "remote.git").as_str(),
    ]);
    place
}

/// One whose remote has that commit already.
fn pushed() -> Place {
    let place = with_remote();
    place.ok(["commit", "--push", "-q"]);
    place
}

fn path(place: &Place, rel: &str) -> String {
    place.path(rel).to_str().unwrap().to_owned()
}

fn bare(place: &Place, name: &str) {
    let ran = git_in(&place.root(), &["init", "-q", "--bare", "-b", "main", name]);
    ran.expect(0);
}

fn remote(place: &Place, args: &[&str]) -> Ran {
    git_in(&place.path("remote.git"), args)
}

/// The commit that the remote's `main` is at; empty when it has none.
fn there(place: &Place) -> String {
    remote(place, &["rev-parse", "--verify", "-q", "main"])
        .stdout
        .trim()
        .to_owned()
}

fn here(place: &Place) -> String {
    place.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// Every object that the remote has, with its content, as one text.
fn all_that_left(place: &Place) -> String {
    let every = remote(
        place,
        &[
            "cat-file",
            "--batch-check=%(objectname)",
            "--batch-all-objects",
        ],
    );
    every
        .stdout
        .lines()
        .map(|oid| {
            let mut command = support::git::command(&place.path("remote.git"), &["cat-file", "-p"]);
            let output = command.arg(oid).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect()
}

fn settings(place: &Place, text: &str) {
    place.put_home("wbhome.toml", text);
}

/// Ids and digests depend on the machine's name.
fn steady(text: &str) -> String {
    let hex = |word: &str| word.len() == 10 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let word = |part: &str| match part.trim_end().trim_end_matches(',') {
        word if hex(word) => part.replacen(word, "[ID]", 1),
        _ => part.to_owned(),
    };
    let text: String = text.split_inclusive([' ', '\n']).map(word).collect();
    // How far a tree that names other ids is compressed differs by a byte.
    let sized = |line: &str| match line
        .strip_suffix(" B new\n")
        .and_then(|l| l.rsplit_once(' '))
    {
        Some((before, _)) => format!("{before} [N] B new\n"),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(sized).collect()
}

#[track_caller]
fn findings(document: &Value) -> Vec<(String, String, String)> {
    let found = document["push"]["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found
        .iter()
        .map(|one| (text(&one["part"]), text(&one["path"]), text(&one["rule"])))
        .collect()
}

fn found(part: &str, path: &str, rule: &str) -> (String, String, String) {
    (part.to_owned(), path.to_owned(), rule.to_owned())
}

#[test]
fn commits_reach_the_only_remote_and_the_branch_remembers_it() {
    let place = with_remote();
    assert_snapshot!(steady(&place.run(["commit", "--push"]).shown(&place)), @r"
    exit: 0
    --- stdout
    Nothing has changed since the last commit, which holds 9 files.
    pushed 1 commit to origin/main
    --- stderr
    ");
    assert_eq!(there(&place), here(&place));
    assert_eq!(
        place
            .git(&["rev-parse", "--abbrev-ref", "main@{upstream}"])
            .trim(),
        "origin/main"
    );
    place.git_is_content();

    place.put_home(TURN, "{}\n");
    place.ok(["commit", "-q"]);
    place.put_home("sessions/20240603_crawler/context/turn_003.json", "{}\n");
    let document = place.json(["commit", "--push"]);
    assert_eq!(
        document["push"],
        json!({
            "state": "pushed", "remote": "origin", "branch": "main", "commits": 2, "files": 2,
            "findings": [], "allowed": 0, "why": null, "hints": [],
        })
    );
    assert_eq!(there(&place), here(&place));

    // Without the flag nothing is sent, and the document says that nothing was asked for.
    place.put_home(TURN, "{ }\n");
    assert_eq!(place.json(["commit"])["push"], Value::Null);
    assert_ne!(there(&place), here(&place));
    // Commits that wait go also when nothing has changed since.
    let ran = place.run(["commit", "--push"]);
    ran.expect(0);
    assert!(ran.stdout.contains("Nothing has changed"), "{ran:#?}");
    assert!(
        ran.stdout.contains("pushed 1 commit to origin/main"),
        "{ran:#?}"
    );
    assert_eq!(there(&place), here(&place));
}

#[test]
fn nothing_to_push_asks_nobody() {
    let place = pushed();
    std::fs::rename(place.path("remote.git"), place.path("away.git")).unwrap();
    let ran = place.run(["commit", "--push"]);
    ran.expect(0);
    assert!(
        ran.stdout
            .contains("nothing to push: origin/main has all commits"),
        "{ran:#?}"
    );
    assert_eq!(place.json(["commit", "--push"])["push"]["state"], "nothing");
}

#[test]
fn the_setting_pushes_after_each_commit() {
    let place = with_remote();
    settings(&place, "[git]\npush = true\n");
    let ran = place.run(["commit", "-q"]);
    assert_eq!(
        (ran.code, &*ran.stdout, &*ran.stderr),
        (Some(0), "", ""),
        "{ran:#?}"
    );
    assert_eq!(there(&place), here(&place));
}

/// Before the first push the remote has nothing that the rest could be put on: the first commit has, if it is clean.
#[test]
fn before_the_first_push_the_way_out_does_not_rewrite_the_home() {
    let place = with_remote();
    let first = here(&place);
    place.put_home(TURN, format!("{{\n\"out\": \"{}\"\n}}\n", token()));
    place.ok(["commit", "-q"]);
    place.put_home(TURN, "{}\n");
    let way = format!("reset --soft {}", &first[..10]);
    let ran = place.run(["commit", "--push"]);
    ran.expect(3).says(&[&way, "all commits but the first"]);
    place.git(&["reset", "--soft", &first]);
    place.ok(["commit", "--push"]);
    assert_eq!(there(&place), here(&place));
    assert!(!all_that_left(&place).contains(&token()));
    // In the first commit itself.
    let place = Place::with_home();
    place.put_home(TURN, format!("{{\n\"out\": \"{}\"\n}}\n", token()));
    bare(&place, "remote.git");
    place.ok(["commit", "-q"]);
    place.git(&[
        "remote",
        "add",
        "origin",
        path(&place, "remote.git").as_str(),
    ]);
    let ran = place.run(["commit", "--push"]);
    ran.expect(3).says(&["filter-repo", "in a clone"]);
}

/// The secret is not in any file any more, and would leave all the same.
#[test]
fn a_secret_that_a_later_commit_removed_is_held_back() {
    let place = pushed();
    let before = there(&place);
    place.put_home(TURN, format!("{{\n\"out\": \"{}\"\n}}\n", token()));
    place.ok(["commit", "-q"]);
    let bad = here(&place);
    place.put_home(TURN, "{}\n");
    let ran = place.run(["commit", "--push"]);
    assert_snapshot!(steady(&ran.shown(&place)), @r#"
    exit: 3
    --- stdout
    20240603_crawler: ~1 turn
      main [ID]   1 file, [N] B new
    --- stderr
    warning: not pushed: 1 secret in what origin/main does not have yet
      20240603_crawler/context/turn_002.json:2   github-token ghp_…A2   commit [ID]   digest 606611126b0f66b452c87de47fdf6cb8
    hint: a real one: take it out of use where it was issued, first of all
    hint: a harmless one: allow = ["606611126b0f66b452c87de47fdf6cb8"] in [secrets] of wbhome.toml
    hint: a commit that removes a secret does not take it out of the older ones, and they would leave too: they have to be rewritten
    hint: when the files are free of it, git -C [ROOT]/me/workbuddy_home reset --soft [ID], then `wbhome commit --push`: all commits that wait become one; for more than that git rebase -i and git filter-repo (in a clone), see docs/history.md
    "#);
    assert!(!ran.stderr.contains(&token()) && !ran.stdout.contains(&token()));
    assert_eq!(there(&place), before);
    // The commit stands.
    assert_eq!(place.git(&["status", "--porcelain"]), "");
    assert_ne!(here(&place), bad);

    let output = place.run(["commit", "--push", "--json", "-q"]);
    output.expect(3);
    let document = output.json();
    assert_eq!(document["push"]["state"], "held-back");
    let finding = &document["push"]["findings"][0];
    assert_eq!(finding["commit"].as_str().unwrap(), bad);
    assert_eq!(finding["path"].as_str().unwrap(), TURN);
    assert_eq!(
        (&finding["line"], &finding["part"]),
        (&json!(2), &json!("content"))
    );

    // The way out that was named: one commit of those that wait.
    place.git(&["reset", "--soft", &before]);
    place.ok(["commit", "--push"]);
    assert_eq!(there(&place), here(&place));
    assert!(!all_that_left(&place).contains(&token()));
    place.git_is_content();
}

#[test]
fn what_a_person_allows_leaves() {
    let place = pushed();
    place.put_home(TURN, token());
    let document = place.json(["commit", "--push"]);
    let digest = document["push"]["findings"][0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    settings(&place, &format!("[secrets]\nallow = [\"{digest}\"]\n"));
    let document = place.json(["commit", "--push"]);
    assert_eq!(
        (&document["push"]["state"], &document["push"]["allowed"]),
        (&json!("pushed"), &json!(1))
    );
    assert_eq!(there(&place), here(&place));
}

#[test]
fn warn_pushes_and_tells() {
    let place = pushed();
    settings(&place, "[secrets]\non_find = \"warn\"\n");
    place.put_home(TURN, token());
    let ran = place.run(["commit", "--push", "-q"]);
    ran.expect(0).says(&[
        "pushed with 1 secret",
        "20240603_crawler/context/turn_002.json:1",
        "github-token",
    ]);
    assert_eq!(there(&place), here(&place));
    place.put_home(TURN, other_token());
    let document = place.json(["commit", "--push"]);
    assert_eq!(document["push"]["state"], "pushed");
    assert_eq!(
        findings(&document),
        [found("content", TURN, "gitlab-token")]
    );
}

#[test]
fn messages_names_and_authors_leave_too() {
    let place = pushed();
    let before = there(&place);
    place.put_home(TURN, "{}\n");
    place.ok(["commit", "-q", "-m", &format!("用 {} 试试", token())]);
    let output = place.run(["commit", "--push", "--json"]);
    output.expect(3).says(&["the message of the commit"]);
    assert_eq!(
        findings(&output.json()),
        [found("message", "", "github-token")]
    );
    assert!(output.json()["push"]["findings"][0].get("path").is_none());

    place.git(&["reset", "-q", "--soft", &before]);
    let name = format!(
        "sessions/20240603_crawler/artifacts/结果 {} 1.txt",
        other_token()
    );
    place.put_home(&name, "nothing\n");
    let output = place.run(["commit", "--push", "--json", "-m", "x"]);
    output
        .expect(3)
        .says(&["artifacts/结果 glpa…s3 (its name)"]);
    // A name is told as far as it may be.
    let shown = "sessions/20240603_crawler/artifacts/结果 glpa…s3";
    assert_eq!(
        findings(&output.json()),
        [found("name", shown, "gitlab-token")]
    );
    assert!(!output.stderr.contains(&other_token()));
    std::fs::remove_file(place.home().join(&name)).unwrap();

    place.git(&["reset", "-q", "--soft", &before]);
    place.git(&["config", "user.name", &token()]);
    place.git(&["config", "user.email", "me@example.org"]);
    let output = place.run(["commit", "--push", "--json"]);
    assert_eq!(
        findings(&output.json()),
        [found("header", "", "github-token")]
    );
    assert_eq!(there(&place), before);
}

/// Files that others have committed, in a merge, beside the sessions.
#[test]
fn what_others_committed_is_looked_at() {
    let place = pushed();
    place.git(&["checkout", "-q", "-b", "side"]);
    place.put_home("notes/key.txt", token());
    place.git(&["add", "-f", "notes"]);
    place.git(&["commit", "-q", "-m", "side"]);
    place.git(&["checkout", "-q", "main"]);
    place.put_home(TURN, "{}\n");
    place.ok(["commit", "-q"]);
    place.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let output = place.run(["commit", "--push", "--json"]);
    output.expect(3);
    assert_eq!(
        findings(&output.json()),
        [found("content", "notes/key.txt", "github-token")]
    );
}

#[test]
fn own_rules_hold_and_broken_ones_hold_back() {
    let place = pushed();
    let before = there(&place);
    settings(&place, "[secrets]\nrules = \"mine.toml\"\n");
    place.put_home(
        "mine.toml",
        "[[rules]]\nid = \"mine\"\nregex = 'geheim-[0-9]{4}'\nkeywords = [\"geheim\"]\n",
    );
    place.put_home(TURN, "{\"x\": \"geheim-1234\"}\n");
    let document = place.json(["commit", "--push"]);
    assert_eq!(findings(&document), [found("content", TURN, "mine")]);

    place.put_home("mine.toml", "[[rules]]\nid = \"mine\"\nregex = '('\n");
    let ran = place.run(["commit", "--push"]);
    ran.expect(3).says(&["not pushed", "mine.toml"]);
    std::fs::remove_file(place.home().join("mine.toml")).unwrap();
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["mine.toml"]);
    settings(&place, "[secrets]\nallow = [\"zzz\"]\n");
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["is no digest"]);
    assert_eq!(there(&place), before);
    place.git_is_content();
}

/// No remote, several, a mirror, itself: the commit stands, and the message says what to do.
#[test]
fn where_to_must_be_clear() {
    let place = Place::with_sessions();
    let ran = place.run(["commit", "--push"]);
    ran.expect(3)
        .says(&["there is no remote to push to", "remote add origin"]);
    place.git_is_content();
    for name in ["one", "two"] {
        bare(&place, &format!("{name}.git"));
        place.git(&["remote", "add", name, &path(&place, &format!("{name}.git"))]);
    }
    let ran = place.run(["commit", "--push"]);
    ran.expect(3).says(&[
        "which remote",
        "one, two",
        "config branch.main.remote REMOTE",
    ]);
    place.git(&["config", "branch.main.remote", "two"]);
    assert_eq!(place.json(["commit", "--push"])["push"]["remote"], "two");
    let one = git_in(&place.path("one.git"), &["for-each-ref"]);
    assert_eq!(one.stdout, "");

    place.put_home(TURN, "{}\n");
    place.git(&["config", "remote.two.mirror", "true"]);
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["is a mirror"]);
    place.git(&["config", "branch.main.remote", "."]);
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["of the same repository"]);
}

#[test]
fn an_upstream_of_another_name_is_followed() {
    let place = with_remote();
    place.git(&["push", "-q", "-u", "origin", "main:backup/主机"]);
    place.put_home(TURN, "{}\n");
    let document = place.json(["commit", "--push"]);
    assert_eq!(
        (&document["push"]["branch"], &document["push"]["commits"]),
        (&json!("backup/主机"), &json!(1))
    );
    let there = remote(&place, &["rev-parse", "backup/主机"]);
    assert_eq!(there.stdout.trim(), here(&place));
    assert!(remote(&place, &["rev-parse", "-q", "--verify", "main"]).code != Some(0));
}

/// What the configuration of the repository would send besides.
#[test]
fn only_the_branch_leaves() {
    let place = pushed();
    for (key, value) in [
        ("push.followTags", "true"),
        ("push.default", "matching"),
        ("push.recurseSubmodules", "on-demand"),
    ] {
        place.git(&["config", key, value]);
    }
    place.git(&["config", "remote.origin.push", "refs/heads/*:refs/heads/*"]);
    place.git(&["branch", "other"]);
    place.put_home(TURN, "{}\n");
    place.ok(["commit", "-q"]);
    place.git(&["tag", "-a", "-m", &token(), "v1"]);
    place.ok(["commit", "--push"]);
    let refs = remote(&place, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs.stdout, "refs/heads/main\n");
    assert_eq!(there(&place), here(&place));
}

fn hook(folder: &Path, name: &str, script: &str) {
    let file = folder.join("hooks").join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A commit that is made after the look, while git is at work, waits for the next push.
#[test]
fn only_what_was_looked_at_leaves() {
    let place = pushed();
    let script = format!(
        "cat >/dev/null\necho '{}' >key.txt\ngit add -f key.txt\ngit -c user.name=t -c user.email=t@x commit -q -m late",
        token()
    );
    hook(&place.home().join(".git"), "pre-push", &script);
    place.put_home(TURN, "{}\n");
    place.ok(["commit", "--push"]);
    assert_eq!(place.git(&["log", "-1", "--format=%s"]).trim(), "late");
    assert_eq!(there(&place), place.git(&["rev-parse", "HEAD~1"]).trim());
    std::fs::remove_file(place.home().join(".git/hooks/pre-push")).unwrap();
    let output = place.run(["commit", "--push", "--json"]);
    output.expect(3);
    assert_eq!(
        findings(&output.json()),
        [found("content", "key.txt", "github-token")]
    );
    assert!(!all_that_left(&place).contains(&token()));
}

#[test]
fn a_remote_that_refuses_is_told_in_its_own_words() {
    let place = pushed();
    hook(
        &place.path("remote.git"),
        "pre-receive",
        "printf 'not \\033[31mtoday\\033[0m\\n'; exit 1",
    );
    place.put_home(TURN, "{}\n");
    let ran = place.run(["commit", "--push"]);
    ran.expect(3)
        .says(&["pre-receive hook declined", "remote: not today"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
    // Where colours are wanted, its own are not.
    let ran = place.run(["commit", "--push", "--color", "always"]);
    ran.expect(3).says(&["remote: not today"]);
    place.git_is_content();
    std::fs::remove_file(place.path("remote.git/hooks/pre-receive")).unwrap();
    place.ok(["commit", "--push"]);
    assert_eq!(there(&place), here(&place));
}

#[test]
fn a_remote_that_is_gone_leaves_the_commit_waiting() {
    let place = pushed();
    std::fs::rename(place.path("remote.git"), place.path("away.git")).unwrap();
    place.put_home(TURN, "{}\n");
    let output = place.run(["commit", "--push", "--json"]);
    output
        .expect(3)
        .says(&["not pushed", "does not appear to be a git repository"]);
    assert_eq!(output.json()["push"]["state"], "failed");
    std::fs::rename(place.path("away.git"), place.path("remote.git")).unwrap();
    place.ok(["commit", "--push"]);
    assert_eq!(there(&place), here(&place));
}

/// Another device has pushed: nothing of its is overwritten, whether git knows of it here or not.
#[test]
fn what_another_device_pushed_stays() {
    let place = pushed();
    git_in(&place.root(), &["clone", "-q", "remote.git", "other"]).expect(0);
    let other = place.path("other");
    git_in(&other, &["commit", "-q", "--allow-empty", "-m", "theirs"]).expect(0);
    git_in(&other, &["push", "-q"]).expect(0);
    let theirs = there(&place);
    place.put_home(TURN, "{}\n");
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["rejected", "fetch --prune"]);
    place.git(&["fetch", "-q"]);
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["has commits that the home has not", "pull --rebase"]);
    assert_eq!(there(&place), theirs);
    place.git(&["pull", "-q", "--rebase"]);
    place.ok(["commit", "--push"]);
    assert_eq!(there(&place), here(&place));
    assert_eq!(place.git(&["merge-base", &theirs, "HEAD"]).trim(), theirs);
}

/// Under the same name there is suddenly an empty repository: what was let through to the former one would leave unseen.
#[test]
fn another_remote_under_the_same_name_gets_nothing_unseen() {
    let place = pushed();
    settings(&place, "[secrets]\non_find = \"warn\"\n");
    place.put_home(TURN, token());
    place.ok(["commit", "--push", "-q"]);
    settings(&place, "");
    std::fs::rename(place.path("remote.git"), place.path("former.git")).unwrap();
    bare(&place, "remote.git");
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["stale info", "fetch --prune"]);
    assert_eq!(there(&place), "");
    place.git(&["fetch", "-q", "--prune"]);
    let output = place.run(["commit", "--push", "--json"]);
    assert_eq!(output.json()["push"]["state"], "held-back");
    assert_eq!(there(&place), "");
}

#[test]
fn a_dry_run_says_what_a_push_would_do() {
    let place = pushed();
    let before = there(&place);
    place.put_home(TURN, "{}\n");
    let ran = place.run(["commit", "--push", "-n"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    20240603_crawler: +1 turn
      1 file would be committed
    1 commit would be pushed to origin/main, after a look for secrets
    Nothing was changed.
    --- stderr
    ");
    place.ok(["commit", "-q"]);
    assert_eq!(
        place.json(["commit", "--push", "-n"])["push"]["state"],
        "would-push"
    );
    place.put_home(TURN, token());
    place.ok(["commit", "-q"]);
    let ran = place.run(["commit", "--push", "-n"]);
    ran.expect(3)
        .says(&["would not be pushed: 1 secret", "github-token"]);
    assert_eq!(there(&place), before);
}

/// A home that was only found is not obeyed, and least of all in sending it away.
#[test]
fn a_home_that_was_merely_found_is_not_sent() {
    let place = Place::new();
    place.ok(["init", "found"]);
    bare(&place, "remote.git");
    let found = place.path("found");
    git_in(
        &found,
        &["remote", "add", "origin", &path(&place, "remote.git")],
    )
    .expect(0);
    let run = |args: &[&str]| {
        Ran::of(
            place
                .command()
                .current_dir(&found)
                .args(args)
                .output()
                .unwrap(),
        )
    };
    let ran = run(&["commit", "--push"]);
    ran.expect(3).says(&["merely found", "--home"]);
    assert_eq!(there(&place), "");
    run(&["commit", "--push", "--home", "."]).expect(0);
    assert_ne!(there(&place), "");
}

#[test]
fn without_git_the_commit_stands() {
    let place = with_remote();
    place.put_home(TURN, "{}\n");
    let mut command = place.command();
    command
        .env("PATH", place.user_home())
        .args(["commit", "--push"]);
    let ran = Ran::of(command.output().unwrap());
    ran.expect(3).says(&["git is not installed"]);
    place.git_is_content();
}

#[test]
fn a_history_that_is_not_all_here_is_not_sent() {
    let place = pushed();
    place.put_home(TURN, "{}\n");
    place.ok(["commit", "--push", "-q"]);
    let file = format!("file://{}", path(&place, "remote.git"));
    git_in(
        &place.root(),
        &["clone", "-q", "--depth", "1", &file, "shallow"],
    )
    .expect(0);
    let git = place.home().join(".git");
    std::fs::rename(&git, place.path("whole")).unwrap();
    std::fs::rename(place.path("shallow/.git"), &git).unwrap();
    place.put_home(TURN, "{ }\n");
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["shallow", "--unshallow"]);

    // A version of a file that a partial clone has left out.
    std::fs::remove_dir_all(&git).unwrap();
    std::fs::rename(place.path("whole"), &git).unwrap();
    place.put_home(TURN, "{  }\n");
    place.ok(["commit", "-q"]);
    place.put_home(TURN, "{   }\n");
    place.ok(["commit", "-q"]);
    let blob = place.git(&["rev-parse", &format!("HEAD~1:{TURN}")]);
    place.git(&["config", "gc.auto", "0"]);
    unpack(&place);
    let (folder, rest) = blob.trim().split_at(2);
    std::fs::remove_file(git.join("objects").join(folder).join(rest)).unwrap();
    place
        .run(["commit", "--push"])
        .expect(3)
        .says(&["lacks a part of its history"]);
}

/// Every object of the home's repository as a file of its own.
fn unpack(place: &Place) {
    let packs = place.path(format!("{HOME}/.git/objects/pack"));
    let aside = place.path("packs");
    std::fs::rename(&packs, &aside).unwrap();
    for entry in std::fs::read_dir(&aside).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|e| e == "pack") {
            let script = format!("git unpack-objects -q <'{}'", file.display());
            let mut command = std::process::Command::new("sh");
            let command = command.current_dir(place.home()).args(["-c", &script]);
            assert!(command.status().unwrap().success());
        }
    }
}
