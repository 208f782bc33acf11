//! A session at a glance: what it is, where it stands, what it holds, what archive it has.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::source::{From, Source, Thing, open_pack};
use super::turn::{Said, Turn};
use crate::base::wire::WirePath;
use crate::base::{Context, Result, human};
use crate::browse::Running;
use crate::browse::ls::Holds;
use crate::home::{
    Entry, HeldBy, Home, Index, Leases, Record, SessionId, Status, parse_moment, turn_number,
};
use crate::pack::{Nature, Pack, Problem};
use crate::state::{Agent, AtWork};

/// So much of a checkpoint is looked at, and so many of its lines are told.
const BEGINNING: u64 = 16 << 10;
const LINES: usize = 6;
/// So many turns are told in brief, and longer ones are not read for that.
const TURNS: usize = 3;
const LONGEST: u64 = 8 << 20;
/// So many of its files are named.
const LARGEST: usize = 5;
/// A line without an end is cut there.
const WIDTH: usize = 200;

/// A session.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its status, in the index's own word; of one that is not indexed, where it was found.
    pub status: String,
    /// Whether the index knows it.
    pub indexed: bool,
    /// Its title.
    pub title: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whom it is shared with.
    pub sync_tag: Option<String>,
    /// The identity that stays when the folder is renamed.
    pub session_id: Option<String>,
    /// When it began.
    pub created: Option<Timestamp>,
    /// When something was last written in it.
    pub updated: Option<Timestamp>,
    /// The agent that works in it right now.
    pub running: Option<Running>,
    /// The device that holds its lease, this or another.
    pub held_by: Option<HeldBy>,
    /// Where all this was read.
    pub from: From,
    /// Its folder, or its archive.
    #[serde(flatten)]
    pub path: WirePath,
    /// What it holds, counted now.
    pub holds: Holds,
    /// The file of its last turn, below the session.
    pub last_turn: Option<String>,
    /// The last turns in brief, the last one last.
    pub turns: Vec<LastTurn>,
    /// Its largest files, the largest first.
    pub largest: Vec<Thing>,
    /// The first lines of `context/checkpoint.md` that are not empty.
    pub checkpoint: Vec<String>,
    /// Its archive, when it has one.
    pub archive: Option<Archive>,
    /// What could not be looked at.
    pub warnings: Vec<String>,
}

/// A turn in brief.
#[derive(Clone, Debug, Serialize)]
pub struct LastTurn {
    /// Its file, below the session.
    pub file: String,
    /// When, in its own words.
    pub at: Option<String>,
    /// What the person said last in it, and the agent.
    pub said: Vec<Said>,
}

/// What the archive of a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveForm {
    /// It names each file with its digest.
    Whole,
    /// Made by hand: zstd's own checksums are all that tells damage.
    Foreign,
    /// Something is wrong with it.
    Damaged,
}

/// The archive of a session.
#[derive(Clone, Debug, Serialize)]
pub struct Archive {
    /// Below the home.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// What it is.
    pub form: ArchiveForm,
    /// What is wrong with it.
    pub damage: Option<String>,
    /// When it was made.
    pub made: Option<Timestamp>,
    /// What could not be packed as it was.
    pub flaws: u64,
    /// BLAKE3 of it when it was made, as the index has it.
    pub blake3: Option<String>,
}

/// Tells of a session. `agents` are the processes that the application has noted; `leases` say who holds which.
///
/// # Errors
/// A session that is found nowhere; what can not be read.
pub fn session(
    home: &Home,
    id: &SessionId,
    agents: &[Agent],
    leases: &Leases,
    context: &Context,
) -> Result<Session> {
    let source = Source::open(home, id, context)?;
    let index = Index::read(home).unwrap_or_default();
    let entry = index.find(id.as_str());
    let record = record(&source, context);
    let counts = source.counts(home, id)?;
    let text = |of_entry: fn(&Entry) -> Option<&str>, of_record: &Option<String>| {
        let known = entry.and_then(of_entry).map(str::to_owned);
        known.or_else(|| of_record.clone().filter(|_| entry.is_none()))
    };
    let from = source.from();
    let session_id = text(Entry::session_id, &record.session_id);
    let at_work = AtWork::by_registry(home.root(), agents);
    let agent = at_work.agent_on(&home.session(id), session_id.as_deref());
    let found = match from {
        From::Folder => Status::Active,
        From::Archive => Status::Archived,
    };
    let told = |problem: &Problem| {
        let (part, what) = (human::escape(&problem.part), human::escape(&problem.what));
        format!("not all of the archive can be read: {part}: {what}")
    };
    let mut warnings: Vec<String> = source.problems().iter().map(told).collect();
    let checkpoint = checkpoint(&source, context).unwrap_or_else(|error| {
        warnings.push(error.to_string());
        Vec::new()
    });
    let turn_files = turn_files(&source);
    Ok(Session {
        id: id.clone(),
        status: entry.map_or(found, Entry::status).as_str().to_owned(),
        indexed: entry.is_some(),
        title: text(Entry::title, &record.title),
        agent: text(Entry::agent, &record.agent),
        project: text(Entry::project, &record.project),
        tags: match entry {
            Some(entry) => entry.tags().into_iter().map(str::to_owned).collect(),
            None => record.tags,
        },
        sync_tag: entry.and_then(Entry::sync_tag).map(str::to_owned),
        session_id,
        created: match entry {
            Some(entry) => entry.created(),
            None => record.created_at.as_deref().and_then(parse_moment),
        },
        updated: counts.last_activity,
        running: agent.map(Running::from),
        held_by: leases.of(id.as_str()).cloned(),
        from,
        path: match from {
            From::Folder => home.session(id).into(),
            From::Archive => home.archive_of(id).into(),
        },
        holds: Holds::from(&counts),
        last_turn: turn_files.last().cloned(),
        turns: last_turns(&source, &turn_files, context),
        largest: source.largest(LARGEST, context.stop)?,
        checkpoint,
        archive: archive(home, id, &source, entry)?,
        warnings,
    })
}

