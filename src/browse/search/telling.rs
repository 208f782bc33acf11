//! Telling what was found, and searching once more where there was too much to be kept.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::Files;
use super::json::Place;
use super::kept::{Done, What};
use super::lines::{Line, Want};
use super::packed::{self, Finds};
use super::work::{BatchDone, Halt, Source};
use super::{Count, File, Hit, Outcome, Request, Session, Teller, Told, Unread};
use crate::base::{Context, Result};
use crate::pack::ENDING;

type Flow = Result<ControlFlow<()>>;

/// Whoever tells.
pub(super) struct Telling<'t, 'f> {
    request: &'t Request,
    halt: &'t Halt<'t>,
    teller: &'t mut Teller<'f>,
    context: &'t Context<'t>,
    /// Whether the session was told of that something is told of now.
    is_headed: bool,
    /// What was counted in it.
    lines: u64,
    files: u64,
    pub outcome: Outcome,
}

impl<'t, 'f> Telling<'t, 'f> {
    pub(super) fn new(
        request: &'t Request,
        halt: &'t Halt<'t>,
        teller: &'t mut Teller<'f>,
        context: &'t Context<'t>,
    ) -> Self {
        Telling {
            request,
            halt,
            teller,
            context,
            is_headed: false,
            lines: 0,
            files: 0,
            outcome: Outcome::default(),
        }
    }

    /// Tells what came of a task; whether more is wanted.
    pub(super) fn batch(&mut self, session: &Session, batch: BatchDone, is_last: bool) -> Flow {
        let source = batch.source.as_deref();
        for done in batch.files {
            if self.file(session, done, source)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match is_last {
            true => self.end_of(session),
            false => Ok(ControlFlow::Continue(())),
        }
    }

    fn file(&mut self, session: &Session, done: Done, source: Option<&Source>) -> Flow {
        match done.what {
            What::Unread(why) => self.unread(session, &done.path, why),
            What::Count(lines) => {
                self.lines += lines;
                self.files += 1;
                match self.request.want {
                    Want::Files => {
                        let file = File::new(session, done.path);
                        self.outcome.found += 1;
                        self.told(session, Told::File(&file))
                    }
                    _ => Ok(ControlFlow::Continue(())),
                }
            }
            What::Lines(hits) => {
                for hit in &hits {
                    if self.hit(session, hit)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            What::TooMany(number) => match source {
                Some(source) => self.again(session, source, number, &done.path),
                None => Ok(ControlFlow::Continue(())),
            },
        }
    }

    fn end_of(&mut self, session: &Session) -> Flow {
        let (lines, files) = (
            std::mem::take(&mut self.lines),
            std::mem::take(&mut self.files),
        );
        let mut flow = Ok(ControlFlow::Continue(()));
        if self.request.want == Want::Count && lines > 0 {
            self.outcome.found += lines;
            let count = Count {
                session: session.id.clone(),
                archived: session.archived,
                lines,
                files,
            };
            flow = self.told(session, Told::Count(&count));
        }
        match std::mem::take(&mut self.is_headed) {
            true if matches!(flow, Ok(ControlFlow::Continue(()))) => (self.teller)(Told::End),
            _ => flow,
        }
    }

    fn hit(&mut self, session: &Session, hit: &Hit) -> Flow {
        self.outcome.found += 1;
        self.told(session, Told::Hit(hit))
    }

    fn told(&mut self, session: &Session, told: Told<'_>) -> Flow {
        if !self.is_headed {
            self.is_headed = true;
            self.outcome.matched += 1;
            if (self.teller)(Told::Session(session))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        (self.teller)(told)
    }

    fn unread(&mut self, session: &Session, path: &Path, why: String) -> Flow {
        // What was interrupted is not unreadable.
        if self.halt.is_raised() {
            return Ok(ControlFlow::Break(()));
        }
        let name = session.id.as_str();
        let whole = match session.archived {
            true => Path::new("archive").join(format!("{name}{ENDING}")),
            false => Path::new("sessions").join(name),
        };
        let path = match path.as_os_str().is_empty() {
            true => whole,
            false => whole.join(path),
        };
        self.outcome.unread += 1;
        (self.teller)(Told::Unread(&Unread {
            path: path.into(),
            why,
        }))
    }

    /// Searches a file once more, and tells what is found right away.
    fn again(
        &mut self,
        session: &Session,
        source: &Source,
        number: Option<usize>,
        path: &Path,
    ) -> Flow {
        let (request, halt, context) = (self.request, self.halt, self.context);
        let mut again = Again {
            telling: self,
            session,
            flow: Ok(ControlFlow::Continue(())),
        };
        let searched = match (source, number) {
            (Source::Folder(dir, listing), Some(number)) => {
                let mut files = Files::new(dir, listing, Vec::new(), halt);
                files.search(number, request, &mut |line, place| {
                    again.found(path, line, place)
                })
            }
            (Source::Pack(pack), _) => {
                let only = |other: &Path| other == path;
                let searched = packed::search(pack, request, &only, &mut again, halt, context);
                searched.map_err(|error| error.to_string())
            }
            _ => Ok(()),
        };
        let flow = again.flow?;
        match searched {
            Err(why) if flow.is_continue() => self.unread(session, path, why),
            _ => Ok(flow),
        }
    }
}

struct Again<'a, 't, 'f> {
    telling: &'a mut Telling<'t, 'f>,
    session: &'a Session,
    flow: Flow,
}

impl Finds for Again<'_, '_, '_> {
    fn found(&mut self, path: &Path, line: Line, place: Option<(Place, u64)>) -> ControlFlow<()> {
        let file = Arc::new(File::new(self.session, path.to_path_buf()));
        self.flow = self.telling.hit(self.session, &Hit::new(file, line, place));
        match self.flow {
            Ok(flow) => flow,
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// It was told when it was searched the first time.
    fn unread(&mut self, _: PathBuf, _: String) {}
}
