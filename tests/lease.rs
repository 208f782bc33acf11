//! `wbhome lease`: one writer at a time, as far as a plain folder allows.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::json;
use support::relay::{DESK, Devices, LAPTOP, SHARED, said_in, write_said};
use support::terminal::Terminal;
use support::{Place, Ran};

impl Devices {
    /// A run whose text does not differ from run to run.
    fn shown(&self, place: &Place, ran: &Ran) -> String {
        let root = self.laptop.root();
        ran.shown(place).replace(root.to_str().unwrap(), "[LAPTOP]")
    }
}

fn later(place: &Place, now: &str, args: &[&str]) -> Ran {
    place.run_with(&[("WBHOME_NOW", now)], args)
}

#[test]
fn one_takes_it_and_the_other_sees_that() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    assert_snapshot!(laptop.run(["lease", "take", "数据", "-n"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is free, and would be taken
    Nothing was changed.
    --- stderr
    ");
    assert_eq!(devices.said(LAPTOP)["leases"], json!(null));
    assert_snapshot!(laptop.run(["lease", "take", "数据"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is this device's now
    Other devices know of it when the sync client has carried it.
    --- stderr
    ");
    assert_eq!(
        devices.said(LAPTOP)["leases"],
        json!({SHARED: {"epoch": 1, "since": "2024-06-15T12:00:00Z"}})
    );
    assert_snapshot!(laptop.run(["lease", "take", "数据"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is this device's already
    --- stderr
    ");

    assert_snapshot!(desk.run(["lease", "take", "数据"]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: laptop holds the lease of `20240604_数据清洗` since 2024-06-15 12:00 by its clock; its file in the relay is new to this home
    hint: `wbhome lease release 20240604_数据清洗` there lets go of it; `wbhome lease steal 20240604_数据清洗` here asks nobody
    ");
    assert_snapshot!(desk.run(["lease", "release", "数据"]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: laptop holds the lease of `20240604_数据清洗` since 2024-06-15 12:00 by its clock; its file in the relay was seen to change last on 2024-06-15 12:00 (just now)
    hint: `wbhome lease release 20240604_数据清洗` there lets go of it; `wbhome lease steal 20240604_数据清洗` here asks nobody
    ");
    let ran = later(
        desk,
        "2024-06-15T15:00:00Z",
        &["lease", "take", "数据", "-q"],
    );
    assert_snapshot!(ran.shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: laptop holds the lease of `20240604_数据清洗` since 2024-06-15 12:00 by its clock; its file in the relay was seen to change last on 2024-06-15 12:00 (3 hours ago)
    ");
    assert_snapshot!(later(desk, "2024-06-15T15:00:00Z", &["lease", "ls"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  laptop  2024-06-15 12:00  3 hours ago
    --- stderr
    ");
    assert_snapshot!(laptop.run(["lease", "ls"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  this device  2024-06-15 12:00  -
    --- stderr
    ");

    assert_snapshot!(laptop.run(["lease", "release", "数据"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease was released
    --- stderr
    ");
    assert_snapshot!(laptop.run(["lease", "release", "数据"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is nobody's
    --- stderr
    ");
    assert_eq!(devices.said(LAPTOP)["released"], json!({SHARED: 1}));
    desk.ok(["lease", "take", "数据"]);
    assert_eq!(devices.said(DESK)["leases"][SHARED]["epoch"], 2);
}

#[test]
fn a_theft_is_asked_for() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    laptop.ok(["lease", "take", "数据", "-q"]);
    let steal = ["lease", "steal", "数据"];
    assert_snapshot!(desk.run([&steal[..], &["-n"]].concat()).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease would be taken from laptop
    Nothing was changed.
    --- stderr
    ");
    let before = devices.said(DESK);
    assert_snapshot!(desk.run(steal).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    laptop holds the lease of `20240604_数据清洗` since 2024-06-15 12:00 by its clock; its file in the relay is new to this home.
    Nobody is asked there, and it may be written to until the other device has seen this. Both versions are kept.
    error: the lease of `20240604_数据清洗` would be taken from who holds it now
    hint: --yes takes it without a question; -n shows it
    ");
    assert_eq!(devices.said(DESK), before);
    assert_snapshot!(desk.run([&steal[..], &["--yes"]].concat()).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease was taken from laptop
    Other devices know of it when the sync client has carried it.
    --- stderr
    ");
    assert_eq!(devices.said(DESK)["leases"][SHARED]["epoch"], 2);

    // The one that had it sees that, and gives its claim up.
    assert_snapshot!(laptop.run(["lease", "ls"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  desk    2024-06-15 12:00  after 2024-06-15 12:00  this device
    --- stderr
    hint: this device was overtaken; to give its claim up: wbhome lease release 20240604_数据清洗
    ");
    assert_snapshot!(laptop.run(["lease", "release", "--all"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is desk's; the claim of this device is gone
    --- stderr
    ");
    assert_snapshot!(laptop.run(["lease", "release", "--all"]).shown(laptop), @r"
    exit: 0
    --- stdout
    This device holds no lease.
    --- stderr
    ");
    assert_eq!(devices.said(LAPTOP)["leases"], json!({}));
    // Of nobody it is taken.
    desk.ok(["lease", "release", "--all"]);
    let ran = laptop.run(steal);
    assert_snapshot!(ran.shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is this device's now
    Other devices know of it when the sync client has carried it.
    --- stderr
    ");
    assert_eq!(devices.said(LAPTOP)["leases"][SHARED]["epoch"], 3);
}

#[test]
fn on_a_terminal_the_answer_decides() {
    let devices = Devices::new();
    let desk = &devices.desk;
    devices.laptop.ok(["lease", "take", "数据", "-q"]);
    let stolen = |answer: &str| {
        let program = env!("CARGO_BIN_EXE_wbhome");
        let args = [program, "lease", "steal", "数据"];
        let mut terminal = Terminal::start(&args, 100, |command| {
            command
                .env_clear()
                .env("HOME", desk.user_home())
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("WBHOME_NOW", support::NOW)
                .current_dir(desk.root());
        });
        terminal.shows(
            0,
            &["laptop holds the lease of", "who holds it now?", "[y/N]"],
        );
        terminal.press(answer);
        terminal.end();
        devices.said(DESK)["leases"][SHARED]["epoch"] == 2
    };
    assert!(!stolen("\r") && !stolen("n\r") && stolen("y\r"));
}

/// Both take it while nothing is carried. When the files meet, both see both claims, and one of them gives up.
#[test]
fn two_take_it_while_nothing_is_carried() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    let apart = devices.part();
    laptop.ok(["lease", "take", "数据", "-q"]);
    desk.ok(["lease", "take", "数据", "-q"]);
    write_said(&apart, LAPTOP, &devices.said(LAPTOP));
    write_said(&devices.relay(), DESK, &said_in(&apart, DESK));

    assert_snapshot!(laptop.run(["lease", "ls"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  desk    2024-06-15 12:00  after 2024-06-15 12:00  this device
    --- stderr
    hint: this device was overtaken; to give its claim up: wbhome lease release 20240604_数据清洗
    ");
    assert_snapshot!(desk.run(["lease", "ls"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  this device  2024-06-15 12:00  -             laptop
    --- stderr
    ");
    // Of two equal numbers the higher id counts: the desk's.
    assert_eq!(desk.run(["lease", "take", "数据"]).code, Some(0));
    assert_eq!(laptop.run(["lease", "take", "数据"]).code, Some(1));
    assert_snapshot!(laptop.run(["lease", "release", "数据"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is desk's; the claim of this device is gone
    --- stderr
    ");
    write_said(&apart, LAPTOP, &devices.said(LAPTOP));
    assert_snapshot!(desk.run(["lease", "ls"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  this device  2024-06-15 12:00  -
    --- stderr
    ");
}

#[test]
fn sessions_that_do_not_travel_have_none() {
    let devices = Devices::new();
    let laptop = &devices.laptop;
    let ran = laptop.run(["lease", "take", "crawler", "数据", "refactor"]);
    assert_snapshot!(ran.shown(laptop), @r"
    exit: 3
    --- stdout
    20240604_数据清洗   its lease is this device's now
    Other devices know of it when the sync client has carried it.
    --- stderr
    warning: `20240603_crawler` carries no sync tag, and does not travel
    hint: `wbhome label --sync-tag TAG 20240603_crawler` gives it one
    warning: `20240605_api_refactor` carries no sync tag, and does not travel
    hint: `wbhome label --sync-tag TAG 20240605_api_refactor` gives it one
    ");
    laptop.ok(["lease", "release", "--all", "-q"]);
    laptop.ok(["archive", "数据", "-q"]);
    assert_snapshot!(laptop.run(["lease", "take", "数据"]).shown(laptop), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240604_数据清洗` is archived, and does not travel
    ");
    assert_snapshot!(laptop.run(["lease", "take", "nothing"]).shown(laptop), @r"
    exit: 1
    --- stdout
    --- stderr
    error: there is no session `nothing`
    hint: `wbhome ls` lists them
    ");
    assert_snapshot!(laptop.run(["lease", "release"]).shown(laptop), @r"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      <SESSION>...

    Usage: wbhome lease release <SESSION>...

    For more information, try '--help'.
    ");
}

#[test]
fn one_that_only_the_relay_has_is_named_exactly_or_by_a_part_that_no_session_here_has() {
    let devices = Devices::new();
    let desk = &devices.desk;
    // It begins as a session of this home does.
    std::fs::create_dir(devices.relay().join("20240603_craw")).unwrap();
    devices.say(LAPTOP, |said| {
        said["sessions"] = json!({"20240101_还没到": {"tag": "x", "at": "2024-06-15T11:00:00Z"}});
    });
    assert_snapshot!(desk.run(["lease", "take", "20240603_craw", "20240101_还没到"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240603_craw   its lease is this device's now
    20240101_还没到   its lease is this device's now
    2 sessions, 2 changed
    Other devices know of it when the sync client has carried it.
    --- stderr
    ");
    assert_eq!(desk.run(["lease", "take", "20240603_cra"]).code, Some(1));
    assert_eq!(desk.run(["lease", "take", "20240101"]).code, Some(1));
    std::fs::create_dir(devices.relay().join("20240102_别处")).unwrap();
    let part = desk.ok(["lease", "take", "别处"]);
    assert!(part.contains("20240102_别处   its lease is this device's now"));
    let path = desk.run(["lease", "take", "别处/a"]);
    path.expect(1).says(&["there is no session"]);
    assert_eq!(
        desk.run(["lease", "release", "20240101_还没到", "-q"]).code,
        Some(0)
    );
}

#[test]
fn hostile_files_are_named_and_nothing_else_comes_of_them() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    laptop.ok(["lease", "take", "数据", "-q"]);
    desk.run(["lease", "take", "数据", "-q"]);
    let leases = devices.relay().join(".leases");
    let id = |n: u32| format!("{n:032x}");
    symlink("/etc/passwd", leases.join(format!("{}.json", id(1)))).unwrap();
    let pipe = leases.join(format!("{}.json", id(2)));
    support::home::tool("mkfifo", &[pipe.to_str().unwrap()]);
    let large = std::fs::File::create(leases.join(format!("{}.json", id(3)))).unwrap();
    large.set_len(100 << 20).unwrap();
    std::fs::copy(
        leases.join(format!("{LAPTOP}.json")),
        leases.join(format!("{LAPTOP} (1).json")),
    )
    .unwrap();
    let mut said = devices.said(LAPTOP);
    said["device"] = id(4).into();
    said["name"] = "evil\u{1b}[31m\u{202e}".into();
    let since = "2024-06-14T12:00:00Z";
    said["leases"] = json!({
        "../../etc": {"epoch": 1, "since": since},
        "a\u{1b}]0;x\u{7}": {"epoch": 1, "since": since},
        "20240605_api_refactor": {"epoch": 1_u64 << 53, "since": since},
    });
    write_said(&devices.relay(), &id(4), &said);
    desk.ok(["label", "refactor", "--sync-tag", "x", "-q"]);

    assert_snapshot!(devices.shown(desk, &desk.run(["lease", "ls", "--all"])), @r"
    exit: 0
    --- stdout
    ../../etc              evil\x1b[31m\u{202e}  2024-06-14 12:00  new here
    20240604_数据清洗      laptop                2024-06-15 12:00  just now
    20240605_api_refactor  evil\x1b[31m\u{202e}  2024-06-14 12:00  new here
    a\x1b]0;x\x07          evil\x1b[31m\u{202e}  2024-06-14 12:00  new here
    --- stderr
    warning: 00000000000000000000000000000001.json in .leases can not be understood, and may be a claim: it is a symbolic link
    warning: 00000000000000000000000000000002.json in .leases can not be understood, and may be a claim: it is a FIFO
    warning: 00000000000000000000000000000003.json in .leases can not be understood, and may be a claim: too large to be read (104.9 MB)
    warning: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (1).json in .leases can not be understood, and may be a claim: its name is not the id of a device
    ");
    let steal = ["lease", "steal", "refactor", "--yes"];
    assert_snapshot!(devices.shown(desk, &desk.run(steal)), @r"
    exit: 1
    --- stdout
    --- stderr
    warning: 00000000000000000000000000000001.json in .leases can not be understood, and may be a claim: it is a symbolic link
    warning: 00000000000000000000000000000002.json in .leases can not be understood, and may be a claim: it is a FIFO
    warning: 00000000000000000000000000000003.json in .leases can not be understood, and may be a claim: too large to be read (104.9 MB)
    warning: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (1).json in .leases can not be understood, and may be a claim: its name is not the id of a device
    error: there is no higher number than that of the lease of `20240605_api_refactor` in [LAPTOP]/中继/.leases
    hint: no device counts that far: one of the files there was not written by wbhome; move it away
    hint: what it said is noted, too, and counts on until that is gone: rm [ROOT]/me/workbuddy_home/.wbhome/leases.json
    ");
    // What leads out of a folder is no session.
    assert_eq!(
        desk.run(["lease", "steal", "../../etc", "--yes"]).code,
        Some(1)
    );
    std::fs::remove_file(leases.join(format!("{}.json", id(4)))).unwrap();
    std::fs::remove_file(desk.home().join(".wbhome/leases.json")).unwrap();
    desk.ok(["lease", "take", "refactor", "-q"]);
    // A number that no device counts to is not believed at all.
    said["leases"]["20240605_api_refactor"]["epoch"] = u64::MAX.into();
    write_said(&devices.relay(), &id(4), &said);
    let ran = desk.run(["lease", "ls"]);
    assert!(
        ran.stderr
            .contains("and may be a claim: no lease has the number 18446744073709551615"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("20240605_api_refactor  this device"),
        "{ran:?}"
    );

    // A lease does not fall because its file is torn right now.
    std::fs::write(leases.join(format!("{LAPTOP}.json")), "{\"format\"").unwrap();
    let ran = desk.run(["lease", "take", "数据", "-q"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("laptop holds the lease"), "{ran:?}");
}

#[test]
fn a_relay_that_can_not_be_reached() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    std::fs::rename(devices.relay(), laptop.path("away")).unwrap();
    assert_snapshot!(devices.shown(desk, &desk.run(["lease", "ls"])), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the relay can not be reached: [LAPTOP]/中继: no such file or directory
    hint: if it is on a disk that is not mounted, mount it
    hint: `wbhome relay init` makes a folder a relay of this device
    ");
    std::fs::rename(laptop.path("away"), devices.relay()).unwrap();
    laptop.ok(["lease", "take", "数据", "-q"]);
    desk.run(["lease", "take", "数据", "-q"]);
    std::fs::rename(devices.relay(), laptop.path("away")).unwrap();
    assert_snapshot!(devices.shown(desk, &desk.run(["lease", "ls"])), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  laptop  2024-06-15 12:00  just now
    --- stderr
    warning: the relay [LAPTOP]/中继 can not be reached, and this was noted 2024-06-15 12:00: no such file or directory
    ");
    // As the empty folder looks that a disk is mounted on.
    std::fs::create_dir(devices.relay()).unwrap();
    assert_snapshot!(devices.shown(desk, &desk.run(["lease", "ls"])), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  laptop  2024-06-15 12:00  just now
    --- stderr
    warning: the relay [LAPTOP]/中继 can not be reached, and this was noted 2024-06-15 12:00: no device says anything in it
    ");
    assert_snapshot!(devices.shown(desk, &desk.run(["lease", "take", "数据"])), @r"
    exit: 1
    --- stdout
    --- stderr
    error: the folder is not, or not any more, a relay of this device: [LAPTOP]/中继
    hint: if it is on a disk that is not mounted, mount it
    hint: `wbhome relay init [LAPTOP]/中继 --mode MODE` makes it one
    ");
    assert!(std::fs::read_dir(devices.relay()).unwrap().next().is_none());
    let plain = Place::with_sessions();
    assert_snapshot!(plain.run(["lease", "ls"]).shown(&plain), @r"
    exit: 1
    --- stdout
    --- stderr
    error: no relay is set in [ROOT]/me/workbuddy_home/wbhome.toml
    hint: `wbhome relay init DIR --mode clone` makes one in a folder that a sync client carries
    ");
}

/// The thief lets go of what it has stolen: the one that it was stolen from does not hold it again.
#[test]
fn a_stolen_lease_does_not_come_back_by_itself() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    laptop.ok(["lease", "take", "数据", "-q"]);
    desk.ok(["lease", "steal", "数据", "--yes", "-q"]);
    desk.ok(["lease", "release", "数据", "-q"]);
    assert_snapshot!(laptop.run(["lease", "ls"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  nobody  -      -             this device
    --- stderr
    hint: this device was overtaken; to give its claim up: wbhome lease release 20240604_数据清洗
    ");
    assert_snapshot!(laptop.run(["lease", "release", "数据", "-n"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   its lease is nobody's; the claim of this device would go
    Nothing was changed.
    --- stderr
    ");
    let ran = laptop.run(["relay", "sync", "--ours", "数据"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_snapshot!(laptop.run(["doctor", "-q"]).shown(laptop), @r"
    exit: 0
    --- stdout
    warning history      no commit yet; 9 files in 3 sessions in no commit
                  cure:  wbhome commit
    warning backup       no backup store: what dies with this disk is gone
                  hint:  `wbhome backup init DIR` makes one; DIR is a folder on another disk
    warning relay        the lease of `20240604_数据清洗`, which this device claims, was taken by another device and let go of
                  cure:  wbhome lease release 20240604_数据清洗
    --- stderr
    ");
    assert_snapshot!(laptop.run(["relay", "sync", "-q"]).shown(laptop), @r"
    exit: 0
    --- stdout
    --- stderr
    warning: the lease of 20240604_数据清洗 is given up: another device has taken it, and let go of it since
    ");
    assert_eq!(devices.said(LAPTOP)["leases"], json!({}));
    laptop.ok(["lease", "take", "数据", "-q"]);
    assert_eq!(devices.said(LAPTOP)["leases"][SHARED]["epoch"], 3);
}

/// Whatever became of the session here, and whatever others still say of it, the next sync gives its lease up.
#[test]
fn a_lease_goes_with_what_becomes_of_its_session() {
    for change in [
        &["rm", "数据", "--yes", "-q"][..],
        &["archive", "数据", "-q"],
        &["label", "数据", "--no-sync-tag", "-q"],
        &["mv", SHARED, "20240604_新名", "-q"],
    ] {
        let devices = Devices::new();
        let laptop = &devices.laptop;
        devices.say(DESK, |said| {
            said["sessions"] = json!({SHARED: {"tag": "x", "at": "2024-06-15T11:00:00Z"}});
        });
        laptop.ok(["lease", "take", "数据", "-q"]);
        laptop.ok(change);
        assert!(laptop.ok(["lease", "ls"]).contains(SHARED), "{change:?}");
        laptop.run(["relay", "sync", "-q"]);
        assert_eq!(devices.said(LAPTOP)["leases"], json!({}), "{change:?}");
        assert_eq!(devices.said(LAPTOP)["released"], json!({SHARED: 1}));
    }
    // One that this home has not taken yet keeps it.
    let devices = Devices::new();
    devices.say(DESK, |said| {
        said["sessions"] = json!({"20240101_还没到": {"tag": "x", "at": "2024-06-15T11:00:00Z"}});
    });
    devices
        .laptop
        .ok(["lease", "take", "20240101_还没到", "-q"]);
    devices.laptop.run(["relay", "sync", "-q"]);
    assert_eq!(
        devices.said(LAPTOP)["leases"]["20240101_还没到"]["epoch"],
        1
    );
}

/// A client that removes a file to put another in its place does not let a lease fall meanwhile.
#[test]
fn the_file_of_a_holder_has_gone() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    laptop.ok(["lease", "take", "数据", "-q"]);
    desk.run(["lease", "take", "数据", "-q"]);
    std::fs::remove_file(devices.relay().join(format!(".leases/{LAPTOP}.json"))).unwrap();
    assert_eq!(desk.run(["rm", "数据", "--yes", "-n"]).code, Some(1));
    assert_snapshot!(later(desk, "2024-06-15T15:00:00Z", &["lease", "take", "数据"]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: laptop holds the lease of `20240604_数据清洗` since 2024-06-15 12:00 by its clock; its file in the relay has gone since 2024-06-15 15:00, and what it said counts on
    hint: `wbhome lease release 20240604_数据清洗` there lets go of it; `wbhome lease steal 20240604_数据清洗` here asks nobody
    ");
    assert_snapshot!(later(desk, "2024-06-16T15:00:00Z", &["lease", "ls"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  laptop  2024-06-15 12:00  its file has gone since 2024-06-15 15:00
    --- stderr
    ");
    desk.ok(["lease", "steal", "数据", "--yes", "-q"]);
    assert_eq!(devices.said(DESK)["leases"][SHARED]["epoch"], 2);
}

/// When it changed is not known better than that it was after the last look.
#[test]
fn a_file_that_has_changed_since_is_not_said_to_have_changed_now() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    desk.ok(["lease", "release", "数据", "-q"]);
    laptop.ok(["lease", "take", "数据", "-q"]);
    let months_later = "2024-09-15T12:00:00Z";
    assert_snapshot!(later(desk, months_later, &["lease", "ls"]).shown(desk), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  laptop  2024-06-15 12:00  after 2024-06-15 12:00
    --- stderr
    ");
    assert_snapshot!(later(desk, months_later, &["lease", "take", "数据"]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: laptop holds the lease of `20240604_数据清洗` since 2024-06-15 12:00 by its clock; its file in the relay has changed since this home looked last, on 2024-06-15 12:00
    hint: `wbhome lease release 20240604_数据清洗` there lets go of it; `wbhome lease steal 20240604_数据清洗` here asks nobody
    ");
}

#[test]
fn hints_name_a_session_that_begins_with_a_dash() {
    let devices = Devices::new();
    let desk = &devices.desk;
    let id = "-划线 a";
    desk.put_home(&format!("sessions/{id}/context/turn_001.json"), "{}");
    assert_snapshot!(desk.run(["lease", "take", "--", id]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `-划线 a` carries no sync tag, and does not travel
    hint: `wbhome label --sync-tag TAG -- '-划线 a'` gives it one
    ");
    desk.ok(["label", "--sync-tag", "x", "-q", "--", id]);
    devices.say(LAPTOP, |said| {
        said["leases"] = json!({id: {"epoch": 1, "since": "2024-06-15T11:00:00Z"}});
    });
    assert_snapshot!(desk.run(["lease", "take", "--", id]).shown(desk), @r"
    exit: 1
    --- stdout
    --- stderr
    error: laptop holds the lease of `-划线 a` since 2024-06-15 11:00 by its clock; its file in the relay has changed since this home looked last, on 2024-06-15 12:00
    hint: `wbhome lease release -- '-划线 a'` there lets go of it; `wbhome lease steal -- '-划线 a'` here asks nobody
    ");
    desk.ok(["lease", "steal", "--yes", "-q", "--", id]);
}

/// Cron knows no HOME, and a file can be torn: then one's own lease is not told to be another's.
#[test]
fn which_device_this_is_may_not_be_known() {
    let devices = Devices::new();
    let laptop = &devices.laptop;
    laptop.ok(["lease", "take", "数据", "-q"]);
    laptop.put("me/.local/share/wbhome/device.json", "{");
    assert_snapshot!(laptop.run(["archive", "数据"]).shown(laptop), @r"
    exit: 1
    --- stdout
    --- stderr
    error: `20240604_数据清洗` is read-only here: laptop holds its lease since 2024-06-15 12:00 by its clock; it is not known whether that is this device: can not understand [ROOT]/me/.local/share/wbhome/device.json: EOF while parsing an object at line 1 column 1
    hint: it says which device this is; move it away and run `wbhome relay init` again: leases of before are the old device's then
    hint: docs/devices.md says what a lease is
    ");
    assert_snapshot!(laptop.run(["lease", "ls"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  laptop  2024-06-15 12:00  just now
    --- stderr
    warning: it is not known which device this is, and so which leases are its own: can not understand [ROOT]/me/.local/share/wbhome/device.json: EOF while parsing an object at line 1 column 1
    hint: it says which device this is; move it away and run `wbhome relay init` again: leases of before are the old device's then
    ");
    assert_snapshot!(laptop.run(["ls", "数据"]).shown(laptop), @r"
    exit: 0
    --- stdout
    20240604_数据清洗  active  2024-06-04T09:00:00Z  laptop   -      -        sync:两台
    --- stderr
    warning: it is not known which device this is, and so which leases are its own: can not understand [ROOT]/me/.local/share/wbhome/device.json: EOF while parsing an object at line 1 column 1
    hint: it says which device this is; move it away and run `wbhome relay init` again: leases of before are the old device's then
    ");
    // What nobody holds is free.
    assert_eq!(laptop.run(["archive", "crawler", "-n"]).code, Some(0));
}
