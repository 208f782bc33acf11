//! `index.json` as a value: every entry, in a shape that may be somebody else's.
//!
//! Nothing in the file is ever dropped because this program does not understand it: entries that are no
//! objects, or have no id, or share one, stay where they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::OnceLock;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Entry, Home, SessionId};
use crate::base::{Error, Result, human};
use crate::disk;

/// No honest index is larger.
pub(super) const LIMIT: u64 = 512 << 20;

/// The file's top level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// An array of entries, each with its id: what this program makes.
    #[default]
    Array,
    /// An object of id → entry.
    Object,
}

/// One element of the index.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A session.
    Entry(Entry),
    /// Something that is no entry; kept.
    Other {
        /// Its key, in an index that is an object.
        key: Option<String>,
        /// It.
        value: Value,
    },
}

/// The content of `index.json`.
#[derive(Clone, Default)]
pub struct Index {
    shape: Shape,
    items: Vec<Item>,
    /// Where the entries of each id stand, in their order, once somebody has asked: some look for each of ten thousand.
    places: OnceLock<HashMap<String, Vec<usize>>>,
}

/// What is only remembered is no part of what it is.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        (self.shape, &self.items) == (other.shape, &other.items)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut index = f.debug_struct("Index");
        index
            .field("shape", &self.shape)
            .field("items", &self.items);
        index.finish_non_exhaustive()
    }
}

impl Item {
    /// The id of an entry.
    fn id(&self) -> Option<&str> {
        match self {
            Item::Entry(entry) => Some(entry.id()),
            Item::Other { .. } => None,
        }
    }
}

impl Index {
    /// Reads the home's index; a home without one has an empty one.
    ///
    /// # Errors
    /// A file that can not be read, or is no index, with line and column.
    pub fn read(home: &Home) -> Result<Index> {
        let path = home.index_file();
        match disk::read_small(&path, LIMIT)? {
            Some(content) => Index::parse(&content).map_err(|e| broken(&path, &e)),
            None => Ok(Index::default()),
        }
    }

    /// Understands the content of an index.
    ///
    /// # Errors
    /// With line and column.
    pub fn parse(content: &[u8]) -> Result<Index, Broken> {
        // An editor of another system may have put a mark before it.
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        match content.trim_ascii_start().first() {
            Some(b'[' | b'{') => serde_json::from_slice(content).map_err(Broken::from),
            Some(_) => Err(Broken::new(1, 1, "expected `[` and a list of sessions")),
            None => Err(Broken::new(1, 1, "it is empty")),
        }
    }

    /// The file's content: sorted by id, two-space indent, a newline at the end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut sorted: Vec<&Item> = self.items.iter().collect();
        // Stable: what shares an id keeps its order. What has none goes last in an array; in an object, where
        // it is often a version, first.
        sorted.sort_by_key(|item| match item {
            Item::Entry(entry) => (1, entry.id()),
            Item::Other { .. } if self.shape == Shape::Object => (0, ""),
            Item::Other { .. } => (2, ""),
        });
        // Writing JSON values into memory can not fail: no map has a key that is no text.
        let mut content = serde_json::to_vec_pretty(&Sorted(self.shape, &sorted))
            .unwrap_or_else(|e| unreachable!("{e}"));
        content.push(b'\n');
        content
    }

    /// Its top level.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Everything, in the order of the file.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The entries, in the order of the file; several may share an id.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.items.iter().filter_map(|item| match item {
            Item::Entry(entry) => Some(entry),
            Item::Other { .. } => None,
        })
    }

    /// The entries, to be changed.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.places.take();
        self.items.iter_mut().filter_map(|item| match item {
            Item::Entry(entry) => Some(entry),
            Item::Other { .. } => None,
        })
    }

    /// The first entry of that id.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.entries_of(id).next()
    }

    /// All entries of that id, in the order of the file.
    pub fn entries_of(&self, id: &str) -> impl Iterator<Item = &Entry> {
        let places = self.places_of(id).iter();
        places.filter_map(|at| match self.items.get(*at) {
            Some(Item::Entry(entry)) => Some(entry),
            _ => None,
        })
    }

    /// Changes the first entry of that id, if there is one.
    pub fn edit<T>(&mut self, id: &str, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let at = self.places_of(id).first().copied()?;
        let Some(Item::Entry(entry)) = self.items.get_mut(at) else {
            return None;
        };
        let changed = change(entry);
        if entry.id() != id {
            self.places.take();
        }
        Some(changed)
    }

    fn places_of(&self, id: &str) -> &[usize] {
        let places = self.places.get_or_init(|| {
            let mut places: HashMap<String, Vec<usize>> = HashMap::with_capacity(self.items.len());
            for (at, item) in self.items.iter().enumerate() {
                if let Some(id) = item.id() {
                    places.entry(id.to_owned()).or_default().push(at);
                }
            }
            places
        });
        places.get(id).map_or(&[], Vec::as_slice)
    }

    /// Adds an entry.
    pub fn insert(&mut self, entry: Entry) {
        self.push(Item::Entry(entry));
    }

    fn push(&mut self, item: Item) {
        if let (Some(places), Some(id)) = (self.places.get_mut(), item.id()) {
            let places = places.entry(id.to_owned()).or_default();
            places.push(self.items.len());
        }
        self.items.push(item);
    }

    /// The ids that more than one entry has.
    pub fn duplicates(&self) -> Vec<String> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in self.entries() {
            *times.entry(entry.id()).or_default() += 1;
        }
        let repeated = times.into_iter().filter(|(_, n)| *n > 1);
        repeated.map(|(id, _)| id.to_owned()).collect()
    }

    /// How many elements are no entries.
    pub fn others(&self) -> usize {
        self.items.len() - self.entries().count()
    }

    /// The checked ids of all entries that have one.
    pub fn sessions(&self) -> BTreeSet<SessionId> {
        self.entries().filter_map(|e| e.session().ok()).collect()
    }

    /// An index of the same shape with these entries and nothing else.
    pub fn anew(shape: Shape, entries: impl IntoIterator<Item = Entry>) -> Index {
        Index {
            shape,
            items: entries.into_iter().map(Item::Entry).collect(),
            ..Index::default()
        }
    }

    fn take(&mut self, key: Option<String>, value: Value) {
        let item = match (key, value) {
            (Some(key), Value::Object(fields)) => Item::Entry(Entry::read(key, fields)),
            (None, Value::Object(fields)) => match fields.get("id") {
                Some(Value::String(id)) => Item::Entry(Entry::read(id.clone(), fields)),
                _ => Item::Other {
                    key: None,
                    value: Value::Object(fields),
                },
            },
            (key, value) => Item::Other { key, value },
        };
        self.push(item);
    }
}

