//! Renames in an order in which each finds its new name free.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Move;
use crate::base::{Error, Result, human};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Not,
    Begun,
    Done,
}

/// Sorts them: what lies where another one goes, or is the folder that it goes to, leaves first.
pub(super) fn in_order(moves: Vec<Move>) -> Result<Vec<Move>> {
    let leaving: HashMap<PathBuf, usize> = moves
        .iter()
        .enumerate()
        .map(|(i, m)| (m.from.clone(), i))
        .collect();
    let before = |m: &Move| {
        let folder = m.to.parent().unwrap_or(Path::new(""));
        [leaving.get(&m.to), leaving.get(folder)]
    };
    let mut visits = vec![Visit::Not; moves.len()];
    let mut order = Vec::with_capacity(moves.len());
    for start in 0..moves.len() {
        // An explicit stack: a chain may be as long as there are folders.
        let mut path = vec![start];
        while let Some(&at) = path.last() {
            visits[at] = match visits[at] {
                Visit::Done => {
                    path.pop();
                    continue;
                }
                _ => Visit::Begun,
            };
            let next = before(&moves[at])
                .into_iter()
                .flatten()
                .copied()
                .find(|&i| i != at && visits[i] != Visit::Done);
            match next {
                None => {
                    visits[at] = Visit::Done;
                    order.push(at);
                    path.pop();
                }
                Some(i) if visits[i] == Visit::Begun => {
                    return Err(Error::failed(format!(
                        "two names would have to change places: {} and",
                        human::path(&moves[i].from)
                    ))
                    .at(&moves[at].from)
                    .hint("let one of the folders move to a third place first"));
                }
                Some(i) => path.push(i),
            }
        }
    }
    let mut moves: Vec<Option<Move>> = moves.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|i| moves[i].take()).collect())
}
