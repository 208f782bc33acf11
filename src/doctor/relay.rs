//! The relay: whether its folder is there and bound to this home, and whether what the devices say in it can be gone by.

use super::{Check, Visit};
use crate::base::human;
use crate::relay::{Relay, overtaken};

const NAME: &str = "relay";

/// The folder, the files of the devices in it, and leases that this device has lost. Without a relay there is nothing to
/// say.
pub(super) fn relay(visit: &Visit) -> Vec<Check> {
    let setting = match (visit.request.relay)(visit.home) {
        Ok(Some(setting)) => setting,
        Ok(None) => return Vec::new(),
        // What is wrong with the settings as a whole is told of them.
        Err(_) if visit.config.is_err() => return Vec::new(),
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let device = match (visit.request.device)() {
        Ok(Some(device)) => device,
        Ok(None) => {
            let says = format!(
                "{} is set, and this device was never made known there",
                human::path(&setting.dir)
            );
            let init = format!(
                "`wbhome relay init {} --mode {}` does that",
                human::quoted(&setting.dir),
                setting.mode.word()
            );
            return vec![Check::error(NAME, says).hint(init)];
        }
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let relay = match Relay::open(visit.home, &setting, device) {
        Ok(relay) => relay,
        Err(error) => return vec![Check::failed(NAME, &error)],
    };
    let mut checks: Vec<Check> = strange(&relay).into_iter().collect();
    checks.extend(lost(&relay));
    if checks.is_empty() {
        let devices = relay.devices.all().count() as u64;
        let held = relay.devices.all().map(|said| said.leases.len() as u64);
        let says = format!(
            "{}, {}; {}, {}",
            human::path(&relay.path),
            relay.mode.word(),
            human::plural(devices, "device", "devices"),
            human::plural(held.sum(), "lease", "leases")
        );
        checks.push(Check::ok(NAME, says));
    }
    checks
}

/// What lies beside the files of the devices.
fn strange(relay: &Relay) -> Option<Check> {
    let strange = &relay.devices.strange;
    let (name, why) = strange.first()?;
    let says = format!(
        "{} in .leases that can not be understood: {} ({})",
        human::plural(strange.len() as u64, "file", "files"),
        human::name(name),
        human::escape(why)
    );
    Some(Check::warning(NAME, says).hint(
        "a copy that a sync client has made of one is of no use; what a device says with a newer wbhome, a newer one here reads",
    ))
}

/// Leases that this device says it holds, and another with a better claim.
fn lost(relay: &Relay) -> Vec<Check> {
    let lost = overtaken(&relay.devices).into_iter();
    lost.map(|(session, _, holder)| {
        let name = human::name(&session);
        let says = match holder {
            Some(holder) => {
                let who = human::name(&holder.name);
                format!("{who} holds the lease of `{name}`, which this device claims, too")
            }
            None => format!(
                "the lease of `{name}`, which this device claims, was taken by another device and let go of"
            ),
        };
        let named = human::argument(&session);
        Check::warning(NAME, says).cure(format!("wbhome lease release {named}"))
    })
    .collect()
}
