//! Binding a home to a relay folder, and telling its settings.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::devices::{Devices, FOLDER, Said};
use super::place::{another_home, refuse_within};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::disk::{self, Dir, Written};
use crate::home::{Config, Device, Home, Index, LockedHome, RelayMode};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder, absolute.
    pub dir: PathBuf,
    /// How sessions get there.
    pub mode: RelayMode,
    /// The folder that is set now, as an absolute path.
    pub set: Option<PathBuf>,
}

/// What is going to be done.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The folder.
    #[serde(flatten)]
    pub relay: WirePath,
    /// How sessions get there.
    pub mode: RelayMode,
    /// Whether the folder is bound to this home already.
    pub bound: bool,
    /// The folder that was set before, if that is another one. What was put there stays.
    pub former: Option<String>,
    /// The mode that was set before, if that is another one: the next sync converts.
    pub former_mode: Option<RelayMode>,
    /// What a person should know.
    pub notes: Vec<String>,
    #[serde(skip)]
    settings: Option<Settings>,
}

/// `wbhome.toml` as it is, if it is there, and as it will be.
#[derive(Clone, Debug)]
struct Settings {
    before: Option<Vec<u8>>,
    after: Vec<u8>,
}

/// What was done. The same words.
pub type Outcome = Plan;

/// Says what will be done.
///
/// # Errors
/// A folder that can not be the relay of this home; settings that can not be changed.
pub fn plan(home: &Home, device: Option<&Device>, request: &Request) -> Result<Plan> {
    let dir = &request.dir;
    refuse_within(home, dir)?;
    refuse_inner(dir)?;
    if request.mode == RelayMode::Hardlink {
        refuse_hard_links(home, dir)?;
    }
    let mut bound = false;
    if disk::stat(dir)?.is_some() {
        let root = Dir::open(dir).map_err(|e| Error::io("can not open the folder", dir, e))?;
        let this = device.map_or("", |device| device.id.as_str());
        if let Some(own) = Devices::read(&root, dir, this)?.own() {
            if let Some(error) = another_home(home, own)? {
                return Err(error.at(dir));
            }
            bound = true;
        }
    }
    let set = Config::load(home)?.relay;
    let former = request.set.clone();
    let former = former.filter(|former| !disk::same_file(former, dir).unwrap_or(former == dir));
    let mut notes = Vec::new();
    if disk::sync_folder(dir).is_none() && request.mode != RelayMode::Symlink {
        notes.push("no sync client is known to carry this folder; set one up for it".to_owned());
    }
    let tagged = tagged(home);
    if tagged > 0 && !bound {
        notes.push(format!(
            "{} a sync tag already and will go there: `wbhome relay sync -n` shows what",
            human::plural(tagged, "session carries", "sessions carry")
        ));
    }
    Ok(Plan {
        relay: dir.clone().into(),
        mode: request.mode,
        bound,
        settings: settings(home, request)?,
        former_mode: set
            .mode
            .filter(|mode| *mode != request.mode && former.is_none()),
        former: former.map(|former| former.to_string_lossy().into_owned()),
        notes,
    })
}

/// How many active sessions carry a sync tag.
fn tagged(home: &Home) -> u64 {
    let index = Index::read(home).unwrap_or_default();
    index.entries().filter(|entry| entry.travels()).count() as u64
}

/// Refuses a folder in a relay: its sessions would be files of the other's.
fn refuse_inner(dir: &Path) -> Result<()> {
    let outer = dir
        .ancestors()
        .skip(1)
        .find(|above| disk::is_folder(&above.join(FOLDER)));
    match outer {
        None => Ok(()),
        Some(outer) => Err(Error::failed("the folder lies inside another relay:")
            .at(dir)
            .hint(format!("choose a folder outside {}", human::path(outer)))),
    }
}

fn refuse_hard_links(home: &Home, dir: &Path) -> Result<()> {
    let there = dir.ancestors().find_map(|dir| disk::stat(dir).ok()?);
    let here = disk::stat(&home.sessions())?;
    match there
        .zip(here)
        .is_some_and(|(there, here)| there.dev == here.dev)
    {
        true => Ok(()),
        false => Err(Error::failed(
            "hard links can not lead to another filesystem than the home's:",
        )
        .at(dir)
        .hint("--mode clone copies instead")),
    }
}

