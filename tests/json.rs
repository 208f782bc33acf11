//! Every document that `--json` prints, declared once more and strictly: a field that appears, disappears or changes its
//! type fails here, and so does one that `docs/json.md` does not describe.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it lays out folders, and says what does not fit"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::{Map, Value};
use support::corpus::Corpus;
use support::relay::{DESK, Devices, LAPTOP, SHARED};
use support::{Place, Ran};
use wbhome::check::FindingKind;

/// Always there, and sometimes null. (`Option` is what may be left out.)
struct Null<T>(Option<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Null<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Null(None)),
            value => serde_json::from_value(value)
                .map(|v| Null(Some(v)))
                .map_err(D::Error::custom),
        }
    }
}

/// Never null, but may be left out.
type Absent<T> = Option<T>;

/// `source`: text, or the bytes of what is none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Exact {
    Text(String),
    Bytes(ExactBytes),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExactBytes {
    bytes: String,
}

/// Declares documents and their parts: the heading of each in `docs/json.md`, and its fields.
macro_rules! documents {
    ($($heading:literal $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            #[allow(dead_code, reason = "that a field is there, and of its type, is the test")]
            struct $name { $($field: $type,)* }
        )*
        const DECLARED: &[(&str, &[&str])] = &[$(($heading, &[$(stringify!($field)),*])),*];
    };
}

