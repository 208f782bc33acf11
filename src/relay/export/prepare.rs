//! One item before it is written: where it is read, what it becomes, and what the look has found.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::look::{Looked, Looking};
use super::source::Source;
use super::{Export, Item, Kind, LeftOut, Request, Wanted, names};
use crate::base::{Error, Result, human};
use crate::disk::{self, Dir, Entry, FileKind};
use crate::home::{LOGS, OnFind, RelPath, SessionId};
use crate::pack::{self, ENDING, Flaw, FlawKind, MemberKind, Survey};

/// An item that has been looked at.
pub(super) struct Ready {
    pub item: Item,
    pub id: SessionId,
    /// What it is called in the folder it is put in.
    pub name: OsString,
    pub place: Place,
    pub survey: Survey,
    pub looked: Looked,
    /// Holds what was unpacked.
    _source: Source,
}

/// The folder that is read, and what leaves of it.
pub(super) struct Place {
    pub kind: Kind,
    pub dir: Dir,
    /// Where it is, below the session.
    pub below: PathBuf,
    /// What stands before the names that leave.
    pub top: PathBuf,
    /// The only one in it that leaves.
    only: Option<OsString>,
    /// Whether the logs stay.
    without_logs: bool,
}

impl Ready {
    /// Whether a secret keeps it here.
    pub fn is_held(&self, request: &Request) -> bool {
        !self.item.findings.is_empty() && request.on_find == OnFind::Refuse
    }

    /// Takes over what was found since.
    pub fn note(&mut self) {
        self.item.findings = self.looked.findings.clone();
        self.item.allowed = self.looked.allowed;
        self.item.files = self.looked.files.len() as u64;
        self.item.bytes = self.looked.bytes();
    }
}

