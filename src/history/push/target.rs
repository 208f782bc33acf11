//! Where a branch is pushed to, and what is known to be there already.

use git2::{Direction, ErrorCode, Oid};

use super::super::repository::{Branch, Repository, short_name, torn};
use crate::base::{Error, Result, human};
use crate::history::said::said;

/// The other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A name of `git remote`, or the address itself where `branch.<name>.remote` is one.
    pub remote: String,
    /// The full name of the branch there.
    pub to: String,
    /// What the remote had in that branch when it was last spoken to. All else that leaves is looked at.
    pub known: Option<Oid>,
    /// Whether the configuration names remote and branch; otherwise the first push writes them down.
    pub is_upstream: bool,
}

impl Target {
    /// `origin/main`: the remote without what an address may hold of a login.
    pub fn shown(&self) -> String {
        format!("{}/{}", self.remote_shown(), human::name(self.branch()))
    }

    /// The remote, without a login.
    pub fn remote_shown(&self) -> String {
        human::escape(&without_login(&self.remote)).into_owned()
    }

    /// The branch there, without `refs/heads/`.
    pub fn branch(&self) -> &str {
        short_name(&self.to)
    }
}

/// A text with the logins in its addresses masked: `https://…@host/`.
pub(super) fn without_login(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c == '/' || c == '\'' || c == '"' || c.is_whitespace())
            .unwrap_or(after.len());
        rest = after;
        // Without a colon it is a user's name, as in `ssh://git@host`, or a token: which of the two is not known.
        if let Some(login) = after[..end].rfind('@')
            && &after[..login] != "git"
        {
            out.push('…');
            rest = &after[login..];
        }
    }
    out.push_str(rest);
    out
}

/// Where the branch goes: its upstream, or the only remote that there is.
///
/// # Errors
/// No remote, several and none chosen, one that mirrors, a branch that follows one of the same repository.
pub(super) fn target(repository: &Repository, branch: &Branch) -> Result<Target> {
    let dir = repository.dir();
    let git = &repository.git;
    let unreadable =
        |e| Error::failed("the configuration of git can not be read:").because(said(e));
    let config = git.config().and_then(|mut config| config.snapshot());
    let config = config.map_err(unreadable)?;
    let value = |key: String| match config.get_string(&key) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(unreadable(error)),
    };
    let Some(name) = branch.name.strip_prefix("refs/heads/") else {
        let shown = human::name(&branch.name);
        return Err(Error::failed(format!("{shown} is no branch that can be pushed:")).at(dir));
    };
    let remotes = git.remotes().map_err(unreadable)?;
    let names: Vec<String> = remotes
        .iter_bytes()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    let set = value(format!("branch.{name}.remote"))?;
    let remote = match (set, names.as_slice()) {
        (Some(set), _) => set,
        (None, [only]) => only.clone(),
        (None, []) => {
            return Err(Error::failed("there is no remote to push to:")
                .at(dir)
                .hint(format!("{} remote add origin ADDRESS", command(repository))));
        }
        (None, several) => {
            let shown: Vec<_> = several.iter().map(|name| human::escape(name)).collect();
            return Err(Error::failed(format!(
                "which remote to push to is not said ({}):",
                shown.join(", ")
            ))
            .at(dir)
            .hint(format!(
                "choose one: {} config {} REMOTE",
                command(repository),
                human::quoted(format!("branch.{name}.remote").as_ref())
            )));
        }
    };
    if remote == "." {
        return Err(Error::failed(format!(
            "the branch {} follows another branch of the same repository, so nothing would leave:",
            human::escape(name)
        ))
        .at(dir)
        .hint(format!(
            "{} config {} REMOTE",
            command(repository),
            human::quoted(format!("branch.{name}.remote").as_ref())
        )));
    }
    let mirrors = format!("remote.{remote}.mirror");
    match config.get_bool(&mirrors) {
        Ok(false) => {}
        Err(error) if error.code() == ErrorCode::NotFound => {}
        Ok(true) | Err(_) => {
            let shown = human::escape(&without_login(&remote)).into_owned();
            return Err(Error::failed(format!(
                "the remote {shown} is a mirror: a push would send all refs, and only a branch has been looked at:"
            ))
            .at(dir)
            .hint(format!(
                "{} config --unset {}",
                command(repository),
                human::quoted(mirrors.as_ref())
            )));
        }
    }
    let merge = value(format!("branch.{name}.merge"))?;
    let is_upstream = merge.is_some();
    let to = merge.unwrap_or_else(|| branch.name.clone());
    if !to.starts_with("refs/") {
        let shown = human::escape(&to);
        return Err(Error::failed(format!("`{shown}` is no name of a branch:"))
            .at(dir)
            .hint(format!(
                "{} config {} refs/heads/BRANCH",
                command(repository),
                human::quoted(format!("branch.{name}.merge").as_ref())
            )));
    }
    let known = match names.contains(&remote) {
        true => tracked(repository, &remote, &to)?,
        // An address without a name: what is there is written down nowhere.
        false => None,
    };
    Ok(Target {
        remote,
        to,
        known,
        is_upstream,
    })
}

/// What the remote had in a branch when git last spoke to it.
fn tracked(repository: &Repository, remote: &str, to: &str) -> Result<Option<Oid>> {
    let fail = |e| torn(repository.dir(), "what the remote is known to have", e);
    let remote = repository.git.find_remote(remote).map_err(fail)?;
    let spec = remote
        .refspecs()
        .find(|spec| spec.direction() == Direction::Fetch && spec.src_matches(to));
    let Some(spec) = spec else {
        return Ok(None);
    };
    let name = spec.transform(to).map_err(fail)?;
    let Ok(name) = std::str::from_utf8(&name) else {
        return Ok(None);
    };
    match repository.git.refname_to_id(name) {
        Ok(oid) => Ok(Some(oid)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

/// `git -C HOME`, to be typed.
pub(super) fn command(repository: &Repository) -> String {
    let root = repository.git.workdir().unwrap_or(repository.dir());
    let root: std::path::PathBuf = root.components().collect();
    format!("git -C {}", human::quoted(&root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_not_shown() {
        let shown = |text: &str| without_login(text);
        assert_eq!(shown("origin"), "origin");
        assert_eq!(shown("/mnt/a@b/home.git"), "/mnt/a@b/home.git");
        assert_eq!(shown("git@host:a/b"), "git@host:a/b");
        assert_eq!(shown("ssh://git@host/a"), "ssh://git@host/a");
        assert_eq!(shown("https://host/a@b"), "https://host/a@b");
        assert_eq!(
            shown("can not access 'https://me:word@host/a': no; https://tok@h"),
            "can not access 'https://…@host/a': no; https://…@h"
        );
        assert_eq!(shown("https://a@b:c@host"), "https://…@host");
    }
}
