//! Which folders of `projects/` get another name, because the work folders that they are named after have moved.
//!
//! A name there is a slug: lossy, and so never read back. Whose it is stands in the conversations in it, and two work
//! folders may share one (`/a/b` and `/a-b`, any two Chinese names of one length). So each conversation is asked, and only
//! those that move are moved; what nobody claims, or two, stays and is named.

mod claims;
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::claims::{Claims, Known};
use crate::base::{Error, Result, human};
use crate::disk::{self, FileKind};
use crate::paths::Rewriter;

/// The folder that holds one folder for each work folder.
const PROJECTS: &str = "projects";

/// The longest name that file systems take.
const LONGEST_NAME: usize = 255;

/// What is to get another name. Paths are relative to the state folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slugs {
    /// In an order in which each finds its new name free. The folder of a new name may be missing still.
    pub moves: Vec<Move>,
    /// What stays because nobody can know, and why.
    pub doubtful: Vec<(PathBuf, String)>,
    /// Folders that hold nothing any more when all of that is done.
    pub emptied: Vec<PathBuf>,
}

/// A folder or file of `projects/` with its new name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Move {
    /// Where it is.
    #[serde(with = "crate::base::wire::exact_path")]
    pub from: PathBuf,
    /// Where it is to be.
    #[serde(with = "crate::base::wire::exact_path")]
    pub to: PathBuf,
}

/// Plans it. `tree` is a walk of the folder `state`; `also_known` are work folders that are known from elsewhere: the
/// database, the registry, the sessions of the home.
///
/// # Errors
/// Two files that would get one name.
pub fn plan(
    state: &disk::Dir,
    tree: &disk::Tree,
    also_known: &BTreeSet<String>,
    rewriter: &Rewriter,
) -> Result<Slugs> {
    let projects = Path::new(PROJECTS);
    let Some(folder) = tree.folders.iter().find(|f| f.rel == projects) else {
        return Ok(Slugs::default());
    };
    let known = Known::new(also_known, rewriter);
    let fold = Fold {
        blind: is_case_blind(state),
    };
    let mut slugs = Slugs::default();
    let mut sources = BTreeMap::new();
    for entry in &folder.entries {
        let rel = projects.join(&entry.name);
        if entry.meta.kind != FileKind::Folder {
            if known.moves(&entry.name) && entry.meta.kind == FileKind::Symlink {
                let why = "is a link, which is not followed".to_owned();
                slugs.doubtful.push((rel, why));
            }
            continue;
        }
        let claims = Claims::read(state, tree, &entry.name, &known, rewriter);
        let source = decide(&rel, claims, &known, &mut slugs.doubtful);
        sources.insert(entry.name.clone(), source);
    }
    let others = folder.entries.iter().map(|e| fold.key(&e.name)).collect();
    let shelf = Shelf::new(sources, others, fold);
    shelf.check()?;
    let moves = shelf.moves(&mut slugs.emptied);
    slugs.moves = order::in_order(moves)?;
    Ok(slugs)
}

/// A folder, and where its entries go: `None` is where they are.
#[derive(Default)]
struct Source {
    entries: Vec<(OsString, Option<String>)>,
    /// Where all of it goes, if all of it goes to one place.
    whole: Option<String>,
}

impl Source {
    fn staying(entries: Vec<OsString>) -> Source {
        Source {
            entries: entries.into_iter().map(|name| (name, None)).collect(),
            whole: None,
        }
    }

    fn targets(&self) -> BTreeSet<&str> {
        let entries = self.entries.iter().filter_map(|(_, to)| to.as_deref());
        entries.chain(self.whole.as_deref()).collect()
    }
}

/// Where each conversation in a folder goes.
fn decide(
    rel: &Path,
    claims: Claims,
    known: &Known,
    doubtful: &mut Vec<(PathBuf, String)>,
) -> Source {
    let all: BTreeSet<Option<String>> = claims
        .groups
        .iter()
        .filter_map(|group| group.claim.clone())
        .chain(claims.from_elsewhere.iter().cloned())
        .collect();
    let entries = || {
        claims
            .groups
            .iter()
            .flat_map(|g| g.entries.clone())
            .collect()
    };
    if all.iter().all(Option::is_none) {
        // Nobody who claims it moves. Without any claim it may be one that does.
        if all.is_empty()
            && let Some(why) = known.suspicion(&claims)
        {
            doubtful.push((rel.to_path_buf(), why));
        }
        return Source::staying(entries());
    }
    if let Some(why) = &claims.unreadable {
        doubtful.push((rel.to_path_buf(), format!("can not be read: {why}")));
        return Source::staying(entries());
    }
    if let Some(why) = all.iter().flatten().find_map(|name| no_name(name)) {
        doubtful.push((rel.to_path_buf(), why));
        return Source::staying(entries());
    }
    let only = (all.len() == 1).then(|| all.first().cloned()).flatten();
    let mut source = Source::default();
    for group in claims.groups {
        let to = match group.claim.as_ref().or(only.as_ref()) {
            Some(to) => to.clone(),
            None => {
                let why = "says nowhere which of the work folders of that name it belongs to";
                doubtful.extend(
                    group
                        .entries
                        .iter()
                        .map(|name| (rel.join(name), why.to_owned())),
                );
                None
            }
        };
        source
            .entries
            .extend(group.entries.into_iter().map(|name| (name, to.clone())));
    }
    let mut places = source.entries.iter().map(|(_, to)| to);
    source.whole = match places.next() {
        Some(first) => first.clone().filter(|_| places.all(|to| to == first)),
        // An empty folder has the name of its only claim.
        None => only.flatten(),
    };
    source
}

