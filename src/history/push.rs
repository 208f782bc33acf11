//! A push: the commits that the remote lacks, looked at for secrets, and then sent by the installed git.
//!
//! git is asked to send one commit by its name, the one that was looked at: what somebody commits meanwhile waits for
//! the next push. Where older commits were passed over because the remote is known to have them, git is told to make
//! sure of it first (a *lease*): a remote that has lost them, or is another one under the same name, would otherwise
//! get them unseen. git finds ways and logins as the person has set them up; this program knows no protocol.

mod leaving;
mod target;

use git2::Oid;
use serde::Serialize;

use self::leaving::Looked;
pub use self::leaving::{Leak, Part};
use self::target::{Target, command, without_login};
use super::repository::{Repository, short_name};
use crate::base::{Context, Error, Exit, Kind, Result, human};
use crate::disk::{self, Finished};
use crate::home::{Config, Home, LockedHome, OnFind};
use crate::secrets::{Allowed, Rules};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The remote has the commits.
    Pushed,
    /// It had them before.
    Nothing,
    /// Secrets were found, so nothing left.
    HeldBack,
    /// It could not be done, and nothing left; the commits wait.
    Failed,
    /// In a dry run: it would be tried.
    WouldPush,
}

/// A push, or what one would be.
#[derive(Clone, Debug, Serialize)]
pub struct Push {
    /// What came of it.
    pub state: State,
    /// The remote, without a login; none as long as it is not known.
    pub remote: Option<String>,
    /// The branch there.
    pub branch: Option<String>,
    /// Commits that the remote was not known to have.
    pub commits: u64,
    /// Versions of files in them that were looked at.
    pub files: u64,
    /// The secrets that were found, oldest commit first.
    pub findings: Vec<Leak>,
    /// Findings that `[secrets] allow` passes over.
    pub allowed: u64,
    /// Why it was not done.
    pub why: Option<String>,
    /// What a person can do.
    pub hints: Vec<String>,
    /// The class of what went wrong.
    #[serde(skip)]
    pub kind: Option<Kind>,
}

impl Push {
    /// What came of it, as an exit code. The commits stand whatever it is.
    pub fn exit(&self) -> Exit {
        match (self.state, self.kind.map(Kind::exit)) {
            (State::Failed, Some(graver)) if graver != Exit::Failed => graver,
            (State::Failed | State::HeldBack, _) => Exit::Partial,
            (State::Pushed | State::Nothing | State::WouldPush, _) => Exit::Done,
        }
    }
}

/// Pushes what the remote lacks of the branch, when no secret is in it or `[secrets] on_find` is `warn`. Never fails:
/// the commits stand whatever becomes of it. `ask` lets git ask for a login.
pub fn push(
    home: &LockedHome,
    repository: &Repository,
    config: &Config,
    ask: bool,
    context: &Context,
) -> Push {
    let mut push = Push::new();
    let done = push
        .look(home, repository, config, context)
        .and_then(|ready| match ready {
            Some(ready) if push.state != State::HeldBack => {
                context.stop.check()?;
                push.send(home, repository, &ready, ask, context)
            }
            _ => Ok(()),
        });
    push.told(done)
}

/// What a push would do with the commits that are there. Asks nobody outside.
pub fn preview(home: &Home, repository: &Repository, config: &Config, context: &Context) -> Push {
    let mut push = Push::new();
    let done = push.look(home, repository, config, context).map(|ready| {
        if ready.is_some() && push.state != State::HeldBack {
            push.state = State::WouldPush;
        }
    });
    push.told(done)
}

/// What is to be sent.
struct Ready {
    target: Target,
    branch: String,
    tip: Oid,
}

impl Push {
    fn new() -> Push {
        Push {
            state: State::Nothing,
            remote: None,
            branch: None,
            commits: 0,
            files: 0,
            findings: Vec::new(),
            allowed: 0,
            why: None,
            hints: Vec::new(),
            kind: None,
        }
    }

    fn told(mut self, done: Result<()>) -> Push {
        if let Err(error) = done {
            self.state = State::Failed;
            self.why = Some(error.to_string());
            self.hints = error.hints().to_vec();
            self.kind = Some(error.kind());
        }
        self
    }

