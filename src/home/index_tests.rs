use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::home::testing::{self, Place};
use crate::home::{Entry, SessionId, Status};

fn update<T>(place: &Place, edit: impl FnMut(&mut Index) -> Result<T>) -> Result<T> {
    IndexFile::update(&place.locked("test"), edit)
}

#[test]
fn what_is_not_understood_survives_a_rewrite() {
    let place = testing::home();
    let odd = r#"[
 {"zeta": 1.50e2, "id": "20240603_b", "turns": 12345678901234567890123, "status": "running", "x": {"b": -0, "a": 1E+5}},
 7, "text", null, {"name": "no id"}, {"id": 5}, [1.0],
 {"id": "../../etc", "tags": "one"},
 {"id": "20240603_a", "title": "数据清洗"},
 {"id": "20240603_b", "second": true}
]"#;
    place.put("index.json", odd);
    update(&place, |index| {
        assert_eq!(index.duplicates(), ["20240603_b"]);
        assert_eq!(index.others(), 6);
        assert!(index.find("../../etc").unwrap().session().is_err());
        assert_eq!(index.find("../../etc").unwrap().tags(), ["one"]);
        let status = index.find("20240603_b").unwrap().status();
        assert_eq!(status, Status::Other("running".into()));
        assert!(status.is_active());
        index
            .edit("20240603_a", |entry| entry.add_tag("x"))
            .unwrap();
        Ok(())
    })
    .unwrap();
    let written = place.get("index.json").unwrap();
    // Digits stay; the exponent is spelled as serde_json spells it.
    for part in [
        "\"zeta\": 1.50e+2,\n    \"id\": \"20240603_b\",\n    \"turns\": 12345678901234567890123,",
        "\"b\": -0,\n      \"a\": 1e+5",
        "\"title\": \"数据清洗\",\n    \"tags\": [\n      \"x\"\n    ]",
        "\"second\": true",
        "\"name\": \"no id\"",
    ] {
        assert!(written.contains(part), "{part}\n{written}");
    }
    assert!(written.starts_with("[\n  {\n    \"id\": \"../../etc\"") && written.ends_with("\n]\n"));
    let (before, after) = (
        Index::parse(odd.as_bytes()).unwrap(),
        Index::parse(written.as_bytes()).unwrap(),
    );
    assert_eq!(before.items().len(), after.items().len());
}

#[test]
fn an_object_stays_an_object_and_keeps_equal_keys() {
    let place = testing::home();
    let odd = r#"{"version": 2, "b": {"status": "archived"}, "a": {"tags": []}, "b": {"status": "active"}}"#;
    place.put("index.json", odd);
    update(&place, |index| {
        assert_eq!(index.duplicates(), ["b"]);
        let id = SessionId::adopt("c").unwrap();
        index.edit("a", |entry| entry.set_id(&id)).unwrap();
        index.insert(Entry::new(&SessionId::adopt("数").unwrap()));
        Ok(())
    })
    .unwrap();
    let text = place.get("index.json").unwrap();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
    assert!(at("\"version\": 2") < at("\"b\": {\n    \"status\": \"archived\""));
    assert!(at("\"status\": \"archived\"") < at("\"b\": {\n    \"status\": \"active\""));
    assert!(at("\"c\": {\n    \"tags\": []\n  }") < at("\"数\": {\n    \"id\": \"数\""));
}

#[test]
fn nothing_is_written_when_nothing_was_changed() {
    let place = testing::home();
    let text = "[{\"id\":\"b\"},\n\n{\"id\":\"a\",\"tags\":[\"x\"]}]";
    let path = place.put("index.json", text);
    let before = disk::stat(&path).unwrap();
    update(&place, |index| {
        let edited = index.edit("a", |entry| {
            entry.add_tag("x");
            entry.remove_tag("y");
            entry.set("project", Value::Null);
            entry.set_status(&Status::Active);
            entry.unset("status");
        });
        edited.unwrap();
        Ok(())
    })
    .unwrap();
    assert_eq!(disk::stat(&path).unwrap(), before);
    assert_eq!(place.get("index.json").unwrap(), text);
}

