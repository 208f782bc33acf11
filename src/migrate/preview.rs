//! What a migration would find, for a run that changes nothing: how many references there are, and which other
//! homes the files mention. A person learns here which `--map` is missing, before anything is copied.

use std::collections::BTreeMap;

use super::outcome::{Mapped, References};
use super::plan::{self, Plan};
use super::scan::count;
use super::tally::Tally;
use crate::base::{Context, Result};
use crate::paths::Mapping;

/// Reads every file of the source. References in databases are not counted: they are found by SQL, in a copy.
///
/// # Errors
/// References that can not be searched for, and interruption.
pub fn preview(plan: &Plan, ctx: &Context) -> Result<References> {
    let rewriter = plan::rewriter(&plan.settings, &plan.tree)?;
    ctx.progress
        .stage("Counting references", plan.totals.total());
    let counted = count(&plan.source, &plan.tree, &rewriter, &|_| true, ctx)?;
    ctx.progress.finish();
    Ok(references(&plan.settings.mappings, &counted.tally))
}

/// The references that a tally has counted, under the names that people know them by.
pub(super) fn references(mappings: &[Mapping], tally: &Tally) -> References {
    let mappings = mappings.iter().enumerate();
    let some = |counts: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        counts
            .iter()
            .filter(|(_, n)| **n > 0)
            .map(|(name, n)| (name.clone(), *n))
            .collect()
    };
    let spellings = tally.by_spelling.iter().filter(|(_, n)| **n > 0);
    References {
        changed: tally.references(),
        by_mapping: mappings
            .map(|(i, mapping)| Mapped {
                old: mapping.old.clone(),
                new: mapping.new.clone(),
                count: tally.of_mapping(i),
            })
            .collect(),
        by_spelling: spellings
            .map(|(s, n)| (s.as_str().to_owned(), *n))
            .collect(),
        left: tally.left,
        also_mentioned: some(&tally.foreign),
    }
}
