//! Loss recovery of TCP in ns-3.37, where it differs from the RFCs that it names.
//!
//! Scoreboard and reductions count payload bytes; the rest of the sender counts wire bytes, and [`payload_of`] and
//! [`wire_of`] convert windows without loss. Differences:
//!
//! - A segment is lost when three later ones were selectively acknowledged, and only once: a lost retransmission is
//!   detected by a timeout.
//! - Recovery begins with the third acknowledgement that brings selective news, or when two of the oldest segments are
//!   known to be lost, not with the loss itself. So losses within a recovery may begin another one after it.
//! - When recovery begins, and when a partial acknowledgement uncovers a segment that was not sent again, one segment
//!   leaves regardless of the window.
//! - A retransmission counts as in flight until all segments before it have arrived, too.
//! - In recovery, with nothing lost to send again and no new data, the oldest missing segment is sent again.
//! - Its proportional rate reduction is not RFC 6937's: see `Reduction`.

use std::collections::{BTreeMap, BTreeSet};

use crate::packet::PacketNumber;

/// Header bytes of its segments: IPv4, TCP, timestamps.
pub const HEADER: u64 = 52;
/// Number of later segments that must have arrived before one is lost, and of acknowledgements before recovery begins.
const THRESHOLD: usize = 3;

/// Convert a window in wire bytes of packets of `mss` to payload bytes.
#[must_use]
pub const fn payload_of(wire: u64, mss: u64) -> u64 {
    ((wire as u128 * (mss - HEADER) as u128).div_ceil(mss as u128)) as u64
}

/// Convert a window in payload bytes to wire bytes of packets of `mss`. The same number of whole packets fits.
#[must_use]
pub const fn wire_of(payload: u64, mss: u64) -> u64 {
    (payload as u128 * mss as u128 / (mss - HEADER) as u128) as u64
}

/// Proportional rate reduction of ns-3.37, in payload bytes. RFC 6937 divides by the bytes in flight; ns-3 by all that
/// are not acknowledged. Below the target it allows as much as the current acknowledgement delivered, without catching
/// up, unless a retransmission was acknowledged. All numbers have 32 bits, and its product overflows.
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    /// Bytes not acknowledged when recovery began.
    unacknowledged: u32,
    delivered: u32,
    out: u32,
    allowance: u32,
}

impl Reduction {
    fn begin(unacknowledged: u64) -> Self {
        Self { unacknowledged: (unacknowledged as u32).max(1), ..Self::default() }
    }

    fn on_ack(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, segment: u64, resent_acked: bool) {
        let [delivered, in_flight, ssthresh, segment] = [delivered, in_flight, ssthresh, segment].map(|v| v as u32);
        self.delivered = self.delivered.wrapping_add(delivered);
        let quota = if in_flight > ssthresh {
            let product = f64::from(self.delivered.wrapping_mul(ssthresh));
            (product / f64::from(self.unacknowledged)).ceil() as i64 - i64::from(self.out)
        } else {
            let room = ssthresh - in_flight;
            let limit = if resent_acked {
                self.delivered.wrapping_sub(self.out).max(delivered).wrapping_add(segment)
            } else {
                delivered
            };
            i64::from(room as i32).min(i64::from(limit as i32))
        };
        let least = if self.out > 0 { 0 } else { i64::from(segment) };
        self.allowance = quota.max(least) as u32;
    }

    fn on_sent(&mut self, payload: u32) {
        self.out = self.out.wrapping_add(payload);
        self.allowance = self.allowance.saturating_sub(payload);
    }
}

/// News of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    /// Segments that arrived for the first time.
    pub segments: u64,
    /// The highest of them.
    pub highest: u64,
    /// The lowest missing segment before …
    pub before: u64,
    /// … and now.
    pub now: u64,
}

impl Arrivals {
    /// True if it brought selective news: a segment above a missing one.
    fn is_duplicate(&self) -> bool {
        self.segments > 0 && self.highest >= self.now
    }
}

/// A retransmission of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Retransmission {
    pub number: PacketNumber,
    /// Wire bytes.
    pub bytes: u64,
}

/// State of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ns3 {
    /// The highest segments that arrived while some were missing, in ascending order.
    highest: [u64; THRESHOLD],
    /// Acknowledgements with selective news since the last one without; zero in recovery.
    duplicates: usize,
    /// Segments that were sent again, above or at the first missing one.
    resent: BTreeMap<u64, Retransmission>,
    /// Missing segments that are lost.
    lost: BTreeSet<u64>,
    reduction: Reduction,
    /// Number of segments that leave regardless of the window.
    forced: u32,
    /// True if a partial acknowledgement has restarted the timer in this recovery.
    restarted: bool,
}

impl Ns3 {
    /// Add a segment that arrived for the first time.
    pub(crate) fn on_arrival(&mut self, segment: u64) {
        let place = self.highest.partition_point(|&other| other < segment);
        if place > 0 && self.highest.get(place) != Some(&segment) {
            self.highest.copy_within(1..place, 0);
            self.highest[place - 1] = segment;
        }
        self.lost.remove(&segment);
    }

