//! References inside a home made to follow a folder that was moved or renamed: the whole home and the agent's own
//! folder in one swap, wholly or not at all, and to be taken back.
//!
//! A session that gets another name ([`rename`](super::rename)) is the same work with one more step.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::in_place::InPlace;
use super::outcome::Database;
use super::plan::Skipped;
use super::preview::references;
use super::scan::count;
use super::state::{self, Compiled, Followed, Looked, Mention, Survey, mentioned};
use super::taking_back::{self, UndoPlan, Undone};
use super::{References, preflight};
use crate::base::{Context, Error, Exit, Result, Total, human};
use crate::disk::{self, Dir, Entry, Tree};
use crate::home::swap::{Draft, Root, Swap};
use crate::home::{Home, Leases, LockedHome, PassedOver, RelPath, SessionId};
use crate::paths::Mapping;
use crate::paths::database::COMPANIONS;
use crate::sessions::reconcile;

/// Where the records are, below the home.
const RECORDS: &str = ".wbhome/relinks";
const SWAP: &str = "swap";
const OUTCOME: &str = "outcome.json";

/// What a person asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder as it was called.
    pub old: PathBuf,
    /// As it is called now.
    pub new: PathBuf,
    /// Only in these sessions; empty: everywhere.
    pub sessions: Vec<SessionId>,
    /// The agent application's own folders.
    pub state: Vec<PathBuf>,
    /// Change only JSON fields that identify a place.
    pub fields_only: bool,
    /// Go on although NEW is not there, or somebody works in the home.
    pub force: bool,
    /// Who holds which session: what another device holds is passed over.
    pub leases: Leases,
    /// The user's home, for references that begin with `~`.
    pub user_home: Option<PathBuf>,
}

/// What would be changed.
#[derive(Serialize)]
pub struct Plan {
    /// The folder, as it was called and as it is called now; its other spellings after it.
    pub mappings: Vec<Mapping>,
    /// Only these sessions; empty: everywhere.
    pub sessions: Vec<String>,
    /// Sessions that are left as they are, because another device holds their leases.
    pub passed_over: Vec<PassedOver>,
    /// Files that would be looked at.
    pub files: u64,
    /// Files that would be written anew.
    pub rewritten: u64,
    /// Links that would be pointed to the new place.
    pub links: u64,
    /// References that would be changed in both; those in databases are found when they are changed.
    pub references: References,
    /// What the agent's own folders would follow.
    pub state: Vec<Survey>,
    #[serde(skip)]
    pub(super) compiled: Compiled,
    /// Further steps: a session gets another name.
    #[serde(skip)]
    pub(super) rename: Option<super::rename::Renaming>,
}

/// What was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The folder, as it was called and as it is called now.
    pub mappings: Vec<Mapping>,
    /// Only in these sessions; empty: everywhere.
    pub sessions: Vec<String>,
    /// Sessions that were left as they are, because another device holds their leases.
    #[serde(default)]
    pub passed_over: Vec<PassedOver>,
    /// When.
    pub finished: jiff::Timestamp,
    /// Files that were looked at.
    pub files: u64,
    /// Of them, files that were written anew.
    pub rewritten: u64,
    /// Links that were pointed to the new place.
    pub links: u64,
    /// References that were changed.
    pub references: References,
    /// SQLite databases in the home.
    pub databases: Vec<Database>,
    /// What could not be looked at.
    pub skipped: Vec<Skipped>,
    /// Files with what may be a reference or prose: left as they are.
    pub doubtful: Vec<Mention>,
    /// Binary files that mention it: left as they are.
    pub binary: Vec<Mention>,
    /// The agent's own folders, which have followed.
    pub state: Vec<Followed>,
    /// Where the former state is kept: a path below the home; none when nothing was changed.
    pub record: Option<String>,
    /// Files that somebody changed in the last moment: they are kept in `overtaken` of the record.
    pub overtaken: Vec<crate::base::wire::WirePath>,
}

impl Outcome {
    /// 3 when something could not be read, or what somebody changed in the last moment is not in its place.
    pub fn exit(&self) -> Exit {
        let failed = self.skipped.iter().any(|s| s.failed)
            || !self.overtaken.is_empty()
            || self.databases.iter().any(|database| database.failed);
        match failed {
            true => Exit::Partial,
            false => Exit::Done,
        }
    }
}

