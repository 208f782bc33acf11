//! The order of the members: what a person looks for first stands first, what is largest last.

use std::cmp::Ordering;
use std::path::Path;

/// Orders two paths below the top folder: `session.json`, `context/`, `memory/`, then the rest by name, `logs/` last;
/// within each a folder before what is in it, and names by their bytes.
pub(super) fn compare(one: &Path, other: &Path) -> Ordering {
    let rank = |path: &Path| match path.iter().next().and_then(|name| name.to_str()) {
        _ if path.as_os_str().is_empty() => 0,
        Some("session.json") => 1,
        Some("context") => 2,
        Some("memory") => 3,
        Some("logs") => 5,
        _ => 4,
    };
    rank(one)
        .cmp(&rank(other))
        .then_with(|| one.iter().cmp(other.iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_first_and_the_logs_last() {
        let wanted = [
            "",
            "session.json",
            "context",
            "context/a",
            "context/a/b",
            "context/a.json",
            "memory/m",
            "artifacts/报告.md",
            "checkpoint.md",
            "zz",
            "logs",
            "logs/a.log",
        ];
        let mut paths = wanted;
        paths.reverse();
        paths.sort_by(|one, other| compare(Path::new(one), Path::new(other)));
        assert_eq!(paths, wanted);
    }
}
