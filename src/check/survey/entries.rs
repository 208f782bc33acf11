//! What a skill's file names as its entry: the program or script that is run.
//!
//! Whether an entry is there can only be said of one that names a place in the home. Command lines, modules, addresses
//! and places elsewhere on the machine are not ours to judge.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::agents::without_comment;
use super::view::View;
use crate::base::human;
use crate::check::{Finding, FindingKind};
use crate::disk::{self, FileKind};

/// No honest declaration is larger.
const LIMIT: u64 = 1 << 20;

/// Endings by which a name alone is known for a file and not a command.
const SCRIPTS: [&str; 8] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl"];

/// A finding for a skill of `agent` whose file is there and whose entry is not.
pub(super) fn missing(view: &View, agent: &Path, skill: &Path) -> Option<Finding> {
    if view.entry(skill)?.meta.kind != FileKind::File {
        return None;
    }
    let (folder, name) = (skill.parent()?, skill.file_name()?);
    let dir = view.survey.root.open_beneath(folder);
    let content = dir.and_then(|dir| disk::read_small_in(&dir, name, LIMIT));
    let content = match content {
        Ok(content) => content.unwrap_or_default(),
        Err(error) => return Some(Finding::unreadable(skill, human::io(&error))),
    };
    let entry = entry_of(skill, &content)?;
    if places(view, agent, skill, &entry)?
        .iter()
        .any(|place| may_be_there(view, place))
    {
        return None;
    }
    let detail = format!("its entry {} is not there", human::name(&entry));
    Some(Finding::new(FindingKind::MissingSkill, skill, detail))
}

/// The value of `entry` at the top of a declaration; `None` when there is none, or it is no plain text.
fn entry_of(skill: &Path, content: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let entry = match skill.extension().and_then(OsStr::to_str)? {
        "json" => serde_json::from_str::<serde_json::Value>(text)
            .ok()?
            .get("entry")?
            .as_str()?
            .to_owned(),
        "yaml" | "yml" => scalar(text.lines().find_map(|line| line.strip_prefix("entry:"))?)?,
        _ => return None,
    };
    (!entry.is_empty()).then_some(entry)
}

/// A text as YAML writes one on a line.
fn scalar(text: &str) -> Option<String> {
    let text = text.trim();
    match text.chars().next()? {
        '"' => {
            // YAML's escapes are those of JSON and a few that nobody uses in a path.
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
            values.next()?.ok()
        }
        '\'' => {
            let inner = text.get(1..)?.replace("''", "\0");
            let end = inner.find('\'')?;
            Some(inner[..end].replace('\0', "'"))
        }
        '|' | '>' | '*' | '&' | '!' | '[' | '{' | '#' => None,
        _ => Some(without_comment(text).trim().to_owned()),
    }
}

/// Where in the home the entry may lie, relative to it; `None` when that is not ours to judge.
fn places(view: &View, agent: &Path, skill: &Path, entry: &str) -> Option<Vec<PathBuf>> {
    let path = Path::new(entry);
    if path.is_absolute() {
        if let Ok(inside) = path.strip_prefix(view.survey.root_path) {
            return Some(vec![within(inside)?]);
        }
        // Where the home was before, or on another machine: `<anywhere>/agents/<an agent that is here>/…`.
        if !matches!(disk::stat(path), Ok(None)) {
            return None;
        }
        let parts: Vec<Component> = path.components().collect();
        let at = parts
            .iter()
            .position(|part| *part == Component::Normal("agents".as_ref()))?;
        let inside = within(&parts[at..].iter().collect::<PathBuf>())?;
        let owner: PathBuf = inside.components().take(2).collect();
        return view.folder(&owner).is_some().then(|| vec![inside]);
    }
    let odd = |c: char| c.is_whitespace() || "$*?{}<>|;&:~`\\".contains(c);
    let ending = path.extension().and_then(OsStr::to_str);
    let is_script = ending.is_some_and(|ending| SCRIPTS.contains(&ending));
    if entry.contains(odd) || !(entry.contains('/') || is_script) {
        return None;
    }
    let skills = skill.parent().unwrap_or(Path::new(""));
    let bases = [agent, skills, &skill.with_extension(""), Path::new("")];
    bases
        .into_iter()
        .map(|base| within(&base.join(path)))
        .collect()
}

/// A path below the home without `.` and `..`; `None` when it leads out.
fn within(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// Whether something is at a place, or that can not be known. A command line may follow the path, which may itself hold
/// spaces.
fn may_be_there(view: &View, place: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let bytes = place.as_os_str().as_bytes();
    let ends = memchr::memchr_iter(b' ', bytes).chain([bytes.len()]);
    ends.map(|end| Path::new(OsStr::from_bytes(&bytes[..end])))
        .any(|path| {
            let unknown = path
                .ancestors()
                .skip(1)
                .find_map(|above| view.folder(above));
            path.as_os_str().is_empty()
                || view.folder(path).is_some()
                || view.entry(path).is_some()
                // What lies behind a link, in the tool's own folder or a closed one was not walked.
                || path.ancestors().skip(1).any(|above| {
                    view.entry(above)
                        .is_some_and(|e| e.meta.kind == FileKind::Symlink)
                })
                || crate::check::is_own_folder(path)
                || unknown.is_none_or(|folder| !folder.unreadable.is_empty())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_people_write_it() {
        let yaml = |text: &str| entry_of(Path::new("x.yaml"), text.as_bytes());
        for (text, entry) in [
            ("name: x\nentry: \"/a/\\u4e3b b\" # run\n", Some("/a/主 b")),
            ("entry: '/a/it''s'\n", Some("/a/it's")),
            ("entry: bin/run --fast # quick\n", Some("bin/run --fast")),
            ("entry: /Cloud Drive/x\r\n", Some("/Cloud Drive/x")),
            ("entry: >\n  folded\n", None),
            ("entry:\n", None),
            ("entry: \"torn\n", None),
            ("sub:\n  entry: x\n", None),
        ] {
            assert_eq!(yaml(text).as_deref(), entry, "{text}");
        }
        let json = entry_of(Path::new("x.json"), br#"{"entry": "a/b"}"#);
        assert_eq!(json.as_deref(), Some("a/b"));
        assert_eq!(entry_of(Path::new("x.md"), b"entry: a/b\n"), None);
    }

    #[test]
    fn no_path_leads_out() {
        assert_eq!(within(Path::new("a/../b/./c")).unwrap(), Path::new("b/c"));
        assert_eq!(within(Path::new("a/../../b")), None);
    }
}