documents! {
    "wbhome/error/1" Failure { schema: String, kind: String, message: String, hints: Vec<String>, exit: u8, }
    "wbhome/init/1" Init {
        schema: String, path: String, path_bytes: Absent<String>, id: String, written: Vec<String>, adopted: bool,
        tightened: Null<u32>, repository: Repository,
    }
    "repository" Repository { path: String, path_bytes: Absent<String>, adopted: bool, advice: Vec<String>, }
    "wbhome/init-plan/1" InitPlan {
        schema: String, path: String, path_bytes: Absent<String>, missing: Vec<String>, adopts: bool,
        tightens: Null<u32>, repository: Null<Beginning>,
    }
    "beginning" Beginning { path: String, path_bytes: Absent<String>, exists: bool, }
    "wbhome/commit/1" Commit {
        schema: String, commit: Null<Made>, subject: Null<String>, sessions: Vec<SessionChange>, files: Counted,
        held: u64, left_out: Vec<LeftOut>, nested: Vec<Located>, unread: Vec<Unread>,
        consolidated: Null<Consolidated>, not_consolidated: Null<String>, push: Null<Push>,
    }
    "push" Push {
        state: String, remote: Null<String>, branch: Null<String>, commits: u64, files: u64, findings: Vec<Leak>,
        allowed: u64, why: Null<String>, hints: Vec<String>,
    }
    "leak" Leak {
        part: String, path: Absent<String>, path_bytes: Absent<String>, commit: String, rule: String,
        description: String, line: u64, column: u64, shown: String, digest: String,
    }
    "made" Made { id: String, subject: String, branch: String, objects: u64, bytes: u64, }
    "session change" SessionChange {
        id: String, turns: Counted, memories: Counted, checkpoints: Counted, artifacts: Counted, others: Counted,
    }
    "counted" Counted { added: u64, changed: u64, removed: u64, }
    "left out" LeftOut { path: String, path_bytes: Absent<String>, why: String, bytes: u64, }
    "located" Located { path: String, path_bytes: Absent<String>, }
    "unread" Unread { path: String, path_bytes: Absent<String>, why: String, }
    "consolidated" Consolidated { by: String, before: u64, after: u64, }
    "wbhome/new/1" New {
        schema: String, id: String, path: String, path_bytes: Absent<String>, entry: Map<String, Value>,
        warnings: Vec<String>,
    }
    "wbhome/new-plan/1" NewPlan {
        schema: String, id: String, path: String, path_bytes: Absent<String>, entry: Map<String, Value>,
        warnings: Vec<String>,
    }
    "wbhome/ls/1" Ls { schema: String, sessions: Vec<Session>, total: u64, counted: Option<String>, stale: bool, strangers: Vec<Location>, }
    "session" Session {
        id: String, status: String, title: Null<String>, agent: Null<String>, project: Null<String>,
        tags: Vec<String>, sync_tag: Null<String>, created: Null<Timestamp>, updated: Null<Timestamp>,
        holds: Null<Holds>, archive: Null<Map<String, Value>>, running: Null<Running>,
        held_by: Null<HeldBy>,
    }
    "held by" HeldBy { device: String, name: String, since: Timestamp, ours: bool, }
    "running" Running {
        pid: u32, kind: String, since: Null<Timestamp>, heartbeat: Null<Timestamp>, cwd: Null<String>,
    }
    "holds" Holds {
        turns: u64, files: u64, bytes: u64, context: Tally, memory: Tally, artifacts: Tally, logs: Tally,
        other: Tally, unreadable: u64,
    }
    "tally" Tally { files: u64, bytes: u64, }
    "place" Location { path: String, path_bytes: Absent<String>, }
    "wbhome/show/1" Show {
        schema: String, id: String, status: String, indexed: bool, title: Null<String>, agent: Null<String>,
        project: Null<String>, tags: Vec<String>, sync_tag: Null<String>, session_id: Null<String>,
        created: Null<Timestamp>, updated: Null<Timestamp>, running: Null<Running>, held_by: Null<HeldBy>, from: String, path: String,
        path_bytes: Absent<String>, holds: Holds, last_turn: Null<String>, turns: Vec<LastTurn>,
        largest: Vec<Thing>, checkpoint: Vec<String>, archive: Null<ShownArchive>, warnings: Vec<String>,
        commit: Null<Told>, backups: Vec<BackupOfSession>,
    }
    "last turn" LastTurn { file: String, at: Null<String>, said: Vec<Said>, }
    "said" Said { role: String, text: String, }
    "backup of a session" BackupOfSession { store: Location, held: Null<HeldThen>, why: Null<String>, }
    "held then" HeldThen {
        at: Timestamp, standing: Null<String>, packed: Null<Timestamp>, complete: bool,
    }
    "archive of a session" ShownArchive {
        file: String, bytes: u64, form: String, damage: Null<String>, made: Null<Timestamp>, flaws: u64,
        blake3: Null<String>,
    }
    "wbhome/show-path/1" ShowPath {
        schema: String, id: String, from: String, path: String, path_bytes: Absent<String>, kind: String, bytes: u64,
        mode: Null<u32>, modified: Null<Timestamp>, target: Null<Location>, names: Vec<Thing>,
    }
    "thing" Thing {
        path: String, path_bytes: Absent<String>, kind: String, bytes: u64, mode: Null<u32>,
        modified: Null<Timestamp>, target: Null<Location>,
    }
    "wbhome/search/1" Hit {
        schema: String, session: String, archived: bool, path: String, path_bytes: Absent<String>, turn: Absent<u64>,
        line: u64, pointer: Null<String>, within: Null<u64>, role: Null<String>, text: String, cut: bool,
        matches: Vec<(u64, u64)>, before: Vec<String>, after: Vec<String>,
    }
    "wbhome/search-file/1" HitFile {
        schema: String, session: String, archived: bool, path: String, path_bytes: Absent<String>,
    }
    "wbhome/search-count/1" HitCount { schema: String, session: String, archived: bool, lines: u64, files: u64, }
    "wbhome/path/1" Found { schema: String, id: String, path: String, path_bytes: Absent<String>, exists: bool, }
    "wbhome/label/1" Label {
        schema: String, sessions: Vec<Labelled>, changed: u64, unchanged: u64, views: Views,
    }
    "wbhome/label-plan/1" LabelPlan { schema: String, sessions: Vec<Labelled>, }
    "labelled" Labelled { id: String, before: Labels, after: Labels, added: bool, }
    "labels" Labels { title: Null<String>, project: Null<String>, tags: Vec<String>, sync_tag: Null<String>, }
    "views" Views { made: Vec<String>, removed: Vec<String>, foreign: Vec<String>, unusable: Vec<String>, }
    "wbhome/index/1" Index {
        schema: String, added: Vec<String>, renamed: Vec<Renamed>, returned: Vec<String>, archived: Vec<String>,
        missing: Vec<String>, completed: Vec<String>, unchanged: u64, entries: u64, problems: Vec<Problem>,
        not_entries: u64, views: Views, former_index: Null<String>, strangers: Vec<Location>,
    }
    "wbhome/index-plan/1" IndexPlan {
        schema: String, rebuild: bool, added: Vec<String>, renamed: Vec<Renamed>, returned: Vec<String>,
        archived: Vec<String>, missing: Vec<String>, completed: Vec<String>, unchanged: u64, entries: u64,
        problems: Vec<Problem>, not_entries: u64,
    }
    "renamed" Renamed { from: String, to: String, }
    "problem" Problem { id: String, why: String, }
    "wbhome/check/1" Check {
        schema: String, sessions: u64, files: u64, bytes: u64, probed: u64, archives: Null<ArchivesRead>,
        counts: BTreeMap<String, u64>, findings: Vec<Finding>,
    }
    "archives read" ArchivesRead { archives: u64, bytes: u64, members: u64, }
    "wbhome/finding/1" Finding {
        schema: Absent<String>, kind: String, path: String, path_bytes: Absent<String>, session: Absent<String>,
        detail: String, of: Absent<String>, of_bytes: Absent<String>, relation: Absent<String>, turn: Absent<u32>,
        count: Absent<u64>, command: Absent<String>,
    }
    "wbhome/check-repair/1" CheckRepair {
        schema: String, act: Null<String>, mended: Vec<Mended>, left: Vec<LeftAlone>, index: Null<IndexChanges>,
        counts: BTreeMap<String, u64>, findings: Vec<Finding>,
    }
    "wbhome/check-repair-plan/1" CheckRepairPlan {
        schema: String, mended: Vec<Mended>, left: Vec<LeftAlone>, index: Null<IndexChanges>,
    }
    "mended" Mended {
        what: String, path: String, path_bytes: Absent<String>, of: Null<Location>, relation: Null<String>,
        detail: String,
    }
    "left alone" LeftAlone {
        path: String, path_bytes: Absent<String>, of: Null<Location>, why: String, failed: bool,
    }
    "index changes" IndexChanges {
        added: Vec<String>, renamed: Vec<Renamed>, returned: Vec<String>, archived: Vec<String>,
        missing: Vec<String>, completed: Vec<String>, unchanged: u64, entries: u64, problems: Vec<Problem>,
        not_entries: u64,
    }
    "wbhome/empty-trash/1" EmptyTrash {
        schema: String, acts: Vec<Emptied>, files: u64, bytes: u64, kept: u64,
    }
    "emptied" Emptied { act: String, at: Timestamp, files: u64, bytes: u64, }
    "wbhome/rm/1" Rm { schema: String, sessions: Vec<Removed>, act: Null<String>, left: Vec<String>, }
    "wbhome/rm-plan/1" RmPlan { schema: String, sessions: Vec<Removed>, }
    "removed" Removed {
        id: String, status: String, folder: bool, archive: bool, files: u64, bytes: u64,
    }
    "wbhome/trash/1" Trash { schema: String, acts: Vec<Act>, files: u64, bytes: u64, }
    "act" Act {
        act: String, at: Null<Timestamp>, why: String, command: Null<String>, files: u64, bytes: u64,
        items: Vec<ActItem>,
    }
    "act item" ActItem { path: String, path_bytes: Absent<String>, what: String, why: Null<String>, }
    "wbhome/restore/1" Restore {
        schema: String, act: String, back: Vec<Back>, away: Vec<Location>, modes: Vec<ModeBack>,
        sessions: Vec<String>, kept: Null<String>, left: Vec<String>,
    }
    "wbhome/restore-plan/1" RestorePlan {
        schema: String, act: String, back: Vec<Back>, away: Vec<Location>, modes: Vec<ModeBack>,
        sessions: Vec<String>, left: Vec<String>,
    }
    "back" Back { path: String, path_bytes: Absent<String>, replaces: bool, }
    "mode back" ModeBack { path: String, path_bytes: Absent<String>, mode: u32, }
    "wbhome/restore-twin/1" RestoreTwin {
        schema: String, path: String, path_bytes: Absent<String>, twin: Location, replaces: bool,
        kept: Null<String>, left: Null<String>,
    }
    "wbhome/restore-twin-plan/1" RestoreTwinPlan {
        schema: String, path: String, path_bytes: Absent<String>, twin: Location, replaces: bool,
    }
    "wbhome/restore-git/1" RestoreGit {
        schema: String, session: String, within: Null<String>, from: Told, was: Null<String>, files: Vec<GitBack>,
        same: u64, stays: u64, indexed: bool, left: Vec<String>, kept: Null<String>,
    }
    "wbhome/restore-git-plan/1" RestoreGitPlan {
        schema: String, session: String, within: Null<String>, from: Told, was: Null<String>, files: Vec<GitBack>,
        same: u64, stays: u64, indexed: bool, left: Vec<String>,
    }
    "git back" GitBack { path: String, path_bytes: Absent<String>, replaces: bool, version: Version, }
    "wbhome/restore-packed/1" RestorePacked {
        schema: String, session: String, within: Null<String>, was: Null<String>, store: Null<Exact>,
        snapshot: Null<Timestamp>, at: Timestamp, as_archive: bool, to: Exact, replaces: bool, newer: Vec<Located>,
        skipped: Vec<String>, from: Timestamp, files: u64, bytes: u64, not_used: Vec<UselessPack>,
        partial: Vec<String>, missing: Vec<Gap>, kept: Null<String>, left: Vec<String>,
    }
    "wbhome/restore-packed-plan/1" RestorePackedPlan {
        schema: String, session: String, within: Null<String>, was: Null<String>, store: Null<Exact>,
        snapshot: Null<Timestamp>, at: Timestamp, as_archive: bool, to: Exact, replaces: bool, newer: Vec<Located>,
        skipped: Vec<String>,
    }
    "useless pack" UselessPack {
        file: String, at: Timestamp, why: String,
    }
    "gap" Gap {
        path: String, path_bytes: Absent<String>, why: String,
    }
    "wbhome/restore-all/1" RestoreAll {
        schema: String, store: Exact, to: Exact, snapshot: Timestamp, home: String, was: Exact, host: String,
        moved: bool, kinds: Vec<Recovered>, lost: Vec<LostThing>, older: Vec<OlderThing>,
        not_used: Vec<NotUsedPack>, missing: Vec<MissingInThing>, restless: Vec<InThing>, were_missing: Vec<String>,
        index_made_anew: bool, git: Null<FromGit>, state: Null<StateBack>, state_left: u64, warnings: Vec<String>,
        seconds: f64, continued: bool,
    }
    "wbhome/restore-all-plan/1" RestoreAllPlan {
        schema: String, store: Exact, to: Exact, snapshot: Timestamp, home: String, was: Exact, host: String,
        kinds: Vec<Recovered>, were_missing: Vec<String>, removed: Vec<String>, git: Null<Told>, needs: u64,
        room: u64, begun: bool, skipped: Vec<String>,
    }
    "recovered" Recovered {
        kind: String, things: u64, archives: u64, files: u64, bytes: u64,
    }
    "lost thing" LostThing {
        kind: String, thing: String, why: String,
    }
    "older thing" OlderThing {
        kind: String, thing: String, at: Timestamp, newest: Timestamp, file: String, why: String,
    }
    "pack not used" NotUsedPack {
        thing: String, file: String, at: Timestamp, why: String,
    }
    "missing in thing" MissingInThing {
        thing: String, path: String, path_bytes: Absent<String>, why: String, vanished: bool,
    }
    "in thing" InThing {
        thing: String, path: String, path_bytes: Absent<String>,
    }
    "from git" FromGit {
        repository: Exact, tip: Told, files: Vec<NewerFile>, removed: Vec<Located>, left: Vec<LeftFile>,
        text_only: Vec<String>, history: String,
    }
    "newer file" NewerFile {
        path: String, path_bytes: Absent<String>, at: Timestamp, replaced: bool,
    }
    "left file" LeftFile {
        path: String, path_bytes: Absent<String>, why: String, in_archive: bool,
    }
    "state back" StateBack {
        to: Exact, was: Vec<Exact>, transcripts: u64, files: u64, bytes: u64,
    }
    "wbhome/history/1" History {
        schema: String, session: String, within: Null<String>, commits: Vec<Touched>, total: u64,
    }
    "told commit" Told { commit: String, short: String, at: Timestamp, author: String, subject: String, }
    "touched" Touched {
        commit: String, short: String, at: Timestamp, author: String, subject: String, session: String,
        was: Null<String>, changes: Vec<FileChange>,
    }
    "file change" FileChange {
        path: String, path_bytes: Absent<String>, change: String, before: Null<Version>, after: Null<Version>,
    }
    "version" Version { blob: String, bytes: u64, kind: String, }
    "wbhome/diff/1" Diff {
        schema: String, session: String, within: Null<String>, from: Told, to: Null<Told>, was: Null<String>,
        files: Vec<Differing>, unreadable: Vec<UnreadFile>,
    }
    "differing" Differing {
        path: String, path_bytes: Absent<String>, change: String, before: Null<Version>, after: Null<Version>,
        form: String, note: Null<String>, hunks: Vec<Hunk>,
    }
    "hunk" Hunk {
        heading: Null<String>, old_start: u32, old_lines: u32, new_start: u32, new_lines: u32, lines: Vec<DiffLine>,
    }
    "diff line" DiffLine { kind: String, text: String, unended: bool, }
    "unread file" UnreadFile { path: String, path_bytes: Absent<String>, why: String, }
    "wbhome/drill/1" Drill {
        schema: String, at: Timestamp, home: Exact, store: Exact, snapshot: Timestamp, repository: Null<DrillRepository>,
        recovered: bool, kinds: Vec<OfKind>, lost: Vec<WouldBeLost>, older: Vec<OlderPack>, missing: Vec<NotBack>,
        wrong: Vec<WrongFile>, then: Vec<AsItWas>, index_changes: u64, findings: Vec<Finding>,
        history: Vec<TornHistory>, databases: u64, unsound: Vec<WrongFile>, command: Null<DrillCommand>,
        blind_spots: Vec<BlindSpot>, rpo_seconds: Null<u64>, rto_seconds: f64, files: u64, bytes: u64,
        kept: Null<Exact>, warnings: Vec<String>,
    }
    "drill repository" DrillRepository {
        path: String, path_bytes: Absent<String>, in_home: bool, tip: Told, newer_files: u64,
    }
    "kind of data" OfKind {
        data: String, things: u64, as_now: u64, as_then: u64, as_of: Null<Timestamp>, newer_files: u64, lost: u64,
    }
    "would be lost" WouldBeLost { data: String, thing: String, why: String, }
    "older pack" OlderPack {
        kind: String, thing: String, at: Timestamp, newest: Timestamp, file: String, why: String,
    }
    "not back" NotBack { thing: String, path: String, path_bytes: Absent<String>, why: String, vanished: bool, }
    "wrong file" WrongFile { thing: String, path: String, path_bytes: Absent<String>, why: String, }
    "as it was" AsItWas {
        data: String, thing: String, as_of: Timestamp, newer_files: u64, path: String, path_bytes: Absent<String>,
    }
    "torn history" TornHistory { path: String, path_bytes: Absent<String>, what: String, }
    "drill command" DrillCommand { command: String, exit: Null<i32>, }
    "blind spot" BlindSpot { path: String, path_bytes: Absent<String>, files: u64, bytes: u64, why: String, }
    "wbhome/drill-plan/1" DrillPlan {
        schema: String, home: Exact, store: Exact, snapshot: Timestamp, repository: Null<Exact>, runs_command: bool,
        needs: u64, room: u64, warnings: Vec<String>,
    }
    "wbhome/rotate/1" Rotate {
        schema: String, cut: Vec<CutLog>, left: Vec<LogLeft>, failed: Vec<FailedLog>, resting: u64, seen: u64,
        compressed: Vec<CompressedLog>, removed: Vec<RemovedLog>, forgotten: Null<u64>, interrupted: bool,
    }
    "cut log" CutLog {
        path: String, path_bytes: Absent<String>, session: Null<String>, due: String, how: String, lossless: bool,
        rotated: Exact, bytes: u64, writers: Vec<PlainWriter>,
    }
    "plain writer" PlainWriter { pid: u32, program: String, }
    "log left alone" LogLeft {
        path: String, path_bytes: Absent<String>, session: Null<String>, reason: String, why: String,
        hints: Vec<String>, writers: Vec<PlainWriter>,
    }
    "failed log" FailedLog { path: String, path_bytes: Absent<String>, message: String, hints: Vec<String>, }
    "compressed log" CompressedLog { path: String, path_bytes: Absent<String>, from: u64, bytes: u64, }
    "removed log" RemovedLog { path: String, path_bytes: Absent<String>, bytes: u64, beyond: String, }
    "wbhome/rotate-plan/1" RotatePlan {
        schema: String, logs: Vec<LogToLookAt>, left: Vec<LogLeft>, failed: Vec<FailedLog>, removed: Vec<RemovedLog>,
        compressed: Vec<Location>, forgotten: Null<u64>,
    }
    "log to look at" LogToLookAt {
        path: String, path_bytes: Absent<String>, session: Null<String>, bytes: u64, due: Null<String>,
        rest: Null<String>,
    }
    "wbhome/archive/1" Archive {
        schema: String, sessions: Vec<ArchivedSession>, already: Vec<String>, refused: Vec<RefusedSession>,
        left: Vec<LeftSession>, interrupted: bool,
    }
    "archived session" ArchivedSession {
        id: String, files: u64, bytes: u64, file: String, packed: u64, blake3: String, reused: bool, folder: bool,
        kept_because: Null<String>, special: Vec<NotPacked>, changed: Vec<NotPacked>, leftover: Vec<String>,
    }
    "not packed" NotPacked { path: String, path_bytes: Absent<String>, why: String, }
    "refused session" RefusedSession { id: String, why: String, hints: Vec<String>, }
    "left session" LeftSession { id: String, reason: String, why: String, last_activity: Null<Timestamp>, }
    "wbhome/archive-plan/1" ArchivePlan {
        schema: String, keep: bool, sessions: Vec<ToArchive>, already: Vec<String>, refused: Vec<RefusedSession>,
        left: Vec<LeftSession>,
    }
    "session to archive" ToArchive {
        id: String, files: u64, bytes: u64, last_activity: Null<Timestamp>, archive: bool,
    }
    "wbhome/export/1" Export {
        schema: String, exported: Vec<ExportItem>, held_back: Vec<ExportItem>, refused: Vec<RefusedItem>,
        interrupted: bool,
    }
    "wbhome/export-plan/1" ExportPlan {
        schema: String, items: Vec<ExportItem>, held_back: Vec<ExportItem>, refused: Vec<RefusedItem>,
    }
    "exported item" ExportItem {
        id: String, inside: Null<Location>, kind: String, from: String, to: Location, files: u64, bytes: u64,
        written: Null<u64>, logs: u64, left_out: Vec<NotPacked>, being_written: Vec<Location>,
        findings: Vec<ExportFinding>, allowed: u64, notes: Vec<String>,
    }
    "secret in an item" ExportFinding {
        part: String, path: String, path_bytes: Absent<String>, rule: String, description: String, line: u64,
        column: u64, shown: String, digest: String,
    }
    "refused item" RefusedItem { id: String, inside: Null<Location>, why: String, hints: Vec<String>, }
    "wbhome/relay-init/1" RelayInit {
        schema: String, path: String, path_bytes: Absent<String>, mode: String, bound: bool, former: Null<String>,
        former_mode: Null<String>, notes: Vec<String>,
    }
    "wbhome/relay-sync/1" RelaySync {
        schema: String, path: String, path_bytes: Absent<String>, mode: String, sessions: Vec<RelayedSession>,
        strangers: Vec<StrangeSession>, overtaken: Vec<LostLease>, released: Vec<String>,
    }
    "lost lease" LostLease { session: String, holder: Null<Holder>, }
    "relayed session" RelayedSession {
        id: String, tag: Null<String>, state: String, why: Null<String>, detail: Null<String>, added: u64,
        replaced: u64, removed: u64, bytes: u64, holder: Null<Holder>, changed_here: bool,
        changed_here_at: Null<Timestamp>, differences: Vec<DifferenceThere>,
        leaks: Vec<RelayLeak>, allowed: u64, bad_names: Vec<BadName>, unreadable: Vec<UnreadableThere>,
        left_out: Vec<Location>, written_through: u64, kept: Null<String>,
    }
    "holder" Holder { device: String, name: String, epoch: u64, since: Timestamp, ours: bool, }
    "difference there" DifferenceThere {
        path: String, path_bytes: Absent<String>, there: String, changed_there: Null<Timestamp>, here_too: bool,
        changed_here: Null<Timestamp>,
    }
    "secret in a session" RelayLeak {
        path: String, path_bytes: Absent<String>, rule: String, description: String, line: u64, column: u64,
        shown: String, digest: String,
    }
    "bad name" BadName { path: String, path_bytes: Absent<String>, why: String, suggestion: Null<String>, }
    "unreadable there" UnreadableThere { path: String, path_bytes: Absent<String>, why: String, }
    "session of another device" StrangeSession {
        path: String, path_bytes: Absent<String>, from: Null<String>, sent: Null<Timestamp>, holder: Null<Holder>,
        known_here: bool,
    }
    "wbhome/unarchive/1" Unarchive {
        schema: String, sessions: Vec<SessionBack>, already: Vec<String>, refused: Vec<RefusedSession>,
        interrupted: bool,
    }
    "session back" SessionBack {
        id: String, files: u64, bytes: u64, was_there: bool, archive: bool, act: Null<String>,
        was_called: Null<String>, damage: Vec<Damage>, leftover: Vec<String>,
    }
    "damage" Damage { part: String, what: String, files: Vec<Location>, }
    "wbhome/unarchive-plan/1" UnarchivePlan {
        schema: String, keep: bool, sessions: Vec<ToBringBack>, already: Vec<String>, refused: Vec<RefusedSession>,
    }
    "session to bring back" ToBringBack {
        id: String, files: Null<u64>, bytes: Null<u64>, packed: u64, foreign: bool, folder: bool,
    }
    "wbhome/backup-init/1" BackupInit {
        schema: String, store: Location, exists: bool, configured: bool, without_state: Null<String>, notes: Vec<String>,
    }
    "wbhome/backup-run/1" BackupRun { schema: String, stores: Vec<StoreNight>, failed: Vec<FailedStore>, }
    "night of a store" StoreNight {
        store: Location, snapshot: Null<Timestamp>, clock: Null<Timestamp>, packed: Vec<ThingPacked>, unchanged: u64,
        waiting: Vec<String>, unread: Vec<UnreadThing>, shrunken: Vec<ShrunkenThing>, missing: Vec<GoneThing>,
        removed: Vec<GoneThing>, lost: Vec<String>, no_room: Vec<String>, let_go: u64, notes: Vec<String>,
    }
    "thing packed" ThingPacked {
        what: String, form: String, why: String, files: u64, bytes: u64, packed: u64, restless: u64,
    }
    "unread thing" UnreadThing { what: String, path: String, path_bytes: Absent<String>, why: String, }
    "shrunken thing" ShrunkenThing { what: String, why: String, since: Timestamp, pack: String, }
    "gone thing" GoneThing { what: String, since: Timestamp, new: bool, }
    "failed store" FailedStore { store: Location, kind: String, message: String, hints: Vec<String>, }
    "wbhome/backup-run-plan/1" BackupRunPlan {
        schema: String, stores: Vec<StoreNightPlan>, failed: Vec<FailedStore>,
    }
    "night to come" StoreNightPlan {
        store: Location, at: Timestamp, clock: Null<Timestamp>, after: Null<Timestamp>, packs: Vec<ThingToPack>,
        unchanged: u64, waiting: Vec<String>, unread: Vec<UnreadThing>, notes: Vec<String>,
    }
    "thing to pack" ThingToPack {
        what: String, form: String, why: String, first: Absent<String>, more: Absent<u64>, files: u64, bytes: u64,
    }
    "wbhome/backup-ls/1" BackupLs { schema: String, stores: Vec<ListedStore>, failed: Vec<FailedStore>, }
    "listed store" ListedStore {
        store: Location, home: Location, snapshots: Vec<ListedSnapshot>, packs: u64, bytes: u64,
        unreadable: Vec<String>,
    }
    "listed snapshot" ListedSnapshot {
        at: Timestamp, sessions: u64, missing: u64, partial: u64, packed: u64, bytes: u64,
    }
    "wbhome/backup-ls-session/1" BackupLsSession {
        schema: String, stores: Vec<StoredSession>, failed: Vec<FailedStore>,
    }
    "session in a store" StoredSession {
        store: Location, session: String, standing: Null<String>, packs: Vec<ListedPack>,
        unreadable: Vec<String>,
    }
    "listed pack" ListedPack {
        at: Timestamp, form: String, complete: bool, turns: Null<u64>, files: u64, content: u64, bytes: u64,
        file: String, kept: Null<String>,
    }
    "wbhome/backup-verify/1" BackupVerify {
        schema: String, stores: Vec<VerifiedStore>, failed: Vec<FailedStore>,
    }
    "verified store" VerifiedStore {
        store: Location, snapshots: u64, packs: u64, bytes: u64, broken: Vec<BrokenPack>, unreadable: Vec<String>,
    }
    "broken pack" BrokenPack { what: String, file: String, why: String, snapshot: Timestamp, }
    "wbhome/backup-prune/1" BackupPrune { schema: String, stores: Vec<PrunedStore>, failed: Vec<FailedStore>, }
    "pruned store" PrunedStore {
        store: Location, snapshots: Vec<Timestamp>, packs: Vec<GoingPack>, bytes: u64,
        unknown: Vec<GoingPack>, snapshots_kept: u64,
        packs_kept: u64,
    }
    "going pack" GoingPack { file: String, bytes: u64, }
    "wbhome/backup-adopt/1" BackupAdopt {
        schema: String, store: Location, from: Location, to: Location, changed: bool,
    }
    "wbhome/backup-accept/1" BackupAccept {
        schema: String, stores: Vec<AcceptedStore>, failed: Vec<FailedStore>,
    }
    "accepted store" AcceptedStore { store: Location, accepted: Vec<AcceptedThing>, }
    "accepted thing" AcceptedThing { what: String, gone: bool, former: u64, }
    "wbhome/migrate/1" Migrate {
        schema: String, source: Exact, home: String, started: Timestamp, finished: Timestamp,
        keep_until: Timestamp, resumed: bool, totals: Totals, classes: Classes, references: References,
        skipped: Vec<Skipped>, restless: Vec<Location>, databases: Vec<Database>, state: Vec<Followed>,
        sessions: SessionCounts,
        findings: Vec<Finding>, warnings: Vec<String>, command: Null<SmokeTest>, record: String,
    }
    "wbhome/migrate-status/1" MigrateStatus {
        schema: String, source: Exact, home: String, started: Timestamp, finished: Timestamp,
        keep_until: Timestamp, resumed: bool, totals: Totals, classes: Classes, references: References,
        skipped: Vec<Skipped>, restless: Vec<Location>, databases: Vec<Database>, state: Vec<Followed>,
        sessions: SessionCounts,
        findings: Vec<Finding>, warnings: Vec<String>, command: Null<SmokeTest>, record: String,
        packed: Null<PackedSource>,
    }
    "wbhome/migrate-finish/1" MigrateFinish {
        schema: String, source: Exact, path: String, path_bytes: Absent<String>, bytes: u64, blake3: String, at: Timestamp,
        keep_until: Timestamp, files: u64, content: u64, left: Vec<Flaw>, changed: Vec<ChangedSince>,
        since: Vec<Difference>,
    }
    "packed" PackedSource {
        source: Exact, path: String, path_bytes: Absent<String>, bytes: u64, blake3: String, at: Timestamp,
        keep_until: Timestamp, files: u64, content: u64, left: Vec<Flaw>, changed: Vec<ChangedSince>,
        since: Vec<Difference>,
    }
    "flaw" Flaw { path: String, path_bytes: Absent<String>, kind: String, why: String, }
    "changed since" ChangedSince { path: String, path_bytes: Absent<String>, what: String, }
    "wbhome/migrate-finish-plan/1" MigrateFinishPlan {
        schema: String, source: Exact, path: String, path_bytes: Absent<String>, files: u64, content: u64, room: u64,
        left: Vec<Flaw>, since: Vec<Difference>, warnings: Vec<String>, before: Null<PackedSource>,
    }
    "totals" Totals { sessions: u64, files: u64, folders: u64, bytes: u64, }
    "classes" Classes {
        copied: u64, rewritten: u64, linked: u64, folders: u64, skipped: u64, total: u64, links_rewritten: u64,
        links_kept: u64, hard_links: u64, kept: u64,
    }
    "references" References {
        changed: u64, by_mapping: Vec<Mapped>, by_spelling: BTreeMap<String, u64>, left: u64,
        also_mentioned: BTreeMap<String, u64>,
    }
    "mapped" Mapped { old: String, new: String, count: u64, }
    "skipped" Skipped { path: String, path_bytes: Absent<String>, reason: String, failed: bool, }
    "database" Database {
        path: String, path_bytes: Absent<String>, references: u64, failed: bool, notes: Vec<String>,
    }
    "sessions" SessionCounts {
        source_folders: u64, source_indexed: u64, home_folders: u64, home_indexed: u64, added: u64, missing: u64,
    }
    "command" SmokeTest { command: String, exit: Null<i32>, }
    "wbhome/migrate-plan/1" MigratePlan {
        schema: String, source: Exact, home: String, sessions: u64, files: u64, folders: u64, bytes: u64,
        references: References, state: Vec<StateSurvey>, skipped: Vec<Skipped>, warnings: Vec<String>,
        resumes: bool,
    }
    "followed" Followed {
        folder: Exact, files: u64, rewritten: u64, links: u64, references: References, renamed: u64,
        database: Null<Rows>, doubtful: Vec<Mention>, binary: Vec<Mention>, unclear: Vec<Unclear>, record: Null<String>,
        undone: bool,
    }
    "rows" Rows {
        rows: BTreeMap<String, u64>, references: u64, merged: Vec<Merged>, left: Vec<LeftColumn>, notes: Vec<String>,
    }
    "merged" Merged { old: String, new: String, kept: String, }
    "left column" LeftColumn { table: String, column: String, rows: u64, references: u64, doubtful: u64, }
    "mention" Mention { path: String, path_bytes: Absent<String>, count: u64, }
    "unclear" Unclear { path: String, path_bytes: Absent<String>, why: String, }
    "survey" StateSurvey { folder: Exact, files: u64, references: u64, renamed: u64, database_mentions: u64, }
    "wbhome/migrate-undo/1" MigrateUndo { schema: String, undone: Vec<Undone>, }
    "undone" Undone {
        folders: Vec<Location>, restored: u64, moved: u64, replaced: Vec<Changed>, trash: Null<String>,
        overtaken: Vec<Location>,
    }
    "changed" Changed { path: String, path_bytes: Absent<String>, what: String, }
    "wbhome/migrate-undo-plan/1" MigrateUndoPlan { schema: String, would: Vec<WouldUndo>, }
    "would undo" WouldUndo { folders: Vec<Location>, changed: Vec<Changed>, }
    "wbhome/relink/1" Relink {
        schema: String, mappings: Vec<MovedFolder>, sessions: Vec<String>, passed_over: Vec<PassedOver>,
        finished: Timestamp, files: u64, rewritten: u64, links: u64, references: References, databases: Vec<Database>, skipped: Vec<Skipped>,
        doubtful: Vec<Mention>, binary: Vec<Mention>, state: Vec<Followed>, record: Null<String>,
        overtaken: Vec<Location>,
    }
    "passed over" PassedOver { session: String, why: String, }
    "moved folder" MovedFolder { old: String, new: String, }
    "wbhome/relink-plan/1" RelinkPlan {
        schema: String, mappings: Vec<MovedFolder>, sessions: Vec<String>, passed_over: Vec<PassedOver>, files: u64,
        rewritten: u64, links: u64, references: References, state: Vec<StateSurvey>,
    }
    "wbhome/mv/1" Mv {
        schema: String, from: String, to: String, mappings: Vec<MovedFolder>, sessions: Vec<String>,
        passed_over: Vec<PassedOver>, finished: Timestamp, files: u64, rewritten: u64, links: u64, references: References,
        databases: Vec<Database>, skipped: Vec<Skipped>, doubtful: Vec<Mention>, binary: Vec<Mention>,
        state: Vec<Followed>, record: Null<String>, overtaken: Vec<Location>,
    }
    "wbhome/mv-plan/1" MvPlan {
        schema: String, from: String, to: String, mappings: Vec<MovedFolder>, sessions: Vec<String>,
        passed_over: Vec<PassedOver>, files: u64, rewritten: u64, links: u64, references: References, state: Vec<StateSurvey>,
    }
    "wbhome/migrate-verify/1" MigrateVerify {
        schema: String, source: Exact, migrated: Timestamp, compared: u64, equal: u64,
        differences: Vec<Difference>, new_in_home: u64,
    }
    "wbhome/lease-take/1" Lease { schema: String, sessions: Vec<LeaseStep>, refused: Vec<LeaseRefused>, }
    "lease step" LeaseStep { id: String, change: String, epoch: Null<u64>, other: Null<Claim>, }
    "lease refused" LeaseRefused { id: String, why: String, hints: Vec<String>, other: Null<Claim>, }
    "claim" Claim {
        device: String, name: String, epoch: u64, since: Timestamp, ours: bool, unchanged_since: Null<Timestamp>,
        gone_since: Null<Timestamp>,
    }
    "wbhome/lease-ls/1" LeaseLs {
        schema: String, leases: Vec<ListedLease>, elsewhere: u64, strange: Vec<StrangeFile>, noted: Null<Timestamp>,
    }
    "listed lease" ListedLease { id: String, holder: Null<Claim>, overtaken: Vec<Claim>, }
    "strange file" StrangeFile { name: String, why: String, }
    "wbhome/doctor/1" Doctor {
        schema: String, path: String, path_bytes: Absent<String>, id: String, program: String, trust: String,
        checks: Vec<DoctorCheck>, warnings: u64, errors: u64,
    }
    "doctor check" DoctorCheck {
        name: String, verdict: String, says: String, cure: Null<String>, hints: Vec<String>,
    }
    "wbhome/du/1" Du {
        schema: String, path: String, path_bytes: Absent<String>, sessions: Vec<WeighedSession>, together: Weight,
        rest: Null<RestOfHome>, total: Null<Weight>, largest: Vec<LargeFile>, since: Null<Timestamp>,
        growth: Null<i64>, grows: Vec<Growing>, unreadable: Vec<Location>, recorded: bool,
    }
    "weight" Weight { files: u64, bytes: u64, allocated: u64, }
    "weighed session" WeighedSession {
        path: String, path_bytes: Absent<String>, status: String, all: Weight, context: Weight, memory: Weight,
        artifacts: Weight, logs: Weight, other: Weight, archive: Weight, updated: Null<Timestamp>,
        growth: Null<i64>,
    }
    "rest of a home" RestOfHome {
        archives: Weight, history: Weight, trash: Weight, own: Weight, other: Weight,
    }
    "large file" LargeFile {
        path: String, path_bytes: Absent<String>, bytes: u64, allocated: u64, modified: Timestamp,
    }
    "growing" Growing {
        what: String, bytes: u64, sessions: Vec<Location>, of: u64, files: Vec<OldFile>, helps: Null<String>,
    }
    "old file" OldFile { path: String, path_bytes: Absent<String>, bytes: u64, modified: Timestamp, }
    "wbhome/nightly/1" Nightly {
        schema: String, path: String, path_bytes: Absent<String>, id: String, program: String, began: Timestamp,
        took_ms: u64, exit: u8, stages: Vec<Stage>, warnings: Vec<NightWarning>, hook: Null<Hook>,
        record: Null<Location>, not_kept: Null<Trouble>,
    }
    "stage" Stage {
        name: String, store: Null<Location>, began: Timestamp, took_ms: u64, exit: u8, did: String,
        counts: BTreeMap<String, u64>, skipped: Null<String>, troubles: Vec<Trouble>, notes: Vec<String>,
    }
    "trouble" Trouble { message: String, hints: Vec<String>, }
    "night warning" NightWarning { message: String, hints: Vec<String>, pressing: bool, }
    "hook" Hook { name: String, code: Null<i32>, trouble: Null<String>, }
    "wbhome/schedule/1" Schedule {
        schema: String, with: Null<String>, why: String, at: String, command: String, entries: Vec<ScheduleEntry>,
        installed: Vec<InstalledEntry>, steps: Vec<ScheduleStep>, hindrance: Null<String>, lingers: Null<bool>,
        notes: Vec<String>, done: bool, checked: Null<String>,
    }
    "schedule entry" ScheduleEntry { file: Null<Location>, text: String, }
    "installed entry" InstalledEntry { with: String, file: Null<Location>, text: String, differs: Vec<String>, }
    "schedule step" ScheduleStep {
        what: String, path: Absent<String>, path_bytes: Absent<String>, text: Absent<String>,
        replaces: Option<Value>, added: Option<Value>, removed: Absent<Vec<String>>, command: Absent<Vec<String>>,
    }
    "wbhome/relay-fetch/1" RelayFetch {
        schema: String, id: String, relay: Location, to: Location, note: Location, sender: Null<Sender>,
        lease: Null<Holder>, files: u64, bytes: u64, left_out: Vec<OddOne>, unread: Vec<OddOne>,
        leading_out: Vec<OddOne>, warnings: Vec<String>, fetched_at: Timestamp,
    }
    "wbhome/relay-fetch-plan/1" RelayFetchPlan {
        schema: String, id: String, relay: Location, to: Location, note: Location, sender: Null<Sender>,
        lease: Null<Holder>, files: u64, bytes: u64, left_out: Vec<OddOne>, unread: Vec<OddOne>,
        leading_out: Vec<OddOne>, warnings: Vec<String>,
    }
    "wbhome/relay-take/1" RelayTake {
        schema: String, id: String, relay: Location, sender: Null<Sender>, lease: Null<Holder>, new: bool,
        changes: Vec<SideChange>, files: u64, bytes: u64, kept: Tally, left_out: Vec<OddOne>,
        left_behind: Vec<OddOne>, leading_out: Vec<OddOne>, sync_tag: Null<String>, warnings: Vec<String>,
        act: Null<String>, left: Vec<String>,
    }
    "wbhome/relay-take-plan/1" RelayTakePlan {
        schema: String, id: String, relay: Location, sender: Null<Sender>, lease: Null<Holder>, new: bool,
        changes: Vec<SideChange>, files: u64, bytes: u64, kept: Tally, left_out: Vec<OddOne>,
        left_behind: Vec<OddOne>, leading_out: Vec<OddOne>, sync_tag: Null<String>, warnings: Vec<String>,
    }
    "sender" Sender { device: String, name: String, at: Timestamp, tag: String, }
    "odd one" OddOne { path: String, path_bytes: Absent<String>, why: String, }
    "file that differs" SideChange {
        path: String, path_bytes: Absent<String>, change: String, here: Null<SideState>, there: Null<SideState>,
    }
    "file of a side" SideState { bytes: u64, modified: Timestamp, }
    "difference" Difference { path: String, path_bytes: Absent<String>, kind: String, detail: String, }
}

