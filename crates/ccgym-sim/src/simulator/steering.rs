//! Decisions from outside, and the data for environments.

use ccgym_agent::GroundTruth;

use super::Simulator;

impl Simulator {
    /// End the current decision interval of a flow now, due or not: the last one of an episode.
    pub fn end_interval(&mut self, flow: usize) {
        let now = self.now;
        self.flows[flow].sender.end_interval(now);
    }

    /// Return the ground truth of a flow over its latest closed interval.
    #[must_use]
    pub fn ground_truth(&mut self, flow: usize) -> GroundTruth {
        let now = self.now;
        let bottleneck = self.flows[flow].route.bottleneck;
        let backlog = self.links[bottleneck].backlog(now).0;
        let from = self.flows[flow].sender.last_interval().start;
        let active = self.flows.iter().filter(|f| f.shares(bottleneck)).count();
        let truth = self.truth.over(flow, from, now, backlog as f64, active);
        GroundTruth { rate_spread: self.rate_spread(flow), ..truth }
    }

    /// Return the standard deviation over the mean of the bytes that the active flows on the bottleneck of `flow`
    /// delivered since its latest decision; 0 before it.
    fn rate_spread(&self, flow: usize) -> f64 {
        let bottleneck = self.flows[flow].route.bottleneck;
        let active = self.flows.iter().zip(&self.flows[flow].acked_at_decision);
        let active = active.filter(|(f, _)| f.shares(bottleneck));
        let delivered: Vec<f64> = active.map(|(f, before)| (f.sender.stats().acked_bytes - before) as f64).collect();
        let mean = delivered.iter().sum::<f64>() / delivered.len() as f64;
        if delivered.len() < 2 || mean <= 0.0 {
            return 0.0;
        }
        let squares: f64 = delivered.iter().map(|bytes| (bytes - mean).powi(2)).sum();
        (squares / delivered.len() as f64).sqrt() / mean
    }

    /// Give the scheme of a flow the decision that it waits for, and send what that allows.
    pub fn decide(&mut self, flow: usize, action: &[f32]) {
        let now = self.now;
        self.flows[flow].sender.decide(now, action);
        self.go_on(flow);
    }

    /// Continue a flow without a decision: its last one stays valid.
    pub fn hold_decision(&mut self, flow: usize) {
        self.flows[flow].sender.hold_decision();
        self.go_on(flow);
    }

    fn go_on(&mut self, flow: usize) {
        if self.flows.len() > 1 {
            let mut acked = std::mem::take(&mut self.flows[flow].acked_at_decision);
            acked.clear();
            acked.extend(self.flows.iter().map(|f| f.sender.stats().acked_bytes));
            self.flows[flow].acked_at_decision = acked;
        }
        if self.waiting == Some(flow) {
            self.waiting = None;
        }
        if self.flows[flow].started {
            self.transmit(flow);
        }
        self.reschedule(flow);
    }
}
