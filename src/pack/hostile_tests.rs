//! Packs that would do harm are refused, each with its reason, and before anything is written where that can be known.

use super::testing::{Tarball, by_hand, foreign, frame, refusal, unpacked, whole, with};
use super::{Pack, list, list_good, read_member, verify};

fn tarball() -> Tarball {
    Tarball::default().folder("s").file("s/session.json", b"{}")
}

/// Refused by unpacking, with nothing written; and by listing and verifying.
#[track_caller]
fn refused(pack: &Pack, why: &str) {
    let (outer, done) = unpacked(pack, false);
    let said = done.map(|_| ()).expect_err(why).to_string();
    assert!(said.contains(why), "{said:?} does not say {why:?}");
    let into = outer.path().join("into");
    assert_eq!(
        std::fs::read_dir(into).unwrap().count(),
        0,
        "{why}: something was written"
    );
    with(|context| {
        assert!(list(pack, context).is_err(), "{why}: it is listed");
        assert_ne!(
            verify(pack, context).unwrap().problems,
            [],
            "{why}: it is verified"
        );
    });
    // A salvage leaves out what is refused, and stays where it is.
    let (_outer, done) = unpacked(pack, true);
    if let Ok(done) = done {
        assert_ne!(done.problems, [], "{why}");
    }
}

#[test]
fn names_that_lead_out_are_refused() {
    let tar = |name: &str| by_hand(&tarball().file(name, b"x").end());
    refused(&tar("s/../../out"), "leads out of its folder by `..`");
    refused(&tar("../out"), "leads out of its folder by `..`");
    refused(&tar("/out"), "has an absolute name");
    refused(&tar("other/out"), "lies outside of the session's folder s");
    refused(&tar(""), "has no name");
    let pax = tarball().pax(&[("path", b"s/a\0b")]).file("x", b"x").end();
    refused(&by_hand(&pax), "has a NUL in its name");
}

#[test]
fn what_lies_under_no_folder_is_refused() {
    let under_link = tarball().symlink("s/link", "/tmp").file("s/link/out", b"x");
    refused(&by_hand(&under_link.end()), "lies under the link link");
    let under_file = tarball().file("s/file", b"x").file("s/file/out", b"x");
    refused(&by_hand(&under_file.end()), "lies under the file file");
    let top = Tarball::default()
        .symlink("s", "/tmp")
        .file("s/session.json", b"{}");
    refused(&by_hand(&top.end()), "has the name of a folder");
    let later = tarball().file("s/a/b", b"x").symlink("s/a", "/tmp");
    refused(&by_hand(&later.end()), "has the name of a folder");
}

#[test]
fn two_of_one_name_are_refused() {
    let both = tarball().file("s/a", b"1").folder("s/a");
    refused(&by_hand(&both.end()), "has the name of something else");
    let both = tarball().folder("s/a").file("s/a", b"1").file("s/a", b"2");
    refused(&by_hand(&both.end()), "has the name of a folder");
    let replaced = tarball()
        .file("s/a", b"1")
        .hard_link("s/b", "s/a")
        .file("s/a", b"2");
    refused(&by_hand(&replaced.end()), "which is no file before it");
    // In a pack of ours nothing stands twice.
    let twice = tarball().file("s/a", b"1").file("s/a", b"2").end();
    let mut pack = by_hand(&twice);
    pack.nature = super::Nature::Damaged("the manifest is missing".into());
    let (_outer, done) = unpacked(&pack, true);
    let problems = done.unwrap().problems;
    assert!(
        problems.iter().any(|p| p.what == "is there twice"),
        "{problems:?}"
    );
}

