//! A sound pack with something else behind its data: only the seek table that belongs there makes it whole, and what is
//! read of it by name is what was packed.
//!
//! The first byte says how the rest is taken: in place of the seek table, in place of the manifest too, or as changes of
//! single bytes of both, three bytes each.

use std::path::Path;

use wbhome::pack::{Nature, Pack, list_good, read_member, verify};

use super::pack_reader;
use super::place::{Place, SOUND};

/// Where the manifest of the pack begins, and where its seek table does.
fn tail() -> (usize, usize) {
    let find = |magic: u32| {
        let magic = magic.to_le_bytes();
        SOUND.windows(4).rposition(|window| window == magic)
    };
    let (manifest, table) = (find(0x184d_2a57), find(0x184d_2a5e));
    (manifest.expect("a manifest"), table.expect("a seek table"))
}

/// What was packed first.
const RECORD: &str = "{\"id\": \"20240603_周报\"}\n";

pub fn run(input: &[u8]) -> bool {
    let Some((how, input)) = input.split_first() else {
        return false;
    };
    let (manifest, table) = tail();
    let changed = match how % 3 {
        0 => [&SOUND[..table], input].concat(),
        1 => [&SOUND[..manifest], input].concat(),
        _ => {
            let mut changed = SOUND.to_vec();
            for change in input.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
                let tail = changed.len() - manifest;
                changed[manifest + at % tail] = change[2];
            }
            changed
        }
    };
    let place = Place::new();
    let path = place.put("x.tar.zst", &changed);
    pack_reader::read(&place, &path);
    let Ok(pack) = Pack::open(&path) else {
        return false;
    };
    let context = place.context();
    let is_whole = *pack.nature() == Nature::Whole;
    if how % 3 == 0 {
        assert_eq!(is_whole, changed == SOUND, "{:?}", pack.nature());
    }
    let verified = verify(&pack, &context).expect("it can be read");
    if verified.problems.is_empty() && is_whole {
        assert_eq!(verified.members, 6, "{verified:?}");
    }
    let mut held = Vec::new();
    let read = read_member(&pack, Path::new("session.json"), &mut held, &context);
    if let Ok(Some(_)) = read {
        assert_eq!(String::from_utf8_lossy(&held), RECORD);
    }
    let _ = list_good(&pack, &context);
    is_whole
}
