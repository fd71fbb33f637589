//! Transmissions that the sender stores until they are settled.

use crate::packet::PacketNumber;
use crate::rate_sampler::SendStamp;
use crate::units::Timestamp;

/// State of a transmission, as far as the sender knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// In flight.
    #[default]
    Outstanding,
    /// Arrived.
    Acked,
    /// Declared lost; kept for a while so that a late acknowledgement reveals a spurious loss.
    Lost,
    /// Declared lost only by a retransmission timeout.
    TimedOut,
}

/// One transmission: half a cache line. Its delivery state is stored apart, since most schemes need no rate samples.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub struct SentPacket {
    /// Time of sending.
    pub sent: Timestamp,
    /// Segment of the byte stream.
    pub segment: u64,
    /// Wire bytes in flight just after it left (max 4 GB).
    pub in_flight: u32,
    /// Wire bytes.
    pub size: u16,
    /// State.
    pub state: State,
    /// True if the sender was application-limited.
    pub app_limited: bool,
}

/// Transmissions `first..next`, in a ring indexed by packet number.
#[derive(Clone, Debug)]
pub struct SentPackets {
    ring: Vec<SentPacket>,
    /// Delivery state at the departure of each, by the same indices; empty unless needed.
    stamps: Vec<SendStamp>,
    mask: usize,
    first: PacketNumber,
    next: PacketNumber,
}

impl SentPackets {
    /// Make it empty; `stamped`: with room for the delivery state at each departure.
    pub fn new(stamped: bool) -> Self {
        const START: usize = 64;
        Self {
            ring: vec![SentPacket::default(); START],
            stamps: vec![SendStamp::default(); if stamped { START } else { 0 }],
            mask: START - 1,
            first: 0,
            next: 0,
        }
    }
    /// Store the delivery state at the departure of the latest transmission.
    #[inline]
    pub(crate) fn set_stamp(&mut self, stamp: SendStamp) {
        self.stamps[(self.next - 1) as usize & self.mask] = stamp;
    }
    /// Return the delivery state at the departure of `number`, which must be stored.
    #[inline]
    pub(crate) fn stamp(&self, number: PacketNumber) -> &SendStamp {
        &self.stamps[number as usize & self.mask]
    }
    /// Return the first stored number.
    #[inline]
    pub const fn first(&self) -> PacketNumber {
        self.first
    }
    /// Return the number of the next transmission.
    #[inline]
    pub const fn next(&self) -> PacketNumber {
        self.next
    }
    /// Return how many more there is room for.
    #[inline]
    pub(crate) const fn room(&self) -> u64 {
        self.mask as u64 + 1 - (self.next - self.first)
    }
    /// True if there is room for one more.
    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.room() > 0
    }
    /// Make room for one more; false if memory cannot be allocated.
    pub(crate) fn make_room(&mut self) -> bool {
        self.has_room() || self.try_grow()
    }
    /// Return the bytes of the rings, and those needed for `more` further transmissions.
    pub(crate) fn held_bytes(&self, more: usize) -> usize {
        let bytes = std::mem::size_of_val(&*self.ring) + std::mem::size_of_val(&*self.stamps);
        let full = (self.next - self.first) as usize + more > self.ring.len();
        if full {
            3 * bytes
        } else {
            bytes
        }
    }
    /// Take the next number; its slot holds an old transmission, of which every field must be overwritten.
    #[inline]
    pub(crate) fn next_slot(&mut self) -> &mut SentPacket {
        if !self.has_room() {
            assert!(self.try_grow(), "no memory for another {} transmissions", self.ring.len());
        }
        let i = self.next as usize & self.mask;
        self.next += 1;
        &mut self.ring[i]
    }
    /// Return the transmission `number`, if it is stored.
    #[inline]
    pub fn get(&self, number: PacketNumber) -> Option<&SentPacket> {
        (number >= self.first && number < self.next).then(|| &self.ring[number as usize & self.mask])
    }
    /// Return the transmission `number`, if it is stored.
    #[inline]
    pub fn get_mut(&mut self, number: PacketNumber) -> Option<&mut SentPacket> {
        (number >= self.first && number < self.next).then(|| &mut self.ring[number as usize & self.mask])
    }
    /// Return the slot of `number`, which must be stored.
    #[inline]
    pub(crate) fn slot_mut(&mut self, number: PacketNumber) -> &mut SentPacket {
        debug_assert!(number >= self.first && number < self.next);
        &mut self.ring[number as usize & self.mask]
    }
    /// Drop all transmissions below `number`; all of them must be settled.
    #[inline]
    pub(crate) fn settle_to(&mut self, number: PacketNumber) {
        debug_assert!(number >= self.first && number <= self.next);
        self.first = number;
    }
    /// Make the loss of `number` final, by any rule that declared it.
    pub(crate) fn settle_verdict(&mut self, number: PacketNumber) {
        if let Some(p) = self.get_mut(number).filter(|p| p.state == State::TimedOut) {
            p.state = State::Lost;
        }
    }
    /// Drop acknowledged transmissions from the front, and lost ones sent before `lost_before`.
    #[inline]
    pub fn settle(&mut self, lost_before: Timestamp) {
        while self.first < self.next {
            let p = &self.ring[self.first as usize & self.mask];
            if p.state != State::Acked && (p.state == State::Outstanding || p.sent >= lost_before) {
                break;
            }
            self.first += 1;
        }
    }

    #[cold]
    fn try_grow(&mut self) -> bool {
        let len = self.ring.len() * 2;
        let (mut ring, mut stamps) = (Vec::new(), Vec::new());
        let stamps_len = if self.stamps.is_empty() { 0 } else { len };
        if ring.try_reserve_exact(len).is_err() || stamps.try_reserve_exact(stamps_len).is_err() {
            return false;
        }
        ring.resize(len, SentPacket::default());
        stamps.resize(stamps_len, SendStamp::default());
        for n in self.first..self.next {
            let (new, old) = (n as usize & (len - 1), n as usize & self.mask);
            ring[new] = self.ring[old];
            if stamps_len > 0 {
                stamps[new] = self.stamps[old];
            }
        }
        self.ring = ring;
        self.stamps = stamps;
        self.mask = len - 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_cache_line() {
        assert_eq!(std::mem::size_of::<SentPacket>(), 32);
    }

    #[test]
    fn stamps_survive_growth() {
        let mut s = SentPackets::new(true);
        for i in 0..200u64 {
            *s.next_slot() = SentPacket::default();
            s.set_stamp(SendStamp { delivered: i * 7, ..SendStamp::default() });
        }
        assert!((0..200).all(|i| s.stamp(i).delivered == i * 7));
    }

    #[test]
    fn numbers_survive_growth_and_settling() {
        let mut s = SentPackets::new(false);
        for i in 0..200u64 {
            *s.next_slot() = SentPacket { segment: i * 3, ..SentPacket::default() };
        }
        for i in 0..200 {
            assert_eq!(s.get(i).unwrap().segment, i * 3);
        }
        assert!(s.get(200).is_none());
        for i in 0..100 {
            s.get_mut(i).unwrap().state = State::Acked;
        }
        s.get_mut(100).unwrap().state = State::Lost;
        s.get_mut(100).unwrap().sent = Timestamp(5);
        s.get_mut(101).unwrap().state = State::Acked;
        s.settle(Timestamp(5));
        assert_eq!(s.first(), 100);
        s.settle(Timestamp(6));
        assert_eq!(s.first(), 102);
        assert!(s.get(101).is_none());
    }
}
