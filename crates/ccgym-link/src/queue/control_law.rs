//! CoDel's control law (RFC 8289 §5), with ECN as RFC 8290 §4.2 adds it: mark where it would drop.

use ccgym_core::units::{TimeSpan, Timestamp};

use crate::queue::store::Store;
use crate::queue::Queued;

/// State of CoDel for one queue.
#[derive(Clone, Debug)]
pub struct ControlLaw {
    target: TimeSpan,
    interval: TimeSpan,
    ecn: bool,
    /// When the delay will have been above target for an interval.
    first_above_time: Option<Timestamp>,
    next_drop: Timestamp,
    count: u32,
    count_at_entry: u32,
    dropping: bool,
    /// The largest unit seen: with no more than that queued, a queue is not standing.
    largest: u32,
    marked: u64,
}

impl ControlLaw {
    /// At rest. With `ecn`, ECN-capable packets are marked instead of dropped.
    pub fn new(target: TimeSpan, interval: TimeSpan, ecn: bool) -> Self {
        Self {
            target,
            interval,
            ecn,
            first_above_time: None,
            next_drop: Timestamp::ZERO,
            count: 0,
            count_at_entry: 0,
            dropping: false,
            largest: 0,
            marked: 0,
        }
    }

    /// Packets marked so far.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// A unit of `wire` bytes enters the queue.
    #[inline]
    pub fn observe(&mut self, wire: u32) {
        self.largest = self.largest.max(wire);
    }

    /// The next packet to send; those dropped on the way are appended to `dropped`.
    pub fn dequeue(&mut self, now: Timestamp, store: &mut Store, dropped: &mut Vec<Queued>) -> Option<Queued> {
        // The common case, spelled out because it is the hot one: no standing queue.
        if !self.dropping && store.front().is_some_and(|head| now.since(head.arrived) < self.target) {
            self.first_above_time = None;
            return store.pop();
        }
        let (mut packet, mut ok_to_drop) = self.take(now, store);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.next_drop {
                self.count = self.count.wrapping_add(1);
                if self.mark_or_drop(&mut packet, dropped) {
                    self.next_drop = self.after(self.next_drop);
                    break;
                }
                (packet, ok_to_drop) = self.take(now, store);
                if ok_to_drop {
                    self.next_drop = self.after(self.next_drop);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !self.mark_or_drop(&mut packet, dropped) {
                (packet, _) = self.take(now, store);
            }
            self.dropping = true;
            // Where the last episode is recent, resume near the rate of drops that it ended with.
            let grown = self.count.wrapping_sub(self.count_at_entry);
            let recent = now.since(self.next_drop).0 < self.interval.0.saturating_mul(16);
            self.count = if grown > 1 && recent { grown } else { 1 };
            self.next_drop = self.after(now);
            self.count_at_entry = self.count;
        }
        packet
    }

    /// Take the head, and say whether its delay has been above target for an interval.
    fn take(&mut self, now: Timestamp, store: &mut Store) -> (Option<Queued>, bool) {
        let Some(packet) = store.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        if now.since(packet.arrived) < self.target || store.bytes() <= u64::from(self.largest) {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        let ok_to_drop = *self.first_above_time.get_or_insert(now.saturating_add(self.interval));
        (Some(packet), now >= ok_to_drop)
    }

    /// True if the packet was marked and goes on; false if it was dropped.
    fn mark_or_drop(&mut self, packet: &mut Option<Queued>, dropped: &mut Vec<Queued>) -> bool {
        let Some(p) = packet else { return false };
        if self.ecn && p.mark(&mut self.marked) {
            return true;
        }
        dropped.extend(packet.take());
        false
    }

    /// An interval divided by the square root of the number of drops.
    fn after(&self, from: Timestamp) -> Timestamp {
        from.saturating_add(TimeSpan((self.interval.0 as f64 / f64::from(self.count.max(1)).sqrt()) as u64))
    }
}
