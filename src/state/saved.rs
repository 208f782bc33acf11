//! Which files of a state folder a backup takes, and what for.
//!
//! Taken is whatever a person would miss, and what nobody knows here: of an unknown file it can not be said that it may go.
//! Left out is what the application writes and never reads again, what it can make or download anew, and what speaks of
//! running processes. Settings may differ from that: what they include is taken though it would be left out, and what
//! they exclude is never taken.

use std::ffi::OsStr;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

use super::HISTORY;
use crate::base::{Error, Result, human};

/// What a saved file is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `plans/` and `memory/`: what is worked with day by day.
    Daily,
    /// The conversations of one work folder, `projects/<slug>/…`.
    Transcripts,
    /// Everything else that is saved: settings, skills, plugins, connectors, and what is not known here.
    Settings,
}

/// What [`Part::Daily`] is made of.
const DAILY: [&str; 2] = ["plans", "memory"];

/// Where a file or folder of any name is somebody's own: what is called `cache` there is no cache.
const OWN: [&str; 5] = ["plans", "memory", "projects", "skills", "plugins"];

/// At the top of the folder: the registry of running processes, what was not finished, and caches.
const PASSING: [&str; 5] = ["sessions", "tmp", "temp", "cache", "caches"];

/// At any depth: what a browser engine keeps and makes anew.
const CACHES: [&str; 9] = [
    "Cache",
    "Code Cache",
    "GPUCache",
    "DawnCache",
    "DawnGraphiteCache",
    "DawnWebGPUCache",
    "GrShaderCache",
    "ShaderCache",
    "Crashpad",
];

/// The choice of what is saved.
#[derive(Debug)]
pub struct Saved {
    include: GlobSet,
    /// For each glob of `include`, one for each folder that leads to what it matches.
    leading: Vec<Leading>,
    exclude: GlobSet,
}

/// The components of a glob, to know which folders may hold something that it matches.
#[derive(Debug)]
enum Leading {
    /// Any folder may.
    Any,
    /// A folder whose names match these, as far as both go. After the last of them any folder may, if so.
    Names(Vec<GlobMatcher>, bool),
}

impl Saved {
    /// The usual choice, and what differs from it: globs relative to the folder. `*` stays within a name, `**` does not; a
    /// glob without `/` is looked for at any depth; one that matches a folder means everything in it.
    ///
    /// # Errors
    /// A glob that makes no sense.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Saved> {
        let (included, leading) = globs("include", include)?;
        Ok(Saved {
            include: included,
            leading,
            exclude: globs("exclude", exclude)?.0,
        })
    }

    /// What a file is part of; `None` when it is not saved. `rel` is relative to the state folder.
    pub fn part(&self, rel: &Path) -> Option<Part> {
        if any_above(&self.exclude, rel) {
            return None;
        }
        (!left_out(rel) || any_above(&self.include, rel)).then(|| Saved::place_of(rel))
    }

    /// Whether nothing in a folder is saved, so that nobody needs to look.
    pub fn skip_folder(&self, rel: &Path) -> bool {
        if any_above(&self.exclude, rel) {
            return true;
        }
        left_out(rel)
            && !any_above(&self.include, rel)
            && !self.leading.iter().any(|leading| leading.leads(rel))
    }

    /// What a file there would be part of, whether it is saved or not.
    pub fn place_of(rel: &Path) -> Part {
        let mut names = rel.iter();
        match names.next() {
            Some(first) if DAILY.iter().any(|name| first == *name) => Part::Daily,
            // The packs of conversations are named by their folder, and that has to be a text.
            Some(first) if first == "projects" => match names.next().and_then(OsStr::to_str) {
                Some(_) if names.next().is_some() => Part::Transcripts,
                _ => Part::Settings,
            },
            _ => Part::Settings,
        }
    }
}

/// Whether the usual choice leaves out what lies there.
fn left_out(rel: &Path) -> bool {
    let mut names = rel.iter();
    let Some(first) = names.next() else {
        return false;
    };
    let is = |list: &[&str], name: &OsStr| list.iter().any(|known| name == *known);
    if is(&HISTORY, first) || is(&PASSING, first) {
        return true;
    }
    let bytes = first.as_encoded_bytes();
    // What a move has put there for the time being, and locks of running processes.
    if bytes.starts_with(b".wbhome-") || bytes.ends_with(b".lock") {
        return true;
    }
    !is(&OWN, first) && rel.iter().any(|name| is(&CACHES, name))
}

/// Whether one of the globs matches it, or a folder that it lies in.
fn any_above(globs: &GlobSet, rel: &Path) -> bool {
    !globs.is_empty()
        && rel
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty())
            .any(|path| globs.is_match(path))
}

fn globs(key: &str, patterns: &[String]) -> Result<(GlobSet, Vec<Leading>)> {
    let wrong = |pattern: &str, why: String| {
        Error::failed(format!(
            "bad glob `{}` in `[state] {key}`: {why}",
            human::name(pattern)
        ))
        .hint("globs are relative to the state folder, as in \"logs/important/**\"")
    };
    let mut set = GlobSetBuilder::new();
    let mut leading = Vec::new();
    for pattern in patterns {
        let relative = pattern.strip_prefix("./").unwrap_or(pattern);
        let relative = relative.trim_end_matches('/');
        if relative.is_empty() {
            return Err(wrong(pattern, "it is empty".to_owned()));
        }
        if relative.starts_with(['/', '~']) {
            return Err(wrong(
                pattern,
                "it is not relative to the folder".to_owned(),
            ));
        }
        let whole = match relative.contains('/') {
            true => relative.to_owned(),
            false => format!("**/{relative}"),
        };
        let glob = build(&whole).map_err(|e| wrong(pattern, e.kind().to_string()))?;
        set.add(glob);
        leading.push(Leading::of(&whole));
    }
    let set = set
        .build()
        .map_err(|e| wrong(&patterns.join(", "), e.kind().to_string()))?;
    Ok((set, leading))
}