/// Thinks a relink through. Nothing is written.
///
/// # Errors
/// Whatever stands in the way, with the way out.
pub fn plan(home: &Home, request: &Request, ctx: &Context) -> Result<Plan> {
    let mappings = mappings(request)?;
    if !request.force && !disk::exists(&request.new) {
        return Err(Error::failed("there is nothing at the new place:")
            .at(&request.new)
            .hint("move the folder there first; --force changes the references all the same"));
    }
    survey(home, mappings, request, ctx)
}

/// OLD in the spellings that it has: as given, and without links where it still exists.
fn mappings(request: &Request) -> Result<Vec<Mapping>> {
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err(
            Error::failed("references to a path that is not UTF-8 can not be written:").at(path),
        ),
    };
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|e| Error::io("can not resolve", path, e));
    let (old, new) = (absolute(&request.old)?, absolute(&request.new)?);
    let (old_text, new_text) = (text(&old)?, text(&new)?);
    if old_text == new_text {
        return Err(Error::usage("OLD and NEW are the same folder"));
    }
    let mut mappings = vec![Mapping {
        old: old_text.clone(),
        new: new_text.clone(),
    }];
    if disk::exists(&old) {
        let real = text(&disk::real_path(&old)?)?;
        if real != old_text && real != new_text {
            mappings.push(Mapping {
                old: real,
                new: new_text.clone(),
            });
        }
    }
    if new.starts_with(&old) {
        // What says NEW already says OLD and something more: it stays, so that a second run changes nothing.
        mappings.push(Mapping {
            old: new_text.clone(),
            new: new_text,
        });
    }
    Ok(mappings)
}

/// Looks at everything that these mappings would change.
pub(super) fn survey(
    home: &Home,
    mappings: Vec<Mapping>,
    request: &Request,
    ctx: &Context,
) -> Result<Plan> {
    let user_home = request.user_home.as_deref().and_then(Path::to_str);
    let mut held = request.sessions.iter();
    held.try_for_each(|id| request.leases.refuse(id))?;
    preflight::home_is_quiet(home, &mappings, request)?;
    let tree = walk(home, ctx)?;
    let ids = super::plan::session_names(&tree.1);
    let compiled = Compiled::new(&mappings, request.fields_only, user_home, &ids)?;
    let sessions: Vec<String> = request.sessions.iter().map(ToString::to_string).collect();
    let passed_over = passed_over(home, request);
    let scope = Scope::of(&sessions, &passed_over);
    ctx.progress.stage("Counting references", Total::default());
    let counted = count(
        &tree.0,
        &tree.1,
        &compiled.text,
        &|path| scope.covers(path),
        ctx,
    )?;
    ctx.progress.finish();
    let (files, tally) = (counted.files, counted.tally);
    let mut state = Vec::new();
    for folder in &request.state {
        let survey = state::survey(folder, &compiled.moved(), ctx)?;
        if !survey.is_empty() {
            crate::state::refuse_while_in_use(&survey.folder)?;
            state::room(&survey)?;
            state.push(survey);
        }
    }
    Ok(Plan {
        references: references(&mappings, &tally),
        mappings,
        sessions,
        passed_over,
        files,
        rewritten: tally.rewritten,
        links: tally.links_rewritten,
        state,
        compiled,
        rename: None,
    })
}

/// The home without the program's own folder, and without a repository at its top, which is history.
fn walk(home: &Home, ctx: &Context) -> Result<(Dir, Tree)> {
    let root = home.root();
    let dir = Dir::open(root).map_err(|e| Error::io("can not open the home", root, e))?;
    let own = |rel: &Path, entry: &Entry| {
        rel.as_os_str().is_empty() && (entry.name == ".wbhome" || entry.name == ".git")
    };
    let tree = disk::walk(&dir, &own, ctx.stop)?;
    Ok((dir, tree))
}

/// The sessions in the home that another device holds, when all are meant.
fn passed_over(home: &Home, request: &Request) -> Vec<PassedOver> {
    let held = request.leases.all_elsewhere();
    held.filter(|held| {
        let id = SessionId::adopt(&held.session);
        request.sessions.is_empty() && id.is_ok_and(|id| disk::exists(&home.session(&id)))
    })
    .collect()
}

