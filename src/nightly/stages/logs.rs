//! The two stages that are about logs: the first of the night cuts them, so that what is cut out is in its backup. The last
//! one lets go of what was cut out long ago, when it is.

use super::NAMED;
use crate::base::{Exit, human};
use crate::nightly::{Night, Stage};
use crate::rotate::{self, Reason};

/// The logs that are due are cut, before anything of them is packed.
pub(super) fn rotate(night: &Night, _: &[Stage]) -> Vec<Stage> {
    vec![night.set_up("rotate", None, |stage| {
        let request = rotate::Request {
            lets_go: !night.has_store(),
            ..(night.request.rotate)(night.home, night.context)?
        };
        if night.only_look {
            let plan = rotate::plan(night.home, &request, night.context)?;
            let due = plan.logs.iter().filter(|log| log.due.is_some());
            let (n, bytes) = due.fold((0, 0), |(n, bytes), log| (n + 1, bytes + log.bytes));
            stage.count("due", n);
            stage.did = match n {
                0 => "no log is due".to_owned(),
                n => format!(
                    "{} due, {}",
                    human::plural(n, "log", "logs"),
                    human::size(bytes)
                ),
            };
            if request.lets_go {
                say_removed(stage, plan.removed.len());
                tell_removed(stage, &plan.removed);
            }
            tell_left(stage, &plan.left);
            tell_failed(stage, &plan.failed);
            return Ok(());
        }
        let locked = night.lock(stage)?;
        let plan = rotate::plan(&locked, &request, night.context)?;
        let done = rotate::apply(&locked, plan, &request, night.context)?;
        tell_rotation(stage, &done);
        Ok(())
    })]
}

/// What was cut out of logs and is beyond the settings goes when every store has it.
pub(super) fn let_go(night: &Night, before: &[Stage]) -> Vec<Stage> {
    let mut backups = before.iter().filter(|stage| stage.name == "backup");
    let all_good = backups.all(|stage| stage.exit == Exit::Done && stage.skipped.is_none());
    let mut is_needed = false;
    let stage = night.set_up("logs", None, |stage| {
        // Without a store they have gone when the logs were cut.
        if !night.has_store() {
            return Ok(());
        }
        let request = (night.request.rotate)(night.home, night.context)?;
        let plan = rotate::plan(night.home, &request, night.context)?;
        is_needed = !plan.removed.is_empty();
        if is_needed && !all_good {
            stage.skip("a backup has not been good, so every cut log stays");
            return Ok(());
        }
        let mut removed = plan.removed;
        if is_needed && !night.only_look {
            let locked = night.lock(stage)?;
            let plan = rotate::plan(&locked, &request, night.context)?;
            let done = rotate::let_go(&locked, plan, &request, night.context);
            tell_failed(stage, &done.failed);
            removed = done.removed;
        }
        let bytes = removed.iter().map(|gone| gone.bytes).sum();
        stage.count("removed", removed.len() as u64);
        stage.count("bytes", bytes);
        stage.did = format!(
            "{} let go of, {}",
            human::plural(removed.len() as u64, "cut log", "cut logs"),
            human::size(bytes)
        );
        tell_removed(stage, &removed);
        Ok(())
    });
    match is_needed || stage.exit != Exit::Done {
        true => vec![stage],
        false => Vec::new(),
    }
}

fn tell_rotation(stage: &mut Stage, done: &rotate::Outcome) {
    let lossy = done.cut.iter().filter(|cut| !cut.lossless).count();
    let bytes = done.cut.iter().map(|cut| cut.bytes).sum();
    for (what, n) in [
        ("cut", done.cut.len()),
        ("lossy", lossy),
        ("left", done.left.len()),
        ("compressed", done.compressed.len()),
        ("removed", done.removed.len()),
    ] {
        stage.count(what, n as u64);
    }
    stage.count("bytes", bytes);
    stage.count("resting", done.resting);
    stage.did = match done.cut.len() as u64 {
        0 => "no log is due".to_owned(),
        n => format!(
            "{} cut, {}",
            human::plural(n, "log", "logs"),
            human::size(bytes)
        ),
    };
    say_removed(stage, done.removed.len());
    if lossy > 0 {
        let logs = human::plural(lossy as u64, "log was", "logs were");
        stage
            .notes
            .push(format!("{logs} cut in a way that is not lossless"));
    }
    tell_removed(stage, &done.removed);
    tell_left(stage, &done.left);
    tell_failed(stage, &done.failed);
    if done.interrupted {
        stage.exit = stage.exit.merge(Exit::Interrupted);
    } else if done.exit() == Exit::Failed {
        stage.exit = stage.exit.merge(Exit::Failed);
    }
}

fn say_removed(stage: &mut Stage, n: usize) {
    if n > 0 {
        let gone = human::plural(n as u64, "former one", "former ones");
        stage.did.push_str(&format!("; {gone} let go of"));
    }
}

fn tell_removed(stage: &mut Stage, removed: &[rotate::Removed]) {
    let told = removed.iter().map(|gone| {
        let (path, setting) = (human::path(&gone.path), gone.beyond.told());
        format!("let go of {path}: [rotate] {setting}")
    });
    stage.notes.extend(told);
}

fn tell_left(stage: &mut Stage, left: &[rotate::Left]) {
    for left in left {
        let told = format!("left {}: it {}", human::path(&left.path), left.why);
        match left.reason {
            Reason::HardLinked | Reason::PlainWriter => stage.lacks(told, left.hints.clone()),
            _ => stage.notes.push(told),
        }
    }
}

fn tell_failed(stage: &mut Stage, failed: &[rotate::Failed]) {
    for failed in failed.iter().take(NAMED) {
        stage.lacks(failed.message.clone(), failed.hints.clone());
    }
    if let Some(more @ 1..) = failed.len().checked_sub(NAMED) {
        stage.lacks(format!("and {more} more failed"), Vec::new());
    }
}
