use super::*;
use crate::home::Counts;

fn id(text: &str) -> SessionId {
    SessionId::adopt(text).unwrap()
}

fn seen(name: &str, record_id: &str, identity: Option<&str>) -> Seen {
    Seen {
        id: id(name),
        record: Some(Record {
            id: Some(record_id.into()),
            session_id: identity.map(str::to_owned),
            agent: Some("writer".into()),
            tags: vec!["made".into()],
            ..Record::default()
        }),
        torn: None,
        counts: Counts::default(),
    }
}

fn on_disk(sessions: impl IntoIterator<Item = Seen>) -> Scan {
    let sessions = sessions.into_iter().map(|s| (s.id.clone(), s));
    Scan {
        sessions: sessions.collect(),
        ..Scan::default()
    }
}

fn index(text: &str) -> Index {
    Index::parse(text.as_bytes()).unwrap()
}

fn add_up(changes: &Changes) {
    let classes = [
        changes.added.len(),
        changes.renamed.len(),
        changes.returned.len(),
        changes.archived.len(),
        changes.missing.len(),
        changes.completed.len(),
    ];
    let sum = classes.iter().sum::<usize>() as u64 + changes.unchanged;
    assert_eq!(sum, changes.entries, "{changes:?}");
}

#[test]
fn each_entry_ends_in_one_class() {
    let mut index = index(
        r#"[{"id": "here", "session_id": "1", "tags": ["x"]}, {"id": "gone", "tags": ["keep"]}, {"id": "back", "status": "missing"},
            {"id": "packed"}, {"id": "packed before", "status": "archived", "archive": {"file": "f"}, "archived_at": "t"},
            {"id": "was running", "status": "running"}, {"id": "removed", "status": "removed"}, {"id": "learns"},
            {"id": "../../etc"}, {"id": "blocked"}, {"id": "here", "second": 1}, 7]"#,
    );
    let mut scan = on_disk([
        seen("here", "here", Some("1")),
        seen("back", "back", None),
        seen("learns", "learns", Some("9")),
        seen("新的", "新的", Some("5")),
    ]);
    let archive = super::super::ArchiveSeen {
        bytes: 7,
        written: "2024-06-03T09:00:00.5Z".parse().unwrap(),
        mtime: Default::default(),
        counts: None,
        said: None,
    };
    for name in ["packed", "packed before", "only a pack"] {
        scan.archives.insert(id(name), archive.clone());
    }
    scan.blocked.push(id("blocked"));

    let changes = agree(&mut index, &scan, false);
    add_up(&changes);
    assert_eq!(changes.added, ["新的", "only a pack"]);
    assert_eq!(changes.missing, ["gone", "was running"]);
    assert_eq!(changes.returned, ["back"]);
    assert_eq!(changes.archived, ["packed"]);
    // The second entry of the same id learns too.
    assert_eq!(changes.completed, ["learns", "here"]);
    assert_eq!((changes.unchanged, changes.not_entries), (5, 1));
    let wrong: Vec<&str> = changes.problems.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(wrong, ["here", "../../etc", "blocked"]);

    let entry = |id: &str| index.find(id).unwrap();
    assert_eq!(
        (entry("gone").status(), entry("gone").tags()),
        (Status::Missing, vec!["keep"])
    );
    assert_eq!(entry("packed").archive().unwrap()["bytes"], 7);
    assert_eq!(entry("packed").archived_at(), Some("2024-06-03T09:00:00Z"));
    assert_eq!(entry("only a pack").status(), Status::Archived);
    assert_eq!(
        (entry("新的").agent(), entry("新的").tags()),
        (Some("writer"), vec!["made"])
    );
    assert_eq!(entry("removed").status(), Status::Removed);

    // What comes back has its own word again, and a second run finds nothing to do.
    scan.sessions
        .insert(id("was running"), seen("was running", "", None));
    let changes = agree(&mut index, &scan, false);
    add_up(&changes);
    assert_eq!(changes.returned, ["was running"]);
    let status = index.find("was running").unwrap().status();
    assert_eq!(status, Status::Other("running".into()));
    let before = index.clone();
    assert!(!agree(&mut index, &scan, false).any());
    assert_eq!(index, before);
}

