//! What `migrate undo` and `relink undo` share: which swaps are taken back, and when that is refused.

use serde::Serialize;

use crate::base::wire::WirePath;
use crate::base::{Context, Error, Result, human};
use crate::home::journal::Settled;
use crate::home::swap::{self, Changed, Swap, Taken};
use crate::home::{Home, LockedHome, RelPath};
use crate::state;

/// Whether this command was stopped in its middle before, and was completed when the lock was taken.
pub(super) fn settled_by(home: &LockedHome, command: &str) -> bool {
    let done = |s: &Settled| s.command.as_deref() == Some(command) && !s.did.is_empty();
    home.settled().iter().any(done)
}

/// Nothing is begun while something else is still to be completed.
pub(super) fn nothing_pending(home: &LockedHome) -> Result<()> {
    match home.settled().iter().find_map(|s| s.pending.as_ref()) {
        Some(why) => Err(Error::failed(format!(
            "a command that was stopped is still to be completed: {}",
            human::escape(why)
        ))
        .hint("when the cause is gone, run this again")),
        None => Ok(()),
    }
}

/// What would be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UndoPlan {
    /// Folder by folder.
    pub would: Vec<WouldUndo>,
}

/// Folders that would be given back as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WouldUndo {
    /// The folders.
    pub folders: Vec<WirePath>,
    /// What was changed in them since: it stands in the way, and would go to the trash with `--force`.
    pub changed: Vec<Changed>,
}

/// What taking back would do.
pub(super) fn undo_plan(home: &Home, swaps: Vec<RelPath>, ctx: &Context) -> Result<UndoPlan> {
    let mut would = Vec::new();
    for rel in swaps {
        if let Some(swap) = Swap::read(home, &rel)?.filter(|s| s.is_done && !s.is_undone) {
            would.push(WouldUndo {
                folders: folders_of(&swap),
                changed: swap::changed_since(&swap, ctx)?,
            });
        }
    }
    Ok(UndoPlan { would })
}

fn folders_of(swap: &Swap) -> Vec<WirePath> {
    let roots = swap.roots().iter();
    roots.map(|root| root.path.clone().into()).collect()
}

/// What was taken back in one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// The folders that are as they were.
    pub folders: Vec<WirePath>,
    /// What was done in them.
    #[serde(flatten)]
    pub taken: Taken,
}

/// Takes back every swap of a record that was done and not taken back yet, the newest first.
///
/// # Errors
/// Whoever uses a state folder; what was changed since, without `force`; when there is nothing to take back.
pub(super) fn take_back(
    home: &LockedHome,
    swaps: Vec<RelPath>,
    command: &str,
    force: bool,
    ctx: &Context,
) -> Result<Vec<Undone>> {
    nothing_pending(home)?;
    let mut wanted = Vec::new();
    for rel in swaps {
        if let Some(swap) = Swap::read(home, &rel)?
            && swap.is_done
            && !swap.is_undone
        {
            wanted.push((rel, swap));
        }
    }
    for (_, swap) in &wanted {
        for root in swap.roots().iter().filter(|root| root.application) {
            state::refuse_while_in_use(&root.path)?;
        }
    }
    if !force {
        // All are looked at before the first is taken back.
        for (_, swap) in &wanted {
            swap::refuse_if_changed(swap, ctx)?;
        }
    }
    let mut undone = Vec::new();
    for (rel, swap) in wanted.into_iter().rev() {
        let taken = swap::undo(home, &rel, command, force, ctx)?;
        undone.push(Undone {
            folders: folders_of(&swap),
            taken,
        });
    }
    Ok(undone)
}
