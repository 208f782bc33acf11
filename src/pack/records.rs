//! PAX records: what a header of 1988 is too narrow for.

use std::collections::BTreeMap;

use super::member::read_time;
use super::tar::damage;
use super::trouble::Trouble;
use crate::disk::Stamp;

/// More attributes than any file has.
const MOST_ATTRIBUTES: usize = 4096;

/// What the records before a member say of it. Keys that are not known are passed over, as POSIX asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub path: Option<Vec<u8>>,
    pub link: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub uid: Option<u64>,
    pub gid: Option<u64>,
    pub mtime: Option<Stamp>,
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// Whether there is an access list that says more than the mode: `tar --acls` writes them as text.
    pub has_access_list: bool,
    /// GNU's sparse formats 0.0, 0.1 and 1.0: see the manual of GNU tar, "Storing Sparse Files".
    sparse_major: Option<u64>,
    sparse_name: Option<Vec<u8>>,
    pub sparse_size: Option<u64>,
    pub sparse_map: Vec<u64>,
}

impl Records {
    /// Reads `<length> <key>=<value>\n` over and over. A value may hold anything, newlines too.
    pub(super) fn read(bytes: &[u8], at: (u32, u64)) -> Result<Records, Trouble> {
        Records::parse(bytes, at, false)
    }

    /// Like [`Records::read`], of what holds for all members that follow. A number that is none is passed over there, as
    /// GNU tar does it.
    pub(super) fn for_all(bytes: &[u8], at: (u32, u64)) -> Result<Records, Trouble> {
        Records::parse(bytes, at, true)
    }

    fn parse(mut bytes: &[u8], at: (u32, u64), for_all: bool) -> Result<Records, Trouble> {
        let wrong = || Trouble::Damage(damage(at, "a PAX record is damaged"));
        let mut records = Records::default();
        while !bytes.is_empty() {
            let blank = memchr::memchr(b' ', &bytes[..bytes.len().min(20)]).ok_or_else(wrong)?;
            let length = decimal(&bytes[..blank]).and_then(|n| usize::try_from(n).ok());
            let length = length.filter(|n| *n > blank + 1 && *n <= bytes.len());
            let (record, rest) = bytes.split_at(length.ok_or_else(wrong)?);
            let record = record[blank + 1..].strip_suffix(b"\n").ok_or_else(wrong)?;
            let equals = memchr::memchr(b'=', record).ok_or_else(wrong)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            if records.set(key, value).is_none() && !for_all {
                return Err(wrong());
            }
            if records.xattrs.len() > MOST_ATTRIBUTES {
                return Err(damage(at, "it has more attributes than any file").into());
            }
            bytes = rest;
        }
        Ok(records)
    }

    /// What is said later holds.
    pub(super) fn add(&mut self, later: Records) {
        fn newer<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        newer(&mut self.path, later.path);
        newer(&mut self.link, later.link);
        newer(&mut self.size, later.size);
        newer(&mut self.uid, later.uid);
        newer(&mut self.gid, later.gid);
        newer(&mut self.mtime, later.mtime);
        newer(&mut self.sparse_major, later.sparse_major);
        newer(&mut self.sparse_name, later.sparse_name);
        newer(&mut self.sparse_size, later.sparse_size);
        self.xattrs.extend(later.xattrs);
        self.has_access_list |= later.has_access_list;
        if !later.sparse_map.is_empty() {
            self.sparse_map = later.sparse_map;
        }
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.sparse_major.is_some() || self.sparse_size.is_some() || !self.sparse_map.is_empty()
    }

    /// Whether the map stands before the content instead of here.
    pub(super) fn sparse_in_content(&self) -> bool {
        self.sparse_major == Some(1)
    }

