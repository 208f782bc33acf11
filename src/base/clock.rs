//! Time and randomness come in from outside, so that every test is exact.

use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};

/// Where time and randomness come from.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
    /// The zone in which a person reads times and dates.
    fn time_zone(&self) -> TimeZone;
    /// 128 random bits, for names that nobody else chooses.
    fn random(&self) -> u128;

    /// The present moment as a person reads it.
    fn zoned(&self) -> ZonedDateTime {
        self.now().to_zoned_datetime(self.time_zone())
    }

    /// The present moment as a name: `20240603T090000Z`.
    fn stamp(&self) -> String {
        super::stamp::name(self.now())
    }
}

/// The machine's own clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the place it is banned for"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn time_zone(&self) -> TimeZone {
        TimeZone::system()
    }

    fn random(&self) -> u128 {
        // The standard library seeds each thread's `RandomState` from the operating system and hashes
        // with SipHash. That is enough for names that must differ; nothing secret is made of it.
        use std::hash::{BuildHasher, RandomState};
        let now = self.now().as_nanosecond();
        let half = |n: u8| u128::from(RandomState::new().hash_one((std::process::id(), now, n)));
        half(0) << 64 | half(1)
    }
}

/// A clock that stands still. Its random numbers count up, and are others in each process.
#[derive(Debug)]
pub struct FixedClock {
    now: Timestamp,
    next: std::sync::atomic::AtomicU32,
}

impl FixedClock {
    /// A clock that stands at `now`, in UTC.
    pub fn new(now: Timestamp) -> Self {
        FixedClock {
            now,
            next: std::sync::atomic::AtomicU32::new(0),
        }
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn time_zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    fn random(&self) -> u128 {
        // Some names hold no more than its last 32 bits: a process number, which has 22 of them, must be in these.
        let process = std::process::id();
        let n = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        u128::from(process) << 32 | u128::from((process << 10).wrapping_add(n))
    }
}
