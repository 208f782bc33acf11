//! `wbhome schedule`, with a `crontab` and a `systemctl` of the test's own: nobody's real one is ever touched.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use support::{Place, Ran, has_tool};

/// A place whose user has programs of their own in `bin`, and no others.
struct Machine {
    place: Place,
}

impl std::ops::Deref for Machine {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// Keeps the table in a file, and like the real one refuses a last line without an end.
const CRONTAB: &str = r#"#!/bin/sh
tab=ROOT/crontab
case "$1" in
-l) /bin/cat "$tab" 2>/dev/null || { echo "no crontab for me" >&2; exit 1; } ;;
-r) /bin/rm "$tab" ;;
-) /bin/cat >"$tab.new"
   if [ -n "$STRICT" ] && [ -n "$(/usr/bin/tail -c 1 "$tab.new")" ]; then echo "new crontab file is missing newline before EOF, can't install." >&2; exit 1; fi
   /bin/mv "$tab.new" "$tab" ;;
esac
"#;

/// Writes down what it was asked, and knows which timer is on.
const SYSTEMCTL: &str = r#"#!/bin/sh
[ "$2" = is-enabled ] || [ "$2" = is-active ] && exec /bin/test -e "ROOT/on-$3"
echo "$*" >>ROOT/asked
[ "$2" = enable ] && : >"ROOT/on-$4"
[ "$2" = disable ] && /bin/rm -f "ROOT/on-$4"
exit 0
"#;

impl Machine {
    fn new(programs: &[(&str, &str)]) -> Machine {
        let place = Place::with_home();
        std::fs::create_dir(place.path("bin")).unwrap();
        let machine = Machine { place };
        for (name, text) in programs {
            let text = text.replace("ROOT", &machine.root().display().to_string());
            let path = machine.put(format!("bin/{name}"), text);
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        machine
    }

    fn with_cron() -> Machine {
        Machine::new(&[("crontab", CRONTAB)])
    }

    fn with_systemd() -> Machine {
        let linger = "#!/bin/sh\necho Linger=no\n";
        Machine::new(&[("systemctl", SYSTEMCTL), ("loginctl", linger)])
    }

    fn schedule(&self, args: &[&str]) -> Ran {
        self.schedule_with(&[], args)
    }

    fn schedule_with(&self, env: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut command = self.command();
        command.env("PATH", self.path("bin"));
        // For systemd-analyze, where that is there.
        command.env("XDG_RUNTIME_DIR", self.root());
        command.envs(env.iter().copied());
        command.arg("schedule").args(args);
        Ran::of(command.output().unwrap())
    }

    fn id(&self) -> String {
        let marker: serde_json::Value =
            serde_json::from_str(&self.home_text(".wbhome/home.json")).unwrap();
        marker["id"].as_str().unwrap().to_owned()
    }

    /// What changes from run to run taken out.
    fn shown(&self, ran: &Ran) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_wbhome"))
            .canonicalize()
            .unwrap();
        let id = self.id();
        ran.shown(&self.place)
            .replace(&program.display().to_string(), "[PROGRAM]")
            .replace(&id, "[ID]")
            .replace(&id[..8], "[ID8]")
    }

    fn crontab(&self) -> Option<Vec<u8>> {
        std::fs::read(self.path("crontab")).ok()
    }

    /// The file of a unit.
    fn unit(&self, kind: &str) -> PathBuf {
        let name = format!("wbhome-nightly-{}.{kind}", &self.id()[..8]);
        self.user_home().join(".config/systemd/user").join(name)
    }
}

