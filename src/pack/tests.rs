//! Packs that are written here and read by others.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::unpack as unpack_all;
use super::*;
use crate::base::{Context, FixedClock, NoProgress, Stop};
use crate::disk::{Dir, Stamp, Xattrs};

/// Runs `with` in a context of a fixed clock.
fn in_context<T>(with: impl FnOnce(&Context) -> T) -> T {
    let clock = FixedClock::new("2024-06-15T12:00:00Z".parse().unwrap());
    let stop = Stop::new();
    with(&Context {
        clock: &clock,
        progress: &NoProgress,
        stop: &stop,
    })
}

/// A session with one of everything that a pack keeps.
fn session(root: &Path) {
    let long = "很长的名字".repeat(15);
    for (path, content) in [
        ("session.json", "{}".to_owned()),
        (
            "context/turn_001.json",
            "{\"role\": \"user\"}\n".repeat(300),
        ),
        (
            "context/turn_002.json",
            "{\"role\": \"agent\"}\n".repeat(300),
        ),
        ("memory/事实.md", "一\n二\n".to_owned()),
        ("artifacts/脚本/run.sh", "#!/bin/sh\n".to_owned()),
        ("artifacts/a name\nof two lines", "x".to_owned()),
        ("logs/agent_run.log", "line\n".repeat(1000)),
        ("empty", String::new()),
        (&format!("artifacts/{long}/{long}.txt"), "long".to_owned()),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    // Larger than what is read at once.
    let noise: Vec<u8> = (0..3_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    fs::write(root.join("artifacts/large.bin"), noise).unwrap();
    fs::create_dir(root.join("artifacts/空")).unwrap();
    symlink("../memory/事实.md", root.join("artifacts/link")).unwrap();
    symlink(
        "/nowhere/".to_owned() + &long,
        root.join("artifacts/dangling"),
    )
    .unwrap();
    fs::hard_link(
        root.join("memory/事实.md"),
        root.join("artifacts/second name.md"),
    )
    .unwrap();
    let mode = |path: &str, mode| {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("artifacts/脚本/run.sh", 0o755);
    mode("memory/事实.md", 0o600);
    let dir = |path: &str| Dir::open(root.join(path)).unwrap();
    let time = |folder: &str, name: &str, seconds, nanos| {
        let stamp = Stamp { seconds, nanos };
        dir(folder).set_time_of(name.as_ref(), stamp).unwrap();
    };
    time("context", "turn_001.json", 1_717_405_200, 123_456_789);
    time("context", "turn_002.json", -5, 500_000_000);
    time("artifacts", "link", 1_000_000_000, 1);
    time("memory", "事实.md", 8_589_934_592, 0);
    let file = dir("context").open_file("turn_001.json".as_ref()).unwrap();
    let value = b"a value\nof any bytes \xff".to_vec();
    let _ = Xattrs::known([(b"user.note".to_vec(), value)]).apply(&file);
    // What was made last has changed the folders.
    for folder in ["artifacts/空", "artifacts", "context", "memory", "logs"] {
        let stamp = Stamp {
            seconds: 1_600_000_000,
            nanos: 7,
        };
        dir(folder).set_time(stamp).unwrap();
    }
    mode("artifacts/空", 0o700);
}

fn pack_of(root: &Path, to: &Path, threads: u32) -> Packed {
    in_context(|context| {
        let dir = Dir::open(root).unwrap();
        let survey = survey(&dir, "20240603_数据", &|_, _| false, context).unwrap();
        let file = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(to)
            .unwrap();
        let about = About {
            created_at: context.clock.now(),
            entry: None,
        };
        write(&file, &dir, survey, about, 3, threads, context).unwrap()
    })
}

fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("SKIPPED: there is no {program} here");
    }
    there
}

fn runs(program: &str, args: &[&str]) -> bool {
    let output = Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}");
    said.is_empty()
}

#[test]
fn stock_tools_give_the_exact_tree() {
    let place = tempfile::tempdir().unwrap();
    let (root, pack) = (place.path().join("root"), place.path().join("x.tar.zst"));
    session(&root);
    let packed = pack_of(&root, &pack, 2);
    assert_eq!(packed.manifest.flaws, []);
    assert_eq!(packed.bytes, fs::metadata(&pack).unwrap().size());
    let same = |dir: &Path, but: &[&str]| {
        let dir = Dir::open(dir).unwrap();
        let mut found = in_context(|context| compare(&packed.manifest, &dir, context).unwrap());
        found.retain(|difference| !but.iter().any(|but| difference.path == Path::new(but)));
        assert_eq!(found, []);
    };
    let shown = pack.to_str().unwrap();
    let unpack = |program: &str, more: &[&str], but: &[&str]| {
        let to = place.path().join(program);
        fs::create_dir(&to).unwrap();
        let args = [&["-xpf", shown, "-C", to.to_str().unwrap()], more].concat();
        assert!(runs(program, &args), "{program} had something to say");
        same(&to.join("20240603_数据"), but);
    };
    if has("tar") {
        // One of the times lies before 1970, another far ahead: it warns of both.
        let more = [
            "--zstd",
            "--xattrs",
            "--xattrs-include=*",
            "--warning=no-timestamp",
        ];
        unpack("tar", &more, &[]);
    }
    if has("bsdtar") {
        // libarchive takes the fraction of a time before 1970 for one that counts forward.
        unpack("bsdtar", &["--xattrs"], &["context/turn_002.json"]);
    }
    if has("zstd") {
        runs("zstd", &["-tq", shown]);
        runs("zstd", &["-l", shown]);
    }
    let opened = Pack::open(&pack).unwrap();
    assert_eq!(opened.nature(), &Nature::Whole);
    assert_eq!(opened.manifest(), Some(&packed.manifest));
    assert_eq!(opened.digest().unwrap(), packed.blake3);
    let into = place.path().join("into");
    fs::create_dir(&into).unwrap();
    in_context(|context| {
        let verified = verify(&opened, context).unwrap();
        assert_eq!(verified.problems, []);
        assert_eq!(verified.members, packed.manifest.members.len() as u64);
        let dir = Dir::open(&into).unwrap();
        let unpacked = unpack_all(&opened, &dir, Limits::default(), context).unwrap();
        assert_eq!(unpacked.problems, []);
        for path in [
            "memory/事实.md",
            "artifacts/second name.md",
            "artifacts/large.bin",
        ] {
            let mut content = Vec::new();
            read_member(&opened, Path::new(path), &mut content, context).unwrap();
            assert_eq!(content, fs::read(root.join(path)).unwrap(), "{path}");
        }
    });
    same(&into, &[]);
}

