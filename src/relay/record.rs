//! `.wbhome/relay.json`: what this home has put into its relay, file by file.
//!
//! What stands in the relay as it was recorded is ours to replace and remove; all else is somebody else's. A sync writes
//! into the log before it changes a session there, and the record once, at its end. After a kill a file that is as the
//! log says was put by us, although the record does not know it yet.

mod log;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::log::{Log, merge};
use crate::base::wire::ExactPath;
use crate::base::{Context, Error, Kind, Result, failpoint};
use crate::disk::{self, Digest, FileKind, Meta};
use crate::home::{Home, LockedHome, RelPath, RelayMode, is_log, trash};

const FORMAT: u64 = 1;
const LIMIT: u64 = 1 << 30;

/// What a name holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A folder, whatever is in it.
    Folder,
    /// A file with this content.
    File(Digest),
    /// A link that points there.
    Link(Vec<u8>),
}

/// What tells without reading that a file is what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    ino: u64,
    size: u64,
    mtime: (i64, u32),
    ctime: (i64, u32),
}

impl Seen {
    /// Of what `lstat` says.
    pub fn of(meta: &Meta) -> Seen {
        Seen {
            ino: meta.ino,
            size: meta.size,
            mtime: (meta.mtime.seconds, meta.mtime.nanos),
            ctime: (meta.ctime.seconds, meta.ctime.nanos),
        }
    }

    /// How long it was.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether it is the same file, written last when this one was: a rename and a further name change no more than the
    /// time of change.
    pub fn same_content(&self, meta: &Meta) -> bool {
        let now = Seen::of(meta);
        (now.ino, now.size, now.mtime) == (self.ino, self.size, self.mtime)
    }

    /// The same file with the same content has changed otherwise: by a further name.
    pub fn renew(&mut self, meta: &Meta) {
        if self.same_content(meta) {
            *self = Seen::of(meta);
        }
    }

    /// Whether it is a file that was written to since, rather than another one.
    pub fn same_file(&self, meta: &Meta) -> bool {
        self.ino == meta.ino
    }
}

/// A name that we have put into the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// What it held, here and there.
    pub holds: Holds,
    /// The file here that was looked at. Not recorded.
    pub looked: Option<Box<Seen>>,
    /// Whether it is there. Not recorded: whatever is recorded is.
    pub put: bool,
    /// The permission bits that it has here.
    pub mode: u32,
    /// The file here, when it was so. None when one more change might have left the same times.
    pub here: Option<Seen>,
    /// The file there.
    pub there: Option<Seen>,
}

impl Noted {
    /// Whether the two are recorded in the same words.
    pub fn is_recorded_as(&self, other: &Noted) -> bool {
        let words = |noted: &Noted| (noted.mode, noted.here, noted.there);
        words(self) == words(other) && self.holds == other.holds
    }
}

/// The names of a session, below its folder. Boxed: the nodes of a small tree have room for eleven each, most of it empty.
pub type Names = BTreeMap<PathBuf, Box<Noted>>;

/// What a name may hold, by syncs that did not come to their end; none where it was about to be removed.
pub type Begun = BTreeMap<PathBuf, Vec<Option<Holds>>>;

/// A session that we have put into the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// How.
    pub mode: RelayMode,
    /// Its sync tag then.
    pub tag: String,
    /// The id that its record gives it, which stays when its folder is renamed.
    pub session_id: Option<String>,
    /// The number of its folder here, which stays as well.
    pub folder: u64,
    /// When something of it was sent last.
    pub at: Timestamp,
    /// The digest of the rules by which all of it was looked at for secrets.
    pub checked_by: String,
    /// What it consists of. In mode symlink: what was looked at for secrets.
    pub names: Names,
}

/// What we have put into the relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// By id.
    pub sessions: BTreeMap<String, Put>,
    /// What syncs that were killed were about to leave there, by session.
    pub begun: BTreeMap<String, Begun>,
    /// Of what was begun and is not recorded: as if nothing of it had been put there. What the log says counts for each
    /// name.
    stand_ins: BTreeMap<String, Put>,
    /// Whether the file was there and could not be understood.
    pub broken: bool,
    /// The digest of what the file holds.
    held: Option<Digest>,
}

