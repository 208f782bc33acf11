//! Where one folder lies relative to another, by what the disk says rather than by how a path is spelled.

use std::io;
use std::path::Path;

/// Whether two paths name the same file or folder.
pub fn same_file(one: &Path, other: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (one, other) = (std::fs::metadata(one)?, std::fs::metadata(other)?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Whether `path`, or its nearest ancestor that exists, is `folder` or lies below it. Links and bind mounts
/// are seen through: each ancestor is compared by device and number.
pub fn is_inside(path: &Path, folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let folder = std::fs::metadata(folder)?;
    let mut at = path.to_path_buf();
    // What does not exist yet has no number; its place is that of its nearest ancestor that does.
    let mut at = loop {
        match at.canonicalize() {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound && at.pop() => {
                if at.as_os_str().is_empty() {
                    at.push(".");
                }
            }
            Err(error) => return Err(error),
        }
    };
    loop {
        let here = std::fs::metadata(&at)?;
        if (here.dev(), here.ino()) == (folder.dev(), folder.ino()) {
            return Ok(true);
        }
        if !at.pop() {
            return Ok(false);
        }
    }
}