#[test]
fn the_mode_is_kept_and_a_missing_index_is_made() {
    let place = testing::home();
    let path = place.home.index_file();
    disk::set_mode(&path, 0o640).unwrap();
    update(&place, |index| {
        index.insert(Entry::new(&SessionId::adopt("a").unwrap()));
        Ok(())
    })
    .unwrap();
    assert_eq!(disk::stat(&path).unwrap().unwrap().mode, 0o640);
    disk::remove_file(&path).unwrap();
    update(&place, |_| Ok(())).unwrap();
    assert_eq!(place.get("index.json").unwrap(), "[]\n");
}

#[test]
fn a_broken_index_is_named_with_its_place_and_left_alone() {
    let place = testing::home();
    for (broken, line) in [
        ("", "line 1, column 1"),
        ("[\n  {\"id\": \"a\",}\n]", "line 2, column"),
        ("[{\"id\": \"a\"}", "line 1, column"),
        ("12.5", "line 1, column 1"),
        ("\0\0\0\0", "line 1, column 1"),
        ("[] []", "line 1, column 4"),
        (
            "[{\"id\": \"a\",\n \"tags\": [1], \"tags\": [2]}]",
            "line 2, column 15",
        ),
    ] {
        place.put("index.json", broken);
        let error = update(&place, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains(line), "{broken:?}: {error}");
        assert!(error.hints()[1].contains("index --rebuild"));
        assert_eq!(place.get("index.json").unwrap(), broken);
    }
    place.put("index.json", "\u{feff}[{\"id\": \"a\"}]");
    update(&place, |_| Ok(())).unwrap();
}

#[test]
fn rebuilding_puts_the_former_one_into_the_trash() {
    let place = testing::home();
    place.put("index.json", "[{\"id\": \"数");
    let home = place.locked("index");
    let new = |old: Option<&Index>| {
        assert!(old.is_none());
        let entry = Entry::new(&SessionId::adopt("数").unwrap());
        Ok((Index::anew(Default::default(), [entry]), ()))
    };
    let ((), kept) = IndexFile::rebuild(&home, &place.context(), new).unwrap();
    assert_eq!(
        disk::read(&kept.unwrap()).unwrap().unwrap(),
        "[{\"id\": \"数".as_bytes()
    );
    assert!(Index::read(&home).unwrap().find("数").is_some());
    // The second time there is nothing to be changed, and nothing for the trash.
    let same = |old: Option<&Index>| Ok((old.unwrap().clone(), ()));
    let ((), kept) = IndexFile::rebuild(&home, &place.context(), same).unwrap();
    assert_eq!(kept, None);
}

/// What a person or another program may have made of an index: fields of any kind, in any order.
fn any_entry() -> impl Strategy<Value = Map<String, Value>> {
    let number = prop_oneof![
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        Just("1e400".to_owned())
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        ".{0,12}".prop_map(Value::String),
        number.prop_map(|n| serde_json::from_str(&n).unwrap()),
    ];
    let value = leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-d数]{1,3}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::vec(("[a-z_]{1,6}|标签|tags|status|title", value), 0..6)
        .prop_map(|fields| fields.into_iter().collect())
}

fn any_index() -> impl Strategy<Value = Vec<Map<String, Value>>> {
    prop::collection::btree_map("[a-f数据]{1,4}", any_entry(), 1..8).prop_map(|entries| {
        let mut all = Vec::new();
        for (id, fields) in entries {
            let mut entry = Map::new();
            let cut = fields.len() / 2;
            let rest: Vec<_> = fields.into_iter().filter(|(key, _)| key != "id").collect();
            for (n, (key, value)) in rest.into_iter().enumerate() {
                if n == cut {
                    entry.insert("id".into(), id.clone().into());
                }
                entry.insert(key, value);
            }
            entry.entry("id").or_insert(id.into());
            all.push(entry);
        }
        all
    })
}

