//! A pack's content is built, compared, and takes the place of what is there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Gap, NAMED, Outcome, Plan, Request, Useless, made, newer, newer_archive, opened, refuse_newer,
    source,
};
use crate::backup::fetch::{self, Fetched, Missing, NotUsed};
use crate::backup::{Item, PackRef};
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::journal::{self, Step};
use crate::home::mend::{self, Mend, Seen};
use crate::home::trash::{self, Note, TRASH, Was};
use crate::home::{Entry, Home, IndexFile, LockedHome};
use crate::pack::{Limits, Member, MemberKind, Pack};

/// Where it is built, in an act or in a folder that a person named.
pub(super) const BUILT: &str = ".wbhome-restoring";

/// What was built, ready to take its place.
struct Built {
    from: Timestamp,
    files: u64,
    bytes: u64,
    not_used: Vec<NotUsed>,
    newer: Vec<PackRef>,
    missing: Vec<Missing>,
    /// As the pack has the session's entry.
    entry: Option<Map<String, Value>>,
}

/// Builds it under [`Plan::own_name`] in a folder.
fn build(
    home: &Home,
    plan: &mut Plan,
    request: &Request,
    into: &Dir,
    context: &Context,
) -> Result<Built> {
    let whole = OsString::from(plan.session.as_str());
    let mut built = match &plan.item {
        Some(item) => {
            let item = item.clone();
            let store = opened(request)?;
            let source = source(store.as_ref(), request, context)?;
            let Some(source) = source else {
                return Err(Error::failed("the store is gone"));
            };
            let fetched = match plan.as_archive {
                true => fetch::archive(&source, &item, into, &plan.own_name(), context)?,
                false => fetch::folder(&source, &item, into, &whole, context)?,
            };
            of_store(fetched, &item, plan)?
        }
        None => {
            let opened = Pack::open(&home.archive_of(&plan.session))?;
            let unpacked = fetch::unpack_as(&opened, into, &whole, Limits::default(), context)?;
            let entry = opened
                .manifest()
                .and_then(|manifest| manifest.entry.clone());
            refuse_not_held(plan, &unpacked.members)?;
            let (files, bytes) = content(&unpacked.members, plan);
            Built {
                from: made(&opened),
                files,
                bytes,
                not_used: Vec::new(),
                newer: Vec::new(),
                missing: unpacked.missing,
                entry,
            }
        }
    };
    if !plan.rel.is_empty() {
        let rel = plan.rel.as_path().to_path_buf();
        built
            .missing
            .retain(|missing| missing.path.starts_with(&rel));
        take_out(plan, into, &whole)?;
    }
    disk::sync_filesystem(into)
        .map_err(|e| Error::io("can not write to the disk:", &*plan.to, e))?;
    Ok(built)
}

fn of_store(fetched: Fetched, item: &Item, plan: &mut Plan) -> Result<Built> {
    let Some(laid) = fetched.laid else {
        let mut error = Error::failed(format!(
            "nothing of any pack of {} can be proved good",
            human::name(plan.session.as_str())
        ));
        for not_used in fetched.not_used.iter().take(NAMED) {
            let file = human::name(&not_used.pack.file);
            error = error.hint(format!("{file}: {}", not_used.why));
        }
        return Err(error.hint("nothing was changed"));
    };
    if !plan.as_archive {
        refuse_not_held(plan, &laid.members)?;
    }
    plan.at = laid.pack.at;
    let (files, bytes) = match plan.as_archive {
        true => laid.content(),
        false => content(&laid.members, plan),
    };
    Ok(Built {
        from: laid.pack.at,
        files,
        bytes,
        not_used: fetched.not_used,
        newer: laid.newer,
        missing: laid.missing,
        entry: item.entry.clone(),
    })
}

/// Files of what was asked for, and their bytes.
fn content(members: &[Member], plan: &Plan) -> (u64, u64) {
    let rel = plan.rel.as_path();
    let wanted = members.iter().filter(|member| {
        member.kind.is_file() && (plan.rel.is_empty() || member.path.starts_with(rel))
    });
    wanted.fold((0, 0), |(n, bytes), member| (n + 1, bytes + member.size))
}

fn refuse_not_held(plan: &Plan, members: &[Member]) -> Result<()> {
    let rel = plan.rel.as_path();
    match plan.rel.is_empty() || members.iter().any(|member| *member.path == *rel) {
        true => Ok(()),
        false => Err(Error::failed(format!(
            "the pack of {} does not hold {}",
            plan.at,
            human::path(rel)
        ))
        .hint("--at WHEN names another moment; nothing was changed")),
    }
}

