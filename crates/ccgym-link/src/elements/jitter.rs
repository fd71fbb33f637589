//! Extra delay per packet, never negative, with or without reordering, of all flows or of some.

use ccgym_core::packet::Datagram;
use ccgym_core::rng::Rng;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;
use crate::spec::JitterSpec;

/// Delays each packet by a draw of its own.
#[derive(Clone, Debug)]
pub struct Jitter {
    distribution: JitterSpec,
    reorder: bool,
    /// Indices of the flows that are delayed; empty: all.
    flows: Box<[u32]>,
    last: Timestamp,
    rng: Rng,
    counters: Counters,
}

impl Jitter {
    /// The random stream is number `index` of `seed`.
    pub fn new(distribution: JitterSpec, reorder: bool, flows: &[u32], seed: u64, index: u64) -> Self {
        Self {
            distribution,
            reorder,
            flows: flows.iter().map(|number| number - 1).collect(),
            last: Timestamp::ZERO,
            rng: Rng::stream(seed, "link/jitter", index),
            counters: Counters::default(),
        }
    }

    fn draw(&mut self, now: Timestamp) -> TimeSpan {
        match self.distribution {
            JitterSpec::Uniform { max } => TimeSpan(self.rng.below(max.0.saturating_add(1))),
            // The conversion cuts at zero.
            JitterSpec::Normal { mean, std } => TimeSpan((mean.0 as f64 + std.0 as f64 * self.rng.normal()) as u64),
            JitterSpec::Exponential { mean } => TimeSpan(self.rng.exponential(mean.0 as f64) as u64),
            JitterSpec::Quantized { period } => TimeSpan(now.0.next_multiple_of(period.0) - now.0),
        }
    }
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
