//! Carries packets over the links of their route, and delivers them at its end.

use std::sync::Arc;

use ccgym_core::receiver::Arrival;
use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{cold_path, Datagram, Ecn, Packet, Timestamp};
use ccgym_path::{Crossed, Pipeline};
use ccgym_run::recorder::UNLOGGED;

use super::Simulator;
use crate::flow::{Parcel, Reply, ARRIVED};

impl Simulator {
    /// Let a packet enter direction `link` of a link at `at`, perhaps ahead of the clock, and carry it as far as
    /// possible at once.
    pub(super) fn carry(&mut self, mut at: Timestamp, mut link: usize, mut parcel: Parcel, mut record: u32) {
        loop {
            let (flow, size, ecn) = parcel.header();
            let pipeline: &mut Pipeline<(Parcel, u32)> = &mut self.links[link];
            if pipeline.chain().eager {
                let mut datagram = Datagram { id: 0, flow, size, ecn };
                let Ok(left) = pipeline.chain_mut().cross(at, &mut datagram) else { return };
                at = left;
                parcel.mark(datagram.ecn);
            } else {
                let crossed = pipeline.enter_ahead(self.now, at, flow, size, ecn, (parcel, record));
                let Some((left, (same, number), ecn)) = crossed else { return self.drain(link) };
                (at, parcel, record) = (left, same, number);
                parcel.mark(ecn);
            }
            match self.flows[flow as usize].route.next[link] {
                ARRIVED => return self.hand_over(at, parcel, record),
                next => link = next,
            }
        }
    }

    /// Carry on the packets that wait at the end of direction `link` of a link.
    fn drain(&mut self, link: usize) {
        while let Some(crossed) = self.links[link].pop_exit() {
            self.carry_on(link, crossed);
        }
    }

    /// Process the next event of direction `link` of a link.
    pub(super) fn step(&mut self, link: usize) {
        if let Some(crossed) = self.links[link].step() {
            self.carry_on(link, crossed);
        }
        self.drain(link);
    }

    /// Carry on a packet that has crossed direction `link` of a link.
    #[inline]
    fn carry_on(&mut self, link: usize, (at, (mut parcel, record), ecn): Crossed<(Parcel, u32)>) {
        // One packet may come out as many.
        self.budget = self.budget.saturating_sub(1);
        parcel.mark(ecn);
        let index = parcel.header().0 as usize;
        match (&parcel, self.flows[index].route.next[link]) {
            (Parcel::Data(packet), _) if self.flows[index].eager => self.arrive(at, index, packet, record),
            (_, ARRIVED) => self.hand_over(at, parcel, record),
            (_, next) => self.carry(at, next, parcel, record),
        }
    }

    /// Carry on a packet of an eager flow that a link has held.
    fn arrive(&mut self, at: Timestamp, index: usize, packet: &Packet, record: u32) {
        let first = self.flows[index].inbox.is_empty();
        if self.crossing(index).is_some_and(|mut crossing| !crossing.arrive(at, packet, record)) {
            self.starve();
        }
        // Its own events reschedule it afterward; this one is the link's.
        if first {
            self.reschedule(index);
        }
    }

    /// Deliver what has crossed its route: data to the receiver, replies to the sender's inbox.
    fn hand_over(&mut self, at: Timestamp, parcel: Parcel, record: u32) {
        match parcel {
            Parcel::Data(packet) => self.deliver_data(at, &packet, record),
            Parcel::Reply(reply) => self.deliver_reply(at, *reply, record),
        }
    }

    /// Deliver a data packet that leaves the path at `at`, perhaps ahead of the clock.
    fn deliver_data(&mut self, at: Timestamp, packet: &Packet, record: u32) {
        let index = packet.flow as usize;
        if self.flows[index].receiver_timers {
            loop {
                let due = self.flows[index].receiver_due();
                if due > at {
                    break;
                }
                self.fire_receiver(index, due);
            }
        }
        let flow = &mut self.flows[index];
        let arrived = at + flow.forward_extra;
        let mut feedback = None;
        let Arrival { new, acknowledge } = match &mut flow.feedback_host {
            Some(host) if packet.number != HANDSHAKE => {
                let (new, answer) = host.on_data(&mut flow.receiver, arrived, packet);
                feedback = answer;
                Arrival { new, acknowledge: false }
            }
            _ => {
                // The acknowledgement is written into its slot of the inbox.
                let Some(slot) = flow.inbox.vacant() else {
                    self.starve();
                    return;
                };
                if let Some(misbehaving) = flow.misbehaving.as_mut().filter(|_| packet.number != HANDSHAKE) {
                    misbehaving.on_data(arrived);
                }
                flow.receiver.on_data_into(arrived, packet, &mut slot.1)
            }
        };
        if arrived <= self.end {
            flow.received.count(packet, new, flow.header);
            if let Some(buffer) = &mut flow.buffer {
                buffer.read(arrived, flow.receiver.segments_in_order());
            }
            if let Some(series) = &mut self.series {
                let reliable = flow.receiver.is_reliable();
                series.receiver(index).arrived(arrived, packet, new, flow.header, reliable);
            }
        }
        if let Some(log) = &mut self.data_log {
            log.leave(record, arrived);
        }
        if acknowledge {
            self.send_ack(at, index);
        } else if let Some(feedback) = feedback {
            self.send_reply(at, Reply::Feedback(Arc::new(feedback)));
        }
        // A packet that came through the heap may have set the receiver's timer.
        if self.flows[index].receiver_timers {
            self.reschedule(index);
        }
    }