    /// The true name of a file with holes; the other one is for tars that know no holes.
    pub(super) fn sparse_name(&mut self) -> Option<Vec<u8>> {
        self.sparse_name.take()
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        let text = |value: &[u8]| Some(value.to_vec()).filter(|value| !value.is_empty());
        // An empty value takes back what was said for all.
        let number = |value: &[u8]| match value.is_empty() {
            true => Some(None),
            false => decimal(value).map(Some),
        };
        match key {
            b"path" => self.path = text(value),
            b"linkpath" => self.link = text(value),
            b"size" => self.size = number(value)?,
            // What is no number is passed over, as GNU tar does it: the header has one, too.
            b"uid" => self.uid = number(value).unwrap_or(self.uid),
            b"gid" => self.gid = number(value).unwrap_or(self.gid),
            b"mtime" if value.is_empty() => self.mtime = None,
            b"mtime" => {
                let time = std::str::from_utf8(value).ok().and_then(read_time);
                self.mtime = time.or(self.mtime);
            }
            b"SCHILY.acl.access" | b"SCHILY.acl.default" => {
                self.has_access_list |= says_more_than_a_mode(key, value);
            }
            b"GNU.sparse.major" => self.sparse_major = number(value)?,
            b"GNU.sparse.name" => self.sparse_name = text(value),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse_size = number(value)?,
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => self.sparse_map.push(decimal(value)?),
            b"GNU.sparse.map" => {
                let numbers = value.split(|byte| *byte == b',').map(decimal);
                self.sparse_map = numbers.collect::<Option<_>>()?;
            }
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.xattrs.insert(attribute(name), value.to_vec());
                }
            }
        }
        Some(())
    }
}

/// Whether an access list names anybody besides owner, group and all others, or holds for what is yet to be made.
fn says_more_than_a_mode(key: &[u8], list: &[u8]) -> bool {
    let entries = list.split(|byte| matches!(byte, b',' | b'\n'));
    let mut entries = entries.map(<[u8]>::trim_ascii).filter(|e| !e.is_empty());
    let of_mode = |entry: &[u8]| {
        let plain: [&[u8]; 3] = [b"user::", b"group::", b"other::"];
        plain.iter().any(|plain| entry.starts_with(plain))
    };
    entries.any(|entry| key == b"SCHILY.acl.default" || !of_mode(entry))
}

/// The name of an attribute. GNU tar writes `=` as `%3D` and `%` as `%25`, for a key ends at the first `=`.
fn attribute(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.replace("%3D", "=").replace("%25", "%")
}

/// A number in decimal digits.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_is_passed_over_where_that_harms_nothing() {
        let bytes = b"29 mtime=2001-01-01T00:00:00\n9 uid=me\n9 gid=me\n";
        let records = Records::read(bytes, (0, 0)).unwrap();
        assert_eq!(
            (records.mtime, records.uid, records.gid),
            (None, None, None)
        );
        let bytes = b"11 size=abc\n10 path=a\n";
        assert!(Records::read(bytes, (0, 0)).is_err());
        let records = Records::for_all(b"12 size=abc\n10 path=a\n", (0, 0)).unwrap();
        assert_eq!((records.size, records.path), (None, Some(b"a".to_vec())));
    }

    #[test]
    fn access_lists_that_say_no_more_than_the_mode_are_none() {
        for (key, list, more) in [
            ("access", "user::rw-,group::r--,other::---", false),
            (
                "access",
                "user::rw-\nuser:me:rw-\ngroup::r--\nmask::rw-\nother::---\n",
                true,
            ),
            ("default", "user::rwx,group::r-x,other::r-x", true),
            ("default", "", false),
        ] {
            let key = format!("SCHILY.acl.{key}");
            assert_eq!(
                says_more_than_a_mode(key.as_bytes(), list.as_bytes()),
                more,
                "{list}"
            );
        }
    }

    #[test]
    fn a_value_may_hold_a_newline() {
        let records = Records::read(b"14 path=a\nb/c\n30 mtime=1717405200.000000001\n", (0, 0));
        let records = records.unwrap();
        assert_eq!(records.path.as_deref(), Some(&b"a\nb/c"[..]));
        let mtime = records.mtime.unwrap();
        assert_eq!((mtime.seconds, mtime.nanos), (1_717_405_200, 1));
        for wrong in [
            &b"14 path=a\nb/c"[..],
            b"5 a=\n ",
            b"3 =",
            b"x a=b\n",
            b"99 a=b\n",
            b"11 size=-1\n",
        ] {
            assert!(Records::read(wrong, (0, 0)).is_err(), "{wrong:?}");
        }
    }
}
