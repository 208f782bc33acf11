//! Agents whose declaration names skills that are not there, or whose skills name an entry that is not.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::entries;
use super::view::View;
use crate::base::human;
use crate::check::{Finding, FindingKind};
use crate::disk::{self, FileKind};

/// No honest declaration is larger.
const LIMIT: u64 = 1 << 20;

/// Looks through every `agents/<agent>/agent.yaml` and the skills that belong to it.
pub(super) fn find(view: &View) -> Vec<Finding> {
    let Some(agents) = view
        .folder(Path::new("agents"))
        .filter(|_| view.survey.only.is_none())
    else {
        return Vec::new();
    };
    agents
        .entries
        .iter()
        .filter(|entry| entry.meta.kind == FileKind::Folder)
        .flat_map(|entry| of_agent(view, &agents.rel.join(&entry.name)))
        .collect()
}

fn of_agent(view: &View, agent: &Path) -> Vec<Finding> {
    let declaration = agent.join("agent.yaml");
    let (mut findings, mut files) = (Vec::new(), own_skills(view, agent));
    match declared(view, agent) {
        Err(error) => findings.push(Finding::unreadable(declaration, error)),
        Ok(skills) => {
            for skill in skills {
                match file_of(view, agent, &skill) {
                    Some(file) => files.push(file),
                    None => {
                        let path = agent.join("skills").join(format!("{skill}.yaml"));
                        let detail =
                            format!("is not there; {} names it", human::path(&declaration));
                        let missing = Finding::new(FindingKind::MissingSkill, path, detail);
                        findings.push(missing.of(&declaration));
                    }
                }
            }
        }
    }
    files.sort();
    files.dedup();
    findings.extend(
        files
            .iter()
            .filter_map(|file| entries::missing(view, agent, file)),
    );
    findings
}

/// The skills that an agent's declaration names; an error says why it can not be read.
fn declared(view: &View, agent: &Path) -> Result<Vec<String>, String> {
    let name = OsStr::new("agent.yaml");
    let there = view.entry(&agent.join(name));
    if there.is_none_or(|entry| entry.meta.kind != FileKind::File) {
        return Ok(Vec::new());
    }
    let dir = view.survey.root.open_beneath(agent);
    let content = dir.and_then(|dir| disk::read_small_in(&dir, name, LIMIT));
    let content = content.map_err(|error| human::io(&error))?;
    Ok(skills(&String::from_utf8_lossy(
        &content.unwrap_or_default(),
    )))
}

/// What lies in an agent's own `skills/`, whether or not its declaration names it.
fn own_skills(view: &View, agent: &Path) -> Vec<PathBuf> {
    let folder = view.folder(&agent.join("skills"));
    let entries = folder.into_iter().flat_map(|f| &f.entries);
    entries
        .map(|entry| agent.join("skills").join(&entry.name))
        .collect()
}

/// Where a skill is: beside the agent, or shared by all of them; a file, or a folder of files.
fn file_of(view: &View, agent: &Path, skill: &str) -> Option<PathBuf> {
    let shelves = [
        agent.join("skills"),
        "agents/skills".into(),
        "skills".into(),
    ];
    let files = shelves.iter().flat_map(|shelf| {
        let endings = ["", ".yaml", ".yml", ".md", ".json"];
        endings.map(|ending| shelf.join(format!("{skill}{ending}")))
    });
    files.into_iter().find(|file| view.entry(file).is_some())
}

/// The names in the list `skills:` at the top of a declaration. It is written in three ways, and these are read:
/// `skills: [a, b]`, also over several lines, and a line `- a` or `- name: a` for each. Whatever is no plain name (a
/// path, an address, an anchor) is not ours to judge.
fn skills(yaml: &str) -> Vec<String> {
    let mut lines = yaml.lines();
    let Some(rest) = lines.by_ref().find_map(|line| line.strip_prefix("skills:")) else {
        return Vec::new();
    };
    let rest = without_comment(rest).trim();
    let mut names: Vec<String> = if let Some(list) = rest.strip_prefix('[') {
        let mut list = list.to_owned();
        while !list.contains(']') {
            match lines.next() {
                Some(line) => list.extend([" ", without_comment(line)]),
                None => break,
            }
        }
        let list = list.split(']').next().unwrap_or_default();
        list.split(',').filter_map(plain_name).collect()
    } else if rest.is_empty() {
        block(lines)
    } else {
        Vec::new()
    };
    names.sort();
    names.dedup();
    names
}

fn block<'y>(lines: impl Iterator<Item = &'y str>) -> Vec<String> {
    let mut names = Vec::new();
    let mut indent = None;
    for line in lines {
        let text = without_comment(line).trim_end();
        let item = text.trim_start();
        if item.is_empty() {
            continue;
        }
        let depth = text.len() - item.len();
        let listed = item
            .strip_prefix('-')
            .filter(|rest| rest.is_empty() || rest.starts_with(' '));
        match listed {
            // Deeper ones belong to an item.
            Some(name) if *indent.get_or_insert(depth) == depth => {
                let name = name.trim();
                names.extend(plain_name(name.strip_prefix("name:").unwrap_or(name)));
            }
            _ if depth > indent.unwrap_or(0) => {}
            _ => break,
        }
    }
    names
}

pub(super) fn without_comment(line: &str) -> &str {
    match line.find(" #") {
        Some(at) => &line[..at],
        None if line.starts_with('#') => "",
        None => line,
    }
}

fn plain_name(text: &str) -> Option<String> {
    let name = text.trim().trim_matches(['"', '\'']).trim();
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '));
    (plain && !name.is_empty() && !name.starts_with('.') && name != "null").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_people_write_them() {
        let cases = [
            (
                "skills: [web_search, \"code runner\"] # two",
                vec!["code runner", "web_search"],
            ),
            (
                "name: x\nskills: [\n  a, # first\n  b\n]\nother: [c]\n",
                vec!["a", "b"],
            ),
            (
                "skills:\n  - a\n  # none\n\n  - name: b\n    args:\n      - z\n  - 'c'\nmodel: m\n",
                vec!["a", "b", "c"],
            ),
            ("skills:\n- a\n- b\nmodel: m\n- c\n", vec!["a", "b"]),
            ("skills: []\n", vec![]),
            ("skills:\nmodel: m\n", vec![]),
            ("skills: [../x, https://e.org/y, *anchor, '', a]", vec!["a"]),
            ("skills: [a", vec!["a"]),
            ("sub:\n  skills: [a]\n", vec![]),
            ("", vec![]),
        ];
        for (yaml, names) in cases {
            assert_eq!(skills(yaml), names, "{yaml}");
        }
    }
}
