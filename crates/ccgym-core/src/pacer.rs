//! When the next packet may leave under a pacing rate.

use crate::units::{Rate, TimeSpan, Timestamp};

/// Releases bursts of up to one send quantum, then waits until the rate has paid for them, as Linux's internal
/// pacing does. Lateness (the sender woke up after the release time) is credited up to half a burst, so that timer
/// granularity does not lower the rate (`tcp_update_skb_after_send`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Not before this time.
    release: Timestamp,
    /// Bytes of the current burst that have left.
    burst: u64,
}

impl Pacer {
    /// When the next packet may leave.
    #[inline]
    pub const fn release(&self) -> Timestamp {
        self.release
    }

    /// `bytes` left at `now` under `rate`, in bursts of `quantum` bytes (0: one packet).
    #[inline]
    pub fn on_sent(&mut self, now: Timestamp, bytes: u64, rate: Rate, quantum: u64) {
        self.burst += bytes;
        if self.burst >= quantum {
            self.close(now, rate);
        }
    }

    /// The burst ends short of its quantum (window or application ran out): what left is paid for.
    #[inline]
    pub fn end_burst(&mut self, now: Timestamp, rate: Rate) {
        if self.burst != 0 {
            self.close(now, rate);
        }
    }

    #[inline]
    fn close(&mut self, now: Timestamp, rate: Rate) {
        let cost = if rate == Rate::ZERO { TimeSpan::ZERO } else { rate.time_for(self.burst) };
        let late = now.since(self.release);
        let credit = late.min(TimeSpan(cost.0 / 2));
        self.release = Timestamp(now.0.saturating_add(cost.0 - credit.0));
        self.burst = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_rate_is_exact_when_on_time() {
        let rate = Rate::from_mbps(12.0);
        let mut p = Pacer::default();
        let mut now = Timestamp::from_millis(100);
        p.on_sent(now, 1500, rate, 0);
        // The first release was long ago: half of the cost is credited once.
        assert_eq!(p.release(), now + TimeSpan(500_000));
        for _ in 0..10 {
            now = p.release();
            p.on_sent(now, 1500, rate, 0);
            assert_eq!(p.release(), now + TimeSpan::from_millis(1));
        }
    }

    #[test]
    fn quantum_leaves_back_to_back() {
        let rate = Rate::from_mbps(12.0);
        let mut p = Pacer::default();
        p.on_sent(Timestamp(0), 1500, rate, 3000);
        assert_eq!(p.release(), Timestamp(0));
        p.on_sent(Timestamp(0), 1500, rate, 3000);
        assert_eq!(p.release(), Timestamp::from_millis(2));
    }
}
