//! RTT filters of Copa: propagation delay, standing RTT, and its variation.

use ccgym_core::{TimeSpan, Timestamp};

use super::NOMINAL_RTT;
use crate::filters::windowed::{WindowedMax, WindowedMin};

/// Min length of the filter for the propagation delay (Copa §2.2).
const MIN_WINDOW: TimeSpan = TimeSpan::from_millis(10_000);
/// Round trips over which the variation is measured (Copa §2.2).
const SWING_ROUNDS: u64 = 4;
/// Part of the variation below which the queue counts as nearly empty, 1/10 (Copa §2.2).
const NEARLY_EMPTY: u64 = 10;
/// Bottom part of the variation, 1/4 (ours).
const BOTTOM_OF_SWING: u64 = 4;
/// Own packets in the queue below which they count as one packet (ours).
const OWN_PACKETS: f64 = 1.5;

/// Round-trip filters of one flow. Nanoseconds inside.
#[derive(Clone, Debug)]
pub struct RttWindow {
    /// Weight of a new sample in the smoothed value, as 1/2^shift.
    shift: u32,
    /// Min length of the filter for the minimum, in minima.
    min_rounds: u64,
    /// Zero before the first sample.
    pub smoothed: TimeSpan,
    pub latest: TimeSpan,
    /// Propagation RTT.
    pub min: TimeSpan,
    /// RTT without jitter of acknowledgements: the min over half a smoothed RTT.
    pub standing: TimeSpan,
    swing_min: u64,
    swing_max: u64,
    min_filter: WindowedMin,
    standing_filter: WindowedMin,
    swing_min_filter: WindowedMin,
    swing_max_filter: WindowedMax,
}

impl RttWindow {
    /// Make filters without a sample.
    pub fn new(shift: u32, min_rounds: u64) -> Self {
        Self {
            shift,
            min_rounds,
            smoothed: TimeSpan::ZERO,
            latest: TimeSpan::ZERO,
            min: TimeSpan::ZERO,
            standing: TimeSpan::ZERO,
            swing_min: 0,
            swing_max: 0,
            min_filter: WindowedMin::default(),
            standing_filter: WindowedMin::default(),
            swing_min_filter: WindowedMin::default(),
            swing_max_filter: WindowedMax::default(),
        }
    }

    #[inline]
    pub fn update(&mut self, now: Timestamp, sample: TimeSpan) {
        let rtt = sample.0.max(1);
        self.latest = TimeSpan(rtt);
        let smoothed = if self.is_known() {
            self.smoothed.0 - (self.smoothed.0 >> self.shift) + (rtt >> self.shift)
        } else {
            self.min = self.latest;
            rtt
        };
        self.smoothed = TimeSpan(smoothed);
        let window = MIN_WINDOW.max(TimeSpan(self.min.0 * self.min_rounds));
        self.min = TimeSpan(self.min_filter.update(now, rtt, window));
        self.standing = TimeSpan(self.standing_filter.update(now, rtt, TimeSpan(smoothed / 2)));
        let swing = TimeSpan(smoothed * SWING_ROUNDS);
        self.swing_min = self.swing_min_filter.update(now, rtt, swing);
        self.swing_max = self.swing_max_filter.update(now, rtt, swing);
    }