    #[cold]
    pub(super) fn fire_receiver(&mut self, index: usize, due: Timestamp) {
        if let Some(reply) = self.flows[index].fire_receiver(due) {
            self.send_reply(due, reply);
        }
        if self.now >= due {
            self.reschedule(index);
        }
    }

    /// Send the acknowledgement in the vacant slot of a flow's inbox at `at`. Usually the way back is one link that
    /// answers at arrival, and the acknowledgement stays in its slot.
    fn send_ack(&mut self, at: Timestamp, index: usize) {
        let flow = &mut self.flows[index];
        let back = flow.route.back;
        let chain = self.links[back].chain_mut();
        let Some(slot) = flow.inbox.vacant() else { return };
        if let Some(misbehaving) = &mut flow.misbehaving {
            cold_path();
            let ack = misbehaving.falsified(at + flow.forward_extra, slot.1);
            return self.send_reply(at, Reply::Ack(ack));
        }
        if flow.route.next[back] != ARRIVED || !chain.eager {
            let reply = Reply::Ack(slot.1);
            return self.send_reply(at, reply);
        }
        let size = slot.1.size;
        let entered = at + flow.forward_extra;
        let record = self.ack_log.as_mut().map_or(UNLOGGED, |log| log.enter(entered, size, index as u32));
        let mut datagram = Datagram { id: 0, flow: index as u32, size, ecn: Ecn::NotEct };
        let Ok(left) = chain.cross(at, &mut datagram) else { return };
        let home = left + flow.extra_rtt;
        if let Some(log) = &mut self.ack_log {
            log.leave(record, home);
        }
        self.sequence += 1;
        slot.0 = (home, self.sequence);
        let first = flow.inbox.is_empty();
        flow.inbox.commit();
        if first {
            self.reschedule(index);
        }
    }

    fn send_reply(&mut self, at: Timestamp, reply: Reply) {
        if let Some(misbehaving) = &self.flows[reply.flow() as usize].misbehaving {
            cold_path();
            for _ in 1..misbehaving.copies() {
                self.send_one_reply(at, reply.clone());
            }
        }
        self.send_one_reply(at, reply);
    }

    #[inline]
    fn send_one_reply(&mut self, at: Timestamp, reply: Reply) {
        let (index, size) = (reply.flow(), reply.size());
        let flow = &self.flows[index as usize];
        let entered = at + flow.forward_extra;
        let record = self.ack_log.as_mut().map_or(UNLOGGED, |log| log.enter(entered, size, index));
        self.carry(at, flow.route.back, Parcel::Reply(Box::new(reply)), record);
    }

    /// Put a reply that leaves the path at `at` into the sender's inbox, with the time of its arrival there.
    fn deliver_reply(&mut self, at: Timestamp, reply: Reply, record: u32) {
        self.sequence += 1;
        let index = reply.flow() as usize;
        let flow = &mut self.flows[index];
        let home = at + flow.extra_rtt;
        if let Some(log) = &mut self.ack_log {
            log.leave(record, home);
        }
        let (first, filed) = match reply {
            Reply::Ack(ack) => (flow.inbox.is_empty(), flow.inbox.push((home, self.sequence), &ack)),
            Reply::Feedback(feedback) => {
                let first = flow.feedback.is_empty();
                flow.feedback.push_back((home, feedback));
                (first, true)
            }
        };
        if !filed {
            self.starve();
        }
        // The handler of this flow's own event reschedules it afterward; other events need it here.
        if first {
            self.reschedule(index);
        }
    }
}
