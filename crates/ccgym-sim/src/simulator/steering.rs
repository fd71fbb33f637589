//! Schemes steered from outside, and what those who steer are told.

use ccgym_core::agent::PathTruth;
use ccgym_core::{CongestionControl, MonitorInterval};
use ccgym_link::PathElement;

use super::Simulator;
use crate::flow::Flow;

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

    /// The truth about the path as a flow might be told it: over its interval closed last, or now.
    #[must_use]
    pub fn truth(&mut self, flow: usize) -> PathTruth {
        let now = self.now;
        let backlog = self.up.bottleneck.map_or(0, |b| self.up.elements[b].backlog(now).0);
        let sender = &self.flows[flow].sender;
        let interval = sender.last_interval();
        let running = |f: &&Flow| f.started && !f.sender.is_stopped();
        let rate = |f: &Flow| {
            let life = self.now.since(f.start).as_secs_f64();
            if life > 0.0 {
                f.sender.stats().acked_bytes as f64 * 8.0 / life
            } else {
                0.0
            }
        };
        self.truth.over(interval.start, self.now, self.flows[flow].extra_rtt, backlog, {
            self.flows.iter().filter(running).map(rate).collect()
        })
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
