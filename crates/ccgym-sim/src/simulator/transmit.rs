//! Sending: from the sender onto the path, and, if every element answers at arrival, to the receiver and back.

use ccgym_core::{cold_path, Datagram, Ecn, Packet};
use ccgym_run::recorder::UNLOGGED;

use super::Simulator;
use crate::flow::Parcel;

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

    /// As [`Simulator::transmit_slowly`] if every element answers at arrival and the receiver acts only on arrivals:
    /// the packet is carried to the receiver, and its acknowledgement back, in one call.
    #[inline]
    fn transmit_eagerly(&mut self, index: usize) -> bool {
        let Self { flows, links, data_log, ack_log, series, sequence, now, end, budget, .. } = self;
        let now = *now;
        let [up, down] = links.as_mut_slice() else { return true };
        let (flow, up, down) = (&mut flows[index], up.chain_mut(), down.chain_mut());
        let mut packet = Packet::default();
        while flow.sender.poll_transmit_into(now, &mut packet) {
            *budget = budget.saturating_sub(1);
            'carried: {
                let record = data_log.as_mut().map_or(UNLOGGED, |log| log.enter(now, packet.size, packet.flow));
                let mut datagram = Datagram { id: 0, flow: packet.flow, size: packet.size, ecn: packet.ecn };
                let Ok(at) = up.cross(now, &mut datagram) else { break 'carried };
                packet.ecn = datagram.ecn;
                let arrived = at + flow.forward_extra;
                // The acknowledgement is written into its slot of the inbox.
                let Some(slot) = flow.inbox.vacant() else { return self.starve() };
                let arrival = flow.receiver.on_data_into(arrived, &packet, &mut slot.1);
                if arrived <= *end {
                    flow.received.count(&packet, arrival.new, flow.header);
                    if let Some(series) = series {
                        cold_path();
                        let reliable = flow.receiver.is_reliable();
                        series.receiver(index).arrived(arrived, &packet, arrival.new, flow.header, reliable);
                    }
                }
                if let Some(log) = data_log {
                    cold_path();
                    log.leave(record, arrived);
                }
                if !arrival.acknowledge {
                    break 'carried;
                }
                let size = slot.1.size;
                let record = ack_log.as_mut().map_or(UNLOGGED, |log| log.enter(arrived, size, packet.flow));
                let mut datagram = Datagram { id: 0, flow: packet.flow, size, ecn: Ecn::NotEct };
                let Ok(at) = down.cross(at, &mut datagram) else { break 'carried };
                let home = at + flow.extra_rtt;
                if let Some(log) = ack_log {
                    cold_path();
                    log.leave(record, home);
                }
                *sequence += 1;
                slot.0 = (home, *sequence);
                flow.inbox.commit();
            }
            if *budget == 0 || !flow.sender.has_room() {
                return false;
            }
        }
        true
    }
}
