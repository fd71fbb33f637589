//! Packets sent and neither acknowledged nor lost. The library gives its controllers no packet numbers: a packet is
//! identified by its send time, and its number here counts departures.

use std::collections::VecDeque;

use ccgym_core::congestion_control::LostPacket;
use ccgym_core::rate_sampler::SendStamp;
use ccgym_core::{PacketNumber, Timestamp};

/// Packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub number: PacketNumber,
    pub sent: Timestamp,
    pub bytes: u64,
    /// Bytes in flight just after it was sent.
    pub in_flight: u64,
    /// Delivery state at that time.
    pub stamp: SendStamp,
    pub app_limited: bool,
}

/// Packets in flight, in the order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    queue: VecDeque<Departure>,
    bytes: u64,
    next: PacketNumber,
    /// Packets to ignore: the library reports packets without data when they leave, but neither acknowledges nor loses
    /// them. They have no number.
    forgotten: u64,
}

impl Departures {
    /// Return the number of the next packet.
    pub fn next(&self) -> PacketNumber {
        self.next - self.forgotten
    }

    /// Return the number of `departure` as the scheme knows it.
    pub fn number(&self, departure: &Departure) -> PacketNumber {
        departure.number.saturating_sub(self.forgotten)
    }

    /// Add a packet. `departure.number` is filled in.
    pub fn push(&mut self, departure: Departure) {
        self.bytes += departure.bytes;
        self.queue.push_back(Departure { number: self.next, ..departure });
        self.next += 1;
    }

    /// Remove and return the first packet that was sent at `sent`, which is acknowledged.
    pub fn take_acked(&mut self, sent: Timestamp) -> Option<Departure> {
        let place = self.queue.partition_point(|one| one.sent < sent);
        if self.queue.get(place)?.sent != sent {
            return None;
        }
        let taken = self.queue.remove(place)?;
        self.bytes -= taken.bytes;
        Some(taken)
    }

    /// Remove `bytes` of lost packets, sent until `last`. All older packets without ACK are lost with the last one:
    /// they meet both thresholds of RFC 9002 §6.1, too.
    pub fn take_lost(&mut self, last: Timestamp, bytes: u64, lost: &mut Vec<LostPacket>) {
        let mut left = bytes;
        while let Some(&first) = self.queue.front() {
            if first.sent > last || (first.sent == last && left == 0) {
                return;
            }
            if left == 0 {
                self.forget_first();
                continue;
            }
            let bytes = first.bytes.min(left);
            left -= bytes;
            let number = self.number(&first);
            lost.push(LostPacket { number, bytes, sent: first.sent, in_flight_at_send: first.in_flight });
            self.bytes -= first.bytes;
            self.queue.pop_front();
        }
    }

    /// Remove surplus packets. After an ACK of `newest`, the library has `in_flight` bytes in flight: packets beyond
    /// that had no data, or were dropped with their keys at the end of the handshake.
    pub fn reconcile(&mut self, newest: PacketNumber, in_flight: u64) {
        let mut surplus = self.bytes.saturating_sub(in_flight);
        if surplus == 0 {
            return;
        }
        let before = (self.queue.len(), surplus);
        self.queue.retain(|one| {
            let forget = one.number < newest && one.bytes <= surplus;
            surplus -= if forget { one.bytes } else { 0 };
            !forget
        });
        self.forgotten += (before.0 - self.queue.len()) as u64;
        self.bytes -= before.1 - surplus;
    }

    /// Remove the oldest packets beyond `most` bytes in flight, the max of the library: they had no data. Return the
    /// removed bytes.
    pub fn bound(&mut self, most: u64) -> u64 {
        let before = self.bytes;
        while self.bytes > most && self.queue.len() > 1 {
            self.forget_first();
        }
        before - self.bytes
    }

    fn forget_first(&mut self) {
        if let Some(first) = self.queue.pop_front() {
            self.bytes -= first.bytes;
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Make packets of these sizes, one per millisecond from zero on.
    fn departures(sizes: &[u64]) -> Departures {
        let mut all = Departures::default();
        for (&bytes, ms) in sizes.iter().zip(0..) {
            let stamp = SendStamp::default();
            all.push(Departure { number: 0, sent: at(ms), bytes, in_flight: 0, stamp, app_limited: false });
        }
        all
    }

    #[test]
    fn packets_are_found_by_send_time() {
        let mut all = departures(&[1000, 1000, 1000]);
        assert_eq!(all.take_acked(at(1)).unwrap().number, 1);
        assert!(all.take_acked(at(1)).is_none() && all.take_acked(at(7)).is_none());
        assert_eq!((all.next(), all.bytes), (3, 2000));
    }

    #[test]
    fn older_packets_are_lost_and_those_without_data_have_no_number() {
        let mut all = departures(&[1000, 1000, 40, 1000]);
        let mut lost = Vec::new();
        all.take_lost(at(2), 2000, &mut lost);
        let told: Vec<_> = lost.iter().map(|one| (one.number, one.bytes, one.sent)).collect();
        assert_eq!(told, [(0, 1000, at(0)), (1, 1000, at(1))]);
        // A packet without data is in between: the sum is right, the sizes are not.
        let mut lost = Vec::new();
        all.take_lost(at(3), 1000, &mut lost);
        assert_eq!(lost.iter().map(|one| one.bytes).collect::<Vec<_>>(), [40, 960]);
        let mut all = departures(&[1000, 40, 1000, 1000]);
        let newest = all.take_acked(at(2)).unwrap();
        all.reconcile(newest.number, 2000);
        assert_eq!((all.number(&newest), all.next(), all.bytes), (1, 3, 2000));
        assert!(all.take_acked(at(0)).is_some(), "a hole, which is of the size of the rest, stays");
    }

    #[test]
    fn memory_has_a_bound() {
        let mut all = departures(&[40; 100]);
        assert_eq!(all.bound(400), 3600);
        assert_eq!((all.queue.len(), all.next()), (10, 10));
    }
}
