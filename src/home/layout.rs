//! Where everything in a home lies, and what makes a folder one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SessionId;
use crate::base::{Error, Kind, Result};
use crate::disk::{self, Dir, FileKind};

/// The newest format of a home that this program knows.
pub const FORMAT: u64 = 1;

/// The folders of a session, each a kind of content.
pub const KINDS: [&str; 4] = ["context", "memory", "artifacts", LOGS];

/// The folder of a session that holds its logs, which stay here unless somebody says otherwise.
pub const LOGS: &str = "logs";

/// Whether something below a session is its folder of logs, or in it.
pub fn is_log(path: &Path) -> bool {
    path.starts_with(LOGS)
}

/// How far a home is trusted. One that was merely found from the current folder, or that another user owns,
/// is read, but its configured commands are not run, its journal not settled and its git configuration not
/// obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// A person named it, or it is their usual one.
    Named,
    /// It was found on the way.
    Found,
}

/// `.wbhome/home.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    pub format: u64,
    pub id: String,
    pub created: String,
}

/// A home that exists. Reading needs nothing more; writing needs a [`super::LockedHome`].
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
    trust: Trust,
    id: String,
}

impl Home {
    /// Opens the home at `root`.
    ///
    /// # Errors
    /// [`Kind::NoHome`] when it is none, [`Kind::Newer`] when a newer program has written it; and a home whose own
    /// folders or files are links: what is written to them, or cleared, would be somewhere else.
    pub fn open(root: impl Into<PathBuf>, trust: Trust) -> Result<Home> {
        let root = root.into();
        let marker = read_marker(&root)?.ok_or_else(|| no_home(&root))?;
        for name in ["sessions", "archive"] {
            refuse_linked(&root.join(name))?;
        }
        Ok(Home {
            root,
            trust,
            id: marker.id,
        })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Opens its folder.
    ///
    /// # Errors
    /// When it can not be opened.
    pub fn dir(&self) -> Result<Dir> {
        Dir::open(&self.root).map_err(|e| Error::io("can not open the home", &self.root, e))
    }

    /// How far it is trusted.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Whether a person named it: then its commands may be run, its journal settled.
    pub fn is_trusted(&self) -> bool {
        self.trust == Trust::Named
    }

    /// Whether a command was stopped in its middle, and nobody has settled that yet.
    ///
    /// # Errors
    /// When the journal can not be listed.
    pub fn has_unsettled(&self) -> Result<bool> {
        Ok(!disk::read_dir_names(&self.journal())?.is_empty())
    }

    /// The random id that it got when it was made.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `agents/`: shared declarations, the agent's own files.
    pub fn agents(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// `sessions/`.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// `sessions/<id>`, whether it exists or not.
    pub fn session(&self, id: &SessionId) -> PathBuf {
        self.sessions().join(id.as_str())
    }

    /// The name of the session folder that an absolute path lies in, by the letter or when links are resolved. What
    /// is not there, or no id, has a name as well.
    pub fn session_at(&self, path: &Path) -> Option<OsString> {
        let real = |path: &Path| disk::real_path(path).ok();
        let by_letter = std::iter::once((path.to_path_buf(), self.sessions()));
        // Asked only when the letter does not tell.
        let resolved = std::iter::once_with(|| Some((real(path)?, real(&self.sessions())?)));
        by_letter
            .chain(resolved.flatten())
            .find_map(|(path, sessions)| {
                let inside = path.strip_prefix(sessions).ok()?;
                match inside.components().next()? {
                    std::path::Component::Normal(name) => Some(name.to_owned()),
                    _ => None,
                }
            })
    }

    /// `archive/`.
    pub fn archive(&self) -> PathBuf {
        self.root.join("archive")
    }

    /// `archive/<id>.tar.zst`, whether it exists or not.
    pub fn archive_of(&self, id: &SessionId) -> PathBuf {
        self.archive().join(format!("{id}.tar.zst"))
    }

    /// `projects/`: one link a session that has a project.
    pub fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// `index.json`.
    pub fn index_file(&self) -> PathBuf {
        self.root.join("index.json")
    }

    /// `wbhome.toml`.
    pub fn config_file(&self) -> PathBuf {
        self.root.join("wbhome.toml")
    }

    /// `.gitignore`.
    pub fn gitignore(&self) -> PathBuf {
        self.root.join(".gitignore")
    }

    /// `.wbhome/`: the tool's own.
    pub fn own(&self) -> PathBuf {
        self.root.join(OWN)
    }

    /// `.wbhome/cache.json`: what was counted; may be deleted at any time.
    pub fn cache_file(&self) -> PathBuf {
        self.own().join("cache.json")
    }

    /// `.wbhome/lock`.
    pub fn lock_file(&self) -> PathBuf {
        self.own().join("lock")
    }

    /// `.wbhome/journal/`: what a command is about to do.
    pub fn journal(&self) -> PathBuf {
        self.own().join("journal")
    }

    /// `.wbhome/trash/`: what was replaced, removed or repaired away.
    pub fn trash(&self) -> PathBuf {
        self.own().join("trash")
    }

    /// `.wbhome/tmp/`: what is being built. Whoever holds the lock may clear it.
    pub fn tmp(&self) -> PathBuf {
        self.own().join("tmp")
    }

    /// `.wbhome/migrations/`.
    pub fn migrations(&self) -> PathBuf {
        self.own().join("migrations")
    }

    /// `.wbhome/runs/`: the records of `nightly`.
    pub fn runs(&self) -> PathBuf {
        self.own().join("runs")
    }

    /// `.wbhome/drills/`.
    pub fn drills(&self) -> PathBuf {
        self.own().join("drills")
    }

    /// `.wbhome/relay.json`.
    pub fn relay_file(&self) -> PathBuf {
        self.own().join("relay.json")
    }

    /// `.wbhome/leases.json`.
    pub fn leases_file(&self) -> PathBuf {
        self.own().join("leases.json")
    }

    /// `.wbhome/rotate.json`.
    pub fn rotate_file(&self) -> PathBuf {
        self.own().join("rotate.json")
    }
}

/// The folder that makes a folder a home.
pub(super) const OWN: &str = ".wbhome";

/// The file in it that is written last, so that a home half made is none.
pub(super) fn marker_file(root: &Path) -> PathBuf {
    root.join(OWN).join("home.json")
}

/// Reads `.wbhome/home.json`; `None` when `root` is no home.
pub(super) fn read_marker(root: &Path) -> Result<Option<Marker>> {
    let own = root.join(OWN);
    if !disk::is_folder(&own) {
        return Ok(None);
    }
    // What lies in there is written, cleared and removed by name.
    let names = disk::read_dir_names(&own)?;
    if let Some((link, _)) = names.iter().find(|(_, kind)| *kind == FileKind::Symlink) {
        let what = "found a symbolic link where wbhome keeps what is its own:";
        return Err(leads_out(what, &own.join(link)));
    }
    let path = marker_file(root);
    let Some(content) = disk::read_small(&path, 1 << 20)? else {
        return Ok(None);
    };
    let broken = |e| {
        Error::io("can not understand", &path, e)
            .hint("it says which home this is; bring it back from a backup, or move it away and run `wbhome init`")
    };
    // The number first: of a newer format nothing else is known.
    let value: serde_json::Value = serde_json::from_slice(&content).map_err(broken)?;
    if let Some(format) = value.get("format").and_then(serde_json::Value::as_u64)
        && format > FORMAT
    {
        return Err(Error::new(
            Kind::Newer,
            format!("the home was written by a newer wbhome (format {format}, this program knows {FORMAT}):"),
        )
        .at(root)
        .hint("use the newer wbhome; nothing was touched"));
    }
    serde_json::from_value(value).map(Some).map_err(broken)
}

/// Refuses a link to a folder. One that leads nowhere does no harm, and `check` names it.
fn refuse_linked(path: &Path) -> Result<()> {
    let is_link = |meta: disk::Meta| meta.kind == FileKind::Symlink;
    match disk::stat(path)?.is_some_and(is_link) && disk::is_folder(&disk::real_path(path)?) {
        true => Err(leads_out("expected a folder, found a symbolic link:", path)),
        false => Ok(()),
    }
}

/// The refusal of a link that no command has made, and that would lead every command out of the home.
fn leads_out(what: &str, path: &Path) -> Error {
    Error::failed(what)
        .at(path)
        .hint("if it is a link, put the folder itself there")
        .hint("nothing was read or changed through it")
}

fn no_home(root: &Path) -> Error {
    if !disk::exists(root) {
        return Error::new(Kind::NoHome, "there is no folder").at(root);
    }
    Error::new(Kind::NoHome, "there is no home in")
        .at(root)
        .hint(format!(
            "`wbhome init {}` makes one, or adopts the sessions that are there",
            crate::base::human::quoted(root)
        ))
}