fn build(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

impl Leading {
    fn of(pattern: &str) -> Leading {
        // A choice may hold a `/`, and so may a class.
        if pattern.contains(['{', '[', '\\']) {
            return Leading::Any;
        }
        let mut names = Vec::new();
        for name in pattern.split('/') {
            if name == "**" {
                return Leading::Names(names, true);
            }
            match build(name) {
                Ok(glob) => names.push(glob.compile_matcher()),
                Err(_) => return Leading::Any,
            }
        }
        Leading::Names(names, false)
    }

    fn leads(&self, folder: &Path) -> bool {
        match self {
            Leading::Any => true,
            Leading::Names(globs, open) => {
                let depth = folder.iter().count();
                (*open || depth < globs.len())
                    && folder
                        .iter()
                        .zip(globs)
                        .all(|(name, glob)| glob.is_match(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(include: &[&str], exclude: &[&str]) -> Saved {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        Saved::new(&own(include), &own(exclude)).unwrap()
    }

    fn part(saved: &Saved, rel: &str) -> Option<Part> {
        saved.part(Path::new(rel))
    }

    #[test]
    fn what_a_person_would_miss_is_saved_and_what_grows_is_not() {
        let usual = saved(&[], &[]);
        for (rel, expected) in [
            ("workbuddy.db", Some(Part::Settings)),
            ("edge-sync-mapping-v2.db", Some(Part::Settings)),
            ("settings.json", Some(Part::Settings)),
            ("skills/爬虫/cache/a", Some(Part::Settings)),
            ("skills/uv.lock", Some(Part::Settings)),
            ("plugins/cache/x/plugin.json", Some(Part::Settings)),
            ("app/window.json", Some(Part::Settings)),
            ("nobody knows this", Some(Part::Settings)),
            ("plans/a.md", Some(Part::Daily)),
            ("memory/tmp/a.md", Some(Part::Daily)),
            ("projects/tmp/a.jsonl", Some(Part::Transcripts)),
            (
                "projects/Users-me/x/tool-results/Cache/1",
                Some(Part::Transcripts),
            ),
            ("projects/loose.json", Some(Part::Settings)),
            ("logs/a.log", None),
            ("traces/12/a", None),
            ("file-history/a", None),
            ("shell-snapshots/a", None),
            ("audit-log/a", None),
            ("binaries/python/bin/python", None),
            ("sessions/12.json", None),
            ("tmp/a", None),
            ("app/Code Cache/js/1", None),
            ("GPUCache/data_0", None),
            ("app.lock", None),
            (".wbhome-tmp-0123", None),
        ] {
            assert_eq!(part(&usual, rel), expected, "{rel}");
        }
        for folder in ["logs", "sessions", "app/Cache", "binaries"] {
            assert!(usual.skip_folder(Path::new(folder)), "{folder}");
        }
        for folder in ["", "app", "projects", "projects/tmp", "skills/Cache"] {
            assert!(!usual.skip_folder(Path::new(folder)), "{folder}");
        }
    }

    #[test]
    fn include_beats_the_usual_choice_and_exclude_beats_everything() {
        let chosen = saved(
            &["logs/important/**/*.log", "audit-log", "tmp/*/keep"],
            &["projects/secret", "*.mp4", "audit-log/2023/**"],
        );
        for (rel, expected) in [
            ("logs/important/a.log", Some(Part::Settings)),
            ("logs/important/deep/er/a.log", Some(Part::Settings)),
            ("logs/important/a.txt", None),
            ("logs/a.log", None),
            ("audit-log/2024/1.json", Some(Part::Settings)),
            ("audit-log/2023/1.json", None),
            ("tmp/x/keep/1", Some(Part::Settings)),
            ("tmp/x/other", None),
            ("projects/secret/a.jsonl", None),
            ("projects/open/a.jsonl", Some(Part::Transcripts)),
            ("memory/film.mp4", None),
        ] {
            assert_eq!(part(&chosen, rel), expected, "{rel}");
        }
        for (folder, skipped) in [
            ("logs", false),
            ("logs/important", false),
            ("logs/important/deep", false),
            ("logs/other", true),
            ("audit-log", false),
            ("traces", false),
            ("tmp/x", false),
            ("projects/secret", true),
            ("audit-log/2023/01", true),
        ] {
            // `audit-log` without `/` may be anywhere, so that nothing can be skipped but what is excluded.
            let skipped = skipped && folder != "logs/other";
            assert_eq!(chosen.skip_folder(Path::new(folder)), skipped, "{folder}");
        }
        let narrow = saved(&["logs/important/*.log"], &[]);
        for (folder, skipped) in [("logs", false), ("logs/other", true), ("traces", true)] {
            assert_eq!(narrow.skip_folder(Path::new(folder)), skipped, "{folder}");
        }
    }

    #[test]
    fn a_bad_glob_is_named() {
        for bad in ["logs/[", "", "/etc/passwd", "~/x"] {
            let error = Saved::new(&[], &[bad.to_owned()]).unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{bad}` in `[state] exclude`")),
                "{error}"
            );
        }
    }
}
