//! `wbhome.toml`: whether it is understood, and whether what it names is there.

use super::{Check, Visit, edit};
use crate::base::human;
use crate::disk;
use crate::home::{Cache, Every};
use crate::secrets::{Allowed, Rules};

/// So many bytes of logs that nobody cuts are too many.
const MANY: u64 = 1 << 30;

/// Whether the settings are understood.
pub(super) fn understood(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "settings";
    let path = visit.home.config_file();
    vec![match &visit.config {
        Ok(_) if disk::exists(&path) => Check::ok(NAME, "wbhome.toml is understood"),
        Ok(_) => Check::ok(NAME, "there is no wbhome.toml: all is as it is without"),
        Err(error) => Check::failed(NAME, error).cure(edit(&path)),
    }]
}

/// Whether `commit --push` would know what must not leave.
pub(super) fn secrets(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "secrets";
    let Ok(config) = &visit.config else {
        return Vec::new();
    };
    let path = visit.home.config_file();
    let own = config.secrets.rules.as_ref();
    let own = own.map(|own| visit.home.root().join(own));
    let mut checks = Vec::new();
    if let Some(own) = &own
        && let Err(error) = Rules::load(Some(own))
    {
        let at = match disk::exists(own) {
            true => own,
            false => &path,
        };
        checks.push(Check::failed(NAME, &error).cure(edit(at)));
    }
    if let Err(error) = Allowed::new(&config.secrets.allow) {
        checks.push(Check::failed(NAME, &error).cure(edit(&path)));
    }
    if checks.is_empty() && (own.is_some() || !config.secrets.allow.is_empty()) {
        let allowed = config.secrets.allow.len() as u64;
        let allowed = human::plural(allowed, "finding", "findings");
        checks.push(Check::ok(
            NAME,
            match own {
                Some(_) => format!("your own rules are understood; {allowed} called harmless"),
                None => format!("{allowed} called harmless"),
            },
        ));
    }
    checks
}

/// Whether logs are cut, where there are many of them.
pub(super) fn rotation(visit: &Visit) -> Vec<Check> {
    const NAME: &str = "logs";
    let Ok(config) = &visit.config else {
        return Vec::new();
    };
    let rotate = &config.rotate;
    let cache = Cache::read(visit.home).unwrap_or_default();
    let logs: u64 = cache
        .sessions
        .values()
        .map(|counts| counts.logs.bytes)
        .sum();
    let logs = human::size(logs);
    let is_many = cache.sessions.values().map(|c| c.logs.bytes).sum::<u64>() > MANY;
    let often = match (rotate.every, rotate.size) {
        (Every::Daily, _) => "daily".to_owned(),
        (Every::Weekly, _) => "weekly".to_owned(),
        (Every::Never, Some(size)) => format!("beyond {}", human::size(size)),
        (Every::Never, None) => "never by themselves".to_owned(),
    };
    let never_cut = !disk::exists(&visit.home.rotate_file());
    vec![match is_many {
        true if rotate.logs.is_empty() => {
            let says = format!("{logs} of logs, and [rotate] logs names none of them");
            Check::warning(NAME, says).cure(edit(&visit.home.config_file()))
        }
        true if never_cut => {
            let check = Check::warning(NAME, format!("{logs} of logs, and none was ever cut"));
            check.cure("wbhome rotate --force")
        }
        _ if rotate.logs.is_empty() => return Vec::new(),
        _ => Check::ok(
            NAME,
            format!(
                "{logs} as last counted; cut {often}, {} kept",
                human::count(rotate.keep.into())
            ),
        ),
    }]
}
