//! What a decision interval came to, as the simulator tells it: the same observation, reward, statistics and truth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ccgym_agent::{FlowAgent, PathTruth};
use ccgym_core::{Sender, TimeSpan, Timestamp};
use ccgym_run::columns::{write_stats, write_truth, COLUMNS, TRUTH_COLUMNS};
use ccgym_run::episode::EpisodeStats;
use ccgym_run::truth::Truth;
use ccgym_run::SimSpec;

use super::messages::{Interval, Summary};

/// Stands for a flow of which nothing is known.
const UNKNOWN: u64 = u64::MAX;

/// What is known of the path without measuring it, and by whom: the same for all flows of a run, which share it.
#[derive(Clone, Debug)]
pub struct PathKnowledge {
    truth: Arc<Truth>,
    flows: Arc<Vec<FlowKnowledge>>,
    /// Packets at the bottleneck, where they are counted.
    backlog: Option<Arc<AtomicU64>>,
}

#[derive(Debug)]
struct FlowKnowledge {
    start: Timestamp,
    stop: Timestamp,
    extra_rtt: TimeSpan,
    /// Wire bytes acknowledged so far, if its sender tells.
    acked_bytes: AtomicU64,
}

impl PathKnowledge {
    /// What the description of a run tells. `backlog`: packets in the uplink's bottleneck, kept up to date by the
    /// thread that carries them in this process; `None` if another process does, and the truth is then not a number.
    #[must_use]
    pub fn of(spec: &SimSpec, backlog: Option<Arc<AtomicU64>>) -> Self {
        let flow = |flow: &ccgym_run::FlowSpec| FlowKnowledge {
            start: flow.start,
            stop: flow.stop.unwrap_or(Timestamp::NEVER),
            extra_rtt: flow.extra_rtt,
            acked_bytes: AtomicU64::new(UNKNOWN),
        };
        Self { truth: Arc::new(Truth::of(spec)), flows: Arc::new(spec.flows.iter().map(flow).collect()), backlog }
    }

    /// Bytes acknowledged to each flow.
    fn acked_bytes(&self, into: &mut Vec<u64>) {
        into.clear();
        into.extend(self.flows.iter().map(|flow| flow.acked_bytes.load(Ordering::Relaxed)));
    }

    /// The truth of `flow` over its interval from `from`; `before`: what was acknowledged to each flow by `since`.
    fn over(&self, flow: usize, from: Timestamp, now: Timestamp, since: Timestamp, before: &[u64]) -> PathTruth {
        let runs = |flow: &FlowKnowledge| flow.start <= now && now < flow.stop;
        let seconds = now.since(since).as_secs_f64();
        let rate = |(flow, before): (&FlowKnowledge, &u64)| {
            let acked = flow.acked_bytes.load(Ordering::Relaxed);
            // Kernel flows and those of other processes do not tell.
            let known = runs(flow) && acked != UNKNOWN && *before != UNKNOWN;
            let bits = acked.saturating_sub(*before) as f64 * 8.0;
            known.then_some(if seconds > 0.0 { bits / seconds } else { 0.0 })
        };
        let rates = self.flows.iter().zip(before).filter_map(rate).collect();
        let backlog = self.backlog.as_ref().map(|backlog| backlog.load(Ordering::Relaxed));
        let extra_rtt = self.flows.get(flow).map_or(TimeSpan::ZERO, |flow| flow.extra_rtt);
        let mut truth = self.truth.over(from, now, extra_rtt, backlog.unwrap_or_default(), rates);
        let running = self.flows.iter().filter(|flow| runs(flow)).count().max(1);
        truth.flows = running as u32;
        truth.fair_share = truth.link_rate / running as f64;
        if backlog.is_none() {
            truth.backlog = f64::NAN;
        }
        truth
    }
}

/// The account of one learning flow: which decisions were asked for and taken, and what became of them.
pub struct EpisodeTracker {
    flow: usize,
    knowledge: PathKnowledge,
    tally: EpisodeStats,
    /// Number of the next interval.
    sequence: u64,
    /// When the running interval began, and what had been acknowledged to each flow by then.
    since: Timestamp,
    acked_bytes: Vec<u64>,
    /// The interval that the action in force was chosen for.
    applied: Option<u64>,
    /// Whether an action came while the interval ran.
    answered: bool,
    latency: TimeSpan,
    missed: u64,
    hash: u64,
}

impl EpisodeTracker {
    /// The account of `flow` before its first decision.
    #[must_use]
    pub fn new(flow: usize, knowledge: PathKnowledge) -> Self {
        Self {
            flow,
            knowledge,
            tally: EpisodeStats::default(),
            sequence: 0,
            since: Timestamp::ZERO,
            acked_bytes: Vec::new(),
            applied: None,
            answered: false,
            latency: TimeSpan::ZERO,
            missed: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Whether a decision has been asked for.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.sequence > 0
    }

    /// The sender's interval closed last as a message, taken into the account; `awaiting`: the agent is to decide.
    /// `None` for a sender without agent.
    pub fn close(&mut self, now: Timestamp, sender: &Sender, awaiting: bool) -> Option<Interval> {
        let agent = FlowAgent::of(sender.cca())?;
        let first = self.sequence == 0;
        if let Some(flow) = self.knowledge.flows.get(self.flow) {
            flow.acked_bytes.store(sender.stats().acked_bytes, Ordering::Relaxed);
        }
        if first {
            self.knowledge.acked_bytes(&mut self.acked_bytes);
        }
        let interval = sender.last_interval();
        let truth = self.knowledge.over(self.flow, interval.start, now, self.since, &self.acked_bytes);
        self.since = now;
        self.knowledge.acked_bytes(&mut self.acked_bytes);

        let mut reward_terms = vec![0.0; agent.spec().reward.terms.len()];
        let reward = agent.reward(&truth, &mut reward_terms);
        let mut statistics = vec![0.0; COLUMNS.len()];
        write_stats(now, interval, agent.rejected_actions(), &mut statistics);
        let mut truths = vec![0.0; TRUTH_COLUMNS.len()];
        write_truth(&truth, sender, &mut truths);
        for number in &statistics {
            self.hash = (self.hash ^ number.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let held = !first && !self.answered;
        if !first {
            self.tally.add(interval, &truth);
            // The end of a flow is not a missed deadline.
            self.missed += u64::from(held && awaiting);
        }
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

    /// An action chosen for interval `sequence`, which closed at `closed`, is about to be applied.
    pub fn apply(&mut self, now: Timestamp, sequence: u64, closed: Timestamp) {
        self.latency = now.since(closed);
        self.applied = Some(sequence);
        self.answered = true;
    }

    /// What the flow has come to.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.tally.summary().into()
    }
}
