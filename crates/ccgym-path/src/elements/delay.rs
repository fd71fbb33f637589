//! A fixed delay (mahimahi's `mm-delay`, `delayshell.cc`).
//!
//! With a tick, arrival is truncated to whole ticks and the packet is released on the first tick at or after that plus
//! the delay: mahimahi's clock of 1 ms, whose real delay is in (MS − 1, MS].

use ccgym_core::packet::Datagram;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::element::{Counters, Fate, PathElement};
use crate::elements::settle;
use crate::param::ParamCursor;
use crate::spec::Param;

/// Adds a delay; packets stay in order when it shrinks.
#[derive(Clone, Debug)]
pub struct Delay {
    delay: ParamCursor<TimeSpan>,
    tick: u64,
    /// Start of the tick of the latest arrival.
    tick_start: u64,
    last: Timestamp,
    counters: Counters,
}

impl Delay {
    /// Make it with delay and tick in nanoseconds; tick 0 is exact.
    pub fn new(delay: &Param<TimeSpan>, tick: TimeSpan) -> Self {
        Self {
            delay: ParamCursor::new(delay, TimeSpan::ZERO),
            tick: tick.0,
            tick_start: 0,
            last: Timestamp::ZERO,
            counters: Counters::default(),
        }
    }

    /// Return the first tick at or after arrival (in whole ticks) plus delay.
    #[inline]
    fn on_tick(&mut self, now: Timestamp, delay: TimeSpan) -> Timestamp {
        // Arrivals within one tick are frequent, divisions slow.
        if now.0 - self.tick_start >= self.tick {
            self.tick_start = now.0 - now.0 % self.tick;
        }
        let due = self.tick_start.saturating_add(delay.0);
        let due = if delay.0 % self.tick == 0 { Some(due) } else { due.checked_next_multiple_of(self.tick) };
        // A delay of less than a tick must not release before the arrival.
        Timestamp(due.unwrap_or(u64::MAX)).max(now)
    }
}

impl PathElement for Delay {
    #[inline]
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        let delay = self.delay.at(now);
        let leaves = if self.tick == 0 { now.saturating_add(delay) } else { self.on_tick(now, delay) };
        let leaves = leaves.max(self.last);
        self.last = leaves;
        settle(&mut self.counters, datagram, false, leaves)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
