//! `completions/` and `man/` are made by the program itself and checked in. Here it is seen that they are not stale,
//! and that completion works.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it compares files"
)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Place, Ran, has_tool};

/// Makes them anew.
const REFRESH: &str = "WBHOME_REFRESH=1 cargo test --test generated";

const SHELLS: [(&str, &str); 5] = [
    ("bash", "wbhome.bash"),
    ("zsh", "_wbhome"),
    ("fish", "wbhome.fish"),
    ("elvish", "wbhome.elv"),
    ("powershell", "_wbhome.ps1"),
];

fn checked_in(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

/// The manual pages, made into the folder `man` of the place.
fn made_pages(place: &Place) -> BTreeMap<String, String> {
    place.ok(["man", "man", "-q"]);
    let pages = files(&place.path("man"));
    assert!(pages.contains_key("wbhome.1"));
    pages
}

/// The folder holds exactly what the program makes; or is made to, when that is asked for.
fn compare(folder: &str, made: &BTreeMap<String, String>) {
    let at = checked_in(folder);
    if std::env::var_os("WBHOME_REFRESH").is_some() {
        std::fs::create_dir_all(&at).unwrap();
        for name in files(&at).keys().filter(|name| !made.contains_key(*name)) {
            std::fs::remove_file(at.join(name)).unwrap();
        }
        for (name, text) in made {
            std::fs::write(at.join(name), text).unwrap();
        }
    }
    let there = files(&at);
    let stale: Vec<&String> = made
        .keys()
        .chain(there.keys())
        .filter(|name| made.get(*name) != there.get(*name))
        .collect();
    assert!(
        stale.is_empty(),
        "{folder}/ is stale ({stale:?}). To make it anew: {REFRESH}"
    );
}

#[test]
fn completions_are_those_of_this_program() {
    let place = Place::new();
    let made = SHELLS.map(|(shell, file)| (file.to_owned(), place.ok(["completions", shell])));
    compare("completions", &BTreeMap::from(made));
    let ran = place.run(["completions", "tcsh"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("powershell"),
        "it says which there are: {ran:?}"
    );
}

#[test]
fn manual_pages_are_those_of_this_program() {
    let place = Place::new();
    let listed = place.run(["man", "new/man1"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""));
    let made = files(&place.path("new/man1"));
    assert_eq!(listed.stderr.lines().count(), made.len());
    assert!(made.contains_key("wbhome.1") && made.contains_key("wbhome-migrate-verify.1"));
    compare("man", &made);
    // Once more, over what is there; and without doing it.
    assert_eq!(place.run(["man", "new/man1", "-q"]).stderr, "");
    assert_eq!(files(&place.path("new/man1")), made);
    place.ok(["man", "-n", "another"]);
    assert!(!place.path("another").exists());
}

/// An example that is filled to the width of the screen can not be copied.
#[test]
fn examples_stand_line_by_line_in_the_manual() {
    for (name, page) in made_pages(&Place::new()) {
        assert!(!page.contains(".SH EXTRA"), "{name}");
        if let Some((_, examples)) = page.split_once(".SH EXAMPLES\n") {
            assert!(examples.starts_with(".nf\n  "), "{name}");
        }
    }
}

#[test]
fn manual_pages_are_sound_roff() {
    if !has_tool("groff") {
        return;
    }
    let place = Place::new();
    for name in made_pages(&place).keys() {
        let page = place.path("man").join(name);
        let checked = Command::new("groff")
            .args(["-Kutf8", "-man", "-Tutf8", "-ww", "-z"])
            .arg(page)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(
            checked.status.success() && said.is_empty(),
            "{name}: {said}"
        );
    }
}

/// What the program offers for the last of these words.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let mut command = place.command();
    command
        .env("COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .arg("--")
        .args(words);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn session_ids_are_offered() {
    let place = Place::with_sessions();
    let all = [
        "20240603_crawler",
        "20240604_数据清洗",
        "20240605_api_refactor",
    ];
    assert_eq!(offered(&place, &["wbhome", "path", "2"]), all);
    assert_eq!(offered(&place, &["wbhome", "label", "20240604"]), [all[1]]);
    assert_eq!(
        offered(&place, &["wbhome", "check", "20240603_crawler", "20240605"]),
        [all[2]]
    );
    assert!(offered(&place, &["wbhome", "path", "x"]).is_empty());
}

#[test]
fn tags_projects_agents_and_verbs_are_offered() {
    let place = Place::with_sessions();
    place.ok([
        "label",
        "crawler",
        "--tag",
        "web",
        "--project",
        "alpha",
        "-q",
    ]);
    assert_eq!(offered(&place, &["wbhome", "ls", "--tag", "w"]), ["web"]);
    assert_eq!(
        offered(&place, &["wbhome", "new", "x", "--project", ""]),
        ["alpha"]
    );
    assert_eq!(
        offered(&place, &["wbhome", "ls", "--status", "m"]),
        ["missing"]
    );
    assert!(offered(&place, &["wbhome", "ch"]).contains(&"check".into()));
}

#[test]
fn the_home_on_the_line_counts() {
    let place = Place::new();
    place.ok(["init", "-q", "other"]);
    place.ok(["new", "theirs", "--home", "other"]);
    assert_eq!(
        offered(&place, &["wbhome", "--home", "other", "path", "2"]),
        ["20240615_theirs"]
    );
    assert_eq!(
        offered(&place, &["wbhome", "--home=other", "path", "2"]),
        ["20240615_theirs"]
    );
}

#[test]
fn completion_is_empty_and_silent_when_something_is_wrong() {
    let place = Place::new();
    assert!(offered(&place, &["wbhome", "path", "2"]).is_empty());
    let place = Place::with_sessions();
    place.put_home("index.json", "[{");
    assert!(offered(&place, &["wbhome", "path", "2"]).is_empty());
    place.put_home(
        "index.json",
        r#"[{"id": "20240603_a\u001b[2J"}, {"id": "20240604_b\nrm"}, {"id": "20240605_c"}]"#,
    );
    assert_eq!(offered(&place, &["wbhome", "path", "2"]), ["20240605_c"]);
}

#[test]
fn completion_takes_no_lock_and_writes_nothing() {
    let place = Place::with_sessions();
    let before = support::tree(&place.home());
    let lock = std::fs::File::open(place.home().join(".wbhome/lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(offered(&place, &["wbhome", "path", "2"]).len(), 3);
    assert_eq!(
        support::differences(&before, &support::tree(&place.home())),
        ""
    );
}

/// What bash itself has in hand after the press of the tab key.
#[test]
fn bash_completes() {
    if !has_tool("bash") {
        return;
    }
    let place = Place::with_sessions();
    let program = Path::new(env!("CARGO_BIN_EXE_wbhome"));
    let script = "source \"$1\"\n\
        spec=$(complete -p wbhome) || exit 1\n\
        function=${spec##*-F }; function=${function%% *}\n\
        COMP_WORDS=(wbhome path 2024060); COMP_CWORD=2; COMP_LINE='wbhome path 2024060'; COMP_POINT=19; COMP_TYPE=9\n\
        \"$function\" wbhome 2024060 path\n\
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut path = vec![program.parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let ran = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .arg(checked_in("completions/wbhome.bash"))
        .env_clear()
        .env("HOME", place.user_home())
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("LC_ALL", "C.UTF-8")
        .current_dir(place.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = Ran::of(ran);
    assert_eq!(
        ran.stdout.split_whitespace().collect::<Vec<_>>(),
        [
            "20240603_crawler",
            "20240604_数据清洗",
            "20240605_api_refactor"
        ],
        "{ran:?}"
    );
}