/// Documents whose fields are those of another.
const ALIKE: [(&str, &str); 18] = [
    ("wbhome/relay-init-plan/1", "wbhome/relay-init/1"),
    ("wbhome/relay-sync-plan/1", "wbhome/relay-sync/1"),
    ("wbhome/relay-status/1", "wbhome/relay-sync/1"),
    ("wbhome/nightly-plan/1", "wbhome/nightly/1"),
    ("wbhome/commit-plan/1", "wbhome/commit/1"),
    ("wbhome/relink-undo/1", "wbhome/migrate-undo/1"),
    ("wbhome/relink-undo-plan/1", "wbhome/migrate-undo-plan/1"),
    ("wbhome/backup-init-plan/1", "wbhome/backup-init/1"),
    ("wbhome/backup-prune-plan/1", "wbhome/backup-prune/1"),
    ("wbhome/backup-adopt-plan/1", "wbhome/backup-adopt/1"),
    ("wbhome/backup-accept-plan/1", "wbhome/backup-accept/1"),
    ("finding", "wbhome/finding/1"),
    ("wbhome/lease-take-plan/1", "wbhome/lease-take/1"),
    ("wbhome/lease-steal/1", "wbhome/lease-take/1"),
    ("wbhome/lease-steal-plan/1", "wbhome/lease-take/1"),
    ("wbhome/lease-release/1", "wbhome/lease-take/1"),
    ("wbhome/lease-release-plan/1", "wbhome/lease-take/1"),
    ("wbhome/empty-trash-plan/1", "wbhome/empty-trash/1"),
];

