//! Searching an archive: its files stream by, and nothing is unpacked.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Request;
use super::folder::search_held;
use super::json::Place;
use super::lines::Line;
use super::text::{Compressed, Form, Text};
use super::work::Halt;
use crate::base::{Context, Result, human};
use crate::pack::{self, Pack, Piece};

/// A compressed log of an archive is held as a whole; a larger one is not searched.
const LARGEST_LOG: usize = 64 << 20;

/// Takes what is found in an archive, file by file. To break ends the search of this file.
pub(super) trait Finds {
    /// A line.
    fn found(&mut self, path: &Path, line: Line, place: Option<(Place, u64)>) -> ControlFlow<()>;
    /// What could not be searched.
    fn unread(&mut self, path: PathBuf, why: String);
}

/// Searches the files of an archive that are asked for, in the order in which they stand there.
pub(super) fn search(
    pack: &Pack,
    request: &Request,
    wanted: &dyn Fn(&Path) -> bool,
    finds: &mut dyn Finds,
    halt: &Halt<'_>,
    context: &Context,
) -> Result<()> {
    let mut open: Vec<OpenFile<'_>> = Vec::new();
    let wanted = |path: &Path| is_asked_for(path, request) && wanted(path);
    let mut each = |names: &[&Path], piece: Piece<'_>| -> ControlFlow<()> {
        if open.is_empty() {
            open.extend(names.iter().map(|name| OpenFile::new(name, request)));
        }
        for (file, name) in open.iter_mut().zip(names) {
            file.take(name, piece, request, finds, halt);
        }
        if !matches!(piece, Piece::Content(_)) {
            open.clear();
        }
        match halt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let problems = pack::read_files(pack, &wanted, &mut each, context)?;
    for problem in problems {
        let part = human::escape(&problem.part).into_owned();
        let why = match problem.members.len() as u64 {
            0 => format!("{part}: {}", problem.what),
            many => format!(
                "{part}: {} ({} in it)",
                problem.what,
                human::plural(many, "file", "files")
            ),
        };
        finds.unread(PathBuf::new(), why);
    }
    Ok(())
}

fn is_asked_for(path: &Path, request: &Request) -> bool {
    let mut names = path.iter();
    let first = names.next();
    request.kinds.is_empty()
        || names.next().is_some()
            && request
                .kinds
                .iter()
                .any(|kind| first == Some(kind.as_ref()))
}

/// A file that is being searched under one of its names.
struct OpenFile<'r> {
    text: Text<'r>,
    /// Of a compressed log what was given of it.
    compressed: Option<(Compressed, Vec<u8>)>,
    /// Whether there is enough of it.
    is_done: bool,
}

impl<'r> OpenFile<'r> {
    fn new(path: &Path, request: &'r Request) -> OpenFile<'r> {
        let name = path.file_name().unwrap_or_default();
        OpenFile {
            text: Text::new(&request.pattern, request.want, Form::of(name)),
            compressed: Compressed::of(path.parent().unwrap_or(path), name)
                .map(|compressed| (compressed, Vec::new())),
            is_done: false,
        }
    }

    fn take(
        &mut self,
        path: &Path,
        piece: Piece<'_>,
        request: &Request,
        finds: &mut dyn Finds,
        halt: &Halt<'_>,
    ) {
        if self.is_done {
            return;
        }
        if let Some((compressed, held)) = &mut self.compressed {
            let searched = match piece {
                Piece::Content(piece) if held.len() + piece.len() <= LARGEST_LOG => {
                    held.extend_from_slice(piece);
                    return;
                }
                Piece::Content(_) => Err("it is too large to be decompressed here".to_owned()),
                Piece::Broken => Ok(()),
                Piece::End => search_held(
                    held,
                    path,
                    *compressed,
                    request,
                    &mut |line, place| finds.found(path, line, place),
                    halt,
                ),
            };
            self.is_done = true;
            if let Err(why) = searched {
                finds.unread(path.to_path_buf(), why);
            }
            return;
        }
        let mut found = |line, place| finds.found(path, line, place);
        self.is_done = match piece {
            Piece::Content(piece) => self.text.piece(piece, &mut found),
            Piece::End | Piece::Broken => self.text.end(&mut found),
        }
        .is_break();
    }
}
