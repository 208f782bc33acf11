//! Packs of our own: read, verified, unpacked, and told from those that are not what they say.

use std::path::Path;

use super::testing::{Tarball, unpacked, whole, with};
use super::{read_member, verify};

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
