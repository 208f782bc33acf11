//! Homes of somebody else, on a disk that can not be written, and of a person whose mask lets everybody in.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};

use super::support::home::HOME;
use super::support::mount::Mount;
use super::support::verbs::{CHANGING, LOOKING, Siege, VICTIM};
use super::support::{has_tool, is_root};
use super::{at, within};

/// Nobody, and somebody else.
const NOBODY: u32 = 65534;
const SOMEBODY: u32 = 54321;

/// Gives a tree to a user.
fn give(root: &std::path::Path, to: u32) {
    for entry in walkdir::WalkDir::new(root) {
        lchown(entry.unwrap().path(), Some(to), Some(to)).unwrap();
    }
}

/// Runs as a user who has nothing here; `None`, and said so, where that can not be had.
fn as_nobody(siege: &mut Siege) -> Option<()> {
    if !is_root() || !has_tool("setpriv") {
        return None;
    }
    let before = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    siege.before = before.map(str::to_owned).to_vec();
    let ran = siege.run(&["--version"]);
    if ran.code != Some(0) {
        eprintln!("SKIPPED: another user can not run the program");
        return None;
    }
    Some(())
}

/// Everything that is somebody else's may be read and not written; what may not be read is named.
#[test]
fn of_another_user() {
    let mut s = Siege::new("another user's");
    if as_nobody(&mut s).is_none() {
        return;
    }
    let root = s.place.root();
    give(&root, SOMEBODY);
    for folder in [root.clone(), root.join("me"), s.place.home()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(
        within(&s, "memory/notes.md"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let before = super::support::tree(&root);
    s.outside.watch();
    s.runs(LOOKING);
    s.runs(CHANGING);
    let after = super::support::tree(&root);
    assert_eq!(super::support::differences(&before, &after), "");
    s.end();
}

/// One that everybody may write to: what is made there belongs to who made it, and nothing outside is touched.
#[test]
fn of_another_user_that_everybody_may_write_to() {
    let mut s = Siege::new("everybody's");
    if as_nobody(&mut s).is_none() {
        return;
    }
    let root = s.place.root();
    give(&root, SOMEBODY);
    for entry in walkdir::WalkDir::new(&root) {
        let entry = entry.unwrap();
        let outside = entry.path().starts_with(&s.outside.root);
        let mode = match (entry.file_type().is_dir(), outside) {
            (true, true) => 0o755,
            (false, true) => 0o644,
            (true, false) => 0o777,
            (false, false) => 0o666,
        };
        if !entry.file_type().is_symlink() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    s.outside.watch();
    s.runs(LOOKING);
    s.runs(CHANGING);
    s.end();
}

/// Root that works in somebody's home leaves nothing there that they can not get rid of.
#[test]
fn of_a_user_for_whom_root_works() {
    if !is_root() {
        return;
    }
    let mut s = Siege::new("for a user");
    give(&s.place.root(), NOBODY);
    s.outside.watch();
    s.runs(LOOKING);
    s.end();
}

/// Whoever looks needs no right to write; whoever changes is refused, with the place.
#[test]
fn on_a_disk_that_can_not_be_written() {
    let mut s = Siege::new("read-only");
    let Some(mount) = Mount::memory(s.place.path("disk"), "64m") else {
        return;
    };
    fs::rename(s.place.home(), s.place.path("was")).unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([s.place.path("was"), mount.at.join("home")])
        .status();
    assert!(copied.unwrap().success());
    std::os::unix::fs::symlink(mount.at.join("home"), s.place.path(HOME)).unwrap();
    mount.remount("ro");
    let before = super::support::tree(&mount.at);
    s.outside.watch();
    s.runs(LOOKING);
    for args in [
        &["ls"][..],
        &["show", VICTIM],
        &["search", "一"],
        &["check"],
        &["du"],
        &["path", VICTIM],
    ] {
        let ran = s.run(args);
        assert_eq!(ran.code, Some(0), "{args:?} {ran:#?}");
    }
    s.runs(CHANGING);
    for args in [
        &["label", VICTIM, "--tag", "x"][..],
        &["new", "x"],
        &["archive", VICTIM],
        &["rm", VICTIM],
        &["commit"],
    ] {
        let ran = s.run(args);
        assert_eq!(ran.code, Some(1), "{args:?} {ran:#?}");
        assert!(
            ran.stderr.contains("Read-only") || ran.stderr.contains("read-only"),
            "{args:?} {ran:#?}"
        );
    }
    let after = super::support::tree(&mount.at);
    assert_eq!(super::support::differences(&before, &after), "");
    s.end();
}

/// A mask that lets everybody in is a person's own; what is the home's own is still its owner's alone.
#[test]
fn with_a_mask_of_zero() {
    let mut s = Siege::new("umask 000");
    s.before = ["sh", "-c", "umask 000; exec \"$@\"", "sh"]
        .map(str::to_owned)
        .to_vec();
    s.outside.watch();
    s.runs(LOOKING);
    s.runs(CHANGING);
    let mut open = Vec::new();
    for top in [
        at(&s, ""),
        s.place.path("store"),
        s.place.path("anew"),
        s.place.path("moved"),
        s.place.path("exported"),
        s.place.path("fetched"),
        s.place.path("beside"),
        s.place.path("relay"),
    ] {
        // What libgit2 makes in a repository has the mask's modes. Nobody else gets that far.
        let walk = walkdir::WalkDir::new(&top).into_iter();
        let closed = |entry: &walkdir::DirEntry| {
            let mode = entry.metadata().map_or(0, |meta| meta.mode());
            entry.file_name() == ".git" && entry.depth() > 0 && mode & 0o077 == 0
        };
        for entry in walk
            .filter_entry(|entry| !closed(entry))
            .filter_map(Result::ok)
        {
            let meta = entry.path().symlink_metadata().unwrap();
            if !meta.is_symlink() && meta.mode() & 0o022 != 0 {
                open.push(format!("{:o} {}", meta.mode(), entry.path().display()));
            }
        }
    }
    s.end();
    assert!(
        open.is_empty(),
        "everybody may write to\n{}",
        open.join("\n")
    );
}
