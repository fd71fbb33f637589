//! A cursor over the delivery opportunities of a trace, wrapping as mahimahi does.
//!
//! After the last line the base time advances by the last value and reading restarts at line 1 (mahimahi `link_queue.cc`).

use std::sync::Arc;

use ccgym_core::units::{Timestamp, NANOS_PER_MS};

use crate::trace::DeliveryTrace;

/// Position in a trace: the next opportunity that has not been used.
#[derive(Clone, Debug)]
pub struct Opportunities {
    times_ms: Arc<[u64]>,
    /// Line of the next opportunity.
    line: usize,
    /// Start of the current repetition.
    base_ns: u64,
    period_ns: u64,
    /// Time of the next opportunity, cached because it is read more often than it changes.
    next: Timestamp,
    repetition: u64,
    once: bool,
}

impl Opportunities {
    /// Start at the beginning of the trace; with `once`, the trace does not repeat.
    pub fn new(trace: &DeliveryTrace, once: bool) -> Self {
        let mut cursor = Self {
            times_ms: trace.shared_times(),
            line: 0,
            base_ns: 0,
            period_ns: trace.period().0,
            next: Timestamp::ZERO,
            repetition: 0,
            once,
        };
        cursor.refresh();
        cursor
    }

    /// Return the time of the next opportunity; [`Timestamp::NEVER`] after the end of a trace that does not repeat.
    #[inline]
    pub fn peek(&self) -> Timestamp {
        self.next
    }

    /// Return the number of the next opportunity, counted from 0 at the start of the trace and never reset.
    #[inline]
    pub fn number(&self) -> u64 {
        self.repetition.saturating_mul(self.times_ms.len() as u64).saturating_add(self.line as u64)
    }

    /// Use the next opportunity and return its time.
    #[inline]
    pub fn take(&mut self) -> Timestamp {
        let taken = self.next;
        self.line += 1;
        if self.line >= self.times_ms.len() {
            self.wrap();
        }
        self.refresh();
        taken
    }

    /// Skip every opportunity at or before `now`. Logarithmic in the distance.
    #[inline]
    pub fn skip_past(&mut self, now: Timestamp) {
        // A busy link is at most a few lines behind; only an idle one skips many.
        for _ in 0..4 {
            if self.next > now {
                return;
            }
            self.take();
        }
        if self.next <= now {
            self.leap(now);
        }
    }

    #[cold]
    fn leap(&mut self, now: Timestamp) {
        if !now.is_set() {
            self.finish();
            return;
        }
        let into = now.0 - self.base_ns.min(now.0);
        if into >= self.period_ns {
            if self.once {
                self.finish();
                return;
            }
            let repetitions = into / self.period_ns;
            self.repetition += repetitions;
            self.base_ns = self.base_ns.saturating_add(repetitions * self.period_ns);
            self.line = 0;
        }
        let into_ms = (now.0 - self.base_ns) / NANOS_PER_MS;
        // Gallop from the current line, so that a short skip in a long trace is fast.
        let rest = &self.times_ms[self.line..];
        let mut reach = 8;
        while reach < rest.len() && rest[reach] <= into_ms {
            reach *= 2;
        }
        self.line += rest[..reach.min(rest.len())].partition_point(|&ms| ms <= into_ms);
        if self.line >= self.times_ms.len() {
            self.wrap();
        }
        self.refresh();
    }

    #[cold]
    fn wrap(&mut self) {
        if self.once {
            self.finish();
            return;
        }
        self.line = 0;
        self.base_ns = self.base_ns.saturating_add(self.period_ns);
        self.repetition += 1;
    }

    fn finish(&mut self) {
        self.line = 0;
        self.repetition = 1;
        self.base_ns = u64::MAX;
        self.next = Timestamp::NEVER;
    }

    #[inline]
    fn refresh(&mut self) {
        self.next = Timestamp(self.base_ns.saturating_add(self.times_ms[self.line] * NANOS_PER_MS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cursor(times: &[u64], once: bool) -> Opportunities {
        Opportunities::new(&DeliveryTrace::from_ms("t", times).expect("good"), once)
    }

    fn fires(times: &[u64], count: usize) -> Vec<u64> {
        let mut c = cursor(times, false);
        (0..count).map(|_| c.take().as_millis()).collect()
    }

    #[test]
    fn wraps_by_the_last_value() {
        assert_eq!(fires(&[5, 10, 10, 20], 8), [5, 10, 10, 20, 25, 30, 30, 40]);
    }

    #[test]
    fn a_zero_first_value_coincides_with_the_previous_last() {
        assert_eq!(fires(&[0, 1, 2, 3], 9), [0, 1, 2, 3, 3, 4, 5, 6, 6]);
    }

    #[test]
    fn once_ends() {
        let mut c = cursor(&[1, 2], true);
        assert_eq!((c.take().as_millis(), c.take().as_millis()), (1, 2));
        assert_eq!((c.take(), c.take(), c.number()), (Timestamp::NEVER, Timestamp::NEVER, 2));
        let mut c = cursor(&[1, 2], true);
        c.skip_past(Timestamp::from_millis(500));
        assert_eq!(c.peek(), Timestamp::NEVER);
    }

    #[test]
    fn a_leap_to_never_ends() {
        let mut c = cursor(&[1], false);
        c.skip_past(Timestamp::NEVER);
        assert_eq!(c.peek(), Timestamp::NEVER);
    }

    proptest! {
        #[test]
        fn skipping_is_taking(
            mut times in proptest::collection::vec(0u64..60, 1..40),
            gaps in proptest::collection::vec(0u64..400_000_000, 1..30),
        ) {
            times.sort_unstable();
            prop_assume!(times[times.len() - 1] > 0);
            let (mut fast, mut slow) = (cursor(&times, false), cursor(&times, false));
            let mut now = Timestamp::ZERO;
            for gap in gaps {
                now = Timestamp(now.0 + gap);
                fast.skip_past(now);
                while slow.peek() <= now {
                    slow.take();
                }
                prop_assert_eq!((fast.peek(), fast.number()), (slow.peek(), slow.number()));
                prop_assert!(fast.peek() > now);
            }
        }
    }
}
