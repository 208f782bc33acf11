//! Any bytes: reading them never panics, always ends, and writes nothing outside. `tests/fuzz` does the same for hours.

use std::path::Path;

use proptest::prelude::*;

use super::testing::{Tarball, by_hand, foreign, frame, unpacked, whole, with};
use super::{Pack, list, read_member, verify};

fn sample() -> Vec<u8> {
    Tarball::default()
        .folder("s")
        .file("s/session.json", b"{}")
        .pax(&[
            ("path", "s/很长".as_bytes()),
            ("SCHILY.xattr.user.a", b"b\nc"),
        ])
        .file("x", b"content")
        .hard_link("s/again", "s/session.json")
        .symlink("s/link", "../..")
        .entry(b'L', "long", "", b"s/long\0")
        .file("x", &[7; 1500])
        .pax(&[
            ("GNU.sparse.map", b"0,3,1000,2"),
            ("GNU.sparse.size", b"2000"),
        ])
        .file("s/sparse", b"abcde")
        .end()
}

/// Everything that reads a pack; [`unpacked`] looks whether something came to be outside.
fn read(pack: &Pack) {
    with(|context| {
        let _ = list(pack, context);
        let _ = read_member(pack, Path::new("session.json"), &mut Vec::new(), context);
        let _ = verify(pack, context);
    });
    let _ = unpacked(pack, false);
    let _ = unpacked(pack, true);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_as_a_tar_stream(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        read(&by_hand(&bytes));
    }

    #[test]
    fn a_tar_stream_with_changes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        sums in any::<bool>(),
    ) {
        let mut tar = sample();
        for (place, byte) in changes {
            let place = place.index(tar.len());
            tar[place] = byte;
            if sums {
                sum_up(&mut tar, place / 512 * 512);
            }
        }
        read(&by_hand(&tar));
        read(&whole_but(&tar));
    }

    #[test]
    fn a_frame_with_changes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = frame(&sample());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        read(&foreign(std::slice::from_ref(&bytes)));
        bytes.truncate(cut.index(bytes.len()));
        read(&foreign(&[bytes]));
    }
}

/// The manifest of the sample, and another stream.
fn whole_but(tar: &[u8]) -> Pack {
    let mut pack = whole(&[sample()]);
    let other = by_hand(tar);
    (pack.file, pack.frames) = (other.file, other.frames);
    pack
}

/// Makes a block's checksum true, so that a change is not only seen by it.
fn sum_up(tar: &mut [u8], block: usize) {
    let Some(block) = tar.get_mut(block..block + 512) else {
        return;
    };
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