#[test]
fn of_two_of_one_name_the_last_counts_as_to_tar() {
    for (second, link) in [("s/a", "s/b"), ("./s/./a", "s/b"), ("s//a", "s//b")] {
        let tar = tarball()
            .file("s/a", b"old")
            .folder("s/d")
            .symlink("s/l", "old")
            .file(second, b"newer")
            .hard_link("s/a", "s/a")
            .folder("s/d")
            .symlink("s/l", "new")
            .hard_link(link, "s//a");
        let pack = by_hand(&tar.end());
        let (outer, done) = unpacked(&pack, false);
        assert_eq!(done.unwrap().problems, []);
        let into = outer.path().join("into");
        for name in ["a", "b"] {
            assert_eq!(
                std::fs::read(into.join(name)).unwrap(),
                b"newer",
                "{second}"
            );
            let mut content = Vec::new();
            let path = std::path::Path::new(name);
            with(|context| read_member(&pack, path, &mut content, context)).unwrap();
            assert_eq!(content, b"newer", "{second}");
        }
        assert_eq!(
            std::fs::read_link(into.join("l")).unwrap().to_str(),
            Some("new")
        );
        let verified = with(|context| verify(&pack, context)).unwrap();
        assert_eq!((verified.members, verified.problems), (6, vec![]));
    }
}

#[test]
fn what_is_good_is_listed_past_what_is_not() {
    let good = || tarball().file("s/a", b"1");
    let junk = [&good().end()[..], &[b'x'; 700]].concat();
    for (tar, what) in [
        (good().entry(b'6', "s/fifo", "", b"").end(), "is a FIFO"),
        (
            good().symlink("s/l", "/").file("s/l/x", b"").end(),
            "lies under the link l",
        ),
        (good().file("s/../../x", b"").end(), "leads out"),
        (good().0, "it has no end mark"),
        (junk, "something stands behind its end"),
    ] {
        let pack = by_hand(&tar);
        let (members, problems) = with(|context| list_good(&pack, context)).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.contains(what), "{problems:?}");
        let names: Vec<_> = members.iter().map(|m| m.path.to_str().unwrap()).collect();
        assert!(names.starts_with(&["", "session.json", "a"]), "{names:?}");
        assert!(
            !names
                .iter()
                .any(|name| name.ends_with('x') || *name == "fifo")
        );
        let mut content = Vec::new();
        let path = std::path::Path::new("a");
        with(|context| read_member(&pack, path, &mut content, context)).unwrap();
        assert_eq!(content, b"1", "{what}");
    }
    assert!(with(|context| list_good(&by_hand(b"x"), context)).is_err());
}

#[test]
fn access_lists_that_are_dropped_are_named() {
    let acl: &[(&str, &[u8])] = &[(
        "SCHILY.acl.access",
        b"user::rw-,user:me:rw-,group::r--,mask::rw-,other::---",
    )];
    let tar = tarball()
        .pax(acl)
        .file("s/a", b"1")
        .pax(acl)
        .file("s/b", b"2");
    let pack = by_hand(&tar.end());
    let (outer, done) = unpacked(&pack, false);
    let done = done.unwrap();
    assert_eq!(std::fs::read(outer.path().join("into/b")).unwrap(), b"2");
    assert_eq!(done.problems.len(), 1);
    let problem = &done.problems[0];
    assert!(
        problem
            .what
            .starts_with("that of a and of 1 more was dropped"),
        "{problem:?}"
    );
    assert!(problem.members.is_empty(), "the files are there");
}

#[test]
fn a_name_that_is_too_long_is_left_out_by_a_salvage() {
    let long = "n".repeat(256);
    let below = format!("{long}/x");
    let record = |name: &str| format!("s/{name}").into_bytes();
    let (file, folder, name) = (record(&long), record(&below), record(&format!("{long}2")));
    let tar = tarball()
        .pax(&[("path", &file)])
        .file("x", b"x")
        .pax(&[("path", &file)])
        .file("y", &[7; 2 << 20])
        .pax(&[("path", &name)])
        .hard_link("x", "s/session.json")
        .file("s/last", b"1");
    let pack = by_hand(&tar.end());
    let said = refusal(&pack);
    assert!(said.contains("longer than this filesystem takes"), "{said}");
    let deep = tarball()
        .pax(&[("path", &folder)])
        .file("x", b"x")
        .file("s/last", b"1");
    for (pack, problems) in [(pack, 2), (by_hand(&deep.end()), 1)] {
        let (outer, done) = unpacked(&pack, true);
        let done = done.unwrap();
        assert_eq!(done.problems.len(), problems, "{:?}", done.problems);
        assert!(done.problems.iter().all(|p| p.members.len() == 1));
        assert_eq!(std::fs::read(outer.path().join("into/last")).unwrap(), b"1");
    }
}

