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

/// A receiver's columns: counts per step, cumulative in the end.
#[derive(Clone, Debug, Default)]
pub struct ReceiverSeries {
    step: TimeSpan,
    bins: Vec<(u64, u64)>,
}

impl ReceiverSeries {
    /// No counts yet; none ever if the step is zero.
    pub const fn new(step: TimeSpan) -> Self {
        Self { step, bins: Vec::new() }
    }

    /// `bytes` came at `at`. A sample at time t counts arrivals up to and including t.
    #[inline]
    pub fn count(&mut self, at: Timestamp, wire: u64, payload: u64) {
        if self.step.0 == 0 {
            return;
        }
        let bin = (at.0.saturating_sub(1) / self.step.0) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, (0, 0));
        }
        self.bins[bin].0 += wire;
        self.bins[bin].1 += payload;
    }

    /// Add to the cumulative columns `wire` and `payload`, which have a sample at each step up to `end`.
    pub fn add_to(&self, end: Timestamp, wire: &mut Vec<u64>, payload: &mut Vec<u64>) {
        if self.step.0 == 0 {
            return;
        }
        let samples = (end.0 / self.step.0) as usize;
        wire.resize(wire.len().max(samples), 0);
        payload.resize(payload.len().max(samples), 0);
        let (mut w, mut p) = (0, 0);
        for i in 0..samples {
            let (more, new) = self.bins.get(i).copied().unwrap_or((0, 0));
            (w, p) = (w + more, p + new);
            wire[i] += w;
            payload[i] += p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_up_to_their_time() {
        let step = TimeSpan(10);
        let mut series = ReceiverSeries::new(step);
        for at in [0, 10, 11, 35] {
            series.count(Timestamp(at), 100, 90);
        }
        let (mut wire, mut payload) = (Vec::new(), Vec::new());
        series.add_to(Timestamp(39), &mut wire, &mut payload);
        series.add_to(Timestamp(39), &mut wire, &mut payload);
        assert_eq!(wire, [400, 600, 600]);
        assert_eq!(payload, [360, 540, 540]);
    }
}
