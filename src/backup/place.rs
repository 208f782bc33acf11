//! What a store keeps apart: each thing has a folder of its own below `packs/`, and is packed when it has changed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::{Error, Result};
use crate::home::SessionId;

/// What a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The home itself: index, settings, records, project views, and what lies about in it as single files.
    Home,
    /// `agents/`.
    Agents,
    /// A folder in the home that no layout knows.
    Folder,
    /// A session, in its folder or in its archive.
    Session,
    /// Part of the agent application's own folder.
    State,
    /// The conversations of one work folder, in the agent application's own folder.
    Transcripts,
}

/// A part of the agent application's own folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatePart {
    /// Its databases, copied by SQLite.
    Databases,
    /// `plans/` and `memory/`: packed on every night on which they changed.
    Daily,
    /// Everything else that a person would miss: packed every `settings_every`.
    Settings,
}

/// A thing of which a store keeps packs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The home itself.
    Home,
    /// `agents/`.
    Agents,
    /// A folder in the home, by its name.
    Folder(String),
    /// A session.
    Session(SessionId),
    /// A part of a state folder, by the name of that folder.
    State(StatePart, String),
    /// A folder below `projects/` of a state folder: the name of that folder, and the slug.
    Transcripts(String, String),
}

impl Place {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Place::Home => Kind::Home,
            Place::Agents => Kind::Agents,
            Place::Folder(_) => Kind::Folder,
            Place::Session(_) => Kind::Session,
            Place::State(..) => Kind::State,
            Place::Transcripts(..) => Kind::Transcripts,
        }
    }

    /// The folder of its packs, relative to the store.
    pub fn folder(&self) -> PathBuf {
        let packs = Path::new("packs");
        match self {
            Place::Home => packs.join("home"),
            Place::Agents => packs.join("agents"),
            Place::Folder(name) => packs.join("folders").join(escape(name)),
            Place::Session(id) => packs.join("sessions").join(escape(id.as_str())),
            Place::State(part, name) => part.packs().join(escape(name)),
            Place::Transcripts(name, slug) => packs
                .join("state-projects")
                .join(escape(name))
                .join(escape(slug)),
        }
    }

    /// The one top folder in its packs: what stock tools make when they unpack one.
    pub fn top(&self) -> &str {
        match self {
            Place::Home => "home",
            Place::Agents => "agents",
            Place::Folder(name) | Place::State(_, name) => name,
            Place::Session(id) => id.as_str(),
            Place::Transcripts(_, slug) => slug,
        }
    }

    /// How a person calls it.
    pub fn shown(&self) -> String {
        use crate::base::human::escape as safe;
        match self {
            Place::Home => "the home itself".to_owned(),
            Place::Agents => "agents/".to_owned(),
            Place::Folder(name) => format!("{}/", safe(name)),
            Place::Session(id) => safe(id.as_str()).into_owned(),
            Place::State(StatePart::Databases, name) => format!("{}: databases", safe(name)),
            Place::State(StatePart::Daily, name) => format!("{}: plans, memory", safe(name)),
            Place::State(StatePart::Settings, name) => format!("{}: settings", safe(name)),
            Place::Transcripts(name, slug) => format!("{}: projects/{}", safe(name), safe(slug)),
        }
    }
}

impl StatePart {
    /// The folder of its packs, relative to the store.
    pub(super) fn packs(self) -> PathBuf {
        Path::new("packs").join(self.folder())
    }

    fn folder(self) -> &'static str {
        match self {
            StatePart::Databases => "state-databases",
            StatePart::Daily => "state",
            StatePart::Settings => "state-settings",
        }
    }
}

/// What stands in a snapshot for a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fields {
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<StatePart>,
    /// The state folder that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl From<Place> for Fields {
    fn from(place: Place) -> Fields {
        let kind = place.kind();
        let (name, part, state) = match place {
            Place::Home | Place::Agents => (None, None, None),
            Place::Folder(name) => (Some(name), None, None),
            Place::Session(id) => (Some(id.to_string()), None, None),
            Place::State(part, state) => (None, Some(part), Some(state)),
            Place::Transcripts(state, slug) => (Some(slug), None, Some(state)),
        };
        Fields {
            kind,
            name,
            part,
            state,
        }
    }
}