#[test]
fn show_prints_what_would_be_installed_and_changes_nothing() {
    let machine = Machine::with_cron();
    assert_snapshot!(machine.shown(&machine.schedule(&["show", "--at", "4:30"])), @r"
    exit: 0
    --- stdout
    Nothing of this home is installed.
    A line in the crontab would run the night at 04:30   `systemctl --user` does not work here, and there is `crontab`
      [PROGRAM] nightly --home [ROOT]/me/workbuddy_home

    your crontab:
      30 4 * * * [PROGRAM] nightly --home [ROOT]/me/workbuddy_home # wbhome-nightly [ID]

    Next: wbhome schedule install --at 04:30
    --- stderr
    ");
    assert_eq!(machine.crontab(), None);
    let ran = machine.schedule(&["install", "-n"]);
    assert!(
        ran.expect(0).stdout.ends_with("Nothing was changed.\n"),
        "{ran:?}"
    );
    assert_eq!(machine.crontab(), None);
}

#[test]
fn a_crontab_is_edited_only_with_a_yes() {
    let machine = Machine::with_cron();
    machine.put("crontab", "MAILTO=me\n");
    let ran = machine.schedule(&["install"]);
    assert_snapshot!(machine.shown(&ran), @r"
    exit: 1
    --- stdout
    --- stderr
    your crontab:
      + 0 3 * * * [PROGRAM] nightly --home [ROOT]/me/workbuddy_home # wbhome-nightly [ID]
    error: nothing was installed or removed
    hint: without a terminal to ask on: wbhome schedule install --yes
    ");
    assert_eq!(machine.crontab().unwrap(), b"MAILTO=me\n");
    let ran = machine.schedule(&["install", "-y"]);
    assert_snapshot!(machine.shown(&ran), @r"
    exit: 0
    --- stdout
    your crontab:
      + 0 3 * * * [PROGRAM] nightly --home [ROOT]/me/workbuddy_home # wbhome-nightly [ID]
    A line in the crontab runs the night at 03:00   `systemctl --user` does not work here, and there is `crontab`
      [PROGRAM] nightly --home [ROOT]/me/workbuddy_home
    --- stderr
    ");
    let ran = machine.schedule(&["show"]);
    assert_snapshot!(machine.shown(&ran), @r"
    exit: 0
    --- stdout
    installed: your crontab: 0 3 * * * [PROGRAM] nightly --home [ROOT]/me/workbuddy_home # wbhome-nightly [ID]
    Nothing to install: it is as it should be.
    --- stderr
    ");
}

#[test]
fn remove_gives_the_crontab_back_byte_for_byte() {
    for former in [
        &b""[..],
        b"# mine\n\n*/5 * * * * echo 100\\% \xff\n",
        b"0 1 * * * no-end",
        b"0 1 * * * backup # wbhome-nightly of somebody else\n\n",
        b"# wbhome-nightly is what I want to try\n0 1 * * * x",
    ] {
        let machine = Machine::with_cron();
        machine.put("crontab", former);
        machine.schedule(&["install", "-y"]).expect(0);
        let there = machine.crontab().unwrap();
        assert!(there.starts_with(former) && there.ends_with(b"\n"));
        machine.schedule(&["install", "-y"]).expect(0);
        assert_eq!(machine.crontab().unwrap(), there, "twice is once");
        machine
            .schedule(&["install", "-y", "--at", "5:05"])
            .expect(0);
        let now = machine.crontab().unwrap();
        assert_eq!(
            now.iter().filter(|b| **b == b'\n').count(),
            there.iter().filter(|b| **b == b'\n').count()
        );
        assert!(
            String::from_utf8_lossy(&now).contains("\n5 5 * * * ")
                || now.starts_with(b"5 5 * * * ")
        );
        machine.schedule(&["remove", "-y"]).expect(0);
        assert_eq!(machine.crontab().unwrap_or_default(), former);
        machine.schedule(&["remove"]).expect(0);
        assert_eq!(
            machine.crontab().unwrap_or_default(),
            former,
            "nothing to take out"
        );
    }
    // Where cron takes no last line without an end, it gets one.
    let machine = Machine::with_cron();
    machine.put("crontab", "0 1 * * * no-end");
    machine
        .schedule_with(&[("STRICT", "1")], &["install", "-y"])
        .expect(0);
    machine
        .schedule_with(&[("STRICT", "1")], &["remove", "-y"])
        .expect(0);
    assert_eq!(machine.crontab().unwrap(), b"0 1 * * * no-end\n");
}

#[test]
fn the_entries_of_another_home_stay() {
    let machine = Machine::with_cron();
    machine.ok(["init", "-q", "other"]);
    machine
        .schedule(&["install", "-y", "--home", "other", "--at", "1:00"])
        .expect(0);
    let others = machine.crontab().unwrap();
    machine.schedule(&["install", "-y"]).expect(0);
    assert!(machine.crontab().unwrap().starts_with(&others));
    machine.schedule(&["remove", "-y"]).expect(0);
    assert_eq!(machine.crontab().unwrap(), others);
}

#[test]
fn a_crontab_that_can_not_be_read_is_never_replaced() {
    let broken = "#!/bin/sh\n[ \"$1\" = -l ] && { echo 'crontab: can not open: Input/output error' >&2; exit 1; }\n: >ROOT/written\n";
    let machine = Machine::new(&[("crontab", broken)]);
    let ran = machine.schedule(&["install", "-y"]);
    ran.expect(1)
        .says(&["the crontab can not be read: crontab: can not open: Input/output error"]);
    assert!(!machine.path("written").exists());
    let denied =
        "#!/bin/sh\necho 'You (me) are not allowed to use this program (crontab)' >&2\nexit 1\n";
    let machine = Machine::new(&[("crontab", denied)]);
    let ran = machine.schedule(&["install", "-y", "--with", "cron"]);
    ran.expect(1)
        .says(&["You (me) are not allowed to use this program"]);
}

#[test]
fn a_systemd_timer_is_written_turned_on_and_taken_away() {
    let machine = Machine::with_systemd();
    let ran = machine.schedule(&["install", "-y", "--at", "02:15"]);
    assert_snapshot!(machine.shown(&ran), @r#"
    exit: 0
    --- stdout
    write [ROOT]/me/.config/systemd/user/wbhome-nightly-[ID8].service
      # wbhome-nightly [ID]: made by `wbhome schedule install`, taken out by `wbhome schedule remove`.
      # To change something, `systemctl --user edit` keeps it beside this file.
      [Unit]
      Description=The night of [ROOT]/me/workbuddy_home

      [Service]
      Type=oneshot
      ExecStart="[PROGRAM]" nightly --home "[ROOT]/me/workbuddy_home"
      Nice=10
      IOSchedulingClass=idle
      TimeoutStartSec=23h
    write [ROOT]/me/.config/systemd/user/wbhome-nightly-[ID8].timer
      # wbhome-nightly [ID]: made by `wbhome schedule install`, taken out by `wbhome schedule remove`.
      # To change something, `systemctl --user edit` keeps it beside this file.
      [Unit]
      Description=The night of [ROOT]/me/workbuddy_home

      [Timer]
      OnCalendar=*-*-* 02:15:00
      RandomizedDelaySec=10min
      Persistent=true

      [Install]
      WantedBy=timers.target
    run systemctl --user daemon-reload
    run systemctl --user enable --now wbhome-nightly-[ID8].timer
    run systemctl --user restart wbhome-nightly-[ID8].timer
    A systemd user timer runs the night at 02:15   `systemctl --user` works here
      [PROGRAM] nightly --home [ROOT]/me/workbuddy_home
    Your timers stop when you log out. So that they go on: loginctl enable-linger
    --- stderr
    "#);
    let asked = machine.text("asked").replace(&machine.id()[..8], "ID");
    assert_snapshot!(asked, @r"
    --user show-environment
    --user daemon-reload
    --user enable --now wbhome-nightly-ID.timer
    --user restart wbhome-nightly-ID.timer
    ");
    // Once more: nothing is written, nothing is turned on.
    std::fs::remove_file(machine.path("asked")).unwrap();
    let ran = machine.schedule(&["install", "-y"]);
    assert!(ran.expect(0).stdout.contains("as it should be"), "{ran:?}");
    assert_eq!(machine.text("asked"), "--user show-environment\n");
    // Turned off by hand, it is turned on again.
    let timer = machine.unit("timer");
    let on = machine.path(format!(
        "on-{}",
        timer.file_name().unwrap().to_str().unwrap()
    ));
    std::fs::remove_file(&on).unwrap();
    machine.schedule(&["install", "-y"]).expect(0);
    assert!(on.exists());
    machine.schedule(&["remove", "-y"]).expect(0);
    assert!(!timer.exists() && !machine.unit("service").exists() && !on.exists());
}

#[test]
fn another_kind_takes_the_place_of_the_former() {
    let machine = Machine::new(&[("systemctl", SYSTEMCTL), ("crontab", CRONTAB)]);
    machine.put("crontab", "0 1 * * * mine\n");
    machine
        .schedule(&["install", "-y", "--with", "cron", "--at", "4:44"])
        .expect(0);
    // What is installed stays unless another is named.
    let shown = machine.schedule(&["show", "--json"]).json();
    assert_eq!(
        (&shown["with"], &shown["at"]),
        (&"cron".into(), &"04:44".into())
    );
    assert_eq!(shown["steps"], serde_json::json!([]));
    machine
        .schedule(&["install", "-y", "--with", "systemd"])
        .expect(0);
    assert_eq!(machine.crontab().unwrap(), b"0 1 * * * mine\n");
    let timer = std::fs::read_to_string(machine.unit("timer")).unwrap();
    assert!(timer.contains("OnCalendar=*-*-* 04:44:00\n"), "{timer}");
}

#[test]
fn show_tells_what_is_stale() {
    let machine = Machine::with_cron();
    machine.schedule(&["install", "-y"]).expect(0);
    std::fs::rename(machine.home(), machine.path("moved")).unwrap();
    let ran = machine.schedule(&["show", "--home", "moved"]);
    let moved = format!(
        "it names another place of the home than {}",
        machine.path("moved").display()
    );
    assert!(ran.expect(0).stdout.contains(&moved), "{ran:?}");
    let text = String::from_utf8(machine.crontab().unwrap()).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_wbhome"))
        .canonicalize()
        .unwrap();
    machine.put(
        "crontab",
        text.replace(program.to_str().unwrap(), "/gone/wbhome"),
    );
    let ran = machine.schedule(&["show", "--home", "moved"]);
    assert!(
        ran.stdout.contains("it does not run this program"),
        "{ran:?}"
    );
    machine
        .schedule(&["install", "-y", "--home", "moved"])
        .expect(0);
    let ran = machine.schedule(&["show", "--home", "moved"]);
    assert!(ran.stdout.contains("as it should be"), "{ran:?}");
    assert_eq!(
        machine
            .crontab()
            .unwrap()
            .iter()
            .filter(|b| **b == b'\n')
            .count(),
        1
    );
}

#[test]
fn a_file_of_that_name_that_is_not_ours_stays() {
    let machine = Machine::with_systemd();
    std::fs::create_dir_all(machine.unit("timer").parent().unwrap()).unwrap();
    std::fs::write(machine.unit("timer"), "[Timer]\nOnCalendar=daily\n").unwrap();
    for verb in ["install", "remove"] {
        let ran = machine.schedule(&[verb, "-y"]);
        ran.expect(1).says(&["and is not wbhome's", "move it away"]);
    }
    assert!(!machine.unit("service").exists());
}

#[test]
fn what_can_not_be_done_here_is_said_before_anything_is_written() {
    let machine = Machine::new(&[]);
    let ran = machine.schedule(&["install", "-y"]);
    ran.expect(1)
        .says(&["`systemctl --user` does not work here"]);
    assert!(!machine.user_home().join(".config").exists());
    let shown = machine.schedule(&["show"]);
    assert!(
        shown.expect(0).stdout.contains("It can not be installed"),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("Persistent=true"), "{shown:?}");
    let ran = machine.schedule(&["install", "-y", "--at", "25:00"]);
    ran.expect(2)
        .says(&["write a time of the day such as 03:00"]);
    std::fs::rename(machine.home(), machine.path("a\nb")).unwrap();
    let ran = machine.schedule(&["show", "--home", "a\nb"]);
    ran.expect(1).says(&["holds a line break", "a\\nb"]);
}

/// The real one judges what is written; and what it does not take is not installed.
#[test]
fn systemd_itself_takes_the_units() {
    if !has_tool("systemd-analyze") {
        return;
    }
    let machine = Machine::with_systemd();
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("systemd-analyze"))
        .find(|path| path.exists());
    std::os::unix::fs::symlink(real.unwrap(), machine.path("bin/systemd-analyze")).unwrap();
    let hard = "主 页 \"50%\" $HOME \\n 'x'";
    std::fs::rename(machine.home(), machine.path(hard)).unwrap();
    let done = machine.schedule(&["install", "-y", "--home", hard, "--json"]);
    let document = done.expect(0).json();
    if document["checked"].is_null() {
        eprintln!("SKIPPED: systemd-analyze can not look at units here");
        return;
    }
    assert_eq!(document["checked"], "systemd-analyze verify");
    // A judge that finds something.
    let machine = Machine::with_systemd();
    let judge = "#!/bin/sh\necho \"$3:5: no such thing\" >&2\n";
    let path = machine.put("bin/systemd-analyze", judge);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = machine.schedule(&["install", "-y"]);
    ran.expect(1).says(&[
        "systemd does not take the units",
        "no such thing",
        "nothing was installed",
    ]);
    assert!(!machine.unit("service").exists());
}
