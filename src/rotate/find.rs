//! Which logs there are: the globs of `[rotate] logs`, a name at a time from an open folder down. No link is followed on
//! the way, and only folders that a glob leads into are listed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::outcome::Failed;
use super::{Request, names};
use crate::base::{Error, Result};
use crate::disk::{self, Dir, FileKind, Meta};
use crate::home::{Home, SessionId};

/// A log, or something that has its name.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its folder: relative to the home, or absolute.
    pub folder: PathBuf,
    /// Its name.
    pub name: OsString,
    /// Whose it is.
    pub session: Option<String>,
    /// What it is.
    pub meta: Meta,
}

impl Found {
    /// Where it is: relative to the home, or absolute.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Finds {
    pub logs: Vec<Found>,
    /// The globs that have found nothing.
    pub unmatched: Vec<String>,
    pub unreadable: Vec<Failed>,
}

/// A name on the way.
enum Part {
    /// This one.
    Name(OsString),
    /// Those that it matches; whether one that begins with a dot may be among them.
    Glob(GlobMatcher, bool),
    /// Any number of folders.
    Below,
}

/// Finds every log, each once, in the order of their paths.
pub(super) fn find(home: &Home, request: &Request) -> Result<Finds> {
    let mut finds = Finds::default();
    let mut found = BTreeMap::new();
    for glob in &request.settings.logs {
        let (root, parts) = compile(glob, &request.state)?;
        if root.is_some() && (!request.sessions.is_empty() || !home.is_trusted()) {
            continue;
        }
        let path = root.as_deref().unwrap_or(home.root());
        let mut search = Search {
            sessions: match root {
                None => &request.sessions,
                Some(_) => &[],
            },
            root: root.clone().unwrap_or_default(),
            logs: Vec::new(),
            unreadable: Vec::new(),
        };
        match Dir::open(path) {
            Ok(dir) => search.go(&dir, &PathBuf::new(), &parts),
            Err(error) if disk::is_nowhere(&error) => {}
            Err(error) => search.fail(path, error),
        }
        if search.logs.is_empty() {
            finds.unmatched.push(glob.clone());
        }
        finds.unreadable.extend(search.unreadable);
        let named = |log: &Found| {
            let is_it = |id: &SessionId| log.session.as_deref() == Some(id.as_str());
            request.sessions.is_empty() || request.sessions.iter().any(is_it)
        };
        let logs = search.logs.into_iter().filter(named);
        found.extend(logs.map(|log| (log.path(), log)));
    }
    finds.logs = found.into_values().collect();
    Ok(finds)
}

/// The folder that an absolute glob begins in, and the names from there on.
fn compile(glob: &str, state: &[PathBuf]) -> Result<(Option<PathBuf>, Vec<Part>)> {
    let wrong = |what: &str| {
        Error::failed(format!("[rotate] logs: the glob {what}:"))
            .at(glob)
            .hint("write one below the home, such as sessions/*/logs/*.log")
    };
    let (root, rest) = match Path::new(glob).is_absolute() {
        false => (None, Path::new(glob)),
        true => {
            let within = |folder: &PathBuf| {
                let real = disk::real_path(folder).ok()?;
                let below = [folder, &real]
                    .into_iter()
                    .find_map(|f| Path::new(glob).strip_prefix(f).ok());
                Some((real, below?.to_owned()))
            };
            let Some((root, rest)) = state.iter().find_map(within) else {
                return Err(wrong(
                    "leads neither into the home nor into the application's own folder",
                ));
            };
            let parts = parts(&rest).map_err(|what| wrong(&what))?;
            return Ok((Some(root), parts));
        }
    };
    let parts = parts(rest).map_err(|what| wrong(&what))?;
    match parts.first() {
        Some(Part::Name(name)) if name == ".wbhome" => {
            Err(wrong("leads into what is wbhome's own"))
        }
        _ => Ok((root, parts)),
    }
}

fn parts(glob: &Path) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for component in glob.components() {
        let std::path::Component::Normal(name) = component else {
            return Err("has `.` or `..` in it".to_owned());
        };
        let text = name.to_string_lossy();
        parts.push(match text.contains(['*', '?', '[', '{', '\\']) {
            false => Part::Name(name.to_owned()),
            true if text == "**" => Part::Below,
            true => {
                let built = GlobBuilder::new(&text).literal_separator(true).build();
                let glob = built.map_err(|e| format!("makes no sense ({e})"))?;
                Part::Glob(glob.compile_matcher(), text.starts_with('.'))
            }
        });
    }
    match parts.last() {
        Some(Part::Below) => Err("names no file".to_owned()),
        None => Err("is empty".to_owned()),
        _ => Ok(parts),
    }
}

struct Search<'a> {
    /// Where the names stand for sessions, only these; all when there are none.
    sessions: &'a [SessionId],
    root: PathBuf,
    logs: Vec<Found>,
    unreadable: Vec<Failed>,
}

