//! Exponential on and off periods (mahimahi's `mm-onoff`, `onoffshell.cc`): starts on, drops arrivals while off.
//!
//! It can also hold them, which mahimahi cannot: a host that is not scheduled, or a radio that waits for its turn,
//! delivers all packets of the wait at once.
//!
//! Mahimahi counts the periods in whole milliseconds; here they are exact.

use ccgym_core::packet::Datagram;
use ccgym_core::rng::Rng;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;

/// A path with random interruptions.
#[derive(Clone, Debug)]
pub struct OnOff {
    mean_on: f64,
    mean_off: f64,
    hold: bool,
    on: bool,
    until: Timestamp,
    rng: Rng,
    counters: Counters,
}

impl OnOff {
    /// Make it with mean periods above zero; `hold`: hold arrivals while off; random stream `index` of `seed`.
    pub fn new((mean_on, mean_off): (TimeSpan, TimeSpan), hold: bool, seed: u64, index: u64) -> Self {
        let mut element = Self {
            mean_on: mean_on.0 as f64,
            mean_off: mean_off.0 as f64,
            hold,
            on: true,
            until: Timestamp::ZERO,
            rng: Rng::stream(seed, "link/on_off", index),
            counters: Counters::default(),
        };
        element.extend();
        element
    }

    fn extend(&mut self) {
        let period = self.rng.exponential(if self.on { self.mean_on } else { self.mean_off });
        // At least a nanosecond, so that time advances.
        self.until = self.until.saturating_add(TimeSpan((period as u64).max(1)));
    }
}

impl PathElement for OnOff {
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        while now >= self.until && self.until.is_set() {
            self.on = !self.on;
            self.extend();
        }
        let leaves = if self.on { now } else { self.until };
        settle(&mut self.counters, datagram, !self.on && !self.hold, leaves)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
