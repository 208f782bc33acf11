use super::*;
use crate::home::testing::{self, Place};

fn run(place: &Place, names: &[&str], request: Request) -> Result<Outcome> {
    let ids: Vec<SessionId> = names.iter().map(|n| SessionId::adopt(n).unwrap()).collect();
    let home = place.locked("label");
    let plan = plan(&home, &ids, request)?;
    let planned = plan.sessions.clone();
    let outcome = apply(&home, plan, &place.context())?;
    assert_eq!(outcome.sessions, planned);
    Ok(outcome)
}

fn project(project: Option<&str>) -> Request {
    Request {
        project: Some(project.map(str::to_owned)),
        ..Request::default()
    }
}

fn tag(tag: &str) -> Request {
    Request {
        tag: vec![tag.into()],
        ..Request::default()
    }
}

#[test]
fn labels_and_views_of_many() {
    let place = testing::home();
    place.put("sessions/数据/session.json", r#"{"agent": "写手"}"#);
    place.put(
        "index.json",
        r#"[{"id": "a", "x": 1.0}, {"id": "b", "tags": ["t"]}]"#,
    );
    let outcome = run(&place, &["a", "b", "a", "数据"], project(Some("项目"))).unwrap();
    assert_eq!((outcome.changed, outcome.unchanged), (3, 0));
    assert_eq!(outcome.views.made.len(), 3);
    assert!(outcome.sessions[2].added);
    let index = Index::read(&place.home).unwrap();
    assert_eq!(index.find("数据").unwrap().agent(), Some("写手"));
    let outcome = run(&place, &["a", "b"], tag("t")).unwrap();
    assert_eq!((outcome.changed, outcome.unchanged), (1, 1));
    let outcome = run(&place, &["a"], project(None)).unwrap();
    assert_eq!(outcome.views.removed, ["projects/项目/a"]);
    let untag = Request {
        untag: vec!["t".into()],
        sync_tag: Some(Some("laptop".into())),
        title: Some("标题".into()),
        ..Request::default()
    };
    let outcome = run(&place, &["b"], untag).unwrap();
    let after = &outcome.sessions[0].after;
    assert_eq!(
        (after.tags.len(), after.title.as_deref()),
        (0, Some("标题"))
    );
    assert_eq!(after.sync_tag.as_deref(), Some("laptop"));
    assert!(place.get("index.json").unwrap().contains("\"x\": 1.0"));
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let place = testing::home();
    let text = r#"[{"id": "a"}, {"id": "gone", "status": "removed"}]"#;
    place.put("index.json", text);
    let both = Request {
        untag: vec!["t".into()],
        ..tag("t")
    };
    let title = Request {
        title: Some("x".into()),
        ..Request::default()
    };
    assert!(run(&place, &["a"], Request::default()).is_err());
    assert!(run(&place, &["a"], both).is_err());
    assert!(run(&place, &["a", "b"], title).is_err());
    assert!(run(&place, &["a"], project(Some("a/b"))).is_err());
    // One that is unknown keeps the others from being labelled by half.
    assert!(run(&place, &["a", "unknown"], tag("t")).is_err());
    assert!(run(&place, &["a", "gone"], tag("t")).is_err());
    assert_eq!(place.get("index.json").unwrap(), text);
}

#[test]
fn an_index_broken_between_plan_and_run_is_left_alone() {
    let place = testing::home();
    place.put("index.json", r#"[{"id": "a"}]"#);
    let home = place.locked("label");
    let ids = [SessionId::adopt("a").unwrap()];
    let plan = plan(&home, &ids, tag("t")).unwrap();
    place.put("index.json", r#"[{"id": "a"},]"#);
    assert!(apply(&home, plan, &place.context()).is_err());
    assert_eq!(place.get("index.json").unwrap(), r#"[{"id": "a"},]"#);
    let journal = crate::disk::read_dir_names(&home.journal()).unwrap();
    assert_eq!(journal, []);
}
