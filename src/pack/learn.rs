//! What is in a pack that was made by hand: read from its beginning to its end, with nothing written.
//!
//! Where the session lies in it is found here. People pack a session from beside it, from inside it, or from the root
//! of their disk; so its folder is the shallowest one that holds `session.json`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::course::{Expected, attributes, frame_count, kind_of, part};
use super::stream;
use super::tar::{Header, Rules, Tar, Type};
use super::trouble::{Damage, Trouble};
use super::{Member, MemberKind, Nature, Pack, names};
use crate::base::wire::ExactPath;
use crate::base::{Context, human};

/// A session of more members than this is none; each is held in memory.
const MOST_MEMBERS: usize = 8_000_000;

/// What was learned.
pub(super) struct Learned {
    pub expected: Expected<'static>,
    /// What may not be unpacked, and why it was not read to its end: neither is in `expected`.
    pub damage: Vec<Damage>,
    /// Members that have an access list: those are text here, and dropped.
    pub access_lists: Vec<PathBuf>,
}

/// Reads a pack made by hand. With `tolerant`, what is wrong with it is told in what was learned.
///
/// # Errors
/// Damage, what no session can hold, and what lies outside of the session's folder.
pub(super) fn learn(pack: &Pack, tolerant: bool, context: &Context) -> Result<Learned, Trouble> {
    let (mut members, mut damage) = (Vec::new(), Vec::new());
    let mut with_access_list = HashSet::new();
    let mut wrong = |found: Trouble| match found {
        Trouble::Damage(found) if tolerant => {
            damage.push(found);
            Ok(())
        }
        trouble => Err(trouble),
    };
    let read = stream::ahead(pack, 0..frame_count(pack), context.stop, |source| {
        let rules = Rules {
            to_the_end: true,
            globals: true,
        };
        let mut tar = Tar::new(source, rules);
        while let Some(header) = tar.next()? {
            let member = member_of(&header);
            // It counts only once it is known to be whole.
            tar.pass_over()?;
            if header.has_access_list {
                with_access_list.insert(header.at);
            }
            match member {
                Ok(member) => members.push(member),
                Err(refused) => wrong(refused)?,
            }
            if members.len() > MOST_MEMBERS {
                let what = "it has more members than any session";
                return Err(Damage::new("the tar stream", what, 0).into());
            }
        }
        Ok(())
    });
    read.or_else(&mut wrong)?;
    let root = root_of(&members);
    let mut members = below(members, &root, &mut wrong)?;
    if pack.nature == Nature::Foreign {
        members = the_last_ones(members);
    }
    let listed = members
        .iter()
        .filter(|member| with_access_list.contains(&(member.frame, member.at)));
    let access_lists = listed.map(|member| member.path.0.clone()).collect();
    Ok(Learned {
        access_lists,
        expected: Expected {
            members: Cow::Owned(members),
            root,
            foreign: true,
        },
        damage,
    })
}

/// The member that a header describes; its paths are those of the stream.
fn member_of(header: &Header) -> Result<Member, Trouble> {
    let wrong = |why: &str| Trouble::Damage(Damage::new(part(&header.name), why, header.at.0));
    let path = names::path_of(&header.name).map_err(wrong)?;
    let Some(kind) = kind_of(header.kind) else {
        return Err(wrong(&match header.kind {
            Type::Other(b'3' | b'4') => "is a device".into(),
            Type::Other(b'6') => "is a FIFO".into(),
            Type::Other(other) => {
                format!(
                    "is of the kind '{}', which no session holds",
                    human::bytes(&[other])
                )
            }
            _ => "is nothing that a session holds".to_owned(),
        }));
    };
    let link = match kind {
        MemberKind::Symlink => Some(PathBuf::from(OsStr::from_bytes(&header.link))),
        MemberKind::HardLink => {
            let why = |why: &str| wrong(&format!("is one more name of something that {why}"));
            Some(names::path_of(&header.link).map_err(why)?)
        }
        MemberKind::File | MemberKind::Folder => None,
    };
    let is_name = kind == MemberKind::HardLink;
    Ok(Member {
        path: path.into(),
        kind,
        mode: if is_name { 0 } else { header.mode },
        uid: header.uid,
        gid: header.gid,
        mtime: header.mtime,
        size: header.size,
        blake3: None,
        link: link.map(ExactPath),
        xattrs: match is_name {
            true => Default::default(),
            false => attributes(header),
        },
        frame: header.at.0,
        at: header.at.1,
    })
}