fn text(entries: &[Map<String, Value>]) -> String {
    serde_json::to_string(&json!(entries)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every field of every entry keeps its value to the digit and its place, whatever else is changed.
    #[test]
    fn fields_order_and_digits_survive(entries in any_index(), tag in "[a-z数]{1,5}") {
        let mut index = Index::parse(text(&entries).as_bytes()).unwrap();
        let chosen = entries[0]["id"].as_str().unwrap();
        index.edit(chosen, |entry| entry.set("note", tag.as_str())).unwrap();
        index.insert(Entry::new(&SessionId::adopt("新").unwrap()));
        let written = index.to_bytes();
        prop_assert_eq!(&Index::parse(&written).unwrap().to_bytes(), &written);
        let again: Vec<Map<String, Value>> = serde_json::from_slice(&written).unwrap();
        let ids: Vec<&str> = again.iter().map(|e| e["id"].as_str().unwrap()).collect();
        prop_assert!(ids.is_sorted());
        for entry in &entries {
            let mut expected = entry.clone();
            if entry["id"] == chosen {
                expected.insert("note".into(), tag.as_str().into());
            }
            let found = again.iter().find(|e| e["id"] == entry["id"]).unwrap();
            prop_assert_eq!(serde_json::to_string(found).unwrap(), serde_json::to_string(&expected).unwrap());
        }
    }

    /// What a person writes between our look and our rename, and what we change, are both there at the end.
    #[test]
    fn an_edit_by_hand_made_meanwhile_is_merged(
        before in any_index(),
        by_hand in any_index(),
        hand_value in "[a-z数]{1,5}",
        ours in "[a-z标]{1,5}",
    ) {
        let place = testing::home();
        place.put("index.json", &text(&before));
        // The person changes a field of every entry that there was, and adds the others.
        let mut edited = before.clone();
        for entry in &mut edited {
            entry.insert("hand".into(), hand_value.as_str().into());
        }
        let new: Vec<_> = by_hand.iter().filter(|e| !before.iter().any(|b| b["id"] == e["id"])).collect();
        edited.extend(new.into_iter().cloned());
        let mut runs = 0;
        update(&place, |index| {
            runs += 1;
            if runs == 1 {
                place.put("index.json", &text(&edited));
            }
            index.entries_mut().for_each(|e| e.set("ours", ours.as_str()));
            Ok(())
        }).unwrap();
        prop_assert_eq!(runs, 2);
        let written = place.get("index.json").unwrap();
        let after: Vec<Map<String, Value>> = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(after.len(), edited.len());
        for mut entry in edited {
            entry.insert("ours".into(), ours.as_str().into());
            let found = after.iter().find(|e| e["id"] == entry["id"]).unwrap();
            prop_assert_eq!(found, &entry);
        }
    }
}

#[test]
fn an_entry_is_found_by_the_id_that_it_has_now() {
    let id = |id: &str| SessionId::adopt(id).unwrap();
    let rename = |index: &mut Index, from: &str, to: &str| {
        index.edit(from, |entry| entry.set_id(&id(to))).unwrap();
    };
    let number = |index: &Index, id: &str| index.find(id).unwrap().fields()["n"].clone();
    let text = r#"[{"id": "a", "n": 1}, 7, {"id": "b", "n": 2}, {"id": "a", "n": 3}]"#;
    let mut index = Index::parse(text.as_bytes()).unwrap();
    assert_eq!(number(&index, "a"), 1);
    let numbers = index
        .entries_of("a")
        .map(|entry| entry.fields()["n"].clone());
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 3]);
    assert!(index.find("数").is_none());
    index.insert(Entry::new(&id("数")));
    assert!(index.find("数").is_some());
    rename(&mut index, "b", "c");
    assert!(index.find("b").is_none());
    assert_eq!(number(&index, "c"), 2);
    index.insert(Entry::new(&id("c")));
    assert_eq!(number(&index, "c"), 2);
    rename(&mut index, "a", "d");
    assert_eq!(number(&index, "a"), 3);
    rename(&mut index, "d", "a");
    assert_eq!(number(&index, "a"), 1);
    for entry in index.entries_mut() {
        if entry.fields().get("n") == Some(&1.into()) {
            entry.set_id(&id("e"));
        }
    }
    assert_eq!(number(&index, "a"), 3);
    assert_eq!(number(&index, "e"), 1);
    assert!(index.edit("b", |_| ()).is_none());
    assert_eq!(index.clone(), index);
}
