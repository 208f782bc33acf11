//! Which files belong to the history: the text of sessions and agents, as far as no `.gitignore` leaves it out.
//!
//! The walk is our own, so that a folder with a `.git` of its own is taken in like any other. `.gitignore` files and
//! `info/exclude` count as git counts them; the user's global list does not: what is kept must not depend on who runs
//! the command.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::base::{Error, Result, Stop};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::SessionId;

/// What at the top of a home belongs to the history.
pub(super) const ROOTS: [&str; 5] = [
    ".gitignore",
    "agents",
    "index.json",
    "sessions",
    "wbhome.toml",
];

/// A `.gitignore` larger than this is not read.
const LARGEST_IGNORE: u64 = 4 << 20;

/// A longer path, in bytes, can git not write where a clone lies under a path of its own: the system's limit is 4,096.
const LONGEST_PATH: usize = 3600;

/// Everything, or some sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that belongs to the history.
    Home,
    /// These sessions alone, by their names.
    Sessions(BTreeSet<Vec<u8>>),
}

impl Scope {
    /// These sessions; everything when there is none.
    pub fn of(sessions: &[SessionId]) -> Scope {
        let names = sessions.iter().map(|id| id.as_str().as_bytes().to_vec());
        match sessions.is_empty() {
            true => Scope::Home,
            false => Scope::Sessions(names.collect()),
        }
    }

    /// The paths below which everything belongs to it.
    pub fn prefixes(&self) -> Vec<Vec<u8>> {
        match self {
            Scope::Home => ROOTS.iter().map(|root| root.as_bytes().to_vec()).collect(),
            Scope::Sessions(names) => {
                let below = |name: &Vec<u8>| [b"sessions/", name.as_slice()].concat();
                names.iter().map(below).collect()
            }
        }
    }

    /// Whether a path (below the home) belongs to it.
    pub fn holds(&self, path: &[u8]) -> bool {
        let mut parts = path.splitn(3, |b| *b == b'/');
        let (first, second) = (parts.next().unwrap_or(b""), parts.next());
        match self {
            Scope::Home => ROOTS.iter().any(|root| root.as_bytes() == first),
            Scope::Sessions(names) => {
                first == b"sessions" && second.is_some_and(|name| names.contains(name))
            }
        }
    }

    fn leads_to(&self, folder: &Path, name: &OsStr) -> bool {
        match (folder.as_os_str().as_bytes(), self) {
            (b"", Scope::Home) => ROOTS.iter().any(|root| *root == name),
            (b"", Scope::Sessions(_)) => name == "sessions",
            (b"sessions", Scope::Sessions(names)) => names.contains(name.as_bytes()),
            _ => true,
        }
    }
}

/// What the walk has found beside files and links.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Names that git takes in no repository.
    pub refused: Vec<Vec<u8>>,
    /// Sockets, FIFOs and devices.
    pub special: Vec<Vec<u8>>,
    /// Folders with a `.git` of their own, which is left out.
    pub nested: Vec<Vec<u8>>,
    /// What could not be looked at, and why. A folder among them hides all that is below it.
    pub unreadable: Vec<(PathBuf, String)>,
}

impl Selection {
    /// A folder whose `.gitignore` can not be read: what it leaves out is not known, so nothing new is taken from it.
    fn closed(&mut self, folder: &Path) {
        if !self.unreadable.iter().any(|(known, _)| known == folder) {
            self.unreadable.push((
                folder.to_path_buf(),
                "its .gitignore can not be read".to_owned(),
            ));
        }
    }
}

/// Walks a home. Each file and each link that is not ignored is told to `found`, on any core and in no order, with its
/// path below the home as git spells it: a large home has more of them than are worth keeping.
///
/// # Errors
/// A selected folder that is not there or is a link, and interruption.
pub(super) fn select(
    root: &Dir,
    scope: &Scope,
    exclude: &[u8],
    found: &(dyn Fn(Vec<u8>, Meta) + Sync),
    stop: &Stop,
) -> Result<Selection> {
    must_be_folder(root, "sessions")?;
    let rules = Rules::new(root, exclude);
    let selection = Mutex::new(Selection::default());
    let note = |put: &dyn Fn(&mut Selection)| {
        if let Ok(mut selection) = selection.lock() {
            put(&mut selection);
        }
    };
    let skip = |folder: &Path, entry: &disk::Entry| {
        if !scope.leads_to(folder, &entry.name) {
            return true;
        }
        let is_folder = entry.meta.kind == FileKind::Folder;
        if is_dot_git(entry.name.as_bytes()) {
            match entry.name == super::repository::DOT_GIT {
                true => note(&|s| s.nested.push(folder.as_os_str().as_bytes().to_vec())),
                false => note(&|s| s.refused.push(below(folder, &entry.name))),
            }
            return true;
        }
        match rules.ignore(folder, &entry.name, is_folder) {
            Some(false) => {}
            Some(true) => return true,
            None => {
                note(&|s| s.closed(folder));
                return true;
            }
        }
        if entry.name.len() + folder.as_os_str().len() > LONGEST_PATH {
            note(&|s| s.refused.push(below(folder, &entry.name)));
            return true;
        }
        let path = || below(folder, &entry.name);
        match entry.meta.kind {
            FileKind::Folder => return false,
            FileKind::Symlink if is_modules(entry.name.as_bytes()) => {
                note(&|s| s.refused.push(path()))
            }
            FileKind::File | FileKind::Symlink => found(path(), entry.meta),
            _ => note(&|s| s.special.push(path())),
        }
        true
    };
    let listed = |folder: disk::Folder| {
        if !folder.unreadable.is_empty() {
            note(&|s| s.unreadable.extend_from_slice(&folder.unreadable));
        }
    };
    disk::walk_each(root, &skip, &listed, stop)?;
    let mut selection = selection.into_inner().unwrap_or_default();
    selection.unreadable.sort();
    selection.refused.sort_unstable();
    selection.special.sort_unstable();
    selection.nested.sort_unstable();
    Ok(selection)
}

