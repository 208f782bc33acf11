//! What a list tells of a session, read out of `index.json` at full speed.
//!
//! At the press of the tab key there are 20 milliseconds for everything. Here the text is read once, only the fields
//! that are shown are kept, and what has another type than expected counts as absent. To know an index exactly, or to
//! change it, there is [`Index`](super::Index).

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::entry::began;
use super::index::LIMIT;
use super::{Home, Status};
use crate::base::{Error, Result};
use crate::disk;

/// A session in brief. What stands in the file without escapes is not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief<'t> {
    /// The id as it stands there: it may be anything.
    pub id: Cow<'t, str>,
    /// The status, in the index's own word.
    pub status: Option<Cow<'t, str>>,
    /// The title.
    pub title: Option<Cow<'t, str>>,
    /// The agent.
    pub agent: Option<Cow<'t, str>>,
    /// The project.
    pub project: Option<Cow<'t, str>>,
    /// The tags.
    pub tags: Vec<Cow<'t, str>>,
    /// Whom it is shared with.
    pub sync_tag: Option<Cow<'t, str>>,
    /// When it began, as it stands there.
    pub created_at: Option<Cow<'t, str>>,
    /// The identity that stays when the folder is renamed.
    pub session_id: Option<Cow<'t, str>>,
    /// Its archive, where that was asked for.
    pub archive: Option<Map<String, Value>>,
}

/// Hands over, one by one in the order of the file, the sessions of the home's index whose id is wanted.
///
/// # Errors
/// An index that can not be read, or is none; some of it may have been handed over before.
pub fn each_brief(
    home: &Home,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(Brief),
) -> Result<()> {
    read(home, false, wanted, found)
}

/// The same of every session, with what the index says of its archive.
///
/// # Errors
/// As [`each_brief`].
pub fn each_brief_with_archive(home: &Home, found: &mut dyn FnMut(Brief)) -> Result<()> {
    read(home, true, &|_| true, found)
}

fn read(
    home: &Home,
    archives: bool,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(Brief),
) -> Result<()> {
    let path = home.index_file();
    let Some(content) = disk::read_small(&path, LIMIT)? else {
        return Ok(());
    };
    let text = match str::from_utf8(&content) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(&content),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut reader = serde_json::Deserializer::from_str(text);
    let each = Each {
        archives,
        wanted,
        found,
    };
    each.deserialize(&mut reader)
        .and_then(|()| reader.end())
        .map_err(|e| Error::io("can not understand", &path, e))
}

impl Brief<'_> {
    /// Where it stands.
    pub fn status(&self) -> Status {
        self.status.as_deref().map_or(Status::Active, Status::parse)
    }

    /// When the session began: as the entry says, else by the date in its id.
    pub fn created(&self) -> Option<Timestamp> {
        began(self.created_at.as_deref(), &self.id)
    }
}

/// The whole file.
struct Each<'f> {
    archives: bool,
    wanted: &'f dyn Fn(&str) -> bool,
    found: &'f mut dyn FnMut(Brief),
}

impl Each<'_> {
    fn one<'t>(&mut self, key: Option<Cow<'t, str>>) -> One<'t, '_> {
        One {
            key,
            archives: self.archives,
            wanted: self.wanted,
            found: self.found,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Each<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Each<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of sessions, or an object of id → session")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(self.one(None))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key>()? {
            if key.0 == NUMBER {
                return Err(A::Error::custom("a number, and no index"));
            }
            map.next_value_seed(self.one(Some(key.0)))?;
        }
        Ok(())
    }
}

/// With `arbitrary_precision`, a number comes as an object with this key.
const NUMBER: &str = "$serde_json::private::Number";

/// One element: a session, or something that is none.
struct One<'t, 'f> {
    /// Its id, in an index that is an object.
    key: Option<Cow<'t, str>>,
    archives: bool,
    wanted: &'f dyn Fn(&str) -> bool,
    found: &'f mut dyn FnMut(Brief),
}

impl<'de> DeserializeSeed<'de> for One<'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Defines, for a visitor, what anything but the expected is.
macro_rules! anything_else {
    ($value:ty, $nothing:expr, [$($visit:ident: $of:ty),*]) => {
        $(fn $visit<E>(self, _: $of) -> Result<$value, E> {
            Ok($nothing)
        })*
        fn visit_unit<E>(self) -> Result<$value, E> {
            Ok($nothing)
        }
    };
}

