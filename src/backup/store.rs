//! A store that is open. It is reached through its open folder alone: when the disk is unmounted in the middle, nothing
//! is written to what then lies under its path.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Marker;
use super::{PackRef, Snapshot};
use crate::base::{Context, Error, Kind, Result, human, stamp};
use crate::disk::{self, Dir, FileLock, LockAttempt, Meta, NewFile};
use crate::home::Home;
use crate::pack::Pack;

/// The folder of the snapshots.
pub(super) const SNAPSHOTS: &str = "snapshots";

/// The folder of the packs.
pub(super) const PACKS: &str = "packs";

/// The file whose lock whoever writes holds.
const LOCK: &str = "lock";

/// The folder of what is being built.
const TMP: &str = "tmp";

/// The longest snapshot that is read.
const LONGEST: u64 = 1 << 30;

/// How long is waited between two tries to take the lock.
const PAUSE: Duration = Duration::from_millis(50);

/// A store. Reading needs nothing more; writing needs a [`LockedStore`].
#[derive(Debug)]
pub struct Store {
    pub(super) dir: Dir,
    path: PathBuf,
    marker: Marker,
    marker_is_lost: bool,
}

/// A store whose lock is held.
#[derive(Debug)]
pub struct LockedStore {
    store: Store,
    /// `None` where nothing can be written at all.
    _lock: Option<FileLock>,
}

impl std::ops::Deref for LockedStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Store {
    /// Opens a store, whosever it is.
    ///
    /// # Errors
    /// A folder that is not there or no store, or of a newer format.
    pub fn open(path: &Path) -> Result<Store> {
        let gone = || Error::failed("there is no backup store:").at(path);
        let mount = "if it is on a disk that is not mounted, mount it";
        let dir = Dir::open(path).map_err(|error| match disk::is_nowhere(&error) {
            true => gone().hint(mount),
            false => Error::io("can not open the backup store", path, error),
        })?;
        let holds_snapshots = || {
            let names = dir
                .open_beneath(Path::new(SNAPSHOTS))
                .and_then(|dir| dir.names());
            names.is_ok_and(|names| !names.is_empty())
        };
        let named = human::quoted(path);
        let adopt = format!(
            "its snapshots are there: `wbhome backup adopt --force {named}` makes it this home's, with a new marker"
        );
        let marker = Marker::read(&dir).map_err(|error| {
            let newer = error.kind() == Kind::Newer;
            let error = within(error, path);
            match !newer && holds_snapshots() {
                true => error.hint(adopt.clone()),
                false => error,
            }
        })?;
        let marker = marker.ok_or_else(|| match holds_snapshots() {
            true => Error::failed("the backup store has lost its marker, wbhome-store.json:")
                .at(path)
                .hint(adopt),
            false => gone()
                .hint(mount)
                .hint(format!("if it was never made, or is gone: `wbhome backup init --again {named}` makes a new one")),
        })?;
        Ok(Store {
            dir,
            path: path.to_path_buf(),
            marker,
            marker_is_lost: false,
        })
    }

    /// Like [`Store::open`], also when the marker is lost: whose the store is, its newest snapshot says, too. For those who
    /// only read.
    ///
    /// # Errors
    /// As there.
    pub fn open_to_read(path: &Path) -> Result<Store> {
        let error = match Store::open(path) {
            Err(error) if error.kind() == Kind::Failed => error,
            opened => return opened,
        };
        match Store::without_marker(path)? {
            Some(store) => Ok(store),
            None => Err(error),
        }
    }

    /// Whether its marker was lost, so that what it says is what the newest snapshot says.
    pub(super) fn marker_is_lost(&self) -> bool {
        self.marker_is_lost
    }

    /// A store that has snapshots, and no marker that could be understood.
    fn without_marker(path: &Path) -> Result<Option<Store>> {
        let Ok(dir) = Dir::open(path) else {
            return Ok(None);
        };
        let mut store = Store {
            dir,
            path: path.to_path_buf(),
            marker: Marker::unknown(path),
            marker_is_lost: true,
        };
        for at in store.snapshots()?.into_iter().rev() {
            if let Ok(snapshot) = store.snapshot(at) {
                store.marker = Marker::as_of(&snapshot);
                return Ok(Some(store));
            }
        }
        Ok(None)
    }