/// The one document of a run, whatever its exit code, as the strict form of it.
fn read<T: DeserializeOwned>(schema: &str, ran: &Ran) -> T {
    let text = ran
        .stdout
        .strip_suffix('\n')
        .unwrap_or_else(|| panic!("{ran:?}"));
    assert!(!text.contains('\n'), "one line: {text}");
    assert!(
        text.starts_with(&format!("{{\"schema\":\"wbhome/{schema}\"")),
        "{text}"
    );
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    no_nulls_left_out(&value);
    serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Of what may be left out, nothing is null instead.
fn no_nulls_left_out(value: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let absent = [
                    "path_bytes",
                    "of_bytes",
                    "of",
                    "relation",
                    "turn",
                    "count",
                    "session",
                    "first",
                    "more",
                ];
                let of_finding = key == "command" && fields.contains_key("detail");
                assert!(
                    !(value.is_null() && (absent.contains(&key.as_str()) || of_finding)),
                    "{key}"
                );
                no_nulls_left_out(value);
            }
        }
        Value::Array(values) => values.iter().for_each(no_nulls_left_out),
        _ => {}
    }
}

fn json(place: &Place, args: &[&str]) -> Ran {
    place.run(args.iter().chain(&["--json"]))
}

#[test]
fn init() {
    let place = Place::new();
    let plan: InitPlan = read("init-plan/1", &json(&place, &["init", "home", "-n"]));
    assert!(plan.missing.contains(&".".into()) && !plan.adopts && plan.tightens.0.is_none());
    let made: Init = read("init/1", &json(&place, &["init", "home"]));
    assert_eq!(made.path, place.path("home").display().to_string());
    assert_eq!(made.id.len(), 32);
    assert!(!made.adopted && made.path_bytes.is_none() && made.tightened.0.is_none());
    place.put("old/sessions/20240603_x/session.json", "{}");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("old"), open).unwrap();
    let plan: InitPlan = read("init-plan/1", &json(&place, &["init", "old", "-n"]));
    assert_eq!(plan.tightens.0, Some(0o755));
    let made: Init = read("init/1", &json(&place, &["init", "old", "-q"]));
    assert_eq!((made.adopted, made.tightened.0), (true, Some(0o755)));
}

#[test]
fn new_and_path() {
    let place = Place::with_home();
    let args = ["new", "数据", "--agent", "nobody", "--tag", "x"];
    let plan: NewPlan = read("new-plan/1", &json(&place, &[&args[..], &["-n"]].concat()));
    let made: New = read("new/1", &json(&place, &args));
    assert_eq!(
        (&plan.id, &plan.path, plan.warnings.len()),
        (&made.id, &made.path, 1)
    );
    let on_disk = place.index()[0].as_object().unwrap().clone();
    assert_eq!(made.entry, on_disk);
    let found: Found = read("path/1", &json(&place, &["path", "数据/context"]));
    assert_eq!((found.id, found.exists), (made.id, true));
    assert_eq!(found.path, format!("{}/context", made.path));
}

#[test]
fn search() {
    let place = Place::with_sessions();
    let content = r#"{"role": "user", "content": "one\ntwo \u6570\nthree"}"#;
    place.put_home("sessions/20240603_crawler/context/turn_012.json", content);
    place.put_home("sessions/20240604_数据清洗/logs/run.log", "two\n");
    let one = |schema: &str, args: &[&str]| {
        let ran = json(&place, &[&["search"], args].concat());
        let first = ran.stdout.split_inclusive('\n').next().unwrap().to_owned();
        (
            schema.to_owned(),
            Ran {
                stdout: first,
                ..ran
            },
        )
    };
    let (schema, ran) = one("search/1", &["two", "crawler", "-C", "1"]);
    let hit: Hit = read(&schema, &ran);
    assert_eq!(
        (hit.session.as_str(), hit.turn, hit.line),
        ("20240603_crawler", Some(12), 1)
    );
    assert_eq!(
        (hit.pointer.0.as_deref(), hit.within.0),
        (Some("/content"), Some(2))
    );
    assert_eq!(
        (hit.role.0.as_deref(), hit.text.as_str()),
        (Some("user"), "two 数")
    );
    assert_eq!(
        (hit.matches, hit.before, hit.after),
        (vec![(0, 3)], vec!["one".into()], vec!["three".into()])
    );
    let (schema, ran) = one("search/1", &["two", "数据"]);
    let hit: Hit = read(&schema, &ran);
    assert!(
        hit.turn.is_none()
            && hit.pointer.0.is_none()
            && hit.within.0.is_none()
            && hit.role.0.is_none()
    );
    let (schema, ran) = one("search-file/1", &["two", "-l"]);
    assert_eq!(read::<HitFile>(&schema, &ran).path, "logs/run.log");
    let (schema, ran) = one("search-count/1", &["two", "--count"]);
    let count: HitCount = read(&schema, &ran);
    assert_eq!((count.lines, count.files, count.archived), (1, 1, false));
}

#[test]
fn show() {
    let place = Place::with_sessions();
    let artifacts = place.home().join("sessions/20240603_crawler/artifacts");
    std::fs::write(artifacts.join(OsStr::from_bytes(b"a\xff")), "x").unwrap();
    std::os::unix::fs::symlink("a b", artifacts.join("latest")).unwrap();
    let shown: Show = read("show/1", &json(&place, &["show", "crawler"]));
    assert_eq!((shown.from.as_str(), shown.holds.files), ("folder", 3));
    assert!(shown.archive.0.is_none() && shown.commit.0.is_none());
    let folder = ["show", "crawler/artifacts"];
    let listed: ShowPath = read("show-path/1", &json(&place, &folder));
    assert_eq!((listed.kind.as_str(), listed.names.len()), ("folder", 2));
    assert_eq!(
        listed.names[0].path_bytes.as_deref(),
        Some("YXJ0aWZhY3RzL2H/")
    );
    let target = listed.names[1].target.0.as_ref().unwrap();
    assert_eq!(
        (target.path.as_str(), listed.names[1].kind.as_str()),
        ("a b", "symlink")
    );
    place.archived("20240603_crawler");
    let shown: Show = read("show/1", &json(&place, &["show", "crawler"]));
    let archive = shown.archive.0.unwrap();
    assert_eq!((archive.form.as_str(), archive.flaws), ("whole", 0));
    let listed: ShowPath = read("show-path/1", &json(&place, &folder));
    assert_eq!((listed.from.as_str(), listed.names.len()), ("archive", 2));
    let looked: Check = read("check/1", &json(&place, &["check", "--archives"]));
    let read = looked.archives.0.unwrap();
    assert!(read.archives == 1 && read.bytes == archive.bytes && read.members > 3);
}

