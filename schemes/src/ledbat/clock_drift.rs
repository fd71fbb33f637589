//! How fast the receiver's clock runs away from ours, as libutp estimates it, and the penalty for one that runs so slow
//! that delays seem to fall.

use ccgym_core::{TimeSpan, Timestamp};

/// Samples are averaged over so long; the drift is the difference of two averages.
const SLOT: TimeSpan = TimeSpan::from_millis(5_000);
/// Weight of the old estimate, in eighths.
const KEPT: i64 = 7;
/// A fall by more than this per slot, microseconds, …
const TOLERATED: i64 = 200_000;
/// … adds the excess over this to the delay.
const DIVISOR: i64 = 7;

#[derive(Clone, Debug)]
pub struct ClockDrift {
    /// The running slot.
    sum: i64,
    samples: i64,
    ends: Timestamp,
    /// The samples are counted from the first one, so that sums stay small.
    origin: Option<i64>,
    /// Mean of the slot before.
    average: i64,
    /// Microseconds per slot.
    drift: i64,
}

impl ClockDrift {
    pub fn new(now: Timestamp) -> Self {
        Self { sum: 0, samples: 0, ends: now + SLOT, origin: None, average: 0, drift: 0 }
    }

    pub fn update(&mut self, now: Timestamp, sample: i64) {
        let origin = *self.origin.get_or_insert(sample);
        self.sum = self.sum.saturating_add(sample.saturating_sub(origin));
        self.samples += 1;
        if now <= self.ends {
            return;
        }
        let average = self.sum / self.samples;
        let step = average.saturating_sub(self.average);
        self.drift = self.drift.saturating_mul(KEPT).saturating_add(step) / 8;
        self.average = average;
        // Slots without samples leave no trace.
        while self.ends < now {
            self.ends += SLOT;
        }
        self.sum = 0;
        self.samples = 0;
    }

    /// Microseconds added to the delay.
    pub fn penalty(&self) -> i64 {
        (-self.drift - TOLERATED).max(0) / DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate closes an eighth of the gap in each slot; only a fall by more than 200 ms per 5 s is punished.
    #[test]
    fn penalties() {
        for (step, punished) in [(0, false), (300_000, false), (-150_000, false), (-300_000, true)] {
            let mut drift = ClockDrift::new(Timestamp::ZERO);
            for slot in 1..=60i64 {
                // One sample per slot, just after the one before has ended.
                drift.update(Timestamp::from_millis(5_000 * slot as u64 + 1), slot * step);
            }
            assert_eq!(drift.penalty() > 0, punished, "{step} µs per slot");
            // −300,000 is 100,000 beyond what is tolerated.
            assert!(drift.penalty() <= 100_000 / 7, "{}", drift.penalty());
            assert!(!punished || drift.penalty() > 95_000 / 7, "{}", drift.penalty());
        }
    }
}
