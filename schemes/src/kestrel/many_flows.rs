//! Whether others hold a queue: the latest probe for the base RTT says so.

use ccgym_core::{TimeSpan, Timestamp};

/// They do if more than this part of it stays; …
const STAYS: f64 = 0.5;
/// … that holds for this time, or until a probe shows otherwise.
const LASTS: TimeSpan = TimeSpan::from_millis(20_000);
/// The gain is then this one at least.
const GAIN: f64 = 1.5;

#[derive(Clone, Copy, Debug, Default)]
pub struct ManyFlows {
    until: Timestamp,
}

impl ManyFlows {
    /// A probe left this queue of the one before, both in seconds.
    pub fn probe(&mut self, now: Timestamp, left: f64, before: f64) {
        self.until = if left > STAYS * before { now + LASTS } else { now };
    }

    /// The gain to use, where this one was set.
    pub fn gain(&self, now: Timestamp, set: f64) -> f64 {
        if now < self.until {
            set.max(GAIN)
        } else {
            set
        }
    }
}
