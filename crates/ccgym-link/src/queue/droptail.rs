//! Drop arrivals that would break a limit (mahimahi's `droptail`).
//!
//! Links over it answer at arrival; this is the form for held links.

use ccgym_core::units::Timestamp;

use crate::link::waiting::Limits;
use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};
use crate::spec::LimitSpec;

/// Accepts a packet only if both limits hold with it.
#[derive(Clone, Debug)]
pub struct Droptail {
    store: Store,
    limits: Limits,
}

impl Droptail {
    /// Empty.
    pub fn new(limit: &LimitSpec) -> Self {
        Self { store: Store::default(), limits: limit.into() }
    }
}

impl QueueDiscipline for Droptail {
    fn enqueue(&mut self, _now: Timestamp, packet: Queued, _dropped: &mut Vec<Queued>) -> bool {
        let room = self.store.admits(&self.limits, packet.wire);
        if room {
            self.store.push(packet);
        }
        room
    }

    fn dequeue(&mut self, _now: Timestamp, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.store.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        self.store.backlog()
    }
}
