use super::*;
use crate::base::Kind;
use crate::home::testing;
use crate::home::{Home, SessionId, Trust};

fn entry(id: &str) -> Map<String, Value> {
    let mut entry = Entry::new(&SessionId::adopt(id).unwrap());
    entry.set("project", "项目");
    entry.fields().clone()
}

fn steps(id: &str) -> Vec<Step> {
    vec![
        Step::Rename {
            from: ".wbhome/tmp/new-1".into(),
            to: format!("sessions/{id}"),
        },
        Step::Entry { entry: entry(id) },
        Step::Views {
            ids: Some(vec![id.into()]),
        },
    ]
}

/// A command that built its folder, wrote its intent and was killed.
fn killed(place: &testing::Place, id: &str) {
    let home = place.locked("new");
    place.put(".wbhome/tmp/new-1/session.json", "{}");
    drop(begin(&home, "new", steps(id), &place.context()).unwrap());
}

#[test]
fn the_next_lock_completes_what_was_begun_and_says_so() {
    let place = testing::home();
    killed(&place, "数据");
    let home = place.locked("ls");
    let [settled] = home.settled() else {
        panic!("{:?}", home.settled());
    };
    assert_eq!(settled.command.as_deref(), Some("new"));
    assert_eq!(
        settled.did,
        [
            "put sessions/数据 in its place",
            "indexed 数据",
            "set 1 project view"
        ]
    );
    assert!(place.get("projects/项目/数据/session.json").is_some());
    assert!(Index::read(&home).unwrap().find("数据").is_some());
    drop(home);
    assert!(place.locked("ls").settled().is_empty());
}

#[test]
fn steps_may_be_done_any_number_of_times() {
    let place = testing::home();
    let home = place.locked("new");
    place.put(".wbhome/tmp/new-1/session.json", "{}");
    for n in 0..3 {
        let pending = begin(&home, "new", steps("a"), &place.context()).unwrap();
        let did = pending.complete(&home, &place.context()).unwrap();
        assert_eq!(did.len(), if n == 0 { 3 } else { 0 });
    }
    assert_eq!(disk::read_dir_names(&home.journal()).unwrap(), []);
}

#[test]
fn what_finds_its_place_taken_goes_to_the_trash() {
    let place = testing::home();
    let home = place.locked("new");
    place.put(".wbhome/tmp/new-1/session.json", "ours");
    place.put("sessions/a/session.json", "theirs");
    let pending = begin(&home, "new", steps("a"), &place.context()).unwrap();
    let did = pending.complete(&home, &place.context()).unwrap();
    assert!(did[0].contains("was taken meanwhile"), "{did:?}");
    assert_eq!(place.get("sessions/a/session.json").unwrap(), "theirs");
    let kept = ".wbhome/trash/20240615T120000Z/.wbhome/tmp/new-1/session.json";
    assert_eq!(place.get(kept).unwrap(), "ours");
}

#[test]
fn a_broken_index_does_not_keep_the_lock_from_whoever_would_mend_it() {
    let place = testing::home();
    killed(&place, "a");
    place.put("index.json", "[{");
    let home = place.locked("index");
    let pending = home.settled()[0].pending.as_deref().unwrap();
    assert!(pending.contains("line 1"), "{pending}");
    drop(home);
    assert!(place.get(".wbhome/tmp/new-1/session.json").is_some());
    place.put("index.json", "[]");
    assert_eq!(place.locked("index").settled()[0].did.len(), 3);
}

#[test]
fn nothing_is_settled_in_a_home_that_was_merely_found() {
    let place = testing::home();
    killed(&place, "a");
    let found = Home::open(place.home.root(), Trust::Found).unwrap();
    let lock = found.lock(std::time::Duration::ZERO, "label", &place.context());
    let error = lock.unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    assert!(error.hints()[0].contains("--home"), "{error:?}");
    place.locked("label");
    let lock = found.lock(std::time::Duration::ZERO, "label", &place.context());
    lock.unwrap();
}

#[test]
fn a_journal_can_not_reach_out_of_the_home() {
    let place = testing::home();
    let outside = place.home.root().parent().unwrap().join("outside");
    disk::create_private_folder(&outside).unwrap();
    disk::symlink(&outside, &place.home.root().join("agents/out")).unwrap();
    place.put("sessions/a/x", "");
    for (from, to) in [
        ("sessions/a", "../outside/a"),
        ("../outside", "sessions/b"),
        ("sessions/a", "agents/out/a"),
        ("/etc", "sessions/b"),
    ] {
        let (from, to) = (from.into(), to.into());
        let home = place.locked("test");
        let steps = vec![Step::Rename { from, to }];
        // What leads out by its letters is not even written down; what does so by a link is not followed.
        if let Ok(pending) = begin(&home, "test", steps.clone(), &place.context()) {
            pending.forget().unwrap();
        }
        assert_eq!(disk::read_dir_names(&home.journal()).unwrap(), []);
        let pending = Pending {
            path: home.journal().join("by hand.json"),
            record: Record {
                command: "test".into(),
                since: String::new(),
                steps,
            },
        };
        assert!(pending.complete(&home, &place.context()).is_err());
    }
    assert_eq!(disk::read_dir_names(&outside).unwrap(), []);
    assert!(place.get("sessions/a/x").is_some());
}