    /// Finds what would leave and looks at it. `None` when there is nothing.
    fn look(
        &mut self,
        home: &Home,
        repository: &Repository,
        config: &Config,
        context: &Context,
    ) -> Result<Option<Ready>> {
        refuse_untrusted(home)?;
        let branch = repository.branch()?;
        let Some(tip) = branch.tip else {
            return Ok(None);
        };
        let target = target::target(repository, &branch)?;
        self.remote = Some(without_login(&target.remote));
        self.branch = Some(target.branch().to_owned());
        let commits = leaving::commits(repository, tip, &target)?;
        self.commits = commits.len() as u64;
        if commits.is_empty() {
            return Ok(None);
        }
        let own = config.secrets.rules.as_ref();
        let own = own.map(|rules| home.root().join(rules));
        let rules = Rules::load(own.as_deref())?;
        let allowed = Allowed::new(&config.secrets.allow)?;
        let Looked {
            files,
            leaks,
            allowed,
        } = leaving::look(repository, &commits, &rules, &allowed, context)?;
        (self.files, self.findings, self.allowed) = (files, leaks, allowed);
        if !self.findings.is_empty() && config.secrets.on_find == OnFind::Refuse {
            self.state = State::HeldBack;
            self.why = Some(format!(
                "{} in what {} does not have yet",
                human::plural(self.findings.len() as u64, "secret", "secrets"),
                target.shown()
            ));
            self.hints = ways_out(repository, &target, &self.findings);
        }
        Ok(Some(Ready {
            target,
            branch: branch.name,
            tip,
        }))
    }

    /// Has git send the commit.
    fn send(
        &mut self,
        home: &LockedHome,
        repository: &Repository,
        ready: &Ready,
        ask: bool,
        context: &Context,
    ) -> Result<()> {
        let Ready {
            target,
            branch,
            tip,
        } = ready;
        let fail =
            |what: &str| Error::failed(format!("{what} {}:", target.shown())).at(repository.dir());
        let finished = disk::run_git(home.root(), &arguments(target, *tip), ask, None)
            .map_err(|e| fail("git could not be started to push to").because(e))?;
        let Some(finished) = finished else {
            return Err(fail("git is not installed, and only it can push to")
                .hint("install it; the commits wait for the next push"));
        };
        let told = Told::of(&finished);
        if !finished.is_good() || told.rejected.is_some() {
            // Ctrl-C went to git as well.
            context.stop.check()?;
            let error = fail("git could not push to");
            let error = error.because(std::io::Error::other(told.words()));
            return Err(told
                .hints(repository, ask)
                .into_iter()
                .fold(error, Error::hint));
        }
        self.state = State::Pushed;
        if !target.is_upstream
            && let Err(error) = remember(repository, branch, target)
        {
            self.hints.push(format!(
                "the branch does not remember where it was pushed to ({error}); the next push finds it again"
            ));
        }
        Ok(())
    }
}

fn refuse_untrusted(home: &Home) -> Result<()> {
    match home.is_trusted() {
        true => Ok(()),
        false => Err(Error::failed(
            "the home was merely found, or is another user's, so nothing of it is sent anywhere:",
        )
        .at(home.root())
        .hint(format!(
            "name it, if it is yours: --home {}",
            human::quoted(home.root())
        ))),
    }
}

/// One commit to one branch, whatever else the configuration would send.
fn arguments(target: &Target, tip: Oid) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "-c",
        "push.followTags=false",
        "-c",
        "push.recurseSubmodules=no",
        "-c",
        "advice.pushUpdateRejected=false",
        "push",
        "--porcelain",
        "--no-follow-tags",
        "--no-recurse-submodules",
    ]
    .map(str::to_owned)
    .to_vec();
    if let Some(known) = target.known {
        // A lease also allows what is no fast-forward; that the known commit is an ancestor was made sure of.
        arguments.push(format!("--force-with-lease={}:{known}", target.to));
    }
    arguments.extend([
        "--".to_owned(),
        target.remote.clone(),
        format!("{tip}:{}", target.to),
    ]);
    arguments
}

/// Writes down where the branch was pushed to, as `git push -u` does. That would not, for a commit given by its name.
fn remember(repository: &Repository, branch: &str, target: &Target) -> Result<(), git2::Error> {
    let name = short_name(branch);
    let config = repository.git.config()?;
    let mut local = config.open_level(git2::ConfigLevel::Local)?;
    local.set_str(&format!("branch.{name}.remote"), &target.remote)?;
    local.set_str(&format!("branch.{name}.merge"), &target.to)
}

/// What git has said of a push.
struct Told {
    /// Why the remote, or git on its behalf, has not taken the branch.
    rejected: Option<String>,
    /// Its last words, without advice.
    last: Vec<String>,
    code: Option<i32>,
}

