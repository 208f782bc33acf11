//! The documents name everything that there is, and point at nothing that there is not.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests read the repository, and say what is missing in it"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wbhome::check::FindingKind;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn document(rel: &str) -> String {
    text(&repository().join(rel))
}

fn headings<'t>(text: &'t str, mark: &str) -> Vec<&'t str> {
    text.lines().filter_map(|l| l.strip_prefix(mark)).collect()
}

#[test]
fn every_finding_has_its_section_in_their_order() {
    let findings = document("docs/findings.md");
    let kinds: Vec<&str> = FindingKind::ALL.iter().map(|k| k.as_str()).collect();
    assert_eq!(headings(&findings, "### "), kinds);
}

#[test]
fn every_setting_is_described_with_its_default() {
    let settings = document("examples/wbhome.toml");
    let described = document("docs/configuration.md");
    let mut section = "";
    let mut seen = 0;
    for line in settings.lines() {
        let bare = line.trim_start_matches("# ");
        if let Some(name) = bare.strip_prefix('[') {
            section = name.trim_matches(['[', ']']);
            continue;
        }
        let Some((key, value)) = bare.split_once(" = ").filter(|(key, _)| !key.contains(' '))
        else {
            continue;
        };
        let row = match section {
            "backup.store" => "| `[[backup.store]] dir` |".to_owned(),
            _ => format!("| `{key}` |"),
        };
        let name = section.split('.').next().unwrap_or(section);
        let part = described
            .split("\n## ")
            .flat_map(|part| part.split("\n### "))
            .find(|part| part.starts_with(&format!("{name}\n")))
            .unwrap_or_else(|| panic!("docs/configuration.md has no section {name}"));
        let row = part
            .lines()
            .find(|line| line.starts_with(&row))
            .unwrap_or_else(|| panic!("docs/configuration.md does not describe [{section}] {key}"));
        let default = match (line.starts_with('#'), section) {
            (true, "backup.store") => "none".to_owned(),
            (true, _) => "not set".to_owned(),
            (false, _) => format!("`{value}`"),
        };
        assert!(row.contains(&format!("| {default} |")), "{row}: {default}");
        seen += 1;
    }
    assert_eq!(seen, 32);
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let manifest = document("Cargo.toml");
    let reasons = document("docs/dependencies.md");
    let mut within = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            within = line.ends_with("dependencies]");
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| within) {
            assert!(
                reasons.contains(&format!("`{name}`")),
                "docs/dependencies.md does not say what {name} is for"
            );
        }
    }
}

/// Where a link to `#…` leads, as sites that show Markdown make it of a heading.
fn anchors(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut documents = vec![
        "README.md".to_owned(),
        "ARCHITECTURE.md".into(),
        "CONTRIBUTING.md".into(),
        "examples/README.md".into(),
    ];
    for entry in walkdir::WalkDir::new(repository().join("docs")) {
        let name = entry.unwrap().file_name().to_str().unwrap().to_owned();
        if name.ends_with(".md") {
            documents.push(format!("docs/{name}"));
        }
    }
    let mut seen = 0;
    for name in documents {
        let path = repository().join(&name);
        let content = text(&path);
        for (at, _) in content.match_indices("](") {
            let target = content[at + 2..].split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(file.exists(), "{name}: {target}");
            if !anchor.is_empty() {
                assert!(anchors(&text(&file)).contains(anchor), "{name}: {target}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
