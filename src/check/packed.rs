//! Archives read from beginning to end: is every member what the manifest says, and the archive what the index says?

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::survey::{archives::not_opened, sessions::archive_of};
use super::{Finding, FindingKind, Options, Outcome};
use crate::base::{Context, Kind, Result, Total, human};
use crate::disk::{self, FileKind};
use crate::home::{Home, Index};
use crate::pack::{self, ENDING, Pack, Problem};

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Archives {
    /// Archives read to their end.
    pub archives: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Members that are what they should be.
    pub members: u64,
}

/// So many members are named.
const NAMED: usize = 3;

/// Reads the archives of the sessions that `options` names, one after the other: reading one takes all cores.
///
/// # Errors
/// Interruption, and an `archive/` that can not be listed. What is wrong with an archive is a finding, which takes the
/// place of what a look at its ends had told.
pub fn read_archives(
    home: &Home,
    index: Option<&Index>,
    options: &Options,
    outcome: &mut Outcome,
    context: &Context,
) -> Result<()> {
    let digests = digests(index);
    let mut todo = Vec::new();
    // What is no folder is a finding already.
    let names = match disk::is_folder(&home.archive()) {
        true => disk::read_dir_names(&home.archive())?,
        false => Vec::new(),
    };
    for (name, kind) in names {
        let id = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        let is_pack = name.as_encoded_bytes().ends_with(ENDING.as_bytes());
        let session = Path::new("sessions").join(id.unwrap_or_default());
        let covered = match id {
            Some(_) => options.covers(&session),
            None => options.only.is_none(),
        };
        if is_pack && covered && kind == FileKind::File {
            let path = home.archive().join(&name);
            let bytes = disk::stat(&path)?.map_or(0, |meta| meta.size);
            todo.push((
                Path::new("archive").join(&name),
                id.map(str::to_owned),
                path,
                bytes,
            ));
        }
    }
    context.progress.stage(
        "Reading archives",
        Total {
            items: todo.len() as u64,
            bytes: todo.iter().map(|(.., bytes)| bytes).sum(),
        },
    );
    let mut read = Archives::default();
    let mut findings = Vec::new();
    for (rel, id, path, bytes) in todo {
        let known = digests.get(&rel).map(String::as_str);
        let found = read_one(&rel, &path, known, &mut read, context)?;
        let named = found.into_iter().map(|finding| match &id {
            Some(id) => finding.session(id),
            None => finding,
        });
        let named: Vec<Finding> = named.collect();
        if !named.is_empty() {
            let told = |f: &Finding| f.kind == FindingKind::BadArchive && f.path == rel;
            outcome.findings.retain(|finding| !told(finding));
        }
        findings.extend(named);
        context.progress.advance(1, bytes);
    }
    context.progress.finish();
    outcome.archives = Some(read);
    outcome.add(findings);
    Ok(())
}

/// The digests that the index has of archives.
fn digests(index: Option<&Index>) -> HashMap<PathBuf, String> {
    let entries = index.into_iter().flat_map(Index::entries);
    let known = entries.filter_map(|entry| {
        let digest = entry.archive()?.get("blake3")?.as_str()?;
        let path = archive_of(entry, &entry.session().ok()?);
        Some((path, digest.to_owned()))
    });
    known.collect()
}

fn read_one(
    rel: &Path,
    path: &Path,
    known: Option<&str>,
    read: &mut Archives,
    context: &Context,
) -> Result<Vec<Finding>> {
    // The stage of all archives goes on.
    let quiet = Context {
        progress: &crate::base::NoProgress,
        ..*context
    };
    let looked = || -> Result<(Pack, pack::Verified)> {
        let pack = Pack::open(path)?;
        let verified = pack::verify(&pack, &quiet)?;
        Ok((pack, verified))
    };
    let (pack, verified) = match looked() {
        Ok(looked) => looked,
        Err(error) if error.kind() == Kind::Interrupted => return Err(error),
        // It was moved away meanwhile.
        Err(_) if !disk::exists(path) => return Ok(Vec::new()),
        Err(error) => return Ok(vec![not_opened(rel, &error)]),
    };
    read.archives += 1;
    read.bytes += pack.size();
    read.members += verified.members;
    let findings: Vec<Finding> = verified.problems.iter().map(|p| told(rel, p)).collect();
    // One that is damaged is not the one that the index knows: that need not be said.
    let Some(known) = known.filter(|_| findings.is_empty()) else {
        return Ok(findings);
    };
    let another = "is whole, and not the file that the index knows: its BLAKE3 differs";
    Ok(match pack.digest() {
        Ok(digest) if digest == known => findings,
        Ok(_) => vec![Finding::new(FindingKind::BadArchive, rel, another)],
        Err(error) => vec![not_opened(rel, &error)],
    })
}

/// What is wrong with which part, and which members that leaves unproved.
fn told(rel: &Path, problem: &Problem) -> Finding {
    let mut detail = format!("{}: {}", problem.part, problem.what);
    let members = problem.members.len();
    if members > 0 {
        let name = |member: &PathBuf| match member.as_os_str().is_empty() {
            true => "the folder itself".to_owned(),
            false => human::path(member),
        };
        let named: Vec<String> = problem.members.iter().take(NAMED).map(name).collect();
        let more = match members.checked_sub(NAMED) {
            Some(more @ 1..) => format!(" and {} more", human::count(more as u64)),
            _ => String::new(),
        };
        detail.push_str(&format!("; concerns {}{more}", named.join(", ")));
    }
    let finding = Finding::new(FindingKind::BadArchive, rel, detail);
    match members {
        0 => finding,
        n => finding.count(n as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_named_by_part_and_members() {
        let problem = |members: &[&str]| Problem {
            part: "the data frame 2 (at byte 7)".into(),
            what: "its checksum differs".into(),
            members: members.iter().map(PathBuf::from).collect(),
        };
        let detail = |members: &[&str]| told(Path::new("archive/a.tar.zst"), &problem(members));
        let none = detail(&[]);
        assert_eq!(
            none.detail,
            "the data frame 2 (at byte 7): its checksum differs"
        );
        assert_eq!(none.count, None);
        let many = detail(&["a", "b/\u{1b}", "c", "d", "e"]);
        assert!(
            many.detail.ends_with("; concerns a, b/\\x1b, c and 2 more"),
            "{}",
            many.detail
        );
        assert_eq!(many.count, Some(5));
    }
}
