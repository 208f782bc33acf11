//! What the bytes of one file tell about what happened to it.
//!
//! A [`Probe`] is pushed the content in pieces of any size and holds none of it: a file of any length costs the same
//! small amount of memory, and a migration can feed it while it reads its copy back. Only files with a text name are
//! probed, and nothing inside folders that a package manager made.

use std::path::Path;

use serde::{Deserialize, Serialize};

mod document;
mod lines;
mod nuls;
mod scanner;
#[cfg(test)]
mod tests;

use document::Document;
use lines::Lines;
use nuls::Nuls;

/// So many NUL bytes in a row are damage: a block that was never written. Fewer may be somebody's data.
pub const SHORTEST_NUL_RUN: u64 = 16;

/// What is wrong with the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "defect", rename_all = "kebab-case")]
pub enum Defect {
    /// JSON that does not parse to its end.
    Torn {
        /// The byte at which reading had to stop; of a file of lines, where the first torn line begins.
        offset: u64,
        /// How many records are torn: 1, or the number of torn lines.
        records: u64,
        /// Whether something is merely missing at the end, rather than wrong in the middle.
        cut: bool,
        /// What is the case, for a person.
        detail: String,
    },
    /// NUL bytes where text was.
    NulRun {
        /// Where the first run begins.
        offset: u64,
        /// How many NUL bytes there are in all runs.
        length: u64,
        /// How many runs of at least [`SHORTEST_NUL_RUN`].
        runs: u64,
        /// Whether there is nothing else in the file.
        whole_file: bool,
    },
}

/// How strictly JSON is judged: what the agent itself writes must parse; elsewhere lies anything that a person or a tool
/// may call `.json`, comments and all, and only one that ends too early was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    Record,
    Anything,
}

#[derive(Debug)]
enum Json {
    None,
    Document(Document),
    Lines(Lines),
}

/// Takes the bytes of one file and says at the end what is wrong with them.
#[derive(Debug)]
pub struct Probe {
    nuls: Nuls,
    json: Json,
}

impl Probe {
    /// A probe for the file of that path relative to the home; `None` when its content tells nothing.
    pub fn for_file(rel: &Path) -> Option<Probe> {
        if super::is_left_alone(rel) {
            return None;
        }
        let extension = rel.extension()?.to_str()?.to_ascii_lowercase();
        let json = match extension.as_str() {
            "json" => Json::Document(Document::new(care_of(rel))),
            "jsonl" | "ndjson" => Json::Lines(Lines::new()),
            other if TEXT.binary_search(&other).is_ok() => Json::None,
            _ => return None,
        };
        Some(Probe {
            nuls: Nuls::default(),
            json,
        })
    }

    /// Takes the next `len` bytes: `data`, which is as long, or a hole.
    pub fn push(&mut self, data: Option<&[u8]>, len: u64) {
        match data {
            Some(data) => {
                self.nuls.push(data);
                match &mut self.json {
                    Json::None => {}
                    Json::Document(document) => document.push(data),
                    Json::Lines(lines) => lines.push(data),
                }
            }
            None => {
                self.nuls.push_hole(len);
                match &mut self.json {
                    Json::None => {}
                    Json::Document(document) => document.push_hole(len),
                    Json::Lines(lines) => lines.push_hole(len),
                }
            }
        }
    }

    /// The file ends: what is wrong with it, at most one defect of each kind.
    pub fn finish(self) -> Vec<Defect> {
        let nuls = self.nuls.finish();
        // Nothing can be said of the JSON that was there once.
        if let Some(Defect::NulRun {
            whole_file: true, ..
        }) = nuls
        {
            return nuls.into_iter().collect();
        }
        let torn = match self.json {
            Json::None => None,
            Json::Document(document) => document.finish(nuls.is_some()),
            Json::Lines(lines) => lines.finish(nuls.is_some()),
        };
        torn.into_iter().chain(nuls).collect()
    }
}

/// Names of text, sorted, beside those of JSON. Transcripts and sources are meant; formats that hold NULs by right are not.
const TEXT: [&str; 47] = [
    "bash",
    "c",
    "cc",
    "cfg",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "env",
    "go",
    "h",
    "hpp",
    "htm",
    "html",
    "ini",
    "java",
    "js",
    "jsx",
    "kt",
    "log",
    "lua",
    "markdown",
    "md",
    "mjs",
    "php",
    "pl",
    "properties",
    "py",
    "r",
    "rb",
    "rs",
    "rst",
    "scala",
    "sh",
    "sql",
    "svg",
    "swift",
    "tex",
    "toml",
    "ts",
    "tsv",
    "tsx",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// `session.json`, and everything in `context/` and `memory/`, is the agent's own.
fn care_of(rel: &Path) -> Care {
    let mut components = rel.iter();
    if components.next().is_none_or(|first| first != "sessions") || components.next().is_none() {
        return Care::Anything;
    }
    match components.next() {
        Some(third) if third == "context" || third == "memory" => Care::Record,
        Some(third) if third == "session.json" && components.next().is_none() => Care::Record,
        _ => Care::Anything,
    }
}
