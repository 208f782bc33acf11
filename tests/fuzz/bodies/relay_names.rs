//! Any names of files in a session that is to travel: what some sync client would drop or take for another is told, and
//! the name that is suggested instead is not told again.
//!
//! A name a line.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wbhome::disk::{Dir, TEMPORARY_PREFIX};
use wbhome::home::{Device, Home, OnFind, RelayMode};
use wbhome::relay::sync::{self, Request};
use wbhome::relay::{BadName, Relay, Said, Setting};

use super::place::Place;

const ID: &str = "20240603_周报";

pub fn run(input: &[u8]) -> bool {
    let names: BTreeSet<&[u8]> = input
        .split(|byte| *byte == b'\n')
        .filter(|name| is_name(name))
        .take(12)
        .collect();
    let place = Place::new();
    let home = place.bare_home();
    let index = format!(r#"[{{"id": "{ID}", "status": "active", "sync_tag": "笔记本"}}]"#);
    place.put("主页/index.json", index);
    let folder = place.path(format!("主页/sessions/{ID}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in &names {
        std::fs::write(folder.join(OsStr::from_bytes(name)), "一").expect("a file");
    }
    let relay = relay(&place, &home);
    let told = bad_names(&place, &home, &relay);
    let bad: BTreeSet<&Path> = told.iter().map(|bad| &*bad.path).collect();
    let good = names.iter().filter_map(|name| str::from_utf8(name).ok());
    let good: Vec<&str> = good.filter(|name| !bad.contains(Path::new(name))).collect();
    let alike: BTreeSet<String> = good.iter().map(|name| name.to_lowercase()).collect();
    assert_eq!(alike.len(), good.len(), "two names are one elsewhere");
    for name in &good {
        let ends = |ending: &str| name.to_lowercase().ends_with(ending);
        assert!(!name.contains([':', '\\', '?']) && !name.chars().any(char::is_control));
        assert!(!ends(".tmp") && !ends(".") && !ends(" "));
    }
    for path in &bad {
        std::fs::remove_file(folder.join(path)).expect("it is there");
    }
    for name in told.iter().filter_map(|bad| bad.suggestion.as_deref()) {
        assert!(is_name(name.as_bytes()), "{name:?} can be no name");
        let path = folder.join(name);
        if std::fs::exists(&path).expect("it can be looked at") {
            continue;
        }
        std::fs::write(&path, "一").expect("a file");
        let again = bad_names(&place, &home, &relay);
        let again = again.iter().filter(|bad| *bad.path == *PathBuf::from(name));
        for bad in again {
            // Of two that are alike, one can be called otherwise; what is too long stays so.
            let is_alike = bad.why.contains("is the same as") || bad.why.contains("characters");
            assert!(is_alike, "{name:?} was suggested: {}", bad.why);
        }
        std::fs::remove_file(&path).expect("it is there");
    }
    !bad.is_empty() && !good.is_empty()
}

fn is_name(name: &[u8]) -> bool {
    let is_odd = |byte: &u8| matches!(byte, 0 | b'/');
    // What was left by a write that was killed is nobody's and does not travel.
    let is_left_over = name.starts_with(TEMPORARY_PREFIX.as_bytes());
    !is_left_over
        && !matches!(name, b"" | b"." | b"..")
        && name.len() <= 200
        && !name.iter().any(is_odd)
}

fn relay(place: &Place, home: &Home) -> Relay {
    let device = Device::of_user(&place.path("数据"), &place.context()).expect("a device");
    let path = place.path("中继");
    std::fs::create_dir(&path).expect("a folder");
    let dir = Dir::open(&path).expect("a folder");
    let since = device.created;
    let own = home.root().to_path_buf().into();
    let said = Said::first(&device.id, &device.name, home.id(), own, since);
    said.write(&dir).expect("it can be written");
    let setting = Setting {
        dir: path,
        mode: RelayMode::Clone,
        logs: true,
    };
    Relay::open(home, &setting, device).expect("a relay")
}

fn bad_names(place: &Place, home: &Home, relay: &Relay) -> Vec<BadName> {
    let request = Request {
        tag: None,
        ours: std::collections::BTreeSet::new(),
        check: None,
        search: false,
        all_may_leave: true,
        on_find: OnFind::Warn,
    };
    let plan = sync::plan(home, relay, &request, &place.context()).expect("a plan");
    let sessions = plan.told.sessions.into_iter();
    sessions.flat_map(|session| session.bad_names).collect()
}
