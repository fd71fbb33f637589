//! The extreme of the last time slots, with one value per slot. As the min one-way delay of the last minutes it is
//! LEDBAT's base delay, so that a route that became longer and a drifting clock are forgotten (RFC 6817 §2.4.2; libutp
//! `DelayHist`).

use std::collections::VecDeque;

use ccgym_core::{TimeSpan, Timestamp};

/// Return the microseconds between two times of different clocks.
pub fn between(later: Timestamp, earlier: Timestamp) -> i64 {
    (later.0 as i64).wrapping_sub(earlier.0 as i64) / 1000
}

#[derive(Clone, Debug)]
pub struct Slots<T> {
    /// The best value of each slot, newest last.
    values: VecDeque<T>,
    better: fn(T, T) -> T,
    slot: TimeSpan,
    /// Slots kept.
    history: usize,
    /// Start of the newest slot.
    slot_start: Timestamp,
}

impl<T: Copy> Slots<T> {
    /// Make a filter of the last `history` slots of this length; `better` is min or max.
    pub fn new(slot: TimeSpan, history: usize, better: fn(T, T) -> T) -> Self {
        Self { values: VecDeque::new(), better, slot, history, slot_start: Timestamp::ZERO }
    }

    pub fn update(&mut self, now: Timestamp, sample: T) {
        if let Some(newest) = self.values.back_mut() {
            if now.since(self.slot_start) <= self.slot {
                *newest = (self.better)(*newest, sample);
                return;
            }
        }
        self.values.push_back(sample);
        self.slot_start = now;
        if self.values.len() > self.history {
            self.values.pop_front();
        }
    }

    /// Drop all values except this one.
    pub fn restart(&mut self, now: Timestamp, value: T) {
        self.values.clear();
        self.values.push_back(value);
        self.slot_start = now;
    }

    /// Return the extreme; `None` before the first sample.
    pub fn get(&self) -> Option<T> {
        self.values.iter().copied().reduce(self.better)
    }
}

/// Microseconds.
pub type BaseDelay = Slots<i64>;

impl BaseDelay {
    /// Make a filter of the last `history` minutes.
    pub fn of_minutes(history: usize) -> Self {
        Self::new(TimeSpan::from_millis(60_000), history, i64::min)
    }

    /// Add `offset` to all stored values.
    pub fn shift(&mut self, offset: i64) {
        for minimum in &mut self.values {
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

    /// A min counts for `history` minutes, then the next one.
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
