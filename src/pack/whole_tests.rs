//! Packs of our own: read, verified, unpacked, and told from those that are not what they say.

use std::path::Path;

use super::testing::{Tarball, frame, refusal, unpacked, whole, with};
use super::{Pack, read_member, verify};

fn bytes(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Four frames; the third goes on with the file that the second begins.
fn sample() -> (Vec<Vec<u8>>, Vec<u8>) {
    let large = bytes(3_000_000, 7);
    let first = Tarball::default()
        .folder("甲/".trim_end_matches('/'))
        .file("甲/session.json", b"{}")
        .folder("甲/context")
        .pax(&[("mtime", b"1717405200.000000001")])
        .file("甲/context/turn_001.json", b"turn one")
        .hard_link("甲/context/again", "甲/session.json")
        .symlink("甲/link", "../anywhere");
    let second = Tarball::default()
        .file("甲/small", b"small")
        .file("甲/large.bin", &large)
        .file("甲/after", b"after");
    let cut = 512 + 512 + 512 + 1_000_000 / 512 * 512;
    let (head, tail) = second.0.split_at(cut);
    let last = Tarball::default().file("甲/last", b"last").end();
    (vec![first.0, head.to_vec(), tail.to_vec(), last], large)
}

#[test]
fn a_whole_pack_is_verified_unpacked_and_read_in_the_middle() {
    let (frames, large) = sample();
    let pack = whole(&frames);
    let verified = with(|context| verify(&pack, context)).unwrap();
    assert_eq!(verified.problems, []);
    assert_eq!(verified.members, 10);
    let (outer, done) = unpacked(&pack, false);
    let members = done.unwrap().members;
    let manifest = pack.manifest().unwrap();
    assert_eq!(
        members, manifest.members,
        "what was read back is what the manifest says"
    );
    let into = outer.path().join("into");
    assert!(std::fs::read(into.join("large.bin")).unwrap() == large);
    assert_eq!(std::fs::read(into.join("context/again")).unwrap(), b"{}");
    assert_eq!(
        std::fs::read_link(into.join("link")).unwrap(),
        Path::new("../anywhere")
    );
    for (path, content) in [
        ("last", &b"last"[..]),
        ("after", b"after"),
        ("large.bin", &large),
        ("context/again", b"{}"),
    ] {
        let mut out = Vec::new();
        let member = with(|context| read_member(&pack, Path::new(path), &mut out, context));
        let member = member.unwrap().unwrap();
        assert!(out == content, "{path}");
        assert_eq!(member.size, content.len() as u64);
    }
    let mut out = Vec::new();
    let none = with(|context| read_member(&pack, Path::new("none"), &mut out, context));
    assert!(none.unwrap().is_none() && out.is_empty());
}

type Lie = fn(&mut super::Manifest);

#[test]
fn a_manifest_that_lies_is_found_out() {
    let (frames, _) = sample();
    fn member<'m>(manifest: &'m mut super::Manifest, path: &str) -> &'m mut super::Member {
        let mut members = manifest.members.iter_mut();
        members.find(|m| *m.path.0 == *Path::new(path)).unwrap()
    }
    let lies: [(&str, Lie); 15] = [
        ("is not named by the manifest", |m| {
            drop(m.members.remove(3))
        }),
        ("1 member that the manifest names is not there", |m| {
            let mut more = m.members[3].clone();
            more.path = std::path::PathBuf::from("more").into();
            more.at += 1;
            m.members.insert(4, more);
        }),
        ("another length than", |m| member(m, "small").size = 4),
        ("another length than", |m| member(m, "large.bin").size += 1),
        ("another kind than", |m| {
            member(m, "small").kind = super::MemberKind::Folder
        }),
        ("another mode than", |m| member(m, "small").mode = 0o600),
        ("another owner than", |m| member(m, "small").uid += 1),
        ("another time than", |m| {
            member(m, "context/turn_001.json").mtime.nanos = 0
        }),
        ("another target than", |m| {
            member(m, "link").link = Some(std::path::PathBuf::from("x").into())
        }),
        ("another name than", |m| {
            member(m, "small").path = std::path::PathBuf::from("smell").into()
        }),
        ("other attributes than", |m| {
            member(m, "small")
                .xattrs
                .insert("user.a".into(), String::new());
        }),
        ("not what the manifest has the digest of", |m| {
            let other = member(m, "last").blake3.clone();
            member(m, "large.bin").blake3 = other;
        }),
        ("not what the manifest has the digest of", |m| {
            let other = member(m, "last").blake3.clone();
            member(m, "small").blake3 = other;
        }),
        ("not those that the manifest has the digest of", |m| {
            m.frames[1].blake3 = m.frames[0].blake3.clone()
        }),
        ("it holds more than the manifest says", |m| {
            m.frames[2].content -= 1
        }),
    ];
    for (why, lie) in lies {
        let mut pack = whole(&frames);
        lie(pack.manifest.as_mut().unwrap());
        let said = refusal(&pack);
        assert!(said.contains(why), "{said:?} does not say {why:?}");
        let problems = with(|context| verify(&pack, context)).unwrap().problems;
        assert!(
            problems.iter().any(|p| p.what.contains(why)),
            "{why}: {problems:?}"
        );
    }
}

