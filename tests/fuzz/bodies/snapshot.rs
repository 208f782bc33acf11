//! Any text as a snapshot of a store: what is read is written so that it is read again, each thing of it has a folder of
//! its own below `packs/`, and no pack is taken from outside of the store.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use wbhome::backup::{Place as Thing, Snapshot, Source, Store, list};

use super::place::Place;

/// An earlier moment of the store: sound, and nothing in it.
const EARLIER: &str = r#"{"format": 1, "at": "2024-06-01T03:00:00Z", "made_by": "wbhome 0.1.0", "home": {"id": "0f",
    "path": "/home/我/主页", "device": {"id": "1e", "host": "书房"}, "commit": null}, "items": []}"#;

const MARK: &str = r#"{"format": 1, "home": "0f", "path": "/home/我/主页", "device": {"id": "1e", "host": "书房"},
    "created": "2024-06-01T03:00:00Z"}"#;

pub fn run(input: &[u8]) -> bool {
    let place = Place::new();
    place.put("库/wbhome-store.json", MARK);
    place.put("库/snapshots/20240601T030000Z.json", EARLIER);
    place.put("库/snapshots/20240603T030000Z.json", input);
    place.put("库/packs/sessions/a/20240603T030000Z.tar.zst", PACK);
    place.put("外.tar.zst", PACK);
    std::os::unix::fs::symlink("../外.tar.zst", place.path("库/packs/出.tar.zst")).expect("a link");
    let store = Store::open(&place.path("库")).expect("a store");
    let at = "2024-06-03T03:00:00Z".parse().expect("a moment");
    let _ = list::list(&store).map(|listed| serde_json::to_string(&listed));
    let source = Source::of(&store, None, &place.context());
    let Ok(snapshot) = store.snapshot(at) else {
        return false;
    };
    let text = serde_json::to_vec(&snapshot).expect("it can be written");
    place.put("库/snapshots/20240604T030000Z.json", text);
    let next = "2024-06-04T03:00:00Z".parse().expect("a moment");
    let again: Snapshot = store.snapshot(next).expect("what was written is read");
    assert_eq!(again, snapshot);
    let source = source.expect("it was just read");
    let mut folders: BTreeMap<_, &Thing> = BTreeMap::new();
    for item in &snapshot.items {
        let folder = item.place.folder();
        is_below_packs(&folder);
        let other = folders.insert(folder, &item.place);
        let is_another = other.is_some_and(|other| *other != item.place);
        assert!(!is_another, "{other:?} and {:?} share a folder", item.place);
        assert!(snapshot.item(&item.place).is_some(), "it is not found");
        assert!(!item.place.shown().chars().any(char::is_control));
        let packs = Source::newest(item).into_iter().chain(source.further(item));
        for pack in packs.chain(item.packs().cloned()) {
            if let Ok(opened) = store.pack(&pack) {
                let real = opened.path().canonicalize().expect("it is open");
                assert!(real.starts_with(place.path("库")), "{real:?} is outside");
            }
            if store.compare(&pack).is_ok() {
                assert!(store.has(&pack), "compared, and not there");
            }
        }
        if let Thing::Session(id) = &item.place {
            let held = list::of_session(&store, id).expect("it can be listed");
            assert!(!held.packs.is_empty());
        }
    }
    !snapshot.items.is_empty()
}

/// A frame of zstd that holds nothing.
const PACK: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00];

fn is_below_packs(folder: &Path) {
    let mut parts = folder.components();
    assert_eq!(parts.next(), Some(Component::Normal("packs".as_ref())));
    let rest: Vec<Component> = parts.collect();
    let all_names = rest.iter().all(|part| matches!(part, Component::Normal(_)));
    assert!(all_names && !rest.is_empty(), "{folder:?} leads out");
    for part in rest {
        assert!(part.as_os_str().len() <= 255, "{folder:?} is too long");
    }
}
