//! `.wbhome/du.json`: what the home took at the last run. It may be deleted at any time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::OfSession;
use crate::base::{Context, Error, Result};
use crate::disk;
use crate::home::{Home, LockedHome};

const FORMAT: u32 = 1;
const LIMIT: u64 = 64 << 20;

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    format: u32,
    /// When.
    pub at: Timestamp,
    /// The whole home, without this file.
    pub total: u64,
    /// Folders of sessions, by name.
    sessions: BTreeMap<String, u64>,
}

impl Former {
    /// Reads the record; `None` when there is none that can be understood.
    pub fn read(home: &Home) -> Option<Former> {
        let content = disk::read_small(&home.root().join(RECORD), LIMIT).ok()??;
        let former: Former = serde_json::from_slice(&content).ok()?;
        (former.format == FORMAT).then_some(former)
    }

    /// How much more a session takes now.
    pub fn growth(&self, session: &OfSession) -> Option<i64> {
        let former = self.sessions.get(session.name.to_str()?)?;
        Some(difference(session.all.bytes, *former))
    }
}

/// The file, below the home.
pub(super) const RECORD: &str = ".wbhome/du.json";

pub(super) fn difference(now: u64, then: u64) -> i64 {
    let wide = i128::from(now) - i128::from(then);
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}

/// Writes the record anew.
pub(super) fn write(
    home: &LockedHome,
    total: u64,
    sessions: &[OfSession],
    context: &Context,
) -> Result<()> {
    let record = Former {
        format: FORMAT,
        at: context.clock.now(),
        total,
        // Those without a file, too: what is archived is not new at the next run.
        sessions: sessions
            .iter()
            .filter_map(|s| Some((s.name.to_str()?.to_owned(), s.all.bytes)))
            .collect(),
    };
    let path = home.root().join(RECORD);
    let content = serde_json::to_vec(&record).map_err(|e| Error::io("can not write", &path, e))?;
    disk::replace_any(&path, &content, 0o600)
}
