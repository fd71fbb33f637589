//! The base delay: the minimum one-way delay of the last minutes, one minimum per slot of time, so that a route that
//! became longer and a drifting clock are forgotten (RFC 6817 §2.4.2; libutp `DelayHist`).

use std::collections::VecDeque;

use ccgym_core::{TimeSpan, Timestamp};

/// Microseconds from one time to another, of different clocks.
pub fn between(later: Timestamp, earlier: Timestamp) -> i64 {
    (later.0 as i64).wrapping_sub(earlier.0 as i64) / 1000
}

#[derive(Clone, Debug)]
pub struct BaseDelay {
    /// Minimum of each slot, newest last; microseconds.
    minima: VecDeque<i64>,
    slot: TimeSpan,
    /// Slots kept.
    history: usize,
    /// Start of the newest slot.
    slot_start: Timestamp,
}

impl BaseDelay {
    /// Of the last `history` slots of this length.
    pub fn new(slot: TimeSpan, history: usize) -> Self {
        Self { minima: VecDeque::new(), slot, history, slot_start: Timestamp::ZERO }
    }

    /// Of the last `history` minutes.
    pub fn of_minutes(history: usize) -> Self {
        Self::new(TimeSpan::from_millis(60_000), history)
    }

    pub fn update(&mut self, now: Timestamp, sample: i64) {
        if let Some(newest) = self.minima.back_mut() {
            if now.since(self.slot_start) <= self.slot {
                *newest = sample.min(*newest);
                return;
            }
        }
        self.minima.push_back(sample);
        self.slot_start = now;
        if self.minima.len() > self.history {
            self.minima.pop_front();
        }
    }

    /// `None` before the first sample.
    pub fn get(&self) -> Option<i64> {
        self.minima.iter().copied().min()
    }

    /// Raise what is remembered by `offset`.
    pub fn shift(&mut self, offset: i64) {
        for minimum in &mut self.minima {
            *minimum = minimum.saturating_add(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1000 * seconds)
    }

    /// A minimum holds for `history` minutes, then the next one counts.
    #[test]
    fn minima_are_forgotten_after_the_history() {
        let mut base = BaseDelay::of_minutes(3);
        assert_eq!(base.get(), None);
        for (second, sample, expected) in
            [(0, 50, 50), (1, 40, 40), (30, 60, 40), (62, 55, 40), (124, 58, 40), (186, 59, 55), (250, 70, 58)]
        {
            base.update(at(second), sample);
            assert_eq!(base.get(), Some(expected), "after {second} s");
        }
    }

    #[test]
    fn a_shift_moves_all_minutes_and_samples_may_be_negative() {
        let mut base = BaseDelay::of_minutes(2);
        base.update(at(0), -30);
        base.update(at(61), -20);
        base.shift(5);
        assert_eq!(base.get(), Some(-25));
        base.update(at(122), -10);
        assert_eq!(base.get(), Some(-15));
    }
}
