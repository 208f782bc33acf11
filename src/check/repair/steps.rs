//! What was decided, as a note for the trash and as steps for the journal.

use super::{Action, Plan};
use crate::base::wire::WirePath;
use crate::home::Index;
use crate::home::journal::Step;
use crate::home::mend::{INDEX, Mend};
use crate::home::trash::{Added, Former, Mark, ModeChange, Note, Was};

impl Plan {
    pub(super) fn note(&self, index: Option<&Index>, at: String) -> Note {
        let mut note = Note {
            why: "repaired what check has found".to_owned(),
            at,
            command: Some("check --repair".to_owned()),
            ..Note::default()
        };
        for item in &self.items {
            let was = Was::new(item.path.clone());
            let why = item.told.as_ref().map(|told| told.detail.clone());
            let path = WirePath(item.path.clone());
            match &item.action {
                Action::PutAway { entry, .. } => {
                    note.was.push(Was { why, ..was });
                    note.entries.extend(entry.as_ref().map(|entry| Former {
                        id: entry.id().to_owned(),
                        status: entry.text("status").map(str::to_owned),
                    }));
                }
                Action::Copy { mark, .. } => {
                    let mark = mark.clone();
                    note.added.push(Added { path, mark });
                }
                Action::Folder { .. } => note.added.push(Added { path, mark: None }),
                Action::Mode { before, after } => note.modes.push(ModeChange {
                    path,
                    mode: *before,
                    now: *after,
                }),
                Action::Point { target, .. } => {
                    let mark = Mark::Link(target.clone().into());
                    note.was.push(Was { why, ..was }.replaced_by(Some(mark)));
                }
            }
        }
        if index.is_some() && (self.keep_index || !note.entries.is_empty()) {
            note.was.push(Was::new(INDEX));
        }
        note
    }

    pub(super) fn steps(&self, act: &str, keeps_index: bool, at: String) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut gone = Vec::new();
        if keeps_index {
            let act = act.to_owned();
            steps.push(Mend::KeepIndex { act });
        }
        for item in &self.items {
            let (path, act) = (item.path.clone().into(), act.to_owned());
            let lies = Was::new(item.path.clone()).lies.into();
            steps.push(match &item.action {
                Action::PutAway {
                    seen,
                    held_by,
                    entry,
                } => {
                    gone.extend(entry.as_ref().map(|entry| entry.fields().clone()));
                    Mend::PutAway {
                        path,
                        act,
                        lies,
                        seen: *seen,
                        held_by: Some(held_by.clone().into()),
                    }
                }
                Action::Copy { from, seen, .. } => Mend::Copy {
                    from: from.clone().into(),
                    seen: *seen,
                    path,
                    instead: None,
                },
                Action::Folder { like } => Mend::Folder {
                    like: like.clone().into(),
                    path,
                },
                Action::Mode { before, after } => Mend::Mode {
                    path,
                    before: *before,
                    after: *after,
                },
                Action::Point { seen, target } => Mend::Point {
                    path,
                    act,
                    lies,
                    seen: *seen,
                    target: target.clone().into(),
                },
            });
        }
        let ids: Vec<String> = gone
            .iter()
            .filter_map(|fields| Some(fields.get("id")?.as_str()?.to_owned()))
            .collect();
        if !gone.is_empty() {
            steps.push(Mend::Remove { entries: gone, at });
        }
        let mut steps: Vec<Step> = steps.into_iter().map(|step| Step::Mend { step }).collect();
        if !ids.is_empty() {
            steps.push(Step::Views { ids: Some(ids) });
        }
        let close = Mend::Close {
            act: act.to_owned(),
        };
        steps.push(Step::Mend { step: close });
        steps
    }
}
