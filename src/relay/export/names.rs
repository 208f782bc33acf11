//! Names that another system may not take, or takes for one name. A person carries this: it is noted, and no more.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::base::human;
use crate::home::folded;
use crate::relay::names::why_not;
use crate::secrets::Check;

/// So many are named.
const NAMED: usize = 3;

/// A line for each kind of such names among the paths.
pub(super) fn notes<'p>(paths: impl Iterator<Item = &'p Path>, check: &Check) -> Vec<String> {
    let (mut refused, mut clashing) = (Vec::new(), Vec::new());
    let mut forms: HashMap<(&Path, String), &Path> = HashMap::new();
    let mut seen = HashSet::new();
    for path in paths {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        match name.to_str() {
            Some(name) if why_not(name).is_none() => {}
            _ => refused.push(path),
        }
        let form = folded(&name.to_string_lossy());
        if seen.insert(path) && forms.insert((parent, form), path).is_some() {
            clashing.push(path);
        }
    }
    let told = |paths: Vec<&Path>, what: &str| {
        let named = paths.iter().take(NAMED);
        let named: Vec<String> = named.map(|path| human::path(&check.shown(path))).collect();
        let more = match paths.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {} more", human::count(more as u64)),
        };
        (!paths.is_empty()).then(|| format!("{what}: {}{more}", named.join(", ")))
    };
    [
        told(
            refused,
            "names that Windows and some sync clients do not take",
        ),
        told(
            clashing,
            "names that differ from another only by case or form, and clash elsewhere",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_windows_refuses_and_what_clashes() {
        let check = Check::load(None, &[]).unwrap();
        let paths = ["a/x.md", "a/X.md", "b/x.md", "c:d", "e?", "f*", "g|"].map(Path::new);
        let notes = notes(paths.into_iter(), &check);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].ends_with("c:d, e?, f* and 1 more"), "{notes:?}");
        assert!(notes[1].ends_with(": a/X.md"), "{notes:?}");
    }
}
