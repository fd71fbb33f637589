//! The proportional-integral controller of PIE (RFC 8033 §4.2) and of DualPI2 (RFC 9332 appendix A.1): at regular times, a
//! change of probability from the queueing delay and from its growth.

use ccgym_core::units::{TimeSpan, Timestamp};

/// Weights, target, and what the last update saw.
#[derive(Clone, Debug)]
pub struct PiController {
    target: TimeSpan,
    interval: TimeSpan,
    alpha: f64,
    beta: f64,
    previous: TimeSpan,
    updated: Timestamp,
}

impl PiController {
    /// At rest at time 0. `alpha` and `beta` are changes of probability per second of delay and update.
    pub fn new(target: TimeSpan, interval: TimeSpan, alpha: f64, beta: f64) -> Self {
        Self { target, interval, alpha, beta, previous: TimeSpan::ZERO, updated: Timestamp::ZERO }
    }

    /// The delay to be held.
    pub fn target(&self) -> TimeSpan {
        self.target
    }

    /// Time from one update to the next.
    pub fn interval(&self) -> TimeSpan {
        self.interval
    }

    /// The delay that the last update saw.
    pub fn previous(&self) -> TimeSpan {
        self.previous
    }

    /// The next update due by `now`. A queue looks when a packet comes or goes: in between nothing changes but the age
    /// of its head, so that updates may be made up for. `at_rest` says that updates would change nothing: then those
    /// due are passed over.
    pub fn due(&mut self, now: Timestamp, at_rest: bool) -> Option<Timestamp> {
        let passed = now.since(self.updated).0 / self.interval.0;
        if passed == 0 {
            return None;
        }
        if at_rest && self.previous == TimeSpan::ZERO {
            self.updated += TimeSpan(passed * self.interval.0);
            return None;
        }
        self.updated += self.interval;
        Some(self.updated)
    }

    /// An update sees `delay`: by how much the probability is to change.
    pub fn change(&mut self, delay: TimeSpan) -> f64 {
        let above = delay.as_secs_f64() - self.target.as_secs_f64();
        let growth = delay.as_secs_f64() - self.previous.as_secs_f64();
        self.previous = delay;
        self.alpha * above + self.beta * growth
    }
}
