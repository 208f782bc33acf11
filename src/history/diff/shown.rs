//! How the difference of two contents is shown: JSON readable, text as it is, of binary data only that it differs.

use std::path::Path;

use git2::{DiffOptions, Patch};
use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};

use super::lines::{GOES_ON, pieces};
use super::readable::{Json, Text};
use crate::base::{Error, Kind, Result, human};
use crate::history::read::is_binary;
use crate::history::said::said;

/// How a content is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// JSON, value by value, and texts in it with their line breaks.
    Readable,
    /// Lines as they are; a long one in pieces.
    Text,
    /// Lines exactly as they are stored.
    Raw,
    /// Not at all.
    Binary,
}

/// Lines that differ, with some around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// What of the file it is about, where that can be said.
    pub heading: Option<String>,
    /// The first line of the older side, from 1.
    pub old_start: u32,
    /// How many lines of the older side.
    pub old_lines: u32,
    /// The first line of the newer side, from 1.
    pub new_start: u32,
    /// How many lines of the newer side.
    pub new_lines: u32,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// On which side.
    pub kind: LineKind,
    /// The line, without its end.
    #[serde(serialize_with = "as_text")]
    pub text: Vec<u8>,
    /// Whether it is the last of its side and has no line break.
    pub unended: bool,
}

/// On which side a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// On both.
    Both,
    /// On the older alone.
    Old,
    /// On the newer alone.
    New,
}

impl LineKind {
    /// The sign before it.
    pub fn sign(self) -> char {
        match self {
            LineKind::Both => ' ',
            LineKind::Old => '-',
            LineKind::New => '+',
        }
    }
}

fn as_text<S: Serializer>(text: &[u8], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(text))
}

/// What is shown of a file.
pub(super) struct Shown {
    pub form: Form,
    pub note: Option<String>,
    pub hunks: Vec<Hunk>,
}

impl Shown {
    pub fn too_large() -> Shown {
        Shown {
            form: Form::Binary,
            note: Some("too large to be shown".to_owned()),
            hunks: Vec::new(),
        }
    }
}

/// Compares two contents; one that is none is empty.
pub(super) fn show(
    path: &Path,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    raw: bool,
) -> Result<Shown> {
    let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
    if is_binary(before) || is_binary(after) {
        return Ok(Shown {
            form: Form::Binary,
            note: None,
            hunks: Vec::new(),
        });
    }
    if raw {
        return Ok(Shown {
            form: Form::Raw,
            note: None,
            hunks: hunks(before, after, &|_, _| None)?,
        });
    }
    let note = match readable(path, old, new) {
        Readable::As(older, newer) if older.text != newer.text => {
            let heading = |old: Option<u32>, new: Option<u32>| {
                let name = |text: &Text, line: u32| {
                    text.head(line as usize)
                        .map(|(at, name)| (at as u32, name.to_owned()))
                };
                match new {
                    Some(line) => name(&newer, line),
                    None => name(&older, old?),
                }
            };
            return Ok(Shown {
                form: Form::Readable,
                note: mark_told(old, new).map(str::to_owned),
                hunks: hunks(older.text.as_bytes(), newer.text.as_bytes(), &heading)?,
            });
        }
        Readable::Equal if before != after => {
            let format = "only its formatting differs: white space, the order of fields, escapes; --raw shows it";
            let format = (without_mark(before) != without_mark(after)).then_some(format);
            let notes: Vec<&str> = mark_told(old, new).into_iter().chain(format).collect();
            return Ok(Shown {
                form: Form::Readable,
                note: Some(notes.join("; ")),
                hunks: Vec::new(),
            });
        }
        Readable::Torn(why) => Some(why),
        _ => None,
    };
    let (one, other) = (in_pieces(before), in_pieces(after));
    // Only where the sign of a piece stands in the text itself can that make them equal.
    let (one, other) = match one == other {
        true => (before, after),
        false => (one.as_slice(), other.as_slice()),
    };
    Ok(Shown {
        form: Form::Text,
        note,
        hunks: hunks(one, other, &|_, _| None)?,
    })
}

/// What some editors put before a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(MARK).unwrap_or(content)
}

/// What became of the byte order mark, which is no part of what is shown.
fn mark_told(old: Option<&[u8]>, new: Option<&[u8]>) -> Option<&'static str> {
    match (old?.starts_with(MARK), new?.starts_with(MARK)) {
        (true, false) => Some("the byte order mark at its beginning is gone"),
        (false, true) => Some("it begins with a byte order mark now"),
        _ => None,
    }
}

/// What can be made of two contents.
enum Readable {
    As(Text, Text),
    /// They say the same.
    Equal,
    /// They would be JSON, but are not.
    Torn(String),
    /// They are something else.
    No,
}

fn readable(path: &Path, old: Option<&[u8]>, new: Option<&[u8]>) -> Readable {
    let extension = path.extension().and_then(|e| e.to_str());
    let extension = extension.map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("json") => document(old, new),
        Some("jsonl" | "ndjson") => records(old, new),
        _ => Readable::No,
    }
}

