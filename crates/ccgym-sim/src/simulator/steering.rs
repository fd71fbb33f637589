//! Schemes steered from outside, and what those who steer are told.

use ccgym_core::agent::PathTruth;
use ccgym_core::{CongestionControl, MonitorInterval, Timestamp};
use ccgym_link::PathElement;

use super::Simulator;

impl Simulator {
    /// Statistics of a flow since the last call; needs `record.monitor`.
    pub fn take_interval(&mut self, flow: usize) -> MonitorInterval {
        let now = self.now;
        self.flows[flow].sender.take_interval(now)
    }

    /// End the running decision interval of a flow now, due or not: the last one of an episode.
    pub fn end_interval(&mut self, flow: usize) {
        let now = self.now;
        self.flows[flow].sender.end_interval(now);
    }

    /// Wire bytes acknowledged to each flow so far.
    pub fn acked_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.flows.iter().map(|f| f.sender.stats().acked_bytes)
    }

    /// The truth about the path as a flow might be told it, over its interval closed last. The rates are those of the
    /// flows that run now, since `since`, when [`Simulator::acked_bytes`] gave `before`.
    #[must_use]
    pub fn truth(&mut self, flow: usize, since: Timestamp, before: &[u64]) -> PathTruth {
        let now = self.now;
        let backlog = self.up.bottleneck.map_or(0, |b| self.up.elements[b].backlog(now).0);
        let from = self.flows[flow].sender.last_interval().start;
        let seconds = now.since(since).as_secs_f64();
        let running = self.flows.iter().zip(before).filter(|(f, _)| f.started && !f.sender.is_stopped());
        let rates = running.map(|(f, before)| {
            let bits = (f.sender.stats().acked_bytes - before) as f64 * 8.0;
            if seconds > 0.0 {
                bits / seconds
            } else {
                0.0
            }
        });
        self.truth.over(from, now, self.flows[flow].extra_rtt, backlog, rates.collect())
    }

    /// Steer the scheme of a flow from outside, and send what that allows.
    pub fn with_cca(&mut self, flow: usize, f: impl FnOnce(&mut dyn CongestionControl)) {
        if self.waiting == Some(flow) {
            self.waiting = None;
        }
        self.flows[flow].sender.with_cca(f);
        if self.flows[flow].started {
            self.transmit(flow);
        }
        self.reschedule(flow);
    }
}
