//! The tree of a commit: built from the files of the selection, with all else as the last commit has it.

use std::collections::BTreeMap;
use std::ops::Range;

use git2::{ObjectType, Oid};

use crate::base::Result;

/// A file or link as a tree names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf<'p> {
    /// Below the home.
    pub path: &'p [u8],
    pub mode: u32,
    pub oid: Oid,
}

impl<'p> Leaf<'p> {
    /// The file that an entry of the index stands for.
    pub fn of(entry: &'p git2::IndexEntry) -> Self {
        Leaf {
            path: &entry.path,
            mode: entry.mode,
            oid: entry.id,
        }
    }
}

/// The mode of a folder in a tree.
pub(super) const FOLDER: u32 = 0o040_000;

/// A line of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub mode: u32,
    pub oid: Oid,
}

/// The names in a tree.
pub(super) type Items = BTreeMap<Vec<u8>, Item>;

/// What became of a file since the last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Added,
    Changed,
    Removed,
}

/// A file that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub path: Vec<u8>,
    pub became: Became,
}

/// A folder of the new tree. What is in it is put together from the leaves each time that it is asked for: a home has
/// many folders, and few of them differ from the last commit.
struct Node {
    /// Its name in the folder that it is in.
    name: Box<[u8]>,
    oid: Oid,
    /// Its leaves, those of the folders in it included.
    leaves: Range<usize>,
    /// So many bytes of their paths lead to it.
    depth: usize,
    folders: Vec<Node>,
    /// What it has from the last commit, as it stands there.
    taken: Items,
}

/// A line of a new tree, and the folder that it names.
struct Line<'n> {
    item: Item,
    folder: Option<&'n Node>,
    is_taken: bool,
}

type Lines<'n> = BTreeMap<&'n [u8], Line<'n>>;

impl Node {
    /// The folder of the leaves at these places, which stand in the order of git's index; all of them lie below `depth`
    /// bytes of path.
    fn of(
        name: &[u8],
        leaves: &[Leaf],
        places: Range<usize>,
        depth: usize,
        taken: Items,
    ) -> Result<Node, git2::Error> {
        let (mut folders, mut at) = (Vec::new(), places.start);
        while at < places.end {
            let path = leaves[at].path;
            let Some(end) = memchr::memchr(b'/', &path[depth..]) else {
                at += 1;
                continue;
            };
            let upto = depth + end + 1;
            let inside = leaves[at..places.end]
                .iter()
                .take_while(|leaf| leaf.path.get(..upto) == Some(&path[..upto]));
            let inside = at..at + inside.count();
            at = inside.end;
            let name = &path[depth..upto - 1];
            folders.push(Node::of(name, leaves, inside, upto, Items::new())?);
        }
        folders.shrink_to_fit();
        Node::with(name, leaves, places, depth, folders, taken)
    }

    fn with(
        name: &[u8],
        leaves: &[Leaf],
        places: Range<usize>,
        depth: usize,
        folders: Vec<Node>,
        taken: Items,
    ) -> Result<Node, git2::Error> {
        let mut node = Node {
            name: name.into(),
            oid: Oid::ZERO_SHA1,
            leaves: places,
            depth,
            folders,
            taken,
        };
        node.oid = Oid::hash_object(ObjectType::Tree, &serialised(&node.lines(leaves)))?;
        Ok(node)
    }

    fn lines<'n>(&'n self, leaves: &'n [Leaf]) -> Lines<'n> {
        let mut lines = Lines::new();
        for (name, item) in &self.taken {
            let line = Line {
                item: *item,
                folder: None,
                is_taken: true,
            };
            lines.insert(name, line);
        }
        let (mut at, mut folders) = (self.leaves.start, self.folders.iter().peekable());
        while at < self.leaves.end {
            if let Some(folder) = folders.next_if(|folder| folder.leaves.start == at) {
                at = folder.leaves.end;
                continue;
            }
            let leaf = &leaves[at];
            let line = Line {
                item: Item {
                    mode: leaf.mode,
                    oid: leaf.oid,
                },
                folder: None,
                is_taken: false,
            };
            lines.insert(&leaf.path[self.depth..], line);
            at += 1;
        }
        for folder in &self.folders {
            let line = Line {
                item: Item {
                    mode: FOLDER,
                    oid: folder.oid,
                },
                folder: Some(folder),
                is_taken: false,
            };
            lines.insert(&folder.name, line);
        }
        lines
    }

