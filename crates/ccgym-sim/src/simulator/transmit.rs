//! Sending: from the sender onto the path, and, where every element answers at arrival, to the receiver and back.

use ccgym_core::{rare, Datagram, Ecn, Packet};

use super::{Item, Simulator};
use crate::recorder::UNLOGGED;

impl Simulator {
    /// Send all that the flow may send now.
    #[inline]
    pub(super) fn transmit(&mut self, index: usize) {
        while !(if self.flows[index].eager { self.transmit_eagerly(index) } else { self.transmit_slowly(index) }) {
            rare();
            if self.look().is_err() {
                return;
            }
        }
    }

    /// Send until the flow may send no more (true), or it is time to look up.
    fn transmit_slowly(&mut self, index: usize) -> bool {
        let now = self.now;
        while self.fuel > 0 {
            let sender = &mut self.flows[index].sender;
            if !sender.make_room() {
                return self.starve();
            }
            let Some(packet) = sender.poll_transmit(now) else { return true };
            self.fuel -= 1;
            let record = self.log_data(now, &packet);
            self.carry(now, 0, Item::Data { packet, record });
        }
        false
    }

    /// As [`Simulator::transmit_slowly`] where every element answers at arrival and the receiver acts only on arrivals:
    /// the packet is carried to the receiver, and its acknowledgement home, in one go.
    #[inline]
    fn transmit_eagerly(&mut self, index: usize) -> bool {
        let Self { flows, up, down, data_log, ack_log, series, sequence, now, end, fuel, .. } = self;
        let now = *now;
        let flow = &mut flows[index];
        let mut packet = Packet::default();
        while *fuel > 0 {
            if !flow.sender.make_room() {
                return self.starve();
            }
            if !flow.sender.poll_transmit_into(now, &mut packet) {
                return true;
            }
            *fuel -= 1;
            let record = data_log.as_mut().map_or(UNLOGGED, |log| log.enter(now, packet.size, packet.flow));
            let mut datagram = Datagram { id: 0, flow: packet.flow, size: packet.size, ecn: packet.ecn };
            let Some(at) = up.cross(now, &mut datagram) else { continue };
            packet.ecn = datagram.ecn;
            let arrived = at + flow.forward_extra;
            // The acknowledgement is written where it will wait.
            let Some(slot) = flow.inbox.vacant() else { return self.starve() };
            let arrival = flow.receiver.on_data_into(arrived, &packet, &mut slot.1);
            if arrived <= *end {
                flow.received.count(&packet, arrival.new, flow.header);
                if let Some(series) = series {
                    rare();
                    series.received(index, arrived, &packet, arrival.new, flow.header);
                }
            }
            if let Some(log) = data_log {
                rare();
                log.leave(record, arrived);
            }
            if !arrival.acknowledge {
                continue;
            }
            let size = slot.1.size;
            let record = ack_log.as_mut().map_or(UNLOGGED, |log| log.enter(arrived, size, packet.flow));
            let mut datagram = Datagram { id: 0, flow: packet.flow, size, ecn: Ecn::NotEct };
            let Some(at) = down.cross(at, &mut datagram) else { continue };
            let home = at + flow.extra_rtt;
            if let Some(log) = ack_log {
                rare();
                log.leave(record, home);
            }
            *sequence += 1;
            slot.0 = (home, *sequence);
            flow.inbox.commit();
        }
        false
    }
}
