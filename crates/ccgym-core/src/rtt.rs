//! RTT estimation (RFC 6298 §2, RFC 9002 §5).

use crate::units::TimeSpan;

/// Smoothed RTT of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttEstimator {
    latest: TimeSpan,
    smoothed: TimeSpan,
    variation: TimeSpan,
    min: TimeSpan,
    samples: u64,
}

/// Assumed RTT before the first sample (RFC 9002 §6.2.2).
pub const INITIAL_RTT: TimeSpan = TimeSpan::from_millis(333);

impl Default for RttEstimator {
    fn default() -> Self {
        Self::assuming(INITIAL_RTT)
    }
}

impl RttEstimator {
    /// Start with this RTT before the first sample.
    #[must_use]
    pub const fn assuming(rtt: TimeSpan) -> Self {
        Self { latest: rtt, smoothed: rtt, variation: TimeSpan(rtt.0 / 2), min: TimeSpan::MAX, samples: 0 }
    }

    /// Add one sample. `ack_delay` is the delay at the receiver: it is subtracted from the smoothed value if the result
    /// is not below the min, and never from the min (RFC 9002 §5.3). TCP passes zero.
    #[inline]
    pub fn update(&mut self, sample: TimeSpan, ack_delay: TimeSpan) {
        self.latest = sample;
        if self.samples == 0 {
            self.samples = 1;
            self.min = sample;
            self.smoothed = sample;
            self.variation = TimeSpan(sample.0 / 2);
            return;
        }
        self.samples += 1;
        if sample < self.min {
            self.min = sample;
        }
        let adjusted =
            if sample.0 >= self.min.0.saturating_add(ack_delay.0) { sample.0 - ack_delay.0 } else { sample.0 };
        let deviation = self.smoothed.0.abs_diff(adjusted);
        self.variation = TimeSpan((3 * self.variation.0 + deviation) / 4);
        self.smoothed = TimeSpan((7 * self.smoothed.0 + adjusted) / 8);
    }

    /// Return the latest sample; before the first, the assumed RTT.
    #[must_use]
    #[inline]
    pub const fn latest(&self) -> TimeSpan {
        self.latest
    }
    /// Return sRTT; before the first sample, the assumed RTT.
    #[must_use]
    #[inline]
    pub const fn smoothed(&self) -> TimeSpan {
        self.smoothed
    }
    /// Return the mean deviation (RTTVAR).
    #[must_use]
    #[inline]
    pub const fn variation(&self) -> TimeSpan {
        self.variation
    }
    /// Return the min RTT since the flow started; [`TimeSpan::MAX`] before the first.
    #[must_use]
    #[inline]
    pub const fn min(&self) -> TimeSpan {
        self.min
    }
    /// Return the number of samples.
    #[must_use]
    #[inline]
    pub const fn samples(&self) -> u64 {
        self.samples
    }
    /// Return the retransmission timeout: sRTT + max(granularity, 4·RTTVAR), at least `floor` (RFC 6298 §2.3; Linux
    /// instead limits the variation term to at least 200 ms, by `variation_floor`).
    #[must_use]
    pub fn rto(&self, variation_floor: TimeSpan, floor: TimeSpan) -> TimeSpan {
        TimeSpan((self.smoothed.0 + (4 * self.variation.0).max(variation_floor.0)).max(floor.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(v: u64) -> TimeSpan {
        TimeSpan::from_millis(v)
    }

    #[test]
    fn first_sample_initializes() {
        let mut r = RttEstimator::default();
        assert_eq!(r.smoothed(), INITIAL_RTT);
        r.update(ms(100), TimeSpan::ZERO);
        assert_eq!((r.smoothed(), r.variation(), r.min(), r.latest()), (ms(100), ms(50), ms(100), ms(100)));
        assert_eq!(r.rto(ms(1), ms(1000)), ms(1000));
        assert_eq!(r.rto(ms(200), TimeSpan::ZERO), ms(300));
    }

    #[test]
    fn later_samples_smooth() {
        let mut r = RttEstimator::default();
        r.update(ms(100), TimeSpan::ZERO);
        r.update(ms(180), TimeSpan::ZERO);
        assert_eq!(r.smoothed(), ms(110));
        assert_eq!(r.variation(), TimeSpan(57_500_000));
        assert_eq!(r.min(), ms(100));
    }

    #[test]
    fn ack_delay_never_moves_the_minimum() {
        let mut r = RttEstimator::default();
        r.update(ms(100), TimeSpan::ZERO);
        r.update(ms(120), ms(20));
        assert_eq!(r.smoothed(), ms(100));
        // 110 less 20 ms would be below the min, so it is not subtracted (110 → (700+110)/8).
        r.update(ms(110), ms(20));
        assert_eq!(r.smoothed(), TimeSpan((7 * 100_000_000 + 110_000_000) / 8));
        assert_eq!(r.min(), ms(100));
    }
}
