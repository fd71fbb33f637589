//! Sending: from the sender onto the path, and, if every element answers at arrival, to the receiver and back.

use ccgym_core::{cold_path, Datagram, Ecn, Packet, Timestamp};
use ccgym_path::{Chain, Pipeline};
use ccgym_run::recorder::{PacketLog, Series, UNLOGGED};

use super::Simulator;
use crate::flow::{Flow, Parcel};

impl Simulator {
    /// Send all that the flow may send now.
    #[inline]
    pub(super) fn transmit(&mut self, index: usize) {
        while !(if self.flows[index].eager { self.transmit_eagerly(index) } else { self.transmit_slowly(index) }) {
            if !self.may_go_on(index) {
                return;
            }
        }
    }

    /// Check the limits if due, and make room for the next packets; false if the simulation is over.
    #[cold]
    #[inline(never)]
    pub(super) fn may_go_on(&mut self, index: usize) -> bool {
        if !self.flows[index].sender.make_room() {
            self.starve();
        }
        self.budget > 0 || self.check_limits().is_ok()
    }

    /// Send until the flow may send no more (true), or another event comes first.
    fn transmit_slowly(&mut self, index: usize) -> bool {
        let now = self.now;
        let mut packet = Packet::default();
        while self.flows[index].sender.poll_transmit_into(now, &mut packet) {
            self.budget = self.budget.saturating_sub(1);
            let record = self.data_log.as_mut().map_or(UNLOGGED, |log| log.enter(now, packet.size, packet.flow));
            self.carry(now, self.flows[index].route.there, Parcel::Data(packet), record);
            if self.budget == 0 || !self.flows[index].sender.has_room() {
                return false;
            }
        }
        true
    }

    /// As [`Simulator::transmit_slowly`] for an eager flow: a packet that no element holds is carried to the receiver,
    /// and its acknowledgement back, in one call.
    fn transmit_eagerly(&mut self, index: usize) -> bool {
        let held = !self.waiting_links.is_empty();
        let Some(mut crossing) = self.crossing(index) else { return true };
        let now = *crossing.clock;
        let mut packet = Packet::default();
        while crossing.flow.sender.poll_transmit_into(now, &mut packet) {
            *crossing.budget = crossing.budget.saturating_sub(1);
            if !crossing.carry(now, &mut packet, held) {
                return self.starve();
            }
            if *crossing.budget == 0 || !crossing.flow.sender.has_room() {
                return false;
            }
        }
        true
    }

    /// Return what the packets of an eager flow use.
    #[inline(always)]
    pub(super) fn crossing(&mut self, index: usize) -> Option<Crossing<'_>> {
        let Self { flows, links, data_log, ack_log, series, sequence, now: clock, end, budget, hash, .. } = self;
        let [up, down] = links.as_mut_slice() else { return None };
        Some(Crossing {
            flow: &mut flows[index],
            up,
            down: down.chain_mut(),
            data_log: data_log.as_mut(),
            ack_log: ack_log.as_mut(),
            series: series.as_mut(),
            sequence,
            clock,
            end: *end,
            budget,
            hash,
        })
    }
}

/// The way of a packet of an eager flow to the receiver, and of its acknowledgement back.
pub(super) struct Crossing<'a> {
    pub(super) flow: &'a mut Flow,
    pub(super) up: &'a mut Pipeline<(Parcel, u32)>,
    pub(super) down: &'a mut Chain,
    pub(super) data_log: Option<&'a mut PacketLog>,
    pub(super) ack_log: Option<&'a mut PacketLog>,
    pub(super) series: Option<&'a mut Series>,
    pub(super) sequence: &'a mut u64,
    pub(super) clock: &'a mut Timestamp,
    pub(super) end: Timestamp,
    pub(super) budget: &'a mut u32,
    pub(super) hash: &'a mut u64,
}

impl Crossing<'_> {
    /// Carry a packet that leaves now, and, unless a link holds it (`held`), put its acknowledgement into the inbox;
    /// false without memory for that.
    #[inline(always)]
    pub(super) fn carry(&mut self, now: Timestamp, packet: &mut Packet, held: bool) -> bool {
        let record = self.data_log.as_mut().map_or(UNLOGGED, |log| log.enter(now, packet.size, packet.flow));
        if !held {
            let mut datagram = Datagram { id: 0, flow: packet.flow, size: packet.size, ecn: packet.ecn };
            let Ok(at) = self.up.chain_mut().cross(now, &mut datagram) else { return true };
            packet.ecn = datagram.ecn;
            return self.arrive(at, packet, record);
        }
        let parcel = (Parcel::Data(*packet), record);
        self.up.enter_ahead(now, now, packet.flow, packet.size, packet.ecn, parcel);
        true
    }

    /// As [`Crossing::carry`], from the end of the way there on, which the packet reaches at `at`.
    #[inline(always)]
    pub(super) fn arrive(&mut self, at: Timestamp, packet: &Packet, record: u32) -> bool {
        let Self { flow, down, data_log, ack_log, series, sequence, end, .. } = self;
        let arrived = at + flow.forward_extra;
        // The acknowledgement is written into its slot of the inbox.
        let Some(slot) = flow.inbox.vacant() else { return false };
        let arrival = flow.receiver.on_data_into(arrived, packet, &mut slot.1);
        if arrived <= *end {
            flow.received.count(packet, arrival.new, flow.header);
            if let Some(series) = series {
                cold_path();
                let reliable = flow.receiver.is_reliable();
                series.receiver(packet.flow as usize).arrived(arrived, packet, arrival.new, flow.header, reliable);
            }
        }
        if let Some(log) = data_log {
            cold_path();
            log.leave(record, arrived);
        }
        if !arrival.acknowledge {
            return true;
        }
        let size = slot.1.size;
        let record = ack_log.as_mut().map_or(UNLOGGED, |log| log.enter(arrived, size, packet.flow));
        let mut datagram = Datagram { id: 0, flow: packet.flow, size, ecn: Ecn::NotEct };
        let Ok(at) = down.cross(at, &mut datagram) else { return true };
        let home = at + flow.extra_rtt;
        if let Some(log) = ack_log {
            cold_path();
            log.leave(record, home);
        }
        **sequence += 1;
        slot.0 = (home, **sequence);
        flow.inbox.commit();
        true
    }
}
