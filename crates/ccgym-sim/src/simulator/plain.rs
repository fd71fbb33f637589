//! The most frequent events: acknowledgements and releases of a flow that uses no feature which few flows have.

use ccgym_core::{Packet, Timestamp};

use super::transmit::Crossing;
use super::Simulator;
use crate::flow::Parcel;

/// Why [`Simulator::handle_plain_flow`] stops.
enum Stop {
    /// The next event is after the limit; the sender's next timer.
    Limit(Timestamp),
    /// The event at the clock is no acknowledgement and no release.
    Other,
    /// The sender has more to decide than whether window and pacing allow a packet, or the limits must be checked.
    Transmit,
    /// There is no memory for an acknowledgement.
    Memory,
}

impl Simulator {
    /// Handle the current event of a plain flow, and those that follow up to `limit`, as [`Simulator::handle_flow`]
    /// does; false if the event at the clock needs that.
    pub(super) fn handle_plain_flow(&mut self, index: usize, limit: Timestamp) -> bool {
        while self.flows[index].sender.is_on_fast_path() {
            let before_sample = limit.min(Timestamp(self.next_sample.0 - 1));
            let held = !self.waiting_links.is_empty();
            let stop =
                if held { self.ride::<true>(index, before_sample) } else { self.ride::<false>(index, before_sample) };
            match stop {
                Stop::Limit(timer) => {
                    let key = self.flows[index].next_of(timer, index as u64);
                    self.tournament.update(index, key);
                    return true;
                }
                Stop::Other => return false,
                Stop::Transmit if self.budget > 0 && self.flows[index].sender.has_room() => self.transmit(index),
                Stop::Transmit if self.may_go_on(index) => self.transmit(index),
                Stop::Memory if self.starve() || self.may_go_on(index) => self.transmit(index),
                Stop::Transmit | Stop::Memory => {}
            }
            let key = self.flows[index].next_event(index as u64);
            if self.is_last(key.0, limit) {
                self.tournament.update(index, key);
                return true;
            }
            self.now = key.0;
        }
        false
    }

    /// Handle acknowledgements and releases until something else happens; `HELD` if the link there holds packets.
    fn ride<const HELD: bool>(&mut self, index: usize, limit: Timestamp) -> Stop {
        let Some(crossing) = self.crossing(index) else { return Stop::Other };
        match crossing {
            // The compiler leaves the records out of this one.
            Crossing { data_log: None, ack_log: None, series: None, .. } => {
                Crossing { data_log: None, ack_log: None, series: None, ..crossing }.ride::<HELD>(limit)
            }
            mut crossing => crossing.ride::<HELD>(limit),
        }
    }
}

impl Crossing<'_> {
    #[inline(always)]
    fn ride<const HELD: bool>(&mut self, limit: Timestamp) -> Stop {
        let mut now = *self.clock;
        let stop = loop {
            let flow = &mut *self.flow;
            if HELD && self.up.due() <= now {
                // Packets move before endpoints act at the same time.
                if !self.step() {
                    break Stop::Memory;
                }
            } else {
                match flow.inbox.front() {
                    Some((key, ack)) if key.0 <= now => {
                        *self.hash =
                            (*self.hash ^ now.0 ^ ack.trigger.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
                        flow.sender.on_ack_as::<true>(now, ack);
                        flow.inbox.pop();
                    }
                    _ if flow.is_release_due(now) => {}
                    _ => break Stop::Other,
                }
                if let Some(stop) = self.send::<HELD>(now) {
                    break stop;
                }
            }
            let flow = &*self.flow;
            let timer = flow.sender.next_timeout().min(flow.stop);
            let due = match flow.inbox.front() {
                Some((key, _)) => key.0.min(timer),
                None => timer,
            };
            let due = if HELD { due.min(self.up.due()) } else { due };
            if due > limit || limit == now {
                break Stop::Limit(timer);
            }
            now = due;
        };
        *self.clock = now;
        stop
    }

    /// Process the next event of the link that holds packets; false without memory for an acknowledgement.
    #[inline(never)]
    fn step(&mut self) -> bool {
        match self.up.step() {
            Some((at, (Parcel::Data(packet), record), ecn)) => self.arrive(at, &Packet { ecn, ..packet }, record),
            _ => true,
        }
    }

    /// Send all that the flow may send now.
    #[inline(always)]
    fn send<const HELD: bool>(&mut self, now: Timestamp) -> Option<Stop> {
        let mut packet = Packet::default();
        loop {
            match self.flow.sender.poll_fast_path::<true>(now, &mut packet) {
                Some(true) => {}
                Some(false) => return None,
                None => return Some(Stop::Transmit),
            }
            *self.budget = self.budget.saturating_sub(1);
            if !self.carry(now, &mut packet, HELD) {
                return Some(Stop::Memory);
            }
            if *self.budget == 0 {
                return Some(Stop::Transmit);
            }
        }
    }
}