    /// Opens the store of this home on this machine.
    ///
    /// # Errors
    /// Also one that belongs to another home, machine or place.
    pub fn open_of(path: &Path, home: &Home) -> Result<Store> {
        let store = Store::open(path)?;
        match store.marker.disagrees(home)? {
            None => Ok(store),
            Some(why) => {
                let error = Error::failed(format!("the store is not this home's, {why}:")).at(path);
                let named = human::quoted(path);
                Err(match store.marker.home == home.id() {
                    true => error.hint(format!(
                        "if the home was moved or restored, and nobody writes into the store from the old place: `wbhome backup adopt {named}`"
                    )),
                    false => error
                        .hint("a store for this one, in another folder: `wbhome backup init DIR`")
                        .hint(format!(
                            "if the other home is gone, and this one takes its place: `wbhome backup adopt --force {named}`"
                        )),
                })
            }
        }
    }

    /// Its folder, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose it is.
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// Takes its lock, waiting for at most `wait`. A store that can not be written at all needs none.
    ///
    /// # Errors
    /// [`Kind::Locked`] with the holder's name, and interruption.
    pub fn lock(self, wait: Duration, command: &str, context: &Context) -> Result<LockedStore> {
        let since = context.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ");
        let pid = std::process::id();
        let host = disk::host_name();
        let holder = format!("wbhome {command} (process {pid} on {host}, since {since})");
        let begun = Instant::now();
        loop {
            let attempt = FileLock::attempt_in(&self.dir, OsStr::new(LOCK), &holder);
            let other = match attempt {
                Ok(LockAttempt::Got(lock)) => {
                    return Ok(LockedStore {
                        store: self,
                        _lock: Some(lock),
                    });
                }
                Ok(LockAttempt::HeldBy(other)) => other,
                Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
                    return Ok(LockedStore {
                        store: self,
                        _lock: None,
                    });
                }
                Err(error) => {
                    let lock = self.path.join(LOCK);
                    return Err(Error::io("can not take the lock", lock, error));
                }
            };
            context.stop.check()?;
            if begun.elapsed() >= wait {
                let who = match other.trim() {
                    "" => "somebody else".to_owned(),
                    other => human::escape(other).into_owned(),
                };
                return Err(Error::new(
                    Kind::Locked,
                    format!("the backup store is in use by {who}:"),
                )
                .at(&self.path)
                .hint("wait until it is done; --lock-wait says for how long"));
            }
            std::thread::sleep(PAUSE.min(wait));
        }
    }

    /// The moments of its snapshots, the oldest first.
    ///
    /// # Errors
    /// When they can not be listed.
    pub fn snapshots(&self) -> Result<Vec<Timestamp>> {
        let folder = self.path.join(SNAPSHOTS);
        let names = match self.dir.open_beneath(Path::new(SNAPSHOTS)) {
            Err(error) if disk::is_nowhere(&error) => return Ok(Vec::new()),
            opened => opened.and_then(|dir| dir.names()),
        };
        let names = names.map_err(|e| Error::io("can not list the folder", &folder, e))?;
        let moment = |name: &OsStr| stamp::read(name.to_str()?.strip_suffix(".json")?);
        let mut found: Vec<Timestamp> = names.iter().filter_map(|(name, _)| moment(name)).collect();
        found.sort();
        Ok(found)
    }

    /// The path of a snapshot.
    pub fn snapshot_file(&self, at: Timestamp) -> PathBuf {
        self.path.join(SNAPSHOTS).join(snapshot_name(at))
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// One that can not be read or understood.
    pub fn snapshot(&self, at: Timestamp) -> Result<Snapshot> {
        let path = self.snapshot_file(at);
        let read = self
            .dir
            .open_beneath(Path::new(SNAPSHOTS))
            .and_then(|dir| disk::read_small_in(&dir, snapshot_name(at).as_ref(), LONGEST))
            .and_then(|text| text.ok_or_else(|| std::io::ErrorKind::NotFound.into()))
            .map_err(|e| Error::io("can not read the snapshot", &path, e))?;
        Snapshot::parse(&read).map_err(|error| {
            let newer = error.kind() == Kind::Newer;
            let hint = match newer {
                true => "use the newer wbhome",
                false => "move it out of the store if the disk has damaged it: packs that no other snapshot knows stay for [backup] keep_deleted",
            };
            Error::new(error.kind(), format!("the snapshot {error}:"))
                .at(&path)
                .hint(hint)
        })
    }

    /// Opens a pack. Its length has been compared, and nothing else.
    ///
    /// # Errors
    /// One that is not there, of another length, or no pack.
    pub fn pack(&self, pack: &PackRef) -> Result<Pack> {
        let path = self.path.join(&pack.file);
        let file = self
            .open_file(Path::new(&pack.file))
            .map_err(|e| Error::io("can not open the pack", &path, e))?;
        let opened = Pack::of(file, &path)?;
        match opened.size() == pack.bytes {
            true => Ok(opened),
            false => Err(Error::failed(format!(
                "the pack is {} long, and was {} when it was written:",
                human::count(opened.size()),
                human::count(pack.bytes)
            ))
            .at(&path)),
        }
    }

    /// Whether a pack lies there, as long as it was written. Reads nothing of it.
    pub fn has(&self, pack: &PackRef) -> bool {
        self.look_at(pack)
            .is_ok_and(|meta| meta.kind == disk::FileKind::File && meta.size == pack.bytes)
    }

    /// Whether a pack is not there any more, for sure: one that is damaged, or that a failing disk does not show, may be
    /// all that is left of a session, and has to be named further on.
    pub(super) fn is_gone(&self, pack: &PackRef) -> bool {
        self.look_at(pack)
            .is_err_and(|error| disk::is_nowhere(&error))
    }

    fn look_at(&self, pack: &PackRef) -> std::io::Result<Meta> {
        let file = Path::new(&pack.file);
        let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        self.dir.open_beneath(parent)?.stat(name)
    }

    pub(super) fn open_file(&self, rel: &Path) -> std::io::Result<std::fs::File> {
        let (Some(parent), Some(name)) = (rel.parent(), rel.file_name()) else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        self.dir.open_beneath(parent)?.open_file(name)
    }

    /// Reads a pack from the disk and compares it with what was written.
    ///
    /// # Errors
    /// One that can not be read, or is not what it was.
    pub fn compare(&self, pack: &PackRef) -> Result<()> {
        let path = self.path.join(&pack.file);
        let fail = |e| Error::io("can not read the pack", &path, e);
        let file = self.open_file(Path::new(&pack.file)).map_err(fail)?;
        disk::drop_cache(&file);
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&file).map_err(fail)?;
        match hasher.finalize().to_hex().as_str() == pack.blake3 {
            true => Ok(()),
            false => Err(Error::failed("is not what was written into it:")
                .at(&path)
                .hint("the disk may be failing; `wbhome backup verify` reads all packs")),
        }
    }

    /// Whether its path still leads to what is open.
    pub(super) fn is_still_there(&self) -> bool {
        let here = self.dir.meta();
        let there = Dir::open(&self.path).and_then(|dir| dir.meta());
        matches!((here, there), (Ok(here), Ok(there)) if here.identity() == there.identity())
    }
}