/// A name as it is written: `["context/turn_001.json", "f", "<digest>", 384, here, there]`.
#[derive(Serialize, Deserialize)]
struct Row(ExactPath, char, String, u32, Option<Seen>, Option<Seen>);

// Neither of the two holds a second form of all names: there may be hundreds of thousands.
#[derive(Deserialize)]
struct Session {
    id: String,
    mode: RelayMode,
    tag: String,
    session_id: Option<String>,
    folder: u64,
    at: Timestamp,
    checked_by: String,
    #[serde(deserialize_with = "names")]
    names: Names,
}

#[derive(Serialize)]
struct WrittenSession<'r> {
    id: &'r str,
    mode: RelayMode,
    tag: &'r str,
    session_id: Option<&'r str>,
    folder: u64,
    at: Timestamp,
    checked_by: &'r str,
    #[serde(serialize_with = "rows")]
    names: &'r Names,
}

#[derive(Deserialize)]
struct Document {
    format: u64,
    relay: ExactPath,
    device: String,
    sessions: Vec<Session>,
}

#[derive(Serialize)]
struct WrittenDocument<'r> {
    format: u64,
    relay: ExactPath,
    device: &'r str,
    #[serde(serialize_with = "sessions")]
    sessions: &'r BTreeMap<String, Put>,
}

impl Put {
    /// What was recorded of a name.
    pub fn noted(&self, path: &Path) -> Option<&Noted> {
        self.names.get(path).map(Box::as_ref)
    }
}

impl Record {
    /// Reads it. One of another relay or another device knows nothing of this one.
    ///
    /// # Errors
    /// When it can not be read, or a newer program has written it. One that is torn counts as none: then what is in the
    /// relay is ours where it is the same as here.
    pub fn read(home: &Home, relay: &Path, device: &str) -> Result<Record> {
        let path = home.relay_file();
        let mut record = Record::default();
        if let Some(content) = disk::read_small(&path, LIMIT)? {
            #[derive(Deserialize)]
            struct Format {
                format: u64,
            }
            // The number first: of a newer format nothing else is known.
            match serde_json::from_slice::<Format>(&content) {
                Ok(found) if found.format > FORMAT => return Err(newer(&path)),
                _ => {}
            }
            match serde_json::from_slice::<Document>(&content) {
                Ok(document)
                    if document.format == FORMAT
                        && *document.relay == *relay
                        && document.device == device =>
                {
                    for session in document.sessions {
                        record.add(session);
                    }
                }
                Ok(_) => {}
                Err(_) => record.broken = true,
            }
            record.held = Some(disk::digest(&content));
        }
        record.begun = log::read(home, relay)?;
        record.add_begun();
        Ok(record)
    }

    fn add(&mut self, session: Session) {
        let put = Put {
            mode: session.mode,
            tag: session.tag,
            session_id: session.session_id,
            folder: session.folder,
            at: session.at,
            checked_by: session.checked_by,
            names: session.names,
        };
        self.sessions.insert(session.id, put);
    }

    /// What we have put there of a session, as far as that is recorded or was begun.
    pub fn put(&self, id: &str) -> Option<&Put> {
        self.sessions.get(id).or_else(|| self.stand_ins.get(id))
    }

    /// Every session of which we have put something there, or have begun to.
    pub fn puts(&self) -> impl Iterator<Item = (&String, &Put)> {
        self.sessions.iter().chain(&self.stand_ins)
    }

    fn add_begun(&mut self) {
        let begun = self.begun.iter();
        for (id, begun) in begun.filter(|(id, _)| !self.sessions.contains_key(*id)) {
            let is_link = begun.contains_key(Path::new(""));
            self.stand_ins.entry(id.clone()).or_insert_with(|| Put {
                mode: match is_link {
                    true => RelayMode::Symlink,
                    false => RelayMode::Clone,
                },
                tag: String::new(),
                session_id: None,
                folder: 0,
                at: Timestamp::UNIX_EPOCH,
                checked_by: String::new(),
                names: Names::new(),
            });
        }
    }

