//! Files that are hard to copy: each is kept as it is, or skipped with a reason and the right exit code.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use base64::Engine as _;
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};
use serde_json::Value;
use support::moving::{OLD, SESSION, assert_kept, assert_same, map_to, small_home, visible};
use support::{Place, Ran, has_tool, is_root, tree};

const ARTIFACTS: &str = "sessions/20240601_one/artifacts";

fn source() -> (Place, PathBuf) {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let artifacts = place.path(format!("C/{ARTIFACTS}"));
    (place, artifacts)
}

#[track_caller]
fn migrate(place: &Place, code: i32) -> Value {
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(place, "H"), "--json"]);
    let outcome = ran.expect(code).json();
    add_up(&outcome);
    outcome
}

#[track_caller]
fn add_up(outcome: &Value) {
    let classes = &outcome["classes"];
    let parts = ["copied", "rewritten", "linked", "folders", "skipped"];
    let sum: u64 = parts.iter().map(|p| classes[p].as_u64().unwrap()).sum();
    assert_eq!(classes["total"], sum, "{classes}");
}

fn verify(place: &Place) -> Ran {
    place.run(["migrate", "verify", "--home", "H", "--json"])
}

/// Source and home as trees, the root and the index aside.
fn same_but_references(place: &Place) {
    let (source, home) = (tree(&place.path("C")), visible(&place.path("H")));
    assert_kept(&source, &home, |name| {
        name.is_empty() || name == "index.json"
    });
}

#[test]
fn fifos_and_sockets_are_never_opened() {
    let (place, artifacts) = source();
    let fifo = artifacts.join("agent.fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    // Bound below the limit of a socket's path.
    let socket = place.path("C/s.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::rename(&socket, artifacts.join("agent.sock")).unwrap();
    let outcome = migrate(&place, 0);
    let skipped = outcome["skipped"].as_array().unwrap();
    let told: Vec<_> = skipped
        .iter()
        .map(|s| {
            format!(
                "{} {} {}",
                s["path"].as_str().unwrap(),
                s["reason"].as_str().unwrap(),
                s["failed"]
            )
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with(&format!("{ARTIFACTS}/agent.fifo")) && told[0].ends_with("false"),
        "{told:?}"
    );
    assert!(
        told[0].contains("FIFO") || told[0].contains("pipe"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with(&format!("{ARTIFACTS}/agent.sock a socket")),
        "{told:?}"
    );
    for name in ["agent.fifo", "agent.sock"] {
        assert!(fs::symlink_metadata(place.path(format!("H/{ARTIFACTS}/{name}"))).is_err());
    }
    verify(&place).expect(0);
    // People see it too.
    let text = place.ok(["migrate", "status", "--home", "H"]);
    assert!(text.contains("agent.sock   a socket"), "{text}");
}

/// The program as a user for whom modes count; `None` where that can not be had.
fn as_nobody(place: &Place) -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        return Some(place.command());
    }
    if !has_tool("setpriv") {
        return None;
    }
    let program = place.path("wbhome");
    let built = env!("CARGO_BIN_EXE_wbhome");
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).unwrap();
    }
    fs::set_permissions(place.root(), Permissions::from_mode(0o755)).unwrap();
    for folder in ["out", "me"] {
        fs::create_dir_all(place.path(folder)).unwrap();
        std::os::unix::fs::chown(place.path(folder), Some(65534), Some(65534)).unwrap();
    }
    let mut command = place.command();
    let environment: Vec<_> = command
        .get_envs()
        .filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())))
        .collect();
    command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .env_clear()
        .envs(environment)
        .current_dir(place.root())
        .stdin(Stdio::null());
    Some(command)
}

