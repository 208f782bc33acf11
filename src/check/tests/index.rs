//! The index against the disk, and the archive.

use super::*;

#[test]
fn the_index_and_the_disk_disagree() {
    let place = home();
    for id in ["20240601_known", "20240602_new", "20240603_removed"] {
        place.session(id, 0);
    }
    let packed = zstd::encode_all(&b"a tar"[..], 3).unwrap();
    place.put("archive/20240604_packed.tar.zst", &packed);
    let skipped = [&b"\x50\x2a\x4d\x18\0\0\0\0"[..], &packed].concat();
    place.put("archive/20240607_other.tar.zst", skipped);
    let index = r#"[
        {"id": "20240601_known", "agent": "nobody"}, {"id": "20240603_removed", "status": "removed"},
        {"id": "20240604_packed", "status": "archived"}, {"id": "20240605_lost", "status": "archived"},
        {"id": "20240606_never"}, {"id": "20240606_never", "title": "again"}, {"id": "20231231_old", "status": "missing"},
        {"id": "20240607_x", "status": "archived", "archive": {"file": "archive/20240607_other.tar.zst"}}, {"id": "../etc"}
    ]"#;
    let outcome = place.inspect(Some(index), None);
    assert_eq!(
        lines(&outcome.findings),
        [
            "missing-session index.json: has an id that can not be a folder's name",
            "missing-session sessions/20231231_old: is in the index, and found nowhere",
            "missing-session sessions/20240605_lost: is archived according to the index, but archive/20240605_lost.tar.zst is not there",
            "missing-session sessions/20240606_never: is in the index, and found nowhere",
            "duplicate-id index.json: has 2 entries with the id 20240606_never",
            "unknown-agent sessions/20240601_known: is of the agent nobody, and agents/nobody/ is not there",
            "unindexed-session sessions/20240602_new: is not in the index",
            "unindexed-session sessions/20240603_removed: is here, and removed according to the index",
        ]
    );
    assert_eq!(
        outcome.findings[4].session.as_deref(),
        Some("20240606_never")
    );
}

#[test]
fn archives_that_are_none_or_unknown() {
    let place = home();
    place.put("archive/20240601_a.tar.zst", "");
    place.put("archive/20240602_b.tar.zst", "PK");
    place.put("archive/20240603_c.tar.zst", "not zstd at all");
    let packed = zstd::encode_all(&b"a tar"[..], 3).unwrap();
    place.put("archive/20240604_d.tar.zst", &packed);
    place.put("archive/20240604_d (1).tar.zst", &packed);
    place.put("archive/notes.txt", "");
    let index = r#"[{"id": "20240601_a", "status": "archived"}, {"id": "20240602_b", "status": "archived"}, {"id": "20240603_c", "status": "archived"}]"#;
    let outcome = place.inspect(Some(index), None);
    assert_eq!(
        lines(&outcome.findings),
        [
            "bad-archive archive/20240601_a.tar.zst: is empty",
            "bad-archive archive/20240602_b.tar.zst: is too short to be zstd",
            "bad-archive archive/20240603_c.tar.zst: does not begin as zstd does",
            "conflict-copy archive/20240604_d (1).tar.zst: is the same as 20240604_d.tar.zst",
            "archive-unindexed archive/20240604_d.tar.zst: is not in the index",
        ]
    );
    assert_eq!(outcome.findings[0].session.as_deref(), Some("20240601_a"));
    let one = place.inspect(Some(index), Some(&["20240602_b"]));
    assert_eq!(one.findings.len(), 1);
}
