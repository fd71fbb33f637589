//! Independent random loss (mahimahi's `mm-loss`), seeded.

use ccgym_core::packet::Datagram;
use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;
use crate::param::ParamCursor;
use crate::spec::Param;

/// Drops each packet with a probability, one draw per packet.
#[derive(Clone, Debug)]
pub struct Loss {
    probability: ParamCursor<f64>,
    rng: Rng,
    counters: Counters,
}

impl Loss {
    /// Make it; the random stream is number `index` of `seed`.
    pub fn new(probability: &Param<f64>, seed: u64, index: u64) -> Self {
        Self {
            probability: ParamCursor::new(probability, 0.0),
            rng: Rng::stream(seed, "link/loss", index),
            counters: Counters::default(),
        }
    }
}

impl PathElement for Loss {
    #[inline]
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        let lost = self.rng.bernoulli(self.probability.at(now));
        settle(&mut self.counters, datagram, lost, now)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
