//! Loss detection: packet threshold, time threshold, and tolerance for reordering.
//!
//! A *hole* is a packet below the largest acknowledged one whose own acknowledgement is missing. Without loss there are
//! no holes and this costs nothing. A hole is declared lost when enough later packets were acknowledged (RFC 9002
//! §6.1.1, RFC 6675 `DupThresh`), or when it is older than an RTT plus a reordering window (RFC 9002 §6.1.2, RFC 8985).
//! With [`LossConfig::rack`], once recovery has begun and no reordering was ever detected, a hole is lost as soon as it
//! appears (RFC 8985 §6.2, step 4).

use std::collections::VecDeque;

use crate::packet::PacketNumber;
use crate::units::{TimeSpan, Timestamp};

/// Parameters of loss detection.
#[derive(Clone, Copy, Debug)]
pub struct LossConfig {
    /// Number of later packets acknowledged before a hole is lost (3).
    pub packet_threshold: u64,
    /// True if holes that appear during recovery are lost at once until reordering was detected.
    pub rack: bool,
    /// Reordering window as a fraction of max(sRTT, latest RTT), numerator and denominator (1/8 in RFC 9002, 1/4 in RFC
    /// 8985); a zero numerator turns the time threshold off.
    pub reordering_window: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    number: PacketNumber,
    sent: Timestamp,
    /// Number of packets acknowledged when the hole appeared.
    acked_before: u64,
}

/// Loss detector of one flow.
#[derive(Clone, Debug)]
pub struct LossDetector {
    config: LossConfig,
    holes: VecDeque<Hole>,
    acked: u64,
    threshold: u64,
    reordering_seen: bool,
}

/// Max degree of reordering; beyond it packets count as lost (Linux `tcp_max_reordering`).
const MAX_THRESHOLD: u64 = 300;

impl LossDetector {
    /// Make a detector without holes.
    pub fn new(config: LossConfig) -> Self {
        Self { config, holes: VecDeque::new(), acked: 0, threshold: config.packet_threshold, reordering_seen: false }
    }

    /// True if any hole is open.
    #[inline]
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Add a packet that the acknowledgements skipped. Call in order of packet numbers.
    pub fn on_hole(&mut self, number: PacketNumber, sent: Timestamp) {
        self.holes.push_back(Hole { number, sent, acked_before: self.acked });
    }

    /// Count `count` newly acknowledged packets.
    #[inline]
    pub fn on_acked(&mut self, count: u64) {
        self.acked += count;
    }

    /// Close a hole whose packet arrived: packets were reordered, by the number that arrived before it.
    pub fn on_hole_filled(&mut self, number: PacketNumber) {
        if let Some(i) = self.holes.iter().position(|h| h.number == number) {
            if let Some(hole) = self.holes.remove(i) {
                self.saw_reordering(self.acked - hole.acked_before);
            }
        }
    }

    /// Note that a packet declared lost arrived, `distance` packets late.
    pub fn saw_reordering(&mut self, distance: u64) {
        self.reordering_seen = true;
        self.threshold = self.threshold.max(distance + 1).min(MAX_THRESHOLD);
    }

    /// Return the next hole that is lost at `now`, oldest first.
    pub fn next_lost(&mut self, now: Timestamp, rtt: TimeSpan, in_recovery: bool) -> Option<PacketNumber> {
        let hole = *self.holes.front()?;
        let immediate = self.config.rack && in_recovery && !self.reordering_seen;
        let by_count = self.acked - hole.acked_before >= self.threshold || immediate;
        if !by_count && self.due(&hole, rtt) > now {
            return None;
        }
        self.holes.pop_front();
        Some(hole.number)
    }

    /// Return the oldest hole.
    pub fn oldest(&self) -> Option<PacketNumber> {
        self.holes.front().map(|hole| hole.number)
    }

    /// Remove the oldest hole, which another rule declared lost.
    pub fn take_oldest(&mut self) {
        self.holes.pop_front();
    }

    /// Return when the oldest hole becomes lost by time.
    #[inline]
    pub fn next_timeout(&self, rtt: TimeSpan) -> Timestamp {
        self.holes.front().map_or(Timestamp::NEVER, |h| self.due(h, rtt))
    }

    /// Remove all holes after a timeout.
    pub fn clear(&mut self) {
        self.holes.clear();
    }

    fn due(&self, hole: &Hole, rtt: TimeSpan) -> Timestamp {
        let (num, den) = self.config.reordering_window;
        if num == 0 {
            return Timestamp::NEVER;
        }
        // RFC 9002 §6.1.2: granularity 1 ms.
        let delay = (rtt.0 + rtt.mul_ratio(num, den).0).max(1_000_000);
        Timestamp(hole.sent.0.saturating_add(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeSpan = TimeSpan::from_millis(100);

    fn detector(rack: bool) -> LossDetector {
        LossDetector::new(LossConfig { packet_threshold: 3, rack, reordering_window: (1, 8) })
    }

    #[test]
    fn three_later_packets_or_nine_eighths_of_a_round_trip() {
        let mut d = detector(false);
        d.on_hole(5, Timestamp::ZERO);
        d.on_acked(2);
        assert_eq!(d.next_lost(Timestamp::from_millis(112), RTT, false), None);
        assert_eq!(d.next_timeout(RTT), Timestamp(112_500_000));
        let mut by_time = d.clone();
        assert_eq!(by_time.next_lost(Timestamp(112_500_000), RTT, false), Some(5));
        d.on_acked(1);
        assert_eq!(d.next_lost(Timestamp::from_millis(1), RTT, false), Some(5));
        assert!(!d.has_holes());
    }

    #[test]
    fn rack_is_immediate_in_recovery_until_reordering() {
        let mut d = detector(true);
        d.on_hole(5, Timestamp::ZERO);
        assert_eq!(d.next_lost(Timestamp(1), RTT, true), Some(5));
        d.saw_reordering(4);
        d.on_hole(8, Timestamp::ZERO);
        d.on_acked(4);
        assert_eq!(d.next_lost(Timestamp(1), RTT, true), None, "five are needed after a reordering of four");
        d.on_acked(1);
        assert_eq!(d.next_lost(Timestamp(1), RTT, true), Some(8));
    }

    #[test]
    fn a_filled_hole_raises_the_threshold() {
        let mut d = detector(false);
        d.on_hole(1, Timestamp::ZERO);
        d.on_acked(2);
        d.on_hole_filled(1);
        assert!(!d.has_holes());
        d.on_hole(9, Timestamp::ZERO);
        d.on_acked(3);
        assert!(d.next_lost(Timestamp(1), RTT, false).is_some());
    }

    #[test]
    fn a_reordering_beyond_the_maximum_is_loss() {
        let mut d = detector(false);
        d.saw_reordering(1000);
        d.on_hole(1, Timestamp::ZERO);
        d.on_acked(MAX_THRESHOLD);
        assert_eq!(d.next_lost(Timestamp(1), RTT, false), Some(1));
    }

    #[test]
    fn a_hole_waits_for_a_millisecond_on_a_short_path() {
        let mut d = detector(false);
        d.on_hole(1, Timestamp::ZERO);
        assert_eq!(d.next_timeout(TimeSpan::from_micros(100)), Timestamp::from_millis(1));
    }
}