    /// Remove retransmissions that cease to count as in flight, since all below `first_missing` has arrived.
    pub(crate) fn settle(&mut self, first_missing: u64) -> impl Iterator<Item = Retransmission> + use<> {
        self.lost = self.lost.split_off(&first_missing);
        let above = self.resent.split_off(&first_missing);
        std::mem::replace(&mut self.resent, above).into_values()
    }

    /// Return the number below which segments that have not arrived are lost.
    pub(crate) const fn lost_below(&self) -> u64 {
        self.highest[0]
    }

    pub(crate) fn on_lost(&mut self, segment: u64) {
        self.lost.insert(segment);
    }

    pub(crate) fn on_resent(&mut self, segment: u64, retransmission: Retransmission) {
        self.resent.insert(segment, retransmission);
    }

    pub(crate) fn is_resent(&self, segment: u64) -> bool {
        self.resent.contains_key(&segment)
    }

    /// True if any retransmission still counts as in flight.
    pub(crate) fn has_resent(&self) -> bool {
        !self.resent.is_empty()
    }

    pub(crate) fn is_retransmission(&self, segment: u64, number: PacketNumber) -> bool {
        self.resent.get(&segment).is_some_and(|resent| resent.number == number)
    }

    /// Process an acknowledgement outside of recovery; returns true if recovery begins.
    pub(crate) fn begins_recovery(&mut self, arrivals: &Arrivals, arrived: impl Fn(u64) -> bool) -> bool {
        if !arrivals.is_duplicate() {
            if arrivals.now > arrivals.before {
                self.duplicates = 0;
            }
            return false;
        }
        self.duplicates += 1;
        // Of the known lost or arrived segments above the first missing one, the first is lost.
        let second = arrivals.now + 1;
        let lost = self.lost.range(second..).next();
        let second_lost = lost.is_some_and(|&lost| !(second..lost).any(arrived));
        self.duplicates == THRESHOLD || second_lost
    }

    /// True if an acknowledgement outside of recovery lets the window grow: none with selective news does.
    pub(crate) fn grows(&self) -> bool {
        self.duplicates == 0
    }

    /// Begin recovery with `unacknowledged` payload bytes.
    pub(crate) fn begin_recovery(&mut self, unacknowledged: u64) {
        self.reduction = Reduction::begin(unacknowledged);
        self.forced = 1;
        self.restarted = false;
    }

    pub(crate) fn end_recovery(&mut self) {
        self.duplicates = 0;
        self.forced = 0;
    }

    /// Process a retransmission timeout: nothing is in flight any more, not even retransmissions.
    pub(crate) fn on_timeout(&mut self) -> impl Iterator<Item = Retransmission> + use<> {
        self.duplicates = 0;
        self.forced = 0;
        std::mem::take(&mut self.resent).into_values()
    }

    /// True if an acknowledgement that advances restarts the retransmission timer: only the first partial one does.
    pub(crate) fn restarts_timer(&mut self, partial: bool) -> bool {
        !(partial && std::mem::replace(&mut self.restarted, true))
    }

    /// Process an acknowledgement within recovery. Window, flight and target are payload bytes.
    pub(crate) fn reduce(
        &mut self,
        arrivals: &Arrivals,
        began: bool,
        resent_acked: bool,
        in_flight: u64,
        ssthresh: u64,
        segment: u64,
    ) {
        let partial = arrivals.now > arrivals.before;
        // One that brings selective news and advances counts twice.
        let times = u32::from(began || arrivals.is_duplicate()) + u32::from(partial && !began);
        for _ in 0..times {
            self.reduction.on_ack(arrivals.segments * segment, in_flight, ssthresh, segment, resent_acked);
        }
        if partial && !began && !self.is_resent(arrivals.now) {
            self.forced += 1;
        }
    }

    /// Return the payload bytes that the reduction allows.
    pub(crate) const fn allowance(&self) -> u64 {
        self.reduction.allowance as u64
    }

    /// True if the next segment leaves regardless of the window.
    pub(crate) const fn is_forced(&self) -> bool {
        self.forced > 0
    }

    /// Process a segment of `payload` bytes that leaves in recovery.
    pub(crate) fn on_sent(&mut self, payload: u64) {
        self.forced = self.forced.saturating_sub(1);
        self.reduction.on_sent(payload as u32);
    }

