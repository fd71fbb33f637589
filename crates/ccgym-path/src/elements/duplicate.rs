//! Random duplication (netem's `duplicate`), seeded: the copy leaves right behind the original.

use ccgym_core::packet::Datagram;
use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;
use crate::param::ParamCursor;
use crate::spec::Param;

/// Copies each packet with a probability, one draw per packet.
#[derive(Clone, Debug)]
pub struct Duplicate {
    probability: ParamCursor<f64>,
    rng: Rng,
    counters: Counters,
}

impl Duplicate {
    /// Make it; the random stream is number `index` of `seed`.
    pub fn new(probability: &Param<f64>, seed: u64, index: u64) -> Self {
        Self {
            probability: ParamCursor::new(probability, 0.0),
            rng: Rng::stream(seed, "link/duplicate", index),
            counters: Counters::default(),
        }
    }
}

impl PathElement for Duplicate {
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        let fate = settle(&mut self.counters, datagram, false, now);
        if !self.rng.bernoulli(self.probability.at(now)) {
            return fate;
        }
        self.counters.duplicated += 1;
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += u64::from(datagram.size);
        Fate::Duplicate(now)
    }

    fn may_duplicate(&self) -> bool {
        true
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