#[test]
fn a_manifest_that_makes_no_sense_is_refused() {
    let (frames, _) = sample();
    let lies: [(&str, Lie); 5] = [
        ("do not stand in the order", |m| m.members.swap(1, 2)),
        ("in a frame that it does not name", |m| drop(m.frames.pop())),
        ("its top folder has no name", |m| m.top = "..".into()),
        ("its top folder has no name", |m| m.top = "a/b".into()),
        ("leads out of its folder", |m| {
            m.members[3].path = std::path::PathBuf::from("../x").into()
        }),
    ];
    for (why, lie) in lies {
        let mut pack = whole(&frames);
        lie(pack.manifest.as_mut().unwrap());
        let said = refusal(&pack);
        assert!(said.contains(why), "{said:?} does not say {why:?}");
        let problems = with(|context| verify(&pack, context)).unwrap().problems;
        assert!(
            problems.iter().any(|p| p.what.contains(why)),
            "{why}: {problems:?}"
        );
    }
}

/// The names that a salvage has unpacked, and those that its problems name.
fn salvaged(pack: &Pack) -> (Vec<String>, Vec<String>) {
    let (outer, done) = unpacked(pack, true);
    let done = done.unwrap();
    let into = outer.path().join("into");
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let there = done
        .members
        .iter()
        .filter(|member| !member.path.as_os_str().is_empty());
    let there: Vec<String> = there.map(|member| name(&member.path)).collect();
    let on_disk = walkdir::WalkDir::new(&into)
        .min_depth(1)
        .into_iter()
        .count();
    assert_eq!(
        on_disk,
        there.len(),
        "what was not proved good is not left there"
    );
    let missing = done.problems.iter().flat_map(|p| &p.members);
    (there, missing.map(|path| name(path)).collect())
}

#[test]
fn a_salvage_takes_what_is_proved_good() {
    let (contents, _) = sample();
    let frames: Vec<Vec<u8>> = contents.iter().map(|content| frame(content)).collect();
    let everything = || -> Vec<String> {
        let names = [
            "session.json",
            "context",
            "context/turn_001.json",
            "context/again",
            "link",
        ];
        let more = ["small", "large.bin", "after", "last"];
        names.into_iter().chain(more).map(str::to_owned).collect()
    };
    // Which byte of which frame is damaged, and what is gone then.
    for (damaged, place, gone) in [
        (
            0,
            40,
            vec![
                "session.json",
                "context",
                "context/turn_001.json",
                "context/again",
                "link",
            ],
        ),
        (1, 600_000, vec!["large.bin"]),
        (2, 600_000, vec!["large.bin", "after"]),
        (3, 12, vec!["last"]),
    ] {
        let mut pack = whole(&contents);
        let mut bytes = frames.clone();
        let length = bytes[damaged].len();
        bytes[damaged][place.min(length - 5)] ^= 0x55;
        let torn = super::testing::foreign(&bytes);
        (pack.file, pack.frames) = (torn.file, torn.frames);
        assert!(refusal(&pack).contains("the data frame"), "{damaged}");
        let (there, missing) = salvaged(&pack);
        let mut left: Vec<String> = everything();
        left.retain(|name| !gone.contains(&name.as_str()));
        if damaged != 0 {
            assert_eq!(there, left, "damage in frame {damaged}");
        } else {
            // Some of it may have been decoded before the damage, and proved.
            assert!(left.iter().all(|name| there.contains(name)));
        }
        for name in everything() {
            assert!(
                there.contains(&name) != missing.contains(&name),
                "{name}: {there:?} {missing:?}"
            );
        }
        let verified = with(|context| verify(&pack, context)).unwrap();
        let named: Vec<_> = verified.problems.iter().flat_map(|p| &p.members).collect();
        assert!(
            !verified.problems.is_empty() && named.len() >= missing.len().min(1),
            "{damaged}"
        );
    }
    let mut pack = whole(&contents);
    let torn = super::testing::foreign(&frames[..2]);
    (pack.file, pack.frames) = (torn.file, torn.frames);
    let (there, missing) = salvaged(&pack);
    assert_eq!(there, everything()[..6]);
    assert_eq!(missing, ["large.bin", "after", "last"]);
}

/// Nothing else tells what is in a file: without its digest anything would pass for verified.
#[test]
fn a_manifest_without_the_digest_of_a_file_is_not_believed() {
    let (frames, _) = sample();
    let mut pack = whole(&frames);
    let mut manifest = pack.manifest.take().unwrap();
    let file = manifest.members.iter_mut().find(|m| m.blake3.is_some());
    file.unwrap().blake3 = None;
    pack.manifest = Some(manifest);
    let verified = with(|context| verify(&pack, context)).unwrap();
    assert_eq!(verified.problems.len(), 1, "{verified:?}");
    assert!(refusal(&pack).contains("no digest of a file"));
}
