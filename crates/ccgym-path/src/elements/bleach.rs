//! A hop that clears the ECN field, as some routers do: before the bottleneck no packet can be marked, after it the
//! marks are lost.

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;
use crate::param::ParamCursor;
use crate::spec::Param;

/// Sets the ECN field of each packet to Not-ECT with a probability, one draw per packet.
#[derive(Clone, Debug)]
pub struct Bleach {
    probability: ParamCursor<f64>,
    rng: Rng,
    counters: Counters,
}

impl Bleach {
    /// The random stream is number `index` of `seed`.
    pub fn new(probability: &Param<f64>, seed: u64, index: u64) -> Self {
        Self {
            probability: ParamCursor::new(probability, 0.0),
            rng: Rng::stream(seed, "link/bleach", index),
            counters: Counters::default(),
        }
    }
}

impl PathElement for Bleach {
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        if self.rng.bernoulli(self.probability.at(now)) {
            datagram.ecn = Ecn::NotEct;
        }
        settle(&mut self.counters, datagram, false, now)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
