//! A session as a pack: written without a name, held against what was looked at, read back, and then named.

use std::io;

use super::prepare::Ready;
use super::{ATTEMPTS, Done, Export};
use crate::base::{Error, Result, Total, failpoint, human};
use crate::disk::{self, NewFile};
use crate::pack::{self, About, FlawKind, Manifest, MemberKind, Pack, Survey, short_digest};

/// Packs the session into the folder.
///
/// # Errors
/// What can not be read or written; a session that does not hold still.
pub(super) fn write(export: &Export, mut ready: Ready) -> Result<Done> {
    for attempt in 1..=ATTEMPTS {
        if attempt > 1 {
            ready.survey = export.survey(&ready.id, &ready.place)?;
            let looking = export.looking(&ready.id, &ready.place);
            ready.looked = looking.all(ready.survey.members(), ready.survey.flaws())?;
            ready.note();
            if ready.is_held(export.request) {
                return Ok(Done::HeldBack(ready.item));
            }
        }
        let survey = std::mem::take(&mut ready.survey);
        let (mut file, manifest, bytes) = packed(export, &ready, survey)?;
        let unreadable = |flaw: &&pack::Flaw| flaw.kind == FlawKind::Unreadable;
        if let Some(flaw) = manifest.flaws.iter().find(unreadable) {
            return Err(export.unreadable(&ready.id, &ready.place, flaw));
        }
        if !is_what_was_looked_at(&manifest, &ready) {
            continue;
        }
        read_back(export, &file, bytes)?;
        name(export, &mut file, &ready)?;
        let grew = manifest
            .flaws
            .iter()
            .filter(|flaw| flaw.kind == FlawKind::Grew);
        ready.item.being_written = grew
            .map(|flaw| export.shown(&ready.id, &flaw.path))
            .collect();
        ready.item.written = Some(bytes);
        return Ok(Done::Exported(ready.item));
    }
    Err(Error::failed(format!(
        "{} changed each time that it was read, and what leaves must be what was looked at",
        human::name(&ready.item.id)
    ))
    .hint("try again when its session has ended"))
}

fn packed<'d>(
    export: &'d Export,
    ready: &Ready,
    survey: Survey,
) -> Result<(NewFile<'d>, Manifest, u64)> {
    let context = export.context;
    let file = NewFile::create(&export.to).map_err(|e| unwritten(export, e))?;
    // The entry of the index stays here: it says where things are on this machine.
    let about = About {
        created_at: context.clock.now(),
        entry: None,
    };
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let level = export.request.level;
    let written = pack::write(
        file.file(),
        &ready.place.dir,
        survey,
        about,
        level,
        threads,
        context,
    )
    .map_err(|error| match error.path() {
        None => error.at(&*ready.item.to),
        Some(_) => error,
    })?;
    Ok((file, written.manifest, written.bytes))
}

/// Whether each file in the pack is the one that was looked at for secrets.
fn is_what_was_looked_at(manifest: &Manifest, ready: &Ready) -> bool {
    let still = manifest
        .flaws
        .iter()
        .all(|flaw| matches!(flaw.kind, FlawKind::Grew | FlawKind::Special));
    let files = manifest
        .members
        .iter()
        .filter(|m| m.kind == MemberKind::File);
    still
        && files.into_iter().all(|member| {
            let seen = ready.looked.files.get(&*member.path);
            seen.is_some_and(|(digest, size)| {
                *size == member.size && member.blake3.as_deref() == Some(&*short_digest(digest))
            })
        })
}

/// Reads the pack from the disk, and holds it against its manifest.
fn read_back(export: &Export, file: &NewFile, bytes: u64) -> Result<()> {
    let fail = |e| unwritten(export, e);
    file.sync().map_err(fail)?;
    disk::drop_cache(file.file());
    let total = Total { items: 0, bytes };
    export.context.progress.stage("reading back", total);
    let again = file.file().try_clone().map_err(fail)?;
    let verified = pack::verify(&Pack::of(again, &export.request.to)?, export.context)?;
    export.context.progress.finish();
    match verified.problems.first() {
        None => Ok(()),
        Some(problem) => Err(Error::failed(format!(
            "the pack could not be read back as it was written: {}: {}",
            problem.part,
            human::escape(&problem.what)
        ))
        .hint("the session is untouched; the disk or the memory may be failing")),
    }
}

fn name(export: &Export, file: &mut NewFile, ready: &Ready) -> Result<()> {
    match file.publish(&ready.name).and_then(|()| export.to.sync()) {
        Ok(()) => {
            failpoint::hit("export.published");
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(export.in_the_way(&ready.name)),
        Err(e) => Err(unwritten(export, e)),
    }
}

pub(super) fn unwritten(export: &Export, error: io::Error) -> Error {
    Error::io("can not write into", &export.request.to, error)
}
