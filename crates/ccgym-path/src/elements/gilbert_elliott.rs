//! Two-state burst loss (Gilbert 1960, Elliott 1963). Per packet the state may change first, then the
//! packet is lost with that state's probability.

use ccgym_core::packet::Datagram;
use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;

/// Starts in the good state.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    good_to_bad: f64,
    bad_to_good: f64,
    loss_good: f64,
    loss_bad: f64,
    bad: bool,
    rng: Rng,
    counters: Counters,
}

impl GilbertElliott {
    /// Make it with probabilities per packet; the random stream is number `index` of `seed`.
    pub fn new(transitions: (f64, f64), losses: (f64, f64), seed: u64, index: u64) -> Self {
        Self {
            good_to_bad: transitions.0,
            bad_to_good: transitions.1,
            loss_good: losses.0,
            loss_bad: losses.1,
            bad: false,
            rng: Rng::stream(seed, "link/gilbert_elliott", index),
            counters: Counters::default(),
        }
    }
}

impl PathElement for GilbertElliott {
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        let leave = if self.bad { self.bad_to_good } else { self.good_to_bad };
        self.bad ^= self.rng.bernoulli(leave);
        let lost = self.rng.bernoulli(if self.bad { self.loss_bad } else { self.loss_good });
        settle(&mut self.counters, datagram, lost, now)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
