//! The tree of a commit: built from the files of the selection, with all else as the last commit has it.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid};

use crate::base::Result;

/// A file or link as a tree names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Below the home.
    pub path: Vec<u8>,
    pub mode: u32,
    pub oid: Oid,
}

impl Leaf {
    /// The file that an entry of the index stands for.
    pub fn of(entry: &git2::IndexEntry) -> Leaf {
        Leaf {
            path: entry.path.clone(),
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

/// A folder of the new tree.
pub(super) struct Node {
    oid: Oid,
    bytes: Vec<u8>,
    items: Items,
    folders: BTreeMap<Vec<u8>, Node>,
}

impl Node {
    /// Builds the tree of leaves that stand in the order of git's index; all of them lie below `depth` bytes of path.
    fn of(leaves: &[Leaf], depth: usize) -> Result<Node, git2::Error> {
        let (mut items, mut folders) = (Items::new(), BTreeMap::new());
        let mut rest = leaves;
        while let Some(first) = rest.first() {
            let name = &first.path[depth..];
            match memchr::memchr(b'/', name) {
                None => {
                    let item = Item {
                        mode: first.mode,
                        oid: first.oid,
                    };
                    items.insert(name.to_vec(), item);
                    rest = &rest[1..];
                }
                Some(end) => {
                    let upto = depth + end + 1;
                    let inside = rest
                        .iter()
                        .take_while(|leaf| leaf.path.get(..upto) == Some(&first.path[..upto]))
                        .count();
                    let node = Node::of(&rest[..inside], upto)?;
                    let item = Item {
                        mode: FOLDER,
                        oid: node.oid,
                    };
                    items.insert(name[..end].to_vec(), item);
                    folders.insert(name[..end].to_vec(), node);
                    rest = &rest[inside..];
                }
            }
        }
        Node::with(items, folders)
    }

    fn with(items: Items, folders: BTreeMap<Vec<u8>, Node>) -> Result<Node, git2::Error> {
        let bytes = serialised(&items);
        Ok(Node {
            oid: Oid::hash_object(ObjectType::Tree, &bytes)?,
            bytes,
            items,
            folders,
        })
    }
}

/// In git's order: a folder's name compares as if it ended in `/`.
fn serialised(items: &Items) -> Vec<u8> {
    let mut lines: Vec<(&Vec<u8>, &Item)> = items.iter().collect();
    let key = |(name, item): &(&Vec<u8>, &Item)| {
        let end = (item.mode == FOLDER).then_some(b'/');
        name.iter().copied().chain(end).collect::<Vec<u8>>()
    };
    lines.sort_by_cached_key(key);
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
        leaves: &[Leaf],
    ) -> Result<Forest<'r>, git2::Error> {
        let mut top = read(git, base)?;
        let mut folders = BTreeMap::new();
        // A prefix is a name at the top, or a session.
        let deep: Vec<&Vec<u8>> = prefixes.iter().filter(|p| p.contains(&b'/')).collect();
        if deep.is_empty() {
            let all = Node::of(leaves, 0)?;
            for prefix in prefixes {
                top.remove(prefix);
            }
            top.extend(all.items);
            folders = all.folders;
        } else {
            let sessions = b"sessions".to_vec();
            let former = top.get(&sessions).filter(|item| item.mode == FOLDER);
            let mut items = read(git, former.map(|item| item.oid))?;
            for prefix in deep {
                items.remove(&prefix[sessions.len() + 1..]);
            }
            let new = Node::of(leaves, sessions.len() + 1)?;
            items.extend(new.items);
            let node = Node::with(items, new.folders)?;
            top.remove(&sessions);
            if !node.items.is_empty() {
                let item = Item {
                    mode: FOLDER,
                    oid: node.oid,
                };
                top.insert(sessions.clone(), item);
                folders.insert(sessions, node);
            }
        }
        Ok(Forest {
            git,
            top: Node::with(top, folders)?,
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

    /// What differs from the last commit: each file is told to `change`, each tree that it does not have in the same
    /// place is given to `store`.
    ///
    /// # Errors
    /// A tree of the last commit that can not be read, and what `store` returns.
    pub fn differ(
        &self,
        change: &mut dyn FnMut(Change),
        store: &mut dyn FnMut(Oid, &[u8]) -> std::io::Result<()>,
    ) -> Result<(), Differ> {
        self.descend(&self.top, self.base, b"", change, store)
    }

    fn descend(
        &self,
        node: &Node,
        base: Option<Oid>,
        path: &[u8],
        change: &mut dyn FnMut(Change),
        store: &mut dyn FnMut(Oid, &[u8]) -> std::io::Result<()>,
    ) -> Result<(), Differ> {
        if base == Some(node.oid) {
            return Ok(());
        }
        store(node.oid, &node.bytes)?;
        let former = read(self.git, base)?;
        let joined = |name: &[u8]| match path.is_empty() {
            true => name.to_vec(),
            false => [path, b"/", name].concat(),
        };
        for (name, item) in &former {
            match node.items.get(name) {
                Some(now) if (now.mode == FOLDER) == (item.mode == FOLDER) => {}
                // Gone, or a folder where a file was and the reverse.
                _ => self.removed(*item, &joined(name), change)?,
            }
        }
        for (name, item) in &node.items {
            let before = former.get(name);
            if before == Some(item) {
                continue;
            }
            match node.folders.get(name) {
                Some(folder) => {
                    let base = before
                        .filter(|item| item.mode == FOLDER)
                        .map(|item| item.oid);
                    self.descend(folder, base, &joined(name), change, store)?;
                }
                // Taken over from the last commit as it is.
                None if item.mode == FOLDER => {}
                None => change(Change {
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

/// Why trees could not be compared or stored.
#[derive(Debug)]
pub(super) enum Differ {
    Git(git2::Error),
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
