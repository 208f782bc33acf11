//! The repository of a home: opening it only when it is sound enough, and making it.

use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode, RepositoryInitOptions, RepositoryState};
use serde::Serialize;

use super::said::said;
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, FileKind};
use crate::home::{Home, LockedHome};

/// The name that makes a folder a repository.
pub(super) const DOT_GIT: &str = ".git";

/// What this program keeps in a git dir for itself: nothing that git looks at.
pub(super) const OWN: &str = "wbhome";

/// What keeps git from changing a byte on the way in or out, whatever `.gitattributes` files say. It has the last
/// word over those (gitattributes(5)), and does not travel with a clone.
pub(super) const NEUTRAL: &str = "* -text -filter -ident -working-tree-encoding";

/// The repository of a home, opened.
pub struct Repository {
    pub(super) git: git2::Repository,
    pub(super) root: PathBuf,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repository").field(&self.git.path()).finish()
    }
}

/// The newest commit of a home, if it has a history that can be read.
pub fn tip(home: &Home) -> Option<String> {
    let repository = Repository::open(home).ok()??;
    let tip = repository.branch().ok()?.tip?;
    Some(tip.to_string())
}

/// Where commits go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The full name of the ref, such as `refs/heads/main`.
    pub name: String,
    /// Its newest commit; `None` before the first.
    pub tip: Option<git2::Oid>,
}

