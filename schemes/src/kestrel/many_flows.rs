//! Detects many other flows in the queue, by the latest probe for the base RTT.

use ccgym_core::{TimeSpan, Timestamp};

/// There are if more than this part of the queue stays during the probe; …
const STAYS: f64 = 0.5;
/// … the result is valid for this time, or until the next probe.
const LASTS: TimeSpan = TimeSpan::from_millis(20_000);
/// Min gain with many flows.
const GAIN: f64 = 1.5;

#[derive(Clone, Copy, Debug, Default)]
pub struct ManyFlows {
    until: Timestamp,
}

impl ManyFlows {
    /// Take the result of a probe: the queue during and before it, seconds.
    pub fn probe(&mut self, now: Timestamp, left: f64, before: f64) {
        self.until = if left > STAYS * before { now + LASTS } else { now };
    }

    /// Return the gain to use, given the configured one.
    pub fn gain(&self, now: Timestamp, set: f64) -> f64 {
        if now < self.until {
            set.max(GAIN)
        } else {
            set
        }
    }
}
