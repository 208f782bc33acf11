use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::base::NoProgress;

/// How long line `n` is, its end included.
fn length(n: u64) -> usize {
    let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    match hash % 50 {
        0 => 20 + (hash / 50 % 4981) as usize,
        _ => 20 + (hash / 50 % 100) as usize,
    }
}

fn line(n: u64, out: &mut Vec<u8>) {
    let begin = out.len();
    write!(out, "{n:012} ").unwrap();
    out.resize(begin + length(n) - 1, b'a' + (n % 26) as u8);
    out.push(b'\n');
}

/// Holds that the text is the lines from `next` on, none lost, doubled or torn, but for blank ones. Gives the one after.
fn follow(text: &[u8], mut next: u64) -> u64 {
    let mut wanted = Vec::new();
    for found in text.split_inclusive(|b| *b == b'\n') {
        if found.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        wanted.clear();
        line(next, &mut wanted);
        let shown = String::from_utf8_lossy(&found[..found.len().min(60)]);
        assert!(
            found == wanted,
            "instead of line {next}: {shown:?}, {} bytes",
            found.len()
        );
        next += 1;
    }
    next
}

struct Log {
    folder: tempfile::TempDir,
}

impl Log {
    fn new() -> Log {
        Log {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("run.log")
    }

    fn appender(&self) -> File {
        let mut options = OpenOptions::new();
        options.append(true).create(true).open(self.path()).unwrap()
    }

    /// Cuts it once; what was taken out, and how long the blank line is.
    fn cut(&self, blank: u64, id: u128) -> (Vec<u8>, u64, Means) {
        let dir = Dir::open(self.folder.path()).unwrap();
        let log = open_log(&dir, OsStr::new("run.log")).unwrap();
        let means = means(&dir, &log).unwrap();
        let from = blank_head(&log, blank).unwrap();
        assert!(from == blank || blank == 0, "{from}");
        let size = Meta::of(&log).unwrap().size;
        let end = end_of_lines(&log, from, size).unwrap();
        let copy = NewFile::create(&dir).unwrap();
        copy_out(&log, copy.file(), (from, end), &NoProgress, &Stop::new()).unwrap();
        let cut = Cut {
            from,
            end,
            means,
            slice: 1 << 20,
            id,
        };
        assert_eq!(cut.take_out(&log, copy.file(), true).unwrap(), Taken::Out);
        cut.clear(&log).unwrap();
        let mut held = vec![0; Meta::of(copy.file()).unwrap().size as usize];
        copy.file().read_exact_at(&mut held, 0).unwrap();
        (held, cut.blank(), means)
    }

    fn text(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }
}

/// Whether logs here are cut without loss; says so when they are not.
fn collapses(folder: &Path) -> bool {
    let dir = Dir::open(folder).unwrap();
    let scratch = NewFile::create(&dir).unwrap();
    let can = means(&dir, scratch.file()).unwrap() != Means::Truncate;
    if !can {
        eprintln!("SKIPPED: {} can not collapse", folder.display());
    }
    can
}

#[test]
fn no_line_is_lost_doubled_or_torn_while_it_is_written() {
    let log = Log::new();
    if !collapses(log.folder.path()) {
        return;
    }
    let done = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    let mut archived = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = log.appender();
            let (mut n, mut lines) = (0, Vec::new());
            // Should a check fail, nobody tells it to end.
            while !done.load(Ordering::Relaxed) && n < 500_000 {
                lines.clear();
                // Sometimes several lines in one write, sometimes one line in two.
                for _ in 0..1 + n % 4 {
                    line(n, &mut lines);
                    n += 1;
                }
                let half = match n % 7 {
                    0 => lines.len() / 2,
                    _ => lines.len(),
                };
                file.write_all(&lines[..half]).unwrap();
                file.write_all(&lines[half..]).unwrap();
                written.store(n, Ordering::Relaxed);
                if n % 100 < 3 {
                    // As fast as it can, it would write more during a cut than was cut.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
        let mut blank = 0;
        for id in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let held;
            (held, blank, _) = log.cut(blank, id);
            archived.push(held);
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut next = 0;
    for held in &archived {
        next = follow(held, next);
    }
    assert!(next > 1000, "only {next} lines were archived");
    next = follow(&log.text(), next);
    assert_eq!(next, written.load(Ordering::Relaxed));
    assert!(log.text().len() < archived.iter().map(Vec::len).sum());
}

#[test]
fn what_remains_is_one_blank_line_and_what_was_no_line_yet() {
    let log = Log::new();
    if !collapses(log.folder.path()) {
        return;
    }
    for lines in [1, 2, 50, 3000] {
        std::fs::write(log.path(), "").unwrap();
        let mut text = Vec::new();
        (0..lines).for_each(|n| line(n, &mut text));
        log.appender().write_all(&text).unwrap();
        log.appender().write_all(b"not yet").unwrap();
        let (held, blank, _) = log.cut(0, 7);
        assert!(held == text, "{lines}");
        let left = log.text();
        assert_eq!(left.len() as u64, blank + 7, "{lines}");
        assert!(left[..blank as usize - 1].iter().all(|b| *b == b' '));
        assert!(left.ends_with(b"\nnot yet"));
        assert!(blank < 4096 + MARK + 1, "{blank}");
        // Nothing is archived twice, and the blank line not at all.
        log.appender().write_all(b" but now\n").unwrap();
        let (held, _, _) = log.cut(blank, 8);
        assert_eq!(held, b"not yet but now\n");
    }
}

/// Where the mark stands.
fn find_seam(cut: &Cut, slice: u64, log: &File) -> u64 {
    let mut at = (0..=cut.seam() / slice)
        .map(|n| n * slice)
        .chain([cut.seam()]);
    at.find(|at| stands_at(log, *at, &cut.mark()).unwrap())
        .unwrap()
}

/// Lines that are all the same, as long as a slice divides into: the content does not tell where the seam is.
#[test]
fn the_seam_is_found_again_whatever_the_lines_are() {
    let log = Log::new();
    if !collapses(log.folder.path()) {
        return;
    }
    let dir = Dir::open(log.folder.path()).unwrap();
    let text = b"fifteen letters\n".repeat(1 << 16);
    std::fs::write(log.path(), &text).unwrap();
    let file = open_log(&dir, OsStr::new("run.log")).unwrap();
    let Means::Collapse { block } = means(&dir, &file).unwrap() else {
        panic!("it could a moment ago");
    };
    let copy = NewFile::create(&dir).unwrap();
    let end = text.len() as u64;
    copy_out(&file, copy.file(), (0, end), &NoProgress, &Stop::new()).unwrap();
    let cut = Cut {
        from: 0,
        end,
        means: Means::Collapse { block },
        slice: 64 << 10,
        id: 9,
    };
    // As a kill leaves it after a part was taken out.
    let seam = cut.seam();
    let mut line = blank(cut.blank());
    line[..MARK as usize].copy_from_slice(&cut.mark());
    file.write_all_at(&line, seam).unwrap();
    let slice = (64 << 10) / block * block;
    for _ in 0..3 {
        let left = find_seam(&cut, slice, &file);
        let begin = (left - 1) / slice * slice;
        collapse::collapse(&file, begin, left - begin).unwrap();
    }
    log.appender().write_all(b"fifteen letters\n").unwrap();
    for _ in 0..2 {
        assert_eq!(cut.take_out(&file, copy.file(), false).unwrap(), Taken::Out);
    }
    cut.clear(&file).unwrap();
    let left = log.text();
    assert_eq!(left.len() as u64, cut.blank() + 16);
    assert!(left.ends_with(b" \nfifteen letters\n"));
}

#[test]
fn what_the_disk_does_not_take_out_is_blanked_and_taken_out_the_next_time() {
    let log = Log::new();
    if !collapses(log.folder.path()) {
        return;
    }
    let dir = Dir::open(log.folder.path()).unwrap();
    let mut text = Vec::new();
    (0..3000).for_each(|n| line(n, &mut text));
    std::fs::write(log.path(), &text).unwrap();
    let file = open_log(&dir, OsStr::new("run.log")).unwrap();
    let copy = NewFile::create(&dir).unwrap();
    let end = text.len() as u64;
    copy_out(&file, copy.file(), (0, end), &NoProgress, &Stop::new()).unwrap();
    // No block is so long, and the system refuses.
    let cut = Cut {
        from: 0,
        end,
        means: Means::Collapse { block: 1000 },
        slice: SLICE,
        id: 5,
    };
    assert_eq!(cut.take_out(&file, copy.file(), true).unwrap(), Taken::Out);
    cut.clear(&file).unwrap();
    assert!(log.text() == blank(end));
    let mut more = Vec::new();
    line(3000, &mut more);
    log.appender().write_all(&more).unwrap();
    let known = blank_head(&file, cut.blank()).unwrap();
    assert_eq!(known, end);
    let (held, left, _) = log.cut(known, 6);
    assert!(held == more && log.text().len() as u64 == left);
}

/// Cuts a log whose copy holds this.
fn taken_out(log: &Log, held: &str, means: Means) -> Taken {
    let dir = Dir::open(log.folder.path()).unwrap();
    let file = open_log(&dir, OsStr::new("run.log")).unwrap();
    let copy = NewFile::create(&dir).unwrap();
    copy.file().write_all_at(held.as_bytes(), 0).unwrap();
    let cut = Cut {
        from: 0,
        end: held.len() as u64,
        means,
        slice: SLICE,
        id: 3,
    };
    cut.take_out(&file, copy.file(), true).unwrap()
}

#[test]
fn a_log_that_was_begun_anew_is_left_alone() {
    let log = Log::new();
    for means in [Means::Collapse { block: 4096 }, Means::Truncate] {
        for (held, now) in [
            ("one\ntwo\n", "another\n"),
            ("one\n", ""),
            (&*"line\n".repeat(4000), "line\n"),
            (&*"line\n".repeat(4000), &*"other\n".repeat(5000)),
        ] {
            std::fs::write(log.path(), now).unwrap();
            let taken = taken_out(&log, held, means);
            assert_eq!(taken, Taken::Changed, "{held:.9} {now:.9}");
            assert!(log.text() == now.as_bytes());
        }
    }
}

#[test]
fn a_log_that_has_got_a_second_name_is_left_alone() {
    let log = Log::new();
    for means in [Means::Collapse { block: 4096 }, Means::Truncate] {
        for held in ["one\ntwo\n".to_owned(), "line\n".repeat(4000)] {
            std::fs::write(log.path(), &held).unwrap();
            let other = log.folder.path().join("other");
            std::fs::hard_link(log.path(), &other).unwrap();
            let taken = taken_out(&log, &held, means);
            assert_eq!(taken, Taken::Linked, "{means:?} {}", held.len());
            assert!(log.text() == held.as_bytes());
            std::fs::remove_file(other).unwrap();
        }
    }
}

#[test]
fn holes_are_copied_as_holes() {
    let log = Log::new();
    let dir = Dir::open(log.folder.path()).unwrap();
    let mut file = std::fs::File::create(log.path()).unwrap();
    file.write_all(b"first\n").unwrap();
    file.write_all_at(b"last\n", 64 << 20).unwrap();
    let copy = NewFile::create(&dir).unwrap();
    let end = (64 << 20) + 5;
    copy_out(
        &open_log(&dir, OsStr::new("run.log")).unwrap(),
        copy.file(),
        (3, end),
        &NoProgress,
        &Stop::new(),
    )
    .unwrap();
    let meta = Meta::of(copy.file()).unwrap();
    assert_eq!(meta.size, end - 3);
    assert!(meta.blocks * 512 < 1 << 20, "{}", meta.blocks);
    assert!(stands_at(copy.file(), 0, b"st\n\0").unwrap());
    assert!(stands_at(copy.file(), (64 << 20) - 3, b"last\n").unwrap());
}

#[test]
fn a_fifo_does_not_hang_and_a_link_is_not_followed() {
    let log = Log::new();
    let dir = Dir::open(log.folder.path()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(&dir, "fifo", rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(open_log(&dir, OsStr::new("fifo")).is_err());
    std::fs::write(log.path(), "x\n").unwrap();
    std::os::unix::fs::symlink("run.log", log.folder.path().join("link.log")).unwrap();
    assert!(open_log(&dir, OsStr::new("link.log")).is_err());
}
