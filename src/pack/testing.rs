//! Packs for tests of reading: tar streams by the letter, put into frames by hand, with a manifest or without.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::learn::learn;
use super::{Frame, Manifest, MemberKind, Nature, Pack, Unpacked, read_member};
use crate::base::{Clock, Context, NoProgress, Result, Stop};
use crate::disk::Dir;

/// A tar stream in the making.
#[derive(Clone, Default)]
pub(super) struct Tarball(pub Vec<u8>);

impl Tarball {
    pub(super) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(b'0', name, "", content)
    }

    pub(super) fn folder(self, name: &str) -> Self {
        self.entry(b'5', name, "", b"")
    }

    pub(super) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name, target, b"")
    }

    pub(super) fn hard_link(self, name: &str, first: &str) -> Self {
        self.entry(b'1', name, first, b"")
    }

    pub(super) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut content = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let mut length = rest + 1;
            while length != rest + length.to_string().len() {
                length = rest + length.to_string().len();
            }
            content.extend(format!("{length} {key}=").as_bytes());
            content.extend(*value);
            content.push(b'\n');
        }
        self.entry(b'x', "pax", "", &content)
    }

    pub(super) fn entry(self, kind: u8, name: &str, link: &str, content: &[u8]) -> Self {
        let mut header = tar::Header::new_ustar();
        header.set_mode(if kind == b'5' { 0o750 } else { 0o640 });
        header.set_size(content.len() as u64);
        header.set_mtime(1_717_405_200);
        let (uid, gid) = crate::disk::own_ids();
        header.set_uid(uid.into());
        header.set_gid(gid.into());
        let fields = header.as_old_mut();
        fields.linkflag = [kind];
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
        self.header(header).raw(content)
    }

    pub(super) fn header(mut self, mut header: tar::Header) -> Self {
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self
    }

    pub(super) fn raw(mut self, content: &[u8]) -> Self {
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(super) fn end(self) -> Vec<u8> {
        self.raw(&[0; 1024]).0
    }
}

pub(super) fn frame(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut encoder, content).unwrap();
    encoder.finish().unwrap()
}

/// A pack file that nothing stands behind.
pub(super) fn foreign(frames: &[Vec<u8>]) -> Pack {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&path, frames.concat()).unwrap();
    let mut from = 0;
    let places = frames.iter().map(|frame| {
        let place = from..from + frame.len() as u64;
        from = place.end;
        place
    });
    Pack {
        broken_off: None,
        frames: places.collect(),
        file: std::fs::File::open(&path).unwrap(),
        meta: crate::disk::Meta::of(std::fs::File::open(&path).unwrap()).unwrap(),
        path: PathBuf::from("/x/pack.tar.zst"),
        nature: Nature::Foreign,
        manifest: None,
    }
}

pub(super) fn by_hand(tar: &[u8]) -> Pack {
    foreign(&[frame(tar)])
}

/// A pack with the manifest that fits it.
pub(super) fn whole(contents: &[Vec<u8>]) -> Pack {
    let frames: Vec<Vec<u8>> = contents.iter().map(|content| frame(content)).collect();
    let pack = foreign(&frames);
    with(|context| {
        let expected = learn(&pack, false, context).ok().unwrap().expected;
        let mut members = expected.members.into_owned();
        for member in members.iter_mut().filter(|m| m.kind == MemberKind::File) {
            let mut content = Vec::new();
            read_member(&pack, &member.path, &mut content, context).unwrap();
            member.blake3 = Some(crate::pack::short_digest(&blake3::hash(&content)));
        }
        let manifest = Manifest {
            format: 1,
            created_at: "2024-06-03T09:00:00Z".parse().unwrap(),
            made_by: "a test".into(),
            top: expected.root.to_str().unwrap().to_owned(),
            entry: None,
            flaws: Vec::new(),
            frames: frames
                .iter()
                .zip(contents)
                .map(|(frame, content)| Frame {
                    bytes: frame.len() as u64,
                    content: content.len() as u64,
                    blake3: blake3::hash(frame).to_hex().to_string(),
                })
                .collect(),
            members,
        };
        let tail = manifest.encode().unwrap();
        let mut lengths: Vec<_> = manifest
            .frames
            .iter()
            .map(|f| (f.bytes, f.content))
            .collect();
        lengths.push((tail.len() as u64, 0));
        let table = super::frames::seek_table(&lengths).unwrap();
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, [frames.concat(), tail, table].concat()).unwrap();
        let pack = Pack::open(&path).unwrap();
        assert_eq!(pack.nature, Nature::Whole);
        pack
    })
}

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn time_zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }

    fn random(&self) -> u128 {
        0
    }
}

pub(super) fn with<T>(work: impl FnOnce(&Context<'_>) -> T) -> T {
    let stop = Stop::new();
    work(&Context {
        clock: &NoClock,
        progress: &NoProgress,
        stop: &stop,
    })
}

/// Unpacks into `into` of a fresh folder, and tells whether anything else came to be in it.
pub(super) fn unpacked(pack: &Pack, salvage: bool) -> (tempfile::TempDir, Result<Unpacked>) {
    let outer = tempfile::tempdir().unwrap();
    std::fs::create_dir(outer.path().join("into")).unwrap();
    let into = Dir::open(outer.path().join("into")).unwrap();
    let done = with(|context| super::unpack(pack, &into, super::Limits { salvage }, context));
    let names: Vec<_> = std::fs::read_dir(outer.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "something came to be outside: {names:?}");
    (outer, done)
}

pub(super) fn refusal(pack: &Pack) -> String {
    let (_outer, done) = unpacked(pack, false);
    done.map(|_| ()).expect_err("it was unpacked").to_string()
}

/// Runs a stock tool; `None`, and a word about it, where there is none.
pub(super) fn tool(program: &str, arguments: &[&str], dir: &Path) -> Option<Vec<u8>> {
    let arguments = arguments.iter().map(|a| OsStr::from_bytes(a.as_bytes()));
    match std::process::Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .output()
    {
        Ok(done) => {
            assert!(
                done.status.success(),
                "{program}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            Some(done.stdout)
        }
        Err(_) => {
            eprintln!("SKIPPED: there is no {program}");
            None
        }
    }
}
