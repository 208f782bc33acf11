//! A person may edit `index.json` at any time, also while a command writes it: the edit survives.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::Place;
use support::moving::{OLD, map_to, small_home};

fn read(index: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(index).unwrap()).unwrap()
}

/// Saves as editors do: a new file, renamed over the old one.
fn save(index: &Path, entries: &[Value]) {
    let new = index.with_file_name("index.json.editor");
    fs::write(&new, serde_json::to_string_pretty(entries).unwrap()).unwrap();
    fs::rename(&new, index).unwrap();
}

fn edited(entries: &[Value]) -> &Value {
    &entries.iter().find(|e| e["id"] == "20240601_one").unwrap()["x_edit"]
}

#[test]
fn a_hand_edit_made_while_commands_run_survives() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    place
        .run(["migrate", "C", "H", "--map", &map_to(&place, "H")])
        .expect(0);
    let (index, done) = (place.path("H/index.json"), AtomicBool::new(false));
    let edits = std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut n = 0u64;
            while !done.load(Ordering::Relaxed) {
                let mut entries = read(&index);
                if n > 0 && *edited(&entries) != n {
                    // The program may be between finding an edit and putting it back.
                    std::thread::sleep(Duration::from_millis(20));
                    entries = read(&index);
                    assert_eq!(*edited(&entries), n, "an edit was overwritten");
                }
                n += 1;
                let one = entries
                    .iter_mut()
                    .find(|e| e["id"] == "20240601_one")
                    .unwrap();
                one["x_edit"] = json!(n);
                save(&index, &entries);
                std::thread::sleep(Duration::from_millis(n % 4));
            }
            n
        });
        for n in 0..60 {
            let tag = format!("t{n}");
            place
                .run(["label", "one", "--tag", &tag, "--home", "H"])
                .expect(0);
        }
        done.store(true, Ordering::Relaxed);
        editor.join().unwrap()
    });
    assert!(edits > 60, "only {edits} edits");
    let entries = read(&index);
    assert_eq!(*edited(&entries), edits);
    // The last label came after all edits but perhaps one, which had read the index with it or before it.
    let tags = entries[0]["tags"].as_array().unwrap();
    assert!(
        tags.iter().any(|t| t.as_str().unwrap().starts_with('t')),
        "{tags:?}"
    );
    place.run(["check", "--home", "H"]).expect(0);
}

#[test]
fn an_index_that_can_not_be_understood_is_rebuilt_and_the_broken_one_kept() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let broken = "[\n  {\"id\": \"20240601_one\", \"tags\": [\"precious\"]\n";
    place.put("C/index.json", broken);
    let map = map_to(&place, "H");
    let ran = place.run(["migrate", "C", "H", "--map", &map, "--json"]);
    let outcome = ran.expect(0).json();
    let warnings = outcome["warnings"].to_string();
    assert!(warnings.contains("index was damaged"), "{warnings}");
    assert_eq!(read(&place.path("H/index.json"))[0]["id"], "20240601_one");
    let kept = walkdir::WalkDir::new(place.path("H/.wbhome/trash"))
        .into_iter()
        .map(|e| e.unwrap())
        .filter(|e| e.file_type().is_file())
        .any(|e| fs::read_to_string(e.path()).unwrap() == broken);
    assert!(kept, "the broken index is not in the trash");
}
