use super::*;

const A: &str = "0000000000000000000000000000000a";
const B: &str = "0000000000000000000000000000000b";

fn read(relay: &Dir) -> Result<Devices> {
    Devices::read(relay, Path::new("/中继"), A)
}

fn said(device: &str) -> Said {
    let path = std::path::PathBuf::from("/主页").into();
    Said::first(device, "host", "home", path, Timestamp::UNIX_EPOCH)
}

fn with_lease(device: &str, epoch: u64) -> Said {
    let mut said = said(device);
    let since = Timestamp::UNIX_EPOCH;
    said.leases.insert("任务".into(), Lease { epoch, since });
    said
}

#[test]
fn what_was_written_is_read_and_what_is_strange_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let relay = Dir::open(folder.path()).unwrap();
    assert_eq!(read(&relay).unwrap().all().count(), 0);
    said(A).write(&relay).unwrap();
    with_lease(B, 3).write(&relay).unwrap();
    let leases = folder.path().join(FOLDER);
    let copy = format!("{B} (1).json");
    std::fs::copy(leases.join(format!("{B}.json")), leases.join(&copy)).unwrap();
    std::fs::write(leases.join(format!("{:032x}.json", 3)), "{").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", leases.join(format!("{:032x}.json", 4))).unwrap();
    let devices = read(&relay).unwrap();
    assert_eq!(devices.own(), Some(&said(A)));
    assert_eq!(devices.others().collect::<Vec<_>>(), [&with_lease(B, 3)]);
    assert_eq!(devices.strange.len(), 3, "{:?}", devices.strange);

    std::fs::write(leases.join(format!("{A}.json")), "{").unwrap();
    assert!(read(&relay).is_err());
}

#[test]
fn the_highest_epoch_wins_and_then_the_higher_id() {
    let holder = |a: Said, b: Said| {
        let devices = Devices::noted(A, vec![a, b]);
        devices
            .holder("任务")
            .map(|holder| (holder.device, holder.ours))
    };
    assert_eq!(holder(said(A), said(B)), None);
    let ours = Some((A.to_owned(), true));
    let theirs = Some((B.to_owned(), false));
    assert_eq!(holder(with_lease(A, 2), with_lease(B, 1)), ours);
    assert_eq!(holder(with_lease(A, 2), with_lease(B, 2)), theirs);
    let mut released = said(B);
    released.released.insert("任务".into(), 7);
    let devices = Devices::noted(A, vec![with_lease(A, 2), released]);
    assert_eq!(devices.highest_epoch("任务"), 7);
    assert_eq!(devices.held_elsewhere("任务"), None);
}

/// A thief that has let go of a lease leaves it to nobody: not to whom it was taken from.
#[test]
fn what_was_overtaken_does_not_come_to_life_again() {
    let holder = |said: Vec<Said>| {
        let devices = Devices::noted(A, said);
        devices.holder("任务").map(|holder| holder.device)
    };
    let released = |device: &str, number: u64| {
        let mut said = said(device);
        said.released.insert("任务".into(), number);
        said
    };
    // A device that has let go of one and takes it again has a higher number.
    let again = |device: &str, number: u64, epoch: u64| {
        let mut said = with_lease(device, epoch);
        said.released.insert("任务".into(), number);
        said
    };
    for (said, held_by) in [
        (vec![with_lease(A, 1), released(B, 2)], None),
        (vec![with_lease(B, 1), released(A, 2)], None),
        (vec![with_lease(A, 3), released(B, 2)], Some(A)),
        // Both had taken it at once: the one that gives up has the worse claim, and takes nothing from the other.
        (vec![released(A, 1), with_lease(B, 1)], Some(B)),
        (vec![with_lease(A, 1), released(B, 1)], None),
        (vec![again(A, 1, 2)], Some(A)),
        (vec![again(A, 2, 3), with_lease(B, 1)], Some(A)),
        (vec![again(A, 2, 3), again(B, 4, 1)], None),
    ] {
        assert_eq!(holder(said.clone()).as_deref(), held_by, "{said:?}");
    }
}

