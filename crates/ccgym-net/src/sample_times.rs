//! Times of the samples in a flow's series.

use ccgym_core::{TimeSpan, Timestamp};

/// Multiples of a step from a flow's start on.
#[derive(Clone, Copy, Debug)]
pub struct SampleTimes {
    step: TimeSpan,
    next: Timestamp,
    first: usize,
}

impl SampleTimes {
    /// Start at the first multiple of `step` that is not before `start`; none if the step is zero.
    pub fn new(step: TimeSpan, start: Timestamp) -> Self {
        let count = if step.0 == 0 { 1 } else { start.0.div_ceil(step.0).max(1) };
        let next = if step.0 == 0 { Timestamp::NEVER } else { Timestamp(count * step.0) };
        Self { step, next, first: count as usize - 1 }
    }

    /// Return the index of the first sample in the run.
    pub const fn first(&self) -> usize {
        self.first
    }

    /// Return the time of the next sample.
    pub const fn next(&self) -> Timestamp {
        self.next
    }

    /// True if a sample is due by `until`; then advance to the next one.
    #[inline]
    pub fn take(&mut self, until: Timestamp) -> bool {
        let due = self.next <= until;
        if due {
            self.next = self.next.saturating_add(self.step);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_lie_on_the_multiples_of_the_step_and_begin_with_the_flow() {
        let step = TimeSpan(10);
        for (start, first) in [(0, 0), (1, 0), (10, 0), (11, 1), (20, 1), (95, 9)] {
            assert_eq!(SampleTimes::new(step, Timestamp(start)).first(), first, "{start}");
        }
        let mut times = SampleTimes::new(step, Timestamp(11));
        assert!(!times.take(Timestamp(19)));
        assert!(times.take(Timestamp(31)) && times.take(Timestamp(31)) && !times.take(Timestamp(31)));
        assert_eq!(times.next(), Timestamp(40));
        assert!(!SampleTimes::new(TimeSpan::ZERO, Timestamp(11)).take(Timestamp(1 << 62)));
    }
}
