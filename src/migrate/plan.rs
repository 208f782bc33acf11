//! What a migration will do: which folder goes where, which references change, what would stand in the way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::preflight;
use super::record::Record;
use super::state::{self, Compiled, Survey};
use crate::base::wire::{self, ExactPath, WirePath};
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Dir, Entry, FileKind, Meta, Tree};
use crate::paths::{self, Mapping, Rewriter};

/// What a person asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder on the sync drive, as given.
    pub source: PathBuf,
    /// Where the home will be, as given.
    pub dest: PathBuf,
    /// Further folders that the files mention, and what to write instead.
    pub maps: Vec<Mapping>,
    /// Change only JSON fields that identify a place.
    pub fields_only: bool,
    /// Globs, relative to the source, of what is left behind.
    pub exclude: Vec<String>,
    /// Go on where a person may know better.
    pub force: bool,
    /// The agent application's own folders: to see who is running, and to let them follow.
    pub state: Vec<PathBuf>,
    /// Whether these folders were named, rather than found where they usually are.
    pub state_named: bool,
    /// The user's home, for references that begin with `~`.
    pub user_home: Option<PathBuf>,
}

/// The part of a plan that is kept in the record and must be the same when a migration goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The source, without links.
    #[serde(with = "wire::exact_path")]
    pub source: PathBuf,
    /// The home, without links.
    pub dest: PathBuf,
    /// Every folder whose references change, the source's own spellings first.
    pub mappings: Vec<Mapping>,
    /// Only JSON fields.
    pub fields_only: bool,
    /// What is left behind.
    pub exclude: Vec<String>,
    /// The user's home at the time.
    pub user_home: Option<String>,
    /// The application's own folders, where they were named.
    #[serde(default)]
    pub state: Vec<ExactPath>,
}

impl Settings {
    /// Whether two ask for the same, in whatever order the folders are named.
    pub(super) fn ask_the_same(&self, other: &Settings) -> bool {
        let sorted = |settings: &Settings| {
            let mut settings = settings.clone();
            // They may follow later, or not at all.
            settings.state.clear();
            settings
                .mappings
                .sort_by(|a, b| (&a.old, &a.new).cmp(&(&b.old, &b.new)));
            settings
        };
        sorted(self) == sorted(other)
    }
}

/// A migration that has been thought through and not yet begun.
pub struct Plan {
    /// What is asked for, in its final form.
    pub settings: Settings,
    /// Everything in the source.
    pub tree: Tree,
    /// What is left behind, with the reason.
    pub left: Vec<Skipped>,
    /// Counts of the source.
    pub totals: Totals,
    /// What a person should know before it begins.
    pub warnings: Vec<String>,
    /// What the application's own folders will have to follow.
    pub state: Vec<Survey>,
    /// The migration that was stopped and goes on, if any.
    pub(super) unfinished: Option<Record>,
    pub(super) source: Dir,
    /// So many of the mappings, the first ones, were asked for with `--map`.
    pub(super) asked_for: usize,
}

impl Plan {
    /// Whether this very migration was finished before, with everything that should have gone along.
    pub fn is_finished(&self) -> bool {
        let outcome = self
            .unfinished
            .as_ref()
            .and_then(|record| record.outcome().ok().flatten());
        outcome.is_some_and(|outcome| outcome.is_complete())
    }

    /// Whether a migration was stopped here, or could not copy everything, and goes on.
    pub fn resumes(&self) -> bool {
        self.unfinished.is_some() && !self.is_finished()
    }
}

/// Counts of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Folders directly below `sessions/`.
    pub sessions: u64,
    /// Everything that is not a folder.
    pub files: u64,
    /// Folders below the root.
    pub folders: u64,
    /// Bytes in regular files, each hard-linked file once.
    pub bytes: u64,
}

impl Totals {
    /// For a progress bar.
    pub fn total(&self) -> Total {
        Total {
            items: self.files,
            bytes: self.bytes,
        }
    }
}

/// Something that does not go along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Relative to the source.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why, in words.
    pub reason: String,
    /// Whether it should have gone along: it could not be read, or did not hold still. Then the exit code
    /// is 3.
    pub failed: bool,
}

impl Skipped {
    pub(super) fn by_design(path: PathBuf, reason: impl Into<String>) -> Self {
        Skipped {
            path: path.into(),
            reason: reason.into(),
            failed: false,
        }
    }

