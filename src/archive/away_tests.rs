use super::*;
use crate::home::testing;

fn ids(names: &[&str]) -> Vec<SessionId> {
    let adopt = |name: &&str| SessionId::adopt(name).unwrap();
    names.iter().map(adopt).collect()
}

fn request(which: Which) -> Request {
    Request {
        which,
        keep: false,
        force: false,
        level: 3,
    }
}

#[test]
fn what_is_named_is_archived_already_or_refused() {
    let place = testing::home();
    place.put("sessions/20240603_数据/context/turn_001.json", "{}");
    place.put("archive/20240604_old.tar.zst", "packed");
    place.put("sessions/20240606_file", "no folder");
    place.put(
        "index.json",
        r#"[{"id": "20240605_gone", "status": "removed"}]"#,
    );
    let named = ids(&[
        "20240603_数据",
        "20240604_old",
        "20240605_gone",
        "20240606_file",
        "20240603_数据",
    ]);
    let plan = plan(
        &place.home,
        &request(Which::Named(named)),
        &[],
        &Leases::default(),
        &place.context(),
    )
    .unwrap();
    assert_eq!(plan.sessions.len(), 1);
    assert_eq!((plan.sessions[0].files, plan.sessions[0].bytes), (1, 2));
    assert_eq!(plan.already, ["20240604_old"]);
    let refused: Vec<&str> = plan.refused.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(refused, ["20240605_gone", "20240606_file"]);
    assert!(
        plan.refused[0].hints[0].contains("restore 20240605_gone --from trash"),
        "{plan:?}"
    );
}

#[test]
fn idle_takes_what_has_rested_and_says_what_has_not() {
    let place = testing::home();
    let now = place.context().clock.now().as_second();
    let day = 86_400;
    for (id, days) in [("rested", 30), ("fresh", 29), ("future", -5)] {
        let rel = format!("sessions/{id}/a");
        place.put(&rel, "x");
        let folder = Dir::open(place.home.session(&ids(&[id])[0])).unwrap();
        let seconds = now - days * day;
        let nanos = 0;
        folder
            .set_time_of("a".as_ref(), disk::Stamp { seconds, nanos })
            .unwrap();
    }
    let rest = Duration::from_secs(30 * day as u64);
    let plan = plan(
        &place.home,
        &request(Which::Idle(rest)),
        &[],
        &Leases::default(),
        &place.context(),
    )
    .unwrap();
    let taken: Vec<&str> = plan.sessions.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(taken, ["rested"]);
    let left: Vec<_> = plan.left.iter().map(|l| (&*l.id, l.reason)).collect();
    assert_eq!(
        left,
        [("fresh", Reason::Active), ("future", Reason::Active)]
    );
    assert_eq!(plan.left[0].why, "active since 2024-05-17");
}
