//! What happens between the look and the writing: somebody writes meanwhile.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::home::testing;

const ID: &str = "20240603_数据";

fn token() -> String {
    ["ghp", "_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat()
}

struct Exported {
    place: testing::Place,
    to: tempfile::TempDir,
    done: Result<Done>,
}

impl Exported {
    fn names(&self) -> Vec<String> {
        let names = disk::read_dir_names(self.to.path()).unwrap();
        names
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }
}

/// Exports a session (none) or something in it, with `meanwhile` between the look and the writing.
fn export(path: Option<&str>, meanwhile: impl FnOnce(PathBuf)) -> Exported {
    let place = testing::home();
    let root = format!("sessions/{ID}");
    let turn = place.put(&format!("{root}/context/turn_001.json"), "{\"a\": 1}\n");
    place.put(&format!("{root}/context/turn_002.json"), "{}\n");
    let to = tempfile::tempdir().unwrap();
    let wanted = Wanted {
        id: SessionId::adopt(ID).unwrap(),
        path: path.map(|path| RelPath::new(path).unwrap()),
    };
    let request = Request {
        items: Vec::new(),
        to: to.path().to_path_buf(),
        logs: false,
        on_find: OnFind::Refuse,
        level: 3,
    };
    let check = Check::load(None, &[]).unwrap();
    let context = place.context();
    let done = {
        let export = Export::begin(&place.home, &request, &check, &context).unwrap();
        let ready = export.prepare(&wanted, &BTreeSet::new()).unwrap();
        assert!(!ready.is_held(&request));
        meanwhile(turn);
        export.write(ready)
    };
    Exported { place, to, done }
}

const ALL: [Option<&str>; 3] = [None, Some("context"), Some("context/turn_001.json")];

#[test]
fn a_secret_that_comes_in_meanwhile_stays_here() {
    for path in ALL {
        let did = export(path, |turn| {
            fs::write(turn, format!("{{\"{}\"}}", token())).unwrap()
        });
        let Ok(Done::HeldBack(item)) = &did.done else {
            panic!("{path:?}: it went");
        };
        assert_eq!(item.findings.len(), 1);
        assert_eq!(did.names(), [""; 0], "{path:?}");
    }
}

#[test]
fn what_is_appended_meanwhile_stays_here() {
    for path in ALL {
        let did = export(path, |turn| {
            fs::write(turn, format!("{{\"a\": 1}}\n{}\n", token())).unwrap();
        });
        let Ok(Done::Exported(item)) = &did.done else {
            panic!("{path:?}: it stayed");
        };
        assert_eq!(item.being_written.len(), 1, "{path:?}");
        assert!(item.findings.is_empty());
        let name = match path {
            Some("context") => "context/turn_001.json",
            Some(_) => "turn_001.json",
            None => continue,
        };
        let there = fs::read_to_string(did.to.path().join(name)).unwrap();
        assert_eq!(there, "{\"a\": 1}\n");
        drop(did.place);
    }
}

#[test]
fn what_is_written_anew_meanwhile_is_looked_at_anew_and_goes() {
    for path in ALL {
        let did = export(path, |turn| fs::write(turn, "{\"b\": 1}\n").unwrap());
        let Ok(Done::Exported(item)) = &did.done else {
            panic!("{path:?}: it stayed");
        };
        assert!(item.being_written.is_empty());
        assert_eq!(did.names().len(), 1);
        if path == Some("context/turn_001.json") {
            let there = fs::read_to_string(did.to.path().join("turn_001.json")).unwrap();
            assert_eq!(there, "{\"b\": 1}\n");
        }
    }
}

#[test]
fn what_is_removed_meanwhile() {
    let did = export(None, |turn| fs::remove_file(turn).unwrap());
    let Ok(Done::Exported(item)) = &did.done else {
        panic!("it stayed");
    };
    assert_eq!(item.files, 1);
    for path in &ALL[1..] {
        let did = export(*path, |turn| fs::remove_file(turn).unwrap());
        let error = did.done.as_ref().err().unwrap();
        assert!(error.to_string().contains("changed each time"), "{error}");
        assert_eq!(did.names(), [""; 0]);
    }
}

#[test]
fn a_name_that_is_taken_meanwhile_is_left_alone() {
    for path in ALL {
        let place = testing::home();
        place.put(&format!("sessions/{ID}/context/turn_001.json"), "{}");
        let to = tempfile::tempdir().unwrap();
        let wanted = Wanted {
            id: SessionId::adopt(ID).unwrap(),
            path: path.map(|path| RelPath::new(path).unwrap()),
        };
        let request = Request {
            items: Vec::new(),
            to: to.path().to_path_buf(),
            logs: false,
            on_find: OnFind::Refuse,
            level: 3,
        };
        let check = Check::load(None, &[]).unwrap();
        let context = place.context();
        let export = Export::begin(&place.home, &request, &check, &context).unwrap();
        let ready = export.prepare(&wanted, &BTreeSet::new()).unwrap();
        let taken = to.path().join(&ready.name);
        fs::write(&taken, "mine").unwrap();
        let error = export.write(ready).err().unwrap();
        assert!(error.to_string().contains("is there already"), "{error}");
        assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
        assert_eq!(disk::read_dir_names(to.path()).unwrap().len(), 1);
    }
}
