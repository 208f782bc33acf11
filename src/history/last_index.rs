//! What commits know of an index that is gone or damaged on the disk: the labels of a person stand nowhere else.

use std::path::Path;

use super::{Repository, newest_that};
use crate::base::Result;
use crate::home::{Index, mend};

/// The newest index that a commit of the home in `root` holds whole; `None` without one. The folder need not be a home
/// any more.
///
/// # Errors
/// A repository that can not be read.
pub fn last_index(root: &Path) -> Result<Option<Index>> {
    let Some(repository) = Repository::open_in(root)? else {
        return Ok(None);
    };
    let whole = |content: &[u8]| Index::parse(content).is_ok();
    let content = newest_that(&repository, Path::new(mend::INDEX), whole)?;
    Ok(content.and_then(|content| Index::parse(&content).ok()))
}