fn must_be_folder(root: &Dir, name: &str) -> Result<()> {
    let found = root
        .find(OsStr::new(name))
        .map_err(|e| Error::io("can not look at", name, e))?;
    match found.map(|meta| meta.kind) {
        Some(FileKind::Folder) => Ok(()),
        Some(kind) => Err(
            Error::failed(format!("expected a folder, found {}:", kind.described()))
                .at(name)
                .hint("git does not look behind a link: put the folder itself there"),
        ),
        None => Err(
            Error::failed("the folder of the sessions is not there; is its disk mounted?")
                .at(name)
                .hint("nothing was recorded as removed"),
        ),
    }
}

fn below(folder: &Path, name: &OsStr) -> Vec<u8> {
    match folder.as_os_str().as_bytes() {
        b"" => name.as_bytes().to_vec(),
        folder => [folder, b"/", name.as_bytes()].concat(),
    }
}

/// Whether git takes a name for `.git`, as some filesystems would (`verify_path` in git's `read-cache.c`): such a name
/// stands in no tree.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    is_name_like(name, b".git", b"git~1")
}

/// Whether git takes a name for `.gitmodules`, which must not be a link.
fn is_modules(name: &[u8]) -> bool {
    is_name_like(name, b".gitmodules", b"gitmod~1")
}

fn is_name_like(name: &[u8], long: &[u8], short: &[u8]) -> bool {
    // Most names are answered by their first byte.
    if !name.iter().any(|b| matches!(b, b'g' | b'G'))
        || !name.iter().any(|b| matches!(b, b'.' | b'~'))
    {
        return false;
    }
    let visible = without_ignorable(name);
    visible.split(|b| *b == b'\\').any(|piece| {
        let piece = piece.split(|b| *b == b':').next().unwrap_or(piece);
        let end = piece
            .iter()
            .rposition(|b| !matches!(b, b'.' | b' '))
            .map_or(0, |at| at + 1);
        let piece = &piece[..end];
        piece.eq_ignore_ascii_case(long) || piece.eq_ignore_ascii_case(short)
    })
}

/// Without the code points that HFS+ does not see in names.
fn without_ignorable(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_ascii() => text
            .chars()
            .filter(|c| {
                !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
            })
            .collect::<String>()
            .into_bytes(),
        _ => name.to_vec(),
    }
}

/// The `.gitignore` files on the way to a folder, the deepest last.
/// `None` when one of them can not be read.
type Chain = Option<Arc<Vec<Arc<Gitignore>>>>;

struct Rules<'d> {
    root: &'d Dir,
    exclude: Gitignore,
    chains: Mutex<HashMap<PathBuf, Chain>>,
}

impl<'d> Rules<'d> {
    fn new(root: &'d Dir, exclude: &[u8]) -> Self {
        Rules {
            root,
            exclude: parse(Path::new(""), exclude),
            chains: Mutex::new(HashMap::new()),
        }
    }

    /// Whether a name is left out; `None` when it can not be known.
    fn ignore(&self, folder: &Path, name: &OsStr, is_folder: bool) -> Option<bool> {
        let chain = self.chain(folder)?;
        let path = folder.join(name);
        let said = chain
            .iter()
            .rev()
            .map(|rules| rules.matched(&path, is_folder));
        let said = said.chain(std::iter::once_with(|| {
            self.exclude.matched(&path, is_folder)
        }));
        let said = said.into_iter().find(|said| !said.is_none());
        Some(said.is_some_and(|said| said.is_ignore()))
    }

    /// Those of a folder are looked up once for each name in it, and read once: a folder is visited by one worker,
    /// after the one above it.
    fn chain(&self, folder: &Path) -> Chain {
        let known = |folder: &Path| self.chains.lock().ok()?.get(folder).cloned();
        if let Some(chain) = known(folder) {
            return chain;
        }
        let above = match folder.parent() {
            Some(parent) => self.chain(parent),
            None => Some(Arc::default()),
        };
        let chain = above.and_then(|above| match self.read(folder) {
            Ok(None) => Some(above),
            Ok(Some(text)) => {
                let mut all = above.to_vec();
                all.push(Arc::new(parse(folder, &text)));
                Some(Arc::new(all))
            }
            Err(_) => None,
        });
        if let Ok(mut chains) = self.chains.lock() {
            chains.insert(folder.to_owned(), chain.clone());
        }
        chain
    }

    /// The `.gitignore` of a folder. git follows no link that is called so, and neither does this.
    fn read(&self, folder: &Path) -> std::io::Result<Option<Vec<u8>>> {
        let name = OsStr::new(".gitignore");
        let dir = self.root.open_beneath(folder)?;
        match dir.find(name)? {
            Some(meta) if meta.kind == FileKind::File => {
                disk::read_small_in(&dir, name, LARGEST_IGNORE)
            }
            _ => Ok(None),
        }
    }
}

fn parse(folder: &Path, text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A line that is no pattern matches nothing, in git as well.
        let _ = builder.add_line(None, &String::from_utf8_lossy(line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
