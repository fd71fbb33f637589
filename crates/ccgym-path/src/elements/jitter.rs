//! Extra delay per packet, never negative, with or without reordering, for all flows or for some.

use ccgym_core::packet::Datagram;
use ccgym_core::rng::Rng;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;
use crate::param::ParamCursor;
use crate::spec::{JitterSpec, Param};

/// Max wait for the channel, and time of a repetition, of Wi-Fi; mean number of both.
const WAIT: TimeSpan = TimeSpan::from_millis(1);
const REPETITION: TimeSpan = TimeSpan::from_micros(7500);
const WAITS: f64 = 1.0;
const REPETITIONS: f64 = 12.0;

/// Delays each packet by a random draw.
#[derive(Clone, Debug)]
pub struct Jitter {
    distribution: JitterSpec,
    /// Mean for Wi-Fi; otherwise zero.
    mean: ParamCursor<TimeSpan>,
    reorder: bool,
    /// Indices of the flows that are delayed; empty: all.
    flows: Box<[u32]>,
    last: Timestamp,
    rng: Rng,
    counters: Counters,
}

impl Jitter {
    /// Make it; the random stream is number `index` of `seed`.
    pub fn new(distribution: JitterSpec, reorder: bool, flows: &[u32], seed: u64, index: u64) -> Self {
        let mean = match &distribution {
            JitterSpec::WiFi { mean } => ParamCursor::new(mean, TimeSpan::ZERO),
            _ => ParamCursor::new(&Param::Constant(TimeSpan::ZERO), TimeSpan::ZERO),
        };
        Self {
            distribution,
            mean,
            reorder,
            flows: flows.iter().map(|number| number - 1).collect(),
            last: Timestamp::ZERO,
            rng: Rng::stream(seed, "link/jitter", index),
            counters: Counters::default(),
        }
    }

    fn wifi(&mut self, now: Timestamp) -> TimeSpan {
        let waits = poisson(&mut self.rng, WAITS);
        let early = if waits > 0 { self.rng.below(WAIT.0) } else { 0 };
        let part = self.mean.at(now).0.saturating_sub(WAIT.0) as f64 / (REPETITIONS * REPETITION.0 as f64);
        let repetitions = if self.rng.bernoulli(part.min(1.0)) { poisson(&mut self.rng, REPETITIONS) } else { 0 };
        TimeSpan(waits * WAIT.0 - early + repetitions * REPETITION.0)
    }

    fn draw(&mut self, now: Timestamp) -> TimeSpan {
        match self.distribution {
            JitterSpec::Uniform { max } => TimeSpan(self.rng.below(max.0.saturating_add(1))),
            // The conversion cuts at zero.
            JitterSpec::Normal { mean, std } => TimeSpan((mean.0 as f64 + std.0 as f64 * self.rng.normal()) as u64),
            JitterSpec::Exponential { mean } => TimeSpan(self.rng.exponential(mean.0 as f64) as u64),
            JitterSpec::WiFi { .. } => self.wifi(now),
            JitterSpec::Quantized { period } => TimeSpan(now.0.next_multiple_of(period.0) - now.0),
        }
    }
}

/// Draw a Poisson variable: the number of exponential gaps of mean 1 that fit into `mean`.
fn poisson(rng: &mut Rng, mean: f64) -> u64 {
    let (mut count, mut at) = (0, rng.exponential(1.0));
    while at < mean {
        count += 1;
        at += rng.exponential(1.0);
    }
    count
}

impl PathElement for Jitter {
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        if !self.flows.is_empty() && !self.flows.contains(&datagram.flow) {
            return settle(&mut self.counters, datagram, false, now);
        }
        let mut leaves = now.saturating_add(self.draw(now));
        if !self.reorder {
            leaves = leaves.max(self.last);
            self.last = leaves;
        }
        settle(&mut self.counters, datagram, false, leaves)
    }

    fn preserves_order(&self) -> bool {
        // A flow that is not delayed overtakes one that is.
        !self.reorder && self.flows.is_empty()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