    /// Writes it, and then the log anew, with what was begun of these sessions alone: of all others it is known now.
    ///
    /// # Errors
    /// When it can not be written.
    pub fn write(
        &mut self,
        home: &LockedHome,
        relay: &Path,
        device: &str,
        begun: &BTreeMap<String, Begun>,
        context: &Context,
    ) -> Result<()> {
        let path = home.relay_file();
        if std::mem::take(&mut self.broken) {
            let why = "it could not be understood";
            trash::put(home, &RelPath::new(".wbhome/relay.json")?, why, context)?;
            self.held = None;
        }
        let document = WrittenDocument {
            format: FORMAT,
            relay: relay.to_path_buf().into(),
            device,
            sessions: &self.sessions,
        };
        // Nobody edits it by hand, and it is as long as the home has files: no form of it is held beside the names.
        let held = disk::replace_long(&path, self.held, 0o600, |to| {
            Ok(serde_json::to_writer(to, &document)?)
        })?;
        self.held = Some(held);
        failpoint::hit("relay.recorded");
        log::write(home, relay, begun)
    }
}

fn newer(path: &Path) -> Error {
    Error::new(Kind::Newer, "was written by a newer wbhome:")
        .at(path)
        .hint("use the newer wbhome; nothing was touched")
}

fn sessions<S: Serializer>(
    sessions: &&BTreeMap<String, Put>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(sessions.iter().map(|(id, put)| WrittenSession {
        id,
        mode: put.mode,
        tag: &put.tag,
        session_id: put.session_id.as_deref(),
        folder: put.folder,
        at: put.at,
        checked_by: &put.checked_by,
        names: &put.names,
    }))
}

fn rows<S: Serializer>(names: &&Names, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(names.iter().map(|(path, noted)| {
        let (kind, value) = told(&noted.holds);
        let path = path.clone().into();
        Row(path, kind, value, noted.mode, noted.here, noted.there)
    }))
}

/// Reads the rows of a session. One of a kind that nobody knows is passed over.
fn names<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Names, D::Error> {
    struct Rows;

    impl<'de> Visitor<'de> for Rows {
        type Value = Names;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of names")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> std::result::Result<Names, A::Error> {
            // Built from a list a tree has full leaves, and takes half the room of one that has grown.
            let mut names = Vec::new();
            while let Some(Row(path, kind, value, mode, here, there)) = rows.next_element()? {
                let Some(holds) = held(kind, &value) else {
                    continue;
                };
                let noted = Noted {
                    looked: None,
                    put: true,
                    holds,
                    mode,
                    here,
                    there,
                };
                names.push((path.0, Box::new(noted)));
            }
            Ok(names.into_iter().collect())
        }
    }

    deserializer.deserialize_seq(Rows)
}

fn told(holds: &Holds) -> (char, String) {
    use base64::Engine as _;
    match holds {
        Holds::Folder => ('d', String::new()),
        Holds::File(digest) => ('f', digest.to_hex().to_string()),
        Holds::Link(target) => (
            'l',
            base64::engine::general_purpose::STANDARD.encode(target),
        ),
    }
}

fn held(kind: char, value: &str) -> Option<Holds> {
    use base64::Engine as _;
    Some(match kind {
        'd' => Holds::Folder,
        'f' => Holds::File(Digest::from_hex(value).ok()?),
        'l' => Holds::Link(
            base64::engine::general_purpose::STANDARD
                .decode(value)
                .ok()?,
        ),
        _ => return None,
    })
}