#[test]
fn what_no_session_holds_is_refused() {
    for (kind, why) in [
        (b'3', "is a device"),
        (b'4', "is a device"),
        (b'6', "is a FIFO"),
        (b'M', "is of the kind 'M'"),
    ] {
        refused(
            &by_hand(&tarball().entry(kind, "s/special", "", b"").end()),
            why,
        );
    }
}

#[test]
fn further_names_of_what_is_not_there_are_refused() {
    let link = |first: &str| by_hand(&tarball().hard_link("s/link", first).end());
    refused(&link("s/none"), "is one more name of none");
    refused(&link("s"), "which is no file before it");
    refused(&link("../out"), "leads out of its folder");
    refused(&link("/etc/passwd"), "has an absolute name");
    refused(&link("other"), "lies outside of the session's folder");
    let before = Tarball::default()
        .hard_link("s/a", "s/session.json")
        .file("s/session.json", b"{}");
    refused(&by_hand(&before.end()), "which is no file before it");
}

#[test]
fn torn_and_damaged_streams_are_refused() {
    let good = tarball().file("s/a", &[7; 5000]);
    let mut torn = good.clone().end();
    torn.truncate(3000);
    refused(&by_hand(&torn), "in the middle of a file: it was cut off");
    refused(
        &by_hand(&good.0),
        "it has no end mark: it may have been cut off",
    );
    let two = [good.clone().end(), good.clone().end()].concat();
    refused(&by_hand(&two), "another tar stream follows behind the end");
    refused(
        &by_hand(&good.clone().raw(&[0; 512]).0),
        "only half of the mark of its end",
    );
    let junk = [&good.clone().end()[..], b"junk"].concat();
    refused(&by_hand(&junk), "something stands behind its end");
    let mut header = good.clone().end();
    header[3 * 512 + 10] ^= 1;
    refused(
        &by_hand(&header),
        "what should be the header of a member is none",
    );
    let mut compressed = frame(&good.clone().end());
    let last = compressed.len() - 1;
    compressed[last] ^= 1;
    refused(
        &foreign(&[compressed]),
        "the data frame 1 (at byte 0): its content does not have its checksum",
    );
    let mut cut = frame(&good.end());
    cut.truncate(cut.len() - 6);
    refused(&foreign(&[cut]), "it ends too early");
}

#[test]
fn records_that_are_too_much_are_refused() {
    let long = vec![b'a'; 17 << 20];
    refused(
        &by_hand(&tarball().pax(&[("comment", &long)]).end()),
        "is longer than any name",
    );
    refused(
        &by_hand(&tarball().entry(b'L', "l", "", &long).end()),
        "is longer than any name",
    );
    let name = vec![b'a'; 20_000];
    refused(
        &by_hand(&tarball().pax(&[("path", &name)]).file("x", b"").end()),
        "longer than any name of a file",
    );
    let holes = tarball()
        .pax(&[
            ("GNU.sparse.map", b"0,1"),
            ("GNU.sparse.size", b"9000000000000000000"),
        ])
        .file("s/sparse", b"x");
    refused(
        &by_hand(&holes.end()),
        "larger holes than this program fills",
    );
    let map = tarball()
        .pax(&[("GNU.sparse.map", b"9,1,0,1"), ("GNU.sparse.size", b"100")])
        .file("s/sparse", b"xy");
    refused(&by_hand(&map.end()), "a map of holes does not fit");
}

