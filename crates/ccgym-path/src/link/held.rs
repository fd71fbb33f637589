//! A link whose queue decides at dequeue: it holds its packets and releases them when polled.

use ccgym_core::packet::Datagram;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, LinkEvent, PathElement, Release};
use crate::link::server::{LinkState, Server};
use crate::queue::{QueueDiscipline, Queued};

/// Any queue discipline under any server. Exact if polled at each event or late.
#[derive(Clone)]
pub struct HeldLink<S> {
    server: S,
    link_state: LinkState,
    overhead: u32,
}

impl<S: Server> HeldLink<S> {
    /// Make a link which charges `overhead` bytes per packet.
    pub fn new(server: S, queue: Box<dyn QueueDiscipline>, overhead: u32) -> Self {
        Self { server, link_state: LinkState::new(queue), overhead }
    }
}

impl<S: Server> PathElement for HeldLink<S> {
    #[inline]
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        // Events of the link at this time come before the arrival, as in mahimahi.
        self.server.advance(now, &mut self.link_state);
        let wire = datagram.size + self.overhead;
        let packet = Queued { datagram: *datagram, wire, arrived: now };
        let fate = self.link_state.enqueue(now, packet, self.server.carries(wire));
        if fate == Fate::Hold {
            self.server.packet_queued(now, &mut self.link_state);
        }
        fate
    }

    #[inline]
    fn next_event(&self) -> Timestamp {
        self.link_state.first_pending().unwrap_or_else(|| self.server.next_event(&self.link_state))
    }

    #[inline]
    fn release(&mut self, now: Timestamp) -> Option<Release> {
        self.link_state.next_release().or_else(|| self.server.release(now, &mut self.link_state))
    }

    fn may_hold(&self) -> bool {
        true
    }

    fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        self.server.advance(now, &mut self.link_state);
        self.link_state.backlog()
    }

    fn counters(&self) -> Counters {
        self.link_state.counters()
    }

    fn held_bytes(&self) -> (usize, usize) {
        self.link_state.held_bytes()
    }

    fn record_events(&mut self) {
        let server = &self.server;
        self.link_state.record(|| server.recorder());
    }

    fn take_events(&mut self, until: Timestamp) -> Vec<LinkEvent> {
        // "Up to the last event" must not run the trace to the end of time.
        if until.is_set() {
            self.server.advance(until, &mut self.link_state);
        }
        self.link_state.recorder_mut().map_or_else(Vec::new, |recorder| recorder.take(until))
    }
}
