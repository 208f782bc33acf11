use super::*;
use crate::home::testing::{self, Place};
use crate::home::{Device, RelayMode};
use crate::relay::{Said, Setting, without_session};

const OTHER: &str = "ffffffffffffffffffffffffffffffff";

struct Shared {
    place: Place,
    folder: tempfile::TempDir,
    device: Device,
}

impl Shared {
    /// A home with two tagged sessions, bound to a relay.
    fn new() -> Shared {
        let place = testing::home();
        place.put("sessions/任务/context/turn_001.json", "{}");
        place.put(
            "index.json",
            r#"[{"id": "任务", "sync_tag": "x"}, {"id": "其他", "sync_tag": "x"}, {"id": "own"}]"#,
        );
        let folder = tempfile::tempdir().unwrap();
        let device = Device::of_user(folder.path(), &place.context()).unwrap();
        let shared = Shared {
            place,
            folder,
            device,
        };
        shared.say(&shared.device.id, |_| {});
        shared
    }

    fn say(&self, device: &str, change: impl FnOnce(&mut Said)) {
        let home = &self.place.home;
        let path = home.root().to_path_buf().into();
        let now = self.place.context().clock.now();
        let mut said = Said::first(device, "host", home.id(), path, now);
        change(&mut said);
        let relay = crate::disk::Dir::open(self.folder.path()).unwrap();
        said.write(&relay).unwrap();
    }

    fn open(&self) -> Relay {
        let setting = Setting {
            dir: self.folder.path().to_path_buf(),
            mode: RelayMode::Clone,
            logs: false,
        };
        Relay::open(&self.place.home, &setting, self.device.clone()).unwrap()
    }

    fn lease(&self, epoch: u64) -> Lease {
        let since = self.place.context().clock.now();
        Lease { epoch, since }
    }
}

fn ids(names: &[&str]) -> Vec<SessionId> {
    let adopt = |name: &&str| SessionId::adopt(name).unwrap();
    names.iter().map(adopt).collect()
}

#[test]
fn what_another_device_takes_in_the_same_moment_is_given_up() {
    let shared = Shared::new();
    let context = shared.place.context();
    let home = shared.place.locked("lease");
    let mut relay = shared.open();
    let both = ids(&["任务", "其他"]);
    let plan = plan(&home, &relay, &both, Wish::Take, &context).unwrap();
    // Of the same number, and the id is higher.
    let lease = shared.lease(1);
    shared.say(OTHER, |said| {
        said.leases.insert("任务".into(), lease);
    });
    let done = apply(&home, &mut relay, plan, &context).unwrap();
    let taken: Vec<_> = done.sessions.iter().map(|s| s.session.as_str()).collect();
    assert_eq!(taken, ["其他"]);
    assert_eq!(done.refused[0].session.as_str(), "任务");
    let own = relay.devices.own().unwrap();
    assert!(!own.leases.contains_key("任务") && own.leases.contains_key("其他"));
    assert_eq!(own.released["任务"], 1);
    assert!(relay.seen.at.is_some());
}

#[test]
fn a_lease_lapses_with_its_session() {
    let shared = Shared::new();
    let lease = || shared.lease(3);
    shared.say(&shared.device.id, |said| {
        for session in ["任务", "own", "removed", "theirs", "there", "../x"] {
            said.leases.insert(session.into(), lease());
        }
    });
    shared.say(OTHER, |said| {
        let sent = crate::relay::Sent {
            tag: "x".into(),
            at: lease().since,
            version: String::new(),
        };
        said.sessions.insert("theirs".into(), sent);
    });
    let there = shared.folder.path().join("there");
    crate::disk::create_private_folder(&there).unwrap();
    let mut relay = shared.open();
    let gone = without_session(&shared.place.home, &relay).unwrap();
    assert_eq!(gone, ["../x", "own", "removed"]);
    let gone = gone.iter().map(String::as_str);
    assert_eq!(give_up(&mut relay, gone).unwrap().len(), 3);
    let own = relay.devices.own().unwrap();
    assert_eq!(own.leases.len(), 3);
    assert_eq!(own.released["removed"], 3);
    assert!(
        without_session(&shared.place.home, &relay)
            .unwrap()
            .is_empty()
    );
    assert!(give_up(&mut relay, ["nobody's"]).unwrap().is_empty());
}

#[test]
fn a_number_that_nobody_can_exceed_is_refused() {
    let shared = Shared::new();
    let context = shared.place.context();
    let lease = shared.lease(HIGHEST);
    shared.say(OTHER, |said| {
        said.leases.insert("任务".into(), lease);
        said.released.insert("其他".into(), HIGHEST);
    });
    let relay = shared.open();
    let both = ids(&["任务", "其他"]);
    for (wish, refused) in [(Wish::Take, 2), (Wish::Steal, 2), (Wish::Release, 1)] {
        let plan = plan(&shared.place.home, &relay, &both, wish, &context).unwrap();
        assert_eq!(plan.refused.len(), refused, "{wish:?}");
    }
}

