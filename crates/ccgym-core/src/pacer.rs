//! Pacing: the time at which the next packet may leave at a pacing rate.

use crate::units::{Rate, TimeSpan, Timestamp};

/// Releases bursts of up to one send quantum, then waits until the rate allows the next, as Linux's internal pacing
/// does. Lateness (the sender woke up after the release time) is credited up to half a burst, so that timer granularity
/// does not lower the rate (`tcp_update_skb_after_send`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Min time of the next packet.
    release: Timestamp,
    /// Bytes of the current burst that have left.
    burst: u64,
    /// Min bytes of a burst.
    min_burst: u64,
    /// Lateness credited in any case, if only the pacer delayed packets.
    catch_up: TimeSpan,
    /// True if window or application ran out since the latest burst.
    limited: bool,
    /// The latest burst (bytes), its rate, and its time at that rate: the next one is mostly the same.
    cost: (u64, Rate, TimeSpan),
}

impl Pacer {
    /// Make a pacer for a host that sends bursts of at least `min_burst` bytes, and catches up within `catch_up`.
    #[must_use]
    pub fn new(min_burst: u64, catch_up: TimeSpan) -> Self {
        Self { min_burst, catch_up, limited: true, ..Self::default() }
    }

    /// Return the time at which the next packet may leave.
    #[inline]
    pub const fn release(&self) -> Timestamp {
        self.release
    }

    /// Add `bytes` sent at `now` under `rate`, in bursts of `quantum` bytes (0: one packet).
    #[inline]
    pub fn on_sent(&mut self, now: Timestamp, bytes: u64, rate: Rate, quantum: u64) {
        self.burst += bytes;
        if self.burst >= quantum.max(self.min_burst) {
            self.close(now, rate);
        }
    }

    /// End a burst short of its quantum (window or application ran out) and charge its bytes.
    #[inline]
    pub fn end_burst(&mut self, now: Timestamp, rate: Rate) {
        if self.burst != 0 {
            self.close(now, rate);
        }
        if !self.limited {
            self.limited = true;
        }
    }

    #[inline]
    fn close(&mut self, now: Timestamp, rate: Rate) {
        if (self.burst, rate) != (self.cost.0, self.cost.1) {
            let time = if rate == Rate::ZERO { TimeSpan::ZERO } else { rate.time_for(self.burst) };
            self.cost = (self.burst, rate, time);
        }
        let cost = self.cost.2;
        let late = now.since(self.release);
        let catch_up = if self.limited { TimeSpan::ZERO } else { self.catch_up };
        let credit = late.min(catch_up.max(TimeSpan(cost.0 / 2)));
        let (owed, ahead) = (cost.0.saturating_sub(credit.0), credit.0.saturating_sub(cost.0));
        self.release = Timestamp(now.0.saturating_add(owed) - ahead);
        self.burst = 0;
        self.limited = false;
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
    fn a_host_that_wakes_late_catches_up() {
        let rate = Rate::from_mbps(12.0);
        let mut p = Pacer::new(0, TimeSpan::from_millis(5));
        let sent_at = |p: &mut Pacer, ms| {
            let now = Timestamp::from_millis(ms);
            std::iter::from_fn(|| (p.release() <= now).then(|| p.on_sent(now, 1500, rate, 0))).count()
        };
        // Nothing was missed before the first. Then, woken each 4 ms, four packets of 1 ms leave; after 20 ms the
        // packets of 5 ms and the one that is due.
        assert_eq!([100, 104, 108, 112, 132].map(|ms| sent_at(&mut p, ms)), [1, 4, 4, 4, 6]);
        // The window had run out: nothing was missed.
        p.end_burst(Timestamp::from_millis(132), rate);
        assert_eq!(sent_at(&mut p, 152), 1);
    }

    #[test]
    fn a_host_has_a_smallest_burst() {
        let rate = Rate::from_mbps(12.0);
        let mut p = Pacer::new(3000, TimeSpan::ZERO);
        p.on_sent(Timestamp(0), 1500, rate, 0);
        assert_eq!(p.release(), Timestamp(0));
        p.on_sent(Timestamp(0), 1500, rate, 0);
        assert_eq!(p.release(), Timestamp::from_millis(2));
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