    /// As git's index remembers it: the name, how many entries it has and how many folders, its object.
    fn cached(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name);
        out.push(0);
        out.extend_from_slice(format!("{} {}\n", self.leaves.len(), self.folders.len()).as_bytes());
        out.extend_from_slice(self.oid.as_bytes());
        self.folders.iter().for_each(|folder| folder.cached(out));
    }
}

/// A folder's name compares as if it ended in `/`.
fn key((name, item): (&[u8], Item)) -> impl Iterator<Item = u8> {
    let end = (item.mode == FOLDER).then_some(b'/');
    name.iter().copied().chain(end)
}

/// In git's order.
fn serialised(lines: &Lines) -> Vec<u8> {
    let mut lines: Vec<(&[u8], Item)> = lines
        .iter()
        .map(|(name, line)| (*name, line.item))
        .collect();
    lines.sort_by(|a, b| key(*a).cmp(key(*b)));
    let mut out = Vec::with_capacity(lines.len() * 48);
    for (name, item) in lines {
        out.extend_from_slice(format!("{:o} ", item.mode).as_bytes());
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(item.oid.as_bytes());
    }
    out
}

/// The new tree beside that of the last commit.
pub(super) struct Forest<'r> {
    git: &'r git2::Repository,
    leaves: &'r [Leaf<'r>],
    top: Node,
    base: Option<Oid>,
}

