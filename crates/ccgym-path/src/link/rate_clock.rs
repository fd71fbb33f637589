//! Serialization at a rate that may change in steps, exact to the fraction of a nanosecond.
//!
//! A transmission ends at `ns + part/rate` nanoseconds; the fraction is carried from packet to packet while the link is
//! busy, so that a fast link does not drift. Returned times are rounded up: never before the exact time. A step in the
//! rate takes effect at its time, also within a packet: the remaining bytes are sent at the new rate. At rate zero the
//! link pauses until the next step.

use ccgym_core::units::{Rate, Timestamp, NANOS_PER_SEC};

use crate::link::fifo_link::Schedule;
use crate::link::recorder::Recorder;
use crate::link::waiting::Waiting;
use crate::param::ParamCursor;
use crate::spec::Param;

/// The state of a transmitter: the end of its last transmission.
#[derive(Clone, Debug)]
pub struct RateClock {
    /// Whole nanoseconds at which the last transmission ends …
    ns: u64,
    /// … and the fraction, in 1/rate nanoseconds.
    part: u64,
    rate: u64,
    /// Size whose serialization time is cached, and that time: whole and fraction. Flows have few sizes.
    size: u32,
    whole: u64,
    fraction: u64,
    /// Time of the next change of the rate.
    until: Timestamp,
    steps: ParamCursor<Rate>,
}

impl RateClock {
    /// Make an idle transmitter at time 0.
    pub fn new(rate: &Param<Rate>) -> Self {
        let steps = ParamCursor::new(rate, Rate::ZERO);
        let mut clock =
            Self { ns: 0, part: 0, rate: steps.value().0, size: 0, whole: 0, fraction: 0, until: steps.until(), steps };
        clock.measure(1500);
        clock
    }

    /// Return the time from which on a packet starts at once.
    #[inline]
    pub fn free_at(&self) -> Timestamp {
        Timestamp(self.ns + u64::from(self.part != 0))
    }

    /// Send `size` bytes, starting at `now` or as soon as free; returns the end, or [`Timestamp::NEVER`] if the rate
    /// stays zero.
    #[inline]
    pub fn send(&mut self, now: Timestamp, size: u32) -> Timestamp {
        if now >= self.free_at() {
            self.ns = now.0;
            self.part = 0;
        }
        self.send_next(size)
    }

    /// Send `size` bytes right behind the transmission before, which may end within the current nanosecond.
    #[inline]
    pub fn send_next(&mut self, size: u32) -> Timestamp {
        if size != self.size {
            self.measure(size);
        }
        let mut ns = self.ns.saturating_add(self.whole);
        let mut part = self.part + self.fraction;
        if part >= self.rate {
            part = part.wrapping_sub(self.rate);
            ns = ns.saturating_add(1);
        }
        if ns >= self.until.0 {
            return self.send_across_steps(size);
        }
        self.ns = ns;
        self.part = part;
        self.free_at()
    }

    /// Handle the general case: the transmission ends at or after the next step, or the rate is zero.
    #[cold]
    fn send_across_steps(&mut self, size: u32) -> Timestamp {
        // In units of 10⁻⁹ bit: bits × ns/s, so that work = rate × nanoseconds without rounding.
        let mut work = u128::from(size) * 8 * u128::from(NANOS_PER_SEC);
        loop {
            if self.ns == u64::MAX {
                return Timestamp::NEVER;
            }
            let span = self.until.0.saturating_sub(self.ns);
            let available = (u128::from(span) * u128::from(self.rate)).saturating_sub(u128::from(self.part));
            if work <= available && self.rate > 0 {
                let done = u128::from(self.part) + work;
                let end = u128::from(self.ns) + done / u128::from(self.rate);
                self.ns = u64::try_from(end).unwrap_or(u64::MAX);
                self.part = (done % u128::from(self.rate)) as u64;
                if self.ns == u64::MAX {
                    self.part = 0;
                }
                return self.free_at();
            }
            work -= available.min(work);
            self.ns = self.ns.max(self.until.0);
            self.part = 0;
            if self.ns != u64::MAX {
                self.steps.step();
                self.until = self.steps.until();
                self.rate = self.steps.value().0;
                self.measure(size);
            }
        }
    }

    /// Cache the serialization time of `size` at the current rate.
    #[cold]
    fn measure(&mut self, size: u32) {
        self.size = size;
        let work = u128::from(size) * 8 * u128::from(NANOS_PER_SEC);
        match self.rate {
            // Never, unless a step comes first: the sum saturates and takes the general path.
            0 => (self.whole, self.fraction) = (u64::MAX, 0),
            rate => {
                self.whole = u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX);
                self.fraction = (work % u128::from(rate)) as u64;
            }
        }
    }
}

