//! Unbounded FIFO (mahimahi's default). Links over it answer at arrival; this is the form for held links.

use ccgym_core::units::Timestamp;

use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};

/// Never drops.
#[derive(Clone, Debug, Default)]
pub struct Infinite {
    store: Store,
}

impl Infinite {
    /// Empty.
    pub fn new() -> Self {
        Self::default()
    }
}

impl QueueDiscipline for Infinite {
    fn enqueue(&mut self, _now: Timestamp, packet: Queued, _dropped: &mut Vec<Queued>) -> bool {
        self.store.push(packet);
        true
    }

    fn dequeue(&mut self, _now: Timestamp, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.store.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        self.store.backlog()
    }
}
