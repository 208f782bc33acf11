//! Sessions: turns, records, names, agents.

use super::*;

#[test]
fn gaps_in_the_turns() {
    let place = home();
    let at = place.session("20240603_crawler", 12);
    for turn in [1, 4, 6, 7] {
        fs::remove_file(
            place
                .root()
                .join(format!("{at}/context/turn_{turn:03}.json")),
        )
        .unwrap();
    }
    place.put(format!("{at}/context/turn_004 (1).json"), "{}");
    place.put(format!("{at}/context/turn_1000.json"), "{}");
    place.put(format!("{at}/context/turn_99999999999.json"), "{}");
    place.put(format!("{at}/context/turn_.json"), "{}");
    let told: Vec<_> = place
        .findings()
        .into_iter()
        .map(|f| {
            (
                f.path.file_name().unwrap().to_str().unwrap().to_owned(),
                f.turn,
                f.count,
                f.detail,
            )
        })
        .collect();
    let gap = |turn: u32, count: u64, detail: &str| {
        (
            format!("turn_{turn:03}.json"),
            Some(turn),
            Some(count),
            detail.to_owned(),
        )
    };
    assert_eq!(
        told,
        [
            gap(1, 1, "001 before 002"),
            gap(4, 1, "004 between 003 and 005; turn_004 (1).json is there"),
            gap(6, 1, "006 between 005 and 008"),
            gap(7, 1, "007 between 005 and 008"),
            gap(13, 987, "013 to 999 between 012 and 1000"),
        ]
    );
}

#[test]
fn a_turn_that_waits_in_the_cloud_is_not_missing() {
    let place = home();
    let at = place.session("20240603_crawler", 3);
    fs::rename(
        place.root().join(format!("{at}/context/turn_002.json")),
        place
            .root()
            .join(format!("{at}/context/.turn_002.json.icloud")),
    )
    .unwrap();
    let findings = place.findings();
    assert_eq!(
        lines(&findings),
        [
            "placeholder sessions/20240603_crawler/context/.turn_002.json.icloud: stands for turn_002.json, which was never downloaded"
        ]
    );
    assert_eq!(
        findings[0].of.as_deref(),
        Some(Path::new("sessions/20240603_crawler/context/turn_002.json"))
    );
}

#[test]
fn what_a_session_must_hold() {
    let place = home();
    fs::create_dir_all(place.root().join("sessions/20240101_ghost/context")).unwrap();
    fs::create_dir_all(place.root().join("sessions/.stversions")).unwrap();
    place.put("sessions/20240102_half/context/turn_001.json", "{}");
    place.put("sessions/notes.txt", "");
    assert_eq!(
        place.lines(),
        [
            "empty-session sessions/20240101_ghost: holds no file",
            "no-session-json sessions/20240102_half: has no session.json beside its 1 file",
        ]
    );
}

#[test]
fn names_that_break_the_convention() {
    let place = home();
    for id in [
        "20240603_数据清洗-2",
        "crawler",
        "20240603_a.b",
        "20241301_x",
        &format!("20240603_{}", "x".repeat(22)),
        &"y".repeat(201),
    ] {
        place.session(id, 0);
    }
    let told: Vec<String> = place.findings().into_iter().map(|f| f.detail).collect();
    assert_eq!(
        told,
        [
            "the name holds more than letters, digits, `_` and `-`",
            "the name has 31 characters, 30 are the limit",
            "the name does not begin with a date: YYYYMMDD_task",
            "the name does not begin with a date: YYYYMMDD_task",
            "the name has 201 bytes: it can not be archived until it is renamed",
        ]
    );
    assert!(!place.inspect(None, None).has_problems());
}

#[test]
fn names_that_collide_elsewhere() {
    let place = home();
    let at = place.session("20240603_crawler", 0);
    for name in [
        "Report.md",
        "report.md",
        "e\u{301}tude.md",
        "\u{e9}tude.md",
        "other.md",
    ] {
        place.put(format!("{at}/artifacts/{name}"), name);
    }
    let findings = place.findings();
    let told: Vec<_> = findings
        .iter()
        .map(|f| (f.kind.as_str(), f.detail.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                "name-collision",
                "differs from Report.md only by upper and lower case"
            ),
            (
                "name-collision",
                "differs from e\u{301}tude.md only by the form of its characters"
            ),
        ]
    );
}

#[test]
fn what_the_record_says() {
    let place = home();
    place.put("agents/coder/agent.yaml", "name: coder\n");
    let record = |id: &str, fields: &str| {
        place.put(
            format!("sessions/{id}/session.json"),
            format!("\u{feff}{{{fields}}}"),
        )
    };
    record(
        "20240601_a",
        r#""session_id": "u1", "agent": "coder", "cwd": "/""#,
    );
    record(
        "20240602_b",
        r#""session_id": "u1", "agent": "../agents/coder", "cwd": "relative""#,
    );
    record(
        "20240603_c",
        r#""session_id": "", "agent": "writer", "cwd": "/nowhere/at/all""#,
    );
    record(
        "20240604_d",
        r#""session_id": 7, "agent": {"name": "x"}, "cwd": null"#,
    );
    let deep = format!("\"x\": {}{}", "[".repeat(10_000), "]".repeat(10_000));
    record("20240605_e", &deep);
    assert_eq!(
        place.lines(),
        [
            "duplicate-id sessions/20240602_b/session.json: has the same session_id as sessions/20240601_a/session.json: u1",
            "wrong-cwd sessions/20240603_c/session.json: would resume in /nowhere/at/all, which is not there",
            "unknown-agent sessions/20240602_b/session.json: is of the agent ../agents/coder, and agents/../agents/coder/ is not there",
            "unknown-agent sessions/20240603_c/session.json: is of the agent writer, and agents/writer/ is not there",
        ]
    );
}

#[test]
fn skills_that_are_not_there() {
    let place = home();
    place.put("agents/a/agent.yaml", "skills: [web, code, shared, gone]\n");
    place.put("agents/a/skills/web.yaml", "");
    place.put("agents/a/skills/code/SKILL.md", "");
    place.put("agents/skills/shared.yml", "");
    place.put("agents/b/skills/only.yaml", "");
    let findings = place.findings();
    assert_eq!(
        lines(&findings),
        ["missing-skill agents/a/skills/gone.yaml: is not there; agents/a/agent.yaml names it"]
    );
    assert_eq!(findings[0].session, None);
}
