//! Second versions of files and folders.

use super::*;

fn copy_of(findings: &[Finding], name: &str) -> (Option<Relation>, String) {
    let found = findings
        .iter()
        .find(|f| f.path.ends_with(name))
        .unwrap_or_else(|| panic!("{name}: {findings:#?}"));
    (found.relation, found.detail.clone())
}

#[test]
fn a_copy_is_told_by_its_content() {
    let place = home();
    let at = place.session("20240603_crawler", 0);
    let file = |name: &str, text: &str| place.put(format!("{at}/logs/{name}"), text);
    file("a.log", "one\ntwo\n");
    file("a (1).log", "one\ntwo\n");
    file("a (Mei's conflicted copy 2024-06-11).log", "one\n");
    file(
        "a.sync-conflict-20240611-101112-ABCDEF2.log",
        "one\ntwo\nthree\n",
    );
    let newer = file("a 2.log", "one\n2\n");
    let later =
        fs::metadata(&newer).unwrap().modified().unwrap() + std::time::Duration::from_secs(90);
    fs::File::open(&newer).unwrap().set_modified(later).unwrap();
    file("b (conflicted copy 2024-06-11).log", "");
    file("slides (1).log", "");
    let findings = place.findings();
    assert_eq!(findings.len(), 5, "{findings:#?}");
    let told = |name: &str| copy_of(&findings, name);
    assert_eq!(
        told("a (1).log"),
        (Some(Relation::Same), "is the same as a.log".into())
    );
    assert_eq!(
        told("a (Mei's conflicted copy 2024-06-11).log"),
        (
            Some(Relation::Prefix),
            "is a shorter beginning of a.log".into()
        )
    );
    assert_eq!(
        told("a.sync-conflict-20240611-101112-ABCDEF2.log"),
        (Some(Relation::Extends), "goes on where a.log ends".into())
    );
    assert_eq!(
        told("a 2.log"),
        (
            Some(Relation::Diverged),
            "differs from a.log, and is newer".into()
        )
    );
    let (relation, detail) = told("b (conflicted copy 2024-06-11).log");
    assert_eq!(relation, None);
    assert!(detail.ends_with("of b.log, which is not there"), "{detail}");
    assert_eq!(
        findings[0].of.as_deref(),
        Some(Path::new("sessions/20240603_crawler/logs/a.log"))
    );
}

#[test]
fn a_torn_copy_is_told_with_the_copy() {
    let place = home();
    let at = place.session("20240603_crawler", 1);
    place.put(format!("{at}/context/turn_001 (1).json"), "{\"turn\"");
    place.put(format!("{at}/memory/a.json"), [0; 64]);
    place.put(format!("{at}/memory/a(1).json"), "{}");
    assert_eq!(
        place.lines(),
        [
            "nul-run sessions/20240603_crawler/memory/a.json: holds nothing but 64 NUL bytes; the copy \"(1)\" beside it is whole",
            "conflict-copy sessions/20240603_crawler/context/turn_001 (1).json: is a shorter beginning of turn_001.json; it ends in mid-record",
            "conflict-copy sessions/20240603_crawler/memory/a(1).json: differs from a.json, and is newer; it is whole, the original is not",
        ]
        .map(|line| match line.contains("a(1)") {
            // Both may have been written within one tick of the clock.
            true if place.lines()[2].contains("of the same time") => line.replace("newer", "of the same time"),
            _ => line.to_owned(),
        })
    );
}

#[test]
fn links_are_compared_and_kinds_are_not_mixed() {
    let place = home();
    let at = place.session("20240603_crawler", 1);
    place.link(&format!("{at}/artifacts/latest"), "../session.json");
    place.link(&format!("{at}/artifacts/latest (1)"), "../session.json");
    place.put(format!("{at}/artifacts/x"), "");
    place.put(format!("{at}/artifacts/x (1)/y"), "");
    let findings = place.findings();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].relation, Some(Relation::Same));
}

#[test]
fn a_second_session_is_one_finding() {
    let place = home();
    let at = place.session("20240603_crawler", 3);
    place.session("20240603_crawler(1)", 1);
    for (twin, files) in [
        (" (1)", vec!["session.json"]),
        (
            " 2",
            vec![
                "session.json",
                "context/turn_001.json",
                "context/turn_009.json",
            ],
        ),
    ] {
        for rel in files {
            let content = fs::read(place.root().join(&at).join(rel)).unwrap_or_default();
            place.put(format!("{at}{twin}/{rel}"), content);
        }
    }
    place.put(format!("{at} 2/context/turn_009 (1).json"), "{");
    let outcome = place.inspect(Some(r#"[{"id": "20240603_crawler"}]"#), None);
    let dirs: Vec<&Finding> = outcome
        .findings
        .iter()
        .filter(|f| f.kind == FindingKind::ConflictDir)
        .collect();
    let told: Vec<_> = dirs
        .iter()
        .map(|f| (f.relation, f.count, f.detail.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                Some(Relation::Prefix),
                Some(0),
                "holds 1 file, all of them in 20240603_crawler too, which has more"
            ),
            (
                Some(Relation::Diverged),
                Some(2),
                "holds 4 files, 2 not in 20240603_crawler"
            ),
            (
                Some(Relation::Diverged),
                Some(1),
                "holds 2 files of 20240603_crawler, 1 unlike there"
            ),
        ]
    );
    assert!(dirs.iter().all(|f| f.of.as_deref() == Some(Path::new(&at))
        && f.session.as_deref() == Some("20240603_crawler")));
    // Only damage of content is told beside it.
    let others: Vec<&str> = outcome
        .findings
        .iter()
        .map(|f| f.kind.as_str())
        .filter(|k| *k != "conflict-dir")
        .collect();
    assert_eq!(others, ["torn-json", "torn-json"]);
    assert_eq!(outcome.sessions, 1);
}

#[test]
fn folders_relate_as_their_files_do() {
    let place = home();
    let at = place.session("20240603_crawler", 0);
    for (rel, text) in [
        ("d/a", "1"),
        ("d/e/b", "2"),
        ("d (1)/a", "1"),
        ("d (1)/e/b", "2"),
        ("d (2)/a", "1"),
        ("d (2)/e/b", "2"),
        ("d (2)/c", ""),
    ] {
        place.put(format!("{at}/artifacts/{rel}"), text);
    }
    let told: Vec<_> = place
        .findings()
        .into_iter()
        .map(|f| (f.kind, f.relation, f.detail))
        .collect();
    assert_eq!(
        told,
        [
            (
                FindingKind::ConflictDir,
                Some(Relation::Same),
                "holds the same 2 files as d".into()
            ),
            (
                FindingKind::ConflictDir,
                Some(Relation::Extends),
                "holds 3 files, 1 not in d".into()
            ),
        ]
    );
}
