//! Files that only the second version of a session has, copied into the session.
//!
//! A file is copied only where nothing of its name is, not even in another case or Unicode form. Files that
//! differ stay where they are, and the second version with them.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Action, Deciding, Item, Mended, What};
use crate::base::{Error, Kind, Result};
use crate::check::is_left_alone;
use crate::disk::{self, Entry, FileKind};
use crate::home::folded;
use crate::home::mend::{self, Seen};

/// A folder of the session, as it will be.
struct Beside {
    /// Whether it has to be made.
    missing: bool,
    names: BTreeSet<OsString>,
    folded: BTreeSet<String>,
}

impl Beside {
    fn of(names: BTreeSet<OsString>, missing: bool) -> Beside {
        let folded = names.iter().filter_map(|name| name.to_str()).map(folded);
        Beside {
            missing,
            folded: folded.collect(),
            names,
        }
    }

    /// Something that other systems take for the same name.
    fn has_like(&self, name: &OsStr) -> bool {
        name.to_str()
            .is_some_and(|name| self.folded.contains(&folded(name)))
    }
}

impl Deciding<'_> {
    /// Decides what is copied from `copy` into `original`. Whether the second version will then hold nothing
    /// that the session lacks.
    pub(super) fn fill(&mut self, copy: &Path, original: &Path) -> Result<bool> {
        let tree = disk::walk(&self.open(copy)?, &|_, _| false, self.context.stop)?;
        let before = self.left.len();
        let mut beside: HashMap<PathBuf, Beside> = HashMap::new();
        for folder in &tree.folders {
            for (path, why) in &folder.unreadable {
                self.fail(&copy.join(path), None, why.clone());
            }
            let here = match self.beside(&beside, copy, original, &folder.rel) {
                Ok(Some(here)) => here,
                Ok(None) => continue,
                Err(error) => {
                    self.give_up(&copy.join(&folder.rel), None, error)?;
                    continue;
                }
            };
            beside.insert(folder.rel.clone(), here);
            for entry in folder
                .entries
                .iter()
                .filter(|e| e.meta.kind != FileKind::Folder)
            {
                let rel = folder.rel.join(&entry.name);
                if let Err(error) = self.fill_one((copy, original), &rel, entry, &mut beside) {
                    self.give_up(&copy.join(&rel), Some(&original.join(&rel)), error)?;
                }
            }
        }
        Ok(self.left.len() == before)
    }

    /// Names what can not be read, so that the rest is not held up.
    fn give_up(&mut self, path: &Path, of: Option<&Path>, error: Error) -> Result<()> {
        match error.kind() {
            Kind::Interrupted => Err(error),
            _ => {
                self.fail(path, of, error.to_string());
                Ok(())
            }
        }
    }

    /// The folder of the session beside one of the second version; `None` when there can be none.
    fn beside(
        &mut self,
        known: &HashMap<PathBuf, Beside>,
        copy: &Path,
        original: &Path,
        rel: &Path,
    ) -> Result<Option<Beside>> {
        let there = match rel.as_os_str().is_empty() {
            true => original.to_path_buf(),
            false => original.join(rel),
        };
        if rel.parent().is_some_and(|above| !known.contains_key(above)) {
            // What it lies in was left.
            return Ok(None);
        }
        match mend::look(self.root, &there)? {
            Some(meta) if meta.kind == FileKind::Folder => {
                let names = self.open(&there)?.names();
                let names = names.map_err(|e| Error::io("can not list", &there, e))?;
                let names = names.into_iter().map(|(name, _)| name).collect();
                Ok(Some(Beside::of(names, false)))
            }
            Some(_) => {
                let why = "is a folder there, and no folder in the session";
                self.leave(&copy.join(rel), Some(&there), why);
                Ok(None)
            }
            None => {
                let (parent, name) = (rel.parent(), rel.file_name());
                let Some(above) = parent.and_then(|parent| known.get(parent)) else {
                    return Ok(None);
                };
                if name.is_some_and(|name| above.has_like(name)) {
                    let why = "has a name that is taken in another case or Unicode form";
                    self.leave(&copy.join(rel), Some(&there), why);
                    return Ok(None);
                }
                Ok(Some(Beside::of(BTreeSet::new(), true)))
            }
        }
    }

    fn fill_one(
        &mut self,
        (copy, original): (&Path, &Path),
        rel: &Path,
        entry: &Entry,
        beside: &mut HashMap<PathBuf, Beside>,
    ) -> Result<()> {
        let (from, to) = (copy.join(rel), original.join(rel));
        let parent = rel.parent().unwrap_or(Path::new(""));
        let Some(here) = beside.get(parent) else {
            return Ok(());
        };
        // Another second version may have it, too.
        let coming = self.coming.get(&to).cloned();
        if here.names.contains(&entry.name) || coming.is_some() {
            let there = coming.unwrap_or_else(|| to.clone());
            if !self.are_equal(&there, &from)? {
                self.leave(&from, Some(&to), "differs from the one in the session");
            }
            return Ok(());
        }
        let refused = match entry.meta.kind {
            FileKind::File | FileKind::Symlink => None,
            other => Some(format!("is {}", other.described())),
        };
        let refused = refused.or_else(|| {
            here.has_like(&entry.name)
                .then(|| "has a name that is taken in another case or Unicode form".to_owned())
        });
        let refused = refused.or_else(|| {
            is_left_alone(&to).then(|| "is in a folder that a tool makes and knows best".to_owned())
        });
        if let Some(why) = refused {
            self.leave(&from, Some(&to), why);
            return Ok(());
        }
        let mark = mend::mark(self.root, &from, self.context.stop)?;
        self.make_folders(copy, original, parent, beside);
        if let Some(here) = beside.get_mut(parent) {
            here.names.insert(entry.name.clone());
            here.folded.extend(entry.name.to_str().map(folded));
        }
        self.coming.insert(to.clone(), from.clone());
        let told = Mended {
            what: What::Filled,
            path: to.clone().into(),
            of: Some(from.clone().into()),
            relation: None,
            detail: "was only in the second version".to_owned(),
        };
        self.items.push(Item {
            path: to,
            action: Action::Copy {
                seen: Seen::of(&entry.meta),
                from,
                mark,
            },
            told: Some(told),
        });
        Ok(())
    }

    /// The folders that a file needs and the session lacks.
    fn make_folders(
        &mut self,
        copy: &Path,
        original: &Path,
        rel: &Path,
        beside: &mut HashMap<PathBuf, Beside>,
    ) {
        let mut missing: Vec<&Path> = rel
            .ancestors()
            .take_while(|above| beside.get(*above).is_some_and(|b| b.missing))
            .collect();
        missing.reverse();
        for folder in missing {
            if let Some(made) = beside.get_mut(folder) {
                made.missing = false;
            }
            let path = original.join(folder);
            if self.items.iter().any(|item| item.path == path) {
                continue;
            }
            self.items.push(Item {
                path,
                action: Action::Folder {
                    like: copy.join(folder),
                },
                told: None,
            });
        }
    }
}