#[test]
fn ls() {
    let place = Place::with_sessions();
    let mut index = place.index();
    let old = serde_json::json!({"id": "20240520_old", "status": "archived", "archive": {"file": "archive/20240520_old.tar.zst", "bytes": 7, "blake3": null}});
    index.as_array_mut().unwrap().push(old);
    place.put_home("index.json", index.to_string());
    std::fs::create_dir(
        place
            .home()
            .join("sessions")
            .join(OsStr::from_bytes(b"a\xff")),
    )
    .unwrap();
    place.ok(["index", "-q"]);
    let cwd = place.home().join("sessions/20240603_crawler");
    let silent = serde_json::json!({"lastHeartbeat": null});
    place.at_work("me/.workbuddy", cwd, silent);
    let listed: Ls = read("ls/1", &json(&place, &["ls", "--sort", "id"]));
    assert_eq!(
        (listed.sessions.len(), listed.total, listed.stale),
        (4, 4, false)
    );
    assert_eq!(listed.strangers[0].path, "a\u{fffd}");
    assert_eq!(listed.strangers[0].path_bytes.as_deref(), Some("Yf8="));
    let [gone, crawler, ..] = &listed.sessions[..] else {
        panic!()
    };
    assert!(gone.holds.0.is_none() && gone.archive.0.is_some() && gone.running.0.is_none());
    let running = crawler.running.0.as_ref().unwrap();
    assert_eq!(
        (running.pid, running.kind.as_str()),
        (std::process::id(), "interactive")
    );
    assert!(running.since.0.is_some() && running.heartbeat.0.is_none() && running.cwd.0.is_some());
    let holds = crawler.holds.0.as_ref().unwrap();
    assert_eq!((holds.turns, holds.files, holds.context.files), (1, 2, 1));
    assert_eq!(
        crawler.updated.0.unwrap().to_string(),
        "2024-06-03T09:00:00Z"
    );
}

