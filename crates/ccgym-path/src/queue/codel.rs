//! Textbook CoDel (RFC 8289) with ECN: a FIFO under its control law.

use ccgym_core::units::Timestamp;

use crate::queue::control_law::ControlLaw;
use crate::queue::fifo::Rule;
use crate::queue::store::Store;
use crate::queue::Queued;

impl Rule for ControlLaw {
    fn admit(&mut self, _now: Timestamp, packet: &mut Queued, _store: &mut Store, room: bool) -> bool {
        if room {
            self.observe(packet.wire);
        }
        room
    }

    fn dequeue(&mut self, now: Timestamp, store: &mut Store, dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.next(now, store, dropped)
    }
}
