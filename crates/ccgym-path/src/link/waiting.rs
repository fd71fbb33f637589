//! Occupancy of a FIFO whose service is known at arrival.

use ccgym_core::units::Timestamp;

use crate::spec::LimitSpec;

/// Limits of a queue; `u64::MAX` if there is none.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Max waiting packets.
    pub packets: u64,
    /// Max waiting wire bytes.
    pub bytes: u64,
}

impl Limits {
    /// No limit.
    pub const NONE: Self = Self { packets: u64::MAX, bytes: u64::MAX };

    /// True if a queue may hold this.
    #[inline]
    pub fn hold(&self, packets: u64, bytes: u64) -> bool {
        packets <= self.packets && bytes <= self.bytes
    }
}

impl From<&LimitSpec> for Limits {
    fn from(spec: &LimitSpec) -> Self {
        Self { packets: spec.packets.unwrap_or(u64::MAX), bytes: spec.bytes.unwrap_or(u64::MAX) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    leaves: Timestamp,
    /// Bytes of all packets up to this one, wrapping.
    total: u64,
}

/// A ring of packets with their times of leaving the queue, emptied lazily. Times are pushed in non-decreasing order.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// A power of two, so that a mask replaces the division.
    slots: Box<[Slot]>,
    /// Packets `head..tail`, wrapping.
    head: usize,
    tail: usize,
    /// Bytes of all packets so far, and of those that have left, wrapping.
    pushed: u64,
    popped: u64,
}

const EMPTY: Slot = Slot { leaves: Timestamp::ZERO, total: 0 };

impl Default for Waiting {
    fn default() -> Self {
        Self { slots: vec![EMPTY; 16].into_boxed_slice(), head: 0, tail: 0, pushed: 0, popped: 0 }
    }
}

impl Waiting {
    #[inline]
    fn slot(&self, number: usize) -> &Slot {
        &self.slots[number & (self.slots.len() - 1)]
    }

    #[inline]
    fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Remove packets that have left by `now`.
    #[inline]
    pub fn pop_until(&mut self, now: Timestamp) {
        while self.head != self.tail {
            let Slot { leaves, total } = *self.slot(self.head);
            if leaves > now {
                break;
            }
            self.head = self.head.wrapping_add(1);
            self.popped = total;
        }
    }

    /// Remove all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.head = self.tail;
        self.popped = self.pushed;
    }

    /// Add a packet, which leaves the queue at `leaves`.
    #[inline]
    pub fn push(&mut self, leaves: Timestamp, bytes: u32) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        self.pushed = self.pushed.wrapping_add(u64::from(bytes));
        let index = self.tail & (self.slots.len() - 1);
        self.slots[index] = Slot { leaves, total: self.pushed };
        self.tail = self.tail.wrapping_add(1);
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.len();
        let mut slots = vec![EMPTY; 2 * len];
        (0..len).for_each(|i| slots[i] = *self.slot(self.head.wrapping_add(i)));
        self.slots = slots.into_boxed_slice();
        (self.head, self.tail) = (0, len);
    }

    /// Return the bytes of memory in use.
    pub fn held_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.slots)
    }

    /// Return when the `back`-th packet from the end (1: the last) leaves, if that many wait.
    #[inline]
    pub fn leaves_from_back(&self, back: usize) -> Option<Timestamp> {
        (back <= self.len()).then(|| self.slot(self.tail.wrapping_sub(back)).leaves)
    }

    /// True if one more packet of `bytes` is within the limits.
    #[inline]
    pub fn admits(&self, limits: &Limits, bytes: u32) -> bool {
        let (packets, waiting) = self.backlog();
        limits.hold(packets + 1, waiting + u64::from(bytes))
    }

    /// Return packets and wire bytes.
    #[inline]
    pub fn backlog(&self) -> (u64, u64) {
        (self.len() as u64, self.pushed.wrapping_sub(self.popped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_who_waits() {
        let mut w = Waiting::default();
        for i in 0..100u64 {
            w.push(Timestamp(i), 10);
            if i % 3 == 0 {
                w.pop_until(Timestamp(i / 2));
            }
        }
        w.pop_until(Timestamp(49));
        assert_eq!(w.backlog(), (50, 500));
        assert_eq!(w.leaves_from_back(1), Some(Timestamp(99)));
        assert_eq!(w.leaves_from_back(50), Some(Timestamp(50)));
        assert_eq!(w.leaves_from_back(51), None);
        assert!(w.admits(&Limits { packets: 51, bytes: 510 }, 10));
        assert!(!w.admits(&Limits { packets: 51, bytes: 509 }, 10));
        assert!(!w.admits(&Limits { packets: 50, bytes: u64::MAX }, 10));
        w.clear();
        assert_eq!(w.backlog(), (0, 0));
    }
}