/// So many lines of git's are repeated.
const LINES: usize = 4;

impl Told {
    fn of(finished: &Finished) -> Told {
        let output = String::from_utf8_lossy(&finished.output);
        // `!<TAB>from:to<TAB>[rejected] (why)`, see git-push(1).
        let rejected = output
            .lines()
            .find_map(|line| line.strip_prefix("!\t")?.split('\t').nth(1))
            .map(|why| why.trim().to_owned());
        let errors = finished.words();
        let mut last: Vec<String> = errors
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
            // It says no more than that it has failed.
            .filter(|line| !line.starts_with("error: failed to push some refs"))
            .map(without_login)
            .collect();
        last.drain(..last.len().saturating_sub(LINES));
        Told {
            rejected,
            last,
            code: finished.code,
        }
    }

    /// In git's own words.
    fn words(&self) -> String {
        let words: Vec<&str> = self
            .rejected
            .iter()
            .chain(&self.last)
            .map(|s| &**s)
            .collect();
        match (words.as_slice(), self.code) {
            ([], Some(code)) => format!("exit code {code}"),
            ([], None) => "a signal ended it".to_owned(),
            (words, _) => words.join("; "),
        }
    }

    fn hints(&self, repository: &Repository, asked: bool) -> Vec<String> {
        let git = command(repository);
        let rejected = self.rejected.as_deref().unwrap_or_default();
        let behind = ["stale info", "fetch first", "non-fast-forward"];
        let mut hints = Vec::new();
        if behind.iter().any(|why| rejected.contains(why)) {
            hints.push(format!(
                "the remote has changed since it was last looked at: {git} fetch --prune; if it has commits that the home has not, while no agent is at work: {git} pull --rebase"
            ));
        } else if self.rejected.is_none() && !asked {
            hints.push(format!(
                "git could ask for nothing here; if it wants a login, set up a key or a credential helper. To try by hand: {git} fetch"
            ));
        }
        hints.push("the commits wait here for the next push".to_owned());
        hints
    }
}

/// The first commit of all, in short, when there is one and no finding stands in it: nothing has been pushed, and it is what
/// all others can be put on anew.
fn clean_root(repository: &Repository, leaks: &[Leak]) -> Option<String> {
    let git = &repository.git;
    let mut walk = git.revwalk().ok()?;
    walk.push(git.head().ok()?.target()?).ok()?;
    let is_root = |oid: &git2::Oid| {
        git.find_commit(*oid)
            .is_ok_and(|one| one.parent_count() == 0)
    };
    let mut roots = walk.filter_map(std::result::Result::ok).filter(is_root);
    let root = roots.next()?.to_string();
    let is_clean = roots.next().is_none() && leaks.iter().all(|leak| leak.commit != root);
    is_clean.then(|| root[..10].to_owned())
}

/// What a person can do about secrets that were found.
fn ways_out(repository: &Repository, target: &Target, leaks: &[Leak]) -> Vec<String> {
    let git = command(repository);
    let mut digests: Vec<String> = Vec::new();
    for leak in leaks {
        let quoted = format!("\"{}\"", leak.found.digest);
        if !digests.contains(&quoted) {
            digests.push(quoted);
        }
    }
    let harmless = match digests.as_slice() {
        few if few.len() <= 3 => format!(
            "a harmless one: allow = [{}] in [secrets] of wbhome.toml",
            few.join(", ")
        ),
        _ => "harmless ones: their digests into `allow` in [secrets] of wbhome.toml".to_owned(),
    };
    let rewrite = match target.known {
        Some(known) => format!(
            "when the files are free of it, {git} reset --soft {}, then `wbhome commit --push`: all commits that wait become one",
            &known.to_string()[..10]
        ),
        None => match clean_root(repository, leaks) {
            Some(root) => format!(
                "when the files are free of it, {git} reset --soft {root}, then `wbhome commit --push`: all commits but the first become one"
            ),
            None => "git filter-repo --replace-text FILE rewrites all commits; in a clone, never in the home".to_owned(),
        },
    };
    vec![
        "a real one: take it out of use where it was issued, first of all".to_owned(),
        harmless,
        "a commit that removes a secret does not take it out of the older ones, and they would leave too: they have to be rewritten".to_owned(),
        format!("{rewrite}; for more than that git rebase -i and git filter-repo (in a clone), see docs/history.md"),
    ]
}
