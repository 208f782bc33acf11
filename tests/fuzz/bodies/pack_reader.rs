//! Any bytes as a pack, and any bytes as the tar stream in one: nothing panics, hangs, or writes outside of the folder
//! that it was told to write into.

use std::path::{Component, Path};

use wbhome::disk::Dir;
use wbhome::pack::{Limits, Pack, list, read_member, unpack, verify};

use super::place::Place;

/// The first byte says whether the fuzzer has to find out what zstd looks like by itself.
pub fn run(input: &[u8]) -> bool {
    let Some((how, bytes)) = input.split_first() else {
        return false;
    };
    let bytes = match how % 2 {
        0 => zstd::bulk::compress(bytes, 1).expect("it fits"),
        _ => bytes.to_vec(),
    };
    let place = Place::new();
    let path = place.put("x.tar.zst", bytes);
    read(&place, &path)
}

/// Reads a pack in every way there is.
pub fn read(place: &Place, path: &Path) -> bool {
    let context = place.context();
    let Ok(pack) = Pack::open(path) else {
        return false;
    };
    let listed = list(&pack, &context);
    let _ = verify(&pack, &context);
    let session = Path::new("session.json");
    let _ = read_member(&pack, session, &mut std::io::sink(), &context);
    for salvage in [false, true] {
        let outer = tempfile::tempdir_in(place.root()).expect("a folder");
        let into = outer.path().join("into");
        std::fs::create_dir(&into).expect("a folder");
        let dir = Dir::open(&into).expect("a folder");
        let _ = unpack(&pack, &dir, Limits { salvage }, &context);
        let names = std::fs::read_dir(outer.path()).expect("a folder").count();
        assert_eq!(names, 1, "something was written outside");
    }
    let Ok(members) = listed else {
        return false;
    };
    for member in &members {
        let is_below = |component| matches!(component, Component::Normal(_));
        assert!(
            member.path.components().all(is_below),
            "{:?} leads out",
            member.path
        );
    }
    !members.is_empty()
}