#[test]
fn numbers_that_no_device_counts_to_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let relay = Dir::open(folder.path()).unwrap();
    said(A).write(&relay).unwrap();
    let released = |number: u64| {
        let mut said = said(B);
        said.released.insert("任务".into(), number);
        said
    };
    for (odd, is_believed) in [
        (with_lease(B, 1 << 53), true),
        (with_lease(B, (1 << 53) + 1), false),
        (with_lease(B, u64::MAX), false),
        (released(1 << 53), true),
        (released(u64::MAX), false),
    ] {
        odd.write(&relay).unwrap();
        let devices = read(&relay).unwrap();
        assert_eq!(devices.others().count() == 1, is_believed, "{odd:?}");
        assert_eq!(devices.strange.is_empty(), is_believed, "{odd:?}");
    }
}

#[test]
fn only_so_many_files_and_bytes_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let relay = Dir::open(folder.path()).unwrap();
    // By its name it would come last.
    let own = "f".repeat(32);
    for n in 0..100 {
        said(&format!("{n:032x}")).write(&relay).unwrap();
    }
    said(&own).write(&relay).unwrap();
    let read = || Devices::read(&relay, folder.path(), &own).unwrap();
    let devices = read();
    assert!(devices.own().is_some());
    assert_eq!((devices.all().count(), devices.strange.len()), (FILES, 37));
    let leases = folder.path().join(FOLDER);
    for n in 0..100 {
        let file = leases.join(format!("{n:032x}.json"));
        let mut text = serde_json::to_vec(&said(&format!("{n:032x}"))).unwrap();
        match n {
            0..10 => text.resize(10 << 20, b' '),
            _ => drop(std::fs::remove_file(&file)),
        }
        if n < 10 {
            std::fs::write(&file, text).unwrap();
        }
    }
    let devices = read();
    assert_eq!((devices.all().count(), devices.strange.len()), (7, 4));
}

#[test]
fn where_only_leases_count_the_rest_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let relay = Dir::open(folder.path()).unwrap();
    let mut said = with_lease(B, 3);
    let sent = Sent {
        tag: "x".into(),
        at: Timestamp::UNIX_EPOCH,
        version: String::new(),
    };
    said.sessions.insert("任务".into(), sent);
    said.write(&relay).unwrap();
    let devices = Devices::read_as(&relay, folder.path(), A, Wanted::Leases).unwrap();
    assert_eq!(devices.others().collect::<Vec<_>>(), [&with_lease(B, 3)]);
    assert_eq!(devices.holder("任务").unwrap().epoch, 3);
}

#[test]
fn a_folder_that_is_a_link_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/", folder.path().join(FOLDER)).unwrap();
    let relay = Dir::open(folder.path()).unwrap();
    let error = read(&relay).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a folder, found a symbolic link: /中继/.leases"
    );
    assert_eq!(error.hints().len(), 1);
}

/// Root that writes for another user. Without being root there is nothing to see.
#[test]
fn the_owner_of_the_relay_keeps_what_root_writes() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !disk::is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(1234), Some(1235)).unwrap();
    let relay = Dir::open(folder.path()).unwrap();
    let owner = |path: &Path| {
        let meta = std::fs::metadata(path).unwrap();
        (meta.uid(), meta.gid())
    };
    said(A).write(&relay).unwrap();
    let leases = folder.path().join(FOLDER);
    let file = leases.join(format!("{A}.json"));
    assert_eq!((owner(&leases), owner(&file)), ((1234, 1235), (1234, 1235)));
    chown(&file, Some(4321), Some(4322)).unwrap();
    said(A).write(&relay).unwrap();
    assert_eq!(owner(&file), (4321, 4322));
}