impl<'de> Visitor<'de> for One<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut id = self.key.clone();
        let mut brief = Brief::default();
        while let Some(key) = map.next_key::<Key>()? {
            let field = match key.0.as_ref() {
                // Mostly it comes first, and then nothing else of what is not wanted is looked at.
                "id" if self.key.is_none() => {
                    id = map.next_value::<Text>()?.0;
                    if id.as_ref().is_some_and(|id| !(self.wanted)(id)) {
                        return skip(map);
                    }
                    continue;
                }
                "status" => &mut brief.status,
                "title" => &mut brief.title,
                "agent" => &mut brief.agent,
                "project" => &mut brief.project,
                "sync_tag" => &mut brief.sync_tag,
                "created_at" => &mut brief.created_at,
                "session_id" => &mut brief.session_id,
                "archive" if self.archives => {
                    if let Value::Object(archive) = map.next_value()? {
                        brief.archive = Some(archive);
                    }
                    continue;
                }
                "tags" => {
                    brief.tags = map.next_value::<Texts>()?.0;
                    continue;
                }
                NUMBER => return skip(map),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *field = map.next_value::<Text>()?.0;
        }
        if let Some(id) = id.filter(|id| self.key.is_none() || (self.wanted)(id)) {
            (self.found)(Brief { id, ..brief });
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    anything_else!((), (), [visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str]);
}

fn skip<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A key, copied only where it is written with escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// A text that is not empty; anything else is none.
struct Text<'de>(Option<Cow<'de, str>>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text((!text.is_empty()).then_some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text((!text.is_empty()).then(|| text.to_owned().into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text<'de>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Text(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'de>, A::Error> {
                skip(map).map(|()| Text(None))
            }

            anything_else!(Text<'de>, Text(None), [visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64]);
        }
        deserializer.deserialize_any(Any)
    }
}

/// The texts of an array, or a single one.
struct Texts<'de>(Vec<Cow<'de, str>>);

impl<'de> Deserialize<'de> for Texts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Texts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Texts<'de>, E> {
                let text = (!text.is_empty()).then(|| text.to_owned().into());
                Ok(Texts(text.into_iter().collect()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Texts<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some(text) = seq.next_element::<Text>()? {
                    all.extend(text.0);
                }
                Ok(Texts(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Texts<'de>, A::Error> {
                skip(map).map(|()| Texts(Vec::new()))
            }

            anything_else!(Texts<'de>, Texts(Vec::new()), [visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64]);
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{Entry, Index, testing};

    /// A session in one text, and when it began.
    type Told = (String, Option<Timestamp>);

    fn read(place: &testing::Place, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Told>> {
        let mut all = Vec::new();
        each_brief(&place.home, wanted, &mut |brief| {
            let status = brief.status();
            let told = format!(
                "{} {:?} {:?} {:?} {:?} {:?} {:?}",
                brief.id,
                status.as_str(),
                brief.title.as_deref(),
                brief.agent.as_deref(),
                brief.project.as_deref(),
                brief.tags,
                brief.sync_tag.as_deref(),
            );
            all.push((told, brief.created()));
        })?;
        Ok(all)
    }

    /// The identity of a session, and its archive.
    type Rest = (Option<String>, Option<Map<String, Value>>);

    /// What `ls` shows besides.
    fn rest(place: &testing::Place) -> Vec<Rest> {
        let mut all = Vec::new();
        each_brief_with_archive(&place.home, &mut |brief| {
            all.push((brief.session_id.map(Cow::into_owned), brief.archive));
        })
        .unwrap();
        all
    }

    fn told(entry: &Entry) -> Told {
        let told = format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?}",
            entry.id(),
            entry.status().as_str(),
            entry.title(),
            entry.agent(),
            entry.project(),
            entry.tags(),
            entry.sync_tag(),
        );
        (told, entry.created())
    }

    #[test]
    fn says_what_the_index_says() {
        let place = testing::home();
        for content in [
            r#"[
                {"id": "20240603_数据", "status": "archived", "title": "a \"b\"", "tags": ["x", 1, null, "y"], "n": 1.50},
                {"id": "20240604_b", "archive": {"file": "a", "bytes": 12345678901234567890}, "session_id": "s", "sync_tag": "laptop", "tags": "one", "created_at": "2024-06-04T09:00:00+08:00", "agent": {"a": [1]}},
                7, null, "text", [1, {"id": "no"}], {"title": "no id"}, {"id": 5}, {"id": "c", "title": "", "\u0061gent": "w", "project": 3},
                {"title": "first", "tags": 2.5, "id": "late\n"}
            ]"#,
            r#"{"version": 2, "a": {"title": "t"}, "b": {"id": "other", "project": ["p"]}}"#,
            "\u{feff}[]",
        ] {
            place.put("index.json", content);
            let index = Index::read(&place.home).unwrap();
            let known: Vec<Told> = index.entries().map(told).collect();
            assert_eq!(read(&place, &|_| true).unwrap(), known);
            let known = index.entries().map(|entry| {
                let archive = entry.archive().cloned();
                (entry.session_id().map(str::to_owned), archive)
            });
            assert_eq!(rest(&place), known.collect::<Vec<_>>());
            let odd = |id: &str| id.len() % 2 == 1;
            let known: Vec<Told> = index.entries().filter(|e| odd(e.id())).map(told).collect();
            assert_eq!(read(&place, &odd).unwrap(), known);
        }
        for broken in ["", "[{", "7", "[1] x", "{\"a\": {}"] {
            place.put("index.json", broken);
            assert!(read(&place, &|_| true).is_err(), "{broken}");
        }
    }
}