/// What a relink looks at.
struct Scope<'a> {
    /// These sessions alone; all of the home when there is none.
    sessions: HashSet<&'a str>,
    passed_over: HashSet<&'a str>,
}

impl<'a> Scope<'a> {
    fn of(sessions: &'a [String], passed_over: &'a [PassedOver]) -> Scope<'a> {
        Scope {
            sessions: sessions.iter().map(String::as_str).collect(),
            passed_over: passed_over.iter().map(|held| &*held.session).collect(),
        }
    }

    /// Whether what lies at `path` is looked at. Packs are compressed: what they hold is left as it was.
    fn covers(&self, path: &Path) -> bool {
        let mut parts = path.iter();
        let all = self.sessions.is_empty();
        match parts.next() {
            Some(first) if first == "archive" => false,
            Some(first) if first == "sessions" => {
                let session = parts.next().and_then(|name| name.to_str());
                match session {
                    Some(name) => {
                        !self.passed_over.contains(name) && (all || self.sessions.contains(name))
                    }
                    None => all,
                }
            }
            _ => all,
        }
    }
}

/// Carries a plan out.
///
/// # Errors
/// What can not be written, with nothing changed; once it has begun to be carried out, the next command
/// completes it.
pub fn apply(home: &LockedHome, plan: Plan, ctx: &Context) -> Result<Outcome> {
    taking_back::nothing_pending(home)?;
    let command = match plan.rename {
        Some(_) => "mv",
        None => "relink",
    };
    let record = format!(
        "{RECORDS}/{}-{:08x}",
        ctx.clock.stamp(),
        ctx.clock.random() as u32
    );
    let rel = RelPath::new(format!("{record}/{SWAP}"))?;
    let roots = roots(home, &plan)?;
    let then = plan.rename.as_ref().map(|r| r.then()).unwrap_or_default();
    let draft = Draft::begin(home, &rel, command, roots, then, ctx)?;
    let mut outcome = stage(home, &draft, &rel, &plan, ctx)?;
    if draft.is_empty() {
        return Ok(outcome);
    }
    outcome.record = Some(record.clone());
    let path = draft.folder().join(OUTCOME);
    let mut text =
        serde_json::to_vec_pretty(&outcome).map_err(|e| Error::io("can not write", &path, e))?;
    text.push(b'\n');
    disk::write_new(&path, &text, 0o600)?;
    outcome.overtaken = draft.commit()?.overtaken;
    // What sessions hold has changed by a few bytes.
    reconcile::refresh_cache(home, ctx)?;
    Ok(outcome)
}

fn roots(home: &Home, plan: &Plan) -> Result<Vec<Root>> {
    let mut roots = vec![Root {
        path: disk::real_path(home.root())?,
        application: false,
    }];
    roots.extend(plan.state.iter().map(|survey| Root {
        path: survey.folder.clone(),
        application: true,
    }));
    Ok(roots)
}

fn stage(
    home: &LockedHome,
    draft: &Draft,
    rel: &RelPath,
    plan: &Plan,
    ctx: &Context,
) -> Result<Outcome> {
    let (_, tree) = walk(home, ctx)?;
    let moved = plan.compiled.moved();
    ctx.progress.stage(
        "Rewriting references",
        Total {
            items: plan.files,
            bytes: 0,
        },
    );
    let texts = InPlace::new(draft, 0, moved.text, ctx)?;
    let scope = Scope::of(&plan.sessions, &plan.passed_over);
    let mut tally = texts.run(&tree, &|path| scope.covers(path))?;
    let mut databases = Vec::new();
    for path in std::mem::take(&mut tally.databases) {
        ctx.stop.check()?;
        databases.push(texts.whole_database(&path, &mut tally)?);
        let companions = companions_of(&path);
        tally.binary.retain(|(path, _)| !companions.contains(path));
    }
    ctx.progress.finish();
    let mut followed = Vec::new();
    for (survey, root) in plan.state.iter().zip(1..) {
        let looked = Looked::at(&survey.folder, ctx)?;
        let mut staged = state::stage(draft, root, &looked, &moved, ctx)?;
        staged.record = plan.rename.is_none().then(|| state::former_of(rel, root));
        // A database mentions what was deleted from it long ago.
        if !staged.is_unchanged() {
            followed.push(staged);
        }
    }
    if let Some(rename) = &plan.rename {
        rename.stage(draft)?;
    }
    Ok(Outcome {
        mappings: plan.mappings.clone(),
        sessions: plan.sessions.clone(),
        passed_over: plan.passed_over.clone(),
        finished: ctx.clock.now(),
        files: plan.files,
        rewritten: tally.rewritten,
        links: tally.links_rewritten,
        references: references(&plan.mappings, &tally),
        databases,
        skipped: tally.skipped,
        doubtful: mentioned(tally.doubtful.iter().map(|(path, _, n)| (path, *n))),
        binary: mentioned(tally.binary.iter().map(|(path, n)| (path, *n))),
        state: followed,
        record: None,
        overtaken: Vec::new(),
    })
}