#[test]
fn a_folder_renamed_by_hand_keeps_its_labels() {
    for identity in [Some("abc"), None] {
        let field = identity.map_or("null".into(), |i| format!("\"{i}\""));
        let text = format!(
            r#"[{{"id": "old", "status": "missing", "tags": ["清洗"], "session_id": {field}}}]"#
        );
        let mut index = index(&text);
        let changes = agree(&mut index, &on_disk([seen("新名", "old", identity)]), false);
        add_up(&changes);
        assert_eq!(changes.renamed.len(), 1);
        let entry = index.find("新名").unwrap();
        assert_eq!(
            (entry.tags(), entry.status()),
            (vec!["清洗"], Status::Active)
        );
        assert!(index.find("old").is_none());
    }
}

#[test]
fn a_copy_is_no_rename_and_two_claims_are_none() {
    let text = r#"[{"id": "a", "session_id": "1", "tags": ["x"]}]"#;
    let both = [seen("a", "a", Some("1")), seen("a(1)", "a", Some("1"))];
    let mut beside = index(text);
    let changes = agree(&mut beside, &on_disk(both), false);
    assert_eq!((changes.renamed.len(), changes.added.len()), (0, 1));

    let two = [seen("b", "a", Some("1")), seen("c", "a", Some("1"))];
    let mut claimed = index(text);
    let changes = agree(&mut claimed, &on_disk(two), false);
    add_up(&changes);
    assert_eq!(
        (
            changes.renamed.len(),
            changes.added.len(),
            changes.missing.len()
        ),
        (0, 2, 1)
    );
    assert!(changes.problems[0].why.contains("one of b, c"));

    // Another session under a name that was free again.
    let mut other = index(text);
    let changes = agree(&mut other, &on_disk([seen("b", "a", Some("2"))]), false);
    assert_eq!((changes.renamed.len(), changes.missing.len()), (0, 1));
    // A tombstone is not brought back under another name.
    let mut removed = index(r#"[{"id": "a", "session_id": "1", "status": "removed"}]"#);
    let changes = agree(&mut removed, &on_disk([seen("b", "a", Some("1"))]), false);
    assert_eq!((changes.renamed.len(), changes.added.len()), (0, 1));
}

#[test]
fn rebuilding_keeps_labels_and_puts_doubles_together() {
    let old = index(
        r#"{"version": 2, "a": {"tags": ["x"], "note": 1.10}, "a": {"tags": ["y"], "title": "标题", "note": 2},
            "gone": {"project": "p"}, "../x": {}, "b": {"session_id": "stale"}}"#,
    );
    let scan = on_disk([seen("a", "a", Some("1")), seen("b", "b", Some("2"))]);
    let (new, changes) = rebuild(Some(&old), &scan);
    add_up(&changes);
    let a = new.find("a").unwrap();
    assert_eq!(
        (a.tags(), a.title(), a.agent()),
        (vec!["x", "y"], Some("标题"), Some("writer"))
    );
    assert_eq!(a.fields()["note"].to_string(), "1.10");
    assert_eq!(new.find("b").unwrap().session_id(), Some("2"));
    let gone = new.find("gone").unwrap();
    assert_eq!(
        (gone.status(), gone.project()),
        (Status::Missing, Some("p"))
    );
    assert_eq!(
        (new.shape(), new.items().len()),
        (crate::home::Shape::Object, 3)
    );
    assert_eq!(changes.not_entries, 2);

    let (new, changes) = rebuild(None, &scan);
    add_up(&changes);
    assert_eq!(changes.added, ["a", "b"]);
    assert_eq!(new.find("a").unwrap().tags(), ["made"]);
}
