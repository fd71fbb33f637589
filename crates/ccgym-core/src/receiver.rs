//! The receiver of a flow: it records arrivals, and decides when to acknowledge.

use std::collections::VecDeque;

use crate::interval_set::{insert, IntervalSet};
use crate::packet::{Ack, AckRange, Ecn, Packet, MAX_ACK_RANGES};
use crate::sender::HANDSHAKE;
use crate::units::{TimeSpan, Timestamp};

/// Rules for acknowledging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckPolicy {
    /// Acknowledge every n-th packet (1: each).
    pub every: u32,
    /// … or when the oldest unacknowledged arrival is this old.
    pub max_delay: TimeSpan,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self { every: 1, max_delay: TimeSpan::from_millis(40) }
    }
}

/// Parameters of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Acknowledgement policy.
    pub policy: AckPolicy,
    /// Wire bytes of an acknowledgement.
    pub ack_size: u32,
    /// Number of first packets acknowledged at once, as in Linux ("quick ACKs").
    pub quick_acks: u32,
    /// True if segments may be sent again. Otherwise no segment is remembered.
    pub reliable: bool,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self { policy: AckPolicy::default(), ack_size: 52, quick_acks: 0, reliable: true }
    }
}

/// Result of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// True if its segment had not arrived before (unreliable flows: the packet, as far as that is remembered).
    pub new: bool,
    /// True if the acknowledgement leaves at once.
    pub acknowledge: bool,
}

/// Result of adding a packet number to the ranges.
struct Recorded {
    /// True if it extends the newest range and no gap is open.
    in_order: bool,
    /// True if it had arrived before.
    copy: bool,
}

/// Result of an arrival before it is acknowledged.
pub(crate) struct Accepted {
    /// As [`Arrival::new`].
    pub new: bool,
    /// True if the packet itself had arrived before.
    pub copy: bool,
    in_order: bool,
}

/// Receiver state machine.
#[derive(Clone)]
pub struct Receiver {
    config: ReceiverConfig,
    /// Ranges of arrived packet numbers, oldest first, without the newest one …
    older: VecDeque<AckRange>,
    /// … which grows with every packet in order; empty (first above last) before the first packet.
    newest: AckRange,
    segments: IntervalSet,
    /// Packet of a delayed acknowledgement.
    pending: Option<Packet>,
    pending_since: Timestamp,
    pending_arrival: Timestamp,
    pending_count: u32,
    quick_acks_left: u32,
    ce_total: u32,
    /// True if the next packet in order changes nothing but the ends of `newest` and `segments`.
    in_order_at_once: bool,
    /// See [`Receiver::trust_order`].
    trusts_order: bool,
}

/// The range before the first packet.
const EMPTY: AckRange = AckRange { first: 1, last: 0 };

/// Max number of gaps; the oldest ones are forgotten, since no acknowledgement would report them any more.
const MAX_RANGES: usize = 256;

