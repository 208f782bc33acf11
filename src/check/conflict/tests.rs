//! Each client's mark as it is found, nested, and mistaken; and the invariants over all names.

use std::io::{self, Read};

use proptest::prelude::*;

use super::*;

fn readings(name: &str) -> Vec<(String, Client, bool)> {
    let text = |mark: Mark| {
        (
            String::from_utf8(mark.original).unwrap(),
            mark.client,
            mark.ambiguous,
        )
    };
    parse(name.as_bytes(), false)
        .into_iter()
        .map(text)
        .collect()
}

/// The name of the original, with only `beside` in the folder.
fn found(name: &str, beside: &[&str]) -> Option<(String, Client)> {
    let exists = |other: &[u8]| beside.iter().any(|b| b.as_bytes() == other);
    original_of(name.as_bytes(), false, &exists).map(|(o, c)| (String::from_utf8(o).unwrap(), c))
}

/// Marks nobody types: (mark, client). `{}` stands for the stem, the extension follows.
const CERTAIN: [(&str, Client); 47] = [
    ("{} (Mei's conflicted copy 2024-06-11)", Client::Dropbox),
    ("{} (Mei’s conflicted copy 2024-06-11)", Client::Dropbox),
    (
        "{} (MacBook (home)'s conflicted copy 2024-06-11)",
        Client::Dropbox,
    ),
    ("{} (Chris' conflicted copy 2024-06-11 1)", Client::Dropbox),
    ("{} (conflicted copy 2024-06-11)", Client::Dropbox),
    ("{} (conflicted copy)", Client::Dropbox),
    ("{} (Unicode Encoding Conflict)", Client::Dropbox),
    ("{} (Case Conflict)", Client::Dropbox),
    ("{} (Case Conflict 1)", Client::Dropbox),
    ("{} (Selective Sync Conflict)", Client::Dropbox),
    ("{} (copia en conflicto de Mei 2024-06-11)", Client::Dropbox),
    ("{} (Copia en conflicto de Mei 2024-06-11)", Client::Dropbox),
    (
        "{} (Meis iPhone:s motstridiga kopia 2024-06-11)",
        Client::Dropbox,
    ),
    ("{} (copia in conflitto di Mei 2024-06-11)", Client::Dropbox),
    ("{} (Copie en conflit de Mei 2024-06-11)", Client::Dropbox),
    ("{}-onedrivehost-safeBackup-0001", Client::OneDrive),
    ("{}-LAPTOP7-safeBackup-0012", Client::OneDrive),
    ("{}-MacBook-Pro-safeBackup-0001", Client::OneDrive),
    (
        "{}.sync-conflict-20240611-101112-ABCDEF2",
        Client::Syncthing,
    ),
    ("{}.sync-conflict-20240611-101112", Client::Syncthing),
    ("{} (conflicted copy 2024-06-11 101112)", Client::Nextcloud),
    (
        "{} (conflicted copy me 2024-06-11 101112)",
        Client::Nextcloud,
    ),
    ("{}_conflict-20240611-101112", Client::Nextcloud),
    ("{}_conflict-mei-20240611-101112", Client::Nextcloud),
    ("{} (case clash from mei)", Client::Nextcloud),
    (
        "{} (SFConflict mei@example.org 2024-06-11-10-11-12)",
        Client::Seafile,
    ),
    ("{} (SFConflict 2024-06-11-10-11-12)", Client::Seafile),
    ("{}.Conflict", Client::Resilio),
    ("{}.Conflict1", Client::Resilio),
    (
        "{}_Andy-PC_Jan-03-0901-2013_CaseConflict_1",
        Client::Synology,
    ),
    ("{}_NAS_Jun-11-1011-2024_Conflict", Client::Synology),
    ("{} [conflicted]", Client::PCloud),
    ("{} [conflicted 2]", Client::PCloud),
    ("{} (copy: conflict on 2024-06-11)", Client::Unison),
    ("{} (copy: conflict #2 on 2024-06-11)", Client::Unison),
    ("{}.conflict1", Client::Rclone),
    ("{} (# Edit conflict 2024-06-11 nGFf #)", Client::Proton),
    ("{} (# Name clash 2024-06-11 nGFf #)", Client::Proton),
    ("{}(笔记本的冲突副本1_2024-06-11 10-11-12)", Client::Chinese),
    (
        "{}（笔记本的冲突副本1_2024-06-11 10-11-12）",
        Client::Chinese,
    ),
    ("{} (Mei 的冲突副本 2024-06-11)", Client::Chinese),
    ("{}-张三的冲突副本-20240611", Client::Chinese),
    ("{}-冲突文件", Client::Chinese),
    ("{}-冲突-20240611101112", Client::Chinese),
    ("{}-conflict-20240611", Client::Nutstore),
    ("{}-conflict-DESKTOP-AB12CD3", Client::Nutstore),
    ("{}-NSConflict-mei", Client::Nutstore),
];

