//! How a path is written in JSON: as text, and where it is not UTF-8 also as the base64 of its bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path with the fields `path` and, where it is not UTF-8, `path_bytes`: alone, or flattened into what it
/// is the path of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WirePath(pub PathBuf);

#[derive(Serialize, Deserialize)]
struct Fields {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
}

impl Serialize for WirePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (path, path_bytes) = path_fields(&self.0);
        Fields { path, path_bytes }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WirePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { path, path_bytes } = Fields::deserialize(deserializer)?;
        Ok(WirePath(path_from(path, path_bytes.as_deref())))
    }
}

impl std::ops::Deref for WirePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl From<PathBuf> for WirePath {
    fn from(path: PathBuf) -> Self {
        WirePath(path)
    }
}

/// A path whose bytes must come back exactly, in the form of [`exact_path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExactPath(#[serde(with = "exact_path")] pub PathBuf);

impl std::ops::Deref for ExactPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl From<PathBuf> for ExactPath {
    fn from(path: PathBuf) -> Self {
        ExactPath(path)
    }
}

/// The fields `path` and `path_bytes` of a path.
pub fn path_fields(path: &Path) -> (String, Option<String>) {
    let bytes = path.as_os_str().as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (
            String::from_utf8_lossy(bytes).into_owned(),
            Some(STANDARD.encode(bytes)),
        ),
    }
}

/// The path that [`path_fields`] wrote.
pub fn path_from(path: String, bytes: Option<&str>) -> PathBuf {
    match bytes.and_then(|b| STANDARD.decode(b).ok()) {
        Some(bytes) => PathBuf::from(std::ffi::OsString::from_vec(bytes)),
        None => PathBuf::from(path),
    }
}

/// For `#[serde(with = "wire::exact_path")]`: a path whose bytes must come back exactly, written as text or,
/// where it is not UTF-8, as `{"bytes": base64}`.
pub mod exact_path {
    use base64::Engine as _;

    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use super::{OsStr, OsStrExt, Path, PathBuf, STANDARD};
    use serde::de::Error as _;

    #[derive(Serialize, Deserialize)]
    struct Bytes {
        bytes: String,
    }

    /// Writes the path.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = path.as_os_str().as_bytes();
        match std::str::from_utf8(bytes) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Bytes {
                bytes: STANDARD.encode(bytes),
            }
            .serialize(serializer),
        }
    }

    /// Reads the path.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(PathBuf::from(text)),
            other => {
                let Bytes { bytes } = serde_json::from_value(other).map_err(D::Error::custom)?;
                let bytes = STANDARD.decode(bytes).map_err(D::Error::custom)?;
                Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        for bytes in ["主页/a b".as_bytes(), b"a\xff/b"] {
            let path = Path::new(OsStr::from_bytes(bytes));
            let (text, encoded) = path_fields(path);
            assert_eq!(path_from(text, encoded.as_deref()), path);
        }
    }
}
