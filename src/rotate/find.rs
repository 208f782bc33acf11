//! Which logs there are: the globs of `[rotate] logs`, a name at a time from an open folder down. No link is followed on
//! the way, and only folders that a glob leads into are listed. Whatever a glob says, only a log is taken for one: what is
//! cut is let go of some day.

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
    /// What could not be looked into, and globs that are none of logs.
    pub failed: Vec<Failed>,
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
pub(super) fn find(home: &Home, request: &Request) -> Finds {
    let mut finds = Finds::default();
    let mut found = BTreeMap::new();
    for glob in &request.settings.logs {
        let (root, parts) = match compile(glob, &request.state) {
            Ok(Some(compiled)) => compiled,
            Ok(None) => {
                finds.unmatched.push(glob.clone());
                continue;
            }
            Err(error) => {
                finds
                    .failed
                    .push(Failed::of(PathBuf::from(glob).into(), &error));
                continue;
            }
        };
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
            others: 0,
            unreadable: Vec::new(),
        };
        match Dir::open(path) {
            Ok(dir) => search.go(&dir, &PathBuf::new(), &parts),
            Err(error) if disk::is_nowhere(&error) => {}
            Err(error) => search.fail(path, error),
        }
        match (search.logs.is_empty(), search.others) {
            (true, 0) => finds.unmatched.push(glob.clone()),
            (true, _) => finds.failed.push(Failed::of(
                PathBuf::from(glob).into(),
                &wrong(glob, "names nothing that is a log")
                    .hint("a log has a name that ends in .log, or lies in a folder `logs`"),
            )),
            (false, _) => {}
        }
        finds.failed.extend(search.unreadable);
        let named = |log: &Found| {
            let is_it = |id: &SessionId| log.session.as_deref() == Some(id.as_str());
            request.sessions.is_empty() || request.sessions.iter().any(is_it)
        };
        let logs = search.logs.into_iter().filter(named);
        found.extend(logs.map(|log| (log.path(), log)));
    }
    finds.logs = found.into_values().collect();
    finds
}

fn wrong(glob: &str, what: &str) -> Error {
    Error::failed(format!("[rotate] logs: the glob {what}:")).at(glob)
}

/// The folder that an absolute glob begins in, and the names from there on. None: there is no such folder.
fn compile(glob: &str, state: &[PathBuf]) -> Result<Option<(Option<PathBuf>, Vec<Part>)>> {
    let wrong = |what: &str| {
        wrong(glob, what).hint("write one below the home, such as sessions/*/logs/*.log")
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
                let parts = parts(Path::new(glob).strip_prefix("/").unwrap_or(Path::new(glob)));
                if !leads_somewhere(&parts.map_err(|what| wrong(&what))?) {
                    return Ok(None);
                }
                return Err(wrong(
                    "leads neither into the home nor into the application's own folder",
                ));
            };
            let parts = parts(&rest).map_err(|what| wrong(&what))?;
            return Ok(Some((Some(root), parts)));
        }
    };
    let parts = parts(rest).map_err(|what| wrong(&what))?;
    match parts.first() {
        Some(Part::Name(name)) if name == ".wbhome" => {
            Err(wrong("leads into what is wbhome's own"))
        }
        _ => Ok(Some((root, parts))),
    }
}

/// Whether the folder is there that an absolute glob names before the first part with a wildcard.
fn leads_somewhere(parts: &[Part]) -> bool {
    let folders = parts.split_last().map_or(&[][..], |(_, folders)| folders);
    let names = folders.iter().map_while(|part| match part {
        Part::Name(name) => Some(name.as_os_str()),
        _ => None,
    });
    let folder: PathBuf = std::iter::once(OsStr::new("/")).chain(names).collect();
    disk::exists(&folder)
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
    /// So much was found that is no log.
    others: u64,
    unreadable: Vec<Failed>,
}

impl Search<'_> {
    fn is_home(&self) -> bool {
        self.root.as_os_str().is_empty()
    }

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
            (true, FileKind::Folder) => self.others += 1,
            (true, _) if names::read(name).is_some() => {}
            (true, _) if !is_log(&path, self.is_home()) => self.others += 1,
            // What is behind a link to a folder is not looked at, and that is said.
            (false, FileKind::Symlink) if matches!(rest.first(), Some(Part::Below)) => {}
            (true, _) | (false, FileKind::Symlink) => self.logs.push(Found {
                folder: match self.is_home() {
                    true => rel.to_path_buf(),
                    false => self.root.join(rel),
                },
                name: name.to_owned(),
                session: match self.is_home() {
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

/// Whether it is a log by its name or its folder, and nothing that a home consists of.
fn is_log(path: &Path, in_home: bool) -> bool {
    let names: Vec<&OsStr> = path.iter().collect();
    let is_part = match names[..] {
        [top, ..] if top == "archive" || top == ".wbhome" || top == ".git" => true,
        [top, _, kind, _, ..] if top == "sessions" => kind == "context" || kind == "memory",
        _ => false,
    };
    let folders = &names[..names.len().saturating_sub(1)];
    let is_named_so = path.extension().is_some_and(|ending| ending == "log");
    (!in_home || !is_part) && (is_named_so || folders.iter().any(|folder| *folder == "logs"))
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
            leases: crate::home::Leases::default(),
            lets_go: true,
            settings: crate::home::Rotate {
                logs: logs.iter().map(|&glob| glob.to_owned()).collect(),
                ..crate::home::Rotate::default()
            },
            state: vec![place.home.root().join("state")],
        };
        let finds = find(&place.home, &request);
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

    #[test]
    fn whatever_a_glob_says_only_logs_are_taken_for_one() {
        let place = testing::home();
        for path in [
            "sessions/a/session.json",
            "sessions/a/checkpoint.md",
            "sessions/a/context/turn_001.json",
            "sessions/a/context/x.log",
            "sessions/a/memory/logs/x.log",
            "sessions/a/artifacts/build.log",
            "sessions/a/artifacts/table.csv",
            "sessions/a/logs/out.txt",
            "archive/a.log",
            "index.json",
            "wbhome.toml",
            "agents/r/logs/r.txt",
        ] {
            place.put(path, "x\n");
        }
        assert_eq!(
            found(&place, &["**/*"]),
            [
                "agents/r/logs/r.txt",
                "sessions/a/artifacts/build.log",
                "sessions/a/logs/out.txt"
            ]
        );
        let failed = |glob: &str| {
            let settings = crate::home::Rotate {
                logs: vec![glob.to_owned()],
                ..crate::home::Rotate::default()
            };
            let (sessions, state) = (Vec::new(), Vec::new());
            let finds = find(
                &place.home,
                &Request {
                    sessions,
                    force: false,
                    settings,
                    state,
                    leases: crate::home::Leases::default(),
                    lets_go: true,
                },
            );
            (finds.failed.len(), finds.unmatched.len())
        };
        assert_eq!(failed("sessions/*/*.json"), (1, 0));
        assert_eq!(failed("sessions/*/nothing/*.log"), (0, 1));
        // Elsewhere, and not there.
        assert_eq!(failed("/etc/*.conf"), (1, 0));
        assert_eq!(failed("/nothing/of/the/kind/*.log"), (0, 1));
    }
}
