//! `projects/<project>/<id>`: one relative link a session, following the index exactly.
//!
//! Only links into this home's `sessions/` are ours. Whatever else lies there is left alone and named.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;

use serde::Serialize;

use super::{Entry, Index, LockedHome};
use crate::base::{Error, Result, human};
use crate::disk::{self, Dir, FileKind};

/// What was changed. Paths are relative to the home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Views {
    /// Links that were made, or pointed right.
    pub made: Vec<String>,
    /// Links that were taken away.
    pub removed: Vec<String>,
    /// What is not ours and was left alone.
    pub foreign: Vec<String>,
    /// Projects whose name can not be a folder's, so that their sessions have no view.
    pub unusable: Vec<String>,
}

/// Why a project's name can not be a folder's, if so.
pub fn unusable_project(project: &str) -> Option<&'static str> {
    if project.is_empty() {
        Some("it is empty")
    } else if project.starts_with('.') {
        Some("it begins with a dot")
    } else if project.contains(['/', '\0']) {
        Some("it holds a slash")
    } else if project.len() > 255 {
        Some("it is longer than 255 bytes")
    } else {
        None
    }
}

/// Where the view of a session belongs: its project, when it has one and is active.
fn wanted(entry: &Entry) -> Option<(&str, String)> {
    let project = entry.project().filter(|_| entry.status().is_active())?;
    let id = entry.session().ok()?;
    Some((project, id.as_str().to_owned()))
}

/// Makes the views of these sessions (`None`: of all) agree with the index.
///
/// # Errors
/// When a folder or link can not be read, made or removed.
pub fn follow(home: &LockedHome, index: &Index, only: Option<&[String]>) -> Result<Views> {
    let only: Option<BTreeSet<&str>> = only.map(|ids| ids.iter().map(String::as_str).collect());
    let concerned = |id: &str| only.as_ref().is_none_or(|only| only.contains(id));
    let mut views = Views::default();
    let mut want: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (project, id) in index.entries().filter_map(wanted) {
        if !concerned(&id) {
            continue;
        }
        if unusable_project(project).is_some() {
            let project = human::name(project).into_owned();
            if !views.unusable.contains(&project) {
                views.unusable.push(project);
            }
            continue;
        }
        want.entry(project.to_owned()).or_default().insert(id);
    }
    let folder = home.projects();
    if disk::exists(&folder) && !disk::is_folder(&folder) {
        // Nothing outside of the home is written, wherever a link leads.
        views.foreign.push("projects".to_owned());
        return Ok(views);
    }
    for (name, kind) in disk::read_dir_names(&folder)? {
        let shown = || format!("projects/{}", human::bytes(name.as_encoded_bytes()));
        match (name.to_str(), kind) {
            (Some(project), FileKind::Folder) if !project.starts_with('.') => {
                let ids = want.remove(project).unwrap_or_default();
                Project::open(home, project)?.follow(&ids, &concerned, &mut views)?;
            }
            _ => views.foreign.push(shown()),
        }
    }
    for (project, ids) in want {
        if disk::exists(&folder.join(&project)) {
            continue; // A file or link has that name: it was named above.
        }
        disk::create_private_folder(&folder.join(&project))?;
        Project::open(home, &project)?.follow(&ids, &concerned, &mut views)?;
    }
    Ok(views)
}

/// One project's folder.
struct Project<'h> {
    home: &'h LockedHome,
    name: String,
    dir: Dir,
}

impl Project<'_> {
    fn open<'h>(home: &'h LockedHome, name: &str) -> Result<Project<'h>> {
        let path = home.projects().join(name);
        let dir = Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
        Ok(Project {
            home,
            name: name.to_owned(),
            dir,
        })
    }

    fn follow(
        &self,
        ids: &BTreeSet<String>,
        concerned: &dyn Fn(&str) -> bool,
        views: &mut Views,
    ) -> Result<()> {
        let fail = |e| Error::io("can not set the view of project", &self.name, e);
        let mut present = BTreeSet::new();
        let (mut names, mut removed) = (self.dir.names().map_err(fail)?, 0);
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in names {
            let shown = human::bytes(name.as_encoded_bytes());
            let shown = format!("projects/{}/{shown}", human::name(&self.name));
            let ours = match (name.to_str(), kind) {
                (Some(id), FileKind::Symlink | FileKind::Unknown) => {
                    self.is_ours(id).map_err(fail)?.map(|exact| (id, exact))
                }
                _ => None,
            };
            let Some((id, exact)) = ours else {
                views.foreign.push(shown);
                present.extend(name.to_str().map(str::to_owned));
                continue;
            };
            if !concerned(id) || (ids.contains(id) && exact) {
                present.insert(id.to_owned());
                continue;
            }
            self.dir.unlink(&name).map_err(fail)?;
            removed += 1;
            if !ids.contains(id) {
                views.removed.push(shown);
            }
        }
        for id in ids.difference(&present) {
            let target = format!("../../sessions/{id}");
            self.dir
                .symlink(target.as_bytes(), OsStr::new(id))
                .map_err(fail)?;
            let shown = format!("projects/{}/{}", self.name, id);
            views.made.push(human::escape(&shown).into_owned());
        }
        if removed > 0 && ids.is_empty() {
            self.remove_when_empty();
        }
        Ok(())
    }

    /// Whether a link is one of ours, and if so, whether it is spelled as we spell it. An absolute one into
    /// this home, as people make and as a migration leaves, is ours too.
    fn is_ours(&self, id: &str) -> io::Result<Option<bool>> {
        use std::os::unix::ffi::OsStrExt;
        let name = OsStr::new(id);
        if self.dir.stat(name)?.kind != FileKind::Symlink {
            return Ok(None);
        }
        let target = self.dir.read_link(name)?;
        if target == format!("../../sessions/{id}").as_bytes() {
            return Ok(Some(true));
        }
        let absolute = self.home.sessions().join(id);
        Ok((target == absolute.as_os_str().as_bytes()).then_some(false))
    }

    fn remove_when_empty(&self) {
        // Fails, as it should, when something else lies in it.
        if let Ok(projects) = Dir::open(self.home.projects()) {
            let _ = projects.remove_folder(OsStr::new(&self.name));
        }
    }
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
