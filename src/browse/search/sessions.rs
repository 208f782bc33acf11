//! Which sessions are searched, and in which order.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::{Request, Session};
use crate::base::Result;
use crate::browse::path::not_there;
use crate::disk::{self, FileKind};
use crate::home::{Candidate, Home, Index, SessionId, candidates};
use crate::pack::ENDING;

/// The sessions that are asked for, the most recently active first, and how many archived ones are left out. A folder is
/// what is worked in, so it comes before an archive of the same session.
pub(super) fn of(home: &Home, request: &Request) -> Result<(Vec<Session>, u64)> {
    // An index that can not be read hides no session: its titles are missing, and `check` tells of it.
    let index = Index::read(home).unwrap_or_default();
    let titles: HashMap<&str, &str> = index
        .entries()
        .filter_map(|entry| Some((entry.id(), entry.title()?)))
        .collect();
    let names = |folder: &Path, kind: FileKind| -> Result<HashSet<String>> {
        let names = disk::read_dir_names(folder)?.into_iter();
        let of_kind = names.filter(|(_, found)| *found == kind);
        Ok(of_kind
            .filter_map(|(name, _)| name.into_string().ok())
            .collect())
    };
    let folders = names(&home.sessions(), FileKind::Folder)?;
    let packs = names(&home.archive(), FileKind::File)?;
    let has_folder = |id: &SessionId| folders.contains(id.as_str());
    let packs: HashSet<&str> = packs
        .iter()
        .filter_map(|name| name.strip_suffix(ENDING))
        .collect();
    let has_pack = |id: &SessionId| packs.contains(id.as_str());
    let session = |candidate: &Candidate, archived| Session {
        title: titles
            .get(candidate.id.as_str())
            .map(|title| (*title).to_owned()),
        id: candidate.id.clone(),
        updated: candidate.activity,
        archived,
    };
    let (mut found, mut left_out) = (Vec::new(), 0);
    for candidate in candidates(home, false)? {
        let id = &candidate.id;
        let named = request.sessions.contains(id);
        if !named && !request.sessions.is_empty() {
            continue;
        }
        if has_folder(id) {
            found.push(session(&candidate, false));
        } else if has_pack(id) {
            match named || request.archived {
                true => found.push(session(&candidate, true)),
                false => left_out += 1,
            }
        } else if named {
            return Err(not_there(home, id));
        }
    }
    Ok((found, left_out))
}
