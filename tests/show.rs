//! `wbhome show`: a session at a glance, and what is in it, archived or not.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "it lays out folders"
)]

mod support;

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;
use support::{Place, differences, has_tool};

const ID: &str = "20240604_数据清洗";

/// Three sessions, of which one has something of every kind.
fn place() -> Place {
    let place = Place::with_sessions();
    let at = format!("sessions/{ID}");
    place.put_home(&format!("{at}/context/turn_010.json"), "{\"turn\": 10}\n");
    place.put_home(
        &format!("{at}/context/checkpoint.md"),
        "# 进度\n\n- cleaned \u{1b}[31mred\n- next: report\n",
    );
    place.put_home(
        &format!("{at}/artifacts/data.bin"),
        b"\x00\xff\x1b[0m\r\n\x80",
    );
    place.put_home(&format!("{at}/logs/run.log"), "x".repeat(3000));
    symlink(
        "../../../index.json",
        place.home().join(&at).join("artifacts/latest"),
    )
    .unwrap();
    let data = place.home().join(&at).join("artifacts/data.bin");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::hard_link(&data, place.home().join(&at).join("artifacts/twin.bin")).unwrap();
    place.date(ID, 4);
    place.ok(["index", "-q"]);
    place.ok([
        "label",
        ID,
        "--tag",
        "web",
        "--project",
        "alpha",
        "--title",
        "五月",
        "-q",
    ]);
    place
}