impl LockedStore {
    /// Removes what a run that was killed had begun to build: copies of databases, and a snapshot or a marker that has
    /// only a temporary name. Packs of that kind go with those that no snapshot names.
    ///
    /// # Errors
    /// When it can not be removed.
    pub(super) fn clear_leftovers(&self) -> Result<()> {
        let name = OsStr::new(TMP);
        disk::remove_tree(&self.dir, name)
            .map_err(|e| Error::io("can not remove the folder", self.path.join(TMP), e))?;
        // Where a file can not be made without a name, the snapshot or the marker that it should have become.
        for folder in ["", SNAPSHOTS].map(Path::new) {
            let path = self.path.join(folder);
            let dir = match self.dir.open_beneath(folder) {
                Err(error) if disk::is_nowhere(&error) => continue,
                opened => opened.map_err(|e| Error::io("can not open the folder", &path, e))?,
            };
            let names = dir.names();
            let names = names.map_err(|e| Error::io("can not list the folder", &path, e))?;
            for (name, _) in names {
                if disk::is_temporary(&name) {
                    dir.unlink(&name)
                        .map_err(|e| Error::io("can not remove", path.join(&name), e))?;
                }
            }
        }
        Ok(())
    }

    /// The folder of the snapshots, for [`keep_room`].
    ///
    /// # Errors
    /// When it can not be made.
    pub(super) fn snapshots_folder(&self) -> std::io::Result<Dir> {
        self.dir.make_beneath(Path::new(SNAPSHOTS))
    }