/// The session's own record. One that can not be understood is `check`'s to tell of.
fn record(source: &Source, context: &Context) -> Record {
    let name = Path::new("session.json");
    let content = source.beginning(name, 16 << 20, context).ok().flatten();
    content
        .and_then(|content| Record::parse(&content).ok())
        .unwrap_or_default()
}

/// The files of its turns, in the order of their numbers.
fn turn_files(source: &Source) -> Vec<String> {
    let turns = source.list(Path::new("context")).unwrap_or_default();
    let numbered = turns.iter().filter_map(|turn| {
        let name = turn.path.file_name()?;
        Some((turn_number(name)?, name.to_str()?))
    });
    let mut numbered: Vec<(u64, &str)> = numbered.collect();
    numbered.sort_unstable();
    let file = |(_, name): (u64, &str)| format!("context/{name}");
    numbered.into_iter().map(file).collect()
}

/// The last ones in brief. What is no turn, or longer than anybody reads at a glance, is left out: `check` tells of it.
fn last_turns(source: &Source, files: &[String], context: &Context) -> Vec<LastTurn> {
    let first = files.len().saturating_sub(TURNS);
    let read = |file: &String| {
        let content = source.beginning(Path::new(file), LONGEST, context).ok()??;
        let turn = Turn::read(&content)?;
        Some(LastTurn {
            file: file.clone(),
            at: turn.at.clone(),
            said: turn.brief(),
        })
    };
    files[first..].iter().filter_map(read).collect()
}

fn checkpoint(source: &Source, context: &Context) -> Result<Vec<String>> {
    let path = Path::new("context/checkpoint.md");
    let Some(content) = source.beginning(path, BEGINNING, context)? else {
        return Ok(Vec::new());
    };
    let text = String::from_utf8_lossy(&content);
    let lines = text.lines().map(str::trim_end).filter(|l| !l.is_empty());
    let cut = |line: &str| line.chars().take(WIDTH).collect();
    Ok(lines.take(LINES).map(cut).collect())
}

fn archive(
    home: &Home,
    id: &SessionId,
    source: &Source,
    entry: Option<&Entry>,
) -> Result<Option<Archive>> {
    let file = format!("archive/{id}.tar.zst");
    let known = |key: &str| entry.and_then(|e| e.archive()?.get(key)?.as_str());
    let told = |pack: &Pack| Archive {
        file: file.clone(),
        bytes: pack.size(),
        form: match pack.nature() {
            Nature::Whole => ArchiveForm::Whole,
            Nature::Foreign => ArchiveForm::Foreign,
            Nature::Damaged(_) => ArchiveForm::Damaged,
        },
        damage: match pack.nature() {
            Nature::Damaged(what) => Some(what.clone()),
            _ => None,
        },
        made: match pack.manifest() {
            Some(manifest) => Some(manifest.created_at),
            None => entry.and_then(Entry::archived_at).and_then(parse_moment),
        },
        flaws: pack.manifest().map_or(0, |m| m.flaws.len() as u64),
        blake3: known("blake3").map(str::to_owned),
    };
    match source {
        Source::Pack(pack, ..) => Ok(Some(told(pack))),
        // The session is there, whatever its archive is.
        Source::Folder(_) => Ok(match open_pack(home, id) {
            Ok(pack) => pack.as_ref().map(told),
            Err(error) => Some(Archive {
                file: file.clone(),
                bytes: crate::disk::stat(&home.archive_of(id))?.map_or(0, |meta| meta.size),
                form: ArchiveForm::Damaged,
                damage: Some(error.to_string()),
                made: None,
                flaws: 0,
                blake3: known("blake3").map(str::to_owned),
            }),
        }),
    }
}
