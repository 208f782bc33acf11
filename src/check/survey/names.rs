//! Names in one folder that are one name on systems which ignore case, or which compose and decompose characters.
//! A sync client keeps one of the files there and drops the other without a word.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use super::view::View;
use crate::base::human;
use crate::check::{Finding, FindingKind, is_left_alone};
use crate::disk::Folder;
use crate::home::folded;

/// Every name that collides with one before it.
pub(super) fn find(view: &View) -> Vec<Finding> {
    view.folders().flat_map(collisions).collect()
}

fn collisions(folder: &Folder) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: HashMap<String, &str> = HashMap::with_capacity(folder.entries.len());
    let names = folder
        .entries
        .iter()
        .filter_map(|entry| entry.name.to_str());
    for name in names.filter(|name| !is_left_alone(&folder.rel.join(name))) {
        let form = match name.is_ascii() {
            true => name.to_ascii_lowercase(),
            false => folded(name),
        };
        match seen.get(form.as_str()) {
            None => drop(seen.insert(form, name)),
            Some(first) => {
                let by = match name.nfc().eq(first.nfc()) {
                    true => "the form of its characters",
                    false => "upper and lower case",
                };
                let detail = format!("differs from {} only by {by}", human::escape(first));
                let finding =
                    Finding::new(FindingKind::NameCollision, folder.rel.join(name), detail);
                findings.push(finding.of(folder.rel.join(first)));
            }
        }
    }
    findings
}
