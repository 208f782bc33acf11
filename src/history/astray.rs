//! A history that lies in another place than the settings say: nothing is to be begun or gone on with there unseen.

use std::path::Path;

use super::Repository;
use super::repository::{DOT_GIT, refuse_foreign};
use crate::base::{Error, Result, human};
use crate::disk::{self, FileKind};
use crate::home::Home;

/// Refuses a home whose `.git` is another repository than the one that the settings name, and one that has none while
/// there is one. `elsewhere` is `[git] dir`, absolute or relative to the home; without it nothing can be astray.
///
/// # Errors
/// Either of these, with what brings both together; what [`Repository::open`] refuses.
pub fn refuse_astray(home: &Home, elsewhere: Option<&Path>) -> Result<()> {
    let Some(elsewhere) = elsewhere else {
        return Ok(());
    };
    let root = disk::real_path(home.root())?;
    let named = disk::real_path(&root.join(elsewhere))?;
    let is_taken = match disk::stat(&named)? {
        Some(meta) if meta.kind == FileKind::Folder => !disk::read_dir_names(&named)?.is_empty(),
        there => there.is_some(),
    };
    let Some(repository) = Repository::open(home)? else {
        if !is_taken {
            return Ok(());
        }
        refuse_foreign(&named, &root)?;
        return Err(Error::failed(
            "the history is where [git] dir says, and nothing in the home leads there:",
        )
        .at(named)
        .hint("`wbhome commit` makes the .git that does"));
    };
    let dir = disk::real_path(repository.dir())?;
    if dir == named {
        return Ok(());
    }
    let error = Error::failed(format!(
        "[git] dir names {}, and the history is still in another place:",
        human::path(&named)
    ))
    .at(&dir);
    let error = match is_taken {
        true => error.hint(format!(
            "to move it there: move what lies in {} away first",
            human::path(&named)
        )),
        false => error.hint(format!("to move it there: {}", moving(&dir, &named, &root))),
    };
    Err(error.hint("to leave it where it is: take `dir` out of [git] in wbhome.toml"))
}

/// The commands that move a repository, for a shell.
fn moving(dir: &Path, named: &Path, root: &Path) -> String {
    let quoted = human::quoted;
    let mut commands = Vec::new();
    if disk::exists(named) {
        commands.push(format!("rmdir {}", quoted(named)));
    }
    commands.push(format!("mv {} {}", quoted(dir), quoted(named)));
    let link = root.join(DOT_GIT);
    if dir != link {
        commands.push(format!("rm {}", quoted(&link)));
    }
    commands.push(format!(
        "git --git-dir={} config core.worktree {}",
        quoted(named),
        quoted(root)
    ));
    commands.join(" && ")
}
