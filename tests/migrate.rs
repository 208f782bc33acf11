//! The migration of a damaged home, as on the evening when a person needs it: nothing lost, every reference changed in
//! its spelling, everything that the sync client broke named, the original untouched.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests lay out their own folders and say what went wrong"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::corpus::{Corpus, ELSEWHERE, Written};
use support::moving::{
    OLD, SMALL_REFERENCES, assert_kept, assert_same, damaged, map_to, small_home, visible,
};
use support::naive::{Seen, Spellings};
use support::{Entry, Place, Ran, has_tool, tree};

/// The new home's path needs every kind of escape too.
const HOME: &str = "本地 (new)/workbuddy_home";

/// A damaged home, and what `migrate --json` made of it.
struct Moved {
    place: Place,
    written: Written,
    before: BTreeMap<Vec<u8>, Entry>,
    ran: Ran,
    outcome: Value,
}

impl Moved {
    fn of(corpus: &Corpus) -> Moved {
        let place = Place::new();
        let written = corpus.write(&place.path("C")).unwrap();
        let before = tree(&place.path("C"));
        let map = map_to(&place, HOME);
        let ran = place.run(["migrate", "C", HOME, "--map", &map, "--json"]);
        let outcome = ran.expect(0).json();
        Moved {
            place,
            written,
            before,
            ran,
            outcome,
        }
    }

    fn source(&self) -> PathBuf {
        self.place.path("C")
    }

    fn home(&self) -> PathBuf {
        self.place.path(HOME)
    }

    fn spellings(&self) -> Spellings {
        Spellings::new(OLD, self.home().to_str().unwrap())
    }

    fn class(&self, name: &str) -> u64 {
        self.outcome["classes"][name].as_u64().unwrap()
    }

    fn index(&self) -> Vec<Value> {
        serde_json::from_slice(&std::fs::read(self.home().join("index.json")).unwrap()).unwrap()
    }
}

