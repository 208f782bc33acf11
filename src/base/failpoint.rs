//! Places where a test can make the program die, to prove that the next run settles what it left.
//!
//! Compiled to nothing without the feature `failpoints`.

#[cfg(feature = "failpoints")]
static ARMED: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Arms the failpoint of that name; the command line takes it from the environment.
#[cfg(feature = "failpoints")]
pub fn arm(name: String) {
    let _ = ARMED.set(name);
}

/// Dies here as under `kill -9` when the failpoint of that name is armed.
#[inline]
pub fn hit(name: &str) {
    #[cfg(feature = "failpoints")]
    if ARMED.get().is_some_and(|armed| armed == name) {
        std::process::abort();
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}