impl Schedule for RateClock {
    #[inline]
    fn arrive(&mut self, now: Timestamp, waiting: &mut Waiting) {
        if self.free_at() <= now {
            waiting.clear();
        } else {
            waiting.pop_until(now);
        }
    }

    #[inline]
    fn transmit(&mut self, now: Timestamp, wire: u32) -> (Timestamp, Timestamp) {
        let starts = self.free_at();
        (starts, self.send(now, wire))
    }

    fn recorder(&self) -> Recorder {
        Recorder::for_rate(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fast_links_do_not_drift() {
        // 1500 bytes at 7 Gbit/s take 1714.28… ns; 7000 of them exactly 12 ms.
        let mut clock = RateClock::new(&Param::Constant(Rate(7_000_000_000)));
        let ends: Vec<_> = (0..7000).map(|_| clock.send(Timestamp::ZERO, 1500).0).collect();
        assert_eq!(ends[..3], [1715, 3429, 5143]);
        assert_eq!(ends[6999], 12_000_000);
    }

    #[test]
    fn a_step_applies_to_the_bytes_still_to_go() {
        // 1500 bytes at 12 Mbit/s take 1 ms; after half of it the rate doubles, then pauses, then resumes.
        let step = |t, mbps| (Timestamp::from_micros(t), Rate::from_mbps(mbps));
        let rate = Param::Steps(vec![step(0, 12.0), step(500, 24.0), step(1000, 0.0), step(5000, 12.0)]);
        let mut clock = RateClock::new(&rate);
        assert_eq!(clock.send(Timestamp::ZERO, 1500), Timestamp::from_micros(750));
        assert_eq!(clock.send(Timestamp::ZERO, 1500), Timestamp::from_micros(5500));
        assert_eq!(clock.send(Timestamp::from_micros(9000), 1500), Timestamp::from_micros(10_000));
    }

    #[test]
    fn a_final_zero_never_ends() {
        let rate = Param::Steps(vec![(Timestamp::ZERO, Rate(8_000)), (Timestamp::from_millis(5), Rate::ZERO)]);
        let mut clock = RateClock::new(&rate);
        assert_eq!(clock.send(Timestamp::ZERO, 5), Timestamp::from_millis(5));
        assert_eq!(clock.send(Timestamp::ZERO, 1), Timestamp::NEVER);
        assert_eq!(clock.send(Timestamp::from_millis(50), 1), Timestamp::NEVER);
        assert_eq!(RateClock::new(&Param::Constant(Rate::ZERO)).send(Timestamp(3), 1), Timestamp::NEVER);
    }

    #[test]
    fn an_idle_link_starts_with_the_rate_of_the_moment() {
        let rate = Param::Steps(vec![(Timestamp::ZERO, Rate(8)), (Timestamp::from_millis(1), Rate(8_000_000))]);
        let mut clock = RateClock::new(&rate);
        assert_eq!(clock.send(Timestamp::from_millis(7), 1000), Timestamp::from_millis(8));
    }

    proptest! {
        /// With exact fractions: the k-th of a busy period ends at ⌈Σ bits · 10⁹ / rate⌉.
        #[test]
        fn sums_are_exact(rate in 1u64..20_000_000_000, sizes in proptest::collection::vec(1u32..9000, 1..200)) {
            let mut clock = RateClock::new(&Param::Constant(Rate(rate)));
            let mut bits = 0u128;
            for size in sizes {
                bits += u128::from(size) * 8;
                let end = (bits * 1_000_000_000).div_ceil(u128::from(rate));
                prop_assert_eq!(u128::from(clock.send(Timestamp::ZERO, size).0), end);
            }
        }

        /// Steps to the same rate change nothing.
        #[test]
        fn equal_steps_are_no_steps(
            rate in 1u64..2_000_000_000,
            cuts in proptest::collection::btree_set(1u64..3_000_000, 0..8),
            packets in proptest::collection::vec((0u64..100_000, 1u32..3000), 1..60),
        ) {
            let mut steps = vec![(Timestamp::ZERO, Rate(rate))];
            steps.extend(cuts.into_iter().map(|t| (Timestamp(t), Rate(rate))));
            let mut stepped = RateClock::new(&Param::Steps(steps));
            let mut plain = RateClock::new(&Param::Constant(Rate(rate)));
            let mut now = 0;
            for (gap, size) in packets {
                now += gap;
                // The fraction at a step is dropped only if the step falls between two nanoseconds of it.
                let (a, b) = (stepped.send(Timestamp(now), size), plain.send(Timestamp(now), size));
                prop_assert_eq!(a, b);
            }
        }
    }
}
