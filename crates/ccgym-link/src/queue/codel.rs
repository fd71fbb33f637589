//! Textbook CoDel (RFC 8289) with ECN.

use ccgym_core::units::{TimeSpan, Timestamp};

use crate::link::waiting::Limits;
use crate::queue::control_law::ControlLaw;
use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};
use crate::spec::LimitSpec;

/// One FIFO under CoDel's control law.
#[derive(Clone, Debug)]
pub struct Codel {
    store: Store,
    limits: Limits,
    law: ControlLaw,
}

impl Codel {
    /// Empty.
    pub fn new(limit: &LimitSpec, target: TimeSpan, interval: TimeSpan, ecn: bool, ns3: bool) -> Self {
        Self { store: Store::default(), limits: limit.into(), law: ControlLaw::new(target, interval, ecn, ns3) }
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, _now: Timestamp, packet: Queued, _dropped: &mut Vec<Queued>) -> bool {
        let room = self.store.admits(&self.limits, packet.wire);
        if room {
            self.law.observe(packet.wire);
            self.store.push(packet);
        }
        room
    }

    fn dequeue(&mut self, now: Timestamp, dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.law.dequeue(now, &mut self.store, dropped)
    }

    fn backlog(&self) -> (u64, u64) {
        self.store.backlog()
    }

    fn marked(&self) -> u64 {
        self.law.marked()
    }
}
