//! Which commit a person means: by a name that git knows, or by a moment.

use git2::{Commit, ErrorCode, Oid, Sort};
use jiff::{Timestamp, ZonedDateTime};
use serde::{Deserialize, Serialize};

use super::Repository;
use super::repository::torn;
use crate::base::{Error, Result, human, parse_when};

/// A commit, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Its full name.
    pub commit: String,
    /// As many digits of it as tell it from all others.
    pub short: String,
    /// When it was made.
    pub at: Timestamp,
    /// Its author, without the address.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
}

impl Repository {
    /// The commit that a name means, or the last one at or before a moment. `None` means the last one.
    ///
    /// # Errors
    /// Neither a commit nor a moment; a moment before the first commit.
    pub(super) fn revision(&self, text: Option<&str>, now: &ZonedDateTime) -> Result<Commit<'_>> {
        let Some(text) = text else {
            return self.expect_tip();
        };
        let shown = || human::escape(text).into_owned();
        // Some digits and a unit may be the beginning of an object's name by chance; a ref is called so on purpose.
        let is_age = text.len() < 7 && text.ends_with(|c: char| c.is_ascii_alphabetic());
        if is_age
            && self.git.resolve_reference_from_short_name(text).is_err()
            && let Ok(when) = parse_when(text, now)
        {
            return self.at_or_before(self.expect_tip()?.id(), when, now);
        }
        match self.git.revparse_single(text) {
            Ok(object) => object.peel_to_commit().map_err(|_| {
                Error::failed(format!("`{}` is no commit", shown()))
                    .hint("`wbhome history SESSION` lists the commits")
            }),
            Err(error) => match parse_when(text, now) {
                Ok(when) => self.at_or_before(self.expect_tip()?.id(), when, now),
                // Some digits are a moment (`8d`) before they are too few of a name.
                Err(_) if error.code() == ErrorCode::Ambiguous => Err(Error::failed(format!(
                    "`{}` may mean several commits",
                    shown()
                ))
                .hint("write more digits of its name")),
                Err(_) => Err(Error::failed(format!(
                    "`{}` is neither a commit of the repository nor a moment",
                    shown()
                ))
                .hint("write a name that git knows, or a moment such as 2024-06-03, yesterday, or 2w (ago)")),
            },
        }
    }

    fn at_or_before(&self, tip: Oid, when: Timestamp, now: &ZonedDateTime) -> Result<Commit<'_>> {
        let mut first = Timestamp::MAX;
        let mut best: Option<(Timestamp, Oid)> = None;
        for oid in self.walk(tip)? {
            let at = made(&self.commit(oid)?);
            first = first.min(at);
            if at <= when && best.is_none_or(|(former, _)| at > former) {
                best = Some((at, oid));
            }
        }
        match best {
            Some((_, oid)) => self.commit(oid),
            None => Err(Error::failed(format!(
                "no commit is that old: the first was made {}",
                human::moment(first, now.time_zone().clone())
            ))
            .hint("`wbhome history SESSION --limit 0` lists them all")),
        }
    }

    /// Every commit that a tip comes from, itself included: none before those that come from it.
    pub(super) fn walk(&self, tip: Oid) -> Result<Vec<Oid>> {
        let walk = || -> std::result::Result<Vec<Oid>, git2::Error> {
            let mut walk = self.git.revwalk()?;
            walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
            walk.push(tip)?;
            walk.collect()
        };
        walk().map_err(|e| torn(self.dir(), "the history", e))
    }

    pub(super) fn told(&self, commit: &Commit) -> Told {
        Told {
            commit: commit.id().to_string(),
            short: self.short(commit.id()),
            at: made(commit),
            author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
            subject: String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default())
                .into_owned(),
        }
    }
}

pub(super) fn made(commit: &Commit) -> Timestamp {
    // A date that no calendar holds was written by no clock.
    Timestamp::from_second(commit.time().seconds()).unwrap_or(Timestamp::UNIX_EPOCH)
}
