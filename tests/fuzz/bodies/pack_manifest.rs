//! Any text as the manifest of a sound pack, with the digest and the seek table that belong to it: it is read as it
//! stands there, leads nowhere, and what it says of a member is not believed unless the data says so, too.

use std::sync::LazyLock;

use wbhome::pack::{Manifest, MemberKind, Nature, Pack, list, read_member, short_digest, verify};

use super::pack_reader;
use super::place::{Place, SOUND};

/// The lengths of frames, and those of their contents.
type Lengths = Vec<(u64, u64)>;

/// The data of a pack: its frames, and how long they are.
static DATA: LazyLock<(Vec<u8>, Lengths)> = LazyLock::new(|| {
    let place = Place::new();
    let mut sound = SOUND.to_vec();
    let path = place.put("x.tar.zst", &sound);
    let pack = Pack::open(&path).expect("a pack");
    let manifest = pack.manifest().expect("a manifest");
    let frames: Lengths = manifest
        .frames
        .iter()
        .map(|frame| (frame.bytes, frame.content))
        .collect();
    sound.truncate(frames.iter().map(|(bytes, _)| *bytes as usize).sum());
    (sound, frames)
});

pub fn run(input: &[u8]) -> bool {
    let (data, frames) = &*DATA;
    let packed = zstd::bulk::compress(input, 1).expect("it fits");
    let digest = blake3::hash(&packed);
    let manifest = skippable(
        0x184d_2a57,
        &[b"wbhome manifest\n", &digest.as_bytes()[..], &packed].concat(),
    );
    // The frames that the manifest names, so that it and the seek table agree.
    let named = serde_json::from_slice::<Manifest>(input).ok();
    let named = named.map(|manifest| manifest.frames);
    let mut lengths: Lengths = match &named {
        Some(named) => named.iter().map(|f| (f.bytes, f.content)).collect(),
        None => frames.clone(),
    };
    lengths.push((manifest.len() as u64, 0));
    let mut table = Vec::new();
    for (bytes, content) in &lengths {
        table.extend((*bytes as u32).to_le_bytes());
        table.extend((*content as u32).to_le_bytes());
    }
    table.extend((lengths.len() as u32).to_le_bytes());
    table.push(0);
    table.extend(0x8f92_eab1_u32.to_le_bytes());
    let table = skippable(0x184d_2a5e, &table);
    let place = Place::new();
    let path = place.put("x.tar.zst", [data, &manifest[..], &table].concat());
    let Ok(pack) = Pack::open(&path) else {
        return false;
    };
    pack_reader::read(&place, &path);
    let Some(manifest) = pack.manifest() else {
        return false;
    };
    let again = serde_json::to_vec(manifest).expect("it can be written");
    let again: Manifest = serde_json::from_slice(&again).expect("what was written is read");
    assert_eq!(again, *manifest);
    holds_what_it_says(&place, &pack);
    *pack.nature() == Nature::Whole
}

/// Where nothing is found wrong, each file has the length and the digest that the manifest says.
fn holds_what_it_says(place: &Place, pack: &Pack) {
    let context = place.context();
    let verified = verify(pack, &context).expect("it can be read");
    let Ok(members) = list(pack, &context) else {
        assert!(!verified.problems.is_empty(), "verified, and not listed");
        return;
    };
    for member in members {
        if member.kind != MemberKind::File {
            continue;
        }
        let mut held = Vec::new();
        let read = read_member(pack, &member.path, &mut held, &context);
        if !verified.problems.is_empty() && read.is_err() {
            continue;
        }
        read.expect("it was verified").expect("it was listed");
        let digest = short_digest(&blake3::hash(&held));
        assert_eq!(member.blake3, Some(digest), "{:?}", member.path);
        assert_eq!(member.size, held.len() as u64);
    }
}

fn skippable(magic: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    [&magic.to_le_bytes(), &length, content].concat()
}