/// Why a slug can not be the name of a folder.
fn no_name(slug: &str) -> Option<String> {
    match slug.len() {
        0 => Some("its new name would have no letter".into()),
        n if n > LONGEST_NAME => Some(format!("its new name would be too long ({n} bytes)")),
        _ => None,
    }
}

/// How names are compared.
struct Fold {
    /// Whether names that differ only by case are the same here.
    blind: bool,
}

impl Fold {
    fn key(&self, name: &OsStr) -> OsString {
        match name.to_str() {
            Some(name) if self.blind => name.to_lowercase().into(),
            _ => name.to_owned(),
        }
    }
}

/// Asked of the disk, which alone knows.
fn is_case_blind(state: &disk::Dir) -> bool {
    let id = |name: &str| {
        let meta = state.find(OsStr::new(name)).ok()??;
        Some((meta.dev, meta.ino))
    };
    id(PROJECTS).is_some() && id(PROJECTS) == id("PROJECTS")
}

/// `projects/` as it is, and where everything in it goes.
struct Shelf {
    sources: BTreeMap<OsString, Source>,
    /// The names of everything in it.
    others: BTreeSet<OsString>,
    /// The names of the sources, by what they are compared by.
    names: BTreeMap<OsString, OsString>,
    /// From how many folders something comes under a name.
    coming: BTreeMap<OsString, usize>,
    fold: Fold,
}

impl Shelf {
    fn new(sources: BTreeMap<OsString, Source>, others: BTreeSet<OsString>, fold: Fold) -> Shelf {
        let names = sources.keys().map(|name| (fold.key(name), name.clone()));
        let names = names.collect();
        let mut coming: BTreeMap<OsString, usize> = BTreeMap::new();
        for source in sources.values() {
            let targets = source.targets().into_iter();
            let keys: BTreeSet<OsString> = targets.map(|to| fold.key(OsStr::new(to))).collect();
            for key in keys {
                *coming.entry(key).or_default() += 1;
            }
        }
        Shelf {
            sources,
            others,
            names,
            coming,
            fold,
        }
    }

    fn source(&self, name: &str) -> Option<&Source> {
        let name = self.names.get(&self.fold.key(OsStr::new(name)))?;
        self.sources.get(name)
    }

    /// No two files may come to have one name.
    fn check(&self) -> Result<()> {
        let mut taken: BTreeMap<(OsString, OsString), PathBuf> = BTreeMap::new();
        for (folder, source) in &self.sources {
            for target in source.targets() {
                let there = self.others.contains(&self.fold.key(OsStr::new(target)));
                if there && self.source(target).is_none() {
                    return Err(Error::failed(format!(
                        "{} is to be named like a file that is there:",
                        human::path(&Path::new(PROJECTS).join(folder))
                    ))
                    .at(Path::new(PROJECTS).join(target))
                    .hint("put that file elsewhere, and run the same command again"));
                }
            }
            for (entry, to) in &source.entries {
                let rel = Path::new(PROJECTS).join(folder).join(entry);
                let place = to.as_deref().map_or(folder.as_os_str(), OsStr::new);
                let key = (self.fold.key(place), self.fold.key(entry));
                if let Some(other) = taken.insert(key, rel.clone()) {
                    return Err(Error::failed(format!(
                        "both folders become one, and two files would have one name: {} and",
                        human::path(&other)
                    ))
                    .at(&rel)
                    .hint("the application has worked in the new folder already: compare the two, put one of them elsewhere, and run the same command again"));
                }
            }
        }
        Ok(())
    }

    fn moves(&self, emptied: &mut Vec<PathBuf>) -> Vec<Move> {
        let mut moves = Vec::new();
        for (folder, source) in &self.sources {
            let from = Path::new(PROJECTS).join(folder);
            if let Some(target) = self.goes_whole(folder, source) {
                let to = Path::new(PROJECTS).join(target);
                moves.push(Move { from, to });
                continue;
            }
            let targets = source.targets();
            for (entry, to) in &source.entries {
                if let Some(target) = to {
                    moves.push(Move {
                        from: from.join(entry),
                        to: Path::new(PROJECTS).join(target).join(entry),
                    });
                }
            }
            let stays = source.entries.iter().any(|(_, to)| to.is_none());
            if !targets.is_empty() && !stays && !self.receives(folder) {
                emptied.push(from);
            }
        }
        moves
    }

    /// Whether a folder can simply be renamed: its new name is free, or becomes free by a renaming, and nothing else
    /// goes there.
    fn goes_whole<'s>(&'s self, folder: &OsStr, source: &'s Source) -> Option<&'s str> {
        let first = source.whole.as_deref()?;
        let (mut target, mut asked) = (first, BTreeSet::from([self.fold.key(folder)]));
        loop {
            let key = self.fold.key(OsStr::new(target));
            // A circle can not be renamed around; its entries may still pass each other.
            if self.coming.get(&key) != Some(&1) || !asked.insert(key) {
                return None;
            }
            match self.source(target) {
                None => return Some(first),
                Some(next) => target = next.whole.as_deref()?,
            }
        }
    }

    fn receives(&self, folder: &OsStr) -> bool {
        self.coming.contains_key(&self.fold.key(folder))
    }
}

#[cfg(test)]
mod tests;
