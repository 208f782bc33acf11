//! What a home is made of right now: the things that a store keeps apart, and what each looks like.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::agent_state::Portion;
use super::{Form, PackRef, Place};
use crate::base::{Context, Error, Result};
use crate::disk::{self, Dir, Entry, FileKind, Meta, Tree};
use crate::home::{Home, SessionId};
use crate::pack;

/// What of `.wbhome/` is of no use anywhere else: it is being done, can be counted again, or was thrown away.
const OWN: [&str; 5] = ["lock", "journal", "tmp", "trash", "cache.json"];

/// A thing, and how it is reached.
pub(super) struct Source {
    pub place: Place,
    pub way: Way,
}

/// How a thing is reached.
pub(super) enum Way {
    /// A folder below the home, with everything in it.
    Below(PathBuf),
    /// The home itself, without what is kept apart.
    Home,
    /// A file in `archive/`, as it is.
    Archive(OsString),
    /// Part of the agent application's own folder, without its databases.
    State(Portion),
    /// The databases of that folder: looked at where they lie, and packed as SQLite has copied them.
    Databases(Portion),
}

/// What a thing looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Looked {
    /// As [`PackRef::seen`].
    pub seen: Option<String>,
    pub files: u64,
    pub bytes: u64,
}

/// The things of a home, the larger folders last.
///
/// # Errors
/// A home, or a folder of sessions or archives in it, that can not be listed: then nobody knows what is missing.
pub(super) fn things(home: &Home, root: &Dir) -> Result<Vec<Source>> {
    let list = |rel: &str| {
        let path = home.root().join(rel);
        root.open_beneath(Path::new(rel))
            .and_then(|dir| dir.names())
            .map_err(|e| {
                Error::io("can not list the folder", path, e)
                    .hint("nothing was backed up: if the folder lies on another disk, mount it")
            })
    };
    let mut things = vec![Source {
        place: Place::Home,
        way: Way::Home,
    }];
    let mut add = |place, way| things.push(Source { place, way });
    for (name, kind) in list("")? {
        match name.to_str() {
            Some(text) if kind == FileKind::Folder && is_apart(text) => {
                let place = match text {
                    "agents" => Place::Agents,
                    other => Place::Folder(other.to_owned()),
                };
                add(place, Way::Below(name.into()));
            }
            _ => {}
        }
    }
    for (name, kind) in list("sessions")? {
        if let Some(id) = session(&name, kind) {
            let rel = Path::new("sessions").join(id.as_str());
            add(Place::Session(id), Way::Below(rel));
        }
    }
    // A home may have been made without one.
    let archives = match disk::stat(&home.archive())? {
        Some(_) => list("archive")?,
        None => Vec::new(),
    };
    for (name, kind) in archives {
        if let Some(id) = archived(&name, kind) {
            add(Place::Session(id), Way::Archive(name));
        }
    }
    things.sort_by(|one, other| {
        (&one.place, one.form() as u8).cmp(&(&other.place, other.form() as u8))
    });
    Ok(things)
}

/// Whether a folder at the top of a home is kept apart from the home itself.
fn is_apart(name: &str) -> bool {
    !matches!(
        name,
        "sessions" | "archive" | "projects" | ".wbhome" | ".git"
    ) && !disk::is_temporary(OsStr::new(name))
}

fn session(name: &OsStr, kind: FileKind) -> Option<SessionId> {
    SessionId::of_folder(name).filter(|_| kind == FileKind::Folder)
}

fn archived(name: &OsStr, kind: FileKind) -> Option<SessionId> {
    let id = name.to_str()?.strip_suffix(pack::ENDING)?;
    SessionId::of_folder(OsStr::new(id)).filter(|_| kind == FileKind::File)
}