/// A file that a sync client is in the middle of writing, or has removed to put another in its place, does not let a
/// lease fall.
#[test]
fn a_torn_file_says_what_it_said_before() {
    let shared = Shared::new();
    let context = shared.place.context();
    let home = shared.place.locked("lease");
    let lease = shared.lease(1);
    shared.say(OTHER, |said| {
        said.leases.insert("任务".into(), lease);
    });
    note(&home, &mut shared.open(), &context).unwrap();
    let file = shared.folder.path().join(format!(".leases/{OTHER}.json"));
    crate::disk::overwrite(&file, b"{\"format\"").unwrap();
    let mut relay = shared.open();
    assert!(relay.devices.held_elsewhere("任务").is_some());
    assert_eq!(relay.devices.strange.len(), 1);
    // What is noted now holds it still.
    note(&home, &mut relay, &context).unwrap();
    assert!(shared.open().devices.held_elsewhere("任务").is_some());
    crate::disk::remove_file(&file).unwrap();
    let mut relay = shared.open();
    assert!(relay.devices.held_elsewhere("任务").is_some() && relay.devices.is_gone(OTHER));
    let gone_since = |relay: &Relay, now| {
        let holder = relay.devices.holder("任务").unwrap();
        let claimants = Claimants::of(&relay.devices, &relay.seen, now);
        claimants.claim(holder).gone_since
    };
    let (now, later) = (lease_at(100), lease_at(200));
    assert_eq!(gone_since(&relay, now), Some(now));
    note(&home, &mut relay, &context).unwrap();
    let noted = Some(context.clock.now());
    assert_eq!(gone_since(&shared.open(), later), noted);
    note(&home, &mut shared.open(), &context).unwrap();
    assert_eq!(gone_since(&shared.open(), later), noted);
    // It comes back, and says nothing more.
    shared.say(OTHER, |_| {});
    let relay = shared.open();
    assert!(relay.devices.holder("任务").is_none() && !relay.devices.is_gone(OTHER));
    // Whoever wants to be rid of it removes what was noted.
    crate::disk::remove_file(&file).unwrap();
    crate::disk::remove_file(&home.leases_file()).unwrap();
    assert_eq!(shared.open().devices.all().count(), 1);
}

fn lease_at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::new(second, 0).unwrap()
}

/// Whatever another device says of a session, the lease of one that has left this home goes; that of one which is still
/// to come stays.
#[test]
fn a_lease_goes_with_the_session_and_not_before_it_came() {
    let shared = Shared::new();
    let context = shared.place.context();
    let home = shared.place.locked("lease");
    let sessions = ["任务", "其他", "来的"];
    let lease = shared.lease(1);
    shared.say(OTHER, |said| {
        for session in sessions {
            let sent = crate::relay::Sent {
                tag: "x".into(),
                at: lease.since,
                version: String::new(),
            };
            said.sessions.insert(session.into(), sent);
        }
    });
    shared.say(&shared.device.id, |said| {
        for session in sessions {
            said.leases.insert(session.into(), lease.clone());
        }
    });
    let gone = || without_session(&home, &shared.open()).unwrap();
    note(&home, &mut shared.open(), &context).unwrap();
    assert!(gone().is_empty());
    // Moved to another name; archived.
    shared.place.put(
        "index.json",
        r#"[{"id": "新名", "sync_tag": "x"}, {"id": "其他", "sync_tag": "x", "status": "archived"}]"#,
    );
    assert_eq!(gone(), ["任务", "其他"]);
    note(&home, &mut shared.open(), &context).unwrap();
    assert_eq!(gone(), ["任务", "其他"]);
    // It came, and went again.
    shared
        .place
        .put("index.json", r#"[{"id": "来的", "sync_tag": "x"}]"#);
    note(&home, &mut shared.open(), &context).unwrap();
    shared.place.put("index.json", "[]");
    assert_eq!(gone(), ["任务", "其他", "来的"]);
}

/// A claim that a thief has overtaken is nobody's after the thief has let go of it, and can be taken anew.
#[test]
fn an_overtaken_claim_is_given_up_or_taken_anew() {
    let shared = Shared::new();
    let context = shared.place.context();
    let lease = shared.lease(1);
    shared.say(&shared.device.id, |said| {
        said.leases.insert("任务".into(), lease);
    });
    shared.say(OTHER, |said| {
        said.released.insert("任务".into(), 2);
    });
    let relay = shared.open();
    let lost = overtaken(&relay.devices);
    assert!(lost.len() == 1 && lost[0].2.is_none());
    let one = ids(&["任务"]);
    for (wish, change, epoch) in [
        (Wish::Take, Change::Taken, 3),
        (Wish::Steal, Change::Taken, 3),
        (Wish::Release, Change::GivenUp, 1),
    ] {
        let plan = plan(&shared.place.home, &relay, &one, wish, &context).unwrap();
        let step = &plan.sessions[0];
        assert_eq!((step.change, step.epoch), (change, Some(epoch)), "{wish:?}");
    }
    assert!(relay.refuse_unleased("任务", &context).is_err());
}