impl Export<'_> {
    /// Opens, looks at, and says what would become of it. `taken` are the names of the items before that leave.
    pub(super) fn prepare(&self, wanted: &Wanted, taken: &BTreeSet<OsString>) -> Result<Ready> {
        let id = &wanted.id;
        let rel = wanted.path.as_ref().filter(|path| !path.is_empty());
        let inside = rel.map(RelPath::as_path);
        let source = Source::open(self.home, id, inside, self.context)?;
        let place = match rel {
            None => self.session(id, &source)?,
            Some(rel) => self.inside(id, &source, rel.as_path())?,
        };
        let name = match place.kind {
            Kind::Session => OsString::from(format!("{id}{ENDING}")),
            _ => rel
                .and_then(|rel| rel.as_path().file_name())
                .unwrap_or_default()
                .to_owned(),
        };
        let there = self.to.find(&name);
        let there = there.map_err(|e| Error::io("can not look into", &self.request.to, e))?;
        if taken.contains(&name) {
            return Err(self.taken(&name));
        }
        if there.is_some() {
            return Err(self.in_the_way(&name));
        }
        let survey = self.survey(id, &place)?;
        let looked = self
            .looking(id, &place)
            .all(survey.members(), survey.flaws())?;
        let leaving = survey.members().iter().map(|member| &*member.path);
        let item = Item {
            id: self.told(id.as_str()),
            inside: rel.map(|rel| self.check.shown(rel.as_path()).into()),
            kind: place.kind,
            from: source.from,
            to: self
                .request
                .to
                .join(self.check.shown(Path::new(&name)))
                .into(),
            files: 0,
            bytes: 0,
            written: None,
            logs: self.logs_of(&source, &place)?,
            left_out: survey
                .flaws()
                .iter()
                .map(|flaw| self.left_out(id, &place, flaw))
                .collect(),
            being_written: Vec::new(),
            findings: Vec::new(),
            allowed: 0,
            notes: match place.kind {
                Kind::Session => names::notes([Path::new(&name)].into_iter(), self.check),
                _ => names::notes(leaving, self.check),
            },
        };
        let mut ready = Ready {
            item,
            id: id.clone(),
            name,
            place,
            survey,
            looked,
            _source: source,
        };
        ready.note();
        Ok(ready)
    }

    pub(super) fn looking<'l>(&'l self, id: &'l SessionId, place: &'l Place) -> Looking<'l> {
        Looking {
            export: self,
            id,
            dir: &place.dir,
            below: &place.below,
            top: &place.top,
            attributes: place.kind == Kind::Session,
        }
    }

    fn session(&self, id: &SessionId, source: &Source) -> Result<Place> {
        Ok(Place {
            kind: Kind::Session,
            dir: self.open(id, source, Path::new(""))?,
            below: PathBuf::new(),
            top: PathBuf::from(id.as_str()),
            only: None,
            without_logs: !self.request.logs,
        })
    }

    fn inside(&self, id: &SessionId, source: &Source, rel: &Path) -> Result<Place> {
        let above = rel.parent().unwrap_or(Path::new(""));
        let name = rel.file_name().unwrap_or_default();
        let parent = self.open(id, source, above)?;
        let shown = self.shown(id, rel);
        let found = parent.find(name);
        let found = found.map_err(|e| Error::io("can not look at", &*shown, e))?;
        let kind = found.ok_or_else(|| missing(id, &shown))?.kind;
        let (kind, dir, below, top, only) = match kind {
            FileKind::File => {
                let only = Some(name.to_owned());
                (Kind::File, parent, above, Path::new(""), only)
            }
            FileKind::Folder => {
                let dir = self.open(id, source, rel)?;
                (Kind::Folder, dir, rel, Path::new(name), None)
            }
            other => {
                let what = format!("is {}:", other.described());
                let error = Error::failed(what).at(&*shown);
                return Err(match other {
                    FileKind::Symlink => {
                        error.hint("links are never followed: name what it points to")
                    }
                    _ => error.hint("only files and folders can be exported"),
                });
            }
        };
        Ok(Place {
            kind,
            dir,
            below: below.to_path_buf(),
            top: top.to_path_buf(),
            only,
            without_logs: false,
        })
    }

    fn open(&self, id: &SessionId, source: &Source, rel: &Path) -> Result<Dir> {
        let shown = self.shown(id, rel);
        source
            .dir
            .open_beneath(rel)
            .map_err(|e| match disk::is_nowhere(&e) {
                true => missing(id, &shown).hint("links are never followed"),
                false => Error::io("can not open the folder", &*shown, e),
            })
    }

    /// Walks what leaves.
    pub(super) fn survey(&self, id: &SessionId, place: &Place) -> Result<Survey> {
        let skip = |rel: &Path, entry: &Entry| {
            let at_top = rel.as_os_str().is_empty();
            match &place.only {
                Some(only) => !at_top || entry.name != *only,
                None => place.without_logs && at_top && is_logs(entry),
            }
        };
        let top = place.top.to_string_lossy();
        let survey = pack::survey(&place.dir, &top, &skip, self.context)?;
        match survey
            .flaws()
            .iter()
            .find(|flaw| flaw.kind == FlawKind::Unreadable)
        {
            None => Ok(survey),
            Some(flaw) => Err(self.unreadable(id, place, flaw)),
        }
    }

    pub(super) fn unreadable(&self, id: &SessionId, place: &Place, flaw: &Flaw) -> Error {
        let shown = self.shown(id, &place.below.join(&*flaw.path));
        Error::failed(format!(
            "{} can not be read: {}",
            human::path(&shown),
            human::escape(&flaw.why)
        ))
        .hint("set its permissions right (`chmod`, `chown`), or repair the disk, and try again")
    }

    fn left_out(&self, id: &SessionId, place: &Place, flaw: &Flaw) -> LeftOut {
        LeftOut {
            path: self.shown(id, &place.below.join(&*flaw.path)),
            why: flaw.why.clone(),
        }
    }

    fn logs_of(&self, source: &Source, place: &Place) -> Result<u64> {
        if !place.without_logs {
            return Ok(0);
        }
        let logs = match source.dir.open_beneath(Path::new(LOGS)) {
            Ok(logs) => logs,
            Err(e) if disk::is_nowhere(&e) => return Ok(0),
            Err(e) => return Err(Error::io("can not open the folder", LOGS, e)),
        };
        let tree = disk::walk(&logs, &|_, _| false, self.context.stop)?;
        let files = tree
            .entries()
            .filter(|(_, entry)| entry.meta.kind == FileKind::File);
        Ok(files.count() as u64)
    }
}

/// Members that are copied, each as a file of its own.
pub(super) fn is_file(kind: MemberKind) -> bool {
    matches!(kind, MemberKind::File | MemberKind::HardLink)
}

fn is_logs(entry: &Entry) -> bool {
    entry.meta.kind == FileKind::Folder && entry.name == LOGS
}

fn missing(id: &SessionId, shown: &Path) -> Error {
    let typed = human::argument(id.as_str());
    Error::failed("there is no")
        .at(shown)
        .hint(format!("`wbhome show {typed}/` lists what is there"))
}