#[test]
fn every_damage_is_reported_under_its_path() {
    let moved = Moved::of(&damaged());
    let findings: Vec<&Value> = moved.outcome["findings"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let mut planted = BTreeSet::new();
    for damage in &moved.written.damage {
        let at_path = |f: &&&Value| f["path"] == damage.path.as_str();
        if damage.kind == "innocent" {
            let wrong: Vec<_> = findings
                .iter()
                .filter(at_path)
                .filter(|f| f["kind"] == "conflict-copy")
                .collect();
            assert!(
                wrong.is_empty(),
                "{damage:?} is taken for a copy: {wrong:?}"
            );
            continue;
        }
        planted.insert((damage.kind.to_owned(), damage.path.clone()));
        let found = findings
            .iter()
            .filter(at_path)
            .find(|f| f["kind"] == damage.kind)
            .unwrap_or_else(|| panic!("{damage:?} is not among the findings: {findings:#?}"));
        if let Some(of) = &damage.of {
            assert_eq!(found["of"], of.as_str(), "{damage:?}");
        }
        if let Some(relation) = damage.relation {
            assert_eq!(found["relation"], relation, "{damage:?}");
        }
    }
    // The folder with nothing in it is not in the index either.
    let empty = moved.written.damage_of("empty-session").next().unwrap();
    planted.insert(("unindexed-session".to_owned(), empty.path.clone()));
    // And nothing else is said to be broken in these ways.
    let kinds: BTreeSet<_> = planted.iter().map(|(kind, _)| kind.clone()).collect();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
    let told: BTreeSet<_> = findings
        .iter()
        .map(|f| (text(f, "kind"), text(f, "path")))
        .filter(|(kind, _)| kinds.contains(kind))
        .collect();
    let more: Vec<_> = told.difference(&planted).collect();
    assert!(more.is_empty(), "{more:#?}");
    assert!(moved.ran.stderr.is_empty(), "{:?}", moved.ran.stderr);
}

#[test]
fn exactly_the_planted_references_are_changed_each_in_its_spelling() {
    let moved = Moved::of(&damaged());
    let (spellings, planted) = (moved.spellings(), moved.written.planted);
    let (mut seen, mut links, mut linked) = (Seen::default(), 0, BTreeSet::new());
    for (name, entry) in &moved.before {
        let name = String::from_utf8(name.clone()).unwrap();
        let (from, to) = (moved.source().join(&name), moved.home().join(&name));
        match entry.kind {
            'l' => {
                let target = |p: &Path| {
                    let target = std::fs::read_link(p).unwrap();
                    target.to_str().unwrap().to_owned()
                };
                let (old, new) = (target(&from), target(&to));
                let here = moved.home();
                let wanted = old.replace(OLD, here.to_str().unwrap());
                assert_eq!(new, wanted, "{name}");
                links += u64::from(old != new);
            }
            'f' => {
                let meta = std::fs::metadata(&from).unwrap();
                let again = !linked.insert((meta.dev(), meta.ino()));
                let old = std::fs::read(&from).unwrap();
                if name == "index.json" {
                    // It is made to agree with the disk as well; its references are looked for below.
                    seen.changed += spellings.count(&old);
                    continue;
                }
                let found = spellings
                    .compare(&old, &std::fs::read(&to).unwrap())
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                if !again {
                    seen += found;
                }
            }
            _ => {}
        }
    }
    assert_eq!(seen.changed, planted.references);
    assert_eq!(links, planted.links);
    assert_eq!(seen.left, planted.stays + planted.doubtful + planted.binary);

    // The program counts the same.
    let references = &moved.outcome["references"];
    let changed = planted.references + planted.links;
    assert_eq!(references["changed"], changed);
    let by_spelling = references["by_spelling"].as_object().unwrap();
    let sum: u64 = by_spelling.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, changed, "{by_spelling:?}");
    assert!(by_spelling.len() > 4, "{by_spelling:?}");
    assert_eq!(references["by_mapping"][0]["old"], OLD);
    assert_eq!(references["by_mapping"][0]["count"], changed);
    let told = |kind: &str| -> u64 {
        let findings = moved.outcome["findings"].as_array().unwrap();
        let of_kind = findings.iter().filter(|f| f["kind"] == kind);
        of_kind.map(|f| f["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(told("doubtful-path"), planted.doubtful);
    assert_eq!(told("binary-path"), planted.binary);
    // Another root that the files mention is shown, not changed.
    assert_eq!(references["also_mentioned"][ELSEWHERE], planted.elsewhere);
}

#[test]
fn nothing_of_the_old_path_is_left_but_what_must_stay() {
    let moved = Moved::of(&damaged());
    let (spellings, planted) = (moved.spellings(), moved.written.planted);
    let (mut left, mut linked) = (0, BTreeSet::new());
    for (name, entry) in visible(&moved.home()) {
        let name = String::from_utf8(name).unwrap();
        let path = moved.home().join(&name);
        match entry.kind {
            'l' => assert!(!entry.content.contains(OLD), "{name} → {}", entry.content),
            'f' => {
                let meta = std::fs::metadata(&path).unwrap();
                if linked.insert((meta.dev(), meta.ino())) {
                    let count = spellings.count(&std::fs::read(&path).unwrap());
                    let may = name.ends_with("model.bin")
                        || name.contains("/artifacts/paths")
                        || name.contains("/artifacts/calls");
                    assert!(count == 0 || may, "{count} in {name}");
                    left += count;
                }
            }
            _ => {}
        }
    }
    assert_eq!(left, planted.stays + planted.doubtful + planted.binary);
}

#[test]
fn modes_times_and_links_are_those_of_the_source_which_is_untouched() {
    let moved = Moved::of(&damaged());
    assert_same(
        &tree(&moved.source()),
        &moved.before,
        "the source was changed",
    );
    let home = visible(&moved.home());
    // The root is its owner's alone, and its time that of the last thing that was made in it.
    assert_kept(&moved.before, &home, |name| {
        name.is_empty() || name == "index.json"
    });
    assert_eq!(home[&b""[..]].mode, 0o700);
    let index = &home[&b"index.json"[..]];
    assert_eq!((index.kind, index.mode), ('f', 0o644));
    // A binary is byte for byte the same, and so is what has no reference.
    let same = |suffix: &str| {
        let of = |tree: &BTreeMap<Vec<u8>, Entry>| {
            let all = tree.iter().filter(|(p, _)| p.ends_with(suffix.as_bytes()));
            all.map(|(p, e)| (p.clone(), e.content.clone()))
                .collect::<Vec<_>>()
        };
        assert!(!of(&home).is_empty(), "{suffix}");
        assert_eq!(of(&home), of(&moved.before), "{suffix}");
    };
    same("model.bin");
    same(".persistent_memory.json.icloud");
    same("plan (draft).md");
}

#[test]
fn the_classes_add_up() {
    let moved = Moved::of(&damaged());
    let parts = ["copied", "rewritten", "linked", "folders", "skipped"];
    let sum: u64 = parts.iter().map(|part| moved.class(part)).sum();
    assert_eq!(sum, moved.class("total"));
    // The root itself is no entry of the source.
    assert_eq!(sum, moved.before.len() as u64 - 1);
    let count = |kind: char| moved.before.values().filter(|e| e.kind == kind).count() as u64;
    assert_eq!(moved.class("folders"), count('d') - 1);
    assert_eq!(
        moved.class("copied") + moved.class("rewritten") + moved.class("hard_links"),
        count('f')
    );
    assert_eq!(
        moved.class("links_rewritten") + moved.class("links_kept"),
        count('l')
    );
    assert_eq!(moved.class("links_rewritten"), moved.written.planted.links);
    assert_eq!(moved.class("skipped"), 0);
    assert_eq!(moved.outcome["totals"]["bytes"], moved.written.bytes);
}

#[test]
fn hard_linked_files_stay_one_file() {
    let moved = Moved::of(&damaged());
    let mut groups: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for (name, entry) in &moved.before {
        if entry.kind == 'f' && entry.links > 1 {
            let path = moved
                .source()
                .join(String::from_utf8(name.clone()).unwrap());
            let inode = std::fs::metadata(path).unwrap().ino();
            groups.entry(inode).or_default().push(name.clone());
        }
    }
    assert!(!groups.is_empty());
    for names in groups.values() {
        let inodes: BTreeSet<u64> = names
            .iter()
            .map(|n| moved.home().join(String::from_utf8(n.clone()).unwrap()))
            .map(|path| std::fs::metadata(path).unwrap().ino())
            .collect();
        assert!(
            names.len() > 1 && inodes.len() == 1,
            "{names:?}: {inodes:?}"
        );
    }
}

#[test]
fn the_index_keeps_what_people_and_others_wrote() {
    let moved = Moved::of(&damaged());
    let source: Vec<Value> =
        serde_json::from_slice(&std::fs::read(moved.source().join("index.json")).unwrap()).unwrap();
    let (home, here) = (moved.index(), moved.home());
    let entry = |id: &Value| home.iter().find(|e| e["id"] == *id).unwrap();
    for former in &source {
        let now = entry(&former["id"]);
        for (key, value) in former.as_object().unwrap() {
            match (key.as_str(), value) {
                ("path", Value::String(path)) => {
                    assert_eq!(now[key], path.replace(OLD, here.to_str().unwrap()).as_str());
                }
                ("status", _) => {}
                _ => assert_eq!(now[key], *value, "{key} of {}", former["id"]),
            }
        }
    }
    // A session that the index had and the disk has not stays, as missing; one that it lacked has an entry.
    let planted = |kind: &str| {
        let damage = moved.written.damage_of(kind).next().unwrap();
        let name = damage.path.rsplit('/').next().unwrap();
        Value::from(name)
    };
    assert_eq!(entry(&planted("missing-session"))["status"], "missing");
    assert_eq!(entry(&planted("unindexed-session"))["status"], "active");
    let sessions = &moved.outcome["sessions"];
    assert_eq!(sessions["missing"], 1);
    assert_eq!(sessions["source_indexed"], source.len());
    assert_eq!(sessions["home_indexed"], home.len());
    assert_eq!(
        sessions["added"].as_u64().unwrap(),
        (home.len() - source.len()) as u64
    );
    assert_eq!(sessions["source_folders"], sessions["home_folders"]);
    let ids: Vec<_> = home.iter().map(|e| e["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    // Numbers keep their digits.
    let text = std::fs::read_to_string(here.join("index.json")).unwrap();
    let had = std::fs::read_to_string(moved.source().join("index.json")).unwrap();
    for digits in ["12345678901234567890", ": 1.50"] {
        assert_eq!(text.matches(digits).count(), had.matches(digits).count());
    }
}

#[test]
fn jq_prints_the_tagged_sessions() {
    if !has_tool("jq") {
        return;
    }
    let moved = Moved::of(&damaged());
    let jq = |index: PathBuf| {
        let output = Command::new("jq")
            .args(["-r", ".[] | select(.sync_tag != null) | .id"])
            .arg(index)
            .output()
            .unwrap();
        Ran::of(output).expect(0).stdout.clone()
    };
    let tagged = jq(moved.home().join("index.json"));
    assert_eq!(tagged, jq(moved.source().join("index.json")));
    assert_eq!(tagged.lines().count(), 2);
}

#[test]
fn the_new_home_works_and_its_check_finds_nothing_that_the_migration_has_not_told() {
    let moved = Moved::of(&damaged());
    let list = moved.place.json(["ls", "--home", HOME]);
    assert!(!list["sessions"].as_array().unwrap().is_empty(), "{list}");
    let check = moved.place.json(["check", "--home", HOME]);
    let told = |document: &Value, key: &str| -> BTreeSet<String> {
        let findings = document[key].as_array().unwrap();
        findings
            .iter()
            .map(|f| format!("{} {}", f["kind"], f["path"]))
            .collect()
    };
    let (found, before) = (told(&check, "findings"), told(&moved.outcome, "findings"));
    let new: Vec<_> = found.difference(&before).collect();
    assert!(new.is_empty(), "{new:#?}");
}

#[test]
fn a_sound_home_is_moved_without_a_complaint() {
    let place = Place::new();
    small_home(&place, "C", OLD);
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(&place, "H"), "--json"]);
    let outcome = ran.expect(0).json();
    assert_eq!(outcome["references"]["changed"], SMALL_REFERENCES);
    assert_eq!(
        outcome["findings"].as_array().unwrap().len(),
        0,
        "{outcome}"
    );
    assert_eq!(
        outcome["warnings"].as_array().unwrap().len(),
        0,
        "{outcome}"
    );
    assert_eq!(outcome["resumed"], false);
    assert_eq!(outcome["keep_until"], "2024-06-29T12:00:00Z");
    // What people read says the same, and what to do next.
    let place = Place::new();
    small_home(&place, "C", OLD);
    let ran = place.run(["migrate", "C", "H", "--map", &map_to(&place, "H")]);
    let text = &ran.expect(0).stdout;
    for part in [
        "1 session · 7 files",
        "8 references to /Users/me/Cloud Drive/",
        "(untouched)",
        "No damage was found",
        "Keep the original until 2024-06-29",
        "wbhome check",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_record_lists_every_reference_with_its_offset() {
    let moved = Moved::of(&damaged());
    let record = PathBuf::from(moved.outcome["record"].as_str().unwrap());
    let text = std::fs::read_to_string(record.join("references.jsonl")).unwrap();
    let (mut count, old_length) = (0, OLD.len());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let offsets = line["offsets"].as_array().unwrap();
        count += offsets.len() as u64;
        assert_eq!(line["count"], offsets.len());
        let path = moved.source().join(line["path"].as_str().unwrap());
        if line["spelling"] != "plain" || line["mapping"] != 0 || path.is_symlink() {
            continue;
        }
        let content = std::fs::read(&path).unwrap();
        for offset in offsets {
            let at = usize::try_from(offset.as_u64().unwrap()).unwrap();
            assert_eq!(&content[at..at + old_length], OLD.as_bytes(), "{line}");
        }
    }
    assert_eq!(moved.outcome["references"]["changed"], count);
}
