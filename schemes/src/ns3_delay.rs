//! The round-trip time as ns-3.37 hands it to its congestion controls: not the sample but the smoothed value, made
//! of timestamps in whole milliseconds (`tcp-socket-base.cc` `EstimateRtt`, `tcp-option-ts.cc`). HyStart and Vegas
//! judge by it, so their ns-3 modes need it.

use ccgym_core::units::NANOS_PER_MS;
use ccgym_core::{TimeSpan, Timestamp};

/// What ns-3 reports where a timestamp difference is zero.
const SMALLEST: u64 = 1_000;

/// The smoothed value, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ns3Delay(Option<u64>);

impl Ns3Delay {
    /// Feed the sample that an acknowledgement at `now` brought, and get the smoothed value.
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