    /// True after the first sample.
    #[inline]
    pub const fn is_known(&self) -> bool {
        self.smoothed.0 != 0
    }
    /// Return the RTT to pace by: the standing one, 1 ms before the first sample.
    #[inline]
    pub const fn pacing_basis(&self) -> TimeSpan {
        if self.is_known() {
            self.standing
        } else {
            NOMINAL_RTT
        }
    }
    /// Return the queueing delay d_q.
    #[inline]
    pub const fn queueing(&self) -> TimeSpan {
        TimeSpan(self.standing.0.saturating_sub(self.min.0))
    }
    /// True if the queue is nearly empty now: d_q is below a tenth of the variation, or zero.
    ///
    /// Packets are whole: around δ = 0.5 a tenth of the variation is half a packet, and a flow alone would miss an
    /// empty queue every few cycles. So one own packet in the queue (`window`·d_q/RTT, rounded) counts as empty, too,
    /// but only near the bottom of the variation: a flow that others starve has no more than one either.
    #[inline]
    pub fn nearly_empty(&self, window: f64) -> bool {
        if below_tenth(self.standing.0, self.min.0, self.swing_max) {
            return true;
        }
        let queueing = self.queueing().0;
        queueing * BOTTOM_OF_SWING <= self.swing_max.saturating_sub(self.min.0)
            && queueing as f64 * window < OWN_PACKETS * self.standing.0 as f64
    }
    /// True if the queue was nearly empty within the last four smoothed RTTs.
    #[inline]
    pub const fn was_nearly_empty(&self) -> bool {
        below_tenth(self.swing_min, self.min.0, self.swing_max)
    }
}

const fn below_tenth(rtt: u64, min: u64, max: u64) -> bool {
    let (excess, swing) = (rtt.saturating_sub(min), max.saturating_sub(min));
    excess == 0 || excess * NEARLY_EMPTY < swing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: &[(u64, u64)]) -> RttWindow {
        let mut w = RttWindow::new(3, 0);
        for &(at, rtt) in samples {
            w.update(Timestamp::from_millis(at), TimeSpan::from_millis(rtt));
        }
        w
    }

    #[test]
    fn standing_is_the_minimum_of_half_a_round_trip() {
        let w = after(&[(0, 40), (10, 48), (15, 44)]);
        assert_eq!((w.min, w.standing), (TimeSpan::from_millis(40), TimeSpan::from_millis(40)));
        // The 40 of time 0 leaves the filter of about 20 ms.
        let w = after(&[(0, 40), (10, 48), (15, 44), (25, 50)]);
        assert_eq!(w.standing, TimeSpan::from_millis(44));
        assert_eq!(w.queueing(), TimeSpan::from_millis(4));
    }

    #[test]
    fn propagation_is_the_minimum_of_ten_seconds() {
        assert_eq!(after(&[(0, 40), (9_000, 50), (10_000, 60)]).min, TimeSpan::from_millis(40));
        assert_eq!(after(&[(0, 40), (9_000, 50), (10_001, 60)]).min, TimeSpan::from_millis(50));
    }

    #[test]
    fn nearly_empty_is_a_tenth_of_the_variation() {
        for (rtt, min, max, expected) in [
            (40, 40, 40, true),  // no queue at all
            (41, 40, 60, true),  // 1 of 20
            (42, 40, 60, false), // 2 of 20 is not below
            (40, 40, 60, true),
            (60, 40, 60, false),
        ] {
            assert_eq!(below_tenth(rtt, min, max), expected, "{rtt} {min} {max}");
        }
    }

    #[test]
    fn one_own_packet_counts_as_empty_near_the_bottom() {
        // Milliseconds: standing RTT, min, max; packets: window.
        for (standing, max, window, expected) in [
            (42, 46, 42.0, true),  // one packet of 42 at 1 ms each
            (43, 46, 42.0, false), // two
            (42, 44, 42.0, false), // one, but a third of the swing
            (80, 82, 3.0, false),  // starved by others: 1.5 packets, far from the bottom
        ] {
            let mut w = RttWindow::new(3, 0);
            let span = TimeSpan::from_millis;
            (w.standing, w.min, w.swing_max) = (span(standing), span(41), span(max).0);
            assert_eq!(w.nearly_empty(window), expected, "{standing} {max} {window}");
        }
    }

    #[test]
    fn weights() {
        let mut w = RttWindow::new(4, 20);
        w.update(Timestamp::ZERO, TimeSpan(1600));
        w.update(Timestamp(1), TimeSpan(3200));
        assert_eq!(w.smoothed, TimeSpan(1700));
    }
}
