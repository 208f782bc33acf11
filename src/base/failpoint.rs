//! Places where a test can make the program die, to prove that the next run settles what it left, or stand still, to see
//! what others do meanwhile.
//!
//! Compiled to nothing without the feature `failpoints`.

#[cfg(feature = "failpoints")]
static ARMED: std::sync::OnceLock<(String, u64)> = std::sync::OnceLock::new();

/// How often the armed one was passed.
#[cfg(feature = "failpoints")]
static PASSED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Whether it stands still instead of dying.
#[cfg(feature = "failpoints")]
static STOPS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Arms the failpoint of that name, or of `name:n` for the n-th time that it is passed; the command line takes it
/// from the environment. With `stop ` before the name it stops there as under `kill -STOP`.
#[cfg(feature = "failpoints")]
pub fn arm(name: String) {
    let (name, stops) = match name.strip_prefix("stop ") {
        Some(name) => (name.to_owned(), true),
        None => (name, false),
    };
    STOPS.store(stops, std::sync::atomic::Ordering::Relaxed);
    let (name, nth) = match name.split_once(':') {
        Some((name, nth)) => (name.to_owned(), nth.parse().unwrap_or(1)),
        None => (name, 1),
    };
    let _ = ARMED.set((name, nth));
}

/// Dies here as under `kill -9` when the failpoint of that name is armed.
#[inline]
pub fn hit(name: &str) {
    #[cfg(feature = "failpoints")]
    if let Some((armed, nth)) = ARMED.get()
        && armed == name
        && PASSED.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == *nth
    {
        if STOPS.load(std::sync::atomic::Ordering::Relaxed) {
            use rustix::process::{Signal, getpid, kill_process};
            let _ = kill_process(getpid(), Signal::STOP);
            return;
        }
        std::process::abort();
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}