#[test]
fn what_can_not_be_read_is_named_and_the_rest_is_copied() {
    let (place, artifacts) = source();
    for (name, mode) in [("secret.txt", 0o000), ("own.txt", 0o644)] {
        fs::write(artifacts.join(name), "x").unwrap();
        fs::set_permissions(artifacts.join(name), Permissions::from_mode(mode)).unwrap();
    }
    fs::hard_link(
        artifacts.join("secret.txt"),
        artifacts.join("secret_too.txt"),
    )
    .unwrap();
    fs::create_dir(artifacts.join("closed")).unwrap();
    fs::write(artifacts.join("closed/a.txt"), "x").unwrap();
    fs::set_permissions(artifacts.join("closed"), Permissions::from_mode(0o000)).unwrap();
    let Some(mut command) = as_nobody(&place) else {
        return;
    };
    let home = place.path("out/H").to_str().unwrap().to_owned();
    let map = format!("{OLD}={home}");
    let output = command
        .args(["migrate", "C", "out/H", "--map", &map, "--json"])
        .output()
        .unwrap();
    let ran = Ran::of(output);
    let outcome = ran.expect(3).json();
    add_up(&outcome);
    let failed: Vec<_> = outcome["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .inspect(|s| assert_eq!(s["failed"], true, "{s}"))
        .map(|s| {
            s["path"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        failed,
        ["closed", "secret.txt", "secret_too.txt"],
        "{outcome}"
    );
    let findings = outcome["findings"].as_array().unwrap();
    for name in ["closed", "secret.txt"] {
        let path = format!("{ARTIFACTS}/{name}");
        assert!(
            findings
                .iter()
                .any(|f| f["kind"] == "unreadable" && f["path"] == path.as_str()),
            "{path}: {findings:#?}"
        );
    }
    assert_eq!(place.text(format!("out/H/{ARTIFACTS}/own.txt")), "x");
    assert_eq!(
        place.text(format!("out/H/{SESSION}/memory/notes.md")),
        format!("# Notes\n\nWork in `{home}`.\n")
    );
    // So that the folder of the test can be removed by its owner.
    fs::set_permissions(artifacts.join("closed"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn links_that_go_round_in_circles_are_links() {
    let (place, artifacts) = source();
    for (target, name) in [
        ("b", "a"),
        ("a", "b"),
        ("self", "self"),
        ("../..", "up"),
        (".", "here"),
        ("/nowhere/x", "gone"),
    ] {
        symlink(target, artifacts.join(name)).unwrap();
    }
    let outcome = migrate(&place, 0);
    assert_eq!(outcome["classes"]["links_kept"], 6);
    same_but_references(&place);
    for (target, name) in [("b", "a"), ("self", "self"), ("../..", "up")] {
        let there = fs::read_link(place.path(format!("H/{ARTIFACTS}/{name}"))).unwrap();
        assert_eq!(there, Path::new(target));
    }
    verify(&place).expect(0);
}

#[test]
fn links_into_the_old_home_point_into_the_new_one() {
    let (place, artifacts) = source();
    let real = place.path("C").to_str().unwrap().to_owned();
    let home = place.path("H").to_str().unwrap().to_owned();
    let links = [
        (
            format!("{OLD}/{SESSION}/logs"),
            Some(format!("{home}/{SESSION}/logs")),
        ),
        (OLD.to_owned(), Some(home.clone())),
        (format!("{real}/agents"), Some(format!("{home}/agents"))),
        (format!("{OLD}2/x"), None),
        (format!("/Volumes/x{OLD}"), None),
    ];
    for (n, (target, _)) in links.iter().enumerate() {
        symlink(target, artifacts.join(format!("link{n}"))).unwrap();
    }
    let outcome = migrate(&place, 0);
    for (n, (target, wanted)) in links.iter().enumerate() {
        let there = fs::read_link(place.path(format!("H/{ARTIFACTS}/link{n}"))).unwrap();
        assert_eq!(there.to_str().unwrap(), wanted.as_ref().unwrap_or(target));
    }
    assert_eq!(outcome["classes"]["links_rewritten"], 3);
    assert_eq!(outcome["classes"]["links_kept"], 2);
    verify(&place).expect(0);
}

#[test]
fn a_file_that_grows_meanwhile_is_copied_up_to_some_line_and_reported() {
    let (place, artifacts) = source();
    // Enough to do that the writer is at work all the time.
    for n in 0..300 {
        fs::write(
            artifacts.join(format!("{n}.md")),
            format!("in {OLD}\n").repeat(200),
        )
        .unwrap();
    }
    let log = place.path(format!("C/{SESSION}/logs/grows.log"));
    fs::write(&log, "").unwrap();
    let (stop, map) = (AtomicBool::new(false), map_to(&place, "H"));
    let outcome = std::thread::scope(|scope| {
        let (stop, log) = (&stop, &log);
        scope.spawn(move || {
            let mut file = File::options().append(true).open(log).unwrap();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                writeln!(file, "line {n} in {OLD}").unwrap();
                n += 1;
                // Without a pause: a file that rests between two looks at it has been copied as it was then.
                std::thread::yield_now();
            }
        });
        // A writer that gets no turn on a busy machine has written nothing between two looks: then the file was at rest.
        let mut ran = None;
        for _ in 0..20 {
            let one = place.run(["migrate", "C", "H", "--map", &map, "--force", "--json"]);
            if one.code != Some(0) {
                ran = Some(one);
                break;
            }
            fs::remove_dir_all(place.path("H")).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        ran.expect("the file grew each time that nobody looked")
            .expect(3)
            .json()
    });
    add_up(&outcome);
    let restless = outcome["restless"].as_array().unwrap();
    assert_eq!(restless.len(), 1, "{restless:?}");
    assert_eq!(restless[0]["path"], format!("{SESSION}/logs/grows.log"));
    let home = place.path("H").to_str().unwrap().to_owned();
    // As bytes: the last line may be cut anywhere, in a character too, and in a path, which then is none yet.
    let copy = fs::read(place.path(format!("H/{SESSION}/logs/grows.log"))).unwrap();
    let whole = fs::read_to_string(&log).unwrap().replace(OLD, &home);
    let whole = whole.as_bytes();
    assert!(!copy.is_empty() && copy.len() < whole.len());
    let lines = copy.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    assert!(
        whole.starts_with(&copy[..lines]),
        "the copy is no beginning of the log"
    );
    // Everything else is right, and what has changed since is told.
    let differences = verify(&place).expect(4).json();
    let told = differences["differences"].as_array().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["path"], format!("{SESSION}/logs/grows.log"));
    assert_eq!(told[0]["kind"], "changed-in-source");
}

#[test]
fn names_of_any_length_and_bytes() {
    let (place, artifacts) = source();
    let long = "长".repeat(85);
    let ascii = "n".repeat(251) + ".txt";
    assert_eq!((long.len(), ascii.len()), (255, 255));
    let raw = OsStr::from_bytes(b"caf\xe9 \xff.txt");
    let (composed, decomposed) = ("caf\u{e9}.md", "cafe\u{301}.md");
    let odd = [
        "-rf",
        "a\nb.txt",
        "tab\t.txt",
        "quote\"'.md",
        "$HOME.txt",
        " lead",
        "trail ",
        "*?.md",
        "\u{202e}x.md",
        "\u{1b}[31mred (1).md",
        "\u{1b}[31mred.md",
    ];
    let all = odd
        .iter()
        .copied()
        .chain([&*long, &*ascii, composed, decomposed])
        .map(OsStr::new);
    for name in all.clone().chain([raw]) {
        fs::write(
            artifacts.join(name),
            format!("{OLD} in {}", name.to_string_lossy()),
        )
        .unwrap();
    }
    let outcome = migrate(&place, 0);
    same_but_references(&place);
    let home = place.path("H").to_str().unwrap().to_owned();
    for name in all.chain([raw]) {
        let there = fs::read_to_string(place.path(format!("H/{ARTIFACTS}")).join(name)).unwrap();
        assert_eq!(there, format!("{home} in {}", name.to_string_lossy()));
    }
    verify(&place).expect(0);
    // Two names that are one on other systems are told.
    let findings = outcome["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|f| f["kind"] == "name-collision"),
        "{findings:#?}"
    );
    // What people read can not drive their terminal.
    let map = map_to(&place, "H2");
    let ran = place.run(["migrate", "C", "H2", "--map", &map]);
    let text = &ran.expect(0).stdout;
    assert!(
        !text.contains("\nb.txt") && !text.contains('\u{202e}') && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn a_name_that_is_not_utf_8_is_told_exactly() {
    let (place, artifacts) = source();
    let raw = OsStr::from_bytes(b"caf\xe9.sock");
    let fifo = artifacts.join(raw);
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let file = OsStr::from_bytes(b"\xff\xfe.md");
    fs::write(artifacts.join(file), format!("{OLD}\n")).unwrap();
    let outcome = migrate(&place, 0);
    let exact = |value: &Value| {
        let bytes = value["path_bytes"].as_str().unwrap();
        base64::engine::general_purpose::STANDARD
            .decode(bytes)
            .unwrap()
    };
    let path = [ARTIFACTS.as_bytes(), b"/caf\xe9.sock"].concat();
    assert_eq!(exact(&outcome["skipped"][0]), path);
    // Changed and removed, it is told exactly too.
    fs::remove_file(place.path(format!("H/{ARTIFACTS}")).join(file)).unwrap();
    let document = verify(&place).expect(4).json();
    let path = [ARTIFACTS.as_bytes(), b"/\xff\xfe.md"].concat();
    assert_eq!(exact(&document["differences"][0]), path);
}

/// A file with a path relative to the home of `length` bytes, made step by step: as one path it is too long.
fn deep(root: &Path, length: usize, content: &str) -> Vec<String> {
    let mut names: Vec<String> = ARTIFACTS.split('/').map(str::to_owned).collect();
    let mut left = length - ARTIFACTS.len() - "/file.md".len();
    while left > 0 {
        let step = left.min(201);
        // Not so that a slash alone would be left.
        let step = if left - step == 1 { step - 1 } else { step };
        names.push("d".repeat(step - 1));
        left -= step;
    }
    names.push("file.md".into());
    assert_eq!(names.join("/").len(), length);
    let (file, folders) = names.split_last().unwrap();
    let mut at = openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for name in folders {
        let _ = mkdirat(&at, name, Mode::from_raw_mode(0o755));
        at = openat(&at, name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let mode = Mode::from_raw_mode(0o644);
    let made = openat(&at, file, OFlags::CREATE | OFlags::WRONLY, mode).unwrap();
    File::from(made).write_all(content.as_bytes()).unwrap();
    names
}

fn read_deep(root: &Path, names: &[String]) -> (String, fs::Metadata) {
    let mut at: OwnedFd = openat(CWD, root, OFlags::RDONLY, Mode::empty()).unwrap();
    for name in names {
        at = openat(&at, name, OFlags::RDONLY, Mode::empty()).unwrap();
    }
    let file = File::from(at);
    let text = std::io::read_to_string(&file).unwrap();
    (text, file.metadata().unwrap())
}

#[test]
fn a_path_of_3900_bytes_in_a_folder_with_a_long_path() {
    let place = Place::new();
    // Together they are longer than the 4,096 bytes that the kernel takes as one path.
    let drive = format!("{}/C", "drive ".repeat(40).trim_end());
    small_home(&place, &drive, OLD);
    let names = deep(&place.path(&drive), 3900, &format!("deep in {OLD}\n"));
    let dest = format!("{}/H", "h".repeat(240));
    let map = map_to(&place, &dest);
    let ran = place.run(["migrate", &drive, &dest, "--map", &map, "--json"]);
    let outcome = ran.expect(0).json();
    add_up(&outcome);
    assert!(outcome["skipped"].as_array().unwrap().is_empty());
    let (text, meta) = read_deep(&place.path(&dest), &names);
    let home = place.path(&dest).to_str().unwrap().to_owned();
    assert_eq!(text, format!("deep in {home}\n"));
    let (_, there) = read_deep(&place.path(&drive), &names);
    assert_eq!(
        (meta.mode(), meta.mtime_nsec()),
        (there.mode(), there.mtime_nsec())
    );
    place.run(["migrate", "verify", "--home", &dest]).expect(0);
    place.run(["check", "--home", &dest]).expect(0);
}

#[test]
fn modes_of_all_kinds_are_kept() {
    let (place, artifacts) = source();
    for (name, mode) in [
        ("0600", 0o600),
        ("0400", 0o400),
        ("0444", 0o444),
        ("0755", 0o755),
        ("0777", 0o777),
        ("4755", 0o4755),
        ("0000", 0),
    ] {
        if mode == 0 && !rustix::process::geteuid().is_root() {
            continue;
        }
        let path = artifacts.join(name);
        fs::write(&path, format!("{OLD}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    for (name, mode) in [("shared", 0o2775), ("sticky", 0o1777), ("closed", 0o500)] {
        let path = artifacts.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside.md"), format!("{OLD}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    migrate(&place, 0);
    same_but_references(&place);
    let mode = |name: &str| {
        let path = place.path(format!("H/{ARTIFACTS}/{name}"));
        fs::metadata(path).unwrap().mode() & 0o7777
    };
    assert_eq!(
        (mode("0600"), mode("shared"), mode("closed")),
        (0o600, 0o2775, 0o500)
    );
    // A folder without write permission can be gone on with.
    let records = fs::read_dir(place.path("H/.wbhome/migrations")).unwrap();
    for record in records {
        fs::remove_file(record.unwrap().path().join("outcome.json")).unwrap();
    }
    migrate(&place, 0);
    same_but_references(&place);
    for root in ["C", "H"] {
        let path = place.path(format!("{root}/{ARTIFACTS}/closed"));
        fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn owners_are_kept_by_root() {
    if !is_root() {
        return;
    }
    let (place, artifacts) = source();
    fs::write(artifacts.join("theirs.md"), format!("{OLD}\n")).unwrap();
    fs::create_dir(artifacts.join("theirs")).unwrap();
    symlink("theirs.md", artifacts.join("link")).unwrap();
    for name in ["theirs.md", "theirs", "link"] {
        std::os::unix::fs::lchown(artifacts.join(name), Some(1234), Some(4321)).unwrap();
    }
    migrate(&place, 0);
    for name in ["theirs.md", "theirs", "link"] {
        let meta = fs::symlink_metadata(place.path(format!("H/{ARTIFACTS}/{name}"))).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (1234, 4321), "{name}");
    }
}

#[test]
fn holes_stay_holes() {
    let (place, artifacts) = source();
    let huge = artifacts.join("huge.img");
    let file = File::create(&huge).unwrap();
    file.set_len(10 << 30).unwrap();
    file.write_all_at(b"\0begin", 0).unwrap();
    file.write_all_at(b"middle", 5 << 30).unwrap();
    file.write_all_at(b"end", (10 << 30) - 3).unwrap();
    // Text with a hole, as a log has after a power cut; what is behind the hole is changed too.
    let log = place.path(format!("C/{SESSION}/logs/holed.log"));
    let line = format!("started in {OLD}\n");
    let holed = File::create(&log).unwrap();
    holed.write_all_at(line.as_bytes(), 0).unwrap();
    holed.write_all_at(line.as_bytes(), 64 << 20).unwrap();
    // Nobody may have them open for writing.
    drop((file, holed));
    let before = fs::metadata(&huge).unwrap();
    if before.blocks() > 1 << 16 {
        eprintln!("SKIPPED: this filesystem makes no holes");
        return;
    }
    let begun = Instant::now();
    migrate(&place, 0);
    eprintln!("10 GB of holes took {:.1?}", begun.elapsed());
    let there = place.path(format!("H/{ARTIFACTS}/huge.img"));
    let after = fs::metadata(&there).unwrap();
    assert_eq!(after.size(), 10 << 30);
    assert!(
        after.blocks() <= before.blocks() + 64,
        "{} → {} blocks",
        before.blocks(),
        after.blocks()
    );
    let copy = File::open(&there).unwrap();
    let mut bytes = [0; 6];
    for (at, wanted) in [
        (0, b"\0begin"),
        (5 << 30, b"middle"),
        ((10 << 30) - 6, b"\0\0\0end"),
    ] {
        copy.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(&bytes, wanted);
    }
    let content = place.read(format!("H/{SESSION}/logs/holed.log"));
    let home = place.path("H").to_str().unwrap().to_owned();
    let new = format!("started in {home}\n");
    let hole = (64 << 20) - line.len();
    assert_eq!(content.len(), 2 * new.len() + hole);
    assert!(content.starts_with(new.as_bytes()) && content.ends_with(new.as_bytes()));
    let log = fs::metadata(place.path(format!("H/{SESSION}/logs/holed.log"))).unwrap();
    assert!(log.blocks() < 1 << 12, "{} blocks", log.blocks());
}

#[test]
fn hard_links_across_folders_stay_one_file() {
    let (place, artifacts) = source();
    fs::create_dir(artifacts.join("a")).unwrap();
    fs::write(artifacts.join("z.md"), format!("{OLD}\n")).unwrap();
    for name in ["a/first.md", "b.md"] {
        fs::hard_link(artifacts.join("z.md"), artifacts.join(name)).unwrap();
    }
    // A name outside of the home is not followed there.
    fs::hard_link(artifacts.join("z.md"), place.path("outside.md")).unwrap();
    let outcome = migrate(&place, 0);
    let inode = |name: &str| {
        let meta = fs::metadata(place.path(format!("H/{ARTIFACTS}/{name}"))).unwrap();
        (meta.ino(), meta.nlink())
    };
    assert_eq!(inode("z.md"), inode("b.md"));
    assert_eq!(inode("z.md"), inode("a/first.md"));
    assert_eq!(inode("z.md").1, 3);
    assert_eq!(outcome["classes"]["hard_links"], 2);
    assert_eq!(place.text("outside.md"), format!("{OLD}\n"));
    verify(&place).expect(0);
}

/// What a tool prints of the attributes of a file, without its name.
fn attributes(tool: &str, args: &[&str], path: &Path) -> String {
    let output = Command::new(tool).args(args).arg(path).output().unwrap();
    let text = Ran::of(output).expect(0).stdout.clone();
    let lines = text.lines().filter(|l| !l.starts_with("# file"));
    lines.map(|l| format!("{l}\n")).collect()
}

#[test]
fn access_lists_and_extended_attributes_are_kept() {
    if !has_tool("setfacl")
        || !has_tool("getfacl")
        || !has_tool("setfattr")
        || !has_tool("getfattr")
    {
        return;
    }
    let (place, artifacts) = source();
    let (file, folder) = (artifacts.join("listed.md"), artifacts.join("listed"));
    fs::write(&file, format!("{OLD}\n")).unwrap();
    fs::create_dir(&folder).unwrap();
    let set = |tool: &str, args: &[&str], path: &Path| {
        let output = Command::new(tool).args(args).arg(path).output().unwrap();
        output.status.success()
    };
    let all_set = set("setfacl", &["-m", "u:1234:r,g:4321:rw"], &file)
        && set("setfacl", &["-d", "-m", "u:1234:rwx"], &folder)
        && set("setfattr", &["-n", "user.origin", "-v", "来自云盘"], &file)
        && set("setfattr", &["-n", "user.origin", "-v", "folder"], &folder);
    if !all_set {
        eprintln!("SKIPPED: this filesystem keeps no access lists or attributes");
        return;
    }
    fs::write(folder.join("inside.md"), "x").unwrap();
    migrate(&place, 0);
    for name in ["listed.md", "listed", "listed/inside.md"] {
        let (old, new) = (
            artifacts.join(name),
            place.path(format!("H/{ARTIFACTS}/{name}")),
        );
        for (tool, args) in [
            ("getfacl", &["-pn"][..]),
            ("getfattr", &["-d", "-m", "user"][..]),
        ] {
            assert_eq!(
                attributes(tool, args, &new),
                attributes(tool, args, &old),
                "{name}"
            );
        }
    }
    same_but_references(&place);
}

#[test]
fn empty_folders_and_files_are_kept() {
    let (place, artifacts) = source();
    fs::create_dir_all(artifacts.join("empty/in/empty")).unwrap();
    fs::write(artifacts.join("nothing.json"), "").unwrap();
    migrate(&place, 0);
    same_but_references(&place);
    assert!(place.path(format!("H/{ARTIFACTS}/empty/in/empty")).is_dir());
}

#[test]
fn the_source_is_untouched_even_its_access_times() {
    let (place, _) = source();
    let times = || -> Vec<_> {
        walkdir::WalkDir::new(place.path("C"))
            .sort_by_file_name()
            .into_iter()
            .map(|e| e.unwrap())
            .filter(|e| e.file_type().is_file())
            .map(|e| {
                let meta = e.metadata().unwrap();
                (
                    e.path().to_owned(),
                    meta.atime(),
                    meta.atime_nsec(),
                    meta.ctime(),
                    meta.ctime_nsec(),
                )
            })
            .collect()
    };
    let (before, old) = (tree(&place.path("C")), times());
    migrate(&place, 0);
    let new = times();
    assert_same(&tree(&place.path("C")), &before, "the source");
    assert_eq!(new, old);
}
