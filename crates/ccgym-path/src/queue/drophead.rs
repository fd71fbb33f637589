//! Accept, then drop the oldest until the limits hold (mahimahi's `drophead`).
//!
//! Mahimahi aborts with an assertion if a byte limit needs more than one head drop; here the drops are made.

use ccgym_core::units::Timestamp;

use crate::link::waiting::Limits;
use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};
use crate::spec::LimitSpec;

/// Drops from the head.
#[derive(Clone, Debug)]
pub struct Drophead {
    store: Store,
    limits: Limits,
}

impl Drophead {
    /// Make an empty queue.
    pub fn new(limit: &LimitSpec) -> Self {
        Self { store: Store::default(), limits: limit.into() }
    }
}

impl QueueDiscipline for Drophead {
    fn enqueue(&mut self, _now: Timestamp, packet: Queued, dropped: &mut Vec<Queued>) -> bool {
        self.store.push(packet);
        while !self.store.within(&self.limits) {
            match self.store.pop() {
                // The arrival itself is larger than the limit.
                Some(_) if self.store.is_empty() => return false,
                Some(oldest) => dropped.push(oldest),
                None => return false,
            }
        }
        true
    }

    fn dequeue(&mut self, _now: Timestamp, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.store.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        self.store.backlog()
    }
}