impl Search<'_> {
    fn fail(&mut self, path: &Path, error: std::io::Error) {
        let path = self.root.join(path);
        let told = Error::io("can not be looked into:", &path, error);
        self.unreadable.push(Failed::of(path.into(), &told));
    }

    fn go(&mut self, dir: &Dir, rel: &Path, parts: &[Part]) {
        let Some((part, rest)) = parts.split_first() else {
            return;
        };
        let names: Vec<OsString> = match part {
            Part::Name(name) => vec![name.clone()],
            Part::Glob(..) if rel == Path::new("sessions") && !self.sessions.is_empty() => {
                self.sessions.iter().map(|id| id.as_str().into()).collect()
            }
            Part::Glob(..) | Part::Below => match dir.names() {
                Ok(names) => names.into_iter().map(|(name, _)| name).collect(),
                Err(error) => return self.fail(rel, error),
            },
        };
        if let Part::Below = part {
            self.go(dir, rel, rest);
        }
        for name in names {
            let is_hidden = name.as_bytes().starts_with(b".");
            let matches = match part {
                Part::Name(_) => true,
                Part::Glob(glob, hidden) => glob.is_match(&name) && (*hidden || !is_hidden),
                Part::Below => !is_hidden,
            };
            if matches {
                let rest = match part {
                    Part::Below => parts,
                    _ => rest,
                };
                self.look(dir, rel, &name, rest);
            }
        }
    }

    fn look(&mut self, dir: &Dir, rel: &Path, name: &OsStr, rest: &[Part]) {
        let path = rel.join(name);
        let meta = match dir.find(name) {
            Ok(Some(meta)) => meta,
            Ok(None) => return,
            Err(error) if disk::is_nowhere(&error) => return,
            Err(error) => return self.fail(&path, error),
        };
        match (rest.is_empty(), meta.kind) {
            (true, FileKind::Folder) => {}
            (true, _) if names::read(name).is_some() => {}
            (true, _) => self.logs.push(Found {
                folder: match self.root.as_os_str().is_empty() {
                    true => rel.to_path_buf(),
                    false => self.root.join(rel),
                },
                name: name.to_owned(),
                session: match self.root.as_os_str().is_empty() {
                    true => session_of(&path),
                    false => None,
                },
                meta,
            }),
            (false, FileKind::Folder) => match dir.open_beneath(Path::new(name)) {
                Ok(below) => self.go(&below, &path, rest),
                Err(error) if disk::is_nowhere(&error) => {}
                Err(error) => self.fail(&path, error),
            },
            (false, _) => {}
        }
    }
}

/// `sessions/<id>/…`
fn session_of(path: &Path) -> Option<String> {
    let mut names = path.iter();
    let (first, id) = (names.next()?, names.next()?);
    (first == "sessions").then(|| id.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::testing;

    fn found(place: &testing::Place, logs: &[&str]) -> Vec<String> {
        let request = Request {
            sessions: Vec::new(),
            force: false,
            settings: crate::home::Rotate {
                logs: logs.iter().map(|&glob| glob.to_owned()).collect(),
                ..crate::home::Rotate::default()
            },
            state: vec![place.home.root().join("state")],
        };
        let finds = find(&place.home, &request).unwrap();
        let shown = |log: &Found| log.path().display().to_string();
        finds.logs.iter().map(shown).collect()
    }

    #[test]
    fn globs_find_logs_and_never_what_was_cut_out_of_one() {
        let place = testing::home();
        for path in [
            "sessions/a/logs/run.log",
            "sessions/a/logs/run.log-20240615T030000Z",
            "sessions/a/logs/deep/er/x.log",
            "sessions/数据/logs/run.log",
            "sessions/a/logs/.hidden.log",
            "sessions/a/logs/other.txt",
            ".wbhome/x.log",
            "state/logs/app.log",
        ] {
            place.put(path, "x\n");
        }
        let default = ["sessions/*/logs/*.log"];
        assert_eq!(
            found(&place, &default),
            ["sessions/a/logs/run.log", "sessions/数据/logs/run.log"]
        );
        // Named twice, found once; and what was cut out matches, but is none.
        let all = ["sessions/*/logs/*", "sessions/**/*.log", "**/deep/**/x.log"];
        assert_eq!(
            found(&place, &all),
            [
                "sessions/a/logs/deep/er/x.log",
                "sessions/a/logs/other.txt",
                "sessions/a/logs/run.log",
                "sessions/数据/logs/run.log"
            ]
        );
        assert_eq!(
            found(&place, &["sessions/a/logs/.*.log"]),
            ["sessions/a/logs/.hidden.log"]
        );
        assert_eq!(
            found(&place, &["**/x.log"]),
            ["sessions/a/logs/deep/er/x.log"]
        );
        let state = place.home.root().join("state/logs/*.log");
        let app = place.home.root().join("state/logs/app.log");
        assert_eq!(
            found(&place, &[state.to_str().unwrap()]),
            [app.to_str().unwrap()]
        );
    }

    #[test]
    fn a_glob_that_leads_elsewhere_is_refused() {
        for bad in [
            "/var/log/*.log",
            "../*.log",
            "sessions/../x",
            "",
            "a/[",
            "a/**",
            ".wbhome/*",
        ] {
            assert!(compile(bad, &[]).is_err(), "{bad}");
        }
    }
}
