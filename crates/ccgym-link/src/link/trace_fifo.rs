//! A delivery trace with an infinite or drop-tail queue: departures are known at arrival.
//!
//! Mahimahi's rules (`link_queue.cc`): a packet needs its wire bytes from opportunities later than its arrival's
//! millisecond; bytes that it leaves over serve the next packet if that is already waiting, and are lost otherwise.
//! Opportunities lie on whole milliseconds, so comparing them with the arrival in nanoseconds is the same as
//! comparing them with the arrival truncated to milliseconds.

use ccgym_core::packet::Datagram;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, LinkEvent, PathElement};
use crate::link::recorder::Recorder;
use crate::link::waiting::{Limits, Waiting};
use crate::opportunities::Opportunities;
use crate::trace::{DeliveryTrace, OPPORTUNITY_BYTES};

/// FIFO link over a delivery trace.
#[derive(Clone, Debug)]
pub struct TraceFifo {
    opportunities: Opportunities,
    /// The opportunity in which the last packet ends, and what that packet leaves of it.
    last: Timestamp,
    left: u32,
    /// Those whose first byte has not gone: a partly sent packet has left the queue.
    waiting: Waiting,
    limits: Limits,
    overhead: u32,
    counters: Counters,
    recorder: Option<Box<Recorder>>,
}

impl TraceFifo {
    /// A link over `trace` which charges `overhead` bytes per packet.
    pub fn new(trace: &DeliveryTrace, once: bool, limits: Limits, overhead: u32) -> Self {
        Self {
            opportunities: Opportunities::new(trace, once),
            last: Timestamp::ZERO,
            left: 0,
            waiting: Waiting::default(),
            limits,
            overhead,
            counters: Counters::default(),
            recorder: None,
        }
    }

    #[cold]
    fn drop(&mut self, now: Timestamp, wire: u32, datagram: &Datagram) -> Fate {
        self.counters.dropped += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.dropped_at_arrival(now, wire, datagram.flow);
        }
        Fate::Drop
    }
}

impl PathElement for TraceFifo {
    #[inline(never)]
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        let wire = datagram.size + self.overhead;
        self.counters.arrived += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(now, wire, datagram.flow);
        }
        if self.last <= now {
            self.waiting.clear();
            self.left = 0;
            self.opportunities.skip_past(now);
        } else {
            self.waiting.pop_until(now);
        }
        // Mahimahi's shell dies of a unit larger than an opportunity; here only the packet does.
        if wire > OPPORTUNITY_BYTES || !self.waiting.admits(&self.limits, wire) {
            return self.drop(now, wire, datagram);
        }
        let mut left = self.left;
        let mut ends = self.last;
        if left == 0 {
            ends = self.opportunities.take();
            left = OPPORTUNITY_BYTES;
        }
        let starts = ends;
        if wire > left {
            ends = self.opportunities.take();
            left += OPPORTUNITY_BYTES;
        }
        self.left = left - wire;
        self.last = ends;
        if !ends.is_set() {
            // The trace does not repeat and is used up: neither this packet nor a later one is ever delivered.
            return self.drop(now, wire, datagram);
        }
        self.waiting.push(starts, wire);
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += u64::from(wire);
        self.counters.waited_ns += starts.0 - now.0;
        self.counters.sojourn_ns += ends.0 - now.0;
        if let Some(recorder) = &mut self.recorder {
            recorder.departs(ends, self.opportunities.number() - 1, wire, datagram.flow, now);
        }
        Fate::Forward(ends)
    }

    fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        self.waiting.pop_until(now);
        self.waiting.backlog()
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn held_bytes(&self) -> (usize, usize) {
        let waiting = self.waiting.held_bytes();
        (waiting, self.recorder.as_ref().map_or(0, |recorder| recorder.held_bytes()))
    }

    fn record_events(&mut self) {
        if self.recorder.is_none() {
            self.recorder = Some(Box::new(Recorder::for_trace(self.opportunities.clone())));
        }
    }

    fn take_events(&mut self, until: Timestamp) -> Vec<LinkEvent> {
        self.recorder.as_mut().map_or_else(Vec::new, |r| r.take(until))
    }
}
