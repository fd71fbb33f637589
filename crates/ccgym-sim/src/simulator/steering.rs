//! Decisions from outside, and what an environment is told.

use ccgym_agent::GroundTruth;

use super::Simulator;

impl Simulator {
    /// End the running decision interval of a flow now, due or not: the last one of an episode.
    pub fn end_interval(&mut self, flow: usize) {
        let now = self.now;
        self.flows[flow].sender.end_interval(now);
    }

    /// The ground truth of a flow over its interval closed last.
    #[must_use]
    pub fn ground_truth(&mut self, flow: usize) -> GroundTruth {
        let now = self.now;
        let backlog = self.up.backlog(now).0;
        let from = self.flows[flow].sender.last_interval().start;
        let active = self.flows.iter().filter(|f| f.started && !f.sender.is_stopped()).count();
        self.truth.over(flow, from, now, backlog as f64, active)
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
