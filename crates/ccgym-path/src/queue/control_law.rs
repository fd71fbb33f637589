//! CoDel's control law (RFC 8289 §5), with ECN as RFC 8290 §4.2 adds it: mark where it would drop.

use ccgym_core::units::{TimeSpan, Timestamp};

use crate::queue::store::Store;
use crate::queue::Queued;

/// The clock of CoDel in ns-3 and Linux counts units of 2¹⁰ ns.
const CLOCK_SHIFT: u32 = 10;
/// ns-3: bytes below which a queue is not standing: one full packet of IP.
const NS3_MIN_BYTES: u64 = 1500;

/// 1/√count in units of 2⁻¹⁶, improved by one step of Newton's method per drop, as in Linux and ns-3.
#[derive(Clone, Copy, Debug)]
struct InverseRoot(u16);

impl InverseRoot {
    const ONE: Self = Self(u16::MAX);

    /// One step toward 1/√`count`, in their integers.
    fn step(&mut self, count: u32) {
        let root = u64::from(self.0) << 16;
        let square = (root * root) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
        self.0 = ((rest.wrapping_mul(root) >> 31) >> 16) as u16;
    }

    /// Return this share of `span`, which is in units of the clock.
    const fn of(self, span: u64) -> u64 {
        (span * ((self.0 as u64) << 16)) >> 32
    }
}

/// State of CoDel for one queue.
#[derive(Clone, Debug)]
pub struct ControlLaw {
    target: TimeSpan,
    interval: TimeSpan,
    ecn: bool,
    /// True for the rules of ns-3.37: inverse root, clock, minimum of a standing queue, and recent episodes.
    ns3: bool,
    inverse_root: InverseRoot,
    /// Time at which the delay will have been above target for an interval.
    first_above_time: Option<Timestamp>,
    next_drop: Timestamp,
    count: u32,
    count_at_entry: u32,
    dropping: bool,
    /// Size of the largest unit so far: with no more than that queued, a queue is not standing.
    largest: u32,
}

impl ControlLaw {
    /// Make it idle. With `ecn`, ECN-capable packets are marked instead of dropped; `ns3` selects the rules of ns-3.37.
    pub fn new(target: TimeSpan, interval: TimeSpan, ecn: bool, ns3: bool) -> Self {
        let counted = |span: TimeSpan| if ns3 { TimeSpan(span.0 >> CLOCK_SHIFT << CLOCK_SHIFT) } else { span };
        Self {
            target: counted(target),
            interval: counted(interval),
            ecn,
            ns3,
            inverse_root: InverseRoot::ONE,
            first_above_time: None,
            next_drop: Timestamp::ZERO,
            count: 0,
            count_at_entry: 0,
            dropping: false,
            largest: 0,
        }
    }

    /// Note a unit of `wire` bytes that enters the queue.
    #[inline]
    pub fn observe(&mut self, wire: u32) {
        self.largest = self.largest.max(wire);
    }

    /// Return the next packet to send; dropped ones are appended to `dropped`, and marked ones are counted.
    pub fn next(&mut self, now: Timestamp, store: &mut Store, dropped: &mut Vec<Queued>) -> Option<Queued> {
        // The fast path: no standing queue.
        if !self.dropping && store.front().is_some_and(|head| now.since(head.arrived) < self.target) {
            self.first_above_time = None;
            return store.pop();
        }
        let (mut packet, mut ok_to_drop) = self.take(now, store);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && self.clock(now) >= self.next_drop {
                self.count = self.count.wrapping_add(1);
                self.inverse_root.step(self.count);
                if self.mark_or_drop(&mut packet, store, dropped) {
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
            if !self.mark_or_drop(&mut packet, store, dropped) {
                (packet, _) = self.take(now, store);
            }
            self.dropping = true;
            // If the last episode is recent, resume near the rate of drops that it ended with.
            let grown = self.count.wrapping_sub(self.count_at_entry);
            let clock = self.clock(now);
            // In ns-3 an episode that ended before its next drop was due is not recent.
            let recent = clock.since(self.next_drop).0 < self.interval.0.saturating_mul(16)
                && !(self.ns3 && clock < self.next_drop);
            if grown > 1 && recent {
                self.count = grown;
                self.inverse_root.step(grown);
            } else {
                self.count = 1;
                self.inverse_root = InverseRoot::ONE;
            }
            self.next_drop = self.after(clock);
            self.count_at_entry = self.count;
        }
        packet
    }

    /// Take the head; returns true with it if its delay has been above target for an interval.
    fn take(&mut self, now: Timestamp, store: &mut Store) -> (Option<Queued>, bool) {
        let Some(packet) = store.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let low = if self.ns3 { store.bytes() < NS3_MIN_BYTES } else { store.bytes() <= u64::from(self.largest) };
        if now.since(packet.arrived) < self.target || low {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        let clock = self.clock(now);
        let ok_to_drop = *self.first_above_time.get_or_insert(clock.saturating_add(self.interval));
        (Some(packet), if self.ns3 { clock > ok_to_drop } else { clock >= ok_to_drop })
    }

    /// Convert the time to CoDel's clock.
    #[inline]
    fn clock(&self, now: Timestamp) -> Timestamp {
        if self.ns3 {
            Timestamp(now.0 >> CLOCK_SHIFT << CLOCK_SHIFT)
        } else {
            now
        }
    }

    /// Return true if the packet was marked and continues; false if it was dropped.
    fn mark_or_drop(&self, packet: &mut Option<Queued>, store: &mut Store, dropped: &mut Vec<Queued>) -> bool {
        let Some(p) = packet else { return false };
        if self.ecn && store.mark(p) {
            return true;
        }
        dropped.extend(packet.take());
        false
    }

    /// Add the interval divided by the square root of the number of drops.
    fn after(&self, from: Timestamp) -> Timestamp {
        if self.ns3 {
            let units = self.inverse_root.of(self.interval.0 >> CLOCK_SHIFT);
            return from.saturating_add(TimeSpan(units << CLOCK_SHIFT));
        }
        from.saturating_add(TimeSpan((self.interval.0 as f64 / f64::from(self.count.max(1)).sqrt()) as u64))
    }
}
