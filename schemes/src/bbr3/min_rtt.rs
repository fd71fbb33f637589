//! The min RTT over ten seconds, and a second one over five seconds that starts PROBE_RTT (draft, "ProbeRTT Logic").

use ccgym_core::{TimeSpan, Timestamp};

use crate::filters::aged_min::AgedMin;

/// Both minima and their ages.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    value: TimeSpan,
    stamp: Timestamp,
    recent: AgedMin,
}

impl MinRtt {
    /// Make filters without a sample; ages count from `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { value: TimeSpan::MAX, stamp: now, recent: AgedMin::new(now) }
    }

    /// Take the handshake's RTT as the first estimate.
    pub const fn start(&mut self, now: Timestamp, rtt: TimeSpan) {
        self.value = rtt;
        self.stamp = now;
    }

    /// Return the estimate, if there is one.
    #[inline]
    pub const fn get(&self) -> Option<TimeSpan> {
        if self.value.0 == TimeSpan::MAX.0 {
            None
        } else {
            Some(self.value)
        }
    }

    /// Add a sample; returns true if the shorter filter's min was older than `interval`, so that PROBE_RTT is due.
    #[inline]
    pub fn update(&mut self, now: Timestamp, sample: Option<TimeSpan>, interval: TimeSpan, window: TimeSpan) -> bool {
        let due = self.recent.update(now, sample, false, interval);
        if self.recent.get() < self.value || now.since(self.stamp) > window {
            self.value = self.recent.get();
            self.stamp = self.recent.stamp();
        }
        due
    }

    /// Restart the interval after a PROBE_RTT.
    pub const fn renew(&mut self, now: Timestamp) {
        self.recent.renew(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn rules() {
        // After 40 ms at 100 ms: (time, sample) → (PROBE_RTT due, estimate).
        for (name, now, sample, due, estimate) in [
            ("lower renews", 200, Some(39), false, 39),
            ("higher does not", 200, Some(41), false, 40),
            ("five seconds old is not yet due", 5_100, Some(41), false, 40),
            ("due, but the estimate holds for ten", 5_101, Some(55), true, 40),
            ("due and lower", 5_101, Some(30), true, 30),
            ("no sample", 5_101, None, true, 40),
            ("expired takes the recent minimum", 10_101, Some(55), true, 55),
        ] {
            let mut min = MinRtt::new(Timestamp::ZERO);
            assert_eq!(min.get(), None);
            min.update(Timestamp::from_millis(100), Some(ms(40)), ms(5_000), ms(10_000));
            let found = min.update(Timestamp::from_millis(now), sample.map(ms), ms(5_000), ms(10_000));
            assert_eq!((found, min.get()), (due, Some(ms(estimate))), "{name}");
        }
    }

    #[test]
    fn renewing_delays_the_next_probe_rtt() {
        let mut min = MinRtt::new(Timestamp::ZERO);
        let five = TimeSpan::from_millis(5_000);
        min.renew(Timestamp::from_millis(6_000));
        assert!(!min.update(Timestamp::from_millis(11_000), None, five, five));
        assert!(min.update(Timestamp::from_millis(11_001), None, five, five));
    }
}
