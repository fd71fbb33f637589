//! The RTT that ns-3.37 gives its congestion controls: not the sample but the smoothed value, from timestamps in whole
//! milliseconds (`tcp-socket-base.cc` `EstimateRtt`, `tcp-option-ts.cc`). The ns-3 modes of HyStart and Vegas use it.

use ccgym_core::units::NANOS_PER_MS;
use ccgym_core::{TimeSpan, Timestamp};

/// ns-3's value for a timestamp difference of zero.
const SMALLEST: u64 = 1_000;

/// The smoothed value, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ns3Delay(Option<u64>);

impl Ns3Delay {
    /// Add the sample of an acknowledgement at `now`; returns the smoothed value.
    #[inline]
    pub fn update(&mut self, now: Timestamp, sample: TimeSpan) -> TimeSpan {
        let sent_ms = now.0.saturating_sub(sample.0) / NANOS_PER_MS;
        let measured = ((now.0 / NANOS_PER_MS - sent_ms) * NANOS_PER_MS).max(SMALLEST);
        let smoothed = match self.0 {
            None => measured,
            Some(old) => (7 * old + measured) / 8,
        };
        self.0 = Some(smoothed);
        TimeSpan(smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_milliseconds_then_smoothed() {
        let mut d = Ns3Delay::default();
        // Sent at 0.9 ms, back at 16.1 ms: 16 − 0.
        assert_eq!(d.update(Timestamp(16_100_000), TimeSpan(15_200_000)), TimeSpan::from_millis(16));
        // Sent at 20.0 ms, back at 28.9 ms: 8 ms, an eighth of the way down.
        assert_eq!(d.update(Timestamp(28_900_000), TimeSpan(8_900_000)), TimeSpan::from_millis(15));
    }
}
