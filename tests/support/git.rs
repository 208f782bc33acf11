//! The installed git, as the judge of what the program has written.

use std::path::Path;
use std::process::Command;

use super::{Place, Ran};

/// Runs git in a folder with nothing of the user's own in its environment.
pub fn git_in(folder: &Path, args: &[&str]) -> Ran {
    Ran::of(command(folder, args).output().unwrap())
}

pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C.UTF-8")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args);
    command
}

impl Place {
    /// Runs git in the home; it must succeed.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let ran = git_in(&self.home(), args);
        assert_eq!(ran.code, Some(0), "git {args:?}: {ran:#?}");
        ran.stdout
    }

    /// git finds nothing to commit and nothing wrong.
    #[track_caller]
    pub fn git_is_content(&self) {
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        self.fsck();
    }

    /// git finds nothing wrong with any object.
    #[track_caller]
    pub fn fsck(&self) {
        let ran = git_in(
            &self.home(),
            &["fsck", "--strict", "--no-dangling", "--no-progress"],
        );
        // Before the first commit it says that there is none.
        let wrong = ran
            .stderr
            .lines()
            .find(|line| !line.starts_with("notice: "));
        assert_eq!(
            (ran.code, ran.stdout.as_str(), wrong),
            (Some(0), "", None),
            "{ran:#?}"
        );
    }

    /// What the last commit holds, by path.
    pub fn committed(&self) -> Vec<String> {
        let names = self.git(&["ls-tree", "-r", "-z", "--name-only", "HEAD"]);
        names.split_terminator('\0').map(str::to_owned).collect()
    }

    /// Runs git in the home, as a person who has set nothing, at noon of a day of June 2024. Returns what it printed.
    #[track_caller]
    pub fn git_on(&self, day: u64, args: &[&str]) -> String {
        let at = format!("2024-06-{day:02}T12:00:00Z");
        let output = Command::new("git")
            .arg("-C")
            .arg(self.home())
            .args(["-c", "core.quotePath=false", "-c", "core.autocrlf=false"])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.user_home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("GIT_AUTHOR_NAME", "小王"), ("GIT_COMMITTER_NAME", "小王")])
            .envs([("GIT_AUTHOR_EMAIL", "w@x"), ("GIT_COMMITTER_EMAIL", "w@x")])
            .envs([("GIT_AUTHOR_DATE", &at), ("GIT_COMMITTER_DATE", &at)])
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Commits the sessions, agents and index as they are, on that day. Returns the commit.
    #[track_caller]
    pub fn commit_on(&self, day: u64, subject: &str) -> String {
        if !self.home().join(".git").exists() {
            self.git_on(day, &["init", "-q", "-b", "main"]);
        }
        self.git_on(day, &["add", "-A", "--", "sessions", "index.json"]);
        self.git_on(day, &["commit", "-q", "--allow-empty", "-m", subject]);
        self.git_on(day, &["rev-parse", "HEAD"]).trim().to_owned()
    }
}
