//! What came of a rotation.

use std::path::Path;

use serde::Serialize;

use super::{Beyond, Found, Why};
use crate::base::wire::{ExactPath, WirePath};
use crate::base::{Error, Exit};

/// How a log was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Whole blocks were taken out of it.
    Collapse,
    /// It had no whole block: its lines became a blank one.
    Blank,
    /// It was copied and truncated.
    Truncate,
    /// Nothing was taken out: its writer had begun it anew, or replaced it, when it had been copied.
    Copy,
}

/// A log that was cut.
#[derive(Clone, Debug, Serialize)]
pub struct CutLog {
    /// Where it is.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whose it is.
    pub session: Option<String>,
    /// Why it was due.
    pub due: Why,
    /// How it was cut.
    pub how: How,
    /// Whether nothing can have been lost.
    pub lossless: bool,
    /// The name of what was cut out, beside it.
    pub rotated: ExactPath,
    /// How long that is.
    pub bytes: u64,
    /// Who writes to it without `O_APPEND`.
    pub writers: Vec<Writer>,
}

/// A process that writes to a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Writer {
    /// Its number.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
}

/// Why a log is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It is a symbolic link.
    Symlink,
    /// It is neither file, folder nor link.
    Special,
    /// It has several names.
    HardLinked,
    /// Somebody writes to it without `O_APPEND`.
    PlainWriter,
    /// There is no whole line in it yet.
    NoLine,
    /// Another device holds the lease of its session.
    Leased,
}

impl Reason {
    /// Whether something that is to be cut is not.
    pub fn is_lack(self) -> bool {
        matches!(self, Reason::HardLinked | Reason::PlainWriter)
    }
}

/// A log that is left alone.
#[derive(Clone, Debug, Serialize)]
pub struct Left {
    /// Where it is.
    #[serde(flatten)]
    pub path: WirePath,
    /// Whose it is.
    pub session: Option<String>,
    /// Why.
    pub reason: Reason,
    /// In words that follow its name.
    pub why: String,
    /// What a person can do about it.
    pub hints: Vec<String>,
    /// Who writes to it without `O_APPEND`.
    pub writers: Vec<Writer>,
}

impl Left {
    pub(super) fn new(found: &Found, reason: Reason, why: String, hint: Option<&str>) -> Left {
        Left {
            path: found.path().into(),
            session: found.session.clone(),
            reason,
            why,
            hints: hint.map(str::to_owned).into_iter().collect(),
            writers: Vec::new(),
        }
    }
}

/// Something that went wrong. What is left undone is tried again next time.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// With what: a log, something cut out of one, a folder, or a glob.
    #[serde(flatten)]
    pub path: WirePath,
    /// What, where and why.
    pub message: String,
    /// What a person can do about it.
    pub hints: Vec<String>,
}

impl Failed {
    pub(super) fn of(path: WirePath, error: &Error) -> Failed {
        Failed {
            path,
            message: error.to_string(),
            hints: error.hints().to_vec(),
        }
    }

    pub(super) fn missing(glob: &str) -> Failed {
        let error = Error::failed("no log is there for [rotate] logs")
            .at(glob)
            .hint("with `missing_ok = true` that is no error");
        Failed::of(Path::new(glob).to_path_buf().into(), &error)
    }
}

/// Something cut out earlier that was compressed.
#[derive(Clone, Debug, Serialize)]
pub struct Compressed {
    /// Where it is.
    #[serde(flatten)]
    pub path: WirePath,
    /// How long it was.
    pub from: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Something cut out earlier that went.
#[derive(Clone, Debug, Serialize)]
pub struct Removed {
    /// Where it was.
    #[serde(flatten)]
    pub path: WirePath,
    /// How long it was.
    pub bytes: u64,
    /// By which setting.
    pub beyond: Beyond,
}

/// What was done.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The logs that were cut.
    pub cut: Vec<CutLog>,
    /// Those that are left alone, and why.
    pub left: Vec<Left>,
    /// What went wrong.
    pub failed: Vec<Failed>,
    /// So many logs were not due.
    pub resting: u64,
    /// So many logs were seen for the first time.
    pub seen: u64,
    /// What was compressed.
    pub compressed: Vec<Compressed>,
    /// What went.
    pub removed: Vec<Removed>,
    /// So many entries of `rotate.json` could not be understood; none: all could.
    pub forgotten: Option<u64>,
    /// Whether it was interrupted before all was done.
    pub interrupted: bool,
}

impl Outcome {
    pub(super) fn new(left: Vec<Left>, failed: Vec<Failed>, forgotten: Option<u64>) -> Outcome {
        Outcome {
            cut: Vec::new(),
            left,
            failed,
            resting: 0,
            seen: 0,
            compressed: Vec::new(),
            removed: Vec::new(),
            forgotten,
            interrupted: false,
        }
    }

    /// What it means for whoever called.
    pub fn exit(&self) -> Exit {
        if self.interrupted {
            return Exit::Interrupted;
        }
        let done = self.cut.len() + self.compressed.len() + self.removed.len();
        let lacks = self.left.iter().any(|left| left.reason.is_lack());
        match (self.failed.is_empty(), done) {
            (false, 0) => Exit::Failed,
            (false, _) => Exit::Partial,
            (true, _) if lacks => Exit::Partial,
            (true, _) => Exit::Done,
        }
    }
}
