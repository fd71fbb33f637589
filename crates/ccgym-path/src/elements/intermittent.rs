//! Fixed on and off periods (mahimahi's `mm-intermittent`): starts on, drops arrivals while off.

use ccgym_core::packet::Datagram;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;

/// A path with periodic interruptions.
#[derive(Clone, Debug)]
pub struct Intermittent {
    on: u64,
    cycle: u64,
    counters: Counters,
}

impl Intermittent {
    /// Make it with periods above zero.
    pub fn new(on: TimeSpan, off: TimeSpan) -> Self {
        Self { on: on.0, cycle: on.0.saturating_add(off.0).max(1), counters: Counters::default() }
    }
}

impl PathElement for Intermittent {
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        settle(&mut self.counters, datagram, now.0 % self.cycle >= self.on, now)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
