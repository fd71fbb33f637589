//! Trains: the packets of a paced flow alone, and their acknowledgements, without an event each.
//!
//! Between two decisions of a scheme that hears nothing else, packets leave at the pacing rate, each element of the path
//! answers at arrival, and acknowledgements arrive in order. Nothing but these two is due before the train ends.

use ccgym_core::{Datagram, Ecn, Packet, Timestamp};
use ccgym_path::Chain;
use ccgym_run::spec::{RecordSpec, SourceSpec};
use ccgym_run::FlowSpec;

use super::Simulator;
use crate::flow::Flow;

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
        let last = Timestamp(limit.0.min(flow.stop.0.saturating_sub(1)));
        let ack_size = flow.receiver.ack_size();
        let mut packet = Packet::default();
        let mut interrupted = false;
        'train: loop {
            let release = flow.sender.release();
            let front = flow.inbox.front().map(|(key, ack)| (key.0, ack.trigger, ack.received));
            let (due, acked) = match front {
                Some((home, ..)) if home <= release => (home, front),
                _ => (release, None),
            };
            if due > last || due >= flow.sender.train_end() {
                break;
            }
            if let Some((_, number, received)) = acked {
                if !flow.sender.on_ack_in_train(due, number, received) {
                    break;
                }
                *hash = (*hash ^ due.0 ^ number.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
                flow.inbox.pop();
            }
            *now = due;
            while flow.sender.goes_on() {
                if flow.sender.release() > due {
                    continue 'train;
                }
                flow.sender.send_in_train(due, &mut packet);
                *budget = budget.saturating_sub(1);
                let mut datagram = Datagram { id: 0, flow: packet.flow, size: packet.size, ecn: Ecn::NotEct };
                if let Ok(at) = up.cross(due, &mut datagram) {
                    let arrived = at + flow.forward_extra;
                    let Some((key, ack)) = flow.inbox.vacant() else {
                        self.starve();
                        return;
                    };
                    if arrived <= *end {
                        flow.received.count(&packet, true, flow.header);
                    }
                    *sequence += 1;
                    *key = (down.leave(at, ack_size) + flow.extra_rtt, *sequence);
                    // The rest of each slot is the same in every acknowledgement of a train.
                    (ack.largest, ack.trigger, ack.received) = (packet.number, packet.number, arrived);
                    flow.inbox.commit();
                }
                if *budget == 0 || !flow.sender.has_room() {
                    break;
                }
            }
            interrupted = true;
            break;
        }
        flow.sender.end_train();
        if interrupted && self.may_go_on(index) {
            self.transmit(index);
        }
    }
}
