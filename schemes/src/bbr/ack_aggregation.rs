//! Acknowledgement aggregation: the bytes acknowledged at once beyond the modeled bandwidth (Wi-Fi, cable, receive
//! offload). The window grows by them, so that the flow can send while it waits for the next batch.

use ccgym_core::{Rate, Timestamp};

use crate::bbr_model::ack_excess::AckExcess;

/// Each of the two halves of the maximum filter lasts this many rounds.
const HALF_WINDOW_ROUNDS: u32 = 5;
/// Max packets of an epoch.
const EPOCH_PACKETS: u64 = 0xF_FFFF;

/// The estimator. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct AckAggregation {
    epoch: AckExcess,
    /// Max excess of the current and of the previous half window.
    excess: [u64; 2],
    current: usize,
    rounds: u32,
}

impl AckAggregation {
    /// Make an estimator whose first epoch starts at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { epoch: AckExcess::new(now), excess: [0; 2], current: 0, rounds: 0 }
    }

    /// Return the max excess of the last five to ten rounds.
    #[inline]
    pub fn max_excess(&self) -> u64 {
        self.excess[0].max(self.excess[1])
    }

    /// Restart the epoch after idle time, in which nothing could be acknowledged.
    pub const fn restart_epoch(&mut self, now: Timestamp) {
        self.epoch.restart(now);
    }

    /// Add `acked` bytes acknowledged at `now`. The excess is at most `cwnd`, the max in flight.
    #[inline]
    pub fn on_ack(&mut self, now: Timestamp, acked: u64, bandwidth: Rate, cwnd: u64, mss: u64, round_start: bool) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= HALF_WINDOW_ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.excess[self.current] = 0;
            }
        }
        if self.epoch.acked() + acked >= EPOCH_PACKETS * mss {
            self.epoch.restart(now);
        }
        let excess = self.epoch.on_ack(now, acked, bandwidth).min(cwnd);
        let largest = &mut self.excess[self.current];
        *largest = excess.max(*largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1500;
    /// One packet per millisecond.
    const BANDWIDTH: Rate = Rate(12_000_000);

    #[test]
    fn smooth_acknowledgements_leave_one_packet() {
        let mut a = AckAggregation::new(Timestamp::ZERO);
        for ms in 1..100 {
            a.on_ack(Timestamp::from_millis(ms), MSS, BANDWIDTH, 80 * MSS, MSS, ms % 40 == 0);
        }
        assert_eq!(a.max_excess(), MSS);
    }

    #[test]
    fn batches_are_measured() {
        let mut a = AckAggregation::new(Timestamp::ZERO);
        for ms in 1..200 {
            if ms % 20 == 0 {
                a.on_ack(Timestamp::from_millis(ms), 20 * MSS, BANDWIDTH, 80 * MSS, MSS, false);
            }
        }
        assert_eq!(a.max_excess(), 20 * MSS);
    }

    #[test]
    fn excess_is_bounded_by_the_window() {
        let mut a = AckAggregation::new(Timestamp::ZERO);
        a.on_ack(Timestamp::from_millis(1), 100 * MSS, BANDWIDTH, 30 * MSS, MSS, false);
        assert_eq!(a.max_excess(), 30 * MSS);
    }

    #[test]
    fn forgotten_after_two_half_windows() {
        let mut a = AckAggregation::new(Timestamp::ZERO);
        a.on_ack(Timestamp::from_millis(1), 20 * MSS, BANDWIDTH, 80 * MSS, MSS, false);
        let mut rounds = 0;
        while a.max_excess() > MSS {
            rounds += 1;
            a.on_ack(Timestamp::from_millis(1 + rounds * 40), MSS, BANDWIDTH, 80 * MSS, MSS, true);
        }
        assert!((5..=10).contains(&rounds), "{rounds}");
    }

    #[test]
    fn idle_time_adds_no_excess() {
        let mut a = AckAggregation::new(Timestamp::ZERO);
        a.restart_epoch(Timestamp::from_millis(500));
        a.on_ack(Timestamp::from_millis(540), 2 * MSS, BANDWIDTH, 80 * MSS, MSS, false);
        assert_eq!(a.max_excess(), 2 * MSS);
    }
}
