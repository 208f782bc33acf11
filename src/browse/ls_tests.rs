use std::path::PathBuf;

use super::*;
use crate::home::testing::{self, Place};
use crate::home::{Cache, SessionsStamp};
use crate::state::Liveness;

fn ids(place: &Place, filter: &Filter, sort: Sort) -> Vec<String> {
    let outcome = ls(&place.home, filter, sort, false, &[], &Leases::default()).unwrap();
    outcome.sessions.into_iter().map(|row| row.id).collect()
}

fn filled() -> Place {
    let place = testing::home();
    place.put(
        "index.json",
        r#"[{"id": "20240603_Crawler", "agent": "a", "project": "alpha", "tags": ["x", "y"], "created_at": "2024-06-03T09:00:00+08:00"},
            {"id": "20240604_数据清洗", "title": "Weekly Report", "tags": ["x"], "created_at": "2024-06-04T09:00:00Z"},
            {"id": "20240605_old", "status": "archived", "archive": {"bytes": 5000}},
            {"id": "20240606_gone", "status": "removed"}, {"id": "odd", "status": "running"}]"#,
    );
    let counts = |day: i8, bytes| Counts {
        turns: 2,
        context: Tally { files: 3, bytes },
        last_activity: format!("2024-06-{day:02}T00:00:00Z").parse().ok(),
        ..Counts::default()
    };
    let sessions = [
        ("20240603_Crawler".to_owned(), counts(12, 10)),
        ("20240604_数据清洗".to_owned(), counts(10, 700)),
    ];
    let home = place.locked("index");
    let stamp = SessionsStamp::now(&home).unwrap();
    let cache = Cache::new(stamp, sessions.into(), Vec::new());
    cache.write(&home).unwrap();
    drop(home);
    place
}

#[test]
fn sorts() {
    let place = filled();
    let all = Filter::default();
    let (crawler, clean, old) = ("20240603_Crawler", "20240604_数据清洗", "20240605_old");
    assert_eq!(
        ids(&place, &all, Sort::Updated),
        [crawler, clean, old, "odd"]
    );
    assert_eq!(
        ids(&place, &all, Sort::Created),
        [old, clean, crawler, "odd"]
    );
    assert_eq!(ids(&place, &all, Sort::Size), [old, clean, crawler, "odd"]);
    assert_eq!(ids(&place, &all, Sort::Id), [crawler, clean, old, "odd"]);
    let outcome = ls(&place.home, &all, Sort::Id, true, &[], &Leases::default()).unwrap();
    assert_eq!((outcome.sessions[0].id.as_str(), outcome.total), ("odd", 5));
    assert_eq!(outcome.sessions[3].holds.unwrap().bytes, 10);
}

#[test]
fn filters() {
    let place = filled();
    let moment = |text: &str| text.parse::<Timestamp>().ok();
    let pattern = |text: &str| Filter {
        pattern: Some(text.into()),
        ..Filter::default()
    };
    let status = |text: &str| Filter {
        status: Some(text.into()),
        ..Filter::default()
    };
    let all = Filter::default;
    for (filter, expected) in [
        (pattern("crawler"), vec!["20240603_Crawler"]),
        (pattern("weekly"), vec!["20240604_数据清洗"]),
        (pattern("数据"), vec!["20240604_数据清洗"]),
        (
            pattern("2024060[34]_*"),
            vec!["20240603_Crawler", "20240604_数据清洗"],
        ),
        (pattern("crawl*"), vec![]),
        (status("removed"), vec!["20240606_gone"]),
        (status("running"), vec!["odd"]),
        (
            Filter {
                tags: vec!["x".into(), "y".into()],
                ..all()
            },
            vec!["20240603_Crawler"],
        ),
        (
            Filter {
                agent: Some("a".into()),
                ..all()
            },
            vec!["20240603_Crawler"],
        ),
        (
            Filter {
                project: Some("alpha".into()),
                ..all()
            },
            vec!["20240603_Crawler"],
        ),
        (
            Filter {
                since: moment("2024-06-11T00:00:00Z"),
                ..all()
            },
            vec!["20240603_Crawler"],
        ),
        (
            Filter {
                until: moment("2024-06-10T00:00:00Z"),
                ..all()
            },
            vec!["20240604_数据清洗", "20240605_old"],
        ),
    ] {
        assert_eq!(ids(&place, &filter, Sort::Id), expected, "{filter:?}");
    }
    assert!(
        ls(
            &place.home,
            &pattern("[a"),
            Sort::Id,
            false,
            &[],
            &Leases::default()
        )
        .is_err()
    );
}

