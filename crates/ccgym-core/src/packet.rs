//! Units on a path: data packets, acknowledgements, and the fields of each that a link reads.

use serde::{Deserialize, Serialize};

use crate::units::Timestamp;

/// Number of one transmission. Never reused: a retransmission has a new number (RFC 9002 §3), so an acknowledgement is
/// never ambiguous.
pub type PacketNumber = u64;

/// The two ECN bits of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// Not ECN-capable: a queue must drop, not mark.
    #[default]
    NotEct,
    /// ECN-capable transport, classic.
    Ect0,
    /// ECN-capable transport, L4S (RFC 9331).
    Ect1,
    /// Congestion experienced: set by a queue.
    Ce,
}

impl Ecn {
    /// True if a queue may mark instead of dropping.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Return the two bits of the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// Read them from the header's byte that ends with them.
    #[must_use]
    pub const fn of_traffic_class(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// One data packet on its way to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Number of this transmission.
    pub number: PacketNumber,
    /// Segment of the byte stream that it carries: the same for a retransmission.
    pub segment: u64,
    /// Departure, on the sender's clock.
    pub sent: Timestamp,
    /// Every number below this one is settled at the sender; the receiver may forget the gaps below it.
    pub least_unsettled: PacketNumber,
    /// Index of the flow.
    pub flow: u32,
    /// Bytes on the wire from the IP header on.
    pub size: u32,
    /// Header from the scheme to its receiver; zero for schemes without one.
    pub header: u32,
    /// ECN bits.
    pub ecn: Ecn,
    /// True if an earlier transmission carried the same segment.
    pub retransmission: bool,
}

/// Max number of ranges in one acknowledgement, as many as fit next to a timestamp option in TCP.
pub const MAX_ACK_RANGES: usize = 4;

/// A closed range of packet numbers that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckRange {
    /// First number.
    pub first: PacketNumber,
    /// Last number.
    pub last: PacketNumber,
}

/// One acknowledgement on its way to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Largest number that arrived.
    pub largest: PacketNumber,
    /// The packet that caused this acknowledgement.
    pub trigger: PacketNumber,
    /// Arrival of `trigger`, on the receiver's clock.
    pub received: Timestamp,
    /// Arrived ranges, as distances (of the first, of the last) below `largest`; see [`Ack::range`].
    distances: [(u32, u32); MAX_ACK_RANGES],
    /// Number of valid ones, at least 1.
    range_count: u32,
    /// Nanoseconds between the arrival of `trigger` and this acknowledgement (the delay of a delayed ACK).
    pub delay_ns: u32,
    /// Index of the flow.
    pub flow: u32,
    /// Bytes on the wire from the IP header on.
    pub size: u32,
    /// Congestion-experienced packets seen by the receiver so far, wrapping.
    pub ce_total: u32,
}

impl Ack {
    /// Make an acknowledgement caused by `trigger`, without ranges.
    #[must_use]
    #[inline]
    pub const fn new(largest: PacketNumber, trigger: &Packet, received: Timestamp, size: u32) -> Self {
        Self {
            largest,
            trigger: trigger.number,
            received,
            distances: [(0, 0); MAX_ACK_RANGES],
            range_count: 0,
            delay_ns: 0,
            flow: trigger.flow,
            size,
            ce_total: 0,
        }
    }

    /// Become the acknowledgement, caused by `trigger` at `received`, of the only range.
    #[inline(always)]
    pub(crate) fn acknowledge_only(
        &mut self,
        range: AckRange,
        trigger: &Packet,
        received: Timestamp,
        size: u32,
        ce_total: u32,
    ) {
        self.largest = range.last;
        self.trigger = trigger.number;
        self.received = received;
        // The other distances are not valid: they need not change.
        self.distances[0] = ((range.last - range.first).min(u64::from(u32::MAX)) as u32, 0);
        self.range_count = 1;
        self.delay_ns = 0;
        self.flow = trigger.flow;
        self.size = size;
        self.ce_total = ce_total;
    }

    /// Add one more range, if there is room. Numbers more than 2³²−1 below the largest one are left out: they were
    /// settled long ago.
    #[inline]
    pub fn push_range(&mut self, range: AckRange) {
        let i = self.range_count as usize;
        let last = self.largest - range.last;
        if i < MAX_ACK_RANGES && last <= u64::from(u32::MAX) {
            self.distances[i] = ((self.largest - range.first).min(u64::from(u32::MAX)) as u32, last as u32);
            self.range_count += 1;
        }
    }

    /// Acknowledge all packets up to `largest`.
    pub(crate) fn claim_all_up_to(&mut self, largest: PacketNumber) {
        self.largest = largest;
        self.range_count = 0;
        self.push_range(AckRange { first: 0, last: largest });
    }

    /// Return the number of ranges.
    #[must_use]
    #[inline]
    pub const fn range_count(&self) -> usize {
        self.range_count as usize
    }

    /// Return range `i`: the one of `trigger` first if it is below others, then from the newest on.
    #[must_use]
    #[inline]
    pub const fn range(&self, i: usize) -> AckRange {
        let (first, last) = self.distances[i];
        AckRange { first: self.largest - first as u64, last: self.largest - last as u64 }
    }
}

/// The fields of a packet that a link reads: the driver stores the rest under `id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The driver's handle.
    pub id: u64,
    /// The flow it belongs to, for flow queueing.
    pub flow: u32,
    /// Bytes from the IP header on.
    pub size: u32,
    /// ECN bits; a queue may set [`Ecn::Ce`].
    pub ecn: Ecn,
}
