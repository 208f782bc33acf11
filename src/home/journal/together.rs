//! Entries of the journal that are completed at once: what they change in the index is written once for all of them, or a
//! thousand sessions would cost a thousand indices.
//!
//! Each entry stays one of its own until all its steps are done: whatever stops this, the next command completes each that
//! is left.

use super::super::LockedHome;
use super::super::mend::Mend;
use super::{Completed, Pending, Step};
use crate::base::{Context, Error, Kind, Result};

/// An entry, and how far it is.
struct Course {
    pending: Pending,
    done: usize,
    completed: Completed,
}

impl Course {
    fn next(&self) -> Option<&Step> {
        self.pending.record.steps.get(self.done)
    }

    /// What it is to note in the index next.
    fn note(&self) -> Option<&Mend> {
        match self.next() {
            Some(Step::Mend { step }) if step.notes() => Some(step),
            _ => None,
        }
    }

    /// The sessions whose views are to be set next.
    fn views(&self) -> Option<&Vec<String>> {
        match self.next() {
            Some(Step::Views { ids }) => ids.as_ref(),
            _ => None,
        }
    }

    /// Does all steps before one that can be shared.
    fn alone(&mut self, home: &LockedHome, context: &Context) -> Result<()> {
        while self.note().is_none() && self.views().is_none() {
            let Some(step) = self.pending.record.steps.get(self.done) else {
                break;
            };
            if let Step::Swap { .. } = step {
                return Err(Error::new(Kind::Bug, "a swap is completed by itself"));
            }
            self.completed.take(step, home, context)?;
            self.done += 1;
        }
        Ok(())
    }
}

/// Completes entries of different sessions, none of which has a swap: each step in its turn, and those that notes of
/// archives and project views consist of at once. What came of each entry, in their order.
///
/// # Errors
/// What a step says. All entries that are not done stay, and the next command that takes the lock completes them.
pub fn complete_together(
    entries: Vec<Pending>,
    home: &LockedHome,
    context: &Context,
) -> Result<Vec<Result<Completed>>> {
    let mut courses = Vec::new();
    for pending in entries {
        for step in &pending.record.steps {
            step.check(&pending.path)?;
        }
        courses.push(Course {
            pending,
            done: 0,
            completed: Completed::default(),
        });
    }
    loop {
        for course in &mut courses {
            course.alone(home, context)?;
        }
        if !note_all(&mut courses, home)? && !view_all(&mut courses, home, context) {
            break;
        }
    }
    let done = courses.into_iter().map(|course| {
        course.pending.is_done()?;
        Ok(course.completed.told())
    });
    done.collect()
}

/// Notes in the index what is to be noted next; whether there was anything.
fn note_all(courses: &mut [Course], home: &LockedHome) -> Result<bool> {
    let notes: Vec<&Mend> = courses.iter().filter_map(Course::note).collect();
    if notes.is_empty() {
        return Ok(false);
    }
    let said = Mend::noted(home, &notes)?;
    let noting = courses.iter_mut().filter(|course| course.note().is_some());
    for (course, said) in noting.zip(said) {
        course.completed.note(said);
        course.done += 1;
    }
    Ok(true)
}

/// Sets the views that are to be set next; whether there were any.
fn view_all(courses: &mut [Course], home: &LockedHome, context: &Context) -> bool {
    let ids: Vec<String> = courses
        .iter()
        .filter_map(Course::views)
        .flatten()
        .cloned()
        .collect();
    let viewing = courses.iter_mut().filter(|course| course.views().is_some());
    let mut viewing: Vec<&mut Course> = viewing.collect();
    if viewing.is_empty() {
        return false;
    }
    let all = Step::Views { ids: Some(ids) };
    let set = all.done(home, context);
    for course in &mut viewing {
        // Whose view it was that could not be set shows when each is set by itself.
        if set.is_err()
            && let Some(step @ Step::Views { .. }) = course.pending.record.steps.get(course.done)
        {
            course.completed.unviewed = step.done(home, context).err();
        }
        course.done += 1;
    }
    true
}
