//! The share of marked packets, once per round trip, smoothed: DCTCP's α (RFC 8257 §3.3).

use ccgym_core::{AckEvent, PacketNumber, TimeSpan, Timestamp};

/// α, and the current observation window.
#[derive(Clone, Copy, Debug)]
pub struct MarkedShare {
    /// Weight of the latest window.
    gain: f64,
    /// α, from 0 to 1.
    pub share: f64,
    acked: u64,
    marked: u64,
    /// Packet number whose acknowledgement ends the window.
    end: PacketNumber,
    /// Min end of the window.
    until: Timestamp,
}

impl MarkedShare {
    /// Start with α at `share`.
    pub fn new(gain: f64, share: f64) -> Self {
        Self { gain, share, acked: 0, marked: 0, end: 0, until: Timestamp::ZERO }
    }

    /// Add an acknowledgement. Returns true if it ends a window; the next one lasts `min` at least.
    #[inline]
    pub fn observe(&mut self, event: &AckEvent<'_>, min: TimeSpan) -> bool {
        self.acked += event.acked_packets;
        self.marked += event.ce_packets;
        if event.largest_acked < self.end || event.now < self.until || self.acked == 0 {
            return false;
        }
        // A duplicate may carry a second mark.
        let latest = (self.marked as f64 / self.acked as f64).min(1.0);
        self.share += self.gain * (latest - self.share);
        self.acked = 0;
        self.marked = 0;
        self.end = event.next_packet_number;
        self.until = event.now + min;
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::acknowledgement;
    use ccgym_core::RttEstimator;

    use super::*;

    /// Acknowledge packets up to `largest` at `ms`, `marked` of them with a mark; `next` is sent next.
    fn observe(
        of: &mut MarkedShare,
        ms: u64,
        (acked, marked): (u64, u64),
        largest: u64,
        next: u64,
        min_ms: u64,
    ) -> bool {
        let (now, rtt) = (Timestamp::from_millis(ms), RttEstimator::default());
        let event = AckEvent {
            largest_acked: largest,
            next_packet_number: next,
            ce_packets: marked,
            ..acknowledgement(now, acked, &rtt)
        };
        of.observe(&event, TimeSpan::from_millis(min_ms))
    }

    /// Equation 1: α ← (1 − g)·α + g·M.
    #[test]
    fn share_follows_the_equation() {
        let mut of = MarkedShare::new(1.0 / 16.0, 1.0);
        // The first window ends with the first acknowledgement, the next one with that of packet 10.
        assert!(observe(&mut of, 10, (1, 0), 0, 10, 0));
        assert_eq!(of.share, 15.0 / 16.0);
        assert!(!observe(&mut of, 20, (4, 1), 4, 14, 0));
        assert!(!observe(&mut of, 21, (5, 3), 9, 19, 0));
        assert!(observe(&mut of, 22, (1, 1), 10, 20, 0));
        assert!((of.share - (15.0 / 16.0 * 15.0 / 16.0 + 0.5 / 16.0)).abs() < 1e-12, "{}", of.share);
        // The share is at most 1.
        assert!(observe(&mut of, 30, (10, 12), 20, 30, 0));
        assert!((of.share - (0.910_156_25 * 15.0 / 16.0 + 1.0 / 16.0)).abs() < 1e-12, "{}", of.share);
    }

    #[test]
    fn a_window_lasts_as_long_as_asked_for() {
        let mut of = MarkedShare::new(0.5, 0.0);
        let ended = [10, 12, 34, 35, 60].map(|ms| observe(&mut of, ms, (2, 1), ms, ms + 1, 25));
        assert_eq!(ended, [true, false, false, true, true]);
        assert_eq!(of.share, 0.5 * (1.0 - 0.125));
    }
}