/// Takes what was asked for out of the session that was unpacked; the rest of that goes.
fn take_out(plan: &Plan, into: &Dir, whole: &OsStr) -> Result<()> {
    let rel = plan.rel.as_path();
    let fail = |e| Error::io("can not take out", rel, e);
    let held = OsString::from(".whole");
    into.rename(whole, into, &held).map_err(fail)?;
    let parent = Path::new(&held).join(rel.parent().unwrap_or(Path::new("")));
    let parent: PathBuf = parent.components().collect();
    let from = into.open_beneath(&parent).map_err(fail)?;
    let name = rel.file_name().unwrap_or_default();
    from.set_mode(0o700).map_err(fail)?;
    from.rename(name, into, &plan.own_name()).map_err(fail)?;
    disk::remove_tree(into, &held).map_err(fail)
}

/// Brings it back into a folder that is none of the home's.
///
/// # Errors
/// What can not be written, and interruption: then the folder is as it was.
pub fn apply_elsewhere(
    home: &Home,
    mut plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let to = plan.to.parent().unwrap_or(Path::new("/")).to_path_buf();
    let fail = |e| Error::io("can not write to", &to, e);
    disk::create_private_folder(&to)?;
    let dir = Dir::open(&to).map_err(fail)?;
    disk::remove_tree(&dir, OsStr::new(BUILT)).map_err(fail)?;
    let into = dir.make_beneath(Path::new(BUILT)).map_err(fail)?;
    let built = build(home, &mut plan, request, &into, context).and_then(|built| {
        let name = plan.own_name();
        into.rename(&name, &dir, &name)
            .and_then(|()| dir.sync())
            .map_err(fail)?;
        Ok(built)
    });
    disk::remove_tree(&dir, OsStr::new(BUILT)).map_err(fail)?;
    Ok(outcome(plan, built?, None, Vec::new()))
}

/// Brings it back.
///
/// # Errors
/// What can not be written, and interruption; what is newer than the pack that was whole, without `force`. Where nothing
/// was noted yet nothing has changed; else the next command goes on from there.
pub fn apply(
    home: &LockedHome,
    mut plan: Plan,
    request: &Request,
    context: &Context,
) -> Result<Outcome> {
    let root = home.dir()?;
    let from = match plan.store {
        Some(_) => "a backup",
        None => "its archive",
    };
    let id = human::name(plan.session.as_str());
    let why = format!("{id} came back from {from} of {}", plan.at);
    let mut note = Note::by("restore", why, context);
    if plan.replaces {
        note.was.push(Was::new(plan.to.0.clone()));
    }
    let act = trash::open(home, note, context)?;
    let folder = home.trash().join(&act).join(BUILT);
    let built = (|| {
        disk::create_private_folder(&folder)?;
        let into = Dir::open(&folder).map_err(|e| Error::io("can not open", &folder, e))?;
        let built = build(home, &mut plan, request, &into, context)?;
        // Perhaps it is another pack than the one that was looked into.
        if plan.replaces {
            refuse_newer_than(&root, &mut plan, request, &into, context)?;
        }
        failpoint::hit("restore-backup.built");
        let steps = steps(home, &root, &plan, &built, &into, &act)?;
        Ok((built, steps))
    })();
    let (built, steps) = match built {
        Ok(built) => built,
        Err(error) => {
            trash::discard(home, &act);
            return Err(error);
        }
    };
    let completed =
        journal::begin(home, "restore", steps, context)?.complete_telling(home, context)?;
    let left = completed.left.iter().map(ToString::to_string).collect();
    let kept = trash::act(home, &act).map(|act| act.name);
    Ok(outcome(plan, built, kept, left))
}

/// Like [`refuse_newer`], after a look at what was built.
fn refuse_newer_than(
    root: &Dir,
    plan: &mut Plan,
    request: &Request,
    into: &Dir,
    context: &Context,
) -> Result<()> {
    if plan.as_archive {
        plan.newer = newer_archive(root, plan)?;
        return refuse_newer(plan, request);
    }
    let name = plan.own_name();
    let rel = plan.rel.as_path();
    let mut names: Vec<Member> = Vec::new();
    let mut add = |path: PathBuf, meta: &Meta| names.push(as_member(path, meta));
    let meta = into
        .stat(&name)
        .map_err(|e| Error::io("can not look at", &*plan.to, e))?;
    add(rel.to_path_buf(), &meta);
    if meta.kind == FileKind::Folder {
        let dir = into
            .open_beneath(Path::new(&name))
            .map_err(|e| Error::io("can not open the folder", &*plan.to, e))?;
        let tree = disk::walk(&dir, &|_, _| false, context.stop)?;
        for (path, entry) in tree.entries() {
            add(rel.join(path), &entry.meta);
        }
    }
    plan.newer = newer(root, plan, &names, context.stop)?;
    refuse_newer(plan, request)
}