#[test]
fn label() {
    let place = Place::with_sessions();
    place.put_home("projects/stray", "");
    let args = [
        "label",
        "crawler",
        "清洗",
        "--tag",
        "x",
        "--project",
        "alpha",
    ];
    let plan: LabelPlan = read(
        "label-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert_eq!(plan.sessions.len(), 2);
    let done: Label = read("label/1", &json(&place, &args));
    assert_eq!(
        (done.changed, done.unchanged, done.views.made.len()),
        (2, 0, 2)
    );
    assert_eq!(done.views.foreign, ["projects/stray"]);
    assert_eq!(done.sessions[0].after.project.0.as_deref(), Some("alpha"));
}

#[test]
fn index() {
    let place = Place::with_sessions();
    let sessions = place.home().join("sessions");
    std::fs::rename(
        sessions.join("20240603_crawler"),
        sessions.join("20240603_renamed"),
    )
    .unwrap();
    place.session("20240606_by_hand", 6);
    let plan: IndexPlan = read("index-plan/1", &json(&place, &["index", "-n"]));
    assert_eq!((plan.rebuild, plan.renamed.len()), (false, 1));
    let done: Index = read("index/1", &json(&place, &["index"]));
    assert_eq!(
        (done.renamed[0].to.as_str(), done.added.len()),
        ("20240603_renamed", 1)
    );
    let classes = [
        &done.added,
        &done.returned,
        &done.archived,
        &done.missing,
        &done.completed,
    ];
    let classed: usize = classes.iter().map(|c| c.len()).sum();
    assert_eq!(
        classed as u64 + done.renamed.len() as u64 + done.unchanged,
        done.entries
    );
    place.put_home("index.json", "[");
    let done: Index = read("index/1", &json(&place, &["index", "--rebuild"]));
    assert!(done.former_index.0.unwrap().starts_with(".wbhome/trash/"));
}

#[test]
fn check() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/context/turn_003.json", "{");
    place.put_home("sessions/20240603_crawler/context/turn_001 (1).json", "{");
    let name = OsStr::from_bytes(b"a\xff.json");
    std::fs::write(
        place.home().join("sessions/20240603_crawler").join(name),
        "{",
    )
    .unwrap();
    let looked: Check = read("check/1", &json(&place, &["check"]));
    assert_eq!(
        looked.counts.values().sum::<u64>(),
        looked.findings.len() as u64
    );
    assert_eq!(looked.counts["torn-json"], 2);
    assert!(looked.findings.iter().any(|f| f.path_bytes.is_some()));
    assert!(
        looked
            .findings
            .iter()
            .any(|f| f.relation.is_some() && f.of.is_some())
    );
    assert!(looked.findings.iter().any(|f| f.turn == Some(2)));
    let kinds: BTreeSet<&str> = FindingKind::ALL.iter().map(|k| k.as_str()).collect();
    assert!(
        looked
            .findings
            .iter()
            .all(|f| f.schema.is_none() && kinds.contains(f.kind.as_str()))
    );
    let lines = json(&place, &["check", "-v"]);
    for line in lines.stdout.split_inclusive('\n') {
        let ran = Ran {
            stdout: line.to_owned(),
            ..lines.clone()
        };
        assert!(read::<Finding>("finding/1", &ran).schema.is_some());
    }
}

#[test]
fn history() {
    if !support::has_tool("git") {
        return;
    }
    let place = Place::with_sessions();
    place.commit_on(6, "第一次");
    place.put_home(
        "sessions/20240603_crawler/context/turn_001.json",
        "{\"turn\": 2}",
    );
    place.put_home("sessions/20240603_crawler/memory/a.md", "a");
    let log: History = read("history/1", &json(&place, &["history", "crawler"]));
    assert_eq!((log.total, log.commits.len()), (1, 1));
    let change = &log.commits[0].changes[0];
    assert_eq!(change.change, "added");
    assert_eq!(change.after.0.as_ref().unwrap().kind, "file");
    assert!(change.before.0.is_none() && log.within.0.is_none());

    let diff: Diff = read("diff/1", &json(&place, &["diff", "crawler"]));
    assert!(diff.to.0.is_none() && diff.unreadable.is_empty());
    let forms: Vec<&str> = diff.files.iter().map(|f| f.form.as_str()).collect();
    assert_eq!(forms, ["readable", "text"]);
    assert!(diff.files[1].hunks[0].lines[0].unended);
    let between = ["diff", "crawler/memory", "HEAD", "HEAD"];
    let error: Failure = serde_json::from_str(&json(&place, &between).stderr).unwrap();
    assert_eq!(error.exit, 1);

    let args = ["restore", "crawler", "--from", "git", "--force"];
    let plan: RestoreGitPlan = read(
        "restore-git-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    let done: RestoreGit = read("restore-git/1", &json(&place, &args));
    assert_eq!((plan.files.len(), plan.same, plan.stays), (1, 1, 1));
    assert_eq!((done.files.len(), done.same, done.stays), (1, 1, 1));
    assert!(done.files[0].replaces && done.kept.0.is_some() && !done.indexed);
    assert_eq!(done.from.subject, "第一次");
}

#[test]
fn out_of_a_store() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/memory/a.md", "a");
    place.commit_on(6, "第一次");
    place.ok(["backup", "init", "cold", "-q"]);
    place.ok(["backup", "run", "-q"]);
    place.put_home("sessions/20240603_crawler/memory/a.md", "b");
    let args = ["restore", "crawler", "--from", "backup", "--force"];
    let plan: RestorePackedPlan = read(
        "restore-packed-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert!(plan.replaces && !plan.newer.is_empty() && plan.store.0.is_some());
    let done: RestorePacked = read("restore-packed/1", &json(&place, &args));
    assert!(done.kept.0.is_some() && done.files == 3 && done.not_used.is_empty());

    std::fs::rename(place.home(), place.path("lost")).unwrap();
    let args = [
        "restore", "--all", "--from", "cold", "--to", "back", "--git", "lost",
    ];
    let plan: RestoreAllPlan = read(
        "restore-all-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert!(plan.git.0.is_some() && plan.needs > 0 && !plan.begun);
    let done: RestoreAll = read("restore-all/1", &json(&place, &args));
    assert!(done.moved && done.lost.is_empty());
    assert_eq!(done.git.0.unwrap().history, "copied");
    assert_eq!(done.kinds.iter().map(|k| k.things).sum::<u64>(), 5);
}

#[test]
fn repair() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/artifacts/a.md", "a");
    place.put_home("sessions/20240603_crawler/artifacts/a (1).md", "a");
    place.put_home("sessions/20240603_crawler/artifacts/b.md", "b");
    place.put_home("sessions/20240603_crawler/artifacts/b (1).md", "c");
    place.put_home("sessions/20240603_crawler/context/turn_002.json", "{");
    place.put_home("sessions/20240603_crawler/context/turn_002 (1).json", "{}");
    place.session("20240606_by_hand", 6);
    let args = ["check", "--repair"];
    let plan: CheckRepairPlan = read(
        "check-repair-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    let done: CheckRepair = read("check-repair/1", &json(&place, &args));
    assert_eq!((plan.mended.len(), plan.left.len()), (1, 2));
    assert_eq!((done.mended.len(), done.left.len()), (1, 2));
    assert_eq!(done.mended[0].what, "put-away");
    assert_eq!(done.mended[0].relation.0.as_deref(), Some("same"));
    assert!(done.mended[0].of.0.is_some() && done.index.0.is_some() && plan.index.0.is_some());
    assert!(done.findings.iter().any(|f| f.command.is_some()));
    assert_eq!(
        done.counts.values().sum::<u64>(),
        done.findings.len() as u64
    );
    let act = done.act.0.unwrap();

    let twin = ["restore", "crawler/context/turn_002.json", "--from", "twin"];
    let plan: RestoreTwinPlan = read(
        "restore-twin-plan/1",
        &json(&place, &[&twin[..], &["-n"]].concat()),
    );
    let done: RestoreTwin = read("restore-twin/1", &json(&place, &twin));
    assert_eq!(
        (plan.replaces, done.replaces, plan.path),
        (true, true, done.path)
    );
    assert!(done.kept.0.is_some() && done.left.0.is_none());

    let trash: Trash = read("trash/1", &json(&place, &["restore", "--from", "trash"]));
    assert_eq!(trash.acts.len(), 2);
    assert_eq!(
        trash.acts.iter().map(|act| act.files).sum::<u64>(),
        trash.files
    );
    assert!(
        trash.acts[1]
            .items
            .iter()
            .any(|i| i.what == "kept" && i.why.0.is_some())
    );
    let back = ["restore", &act, "--from", "trash"];
    let plan: RestorePlan = read(
        "restore-plan/1",
        &json(&place, &[&back[..], &["-n"]].concat()),
    );
    let done: Restore = read("restore/1", &json(&place, &back));
    assert_eq!(
        (plan.back.len(), done.back.len(), done.left.len()),
        (2, 2, 0)
    );
    assert!(done.back.iter().any(|b| b.replaces) && done.kept.0.is_some());
}

#[test]
fn rm_and_the_end_of_it() {
    let place = Place::with_sessions();
    let plan: RmPlan = read("rm-plan/1", &json(&place, &["rm", "crawler", "-n"]));
    let done: Rm = read("rm/1", &json(&place, &["rm", "crawler"]));
    assert_eq!((plan.sessions.len(), done.sessions.len()), (1, 1));
    assert_eq!(done.sessions[0].status, "active");
    assert!(done.sessions[0].folder && done.left.is_empty());
    let plan: EmptyTrash = read(
        "empty-trash-plan/1",
        &json(&place, &["check", "--empty-trash", "-n"]),
    );
    let emptied: EmptyTrash = read(
        "empty-trash/1",
        &json(&place, &["check", "--empty-trash", "-y"]),
    );
    assert_eq!((plan.files, emptied.files, emptied.kept), (2, 2, 0));
    assert_eq!(Some(&emptied.acts[0].act), done.act.0.as_ref());
}

#[test]
fn logs_that_are_cut() {
    let place = Place::with_sessions();
    let logs = "sessions/20240603_crawler/logs";
    place.put_home("wbhome.toml", "[rotate]\nkeep = 2\nmissing_ok = false\nlogs = [\"sessions/*/logs/*.log\", \"agents/none.log\"]\n");
    let odd = place
        .home()
        .join(logs)
        .join(OsStr::from_bytes(b"a\xff.log"));
    for n in 0..4 {
        std::fs::write(&odd, format!("{n}\n")).unwrap();
        place.json(["rotate", "--force"]);
    }
    std::fs::write(&odd, "x\n").unwrap();
    std::os::unix::fs::symlink("a.log", place.home().join(logs).join("link.log")).unwrap();
    let plain = place.put_home(&format!("{logs}/plain.log"), "x\n");
    let _writer = std::fs::OpenOptions::new().write(true).open(plain).unwrap();
    let plan: RotatePlan = read("rotate-plan/1", &place.run(["rotate", "-n", "--json"]));
    assert!(
        plan.logs
            .iter()
            .any(|log| log.path_bytes.is_some() && log.bytes == 2)
    );
    assert!(
        plan.logs
            .iter()
            .all(|log| log.due.0.is_none() != log.rest.0.is_none())
    );
    assert_eq!((plan.failed.len(), plan.forgotten.0), (1, None));
    let plan: RotatePlan = read(
        "rotate-plan/1",
        &place.run(["rotate", "-n", "--json", "--force"]),
    );
    assert_eq!((plan.removed.len(), plan.compressed.len()), (1, 1));
    let done: Rotate = read("rotate/1", &place.run(["rotate", "--json", "--force"]));
    let cut = done
        .cut
        .iter()
        .find(|cut| cut.path_bytes.is_some())
        .unwrap();
    assert!(matches!(cut.rotated, Exact::Bytes(_)));
    assert_eq!(
        (cut.due.as_str(), cut.session.0.as_deref()),
        ("forced", Some("20240603_crawler"))
    );
    let forced = done.cut.iter().find(|cut| !cut.writers.is_empty()).unwrap();
    assert!(!forced.lossless && forced.writers[0].pid == std::process::id());
    assert_eq!(done.left[0].reason, "symlink");
    assert_eq!(
        (done.removed[0].beyond.as_str(), done.compressed.len()),
        ("keep", 1)
    );
    assert_eq!(done.failed[0].path, "agents/none.log");
}

#[test]
fn archive_and_back() {
    let place = Place::with_sessions();
    let args = ["archive", "crawler", "20240604_数据清洗"];
    let plan: ArchivePlan = read(
        "archive-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert_eq!((plan.sessions.len(), plan.keep), (2, false));
    assert_eq!(
        (plan.sessions[0].files, plan.sessions[0].archive),
        (2, false)
    );
    let pipe = place.home().join("sessions/20240603_crawler/logs/pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let ran = json(&place, &args);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let done: Archive = read("archive/1", &ran);
    let [crawler, cleaning] = &done.sessions[..] else {
        panic!("{ran:?}")
    };
    assert_eq!(crawler.special[0].path, "logs/pipe");
    assert_eq!((crawler.folder, crawler.reused), (false, false));
    assert!(cleaning.special.is_empty() && !done.interrupted && done.left.is_empty());
    let entry = &place.index()[0]["archive"];
    assert_eq!(entry["file"], crawler.file.as_str());
    assert_eq!(entry["blake3"], crawler.blake3.as_str());
    assert_eq!(entry["bytes"], crawler.packed);
    let plan: ArchivePlan = read(
        "archive-plan/1",
        &json(&place, &["archive", "--idle", "90d", "-n"]),
    );
    assert_eq!(plan.left[0].reason, "active");
    let again: Archive = read("archive/1", &json(&place, &["archive", "crawler"]));
    assert_eq!(again.already, ["20240603_crawler"]);

    let args = ["unarchive", "crawler", "api", "--keep"];
    let plan: UnarchivePlan = read(
        "unarchive-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert_eq!(plan.sessions[0].files.0, Some(2));
    assert!(plan.keep && !plan.sessions[0].foreign && !plan.sessions[0].folder);
    let done: Unarchive = read("unarchive/1", &json(&place, &args));
    assert_eq!(done.already, ["20240605_api_refactor"]);
    let back = &done.sessions[0];
    assert!(back.archive && !back.was_there && back.damage.is_empty());
    assert!(back.act.0.is_none() && back.was_called.0.is_none());
    place.put_home("sessions/20240603_crawler/memory/new", "x");
    let refused: Unarchive = read("unarchive/1", &json(&place, &["unarchive", "crawler"]));
    assert!(!refused.refused[0].hints.is_empty());
}

#[test]
fn relay_fetch_and_take() {
    let place = Place::with_relay();
    let id = "20240604_数据清洗";
    place.send(id, "{\"turn\": 2}\n");
    std::os::unix::fs::symlink("/etc", place.relay().join(id).join("out")).unwrap();
    support::home::tool(
        "mkfifo",
        &[place.relay().join(id).join("pipe").to_str().unwrap()],
    );
    place.sent(id);
    place.put_home(&format!("sessions/{id}/logs/run.log"), "line\n");
    place.hold_lease(id);
    let fetch = ["relay", "fetch", id, "--to", "look"];
    let plan: RelayFetchPlan = read(
        "relay-fetch-plan/1",
        &json(&place, &[&fetch[..], &["-n"]].concat()),
    );
    let done: RelayFetch = read("relay-fetch/1", &json(&place, &fetch));
    assert_eq!((plan.files, plan.bytes), (done.files, done.bytes));
    assert_eq!(
        (
            done.left_out[0].path.as_str(),
            done.leading_out[0].why.as_str()
        ),
        ("pipe", "/etc")
    );
    assert_eq!(done.sender.0.unwrap().tag, "工作");
    assert!(done.lease.0.unwrap().ours && done.unread.is_empty());

    let take = ["relay", "take", id];
    let plan: RelayTakePlan = read(
        "relay-take-plan/1",
        &json(&place, &[&take[..], &["-n"]].concat()),
    );
    assert_eq!((plan.kept.files, plan.kept.bytes, plan.new), (1, 5, false));
    let done: RelayTake = read("relay-take/1", &json(&place, &take));
    let told = |change: &SideChange| (change.path.clone(), change.change.clone());
    let turn = ("context/turn_001.json".to_owned(), "changed".to_owned());
    assert_eq!(told(&plan.changes[0]), turn);
    assert_eq!(
        told(&done.changes[1]),
        ("out".to_owned(), "added".to_owned())
    );
    assert!(done.changes[0].here.0.is_some() && done.changes[1].here.0.is_none());
    assert!(done.act.0.is_some() && done.left.is_empty() && done.left_behind.is_empty());
    let again: RelayTake = read("relay-take/1", &json(&place, &take));
    assert!(again.changes.is_empty() && again.act.0.is_none() && !again.warnings.is_empty());
}

#[test]
fn backup() {
    let place = Place::with_sessions();
    let plan = read::<BackupInit>(
        "backup-init-plan/1",
        &json(&place, &["backup", "init", "cold", "-n"]),
    );
    assert!(!plan.exists && !plan.configured && plan.without_state.0.is_none());
    let args = ["backup", "init", "cold"];
    let made: BackupInit = read("backup-init/1", &json(&place, &args));
    assert_eq!(made.store.path, place.path("cold").to_str().unwrap());
    assert!(read::<BackupInit>("backup-init/1", &json(&place, &args)).exists);
    let run = ["backup", "run"];
    let plan: BackupRunPlan = read(
        "backup-run-plan/1",
        &json(&place, &[&run[..], &["-n"]].concat()),
    );
    let first = &plan.stores[0].packs[0];
    assert_eq!((&*first.form, &*first.why), ("packed", "new"));
    assert!(plan.stores[0].after.0.is_none());
    support::cold::rest();
    let done: BackupRun = read("backup-run/1", &json(&place, &run));
    assert_eq!(done.stores[0].packed.len(), 5);
    assert_eq!(
        done.stores[0].snapshot.0.unwrap(),
        support::NOW.parse::<Timestamp>().unwrap()
    );
    // Something shrinks, something is removed, something is missing, and of two stores one is not there.
    let sessions = place.home().join("sessions");
    std::fs::remove_file(sessions.join("20240603_crawler/context/turn_001.json")).unwrap();
    std::fs::remove_dir_all(sessions.join("20240605_api_refactor")).unwrap();
    place.ok(["rm", "20240604_数据清洗", "-q"]);
    place.session("20240606_a", 6);
    support::cold::rest();
    let plan: BackupRunPlan = read("backup-run-plan/1", &json(&place, &["backup", "run", "-n"]));
    let crawler = plan.stores[0]
        .packs
        .iter()
        .find(|thing| thing.what == "20240603_crawler");
    assert!(crawler.is_some_and(|thing| thing.first.is_some() && thing.more == Some(0)));
    place.ok(["backup", "init", "second", "-q"]);
    std::fs::remove_dir_all(place.path("second")).unwrap();
    let done: BackupRun = read("backup-run/1", &json(&place, &run));
    let night = &done.stores[0];
    assert_eq!(night.shrunken[0].what, "20240603_crawler");
    assert_eq!(
        (&*night.missing[0].what, night.missing[0].new),
        ("20240605_api_refactor", true)
    );
    assert_eq!(night.removed[0].what, "20240604_数据清洗");
    assert_eq!(
        (&*done.failed[0].kind, done.failed[0].hints.is_empty()),
        ("failed", false)
    );
    let store = ["--store", "cold"];
    let of = |args: &[&str]| json(&place, &[&["backup"], args, &store].concat());
    let listed: BackupLs = read("backup-ls/1", &of(&["ls"]));
    assert_eq!(
        (
            listed.stores[0].snapshots.len(),
            listed.stores[0].snapshots[0].missing
        ),
        (2, 1)
    );
    let listed: BackupLsSession = read("backup-ls-session/1", &of(&["ls", "crawler"]));
    assert!(listed.stores[0].packs[1].kept.0.is_some());
    assert_eq!(listed.stores[0].standing.0.as_deref(), Some("present"));
    let verified: BackupVerify = read("backup-verify/1", &of(&["verify"]));
    assert!(verified.stores[0].broken.is_empty());
    let pack = place.path("cold").join(&listed.stores[0].packs[0].file);
    std::fs::write(pack, "").unwrap();
    let verified: BackupVerify = read("backup-verify/1", &of(&["verify"]));
    assert_eq!(verified.stores[0].broken[0].what, "20240603_crawler");
    let args = ["accept", "20240603_crawler", "20240605_api_refactor"];
    let accepted: BackupAccept = read("backup-accept-plan/1", &of(&[&args[..], &["-n"]].concat()));
    assert_eq!(accepted.stores[0].accepted[0].former, 1);
    let accepted: BackupAccept = read("backup-accept/1", &of(&args));
    assert!(!accepted.stores[0].accepted[0].gone && accepted.stores[0].accepted[1].gone);
    place.put(
        "cold/packs/sessions/20240606_a/20200101T000000Z.tar.zst",
        "x",
    );
    let plan: BackupPrune = read("backup-prune-plan/1", &of(&["prune", "-n"]));
    assert_eq!(
        (plan.stores[0].packs.len(), plan.stores[0].packs[0].bytes),
        (1, 1)
    );
    let done: BackupPrune = read("backup-prune/1", &of(&["prune"]));
    assert_eq!(done.stores[0].packs.len(), 1);
    let plan: BackupAdopt = read(
        "backup-adopt-plan/1",
        &json(&place, &["backup", "adopt", "cold", "-n"]),
    );
    assert!(!plan.changed);
    let done: BackupAdopt = read(
        "backup-adopt/1",
        &json(&place, &["backup", "adopt", "cold"]),
    );
    assert_eq!(done.from.path, done.to.path);
}

#[test]
fn commit() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/artifacts/a.bin", b"\0");
    place.put_home("sessions/20240603_crawler/artifacts/inner/.git/HEAD", "x");
    let plan: Commit = read("commit-plan/1", &json(&place, &["commit", "-n"]));
    let done: Commit = read("commit/1", &json(&place, &["commit", "--consolidate"]));
    assert!(plan.commit.0.is_none());
    assert_eq!((plan.subject.0, plan.held), (done.subject.0, done.held));
    assert_eq!(
        (done.files.added, done.sessions.len(), done.nested.len()),
        (9, 3, 1)
    );
    assert_eq!(
        (done.left_out[0].why.as_str(), done.left_out[0].bytes),
        ("binary", 1)
    );
    assert!(
        done.commit
            .0
            .is_some_and(|made| made.objects > 9 && made.branch == "main")
    );
    assert!(done.consolidated.0.is_some_and(|done| done.after > 0));
    let again: Commit = read("commit/1", &json(&place, &["commit"]));
    assert!(again.commit.0.is_none() && again.subject.0.is_none() && again.push.0.is_none());
}

#[test]
fn push() {
    let place = Place::with_sessions();
    let done: Commit = read("commit/1", &json(&place, &["commit", "--push"]));
    let failed = done.push.0.unwrap();
    assert_eq!((&*failed.state, failed.remote.0), ("failed", None));
    assert!(failed.why.0.is_some() && !failed.hints.is_empty());

    support::git::git_in(&place.root(), &["init", "-q", "--bare", "there.git"]).expect(0);
    let there = place.path("there.git");
    place.git(&["remote", "add", "there", there.to_str().unwrap()]);
    let plan: Commit = read("commit-plan/1", &json(&place, &["commit", "--push", "-n"]));
    assert_eq!(plan.push.0.unwrap().state, "would-push");
    let secret = ["ghp", "_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat();
    let name = OsStr::from_bytes(b"a\xff.txt");
    let file = place.home().join("sessions/20240603_crawler").join(name);
    std::fs::write(file, &secret).unwrap();
    let args = ["commit", "--push", "-m", &secret];
    let held: Commit = read("commit/1", &json(&place, &args));
    let held = held.push.0.unwrap();
    assert_eq!(
        (&*held.state, held.commits, held.allowed),
        ("held-back", 2, 0)
    );
    assert_eq!(
        (held.remote.0.as_deref(), held.branch.0.as_deref()),
        (Some("there"), Some("main"))
    );
    let [file, message] = &*held.findings else {
        panic!("{}", held.findings.len());
    };
    assert_eq!((&*file.part, &*message.part), ("content", "message"));
    assert!(file.path.is_some() && file.path_bytes.is_some());
    assert!(message.path.is_none() && message.path_bytes.is_none());
    assert_eq!(file.digest, message.digest);
}

#[test]
fn migrate() {
    let place = Place::new();
    let drive = place.path("drive");
    let corpus = Corpus {
        damage: true,
        old_path: drive.display().to_string(),
        ..Corpus::default()
    };
    corpus.write(&drive).unwrap();
    place.put("drive/left.tmp", "");
    place.put("drive/wbhome.toml", "[check]\ncommand = \"exit 0\"\n");
    let args = [
        "migrate",
        "drive",
        "home",
        "--no-state",
        "-y",
        "--exclude",
        "*.tmp",
    ];
    let plan: MigratePlan = read(
        "migrate-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert!(!plan.resumes && plan.references.by_mapping.len() == 1 && plan.skipped.len() == 1);
    assert!(matches!(plan.source, Exact::Text(path) if path == drive.display().to_string()));
    let done: Migrate = read("migrate/1", &json(&place, &args));
    let classes = &done.classes;
    assert_eq!(
        classes.copied + classes.rewritten + classes.linked + classes.folders + classes.skipped,
        classes.total
    );
    assert_eq!(done.totals.bytes, plan.bytes);
    assert!(!done.findings.is_empty() && done.references.changed > 0);
    // A plan counts what is in files, not what links and databases hold.
    assert!(plan.references.changed > 0 && plan.references.changed <= done.references.changed);
    assert!(Path::new(&done.record).is_dir());
    let spellings = [
        "plain",
        "json",
        "json-nested",
        "url",
        "shell",
        "home",
        "windows",
        "slug",
    ];
    assert!(
        done.references
            .by_spelling
            .keys()
            .all(|s| spellings.contains(&s.as_str()))
    );
    assert_eq!(
        done.references
            .by_mapping
            .iter()
            .map(|m| m.count)
            .sum::<u64>(),
        done.references.changed
    );
    std::fs::create_dir(place.path("disk")).unwrap();
    let finish = ["migrate", "finish", "--home", "home", "--to", "disk"];
    let args = [&finish[..], &["-n"]].concat();
    let plan: MigrateFinishPlan = read("migrate-finish-plan/1", &json(&place, &args));
    let packed: MigrateFinish = read("migrate-finish/1", &json(&place, &finish));
    assert!(
        packed.files == plan.files && packed.content == plan.content && plan.before.0.is_none()
    );
    assert!(Path::new(&packed.path).is_file() && packed.at < packed.keep_until);
    let status: MigrateStatus = read(
        "migrate-status/1",
        &json(&place, &["migrate", "status", "--home", "home"]),
    );
    assert_eq!(
        (status.finished, status.findings.len()),
        (done.finished, done.findings.len())
    );

    assert_eq!(status.packed.0.unwrap().blake3, packed.blake3);

    let verify = ["migrate", "verify", "--home", "home"];
    let same: MigrateVerify = read("migrate-verify/1", &json(&place, &verify));
    assert_eq!((same.equal, same.differences.len()), (same.compared, 0));
    std::fs::write(place.path("home/sessions/new file"), "").unwrap();
    let changed = std::fs::read_dir(place.path("home/agents"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    std::fs::write(changed.path().join("agent.yaml"), "changed").unwrap();
    let ran = json(&place, &verify);
    let differs: MigrateVerify = read("migrate-verify/1", &ran);
    assert_eq!(
        (ran.code, differs.differences.len(), differs.new_in_home),
        (Some(4), 1, same.new_in_home + 1)
    );
    assert_eq!(differs.differences[0].kind, "changed-in-home");
}

#[test]
fn leases() {
    let devices = Devices::new();
    let (laptop, desk) = (&devices.laptop, &devices.desk);
    let take = ["lease", "take", "数据", "crawler"];
    let plan: Lease = read(
        "lease-take-plan/1",
        &json(laptop, &[&take[..], &["-n"]].concat()),
    );
    assert_eq!(
        (plan.sessions[0].change.as_str(), plan.sessions[0].epoch.0),
        ("taken", Some(1))
    );
    assert!(plan.refused[0].other.0.is_none() && !plan.refused[0].hints.is_empty());
    let done: Lease = read("lease-take/1", &json(laptop, &take));
    assert_eq!(done.sessions[0].id, SHARED);
    let refused: Lease = read("lease-take/1", &json(desk, &["lease", "take", "数据"]));
    assert_eq!(refused.refused[0].other.0.as_ref().unwrap().name, "laptop");
    let steal = ["lease", "steal", "数据"];
    let plan: Lease = read(
        "lease-steal-plan/1",
        &json(desk, &[&steal[..], &["-n"]].concat()),
    );
    let other = plan.sessions[0].other.0.as_ref().unwrap();
    assert_eq!(
        (other.device.as_str(), other.epoch, other.ours),
        (LAPTOP, 1, false)
    );
    assert!(other.unchanged_since.0.is_some());
    let done: Lease = read(
        "lease-steal/1",
        &json(desk, &[&steal[..], &["--yes"]].concat()),
    );
    assert_eq!(
        (done.sessions[0].change.as_str(), done.sessions[0].epoch.0),
        ("stolen", Some(2))
    );
    std::fs::write(devices.relay().join(".leases/x.json"), "").unwrap();
    let listed: LeaseLs = read("lease-ls/1", &json(laptop, &["lease", "ls"]));
    assert!(
        listed.leases[0].overtaken[0].ours && !listed.leases[0].holder.0.as_ref().unwrap().ours
    );
    assert_eq!(
        (
            listed.strange[0].name.as_str(),
            listed.elsewhere,
            listed.noted.0
        ),
        ("x.json", 0, None)
    );

    let rows: Ls = read("ls/1", &json(laptop, &["ls", "--sort", "id"]));
    assert!(rows.sessions[0].held_by.0.is_none());
    assert_eq!(rows.sessions[1].held_by.0.as_ref().unwrap().name, "desk");
    let shown: Show = read("show/1", &json(laptop, &["show", "数据"]));
    assert_eq!(shown.held_by.0.as_ref().unwrap().device, DESK);
    let left: ArchivePlan = read(
        "archive-plan/1",
        &json(laptop, &["archive", "--idle", "1d", "-n"]),
    );
    assert_eq!(left.left[0].reason, "leased");
    let relink = ["relink", "/old", "/new", "--force"];
    let plan: RelinkPlan = read(
        "relink-plan/1",
        &json(laptop, &[&relink[..], &["-n"]].concat()),
    );
    assert_eq!(plan.passed_over[0].session, SHARED);
    let done: Relink = read("relink/1", &json(laptop, &relink));
    assert_eq!(done.passed_over.len(), 1);

    let release = ["lease", "release", "--all"];
    let plan: Lease = read(
        "lease-release-plan/1",
        &json(laptop, &[&release[..], &["-n"]].concat()),
    );
    assert_eq!(plan.sessions[0].change, "given-up");
    let done: Lease = read("lease-release/1", &json(desk, &release));
    assert_eq!(done.sessions[0].change, "released");
}

#[test]
fn the_state_folder_relink_and_mv() {
    let place = Place::new();
    let old = place.path("drive").to_str().unwrap().to_owned();
    support::moving::small_home(&place, "drive", &old);
    support::state::State::new(&old, 4).write(&place.path("S"));
    let args = ["migrate", "drive", "home", "--state", "S"];
    let plan: MigratePlan = read(
        "migrate-plan/1",
        &json(&place, &[&args[..], &["-n"]].concat()),
    );
    assert_eq!(plan.state.len(), 1);
    let done: Migrate = read("migrate/1", &json(&place, &args));
    let rows = done.state[0].database.0.as_ref().unwrap();
    assert!(!rows.left.is_empty() && rows.merged.is_empty());
    assert!(!done.state[0].binary.is_empty());
    let undo = ["migrate", "undo", "--home", "home"];
    std::fs::write(place.path("S/settings.json"), "{}").unwrap();
    let plan: MigrateUndoPlan = read(
        "migrate-undo-plan/1",
        &json(&place, &[&undo[..], &["-n"]].concat()),
    );
    assert_eq!(plan.would[0].changed.len(), 1);
    let undone: MigrateUndo = read(
        "migrate-undo/1",
        &json(&place, &[&undo[..], &["--force"]].concat()),
    );
    assert!(undone.undone[0].trash.0.is_some() && undone.undone[0].replaced.len() == 1);

    std::fs::rename(place.path("home"), place.path("家")).unwrap();
    let (from, to) = (place.path("home"), place.path("家"));
    let relink = [
        "relink",
        from.to_str().unwrap(),
        to.to_str().unwrap(),
        "--home",
        "家",
        "--state",
        "S",
    ];
    let plan: RelinkPlan = read(
        "relink-plan/1",
        &json(&place, &[&relink[..], &["-n"]].concat()),
    );
    assert!(plan.references.changed > 0);
    let done: Relink = read("relink/1", &json(&place, &relink));
    assert_eq!(done.references.changed, plan.references.changed);
    assert!(done.record.0.is_some());
    let undo = ["relink", "undo", "--home", "家"];
    let _: MigrateUndoPlan = read(
        "relink-undo-plan/1",
        &json(&place, &[&undo[..], &["-n"]].concat()),
    );
    let undone: MigrateUndo = read("relink-undo/1", &json(&place, &undo));
    assert!(undone.undone[0].restored > 0 && undone.undone[0].trash.0.is_none());

    let mv = ["mv", "one", "二", "--home", "家", "--state", "S"];
    let plan: MvPlan = read("mv-plan/1", &json(&place, &[&mv[..], &["-n"]].concat()));
    let done: Mv = read("mv/1", &json(&place, &mv));
    assert_eq!((plan.from, plan.to), (done.from, done.to));
}

#[test]
fn a_source_that_is_not_utf8() {
    let place = Place::new();
    let source = place.root().join(OsStr::from_bytes(b"dr\xffve"));
    std::fs::create_dir_all(source.join("sessions/20240603_x")).unwrap();
    std::fs::write(source.join("sessions/20240603_x/session.json"), "{}").unwrap();
    let run = |more: &[&str]| {
        let mut command = place.command();
        command
            .arg("migrate")
            .arg(&source)
            .args(["home", "--no-state", "-y", "--json"])
            .args(more);
        Ran::of(command.output().unwrap())
    };
    let plan: MigratePlan = read("migrate-plan/1", &run(&["-n"]));
    let done: Migrate = read("migrate/1", &run(&[]));
    for source in [plan.source, done.source] {
        let Exact::Bytes(ExactBytes { bytes }) = source else {
            panic!("text")
        };
        assert!(!bytes.is_empty());
    }
}

#[test]
fn drill() {
    let place = Place::with_sessions();
    place.put("me/.workbuddy/settings.json", "{}");
    place.ok(["commit", "-q"]);
    place.ok([
        "backup",
        "init",
        "-q",
        place.path("store").to_str().unwrap(),
    ]);
    place.ok(["backup", "run", "-q"]);
    let plan: DrillPlan = read("drill-plan/1", &json(&place, &["drill", "-n"]));
    assert!(plan.needs > 0 && plan.repository.0.is_some() && !plan.runs_command);
    place.put_home("sessions/20240603_crawler/context/turn_002.json", "{}");
    place.session("20240616_new", 16);
    let pack = walkdir::WalkDir::new(place.path("store/packs/sessions/20240605_api_refactor"));
    let pack = pack.into_iter().last().unwrap().unwrap().into_path();
    std::fs::write(pack, "").unwrap();
    let done: Drill = read("drill/1", &json(&place, &["drill"]));
    assert!(!done.recovered && !done.lost.is_empty() && !done.then.is_empty());
    assert!(done.blind_spots.iter().any(|spot| spot.files > 0));
    assert!(done.repository.0.is_some_and(|used| used.in_home));
    assert!(done.kinds.iter().any(|kind| kind.as_of.0.is_some()));
}

#[test]
fn nightly() {
    let place = Place::with_sessions();
    place.ok(["backup", "init", "store", "-q"]);
    let plan: Nightly = read("nightly-plan/1", &json(&place, &["nightly", "-n"]));
    assert!(plan.record.0.is_none() && plan.hook.0.is_none() && plan.stages.len() == 5);
    let done: Nightly = read("nightly/1", &json(&place, &["nightly"]));
    assert!(done.exit == 0 && done.record.0.is_some() && done.not_kept.0.is_none());
    let backup = done
        .stages
        .iter()
        .find(|stage| stage.name == "backup")
        .unwrap();
    assert!(backup.store.0.is_some() && backup.counts["packed"] > 0 && backup.troubles.is_empty());
    // What is kept is what is printed.
    let kept = std::fs::read_to_string(done.record.0.unwrap().path).unwrap();
    let _: Nightly = serde_json::from_str(&kept).unwrap();
    std::fs::rename(place.path("store"), place.path("away")).unwrap();
    let text = place.home_text("wbhome.toml");
    let hook = "\n[nightly]\non_failure = \"exit 3\"\n";
    place.put_home("wbhome.toml", text.replace("\n[nightly]\n", hook));
    let failed: Nightly = read("nightly/1", &json(&place, &["nightly"]));
    let backup = failed
        .stages
        .iter()
        .find(|stage| stage.name == "backup")
        .unwrap();
    assert!(failed.exit == 1 && backup.exit == 1 && !backup.troubles[0].message.is_empty());
    assert!(
        failed
            .hook
            .0
            .is_some_and(|hook| hook.code.0 == Some(3) && hook.trouble.0.is_some())
    );
}

#[test]
fn doctor() {
    let place = Place::with_sessions();
    let told: Doctor = read("doctor/1", &json(&place, &["doctor"]));
    assert!(told.trust == "named" && told.errors == 0 && told.warnings > 0);
    let backup = told.checks.iter().find(|check| check.name == "backup");
    let backup = backup.unwrap();
    assert_eq!(backup.verdict, "warning");
    // What only a person can say is no cure.
    assert_eq!(backup.cure.0.as_deref(), None);
    assert!(backup.hints[0].contains("`wbhome backup init DIR`"));
    place.put_home("index.json", "[");
    let broken = place.run(["doctor", "--json"]);
    broken.expect(4);
    let told: Doctor = read("doctor/1", &broken);
    assert_eq!(told.errors, 1);
    let index = told.checks.iter().find(|check| check.name == "index");
    let cure = index.unwrap().cure.0.as_deref();
    assert_eq!(cure, Some("wbhome index --rebuild"));
}

#[test]
fn du() {
    let place = Place::with_sessions();
    let odd = place
        .home()
        .join("sessions")
        .join(OsStr::from_bytes(b"a\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("x"), "12345").unwrap();
    let log = place.put_home("sessions/20240603_crawler/logs/run.log", "x".repeat(100));
    std::fs::hard_link(&log, log.with_file_name("twin.log")).unwrap();
    place.archived("20240605_api_refactor");
    let first: Du = read("du/1", &json(&place, &["du"]));
    assert!(first.recorded && first.since.0.is_none() && first.growth.0.is_none());
    assert_eq!((first.sessions.len(), first.grows.len()), (4, 3));
    let stranger = first
        .sessions
        .iter()
        .find(|s| s.path_bytes.is_some())
        .unwrap();
    assert_eq!(
        (stranger.all.bytes, stranger.status.as_str()),
        (5, "active")
    );
    let total = first.total.0.unwrap();
    let rest = first.rest.0.unwrap();
    let parts = [
        &first.together,
        &rest.archives,
        &rest.history,
        &rest.trash,
        &rest.own,
        &rest.other,
    ];
    assert_eq!(
        total.bytes,
        parts.iter().map(|part| part.bytes).sum::<u64>()
    );
    let again: Du = read("du/1", &json(&place, &["du", "crawler"]));
    assert!(again.total.0.is_none() && again.rest.0.is_none() && !again.recorded);
    assert_eq!(
        (again.growth.0, again.sessions[0].growth.0),
        (Some(0), Some(0))
    );
    assert!(again.since.0.is_some() && !again.largest.is_empty());
}

#[test]
fn schedule() {
    let place = Place::with_home();
    // No program at all: nobody's crontab is looked at.
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let run = |args: &[&str]| {
        let mut command = place.command();
        command
            .env("PATH", &bin)
            .arg("schedule")
            .args(args)
            .arg("--json");
        Ran::of(command.output().unwrap())
    };
    let shown: Schedule = read("schedule/1", &run(&["show", "--at", "4:05"]));
    assert_eq!(
        (shown.with.0.as_deref(), shown.at.as_str()),
        (Some("systemd"), "04:05")
    );
    assert!(!shown.done && shown.hindrance.0.is_some() && shown.installed.is_empty());
    assert_eq!(shown.entries.len(), 2);
    let whats: Vec<&str> = shown.steps.iter().map(|step| step.what.as_str()).collect();
    assert_eq!(whats, ["write", "write", "run", "run", "run"]);
    let removed: Schedule = read("schedule/1", &run(&["remove"]));
    assert!(removed.done && removed.with.0.is_none() && removed.steps.is_empty());
}

#[test]
fn export() {
    let place = Place::with_sessions();
    let token = ["ghp", "_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat();
    place.put_home("sessions/20240604_数据清洗/artifacts/key.txt", &token);
    place.put_home("sessions/20240603_crawler/logs/run.log", "x");
    std::fs::create_dir(place.path("out")).unwrap();
    let fifo = place.home().join("sessions/20240603_crawler/artifacts/p");
    let made = std::process::Command::new("mkfifo").arg(fifo).status();
    assert!(made.unwrap().success());
    let args = [
        "export",
        "20240603_crawler",
        "20240603_crawler/context",
        "20240604_数据清洗",
        "20240605_api_refactor/没有",
        "--to",
        "out",
    ];
    let ran = json(&place, &[&args[..], &["-n"]].concat());
    let plan: ExportPlan = read("export-plan/1", ran.expect(3));
    assert_eq!(
        (plan.items.len(), plan.held_back.len(), plan.refused.len()),
        (2, 1, 1)
    );
    assert!(plan.items[0].written.0.is_none());
    let ran = json(&place, &args);
    let done: Export = read("export/1", ran.expect(3));
    let [pack, folder] = &done.exported[..] else {
        panic!("two");
    };
    assert_eq!(
        (pack.kind.as_str(), pack.logs, pack.left_out.len()),
        ("session", 1, 1)
    );
    assert!(pack.inside.0.is_none() && pack.written.0.is_some() && !done.interrupted);
    assert_eq!(
        (folder.kind.as_str(), folder.from.as_str()),
        ("folder", "folder")
    );
    let finding = &done.held_back[0].findings[0];
    assert_eq!((finding.part.as_str(), finding.line), ("content", 1));
    assert_eq!(finding.path, "20240604_数据清洗/artifacts/key.txt");
    assert!(done.refused[0].why.contains("there is no"));
}

#[test]
fn relay() {
    let place = Place::with_sessions();
    let init = ["relay", "init", "relay", "--mode", "clone"];
    let plan: RelayInit = read(
        "relay-init-plan/1",
        json(&place, &[&init[..], &["-n"]].concat()).expect(0),
    );
    assert!(!plan.bound && plan.former.0.is_none());
    let done: RelayInit = read("relay-init/1", json(&place, &init).expect(0));
    assert_eq!(done.mode, "clone");
    let other = [&init[..4], &["symlink", "-n"]].concat();
    let plan: RelayInit = read("relay-init-plan/1", json(&place, &other).expect(0));
    assert_eq!(
        (plan.bound, plan.former_mode.0.as_deref()),
        (true, Some("clone"))
    );
    let ids = [
        "20240603_crawler",
        "20240604_数据清洗",
        "20240605_api_refactor",
    ];
    place.ok([&["label"], &ids[..], &["--sync-tag", "x"]].concat());
    let token = ["ghp", "_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat();
    place.put_home("sessions/20240604_数据清洗/artifacts/key.txt", &token);
    place.put_home("sessions/20240605_api_refactor/artifacts/a:b", "x");
    let fifo = place.home().join("sessions/20240603_crawler/artifacts/p");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(fifo)
            .status()
            .unwrap()
            .success()
    );
    let device = "f".repeat(32);
    let said = serde_json::json!({
        "format": 1, "device": device, "name": "台式机", "home": "h", "path": "/p", "since": support::NOW,
        "sessions": {"20240101_theirs": {"tag": "x", "at": support::NOW}},
        "leases": {"20240101_theirs": {"epoch": 9, "since": support::NOW}},
    });
    place.put(format!("relay/.leases/{device}.json"), said.to_string());
    place.put("relay/20240101_theirs/session.json", "{}");
    let plan: RelaySync = read(
        "relay-sync-plan/1",
        json(&place, &["relay", "sync", "-n"]).expect(3),
    );
    assert_eq!(plan.sessions.len(), 3);
    let done: RelaySync = read("relay-sync/1", json(&place, &["relay", "sync"]).expect(3));
    let states: Vec<_> = done
        .sessions
        .iter()
        .map(|s| (s.state.as_str(), s.why.0.as_deref()))
        .collect();
    assert_eq!(
        states,
        [
            ("sent", None),
            ("held", Some("secret")),
            ("held", Some("name"))
        ]
    );
    assert_eq!(done.sessions[0].left_out.len(), 1);
    assert_eq!(done.sessions[1].leaks[0].line, 1);
    assert_eq!(
        done.sessions[2].bad_names[0].suggestion.0.as_deref(),
        Some("a_b")
    );
    let stranger = &done.strangers[0];
    assert_eq!(stranger.from.0.as_deref(), Some("台式机"));
    assert_eq!(stranger.holder.0.as_ref().unwrap().epoch, 9);
    place.put("relay/20240603_crawler/session.json", "{}");
    let status: RelaySync = read(
        "relay-status/1",
        json(&place, &["relay", "status"]).expect(0),
    );
    assert_eq!(status.sessions[0].differences[0].there, "changed");
}

#[test]
fn errors() {
    let place = Place::with_sessions();
    let kinds = |args: &[&str]| {
        let ran = json(&place, args);
        assert_eq!(ran.stdout, "", "{args:?}");
        let document = ran.stderr.strip_suffix('\n').unwrap();
        let error: Failure =
            serde_json::from_str(document).unwrap_or_else(|e| panic!("{e}: {document}"));
        assert_eq!(
            (error.schema.as_str(), Some(i32::from(error.exit))),
            ("wbhome/error/1", ran.code)
        );
        assert!(
            !error.message.is_empty() && !error.message.contains('\n'),
            "{}",
            error.message
        );
        error.kind
    };
    assert_eq!(kinds(&["path", "nothing"]), "failed");
    assert_eq!(kinds(&["path"]), "usage");
    assert_eq!(kinds(&["ls", "--since", "x"]), "usage");
    assert_eq!(kinds(&["ls", "--home", "gone"]), "no-home");
    place.put_home(".wbhome/home.json", r#"{"format": 9}"#);
    assert_eq!(kinds(&["ls"]), "newer");
    // `locked` and `interrupted` are in tests/global.rs.
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md");
    std::fs::read_to_string(path).unwrap()
}

/// The rows of the tables below each heading: their first cell, without its backticks. A heading may name several.
fn sections() -> BTreeMap<String, Vec<String>> {
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut under: Vec<String> = Vec::new();
    for line in document().lines() {
        if let Some(heading) = line.strip_prefix('#') {
            under = heading
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            for name in &under {
                assert!(
                    sections.insert(name.clone(), Vec::new()).is_none(),
                    "two headings `{name}`"
                );
            }
        } else if let Some(row) = line.strip_prefix("| `") {
            let cell = row.split('`').next().unwrap();
            for name in &under {
                sections.get_mut(name).unwrap().push(cell.to_owned());
            }
        }
    }
    sections
}

#[test]
fn every_schema_and_every_field_is_documented() {
    let mut sections = sections();
    let kinds: BTreeSet<&str> = FindingKind::ALL.iter().map(|k| k.as_str()).collect();
    let alike = ALIKE.map(|(name, other)| {
        let declared = DECLARED.iter().find(|(n, _)| *n == other).unwrap();
        (name, declared.1)
    });
    for (name, fields) in DECLARED.iter().copied().chain(alike) {
        let mut rows = sections
            .remove(name)
            .unwrap_or_else(|| panic!("no heading `{name}` in docs/json.md"));
        if name.ends_with("finding") || name.ends_with("finding/1") {
            let told: BTreeSet<String> = rows.split_off(fields.len()).into_iter().collect();
            assert_eq!(
                told.iter().map(String::as_str).collect::<BTreeSet<_>>(),
                kinds
            );
        }
        assert_eq!(rows, fields, "{name}");
    }
    assert!(
        sections.is_empty(),
        "described, and never printed: {:?}",
        sections.keys()
    );
}

/// `verb/1`.
fn is_schema(text: &str) -> bool {
    let parts = text.split_once('/');
    parts.is_some_and(|(verb, number)| {
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        !verb.is_empty() && verb.chars().all(plain) && number.parse::<u32>().is_ok()
    })
}

/// What the sources hand to be printed is declared here.
#[test]
fn every_schema_in_the_sources_is_declared() {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
    let mut printed = BTreeSet::from(["wbhome/error/1".to_owned()]);
    for entry in walkdir::WalkDir::new(cli) {
        let entry = entry.unwrap();
        if entry.file_type().is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        // What is printed for each store gets its schema on the way.
        for call in [
            "console.result(",
            "console.report(",
            "console.document(",
            "console.line(",
            "in_each(",
            "let schema = ",
        ] {
            for after in text.split(call).skip(1) {
                let statement = after.split(';').next().unwrap();
                let names = statement.split('"').filter(|name| is_schema(name));
                printed.extend(names.map(|name| format!("wbhome/{name}")));
            }
        }
    }
    let declared: BTreeSet<String> = DECLARED
        .iter()
        .map(|(name, _)| *name)
        .chain(ALIKE.iter().map(|(name, _)| *name))
        .filter(|name| name.starts_with("wbhome/"))
        .map(str::to_owned)
        .collect();
    assert_eq!(printed, declared);
}

#[test]
fn kinds_mean_in_the_document_what_they_mean_in_the_program() {
    let text = document();
    for kind in FindingKind::ALL {
        let row = format!("| `{kind}` | {} |", kind.meaning());
        assert!(text.contains(&row), "docs/json.md lacks: {row}");
    }
}