    pub(super) fn failed(path: PathBuf, reason: impl Into<String>) -> Self {
        Skipped {
            path: path.into(),
            reason: reason.into(),
            failed: true,
        }
    }
}

/// Thinks a migration through. Nothing is written.
///
/// # Errors
/// Whatever stands in the way, with the way out.
pub fn plan(request: &Request, ctx: &Context) -> Result<Plan> {
    let (source, mut settings) = resolve(request)?;
    preflight::apart(&settings)?;
    let unfinished = preflight::destination(&settings)?;
    if let Some(record) = &unfinished {
        // The record counts references by the order that was given first.
        settings = record.settings().clone();
    }
    ctx.progress.stage("Reading the source", Total::default());
    let (tree, left) = survey(&source, &settings, ctx)?;
    ctx.progress.finish();
    let totals = count(&tree);
    preflight::layout(&settings, &tree)?;
    preflight::room(&settings, &tree, unfinished.as_ref(), request.force)?;
    preflight::quiet(&settings, request)?;
    let mut warnings = preflight::warnings(&settings);
    let state = survey_state(&settings, &tree, request, &mut warnings, ctx)?;
    Ok(Plan {
        settings,
        tree,
        left,
        totals,
        warnings,
        state,
        unfinished,
        source,
        asked_for: request.maps.len(),
    })
}

fn resolve(request: &Request) -> Result<(Dir, Settings)> {
    let source = Dir::open(&request.source)
        .map_err(|e| Error::io("can not open the source", &request.source, e))?;
    let real = disk::real_path(&request.source)?;
    if !disk::is_folder(&real.join("sessions")) {
        return Err(Error::failed(
            "the source is not a session home, it has no folder `sessions`:",
        )
        .at(&request.source)
        .hint("SRC is the folder that holds sessions/, agents/ and index.json"));
    }
    let dest = disk::real_path(&request.dest)?;
    let utf8 = |path: &Path| path.to_str().map(str::to_owned);
    let Some(new) = utf8(&dest) else {
        return Err(
            Error::failed("references can not be written to a path that is not UTF-8:").at(&dest),
        );
    };
    let absolute = std::path::absolute(&request.source)
        .map_err(|e| Error::io("can not resolve", &request.source, e))?;
    let mut mappings: Vec<Mapping> = request.maps.clone();
    for alias in [utf8(&real), utf8(&absolute)].into_iter().flatten() {
        let old = alias.trim_end_matches('/').to_owned();
        if !mappings.iter().any(|m| m.old == old) {
            mappings.push(Mapping {
                old,
                new: new.clone(),
            });
        }
    }
    let settings = Settings {
        source: real,
        dest,
        mappings,
        fields_only: request.fields_only,
        exclude: request.exclude.clone(),
        user_home: request.user_home.as_deref().and_then(utf8),
        state: match request.state_named {
            true => request.state.iter().map(|f| f.clone().into()).collect(),
            false => Vec::new(),
        },
    };
    Ok((source, settings))
}

/// The name of the program's own folder in a home.
pub(super) const OWN: &str = ".wbhome";

fn survey(source: &Dir, settings: &Settings, ctx: &Context) -> Result<(Tree, Vec<Skipped>)> {
    let exclude = globs(&settings.exclude)?;
    let left = std::sync::Mutex::new(Vec::new());
    let skip = |rel: &Path, entry: &Entry| {
        let reason = if rel.as_os_str().is_empty() && entry.name == OWN {
            "the original home's own records; the new home has its own"
        } else if exclude.is_match(rel.join(&entry.name)) {
            "excluded"
        } else {
            return false;
        };
        if let Ok(mut left) = left.lock() {
            left.push(Skipped::by_design(rel.join(&entry.name), reason));
        }
        true
    };
    let tree = disk::walk(source, &skip, ctx.stop)?;
    if let Some((path, why)) = tree
        .folders
        .first()
        .and_then(|root| root.unreadable.first())
        && path.as_os_str().is_empty()
    {
        return Err(Error::failed(format!("can not read the source ({why}):")).at(&settings.source));
    }
    let mut left = left.into_inner().unwrap_or_default();
    left.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((tree, left))
}