#[test]
fn says_when_sessions_have_come_or_gone_and_works_without_a_cache() {
    let place = filled();
    let stale = || {
        ls(
            &place.home,
            &Filter::default(),
            Sort::Id,
            false,
            &[],
            &Leases::default(),
        )
        .unwrap()
        .stale
    };
    assert!(!stale());
    place.put("sessions/new/x", "");
    assert!(stale());
    place.put(".wbhome/cache.json", "broken");
    let outcome = ls(
        &place.home,
        &Filter::default(),
        Sort::Updated,
        false,
        &[],
        &Leases::default(),
    )
    .unwrap();
    assert!(outcome.stale && outcome.sessions.len() == 4);
    assert_eq!(outcome.sessions[0].holds, None);
    let json = serde_json::to_value(&outcome.sessions[2]).unwrap();
    assert_eq!(json["created"], "2024-06-03T01:00:00Z");
    assert_eq!(json["updated"], Value::Null);
}

fn agent(pid: u32, cwd: Option<PathBuf>, identity: Option<&str>) -> Agent {
    Agent {
        file: PathBuf::new(),
        pid,
        kind: "interactive".into(),
        session_id: identity.map(str::to_owned),
        cwd,
        started_at: Some(1_717_405_200_000),
        last_heartbeat: Some(1_717_405_200_000 + i64::from(pid)),
        liveness: Liveness::Running,
    }
}

#[test]
fn who_works_in_a_session_is_known_by_the_folder_or_the_conversation() {
    let place = testing::home();
    let (a, b, c) = ("20240603_数据", "20240604_b", "20240605_c");
    place.put(
        "index.json",
        r#"[{"id": "20240603_数据"}, {"id": "20240604_b", "session_id": "u-2"}, {"id": "20240605_c"}]"#,
    );
    place.put("sessions/20240603_数据/artifacts/x", "");
    let root = place.home.root();
    let inside = root.join("sessions").join(a).join("artifacts");
    let link = root.join("../a link");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    let on = |agents: &[Agent]| -> Vec<(String, u32)> {
        let listed = ls(
            &place.home,
            &Filter::default(),
            Sort::Id,
            false,
            agents,
            &Leases::default(),
        )
        .unwrap();
        let rows = listed.sessions.into_iter();
        rows.filter_map(|row| Some((row.id, row.running?.pid)))
            .collect()
    };
    let is = |id: &str, pid| vec![(id.to_owned(), pid)];
    assert_eq!(on(&[agent(7, Some(inside.clone()), None)]), is(a, 7));
    assert_eq!(on(&[agent(7, Some(link.clone()), None)]), is(a, 7));
    assert_eq!(on(&[agent(7, Some("/else".into()), Some("u-2"))]), is(b, 7));
    // Its folder may have gone.
    let gone = root.join("sessions").join(c);
    assert_eq!(on(&[agent(7, Some(gone), None)]), is(c, 7));
    // Of two the one that is livelier.
    let both = [
        agent(9, Some(inside.clone()), None),
        agent(8, Some(inside.clone()), None),
    ];
    assert_eq!(on(&both), is(a, 9));
    let mut pool = agent(7, Some(inside.clone()), None);
    pool.kind = "prewarm".into();
    let mut ended = agent(7, Some(inside), None);
    ended.liveness = Liveness::Gone;
    let elsewhere = agent(7, Some(root.join("sessions")), Some("interactive-7"));
    assert_eq!(on(&[pool, ended, elsewhere]), []);
}
