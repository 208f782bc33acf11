//! Packs that other programs made come out as they went in.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::testing::{by_hand, tool, unpacked, with};
use super::{list, read_member, verify};

/// A small tree with everything that a session can hold.
fn lay_out(root: &Path) {
    let write = |name: &str, content: &[u8]| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("session.json", b"{}");
    write("context/turn_001.json", "第一轮".as_bytes());
    write("artifacts/empty", b"");
    write(
        "artifacts/large.bin",
        &(0..3_000_000u32)
            .map(|n| (n.wrapping_mul(n) >> 7) as u8)
            .collect::<Vec<_>>(),
    );
    std::fs::hard_link(root.join("session.json"), root.join("artifacts/again.json")).unwrap();
    std::fs::create_dir(root.join("artifacts/空")).unwrap();
    symlink("../session.json", root.join("artifacts/link")).unwrap();
    symlink("/nowhere/at all", root.join("artifacts/dangling")).unwrap();
    let mode = |name: &str, mode| {
        std::fs::set_permissions(root.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("session.json", 0o640);
    mode("context", 0o700);
    mode("artifacts/空", 0o555);
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 0);
    for name in [
        "session.json",
        "artifacts/empty",
        "artifacts/空",
        "context",
        "",
    ] {
        let file = std::fs::File::open(root.join(name)).unwrap();
        file.set_modified(time).unwrap();
    }
}

/// Everything below a folder, in words.
fn told(root: &Path) -> Vec<String> {
    let mut told = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name() {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        let content = match (meta.is_file(), meta.is_symlink()) {
            (true, _) => blake3::hash(&std::fs::read(entry.path()).unwrap())
                .to_hex()
                .to_string(),
            (_, true) => format!("{:?}", std::fs::read_link(entry.path()).unwrap()),
            _ => String::new(),
        };
        let path = entry.path().strip_prefix(root).unwrap();
        told.push(format!(
            "{path:?} {:o} {}:{} {} ×{} {content}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.mtime(),
            if meta.is_file() { meta.nlink() } else { 1 },
        ));
    }
    told
}

#[test]
fn every_format_of_gnu_tar_comes_out_as_it_went_in() {
    for format in ["gnu", "pax", "ustar", "v7", "oldgnu"] {
        let home = tempfile::tempdir().unwrap();
        let session = home.path().join("20240603_爬虫");
        std::fs::create_dir(&session).unwrap();
        lay_out(&session);
        if !matches!(format, "ustar" | "v7") {
            let long = "很长的名字".repeat(12);
            let deep = session.join("artifacts").join(&long).join(&long);
            std::fs::create_dir_all(&deep).unwrap();
            std::fs::write(deep.join("n"), format).unwrap();
            symlink(Path::new(&long).join(&long), session.join("artifacts/far")).unwrap();
        }
        let format = format!("--format={format}");
        // From beside it, from inside it, from above it.
        let above = home.path().strip_prefix("/").unwrap().join("20240603_爬虫");
        let above = above.to_str().unwrap();
        let ways: [(&Path, &str); 3] = [
            (home.path(), "20240603_爬虫"),
            (&session, "."),
            (Path::new("/"), above),
        ];
        for (from, what) in ways {
            let Some(tar) = tool("tar", &["-c", &format, what], from) else {
                return;
            };
            let pack = by_hand(&tar);
            let (outer, done) = unpacked(&pack, false);
            let members = done.unwrap().members;
            assert_eq!(
                told(&outer.path().join("into")),
                told(&session),
                "{format} {what}"
            );
            let verified = with(|context| verify(&pack, context)).unwrap();
            assert_eq!(
                (verified.members, verified.problems),
                (members.len() as u64, vec![])
            );
            let listed: Vec<PathBuf> = with(|context| list(&pack, context))
                .unwrap()
                .into_iter()
                .map(|m| m.path.0)
                .collect();
            assert!(
                listed.contains(&PathBuf::from("context/turn_001.json")),
                "{listed:?}"
            );
            let mut content = Vec::new();
            let path = Path::new("artifacts/again.json");
            with(|context| read_member(&pack, path, &mut content, context))
                .unwrap()
                .unwrap();
            assert_eq!(content, b"{}");
        }
    }
}

#[test]
fn holes_come_back_as_zeros() {
    for version in ["gnu", "0.0", "0.1", "1.0"] {
        let home = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(home.path().join("session.json")).unwrap();
        // More pieces than the first header holds.
        for n in 0..60u64 {
            std::os::unix::fs::FileExt::write_all_at(&file, b"piece", n * 100_000).unwrap();
        }
        file.set_len(7_000_000).unwrap();
        let format = match version {
            "gnu" => vec!["-cS", "--format=gnu", "."],
            _ => vec!["-cS", "--format=pax", "--sparse-version", version, "."],
        };
        let Some(tar) = tool("tar", &format, home.path()) else {
            return;
        };
        assert!(
            tar.len() < 3_000_000,
            "{version}: tar has not seen the holes"
        );
        let (outer, done) = unpacked(&by_hand(&tar), false);
        done.unwrap();
        let (before, after) = (
            home.path().join("session.json"),
            outer.path().join("into/session.json"),
        );
        assert!(
            std::fs::read(before).unwrap() == std::fs::read(after).unwrap(),
            "{version}"
        );
    }
}

#[test]
fn attributes_and_nanoseconds_come_back() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("session.json");
    std::fs::write(&path, "{}").unwrap();
    let shown = path.to_str().unwrap();
    let attribute = ["-n", "user.来源", "-v", "一\n二=三", shown];
    if tool("setfattr", &attribute, home.path()).is_none() {
        return;
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 123_456_789);
    std::fs::File::open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    let Some(tar) = tool("tar", &["-c", "--format=pax", "--xattrs", "."], home.path()) else {
        return;
    };
    let (outer, done) = unpacked(&by_hand(&tar), false);
    let member = done
        .unwrap()
        .members
        .into_iter()
        .find(|m| m.path.as_os_str().as_bytes() == b"session.json")
        .unwrap();
    assert_eq!(
        (member.mtime.seconds, member.mtime.nanos),
        (1_700_000_000, 123_456_789)
    );
    assert_eq!(member.xattrs.len(), 1);
    let after = outer.path().join("into/session.json");
    let read = ["-n", "user.来源", "--only-values", after.to_str().unwrap()];
    assert_eq!(
        tool("getfattr", &read, home.path()).unwrap(),
        "一\n二=三".as_bytes()
    );
}

#[test]
fn every_format_of_bsdtar_comes_out_as_it_went_in() {
    let home = tempfile::tempdir().unwrap();
    let session = home.path().join("20240603_爬虫");
    std::fs::create_dir(&session).unwrap();
    lay_out(&session);
    // Long names, Chinese ones, and what is both go into records of their own there.
    let deep = session
        .join("artifacts")
        .join("很长的名字".repeat(12))
        .join("n".repeat(120));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("x"), "x").unwrap();
    for format in ["pax", "gnutar"] {
        let arguments = ["-c", "-f", "-", "--format", format, "20240603_爬虫"];
        let Some(tar) = tool("bsdtar", &arguments, home.path()) else {
            return;
        };
        let (outer, done) = unpacked(&by_hand(&tar), false);
        done.unwrap();
        assert_eq!(told(&outer.path().join("into")), told(&session), "{format}");
    }
}
