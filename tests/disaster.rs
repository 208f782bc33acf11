//! `wbhome restore --all`: the home is gone, and comes back from a store, and from the repository that survived.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it breaks what it has laid out, and says what does not fit"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::{Entry, Place, Ran, differences, tree};

/// The store of a test.
const STORE: &str = "cold/主页";

/// Where the home comes back.
const BACK: &str = "back/新家";

/// A later moment than that of the tests.
const LATER: &str = "2024-06-16T03:00:00Z";

trait Disaster {
    fn backed_up() -> Place;
    fn at(&self, now: &str, args: &[&str]) -> Ran;
    fn lose_home(&self) -> PathBuf;
    fn restore(&self, more: &[&str]) -> Ran;
    fn back(&self) -> PathBuf;
}

impl Disaster for Place {
    /// A home with sessions, an archive, agents, a folder of somebody's and odd names, backed up.
    fn backed_up() -> Place {
        let place = Place::with_sessions();
        place.session("20240601_旧任务", 1);
        place.ok(["index", "-q"]);
        place.ok([
            "label",
            "20240603_crawler",
            "--tag",
            "爬虫",
            "--project",
            "alpha",
            "-q",
        ]);
        place.ok(["archive", "20240601_旧任务", "-q"]);
        place.put_home("agents/研究/agent.yaml", "name: research\n");
        place.put_home("资料/a b/x.csv", "1,2\n");
        place.put_home("README.md", "mine\n");
        place.put_home("sessions/20240603_crawler/logs/run.log", vec![0; 70_000]);
        let odd = place.put_home("sessions/20240603_crawler/artifacts/run.sh", "#!/bin/sh\n");
        std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let link = place
            .home()
            .join("sessions/20240603_crawler/artifacts/same.sh");
        std::fs::hard_link(&odd, link).unwrap();
        std::os::unix::fs::symlink("../nowhere", place.home().join("资料/link")).unwrap();
        place.date("20240603_crawler", 3);
        place.ok(["backup", "init", STORE, "-q"]);
        place.ok(["backup", "run", "-q"]);
        place
    }

    fn at(&self, now: &str, args: &[&str]) -> Ran {
        self.run_with(&[("WBHOME_NOW", now)], args)
    }

    /// The home is gone from its place; where it is now.
    fn lose_home(&self) -> PathBuf {
        let lost = self.path("lost");
        std::fs::rename(self.home(), &lost).unwrap();
        lost
    }

    fn restore(&self, more: &[&str]) -> Ran {
        let args = ["restore", "--all", "--from", STORE, "--to", BACK];
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        self.at(LATER, &args)
    }

    fn back(&self) -> PathBuf {
        self.path(BACK)
    }
}

/// A home as a backup keeps it: without what the tool makes again, and without the repository.
fn kept(root: &Path) -> BTreeMap<Vec<u8>, Entry> {
    let mut tree = tree(root);
    let made_again = ["lock", "cache.json", "tmp", "trash", "journal"];
    tree.retain(|name, _| {
        let name = String::from_utf8_lossy(name);
        let own = name.strip_prefix(".wbhome/").unwrap_or_default();
        !made_again
            .iter()
            .any(|made| own == *made || own.starts_with(&format!("{made}/")))
            && name != ".git"
            && !name.starts_with(".git/")
    });
    tree
}

#[track_caller]
fn same(one: &Path, other: &Path) {
    let (one, other) = (kept(one), kept(other));
    assert!(one == other, "{}", differences(&one, &other));
}

#[test]
fn the_home_comes_back_as_it_was() {
    let place = Place::backed_up();
    let lost = place.lose_home();
    let ran = place.restore(&[]);
    ran.expect(0);
    same(&lost, &place.back());
    assert_eq!(ran.stderr, "");
    for part in [
        "sessions           4",
        "1 as archives",
        "relink",
        "backup adopt",
        "check",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:#?}");
    }
    // It is a home, and nothing is wrong in it.
    let back = place.back();
    let home = ["--home", back.to_str().unwrap()];
    place.at(LATER, &[home[0], home[1], "check"]).expect(0);
    let listed = place.json([home[0], home[1], "ls"]);
    assert_eq!(listed["stale"], false, "{listed}");
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 4);
    // And its archive is one.
    place.ok([home[0], home[1], "unarchive", "旧任务", "-q"]);
    // It may be restored into its own place, too, and then nothing has moved.
    let ran = place.at(
        LATER,
        &[
            "restore",
            "--all",
            "--from",
            STORE,
            "--to",
            support::home::HOME,
        ],
    );
    ran.expect(0);
    assert!(!ran.stdout.contains("relink"), "{ran:#?}");
    place.at(LATER, &["backup", "run"]).expect(0);
}
