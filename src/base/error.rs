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

    /// Names the cause.
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Box::new(cause));
        self
    }

    /// Adds something that a person can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
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
