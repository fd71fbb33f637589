//! The queueing delay, its trend, and its target. Times are seconds.

use std::collections::VecDeque;

use ccgym_core::{TimeSpan, Timestamp};

use super::rules::{Mode, Rules};
use crate::filters::slots::BaseDelay;

/// Weight of the latest delay in its average (`QDELAY_WEIGHT`).
const WEIGHT: f64 = 0.1;
/// Number of samples for the trend.
const HISTORY: usize = 20;
/// Pantheon: if the delay never falls below this share of the target, the base is wrong, …
const STANDING: f64 = 0.25;
/// … and is measured again, after this time at the earliest.
const MIN_BASE_AGE: TimeSpan = TimeSpan::from_millis(20_000);

/// The estimator of the queueing delay.
#[derive(Clone, Debug)]
pub struct QueueDelay {
    rules: Rules,
    base: BaseDelay,
    /// Time of the latest new base.
    base_reset: Option<Timestamp>,
    /// The latest delay.
    pub now: f64,
    /// Delay over its target: average, and the latest samples, oldest first.
    pub average: f64,
    history: VecDeque<f64>,
    sampled: Option<Timestamp>,
    /// Growth of the delay, 0 to 1, and its peak, which decays.
    pub trend: f64,
    pub peak_trend: f64,
    /// Min since the latest sample, and average of the samples.
    min: f64,
    min_average: f64,
}

impl QueueDelay {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            base: BaseDelay::new(rules.base.0, rules.base.1, i64::min),
            base_reset: None,
            now: 0.0,
            average: 0.0,
            history: VecDeque::from(vec![0.0; HISTORY]),
            sampled: None,
            trend: 0.0,
            peak_trend: 0.0,
            min: f64::INFINITY,
            min_average: 0.0,
        }
    }

    /// Add the one-way delay of a packet, microseconds, including the offset of the clocks.
    pub fn update(&mut self, at: Timestamp, one_way: i64, target: f64) {
        self.base.update(at, one_way);
        let base = self.base.get().unwrap_or(one_way);
        self.now = one_way.saturating_sub(base) as f64 / 1e6;
        self.check_base(at, target);
        let share = self.now / target;
        self.average += WEIGHT * (share - self.average);
        let since = at.since(*self.sampled.get_or_insert(at));
        if self.rules.sampling > TimeSpan::ZERO {
            if since <= self.rules.sampling {
                return;
            }
            self.min_average = self.min.min(0.001 * self.min + 0.999 * self.min_average);
            self.min = f64::INFINITY;
        }
        self.sampled = Some(at);
        // After a long silence a sample counts for all missing ones.
        let missing = since.0.checked_div(self.rules.sampling.0).unwrap_or(1).clamp(1, HISTORY as u64);
        for _ in 0..missing {
            self.history.pop_front();
            self.history.push_back(share);
        }
        self.trend = (self.persistence() * self.average).clamp(0.0, 1.0);
        self.peak_trend = self.trend.max(self.rules.memory * self.peak_trend);
    }

    /// Measure the base again if the delay stays high without a queue: clocks drift, and routes change.
    fn check_base(&mut self, at: Timestamp, target: f64) {
        let reset = *self.base_reset.get_or_insert(at);
        self.min = self.min.min(self.now);
        let standing = self.rules.mode == Mode::Pantheon && self.min_average > STANDING * target;
        if standing && at.since(reset) > MIN_BASE_AGE {
            self.base = BaseDelay::new(self.rules.base.0, self.rules.base.1, i64::min);
            self.base_reset = Some(at);
            (self.now, self.min_average) = (0.0, 0.0);
        }
    }

    /// Return the correlation of successive samples: near 1 if the delay moves one way, 0 if it jitters.
    fn persistence(&self) -> f64 {
        let mean = self.history.iter().sum::<f64>() / HISTORY as f64;
        let (mut at_0, mut at_1, mut before) = (0.0, 0.0, 0.0);
        for sample in &self.history {
            let x = sample - mean;
            at_0 += x * x;
            at_1 += x * before;
            before = x;
        }
        if at_0 > 0.0 {
            at_1 / at_0
        } else {
            0.0
        }
    }
}

/// Number of samples for variance and mean of the delay.
const VARIANCE_OF: usize = 200;
const MEAN_OF: usize = 50;
/// Share of the round trips with a loss above which there are competing flows.
const LOSSY: f64 = 0.002;
/// Variance below which the delay is stable, over the minimum target squared.
const STABLE: f64 = 0.2;

/// The target of the delay, which rises with competing flows that fill the queue (§4.1.2.2).
#[derive(Clone, Debug)]
pub struct DelayTarget {
    pub now: f64,
    min: f64,
    max: f64,
    /// Delays over the minimum target, oldest first.
    history: VecDeque<f64>,
}

impl DelayTarget {
    pub fn new(min: f64, max: f64) -> Self {
        Self { now: min, min, max: max.max(min), history: VecDeque::new() }
    }

    pub fn update(&mut self, delay: f64, loss_rate: f64) {
        if self.min == self.max {
            return;
        }
        if self.history.len() == VARIANCE_OF {
            self.history.pop_front();
        }
        self.history.push_back(delay / self.min);
        let mean = |samples: usize| {
            let samples = samples.min(self.history.len());
            self.history.iter().rev().take(samples).sum::<f64>() / samples as f64
        };
        let long = mean(VARIANCE_OF);
        let variance = self.history.iter().map(|x| (x - long) * (x - long)).sum::<f64>() / self.history.len() as f64;
        let found = self.min * (mean(MEAN_OF) + variance.sqrt());
        let target = if loss_rate > LOSSY {
            1.5 * found
        } else if variance < STABLE {
            found
        } else if found < self.min {
            (0.5 * self.now).max(found)
        } else {
            0.9 * self.now
        };
        self.now = target.clamp(self.min, self.max);
    }
}