/// Of members with the same name the last: `tar -r` adds a newer one behind an older one, and every tar unpacks one over
/// the other. A file and a folder of one name stay, and are refused. That something is one more name of itself says
/// nothing.
fn the_last_ones(mut members: Vec<Member>) -> Vec<Member> {
    let is_itself = |member: &Member| {
        member.kind == MemberKind::HardLink && member.link.as_ref() == Some(&member.path)
    };
    let key = |member: &Member| {
        let is_folder = member.kind == MemberKind::Folder;
        (member.path.as_os_str().to_owned(), is_folder)
    };
    let mut last = HashMap::with_capacity(members.len());
    for (number, member) in members.iter().enumerate() {
        // Of a name that was never given there is nothing to keep but the fault.
        if !is_itself(member) || !last.contains_key(&key(member)) {
            last.insert(key(member), number);
        }
    }
    if last.len() < members.len() {
        let mut number = 0..members.len();
        let kept: HashSet<usize> = last.into_values().collect();
        members.retain(|_| number.next().is_some_and(|n| kept.contains(&n)));
    }
    members
}

/// What a session is made of. That everything lies in one of these says that the rest is not there.
const PARTS: [&str; 4] = ["context", "memory", "artifacts", "logs"];

/// The session's folder: the shallowest one that holds `session.json`, else the one that everything lies in, unless that is
/// a part of a session itself.
fn root_of(members: &[Member]) -> PathBuf {
    let records = members.iter().filter(|member| {
        member.kind == MemberKind::File
            && member.path.file_name() == Some(OsStr::new("session.json"))
    });
    let folders = records.filter_map(|member| member.path.parent());
    if let Some(folder) = folders.min_by_key(|folder| folder.iter().count()) {
        return folder.to_path_buf();
    }
    let mut tops = members
        .iter()
        .filter_map(|member| member.path.iter().next());
    let Some(top) = tops.next() else {
        return PathBuf::new();
    };
    let is_folder = members
        .iter()
        .any(|member| member.path.iter().count() > 1 || member.kind == MemberKind::Folder);
    let is_part = PARTS.iter().any(|part| top == *part);
    match is_folder && !is_part && tops.all(|other| other == top) {
        true => PathBuf::from(top),
        false => PathBuf::new(),
    }
}

/// The members below the session's folder, with their paths from there.
fn below(
    members: Vec<Member>,
    root: &Path,
    wrong: &mut dyn FnMut(Trouble) -> Result<(), Trouble>,
) -> Result<Vec<Member>, Trouble> {
    let outside = match root.as_os_str().is_empty() {
        true => "lies outside of the session".to_owned(),
        false => format!("lies outside of the session's folder {}", human::path(root)),
    };
    let mut below = Vec::with_capacity(members.len());
    for mut member in members {
        let damage = |what: String| {
            let name = part(member.path.as_os_str().as_bytes());
            Trouble::Damage(Damage::new(name, what, member.frame))
        };
        let Ok(path) = member.path.strip_prefix(root).map(Path::to_path_buf) else {
            // The folders that lead to it are there when somebody packed them from above.
            if !(member.kind == MemberKind::Folder && root.starts_with(&*member.path)) {
                wrong(damage(outside.clone()))?;
            }
            continue;
        };
        if member.kind == MemberKind::HardLink {
            let first = member.link.as_ref();
            match first.and_then(|first| first.strip_prefix(root).ok()) {
                Some(first) => member.link = Some(first.to_path_buf().into()),
                None => {
                    let what = format!("is one more name of something that {outside}");
                    wrong(damage(what))?;
                    continue;
                }
            }
        }
        member.path = path.into();
        below.push(member);
    }
    Ok(below)
}
