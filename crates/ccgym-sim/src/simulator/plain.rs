//! The most frequent events: acknowledgements and releases of a flow that uses no feature which few flows have.

use ccgym_core::{Packet, Timestamp};

use super::transmit::Crossing;
use super::Simulator;

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
            match self.ride(index, limit) {
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
            if key.0 > limit || limit == self.now || self.budget == 0 {
                self.tournament.update(index, key);
                return true;
            }
            self.now = key.0;
        }
        false
    }

    /// Handle acknowledgements and releases until something else happens.
    fn ride(&mut self, index: usize, limit: Timestamp) -> Stop {
        let Self { flows, links, data_log, ack_log, series, sequence, now: clock, end, budget, hash, .. } = self;
        let [up, down] = links.as_mut_slice() else { return Stop::Other };
        let (flow, up, down) = (&mut flows[index], up.chain_mut(), down.chain_mut());
        let (data_log, ack_log, series) = (data_log.as_mut(), ack_log.as_mut(), series.as_mut());
        if data_log.is_some() || ack_log.is_some() || series.is_some() {
            let mut crossing = Crossing { flow, up, down, data_log, ack_log, series, sequence, end: *end };
            return crossing.ride(clock, limit, budget, hash);
        }
        // The compiler leaves the records out of this one.
        let mut crossing =
            Crossing { flow, up, down, data_log: None, ack_log: None, series: None, sequence, end: *end };
        crossing.ride(clock, limit, budget, hash)
    }
}

impl Crossing<'_> {
    #[inline(always)]
    fn ride(&mut self, clock: &mut Timestamp, limit: Timestamp, budget: &mut u32, hash: &mut u64) -> Stop {
        let mut now = *clock;
        let stop = loop {
            let flow = &mut *self.flow;
            match flow.inbox.front() {
                Some((key, ack)) if key.0 <= now => {
                    *hash = (*hash ^ now.0 ^ ack.trigger.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
                    flow.sender.on_ack_as::<true>(now, ack);
                    flow.inbox.pop();
                }
                _ if flow.is_release_due(now) => {}
                _ => break Stop::Other,
            }
            if let Some(stop) = self.send(now, budget) {
                break stop;
            }
            let flow = &*self.flow;
            let timer = flow.sender.next_timeout().min(flow.stop);
            let due = match flow.inbox.front() {
                Some((key, _)) => key.0.min(timer),
                None => timer,
            };
            if due > limit || limit == now {
                break Stop::Limit(timer);
            }
            now = due;
        };
        *clock = now;
        stop
    }

    /// Send all that the flow may send now.
    #[inline(always)]
    fn send(&mut self, now: Timestamp, budget: &mut u32) -> Option<Stop> {
        let mut packet = Packet::default();
        loop {
            match self.flow.sender.poll_fast_path::<true>(now, &mut packet) {
                Some(true) => {}
                Some(false) => return None,
                None => return Some(Stop::Transmit),
            }
            *budget = budget.saturating_sub(1);
            if !self.carry(now, &mut packet) {
                return Some(Stop::Memory);
            }
            if *budget == 0 {
                return Some(Stop::Transmit);
            }
        }
    }
}
