//! Acknowledgements on their way to a sender, in order of arrival: a ring that grows.

use ccgym_core::packet::{AckRange, Packet};
use ccgym_core::{Ack, Timestamp};

use crate::tournament::Key;

/// FIFO of acknowledgements, each under the time and sequence number of its arrival.
#[derive(Clone)]
pub struct Inbox {
    /// A power of two, so that a mask replaces the division.
    slots: Box<[(Key, Ack)]>,
    head: usize,
    tail: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { slots: blank(8), head: 0, tail: 0 }
    }
}

fn blank(len: usize) -> Box<[(Key, Ack)]> {
    let mut ack = Ack::new(0, &Packet::default(), Timestamp::ZERO, 0);
    ack.push_range(AckRange { first: 0, last: 0 });
    vec![((Timestamp::NEVER, 0), ack); len].into_boxed_slice()
}

impl Inbox {
    /// Return the next acknowledgement.
    #[inline]
    pub fn front(&self) -> Option<&(Key, Ack)> {
        (self.head != self.tail).then(|| &self.slots[self.head & (self.slots.len() - 1)])
    }

    /// Remove the next acknowledgement.
    #[inline]
    pub fn pop(&mut self) {
        debug_assert!(self.head != self.tail);
        self.head = self.head.wrapping_add(1);
    }

    /// Append one; its key must not be smaller than those before. False if memory cannot be allocated.
    pub fn push(&mut self, key: Key, ack: &Ack) -> bool {
        let Some(slot) = self.vacant() else { return false };
        *slot = (key, *ack);
        self.commit();
        true
    }

    /// Return the slot of the next one; `None` if memory cannot be allocated. It counts only after [`Inbox::commit`].
    #[inline]
    pub fn vacant(&mut self) -> Option<&mut (Key, Ack)> {
        if self.tail.wrapping_sub(self.head) == self.slots.len() && !self.grow() {
            return None;
        }
        let mask = self.slots.len() - 1;
        Some(&mut self.slots[self.tail & mask])
    }

    /// Return the bytes in use, and needed for `more` further entries.
    pub fn held_bytes(&self, more: usize) -> usize {
        let bytes = std::mem::size_of_val(&*self.slots);
        let full = self.tail.wrapping_sub(self.head) + more > self.slots.len();
        if full {
            3 * bytes
        } else {
            bytes
        }
    }

    /// Count the slot that [`Inbox::vacant`] returned as filled.
    #[inline]
    pub fn commit(&mut self) {
        self.tail = self.tail.wrapping_add(1);
    }

    /// True if there is no acknowledgement.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[cold]
    fn grow(&mut self) -> bool {
        let len = self.slots.len() * 2;
        let mut slots = Vec::new();
        if slots.try_reserve_exact(len).is_err() {
            return false;
        }
        slots.resize(len, self.slots[0]);
        let (old, new) = (self.slots.len() - 1, slots.len() - 1);
        for i in 0..self.slots.len() {
            let at = self.head.wrapping_add(i);
            slots[at & new] = self.slots[at & old];
        }
        self.slots = slots.into_boxed_slice();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_across_growth() {
        let mut inbox = Inbox::default();
        let sample = blank(1)[0].1;
        let mut next = 0;
        for n in 0..1000u64 {
            assert!(inbox.push((Timestamp(n), n), &sample));
            if n % 3 == 0 {
                assert_eq!(inbox.front().unwrap().0 .1, next);
                inbox.pop();
                next += 1;
            }
        }
        while let Some((key, _)) = inbox.front() {
            assert_eq!(key.1, next);
            inbox.pop();
            next += 1;
        }
        assert_eq!(next, 1000);
        assert!(inbox.is_empty());
    }
}
