//! Any text as `wbhome.toml`: what is taken is within bounds and is what the file says; what is refused is refused on a
//! line that is there.

use std::time::Duration;

use wbhome::home::Config;

pub fn run(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else {
        return false;
    };
    let config = match Config::parse(text) {
        Ok(config) => config,
        Err(wrong) => {
            let lines = 1 + text.matches('\n').count();
            assert!((1..=lines).contains(&wrong.line), "line {}", wrong.line);
            return false;
        }
    };
    let table: toml::Table = text.parse().expect("it was understood");
    assert!((1..=19).contains(&config.archive.level));
    for (written, value) in [
        (at(&table, "git", "push"), config.git.push),
        (at(&table, "relay", "logs"), config.relay.logs),
        (at(&table, "rotate", "missing_ok"), config.rotate.missing_ok),
        (at(&table, "rotate", "not_empty"), config.rotate.not_empty),
    ] {
        if let Some(written) = written {
            assert_eq!(written.as_bool(), Some(value));
        }
    }
    if let Some(keep) = at(&table, "rotate", "keep") {
        assert_eq!(keep.as_integer(), Some(i64::from(config.rotate.keep)));
    }
    if let Some(bytes) = at(&table, "git", "max_file").and_then(toml::Value::as_integer) {
        assert_eq!(u64::try_from(bytes), Ok(config.git.max_file));
    }
    for (section, key, value) in [
        ("archive", "idle", config.archive.idle),
        ("backup", "keep", config.backup.keep),
        ("backup", "keep_deleted", config.backup.keep_deleted),
        ("backup", "settings_every", config.backup.settings_every),
    ] {
        if let Some(written) = at(&table, section, key) {
            let written = written.as_str().expect("a duration is a text");
            assert_eq!(plainly(written).unwrap_or(value), value, "{written}");
        }
    }
    let stores = at(&table, "backup", "store").and_then(toml::Value::as_array);
    assert_eq!(config.backup.store.len(), stores.map_or(0, Vec::len));
    true
}

fn at<'t>(table: &'t toml::Table, section: &str, key: &str) -> Option<&'t toml::Value> {
    table.get(section)?.get(key)
}

/// A duration in whole days, hours or weeks; `None` where it is written in any other way.
fn plainly(text: &str) -> Option<Duration> {
    let (number, seconds) = [("d", 86_400), ("h", 3_600), ("w", 7 * 86_400)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    let all_digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| all_digits)?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}
