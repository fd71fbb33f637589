//! The proportional-integral controller of PIE (RFC 8033 §4.2) and of DualPI2 (RFC 9332 appendix A.1): at regular
//! times, it changes the probability by the queueing delay and its growth.

use ccgym_core::units::{TimeSpan, Timestamp};

/// Weights, target, and the state of the last update.
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
    /// Start at time 0. `alpha` and `beta` are changes of probability per second of delay and update.
    pub fn new(target: TimeSpan, interval: TimeSpan, alpha: f64, beta: f64) -> Self {
        Self { target, interval, alpha, beta, previous: TimeSpan::ZERO, updated: Timestamp::ZERO }
    }

    /// Return the target delay.
    pub fn target(&self) -> TimeSpan {
        self.target
    }

    /// Return the time between two updates.
    pub fn interval(&self) -> TimeSpan {
        self.interval
    }

    /// Return the delay at the last update.
    pub fn previous(&self) -> TimeSpan {
        self.previous
    }

    /// Return the next update due by `now`. A queue calls this when a packet arrives or leaves: in between only the age
    /// of its head changes, so updates may be made late. `at_rest`: updates would change nothing, and those due are
    /// skipped.
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

    /// Update with `delay`; returns the change of the probability.
    pub fn change(&mut self, delay: TimeSpan) -> f64 {
        let above = delay.as_secs_f64() - self.target.as_secs_f64();
        let growth = delay.as_secs_f64() - self.previous.as_secs_f64();
        self.previous = delay;
        self.alpha * above + self.beta * growth
    }
}
