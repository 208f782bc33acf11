//! A path inside something, which can not lead out of it.

use std::path::{Component, Path, PathBuf};

use crate::base::{Error, Result, human};

/// A relative path of plain names: not absolute, no `..`. Whether a link lies on the way is for whoever opens
/// it (`disk::Dir::open_beneath` refuses one).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelPath(PathBuf);

impl RelPath {
    /// Checks a path that a person or a file gave. `.` and a slash at the end are dropped.
    ///
    /// # Errors
    /// A usage error for anything that would lead out, and for `..` where it would not: past a link nobody knows where
    /// that leads.
    pub fn new(path: impl AsRef<Path>) -> Result<RelPath> {
        let path = path.as_ref();
        let wrong = |what: &str| {
            Error::usage(format!("`{}` {what}", human::path(path)))
                .hint("write a path below the session, such as context/checkpoint.md")
        };
        let leads_out = || {
            let mut depth = 0i64;
            path.components().any(|component| {
                depth += match component {
                    Component::Normal(_) => 1,
                    Component::CurDir => 0,
                    Component::ParentDir => -1,
                    _ => return true,
                };
                depth < 0
            })
        };
        let mut rel = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Normal(name) if !name.as_encoded_bytes().contains(&0) => rel.push(name),
                Component::CurDir => {}
                Component::Normal(_) => return Err(wrong("has a NUL in it")),
                Component::RootDir => return Err(wrong("is absolute: one slash too many?")),
                _ if leads_out() => return Err(wrong("leads out of the session")),
                _ => return Err(wrong("has `..` in it, which is not taken")),
            }
        }
        Ok(RelPath(rel))
    }

    /// The path, without `.` and doubled slashes.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether it is the thing itself.
    pub fn is_empty(&self) -> bool {
        self.0.as_os_str().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below() {
        for (given, kept) in [
            ("context/turn_001.json", "context/turn_001.json"),
            ("./产物//a b/", "产物/a b"),
            ("", ""),
            ("..data/x", "..data/x"),
        ] {
            assert_eq!(RelPath::new(given).unwrap().as_path(), Path::new(kept));
        }
        for bad in ["/etc/passwd", "..", "a/../b", "a/..", "a\0b"] {
            assert!(RelPath::new(bad).is_err(), "{bad:?}");
        }
        for (bad, what) in [
            ("a/../../b", "leads out"),
            ("/a", "is absolute"),
            ("a/../b", "has `..` in it"),
            ("a\0b", "has a NUL"),
        ] {
            let said = RelPath::new(bad).unwrap_err().to_string();
            assert!(said.contains(what), "{bad:?}: {said}");
        }
    }
}
