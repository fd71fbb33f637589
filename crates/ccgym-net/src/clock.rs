//! The clock of a run.
//!
//! Real time is counted in nanoseconds of `CLOCK_MONOTONIC` since the run's start, the same clock in
//! all processes of a machine; packets, schemes and elements use it as [`Timestamp`], as in the simulator.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ccgym_core::{TimeSpan, Timestamp};
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, ClockId};
use serde::{Deserialize, Serialize};

/// Return `CLOCK_MONOTONIC`, nanoseconds.
pub fn monotonic_ns() -> u64 {
    // The clock exists on every Linux; it cannot fail.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// The clock of a run. Copies agree, also in other processes of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `CLOCK_MONOTONIC` at time zero.
    origin_ns: u64,
    /// Nanoseconds since the Unix epoch at time zero.
    epoch_ns: u64,
}

impl Clock {
    /// Make a clock that reads zero now.
    pub fn start() -> Self {
        Self::starting_in(Duration::ZERO)
    }

    /// Make a clock that starts after `wait`; it reads zero until then.
    pub fn starting_in(wait: Duration) -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin_ns: monotonic_ns() + wait.as_nanos() as u64, epoch_ns: (epoch + wait).as_nanos() as u64 }
    }

    /// Make a clock that starts this many milliseconds after the Unix epoch; that time can be in the past.
    pub fn starting_at(epoch_ms: u64) -> Self {
        let epoch_ns = epoch_ms * 1_000_000;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        Self { origin_ns: (monotonic_ns() + epoch_ns).saturating_sub(now), epoch_ns }
    }

    /// Return the time since the start; zero before it.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        Timestamp(monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// True if the clock has started.
    pub fn has_started(&self) -> bool {
        monotonic_ns() >= self.origin_ns
    }

    /// Convert a time of this clock to `CLOCK_MONOTONIC`, nanoseconds.
    pub const fn monotonic(&self, at: Timestamp) -> u64 {
        self.origin_ns.saturating_add(at.0)
    }

    /// Convert a time of this clock to milliseconds since the Unix epoch.
    pub fn epoch_ms(&self, at: Timestamp) -> f64 {
        (self.epoch_ns as f64 + at.0 as f64) / 1e6
    }

    /// Return the time from now to `at`; zero if that has passed, `None` for [`Timestamp::NEVER`].
    pub fn until(&self, at: Timestamp) -> Option<TimeSpan> {
        at.is_set().then(|| TimeSpan(self.monotonic(at).saturating_sub(monotonic_ns())))
    }

    /// Return the same as a timeout of `ppoll`.
    pub fn timeout(&self, at: Timestamp) -> Option<TimeSpec> {
        self.until(at).map(|span| TimeSpec::from_duration(Duration::from_nanos(span.0)))
    }

    /// Sleep until `at`.
    pub fn sleep_until(&self, at: Timestamp) {
        if let Some(span) = self.until(at) {
            std::thread::sleep(Duration::from_nanos(span.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_starts_when_it_says() {
        let clock = Clock::starting_in(Duration::from_millis(20));
        assert_eq!((clock.now(), clock.has_started()), (Timestamp::ZERO, false));
        clock.sleep_until(Timestamp::from_millis(5));
        assert!(clock.has_started());
        let now = clock.now();
        assert!(now >= Timestamp::from_millis(5) && now < Timestamp::from_millis(1000), "{now:?}");
        assert_eq!(clock.until(now), Some(TimeSpan::ZERO));
        assert_eq!(clock.until(Timestamp::NEVER), None);
    }

    #[test]
    fn a_clock_starts_at_a_time_of_day() {
        let now = Clock::start().epoch_ms(Timestamp::ZERO) as u64;
        let (earlier, later) = (Clock::starting_at(now - 500), Clock::starting_at(now + 60_000));
        assert!(earlier.has_started() && earlier.now() >= Timestamp::from_millis(500));
        assert!(!later.has_started() && later.until(Timestamp::ZERO).unwrap() > TimeSpan::from_millis(50_000));
        assert!((later.epoch_ms(Timestamp::ZERO) - (now + 60_000) as f64).abs() < 0.01);
    }
}