/// A branch as people call it: the name of its ref without `refs/heads/`.
pub(super) fn short_name(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

impl Repository {
    /// Opens the repository of a home; `None` when it has none.
    ///
    /// # Errors
    /// One that another user owns, in which a pipe stands for a file, that is bare, that belongs to another folder, that a sync client tore, or of a
    /// kind that this program can not write.
    pub fn open(home: &Home) -> Result<Option<Repository>> {
        Repository::open_in(home.root())
    }

    /// Like [`Repository::open`], for a folder that may not be a home yet, or any more.
    pub(super) fn open_in(root: &Path) -> Result<Option<Repository>> {
        let root = disk::real_path(root)?;
        let dot_git = root.join(DOT_GIT);
        let Some(found) = disk::stat(&dot_git)? else {
            return Ok(None);
        };
        super::pipes::refuse_pipes(&dot_git)?;
        let git = git2::Repository::open(&root).map_err(|e| not_opened(&dot_git, found.kind, e))?;
        let repository = Repository { git, root };
        repository.refuse_strange()?;
        super::loose::refuse_torn(repository.git.commondir())?;
        Ok(Some(repository))
    }

    /// Like [`Repository::open`], where there has to be one.
    ///
    /// # Errors
    /// Also when there is none.
    pub fn expect(home: &Home) -> Result<Repository> {
        Repository::open(home)?.ok_or_else(|| {
            Error::failed("the home has no history yet:")
                .at(home.root())
                .hint("`wbhome commit` begins one")
        })
    }

    fn refuse_strange(&self) -> Result<()> {
        let at = |error: Error| error.at(self.dir());
        if self.git.is_bare() {
            return Err(at(Error::failed("the repository of the home is bare:"))
                .hint("if that is a mistake: git config core.bare false"));
        }
        if self.git.is_worktree() {
            return Err(at(Error::failed(
                "the home is a linked worktree of another repository:",
            ))
            .hint("give it a repository of its own: move its .git away, then wbhome init"));
        }
        let work = self.git.workdir().unwrap_or(Path::new(""));
        if disk::real_path(work)? != self.root {
            return Err(at(Error::failed(format!(
                "the repository belongs to another folder, {}:",
                human::path(work)
            )))
            .hint(format!(
                "if the home was moved: git --git-dir={} config core.worktree {}",
                human::quoted(self.dir()),
                human::quoted(&self.root)
            )));
        }
        // A link or a file called .git may lead to the repository of anything: ours, elsewhere, knows where the home is.
        let knows = |config: git2::Config| config.get_entry("core.worktree").is_ok();
        let lies = disk::real_path(self.dir())?;
        if !lies.starts_with(&self.root) && !self.git.config().is_ok_and(knows) {
            return Err(at(Error::failed(
                "the repository lies elsewhere, and nothing in it says that it is this home's:",
            ))
            .hint(format!(
                "if it is: git --git-dir={} config core.worktree {}",
                human::quoted(&lies),
                human::quoted(&self.root)
            ))
            .hint("if not: move .git away, then wbhome init"));
        }
        Ok(())
    }

    /// The git dir: `.git` in the home, or the folder elsewhere that it names.
    pub fn dir(&self) -> &Path {
        self.git.path()
    }

    /// The files by which git locks parts of the repository, and since when each is there.
    pub fn locks(&self) -> Vec<(PathBuf, jiff::Timestamp)> {
        let mut found = Vec::new();
        let mut folders = vec![self.dir().to_path_buf(), self.git.commondir().join("refs")];
        while let Some(folder) = folders.pop() {
            for (name, kind) in disk::read_dir_names(&folder).unwrap_or_default() {
                let path = folder.join(name);
                let is_lock = path.extension().is_some_and(|ending| ending == "lock");
                match kind {
                    FileKind::Folder if folder != self.dir() => folders.push(path),
                    FileKind::File if is_lock => {
                        let meta = disk::stat(&path).ok().flatten();
                        found.extend(meta.map(|meta| (path, meta.mtime.timestamp())));
                    }
                    _ => {}
                }
            }
        }
        found.sort();
        found
    }

    /// The branch that a commit goes to.
    ///
    /// # Errors
    /// A detached HEAD, a merge or the like in its middle, a branch that is gone or torn: a commit would make it worse.
    pub fn branch(&self) -> Result<Branch> {
        let fail = |e| torn(self.dir(), "HEAD", e);
        let head = self.git.find_reference("HEAD").map_err(fail)?;
        let Some(name) = head.symbolic_target().ok().flatten().map(str::to_owned) else {
            return Err(Error::failed("HEAD is detached, so a commit would belong to no branch:")
                .at(self.dir())
                .hint("git switch BRANCH puts it back; git switch -c NAME keeps what was committed since"));
        };
        if self.git.state() != RepositoryState::Clean {
            let (what, end) = in_the_middle(self.git.state());
            return Err(
                Error::failed(format!("the repository is in the middle of {what}:"))
                    .at(self.dir())
                    .hint(format!("finish it with git, or give it up: {end}")),
            );
        }
        let tip = match self.git.find_reference(&name) {
            Ok(reference) => {
                let commit = reference.peel_to_commit();
                let commit = commit.map_err(|e| torn(self.dir(), &name, e))?;
                commit.tree().map_err(|e| torn(self.dir(), &name, e))?;
                self.refuse_gone_back(&name, commit.id())?;
                Some(commit.id())
            }
            Err(error) if error.code() == ErrorCode::NotFound => {
                self.refuse_lost(&name)?;
                None
            }
            Err(error) => return Err(torn(self.dir(), &name, error)),
        };
        Ok(Branch { name, tip })
    }

    /// A branch without a ref has no commit yet; or a sync client has lost the ref, and a first commit would cut off
    /// all that came before.
    fn refuse_lost(&self, name: &str) -> Result<()> {
        let ours = super::moving::last(self, name);
        let Some(last) = self.last_logged(name).or(ours) else {
            return Ok(());
        };
        let short = short_name(name);
        Err(Error::failed(format!(
            "the branch {} is gone, and was last at {}:",
            human::name(short),
            last
        ))
        .at(self.dir())
        .hint(format!(
            "put it back: git update-ref {} {}",
            human::quoted(Path::new(name)),
            last
        )))
    }

    /// What a branch was last moved to as its log has it, unless that is a move of ours that was never made.
    fn last_logged(&self, name: &str) -> Option<git2::Oid> {
        // Reading a log that is not there would make it.
        if !self.git.reference_has_log(name).unwrap_or(false) {
            return None;
        }
        let log = self.git.reflog(name).ok()?;
        let last = log.get(0)?.id_new();
        (super::moving::noted(self, name) != Some(last)).then_some(last)
    }

    /// A branch that is behind its own log has lost its ref: what it is now comes from an old `packed-refs`.
    fn refuse_gone_back(&self, name: &str, tip: git2::Oid) -> Result<()> {
        match self.last_logged(name) {
            Some(last)
                if last != tip && self.git.graph_descendant_of(last, tip).unwrap_or(false) =>
            {
                let short = short_name(name);
                Err(Error::failed(format!(
                    "the branch {} has gone back to {tip}, and its log ends at {last}:",
                    human::name(short)
                ))
                .at(self.dir())
                .hint(format!(
                    "put it back: git update-ref {} {last}",
                    human::quoted(Path::new(name))
                ))
                .hint(format!(
                    "if it is meant: git reflog delete {}@{{0}}",
                    human::name(short)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Makes libgit2 write refs through to the disk in this run. The setting of that name is one that git calls
    /// outdated, so it is not written into the repository's own configuration.
    pub(super) fn make_refs_durable(&self) -> Result<()> {
        let own = self.dir().join(OWN);
        let file = own.join("durable");
        disk::create_private_folder(&own)?;
        let text = b"[core]\n\tfsyncObjectFiles = true\n";
        if disk::read(&file)?.as_deref() != Some(text) {
            disk::overwrite(&file, text)?;
        }
        self.git
            .config()
            .and_then(|mut config| config.add_file(&file, git2::ConfigLevel::App, true))
            .map_err(|e| {
                Error::failed("the configuration of git can not be read:").because(said(e))
            })
    }

    /// Whether the settings of the repository and its attributes leave bytes as they are when git itself reads or
    /// writes them; each line says what does not, and the command that mends it.
    pub fn advice(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let git = format!("git -C {}", human::quoted(&self.root));
        if let Ok(config) = self.git.config().and_then(|mut config| config.snapshot()) {
            let value = config.get_string("core.autocrlf").unwrap_or_default();
            if !value.is_empty() && !matches!(value.as_str(), "false" | "no" | "off" | "0") {
                lines.push(format!(
                    "core.autocrlf is {}: git would change line ends. {git} config core.autocrlf false",
                    human::escape(&value)
                ));
            }
        }
        let attributes = self.dir().join("info/attributes");
        let text = disk::read(&attributes).ok().flatten().unwrap_or_default();
        if !text
            .split(|b| *b == b'\n')
            .any(|line| line == NEUTRAL.as_bytes())
        {
            lines.push(format!(
                "{} does not keep .gitattributes from changing bytes: it wants the line `{NEUTRAL}`",
                human::path(&attributes)
            ));
        }
        lines
    }
}

/// What [`begin`] would do.
#[derive(Clone, Debug, Serialize)]
pub struct Beginning {
    /// The git dir.
    #[serde(flatten)]
    pub dir: WirePath,
    /// Whether it is there already.
    pub exists: bool,
}

/// What [`begin`] would do with a home that is there.
///
/// # Errors
/// As [`Repository::open`].
pub fn beginning(home: &Home, elsewhere: Option<&Path>) -> Result<Beginning> {
    let found = Repository::open(home)?;
    let dir = match (&found, elsewhere) {
        (Some(repository), _) => repository.dir().to_path_buf(),
        (None, Some(dir)) => home.root().join(dir),
        (None, None) => home.root().join(DOT_GIT),
    };
    Ok(Beginning {
        dir: dir.into(),
        exists: found.is_some(),
    })
}

/// What was made or found by [`begin`].
#[derive(Clone, Debug, Serialize)]
pub struct Began {
    /// The git dir.
    #[serde(flatten)]
    pub dir: WirePath,
    /// Whether it was there before.
    pub adopted: bool,
    /// What in an adopted one would change bytes, and the command that mends it.
    pub advice: Vec<String>,
}

/// Makes the repository of a home, in it or at `elsewhere`; one that is there is left as it is.
///
/// # Errors
/// As [`Repository::open`]; a place that holds something else; what can not be written.
pub fn begin(home: &LockedHome, elsewhere: Option<&Path>, context: &Context) -> Result<Began> {
    if let Some(repository) = Repository::open(home)? {
        return Ok(Began {
            dir: repository.dir().to_path_buf().into(),
            adopted: true,
            advice: repository.advice(),
        });
    }
    let dir = match elsewhere {
        None => make_inside(home, context)?,
        Some(dir) => make_elsewhere(home, dir)?,
    };
    Ok(Began {
        dir: dir.into(),
        adopted: false,
        advice: Vec::new(),
    })
}

/// Made whole beside, then renamed: half a repository is worse than none.
fn make_inside(home: &LockedHome, context: &Context) -> Result<PathBuf> {
    let root = disk::real_path(home.root())?;
    let scratch = home.scratch(context)?;
    let options = options();
    let git = git2::Repository::init_opts(scratch.path(), &options)
        .map_err(|e| not_made(scratch.path(), e))?;
    furnish(&git)?;
    drop(git);
    disk::set_mode(&scratch.path().join(DOT_GIT), 0o700)?;
    make_durable(&scratch.path().join(DOT_GIT))?;
    let dir = root.join(DOT_GIT);
    disk::rename_no_replace(&scratch.path().join(DOT_GIT), &dir)?;
    Ok(dir)
}

/// Where a place of the repository comes from that is not in the home.
const NAMES_IT: &str = "[git] dir in wbhome.toml names it";

/// Refuses what lies at the place of the repository, and is none, or that of another folder than `root`.
pub(super) fn refuse_foreign(wanted: &Path, root: &Path) -> Result<()> {
    let git = git2::Repository::open_bare(wanted).map_err(|_| {
        Error::failed("there is something else already where the repository should be:")
            .at(wanted)
            .hint(NAMES_IT)
    })?;
    let work = git
        .config()
        .and_then(|config| config.get_path("core.worktree"));
    match work.is_ok_and(|work| disk::real_path(&work).is_ok_and(|work| work == root)) {
        true => Ok(()),
        false => Err(
            Error::failed("the repository there is that of another folder:")
                .at(wanted)
                .hint(format!(
                    "if the home was moved, or the repository: git --git-dir={} config core.worktree {}",
                    human::quoted(wanted),
                    human::quoted(root)
                )),
        ),
    }
}

fn make_elsewhere(home: &LockedHome, dir: &Path) -> Result<PathBuf> {
    let root = disk::real_path(home.root())?;
    let wanted = root.join(dir);
    let hint = NAMES_IT;
    let Some(parent) = wanted.parent().filter(|parent| disk::is_folder(parent)) else {
        return Err(Error::failed(
            "the folder that the repository should lie in is not there; is its disk mounted?",
        )
        .at(wanted.parent().unwrap_or(&wanted))
        .hint(hint));
    };
    let wanted = disk::real_path(parent)?.join(wanted.file_name().unwrap_or_default());
    if wanted.starts_with(&root) {
        return Err(
            Error::failed("the repository can not lie in the home under another name:")
                .at(&wanted)
                .hint(format!("{hint}; without it, it is .git")),
        );
    }
    if disk::exists(&wanted) && !disk::read_dir_names(&wanted)?.is_empty() {
        refuse_foreign(&wanted, &root)?;
        let name = std::os::unix::ffi::OsStrExt::as_bytes(wanted.as_os_str());
        let link = [b"gitdir: ".as_slice(), name, b"\n"].concat();
        disk::write_new(&root.join(DOT_GIT), &link, 0o600)?;
        return Ok(wanted);
    }
    disk::create_private_folder(&wanted)?;
    let mut options = options();
    options.no_dotgit_dir(true).workdir_path(&root);
    let git = git2::Repository::init_opts(&wanted, &options).map_err(|e| not_made(&wanted, e))?;
    furnish(&git)?;
    drop(git);
    make_durable(&wanted)?;
    Ok(wanted)
}

fn options() -> RepositoryInitOptions {
    let configured = git2::Config::open_default()
        .and_then(|config| config.get_string("init.defaultBranch"))
        .ok()
        .filter(|name| git2::Branch::name_is_valid(name).unwrap_or(false));
    let mut options = RepositoryInitOptions::new();
    // A template of the user's may bring hooks and attributes: this repository is a store, not a project.
    options
        .external_template(false)
        .mkpath(true)
        .initial_head(&configured.unwrap_or_else(|| "main".to_owned()));
    options
}

fn furnish(git: &git2::Repository) -> Result<()> {
    let fail = |e| not_made(git.path(), e);
    let mut config = git.config().map_err(fail)?;
    config.set_str("core.autocrlf", "false").map_err(fail)?;
    // Names in any language are shown as they are.
    config.set_str("core.quotePath", "false").map_err(fail)?;
    let text = format!(
        "# Bytes go in and come out as they are. This file does not travel with a clone.\n{NEUTRAL}\n"
    );
    let info = git.path().join("info");
    disk::create_private_folder(&info)?;
    disk::write_new(&info.join("attributes"), text.as_bytes(), 0o600)
}

/// Without these two it is no repository. What else was made is there to be read by people.
fn make_durable(dir: &Path) -> Result<()> {
    let fail = |e| Error::io("can not write to", dir, e);
    let opened = disk::Dir::open(dir).map_err(fail)?;
    for name in ["HEAD", "config"] {
        let file = opened.open_file(std::ffi::OsStr::new(name));
        file.and_then(|file| file.sync_all()).map_err(fail)?;
    }
    opened.sync().map_err(fail)
}

fn not_made(dir: &Path, error: git2::Error) -> Error {
    Error::failed("can not make the repository")
        .at(dir)
        .because(said(error))
}

fn not_opened(dot_git: &Path, kind: FileKind, error: git2::Error) -> Error {
    let failed = |what: &str| Error::failed(what).at(dot_git);
    if kind == FileKind::Folder
        && let Err(denied) = disk::Dir::open(dot_git).and_then(|dir| dir.names())
    {
        return Error::io("the repository can not be read:", dot_git, denied);
    }
    match (error.code(), error.class()) {
        (ErrorCode::Owner, _) => failed("another user owns the repository, so it is not obeyed:")
            .hint(format!(
                "if that is as it should be: git config --global --add safe.directory {}",
                human::quoted(dot_git.parent().unwrap_or(dot_git))
            )),
        (ErrorCode::NotFound, _) if kind == FileKind::File => {
            let named = disk::read_small(dot_git, 8 << 10).ok().flatten().unwrap_or_default();
            let named = String::from_utf8_lossy(&named).trim().to_owned();
            let at = named.strip_prefix("gitdir:").map_or(named.as_str(), str::trim);
            match disk::exists(&dot_git.with_file_name(at).join("HEAD")) {
                true => failed("the repository that it names belongs to a folder that is not there:")
                    .because(std::io::Error::other(named.clone()))
                    .hint(format!(
                        "if the home was moved: git --git-dir={} config core.worktree {}",
                        human::quoted(Path::new(at)),
                        human::quoted(dot_git.parent().unwrap_or(dot_git))
                    )),
                false => failed("the repository that it names is not there; is its disk mounted?")
                    .because(std::io::Error::other(named)),
            }
        }
        (ErrorCode::NotFound, _) => failed("what is in the place of the repository is none, or parts of it are missing:")
            .hint("a sync client may have torn it: move it away, keep it, and begin anew with wbhome init"),
        (_, ErrorClass::Config) => failed("the configuration of the repository can not be read:")
            .because(said(error))
            .hint("git config --list shows the line; it may be in .git/config or in your own ~/.gitconfig"),
        _ => failed("the repository can not be opened:").because(said(error)),
    }
}

/// What is read of git's own files and makes no sense.
pub(super) fn torn(dir: &Path, what: &str, error: git2::Error) -> Error {
    Error::failed(format!("{} of the repository can not be read:", human::escape(what)))
        .at(dir)
        .because(said(error))
        .hint("`wbhome check` names what a sync client tore; git fsck looks at everything. Nothing was changed")
}

fn in_the_middle(state: RepositoryState) -> (&'static str, &'static str) {
    match state {
        RepositoryState::Clean | RepositoryState::Merge => ("a merge", "git merge --abort"),
        RepositoryState::Revert | RepositoryState::RevertSequence => {
            ("a revert", "git revert --abort")
        }
        RepositoryState::CherryPick | RepositoryState::CherryPickSequence => {
            ("a cherry-pick", "git cherry-pick --abort")
        }
        RepositoryState::Bisect => ("a bisect", "git bisect reset"),
        RepositoryState::Rebase
        | RepositoryState::RebaseInteractive
        | RepositoryState::RebaseMerge => ("a rebase", "git rebase --abort"),
        RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => {
            ("applying mails", "git am --abort")
        }
    }
}
