//! Transmission by a delivery trace, with departures known at arrival.
//!
//! Mahimahi's rules (`link_queue.cc`): a packet needs its wire bytes from opportunities later than its arrival's
//! millisecond; the bytes it leaves over serve the next packet if that is already waiting, and are lost otherwise.
//! Opportunities are on whole milliseconds, so comparing them with the arrival in nanoseconds is the same as comparing
//! them with the arrival truncated to milliseconds.

use ccgym_core::units::Timestamp;

use crate::link::fifo_link::Schedule;
use crate::link::recorder::Recorder;
use crate::link::waiting::Waiting;
use crate::opportunities::Opportunities;
use crate::trace::{DeliveryTrace, OPPORTUNITY_BYTES};

/// The schedule of a FIFO link over a delivery trace.
#[derive(Clone, Debug)]
pub struct TraceClock {
    opportunities: Opportunities,
    /// The opportunity in which the last packet ends, and its remaining bytes.
    last: Timestamp,
    left: u32,
}

impl TraceClock {
    /// Start at the beginning of `trace`.
    pub fn new(trace: &DeliveryTrace, once: bool) -> Self {
        Self { opportunities: Opportunities::new(trace, once), last: Timestamp::ZERO, left: 0 }
    }
}

impl Schedule for TraceClock {
    #[inline]
    fn arrive(&mut self, now: Timestamp, waiting: &mut Waiting) {
        if self.last <= now {
            waiting.clear();
            self.left = 0;
            self.opportunities.skip_past(now);
        } else {
            waiting.pop_until(now);
        }
    }

    #[inline]
    fn carries(&self, wire: u32) -> bool {
        // Mahimahi's shell aborts on a unit larger than an opportunity; here only the packet is lost.
        wire <= OPPORTUNITY_BYTES
    }

    /// A packet whose first byte was sent has left the queue. At the end of a trace that does not repeat, neither this
    /// packet nor a later one is ever delivered.
    #[inline]
    fn transmit(&mut self, _now: Timestamp, wire: u32) -> (Timestamp, Timestamp) {
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
        (starts, ends)
    }

    fn opportunity(&self) -> u64 {
        self.opportunities.number() - 1
    }

    fn recorder(&self) -> Recorder {
        Recorder::for_trace(self.opportunities.clone())
    }
}
