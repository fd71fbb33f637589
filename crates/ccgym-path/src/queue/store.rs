//! A FIFO with its size in bytes: the common base of the disciplines.

use std::collections::VecDeque;

use ccgym_core::packet::Ecn;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::link::waiting::Limits;
use crate::queue::Queued;

/// Packets in order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Store {
    packets: VecDeque<Queued>,
    bytes: u64,
    /// Packets marked with congestion-experienced so far.
    pub marked: u64,
}

impl Store {
    /// Append a packet.
    #[inline]
    pub fn push(&mut self, packet: Queued) {
        self.bytes += u64::from(packet.wire);
        self.packets.push_back(packet);
    }

    /// Take the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire);
        Some(packet)
    }

    /// Return the oldest packet.
    #[inline]
    pub fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    /// Return the wait of the oldest packet at `now`; zero if there is none.
    pub fn age(&self, now: Timestamp) -> TimeSpan {
        self.packets.front().map_or(TimeSpan::ZERO, |oldest| now.since(oldest.arrived))
    }

    /// Return the number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True if it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Return the wire bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Return packets and wire bytes.
    #[inline]
    pub fn backlog(&self) -> (u64, u64) {
        (self.packets.len() as u64, self.bytes)
    }

    /// Set congestion-experienced, and count it if that is new. False if the flow does not understand ECN.
    pub fn mark(&mut self, packet: &mut Queued) -> bool {
        let ecn = &mut packet.datagram.ecn;
        if !ecn.is_capable() {
            return false;
        }
        self.marked += u64::from(*ecn != Ecn::Ce);
        *ecn = Ecn::Ce;
        true
    }

    /// True if it is within the limits.
    #[inline]
    pub fn within(&self, limits: &Limits) -> bool {
        limits.hold(self.len() as u64, self.bytes)
    }

    /// True if one more packet of `wire` bytes is within the limits.
    #[inline]
    pub fn admits(&self, limits: &Limits, wire: u32) -> bool {
        limits.hold(self.len() as u64 + 1, self.bytes + u64::from(wire))
    }
}
