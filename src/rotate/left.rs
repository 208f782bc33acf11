//! Why a log is left alone. It is looked at when it is planned, and once more right before it is cut.

use super::Found;
use super::outcome::{Left, Reason, Writer};
use crate::base::human;
use crate::disk::FileKind;
use crate::home::Leases;

/// It was removed, or got another name, since it was found.
pub(super) fn gone(found: &Found) -> Left {
    let why = "is not there any more".to_owned();
    Left::new(found, Reason::NoLine, why, None)
}

/// It has no whole line yet.
pub(super) fn for_its_line(found: &Found) -> Left {
    let why = "holds no whole line yet".to_owned();
    Left::new(found, Reason::NoLine, why, None)
}

/// Another device holds the lease of its session.
pub(super) fn for_its_lease(found: &Found, leases: &Leases) -> Option<Left> {
    let who = leases.elsewhere(found.session.as_deref()?)?;
    let why = format!("is read-only here: {who}");
    Some(Left::new(found, Reason::Leased, why, None))
}

/// It is no file, and has no lines of its own.
pub(super) fn for_its_kind(found: &Found) -> Option<Left> {
    let (reason, why) = match found.meta.kind {
        FileKind::File => return None,
        FileKind::Symlink => (
            Reason::Symlink,
            "is a symbolic link; what it points to is cut where a glob names it".to_owned(),
        ),
        kind => (Reason::Special, format!("is {}", kind.described())),
    };
    Some(Left::new(found, reason, why, None))
}

/// It has more names than one.
pub(super) fn for_its_names(found: &Found) -> Option<Left> {
    let names = found.meta.nlink;
    let why = format!("has {names} names (hard links), and would change under all of them");
    let hint = "leave it one name: copy it where the other names are";
    (names > 1).then(|| Left::new(found, Reason::HardLinked, why, Some(hint)))
}

/// Somebody writes to it at a place of their own: after a cut they go on there, behind a hole.
pub(super) fn for_its_writer(found: &Found, writers: Vec<Writer>) -> Option<Left> {
    let first = writers.first()?;
    let why = format!(
        "is written by {} (process {}) without O_APPEND, and would get a hole of NULs",
        human::name(&first.program),
        first.pid
    );
    let hint = "have it opened for appending (`>>`, mode \"a\"); `wbhome rotate --force` cuts it all the same";
    let mut left = Left::new(found, Reason::PlainWriter, why, Some(hint));
    left.writers = writers;
    Some(left)
}
