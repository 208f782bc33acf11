//! Whose a folder of `projects/` is: the work folder that the conversations in it name.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::Deserialize;

use super::PROJECTS;
use crate::base::human;
use crate::disk::{self, FileKind};
use crate::paths::{Rewriter, slug_pairs};

/// How much of a line is looked at in one piece. Lines of honest conversations are shorter.
const WINDOW: usize = 1 << 20;

/// How much of it is looked at again with the next piece: more than any path takes.
const OVERLAP: usize = 16 << 10;

/// Where something goes: the slug of the new work folder, or `None` where it is.
type Destination = Option<String>;

/// The work folders that are known from elsewhere, by every name that a folder of theirs may have.
pub(super) struct Known {
    by_slug: BTreeMap<String, BTreeSet<Destination>>,
    /// The beginnings of names of folders that may move.
    moving: Vec<String>,
}

impl Known {
    pub(super) fn new(also_known: &BTreeSet<String>, rewriter: &Rewriter) -> Known {
        let mut by_slug: BTreeMap<String, BTreeSet<Destination>> = BTreeMap::new();
        let old: Vec<&str> = rewriter.mappings().iter().map(|m| m.old.as_str()).collect();
        for cwd in also_known.iter().map(String::as_str).chain(old.clone()) {
            for (name, destination) in names_of(cwd, rewriter) {
                by_slug.entry(name).or_default().insert(destination);
            }
        }
        let moving = old
            .into_iter()
            .flat_map(|old| slug_pairs(old, old))
            .map(|(name, _)| format!("{name}-"))
            .collect();
        Known { by_slug, moving }
    }

    fn of(&self, name: &OsStr) -> BTreeSet<Destination> {
        let known = name.to_str().and_then(|name| self.by_slug.get(name));
        known.cloned().unwrap_or_default()
    }

    /// Whether a folder of that name is known to move.
    pub(super) fn moves(&self, name: &OsStr) -> bool {
        self.of(name).iter().any(Option::is_some)
    }

    /// Why a folder that nobody claims may be one that moves.
    pub(super) fn suspicion(&self, claims: &Claims) -> Option<String> {
        if let Some(cwd) = claims.groups.iter().find_map(|g| g.stranger.as_deref()) {
            return Some(format!(
                "holds conversations of {}, which moves, but is not named after it",
                human::name(cwd)
            ));
        }
        let name = claims.name.to_str()?;
        let may_be = self.moving.iter().any(|old| name.starts_with(old));
        may_be.then(|| "may be named after a folder that moves, but nothing in it says so".into())
    }
}

/// Every name that the folder of `cwd` may have, and where it goes.
fn names_of(cwd: &str, rewriter: &Rewriter) -> Vec<(String, Destination)> {
    let moved = rewriter
        .link_target(cwd.as_bytes())
        .and_then(|(_, new)| String::from_utf8(new).ok());
    let new = moved.as_deref().unwrap_or(cwd);
    slug_pairs(cwd, new)
        .into_iter()
        .map(|(old, new)| {
            let destination = (new != old).then_some(new);
            (old, destination)
        })
        .collect()
}

/// What belongs to one conversation: `<uuid>.jsonl`, `<uuid>/`, `<uuid>.meta.json` …
#[derive(Default)]
pub(super) struct Group {
    pub(super) entries: Vec<OsString>,
    /// Where the work folder goes that it names, if the folder is named after that.
    pub(super) claim: Option<Destination>,
    /// A work folder that moves, which it names though the folder is not named after it.
    stranger: Option<String>,
}

/// Everything that is said about one folder.
pub(super) struct Claims {
    name: OsString,
    pub(super) groups: Vec<Group>,
    pub(super) from_elsewhere: BTreeSet<Destination>,
    pub(super) unreadable: Option<String>,
}

impl Claims {
    pub(super) fn read(
        state: &disk::Dir,
        tree: &disk::Tree,
        name: &OsStr,
        known: &Known,
        rewriter: &Rewriter,
    ) -> Claims {
        let rel = Path::new(PROJECTS).join(name);
        let folder = folder(tree, &rel);
        let mut groups: BTreeMap<OsString, Group> = BTreeMap::new();
        for entry in folder.into_iter().flat_map(|f| &f.entries) {
            let group = groups.entry(stem(&entry.name)).or_default();
            group.entries.push(entry.name.clone());
        }
        let mut search = Search {
            state,
            rewriter,
            name,
            rejected: HashSet::new(),
        };
        for group in groups.values_mut() {
            search.group(tree, &rel, group);
        }
        Claims {
            groups: groups.into_values().collect(),
            from_elsewhere: known.of(name),
            unreadable: folder.and_then(|f| Some(f.unreadable.first()?.1.clone())),
            name: name.to_owned(),
        }
    }
}

fn folder<'t>(tree: &'t disk::Tree, rel: &'t Path) -> Option<&'t disk::Folder> {
    below(tree, rel).next()
}

/// A folder of the tree and all below it, which stand together.
fn below<'t>(tree: &'t disk::Tree, rel: &'t Path) -> impl Iterator<Item = &'t disk::Folder> {
    let at = tree.folders.partition_point(|f| f.rel.as_path() < rel);
    let rest = tree.folders.get(at..).unwrap_or_default();
    rest.iter().take_while(move |f| f.rel.starts_with(rel))
}

/// A name without its endings: ids hold no dot.
fn stem(name: &OsStr) -> OsString {
    let bytes = name.as_bytes();
    let end = match memchr::memchr(b'.', bytes) {
        None | Some(0) => bytes.len(),
        Some(dot) => dot,
    };
    OsString::from_vec(bytes[..end].to_vec())
}

