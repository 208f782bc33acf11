//! Who a commit is by, and the commit itself as git stores it.

use git2::Oid;

use crate::base::{Context, Error, Result};
use crate::disk;
use crate::history::Repository;
use crate::history::said::said;

/// The bytes of a commit object.
pub(super) fn object(
    repository: &Repository,
    tree: Oid,
    parent: Option<Oid>,
    message: &str,
    context: &Context,
) -> Result<Vec<u8>> {
    let now = context.clock.zoned();
    let minutes = now.offset().seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let zone = format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60);
    let (name, email) = of(repository)?;
    let who = format!("{name} <{email}> {} {zone}", now.timestamp().as_second());
    let parent = parent
        .map(|parent| format!("parent {parent}\n"))
        .unwrap_or_default();
    let text = format!(
        "tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{}\n",
        message.trim_end()
    );
    Ok(text.into_bytes())
}

fn of(repository: &Repository) -> Result<(String, String)> {
    let set = author(repository)?;
    Ok(set.unwrap_or_else(|| ("wbhome".to_owned(), format!("wbhome@{}", disk::host_name()))))
}

/// The name and address that git is set to; `None` when it is not, and commits are by this program itself.
///
/// # Errors
/// A configuration that can not be read.
pub fn author(repository: &Repository) -> Result<Option<(String, String)>> {
    let config = repository
        .git
        .config()
        .and_then(|mut config| config.snapshot());
    let config = config
        .map_err(|e| Error::failed("the configuration of git can not be read:").because(said(e)))?;
    let value = |key: &str| {
        let value = config.get_string(key).ok()?;
        // What would end the line, or the part of it.
        let plain: String = value
            .chars()
            .filter(|c| !c.is_control() && !matches!(c, '<' | '>'))
            .collect();
        let plain = plain.trim().to_owned();
        (!plain.is_empty()).then_some(plain)
    };
    Ok(value("user.name").zip(value("user.email")))
}
