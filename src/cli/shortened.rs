//! Lists of which only the first are named, unless a person has asked for all.

use super::output::{FAINT, styled};
use crate::base::human;

/// So many are named: all, or the first `most`. A single one more is named as well, for a line that says so is as long.
pub(super) fn shown(len: usize, most: usize, all: bool) -> usize {
    match all || len <= most + 1 {
        true => len,
        false => most,
    }
}

/// `… 12 more: -v`, where `how` is what stands behind the number.
pub(super) fn more(hidden: usize, how: &str) -> String {
    styled(
        FAINT,
        format!("… {} more{how}", human::count(hidden as u64)),
    )
}