/// What lies somewhere, as a pack would have it.
fn as_member(path: PathBuf, meta: &Meta) -> Member {
    Member {
        path: path.into(),
        kind: match meta.kind {
            FileKind::Folder => MemberKind::Folder,
            FileKind::Symlink => MemberKind::Symlink,
            _ => MemberKind::File,
        },
        mode: 0,
        uid: 0,
        gid: 0,
        mtime: meta.mtime,
        size: meta.size,
        blake3: None,
        link: None,
        xattrs: BTreeMap::new(),
        frame: 0,
        at: 0,
    }
}

fn steps(
    home: &LockedHome,
    root: &Dir,
    plan: &Plan,
    built: &Built,
    into: &Dir,
    act: &str,
) -> Result<Vec<Step>> {
    let name = plan.own_name();
    let fail = |e| Error::io("can not look at", &*plan.to, e);
    let coming = into.stat(&name).map_err(fail)?;
    let mut steps = Vec::new();
    if let Some(there) = mend::look(root, &plan.to)? {
        steps.push(Mend::PutAway {
            path: plan.to.clone(),
            act: act.to_owned(),
            lies: Was::new(plan.to.0.clone()).lies.into(),
            seen: Seen::of(&there),
            held_by: None,
        });
    }
    steps.push(Mend::BringBack {
        act: act.to_owned(),
        lies: Path::new(BUILT).join(&name).into(),
        path: plan.to.clone(),
    });
    let built_in = Path::new(TRASH).join(act).join(BUILT);
    steps.push(Mend::Prune {
        path: built_in.into(),
    });
    let index = IndexFile::ready(home)?;
    let entry = match (index.find(plan.session.as_str()), &built.entry) {
        (Some(entry), _) => entry.clone(),
        (None, Some(fields)) => Entry::packed(&plan.session, fields),
        (None, None) => Entry::new(&plan.session),
    };
    let fields = entry.fields().clone();
    steps.push(match plan.as_archive {
        true => {
            let mut archive = Map::new();
            archive.insert("file".into(), json!(plan.to.to_string_lossy()));
            archive.insert("bytes".into(), json!(coming.size));
            let path = Path::new(&name);
            let file = into.open_file(&name).map_err(fail)?;
            archive.insert("blake3".into(), json!(Pack::of(file, path)?.digest()?));
            let former = built
                .entry
                .as_ref()
                .and_then(|fields| fields.get("archived_at"));
            let at = entry.archived_at().map(str::to_owned);
            let at = at.or_else(|| Some(former?.as_str()?.to_owned()));
            Mend::Archived {
                entry: fields,
                archive,
                at: Some(at.unwrap_or_else(|| plan.at.to_string())),
                pack: plan.to.clone(),
                seen: Seen::of(&coming),
            }
        }
        false => Mend::Unarchived {
            entry: fields,
            archive: None,
        },
    });
    let mut steps: Vec<Step> = steps.into_iter().map(|step| Step::Mend { step }).collect();
    steps.push(Step::Views {
        ids: Some(vec![plan.session.to_string()]),
    });
    let act = act.to_owned();
    let step = Mend::Close { act };
    steps.push(Step::Mend { step });
    Ok(steps)
}

fn outcome(plan: Plan, built: Built, kept: Option<String>, left: Vec<String>) -> Outcome {
    Outcome {
        done: plan,
        from: built.from,
        files: built.files,
        bytes: built.bytes,
        not_used: built
            .not_used
            .into_iter()
            .map(|not_used| Useless {
                file: not_used.pack.file,
                at: not_used.pack.at,
                why: not_used.why,
            })
            .collect(),
        partial: built.newer.into_iter().map(|pack| pack.file).collect(),
        missing: built
            .missing
            .into_iter()
            .filter(|missing| !missing.vanished)
            .map(|missing| Gap {
                path: missing.path.into(),
                why: missing.why,
            })
            .collect(),
        kept,
        left,
    }
}
