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
    bytes: u32,
}

/// A ring of (time of leaving the queue, bytes), emptied lazily. Times are pushed in non-decreasing order.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// A power of two, so that a mask replaces the division.
    slots: Box<[Slot]>,
    head: usize,
    len: usize,
    bytes: u64,
}

const EMPTY: Slot = Slot { leaves: Timestamp::ZERO, bytes: 0 };

impl Default for Waiting {
    fn default() -> Self {
        Self { slots: vec![EMPTY; 16].into_boxed_slice(), head: 0, len: 0, bytes: 0 }
    }
}

impl Waiting {
    /// Remove packets that have left by `now`.
    #[inline]
    pub fn pop_until(&mut self, now: Timestamp) {
        while self.len > 0 {
            let slot = self.slots[self.head & (self.slots.len() - 1)];
            if slot.leaves > now {
                break;
            }
            self.head = self.head.wrapping_add(1);
            self.len -= 1;
            self.bytes -= u64::from(slot.bytes);
        }
    }

    /// Remove all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.bytes = 0;
    }

    /// Add a packet, which leaves the queue at `leaves`.
    #[inline]
    pub fn push(&mut self, leaves: Timestamp, bytes: u32) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let index = self.head.wrapping_add(self.len) & (self.slots.len() - 1);
        self.slots[index] = Slot { leaves, bytes };
        self.len += 1;
        self.bytes += u64::from(bytes);
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.slots.len() - 1;
        let mut slots = vec![EMPTY; self.slots.len() * 2];
        for (i, slot) in slots.iter_mut().take(self.len).enumerate() {
            *slot = self.slots[self.head.wrapping_add(i) & mask];
        }
        self.slots = slots.into_boxed_slice();
        self.head = 0;
    }

    /// Return the bytes of memory in use.
    pub fn held_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.slots)
    }

    /// Return when the `back`-th packet from the end (1: the last) leaves, if that many wait.
    #[inline]
    pub fn leaves_from_back(&self, back: usize) -> Option<Timestamp> {
        let ahead = self.len.checked_sub(back)?;
        Some(self.slots[self.head.wrapping_add(ahead) & (self.slots.len() - 1)].leaves)
    }

    /// True if one more packet of `bytes` is within the limits.
    #[inline]
    pub fn admits(&self, limits: &Limits, bytes: u32) -> bool {
        limits.hold(self.len as u64 + 1, self.bytes + u64::from(bytes))
    }

    /// Return packets and wire bytes.
    #[inline]
    pub fn backlog(&self) -> (u64, u64) {
        (self.len as u64, self.bytes)
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
