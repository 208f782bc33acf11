//! `kill -9` at random moments: the numbers, the homes that are worth it, and the kill.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Place;
use super::corpus::Corpus;

/// Random numbers: SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    /// Another seed each time, unless `WBHOME_TEST_SEED` says which.
    pub fn seeded() -> Rng {
        let given = std::env::var("WBHOME_TEST_SEED")
            .ok()
            .and_then(|s| s.parse().ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = given.unwrap_or(now.as_nanos() as u64);
        eprintln!("WBHOME_TEST_SEED={seed}");
        Rng(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }

    /// A moment within so long.
    pub fn within(&mut self, takes: Duration) -> Duration {
        Duration::from_micros(self.below(takes.as_micros() as u64 + 1))
    }
}

impl Place {
    /// [`Place::with_home`] with the sessions of a corpus, indexed.
    pub fn with_corpus(corpus: &Corpus) -> Place {
        let place = Place::with_home();
        corpus.write(&place.path("made")).unwrap();
        std::fs::remove_dir_all(place.home().join("sessions")).unwrap();
        std::fs::rename(place.path("made/sessions"), place.home().join("sessions")).unwrap();
        place.ok(["index", "-q"]);
        place
    }
}

/// Runs a command and kills it after so long; whether it was still running then.
pub fn killed(command: Command, after: Duration) -> bool {
    killed_once(command, || true, after)
}

/// Runs a command and kills it so long after something can be seen of it; whether it was still running then.
pub fn killed_once(mut command: Command, seen: impl Fn() -> bool, after: Duration) -> bool {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !seen() && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    std::thread::sleep(after);
    let running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    running
}
