//! The record of a migration, `.wbhome/migrations/<stamp>/`: what was asked (`plan.json`), what became of
//! each entry (`files.jsonl`), every reference that was changed (`references.jsonl`), what came of it
//! (`outcome.json`).
//!
//! The two lists grow while files are copied. After a kill they say what need not be copied again: each line
//! is appended after its file has its final name, and what a line says is compared with the disk before it
//! is believed. All of it can be read with `jq`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::plan::{Settings, Totals};
use crate::base::{Context, Error, Result, wire};
use crate::disk::{self, Digest, FileKind, Lines, Meta, Stamp};
use crate::home::{Home, RelPath};
use crate::paths::Spelling;

/// What became of a source entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The same bytes.
    Copied,
    /// The same bytes but for references.
    Rewritten,
    /// A symbolic link, or a further name of a file.
    Linked,
    /// A folder.
    Folder,
}

/// A line of `files.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// What became of it.
    pub class: Class,
    /// The state of the source when it was read.
    pub source: SourceState,
    /// Length of the copy.
    pub size: u64,
    /// BLAKE3 of the copy, in hex; empty for what is no file of its own.
    pub digest: String,
    /// References changed: mapping, spelling, how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<(u16, Spelling, u64)>,
    /// References that may be prose or another path, left alone: mapping, how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<(u16, u64)>,
    /// References inside binary data; left alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub binary: u64,
    /// References outside the fields that identify a place; left alone under `--fields-only`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u64,
    /// Other homes that it mentions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub foreign: BTreeMap<String, u64>,
    /// It is a SQLite database.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub database: bool,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What tells one state of a source file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceState {
    ino: u64,
    size: u64,
    mode: u32,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

impl From<&Meta> for SourceState {
    fn from(meta: &Meta) -> Self {
        let pair = |stamp: Stamp| (stamp.seconds, stamp.nanos);
        SourceState {
            ino: meta.ino,
            size: meta.size,
            mode: meta.mode,
            mtime: pair(meta.mtime),
            ctime: pair(meta.ctime),
        }
    }
}

impl SourceState {
    /// Its length.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether something looks like the same content, on a filesystem that may count its files anew each time that it is
    /// mounted: by its length, and of a file by its time.
    pub(super) fn resembles(&self, meta: &Meta) -> bool {
        self.size == meta.size
            && (meta.kind != FileKind::File || self.mtime == (meta.mtime.seconds, meta.mtime.nanos))
    }
}

impl Done {
    /// A line for a file, before its references are counted.
    pub fn new(path: &Path, class: Class, source: &Meta, size: u64, digest: Digest) -> Self {
        let (path, path_bytes) = wire::path_fields(path);
        Done {
            path,
            path_bytes,
            class,
            source: source.into(),
            size,
            digest: digest.to_hex().to_string(),
            references: Vec::new(),
            doubtful: Vec::new(),
            binary: 0,
            left: 0,
            foreign: BTreeMap::new(),
            database: false,
        }
    }

    /// A line for an entry that is no file of its own: a link, a further name, a folder.
    pub fn other(path: &Path, class: Class, source: &Meta) -> Self {
        let mut done = Done::new(path, class, source, 0, Digest::from_bytes([0; 32]));
        done.digest.clear();
        done
    }

    /// Whether it is a file that was copied, rewritten or not.
    pub fn is_copy(&self) -> bool {
        matches!(self.class, Class::Copied | Class::Rewritten)
    }

    /// Relative to the source and to the home.
    pub fn path(&self) -> PathBuf {
        wire::path_from(self.path.clone(), self.path_bytes.as_deref())
    }

    /// What must be read back.
    pub fn digest(&self) -> Option<Digest> {
        Digest::from_hex(&self.digest).ok()
    }
}

/// `plan.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    version: String,
    started: jiff::Timestamp,
    settings: Settings,
    totals: Totals,
}

/// The record of one migration.
#[derive(Debug)]
pub struct Record {
    folder: PathBuf,
    head: Head,
    files: HashMap<PathBuf, Done>,
    finished: bool,
}

/// Where the records are, below a home's own folder.
const FOLDER: &str = "migrations";
const PLAN: &str = "plan.json";
const FILES: &str = "files.jsonl";
const REFERENCES: &str = "references.jsonl";
const OUTCOME: &str = "outcome.json";

impl Record {
    /// Begins a record.
    pub(super) fn begin(
        own: &Path,
        settings: &Settings,
        totals: Totals,
        ctx: &Context,
    ) -> Result<Record> {
        let folder = own.join(FOLDER).join(ctx.clock.stamp());
        let head = Head {
            schema: "wbhome/migration/1".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            started: ctx.clock.now(),
            settings: settings.clone(),
            totals,
        };
        disk::create_private_folder(&folder)?;
        disk::write_new(&folder.join(PLAN), &pretty(&head)?, 0o600)?;
        Ok(Record {
            folder,
            head,
            files: HashMap::new(),
            finished: false,
        })
    }