fn companions_of(path: &Path) -> Vec<PathBuf> {
    COMPANIONS
        .iter()
        .map(|suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        })
        .collect()
}

/// The swaps of all relinks and renamings that were carried out and not taken back, oldest first.
fn carried_out(home: &Home) -> Result<Vec<(RelPath, Swap)>> {
    let mut all = Vec::new();
    for (name, _) in disk::read_dir_names(&home.root().join(RECORDS))? {
        let rel = RelPath::new(Path::new(RECORDS).join(name).join(SWAP))?;
        if let Some(swap) = Swap::read(home, &rel)?.filter(|s| s.is_done && !s.is_undone) {
            all.push((rel, swap));
        }
    }
    // Their names tell the second and no more.
    all.sort_by_key(|(_, swap)| swap.begun());
    Ok(all)
}

/// Whether anything was relinked or renamed, and not taken back.
pub(super) fn was_made(home: &Home) -> Result<bool> {
    Ok(!carried_out(home)?.is_empty())
}

/// The newest relink that was carried out and not taken back.
fn newest(home: &Home) -> Result<RelPath> {
    let newest = carried_out(home)?.into_iter().rev();
    let mut relinks = newest.filter(|(_, swap)| !swap.by("mv"));
    relinks.next().map(|(rel, _)| rel).ok_or_else(|| {
        Error::failed("there is no relink to take back")
            .hint("a session that was renamed is renamed back: wbhome mv NEW OLD")
    })
}

/// What [`undo`] would do.
///
/// # Errors
/// A record that can not be read; no relink; one that has changed a session which another device holds now.
pub fn undo_plan(home: &Home, leases: &Leases, ctx: &Context) -> Result<UndoPlan> {
    let rel = newest(home)?;
    refuse_held(home, &rel, leases)?;
    taking_back::undo_plan(home, vec![rel], ctx)
}

fn refuse_held(home: &Home, rel: &RelPath, leases: &Leases) -> Result<()> {
    let swap = Swap::read(home, rel)?;
    let mut paths = swap.iter().flat_map(Swap::in_home);
    paths.try_for_each(|path| leases.refuse_path(path))
}

/// Takes the newest relink back.
///
/// # Errors
/// No relink; one that has changed a session which another device holds now; whoever works in the home or uses the
/// application's folder; what was changed since, without `force`.
pub fn undo(home: &LockedHome, force: bool, leases: &Leases, ctx: &Context) -> Result<Vec<Undone>> {
    if taking_back::settled_by(home, "relink undo") {
        return Ok(Vec::new());
    }
    let rel = newest(home)?;
    refuse_held(home, &rel, leases)?;
    taking_back::take_back(home, vec![rel], "relink undo", force, ctx)
}

/// The folders that relinks have moved references away from, oldest first.
///
/// # Errors
/// A record that can not be understood.
pub(super) fn moved_from(home: &Home) -> Result<Vec<Mapping>> {
    let mut all = Vec::new();
    for (rel, _) in carried_out(home)? {
        let path = home.root().join(rel.as_path()).join(OUTCOME);
        if let Some(content) = disk::read_own(&path)? {
            let outcome: Outcome = serde_json::from_slice(&content)
                .map_err(|e| Error::io("can not understand the record", &path, e))?;
            if outcome.sessions.is_empty() {
                all.extend(outcome.mappings);
            }
        }
    }
    Ok(all)
}

/// How a relink is told in a sentence: `/old → /new`.
pub fn told(mapping: &Mapping) -> String {
    format!(
        "{} → {}",
        human::name(&mapping.old),
        human::name(&mapping.new)
    )
}
