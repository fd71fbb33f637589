//! The bottleneck bandwidth: the max delivery rate of a window, and the BDP.

use ccgym_core::rate_sampler::RateSample;
use ccgym_core::units::{float, whole};
use ccgym_core::{Rate, TimeSpan};

use crate::filters::max_of_rounds::MaxOfRounds;

/// Return the rate of one sample. Floating point, since a 128-bit division per acknowledgement would be slow.
#[inline]
pub fn delivery_rate(sample: &RateSample) -> Rate {
    Rate(whole(float(sample.delivered) * 8e9 / float(sample.interval.0.max(1))))
}

/// Return `gain` BDPs of `bandwidth` and `rtt`, bytes.
#[inline]
pub fn product(bandwidth: Rate, rtt: TimeSpan, gain: f64) -> f64 {
    float(bandwidth.0) * float(rtt.0) / 8e9 * gain
}

/// The filter. The caller chooses the unit of time.
#[derive(Clone, Copy, Debug)]
pub struct MaxBandwidth(MaxOfRounds);

impl MaxBandwidth {
    /// Make a filter in which a sample counts while its age is at most `window`.
    pub const fn new(window: u64) -> Self {
        Self(MaxOfRounds::new(window))
    }

    #[inline]
    pub const fn get(&self) -> Rate {
        Rate(self.0.get())
    }

    /// Add a sample. A `limited` one is a lower bound: it counts only if it exceeds the max.
    #[inline]
    pub fn update(&mut self, now: u64, rate: Rate, limited: bool) {
        if rate > Rate::ZERO && (!limited || rate >= self.get()) {
            self.0.update(now, rate.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_samples_raise_but_never_lower() {
        let mut filter = MaxBandwidth::new(2);
        // Time, rate, whether limited, the maximum after it.
        for (now, rate, limited, expected) in
            [(0, 50, false, 50), (1, 60, true, 60), (9, 40, true, 60), (9, 0, false, 60), (9, 40, false, 40)]
        {
            filter.update(now, Rate(rate), limited);
            assert_eq!(filter.get(), Rate(expected), "{now} {rate}");
        }
    }

    #[test]
    fn products() {
        // 12 Mbit/s and 40 ms are 60 000 bytes.
        assert_eq!(product(Rate::from_mbps(12.0), TimeSpan::from_millis(40), 0.5), 30_000.0);
    }
}
