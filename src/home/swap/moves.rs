//! Where things are after the steps, and where they were.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Step;

/// From where things were to where they are, by root. Each thing is moved once.
#[derive(Debug, Default)]
pub(super) struct Moves(BTreeMap<(usize, PathBuf), PathBuf>);

impl Moves {
    pub fn of(steps: &[Step]) -> Moves {
        let moves = steps.iter().filter_map(|step| match step {
            Step::Move { root, at, to, .. } => Some(((*root, at.to_path_buf()), to.to_path_buf())),
            _ => None,
        });
        Moves(moves.collect())
    }

    /// The same moves, taken back.
    pub fn reversed(&self) -> Moves {
        let turned = self
            .0
            .iter()
            .map(|((root, from), to)| ((*root, to.clone()), from.clone()));
        Moves(turned.collect())
    }

    /// Where something is that was at `path`.
    pub fn follow(&self, root: usize, path: &Path) -> PathBuf {
        for ancestor in path.ancestors() {
            if let Some(to) = self.0.get(&(root, ancestor.to_path_buf()))
                && let Ok(rest) = path.strip_prefix(ancestor)
            {
                return match rest.as_os_str().is_empty() {
                    true => to.clone(),
                    false => to.join(rest),
                };
            }
        }
        path.to_path_buf()
    }

    /// Whether something was moved away from there.
    pub fn leaves(&self, root: usize, path: &Path) -> bool {
        self.0.contains_key(&(root, path.to_path_buf()))
    }

    /// Root, from, to.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Path, &Path)> {
        self.0
            .iter()
            .map(|((root, from), to)| (*root, from.as_path(), to.as_path()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