/// The seek table is that of the public seekable format: a reader of somebody else's finds its way with it.
#[test]
fn another_reader_of_the_seekable_format_reads_it() {
    let place = tempfile::tempdir().unwrap();
    let (root, pack) = (place.path().join("root"), place.path().join("x.tar.zst"));
    session(&root);
    let manifest = pack_of(&root, &pack, 2).manifest;
    let table = zeekstd::SeekTable::from_seekable(&mut fs::File::open(&pack).unwrap()).unwrap();
    // The last one is that of the manifest, which holds nothing for a decoder.
    assert_eq!(table.num_frames() as usize, manifest.frames.len() + 1);
    for (number, frame) in (0..).zip(&manifest.frames) {
        assert_eq!(table.frame_size_comp(number).unwrap(), frame.bytes);
        assert_eq!(table.frame_size_decomp(number).unwrap(), frame.content);
    }
    let stream = zstd::decode_all(fs::File::open(&pack).unwrap()).unwrap();
    assert_eq!(table.size_decomp(), stream.len() as u64);
    let member = manifest
        .members
        .iter()
        .find(|m| m.path.ends_with("turn_002.json"));
    let at = member.unwrap().at;
    let options = zeekstd::DecodeOptions::new(fs::File::open(&pack).unwrap()).offset(at);
    let mut decoder = options.into_decoder().unwrap();
    let mut found = vec![0; 4096];
    let read = decoder.decompress(&mut found).unwrap();
    assert!(read > 0 && found[..read] == stream[at as usize..][..read]);
}

#[test]
fn every_flipped_bit_is_found() {
    let place = tempfile::tempdir().unwrap();
    let (root, pack) = (place.path().join("root"), place.path().join("x.tar.zst"));
    for path in ["context", "artifacts"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    fs::write(root.join("session.json"), "{}").unwrap();
    fs::write(root.join("context/turn_001.json"), "一".repeat(300)).unwrap();
    fs::hard_link(root.join("session.json"), root.join("artifacts/again")).unwrap();
    pack_of(&root, &pack, 1);
    let whole = fs::read(&pack).unwrap();
    let damaged = place.path().join("damaged.tar.zst");
    let found = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        in_context(|context| match Pack::open(&damaged) {
            Err(_) => true,
            Ok(pack) => !verify(&pack, context).unwrap().problems.is_empty(),
        })
    };
    assert!(!found(&whole));
    let missed = |bytes: &dyn Fn(usize) -> Vec<u8>, all: usize, step: usize| -> Vec<usize> {
        let numbers = (0..all).step_by(step);
        numbers.filter(|n| !found(&bytes(*n))).collect()
    };
    let flipped = |bit: usize| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    assert_eq!(missed(&flipped, whole.len() * 8, 3), [0usize; 0]);
    // Behind the data nothing is missing for whoever reads tar; it is then a pack made by hand.
    let data = Pack::open(&pack).unwrap().data_end() as usize;
    let cut = |length: usize| whole[..length].to_vec();
    assert_eq!(missed(&cut, whole.len(), 1), [data]);
}

#[test]
fn the_data_depends_on_the_input_alone() {
    let place = tempfile::tempdir().unwrap();
    let mut packs = Vec::new();
    for (n, threads) in [1, 2, 0, 5].into_iter().enumerate() {
        let (root, pack) = (
            place.path().join(format!("root{n}")),
            place.path().join(format!("{n}.tar.zst")),
        );
        session(&root);
        // All but the times that nobody set are the same.
        for entry in walkdir::WalkDir::new(&root).contents_first(true) {
            let entry = entry.unwrap();
            let dir = Dir::open(entry.path().parent().unwrap()).unwrap();
            let stamp = Stamp {
                seconds: 1_700_000_000,
                nanos: 5,
            };
            dir.set_time_of(entry.file_name(), stamp).unwrap();
        }
        packs.push((pack_of(&root, &pack, threads), fs::read(pack).unwrap()));
    }
    for (packed, bytes) in &packs[1..] {
        assert_eq!(packed.manifest, packs[0].0.manifest);
        assert_eq!(bytes, &packs[0].1);
    }
}
