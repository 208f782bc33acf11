//! `wbhome init`: makes a home, or adopts what is there, and writes only what is missing.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};

use insta::assert_snapshot;
use support::{Place, differences, tree};

#[test]
fn makes_everything_for_its_owner_alone() {
    let place = Place::new();
    let ran = place.run(["init"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/me/workbuddy_home is a home now.
    Its history begins in [ROOT]/me/workbuddy_home/.git.
    --- stderr
    ");
    let mut names = place.names("");
    names.retain(|name| !name.starts_with(".git/") || name == ".git/");
    assert_eq!(
        names,
        [
            ".git/",
            ".gitignore",
            ".wbhome/",
            ".wbhome/home.json",
            ".wbhome/lock",
            ".wbhome/tmp/",
            "agents/",
            "archive/",
            "index.json",
            "projects/",
            "sessions/",
            "wbhome.toml",
        ]
    );
    let inside = |name: &[u8]| name.starts_with(b".git/");
    for (name, entry) in tree(&place.home())
        .into_iter()
        .filter(|(name, _)| !inside(name))
    {
        let mode = if entry.kind == 'd' { 0o700 } else { 0o600 };
        assert_eq!(entry.mode, mode, "{}", String::from_utf8_lossy(&name));
    }
    assert_eq!(place.home_text("index.json"), "[]\n");
    let settings: toml::Table = place.home_text("wbhome.toml").parse().unwrap();
    assert!(settings.contains_key("rotate"));
    place.ok(["check"]);
}

#[test]
fn twice_is_once() {
    let place = Place::with_home();
    let before = place.apart_from_own();
    assert_snapshot!(place.run(["init"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/me/workbuddy_home is a home already; nothing was written.
    --- stderr
    ");
    assert_snapshot!(place.run(["init", "-n"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/me/workbuddy_home is a home already; nothing would be written.
    --- stderr
    ");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn only_what_is_missing_is_written() {
    let place = Place::with_home();
    place.put_home("wbhome.toml", "[archive]\nidle = \"7d\"\n");
    std::fs::remove_dir(place.home().join("projects")).unwrap();
    let made = place.json(["init"]);
    assert_eq!(made["written"], serde_json::json!(["projects"]));
    assert_eq!(place.home_text("wbhome.toml"), "[archive]\nidle = \"7d\"\n");
}

#[test]
fn the_folder_is_the_argument_else_home_else_the_variable_else_the_usual_one() {
    let place = Place::new();
    let env = &[("WBHOME", "by variable")];
    let marker = |rel: &str| place.path(rel).join(".wbhome/home.json").exists();
    assert_eq!(place.run_with(env, &["init", "by argument"]).code, Some(0));
    assert!(marker("by argument") && !marker("by variable"));
    assert_eq!(
        place.run_with(env, &["init", "--home", "by flag"]).code,
        Some(0)
    );
    assert!(marker("by flag") && !marker("by variable"));
    assert_eq!(place.run_with(env, &["init"]).code, Some(0));
    assert!(marker("by variable") && !place.home().exists());
    place.ok(["init"]);
    assert!(marker(support::home::HOME));
}

#[test]
fn two_names_for_the_folder_are_refused() {
    let place = Place::new();
    let ran = place.run(["init", "one", "--home", "other"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: DIR and --home both name the folder
    hint: give one of them: wbhome init DIR
    ");
    assert!(!place.path("one").exists() && !place.path("other").exists());
}

#[test]
fn without_a_home_folder_one_must_be_named() {
    let place = Place::new();
    let output = place
        .command()
        .env_remove("HOME")
        .arg("init")
        .output()
        .unwrap();
    assert_snapshot!(support::Ran::of(output).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: no folder is given, and $HOME is not set
    hint: wbhome init DIR
    ");
}

#[test]
fn dry_run_and_quiet() {
    let place = Place::new();
    assert_snapshot!(place.run(["init", "-n", "new"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/new would be a home.
    Would be written: agents, sessions, archive, projects, .wbhome, index.json, wbhome.toml, .gitignore, .wbhome/home.json, .git
    --- stderr
    ");
    assert!(!place.path("new").exists());
    assert_snapshot!(place.run(["init", "-q", "new"]).shown(&place), @r"
    exit: 0
    --- stdout
    --- stderr
    ");
    assert!(place.path("new/.wbhome/home.json").exists());
}

/// A folder as people have it before they know of this program.
fn folder_with_sessions() -> Place {
    let place = Place::new();
    let record = r#"{"id": "20240603_数据清洗", "title": "五月", "agent": "research_agent"}"#;
    place.put(
        "my sessions/sessions/20240603_数据清洗/session.json",
        record,
    );
    place.put(
        "my sessions/sessions/my old session (1)/context/turn_001.json",
        "{}",
    );
    place.put("my sessions/notes.md", "一\n");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("my sessions"), open).unwrap();
    place
}

#[test]
fn adopts_a_folder_that_has_sessions() {
    let place = folder_with_sessions();
    let before = tree(&place.path("my sessions/sessions"));
    assert_snapshot!(place.run(["init", "-n", "my sessions"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/my sessions would be a home; what is there stays as it is.
    Would be written: agents, archive, projects, .wbhome, index.json, wbhome.toml, .gitignore, .wbhome/home.json, .git
    Others can look into it (mode 0755); it would be yours alone (0700).
    --- stderr
    ");
    assert_eq!(place.mode("my sessions"), 0o755);
    assert_snapshot!(place.run(["init", "my sessions"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/my sessions is a home now; what was there is untouched.
    Others could look into it (mode 0755); it is yours alone now (0700).
    Its history begins in [ROOT]/my sessions/.git.
    Next: wbhome check --home '[ROOT]/my sessions'
    --- stderr
    ");
    assert_eq!(place.mode("my sessions"), 0o700);
    let after = tree(&place.path("my sessions/sessions"));
    assert_eq!(differences(&before, &after), "");
    assert_eq!(place.text("my sessions/notes.md"), "一\n");
    let index: serde_json::Value =
        serde_json::from_str(&place.text("my sessions/index.json")).unwrap();
    assert_eq!(index[0]["id"], "20240603_数据清洗");
    assert_eq!(index[0]["title"], "五月");
    assert_eq!(index[1]["id"], "my old session (1)");
    let hint = place.run_in(".", &["check", "--home", "my sessions"]);
    assert_eq!(hint.code, Some(4), "one session has no record: {hint:?}");
}

#[test]
fn an_index_that_is_there_is_left_as_it_is() {
    let place = folder_with_sessions();
    place.put("my sessions/index.json", "[{\"id\": \"20240603_数据");
    assert_snapshot!(place.run(["init", "my sessions"]).shown(&place), @r"
    exit: 0
    --- stdout
    [ROOT]/my sessions is a home now; what was there is untouched.
    Others could look into it (mode 0755); it is yours alone now (0700).
    Its history begins in [ROOT]/my sessions/.git.
    Next: wbhome check --home '[ROOT]/my sessions'
    --- stderr
    ");
    assert_eq!(
        place.text("my sessions/index.json"),
        "[{\"id\": \"20240603_数据"
    );
}

#[test]
fn what_a_person_opened_again_stays_open() {
    let place = Place::with_home();
    std::fs::set_permissions(place.home(), std::fs::Permissions::from_mode(0o750)).unwrap();
    place.ok(["init"]);
    assert_eq!(place.mode(support::home::HOME), 0o750);
}

#[test]
fn refuses_a_folder_of_other_things() {
    let place = Place::new();
    place.put("photos/a.jpg", "");
    assert_snapshot!(place.run(["init", "photos"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the folder holds other things, and no sessions: [ROOT]/photos
    hint: choose an empty or a new folder, or one with a folder `sessions`
    ");
    place.put("file", "");
    assert_snapshot!(place.run(["init", "file"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no folder, but something else: [ROOT]/file
    hint: choose another place for the home
    ");
    assert_eq!(place.text("file"), "");
    assert!(!place.path("photos/.wbhome").exists());
}

#[test]
fn refuses_a_place_inside_another_home() {
    let place = Place::with_home();
    let ran = place.run(["init", "me/workbuddy_home/sessions/inner"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the folder is inside another home: [ROOT]/me/workbuddy_home/sessions/inner
    hint: choose a folder outside [ROOT]/me/workbuddy_home
    ");
}

#[test]
fn refuses_a_link_where_a_folder_belongs() {
    let place = Place::new();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::create_dir(place.path("home")).unwrap();
    symlink(place.path("elsewhere"), place.path("home/sessions")).unwrap();
    assert_snapshot!(place.run(["init", "home"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: expected a folder, found a symbolic link: [ROOT]/home/sessions
    hint: a link can not stand there: put the folder or file itself there
    ");
    assert!(!place.path("home/.wbhome").exists());
}

#[test]
fn a_link_to_the_folder_itself_is_followed() {
    let place = Place::new();
    std::fs::create_dir(place.path("disk")).unwrap();
    symlink(place.path("disk"), place.path("link")).unwrap();
    place.ok(["init", "link"]);
    assert!(place.path("disk/.wbhome/home.json").exists());
}

#[test]
fn a_newer_home_is_not_touched() {
    let place = Place::with_home();
    place.put_home(".wbhome/home.json", r#"{"format": 2, "more": true}"#);
    std::fs::remove_dir(place.home().join("projects")).unwrap();
    let before = tree(&place.home());
    assert_snapshot!(place.run(["init"]).shown(&place), @r"
    exit: 12
    --- stdout
    --- stderr
    error: the home was written by a newer wbhome (format 2, this program knows 1): [ROOT]/me/workbuddy_home
    hint: use the newer wbhome; nothing was touched
    ");
    assert_eq!(differences(&before, &tree(&place.home())), "");
}

#[test]
fn usage() {
    let place = Place::new();
    assert_eq!(place.run(["init", "a", "b"]).code, Some(2));
    assert_eq!(place.run(["init", "--rebuild"]).code, Some(2));
    assert!(!place.path("a").exists());
}
