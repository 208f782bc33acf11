use super::*;
use crate::home::testing::{self, Place};

fn make(place: &Place, request: &Request) -> Outcome {
    let home = place.locked("new");
    let plan = plan(&home, request, &place.context()).unwrap();
    apply(&home, plan, &place.context()).unwrap()
}

fn task(task: &str) -> Request {
    Request {
        task: task.into(),
        ..Request::default()
    }
}

#[test]
fn a_session_is_complete_indexed_and_counted() {
    let place = testing::home();
    place.put("agents/写手/agent.yaml", "");
    let request = Request {
        agent: Some("写手".into()),
        project: Some("alpha".into()),
        tags: vec!["x".into(), "清洗".into(), "x".into()],
        sync_tag: Some("laptop".into()),
        title: Some("数据清洗".into()),
        ..task("数据清洗")
    };
    let made = make(&place, &request);
    assert_eq!(made.id.as_str(), "20240615_数据清洗");
    assert_eq!(made.warnings, [""; 0]);
    let names = disk::read_dir_names(&made.path).unwrap();
    let names: Vec<&str> = names.iter().map(|(n, _)| n.to_str().unwrap()).collect();
    assert_eq!(
        names,
        ["artifacts", "context", "logs", "memory", "session.json"]
    );
    let record = place
        .get("sessions/20240615_数据清洗/session.json")
        .unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["id"], "20240615_数据清洗");
    assert_eq!(record["cwd"], made.path.to_str().unwrap());
    assert_eq!(record["session_id"].as_str().unwrap().len(), 32);
    assert_eq!(record["created_at"], "2024-06-15T12:00:00Z");
    // Whom it is shared with is decided in the index alone.
    assert!(record.get("sync_tag").is_none());
    let index = Index::read(&place.home).unwrap();
    let entry = index.find(made.id.as_str()).unwrap();
    assert_eq!(
        (entry.tags(), entry.sync_tag()),
        (vec!["x", "清洗"], Some("laptop"))
    );
    assert_eq!(entry.session_id(), record["session_id"].as_str());
    assert!(
        place
            .get("projects/alpha/20240615_数据清洗/session.json")
            .is_some()
    );
    let cache = Cache::read(&place.home).unwrap();
    assert!(!cache.is_stale(&place.home) && cache.sessions.contains_key(made.id.as_str()));
    assert_eq!(disk::read_dir_names(&place.home.tmp()).unwrap(), []);
    assert_eq!(disk::read_dir_names(&place.home.journal()).unwrap(), []);
}

#[test]
fn a_taken_name_gets_a_number_wherever_it_is_taken() {
    let place = testing::home();
    place.put("sessions/20240615_A/x", "");
    place.put("archive/20240615_b.tar.zst", "");
    place.put(
        "index.json",
        r#"[{"id": "20240615_c", "status": "missing"}, {"id": "20240615_d", "status": "removed"}]"#,
    );
    for name in ["a", "b", "c", "d"] {
        let expected = format!("20240615_{name}_2");
        assert_eq!(make(&place, &task(name)).id.as_str(), expected);
    }
    assert_eq!(make(&place, &task("c")).id.as_str(), "20240615_c_3");
    let dated = Request {
        date: Some(jiff::civil::date(2023, 1, 2)),
        ..task("e")
    };
    let made = make(&place, &dated);
    assert_eq!(made.id.as_str(), "20230102_e");
    assert_eq!(made.entry["created_at"], "2023-01-02T12:00:00Z");
}

#[test]
fn two_who_planned_the_same_do_not_share_a_session() {
    let place = testing::home();
    let first = plan(&place.home, &task("a"), &place.context()).unwrap();
    let second = plan(&place.home, &task("a"), &place.context()).unwrap();
    let home = place.locked("new");
    apply(&home, first, &place.context()).unwrap();
    let error = apply(&home, second, &place.context()).unwrap_err();
    assert!(error.to_string().contains("meanwhile"), "{error}");
}

#[test]
fn labels_that_can_not_be_are_usage_errors() {
    let place = testing::home();
    let bad = [
        Request {
            project: Some("../x".into()),
            ..task("a")
        },
        Request {
            project: Some(".git".into()),
            ..task("a")
        },
        Request {
            tags: vec![String::new()],
            ..task("a")
        },
        Request {
            sync_tag: Some("a\nb".into()),
            ..task("a")
        },
        task("a b"),
    ];
    for request in bad {
        let error = plan(&place.home, &request, &place.context()).unwrap_err();
        assert_eq!(error.kind(), crate::base::Kind::Usage, "{request:?}");
    }
    let unknown = Request {
        agent: Some("谁".into()),
        ..task("a")
    };
    let plan = plan(&place.home, &unknown, &place.context()).unwrap();
    assert!(plan.warnings[0].contains("谁"));
}
