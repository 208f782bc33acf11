//! `.wbhome/cache.json`: what was counted when the sessions were looked at last. It may be deleted at any
//! time, and one that can not be understood is none.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Counts, Home, LockedHome};
use crate::base::wire::WirePath;
use crate::base::{Error, Result};
use crate::disk::{self, Stamp};

const FORMAT: u32 = 1;
const LIMIT: u64 = 512 << 20;

/// What one `lstat` of `sessions/` says: it differs as soon as a session has come or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsStamp {
    dev: u64,
    ino: u64,
    /// On many filesystems this counts the sub-folders, which helps where times are coarse.
    nlink: u64,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

impl SessionsStamp {
    /// Looks at the home's `sessions/` now.
    ///
    /// # Errors
    /// When it can not be looked at.
    pub fn now(home: &Home) -> Result<SessionsStamp> {
        let meta = disk::stat(&home.sessions())?;
        Ok(meta.map_or_else(SessionsStamp::default, |m| SessionsStamp {
            dev: m.dev,
            ino: m.ino,
            nlink: m.nlink,
            mtime: (m.mtime.seconds, m.mtime.nanos),
            ctime: (m.ctime.seconds, m.ctime.nanos),
        }))
    }
}

/// What a pack in `archive/` holds, and of which state of it that was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedCounts {
    bytes: u64,
    mtime: (i64, u32),
    /// What is in it.
    pub counts: Counts,
}

impl PackedCounts {
    /// What was counted in a pack of this length and time.
    pub fn new(bytes: u64, mtime: Stamp, counts: Counts) -> PackedCounts {
        PackedCounts {
            bytes,
            mtime: (mtime.seconds, mtime.nanos),
            counts,
        }
    }

    /// Whether it was counted in the pack as it is now.
    pub fn is_of(&self, bytes: u64, mtime: Stamp) -> bool {
        self.bytes == bytes && self.mtime == (mtime.seconds, mtime.nanos)
    }
}

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    format: u32,
    /// When it was counted.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// `sessions/` when it was listed.
    pub stamp: SessionsStamp,
    /// By session id.
    pub sessions: BTreeMap<String, Counts>,
    /// Archives, by the id in their name.
    #[serde(default)]
    pub archives: BTreeMap<String, PackedCounts>,
    /// Names of folders in `sessions/` that no id can hold.
    #[serde(default)]
    pub strangers: Vec<WirePath>,
}

impl Cache {
    /// What was counted when `sessions/` looked like `stamp`.
    pub fn new(
        stamp: SessionsStamp,
        sessions: BTreeMap<String, Counts>,
        strangers: Vec<WirePath>,
    ) -> Cache {
        Cache {
            format: FORMAT,
            at: None,
            stamp,
            sessions,
            archives: BTreeMap::new(),
            strangers,
        }
    }

    /// What a session holds, or its archive where there is no folder.
    pub fn counts(&self, id: &str) -> Option<&Counts> {
        let packed = || Some(&self.archives.get(id)?.counts);
        self.sessions.get(id).or_else(packed)
    }

    /// Reads the cache; `None` when there is none that can be understood.
    pub fn read(home: &Home) -> Option<Cache> {
        let content = disk::read_small(&home.cache_file(), LIMIT).ok()??;
        let cache: Cache = serde_json::from_slice(&content).ok()?;
        (cache.format == FORMAT).then_some(cache)
    }

    /// Whether sessions have come or gone since.
    pub fn is_stale(&self, home: &Home) -> bool {
        SessionsStamp::now(home).ok() != Some(self.stamp)
    }

    /// Writes the cache, whatever stands there.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write(&self, home: &LockedHome) -> Result<()> {
        let path = home.cache_file();
        let content = serde_json::to_vec(self).map_err(|e| Error::io("can not write", &path, e))?;
        disk::replace_any(&path, &content, 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn one_stat_tells_whether_sessions_came_or_went() {
        let place = testing::home();
        let home = place.locked("index");
        assert_eq!(Cache::read(&home), None);
        let stamp = SessionsStamp::now(&home).unwrap();
        let counts = Counts {
            turns: 3,
            ..Counts::default()
        };
        let cache = Cache::new(stamp, [("数据".to_owned(), counts)].into(), Vec::new());
        cache.write(&home).unwrap();
        let read = Cache::read(&home).unwrap();
        assert_eq!(read, cache);
        assert!(!read.is_stale(&home));
        place.put("sessions/x/a", "");
        assert!(read.is_stale(&home));
        for broken in ["", "{", "[]", r#"{"format": 9}"#] {
            place.put(".wbhome/cache.json", broken);
            assert_eq!(Cache::read(&home), None, "{broken}");
        }
        cache.write(&home).unwrap();
        assert_eq!(Cache::read(&home), Some(cache));
    }
}
