//! `wbhome.toml`: the settings of a home.
//!
//! A mistyped key would silently mean its default, so an unknown one is an error that names the nearest known
//! one. The file that `init` writes is the documentation, and a test holds it to these types.

mod keys;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::Home;
use crate::base::{Error, Result, human};
use crate::disk;

pub use values::{Command, Compress, Every, OnFind, RelayMode};

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// History in git.
    pub git: Git,
    /// Packing finished sessions.
    pub archive: Archive,
    /// Cutting logs.
    pub rotate: Rotate,
    /// The cold stores.
    pub backup: Backup,
    /// Other devices.
    pub relay: Relay,
    /// What must not leave.
    pub secrets: Secrets,
    /// The agent application's own folder.
    pub state: State,
    /// The smoke test of a home.
    pub check: Check,
    /// The smoke test of a rehearsed restore.
    pub drill: Drill,
    /// What is run after the night.
    pub nightly: Nightly,
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$attr])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }
    };
}

section! {
    /// `[git]`
    Git {
        /// A repository outside the home.
        dir: Option<PathBuf> = None,
        /// Bytes above which a file is left to the backup.
        #[serde(deserialize_with = "values::size")]
        max_file: u64 = 10 << 20,
        /// Push after each commit.
        push: bool = false,
    }
}

section! {
    /// `[archive]`
    Archive {
        /// Compression, 1 to 19.
        #[serde(deserialize_with = "values::level")]
        level: i32 = 3,
        /// Rest after which `--idle` takes a session.
        #[serde(deserialize_with = "values::duration")]
        idle: Duration = values::days(30),
    }
}

section! {
    /// `[rotate]`
    Rotate {
        /// Globs, relative to the home.
        logs: Vec<String> = vec!["sessions/*/logs/*.log".into()],
        /// How often.
        every: Every = Every::Daily,
        /// Bytes above which a log is due at once.
        #[serde(deserialize_with = "values::some_size")]
        size: Option<u64> = None,
        /// Cut logs that are kept.
        #[serde(deserialize_with = "values::count")]
        keep: u32 = 7,
        /// How they are compressed.
        compress: Compress = Compress::Zstd,
        /// Whether the newest stays uncompressed.
        delay_compress: bool = true,
        /// Whether a missing log is no error.
        missing_ok: bool = true,
        /// Whether an empty log is left alone.
        not_empty: bool = true,
        /// Age after which a cut log goes.
        #[serde(deserialize_with = "values::some_duration")]
        max_age: Option<Duration> = None,
        /// Bytes that all cut logs of a session may take.
        #[serde(deserialize_with = "values::some_size")]
        max_total: Option<u64> = None,
    }
}

section! {
    /// `[backup]`
    Backup {
        /// `[[backup.store]]`
        store: Vec<Store> = Vec::new(),
        /// How long snapshots are kept.
        #[serde(deserialize_with = "values::duration")]
        keep: Duration = values::days(14),
        /// How long the last pack of a removed session is kept.
        #[serde(deserialize_with = "values::duration")]
        keep_deleted: Duration = values::days(90),
        /// How often the agent application's settings are packed.
        #[serde(deserialize_with = "values::duration")]
        settings_every: Duration = values::days(7),
    }
}

/// A cold store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Its folder.
    pub dir: PathBuf,
}

section! {
    /// `[relay]`
    Relay {
        /// The folder that a sync client carries.
        dir: Option<PathBuf> = None,
        /// How sessions get there.
        mode: Option<RelayMode> = None,
        /// Whether logs go too.
        logs: bool = false,
    }
}

section! {
    /// `[secrets]`
    Secrets {
        /// The user's own rules, in the format of gitleaks.
        rules: Option<PathBuf> = None,
        /// What a finding means.
        on_find: OnFind = OnFind::Refuse,
        /// Digests of harmless findings.
        allow: Vec<String> = Vec::new(),
    }
}

section! {
    /// `[state]`
    State {
        /// The folder, when it is not the usual one.
        dir: Option<PathBuf> = None,
        /// Globs of what is saved besides the usual.
        include: Vec<String> = Vec::new(),
        /// Globs of what is not.
        exclude: Vec<String> = Vec::new(),
    }
}

section! {
    /// `[check]`
    Check {
        /// Must exit 0.
        command: Option<Command> = None,
    }
}

section! {
    /// `[drill]`
    Drill {
        /// Must exit 0.
        command: Option<Command> = None,
    }
}

section! {
    /// `[nightly]`
    Nightly {
        /// Run after a night in which all was well.
        on_success: Option<Command> = None,
        /// Run after any other.
        on_failure: Option<Command> = None,
    }
}

impl Config {
    /// Reads the home's settings; a home without the file has the defaults.
    ///
    /// # Errors
    /// A file that can not be read, or a line that makes no sense, with its number.
    pub fn load(home: &Home) -> Result<Config> {
        let path = home.config_file();
        let Some(content) = disk::read_small(&path, 1 << 20)? else {
            return Ok(Config::default());
        };
        let text = String::from_utf8(content).map_err(|e| {
            let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()]
                .iter()
                .filter(|b| **b == b'\n')
                .count();
            Error::failed(format!("line {line} is not UTF-8 in")).at(&path)
        })?;
        Config::parse(&text).map_err(|wrong| wrong.into_error(&path))
    }

    /// Understands the text of a `wbhome.toml`.
    ///
    /// # Errors
    /// What is wrong, and on which line.
    pub fn parse(text: &str) -> Result<Config, Wrong> {
        keys::check(text)?;
        toml::from_str(text).map_err(|e| Wrong::of(text, &e))
    }
}

/// What is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
    /// The known key that was probably meant.
    pub nearest: Option<String>,
}

impl Wrong {
    fn of(text: &str, error: &toml::de::Error) -> Wrong {
        let at = error.span().map_or(0, |span| span.start);
        Wrong {
            line: line_of(text, at),
            why: error.message().trim().replace('\n', ", "),
            nearest: None,
        }
    }

    fn into_error(self, path: &std::path::Path) -> Error {
        let why = human::escape(&self.why);
        let error = Error::failed(format!("line {}: {why}, in", self.line)).at(path);
        match self.nearest {
            Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
            None => error,
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|b| *b == b'\n').count()
}

#[cfg(test)]
mod tests;