/// Marks that people type as well.
const AMBIGUOUS: [(&str, Client); 20] = [
    ("{} (1)", Client::NumberedCopy),
    ("{}(1)", Client::NumberedCopy),
    ("{} (12)", Client::NumberedCopy),
    ("{}（2）", Client::NumberedCopy),
    ("{} 2", Client::ICloud),
    ("{} 13", Client::ICloud),
    ("{}-LAPTOP7", Client::OneDrive),
    ("{}-LAPTOP7-2", Client::OneDrive),
    ("{}-DESKTOP-AB12CD3", Client::OneDrive),
    ("{}-MacBook-Pro", Client::OneDrive),
    ("{}-Meis-MacBook-Air", Client::OneDrive),
    ("{}-MEI-PC", Client::OneDrive),
    ("{}-THINKPAD-T480", Client::OneDrive),
    ("{}-副本", Client::Chinese),
    ("{} - 副本", Client::Chinese),
    ("{}-冲突", Client::Chinese),
    ("{}(冲突)", Client::Chinese),
    ("{}（冲突文件）", Client::Chinese),
    ("{}-关于冲突文件", Client::Chinese),
    ("{}-conflict", Client::Nutstore),
];

#[test]
fn every_mark_is_read_whatever_the_base_and_extension() {
    for (mark, client) in CERTAIN.into_iter().chain(AMBIGUOUS) {
        for stem in [
            "turn_002",
            "周报",
            "plan (draft)",
            "a-b_c",
            "v1.2",
            ".persistent",
            "notes (1)",
        ] {
            for extension in [".json", "", ".tar.gz"] {
                let (name, original) = (
                    mark.replace("{}", stem) + extension,
                    format!("{stem}{extension}"),
                );
                assert_eq!(
                    found(&name, &[&original]),
                    Some((original.clone(), client)),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_certain_mark_needs_no_original_and_an_ambiguous_one_does() {
    for (mark, client) in CERTAIN {
        let name = mark.replace("{}", "plan") + ".md";
        assert_eq!(
            found(&name, &[]),
            Some(("plan.md".into(), client)),
            "{name}"
        );
        assert!(!readings(&name)[0].2, "{name}");
    }
    for (mark, client) in AMBIGUOUS {
        let name = mark.replace("{}", "plan") + ".md";
        assert_eq!(found(&name, &["other.md"]), None, "{name}");
        assert!(
            readings(&name).contains(&("plan.md".into(), client, true)),
            "{name}"
        );
    }
}

#[test]
fn innocent_names_have_no_reading() {
    for name in [
        "summary-FINAL.md",
        "plan (draft).md",
        "a-b.md",
        "report (2024).md",
        "report 2024.md",
        "notes-DRAFT2.md",
        "spec-RFC2119.md",
        "hash-SHA256.txt",
        "q-2024Q3.csv",
        "fix-PROJ-1234.md",
        "layout-desktop.html",
        "x-V2.md",
        "plan (conflicting views).md",
        "plan (on the conflicted copy we found).md",
        "方案(冲突分析).md",
        "方案-冲突分析.md",
        "方案(冲突文件说明).md",
        "git-merge-conflicts.md",
        "conflict.rs",
        "a.conflict",
        "a_b_c_1.txt",
        "a.b.c",
        "turn_002.json",
        "photo 1.md",
        "(1)",
        " 2",
        "1",
        ".",
        "..",
        "",
        ".json",
        "-",
        "x (0).md",
        "x 02.md",
        "x.sync-conflict-2024-1.md",
        "x [1].md",
        "x ().md",
        "a_conflict-1.md",
        "a-safeBackup-1.md",
        "dir-20240611.md",
        "team-WEEK23.md",
        "tune-UTF-16.txt",
    ] {
        assert_eq!(readings(name), [], "{name}");
    }
}

#[test]
fn look_alikes_count_only_beside_their_original() {
    for name in [
        "slides (1).md",
        "photo 2.md",
        "main-LAPTOP7.py",
        "git-merge-conflict.md",
        "方案-副本.md",
    ] {
        assert_eq!(found(name, &[name, "unrelated.md"]), None, "{name}");
    }
    assert_eq!(found("a-b.md", &["a.md"]), None);
    assert_eq!(found("summary-FINAL.md", &["summary.md"]), None);
    assert_eq!(found("report 2024.md", &["report.md"]), None);
}

#[test]
fn only_the_rightmost_mark_comes_off() {
    let nested = "turn_003 (1) (Mei's conflicted copy 2024-06-11).json";
    assert_eq!(
        readings(nested),
        [("turn_003 (1).json".into(), Client::Dropbox, false)]
    );
    let numbered = "turn_003 (Mei's conflicted copy 2024-06-11) (1).json";
    assert_eq!(
        readings(numbered),
        [(
            "turn_003 (Mei's conflicted copy 2024-06-11).json".into(),
            Client::NumberedCopy,
            true
        )]
    );
    assert_eq!(
        readings("a 2.sync-conflict-20240611-101112-ABCDEF2.md")[0].0,
        "a 2.md"
    );
    assert_eq!(
        readings("a.md (SFConflict mei 2024-06-11-10-11-12)")[0].0,
        "a.md"
    );
    for (outer, _) in CERTAIN {
        for (inner, _) in CERTAIN.into_iter().chain(AMBIGUOUS) {
            let inside = inner.replace("{}", "a") + ".md";
            let name = outer.replace("{}", &inner.replace("{}", "a")) + ".md";
            assert_eq!(
                found(&name, &["a.md", &inside]).map(|f| f.0),
                Some(inside),
                "{name}"
            );
        }
    }
}

#[test]
fn a_copy_of_a_copy_that_is_gone_leads_to_the_first_original() {
    assert_eq!(
        found("a (1) (1).md", &["a.md"]),
        Some(("a.md".into(), Client::NumberedCopy))
    );
    assert_eq!(
        found("a (1) (Mei's conflicted copy 2024-06-11).md", &["a.md"]),
        Some(("a.md".into(), Client::Dropbox))
    );
    // Nothing stands beside it, yet the inner mark is certain.
    assert_eq!(
        found("a (SFConflict mei 2024-06-11-10-11-12) (1).md", &[]),
        Some(("a.md".into(), Client::NumberedCopy))
    );
    let long = "a".to_string() + &" (1)".repeat(500) + ".md";
    assert_eq!(found(&long, &["a.md"]), None);
}

#[test]
fn a_host_with_hyphens_is_settled_by_what_exists() {
    let name = "file5-onedrive-client-dev-safeBackup-0001.data";
    assert_eq!(
        found(name, &["file5.data"]),
        Some(("file5.data".into(), Client::OneDrive))
    );
    assert_eq!(
        found(name, &["file5-onedrive.data"]),
        Some(("file5-onedrive.data".into(), Client::OneDrive))
    );
    assert_eq!(
        found("x-DESKTOP-AB12CD3-safeBackup-0001.md", &[])
            .unwrap()
            .0,
        "x.md"
    );
    let synology = "a_b_MY_NAS_Jun-11-1011-2024_CaseConflict_1.txt";
    assert_eq!(found(synology, &["a_b.txt"]).unwrap().0, "a_b.txt");
    assert_eq!(found(synology, &[]).unwrap().0, "a_b_MY.txt");
}

#[test]
fn names_with_several_extensions_or_none() {
    assert_eq!(found("x (1).tar.gz", &["x.tar.gz"]).unwrap().0, "x.tar.gz");
    assert_eq!(found("x.tar (1).gz", &["x.tar.gz"]).unwrap().0, "x.tar.gz");
    assert_eq!(found("x.tar.gz (1)", &["x.tar.gz"]).unwrap().0, "x.tar.gz");
    assert_eq!(
        found("x.tar.gz.conflict2", &["x.tar.gz"]).unwrap(),
        ("x.tar.gz".into(), Client::Rclone)
    );
    assert_eq!(found("Makefile 2", &["Makefile"]).unwrap().0, "Makefile");
    assert_eq!(found(".env (1)", &[".env"]).unwrap().0, ".env");
    assert_eq!(
        found(".sync-conflict-20240611-101112-ABCDEF2.env", &[".env"])
            .unwrap()
            .0,
        ".env"
    );
    assert_eq!(
        found(".persistent (1).json", &[".persistent.json"])
            .unwrap()
            .0,
        ".persistent.json"
    );
}

#[test]
fn folders_have_marks_too() {
    let folder = |name: &str| {
        let exists = |other: &[u8]| other == "20240603_周报".as_bytes();
        original_of(name.as_bytes(), true, &exists).map(|(_, client)| client)
    };
    assert_eq!(folder("20240603_周报(1)"), Some(Client::NumberedCopy));
    assert_eq!(folder("20240603_周报 (1)"), Some(Client::NumberedCopy));
    assert_eq!(folder("20240603_周报 2"), Some(Client::ICloud));
    assert_eq!(
        folder("20240603_周报 (Selective Sync Conflict)"),
        Some(Client::Dropbox)
    );
    assert_eq!(folder("20240603_周报-LAPTOP7"), None);
    assert_eq!(folder("20240603_周报 3 (draft)"), None);
}

#[test]
fn a_name_that_is_no_utf8_is_read_where_its_mark_is_ascii() {
    let gbk = b"\xd6\xdc\xb1\xa8 (1).md";
    assert_eq!(parse(gbk, false)[0].original, b"\xd6\xdc\xb1\xa8.md");
    let name = [&b"\xff\xfe"[..], b".sync-conflict-20240611-101112-ABCDEF2"].concat();
    assert_eq!(parse(&name, false)[0].original, b"\xff\xfe");
}

#[test]
fn the_words_for_people_and_machines() {
    assert_eq!(Client::ICloud.as_str(), "iCloud");
    assert_eq!(
        serde_json::to_string(&Client::NumberedCopy).unwrap(),
        r#""numbered-copy""#
    );
    assert_eq!(
        serde_json::to_string(&Client::ICloud).unwrap(),
        r#""icloud""#
    );
    assert_eq!(
        serde_json::to_string(&Relation::Extends).unwrap(),
        r#""extends""#
    );
}

/// Gives a few bytes at a time, and an interruption now and then.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        if self.1.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = (self.1 * 7919 % 9973 + 1)
            .min(buffer.len())
            .min(self.0.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn compare(original: &[u8], copy: &[u8]) -> Relation {
    relation(&mut Dribble(original, 0), &mut Dribble(copy, 3)).unwrap()
}

#[test]
fn relations_of_large_and_empty_files() {
    let large: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    assert_eq!(compare(&large, &large), Relation::Same);
    assert_eq!(compare(&[], &[]), Relation::Same);
    assert_eq!(compare(&large, &[]), Relation::Prefix);
    assert_eq!(compare(&[], &large), Relation::Extends);
    let edge = 64 * 1024;
    assert_eq!(compare(&large[..edge], &large[..edge]), Relation::Same);
    assert_eq!(compare(&large, &large[..edge]), Relation::Prefix);
    assert_eq!(compare(&large[..edge], &large), Relation::Extends);
    let mut other = large.clone();
    other[edge + 1] ^= 1;
    assert_eq!(compare(&large, &other), Relation::Diverged);
    // The shorter one differs in its last byte.
    assert_eq!(compare(&large, &other[..edge + 2]), Relation::Diverged);
}

#[test]
fn a_failing_read_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("a placeholder that cannot be fetched"))
        }
    }
    assert!(relation(&mut Broken, &mut &b"x"[..]).is_err());
}

proptest! {
    #[test]
    fn parse_takes_any_bytes(name in prop::collection::vec(any::<u8>(), 0..80), is_folder: bool) {
        for mark in parse(&name, is_folder) {
            prop_assert!(mark.original.len() < name.len());
            prop_assert!(!mark.original.is_empty());
        }
        original_of(&name, is_folder, &|_| false);
    }

    #[test]
    fn parse_takes_names_made_of_marks(parts in prop::collection::vec(
        prop::sample::select(vec![
            "a", "周", "(", ")", "（", "）", "[", "]", ".", "-", "_", " ", "1", "2", "20240611", "101112", "2024-06-11", "'s conflicted copy",
            "conflicted copy", "SFConflict ", "-safeBackup-", "0001", "LAPTOP7", "MacBook-Pro", ".sync-conflict-", "_conflict-",
            ".Conflict", ".conflict", "冲突", "副本", "的", "-NSConflict", "Jun-11-1011-2024", "CaseConflict", "# Edit conflict", "#",
        ]), 0..12)) {
        let name = parts.concat();
        for mark in parse(name.as_bytes(), false) {
            prop_assert!(mark.original.len() < name.len());
            prop_assert!(std::str::from_utf8(&mark.original).is_ok());
        }
    }

    #[test]
    fn a_mark_added_is_a_mark_read(
        base in "[a-zA-Z周报数据_][a-zA-Z0-9周报数据_ ().-]{0,14}[a-z周报数据]",
        extension in "(\\.[a-z]{1,6}){0,2}",
        pick in any::<prop::sample::Index>(),
    ) {
        let all: Vec<_> = CERTAIN.into_iter().chain(AMBIGUOUS).collect();
        let (mark, client) = all[pick.index(all.len())];
        let (name, original) = (mark.replace("{}", &base) + &extension, base + &extension);
        let marks = parse(name.as_bytes(), false);
        prop_assert!(marks.iter().any(|m| m.original == original.as_bytes() && m.client == client), "{name}: {marks:?}");
        prop_assert_eq!(found(&name, &[&original]), Some((original.clone(), client)));
    }

    #[test]
    fn relation_agrees_with_the_slices(original in prop::collection::vec(0u8..2, 0..6), copy in prop::collection::vec(0u8..2, 0..6)) {
        let expected = if original == copy {
            Relation::Same
        } else if original.starts_with(&copy) {
            Relation::Prefix
        } else if copy.starts_with(&original) {
            Relation::Extends
        } else {
            Relation::Diverged
        };
        prop_assert_eq!(compare(&original, &copy), expected);
    }
}
