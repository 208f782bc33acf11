//! What holds for every verb: which home is meant, locks, signals, streams, colour, usage, and what a kill leaves.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::fs::File;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use support::corpus::Corpus;
use support::{Place, Ran, differences, tree};

// ---- which home ----------------------------------------------------------------------------------------------

/// Three homes: one to be named, one that holds a session to stand in, and the usual one.
fn three_homes() -> Place {
    let place = Place::new();
    for (home, task) in [
        ("named", "by_name"),
        ("outer", "outer"),
        ("me/workbuddy_home", "usual"),
    ] {
        place.ok(["init", "-q", home]);
        place.ok(["new", task, "-q", "--home", home]);
    }
    place
}

fn chosen(ran: &Ran) -> &str {
    ran.stdout
        .split("/sessions/20240615_")
        .nth(1)
        .unwrap()
        .trim_end()
}

#[test]
fn named_then_variable_then_ancestor_then_usual() {
    let place = three_homes();
    let inside = "outer/sessions/20240615_outer/context";
    let run = |folder: &str, env: Option<&str>, args: &[&str]| {
        let mut command = place.command();
        if let Some(home) = env {
            command.env("WBHOME", place.path(home));
        }
        Ran::of(
            command
                .current_dir(place.path(folder))
                .args(["path", "@1"])
                .args(args)
                .output()
                .unwrap(),
        )
    };
    let named = place.path("named").display().to_string();
    assert_eq!(
        chosen(&run(inside, Some("outer"), &["--home", &named])),
        "by_name"
    );
    assert_eq!(chosen(&run(inside, Some("named"), &[])), "by_name");
    assert_eq!(chosen(&run(inside, None, &[])), "outer");
    assert_eq!(chosen(&run("me", None, &[])), "usual");
    assert_eq!(
        chosen(&run(inside, None, &["--home", "../../.."])),
        "outer",
        "relative to the current folder"
    );
    let empty = place.run_with(&[("WBHOME", "")], &["path", "@1"]);
    assert_eq!(chosen(&empty), "usual", "an empty variable names nothing");
}