    /// Return the approximate bytes of memory in use.
    pub(crate) fn held_bytes(&self) -> usize {
        let nodes = self.resent.len() + self.lost.len();
        std::mem::size_of::<Self>() + nodes * std::mem::size_of::<(u64, Retransmission)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1448;
    const MSS: u64 = SEGMENT + HEADER;

    #[test]
    fn windows_convert_both_ways() {
        for payload in (0..200_000).step_by(7) {
            let wire = wire_of(payload, MSS);
            assert_eq!(payload_of(wire, MSS), payload);
            assert_eq!(wire / MSS, payload / SEGMENT, "as many whole packets fit");
        }
    }

    /// 40 segments not acknowledged, target 20, always above it: one leaves for two delivered.
    #[test]
    fn half_the_rate_above_the_target() {
        let mut reduction = Reduction::begin(40 * SEGMENT);
        let mut out = 0;
        for acked in 1..20 {
            reduction.on_ack(SEGMENT, (40 - acked) * SEGMENT, 20 * SEGMENT, SEGMENT, false);
            while u64::from(reduction.allowance) >= SEGMENT {
                reduction.on_sent(SEGMENT as u32);
                out += 1;
            }
            assert_eq!(out, (acked / 2).max(1), "the first leaves at once");
        }
    }

    /// 2³² bytes² are 74 KB delivered at a target of 57 KB: the product wraps to zero, and nothing leaves.
    #[test]
    fn the_product_overflows() {
        let target = 40 * SEGMENT;
        let fits = u64::from(u32::MAX) / target / SEGMENT;
        let allowed = |delivered: u64| {
            let mut reduction = Reduction::begin(80 * SEGMENT);
            reduction.on_ack(delivered * SEGMENT, 60 * SEGMENT, target, SEGMENT, false);
            reduction.allowance / SEGMENT as u32
        };
        assert_eq!((fits, allowed(fits), allowed(fits + 1)), (51, 25, 1));
    }

    /// Six segments below the target.
    #[test]
    fn below_the_target_it_catches_up_with_a_retransmission_alone() {
        let allowed = |resent_acked: bool| {
            let mut reduction = Reduction::begin(20 * SEGMENT);
            reduction.on_ack(SEGMENT, 4 * SEGMENT, 10 * SEGMENT, SEGMENT, false);
            reduction.on_sent(SEGMENT as u32);
            for _ in 0..3 {
                reduction.on_ack(SEGMENT, 4 * SEGMENT, 10 * SEGMENT, SEGMENT, false);
            }
            reduction.on_ack(SEGMENT, 4 * SEGMENT, 10 * SEGMENT, SEGMENT, resent_acked);
            u64::from(reduction.allowance) / SEGMENT
        };
        assert_eq!((allowed(false), allowed(true)), (1, 5), "delivered 5, out 1, and one more");
        // With more out than delivered the difference wraps around: nothing leaves.
        let mut reduction = Reduction::begin(20 * SEGMENT);
        reduction.on_ack(SEGMENT, 4 * SEGMENT, 10 * SEGMENT, SEGMENT, false);
        reduction.on_sent(3 * SEGMENT as u32);
        reduction.on_ack(SEGMENT, 4 * SEGMENT, 10 * SEGMENT, SEGMENT, true);
        assert_eq!(reduction.allowance, 0);
    }

    #[test]
    fn three_later_segments_make_a_loss() {
        let mut ns3 = Ns3::default();
        for (segment, lost_below) in [(4, 0), (9, 0), (7, 4), (5, 5), (6, 6), (3, 6)] {
            ns3.on_arrival(segment);
            assert_eq!(ns3.lost_below(), lost_below, "after {segment}");
        }
    }

    fn news(highest: u64, now: u64) -> Arrivals {
        Arrivals { segments: 1, highest, before: now, now }
    }

    #[test]
    fn recovery_begins_with_the_third_duplicate_or_two_known_losses() {
        let mut ns3 = Ns3::default();
        let began = [11, 12, 13].map(|highest| ns3.begins_recovery(&news(highest, 10), |segment| segment > 10));
        assert_eq!(began, [false, false, true]);
        // An acknowledgement that only advances restarts the count.
        let mut ns3 = Ns3::default();
        assert!(!ns3.begins_recovery(&news(12, 10), |_| false));
        assert!(!ns3.grows());
        assert!(!ns3.begins_recovery(&Arrivals { segments: 1, highest: 10, before: 10, now: 13 }, |_| false));
        assert!(ns3.grows());
        assert!(!ns3.begins_recovery(&news(15, 13), |_| false));
        assert!(!ns3.begins_recovery(&news(16, 13), |_| false));
        // Losses known from before: the one after the first missing segment counts, unless one between has arrived.
        for (lost, arrived, begins) in [(&[13, 14][..], 15, true), (&[13, 15], 14, false), (&[13], 14, false)] {
            let mut ns3 = Ns3::default();
            lost.iter().for_each(|&segment| ns3.on_lost(segment));
            assert_eq!(ns3.begins_recovery(&news(20, 13), |segment| segment == arrived), begins, "{lost:?}");
        }
    }

    #[test]
    fn the_first_partial_acknowledgement_alone_restarts_the_timer() {
        let mut ns3 = Ns3::default();
        ns3.begin_recovery(10 * SEGMENT);
        assert_eq!([true, true, true, false].map(|partial| ns3.restarts_timer(partial)), [true, false, false, true]);
    }
}