/// Whether the home itself is packed without this.
fn not_home_itself(rel: &Path, entry: &Entry) -> bool {
    let Some(name) = entry.name.to_str() else {
        return false;
    };
    if disk::is_temporary(&entry.name) {
        return true;
    }
    let kind = entry.meta.kind;
    match rel.to_str() {
        Some("") => name == ".git" || kind == FileKind::Folder && is_apart(name),
        Some("sessions") => session(&entry.name, kind).is_some(),
        Some("archive") => archived(&entry.name, kind).is_some(),
        Some(".wbhome") => OWN.contains(&name),
        _ => false,
    }
}

impl Source {
    /// What its pack is.
    pub fn form(&self) -> Form {
        match self.way {
            Way::Archive(_) => Form::Archive,
            _ => Form::Packed,
        }
    }

    /// Opens its folder; of an archive the one that it lies in.
    pub fn open(&self, root: &Dir) -> Result<Dir> {
        let (opened, path) = match &self.way {
            Way::Below(rel) => (root.open_beneath(rel), rel.as_path()),
            Way::Home => (root.open_beneath(Path::new("")), Path::new(".")),
            Way::Archive(_) => {
                let archive = Path::new("archive");
                (root.open_beneath(archive), archive)
            }
            Way::State(portion) | Way::Databases(portion) => (
                portion.root.open_beneath(Path::new("")),
                portion.path.as_path(),
            ),
        };
        opened.map_err(|e| Error::io("can not open the folder", path, e))
    }

    /// Whether this is left out.
    pub fn skips(&self, rel: &Path, entry: &Entry) -> bool {
        match &self.way {
            Way::Home => not_home_itself(rel, entry),
            Way::State(portion) | Way::Databases(portion) => (portion.skip)(rel, entry),
            Way::Below(_) | Way::Archive(_) => false,
        }
    }

    /// Whether this is packed with the rest, and no reason to pack anything: the home would differ each night by the record
    /// of that night.
    fn overlooks(&self, rel: &Path, entry: &Entry) -> bool {
        let is_record = ["runs", "drills"].iter().any(|name| entry.name == *name);
        self.skips(rel, entry)
            || matches!(self.way, Way::Home) && rel == Path::new(".wbhome") && is_record
    }

    /// Looks at it, and opens no file.
    ///
    /// # Errors
    /// What can not be opened, and interruption.
    pub fn look(&self, root: &Dir, context: &Context) -> Result<Looked> {
        let dir = self.open(root)?;
        if let Way::Archive(name) = &self.way {
            let meta = dir.stat(name);
            let meta = meta.map_err(|e| Error::io("can not look at", Path::new(name), e))?;
            let mut seen = Seen::new(true);
            seen.add(Path::new(name), &meta);
            return Ok(seen.finish());
        }
        let tree = disk::walk(&dir, &|rel, entry| self.overlooks(rel, entry), context.stop)?;
        // A folder whose content is kept apart changes with that, and one with a database with SQLite's journal; its mode
        // is what matters.
        let is_part = matches!(self.way, Way::Home | Way::State(_) | Way::Databases(_));
        Ok(Seen::of(&tree, !is_part))
    }

