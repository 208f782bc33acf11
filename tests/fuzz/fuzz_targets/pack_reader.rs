//! Any bytes as a pack, and any bytes as the tar stream in one: nothing panics, hangs, or writes outside of the folder
//! that it was told to write into.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use wbhome::base::{Context, FixedClock, NoProgress, Stop};
use wbhome::disk::Dir;
use wbhome::pack::{Limits, Pack, list, read_member, unpack, verify};

fuzz_target!(|input: &[u8]| {
    let Some((how, bytes)) = input.split_first() else {
        return;
    };
    // The first byte says whether the fuzzer has to find out what zstd looks like by itself.
    let bytes = match how % 2 {
        0 => zstd::bulk::compress(bytes, 1).expect("it fits"),
        _ => bytes.to_vec(),
    };
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("x.tar.zst");
    std::fs::write(&path, bytes).expect("it is written");
    let clock = FixedClock::new(jiff::Timestamp::UNIX_EPOCH);
    let stop = Stop::new();
    let context = Context {
        clock: &clock,
        progress: &NoProgress,
        stop: &stop,
    };
    let Ok(pack) = Pack::open(&path) else {
        return;
    };
    let _ = list(&pack, &context);
    let _ = verify(&pack, &context);
    let _ = read_member(
        &pack,
        Path::new("session.json"),
        &mut std::io::sink(),
        &context,
    );
    for salvage in [false, true] {
        let outer = tempfile::tempdir_in(place.path()).expect("a folder");
        let into = outer.path().join("into");
        std::fs::create_dir(&into).expect("a folder");
        let dir = Dir::open(&into).expect("a folder");
        let _ = unpack(&pack, &dir, Limits { salvage }, &context);
        let names = std::fs::read_dir(outer.path()).expect("a folder").count();
        assert_eq!(names, 1, "something was written outside");
    }
});
