//! What stands before a member's content in the tar stream: a PAX record where the old header is too narrow, and the
//! header itself.
//!
//! PAX: POSIX.1-2017, pax, "pax Extended Header". `SCHILY.xattr.` comes from star, and GNU tar and bsdtar read it.

use std::os::unix::ffi::OsStrExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tar::{EntryType, Header};

use super::member::write_time;
use super::{Member, MemberKind};

/// A tar stream consists of blocks of this size.
pub(super) const BLOCK: u64 = 512;

/// The two blocks of zeros at the end of a tar stream.
pub(super) const END: [u8; 2 * BLOCK as usize] = [0; 2 * BLOCK as usize];

/// How many zeros follow a content of this length.
pub(super) fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK
}

/// The largest numbers that the header's fields hold in octal digits.
const SEVEN_DIGITS: u64 = 0o777_7777;
const ELEVEN_DIGITS: u64 = 0o777_7777_7777;

/// The headers of a member. Its owner is a number: names mean another on another machine.
pub(super) fn head(member: &Member, top: &str) -> Vec<u8> {
    let path = below(top, member.path.as_os_str().as_bytes());
    let is_folder = member.kind == MemberKind::Folder;
    let path = match is_folder {
        true => [&path[..], b"/"].concat(),
        false => path,
    };
    let link = member.link.as_ref().map(|link| {
        let link = link.as_os_str().as_bytes();
        match member.kind {
            MemberKind::HardLink => below(top, link),
            _ => link.to_vec(),
        }
    });

    let mut records = Records::default();
    let mut header = Header::new_ustar();
    header.set_entry_type(match member.kind {
        MemberKind::File => EntryType::Regular,
        MemberKind::Folder => EntryType::Directory,
        MemberKind::Symlink => EntryType::Symlink,
        MemberKind::HardLink => EntryType::Link,
    });
    let fields = header.as_old_mut();
    if !fit(&mut fields.name, &path) {
        records.add(b"path", &path);
    }
    if let Some(link) = &link
        && !fit(&mut fields.linkname, link)
    {
        records.add(b"linkpath", link);
    }
    header.set_mode(member.mode);
    for (key, id) in [("uid", member.uid), ("gid", member.gid)] {
        let id = u64::from(id);
        let narrow = match id <= SEVEN_DIGITS {
            true => id,
            false => {
                records.add(key.as_bytes(), id.to_string().as_bytes());
                0
            }
        };
        match key {
            "uid" => header.set_uid(narrow),
            _ => header.set_gid(narrow),
        }
    }
    let seconds = u64::try_from(member.mtime.seconds).unwrap_or(0);
    header.set_mtime(seconds.min(ELEVEN_DIGITS));
    if member.mtime.nanos != 0 || header.mtime().ok() != u64::try_from(member.mtime.seconds).ok() {
        records.add(b"mtime", write_time(member.mtime).as_bytes());
    }
    match member.size <= ELEVEN_DIGITS {
        true => header.set_size(member.size),
        false => {
            records.add(b"size", member.size.to_string().as_bytes());
            header.set_size(0);
        }
    }
    for (name, value) in &member.xattrs {
        // What the manifest holds was encoded here.
        let value = STANDARD.decode(value).unwrap_or_default();
        // As GNU tar writes it: a `=` would end the key.
        let name = name.replace('%', "%25").replace('=', "%3D");
        records.add(format!("SCHILY.xattr.{name}").as_bytes(), &value);
    }
    header.set_cksum();
    let mut head = records.into_member();
    head.extend(header.as_bytes());
    head
}

/// A path below the top folder as it stands in the stream.
fn below(top: &str, path: &[u8]) -> Vec<u8> {
    match path {
        b"" => top.as_bytes().to_vec(),
        path => [top.as_bytes(), b"/", path].concat(),
    }
}

/// Writes a name into its field. What does not fit, or is not ASCII, belongs into a record; the field gets its
/// beginning, for readers that know no PAX.
fn fit(field: &mut [u8; 100], name: &[u8]) -> bool {
    let length = name.len().min(field.len());
    field[..length].copy_from_slice(&name[..length]);
    name.len() <= field.len() && name.is_ascii()
}

/// PAX records.
#[derive(Default)]
struct Records(Vec<u8>);

impl Records {
    /// `<length> <key>=<value>\n`, where the length counts itself.
    fn add(&mut self, key: &[u8], value: &[u8]) {
        if std::str::from_utf8(value).is_err()
            && (key == b"path" || key == b"linkpath")
            && !self.is_binary()
        {
            self.add(b"hdrcharset", b"BINARY");
        }
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length = rest + length.to_string().len();
        }
        self.0.extend(format!("{length} ").as_bytes());
        self.0.extend(key);
        self.0.push(b'=');
        self.0.extend(value);
        self.0.push(b'\n');
    }

    fn is_binary(&self) -> bool {
        self.0.starts_with(b"21 hdrcharset=BINARY\n")
    }

    /// The records as a member of their own; nothing when there are none.
    fn into_member(self) -> Vec<u8> {
        let Records(records) = self;
        if records.is_empty() {
            return records;
        }
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::XHeader);
        // The name that extracting it as a file would give; no reader of today does.
        fit(&mut header.as_old_mut().name, b"././@PaxHeader");
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(records.len() as u64);
        header.set_cksum();
        let mut member = header.as_bytes().to_vec();
        let padding = padding(records.len() as u64) as usize;
        member.extend(records);
        member.resize(member.len() + padding, 0);
        member
    }
}