impl Receiver {
    /// Make a receiver without arrivals.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            older: VecDeque::new(),
            newest: EMPTY,
            segments: IntervalSet::default(),
            pending: None,
            pending_since: Timestamp::ZERO,
            pending_arrival: Timestamp::ZERO,
            pending_count: 0,
            quick_acks_left: config.quick_acks,
            ce_total: 0,
            in_order_at_once: false,
            trusts_order: false,
        }
    }

    /// Report only the packet that arrives, and remember none: for an unreliable flow on a path that keeps order, copies
    /// nothing, marks nothing and loses no acknowledgement. The sender then knows the others already.
    pub fn trust_order(&mut self) {
        self.trusts_order = true;
    }

    /// True if segments may be sent again.
    #[must_use]
    pub const fn is_reliable(&self) -> bool {
        self.config.reliable
    }

    /// Return the number of segments that arrived in order (reliable flows).
    #[must_use]
    pub const fn segments_in_order(&self) -> u64 {
        self.segments.first_missing()
    }

    /// Return the gaps among the arrived segments (reliable flows). Unbounded here; a real receiver needs a bound.
    #[must_use]
    #[inline]
    pub fn segment_gaps(&self) -> usize {
        self.segments.gaps()
    }

    /// Return the bytes of memory in use.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.older.capacity() * std::mem::size_of::<AckRange>() + self.segments.held_bytes()
    }

    /// Process a data packet that arrives at `now`. Call [`Receiver::on_timeout`] first if its time is before `now`.
    pub fn on_data(&mut self, now: Timestamp, packet: &Packet) -> (bool, Option<Ack>) {
        let mut ack = Ack::new(0, packet, now, 0);
        let arrival = self.on_data_into(now, packet, &mut ack);
        (arrival.new, arrival.acknowledge.then_some(ack))
    }

    /// As [`Receiver::on_data`], but write the acknowledgement to `ack`.
    #[inline(always)]
    pub fn on_data_into(&mut self, now: Timestamp, packet: &Packet, ack: &mut Ack) -> Arrival {
        if self.trusts_order && packet.number != HANDSHAKE {
            let only = AckRange { first: packet.number, last: packet.number };
            ack.acknowledge_only(only, packet, now, self.config.ack_size, 0);
            return Arrival { new: true, acknowledge: true };
        }
        // The next packet, without gaps or a delayed acknowledgement: by far the most frequent case.
        if self.in_order_at_once
            && packet.number == self.newest.last + 1
            && (!self.config.reliable || packet.segment == self.segments.first_missing())
            && packet.ecn != Ecn::Ce
        {
            self.newest.last = packet.number;
            if self.config.reliable {
                self.segments.extend();
            }
            ack.acknowledge_only(self.newest, packet, now, self.config.ack_size, self.ce_total);
            return Arrival { new: true, acknowledge: true };
        }
        crate::cold_path();
        // A copy, so that the one of the caller may stay in registers.
        let copy = *packet;
        let arrival = self.on_any_data_into(now, &copy, ack);
        self.in_order_at_once = self.config.policy.every == 1
            && self.older.is_empty()
            && self.newest != EMPTY
            && self.segments.gaps() == 0
            && self.quick_acks_left == 0;
        arrival
    }

    /// As [`Receiver::on_data_into`] in the general case.
    #[inline(never)]
    fn on_any_data_into(&mut self, now: Timestamp, packet: &Packet, ack: &mut Ack) -> Arrival {
        if packet.number == HANDSHAKE {
            *ack = Ack::new(HANDSHAKE, packet, now, self.config.ack_size);
            return Arrival { new: false, acknowledge: true };
        }
        let Accepted { new, in_order, .. } = self.take(packet);
        if self.pending_count == 0 {
            self.pending_since = now;
        }
        self.pending_count += 1;
        let quick = self.quick_acks_left > 0;
        if quick {
            self.quick_acks_left -= 1;
        }
        // Out of order, or filling a hole: acknowledge at once (RFC 5681 §4.2).
        if quick || !in_order || self.pending_count >= self.config.policy.every || packet.ecn == Ecn::Ce {
            self.make_ack(now, now, packet, ack);
            return Arrival { new, acknowledge: true };
        }
        self.pending = Some(*packet);
        self.pending_arrival = now;
        Arrival { new, acknowledge: false }
    }

    /// Record an arrival.
    #[inline(always)]
    pub(crate) fn take(&mut self, packet: &Packet) -> Accepted {
        let Recorded { in_order, copy } = self.record(packet);
        let new = if self.config.reliable { self.segments.insert(packet.segment) } else { !copy };
        if packet.ecn == Ecn::Ce {
            self.ce_total = self.ce_total.wrapping_add(1);
        }
        Accepted { new, copy, in_order }
    }

    /// Return the ranges of packet numbers that arrived, newest first.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = AckRange> + '_ {
        let newest = (self.newest != EMPTY).then_some(self.newest);
        newest.into_iter().chain(self.older.iter().rev().copied())
    }

    /// Return the packets that arrived with congestion-experienced, wrapping.
    pub(crate) const fn ce_total(&self) -> u32 {
        self.ce_total
    }

    /// Return the wire bytes of an acknowledgement.
    #[must_use]
    pub const fn ack_size(&self) -> u32 {
        self.config.ack_size
    }

    /// Return when a delayed acknowledgement is due.
    #[must_use]
    #[inline]
    pub fn next_timeout(&self) -> Timestamp {
        if self.pending.is_some() {
            self.pending_since.saturating_add(self.config.policy.max_delay)
        } else {
            Timestamp::NEVER
        }
    }

    /// Send the acknowledgement due at the time given by [`Receiver::next_timeout`].
    pub fn on_timeout(&mut self, now: Timestamp) -> Option<Ack> {
        if self.next_timeout() > now {
            return None;
        }
        let packet = self.pending?;
        let mut ack = Ack::new(0, &packet, now, 0);
        self.make_ack(now, self.pending_arrival, &packet, &mut ack);
        Some(ack)
    }

    /// Add a packet number to the ranges.
    #[inline]
    fn record(&mut self, packet: &Packet) -> Recorded {
        let n = packet.number;
        if self.newest.last + 1 == n && self.newest != EMPTY {
            self.newest.last = n;
            let in_order = self.older.is_empty() || self.forget_settled(packet.least_unsettled);
            return Recorded { in_order, copy: false };
        }
        self.record_out_of_order(n, packet.least_unsettled)
    }

    /// Forget gaps that the sender has settled, since they will not fill any more. Returns true if no gap is left.
    #[cold]
    fn forget_settled(&mut self, least_unsettled: u64) -> bool {
        while self.older.front().is_some_and(|r| r.last < least_unsettled) {
            self.older.pop_front();
        }
        self.older.is_empty()
    }

    #[cold]
    fn record_out_of_order(&mut self, n: u64, least_unsettled: u64) -> Recorded {
        self.forget_settled(least_unsettled);
        if self.newest == EMPTY {
            self.newest = AckRange { first: n, last: n };
            return Recorded { in_order: n == least_unsettled, copy: false };
        }
        if n > self.newest.last {
            // A gap before the newest packet.
            if self.older.len() >= MAX_RANGES - 1 {
                self.older.pop_front();
            }
            self.older.push_back(self.newest);
            self.newest = AckRange { first: n, last: n };
            return Recorded { in_order: false, copy: false };
        }
        // Ranges that the sender has settled may be forgotten. Nearly all of their packets had arrived.
        let its = self.older.partition_point(|r| r.last < n);
        let first = self.older.get(its).map_or(self.newest.first, |r| r.first);
        if n >= first || n < least_unsettled {
            return Recorded { in_order: false, copy: true };
        }
        let mut ranges = std::mem::take(&mut self.older);
        ranges.push_back(self.newest);
        insert(&mut ranges, n);
        if ranges.len() > MAX_RANGES {
            ranges.pop_front();
        }
        self.newest = ranges.pop_back().unwrap_or(EMPTY);
        self.older = ranges;
        Recorded { in_order: false, copy: false }
    }

    #[inline(always)]
    fn make_ack(&mut self, now: Timestamp, arrival: Timestamp, packet: &Packet, ack: &mut Ack) {
        if self.pending.is_some() {
            self.pending = None;
        }
        self.pending_count = 0;
        *ack = Ack::new(self.newest.last, packet, arrival, self.config.ack_size);
        if self.older.is_empty() {
            ack.push_range(self.newest);
        } else {
            self.report_gaps(ack);
        }
        ack.delay_ns = now.since(arrival).0.min(u64::from(u32::MAX)) as u32;
        ack.ce_total = self.ce_total;
    }

    #[cold]
    fn report_gaps(&self, ack: &mut Ack) {
        if self.newest.first <= ack.trigger {
            ack.push_range(self.newest);
            for range in self.older.iter().rev().take(MAX_ACK_RANGES - 1) {
                ack.push_range(*range);
            }
            return;
        }
        self.report_late(ack);
    }

    /// As [`Receiver::report_gaps`] when the packet that arrived is below the newest range.
    #[cold]
    fn report_late(&self, ack: &mut Ack) {
        // The range of the packet that caused this is first, so that reordering is never hidden.
        let its = self.older.partition_point(|r| r.last < ack.trigger);
        ack.push_range(self.older[its]);
        ack.push_range(self.newest);
        for i in (0..self.older.len()).rev().filter(|i| *i != its) {
            ack.push_range(self.older[i]); // what finds no room is left out
            if ack.range_count() == MAX_ACK_RANGES {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> Packet {
        Packet {
            number,
            segment: number,
            sent: Timestamp(number),
            least_unsettled: 0,
            flow: 0,
            size: 1500,
            ecn: Ecn::NotEct,
            retransmission: false,
            header: 0,
        }
    }

    #[test]
    fn acknowledges_each_packet_by_default() {
        let mut r = Receiver::new(ReceiverConfig::default());
        for n in 0..3 {
            let (new, ack) = r.on_data(Timestamp(n + 10), &packet(n));
            let ack = ack.unwrap();
            assert!(new);
            assert_eq!((ack.trigger, ack.range_count(), ack.range(0)), (n, 1, AckRange { first: 0, last: n }));
        }
        assert!(!r.on_data(Timestamp(20), &packet(1)).0, "a duplicate is not new");
    }

    #[test]
    fn copies_are_not_new_and_change_no_range() {
        for reliable in [true, false] {
            let mut r = Receiver::new(ReceiverConfig { reliable, ..ReceiverConfig::default() });
            let mut arrive = |n, least_unsettled| {
                let (new, ack) = r.on_data(Timestamp(9), &Packet { least_unsettled, ..packet(n) });
                let ack = ack.expect("each packet is acknowledged");
                (new, (0..ack.range_count()).map(|i| (ack.range(i).first, ack.range(i).last)).collect::<Vec<_>>())
            };
            // (number, all below settled) → (new, ranges reported).
            for (n, settled, new, ranges) in [
                (0, 0, true, vec![(0, 0)]),
                (0, 0, false, vec![(0, 0)]),
                (3, 0, true, vec![(3, 3), (0, 0)]),
                (0, 0, false, vec![(0, 0), (3, 3)]),
                (3, 0, false, vec![(3, 3), (0, 0)]),
                (2, 0, true, vec![(2, 3), (0, 0)]),
                (4, 4, true, vec![(2, 4)]),
                (0, 4, false, vec![(2, 4)]),
                (1, 0, true, vec![(1, 4)]),
            ] {
                assert_eq!(arrive(n, settled), (new, ranges), "packet {n}, reliable {reliable}");
            }
        }
    }

    #[test]
    fn delayed_acks_cover_two_and_time_out() {
        let policy = AckPolicy { every: 2, max_delay: TimeSpan::from_millis(40) };
        let mut r = Receiver::new(ReceiverConfig { policy, ..ReceiverConfig::default() });
        assert!(r.on_data(Timestamp(0), &packet(0)).1.is_none());
        assert_eq!(r.next_timeout(), Timestamp::from_millis(40));
        let ack = r.on_data(Timestamp(5), &packet(1)).1.unwrap();
        assert_eq!(ack.range(0), AckRange { first: 0, last: 1 });
        assert_eq!(r.next_timeout(), Timestamp::NEVER);
        assert!(r.on_data(Timestamp(9), &packet(2)).1.is_none());
        let due = r.next_timeout();
        let ack = r.on_timeout(due).unwrap();
        assert_eq!(ack.trigger, 2);
        assert_eq!(u64::from(ack.delay_ns), TimeSpan::from_millis(40).0);
        // A gap is reported at once.
        let ack = r.on_data(Timestamp(90_000_000), &packet(4)).1.unwrap();
        assert_eq!([ack.range(0), ack.range(1)], [AckRange { first: 4, last: 4 }, AckRange { first: 0, last: 2 }]);
    }

    #[test]
    fn ranges_follow_gaps_reordering_and_settling() {
        let mut r = Receiver::new(ReceiverConfig::default());
        for n in [0, 1, 3, 5, 7, 9] {
            r.on_data(Timestamp(n), &packet(n));
        }
        let ack = r.on_data(Timestamp(20), &packet(11)).1.unwrap();
        assert_eq!(ack.range_count(), MAX_ACK_RANGES);
        assert_eq!([0, 1, 2, 3].map(|i| ack.range(i).first), [11, 9, 7, 5]);
        // A late packet's range is first.
        let ack = r.on_data(Timestamp(21), &packet(2)).1.unwrap();
        assert_eq!(ack.range(0), AckRange { first: 0, last: 3 });
        assert_eq!(ack.range(1).first, 11);
        // Settled ranges are forgotten.
        let ack = r.on_data(Timestamp(22), &Packet { least_unsettled: 9, ..packet(12) }).1.unwrap();
        assert_eq!(ack.range_count(), 2);
        assert_eq!(ack.range(1), AckRange { first: 9, last: 9 });
    }
}