impl<'r> Forest<'r> {
    /// Plants the leaves: below each prefix the tree has them alone, elsewhere what `base` has.
    ///
    /// # Errors
    /// A tree of the last commit that can not be read.
    pub fn plant(
        git: &'r git2::Repository,
        base: Option<Oid>,
        prefixes: &[Vec<u8>],
        leaves: &'r [Leaf<'r>],
    ) -> Result<Forest<'r>, git2::Error> {
        let (mut top, all) = (read(git, base)?, 0..leaves.len());
        // A prefix is a name at the top, or a session.
        let deep: Vec<&Vec<u8>> = prefixes.iter().filter(|p| p.contains(&b'/')).collect();
        let top = if deep.is_empty() {
            for prefix in prefixes {
                top.remove(prefix);
            }
            Node::of(b"", leaves, all, 0, top)?
        } else {
            let sessions = b"sessions".as_slice();
            let former = top.remove(sessions).filter(|item| item.mode == FOLDER);
            let mut items = read(git, former.map(|item| item.oid))?;
            for prefix in deep {
                items.remove(&prefix[sessions.len() + 1..]);
            }
            let is_empty = items.is_empty() && leaves.is_empty();
            let node = Node::of(sessions, leaves, all.clone(), sessions.len() + 1, items)?;
            let folders = if is_empty { Vec::new() } else { vec![node] };
            Node::with(b"", leaves, all, 0, folders, top)?
        };
        Ok(Forest {
            git,
            leaves,
            top,
            base,
        })
    }

    /// The name of the whole tree.
    pub fn oid(&self) -> Oid {
        self.top.oid
    }

    /// Whether it is the tree of the last commit.
    pub fn is_base(&self) -> bool {
        self.base == Some(self.top.oid)
    }

    /// The trees as an index remembers them that holds the leaves and nothing else (`TREE` in gitformat-index(5));
    /// `None` when the last commit has more than that.
    pub fn cached(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.top.cached(&mut out);
        self.top.taken.is_empty().then_some(out)
    }

    /// What differs from the last commit: each file is told to `change`, each tree that it does not have in the same
    /// place is given to `store`, after each object that the tree names and that is in no such tree itself was shown to
    /// `held`.
    ///
    /// # Errors
    /// A tree of the last commit that can not be read, and what `held` and `store` return.
    pub fn differ(
        &self,
        change: &mut dyn FnMut(Change),
        held: &mut dyn FnMut(Oid) -> Result<(), Differ>,
        store: &mut dyn FnMut(Oid, &[u8]) -> std::io::Result<()>,
    ) -> Result<(), Differ> {
        let mut tell = Tell {
            change,
            held,
            store,
        };
        self.descend(&self.top, self.base, b"", &mut tell)
    }

    fn descend(
        &self,
        node: &Node,
        base: Option<Oid>,
        path: &[u8],
        tell: &mut Tell,
    ) -> Result<(), Differ> {
        if base == Some(node.oid) {
            return Ok(());
        }
        let lines = node.lines(self.leaves);
        (tell.store)(node.oid, &serialised(&lines))?;
        let former = read(self.git, base)?;
        let joined = |name: &[u8]| match path.is_empty() {
            true => name.to_vec(),
            false => [path, b"/", name].concat(),
        };
        for (name, item) in &former {
            match lines.get(name.as_slice()) {
                Some(now) if (now.item.mode == FOLDER) == (item.mode == FOLDER) => {}
                // Gone, or a folder where a file was and the reverse.
                _ => self.removed(*item, &joined(name), tell.change)?,
            }
        }
        for (name, line) in &lines {
            let before = former.get(*name);
            let is_same = before == Some(&line.item);
            if !line.is_taken && (is_same || line.folder.is_none()) {
                (tell.held)(line.item.oid)?;
            }
            if is_same {
                continue;
            }
            match line.folder {
                Some(folder) => {
                    let base = before
                        .filter(|item| item.mode == FOLDER)
                        .map(|item| item.oid);
                    self.descend(folder, base, &joined(name), tell)?;
                }
                // Taken over from the last commit as it is.
                None if line.item.mode == FOLDER => {}
                None => (tell.change)(Change {
                    path: joined(name),
                    became: match before {
                        Some(before) if before.mode != FOLDER => Became::Changed,
                        _ => Became::Added,
                    },
                }),
            }
        }
        Ok(())
    }

    fn removed(
        &self,
        item: Item,
        path: &[u8],
        change: &mut dyn FnMut(Change),
    ) -> Result<(), Differ> {
        if item.mode != FOLDER {
            change(Change {
                path: path.to_vec(),
                became: Became::Removed,
            });
            return Ok(());
        }
        for (name, item) in read(self.git, Some(item.oid))? {
            self.removed(item, &[path, b"/", &name].concat(), change)?;
        }
        Ok(())
    }
}

/// Who is told what differs.
struct Tell<'t> {
    change: &'t mut dyn FnMut(Change),
    held: &'t mut dyn FnMut(Oid) -> Result<(), Differ>,
    store: &'t mut dyn FnMut(Oid, &[u8]) -> std::io::Result<()>,
}

/// Why trees could not be compared or stored.
#[derive(Debug)]
pub(super) enum Differ {
    Git(git2::Error),
    /// An object of the new tree can not be read.
    Missing(git2::Error),
    Io(std::io::Error),
}

impl From<git2::Error> for Differ {
    fn from(error: git2::Error) -> Self {
        Differ::Git(error)
    }
}

impl From<std::io::Error> for Differ {
    fn from(error: std::io::Error) -> Self {
        Differ::Io(error)
    }
}

/// The names in a tree of the repository; none of no tree.
pub(super) fn read(git: &git2::Repository, oid: Option<Oid>) -> Result<Items, git2::Error> {
    let Some(oid) = oid else {
        return Ok(Items::new());
    };
    let tree = git.find_tree(oid)?;
    let item = |entry: git2::TreeEntry| {
        let item = Item {
            mode: entry.filemode_raw().cast_unsigned(),
            oid: entry.id(),
        };
        (entry.name_bytes().to_vec(), item)
    };
    Ok(tree.iter().map(item).collect())
}
