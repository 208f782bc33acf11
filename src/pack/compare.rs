//! A folder beside the manifest of a pack: is everything in it the same?

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{Manifest, Member, MemberKind, short_digest, survey};
use crate::base::{Context, Error, Result, Total, human};
use crate::disk::{self, Buffers, CopyError, Dir};

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Below the top folder.
    pub path: PathBuf,
    /// What, for a person: "is not in the archive", "its content differs".
    pub what: String,
}

/// Compares every member with what stands in the folder: names, kinds, content (read again, on all cores), modes,
/// times, links, attributes. Empty when the folder is what was packed. What is neither file, folder nor link is in no
/// pack, and no difference.
///
/// # Errors
/// A folder that can not be read, and interruption.
pub fn compare(manifest: &Manifest, dir: &Dir, context: &Context) -> Result<Vec<Difference>> {
    let found = survey(dir, &manifest.top, &|_, _| false, context)?;
    let mut differences: Vec<Difference> = found
        .flaws
        .iter()
        .filter(|flaw| flaw.kind != super::FlawKind::Special)
        .map(|flaw| difference(&flaw.path, flaw.why.clone()))
        .collect();
    let mut packed: HashMap<&Path, &Member> = HashMap::new();
    packed.extend(
        manifest
            .members
            .iter()
            .map(|member| (&*member.path, member)),
    );
    let mut pairs = Vec::new();
    for now in &found.members {
        match packed.remove(&*now.path) {
            Some(before) => pairs.push((before, now)),
            None => differences.push(difference(&now.path, "is not in the archive".to_owned())),
        }
    }
    let told: HashSet<PathBuf> = differences.iter().map(|d| d.path.clone()).collect();
    let gone = packed.into_keys().filter(|path| !told.contains(*path));
    differences.extend(gone.map(|path| difference(path, "is not there any more".to_owned())));
    let total = Total {
        items: pairs.len() as u64,
        bytes: found.bytes(),
    };
    context.progress.stage("comparing", total);
    let changed: Vec<Option<Difference>> = pairs
        .par_iter()
        .map_init(Buffers::new, |buffers, (before, now)| {
            context.stop.check()?;
            let what = differs(before, now, dir, buffers, context)?;
            context.progress.advance(1, now.size);
            Ok(what.map(|what| difference(&now.path, what)))
        })
        .collect::<Result<_>>()?;
    context.progress.finish();
    differences.extend(changed.into_iter().flatten());
    differences.sort_by(|one, other| super::order::compare(&one.path, &other.path));
    Ok(differences)
}

fn difference(path: &Path, what: String) -> Difference {
    Difference {
        path: path.to_path_buf(),
        what,
    }
}

fn differs(
    before: &Member,
    now: &Member,
    dir: &Dir,
    buffers: &mut Buffers,
    context: &Context,
) -> Result<Option<String>> {
    let what = if before.kind != now.kind {
        "is another kind of thing"
    } else if before.size != now.size {
        return Ok(Some(other_length(now.size, before.size)));
    } else if before.link != now.link {
        "points elsewhere"
    } else if now.kind == MemberKind::HardLink {
        // The file that it is a name of is compared under its first name.
        return Ok(None);
    } else if before.mode != now.mode {
        "has another mode"
    } else if (before.uid, before.gid) != (now.uid, now.gid) {
        "has another owner"
    } else if before.xattrs != now.xattrs {
        "has other extended attributes"
    } else if now.kind == MemberKind::File && !same_content(before, now, dir, buffers, context)? {
        "its content differs"
    } else if before.mtime != now.mtime {
        "has another time"
    } else {
        return Ok(None);
    };
    Ok(Some(what.to_owned()))
}

/// Lengths that read alike would tell nothing.
fn other_length(now: u64, before: u64) -> String {
    let [now, before] = [now, before].map(human::size);
    match now == before {
        true => "has other content".to_owned(),
        false => format!("is {now} long, {before} in the archive"),
    }
}

fn same_content(
    before: &Member,
    now: &Member,
    dir: &Dir,
    buffers: &mut Buffers,
    context: &Context,
) -> Result<bool> {
    let fail = |error| Error::io("can not read", &*now.path, error);
    let (Some(parent), Some(name)) = (now.path.parent(), now.path.file_name()) else {
        return Ok(false);
    };
    let parent = match dir.open_beneath(parent) {
        Ok(parent) => parent,
        Err(error) if disk::is_nowhere(&error) => return Ok(false),
        Err(error) => return Err(fail(error)),
    };
    match disk::check_file(&parent, name, buffers, context.stop, &mut |_, _| {}) {
        Ok(checked) => Ok(before.blake3.as_deref() == Some(short_digest(&checked.digest).as_str())),
        Err(CopyError::Read(error) | CopyError::Write(error)) if disk::is_nowhere(&error) => {
            Ok(false)
        }
        Err(CopyError::Read(error) | CopyError::Write(error)) => Err(fail(error)),
        Err(CopyError::Stopped) => {
            context.stop.check()?;
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_where_they_read_differently() {
        assert_eq!(other_length(2901, 2902), "has other content");
        let told = other_length(1, 2);
        assert_eq!(told, "is 1 B long, 2 B in the archive");
    }
}