impl TryFrom<Fields> for Place {
    type Error = Error;

    /// Names become paths when something is restored: each has to be one name.
    fn try_from(fields: Fields) -> Result<Place> {
        let one = |name: Option<String>| match name {
            Some(name) if is_one_name(&name) => Ok(name),
            _ => Err(Error::failed(
                "a snapshot names something that can not be restored",
            )),
        };
        let Fields {
            kind,
            name,
            part,
            state,
        } = fields;
        Ok(match kind {
            Kind::Home => Place::Home,
            Kind::Agents => Place::Agents,
            Kind::Folder => Place::Folder(one(name)?),
            Kind::Session => Place::Session(SessionId::adopt(&one(name)?)?),
            Kind::State => match part {
                Some(part) => Place::State(part, one(state)?),
                None => return one(None).map(Place::Folder),
            },
            Kind::Transcripts => Place::Transcripts(one(state)?, one(name)?),
        })
    }
}

fn is_one_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// The longest name that every filesystem takes, with room for nothing behind it.
const LONGEST: usize = 240;

/// A name that any filesystem takes: what some of them do not is written as `%XX`, and what is too long is cut, with a
/// digest of the whole behind it.
fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (n, c) in name.char_indices() {
        let odd = c.is_control()
            || matches!(
                c,
                '%' | '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|'
            )
            || n == 0 && c == '.'
            || n + c.len_utf8() == name.len() && matches!(c, '.' | ' ');
        match odd {
            true => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out += &format!("%{byte:02X}");
                }
            }
            false => out.push(c),
        }
    }
    if out.len() > LONGEST {
        let digest = blake3::hash(name.as_bytes()).to_hex();
        let mut end = LONGEST - 33;
        while !out.is_char_boundary(end) {
            end -= 1;
        }
        out.truncate(end);
        out = format!("{out}%{}", &digest[..32]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_readable() {
        for (name, escaped) in [
            ("20240603_爬虫", "20240603_爬虫"),
            (".workbuddy", "%2Eworkbuddy"),
            ("100%", "100%25"),
            ("a:b", "a%3Ab"),
            ("trail.", "trail%2E"),
            ("trail ", "trail%20"),
            ("a\nb", "a%0Ab"),
        ] {
            assert_eq!(escape(name), escaped);
        }
    }

    proptest! {
        #[test]
        fn no_two_names_share_a_folder(one in "\\PC{1,200}", other in "\\PC{1,200}") {
            prop_assert_eq!(one == other, escape(&one) == escape(&other));
            prop_assert!(escape(&one).len() <= LONGEST);
            prop_assert!(!escape(&one).starts_with('.'));
        }

        #[test]
        fn a_place_comes_back_from_a_snapshot(name in "[^/\\x00]{1,40}", slug in "[A-Za-z0-9-]{1,20}") {
            prop_assume!(is_one_name(&name));
            let places = [
                Place::Home, Place::Agents, Place::Folder(name.clone()),
                Place::State(StatePart::Databases, name.clone()), Place::Transcripts(name, slug),
            ];
            for place in places {
                prop_assert_eq!(&Place::try_from(Fields::from(place.clone())).unwrap(), &place);
            }
        }
    }

    #[test]
    fn what_leads_out_is_refused() {
        for name in ["", "..", ".", "a/b", "/etc"] {
            let fields = format!(r#"{{"kind":"folder","name":{name:?}}}"#);
            let fields: Fields = serde_json::from_str(&fields).unwrap();
            Place::try_from(fields).unwrap_err();
        }
        let fields: Fields = serde_json::from_str(r#"{"kind":"state","state":"x"}"#).unwrap();
        Place::try_from(fields).unwrap_err();
    }
}
