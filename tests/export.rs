//! `wbhome export`: what a person carries away was looked at, is complete, and takes the place of nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders"
)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::home::tool;
use support::mount::Mount;
use support::{Place, Ran, differences, has_tool, is_root, tree};

const ID: &str = "20240603_crawler";
const CHINESE: &str = "20240604_数据清洗";

/// A token that is none, put together here so that no scanner trips over this file.
fn token() -> String {
    ["ghp", "_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat()
}

/// Sessions with a little of everything, and an empty folder `out`.
fn place() -> Place {
    let place = Place::with_sessions();
    let at = |rel: &str| format!("sessions/{ID}/{rel}");
    place.put_home(&at("memory/记忆/长期.md"), "数据\n".repeat(500));
    place.put_home(&at("artifacts/zeros.bin"), vec![0u8; 3_000_000]);
    place.put_home(&at("logs/run.log"), "line\n".repeat(400));
    place.put_home(&at("logs/older/run.log"), "line\n");
    let root = place.home().join(at(""));
    fs::create_dir_all(root.join("artifacts/空")).unwrap();
    symlink("../memory/记忆", root.join("artifacts/latest")).unwrap();
    symlink("/nowhere/没有", root.join("artifacts/dangling")).unwrap();
    fs::set_permissions(
        root.join("artifacts/zeros.bin"),
        fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    place.date(ID, 3);
    fs::create_dir(place.path("out")).unwrap();
    place
}

fn session(place: &Place) -> PathBuf {
    place.home().join("sessions").join(ID)
}

fn settings(place: &Place, text: &str) {
    let path = place.home().join("wbhome.toml");
    let usual = fs::read_to_string(&path).unwrap();
    let usual = match text.split_once('\n') {
        Some((section, _)) => usual.replace(&format!("\n{section}\n"), "\n[unused]\n"),
        None => usual,
    };
    // The whole section anew.
    let mut kept = String::new();
    let mut skipping = false;
    for line in usual.lines() {
        if line.starts_with('[') || line.starts_with("# [") {
            skipping = line == "[unused]";
        }
        if !skipping {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    fs::write(&path, format!("{kept}\n{text}")).unwrap();
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Nothing that was printed holds it.
fn hides(ran: &Ran, secret: &str) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains(secret), "{ran:#?}");
        assert!(!text.contains(&secret[8..24]), "{ran:#?}");
    }
}

#[test]
fn a_session_becomes_a_pack_that_stock_tools_unpack() {
    let place = place();
    let before = place.apart_from_own();
    let ran = place.run(["export", "crawler", "--to", "out"]);
    ran.expect(0).says(&["2 files of logs left out"]);
    assert!(ran.stdout.contains("20240603_crawler.tar.zst"), "{ran:?}");
    assert_eq!(names(place.path("out")), ["20240603_crawler.tar.zst"]);
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    if has_tool("zstd") {
        let pack = place.path("out/20240603_crawler.tar.zst");
        let there = place.path("there");
        fs::create_dir(&there).unwrap();
        let args = [
            "--zstd",
            "-xpf",
            pack.to_str().unwrap(),
            "-C",
            there.to_str().unwrap(),
        ];
        tool("tar", &args);
        let mut expected = tree(&session(&place));
        expected.retain(|path, _| !path.starts_with(b"logs"));
        assert_eq!(differences(&expected, &tree(&there.join(ID))), "");
    }
    // Whoever is given it can put it into a home of theirs.
    let other = Place::with_home();
    fs::copy(
        place.path("out/20240603_crawler.tar.zst"),
        other.home().join("archive/20240603_crawler.tar.zst"),
    )
    .unwrap();
    other.ok(["unarchive", ID]);
    let text = format!("sessions/{ID}/memory/记忆/长期.md");
    assert_eq!(other.home_text(&text), "数据\n".repeat(500));
}

#[test]
fn logs_go_when_they_are_wanted() {
    let place = place();
    let with = place.json(["export", ID, "--to", "out", "--logs"]);
    assert_eq!(
        (&with["exported"][0]["logs"], &with["exported"][0]["files"]),
        (&0.into(), &6.into())
    );
    fs::create_dir(place.path("out2")).unwrap();
    settings(&place, "[relay]\nlogs = true\n");
    let with = place.json(["export", ID, "--to", "out2"]);
    assert_eq!(with["exported"][0]["files"], 6);
    // What is named is wanted.
    settings(&place, "[relay]\nlogs = false\n");
    place.ok(["export", &format!("{ID}/logs"), "--to", "out2"]);
    assert_eq!(place.text("out2/logs/older/run.log"), "line\n");
}

#[test]
fn a_file_and_a_folder_as_they_are() {
    let place = place();
    let before = place.apart_from_own();
    let ran = place.run([
        "export",
        "crawler/memory/记忆/长期.md",
        "crawler/artifacts",
        "数据清洗/context",
        "--to",
        "out",
    ]);
    ran.expect(0);
    assert_eq!(
        names(place.path("out")),
        ["artifacts", "context", "长期.md"]
    );
    assert_eq!(place.text("out/长期.md"), "数据\n".repeat(500));
    let (one, other) = (
        session(&place).join("artifacts"),
        place.path("out/artifacts"),
    );
    assert_eq!(differences(&tree(&one), &tree(&other)), "");
    assert_eq!(differences(&before, &place.apart_from_own()), "");
}

#[test]
fn an_archived_session_is_exported_without_bringing_it_back() {
    let place = place();
    place.ok(["archive", ID, "-q"]);
    let before = place.apart_from_own();
    let bin = format!("{ID}/artifacts/zeros.bin");
    let ran = place.json(["export", ID, &format!("{ID}/memory"), &bin, "--to", "out"]);
    assert_eq!(ran["exported"][2]["from"], "archive");
    let (meta, zeros) = (
        place.path("out/zeros.bin").metadata().unwrap(),
        vec![0u8; 3_000_000],
    );
    assert_eq!(
        (
            meta.permissions().mode() & 0o777,
            place.read("out/zeros.bin")
        ),
        (0o640, zeros)
    );
    let written = meta
        .modified()
        .unwrap()
        .duration_since(std::time::SystemTime::UNIX_EPOCH);
    assert_eq!(written.unwrap().as_secs(), 1_717_405_200);
    assert_eq!(ran["exported"][0]["from"], "archive");
    assert_eq!(ran["exported"][0]["logs"], 2);
    assert_eq!(ran["exported"][1]["kind"], "folder");
    assert_eq!(place.text("out/memory/记忆/长期.md"), "数据\n".repeat(500));
    assert_eq!(differences(&before, &place.apart_from_own()), "");
    assert_eq!(names(place.home().join(".wbhome/tmp")), [""; 0]);
    // A damaged one is refused, and the others go.
    let pack = place.home().join(format!("archive/{ID}.tar.zst"));
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0xff;
    fs::write(&pack, bytes).unwrap();
    fs::create_dir(place.path("out2")).unwrap();
    let ran = place.run(["export", ID, CHINESE, "--to", "out2"]);
    ran.expect(3).says(&["20240603_crawler: ", "--from backup"]);
    assert_eq!(names(place.path("out2")), [format!("{CHINESE}.tar.zst")]);
}

/// In text, in a name, in what a link points to, in an attribute: the item stays, the others go, and nobody sees it.
#[test]
fn a_secret_keeps_an_item_here() {
    let token = token();
    type Plant<'a> = &'a dyn Fn(&Path);
    let plants: [(&str, Plant); 5] = [
        ("context/turn_002.json:2", &|root| {
            let text = format!("{{\"a\":\n \"\\\"{token}\\\"\"}}");
            fs::write(root.join("context/turn_002.json"), text).unwrap();
        }),
        ("(its name)", &|root| {
            fs::write(root.join(format!("artifacts/导出_{token}.txt")), "x").unwrap();
        }),
        ("(its name)", &|root| {
            let folder = root.join(format!("artifacts/{token}"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("a"), "x").unwrap();
            fs::write(folder.join("b"), "x").unwrap();
        }),
        ("(what it points to)", &|root| {
            symlink(format!("/x/{token}"), root.join("artifacts/链接")).unwrap();
        }),
        ("(an attribute)", &|root| {
            let flags = rustix::fs::XattrFlags::empty();
            let url = format!("https://x.org/?t={token}");
            let file = root.join("artifacts/zeros.bin");
            rustix::fs::setxattr(file, "user.origin", url.as_bytes(), flags).unwrap();
        }),
    ];
    for (at, plant) in plants {
        let place = place();
        plant(&session(&place));
        let plain = place.run(["export", ID, CHINESE, "--to", "out"]);
        plain
            .expect(3)
            .says(&["20240603_crawler stays here: 1 secret in it", at]);
        plain.says(&[
            "github-token ghp_…A2",
            "digest ",
            "hint: a harmless one: allow = [\"",
        ]);
        hides(&plain, &token);
        assert_eq!(names(place.path("out")), [format!("{CHINESE}.tar.zst")]);
        for more in [
            &["-v"][..],
            &["-q"],
            &["--json"],
            &["-n"],
            &["-n", "--json", "-v"],
        ] {
            let args = [&["export", ID, "--to", "out"][..], more].concat();
            let ran = place.run(args);
            ran.expect(3);
            hides(&ran, &token);
        }
        assert_eq!(names(place.path("out")), [format!("{CHINESE}.tar.zst")]);
    }
}

/// Kinds that are told apart in how they are shown: long and short, of one line and of many, vague and plain.
#[test]
fn secrets_of_every_form_are_named_and_never_printed() {
    let place = place();
    let line = "kJ8sD2mQ4vX7zB1nL5tR9wY3cF6gH0pA8eU2iO4kJ7sD1mQ5vX9zB3nL6tR0wY";
    let secrets = [
        (
            "private-key",
            format!("-----BEGIN {}-----\n{line}\n{line}\n", "RSA PRIVATE KEY"),
            line,
        ),
        (
            "generic-password",
            format!("数据库密码：{}，不要外传", "Wq7!pLm2x"),
            "Wq7!pLm2x",
        ),
        (
            "basic-auth-url",
            format!("https://me:{}@a.org/x", "Zr5-tKq8"),
            "Zr5-tKq8",
        ),
        (
            "generic-key",
            format!("my_{}: \"{}\"", "token", &line[..30]),
            &line[..30],
        ),
        ("jwt", format!("{}{line}.eyJ{line}.{line}", "eyJ"), line),
    ];
    for (rule, text, _) in &secrets {
        place.put_home(&format!("sessions/{ID}/artifacts/{rule}.txt"), text);
    }
    for more in [
        &[][..],
        &["-v"],
        &["-n"],
        &["--json"],
        &["--json", "-n", "-v"],
    ] {
        let ran = place.run([&["export", "crawler", "--to", "out"][..], more].concat());
        ran.expect(3);
        for (rule, _, secret) in &secrets {
            for told in [&ran.stdout, &ran.stderr] {
                for part in secret.as_bytes().windows(7) {
                    let part = std::str::from_utf8(part).unwrap();
                    assert!(!told.contains(part), "{rule}: {part} in {ran:#?}");
                }
            }
            assert!(
                ran.stdout.contains(rule) || ran.stderr.contains(rule),
                "{rule}: {ran:#?}"
            );
        }
    }
    assert_eq!(names(place.path("out")), [""; 0]);
}

#[test]
fn a_secret_in_the_path_that_is_named() {
    let place = place();
    let token = token();
    let rel = format!("artifacts/{token}.txt");
    fs::write(session(&place).join(&rel), "x").unwrap();
    for more in ["-v", "--json", "-n"] {
        let ran = place.run(["export", &format!("{ID}/{rel}"), "--to", "out", more]);
        ran.expect(3);
        hides(&ran, &token);
    }
    // One that is not there is named by what was typed, up to the secret.
    let ran = place.run(["export", &format!("{ID}/{token}"), "--to", "out"]);
    hides(ran.expect(1), &token);
    assert_eq!(names(place.path("out")), [""; 0]);
}

#[test]
fn what_is_allowed_goes_and_a_warning_lets_it_go() {
    let place = place();
    let token = token();
    let spec = format!("{ID}/context/turn_002.json");
    fs::write(session(&place).join("context/turn_002.json"), &token).unwrap();
    let held = place.json(["export", &spec, "--to", "out"]);
    let finding = &held["held_back"][0]["findings"][0];
    assert_eq!(finding["path"], spec);
    let digest = finding["digest"].as_str().unwrap().to_owned();

    settings(&place, "[secrets]\non_find = \"warn\"\n");
    let ran = place.run(["export", &spec, "--to", "out"]);
    ran.expect(0)
        .says(&["was exported with 1 secret", "on_find is \"warn\"", &digest]);
    hides(&ran, &token);
    assert_eq!(place.text("out/turn_002.json"), token);

    settings(
        &place,
        &format!("[secrets]\non_find = \"refuse\"\nallow = [\"{digest}\"]\n"),
    );
    fs::create_dir(place.path("out2")).unwrap();
    let gone = place.json(["export", &spec, "--to", "out2"]);
    assert_eq!(gone["exported"][0]["allowed"], 1);
    assert_eq!(place.text("out2/turn_002.json"), token);
}

#[test]
fn a_rule_of_ones_own_is_held_against_the_path_below_the_home() {
    let place = place();
    let rule = "[[rules]]\nid = \"binary\"\npath = '''^sessions/[^/]+/artifacts/.*\\.bin$'''\n";
    place.put_home("secret-rules.toml", rule);
    settings(&place, "[secrets]\nrules = \"secret-rules.toml\"\n");
    for spec in [
        ID.to_owned(),
        format!("{ID}/artifacts"),
        format!("{ID}/artifacts/zeros.bin"),
    ] {
        let ran = place.run(["export", &spec, "--to", "out"]);
        ran.expect(3)
            .says(&["artifacts/zeros.bin", "binary the whole file"]);
    }
    assert_eq!(names(place.path("out")), [""; 0]);
}

#[test]
fn nothing_is_written_over() {
    let place = place();
    place.put("out/20240603_crawler.tar.zst", "mine");
    place.put("out/artifacts/mine", "mine");
    symlink("nowhere", place.path("out/turn_001.json")).unwrap();
    let before = tree(&place.path("out"));
    let turn = format!("{ID}/context/turn_001.json");
    for more in [&[][..], &["-n"]] {
        let args = ["export", ID, "crawler/artifacts", &turn, "--to", "out"];
        let ran = place.run([&args[..], more].concat());
        ran.expect(1)
            .says(&["is there already", "name another folder with --to"]);
        assert_eq!(ran.stderr.matches("is there already").count(), 3, "{ran:?}");
        assert_eq!(differences(&before, &tree(&place.path("out"))), "");
    }
    // Two of one name: the first goes.
    fs::create_dir(place.path("out2")).unwrap();
    let other = format!("{CHINESE}/context/turn_001.json");
    for more in ["-n", "-q"] {
        let ran = place.run(["export", &turn, &other, "--to", "out2", more]);
        ran.expect(3).says(&["is the name of another item, too"]);
    }
    assert_eq!(names(place.path("out2")), ["turn_001.json"]);
    // One that stays here leaves its name to others.
    fs::create_dir(place.path("out3")).unwrap();
    place.put_home(&format!("sessions/{turn}"), token());
    for more in ["-n", "-q"] {
        let ran = place.run(["export", &turn, &other, "--to", "out3", more]);
        ran.expect(3).says(&["1 secret in it"]);
        assert!(!ran.stderr.contains("another item"), "{ran:?}");
    }
    let kept = place.home_text(&format!("sessions/{other}"));
    assert_eq!(place.text("out3/turn_001.json"), kept);
}

#[test]
fn folders_that_take_nothing() {
    let place = place();
    let ran = place.run(["export", ID, "--to", "没有"]);
    ran.expect(1).says(&["there is no folder", "没有", "hint:"]);
    assert!(!place.path("没有").exists());
    symlink(place.home().join("archive"), place.path("link")).unwrap();
    let home = place.home();
    for inside in [&home, &home.join("sessions"), Path::new("link")] {
        let ran = place.run(["export", ID, "--to", inside.to_str().unwrap()]);
        ran.expect(1).says(&["lies in the home"]);
    }
    place.put("file", "x");
    place.run(["export", ID, "--to", "file"]).expect(1);
    place.run(["export", ID]).expect(2);
    place.run(["export", "--to", "out"]).expect(2);
    if !is_root() {
        fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o500)).unwrap();
        let ran = place.run(["export", ID, "crawler/artifacts", "--to", "out"]);
        ran.expect(1).says(&["can not write into"]);
        fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(names(place.path("out")), [""; 0]);
}

#[test]
fn a_full_disk_keeps_nothing_half() {
    let place = place();
    let Some(disk) = Mount::memory(place.path("stick"), "1m") else {
        return;
    };
    let mut state = 88_172_645_463_325_252_u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    let noise: Vec<u8> = noise.take(2_000_000).collect();
    fs::write(session(&place).join("artifacts/noise.bin"), noise).unwrap();
    let ran = place.run([
        "export",
        ID,
        "crawler/artifacts",
        "crawler/artifacts/noise.bin",
        "crawler/memory",
        "--to",
        "stick",
    ]);
    ran.expect(3);
    assert_eq!(names(place.path("stick")), ["memory"], "{ran:#?}");
    drop(disk);
}

#[test]
fn what_is_no_file_is_left_out_and_named() {
    let place = place();
    let fifo = session(&place).join("artifacts/管道");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let socket = std::os::unix::net::UnixListener::bind(session(&place).join("artifacts/s"));
    for spec in ["crawler", "crawler/artifacts"] {
        let ran = place.run(["export", spec, "--to", "out"]);
        ran.expect(3).says(&[
            "artifacts/管道 (a FIFO) was left out",
            "artifacts/s (a socket)",
        ]);
    }
    assert_eq!(
        names(place.path("out")),
        ["20240603_crawler.tar.zst", "artifacts"]
    );
    assert!(!place.path("out/artifacts/管道").exists());
    let ran = place.run(["export", "crawler/artifacts/管道", "--to", "out"]);
    ran.expect(1).says(&["is a FIFO"]);
    drop(socket);
}

#[test]
fn links_are_not_followed() {
    let place = place();
    place.put("elsewhere/file", "of somebody");
    symlink(
        place.path("elsewhere"),
        session(&place).join("artifacts/out"),
    )
    .unwrap();
    for spec in ["crawler/artifacts/out", "crawler/artifacts/latest"] {
        let ran = place.run(["export", spec, "--to", "out"]);
        ran.expect(1)
            .says(&["is a symbolic link", "never followed"]);
    }
    let ran = place.run(["export", "crawler/artifacts/out/file", "--to", "out"]);
    ran.expect(1).says(&["links are never followed"]);
    place
        .run(["export", "crawler/../../wbhome.toml", "--to", "out"])
        .expect(2);
    let ran = place.run(["export", "crawler/artifact", "--to", "out"]);
    ran.expect(1)
        .says(&["there is no", "wbhome show 20240603_crawler/"]);
    assert_eq!(names(place.path("out")), [""; 0]);
}

#[test]
fn a_dry_run_looks_and_writes_nothing() {
    let place = place();
    let (before, own) = (tree(&place.root()), names(place.home().join(".wbhome")));
    let ran = place.run(["export", ID, "数据清洗/context", "--to", "out", "-n"]);
    ran.expect(0);
    assert!(
        ran.stdout
            .contains("2 items would be exported. Nothing was changed.")
    );
    assert_eq!(differences(&before, &tree(&place.root())), "");
    assert_eq!(own, names(place.home().join(".wbhome")));
}

#[test]
fn names_that_others_do_not_take_are_noted() {
    let place = place();
    for name in ["a:b.txt", "表.md", "X.md", "x.md"] {
        fs::write(session(&place).join("artifacts").join(name), "x").unwrap();
    }
    let ran = place.run(["export", "crawler/artifacts", "--to", "out"]);
    ran.expect(0)
        .says(&["do not take: a:b.txt", "clash elsewhere: x.md"]);
    place
        .run(["export", "crawler", "--to", "out", "-q"])
        .expect(0);
    let value: Value = place.json(["export", "crawler/artifacts", "--to", "out", "-n"]);
    assert_eq!(value["refused"][0]["inside"]["path"], "artifacts");
}

/// A kill leaves a whole pack, or nothing under a name that anybody looks for; and the home as it was.
#[cfg(feature = "failpoints")]
#[test]
fn a_kill_leaves_nothing_half() {
    for (failpoint, spec) in [
        ("export.published", "crawler"),
        ("export.copied", "crawler/memory"),
    ] {
        for archived in [false, true] {
            let place = place();
            if archived {
                place.ok(["archive", ID, "-q"]);
            }
            let before = place.apart_from_own();
            let env = [("WBHOME_FAILPOINT", failpoint)];
            let ran = place.run_with(&env, &["export", spec, "--to", "out"]);
            assert_eq!(ran.code, None, "{ran:?}");
            assert_eq!(differences(&before, &place.apart_from_own()), "");
            let there = names(place.path("out"));
            assert_eq!(there.len(), 1);
            match spec {
                "crawler" => {
                    assert_eq!(there[0], "20240603_crawler.tar.zst");
                    place
                        .run(["export", spec, "--to", "out"])
                        .expect(1)
                        .says(&["there already"]);
                }
                _ => {
                    assert!(there[0].starts_with(".wbhome-tmp-"), "{there:?}");
                    place.ok(["export", spec, "--to", "out"]);
                    assert_eq!(place.text("out/memory/记忆/长期.md"), "数据\n".repeat(500));
                }
            }
            // What was unpacked goes with the next command that takes the lock.
            place.ok(["index", "-q"]);
            assert_eq!(names(place.home().join(".wbhome/tmp")), [""; 0]);
        }
    }
}

/// Nobody who merely stands in a folder is led to its rules, and its allow list.
#[test]
fn a_home_that_was_merely_found_is_not_obeyed() {
    let place = place();
    fs::rename(place.home(), place.path("found")).unwrap();
    let ran = place.run_in(place.path("found"), &["export", ID, "--to", "../out"]);
    ran.expect(1).says(&["merely found"]);
    assert_eq!(names(place.path("out")), [""; 0]);
}