    /// The newest record of a home; `None` when there is none.
    ///
    /// # Errors
    /// When it can not be read, or does not parse.
    pub fn newest(own: &Path) -> Result<Option<Record>> {
        let all = own.join(FOLDER);
        for (name, _) in disk::read_dir_names(&all)?.into_iter().rev() {
            let folder = all.join(name);
            let path = folder.join(PLAN);
            let Some(content) = disk::read_own(&path)? else {
                continue;
            };
            let head: Head = serde_json::from_slice(&content)
                .map_err(|e| Error::io("can not understand the migration record", &path, e))?;
            let finished = disk::exists(&folder.join(OUTCOME));
            let mut record = Record {
                folder,
                head,
                files: HashMap::new(),
                finished,
            };
            record.read_files()?;
            return Ok(Some(record));
        }
        Ok(None)
    }

    fn read_files(&mut self) -> Result<()> {
        let files = &mut self.files;
        Lines::read(&self.folder.join(FILES), |line| {
            // A line that a kill cut short is a file that is copied again.
            if let Ok(done) = serde_json::from_slice::<Done>(line) {
                files.insert(done.path(), done);
            }
        })
    }

    /// Reads again what has become of the files, after more was written.
    pub(super) fn reread(&mut self) -> Result<()> {
        self.read_files()
    }

    /// What was asked for.
    pub fn settings(&self) -> &Settings {
        &self.head.settings
    }

    /// When it was begun.
    pub fn started(&self) -> jiff::Timestamp {
        self.head.started
    }

    /// Counts of the source at that time.
    pub fn totals(&self) -> Totals {
        self.head.totals
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where it is, below the home.
    ///
    /// # Errors
    /// A record that is not this home's.
    pub fn rel(&self, home: &Home) -> Result<RelPath> {
        RelPath::new(
            self.folder
                .strip_prefix(home.root())
                .unwrap_or(&self.folder),
        )
    }

    /// Whether it came to its end.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// What became of an entry; `None` when nothing is recorded.
    pub fn file(&self, path: &Path) -> Option<&Done> {
        self.files.get(path)
    }

    /// What became of all entries so far.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &Done)> {
        self.files.iter()
    }

    /// What came of it; `None` when it was stopped.
    pub fn outcome(&self) -> Result<Option<Outcome>> {
        let path = self.folder.join(OUTCOME);
        let Some(content) = disk::read_own(&path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&content)
            .map(Some)
            .map_err(|e| Error::io("can not understand the migration record", &path, e))
    }

    /// Writes what came of it: from now on the migration is finished.
    pub(super) fn finish(&mut self, outcome: &Outcome) -> Result<()> {
        disk::write_new(&self.folder.join(OUTCOME), &pretty(outcome)?, 0o600)?;
        self.finished = true;
        Ok(())
    }

    /// Takes a finished migration up again: what came of it then is kept under another name.
    pub(super) fn reopen(&mut self, ctx: &Context) -> Result<()> {
        let former = format!("outcome-{}.json", ctx.clock.stamp());
        disk::rename_no_replace(&self.folder.join(OUTCOME), &self.folder.join(former))?;
        self.finished = false;
        Ok(())
    }

    /// Replaces what came of it.
    pub(super) fn amend(&mut self, outcome: &Outcome) -> Result<()> {
        let path = self.folder.join(OUTCOME);
        let former = disk::read_own(&path)?;
        disk::replace(&path, former.as_deref(), &pretty(outcome)?, 0o600).map(|_| ())
    }

    pub(super) fn writer(&self) -> Result<Writer> {
        let open = |name| {
            let path = self.folder.join(name);
            Lines::open(&path)
                .map_err(|e| super::transfer::write_error("the migration record", &path, e))
        };
        Ok(Writer {
            files: open(FILES)?,
            references: open(REFERENCES)?,
            folder: self.folder.clone(),
        })
    }
}

fn pretty(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|e| Error::failed("can not write the migration record").because(e))?;
    text.push(b'\n');
    Ok(text)
}

/// The two lists, open for appending.
#[derive(Debug)]
pub(super) struct Writer {
    files: Lines,
    references: Lines,
    folder: PathBuf,
}

impl Writer {
    /// Appends lines: first the references, so that a file that is listed has them all.
    pub fn append(&mut self, files: &[u8], references: &[u8]) -> Result<()> {
        self.references
            .append(references)
            .and_then(|()| self.files.append(files))
            .map_err(|e| super::transfer::write_error("the migration record", &self.folder, e))
    }

    pub fn sync(&self) -> Result<()> {
        self.references
            .sync()
            .and_then(|()| self.files.sync())
            .map_err(|e| super::transfer::write_error("the migration record", &self.folder, e))
    }
}