/// Looks for the first `cwd` that a folder is named after.
struct Search<'s> {
    state: &'s disk::Dir,
    rewriter: &'s Rewriter,
    name: &'s OsStr,
    /// Work folders that it is not named after; most lines of a file name the same one.
    rejected: HashSet<String>,
}

impl Search<'_> {
    fn group(&mut self, tree: &disk::Tree, rel: &Path, group: &mut Group) {
        let mut files: Vec<PathBuf> = Vec::new();
        // The conversation itself before what went on beside it.
        for entry in &group.entries {
            files.push(rel.join(entry));
        }
        for entry in &group.entries {
            let subagents = rel.join(entry).join("subagents");
            files.extend(below(tree, &subagents).flat_map(|f| {
                let plain = f.entries.iter().filter(|e| e.meta.kind == FileKind::File);
                plain.map(|e| f.rel.join(&e.name))
            }));
        }
        for file in files {
            if group.claim.is_none() && is_conversation(&file) {
                // What can not be read says nothing.
                let _ = self.file(&file, group);
            }
        }
    }

    fn file(&mut self, file: &Path, group: &mut Group) -> std::io::Result<()> {
        let parent = file.parent().unwrap_or(Path::new(""));
        let dir = self.state.open_beneath(parent)?;
        let name = file.file_name().unwrap_or_default();
        if dir.stat(name)?.kind != FileKind::File {
            return Ok(());
        }
        let mut source = dir.open_file(name)?;
        let mut text: Vec<u8> = Vec::new();
        loop {
            let room = WINDOW.saturating_sub(text.len()) as u64;
            let read = source.by_ref().take(room).read_to_end(&mut text)?;
            let last = read == 0;
            let whole_lines = match memchr::memrchr(b'\n', &text) {
                Some(end) if !last => end + 1,
                _ => text.len(),
            };
            for line in text[..whole_lines].split(|b| *b == b'\n') {
                self.line(line, group);
                if group.claim.is_some() {
                    return Ok(());
                }
            }
            if last {
                return Ok(());
            }
            // Of a line that is larger than the window its end may hold half a field.
            let torn = !text[..whole_lines].ends_with(b"\n");
            let kept = if torn { OVERLAP.min(whole_lines) } else { 0 };
            text.drain(..whole_lines - kept);
        }
    }

    fn line(&mut self, line: &[u8], group: &mut Group) {
        if memmem::find(line, b"\"cwd\"").is_none() {
            return;
        }
        for cwd in top_level(line).unwrap_or_else(|| anywhere(line)) {
            if self.rejected.contains(&cwd) {
                continue;
            }
            let mut names = names_of(&cwd, self.rewriter).into_iter();
            if let Some((_, destination)) = names.find(|(name, _)| self.name == name.as_str()) {
                group.claim = Some(destination);
                return;
            }
            if self.rewriter.link_target(cwd.as_bytes()).is_some() {
                group.stranger.get_or_insert_with(|| cwd.clone());
            }
            self.rejected.insert(cwd);
        }
    }
}

fn is_conversation(file: &Path) -> bool {
    let name = file.as_os_str().as_bytes();
    name.ends_with(b".jsonl") || name.ends_with(b".meta.json")
}

#[derive(Deserialize)]
struct Line {
    cwd: Option<String>,
}

/// The field of each object on a line; `None` when it is not all objects.
fn top_level(line: &[u8]) -> Option<Vec<String>> {
    let objects = serde_json::Deserializer::from_slice(line).into_iter::<Line>();
    let objects: Vec<Line> = objects.collect::<Result<_, _>>().ok()?;
    Some(objects.into_iter().filter_map(|o| o.cwd).collect())
}

/// The field wherever it stands, for lines that are torn, run into each other, or hold NULs.
fn anywhere(line: &[u8]) -> Vec<String> {
    memmem::find_iter(line, b"\"cwd\"")
        .filter_map(|at| {
            let rest = line.get(at + 5..)?.trim_ascii_start();
            let value = rest.strip_prefix(b":")?;
            let mut text = serde_json::Deserializer::from_slice(value).into_iter::<String>();
            text.next()?.ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_in_lines_in_any_state() {
        let found = |line: &[u8]| top_level(line).unwrap_or_else(|| anywhere(line));
        for (line, cwds) in [
            (&br#"{"cwd":"/a","x":{"cwd":"/inner"}}"#[..], &["/a"][..]),
            (br#"{"cwd":"/a"}{"cwd": "\/b\u6570"}"#, &["/a", "/b数"]),
            (br#"{"id":1,"te{"id":2,"cwd" : "/a"}"#, &["/a"]),
            (b"\0\0\0{\"cwd\":\"/a\"}\0", &["/a"]),
            (br#"{"cwd":"/a"}{"cwd":"/b"#, &["/a"]),
            (br#"{"text":"say \"cwd\":\"/no\"","cwd":null}"#, &[]),
            (br#"{"cwd":"/a","cwd":"/b"}"#, &["/a", "/b"]),
            (br#"{"cwd":7}"#, &[]),
            (b"\xff\xfe \"cwd\":\"/a\"", &["/a"]),
        ] {
            assert_eq!(found(line), cwds, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn names_are_grouped_by_what_stands_before_the_first_dot() {
        for (name, expected) in [
            ("u-1.jsonl", "u-1"),
            ("u-1", "u-1"),
            ("u-1.file-rollback.ndjson", "u-1"),
            (".hidden.jsonl", ".hidden.jsonl"),
        ] {
            assert_eq!(stem(OsStr::new(name)), expected);
        }
    }
}
