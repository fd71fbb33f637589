//! Decisions from outside, and what an environment is told.

use ccgym_agent::PathTruth;
use ccgym_core::Timestamp;
use ccgym_link::PathElement;

use super::Simulator;

impl Simulator {
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

    /// Give the scheme of a flow the decision that it waits for, and send what that allows.
    pub fn decide(&mut self, flow: usize, action: &[f32]) {
        let now = self.now;
        self.flows[flow].sender.decide(now, action);
        self.go_on(flow);
    }

    /// Let a flow go on without a decision: its last one holds.
    pub fn hold_decision(&mut self, flow: usize) {
        self.flows[flow].sender.hold_decision();
        self.go_on(flow);
    }

    fn go_on(&mut self, flow: usize) {
        if self.waiting == Some(flow) {
            self.waiting = None;
        }
        if self.flows[flow].started {
            self.transmit(flow);
        }
        self.reschedule(flow);
    }
}
