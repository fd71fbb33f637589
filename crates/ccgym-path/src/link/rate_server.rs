//! Service at a rate, with a device buffer below the queue if there is one.

use std::collections::VecDeque;

use ccgym_core::units::{Rate, Timestamp};

use crate::link::rate_clock::RateClock;
use crate::link::recorder::Recorder;
use crate::link::server::{LinkState, Server};
use crate::queue::Queued;
use crate::spec::Param;

/// The server of a held link at a rate.
#[derive(Clone, Debug)]
pub struct RateServer {
    clock: RateClock,
    /// The packet in transmission, its departure from the queue discipline, and the end of its transmission.
    in_service: Option<(Queued, Timestamp, Timestamp)>,
    /// Packets below the queue discipline, waiting for transmission, with their departures from it.
    device: VecDeque<(Queued, Timestamp)>,
    device_packets: usize,
}

impl RateServer {
    /// Make it idle, with room for `device_packets` below the queue.
    pub fn new(rate: &Param<Rate>, device_packets: u32) -> Self {
        Self {
            clock: RateClock::new(rate),
            in_service: None,
            device: VecDeque::new(),
            device_packets: device_packets as usize,
        }
    }

    /// Start a transmission if there is none, and fill the device from the queue. `behind`: the previous transmission
    /// ends at `now`, so that its fraction of a nanosecond counts.
    fn fill(&mut self, now: Timestamp, behind: bool, link_state: &mut LinkState) {
        if self.in_service.is_none() {
            let next = self.device.pop_front().or_else(|| link_state.dequeue(now, 0).map(|packet| (packet, now)));
            if let Some((packet, left_queue)) = next {
                let wire = packet.wire;
                let ends = if behind { self.clock.send_next(wire) } else { self.clock.send(now, wire) };
                self.in_service = Some((packet, left_queue, ends));
            }
        }
        while self.device.len() < self.device_packets {
            let Some(packet) = link_state.dequeue(now, 0) else { return };
            self.device.push_back((packet, now));
        }
    }
}

impl Server for RateServer {
    fn advance(&mut self, now: Timestamp, link_state: &mut LinkState) {
        while let Some((packet, left_queue, ends)) = self.in_service {
            if ends > now || !ends.is_set() {
                return;
            }
            self.in_service = None;
            link_state.depart(&packet, left_queue, ends, 0);
            self.fill(ends, true, link_state);
        }
    }

    fn packet_queued(&mut self, now: Timestamp, link_state: &mut LinkState) {
        if self.in_service.is_none() || self.device.len() < self.device_packets {
            self.fill(now, false, link_state);
        }
    }

    fn next_event(&self, _link_state: &LinkState) -> Timestamp {
        self.in_service.map_or(Timestamp::NEVER, |(_, _, ends)| ends)
    }

    fn carries(&self, _wire: u32) -> bool {
        true
    }

    fn recorder(&self) -> Recorder {
        Recorder::for_rate(self.clock.clone())
    }
}
