//! Series at fixed times: what the simulator's recorder writes, one flow at a time.

use ccgym_core::{Sender, TimeSpan, Timestamp};
use ccgym_run::recorder::{FlowSeries, Series};

use crate::sample_times::SampleTimes;

/// A sender's columns.
pub(super) struct SenderSeries {
    times: SampleTimes,
    columns: Series,
}

impl SenderSeries {
    /// Columns from the first multiple of `step` that is not before `start`; none if the step is zero.
    pub fn new(step: TimeSpan, start: Timestamp) -> Self {
        Self { times: SampleTimes::new(step, start), columns: Series::new(step, 1, &[]) }
    }

    /// Write down all samples that are due up to and including `until`. The sender is as it was then.
    #[inline]
    pub fn catch_up(&mut self, until: Timestamp, sender: &Sender) {
        while self.times.take(until) {
            self.columns.sample_flow(0, sender);
        }
    }

    /// The columns, and the index of their first sample in the run.
    pub fn finish(mut self) -> (FlowSeries, usize) {
        (self.columns.flows.pop().unwrap_or_default(), self.times.first())
    }
}
