//! A min RTT with an age, after which the flow must measure again.

use ccgym_core::{TimeSpan, Timestamp};

/// The minimum and its age.
#[derive(Clone, Copy, Debug)]
pub struct AgedMin {
    value: TimeSpan,
    stamp: Timestamp,
}

impl AgedMin {
    /// Make a filter without a sample; ages count from `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { value: TimeSpan::MAX, stamp: now }
    }

    /// Return the min; [`TimeSpan::MAX`] before the first sample.
    #[inline]
    pub const fn get(&self) -> TimeSpan {
        self.value
    }

    /// Return the time of its sample or renewal.
    #[inline]
    pub const fn stamp(&self) -> Timestamp {
        self.stamp
    }

    /// True after the first sample.
    #[inline]
    pub const fn is_known(&self) -> bool {
        self.value.0 != TimeSpan::MAX.0
    }

    /// Add a sample; returns true if the min was older than `interval` before it. Only a strictly lower sample renews
    /// it in time (an equal one would suppress PROBE_RTT forever on a noise-free path); an expired min takes any sample
    /// that the receiver did not delay (`delayed`).
    #[inline]
    pub fn update(&mut self, now: Timestamp, sample: Option<TimeSpan>, delayed: bool, interval: TimeSpan) -> bool {
        let expired = now.since(self.stamp) > interval;
        if let Some(rtt) = sample {
            if rtt < self.value || (expired && !delayed) {
                self.value = rtt;
                self.stamp = now;
            }
        }
        expired
    }

    /// Restart the interval after a PROBE_RTT.
    pub const fn renew(&mut self, now: Timestamp) {
        self.stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn rules() {
        let interval = ms(10_000);
        // (time, sample, delayed) after a first sample of 40 ms at 100 ms → (expired, minimum, stamp)
        for (name, now, sample, delayed, expected) in [
            ("lower renews", 200, Some(39), false, (false, 39, 200)),
            ("lower renews even when delayed", 200, Some(39), true, (false, 39, 200)),
            ("equal does not renew", 200, Some(40), false, (false, 40, 100)),
            ("higher does not renew", 200, Some(41), false, (false, 40, 100)),
            ("ten seconds old is not yet expired", 10_100, Some(41), false, (false, 40, 100)),
            ("expired takes any sample", 10_101, Some(55), false, (true, 55, 10_101)),
            ("expired refuses a delayed one", 10_101, Some(55), true, (true, 40, 100)),
            ("expired without a sample", 10_101, None, false, (true, 40, 100)),
        ] {
            let mut min = AgedMin::new(Timestamp::ZERO);
            assert!(!min.is_known());
            min.update(Timestamp::from_millis(100), Some(ms(40)), false, interval);
            let expired = min.update(Timestamp::from_millis(now), sample.map(ms), delayed, interval);
            let stamp = min.stamp().as_millis();
            assert_eq!((expired, min.get(), stamp), (expected.0, ms(expected.1), expected.2), "{name}");
        }
    }
}
