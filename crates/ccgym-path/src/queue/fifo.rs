//! One FIFO under a limit: the base of the disciplines with a single queue. Each [`Rule`] is in a file; without one
//! ([`NoRule`]) it is mahimahi's `infinite` and `droptail`.
//!
//! Links with these two answer at arrival; this is their form for held links.

use ccgym_core::units::Timestamp;

use crate::link::waiting::Limits;
use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};

/// The rule of a discipline in addition to order and the drop of arrivals beyond the limit.
pub trait Rule: Clone + Send + Sync + 'static {
    /// Process a packet that arrives at `store`; `room` is true if it is within the limit. False: it is dropped. A rule
    /// [`Store::mark`].
    fn admit(&mut self, _now: Timestamp, _packet: &mut Queued, _store: &mut Store, room: bool) -> bool {
        room
    }

    /// Return the packet that the link takes; dropped ones are appended to `dropped`.
    fn dequeue(&mut self, _now: Timestamp, store: &mut Store, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        store.pop()
    }
}

/// Drops arrivals beyond the limit.
#[derive(Clone)]
pub struct NoRule;

impl Rule for NoRule {}

/// A queue with `rule`.
#[derive(Clone)]
pub struct Fifo<R> {
    pub(super) store: Store,
    limits: Limits,
    pub(super) rule: R,
}

impl<R: Rule> Fifo<R> {
    /// Make an empty queue.
    pub fn new(limits: impl Into<Limits>, rule: R) -> Self {
        Self { store: Store::default(), limits: limits.into(), rule }
    }
}

impl<R: Rule> QueueDiscipline for Fifo<R> {
    fn enqueue(&mut self, now: Timestamp, mut packet: Queued, _dropped: &mut Vec<Queued>) -> bool {
        let room = self.store.admits(&self.limits, packet.wire);
        let taken = self.rule.admit(now, &mut packet, &mut self.store, room) && room;
        if taken {
            self.store.push(packet);
        }
        taken
    }

    fn dequeue(&mut self, now: Timestamp, dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.rule.dequeue(now, &mut self.store, dropped)
    }

    fn backlog(&self) -> (u64, u64) {
        self.store.backlog()
    }

    fn marked(&self) -> u64 {
        self.store.marked
    }
}
