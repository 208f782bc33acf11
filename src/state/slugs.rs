//! stub
use std::collections::BTreeSet;
use std::path::PathBuf;
/// a
pub struct Move {
    /// a
    pub from: PathBuf,
    /// a
    pub to: PathBuf,
}
/// a
pub struct Slugs {
    /// a
    pub moves: Vec<Move>,
    /// a
    pub doubtful: Vec<(PathBuf, String)>,
}
/// a
pub fn plan(
    _: &crate::disk::Dir,
    _: &crate::disk::Tree,
    _: &BTreeSet<String>,
    _: &crate::paths::Rewriter,
) -> crate::base::Result<Slugs> {
    Ok(Slugs {
        moves: vec![],
        doubtful: vec![],
    })
}