fn document(old: Option<&[u8]>, new: Option<&[u8]>) -> Readable {
    let parse = |content: Option<&[u8]>, side: &str| match content {
        None => Ok(None),
        Some(content) => Json::parse(content).map(Some).map_err(|error| {
            let error = human::escape(&error.to_string()).into_owned();
            // What nests deeply, or has half a character of UTF-16, is JSON all the same.
            let is = match serde_json::from_slice::<IgnoredAny>(without_mark(content)) {
                Ok(_) => "can not be shown value by value",
                Err(_) => "is no whole JSON",
            };
            format!("shown as it is stored, because the {side} version {is}: {error}")
        }),
    };
    let (older, newer) = match (parse(old, "older"), parse(new, "newer")) {
        (Ok(older), Ok(newer)) => (older, newer),
        (Err(why), _) | (_, Err(why)) => return Readable::Torn(why),
    };
    match (older, newer) {
        (Some(mut older), Some(newer)) => {
            older.arrange(&newer);
            match older == newer {
                true => Readable::Equal,
                false => Readable::As(Text::of(&older), Text::of(&newer)),
            }
        }
        (older, newer) => {
            let text = |json: Option<Json>| json.as_ref().map(Text::of).unwrap_or_default();
            Readable::As(text(older), text(newer))
        }
    }
}

/// A line of a JSONL file: what it says, or the line itself when it is torn.
type Record<'t> = (usize, std::result::Result<Json, &'t [u8]>);

fn records(old: Option<&[u8]>, new: Option<&[u8]>) -> Readable {
    fn parse(content: Option<&[u8]>) -> Vec<Record<'_>> {
        let lines = content.unwrap_or_default().split(|b| *b == b'\n');
        let said = lines
            .enumerate()
            .filter(|(_, line)| !line.trim_ascii().is_empty());
        said.map(|(n, line)| (n + 1, Json::parse(line).map_err(|_| line)))
            .collect()
    }
    let (mut older, newer) = (parse(old), parse(new));
    for ((_, one), (_, other)) in older.iter_mut().zip(&newer) {
        if let (Ok(one), Ok(other)) = (one, other) {
            one.arrange(other);
        }
    }
    let same = older.len() == newer.len()
        && older
            .iter()
            .zip(&newer)
            .all(|(one, other)| one.1 == other.1);
    if same && old.is_some() && new.is_some() {
        return Readable::Equal;
    }
    let lost =
        |record: &Record| matches!(record, (_, Err(line)) if std::str::from_utf8(line).is_err());
    if older.iter().chain(&newer).any(lost) {
        return Readable::Torn(
            "shown as it is stored, because a line of it is no UTF-8".to_owned(),
        );
    }
    let text = |records: Vec<Record>| {
        let mut text = Text::default();
        for (n, record) in records {
            // Without the number: a record that moves is the same record.
            text.named(&format!("line {n}"), "---");
            match record {
                Ok(json) => text.value(&json, &mut String::new()),
                Err(line) => text.long("torn: ", &String::from_utf8_lossy(line)),
            }
        }
        text
    };
    Readable::As(text(older), text(newer))
}

/// A text in which long lines are in pieces.
fn in_pieces(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + content.len() / 16);
    for line in content.split_inclusive(|b| *b == b'\n') {
        let Ok(text) = std::str::from_utf8(line) else {
            out.extend_from_slice(line);
            continue;
        };
        let (text, end) = match text.strip_suffix('\n') {
            Some(text) => (text, "\n"),
            None => (text, ""),
        };
        let pieces = pieces(text);
        for (n, piece) in pieces.iter().enumerate() {
            out.extend_from_slice(piece.as_bytes());
            if n + 1 < pieces.len() {
                out.extend_from_slice(format!("{GOES_ON}\n").as_bytes());
            }
        }
        out.extend_from_slice(end.as_bytes());
    }
    out
}

/// The name of what a line of the older or the newer side belongs to, with the line that says so.
type Heading<'h> = &'h dyn Fn(Option<u32>, Option<u32>) -> Option<(u32, String)>;

/// Git's own comparison of lines.
fn hunks(old: &[u8], new: &[u8], heading: Heading) -> Result<Vec<Hunk>> {
    let fail = |e| Error::new(Kind::Bug, "two texts can not be compared").because(said(e));
    let mut options = DiffOptions::new();
    options.context_lines(3).force_text(true);
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut options)).map_err(fail)?;
    let mut hunks = Vec::new();
    for at in 0..patch.num_hunks() {
        let (about, count) = patch.hunk(at).map_err(fail)?;
        let mut hunk = Hunk {
            heading: None,
            old_start: about.old_start(),
            old_lines: about.old_lines(),
            new_start: about.new_start(),
            new_lines: about.new_lines(),
            lines: Vec::new(),
        };
        let mut named = false;
        for n in 0..count {
            let line = patch.line_in_hunk(at, n).map_err(fail)?;
            let kind = match line.origin() {
                ' ' => LineKind::Both,
                '-' => LineKind::Old,
                '+' => LineKind::New,
                // What the line before it lacks.
                _ => {
                    if let Some(last) = hunk.lines.last_mut() {
                        last.unended = true;
                    }
                    continue;
                }
            };
            if kind != LineKind::Both && !named {
                named = true;
                let start = match line.new_lineno() {
                    Some(_) => hunk.new_start,
                    None => hunk.old_start,
                };
                let found = heading(line.old_lineno(), line.new_lineno());
                // One that is to be seen need not be said.
                hunk.heading = found.filter(|(at, _)| *at < start).map(|(_, name)| name);
            }
            let text = line.content();
            hunk.lines.push(Line {
                kind,
                text: text.strip_suffix(b"\n").unwrap_or(text).to_vec(),
                unended: false,
            });
        }
        hunks.push(hunk);
    }
    Ok(hunks)
}
