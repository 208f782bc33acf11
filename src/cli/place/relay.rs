//! The relay of a home, this device, and who holds the leases.

use std::path::PathBuf;

use super::{as_set, refuse_untrusted, user_home};
use crate::base::{Context, Error, Result};
use crate::cli::output::Console;
use crate::home::{self, Config, Home, Leases};
use crate::relay;

/// The user's own data folder: `$XDG_DATA_HOME`, else `~/.local/share`.
///
/// # Errors
/// When neither is known.
pub(in crate::cli) fn user_data() -> Result<PathBuf> {
    let set = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    set.filter(|data| data.is_absolute())
        .or_else(|| user_home().map(|home| home.join(".local/share")))
        .ok_or_else(|| {
            Error::failed("HOME is not set, so it can not be known which device this is")
                .hint("set HOME (cron and systemd do), or XDG_DATA_HOME")
        })
}

/// The folder that the settings name as the relay, as an absolute path.
///
/// # Errors
/// Settings that are not understood.
pub(in crate::cli) fn relay_dir(home: &Home) -> Result<Option<PathBuf>> {
    let dir = Config::load(home)?.relay.dir;
    Ok(dir.map(|dir| as_set(home, &dir)))
}

/// The relay that the settings name; `None` when they name none. That of a home that was merely found is not obeyed.
///
/// # Errors
/// Settings that are not understood, or that name a folder and no mode.
pub(in crate::cli) fn relay_setting(home: &Home) -> Result<Option<relay::Setting>> {
    let set = Config::load(home)?.relay;
    let Some(dir) = set.dir.filter(|_| home.is_trusted()) else {
        return Ok(None);
    };
    let mode = set.mode.ok_or_else(|| {
        Error::failed("[relay] names a folder and no mode, in")
            .at(home.config_file())
            .hint("`wbhome relay init DIR --mode clone|hardlink|symlink` sets it, and says what each means")
    })?;
    Ok(Some(relay::Setting {
        dir: as_set(home, &dir),
        mode,
        logs: set.logs,
    }))
}

/// The relay that the settings name.
///
/// # Errors
/// None named, and what [`relay_setting`] refuses; a home that was merely found.
pub(in crate::cli) fn set_relay(home: &Home) -> Result<relay::Setting> {
    refuse_untrusted(home)?;
    relay_setting(home)?.ok_or_else(|| {
        Error::failed("no relay is set in").at(home.config_file()).hint(
            "`wbhome relay init DIR --mode clone` makes one in a folder that a sync client carries",
        )
    })
}

/// Who holds the leases of the sessions of a home, for whoever is about to change some. A home that was merely found is
/// looked at as well: more than a refusal does not come of it. Where it can not be learned which device this is, the
/// refusals say so.
///
/// # Errors
/// Settings that are not understood.
pub(in crate::cli) fn leases(home: &Home, ctx: &Context) -> Result<Leases> {
    let dir = Config::load(home)?.relay.dir;
    let dir = dir.map(|dir| as_set(home, &dir));
    let device = match dir {
        Some(_) => known_device(),
        None => Ok(None),
    };
    Ok(relay::gate(home, dir.as_deref(), &device, ctx))
}

/// The same for whoever only looks: what can not be read is a warning.
pub(in crate::cli) fn leases_to_show(home: &Home, console: &Console, ctx: &Context) -> Leases {
    let leases = leases(home, ctx).unwrap_or_else(|error| {
        console.warn(&format!("who holds a lease is not known: {error}"));
        Leases::default()
    });
    if let Some(unknown) = leases.unknown() {
        let why = &unknown.why;
        console.warn(&format!(
            "it is not known which device this is, and so which leases are its own: {why}"
        ));
        unknown.hints.iter().for_each(|hint| console.hint(hint));
    }
    leases
}

/// This device, as long as it is known: nothing is made.
///
/// # Errors
/// Where that stands can not be read, or is not known.
pub(in crate::cli) fn known_device() -> Result<Option<home::Device>> {
    home::Device::known(&user_data()?)
}

/// The same for whoever only looks: that it can not be learned is a warning.
pub(in crate::cli) fn device(console: &Console) -> Option<home::Device> {
    known_device().unwrap_or_else(|error| {
        console.warn(&format!(
            "it is not known which device this is, and so which leases are its own: {error}"
        ));
        for hint in error.hints() {
            console.hint(hint);
        }
        None
    })
}

/// Opens the relay of a home, which the settings name and which is bound to it.
///
/// # Errors
/// None named; what [`relay::Relay::open`] refuses.
pub(in crate::cli) fn open_relay(home: &Home) -> Result<relay::Relay> {
    let setting = set_relay(home)?;
    match known_device()? {
        Some(device) => relay::Relay::open(home, &setting, device),
        None => Err(relay::not_bound(&setting.dir)),
    }
}
