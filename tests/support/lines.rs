//! Numbered lines, written as fast as an agent never does, and the proof that each of them is there once and whole.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;

/// Line `n`, its end included: 20 to 5,000 bytes.
pub fn line(n: u64, out: &mut Vec<u8>) {
    let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let length = match hash % 50 {
        0 => 20 + hash / 50 % 4981,
        _ => 20 + hash / 50 % 100,
    };
    let begin = out.len();
    write!(out, "{n:012} ").unwrap();
    out.resize(begin + length as usize - 1, b'a' + (n % 26) as u8);
    out.push(b'\n');
}

/// Somebody who writes lines to the end of a log, about so many a second, sometimes several in one write.
pub struct Writer {
    done: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    thread: JoinHandle<Duration>,
}

impl Writer {
    pub fn new(log: &Path, a_second: u64) -> Writer {
        Writer::from(log, a_second, 0)
    }

    /// Goes on at line `first`.
    pub fn from(log: &Path, a_second: u64, first: u64) -> Writer {
        let done = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(first));
        let (stop, count) = (Arc::clone(&done), Arc::clone(&written));
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(log).unwrap();
        let thread = std::thread::spawn(move || {
            let (begun, mut n, mut lines) = (Instant::now(), first, Vec::new());
            let mut longest = Duration::ZERO;
            // Should a check fail, nobody tells it to end.
            while !stop.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(300) {
                let wanted = first + (begun.elapsed().as_secs_f64() * a_second as f64) as u64;
                while n < wanted {
                    lines.clear();
                    for _ in 0..1 + n % 4 {
                        line(n, &mut lines);
                        n += 1;
                    }
                    let before = Instant::now();
                    file.write_all(&lines).unwrap();
                    longest = longest.max(before.elapsed());
                    count.store(n, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_micros(300));
            }
            longest
        });
        Writer {
            done,
            written,
            thread,
        }
    }

    /// So many lines are written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Waits for so many more.
    pub fn wait_for(&self, more: u64) {
        let wanted = self.written() + more;
        while self.written() < wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it; how many lines were written, and how long the longest write took.
    pub fn end(self) -> (u64, Duration) {
        self.done.store(true, Ordering::Relaxed);
        let longest = self.thread.join().unwrap();
        (self.written.load(Ordering::Relaxed), longest)
    }
}

/// What was cut out of a log, the oldest first.
pub fn rotated(log: &Path) -> Vec<PathBuf> {
    let mut begin = log.file_name().unwrap().to_owned();
    begin.push("-");
    let begin = begin.to_str().unwrap();
    let names = std::fs::read_dir(log.parent().unwrap()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    let mut all: Vec<(String, u32, OsString)> = names
        .filter_map(|name| {
            let rest = name.to_str()?.strip_prefix(begin)?;
            let rest = rest.split('.').next().unwrap();
            let (stamp, n) = rest.split_once('_').unwrap_or((rest, "1"));
            Some((stamp.to_owned(), n.parse().unwrap(), name.clone()))
        })
        .collect();
    all.sort();
    let paths = all.into_iter().map(|(_, _, name)| log.with_file_name(name));
    paths.collect()
}

/// What a file holds, compressed or not.
pub fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    match path.extension().and_then(|e| e.to_str()) {
        Some("zst") => {
            zstd::stream::copy_decode(File::open(path).unwrap(), &mut bytes).unwrap();
        }
        Some("gz") => {
            let mut decoder = MultiGzDecoder::new(File::open(path).unwrap());
            std::io::Read::read_to_end(&mut decoder, &mut bytes).unwrap();
        }
        _ => bytes = std::fs::read(path).unwrap(),
    }
    bytes
}

/// What is not as it should be in the lines `first..`, of what was cut out and the log itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The line that would follow.
    pub next: u64,
    pub lost: u64,
    pub doubled: u64,
    pub torn: u64,
}

/// Follows the lines through everything that was cut out, in order, and the log. Blank lines are none.
pub fn follow(log: &Path) -> Lines {
    let mut found = Lines::default();
    let (mut wanted, mut said) = (Vec::new(), 0);
    for path in rotated(log).iter().map(PathBuf::as_path).chain([log]) {
        for text in content(path).split_inclusive(|b| *b == b'\n') {
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            wanted.clear();
            line(found.next, &mut wanted);
            if text == wanted {
                found.next += 1;
                continue;
            }
            let number = text.get(..12).and_then(|n| std::str::from_utf8(n).ok());
            let number = number.and_then(|n| n.parse::<u64>().ok());
            let shown = String::from_utf8_lossy(&text[..text.len().min(50)]);
            said += 1;
            if said < 5 {
                eprintln!(
                    "{}: {shown:?} instead of line {}",
                    path.display(),
                    found.next
                );
            }
            match number {
                Some(n) if n >= found.next => {
                    wanted.clear();
                    line(n, &mut wanted);
                    found.lost += n - found.next;
                    found.torn += u64::from(text != wanted);
                    found.next = n + 1;
                }
                Some(_) => found.doubled += 1,
                None => found.torn += 1,
            }
        }
    }
    found
}

/// Every line of `0..written` is there once and whole.
#[track_caller]
pub fn assert_all(log: &Path, written: u64) {
    let all = Lines {
        next: written,
        ..Lines::default()
    };
    assert_eq!(follow(log), all, "{}", log.display());
}