#[test]
fn a_journal_can_not_have_anything_removed_that_nobody_compared() {
    let place = testing::home();
    place.put("sessions/数据/session.json", "the only one");
    place.put("sessions/b/session.json", "another");
    place.put(".wbhome/trash/x/a", "in the trash");
    let root = Dir::open(place.home.root()).unwrap();
    let seen = |rel: &str| mend::Seen::of(&mend::look(&root, Path::new(rel)).unwrap().unwrap());
    let exact = |rel: &str| Path::new(rel).to_path_buf().into();
    let rename = |to: &str| Step::Rename {
        from: "sessions/数据".into(),
        to: to.into(),
    };
    let back = |path: &str| Step::Mend {
        step: Mend::BringBack {
            act: "x".into(),
            lies: exact("a"),
            path: exact(path),
        },
    };
    let discard = |path: &str, kept_in: &str| Step::Mend {
        step: Mend::Discard {
            path: exact(path),
            seen: seen(path),
            kept_in: exact(kept_in),
            kept_seen: seen(kept_in),
        },
    };
    for step in [
        // What is there is removed by the next command that takes the lock.
        rename(".wbhome/tmp/数据"),
        rename("./.wbhome/tmp"),
        rename(".wbhome/journal/x.json"),
        rename(".wbhome"),
        rename(""),
        back(".wbhome/tmp/a"),
        discard("sessions/数据/session.json", "sessions/b/session.json"),
        discard("sessions/数据", "sessions/b"),
        discard(".wbhome/trash/x/a", "sessions/b"),
    ] {
        let home = place.locked("test");
        assert!(begin(&home, "test", vec![step.clone()], &place.context()).is_err());
        let pending = Pending {
            path: home.journal().join("by hand.json"),
            record: Record {
                command: "test".into(),
                since: String::new(),
                steps: vec![step],
            },
        };
        assert!(pending.complete(&home, &place.context()).is_err());
        drop(home);
        drop(place.locked("ls"));
        let session = place.get("sessions/数据/session.json");
        assert_eq!(session.as_deref(), Some("the only one"));
        assert!(place.get(".wbhome/trash/x/a").is_some());
    }
}

#[test]
fn leftovers_of_killed_writes_go_to_the_trash_and_of_building_away() {
    let place = testing::home();
    place.put(".wbhome-tmp-0123", "an edit by hand");
    place.put(".wbhome/journal/.wbhome-tmp-4567", "");
    place.put(".wbhome/tmp/new-7/session.json", "{}");
    let home = place.locked("ls");
    assert_eq!(home.settled()[0].did.len(), 2);
    let kept = ".wbhome/trash/20240615T120000Z/.wbhome-tmp-0123";
    assert_eq!(place.get(kept).unwrap(), "an edit by hand");
    assert_eq!(disk::read_dir_names(&home.tmp()).unwrap(), []);
    drop(home);
    place.put(".wbhome/journal/x.json", "{\"steps\": [{\"do\": \"fly\"}]}");
    let lock = place
        .home
        .lock(std::time::Duration::ZERO, "ls", &place.context());
    assert!(lock.unwrap_err().to_string().contains("journal entry"));
}

#[test]
fn a_leftover_that_can_not_be_put_away_stays_and_keeps_nobody_out() {
    let place = testing::home();
    let left = place.put("archive/.wbhome-tmp-0123", "half a pack");
    place.put(".wbhome/trash", "no folder");
    let home = place.locked("ls");
    let did = &home.settled()[0].did;
    assert!(
        did[0].starts_with("left archive/.wbhome-tmp-0123: "),
        "{did:?}"
    );
    assert!(disk::exists(&left));
}

#[test]
fn what_can_not_be_put_away_leaves_no_act() {
    let place = testing::home();
    let home = place.locked("rm");
    let gone = RelPath::new("sessions/数据/gone").unwrap();
    assert!(trash::put(&home, &gone, "why", &place.context()).is_err());
    assert_eq!(disk::read_dir_names(&home.trash()).unwrap(), []);
}
