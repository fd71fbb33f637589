//! Service by a delivery trace, packet by packet, as in mahimahi.

use ccgym_core::units::Timestamp;

use crate::link::recorder::Recorder;
use crate::link::server::{LinkState, Server};
use crate::opportunities::Opportunities;
use crate::queue::Queued;
use crate::trace::{DeliveryTrace, OPPORTUNITY_BYTES};

/// The server of a held link over a delivery trace.
#[derive(Clone, Debug)]
pub struct TraceServer {
    opportunities: Opportunities,
    /// The packet in transit, the time of its fetch, and its remaining bytes.
    in_transit: Option<(Queued, Timestamp, u32)>,
    /// Time of the last opportunity used.
    last: Timestamp,
}

impl TraceServer {
    /// Start at the beginning of `trace`.
    pub fn new(trace: &DeliveryTrace, once: bool) -> Self {
        Self { opportunities: Opportunities::new(trace, once), in_transit: None, last: Timestamp::ZERO }
    }

    fn use_opportunity(&mut self, link_state: &mut LinkState) {
        let number = self.opportunities.number();
        let at = self.opportunities.take();
        self.last = at;
        let mut left = OPPORTUNITY_BYTES;
        while left > 0 {
            let fetched = self.in_transit.take().or_else(|| link_state.dequeue(at, number).map(|p| (p, at, p.wire)));
            let Some((packet, started, to_go)) = fetched else { return };
            if to_go > left {
                self.in_transit = Some((packet, started, to_go - left));
                return;
            }
            left -= to_go;
            let release = link_state.depart(&packet, started, at, number);
            link_state.keep(release);
        }
    }

    /// Drop all waiting packets, since the trace has ended.
    fn lose_all(&mut self, link_state: &mut LinkState) {
        if let Some((packet, ..)) = self.in_transit.take() {
            link_state.lose(&packet, self.last);
        }
        while let Some(packet) = link_state.dequeue(self.last, u64::MAX) {
            link_state.lose(&packet, self.last);
        }
    }
}

impl Server for TraceServer {
    fn advance(&mut self, now: Timestamp, link_state: &mut LinkState) {
        while self.opportunities.peek() <= now {
            if self.in_transit.is_none() && link_state.is_empty() {
                self.opportunities.skip_past(now);
                return;
            }
            if !self.opportunities.peek().is_set() {
                break;
            }
            self.use_opportunity(link_state);
        }
        if !self.opportunities.peek().is_set() {
            self.lose_all(link_state);
        }
    }

    fn next_event(&self, link_state: &LinkState) -> Timestamp {
        if self.in_transit.is_none() && link_state.is_empty() {
            Timestamp::NEVER
        } else {
            self.opportunities.peek()
        }
    }

    fn carries(&self, wire: u32) -> bool {
        // Mahimahi's shell aborts on a packet larger than an opportunity; here only the packet is lost.
        wire <= OPPORTUNITY_BYTES && self.opportunities.peek().is_set()
    }

    fn recorder(&self) -> Recorder {
        Recorder::for_trace(self.opportunities.clone())
    }
}
