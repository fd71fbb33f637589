//! Results of decision intervals, as in the simulator: observation, reward, statistics and truth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ccgym_agent::{FlowAgent, GroundTruth};
use ccgym_core::{Sender, TimeSpan, Timestamp};
use ccgym_run::columns::{write_truth, COLUMNS, TRUTH_COLUMNS};
use ccgym_run::decision_log::DecisionLog;
use ccgym_run::truth::GroundTruthModel;
use ccgym_run::RunSpec;

use super::messages::{Interval, Summary};

/// Ground truth about the path during a run; shared by its flows.
#[derive(Clone, Debug)]
pub struct LiveGroundTruth {
    model: Arc<GroundTruthModel>,
    /// Packets in the bottleneck, if this process counts them.
    backlog: Option<Arc<AtomicU64>>,
}

impl LiveGroundTruth {
    /// Make the ground truth of the run of `spec`. `backlog`: packets in the uplink's bottleneck, updated
    /// by the path's thread in this process; `None` if another process has the path: the backlog is NaN then.
    pub fn of(spec: &RunSpec, backlog: Option<Arc<AtomicU64>>) -> Self {
        Self { model: Arc::new(GroundTruthModel::of(spec, &vec![0; spec.flows.len()])), backlog }
    }

    /// Return the ground truth of `flow` over `from..now`.
    fn over(&self, flow: usize, from: Timestamp, now: Timestamp) -> GroundTruth {
        let backlog = self.backlog.as_ref().map_or(f64::NAN, |backlog| backlog.load(Ordering::Relaxed) as f64);
        self.model.over(flow, from, now, backlog, self.model.active_flows(now))
    }
}

/// Records of one learning flow: requested and applied decisions, and their results.
pub struct EpisodeTracker {
    flow: usize,
    truth: LiveGroundTruth,
    log: DecisionLog,
    /// Number of the next interval.
    sequence: u64,
    /// The interval of the current action.
    applied: Option<u64>,
    /// True if an action arrived during the current interval.
    answered: bool,
    latency: TimeSpan,
    missed: u64,
    hash: u64,
}

impl EpisodeTracker {
    /// Make the records of `flow` before its first decision.
    pub fn new(flow: usize, truth: LiveGroundTruth) -> Self {
        Self {
            flow,
            truth,
            log: DecisionLog::default(),
            sequence: 0,
            applied: None,
            answered: false,
            latency: TimeSpan::ZERO,
            missed: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// True after the first request for a decision.
    pub const fn has_begun(&self) -> bool {
        self.log.has_begun()
    }

    /// Record the interval that the sender closed last, and return its message; `awaiting`: the agent must decide.
    /// `None` for a sender without agent.
    pub fn close(&mut self, now: Timestamp, sender: &Sender, awaiting: bool) -> Option<Interval> {
        let agent = FlowAgent::of(sender.cca())?;
        let truth = self.truth.over(self.flow, sender.last_interval().start, now);
        let mut reward_terms = vec![0.0; agent.spec().reward.terms.len()];
        let mut statistics = vec![0.0; COLUMNS.len()];
        let reward = self.log.close(now, sender, &truth, &mut reward_terms, &mut statistics)?;
        let mut truths = vec![0.0; TRUTH_COLUMNS.len()];
        write_truth(&truth, sender, &mut truths);
        for number in &statistics {
            self.hash = (self.hash ^ number.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let held = self.log.has_begun() && !self.answered;
        // The end of a flow is not a missed deadline.
        self.missed += u64::from(held && awaiting);
        self.log.begin();
        self.answered = false;
        let sequence = self.sequence;
        self.sequence += 1;
        Some(Interval {
            sequence,
            time_ns: now.0,
            observation: agent.observation().to_vec(),
            statistics,
            reward,
            reward_terms,
            truth: truths,
            applied_sequence: self.applied,
            decision_latency_ns: self.latency.0,
            held,
            awaiting,
            missed_deadlines: self.missed,
            trajectory_hash: self.hash,
        })
    }

    /// Record the action for interval `sequence`, which closed at `closed`, before it is applied.
    pub fn apply(&mut self, now: Timestamp, sequence: u64, closed: Timestamp) {
        self.latency = now.since(closed);
        self.applied = Some(sequence);
        self.answered = true;
    }

    /// Return the summary of the flow.
    pub fn summary(&self) -> Summary {
        self.log.summary().into()
    }
}