/// The digest of a version of a session: of its files and links, by path in order, with what each holds. Folders do not
/// count: some sync clients carry no empty ones. Logs do not: one device sends them and another does not.
pub fn version<'a>(names: impl Iterator<Item = (&'a Path, &'a Holds)>) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let counts = |(path, holds): &(&Path, &Holds)| {
        **holds != Holds::Folder && !path.as_os_str().is_empty() && !is_log(path)
    };
    let mut all: Vec<(&Path, &Holds)> = names.filter(counts).collect();
    all.sort_by_key(|(path, _)| *path);
    let mut hasher = blake3::Hasher::new();
    for (path, holds) in all {
        let (kind, value) = told(holds);
        for part in [path.as_os_str().as_bytes(), &[kind as u8], value.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// What an entry of a folder may be in a relay: files, folders and links; anything else never leaves.
pub fn travels(kind: FileKind) -> bool {
    matches!(kind, FileKind::File | FileKind::Folder | FileKind::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    #[test]
    fn what_was_written_is_read() {
        let place = testing::home();
        let home = place.locked("relay");
        let relay = Path::new("/中继");
        let mut record = Record::read(&home, relay, "device").unwrap();
        assert_eq!(record, Record::default());
        let seen = Seen {
            ino: 1,
            size: 2,
            mtime: (3, 4),
            ctime: (5, 6),
        };
        let noted = |holds| {
            Box::new(Noted {
                holds,
                looked: None,
                put: true,
                mode: 0o600,
                here: Some(seen),
                there: None,
            })
        };
        use std::os::unix::ffi::OsStrExt as _;
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"a\xff"));
        let names = Names::from([
            ("context".into(), noted(Holds::Folder)),
            (
                "context/轮.json".into(),
                noted(Holds::File(disk::digest(b"x"))),
            ),
            (odd.into(), noted(Holds::Link(b"\xfe".to_vec()))),
        ]);
        let put = Put {
            mode: RelayMode::Clone,
            tag: "笔记本".into(),
            session_id: Some("s".into()),
            folder: 9,
            at: Timestamp::UNIX_EPOCH,
            checked_by: "rules".into(),
            names,
        };
        record.sessions.insert("任务".into(), put);
        let log = Log::open(&home, relay).unwrap();
        let holds = Holds::File(disk::digest(b"y"));
        let begun = [(Path::new("a"), Some(&holds)), (Path::new("b"), None)];
        log.begin("任务", begun.into_iter()).unwrap();
        let read = Record::read(&home, relay, "device").unwrap();
        assert_eq!(
            read.begun["任务"],
            Begun::from([("a".into(), vec![Some(holds)]), ("b".into(), vec![None])])
        );
        record
            .write(&home, relay, "device", &BTreeMap::new(), &place.context())
            .unwrap();
        let mut read = Record::read(&home, relay, "device").unwrap();
        assert_eq!((&read.sessions, read.begun.len()), (&record.sessions, 0));
        // What was not seen to stays in the log, and nothing else.
        let kept = BTreeMap::from([("周报".to_owned(), Begun::from([("c".into(), vec![None])]))]);
        let context = place.context();
        read.write(&home, relay, "device", &kept, &context).unwrap();
        let kept_on = Record::read(&home, relay, "device").unwrap();
        assert_eq!(kept_on.begun, kept);
        assert!(kept_on.put("周报").is_some() && !kept_on.sessions.contains_key("周报"));
        read.write(&home, relay, "device", &BTreeMap::new(), &place.context())
            .unwrap();

        // Of another device or another folder it says nothing.
        for (relay, device) in [(relay, "other"), (Path::new("/other"), "device")] {
            assert!(
                Record::read(&home, relay, device)
                    .unwrap()
                    .sessions
                    .is_empty()
            );
        }
        place.put(".wbhome/relay.json", "{\"format\":1,");
        let mut torn = Record::read(&home, relay, "device").unwrap();
        assert!(torn.broken && torn.sessions.is_empty());
        torn.write(&home, relay, "device", &BTreeMap::new(), &place.context())
            .unwrap();
        assert_eq!(disk::read_dir_names(&home.trash()).unwrap().len(), 1);
        place.put(
            ".wbhome/relay.json",
            "{\"format\":2,\"relay\":\"/a\",\"device\":\"\",\"sessions\":[]}",
        );
        let newer = Record::read(&home, relay, "device").unwrap_err();
        assert_eq!(newer.kind(), Kind::Newer);
    }
}