/// The settings as they are and as they will be; `None` when they say all of it already.
fn settings(home: &Home, request: &Request) -> Result<Option<Settings>> {
    if request.set.as_ref() == Some(&request.dir)
        && Config::load(home)?.relay.mode == Some(request.mode)
    {
        return Ok(None);
    }
    let wanted = |config: &Config| {
        config.relay.dir.as_ref() == Some(&request.dir) && config.relay.mode == Some(request.mode)
    };
    let word = request.mode.word();
    let by_hand = |why: &str| {
        Error::failed(format!(
            "the relay can not be written into the settings: {why}:"
        ))
        .at(home.config_file())
        .hint(format!(
            "set it by hand, in [relay]: dir = {} and mode = \"{word}\"",
            human::quoted(&request.dir)
        ))
    };
    let Some(dir) = request.dir.to_str() else {
        return Err(by_hand("its path is not UTF-8"));
    };
    let before = disk::read_small(&home.config_file(), 1 << 20)?;
    let text = String::from_utf8(before.clone().unwrap_or_default())
        .map_err(|_| by_hand("they are not UTF-8"))?;
    let keys = [
        ("dir", toml::Value::String(dir.to_owned()).to_string()),
        ("mode", toml::Value::String(word.to_owned()).to_string()),
    ];
    let after = with_keys(&text, "relay", &keys);
    match Config::parse(&after).is_ok_and(|config| wanted(&config)) {
        true => Ok(Some(Settings {
            before,
            after: after.into_bytes(),
        })),
        false => Err(by_hand("they would not be understood any more")),
    }
}

/// A text of settings in which these keys of a section have these values: each in its line where it stands there, even
/// as a comment. Every other line stays as it is.
fn with_keys(text: &str, section: &str, keys: &[(&str, String)]) -> String {
    let header = format!("[{section}]");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let begins = lines.iter().position(|line| line.trim() == header);
    let begins = begins.unwrap_or_else(|| {
        if lines.last().is_some_and(|line| !line.trim().is_empty()) {
            lines.push(String::new());
        }
        lines.push(header.clone());
        lines.len() - 1
    });
    let ends = lines[begins + 1..]
        .iter()
        .position(|line| line.trim_start().starts_with('['))
        .map_or(lines.len(), |n| begins + 1 + n);
    let mut added = Vec::new();
    for (key, value) in keys {
        let is_key = |line: &str| {
            line.trim_start()
                .strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let section = begins + 1..ends;
        let found = lines[section.clone()]
            .iter()
            .position(|line| is_key(line))
            .or_else(|| {
                let commented = |line: &String| is_key(line.trim_start().trim_start_matches('#'));
                lines[section].iter().position(commented)
            });
        let line = format!("{key} = {value}");
        match found {
            Some(n) => lines[begins + 1 + n] = line,
            None => added.push(line),
        }
    }
    lines.splice(begins + 1..begins + 1, added);
    lines.join("\n") + "\n"
}

/// Makes the folder where it is missing, binds it, and writes the settings.
///
/// # Errors
/// A folder that can not be written, and settings that somebody changes meanwhile.
pub fn apply(
    home: &LockedHome,
    device: &Device,
    mut plan: Plan,
    context: &Context,
) -> Result<Outcome> {
    let path = plan.relay.to_path_buf();
    disk::create_folder(&path)?;
    let root = Dir::open(&path).map_err(|e| Error::io("can not open the folder", &path, e))?;
    let real = disk::real_path(home.root())?;
    let own = Devices::read(&root, &path, &device.id)?.own().cloned();
    let moved = own.as_ref().is_some_and(|own| *own.path != *real);
    if own.is_none() || moved {
        let since = context.clock.now();
        let said = match own {
            Some(own) => Said {
                path: real.into(),
                ..own
            },
            None => Said::first(&device.id, &device.name, home.id(), real.into(), since),
        };
        said.write(&root)
            .map_err(|e| Error::io("can not write to", path.join(FOLDER), e))?;
    }
    if let Some(Settings { before, after }) = plan.settings.take() {
        let config = home.config_file();
        if disk::replace(&config, before.as_deref(), &after, 0o600)? != Written::Done {
            return Err(
                Error::failed("was changed at the same moment, so the relay was not set:")
                    .at(&config)
                    .hint("run the command again"),
            );
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_set_where_they_stand() {
        let keys = [
            ("dir", "\"/a\"".to_owned()),
            ("mode", "\"clone\"".to_owned()),
        ];
        let set = |text: &str| with_keys(text, "relay", &keys);
        for (before, after) in [
            ("", "[relay]\ndir = \"/a\"\nmode = \"clone\"\n"),
            (
                "[git]\npush = true\n",
                "[git]\npush = true\n\n[relay]\ndir = \"/a\"\nmode = \"clone\"\n",
            ),
            (
                "[relay]\n# Where.\n# dir = \"/x\"\nmode = \"symlink\"\nlogs = true\n\n[state]\n# dir = 1\n",
                "[relay]\n# Where.\ndir = \"/a\"\nmode = \"clone\"\nlogs = true\n\n[state]\n# dir = 1\n",
            ),
            (
                "[relay]\nlogs = false\n[state]\ndir = \"/b\"\n",
                "[relay]\ndir = \"/a\"\nmode = \"clone\"\nlogs = false\n[state]\ndir = \"/b\"\n",
            ),
            (
                "[relay]\n# dir = 1\ndir = 2\n",
                "[relay]\nmode = \"clone\"\n# dir = 1\ndir = \"/a\"\n",
            ),
        ] {
            assert_eq!(set(before), after);
            assert_eq!(set(after), after);
        }
    }
}
