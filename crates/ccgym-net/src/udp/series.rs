//! Series at fixed times, as the simulator's recorder writes them, for one flow.

use ccgym_core::{Sender, TimeSpan, Timestamp};
use ccgym_run::recorder::{FlowSeries, Series};

use crate::sample_times::SampleTimes;

pub(super) struct SenderSeries {
    times: SampleTimes,
    columns: Series,
}

impl SenderSeries {
    /// Make columns from the first multiple of `step` that is not before `start`; none if the step is zero.
    pub fn new(step: TimeSpan, start: Timestamp) -> Self {
        Self { times: SampleTimes::new(step, start), columns: Series::new(step, 1, &[]) }
    }

    /// Record all samples due up to and including `until`. The sender must not have changed since they were due.
    #[inline]
    pub fn catch_up(&mut self, until: Timestamp, sender: &Sender) {
        while self.times.take(until) {
            self.columns.sample_flow(0, sender);
        }
    }

    /// Return the columns and the index of their first sample in the run.
    pub fn finish(mut self) -> (FlowSeries, usize) {
        (self.columns.flows.pop().unwrap_or_default(), self.times.first())
    }
}
