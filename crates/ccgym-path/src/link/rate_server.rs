//! Service at a rate, with a device buffer below the queue if there is one.

use std::collections::VecDeque;

use ccgym_core::units::{Rate, Timestamp};

use crate::element::Release;
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

    /// End the transmission that ends by `now`; returns the release and its time.
    #[inline]
    fn finish(&mut self, now: Timestamp, link_state: &mut LinkState) -> Option<(Release, Timestamp)> {
        let (packet, left_queue, ends) = self.in_service.as_ref()?;
        if *ends > now || !ends.is_set() {
            return None;
        }
        let finished = (link_state.depart(packet, *left_queue, *ends, 0), *ends);
        self.in_service = None;
        Some(finished)
    }

    /// Start a transmission if there is none, and fill the device from the queue. `behind`: the previous transmission
    /// ends at `now`, so that its fraction of a nanosecond counts.
    #[inline(never)]
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
    #[inline]
    fn advance(&mut self, now: Timestamp, link_state: &mut LinkState) {
        while let Some((release, ends)) = self.finish(now, link_state) {
            link_state.keep(release);
            self.fill(ends, true, link_state);
        }
    }

    #[inline]
    fn release(&mut self, now: Timestamp, link_state: &mut LinkState) -> Option<Release> {
        let (release, ends) = self.finish(now, link_state)?;
        self.fill(ends, true, link_state);
        Some(release)
    }

    #[inline]
    fn packet_queued(&mut self, now: Timestamp, link_state: &mut LinkState) {
        if self.in_service.is_none() || self.device.len() < self.device_packets {
            self.fill(now, false, link_state);
        }
    }

    #[inline]
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
