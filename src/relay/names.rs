//! Names that sync clients drop without a word, or take for one another.
//!
//! A session that arrives without some of its files is worse than one that does not leave: so what can not travel under
//! its name is told, with a name that can.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::human;
use crate::base::wire::WirePath;
use crate::home::folded;

/// Windows takes 260 characters for a whole path, and something stands before the session there.
const LONGEST: usize = 240;

/// A name that can not travel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadName {
    /// Below the session; empty for the session itself.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
    /// A name that could, if one is known.
    pub suggestion: Option<String>,
}

/// Those of a session's names that can not travel. `paths` are below the session.
pub fn bad_names<'a>(id: &str, paths: impl Iterator<Item = &'a PathBuf>) -> Vec<BadName> {
    let mut bad = Vec::new();
    let mut forms: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    bad.extend(of_name(Path::new(""), id));
    for path in paths {
        let Some(name) = path.file_name() else {
            continue;
        };
        let Some(name) = name.to_str() else {
            let why = "it is not UTF-8, which many sync clients drop".to_owned();
            bad.push(told(path, why, None));
            continue;
        };
        bad.extend(of_name(path, name));
        let length = id.chars().count() + 1 + path.to_string_lossy().chars().count();
        if length > LONGEST {
            let why =
                format!("its path has {length} characters, of which Windows takes about {LONGEST}");
            bad.push(told(path, why, None));
        }
        let form: PathBuf = path
            .iter()
            .map(|part| folded(&part.to_string_lossy()))
            .collect();
        if let Some(other) = forms.insert(form, path) {
            let why = format!(
                "it is the same as {} where case or Unicode form do not count",
                human::path(other)
            );
            bad.push(told(path, why, Some(another(name))));
        }
    }
    bad
}

fn told(path: &Path, why: String, suggestion: Option<String>) -> BadName {
    BadName {
        path: path.to_path_buf().into(),
        why,
        suggestion,
    }
}

/// A name like it that is another one, and that every client takes.
fn another(name: &str) -> String {
    let name = match why_not(name) {
        Some(_) => mended(name),
        None => name.to_owned(),
    };
    // A dot at the beginning begins no ending.
    match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => format!("{stem}_2.{end}"),
        _ => format!("{name}_2"),
    }
}

fn of_name(path: &Path, name: &str) -> Option<BadName> {
    let why = why_not(name)?;
    Some(told(path, why, Some(mended(name))))
}

/// Why a name is not taken by some sync client.
pub(super) fn why_not(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let special = |c: &char| matches!(c, '*' | ':' | '<' | '>' | '?' | '|' | '"' | '\\');
    if let Some(c) = name.chars().find(special) {
        return Some(format!("`{c}` can not stand in a name on Windows"));
    }
    if name.chars().any(char::is_control) {
        return Some("a control character can not stand in a name on Windows".to_owned());
    }
    if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        return Some("sync clients drop a blank at an end, and a dot at the last".to_owned());
    }
    let stem = lower.split('.').next().unwrap_or_default().trim_end();
    let numbered = |device: &str| {
        stem.strip_prefix(device)
            .is_some_and(|n| matches!(n.as_bytes(), [b'1'..=b'9']))
    };
    if matches!(stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt") {
        return Some(format!("{stem} is the name of a device on Windows"));
    }
    for (is_such, what) in [
        (name.starts_with("~$"), "~$ begins a lock file of an office"),
        (lower.ends_with(".tmp"), ".tmp ends a temporary file"),
        (lower.ends_with(".nosync"), ".nosync says not to sync it"),
        (lower.ends_with(".partial"), ".partial ends a download"),
    ] {
        if is_such {
            return Some(format!("{what}, which sync clients pass over"));
        }
    }
    None
}

/// A name like it that every client takes.
fn mended(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| match c {
            '*' | ':' | '<' | '>' | '?' | '|' | '"' | '\\' => '_',
            c if c.is_control() => '_',
            c => c,
        })
        .collect();
    let plain = plain.trim_matches(' ').trim_end_matches(['.', ' ']);
    let plain = plain.strip_prefix("~$").unwrap_or(plain);
    let cut = |name: &str, end: &str| -> Option<String> {
        let at = name.len().checked_sub(end.len())?;
        let (stem, found) = (name.get(..at)?, name.get(at..)?);
        found
            .eq_ignore_ascii_case(end)
            .then(|| format!("{stem}{}", end.replacen('.', "_", 1)))
    };
    let plain = [".tmp", ".nosync", ".partial"]
        .iter()
        .find_map(|end| cut(plain, end))
        .unwrap_or_else(|| plain.to_owned());
    match plain.is_empty() || why_not(&plain).is_some() {
        true => format!("_{plain}"),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_drop_is_told_with_a_name_that_they_take() {
        for (name, suggestion) in [
            ("a:b?.md", "a_b_.md"),
            ("报告.", "报告"),
            (" x", "x"),
            ("CON.txt", "_CON.txt"),
            ("com1", "_com1"),
            ("~$计划.docx", "计划.docx"),
            ("cache.tmp", "cache_tmp"),
            ("x.NOSYNC", "x_nosync"),
            ("a\nb", "a_b"),
            ("?", "_"),
            ("...", "_"),
        ] {
            let paths = [PathBuf::from("artifacts").join(name)];
            let bad = bad_names("20240603_x", paths.iter());
            assert_eq!(bad.len(), 1, "{name}: {bad:?}");
            assert_eq!(bad[0].suggestion.as_deref(), Some(suggestion), "{name}");
            assert_eq!(why_not(suggestion), None, "{suggestion}");
        }
        for good in [
            "turn_001.json",
            "数据 (1).md",
            "com10",
            "control",
            "a.tmp.md",
            ".git",
        ] {
            assert_eq!(why_not(good), None, "{good}");
        }
    }

    #[test]
    fn names_that_clash_are_told() {
        let paths = ["产物/Über.md", "产物/u\u{308}ber.md", "context/a"].map(PathBuf::from);
        let bad = bad_names("任务", paths.iter());
        assert_eq!(bad.len(), 1, "{bad:?}");
        assert_eq!(bad[0].suggestion.as_deref(), Some("u\u{308}ber_2.md"));
        // A folder that clashes is told, and each name that clashes because of it.
        let paths = ["A", "A/x", "a", "a/y"].map(PathBuf::from);
        assert_eq!(bad_names("任务", paths.iter()).len(), 1);
        // What clashes and can not travel as it is gets a name that can.
        for (one, other, suggestion) in [
            ("A.", "a.", "a_2"),
            ("周报.TMP", "周报.tmp", "周报_tmp_2"),
            (".Env", ".env", ".env_2"),
        ] {
            let bad = bad_names("任务", [one, other].map(PathBuf::from).iter());
            let last = bad.last().unwrap().suggestion.as_deref();
            assert_eq!(last, Some(suggestion));
            assert_eq!(why_not(suggestion), None);
        }
        let long = PathBuf::from("x/".repeat(130) + "y");
        assert_eq!(bad_names("任务", [long].iter()).len(), 1);
        assert_eq!(bad_names("a:b", [].iter()).len(), 1);
    }
}