#[test]
fn a_session_at_a_glance() {
    let place = place();
    assert_snapshot!(place.run(["show", "清洗"]).shown(&place), @r"
    exit: 0
    --- stdout
    20240604_数据清洗   active
    五月

      project    alpha
      tags       web
      created    2024-06-04 08:00 (11 days ago)
      active     2024-06-04 09:00 (11 days ago)
      turns      2, the last context/turn_010.json
      holds      7 files, 3.2 kB
                 context        84 B   3 files
                 artifacts      18 B   2 files
                 logs         3.0 kB   1 file
                 other         121 B   1 file
      folder     [ROOT]/me/workbuddy_home/sessions/20240604_数据清洗
      largest       3.0 kB   logs/run.log
                     121 B   session.json
                      44 B   context/checkpoint.md
                      27 B   context/turn_001.json
                      13 B   context/turn_010.json
      kept       nowhere else: no commit and no backup holds it

    context/checkpoint.md
      # 进度
      - cleaned \x1b[31mred
      - next: report
    --- stderr
    ");
    let shown = place.json(["show", ID]);
    assert_eq!(
        (&shown["from"], &shown["status"]),
        (&"folder".into(), &"active".into())
    );
    assert_eq!(shown["last_turn"], "context/turn_010.json");
    assert_eq!(shown["archive"], Value::Null);
}

#[test]
fn one_that_is_not_indexed_and_one_that_runs() {
    let place = place();
    place.session("20240607_by_hand", 7);
    let shown = place.ok(["show", "by_hand"]);
    assert!(
        shown.starts_with("20240607_by_hand   active, not in the index\n"),
        "{shown}"
    );
    assert_eq!(
        place.json(["show", "by_hand"])["session_id"],
        "identity-of-20240607_by_hand"
    );
    place.agent_in(&format!("sessions/{ID}/artifacts"));
    let pid = std::process::id();
    let shown = place.ok(["show", ID]);
    assert!(
        shown.starts_with(&format!("{ID}   running, process {pid}\n")),
        "{shown}"
    );
}

#[test]
fn the_last_commit_that_touched_it() {
    if !has_tool("git") {
        return;
    }
    let place = place();
    place.ok(["commit", "-q"]);
    place.put_home("sessions/20240603_crawler/memory/a.md", "a");
    place.ok(["commit", "-q", "-m", "the crawler alone"]);
    let of = |id: &str| place.json(["show", id])["commit"]["subject"].clone();
    assert_eq!(of("crawler"), "the crawler alone");
    assert_ne!(of(ID), "the crawler alone");
    assert!(of(ID).is_string());
}

/// Everything that can be asked of a session, for its folder and its archive to be compared.
fn asked(place: &Place) -> Vec<String> {
    let mut told = Vec::new();
    for path in [
        "",
        "context",
        "context/turn_010.json",
        "artifacts",
        "artifacts/latest",
        "logs/",
    ] {
        told.push(place.ok(["show", &format!("{ID}/{path}")]));
    }
    for path in [
        "",
        "artifacts",
        "artifacts/data.bin",
        "artifacts/twin.bin",
        "artifacts/latest",
    ] {
        let mut document = place.json(["show", &format!("{ID}/{path}")]);
        document["from"] = Value::Null;
        told.push(document.to_string());
    }
    let mut document = place.json(["show", ID]);
    for field in ["from", "path", "status", "archive"] {
        document[field] = Value::Null;
    }
    told.push(document.to_string());
    told
}

fn bytes(place: &Place, spec: &str) -> Vec<u8> {
    let output = place.command().args(["show", spec]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn the_same_from_the_archive_without_unpacking() {
    let place = place();
    let before = asked(&place);
    let data = b"\x00\xff\x1b[0m\r\n\x80";
    assert_eq!(bytes(&place, &format!("{ID}/artifacts/data.bin")), data);
    place.archived(ID);
    let home = place.apart_from_own();
    for (now, before) in asked(&place).iter().zip(&before) {
        assert_eq!(now, before);
    }
    assert_eq!(bytes(&place, &format!("{ID}/artifacts/data.bin")), data);
    assert_eq!(
        bytes(&place, &format!("{ID}/artifacts/twin.bin")),
        data,
        "a further name"
    );
    assert_eq!(differences(&home, &place.apart_from_own()), "");
    let shown = place.ok(["show", ID]);
    assert!(
        shown.contains("  archive    archive/20240604_数据清洗.tar.zst, "),
        "{shown}"
    );
    assert!(
        shown.contains("made 2024-06-10 08:00 (5 days ago), with a digest of each file"),
        "{shown}"
    );
    let listed = place.ok(["ls", "-l", "--status", "archived"]);
    let words: Vec<&str> = listed.split_whitespace().collect();
    assert_eq!(
        &words[3..6],
        ["2", "84", "B"],
        "turns and context: {listed}"
    );
}

#[test]
fn the_folder_comes_before_an_archive_that_was_kept() {
    let place = place();
    place.pack(ID);
    place.put_home(&format!("sessions/{ID}/memory/new.md"), "new");
    assert_eq!(place.ok(["show", &format!("{ID}/memory/new.md")]), "new");
    let shown = place.ok(["show", ID]);
    assert!(shown.contains("kept beside the folder"), "{shown}");
    // Even one that is no archive at all.
    place.put_home(&format!("archive/{ID}.tar.zst"), "no pack");
    let shown = place.ok(["show", ID]);
    assert!(shown.contains("damaged: "), "{shown}");
}

#[test]
fn one_that_was_packed_by_hand_and_that_no_index_knows() {
    let place = place();
    place.packed_by_hand("20240520_old");
    let shown = place.ok(["show", "old"]);
    assert!(
        shown.starts_with("20240520_old   archived, not in the index\n一 20240520_old\n"),
        "{shown}"
    );
    assert!(shown.contains("by hand, with checksums alone"), "{shown}");
    assert_eq!(
        place.ok(["show", "old/context/turn_001.json"]),
        "{\"turn\": 1}\n"
    );
    assert_snapshot!(place.ok(["show", "old/"]), @r"
       -  context/
    54 B  session.json
    ");
    place.ok(["index", "-q"]);
    let index = place.index();
    let entry = index
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["id"] == "20240520_old")
        .unwrap();
    assert_eq!(
        (&entry["session_id"], &entry["title"]),
        (&"by hand".into(), &"一 20240520_old".into())
    );
    assert_eq!(entry["archive"]["blake3"].as_str().unwrap().len(), 64);
}

#[test]
fn a_folder_is_listed_with_sizes_and_escaped_names() {
    let place = place();
    place.put_home(&format!("sessions/{ID}/artifacts/a\u{1b}[31m"), "x");
    assert_snapshot!(place.ok(["show", &format!("{ID}/artifacts")]), @r"
       1 B  a\x1b[31m
       9 B  data.bin
         -  latest → ../../../index.json
       9 B  twin.bin
    ");
}

#[test]
fn links_are_shown_and_never_followed() {
    let place = place();
    let link = format!("{ID}/artifacts/latest");
    assert_eq!(
        place.ok(["show", &link]),
        "artifacts/latest → ../../../index.json\n"
    );
    symlink(
        "/etc",
        place.home().join(format!("sessions/{ID}/artifacts/etc")),
    )
    .unwrap();
    place
        .run(["show", &format!("{ID}/artifacts/etc/passwd")])
        .expect(1)
        .says(&[
            "is a symbolic link to /etc, and not a folder: artifacts/etc",
            "never followed",
        ]);
    place
        .run(["show", &format!("{ID}/../20240603_crawler/session.json")])
        .expect(2);
    place.run(["show", &format!("{ID}//etc/passwd")]).expect(2);
}

#[test]
fn what_is_not_there_says_what_is_near() {
    let place = place();
    for archived in [false, true] {
        if archived {
            place.archived(ID);
        }
        place
            .run(["show", &format!("{ID}/context/turn_011.json")])
            .expect(1)
            .says(&[
                "in 20240604_数据清洗 there is no context/turn_011.json",
                "did you mean context/turn_0",
                "`wbhome show 20240604_数据清洗/context/` lists what is there",
            ]);
        place
            .run(["show", &format!("{ID}/memori/x")])
            .expect(1)
            .says(&["did you mean memory?"]);
        place
            .run(["show", &format!("{ID}/session.json/x")])
            .expect(1)
            .says(&["is a file, and not a folder"]);
    }
}

#[test]
fn names_of_any_bytes_can_be_asked_for() {
    let place = place();
    let name = OsStr::from_bytes(b"a\xff.txt");
    std::fs::write(
        place
            .home()
            .join(format!("sessions/{ID}/artifacts"))
            .join(name),
        "odd",
    )
    .unwrap();
    let mut spec = format!("{ID}/artifacts/").into_bytes();
    spec.extend(b"a\xff.txt");
    assert_eq!(
        place.ok([OsStr::new("show"), OsStr::from_bytes(&spec)]),
        "odd"
    );
    place.archived(ID);
    assert_eq!(
        place.ok([OsStr::new("show"), OsStr::from_bytes(&spec)]),
        "odd"
    );
}

#[test]
fn a_fifo_is_not_opened_and_a_reader_may_stop() {
    let place = place();
    let fifo = place.home().join(format!("sessions/{ID}/artifacts/pipe"));
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    place
        .run(["show", &format!("{ID}/artifacts/pipe")])
        .expect(1)
        .says(&["is not opened"]);
    place.put_home(
        &format!("sessions/{ID}/logs/large.log"),
        vec![b'x'; 4 << 20],
    );
    let spec = format!("{ID}/logs/large.log");
    let mut child = place
        .command()
        .args(["show", &spec])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 10]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_damaged_archive_gives_what_is_whole_and_says_what_is_not() {
    let place = place();
    let packed = place.archived(ID);
    let path = place.home().join(format!("archive/{ID}.tar.zst"));
    let mut content = std::fs::read(&path).unwrap();
    let middle = packed.manifest.frames[0].bytes as usize / 2;
    content[middle] ^= 0x55;
    std::fs::write(&path, &content).unwrap();
    // The manifest stands behind the data.
    assert_eq!(place.json(["show", ID])["holds"]["turns"], 2);
    place.run(["show", &format!("{ID}/logs/run.log")]).expect(1);
}

#[test]
fn one_flaw_of_an_archive_made_by_hand_hides_nothing_else() {
    let place = place();
    place.packed_by_hand("20240520_old");
    let path = place.home().join("archive/20240520_old.tar.zst");
    let mut tar = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
    tar.truncate(tar.len() - 1024);
    let mut fifo = tar::Header::new_ustar();
    fifo.set_entry_type(tar::EntryType::Fifo);
    fifo.set_path("20240520_old/pipe").unwrap();
    fifo.set_mode(0o600);
    fifo.set_size(0);
    fifo.set_uid(0);
    fifo.set_gid(0);
    fifo.set_mtime(0);
    fifo.set_cksum();
    tar.extend(fifo.as_bytes());
    tar.extend([0; 1024]);
    std::fs::write(&path, zstd::encode_all(&tar[..], 3).unwrap()).unwrap();
    for (spec, code) in [("old", 0), ("old/", 0), ("old/pipe", 1)] {
        place
            .run(["show", spec])
            .expect(code)
            .says(&["not all of ", "the member 20240520_old/pipe: is a FIFO"]);
    }
    assert!(place.ok(["show", "old/"]).contains("session.json"));
    let turn = place.ok(["show", "old/context/turn_001.json"]);
    assert_eq!(turn, "{\"turn\": 1}\n");
    // It is indexed with what can be read.
    let told = place.ok(["index"]);
    assert!(
        told.contains("problem    20240520_old   not all of its archive"),
        "{told}"
    );
    assert_eq!(place.json(["show", "old"])["title"], "一 20240520_old");
}

#[test]
fn what_is_no_file_under_the_name_of_an_archive_is_called_that() {
    let place = place();
    place.archived(ID);
    let path = place.home().join(format!("archive/{ID}.tar.zst"));
    let elsewhere = place.home().join("../elsewhere.tar.zst");
    std::fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let link = format!("archive/{ID}.tar.zst is a link, and is not followed");
    place
        .run(["show", ID])
        .expect(1)
        .says(&[&link, "put the file itself there"]);
    let told = place.ok(["index"]);
    assert!(told.contains(&link) && !told.contains("missing"), "{told}");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    place.run(["show", ID]).expect(1).says(&["and no archive"]);
    std::fs::remove_dir(&path).unwrap();
    std::fs::rename(&elsewhere, &path).unwrap();
    place.ok(["show", ID]);
    assert!(place.ok(["index"]).contains("all as on the disk"));
}

#[test]
fn odd_spellings_of_a_path() {
    let place = place();
    let doubled = format!("{ID}/context//turn_010.json");
    assert_eq!(place.ok(["show", &doubled]), "{\"turn\": 10}\n");
    place
        .run(["show", &format!("{ID}//session.json")])
        .expect(2)
        .says(&["`/session.json` is absolute: one slash too many?"]);
    place
        .run(["show", &format!("{ID}/artifacts/../session.json")])
        .expect(2)
        .says(&["has `..` in it, which is not taken"]);
    place
        .run(["show", &format!("{ID}/../../index.json")])
        .expect(2)
        .says(&["leads out of the session"]);
    place
        .run(["show", &format!("{ID}/nothing")])
        .expect(1)
        .says(&[&format!("`wbhome show {ID}/` lists")]);
}

/// A turn as the examples have them: a question, an answer with two calls, and what one of them has given.
fn a_turn(number: u32) -> String {
    serde_json::json!({
        "turn": number, "started_at": "2024-06-04T10:22:36+08:00",
        "messages": [
            {"role": "user", "content": format!("问题 {number}\n第二行")},
            {"role": "assistant", "content": "I will\tlook \u{1b}[31m.", "tool_calls": [
                {"function": {"name": "shell", "arguments": "{\"command\": \"ls\\n-la\"}"}},
                {"function": {"name": "read_file", "arguments": "{\"path\": \"/a b\"}"}},
            ]},
            {"role": "tool", "content": "one\ntwo"},
            {"role": "assistant", "content": format!("\n\nanswer {number}")},
        ],
    })
    .to_string()
}

#[test]
fn the_last_turns_in_brief() {
    let place = place();
    for turn in [9, 10, 11, 12] {
        place.put_home(
            &format!("sessions/{ID}/context/turn_{turn:03}.json"),
            a_turn(turn),
        );
    }
    // In the order of their numbers, and what is torn is passed over.
    place.put_home(
        &format!("sessions/{ID}/context/turn_1000.json"),
        "{\"turn\": 1000, \"mess",
    );
    place.date(ID, 4);
    let check = |place: &Place| {
        let shown = place.ok(["show", ID]);
        let expected = "\nlast turns\n  turn_011  user      问题 11\n            assistant answer 11\n  turn_012  user      问题 12\n            assistant answer 12\n";
        assert!(shown.contains(expected), "{shown}");
        let told = place.json(["show", ID]);
        let files: Vec<&str> = told["turns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["file"].as_str().unwrap())
            .collect();
        assert_eq!(files, ["context/turn_011.json", "context/turn_012.json"]);
        assert_eq!(told["last_turn"], "context/turn_1000.json");
        assert_eq!(told["turns"][1]["said"][0]["text"], "问题 12");
    };
    check(&place);
    place.ok(["index", "-q"]);
    place.archived(ID);
    check(&place);
}

#[test]
fn a_turn_is_readable_on_a_terminal_and_bytes_in_a_pipe() {
    let place = place();
    let turn = a_turn(2);
    place.put_home(&format!("sessions/{ID}/context/turn_002.json"), &turn);
    let path = format!("{ID}/context/turn_002.json");
    let args = ["show", "--color", "never", &path];
    let readable = place.on_terminal(80, &args);
    assert_snapshot!(readable, @r"
    turn 2   2024-06-04T10:22:36+08:00

    user
      问题 2
      第二行

    assistant
      I will    look \x1b[31m.
      → shell  command: ls -la
      → read_file  path: /a b

    tool
      one
      two

    assistant


      answer 2
    ");
    assert_eq!(place.ok(["show", &path]), turn, "in a pipe: for jq");
    let raw = place.on_terminal(80, &["show", "--raw", &path]);
    assert_eq!(raw.trim_end(), turn);
    // What is no turn is what it is, under whatever name.
    let odd = place.on_terminal(80, &["show", &format!("{ID}/context/turn_010.json")]);
    assert_eq!(odd, "{\"turn\": 10}\n");
}

#[test]
fn what_protects_it() {
    let place = place();
    assert_eq!(
        place.json(["show", ID])["backups"],
        serde_json::json!([]),
        "no store is set"
    );
    place.ok(["backup", "init", "cold", "-q"]);
    let told = |place: &Place| {
        let shown = place.ok(["show", ID]);
        shown
            .lines()
            .find(|line| line.contains("  backup "))
            .unwrap()
            .to_owned()
    };
    let cold = place.path("cold");
    let cold = cold.display();
    assert_eq!(
        told(&place),
        format!("  backup     {cold} has no snapshot yet")
    );
    place.at(14, &["backup", "run", "-q"]).expect(0);
    assert_eq!(
        told(&place),
        format!("  backup     {cold} 2024-06-14 03:00 (1 day ago)")
    );
    let held = &place.json(["show", ID])["backups"][0]["held"];
    assert_eq!(
        (&held["standing"], &held["complete"]),
        (&"present".into(), &true.into())
    );
    place.session("20240614_new", 14);
    let new = place.json(["show", "20240614_new"]);
    assert_eq!(new["backups"][0]["held"]["standing"], Value::Null);
    assert!(
        place
            .ok(["show", "20240614_new"])
            .contains("(1 day ago): not in it")
    );
    std::fs::rename(place.path("cold"), place.path("away")).unwrap();
    assert_eq!(
        told(&place),
        format!("  backup     there is no backup store: {cold}")
    );
    assert!(place.json(["show", ID])["backups"][0]["why"].is_string());
}
