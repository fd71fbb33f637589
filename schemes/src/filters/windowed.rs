//! Min over a sliding window of time, in constant space.

use ccgym_core::{TimeSpan, Timestamp};

/// Max number of candidates.
const CAPACITY: usize = 64;
/// Min distance between candidates is the window over this: a value may be dropped too early by as much.
const GRANULES: u64 = 32;

/// The filter: candidates in order of time, each larger than the one before. The first is the current min; the others
/// replace it as it becomes too old.
#[derive(Clone, Debug)]
pub struct WindowedMin {
    ring: [(Timestamp, u64); CAPACITY],
    first: usize,
    len: usize,
}

impl Default for WindowedMin {
    fn default() -> Self {
        Self { ring: [(Timestamp::ZERO, 0); CAPACITY], first: 0, len: 0 }
    }
}

impl WindowedMin {
    #[inline]
    const fn slot(&self, i: usize) -> usize {
        (self.first + i) % CAPACITY
    }

    /// Add `value` at `now`; returns the min of the last `window`.
    #[inline]
    pub fn update(&mut self, now: Timestamp, value: u64, window: TimeSpan) -> u64 {
        while self.len > 0 && now.since(self.ring[self.first].0) > window {
            self.first = self.slot(1);
            self.len -= 1;
        }
        while self.len > 0 && self.ring[self.slot(self.len - 1)].1 >= value {
            self.len -= 1;
        }
        let crowded = self.len > 0 && {
            let (latest, _) = self.ring[self.slot(self.len - 1)];
            self.len == CAPACITY || now.since(latest).0 * GRANULES < window.0
        };
        if !crowded {
            let slot = self.slot(self.len);
            self.ring[slot] = (now, value);
            self.len += 1;
        }
        self.ring[self.first].1
    }
}

/// Max over a sliding window of time.
#[derive(Clone, Debug, Default)]
pub struct WindowedMax(WindowedMin);

impl WindowedMax {
    /// Add `value` at `now`; returns the max of the last `window`.
    #[inline]
    pub fn update(&mut self, now: Timestamp, value: u64, window: TimeSpan) -> u64 {
        u64::MAX - self.0.update(now, u64::MAX - value, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minima(window_ms: u64, samples: &[(u64, u64)]) -> Vec<u64> {
        let mut filter = WindowedMin::default();
        let window = TimeSpan::from_millis(window_ms);
        samples.iter().map(|&(ms, v)| filter.update(Timestamp::from_millis(ms), v, window)).collect()
    }

    #[test]
    fn window_rules() {
        for (name, samples, expected) in [
            ("the first sample", &[(0, 9)][..], vec![9]),
            ("a lower one at once", &[(0, 9), (1, 8)], vec![9, 8]),
            ("a higher one waits", &[(0, 9), (50, 11), (100, 12), (101, 12)], vec![9, 9, 9, 11]),
            ("order of values, not of time", &[(0, 9), (10, 30), (20, 20), (105, 40)], vec![9, 9, 9, 20]),
            ("all expired", &[(0, 9), (500, 50)], vec![9, 50]),
        ] {
            assert_eq!(minima(100, samples), expected, "{name}");
        }
    }

    #[test]
    fn agrees_with_the_exact_minimum_but_for_a_granule() {
        let window = TimeSpan::from_millis(320);
        let (mut low, mut high) = (WindowedMin::default(), WindowedMax::default());
        let mut all: Vec<(Timestamp, u64)> = Vec::new();
        let mut x = 1u64;
        for ms in 0..5_000 {
            let now = Timestamp::from_millis(ms);
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Slow waves with noise.
            let value = 1_000 + ((ms as f64 / 90.0).sin() * 500.0) as u64 + (x >> 58);
            all.push((now, value));
            let of = |span: u64, pick: fn(u64, u64) -> u64, start: u64| {
                all.iter().filter(|(t, _)| now.since(*t).0 <= span).fold(start, |m, &(_, v)| pick(m, v))
            };
            let (min, max) = (low.update(now, value, window), high.update(now, value, window));
            let short = window.0 - window.0 / GRANULES;
            assert!(min >= of(window.0, u64::min, u64::MAX) && min <= of(short, u64::min, u64::MAX));
            assert!(max <= of(window.0, u64::max, 0) && max >= of(short, u64::max, 0));
        }
    }

    #[test]
    fn shrinking_and_growing_windows_stay_within_capacity() {
        let mut filter = WindowedMin::default();
        for i in 0..10_000u64 {
            let window = TimeSpan::from_micros(if i % 1000 < 500 { 1_000 } else { 1_000_000 });
            let min = filter.update(Timestamp::from_micros(i * 100), i, window);
            assert!(min <= i && filter.len <= CAPACITY);
        }
    }
}
