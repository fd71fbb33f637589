//! The extremes of the last ten to twenty seconds, in two buckets.

use ccgym_core::{TimeSpan, Timestamp};

/// Length of a bucket.
const BUCKET: TimeSpan = TimeSpan::from_millis(10_000);

/// An extreme of what came in this bucket and the one before.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    now: f64,
    before: f64,
    began: Timestamp,
    nothing: f64,
    better: fn(f64, f64) -> f64,
}

impl Recent {
    /// The minimum; infinite before the first value.
    pub fn minimum() -> Self {
        Self::new(f64::INFINITY, f64::min)
    }

    /// The maximum; zero before the first value.
    pub fn maximum() -> Self {
        Self::new(0.0, f64::max)
    }

    fn new(nothing: f64, better: fn(f64, f64) -> f64) -> Self {
        Self { now: nothing, before: nothing, began: Timestamp::ZERO, nothing, better }
    }

    pub fn update(&mut self, now: Timestamp, value: f64) {
        if now.since(self.began) > BUCKET {
            self.before = self.now;
            self.now = self.nothing;
            self.began = now;
        }
        self.now = (self.better)(self.now, value);
    }

    /// Forget all but this.
    pub fn restart(&mut self, now: Timestamp, value: f64) {
        *self = Self { now: value, before: self.nothing, began: now, ..*self };
    }

    pub fn get(&self) -> f64 {
        (self.better)(self.now, self.before)
    }
}
