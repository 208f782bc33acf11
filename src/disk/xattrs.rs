//! Extended attributes, POSIX access lists among them (`system.posix_acl_*`).

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{self, XattrFlags};
use rustix::io::Errno;

/// The extended attributes of one file, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xattrs(Vec<(CString, Vec<u8>)>);

impl Xattrs {
    /// Reads those of an open file or folder. A filesystem without any gives none.
    pub fn of(file: impl AsFd) -> io::Result<Xattrs> {
        let file = file.as_fd();
        let mut few = [0u8; 256];
        let names = match fs::flistxattr(file, &mut few[..]) {
            Ok(0) | Err(Errno::NOTSUP) => return Ok(Xattrs::default()),
            Ok(length) => few[..length].to_vec(),
            Err(Errno::RANGE) => grow(|buffer| fs::flistxattr(file, buffer))?,
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for name in names.split_inclusive(|b| *b == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else {
                continue;
            };
            if !travels(name.to_bytes()) {
                continue;
            }
            match grow(|buffer| fs::fgetxattr(file, name, buffer)) {
                Ok(value) => found.push((name.to_owned(), value)),
                // Gone since it was listed, or readable by the kernel alone.
                Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied) => {}
                Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort();
        Ok(Xattrs(found))
    }

    /// Attributes that are known from elsewhere. Those that would not be read from a file are left out; so is a name
    /// with a NUL in it, which no file can have.
    pub fn known(known: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Xattrs {
        let known = known.into_iter().filter(|(name, _)| travels(name));
        let mut known: Vec<_> = known
            .filter_map(|(name, value)| Some((CString::new(name).ok()?, value)))
            .collect();
        known.sort();
        Xattrs(known)
    }

    /// Each name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.to_bytes(), value.as_slice()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives them to an open file or folder.
    ///
    /// # Errors
    /// The first attribute that the filesystem does not take, by name; the others are still set.
    pub fn apply(&self, file: impl AsFd) -> Result<(), (String, io::Error)> {
        let mut failed = None;
        for (name, value) in &self.0 {
            if let Err(error) = fs::fsetxattr(file.as_fd(), name, value, XattrFlags::empty()) {
                failed.get_or_insert((name.to_string_lossy().into_owned(), error.into()));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Whether an attribute is the file's own. Apple's provenance mark can not be set by anybody; what the
/// security modules of this machine put on a file (`security.selinux`) belongs to the place, not the file.
fn travels(name: &[u8]) -> bool {
    name != b"com.apple.provenance"
        && (!name.starts_with(b"security.") || name == b"security.capability")
}

/// Asks with an ever larger buffer until the value fits. An empty buffer would not do: the kernel takes it for
/// a question about the length, whose answer rustix does not pass on.
fn grow(mut get: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 512];
    loop {
        match get(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) => buffer.resize(buffer.len() * 4, 0),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_length_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            super::super::write_new(&path, b"x", 0o600).unwrap();
            fs::open(&path, fs::OFlags::RDWR, fs::Mode::empty()).unwrap()
        };
        let (from, to) = (file("from"), file("to"));
        let set = |name: &str, length: usize| {
            fs::fsetxattr(&from, name, &vec![b'v'; length], XattrFlags::empty())
        };
        if set("user.short", 3).is_err() {
            // A test may not pass in silence where it has seen nothing.
            #[expect(clippy::disallowed_macros, reason = "for the one who runs the tests")]
            {
                eprintln!("SKIPPED: this filesystem keeps no extended attributes");
            }
            return;
        }
        set("user.empty", 0).unwrap();
        set("user.long", 2000).unwrap();
        // More names than fit the first buffer.
        for n in 0..30 {
            set(&format!("user.one_of_many_{n:02}"), n).unwrap();
        }
        let attributes = Xattrs::of(&from).unwrap();
        let lengths: Vec<usize> = attributes.0.iter().map(|(_, value)| value.len()).collect();
        assert_eq!(lengths.len(), 33);
        assert!(lengths.contains(&2000) && lengths.contains(&29) && lengths.contains(&0));
        attributes.apply(&to).unwrap();
        assert_eq!(Xattrs::of(&to).unwrap(), attributes);
    }
}
