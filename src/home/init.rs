//! Making a home, or adopting a folder that has the layout: only what is missing is written.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::layout::{FORMAT, Marker, OWN, marker_file, read_marker};
use super::{Home, Index, Trust};
use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, failpoint, human};
use crate::disk::{self, FileKind};

const FOLDERS: [&str; 4] = ["agents", "sessions", "archive", "projects"];
const CONFIG: &str = include_str!("wbhome.toml");
const IGNORED: &str = "\
# What the history in git leaves out: logs, bulky results, and what is made again from the rest.
**/logs/
**/artifacts/*.csv
*.xlsx
*.db
/.wbhome/
/projects/
/archive/
";

/// What making a home would write.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The folder.
    #[serde(flatten)]
    pub root: WirePath,
    /// Paths below it that are missing; the folder itself as `.`.
    pub missing: Vec<String>,
    /// Whether it holds sessions or an index already.
    pub adopts: bool,
    /// Its mode, when others could look into it and it will be set to 0700.
    pub tightens: Option<u32>,
    /// What a missing index begins with; nothing, unless somebody knows what it held.
    #[serde(skip)]
    pub index: Index,
}

/// A home that is there now.
#[derive(Clone, Debug, Serialize)]
pub struct Initialised {
    /// The folder.
    #[serde(flatten)]
    pub root: WirePath,
    /// The home's id.
    pub id: String,
    /// What was written, as paths below it; the folder itself as `.`.
    pub written: Vec<String>,
    /// Whether sessions or an index were there before.
    pub adopted: bool,
    /// Its former mode, when it was set to 0700.
    pub tightened: Option<u32>,
}

/// Makes a home in `dir`, or adopts what is there.
///
/// # Errors
/// As [`plan`] and [`apply`].
pub fn init(dir: &Path, context: &Context) -> Result<Initialised> {
    apply(plan(dir)?, context)
}

/// What would be written to make `dir` a home.
///
/// # Errors
/// A folder that holds other things, lies inside a home, or was written by a newer program.
pub fn plan(dir: &Path) -> Result<Plan> {
    let root = disk::real_path(dir)?;
    let marked = read_marker(&root)?.is_some();
    if let Some(outer) = root
        .ancestors()
        .skip(1)
        .find(|a| disk::is_folder(&a.join(OWN)))
    {
        return Err(Error::failed("the folder is inside another home:")
            .at(&root)
            .hint(format!("choose a folder outside {}", human::path(outer))));
    }
    let meta = disk::stat(&root)?;
    let names = match &meta {
        Some(meta) if meta.kind != FileKind::Folder => {
            return Err(Error::failed("there is no folder, but something else:")
                .at(&root)
                .hint("choose another place for the home"));
        }
        Some(_) => disk::read_dir_names(&root)?,
        None => Vec::new(),
    };
    let has = |name: &str| names.iter().any(|(n, _)| n == name);
    let adopts = has("sessions") || has("index.json");
    if !names.is_empty() && !adopts && !has(OWN) {
        return Err(
            Error::failed("the folder holds other things, and no sessions:")
                .at(&root)
                .hint("choose an empty or a new folder, or one with a folder `sessions`"),
        );
    }
    let mut missing: Vec<String> = Vec::new();
    if meta.is_none() {
        missing.push(".".into());
    }
    for (name, kind) in layout() {
        match names.iter().find(|(n, _)| n == name) {
            None => missing.push(name.into()),
            Some((_, found)) if *found == kind => {}
            Some((_, found)) => {
                return Err(Error::failed(format!(
                    "expected {}, found {}:",
                    kind.described(),
                    found.described()
                ))
                .at(root.join(name))
                .hint("a link can not stand there: put the folder or file itself there"));
            }
        }
    }
    if !marked {
        missing.push(format!("{OWN}/home.json"));
    }
    let open = meta.filter(|m| !marked && m.mode & 0o077 != 0);
    Ok(Plan {
        root: root.into(),
        missing,
        adopts,
        tightens: open.map(|m| m.mode),
        index: Index::default(),
    })
}

/// The names at the top of a home, and what each is.
pub fn layout() -> impl Iterator<Item = (&'static str, FileKind)> {
    let folders = FOLDERS.iter().chain([&OWN]);
    let files = ["index.json", "wbhome.toml", ".gitignore"];
    folders
        .map(|name| (*name, FileKind::Folder))
        .chain(files.map(|name| (name, FileKind::File)))
}

/// Writes what is missing. `home.json`, which makes it a home, comes last.
///
/// # Errors
/// When something can not be written; the next `init` goes on from there.
pub fn apply(plan: Plan, context: &Context) -> Result<Initialised> {
    let root = &plan.root.0;
    let own = root.join(OWN);
    disk::create_private_folder(&own)?;
    if plan.tightens.is_some() {
        disk::set_mode(root, 0o700)?;
    }
    let _lock = lock(&own, context)?;
    let mut written = write_missing(&plan)?;
    let marker_file = own.join("home.json");
    if !disk::exists(&marker_file) {
        failpoint::hit("init.before-marker");
        absent(&marker_file, &marker(context)?)?;
        written.push(format!("{OWN}/home.json"));
    }
    for folder in [root.as_path(), &own] {
        let dir = disk::Dir::open(folder).and_then(|d| d.sync());
        dir.map_err(|e| Error::io("can not write to", folder, e))?;
    }
    let home = Home::open(root.clone(), Trust::Named)?;
    Ok(Initialised {
        root: root.clone().into(),
        id: home.id().to_owned(),
        written,
        adopted: plan.adopts,
        tightened: plan.tightens,
    })
}

/// Writes what is missing but for the marker.
pub(super) fn write_missing(plan: &Plan) -> Result<Vec<String>> {
    let mut written = Vec::new();
    for name in plan.missing.iter().map(String::as_str) {
        let path = plan.root.join(name);
        match name {
            "." | OWN => {}
            "index.json" => absent(&path, &plan.index.to_bytes())?,
            "wbhome.toml" => absent(&path, CONFIG.as_bytes())?,
            ".gitignore" => absent(&path, IGNORED.as_bytes())?,
            _ if name.ends_with("home.json") => continue,
            _ => disk::create_private_folder(&path)?,
        }
        written.push(name.to_owned());
    }
    Ok(written)
}

pub(super) fn absent(path: &Path, content: &[u8]) -> Result<()> {
    match disk::exists(path) {
        true => Ok(()),
        false => disk::write_new(path, content, 0o600),
    }
}

pub(super) fn marker(context: &Context) -> Result<Vec<u8>> {
    marker_of(format!("{:032x}", context.clock.random()), context)
}

/// The marker of a home that has an id already.
pub(super) fn marker_of(id: String, context: &Context) -> Result<Vec<u8>> {
    let marker = Marker {
        format: FORMAT,
        id,
        created: context.clock.now().to_string(),
    };
    let mut text = serde_json::to_vec_pretty(&marker)
        .map_err(|e| Error::io("can not write", marker_file(Path::new("")), e))?;
    text.push(b'\n');
    Ok(text)
}

/// Two who make the same home at once wait for each other. There is no home yet whose lock could be taken.
fn lock(own: &Path, context: &Context) -> Result<disk::FileLock> {
    let path = own.join("lock");
    let text = format!("wbhome init (process {})", std::process::id());
    for _ in 0..400 {
        let attempt = disk::FileLock::attempt(&path, &text)
            .map_err(|e| Error::io("can not take the lock", &path, e))?;
        if let disk::LockAttempt::Got(lock) = attempt {
            return Ok(lock);
        }
        context.stop.check()?;
        std::thread::sleep(Duration::from_millis(25));
    }
    Err(Error::new(crate::base::Kind::Locked, "the home is in use:").at(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Kind;
    use crate::home::{Config, testing};

    #[test]
    fn makes_everything_once() {
        let place = testing::home();
        let root = place.home.root().to_path_buf();
        assert_eq!(disk::stat(&root).unwrap().unwrap().mode, 0o700);
        for name in ["agents", "sessions", "archive", "projects", ".wbhome"] {
            assert_eq!(disk::stat(&root.join(name)).unwrap().unwrap().mode, 0o700);
        }
        assert_eq!(Index::read(&place.home).unwrap(), Index::default());
        Config::load(&place.home).unwrap();
        let again = init(&root, &place.context()).unwrap();
        assert_eq!(
            (again.id.as_str(), again.written.len()),
            (place.home.id(), 0)
        );
    }

    #[test]
    fn adopts_without_touching_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = testing::home();
        let root = folder.path();
        disk::set_mode(root, 0o755).unwrap();
        disk::create_private_folder(&root.join("sessions/20240603_数据")).unwrap();
        disk::write_new(&root.join("index.json"), b"{}", 0o644).unwrap();
        let made = init(root, &place.context()).unwrap();
        assert!(made.adopted);
        assert_eq!(made.tightened, Some(0o755));
        assert!(
            !made
                .written
                .iter()
                .any(|w| w == "index.json" || w == "sessions")
        );
        assert_eq!(
            disk::read(&root.join("index.json")).unwrap().unwrap(),
            b"{}"
        );
        assert!(disk::is_folder(&root.join("sessions/20240603_数据")));
        // What a person opened again later stays open.
        disk::set_mode(root, 0o750).unwrap();
        assert_eq!(init(root, &place.context()).unwrap().tightened, None);
    }

    #[test]
    fn refuses_what_is_no_place_for_a_home() {
        let place = testing::home();
        let inside = place.home.sessions().join("x");
        assert!(
            plan(&inside)
                .unwrap_err()
                .to_string()
                .contains("inside another home")
        );
        let folder = tempfile::tempdir().unwrap();
        disk::write_new(&folder.path().join("notes.md"), b"", 0o644).unwrap();
        assert!(
            plan(folder.path())
                .unwrap_err()
                .to_string()
                .contains("other things")
        );
        let linked = tempfile::tempdir().unwrap();
        disk::symlink(folder.path(), &linked.path().join("sessions")).unwrap();
        assert!(
            plan(linked.path())
                .unwrap_err()
                .to_string()
                .contains("symbolic link")
        );

        place.put(".wbhome/home.json", r#"{"format": 2, "new": true}"#);
        let error = init(place.home.root(), &place.context()).unwrap_err();
        assert_eq!(error.kind(), Kind::Newer);
        let error = Home::open(place.home.root(), Trust::Named).unwrap_err();
        assert_eq!(error.kind(), Kind::Newer);
    }
}