    /// Writes a snapshot, so that it is on the disk with its name.
    ///
    /// # Errors
    /// When it can not be written; then it is not there.
    pub(super) fn write_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        self.put_snapshot(snapshot, false)
    }

    /// Like [`LockedStore::write_snapshot`], in the place of one that is there.
    ///
    /// # Errors
    /// As there; then the former one is as it was.
    pub(super) fn replace_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        self.put_snapshot(snapshot, true)
    }

    fn put_snapshot(&self, snapshot: &Snapshot, over: bool) -> Result<()> {
        let path = self.snapshot_file(snapshot.at);
        let fail = |e| Error::io("can not write the snapshot", &path, e);
        let mut text = serde_json::to_vec_pretty(snapshot).map_err(|e| fail(e.into()))?;
        text.push(b'\n');
        let dir = self.dir.make_beneath(Path::new(SNAPSHOTS)).map_err(fail)?;
        let name = snapshot_name(snapshot.at);
        put(&dir, &name, &text, over).map_err(fail)?;
        let synced = dir.sync().and_then(|()| self.dir.sync());
        if synced.is_err() && !over {
            // A run that says that it has failed leaves no snapshot.
            let _ = dir.unlink(name.as_ref());
        }
        synced.map_err(fail)
    }
}

/// Writes a file whole under its name, `over` one that is there or where none may be. The name is not on the disk yet.
pub(super) fn put(dir: &Dir, name: &str, content: &[u8], over: bool) -> std::io::Result<()> {
    let mut file = NewFile::create(dir)?;
    file.file().write_all(content)?;
    file.sync()?;
    match over {
        true => file.publish_over(name.as_ref()),
        false => file.publish(name.as_ref()),
    }
}

/// Takes room in the folder of the snapshots for the one that is to come, until what is returned is dropped: packs fill
/// a disk to its last block, and without a snapshot nobody would find them. Also how much there was of it.
///
/// # Errors
/// When nothing can be written there.
pub(super) fn keep_room(snapshots: &Dir, bytes: u64) -> std::io::Result<(NewFile<'_>, u64)> {
    let room = NewFile::create(snapshots)?;
    // Written, not only asked for: not every filesystem keeps what it promises.
    let block = [0x5A; 4 << 10];
    let mut taken = 0;
    while taken < bytes && room.file().write_all(&block).is_ok() {
        taken += block.len() as u64;
    }
    Ok((room, taken))
}

/// An empty folder of a store for what is being built, gone when it is dropped. Whoever makes one holds the lock.
pub(super) struct StoreScratch<'s> {
    store: &'s Store,
    rel: PathBuf,
}

impl<'s> StoreScratch<'s> {
    /// Makes it.
    ///
    /// # Errors
    /// When it can not be made.
    pub fn new(store: &'s Store, name: &str) -> std::io::Result<StoreScratch<'s>> {
        let tmp = store.dir.make_beneath(Path::new(TMP))?;
        disk::remove_tree(&tmp, OsStr::new(name))?;
        tmp.make(OsStr::new(name))?;
        let rel = Path::new(TMP).join(name);
        Ok(StoreScratch { store, rel })
    }

    /// Opens it.
    ///
    /// # Errors
    /// When it can not be opened.
    pub fn open(&self) -> std::io::Result<Dir> {
        self.store.dir.open_beneath(&self.rel)
    }

    /// Its path, for what has to go by one.
    pub fn path(&self) -> PathBuf {
        self.store.path.join(&self.rel)
    }
}

impl Drop for StoreScratch<'_> {
    fn drop(&mut self) {
        // What stays is cleared by whoever writes next.
        let tmp = self.store.dir.open_beneath(Path::new(TMP));
        if let (Ok(tmp), Some(name)) = (tmp, self.rel.file_name()) {
            let _ = disk::remove_tree(&tmp, name);
        }
    }
}

/// The name of a snapshot.
pub(super) fn snapshot_name(at: Timestamp) -> String {
    format!("{}.json", stamp::name(at))
}

/// An error whose path is relative to the store, with the whole path.
fn within(error: Error, store: &Path) -> Error {
    match error.path().map(|path| store.join(path)) {
        Some(path) => error.at(path),
        None => error,
    }
}