#[test]
fn a_window_that_stock_tools_refuse_is_refused_with_the_way_out() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    std::io::Write::write_all(&mut encoder, &tarball().end()).unwrap();
    let pack = foreign(&[encoder.finish().unwrap()]);
    let (_outer, done) = unpacked(&pack, false);
    let error = done.map(|_| ()).unwrap_err();
    assert!(
        error.to_string().contains("its window is larger"),
        "{error}"
    );
    assert!(error.hints()[0].contains("zstd -d --long=31 --stdout /x/pack.tar.zst | tar -x"));
}

#[test]
fn special_rights_are_not_taken_from_a_stranger() {
    use std::os::unix::fs::PermissionsExt;
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o6755);
    header.set_size(0);
    header.set_path("s/tool").unwrap();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mtime(1);
    let (uid, gid) = crate::disk::own_ids();
    header.set_uid(uid.into());
    header.set_gid(gid.into());
    let tar = tarball().header(header).end();
    let mode = |pack: &Pack| {
        let (outer, done) = unpacked(pack, false);
        done.unwrap();
        let meta = outer.path().join("into/tool").metadata().unwrap();
        meta.permissions().mode() & 0o7777
    };
    assert_eq!(mode(&by_hand(&tar)), 0o755);
    assert_eq!(
        mode(&whole(&[tar])),
        0o6755,
        "a pack of ours gives back what was there"
    );
}

#[test]
fn a_session_is_found_below_the_folders_that_lead_to_it() {
    let deep = Tarball::default()
        .folder("Users")
        .folder("Users/me")
        .file("Users/me/s/context/deep/session.json", b"not it")
        .file("Users/me/s/session.json", b"{}");
    let (outer, done) = unpacked(&by_hand(&deep.end()), false);
    done.unwrap();
    assert!(
        outer
            .path()
            .join("into/context/deep/session.json")
            .is_file()
    );
    assert!(outer.path().join("into/session.json").is_file());
    let without_record = Tarball::default().file("s/a", b"").file("s/b/c", b"");
    let (outer, done) = unpacked(&by_hand(&without_record.end()), false);
    done.unwrap();
    assert!(outer.path().join("into/b/c").is_file());
}

#[test]
fn a_stranger_that_says_something_for_all_is_understood() {
    let global = Tarball::default()
        .entry(b'g', "g", "", b"20 mtime=1000000000\n")
        .file("s/session.json", b"{}");
    let (_outer, done) = unpacked(&by_hand(&global.end()), false);
    assert_eq!(done.unwrap().members[0].mtime.seconds, 1_000_000_000);
    let odd = tarball()
        .entry(b'g', "g", "", b"12 size=abc\n")
        .pax(&[("mtime", b"2001-01-01T00:00:00")])
        .file("s/a", b"content");
    let (outer, done) = unpacked(&by_hand(&odd.end()), false);
    assert_eq!(done.unwrap().members[2].mtime.seconds, 1_717_405_200);
    assert_eq!(
        std::fs::read(outer.path().join("into/a")).unwrap(),
        b"content"
    );
    let said = refusal(&by_hand(
        &Tarball::default().entry(b'x', "x", "", b"9 a=b\n").end(),
    ));
    assert!(said.contains("a PAX record is damaged"), "{said}");
}

#[test]
fn a_file_that_was_cut_gives_back_what_was_before() {
    let all = [
        frame(&tarball().file("s/a", b"1").0),
        frame(&Tarball::default().file("s/b", b"2").end()),
    ]
    .concat();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("cut.tar.zst");
    std::fs::write(&path, &all[..all.len() - 7]).unwrap();
    let pack = Pack::open(&path).unwrap();
    assert!(
        refusal(&pack).contains("the data frame 2"),
        "{}",
        refusal(&pack)
    );
    let (outer, done) = unpacked(&pack, true);
    assert_eq!(done.unwrap().problems.len(), 1);
    assert_eq!(std::fs::read(outer.path().join("into/a")).unwrap(), b"1");
    let problems = with(|context| verify(&pack, context)).unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
}
