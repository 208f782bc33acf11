//! `projects/<project>/<id>`: after every verb that changes a session, exactly the links that the index says, and what
//! others have put there.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use support::{Place, has_tool};

/// What somebody else has put below `projects/`, and what is said of it.
const FOREIGN: [&str; 3] = [
    "projects/alpha/notes.md",
    "projects/README",
    "projects/alpha/etc",
];

/// Each link of ours that is there, as it is spelled.
fn links(place: &Place) -> BTreeSet<(String, String)> {
    let root = place.home();
    let found = walkdir::WalkDir::new(root.join("projects")).into_iter();
    let links = found
        .map(Result::unwrap)
        .filter(|entry| entry.path_is_symlink());
    let spelled = links.map(|entry| {
        let rel = entry.path().strip_prefix(&root).unwrap();
        let target = std::fs::read_link(entry.path()).unwrap();
        (
            rel.to_string_lossy().into_owned(),
            target.to_string_lossy().into_owned(),
        )
    });
    spelled
        .filter(|(rel, _)| !FOREIGN.contains(&rel.as_str()))
        .collect()
}

/// The links are those of the index; each leads to its session; what is foreign is as it was; no project's folder is empty.
#[track_caller]
fn follows(place: &Place, after: &str) {
    let mut wanted = BTreeSet::new();
    for entry in place.index().as_array().unwrap() {
        if let (Some(project), "active") =
            (entry["project"].as_str(), entry["status"].as_str().unwrap())
        {
            let id = entry["id"].as_str().unwrap();
            wanted.insert((
                format!("projects/{project}/{id}"),
                format!("../../sessions/{id}"),
            ));
        }
    }
    assert_eq!(links(place), wanted, "after {after}");
    for (rel, _) in wanted {
        assert!(
            place.home().join(&rel).join("session.json").exists(),
            "{rel} after {after}"
        );
    }
    assert_eq!(place.home_text(FOREIGN[0]), "mine\n");
    assert_eq!(place.home_text(FOREIGN[1]), "mine too\n");
    assert_eq!(
        std::fs::read_link(place.home().join(FOREIGN[2]))
            .unwrap()
            .to_str(),
        Some("/etc")
    );
    for entry in std::fs::read_dir(place.home().join("projects")).unwrap() {
        let path = entry.unwrap().path();
        let empty = path.is_dir() && std::fs::read_dir(&path).unwrap().next().is_none();
        assert!(!empty, "{} is empty after {after}", path.display());
    }
}

fn place() -> Place {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "数据", "--project", "alpha", "-q"]);
    place.ok(["label", "api", "--project", "项目 b", "-q"]);
    place.put_home(FOREIGN[0], "mine\n");
    place.put_home(FOREIGN[1], "mine too\n");
    symlink("/etc", place.home().join(FOREIGN[2])).unwrap();
    follows(&place, "label");
    place
}

#[test]
fn they_follow_every_verb() {
    let place = place();
    let run = |args: &[&str]| {
        place.run(args).expect(0);
        follows(&place, &args.join(" "));
    };
    run(&["new", "fresh", "--project", "alpha", "-q"]);
    run(&["label", "crawler", "--project", "gamma", "-q"]);
    run(&["label", "api", "--no-project", "-q"]);
    run(&["label", "api", "--project", "gamma", "-q"]);
    run(&["mv", "crawler", "20240603_crawler_two", "-q"]);
    run(&["rm", "crawler_two", "--yes", "-q"]);
    run(&["restore", "20240603_crawler_two", "--from", "trash", "-q"]);
    run(&["archive", "数据", "-q"]);
    run(&["label", "20240604_数据清洗", "--project", "gamma", "-q"]);
    run(&["unarchive", "数据", "-q"]);
    run(&["archive", "数据", "--keep", "-q"]);
    run(&["index", "-q"]);
    run(&["check", "--repair", "-q"]);
}

#[test]
fn they_follow_what_was_done_by_hand() {
    let place = place();
    let sessions = place.home().join("sessions");
    std::fs::rename(
        sessions.join("20240603_crawler"),
        sessions.join("20240603_spider"),
    )
    .unwrap();
    std::fs::rename(sessions.join("20240605_api_refactor"), place.path("away")).unwrap();
    let mut index = place.index();
    for entry in index.as_array_mut().unwrap() {
        if entry["id"] == "20240604_数据清洗" {
            entry["project"] = "by hand".into();
        }
    }
    place.put_home("index.json", index.to_string());
    place.ok(["index", "-q"]);
    follows(&place, "a rename, a loss and an edit");
    std::fs::rename(place.path("away"), sessions.join("20240605_api_refactor")).unwrap();
    place.ok(["index", "-q"]);
    follows(&place, "what came back");
    // Links that were taken away, or spelled otherwise, are made anew.
    let link = place.home().join("projects/by hand/20240604_数据清洗");
    std::fs::remove_file(&link).unwrap();
    symlink(sessions.join("20240604_数据清洗"), &link).unwrap();
    std::fs::remove_dir_all(place.home().join("projects/项目 b")).unwrap();
    place.ok(["index", "-q"]);
    follows(&place, "links that were changed");
    place.ok(["index", "--rebuild", "-q"]);
    follows(&place, "index --rebuild");
}

#[test]
fn they_follow_what_comes_out_of_a_store_and_a_commit() {
    let place = place();
    place.ok(["backup", "init", "cold", "-q"]);
    place.at(15, &["backup", "run", "-q"]).expect(0);
    place.ok(["rm", "crawler", "--yes", "-q"]);
    follows(&place, "rm");
    place
        .run(["restore", "20240603_crawler", "--from", "backup", "-q"])
        .expect(0);
    follows(&place, "restore --from backup");
    if has_tool("git") {
        place.ok(["commit", "-q"]);
        place.ok(["rm", "数据", "--yes", "-q"]);
        place
            .run(["restore", "20240604_数据清洗", "--from", "git", "-q"])
            .expect(0);
        follows(&place, "restore --from git");
    }
}

#[test]
fn what_is_foreign_is_named() {
    let place = place();
    let ran = place.run(["index"]);
    ran.expect(0);
    for foreign in FOREIGN {
        let named = format!("{foreign} is none of the links that wbhome makes; it was left alone");
        assert!(ran.stderr.contains(&named), "{ran:?}");
    }
}
