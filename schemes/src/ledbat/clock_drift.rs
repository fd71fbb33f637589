//! The drift of the receiver's clock relative to the sender's, as libutp estimates it, and the penalty for a receiver's
//! clock so slow that delays seem to fall.

use ccgym_core::{TimeSpan, Timestamp};

/// Length of the averages; the drift is the difference of two of them.
const SLOT: TimeSpan = TimeSpan::from_millis(5_000);
/// Weight of the old estimate, in eighths.
const KEPT: i64 = 7;
/// A fall by more than this per slot, microseconds, …
const TOLERATED: i64 = 200_000;
/// … adds the excess over this to the delay.
const DIVISOR: i64 = 7;

#[derive(Clone, Debug)]
pub struct ClockDrift {
    /// Sum over the current slot.
    sum: i64,
    samples: i64,
    ends: Timestamp,
    /// Offset of the samples, the first one, so that sums stay small.
    origin: Option<i64>,
    /// Mean of the slot before.
    average: i64,
    /// Drift, microseconds per slot.
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
        // Slots without samples have no effect.
        while self.ends < now {
            self.ends += SLOT;
        }
        self.sum = 0;
        self.samples = 0;
    }

    /// Return the microseconds added to the delay.
    pub fn penalty(&self) -> i64 {
        (-self.drift - TOLERATED).max(0) / DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate moves by an eighth of the difference per slot; only a fall by more than 200 ms has a penalty.
    #[test]
    fn penalties() {
        for (step, punished) in [(0, false), (300_000, false), (-150_000, false), (-300_000, true)] {
            let mut drift = ClockDrift::new(Timestamp::ZERO);
            for slot in 1..=60i64 {
                // One sample per slot, just after the one before has ended.
                drift.update(Timestamp::from_millis(5_000 * slot as u64 + 1), slot * step);
            }
            assert_eq!(drift.penalty() > 0, punished, "{step} µs per slot");
            // −300,000 exceeds the tolerance by 100,000.
            assert!(drift.penalty() <= 100_000 / 7, "{}", drift.penalty());
            assert!(!punished || drift.penalty() > 95_000 / 7, "{}", drift.penalty());
        }
    }
}