#[test]
fn a_named_home_that_is_not_there_is_an_error_never_another_one() {
    let place = three_homes();
    assert_snapshot!(place.run(["ls", "--home", "gone"]).shown(&place), @r"
    exit: 10
    --- stdout
    --- stderr
    error: --home names a folder that is not there: [ROOT]/gone
    hint: `wbhome init [ROOT]/gone` makes a home there
    ");
    assert_snapshot!(place.run(["ls", "--home", "me"]).shown(&place), @r"
    exit: 10
    --- stdout
    --- stderr
    error: --home names a folder that is no home: [ROOT]/me
    hint: `wbhome init [ROOT]/me` makes a home there
    ");
    assert_snapshot!(place.run_with(&[("WBHOME", "gone")], &["ls"]).shown(&place), @r"
    exit: 10
    --- stdout
    --- stderr
    error: $WBHOME names a folder that is not there: [ROOT]/gone
    hint: `wbhome init [ROOT]/gone` makes a home there
    ");
    let spaced = place.run(["ls", "--home", "not there"]);
    assert!(
        spaced.stderr.contains(&format!(
            "`wbhome init '{}'`",
            place.path("not there").display()
        )),
        "{spaced:?}"
    );
    let place = Place::new();
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 10
    --- stdout
    --- stderr
    error: there is no home here, nor in any folder above
    hint: `wbhome init [ROOT]/me/workbuddy_home` makes one
    hint: sessions on a sync drive: `wbhome migrate SRC DEST` makes one of them on the local disk
    hint: or name one with --home DIR, or in $WBHOME
    ");
    let output = place
        .command()
        .env_remove("HOME")
        .arg("ls")
        .output()
        .unwrap();
    assert_snapshot!(Ran::of(output).shown(&place), @r"
    exit: 10
    --- stdout
    --- stderr
    error: there is no home here, nor in any folder above
    hint: name one with --home DIR, or in $WBHOME
    ");
}

#[test]
fn every_verb_says_that_there_is_no_home() {
    let place = Place::new();
    for args in [
        &["new", "x"][..],
        &["ls"],
        &["path", "x"],
        &["label", "x", "--tag", "y"],
        &["index"],
        &["check"],
        &["check", "--repair"],
        &["check", "--empty-trash"],
        &["rm", "x"],
        &["archive", "x"],
        &["archive", "--idle"],
        &["unarchive", "x"],
        &["backup", "init", "x"],
        &["backup", "run"],
        &["backup", "ls"],
        &["backup", "verify"],
        &["backup", "prune"],
        &["backup", "adopt", "x"],
        &["backup", "accept", "x"],
        &["nightly"],
        &["search", "x"],
        &["schedule", "show"],
        &["schedule", "remove"],
        &["restore", "--from", "trash"],
        &["restore", "x/y", "--from", "twin"],
        &["migrate", "status"],
        &["migrate", "verify"],
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(10), ""), "{args:?}");
        assert!(ran.stderr.contains("hint: "), "{ran:?}");
    }
}

#[test]
fn a_home_of_a_newer_program_is_not_touched() {
    let place = Place::with_sessions();
    place.put_home(
        ".wbhome/home.json",
        r#"{"format": 7, "id": {"new": "shape"}}"#,
    );
    let before = tree(&place.home());
    for args in [
        &["ls"][..],
        &["new", "x"],
        &["label", "crawler", "--tag", "x"],
        &["index", "--rebuild"],
        &["check"],
    ] {
        assert_eq!(place.run(args).code, Some(12), "{args:?}");
    }
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 12
    --- stdout
    --- stderr
    error: the home was written by a newer wbhome (format 7, this program knows 1): [ROOT]/me/workbuddy_home
    hint: use the newer wbhome; nothing was touched
    ");
    assert_eq!(differences(&before, &tree(&place.home())), "");
}

#[test]
fn a_damaged_marker_is_told() {
    let place = Place::with_home();
    place.put_home(".wbhome/home.json", "{\"format\": 1, \"id\": \"ab");
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: can not understand [ROOT]/me/workbuddy_home/.wbhome/home.json: EOF while parsing a string at line 1 column 23
    hint: it says which home this is; bring it back from a backup, or move it away and run `wbhome init`
    ");
    std::fs::remove_file(place.home().join(".wbhome/home.json")).unwrap();
    assert_snapshot!(place.run(["ls"]).shown(&place), @r"
    exit: 10
    --- stdout
    --- stderr
    error: there is no home in [ROOT]/me/workbuddy_home
    hint: `wbhome init [ROOT]/me/workbuddy_home` makes one, or adopts the sessions that are there
    ");
}

// ---- the lock ------------------------------------------------------------------------------------------------

/// Holds the lock of the home as another program does.
fn hold(place: &Place, text: &str) -> File {
    let path = place.home().join(".wbhome/lock");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .unwrap();
    file.lock().unwrap();
    file.set_len(0).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn a_locked_home_names_the_holder() {
    let place = Place::with_sessions();
    let before = tree(&place.home());
    let _held = hold(
        &place,
        "wbhome nightly (process 4711, since 2024-06-15T03:00:00Z)",
    );
    let ran = place.run(["label", "crawler", "--tag", "x", "--lock-wait", "0s"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 11
    --- stdout
    --- stderr
    error: the home is in use by wbhome nightly (process 4711, since 2024-06-15T03:00:00Z): [ROOT]/me/workbuddy_home
    hint: wait until it is done, or longer: --lock-wait 10m
    ");
    for args in [&["new", "x"][..], &["index"], &["index", "--rebuild"]] {
        assert_eq!(
            place.run(args.iter().chain(&["--lock-wait", "0"])).code,
            Some(11),
            "{args:?}"
        );
    }
    // Whoever only reads does not wait.
    for args in [
        &["ls"][..],
        &["path", "@1"],
        &["check"],
        &["new", "x", "-n"],
        &["index", "-n"],
        &["label", "crawler", "--tag", "x", "-n"],
    ] {
        assert_eq!(place.run(args).code, Some(0), "{args:?}");
    }
    let ran = place.run(["new", "x", "--lock-wait", "0", "--json"]);
    assert_eq!(ran.error()["kind"], "locked");
    assert_eq!(ran.error()["exit"], 11);
    let without = |mut tree: std::collections::BTreeMap<Vec<u8>, support::Entry>| {
        tree.retain(|name, _| name != b".wbhome/lock");
        tree
    };
    assert_eq!(
        differences(&without(before), &without(tree(&place.home()))),
        ""
    );
}

#[test]
fn a_holder_may_be_nameless_or_hostile() {
    let place = Place::with_sessions();
    let held = hold(&place, "");
    let ran = place.run(["index", "--lock-wait", "0"]);
    assert!(ran.stderr.contains("in use by another process"), "{ran:?}");
    drop(held);
    let _held = hold(&place, "\u{1b}[2J\u{202e}");
    let ran = place.run(["index", "--lock-wait", "0"]);
    assert!(ran.stderr.contains("\\x1b[2J\\u{202e}"), "{ran:?}");
}

#[test]
fn waiting_for_a_lock_pays_when_it_is_given_back() {
    let place = Place::with_sessions();
    let held = hold(&place, "wbhome migrate (process 1)");
    let child = place
        .command()
        .args([
            "label",
            "crawler",
            "--tag",
            "waited",
            "--lock-wait",
            "1m",
            "-q",
        ])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(150));
    drop(held);
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(place.home_text("index.json").contains("waited"));
}

#[test]
fn how_long_to_wait_is_a_duration() {
    let place = Place::with_sessions();
    let _held = hold(&place, "x");
    let begun = Instant::now();
    assert_eq!(place.run(["index", "--lock-wait", "1s"]).code, Some(11));
    assert!(begun.elapsed() >= Duration::from_millis(950));
    assert_snapshot!(place.run(["index", "--lock-wait", "soon"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'soon' for '--lock-wait <DURATION>': `soon` is not a duration; write a number and a unit, such as 90s, 15m, 12h, 14d or 2w

    For more information, try '--help'.
    ");
}

#[test]
fn two_at_once_lose_nothing() {
    let place = Place::with_sessions();
    let children: Vec<_> = (0..6)
        .map(|n| {
            let tag = format!("tag{n}");
            place
                .command()
                .args(["label", "crawler", "--tag", &tag, "-q"])
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let tags = place.index()[0]["tags"].as_array().unwrap().len();
    assert_eq!(tags, 6);
}

// ---- signals and streams -------------------------------------------------------------------------------------

#[test]
fn an_interrupt_while_waiting_for_the_lock() {
    let place = Place::with_sessions();
    let _held = hold(&place, "wbhome nightly (process 1)");
    let child = place
        .command()
        .args(["index", "--lock-wait", "10m"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| handles_signals(&child));
    interrupt(&child);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_snapshot!(ran.shown(&place), @r"
    exit: 130
    --- stdout
    --- stderr
    error: interrupted
    hint: nothing was changed
    ");
}

/// Sends SIGINT, as Ctrl-C does.
fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// Waits for something that a running program is about to do.
fn wait_until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process has set up its handlers. Where there is no `/proc`, half a second must do.
fn handles_signals(child: &Child) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", child.id())) else {
        std::thread::sleep(Duration::from_millis(500));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    // Bit 0 is SIGHUP, which is set up last.
    caught & 1 == 1
}

#[test]
fn an_interrupted_migration_goes_on_later() {
    let place = Place::new();
    let corpus = Corpus {
        sessions: 40,
        turns: 30,
        old_path: place.path("drive").display().to_string(),
        ..Corpus::default()
    };
    let written = corpus.write(&place.path("drive")).unwrap();
    let source = tree(&place.path("drive"));
    let mut child = place
        .command()
        .args(["migrate", "drive", "home", "--no-state", "-y"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // In the middle of copying.
    wait_until(|| place.path("home/sessions").exists() || child.try_wait().unwrap().is_some());
    interrupt(&child);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_snapshot!(ran.shown(&place), @r"
    exit: 130
    --- stdout
    --- stderr
    error: interrupted
    hint: what was copied stays, and the same command goes on from there
    ");
    assert_eq!(differences(&source, &tree(&place.path("drive"))), "");
    let outcome = place.json(["migrate", "drive", "home", "--no-state", "-y"]);
    assert_eq!(outcome["sessions"]["home_folders"], written.ids.len());
    assert_eq!(
        place.run(["migrate", "verify", "--home", "home"]).code,
        Some(0)
    );
}

#[test]
fn a_broken_pipe_is_silent() {
    let place = Place::with_sessions();
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["path", "@1"],
        &["check", "-v"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place
            .command()
            .args(args)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), stderr.as_str()),
            (Some(0), ""),
            "{args:?}"
        );
    }
    // Nor does it matter when nobody reads the errors.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = place
        .command()
        .args(["path", "nothing"])
        .stderr(writer)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn results_go_to_standard_output_and_the_rest_to_standard_error() {
    let place = Place::with_sessions();
    place.session("20240606_by_hand", 6);
    let ran = place.run(["ls", "--json"]);
    serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap();
    assert_eq!(ran.stderr, "", "hints are for people");
    let ran = place.run(["path", "nothing"]);
    assert!(
        ran.stdout.is_empty() && ran.stderr.starts_with("error: "),
        "{ran:?}"
    );
}

#[test]
fn a_full_disk_under_standard_output_is_told() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: no /dev/full");
        return;
    };
    let place = Place::with_sessions();
    let output = place.command().arg("ls").stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_snapshot!(stderr, @"
    error: can not write to standard output: no space left on device
    hint: the disk is full: make room, and run it again
    ");
}

// ---- colour --------------------------------------------------------------------------------------------------

#[test]
fn colour_is_for_who_wants_it() {
    let place = Place::with_sessions();
    let coloured = |env: &[(&str, &str)], args: &[&str]| {
        let ran = place.run_with(env, args);
        ran.stdout.contains('\u{1b}') || ran.stderr.contains('\u{1b}')
    };
    for args in [&["check"][..], &["path", "nothing"]] {
        let with = |flag: &'static str| [args, &["--color", flag]].concat();
        assert!(!coloured(&[], args), "no terminal, no colour");
        assert!(coloured(&[], &with("always")));
        assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &with("never")));
        assert!(coloured(&[("CLICOLOR_FORCE", "1")], args));
        assert!(!coloured(&[("NO_COLOR", "1")], args));
        assert!(
            coloured(&[("NO_COLOR", "1")], &with("always")),
            "the flag is nearer than the variable"
        );
        assert!(!coloured(&[("TERM", "dumb")], args));
    }
    let ran = place.run(["ls", "--json", "--color", "always"]);
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
}

// ---- usage ---------------------------------------------------------------------------------------------------

#[test]
fn usage_errors() {
    let place = Place::with_sessions();
    assert_snapshot!(place.run(["lst"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'ls'

    Usage: wbhome [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(place.run(["ls", "--colour"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: unexpected argument '--colour' found

      tip: a similar argument exists: '--color'

    Usage: wbhome ls --color <WHEN> [PATTERN]

    For more information, try '--help'.
    ");
    assert_snapshot!(place.run(["path"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      <SESSION[/PATH]>

    Usage: wbhome path <SESSION[/PATH]>

    For more information, try '--help'.
    ");
    assert_snapshot!(place.run(["ls", "-q", "-v"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the argument '--quiet' cannot be used with '--verbose'

    Usage: wbhome ls --quiet [PATTERN]

    For more information, try '--help'.
    ");
    assert_snapshot!(place.run(["ls", "--color", "red"]).shown(&place), @r"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'red' for '--color <WHEN>'
      [possible values: auto, always, never]

    For more information, try '--help'.
    ");
}

#[test]
fn usage_errors_as_json() {
    let place = Place::with_sessions();
    let message = |args: &[&str]| {
        let ran = place.run(args.iter().chain(&["--json"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        let error = ran.error();
        assert_eq!(
            (error["kind"].as_str(), error["exit"].as_i64()),
            (Some("usage"), Some(2))
        );
        assert!(!error["hints"].as_array().unwrap().is_empty());
        error["message"].as_str().unwrap().to_owned()
    };
    assert_snapshot!(message(&["path"]), @r"the following required arguments were not provided: <SESSION[/PATH]>");
    assert_snapshot!(message(&["lst"]), @r"unrecognized subcommand 'lst'");
    assert_snapshot!(message(&["migrate", "only one"]), @r"the following required arguments were not provided: <DEST>");
    assert_snapshot!(message(&["ls", "--since", "tomorrowish"]), @r"`tomorrowish` is not a moment");
    assert_snapshot!(message(&["ls", "-q", "-v"]), @r"the argument '--quiet' cannot be used with '--verbose'");
    assert_snapshot!(message(&["index", "--lock-wait", "soon"]), @r"invalid value 'soon' for '--lock-wait <DURATION>': `soon` is not a duration; write a number and a unit, such as 90s, 15m, 12h, 14d or 2w");
    assert_snapshot!(message(&[]), @r"'wbhome' requires a subcommand but one was not provided [subcommands: init, new, ls, show, path, search, du, label, mv, rm, restore, history, diff, index, check, commit, archive, unarchive, rotate, backup, drill, doctor, relink, migrate, nightly, schedule, relay, lease, export, completions, shell-init, man]");
}

#[test]
fn an_error_as_json_is_one_document() {
    let place = Place::with_sessions();
    let ran = place.run(["path", "crawlre", "--json"]);
    assert_snapshot!(ran.shown(&place), @r#"
    exit: 1
    --- stdout
    --- stderr
    {"schema":"wbhome/error/1","kind":"failed","message":"there is no session `crawlre`","hints":["did you mean 20240603_crawler?"],"exit":1}
    "#);
}

#[test]
fn help_names_every_verb_and_the_exit_codes() {
    let place = Place::new();
    let help = place.ok(["--help"]);
    for verb in [
        "init",
        "new",
        "ls",
        "show",
        "path",
        "label",
        "index",
        "check",
        "migrate",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
        let ran = place.run([verb, "--help"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(ran.stdout.contains("Example"), "{verb} shows how");
    }
    assert!(help.contains("130 interrupted"));
}

#[test]
fn global_flags_may_stand_anywhere() {
    let place = Place::with_sessions();
    let before = place.ok(["--json", "ls"]);
    assert_eq!(before, place.ok(["ls", "--json"]));
    assert_eq!(place.ok(["-n", "new", "x"]), place.ok(["new", "-n", "x"]));
    assert_eq!(
        place.names("sessions"),
        Place::with_sessions().names("sessions")
    );
}

// ---- what was stopped ----------------------------------------------------------------------------------------

/// Leaves in the journal what a killed `label` leaves.
fn leave_something(place: &Place) {
    place.put_home(
        ".wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json",
        r#"{"command": "label", "since": "2024-06-14T00:00:00Z", "steps": [{"do": "views", "ids": null}]}"#,
    );
}

#[test]
fn what_was_stopped_is_settled_and_said() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "--project", "alpha", "-q"]);
    std::fs::remove_dir_all(place.home().join("projects/alpha")).unwrap();
    leave_something(&place);
    assert_snapshot!(place.run(["new", "x"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240615_x
    --- stderr
    `wbhome label` was stopped in the middle; completed now: set 1 project view
    ");
    assert_eq!(
        place.names("projects"),
        ["alpha/", "alpha/20240603_crawler"]
    );
    assert_eq!(place.run(["new", "y"]).stderr, "");
}

#[test]
fn a_home_that_was_merely_found_is_not_settled() {
    let place = Place::new();
    place.ok(["init", "-q", "theirs"]);
    place.ok(["new", "x", "-q", "--home", "theirs"]);
    place.put(
        "theirs/.wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json",
        r#"{"command": "new", "since": "2024-06-14T00:00:00Z", "steps": [{"do": "rename", "from": "sessions/20240615_x", "to": "agents/moved"}]}"#,
    );
    let before = tree(&place.path("theirs/sessions"));
    let ran = place.run_in("theirs/sessions", &["new", "y"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: a command that was stopped here has left something to be done in [ROOT]/theirs
    hint: name the home, so that it is settled: --home [ROOT]/theirs
    ");
    assert_eq!(
        place.run_in("theirs", &["ls"]).code,
        Some(0),
        "it may be looked at"
    );
    assert_eq!(
        differences(&before, &tree(&place.path("theirs/sessions"))),
        ""
    );
    assert!(!place.path("theirs/agents/moved").exists());
}

#[test]
fn a_journal_entry_can_not_lead_out() {
    let place = Place::with_sessions();
    place.put("outside/precious", "1");
    place.put_home(
        ".wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json",
        r#"{"command": "new", "since": "2024-06-14T00:00:00Z", "steps": [{"do": "rename", "from": "../../outside/precious", "to": "sessions/x"}]}"#,
    );
    let ran = place.run(["index"]);
    assert_snapshot!(ran.shown(&place), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the journal entry names a path outside of the home: [ROOT]/me/workbuddy_home/.wbhome/journal/20240614T000000Z-00000000000000000000000000000001.json
    hint: no command wrote that: look into it; moved away, it is forgotten
    ");
    assert_eq!(place.text("outside/precious"), "1");
}

#[cfg(feature = "failpoints")]
mod killed {
    use std::collections::{BTreeMap, BTreeSet};

    use rayon::prelude::*;

    use super::*;

    /// A command, where it dies, and what is prepared for it.
    struct Case {
        failpoint: &'static str,
        args: &'static [&'static str],
        prepare: fn(&Place),
    }

    const NEW: &[&str] = &[
        "new",
        "crawler",
        "--date",
        "2024-06-07",
        "--project",
        "alpha",
        "--tag",
        "web",
    ];
    const LABEL: &[&str] = &[
        "label",
        "20240603_crawler",
        "清洗",
        "--project",
        "beta",
        "--tag",
        "x",
    ];

    fn nothing(_: &Place) {}

    fn by_hand(place: &Place) {
        place.session("20240606_by_hand", 6);
    }

    fn broken_index(place: &Place) {
        place.put_home(
            "index.json",
            "[{\"id\": \"20240603_crawler\", \"tags\": [\"precious\"",
        );
    }

    /// What a write leaves that was killed between two steps.
    fn half_written(place: &Place) {
        place.put_home(".wbhome-tmp-4711-1", "an edit by hand");
    }

    const CASES: &[Case] = &[
        Case {
            failpoint: "new.built",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.begun",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.renamed",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.indexed",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.viewed",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.done",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "index.before",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "index.written",
            args: NEW,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.begun",
            args: LABEL,
            prepare: nothing,
        },
        Case {
            failpoint: "index.before",
            args: LABEL,
            prepare: nothing,
        },
        Case {
            failpoint: "index.written",
            args: LABEL,
            prepare: nothing,
        },
        Case {
            failpoint: "journal.begun",
            args: &["index"],
            prepare: by_hand,
        },
        Case {
            failpoint: "index.before",
            args: &["index"],
            prepare: by_hand,
        },
        Case {
            failpoint: "index.written",
            args: &["index"],
            prepare: by_hand,
        },
        Case {
            failpoint: "index.kept",
            args: &["index", "--rebuild"],
            prepare: broken_index,
        },
        Case {
            failpoint: "index.before",
            args: &["index", "--rebuild"],
            prepare: broken_index,
        },
        Case {
            failpoint: "index.written",
            args: &["index", "--rebuild"],
            prepare: broken_index,
        },
        Case {
            failpoint: "trash.noted",
            args: &["index"],
            prepare: half_written,
        },
    ];

    fn every_failpoint() -> BTreeSet<String> {
        let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut names = BTreeSet::new();
        for entry in walkdir::WalkDir::new(src).into_iter().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let hits = text.split("failpoint::hit(\"").skip(1);
                names.extend(hits.map(|hit| hit.split('"').next().unwrap().to_owned()));
            }
        }
        names
    }

    /// Failpoints whose cases stand beside the verb that comes to them.
    const ELSEWHERE: [(&str, &str); 80] = [
        ("relay.begun", "tests/relay_kill.rs"),
        ("relay.keeping", "tests/relay_kill.rs"),
        ("relay.put", "tests/relay_kill.rs"),
        ("relay.removed", "tests/relay_kill.rs"),
        ("relay.built", "tests/relay_kill.rs"),
        ("relay.named", "tests/relay_kill.rs"),
        ("relay.linked", "tests/relay_kill.rs"),
        ("relay.synced", "tests/relay_kill.rs"),
        ("relay.recorded", "tests/relay_kill.rs"),
        ("restore-all.begun", "tests/disaster.rs"),
        ("restore-all.laid", "tests/disaster.rs"),
        ("restore-all.ready", "tests/disaster.rs"),
        ("restore-all.moved", "tests/disaster.rs"),
        ("restore-all.home", "tests/disaster.rs"),
        ("restore-all.state-ready", "tests/disaster.rs"),
        ("restore-all.state-moved", "tests/disaster.rs"),
        ("restore-backup.built", "tests/restore_backup.rs"),
        ("relay-fetch.built", "tests/relay_fetch.rs"),
        ("relay-fetch.noted", "tests/relay_fetch.rs"),
        ("relay-take.built", "tests/relay_take.rs"),
        ("relay-take.noted", "tests/relay_take.rs"),
        ("relay-take.away", "tests/relay_take.rs"),
        ("mend.labelled", "tests/relay_take.rs"),
        ("commit.noted", "tests/commit.rs"),
        ("commit.locked", "tests/commit.rs"),
        ("commit.packed", "tests/commit.rs"),
        ("commit.folding", "tests/commit.rs"),
        ("commit.indexed", "tests/commit.rs"),
        ("commit.named", "tests/commit.rs"),
        ("swap.back", "tests/state.rs"),
        ("swap.begun", "tests/state.rs"),
        ("swap.staged", "tests/state.rs"),
        ("swap.committed", "tests/state.rs"),
        ("swap.step", "tests/state.rs"),
        ("swap.done", "tests/state.rs"),
        ("archive.published", "tests/archive.rs"),
        ("archive.away", "tests/archive.rs"),
        ("journal.turned", "tests/archive.rs"),
        ("mend.archived", "tests/archive.rs"),
        ("mend.discarded", "tests/archive.rs"),
        ("unarchive.unpacked", "tests/unarchive.rs"),
        ("mend.unarchived", "tests/unarchive.rs"),
        ("journal.entry_renamed", "tests/relink.rs"),
        ("mend.put-away", "tests/rm.rs"),
        ("mend.removed", "tests/rm.rs"),
        ("mend.returned", "tests/restore.rs"),
        ("mend.brought-back", "tests/restore.rs"),
        ("mend.replaced", "tests/restore.rs"),
        ("mend.index-back", "tests/restore.rs"),
        ("mend.copied", "tests/repair.rs"),
        ("mend.folder-made", "tests/repair.rs"),
        ("mend.mode-set", "tests/repair.rs"),
        ("mend.link-kept", "tests/repair.rs"),
        ("mend.pointed", "tests/repair.rs"),
        ("trash.emptied", "tests/repair.rs"),
        ("backup.pack", "tests/backup_store.rs"),
        ("backup.copy", "tests/backup_store.rs"),
        ("backup.packed", "tests/backup_store.rs"),
        ("backup.snapshot", "tests/backup_store.rs"),
        ("prune.snapshot", "tests/backup_store.rs"),
        ("prune.pack", "tests/backup_store.rs"),
        ("rotate.copied", "tests/rotate_kill.rs"),
        ("rotate.named", "tests/rotate_kill.rs"),
        ("rotate.cut", "tests/rotate_kill.rs"),
        ("rotate.compressed", "tests/rotate_kill.rs"),
        ("rotate.compressed-named", "tests/rotate_kill.rs"),
        ("cut.unmarked", "tests/rotate_kill.rs"),
        ("cut.marked", "tests/rotate_kill.rs"),
        ("cut.mark-synced", "tests/rotate_kill.rs"),
        ("cut.slice", "tests/rotate_kill.rs"),
        ("cut.collapsed", "tests/rotate_kill.rs"),
        ("cut.out", "tests/rotate_kill.rs"),
        ("cut.noted", "tests/rotate_kill.rs"),
        ("cut.cleared", "tests/rotate_kill.rs"),
        ("cut.unblanked", "tests/rotate_kill.rs"),
        ("cut.blanked", "tests/rotate_kill.rs"),
        ("export.copied", "tests/export.rs"),
        ("export.published", "tests/export.rs"),
        ("cut.rest", "tests/rotate_kill.rs"),
        ("cut.truncated", "tests/rotate_kill.rs"),
    ];

    #[test]
    fn every_failpoint_has_a_case() {
        let mut covered: BTreeSet<String> = CASES.iter().map(|c| c.failpoint.to_owned()).collect();
        covered.insert("init.before-marker".into());
        for (failpoint, file) in ELSEWHERE {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read_to_string(path).unwrap();
            assert!(
                text.contains(&format!("\"{failpoint}\""))
                    || text.contains(&format!("\"{failpoint}:")),
                "{file}: {failpoint}"
            );
            covered.insert(failpoint.to_owned());
        }
        assert_eq!(covered, every_failpoint());
    }

    /// Everything below `sessions/` but what a case makes.
    fn content(place: &Place) -> BTreeMap<Vec<u8>, support::Entry> {
        tree(&place.home().join("sessions"))
            .into_iter()
            .filter(|(name, _)| !name.is_empty() && !name.starts_with(b"20240607_"))
            .collect()
    }

    fn kill(place: &Place, failpoint: &str, args: &[&str]) {
        let ran = place.run_with(&[("WBHOME_FAILPOINT", failpoint)], args);
        assert_eq!(
            ran.code, None,
            "{args:?} did not come to {failpoint}: {ran:?}"
        );
    }

    /// Kills the command, sees that nothing is lost, and lets the next command settle it. Returns what that says.
    fn kill_and_settle(case: &Case) -> String {
        let at = case.failpoint;
        let place = Place::with_sessions();
        let labels = ["--tag", "kept", "--sync-tag", "laptop"];
        place.ok(["label", "crawler", "-q"].iter().chain(&labels));
        (case.prepare)(&place);
        let (before, index) = (content(&place), place.home_text("index.json"));
        let unharmed = || assert_eq!(differences(&before, &content(&place)), "", "{at}");
        kill(&place, at, case.args);
        unharmed();
        // The index is the old one or the new one, never a part.
        let now = place.home_text("index.json");
        assert!(
            now == index || serde_json::from_str::<serde_json::Value>(&now).is_ok(),
            "{now}"
        );

        // `--rebuild` where only that can go on; else any command that writes.
        let next: &[&str] = match case.args {
            ["index", "--rebuild"] => &["index", "--rebuild"],
            _ => &["index"],
        };
        let look = place.run(next.iter().chain(&["-n"]));
        assert_eq!(look.code, Some(0), "{at}: looking works at once");
        let ran = place.run(next);
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
        place.ok(["index", "-q"]);
        assert_eq!(place.run(["index"]).stderr, "", "{at}: it is said once");
        unharmed();
        assert_eq!(place.run(["check"]).code, Some(0), "{at}");
        assert!(place.names(".wbhome/journal").is_empty(), "{at}");
        assert!(
            place
                .names(".wbhome")
                .iter()
                .all(|n| !n.starts_with("tmp/new-")),
            "{at}"
        );
        if !case.args.contains(&"--rebuild") {
            let first = &place.index()[0];
            assert!(
                first["tags"].as_array().unwrap().contains(&"kept".into()),
                "{first}"
            );
            assert_eq!(first["sync_tag"], "laptop");
        }
        let said = Ran {
            stdout: String::new(),
            ..ran
        }
        .settled(&place);
        let lines = said.lines().skip(3).map(|line| format!("  {line}\n"));
        format!("{} at {at}\n{}", case.args[0], lines.collect::<String>())
    }

    #[test]
    fn nothing_is_lost_and_the_next_command_settles_it() {
        let said: Vec<String> = CASES.par_iter().map(kill_and_settle).collect();
        let said = said.concat();
        assert_snapshot!(said, @r"
        new at new.built
        new at journal.begun
          `wbhome new` was stopped in the middle; completed now: put sessions/20240607_crawler in its place; indexed 20240607_crawler; set 1 project view
        new at journal.renamed
          `wbhome new` was stopped in the middle; completed now: indexed 20240607_crawler; set 1 project view
        new at journal.indexed
          `wbhome new` was stopped in the middle; completed now: set 1 project view
        new at journal.viewed
          `wbhome new` was stopped in the middle, and left nothing half done; run it again if its work is missing
        new at journal.done
          `wbhome new` was stopped in the middle, and left nothing half done; run it again if its work is missing
        new at index.before
          `wbhome new` was stopped in the middle; completed now: indexed 20240607_crawler; set 1 project view
        new at index.written
          `wbhome new` was stopped in the middle; completed now: set 1 project view
        label at journal.begun
          `wbhome label` was stopped in the middle, and left nothing half done; run it again if its work is missing
        label at index.before
          `wbhome label` was stopped in the middle, and left nothing half done; run it again if its work is missing
        label at index.written
          `wbhome label` was stopped in the middle; completed now: set 2 project views
        index at journal.begun
          `wbhome index` was stopped in the middle, and left nothing half done; run it again if its work is missing
        index at index.before
          `wbhome index` was stopped in the middle, and left nothing half done; run it again if its work is missing
        index at index.written
          `wbhome index` was stopped in the middle, and left nothing half done; run it again if its work is missing
        index at index.kept
          warning: `wbhome index` was stopped in the middle, and can not be completed yet: the index is broken at line 1, column 47 (EOF while parsing a list): [ROOT]/me/workbuddy_home/index.json
        index at index.before
          warning: `wbhome index` was stopped in the middle, and can not be completed yet: the index is broken at line 1, column 47 (EOF while parsing a list): [ROOT]/me/workbuddy_home/index.json
        index at index.written
          `wbhome index` was stopped in the middle, and left nothing half done; run it again if its work is missing
        index at trash.noted
          a command was stopped in the middle; completed now: a command was stopped while it wrote this: .wbhome/trash/20240615T120000Z-2/.wbhome-tmp-4711-1
        ");
    }

    #[test]
    fn a_new_session_is_there_whole_or_not_at_all() {
        for case in CASES.iter().filter(|case| case.args[0] == "new") {
            let place = Place::with_sessions();
            kill(&place, case.failpoint, case.args);
            let half = place.home().join("sessions/20240607_crawler");
            if half.exists() {
                for part in ["session.json", "context", "memory", "artifacts", "logs"] {
                    assert!(half.join(part).exists(), "{}: {part}", case.failpoint);
                }
            }
            place.ok(["index", "-q"]);
            let index = place.index();
            let entry = index
                .as_array()
                .unwrap()
                .iter()
                .find(|e| e["id"] == "20240607_crawler");
            assert_eq!(entry.is_some(), half.exists(), "{}", case.failpoint);
            if let Some(entry) = entry {
                assert_eq!(entry["project"], "alpha", "{}", case.failpoint);
                assert!(
                    place
                        .home()
                        .join("projects/alpha/20240607_crawler/session.json")
                        .exists()
                );
            }
        }
    }

    #[test]
    fn a_rebuild_that_was_killed_keeps_the_broken_index() {
        for failpoint in ["index.kept", "index.before", "index.written"] {
            let place = Place::with_sessions();
            broken_index(&place);
            let broken = place.home_text("index.json");
            kill(&place, failpoint, &["index", "--rebuild"]);
            place.ok(["index", "--rebuild", "-q"]);
            let kept = place.home_text(".wbhome/trash/20240615T120000Z/index.json");
            assert_eq!(kept, broken, "{failpoint}");
        }
    }

    #[test]
    fn a_home_half_made_is_none_and_is_completed() {
        let place = Place::new();
        kill(&place, "init.before-marker", &["init"]);
        assert_snapshot!(place.run(["ls"]).shown(&place), @r"
        exit: 10
        --- stdout
        --- stderr
        error: there is no home in [ROOT]/me/workbuddy_home
        hint: `wbhome init [ROOT]/me/workbuddy_home` makes one, or adopts the sessions that are there
        ");
        assert_snapshot!(place.run(["init"]).shown(&place), @r"
        exit: 0
        --- stdout
        [ROOT]/me/workbuddy_home is a home now; what was there is untouched.
        Its history begins in [ROOT]/me/workbuddy_home/.git.
        Next: wbhome check --home [ROOT]/me/workbuddy_home
        --- stderr
        ");
        place.ok(["check"]);
        // Also where it adopts sessions.
        let place = Place::new();
        place.put(
            "home/sessions/20240603_x/session.json",
            "{\"id\": \"20240603_x\"}",
        );
        kill(&place, "init.before-marker", &["init", "home"]);
        place.ok(["init", "home"]);
        let listed = place.json(["ls", "--home", "home"]);
        assert_eq!(listed["sessions"][0]["id"], "20240603_x", "{listed}");
    }
}

#[test]
fn a_command_that_is_called_otherwise_elsewhere_is_named() {
    let place = Place::with_home();
    let tip = |line: &str| {
        let ran = place.run(line.split(' '));
        assert_eq!(ran.code, Some(2), "{line}");
        let tips = ran.stderr.lines().filter(|line| line.contains("tip: "));
        tips.map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (typed, meant) in [
        ("grep x", "search"),
        ("find x", "search"),
        ("cat x", "show"),
        ("remove x", "rm"),
        ("list", "ls"),
        ("rename a b", "mv"),
    ] {
        let wanted = format!("tip: a similar subcommand exists: '{meant}'");
        assert_eq!(tip(typed), wanted, "{typed}");
    }
    assert!(tip("help show").contains("`wbhome COMMAND --help`"));
}
