//! What a rewriter reports: plain values, so that a caller can count, list and serialise them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a reference is written where it stands. The replacement is written the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spelling {
    /// Byte for byte as a person types it, quoted or not.
    Plain,
    /// With the escapes of one layer of JSON: `\/`, `\uXXXX`.
    Json,
    /// With doubled escapes: JSON inside a JSON string.
    JsonNested,
    /// Percent-encoded, or directly after a scheme such as `file://`.
    Url,
    /// With a shell's backslashes: `Cloud\ Drive`.
    Shell,
    /// From the user's home on: `~/…`, `$HOME/…`, `${HOME}/…`.
    Home,
    /// A drive path, `C:\…`, `C:/…`, `\\?\C:\…`, or how Unix tools on Windows see it, `/c/…`, `/mnt/c/…`.
    Windows,
    /// The folder name that agents make of a working directory: see [`slug`](super::slug).
    Slug,
}

impl Spelling {
    /// The name used in reports and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Spelling::Plain => "plain",
            Spelling::Json => "json",
            Spelling::JsonNested => "json-nested",
            Spelling::Url => "url",
            Spelling::Shell => "shell",
            Spelling::Home => "home",
            Spelling::Windows => "windows",
            Spelling::Slug => "slug",
        }
    }
}

impl std::fmt::Display for Spelling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One reference that was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Where it begins in the source, in bytes (also in UTF-16).
    pub offset: u64,
    /// How many bytes of the source it takes.
    pub len: u32,
    /// Which of [`Rewriter::mappings`](super::Rewriter::mappings) it belongs to.
    pub mapping: u16,
    /// How it is written.
    pub spelling: Spelling,
}

/// A place that may be a reference or another path: left alone, for a person to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubtful {
    /// Where it begins in the source, in bytes (also in UTF-16).
    pub offset: u64,
    /// How many bytes of the source it takes.
    pub len: u32,
    /// Which of [`Rewriter::mappings`](super::Rewriter::mappings) it would belong to.
    pub mapping: u16,
    /// How it is written.
    pub spelling: Spelling,
}

/// Everything found in a text, or since the last [`Stream::drain`](super::Stream::drain).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What was rewritten, in the order of the source.
    pub references: Vec<Reference>,
    /// What was left alone because nobody can know, in the order of the source.
    pub doubtful: Vec<Doubtful>,
    /// Other roots that hold a session known here: prefix as people read it → how often.
    pub foreign: BTreeMap<String, u64>,
    /// References seen and left alone because only fields were to be changed.
    pub left: u64,
}

impl Found {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.references.is_empty()
            && self.doubtful.is_empty()
            && self.foreign.is_empty()
            && self.left == 0
    }

    /// Adds what a later part of the same source held.
    pub fn merge(&mut self, later: Found) {
        self.references.extend(later.references);
        self.doubtful.extend(later.doubtful);
        for (prefix, count) in later.foreign {
            *self.foreign.entry(prefix).or_default() += count;
        }
        self.left += later.left;
    }
}