    /// What has changed since this pack was made: the first thing, and how many more.
    ///
    /// # Errors
    /// What can not be read.
    pub fn differs(
        &self,
        root: &Dir,
        pack: &pack::Pack,
        context: &Context,
    ) -> Result<Option<(String, u64)>> {
        let Some(manifest) = pack.manifest() else {
            return Ok(None);
        };
        if matches!(self.way, Way::Archive(_)) {
            return Ok(None);
        }
        let dir = self.open(root)?;
        let tree = disk::walk(&dir, &|rel, entry| self.overlooks(rel, entry), context.stop)?;
        let mut before: std::collections::BTreeMap<&Path, &pack::Member> =
            manifest.members.iter().map(|m| (&*m.path, m)).collect();
        before.remove(Path::new(""));
        if matches!(self.way, Way::Home) {
            let records = [".wbhome/runs", ".wbhome/drills"];
            before.retain(|path, _| !records.iter().any(|records| path.starts_with(records)));
        }
        let mut told = Vec::new();
        for (path, entry) in tree.entries() {
            let meta = &entry.meta;
            let is_file = meta.kind == FileKind::File;
            match before.remove(path.as_path()) {
                None if !matches!(
                    meta.kind,
                    FileKind::File | FileKind::Folder | FileKind::Symlink
                ) => {}
                None => told.push((path, "is new")),
                Some(member) if member.kind == pack::MemberKind::HardLink => {}
                Some(member)
                    if is_file && member.size != meta.size
                        || meta.kind != FileKind::Folder && member.mtime != meta.mtime
                        || member.mode != meta.mode =>
                {
                    told.push((path, "was changed"));
                }
                Some(_) => {}
            }
        }
        told.extend(
            before
                .into_keys()
                .map(|path| (path.to_path_buf(), "is gone")),
        );
        told.sort();
        let more = told.len().saturating_sub(1) as u64;
        let first = told.into_iter().next();
        Ok(first.map(|(path, what)| (format!("{} {what}", crate::base::human::path(&path)), more)))
    }
}

/// Takes in what things look like.
struct Seen {
    hasher: blake3::Hasher,
    folder_times: bool,
    fresh: bool,
    looked: Looked,
}

impl Seen {
    fn new(folder_times: bool) -> Self {
        Seen {
            hasher: blake3::Hasher::new(),
            folder_times,
            fresh: false,
            looked: Looked::default(),
        }
    }

    fn of(tree: &Tree, folder_times: bool) -> Looked {
        let mut seen = Seen::new(folder_times);
        for folder in &tree.folders {
            seen.add(&folder.rel, &folder.meta);
            for entry in &folder.entries {
                if entry.meta.kind != FileKind::Folder {
                    seen.add(&folder.rel.join(&entry.name), &entry.meta);
                }
            }
            for (path, why) in &folder.unreadable {
                seen.text(path.as_os_str());
                seen.text(OsStr::new(why));
            }
        }
        seen.finish()
    }

    fn text(&mut self, text: &OsStr) {
        let bytes = text.as_encoded_bytes();
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    fn add(&mut self, path: &Path, meta: &Meta) {
        self.text(path.as_os_str());
        let is_folder = meta.kind == FileKind::Folder;
        if is_folder && !self.folder_times {
            self.hasher.update(&meta.mode.to_le_bytes());
            return;
        }
        let size = match is_folder {
            true => 0,
            false => meta.size,
        };
        let numbers = [
            meta.kind as u64,
            u64::from(meta.mode),
            size,
            meta.mtime.seconds.cast_unsigned(),
            u64::from(meta.mtime.nanos),
            meta.ctime.seconds.cast_unsigned(),
            u64::from(meta.ctime.nanos),
            meta.ino,
        ];
        for number in numbers {
            self.hasher.update(&number.to_le_bytes());
        }
        self.fresh |= disk::is_fresh(meta);
        if meta.kind == FileKind::File {
            self.looked.files += 1;
            self.looked.bytes = self.looked.bytes.saturating_add(meta.size);
        }
    }

    fn finish(self) -> Looked {
        let digest = self.hasher.finalize().to_hex()[..32].to_owned();
        Looked {
            seen: (!self.fresh).then_some(digest),
            ..self.looked
        }
    }
}

/// Whether a partial pack could be made better: something of it that could not be read can be opened now.
pub(super) fn can_be_read_now(pack: &PackRef, dir: &Dir) -> bool {
    // A folder that could not be listed is opened in the same way.
    let opens = |path: &Path| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = dir.open_beneath(parent);
            parent.is_ok_and(|parent| parent.open_file(name).is_ok())
        }
        _ => true,
    };
    pack.flaws.iter().any(|flaw| opens(&flaw.path))
}
