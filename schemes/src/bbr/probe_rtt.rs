//! RTprop: the propagation delay is only visible when the queue is empty, so the flow empties its share of it every ten
//! seconds.

use ccgym_core::{TimeSpan, Timestamp};

/// The propagation estimate and its age.
#[derive(Clone, Copy, Debug)]
pub struct RtProp {
    value: TimeSpan,
    stamp: Timestamp,
}

impl RtProp {
    /// Nothing measured; ages from `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { value: TimeSpan::MAX, stamp: now }
    }

    /// The estimate; [`TimeSpan::MAX`] before the first sample.
    #[inline]
    pub const fn get(&self) -> TimeSpan {
        self.value
    }

    /// Whether a sample was taken.
    #[inline]
    pub const fn is_known(&self) -> bool {
        self.value.0 != TimeSpan::MAX.0
    }

    /// Take a sample and say whether the estimate was older than `interval` before it. Only a strictly lower sample
    /// renews the estimate in time (an equal one would suppress PROBE_RTT forever on a noise-free path); an expired
    /// estimate takes any sample that did not wait at the receiver.
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

    /// PROBE_RTT has just looked: the estimate is fresh.
    pub const fn renew(&mut self, now: Timestamp) {
        self.stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(v: u64) -> TimeSpan {
        TimeSpan::from_millis(v)
    }
    const fn at(v: u64) -> Timestamp {
        Timestamp::from_millis(v)
    }

    #[test]
    fn rtprop_rules() {
        let interval = ms(10_000);
        // (time, sample, delayed) after a first sample of 40 ms at 100 ms → (expired, estimate, stamp)
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
            let mut rtprop = RtProp::new(Timestamp::ZERO);
            assert!(!rtprop.is_known());
            rtprop.update(at(100), Some(ms(40)), false, interval);
            let expired = rtprop.update(at(now), sample.map(ms), delayed, interval);
            assert_eq!((expired, rtprop.get(), rtprop.stamp), (expected.0, ms(expected.1), at(expected.2)), "{name}");
        }
    }
}
