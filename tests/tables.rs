//! What a command shows to people is what `jq` finds in its `--json`: the same ids, kinds and numbers in the same order.
//!
//! The programs are those that a person would write. What is printed for people may change; that it tells the same may
//! not.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what does not fit"
)]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use support::{Place, Ran, has_tool, moving};
use wbhome::base::human;

/// What the real `jq -r` makes of a document, line by line.
fn filtered(program: &str, document: &str) -> Vec<String> {
    let mut jq = Command::new("jq")
        .args(["-r", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    jq.stdin
        .take()
        .unwrap()
        .write_all(document.as_bytes())
        .unwrap();
    let ran = Ran::of(jq.wait_with_output().unwrap());
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{program}");
    ran.stdout.lines().map(str::to_owned).collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// What a command prints for people into a pipe.
fn told(place: &Place, line: &str) -> String {
    place.alone(&words(line)).stdout
}

/// What `jq` finds in what the same command prints with `--json`.
fn jq(place: &Place, line: &str, program: &str) -> Vec<String> {
    let ran = place.alone(&[&words(line)[..], &["--json"]].concat());
    assert!(!ran.stdout.is_empty(), "{line}: {ran:#?}");
    filtered(program, &ran.stdout)
}

/// Cells without the blanks that align them.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of a text for which this holds, squeezed.
fn lines(text: &str, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    text.lines()
        .filter(|line| is_meant(line))
        .map(squeezed)
        .collect()
}

/// Tab-separated cells as people are shown them: those at these places are sizes, which may be missing.
fn cells(row: &str, sizes: &[usize]) -> String {
    let cell = |(n, cell): (usize, &str)| match sizes.contains(&n) {
        true => cell.parse().map_or_else(|_| cell.to_owned(), human::size),
        false => cell.to_owned(),
    };
    let cells: Vec<String> = row.split('\t').enumerate().map(cell).collect();
    squeezed(&cells.join(" "))
}

fn rows(found: &[String], sizes: &[usize]) -> Vec<String> {
    found.iter().map(|row| cells(row, sizes)).collect()
}

/// A place, and `jq` to judge it.
fn place() -> Option<Place> {
    has_tool("jq").then(Place::lived_in)
}

#[test]
fn ls() {
    let Some(place) = place() else { return };
    let labels = r#"(.agent // "-"), (.project // "-"), ((.tags + (if .sync_tag then ["sync:" + .sync_tag] else [] end)) | join(" ")), (.title // "")"#;
    let short = format!(".sessions[] | [.id, .status, (.updated // .created), {labels}] | @tsv");
    let shown = lines(&told(&place, "ls"), |_| true);
    assert_eq!(shown, rows(&jq(&place, "ls", &short), &[]));
    assert_eq!(shown.len(), 7);
    let long = format!(
        r#".sessions[] | [.id, .status, (.updated // .created), (.holds.turns // "-"), (.holds | (.context, .memory, .artifacts, .logs) | .bytes // "-"), (.archive.bytes // "-"), {labels}] | @tsv"#
    );
    let shown = lines(&told(&place, "ls -l"), |_| true);
    assert_eq!(shown, rows(&jq(&place, "ls -l", &long), &[4, 5, 6, 7, 8]));
    for line in [
        "ls --sort size",
        "ls --status removed",
        "ls --tag web",
        "ls --since 2024-06-05 --reverse",
    ] {
        let shown: Vec<String> = told(&place, line)
            .lines()
            .map(|row| row.split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(shown, jq(&place, line, ".sessions[].id"), "{line}");
        assert!(!shown.is_empty(), "{line}");
    }
}

#[test]
fn show() {
    let Some(place) = place() else { return };
    for id in ["crawler", "数据", "board", "pricing", "api"] {
        let line = format!("show {id}");
        let text = told(&place, &line);
        let all = lines(&text, |_| true);
        let has = |program: &str, sizes: &[usize]| {
            let found = jq(&place, &line, program);
            let rows = rows(&found, sizes);
            for row in &rows {
                let is_there = all.iter().any(|line| {
                    line == row
                        || line.ends_with(&format!(" {row}"))
                        || line.starts_with(&format!("{row} "))
                });
                assert!(is_there, "{line}: {row}\n{text}");
            }
            rows.len()
        };
        assert_eq!(has("[.id, .status] | @tsv", &[]), 1);
        has(r#"select(.project) | ["project", .project] | @tsv"#, &[]);
        has(
            r#"select(.tags != []) | ["tags", (.tags | join(", "))] | @tsv"#,
            &[],
        );
        has(r#"select(.title) | .title"#, &[]);
        has(
            r#"["turns", "\(.holds.turns),", "the last", .last_turn] | @tsv"#,
            &[],
        );
        has(
            r#"["holds", "\(.holds.files) files,", .holds.bytes] | @tsv"#,
            &[2],
        );
        let kinds = r#".holds | to_entries[] | select((.value | type) == "object" and .value.files > 0) | [.key, .value.bytes, "\(.value.files) file" + (if .value.files == 1 then "" else "s" end)] | @tsv"#;
        assert!(has(kinds, &[1]) > 1);
        assert!(has(".largest[] | [.bytes, .path] | @tsv", &[0]) > 1);
        has(
            r#".commit | select(.) | ["commit", .short, (.at | sub("T"; " ") | .[:16])] | @tsv"#,
            &[],
        );
        has(
            r#".backups[] | ["backup", .store.path, (.held.at | sub("T"; " ") | .[:16])] | @tsv"#,
            &[],
        );
        has(
            r#"select(.archive) | ["archive", .archive.file + ",", .archive.bytes] | @tsv"#,
            &[2],
        );
        has(r#".turns[] | .said[] | [.role, .text] | @tsv"#, &[]);
    }
    let names = lines(&told(&place, "show crawler/context"), |_| true);
    let found = jq(
        &place,
        "show crawler/context",
        r#".names[] | [.bytes, (.path | split("/") | last)] | @tsv"#,
    );
    assert_eq!(names, rows(&found, &[0]));
}

#[test]
fn search() {
    let Some(place) = place() else { return };
    let shown = lines(&told(&place, "search timeout -l"), |_| true);
    let files = jq(&place, "search timeout -l", r#""\(.session)/\(.path)""#);
    assert_eq!(shown, files);
    // Each hit below its session.
    let mut of = String::new();
    let mut shown = Vec::new();
    for line in told(&place, "search timeout").lines() {
        match line.strip_prefix("  ") {
            Some(hit) => shown.push(format!("{of} {}", squeezed(hit))),
            None => of = line.split("   ").next().unwrap().to_owned(),
        }
    }
    let found = jq(
        &place,
        "search timeout",
        r#"[.session, .path, "\(.role // .line):", .text] | @tsv"#,
    );
    assert_eq!(shown, rows(&found, &[]));
    assert_eq!(shown.len(), 5);
    let shown = lines(&told(&place, "search . --count"), |line| {
        line.starts_with("2024")
    });
    let found = jq(
        &place,
        "search . --count",
        r#"[.session, "\(.lines) lines in \(.files) files"] | @tsv"#,
    );
    assert_eq!(shown, rows(&found, &[]));
    let together: u64 = jq(&place, "search . --count", ".lines")
        .iter()
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    let last = told(&place, "search . --count");
    assert_eq!(
        last.lines().last().unwrap(),
        format!("{together} lines in {} sessions", shown.len())
    );
}

#[test]
fn du() {
    let Some(place) = place() else { return };
    let text = told(&place, "du -n");
    let all = lines(&text, |_| true);
    let end = all
        .iter()
        .position(|line| line.ends_with(" files") || line.ends_with(" file"))
        .unwrap();
    let sizes = r#"(.all, .context, .memory, .artifacts, .logs, .other, .archive | if .bytes == 0 then "-" else .bytes end)"#;
    let signed = r#"(if .growth == null then "new" elif .growth < 0 then "\(.growth) B" else "+\(.growth) B" end)"#;
    let found = jq(
        &place,
        "du -n",
        &format!(".sessions[] | [.path, {sizes}, {signed}] | @tsv"),
    );
    assert_eq!(all[1..end], rows(&found, &[1, 2, 3, 4, 5, 6, 7]));
    let parts = r#"([["sessions", .together]] + (.rest | [["archives", .archives], ["history", .history], ["trash", .trash], [".wbhome", .own], ["other", .other]]) + [["together", .total]])[] | select(.[1].files > 0) | [.[1].bytes, .[0], "\(.[1].files) file" + (if .[1].files == 1 then "" else "s" end)] | @tsv"#;
    let found = rows(&jq(&place, "du -n", parts), &[0]);
    assert_eq!(all[end..end + found.len()], found);
    let found = rows(
        &jq(&place, "du -n", ".largest[] | [.bytes, .path] | @tsv"),
        &[0],
    );
    assert_eq!(all[all.len() - found.len()..], found);
    let growth = jq(
        &place,
        "du -n",
        r#""+\(.growth) B since the last record, \(.since)""#,
    );
    assert!(all.contains(&growth[0]), "{growth:?}\n{text}");
    // The parts are the whole.
    let sums = jq(
        &place,
        "du -n",
        "[.total.bytes, (.together.bytes + ([.rest[].bytes] | add)), ([.sessions[].all.bytes] | add), .together.bytes] | @tsv",
    );
    let sums: Vec<&str> = sums[0].split('\t').collect();
    assert_eq!((sums[0], sums[2]), (sums[1], sums[3]));
}

#[test]
fn history_and_what_differs() {
    let Some(place) = place() else { return };
    let text = told(&place, "history api -v");
    let found = jq(
        &place,
        "history api",
        r#".commits[] | ([.short, (.at | "\(.[:10]) \(.[11:16])"), .subject] | @tsv), (.changes[] | ["", .change, .path, (.after // .before).bytes] | @tsv)"#,
    );
    let shown: Vec<String> = text
        .lines()
        .map(
            |line| match line.split_once(", ").filter(|_| !line.starts_with(' ')) {
                Some((when, rest)) => {
                    squeezed(&format!("{when} {}", rest.split_once("ago").unwrap().1))
                }
                None => squeezed(line),
            },
        )
        .collect();
    assert_eq!(shown, rows(&found, &[3]));
    let text = told(&place, "diff api");
    let found = jq(&place, "diff api", r#".files[] | [.change, .path] | @tsv"#);
    for row in rows(&found, &[]) {
        assert!(
            lines(&text, |_| true)
                .iter()
                .any(|line| line.starts_with(&row)),
            "{row}\n{text}"
        );
    }
    assert!(!found.is_empty());
}

#[test]
fn backups() {
    let Some(place) = place() else { return };
    let at = r#"(.at | "\(.[:10]) \(.[11:16])")"#;
    let shown = lines(&told(&place, "backup ls"), |line| line.starts_with("  "));
    let program = format!(
        r#".stores[].snapshots[] | [{at}, "\(.sessions) sessions", "\(.packed) packed", .bytes, (if .missing > 0 then "\(.missing) missing" else "" end)] | @tsv"#
    );
    let found = rows(&jq(&place, "backup ls", &program), &[3]);
    let plain: Vec<String> = shown.iter().map(|line| line.replace(',', "")).collect();
    assert_eq!(plain, found);
    let last = told(&place, "backup ls");
    let sums = jq(
        &place,
        "backup ls",
        r#".stores[] | [(.snapshots | length), .packs, .bytes] | @tsv"#,
    );
    let sums: Vec<&str> = sums[0].split('\t').collect();
    let size = human::size(sums[2].parse().unwrap());
    assert_eq!(
        last.lines().last().unwrap(),
        format!("{} snapshots, {} packs, {size}", sums[0], sums[1])
    );
    let shown = lines(&told(&place, "backup ls api"), |line| {
        line.starts_with("  ")
    });
    let program = format!(
        r#".stores[].packs[] | ([{at}, "\(.files) files", .content, "\(.turns) turn" + (if .turns == 1 then "" else "s" end)] | @tsv), .file"#
    );
    let found = rows(&jq(&place, "backup ls api", &program), &[2]);
    let plain: Vec<String> = shown.iter().map(|line| line.replace(',', "")).collect();
    assert_eq!(plain, found);
    // What would be packed, and why.
    let shown = lines(&told(&place, "backup run -n -v"), |line| {
        line.starts_with("  pack ")
    });
    let found = jq(&place, "backup run -n", r#".stores[].packs[] | .what"#);
    assert_eq!(shown.len(), found.len());
    for (line, what) in shown.iter().zip(&found) {
        let begins = |name: &str| line.starts_with(&format!("pack {name} "));
        assert!(
            begins(what) || begins("the home itself") && !what.starts_with("2024"),
            "{line}: {what}"
        );
    }
}

#[test]
fn check() {
    let Some(place) = place() else { return };
    // The kinds of `-v`, each behind its number, and every finding once.
    let text = told(&place, "check -v");
    let counts: Vec<String> = lines(&text, |line| {
        line.starts_with("  ") && !line.starts_with("   ")
    })
    .iter()
    .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
    .collect();
    let found = jq(
        &place,
        "check",
        r#".counts | to_entries[] | [.key, .value] | @tsv"#,
    );
    assert_eq!(counts, rows(&found, &[]));
    assert!(counts.len() > 3);
    let shown: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("  "))
        .map(squeezed)
        .collect();
    let found = jq(&place, "check -v", r#"[.kind, .session, .detail] | @tsv"#);
    assert_eq!(shown.len(), found.len());
    for (line, row) in shown.iter().zip(&found) {
        let cells: Vec<&str> = row.split('\t').collect();
        assert!(
            cells[1..].iter().all(|cell| line.contains(cell)),
            "{line}: {row}"
        );
    }
    let problems = jq(
        &place,
        "check",
        r#"[.findings[] | select(.kind != "bad-name")] | length"#,
    );
    assert!(
        text.contains(&format!("\n{} problems\n", problems[0])),
        "{text}"
    );
    let sums = jq(&place, "check", r#"[.sessions, .files, .bytes] | @tsv"#);
    let sums: Vec<&str> = sums[0].split('\t').collect();
    let size = human::size(sums[2].parse().unwrap());
    let head = format!("{} sessions · {} files · {size}", sums[0], sums[1]);
    assert_eq!(text.lines().next().unwrap(), head);
    let text = told(&place, "check --repair -n");
    for path in jq(&place, "check --repair -n", ".mended[].path, .left[].path") {
        assert!(text.contains(&path), "{path}\n{text}");
    }
}

#[test]
fn what_would_be_done() {
    let Some(place) = place() else { return };
    place.session("20240614_手工", 14);
    std::fs::remove_dir_all(place.home().join("sessions/20240605_api_refactor")).unwrap();
    let shown = lines(&told(&place, "index -n"), |line| line.starts_with("  "));
    let found = jq(
        &place,
        "index -n",
        r#"(.missing[] | "missing \(.)"), (.added[] | "added \(.)")"#,
    );
    assert_eq!(shown, found);
    assert_eq!(found.len(), 2);
    let last = jq(
        &place,
        "index -n",
        r#""\(.entries) entries, \(.unchanged) unchanged.""#,
    );
    assert!(told(&place, "index -n").contains(&last[0]));

    let text = told(&place, "rotate -n");
    let due = jq(
        &place,
        "rotate -n",
        r#".logs[] | select(.due) | [.path, .bytes, "due"] | @tsv"#,
    );
    let due = rows(&due, &[1]);
    let shown = lines(&text, |line| line.contains(" due: "));
    assert!(
        shown.len() == due.len()
            && shown
                .iter()
                .zip(&due)
                .all(|(line, row)| line.starts_with(row)),
        "{due:?}\n{text}"
    );
    let packed = jq(&place, "rotate -n", r#".compressed[].path"#);
    assert_eq!(
        lines(&text, |line| line.ends_with("would be compressed")).len(),
        packed.len()
    );

    let files = |place: &Place, line: &str| {
        let found = jq(
            place,
            line,
            r#".sessions[] | [.id, "\(.files) files,", .bytes] | @tsv"#,
        );
        let shown = lines(&told(place, line), |row| row.starts_with("2024"));
        assert_eq!(shown, rows(&found, &[2]), "{line}");
        assert!(!found.is_empty(), "{line}");
    };
    files(&place, "archive --idle 5d -n");
    files(&place, "unarchive pricing -n");
    files(&place, "rm crawler board -n");
    let shown = lines(&told(&place, "archive --idle 5d -n"), |row| {
        row.starts_with("  2024")
    });
    let found = jq(
        &place,
        "archive --idle 5d -n",
        r#".left[] | [.id, .last_activity[:10]] | @tsv"#,
    );
    assert_eq!(shown, rows(&found, &[]));

    let shown = told(&place, "label crawler board --tag web --tag new -n");
    let found = jq(
        &place,
        "label crawler board --tag web --tag new -n",
        r#".sessions[] | [.id, ((.after.tags - .before.tags) | map("+" + .) | join(" "))] | @tsv"#,
    );
    let mut shown = lines(&shown, |_| true);
    shown.retain(|line| line.starts_with("2024"));
    assert_eq!(shown, rows(&found, &[]));

    let subject = jq(&place, "commit -n", ".subject");
    let text = told(&place, "commit -n -v");
    assert_eq!(text.lines().next(), Some(&*subject[0]));
    let names: Vec<String> = lines(&text, |line| line.starts_with("  2024"))
        .iter()
        .map(|line| line.split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(names, jq(&place, "commit -n", ".sessions[].id"));
    for path in jq(&place, "commit -n", r#".left_out[] | "\(.path) \(.why)""#) {
        assert!(
            lines(&text, |_| true)
                .iter()
                .any(|line| line.starts_with(&path)),
            "{path}\n{text}"
        );
    }
}

/// Words that name how something stands are sorted by how grave it is.
#[test]
fn doctor() {
    let Some(place) = place() else { return };
    let shown: Vec<String> = told(&place, "doctor")
        .lines()
        .filter(|line| !line.starts_with(' ') && line.contains("  ") && !line.contains("room "))
        .map(squeezed)
        .collect();
    let found = jq(
        &place,
        "doctor",
        r#".checks | sort_by({"error": 0, "warning": 1, "ok": 2}[.verdict])[] | select(.name != "room") | [.verdict, .name, .says] | @tsv"#,
    );
    assert_eq!(shown, rows(&found, &[]));
    let cures = lines(&told(&place, "doctor"), |line| {
        line.trim_start().starts_with("cure:")
    });
    let found = jq(
        &place,
        "doctor",
        r#".checks | sort_by(.verdict != "error")[] | select(.cure) | "cure: \(.cure)""#,
    );
    assert_eq!(cures, found);
    let last = jq(
        &place,
        "doctor",
        r#""\(.errors) errors, \(.warnings) warnings.""#,
    );
    assert_eq!(told(&place, "doctor").lines().last(), Some(&*last[0]));
}

#[test]
fn the_night_and_its_record() {
    let Some(place) = place() else { return };
    let did = r#".stages[] | [.name, (if .store then .store.path + ":" else "" end), .did] | @tsv"#;
    let shown = lines(&told(&place, "nightly -n"), |line| line.contains("  "));
    assert_eq!(shown, rows(&jq(&place, "nightly -n", did), &[]));
    assert_eq!(shown.len(), 5);
    // What the night has said is in its record.
    support::cold::rest();
    let shown = lines(&told(&place, "nightly -v"), |line| {
        line.contains("  ") && !line.starts_with(' ')
    });
    let record = support::cold::files_in(place.home().join(".wbhome/runs"))
        .pop()
        .unwrap();
    let record = std::fs::read_to_string(record).unwrap();
    let found = rows(&filtered(did, &record), &[]);
    assert_eq!(shown.len(), found.len(), "{shown:#?}");
    for (line, row) in shown.iter().zip(&found) {
        assert!(line.starts_with(row), "{line}: {row}");
    }
}

#[test]
fn drill() {
    let Some(place) = place() else { return };
    let text = told(&place, "drill");
    let found = jq(&place, "drill", r#".kinds[] | [.data, .things] | @tsv"#);
    for row in &found {
        let (data, things) = row.split_once('\t').unwrap();
        let name = if data == "home" {
            "index, settings"
        } else {
            data
        };
        let is_there = lines(&text, |_| true)
            .iter()
            .any(|line| line.starts_with(&format!("{name} {things} ")));
        assert!(is_there, "{row}\n{text}");
    }
    assert!(found.len() > 3);
    for path in jq(&place, "drill", ".blind_spots[].path") {
        assert!(text.contains(&path), "{path}\n{text}");
    }
}

#[test]
fn schedule() {
    let Some(place) = place() else { return };
    for with in ["cron", "systemd"] {
        let line = format!("schedule show --with {with}");
        let text = told(&place, &line);
        for command in jq(&place, &line, ".command") {
            assert!(text.contains(&command), "{command}\n{text}");
        }
        let all: Vec<&str> = text.lines().map(str::trim).collect();
        for written in jq(&place, &line, ".entries[].text") {
            assert!(all.contains(&written.trim()), "{written:?}\n{text}");
        }
        let at = jq(&place, &line, ".at");
        assert!(text.contains(&format!("the night at {}", at[0])), "{text}");
    }
}

#[test]
fn migrate() {
    if !has_tool("jq") {
        return;
    }
    let place = Place::new();
    let drive = place.path("drive");
    moving::small_home(&place, "drive", drive.to_str().unwrap());
    place.put(
        "drive/sessions/20240601_one/context/turn_003.json",
        "{\"turn\": 3, \"cw",
    );
    place.put("drive/left.tmp", "");
    place.run([
        "migrate",
        "drive",
        "home",
        "--no-state",
        "-y",
        "--exclude",
        "*.tmp",
    ]);
    let line = "migrate status --home home";
    let text = told(&place, line);
    let all = lines(&text, |_| true);
    let classes = jq(
        &place,
        line,
        r#".classes | to_entries[] | select(.value > 0) | [.key, .value] | @tsv"#,
    );
    let shown = rows(&classes, &[]);
    for row in shown.iter().filter(|row| !row.starts_with("total")) {
        let is_there = all
            .iter()
            .any(|line| *line == *row || line.starts_with(&format!("{row} ")));
        assert!(is_there, "{row}\n{text}");
    }
    let total = jq(
        &place,
        line,
        r#""together \(.classes.total) everything in the source""#,
    );
    assert!(all.contains(&total[0]), "{total:?}\n{text}");
    let kept = jq(&place, line, r#""Keep the original until \(.keep_until)""#);
    let until = kept[0].split('T').next().unwrap();
    assert!(text.contains(until), "{kept:?}\n{text}");
    for row in jq(&place, line, r#".findings[] | [.kind, .detail] | @tsv"#) {
        let (kind, detail) = row.split_once('\t').unwrap();
        assert!(
            all.iter()
                .any(|line| line.starts_with(kind) && line.contains(detail)),
            "{row}\n{text}"
        );
    }
}

/// Lines of a text that a person would type to have `jq` look at what the program prints.
fn examples(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| line.starts_with("wbhome ") && line.contains("| jq "));
    // Two spaces, or a remark, lead to what it does.
    lines
        .map(|line| {
            line.split("  ")
                .next()
                .unwrap()
                .split(" #")
                .next()
                .unwrap()
                .trim()
                .to_owned()
        })
        .collect()
}

/// What stands in the documents and in the help is run as it stands, by a shell.
#[test]
fn examples_that_are_printed_work() {
    let Some(place) = place() else { return };
    let bin = place.bare();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wbhome"), bin.join("wbhome")).unwrap();
    let typed = |line: &str| {
        let mut command = place.command();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.current_dir(place.root()).env_clear();
        shell.envs(
            command
                .env("PATH", path)
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let ran = Ran::of(shell.args(["-c", line]).output().unwrap());
        assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
        ran.stdout
    };
    let document = |name: &str| {
        let path = format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"));
        examples(&std::fs::read_to_string(path).unwrap())
    };
    let said: Vec<String> = document("json.md").iter().map(|line| typed(line)).collect();
    assert_eq!(
        said,
        [
            "20240603_crawler\n20240606_quarterly_report_for_the_board\n",
            "sessions/20240605_api_refactor/context/turn_005.json\n",
        ]
    );
    let said: Vec<String> = document("findings.md")
        .iter()
        .map(|line| typed(line))
        .collect();
    assert!(
        said.len() == 2
            && said[0].contains("\"torn-json\": 1")
            && said[1].ends_with("turn_005.json\n"),
        "{said:?}"
    );
    let mut ran = 0;
    for verb in [
        "ls", "search", "du", "doctor", "check", "history", "show", "backup", "nightly",
    ] {
        for line in examples(&place.ok([verb, "--help"])) {
            let said = typed(&line.replace("TODO", "timeout"));
            ran += 1;
            match verb {
                "ls" => assert_eq!(
                    said,
                    "20240603_crawler\n20240606_quarterly_report_for_the_board\n"
                ),
                "search" => assert_eq!(said.lines().count(), 5, "{said}"),
                "doctor" => assert!(said.contains("wbhome commit\n"), "{said}"),
                // There is nothing large to be told of.
                _ => {}
            }
        }
    }
    assert!(ran >= 4, "{ran}");
    // What the documents say of files that lie in the home.
    let index = place.home_text("index.json");
    assert_eq!(
        filtered(".[] | select(.sync_tag != null) | .id", &index),
        ["20240604_数据清洗"]
    );
    assert_eq!(
        filtered(
            r#".[] | select(.project == "alpha") | [.id, .title] | @tsv"#,
            &index
        ),
        [
            "20240603_crawler\t",
            "20240606_quarterly_report_for_the_board\tQ2 report 👨‍👩‍👧 for the board"
        ]
    );
}
