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

/// Asks for the length, then for the value, until the value fits.
fn grow(mut get: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Vec<u8>> {
    loop {
        let length = get(&mut [])?;
        let mut buffer = vec![0; length];
        if length == 0 {
            return Ok(buffer);
        }
        match get(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
