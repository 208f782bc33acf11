//! Which home is meant, and why.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Trust;
use super::layout::OWN;
use crate::base::wire::WirePath;
use crate::base::{Error, Kind, Result};
use crate::disk;

/// The home below a user's own folder that is taken when nothing else is named or found.
pub const USUAL_NAME: &str = "workbuddy_home";

/// Why this home was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It was named, by this flag or variable.
    Named(&'static str),
    /// It is the nearest ancestor of the current folder that holds `.wbhome/`.
    Ancestor,
    /// It is `~/workbuddy_home`.
    Usual,
}

/// The home that is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its folder, absolute and without links.
    #[serde(flatten)]
    pub root: WirePath,
    /// Why this one.
    pub how: How,
    /// How far it is trusted.
    pub trust: Trust,
}

/// Finds the home: the `named` one, else the nearest ancestor of `cwd` that holds `.wbhome/`, else
/// `~/workbuddy_home`. A named one that is not there is an error, never a fallback.
///
/// Somebody's usual home is trusted wherever they stand; any other that was not named is not, nor is one that
/// another user owns.
///
/// # Errors
/// [`Kind::NoHome`].
pub fn find(
    named: Option<(PathBuf, &'static str)>,
    cwd: &Path,
    user_home: Option<&Path>,
) -> Result<Found> {
    if let Some((path, by)) = named {
        return find_named(&cwd.join(path), by);
    }
    let usual = user_home.map(|h| h.join(USUAL_NAME));
    let ancestor = cwd.ancestors().find(|a| disk::is_folder(&a.join(OWN)));
    match (ancestor, usual) {
        (Some(ancestor), Some(usual)) if !disk::same_file(ancestor, &usual).unwrap_or(false) => {
            found(ancestor, How::Ancestor, Trust::Found)
        }
        (Some(ancestor), None) => found(ancestor, How::Ancestor, Trust::Found),
        (_, Some(usual)) if disk::is_folder(&usual.join(OWN)) => {
            let trust = if is_ours(&usual) {
                Trust::Named
            } else {
                Trust::Found
            };
            found(&usual, How::Usual, trust)
        }
        (_, usual) => Err(nothing(usual.as_deref())),
    }
}

fn find_named(path: &Path, by: &'static str) -> Result<Found> {
    if !disk::is_folder(&path.join(OWN)) {
        let what = if disk::exists(path) {
            format!("{by} names a folder that is no home:")
        } else {
            format!("{by} names a folder that is not there:")
        };
        return Err(Error::new(Kind::NoHome, what).at(path).hint(format!(
            "`wbhome init {}` makes a home there",
            crate::base::human::quoted(path)
        )));
    }
    found(path, How::Named(by), Trust::Named)
}

fn found(path: &Path, how: How, trust: Trust) -> Result<Found> {
    Ok(Found {
        root: disk::real_path(path)?.into(),
        how,
        trust,
    })
}

/// Whether the folder and the tool's own folder in it belong to the user whom we act for.
fn is_ours(root: &Path) -> bool {
    let Ok(root) = disk::real_path(root) else {
        return false;
    };
    let me = disk::current_user();
    [root.to_path_buf(), root.join(OWN)]
        .iter()
        .all(|path| matches!(disk::stat(path), Ok(Some(meta)) if meta.uid == me))
}

fn nothing(usual: Option<&Path>) -> Error {
    let error = Error::new(
        Kind::NoHome,
        "there is no home here, nor in any folder above",
    );
    match usual {
        Some(usual) => error
            .hint(format!(
                "`wbhome init {}` makes one",
                crate::base::human::quoted(usual)
            ))
            .hint("sessions on a sync drive: `wbhome migrate SRC DEST` makes one of them on the local disk")
            .hint("or name one with --home DIR, or in $WBHOME"),
        None => error.hint("name one with --home DIR, or in $WBHOME"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(at: &Path) -> PathBuf {
        disk::create_private_folder(&at.join(OWN)).unwrap();
        at.to_path_buf()
    }

    #[test]
    fn named_then_ancestor_then_usual() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (user, other) = (top.join("我"), home(&top.join("other")));
        let usual = home(&user.join(USUAL_NAME));
        let inside = other.join("sessions/x");
        disk::create_private_folder(&inside).unwrap();

        let found = find(Some(("other".into(), "--home")), &top, Some(&user)).unwrap();
        assert_eq!(
            (found.root.0, found.how, found.trust),
            (other.clone(), How::Named("--home"), Trust::Named)
        );
        let found = find(None, &inside, Some(&user)).unwrap();
        assert_eq!(
            (found.root.0, found.how, found.trust),
            (other, How::Ancestor, Trust::Found)
        );
        for cwd in [&top, &usual] {
            let found = find(None, cwd, Some(&user)).unwrap();
            assert_eq!(
                (found.root.0, found.how, found.trust),
                (usual.clone(), How::Usual, Trust::Named)
            );
        }
    }

    #[test]
    fn a_named_home_that_is_not_there_is_never_replaced_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path();
        home(&user.join(USUAL_NAME));
        for name in ["gone", "."] {
            let error = find(Some((name.into(), "$WBHOME")), user, Some(user)).unwrap_err();
            assert_eq!(error.kind(), Kind::NoHome);
            assert!(error.to_string().starts_with("$WBHOME"), "{error}");
        }
        assert_eq!(find(None, user, None).unwrap_err().kind(), Kind::NoHome);
    }
}
