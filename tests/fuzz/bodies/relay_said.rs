//! Any text as what another device says in a relay folder: a lease that is believed has a number that can be overtaken,
//! no device speaks for another, and what is told is what another device would tell.
//!
//! Two pieces: what two devices say.

use wbhome::disk::Dir;
use wbhome::home::Device;
use wbhome::relay::{Devices, FOLDER, gate, leases, look};

use super::place::{Place, pieces};

const THIS: &str = "0123456789abcdef0123456789abcdef";
const OTHERS: [&str; 2] = [
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
];

pub fn run(input: &[u8]) -> bool {
    let place = Place::new();
    let home = place.bare_home();
    let index = r#"[{"id": "20240603_周报", "status": "active", "sync_tag": "笔记本"}]"#;
    place.put("主页/index.json", index);
    for (id, said) in OTHERS.iter().zip(pieces(input)) {
        place.put(format!("中继/{FOLDER}/{id}.json"), said);
    }
    let path = place.path("中继");
    let Ok(dir) = Dir::open(&path) else {
        return false;
    };
    let devices = Devices::read(&dir, &path, THIS).expect("others can not spoil it");
    for said in devices.others() {
        assert!(OTHERS.contains(&said.device.as_str()));
        assert!(said.name.len() <= 255);
        let copy = place.path(format!("抄/{}", said.device));
        std::fs::create_dir_all(&copy).expect("a folder");
        let dir = Dir::open(&copy).expect("a folder");
        said.write(&dir).expect("it can be written");
        let again = Devices::read(&dir, &copy, THIS).expect("it is read again");
        assert_eq!(again.others().collect::<Vec<_>>(), [said]);
        for session in said.leases.keys().chain(said.released.keys()) {
            is_in_order(&devices, session);
        }
        for session in said.sessions.keys() {
            let senders = devices.senders(session);
            assert!(senders.is_sorted_by(|a, b| a.1.at >= b.1.at));
        }
    }
    let device = Device::of_user(&place.path("数据"), &place.context()).expect("a device");
    let look = look(&home, &path, Some(&device));
    let listed = leases::list(&home, &path, &look, true, &place.context()).expect("a list");
    let claimed: usize = listed.leases.iter().map(|row| row.overtaken.len()).sum();
    let holders = listed
        .leases
        .iter()
        .filter(|row| row.holder.is_some())
        .count();
    let said: usize = devices.others().map(|said| said.leases.len()).sum();
    assert_eq!(claimed + holders, said, "a claim is not told");
    let leases = gate(&home, Some(&path), &Ok(Some(device)), &place.context());
    let holder = devices.holder("20240603_周报");
    let told = leases.of("20240603_周报");
    // The gate passes over what a device has sent, and so also over what is wrong with that.
    if devices.strange.is_empty() {
        let held = holder.map(|holder| holder.device);
        assert_eq!(told.map(|told| told.device.clone()), held);
    }
    devices.others().count() > 0
}

/// Whoever holds a lease has the best claim, and the next number is higher than any.
fn is_in_order(devices: &Devices, session: &str) {
    let claims = devices.claims(session);
    assert!(claims.is_sorted_by(|a, b| (a.epoch, &a.device) >= (b.epoch, &b.device)));
    if let Some(holder) = devices.holder(session) {
        assert_eq!(Some(&holder), claims.first());
        assert!(!holder.ours);
    }
    let highest = devices.highest_epoch(session);
    assert!(highest <= 1 << 53, "{highest} can not be overtaken");
    assert!(claims.iter().all(|claim| claim.epoch <= highest));
}
