//! What went wrong, in the four parts that a person needs: what was attempted, on which path, why, and
//! what to do about it. The kinds map to exit codes here and nowhere else.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Exit;

/// The result of anything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error; each has one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command line makes no sense.
    Usage,
    /// There is no home where one was named or expected.
    NoHome,
    /// Somebody else holds the lock.
    Locked,
    /// The home was written by a newer version of the program.
    Newer,
    /// Anything else that a person can act on.
    Failed,
    /// Ctrl-C, or a signal that asks to stop.
    Interrupted,
    /// A state that the program thought impossible.
    Bug,
}

impl Kind {
    /// The exit code of an error of this kind.
    pub fn exit(self) -> Exit {
        match self {
            Kind::Usage => Exit::Usage,
            Kind::NoHome => Exit::NoHome,
            Kind::Locked => Exit::Locked,
            Kind::Newer => Exit::Newer,
            Kind::Failed => Exit::Failed,
            Kind::Interrupted => Exit::Interrupted,
            Kind::Bug => Exit::Bug,
        }
    }

    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Usage => "usage",
            Kind::NoHome => "no-home",
            Kind::Locked => "locked",
            Kind::Newer => "newer",
            Kind::Failed => "failed",
            Kind::Interrupted => "interrupted",
            Kind::Bug => "bug",
        }
    }
}

/// An error: what was attempted, where, why, and what to do.
#[derive(Debug)]
pub struct Error(Box<Parts>);

#[derive(Debug)]
struct Parts {
    kind: Kind,
    what: String,
    path: Option<PathBuf>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
    hints: Vec<String>,
    /// The only hint is that of the cause: one that knows more replaces it.
    general: bool,
}

impl Error {
    /// An error of the given kind; `what` says what could not be done, or what is wrong.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Error(Box::new(Parts {
            kind,
            what: what.into(),
            path: None,
            cause: None,
            hints: Vec::new(),
            general: false,
        }))
    }

    /// A failure for a reason that a person can act on (exit 1).
    pub fn failed(what: impl Into<String>) -> Self {
        Error::new(Kind::Failed, what)
    }

    /// A command line that makes no sense (exit 2).
    pub fn usage(what: impl Into<String>) -> Self {
        Error::new(Kind::Usage, what)
    }

    /// An operating-system error while doing `what` to `path`.
    pub fn io(
        what: impl Into<String>,
        path: impl AsRef<Path>,
        cause: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Error::failed(what).at(path).because(cause)
    }

    /// Names the path concerned.
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Names the cause. What a person can do about a full disk, and the like, is said, unless there is a hint that knows
    /// more.
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Box::new(cause));
        let general = self.io_cause().and_then(what_to_do);
        if let Some(general) = general.filter(|_| self.0.hints.is_empty()) {
            self.0.hints.push(general.to_owned());
            self.0.general = true;
        }
        self
    }

    /// Adds something that a person can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if std::mem::take(&mut self.0.general) {
            self.0.hints.clear();
        }
        self.0.hints.push(hint.into());
        self
    }

    /// The class of the error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What a person can do about it, most useful first.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// The path concerned, when there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The operating system's own error, when that is the cause.
    pub fn io_cause(&self) -> Option<&std::io::Error> {
        self.0.cause.as_ref()?.downcast_ref()
    }
}

/// Whether there is no room left on a disk, or no more of it for this user.
pub fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// What a person can do about it, whatever was attempted.
fn what_to_do(error: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull => Some("the disk is full: make room, and run it again"),
        QuotaExceeded => Some("your share of the disk is used up: make room, and run it again"),
        ReadOnlyFilesystem => Some(
            "that disk is mounted read-only: `findmnt` shows how, and the kernel's log (`dmesg`) why if it was not meant",
        ),
        _ => None,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is quoted in it is escaped where it is; a library that quotes does not know of that.
        f.write_str(&super::human::escape(&self.0.what))?;
        if let Some(path) = &self.0.path {
            write!(f, " {}", super::human::path(path))?;
        }
        if let Some(cause) = &self.0.cause {
            match cause.downcast_ref::<std::io::Error>() {
                Some(io) => write!(f, ": {}", super::human::io(io))?,
                None => write!(f, ": {}", super::human::escape(&cause.to_string()))?,
            }
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|c| c as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_with_any_full_or_read_only_disk_is_said_unless_more_is_known() {
        use std::io::ErrorKind::{NotFound, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let of =
            |kind: std::io::ErrorKind| Error::io("can not write", "/x", std::io::Error::from(kind));
        for (kind, says) in [
            (StorageFull, "make room"),
            (QuotaExceeded, "make room"),
            (ReadOnlyFilesystem, "read-only"),
        ] {
            let told = of(kind);
            assert!(
                told.hints()[0].contains(says) && told.hints().len() == 1,
                "{told:?}"
            );
        }
        assert!(of(NotFound).hints().is_empty());
        assert_eq!(
            of(StorageFull).hint("one").hint("two").hints(),
            ["one", "two"]
        );
        let known_before = Error::failed("can not")
            .hint("one")
            .because(std::io::Error::from(StorageFull));
        assert_eq!(known_before.hints(), ["one"]);
    }
}