/// The source as it is now, without what was left behind.
pub(super) fn walk_source(source: &Dir, settings: &Settings, ctx: &Context) -> Result<Tree> {
    Ok(survey(source, settings, ctx)?.0)
}

/// Globs as shells know them: `*` stays within a name, `**` does not. A pattern without `/` is looked for
/// at any depth.
fn globs(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if pattern.trim_matches('/').is_empty() {
            return Err(Error::usage(
                "bad --exclude: an empty pattern would leave everything behind",
            ));
        }
        let anywhere = match pattern.contains('/') {
            true => pattern.trim_start_matches('/').to_owned(),
            false => format!("**/{pattern}"),
        };
        let glob = GlobBuilder::new(anywhere.trim_end_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|e| Error::usage(format!("bad --exclude: {}", e.kind())))?;
        set.add(glob);
    }
    set.build()
        .map_err(|e| Error::usage(format!("bad --exclude: {}", e.kind())))
}

fn count(tree: &Tree) -> Totals {
    let mut totals = Totals::default();
    let mut linked = std::collections::HashSet::new();
    for folder in &tree.folders {
        for Entry { meta, .. } in &folder.entries {
            match meta.kind {
                FileKind::Folder => {
                    totals.folders += 1;
                    totals.sessions += u64::from(folder.rel == Path::new("sessions"));
                }
                FileKind::File if meta.nlink == 1 || linked.insert(meta.identity()) => {
                    totals.files += 1;
                    totals.bytes += meta.size;
                }
                _ => totals.files += 1,
            }
        }
    }
    totals
}

/// How many folders lie directly below `sessions/`.
pub(super) fn session_folders(tree: &Tree) -> u64 {
    tree.folders
        .iter()
        .filter(|folder| folder.rel.parent() == Some(Path::new("sessions")))
        .count() as u64
}

/// The names of the sessions of a tree.
pub(super) fn session_names(tree: &Tree) -> Vec<String> {
    tree.folders
        .iter()
        .filter(|folder| folder.rel == Path::new("sessions"))
        .flat_map(|folder| &folder.entries)
        .filter(|entry| entry.meta.kind == FileKind::Folder)
        .filter_map(|entry| entry.name.to_str().map(str::to_owned))
        .collect()
}

/// Compiles what the settings say about references.
pub(super) fn rewriter(settings: &Settings, tree: &Tree) -> Result<Rewriter> {
    let options = paths::Options {
        fields_only: settings.fields_only,
        user_home: settings.user_home.clone(),
        known_ids: session_names(tree),
    };
    Rewriter::new(settings.mappings.clone(), options).map_err(|e| {
        Error::usage(format!("bad --map: {e}")).hint("write --map OLD=NEW with two absolute paths")
    })
}

/// What the mappings mean to the application's own folder.
pub(super) fn compiled(settings: &Settings, tree: &Tree) -> Result<Compiled> {
    let home = settings.user_home.as_deref();
    let ids = session_names(tree);
    Compiled::new(&settings.mappings, settings.fields_only, home, &ids)
}

fn survey_state(
    settings: &Settings,
    tree: &Tree,
    request: &Request,
    warnings: &mut Vec<String>,
    ctx: &Context,
) -> Result<Vec<Survey>> {
    let mut surveys = Vec::new();
    if request.state.is_empty() {
        return Ok(surveys);
    }
    let compiled = compiled(settings, tree)?;
    for folder in &request.state {
        preflight::apart_from_state(settings, folder)?;
        let survey = state::survey(folder, &compiled.moved(), ctx)?;
        if !survey.is_empty() {
            crate::state::refuse_while_in_use(&survey.folder)
                .map_err(|e| e.hint("--no-state leaves it as it is; the same command without it lets it follow later"))?;
            state::room(&survey)?;
            surveys.push(survey);
        } else if request.state_named {
            warnings.push(format!(
                "nothing in {} speaks of the source, so nothing in it will change; if the agent knew the home by another path, add --map",
                human::path(folder)
            ));
        }
    }
    Ok(surveys)
}

/// Every entry of a tree by path, for comparing two looks at the same folder.
pub(super) fn by_path(tree: &Tree) -> BTreeMap<PathBuf, Meta> {
    tree.entries()
        .map(|(path, entry)| (path, entry.meta))
        .collect()
}
