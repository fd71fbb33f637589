//! Trains: the packets of a paced flow alone, and their acknowledgements, without an event each.
//!
//! Between two decisions of a scheme that hears nothing else, packets leave at the pacing rate, each element of the path
//! answers at arrival, and acknowledgements arrive in order. Nothing but these two is due before the train ends.

use ccgym_core::packet::PacketNumber;
use ccgym_core::{Datagram, Ecn, Timestamp};
use ccgym_path::Chain;
use ccgym_run::spec::{RecordSpec, SourceSpec};
use ccgym_run::FlowSpec;

use super::Simulator;
use crate::flow::Flow;

/// Arrival, number and arrival at the receiver of the next acknowledgement, if there is none.
const NOTHING: (Timestamp, PacketNumber, Timestamp) = (Timestamp::NEVER, 0, Timestamp::NEVER);

impl Flow {
    /// Let a flow that is alone on its path send trains if nothing stands against it; `back` is the way back.
    pub(super) fn allow_trains(&mut self, spec: &FlowSpec, record: &RecordSpec, back: &Chain) {
        self.trains = self.eager
            && self.sender.forms_trains()
            && self.host.is_none()
            && matches!(spec.source, SourceSpec::Greedy)
            && !(record.packets || record.series.0 > 0)
            && back.elements.is_empty();
        if self.trains {
            self.receiver.trust_order();
        }
    }
}

impl Simulator {
    /// Carry on the train of flow `index`, which has just sent all it may, up to `limit`.
    pub(super) fn carry_train(&mut self, index: usize, limit: Timestamp) {
        let Self { flows, links, sequence, now, end, budget, hash, .. } = self;
        let [up, down] = links.as_mut_slice() else { return };
        let (flow, up, down) = (&mut flows[index], up.chain_mut(), down.chain_mut());
        if !flow.sender.is_in_train() {
            return;
        }
        let limit = Timestamp(limit.0.saturating_add(1)).min(flow.stop);
        let (size, ack_size) = (flow.sender.packet_size(), flow.receiver.ack_size());
        let mut until = flow.sender.train_end().min(limit);
        let mut next = flow.inbox.front().map_or(NOTHING, |(key, ack)| (key.0, ack.trigger, ack.received));
        let (mut sent, mut arrivals, mut acked, mut acked_at) = (0, 0, 0, Timestamp::ZERO);
        let mut release = flow.sender.release();
        let mut room = flow.sender.train_room().min(u64::from(*budget));
        let mut interrupted = room == 0;
        'train: while !interrupted {
            let (home, number, received) = next;
            let due = home.min(release);
            if due >= until {
                break;
            }
            if due == home {
                let Some(end) = flow.sender.ack_in_train(due, number, received) else { break };
                until = end.min(limit);
                (acked, acked_at) = (acked + 1, due);
                *hash = (*hash ^ due.0 ^ number.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
                flow.inbox.pop();
                next = flow.inbox.front().map_or(NOTHING, |(key, ack)| (key.0, ack.trigger, ack.received));
            }
            *now = due;
            while release <= due {
                let number = flow.sender.send_in_train(due);
                release = flow.sender.release();
                sent += 1;
                let mut datagram = Datagram { id: 0, flow: index as u32, size, ecn: Ecn::NotEct };
                if let Ok(at) = up.cross(due, &mut datagram) {
                    let arrived = at + flow.forward_extra;
                    let Some((key, ack)) = flow.inbox.vacant() else {
                        flow.sender.end_train(sent, acked, acked_at);
                        self.starve();
                        return;
                    };
                    arrivals += u64::from(arrived <= *end);
                    *sequence += 1;
                    *key = (down.leave(at, ack_size) + flow.extra_rtt, *sequence);
                    if next.0 == Timestamp::NEVER {
                        next = (key.0, number, arrived);
                    }
                    // The rest of each slot is the same in every acknowledgement of a train.
                    (ack.largest, ack.trigger, ack.received) = (number, number, arrived);
                    flow.inbox.commit();
                }
                room -= 1;
                if room == 0 {
                    room = flow.sender.train_room().min(u64::from(*budget) - sent);
                    if room == 0 {
                        interrupted = true;
                        continue 'train;
                    }
                }
            }
        }
        *budget -= sent as u32;
        flow.sender.end_train(sent, acked, acked_at);
        flow.received.count_train(arrivals, size, flow.header);
        if interrupted && self.may_go_on(index) {
            self.transmit(index);
        }
    }
}
