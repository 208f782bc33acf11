use super::*;
use crate::home::journal::{self, Step};
use crate::home::testing::{self, Place as Home};
use crate::home::trash::{Note, Was};

const COPY: &str = "sessions/数据/a (1).md";

/// A home with a file and its copy, and an act.
fn place() -> (Home, String) {
    let place = testing::home();
    place.put("sessions/数据/a.md", "一二");
    place.put(COPY, "一");
    let note = Note {
        was: vec![Was::new(COPY)],
        ..Note::default()
    };
    let act = trash::open(&place.locked("check"), note, &place.context()).unwrap();
    (place, act)
}

fn seen(place: &Home, path: &str) -> Seen {
    let root = Dir::open(place.home.root()).unwrap();
    Seen::of(&look(&root, Path::new(path)).unwrap().unwrap())
}

fn exact(path: &str) -> ExactPath {
    ExactPath(path.into())
}

fn put_away(place: &Home, act: &str) -> Mend {
    Mend::PutAway {
        path: exact(COPY),
        act: act.to_owned(),
        lies: exact(COPY),
        seen: seen(place, COPY),
        held_by: Some(exact("sessions/数据/a.md")),
    }
}

/// Does steps as they are done after a kill: read from the journal.
fn run(place: &Home, steps: &[Mend]) -> Vec<String> {
    let text = serde_json::to_string(steps).unwrap();
    let steps: Vec<Mend> = serde_json::from_str(&text).unwrap();
    let steps = steps.into_iter().map(|step| Step::Mend { step }).collect();
    let home = place.locked("check");
    let pending = journal::begin(&home, "check", steps, &place.context()).unwrap();
    pending.complete(&home, &place.context()).unwrap()
}

#[test]
fn a_step_that_was_done_does_nothing() {
    let (place, act) = place();
    let step = put_away(&place, &act);
    assert_eq!(run(&place, std::slice::from_ref(&step)).len(), 1);
    assert_eq!(run(&place, &[step]), [""; 0]);
    assert_eq!(place.get(COPY), None);
    let back = Mend::BringBack {
        act: act.clone(),
        lies: exact(COPY),
        path: exact(COPY),
    };
    let steps = [back, Mend::Close { act: act.clone() }];
    assert_eq!(run(&place, &steps).len(), 1);
    assert_eq!(run(&place, &steps), [""; 0]);
    assert_eq!(place.get(COPY).unwrap(), "一");
    assert!(trash::act(&place.home, &act).is_none());
}

#[test]
fn what_has_changed_meanwhile_is_left() {
    let (place, act) = place();
    let step = put_away(&place, &act);
    place.put(COPY, "二");
    let said = run(&place, std::slice::from_ref(&step));
    assert_eq!(said, [format!("left {COPY}: it has changed meanwhile")]);
    // The original is not what it was.
    let step = put_away(&place, &act);
    let said = run(&place, std::slice::from_ref(&step));
    assert_eq!(
        said,
        [format!("left {COPY}: it is not all in sessions/数据/a.md")]
    );
    place.put("sessions/数据/a.md", "二");
    disk::remove_file(&place.home.root().join("sessions/数据/a.md")).unwrap();
    assert_eq!(run(&place, &[step]).len(), 1, "it is gone");
    assert_eq!(place.get(COPY).unwrap(), "二");
}

#[test]
fn nothing_is_copied_or_brought_back_over_what_is_there() {
    let (place, act) = place();
    let copy = Mend::Copy {
        from: exact(COPY),
        seen: seen(&place, COPY),
        path: exact("sessions/数据/a.md"),
        instead: None,
    };
    run(&place, &[copy, put_away(&place, &act)]);
    assert_eq!(place.get("sessions/数据/a.md").unwrap(), "一二");
    place.put(COPY, "new");
    let back = Mend::BringBack {
        act: act.clone(),
        lies: exact(COPY),
        path: exact(COPY),
    };
    let said = run(&place, &[back, Mend::Close { act: act.clone() }]);
    assert!(
        said[0].starts_with(&format!(
            "left {COPY}: something else has its place meanwhile"
        )),
        "{said:?}"
    );
    assert_eq!(place.get(COPY).unwrap(), "new");
    let kept = format!(".wbhome/trash/{act}/{COPY}");
    assert_eq!(place.get(&kept).unwrap(), "一");
}

#[test]
fn a_path_that_leads_out_is_refused() {
    let (place, _) = place();
    for (act, path) in [("../..", "a"), ("x", "../a"), ("x", "/etc/passwd")] {
        let step = Mend::BringBack {
            act: act.to_owned(),
            lies: exact("a"),
            path: exact(path),
        };
        let home = place.locked("check");
        let steps = vec![Step::Mend { step }];
        let error = journal::begin(&home, "check", steps, &place.context()).unwrap_err();
        assert!(error.to_string().contains("outside of the home"), "{error}");
        // Nothing is left that the next command would stumble over.
        assert!(disk::read_dir_names(&home.journal()).unwrap().is_empty());
    }
}
