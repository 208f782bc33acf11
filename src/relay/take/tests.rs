use std::cell::Cell;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use super::*;
use crate::disk::Dir;
use crate::home::testing::{self, Place};
use crate::home::{Device, LockedHome, RelayMode};
use crate::relay::{Lease, Said, Setting};

const ID: &str = "20240604_数据";
const LOG: &str = "sessions/20240604_数据/logs/run.log";

/// A home whose session differs from the relay's; the lease of it is held.
struct Two {
    place: Place,
    relay: tempfile::TempDir,
    device: Device,
}

impl Two {
    fn new() -> Two {
        let place = testing::home();
        place.put(&format!("sessions/{ID}/session.json"), "{}");
        place.put(&format!("sessions/{ID}/memory/笔记.md"), "here");
        place.put(LOG, "line\n");
        place.put(
            "index.json",
            &format!(r#"[{{"id": "{ID}", "sync_tag": "x"}}]"#),
        );
        let relay = tempfile::tempdir().unwrap();
        let there = relay.path().join(ID);
        std::fs::create_dir(&there).unwrap();
        std::fs::write(there.join("session.json"), "{}").unwrap();
        std::fs::write(there.join("new.md"), "there").unwrap();
        let device = Device::of_user(relay.path(), &place.context()).unwrap();
        let path = place.home.root().to_path_buf().into();
        let since = place.context().clock.now();
        let mut said = Said::first(&device.id, "host", place.home.id(), path, since);
        said.leases.insert(ID.to_owned(), Lease { epoch: 1, since });
        said.write(&Dir::open(relay.path()).unwrap()).unwrap();
        Two {
            place,
            relay,
            device,
        }
    }

    /// Takes the version, while `meanwhile` happens whenever it is asked who is at work, but for the first time.
    fn take(&self, meanwhile: &dyn Fn()) -> Result<Outcome> {
        let home: LockedHome = self.place.locked("relay take");
        let setting = Setting {
            dir: self.relay.path().to_path_buf(),
            mode: RelayMode::Clone,
            logs: false,
        };
        let mut relay = Relay::open(&home, &setting, self.device.clone())?;
        let request = Request {
            session: ID.to_owned(),
            sync_tag: None,
            force: true,
        };
        let context = self.place.context();
        let plan = plan(&home, &relay, &request, &[], &context)?;
        let agents = || {
            meanwhile();
            Ok(Vec::new())
        };
        apply(&home, &mut relay, plan, &request, &agents, &context)
    }

    fn log(&self, line: &str) {
        use std::io::Write as _;
        let path = self.place.home.root().join(LOG);
        let mut options = std::fs::File::options();
        let mut log = options.append(true).mode(0o600).open(path).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }

    fn is_as_before(&self) {
        let note = format!("sessions/{ID}/memory/笔记.md");
        assert_eq!(self.place.get(&note).as_deref(), Some("here"));
        for folder in [
            self.place.home.tmp(),
            self.place.home.trash(),
            self.place.home.journal(),
        ] {
            let names = crate::disk::read_dir_names(&folder).unwrap();
            assert!(names.is_empty(), "{names:?}");
        }
    }
}

#[test]
fn a_line_that_is_logged_meanwhile_is_in_the_session() {
    let two = Two::new();
    let times = Cell::new(0);
    let outcome = two.take(&|| {
        times.set(times.get() + 1);
        if times.get() == 1 {
            two.log("meanwhile\n");
        }
    });
    assert!(outcome.unwrap().act.is_some());
    assert_eq!(two.place.get(LOG).as_deref(), Some("line\nmeanwhile\n"));
}

#[test]
fn that_the_home_goes_on_being_written_to_is_said() {
    let two = Two::new();
    let error = two.take(&|| two.log("again\n")).unwrap_err().to_string();
    assert!(error.contains("is being written to"), "{error}");
    assert!(error.contains("主页/sessions/20240604_数据"), "{error}");
    two.is_as_before();
}

#[test]
fn whoever_begins_to_write_meanwhile_stops_it() {
    let two = Two::new();
    let child = Cell::new(None);
    let outcome = two.take(&|| {
        let path = two.place.home.root().join(LOG);
        let log = std::fs::File::options().append(true).open(path).unwrap();
        let mut sleep = Command::new("sleep");
        child.set(sleep.arg("600").stdout(Stdio::from(log)).spawn().ok());
    });
    let mut child = child.take().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.contains("has a file of it open for writing"),
        "{error}"
    );
    two.is_as_before();
}

#[test]
fn the_former_one_is_looked_at_once_more_where_it_was_put() {
    for meanwhile in [
        &|two: &Two| two.log("x"),
        &|two: &Two| drop(two.place.put(&format!("sessions/{ID}/new"), "x")),
        &|_: &Two| {},
    ] as [&dyn Fn(&Two); 3]
    {
        let two = Two::new();
        let home = two.place.locked("relay take");
        let id = SessionId::adopt(ID).unwrap();
        let context = two.place.context();
        let here = own(&home, &id, context.stop).unwrap().unwrap();
        let note = crate::home::trash::Note::default();
        let act = crate::home::trash::open(&home, note, &context).unwrap();
        meanwhile(&two);
        let changed = !own(&home, &id, context.stop).unwrap().unwrap().is_as(&here);
        let former = former::Former::new(&home, &id, &here, &act).unwrap();
        assert_eq!(former.put_away(&context).unwrap(), !changed);
        assert!(!home.session(&id).exists());
        assert!(former.refuse_lost().is_ok());
    }
}

/// It is taken by then.
#[test]
fn what_can_not_be_noted_after_it_is_told_and_does_not_hide_that() {
    let two = Two::new();
    let outcome = two.take(&|| {
        let file = two.place.home.relay_file();
        let newer = r#"{"format": 99, "relay": "/", "device": "x", "sessions": []}"#;
        if !file.exists() {
            std::fs::write(file, newer).unwrap();
        }
    });
    let outcome = outcome.unwrap();
    assert!(outcome.act.is_some());
    assert_eq!(outcome.left.len(), 1, "{:?}", outcome.left);
    assert!(outcome.left[0].contains("newer"), "{:?}", outcome.left);
}
