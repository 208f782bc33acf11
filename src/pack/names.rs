//! Which names a pack may hold: none that leads out of the folder it is unpacked into, and no two that are one.
//!
//! All of it is looked at before anything is written.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Member, MemberKind};
use crate::base::human;

/// The path that a name in the stream stands for. `.` is nobody's name; tar puts it in front when it is told to pack
/// `.`. Two slashes are one, to tar too.
///
/// # Errors
/// Why the name may not be unpacked.
pub(super) fn path_of(name: &[u8]) -> Result<PathBuf, &'static str> {
    if name.is_empty() {
        return Err("has no name");
    }
    if name.contains(&0) {
        return Err("has a NUL in its name");
    }
    if name[0] == b'/' {
        return Err("has an absolute name");
    }
    let end = name
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    let mut path = Vec::with_capacity(end);
    for component in name[..end].split(|byte| *byte == b'/') {
        match component {
            b".." => return Err("leads out of its folder by `..`"),
            b"" | b"." => {}
            component => {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend(component);
            }
        }
    }
    Ok(PathBuf::from(OsStr::from_bytes(&path)))
}

/// Whether a path is one below a folder, in the only way to write it.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let mut length = 0;
    let normal = path.components().all(|component| {
        length += component.as_os_str().len() + 1;
        matches!(component, Component::Normal(_))
    });
    normal && !bytes.contains(&0) && length == (bytes.len() + 1) * usize::from(!bytes.is_empty())
}

#[derive(Clone, Copy, PartialEq)]
enum Known {
    /// A folder that something lies in, with no entry of its own so far.
    Implied,
    Folder,
    /// A file or link, and so what a further name can be given to.
    Leaf(MemberKind),
}

/// What is wrong with the names of members that stand in this order: the number of each that may not be unpacked,
/// and why.
pub(super) fn refused(members: &[Member]) -> Vec<(usize, String)> {
    let mut names = Names {
        known: HashMap::from([(Path::new(""), Known::Implied)]),
    };
    let wrong = members.iter().enumerate();
    wrong
        .filter_map(|(n, member)| Some((n, names.add(member).err()?)))
        .collect()
}

struct Names<'m> {
    known: HashMap<&'m Path, Known>,
}

impl<'m> Names<'m> {
    fn add(&mut self, member: &'m Member) -> Result<(), String> {
        let path: &Path = &member.path;
        if !is_plain(path) {
            // `path_of` has better words, unless only the spelling is odd.
            let why = path_of(path.as_os_str().as_bytes()).err();
            return Err(why
                .unwrap_or("has a name that can be written in another way")
                .into());
        }
        self.lies_in_folders(path)?;
        self.link_is_good(member)?;
        let new = match member.kind {
            MemberKind::Folder => Known::Folder,
            kind => Known::Leaf(kind),
        };
        match (self.known.get(path), new) {
            (None, _) | (Some(Known::Implied), Known::Folder) => {}
            (Some(Known::Implied | Known::Folder), Known::Leaf(_)) => {
                return Err("has the name of a folder that is there too".into());
            }
            (Some(Known::Leaf(_)), Known::Folder) => {
                return Err("has the name of something else that is there too".into());
            }
            _ => return Err("is there twice".into()),
        }
        self.known.insert(path, new);
        Ok(())
    }

    fn lies_in_folders(&mut self, path: &'m Path) -> Result<(), String> {
        for above in path.ancestors().skip(1) {
            match self.known.get(above) {
                Some(Known::Leaf(kind)) => {
                    let above = human::path(above);
                    return Err(match kind {
                        MemberKind::Symlink => format!("lies under the link {above}"),
                        _ => format!("lies under the file {above}"),
                    });
                }
                Some(_) => break,
                None => self.known.insert(above, Known::Implied),
            };
        }
        Ok(())
    }

    fn link_is_good(&self, member: &Member) -> Result<(), String> {
        let Some(link) = &member.link else {
            return match member.kind {
                MemberKind::Symlink | MemberKind::HardLink => Err("is a link to nothing".into()),
                _ => Ok(()),
            };
        };
        match member.kind {
            MemberKind::HardLink => match self.known.get(&**link) {
                Some(Known::Leaf(_)) => Ok(()),
                _ => Err(format!(
                    "is one more name of {}, which is no file before it",
                    human::path(link)
                )),
            },
            MemberKind::Symlink => match link.as_os_str().as_bytes() {
                b"" => Err("is a link to nothing".into()),
                target if target.contains(&0) => Err("has a NUL in its target".into()),
                _ => Ok(()),
            },
            _ => Err("is no link, and has a target".into()),
        }
    }
}