/// Why an index can not be understood, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

impl Broken {
    pub(super) fn new(line: usize, column: usize, why: impl Into<String>) -> Broken {
        Broken {
            line,
            column,
            why: why.into(),
        }
    }
}

impl From<serde_json::Error> for Broken {
    fn from(error: serde_json::Error) -> Broken {
        let why = error.to_string();
        // serde_json appends the place; it reads better before the reason.
        let at = format!(" at line {} column {}", error.line(), error.column());
        let why = why.strip_suffix(&at).unwrap_or(&why);
        Broken::new(error.line(), error.column(), why)
    }
}

/// What to tell of an index that does not parse.
pub(super) fn broken(path: &std::path::Path, broken: &Broken) -> Error {
    Error::failed(format!(
        "the index is broken at line {}, column {} ({}):",
        broken.line,
        broken.column,
        human::escape(&broken.why)
    ))
    .at(path)
    .hint("mend it in an editor; nothing overwrites it meanwhile")
    .hint("or `wbhome index --rebuild` makes it anew from the sessions; this one goes to the trash")
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TopLevel;
        impl<'de> Visitor<'de> for TopLevel {
            type Value = Index;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an array of sessions, or an object of id → session")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Index, A::Error> {
                let mut index = Index::default();
                while let Some(value) = seq.next_element()? {
                    index.take(None, value);
                }
                Ok(index)
            }

            // Not through a map type, which would keep only the last of two equal keys.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Index, A::Error> {
                let mut index = Index {
                    shape: Shape::Object,
                    ..Index::default()
                };
                while let Some((key, value)) = map.next_entry()? {
                    index.take(Some(key), value);
                }
                Ok(index)
            }
        }
        deserializer.deserialize_any(TopLevel)
    }
}

struct Sorted<'i>(Shape, &'i [&'i Item]);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Shape::Array => {
                let mut seq = serializer.serialize_seq(Some(self.1.len()))?;
                for item in self.1 {
                    match item {
                        Item::Entry(entry) => seq.serialize_element(entry.fields())?,
                        Item::Other { value, .. } => seq.serialize_element(value)?,
                    }
                }
                seq.end()
            }
            Shape::Object => {
                let mut map = serializer.serialize_map(Some(self.1.len()))?;
                for item in self.1 {
                    match item {
                        Item::Entry(entry) => map.serialize_entry(entry.id(), entry.fields())?,
                        Item::Other { key, value } => {
                            map.serialize_entry(key.as_deref().unwrap_or_default(), value)?;
                        }
                    }
                }
                map.end()
            }
        }
    }
}
