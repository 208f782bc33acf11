//! Commits of a home, made by git itself.

use std::process::Command;

use super::Place;

impl Place {
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
    pub fn committed(&self, day: u64, subject: &str) -> String {
        if !self.home().join(".git").exists() {
            self.git_on(day, &["init", "-q", "-b", "main"]);
        }
        self.git_on(day, &["add", "-A", "--", "sessions", "index.json"]);
        self.git_on(day, &["commit", "-q", "--allow-empty", "-m", subject]);
        self.git_on(day, &["rev-parse", "HEAD"]).trim().to_owned()
    }
}
