//! Many simulators stepped together; the decisions of their learning flows come from outside.

use ccgym_agent::{ActionKind, AgentSpec, FlowAgent, GroundTruth};
use ccgym_core::Error;
use ccgym_run::columns::{write_truth, COLUMNS, TRUTH_COLUMNS};
use ccgym_run::decision_log::DecisionLog;
use ccgym_run::episode::Summary;

use crate::bounds::Interrupt;
use crate::pool::Pool;
use crate::simulator::Simulator;

mod rollout;

pub use rollout::{Now, RolloutArrays};

/// Reason for which a simulator stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ended {
    /// It has not stopped.
    Running = 0,
    /// A learner made its last step.
    Steps = 1,
    /// Its time is over.
    Time = 2,
}

/// Arrays from which a batch, or one simulator of it, reads actions and to which it writes results: row-major, with one
/// row per learner, simulator by simulator.
pub struct Arrays<'a> {
    /// Actions, for the rows that are due.
    pub actions: &'a [f32],
    /// Observations.
    pub observations: &'a mut [f32],
    /// Rewards of the completed steps.
    pub rewards: &'a mut [f64],
    /// Their terms.
    pub terms: &'a mut [f64],
    /// Statistics of their intervals.
    pub stats: &'a mut [f64],
    /// 1 for each row that is due, else 0.
    pub due: &'a mut [u8],
    /// 0 for each simulator that runs, else its [`Ended`].
    pub ended: &'a mut [u8],
}

/// N simulators with up to the same number of learning flows each.
pub struct AgentBatch {
    lanes: Vec<Lane>,
    learners: usize,
    widths: Widths,
    /// Actions to choose from; 0 for actions that are real numbers.
    choices: usize,
    /// Number of intervals whose ground truth the agent's expert needs.
    truths: usize,
    pool: Pool,
    interrupt: Option<Interrupt>,
}

/// Cells per row.
#[derive(Clone, Copy)]
struct Widths {
    observation: usize,
    action: usize,
    terms: usize,
}

struct Lane {
    simulator: Option<Simulator>,
    /// Learning flows, in the order of their rows. An episode may have fewer flows than there are rows.
    flows: Vec<usize>,
    due: Vec<bool>,
    max_steps: u64,
    ended: Ended,
    /// Error of the latest step.
    stopped: Option<Error>,
    /// Per learner.
    logs: Vec<DecisionLog>,
    /// Per learner: the ground truth of its latest intervals, newest last, as many as its expert needs.
    truths: Vec<Vec<GroundTruth>>,
}

impl AgentBatch {
    /// Make a batch of `count` simulators with up to `learners` learning flows each, all with the agent `spec`, on
    /// `threads` threads (0: one per core; 1: the calling thread).
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn new(
        spec: &AgentSpec,
        count: usize,
        learners: usize,
        threads: usize,
    ) -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = Pool::new(threads)?;
        let widths = Widths {
            observation: spec.observation_size(),
            action: spec.action_kind().size(),
            terms: spec.term_names().len(),
        };
        let lane = || Lane {
            simulator: None,
            flows: Vec::new(),
            due: vec![false; learners],
            max_steps: 0,
            ended: Ended::Time,
            stopped: None,
            logs: vec![DecisionLog::default(); learners],
            truths: vec![Vec::new(); learners],
        };
        let choices = match spec.action_kind() {
            ActionKind::Discrete(n) => n,
            ActionKind::Box { .. } => 0,
        };
        let lanes = (0..count).map(|_| lane()).collect();
        Ok(Self { lanes, learners, widths, choices, truths: spec.expert_truths(), pool, interrupt: None })
    }

    /// Set a function that is polled, in the waiting thread and in those that simulate, and stops the simulation.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.pool.set_interrupt(interrupt.clone());
        self.interrupt = Some(interrupt);
    }

    /// Return the number of simulators.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.len()
    }
    /// True if there are no simulators.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
    /// Return the number of learners of all simulators.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.lanes.len() * self.learners
    }
    /// Return the size of an observation.
    #[must_use]
    pub const fn observation_size(&self) -> usize {
        self.widths.observation
    }
    /// Return the size of an action.
    #[must_use]
    pub const fn action_size(&self) -> usize {
        self.widths.action
    }

    /// Begin a new episode in simulator `index` and run it to its first decision. `max_steps`: decisions of a learner
    /// after which the episode ends; 0 for no limit. `observations` are the rows of this simulator.
    ///
    /// # Errors
    /// The wrong number of learners, or an episode that ends before a decision.
    pub fn reset(
        &mut self,
        index: usize,
        mut simulator: Simulator,
        max_steps: u64,
        observations: &mut [f32],
    ) -> Result<(), Error> {
        check("observations", observations.len(), self.learners * self.widths.observation)?;
        let learns = |flow: &usize| {
            simulator.sender(*flow).cca().interval_driven().is_some_and(|scheme| scheme.decided_outside())
        };
        let flows: Vec<usize> = (0..simulator.flow_count()).filter(learns).collect();
        if flows.is_empty() || flows.len() > self.learners {
            let found = format!("{} learning flows (scheme \"learned\" without policy)", flows.len());
            return Err(Error::of("wrong-count", "flows", found).expected(format!("1 to {}", self.learners)));
        }
        let lane = &mut self.lanes[index];
        lane.simulator = None;
        lane.ended = Ended::Time;
        if let Some(interrupt) = &self.interrupt {
            simulator.set_interrupt(interrupt.clone());
        }
        lane.due.fill(false);
        lane.logs.fill(DecisionLog::default());
        match simulator.run_to_decision(simulator.end())? {
            Some(flow) => lane.due[learner_of(&flows, flow)] = true,
            None => {
                let found = format!("an end after {} s, before the first decision", simulator.end().as_secs_f64());
                return Err(Error::of("out-of-range", "duration", found).expected("a longer episode"));
            }
        }
        for (row, &flow) in observations.chunks_exact_mut(self.widths.observation).zip(&flows) {
            observe(&simulator, flow, row);
        }
        for (truths, &flow) in lane.truths.iter_mut().zip(&flows) {
            truths.clear();
            remember(truths, self.truths, simulator.ground_truth(flow));
        }
        lane.simulator = Some(simulator);
        lane.flows = flows;
        lane.max_steps = max_steps;
        lane.ended = Ended::Running;
        Ok(())
    }

    /// Return for each row if it waits for an action.
    pub fn due(&self) -> impl Iterator<Item = bool> + '_ {
        self.lanes.iter().flat_map(|lane| lane.due.iter().copied())
    }

    /// Return for each row if the interval of its latest decision is still open.
    pub fn open(&self) -> impl Iterator<Item = bool> + '_ {
        self.lanes.iter().flat_map(|lane| {
            let running = lane.ended == Ended::Running;
            lane.logs.iter().zip(&lane.due).map(move |(log, due)| running && log.has_begun() && !due)
        })
    }

    /// Apply the actions of the rows that are due, and run each simulator until one of its learners is due again, or it
    /// has ended. Writes the rows that are due afterward, and all rows of a simulator that ends; other rows stay as
    /// they are. The interval before a learner's first decision has a reward of 0. Simulators that had ended before
    /// stay as they are.
    ///
    /// # Errors
    /// An array of the wrong size, or no running simulator.
    pub fn step(&mut self, arrays: Arrays<'_>) -> Result<(), Error> {
        let (rows, w, m) = (self.rows(), self.widths, self.learners);
        check("actions", arrays.actions.len(), rows * w.action)?;
        check("obs", arrays.observations.len(), rows * w.observation)?;
        check("reward", arrays.rewards.len(), rows)?;
        check("terms", arrays.terms.len(), rows * w.terms)?;
        check("stats", arrays.stats.len(), rows * COLUMNS.len())?;
        check("due", arrays.due.len(), rows)?;
        check("ended", arrays.ended.len(), self.lanes.len())?;
        if rows == 0 {
            return Ok(());
        }
        if self.lanes.iter().all(|lane| lane.ended != Ended::Running) {
            return Err(not_reset(0));
        }
        // A reward may have no terms: then each simulator's part of them is empty.
        let mut rest = arrays.terms;
        let terms = std::iter::repeat_with(move || {
            let (terms, others) = std::mem::take(&mut rest).split_at_mut(m * w.terms);
            rest = others;
            terms
        });
        let parts = arrays
            .actions
            .chunks_exact(m * w.action)
            .zip(arrays.observations.chunks_exact_mut(m * w.observation))
            .zip(arrays.rewards.chunks_exact_mut(m))
            .zip(terms)
            .zip(arrays.stats.chunks_exact_mut(m * COLUMNS.len()))
            .zip(arrays.due.chunks_exact_mut(m))
            .zip(arrays.ended.chunks_exact_mut(1))
            .map(|((((((actions, observations), rewards), terms), stats), due), ended)| Arrays {
                actions,
                observations,
                rewards,
                terms,
                stats,
                due,
                ended,
            });
        let work = self.lanes.iter_mut().zip(parts);
        let truths = self.truths;
        self.pool.for_each(work, |(lane, part)| lane.stopped = lane.step(w, truths, part).err());
        match self.lanes.iter_mut().find_map(|lane| lane.stopped.take()) {
            None => Ok(()),
            Some(stopped) => Err(stopped),
        }
    }

    /// Write the ground truth of every row, over its latest closed interval.
    ///
    /// # Errors
    /// An array of the wrong size.
    pub fn truth(&mut self, out: &mut [f64]) -> Result<(), Error> {
        check("truth", out.len(), self.rows() * TRUTH_COLUMNS.len())?;
        let width = self.learners * TRUTH_COLUMNS.len();
        for (rows, lane) in out.chunks_exact_mut(width).zip(&mut self.lanes) {
            rows.fill(0.0);
            let Some(simulator) = &mut lane.simulator else { continue };
            for (cells, &flow) in rows.chunks_exact_mut(TRUTH_COLUMNS.len()).zip(&lane.flows) {
                let truth = simulator.ground_truth(flow);
                write_truth(&truth, simulator.sender(flow), cells);
            }
        }
        Ok(())
    }

    /// Write the expert's action for every row that is due to `labels`, and its target to `targets`: bit/s if the agent
    /// steers a rate, else packets. Rows that are not due, or for which the expert has no answer, are NaN. Changes no
    /// state; may be called again.
    ///
    /// # Errors
    /// An array of the wrong size.
    pub fn labels(&self, labels: &mut [f32], targets: &mut [f64]) -> Result<(), Error> {
        check("labels", labels.len(), self.rows() * self.widths.action)?;
        check("targets", targets.len(), self.rows())?;
        labels.fill(f32::NAN);
        targets.fill(f64::NAN);
        let rows = labels.chunks_exact_mut(self.widths.action).zip(targets);
        for (taught, (row, target)) in self.taught().zip(rows) {
            if let Some(label) = taught.and_then(|(agent, truths)| agent.label(truths)) {
                row.copy_from_slice(label.action());
                *target = label.target;
            }
        }
        Ok(())
    }

    /// Write the distance from the expert's target to the result of each listed action, for every row that is due: rows
    /// × actions, in packets, bit/s or as a logarithm, depending on the expert. NaN where [`Self::labels`] is NaN.
    ///
    /// # Errors
    /// An array of the wrong size.
    pub fn label_distances(&self, out: &mut [f64]) -> Result<(), Error> {
        check("distances", out.len(), self.rows() * self.choices)?;
        out.fill(f64::NAN);
        if self.choices > 0 {
            for (taught, row) in self.taught().zip(out.chunks_exact_mut(self.choices)) {
                if let Some(distances) = taught.and_then(|(agent, truths)| agent.label_distances(truths)) {
                    row.copy_from_slice(&distances);
                }
            }
        }
        Ok(())
    }

    /// Return for each row the agent and its expert's ground truth; `None` if it is not due.
    fn taught(&self) -> impl Iterator<Item = Option<(&FlowAgent, &[GroundTruth])>> {
        let learners = self.lanes.iter().flat_map(|lane| (0..self.learners).map(move |learner| (lane, learner)));
        learners.map(|(lane, learner)| {
            let simulator = lane.simulator.as_ref().filter(|_| lane.due[learner])?;
            let agent = FlowAgent::of(simulator.sender(lane.flows[learner]).cca())?;
            Some((agent, &lane.truths[learner][..]))
        })
    }

    /// Return the summary of each learner's episode so far in simulator `index`.
    #[must_use]
    pub fn summary(&self, index: usize) -> Vec<Summary> {
        self.lanes[index].logs.iter().map(DecisionLog::summary).collect()
    }

    /// Return the simulator `index`, if it was ever reset.
    #[must_use]
    pub fn simulator(&self, index: usize) -> Option<&Simulator> {
        self.lanes[index].simulator.as_ref()
    }
}

impl Lane {
    fn step(&mut self, w: Widths, truths: usize, part: Arrays<'_>) -> Result<(), Error> {
        let running = self.ended == Ended::Running;
        let Some(simulator) = self.simulator.as_mut().filter(|_| running) else {
            part.due.fill(0);
            part.ended[0] = self.ended as u8;
            return Ok(());
        };
        for (learner, due) in self.due.iter_mut().enumerate() {
            if std::mem::take(due) {
                self.logs[learner].begin();
                let action = &part.actions[learner * w.action..][..w.action];
                simulator.decide(self.flows[learner], action);
            }
        }
        let next = simulator.run_to_decision(simulator.end()).inspect_err(|_| self.ended = Ended::Time)?;
        part.due.fill(0);
        match next {
            Some(flow) => {
                let learner = learner_of(&self.flows, flow);
                self.due[learner] = true;
                let steps = self.logs[learner].steps() + u64::from(self.logs[learner].has_begun());
                if self.max_steps > 0 && steps >= self.max_steps {
                    self.ended = Ended::Steps;
                }
            }
            None => self.ended = Ended::Time,
        }
        for (learner, &flow) in self.flows.iter().enumerate() {
            if !self.due[learner] {
                if self.ended == Ended::Running {
                    continue;
                }
                simulator.end_interval(flow);
            }
            let truth = simulator.ground_truth(flow);
            remember(&mut self.truths[learner], truths, truth);
            let simulator = &*simulator;
            observe(simulator, flow, &mut part.observations[learner * w.observation..][..w.observation]);
            let terms = &mut part.terms[learner * w.terms..][..w.terms];
            let stats = &mut part.stats[learner * COLUMNS.len()..][..COLUMNS.len()];
            let sender = simulator.sender(flow);
            let Some(reward) = self.logs[learner].close(simulator.now(), sender, &truth, terms, stats) else {
                continue;
            };
            part.rewards[learner] = reward;
            part.due[learner] = u8::from(self.due[learner]);
        }
        part.ended[0] = self.ended as u8;
        Ok(())
    }
}

fn learner_of(flows: &[usize], flow: usize) -> usize {
    flows.iter().position(|f| *f == flow).unwrap_or_default()
}

/// Append `truth`, and keep the latest `count`.
fn remember(truths: &mut Vec<GroundTruth>, count: usize, truth: GroundTruth) {
    if count == 0 {
        return;
    }
    if truths.len() == count {
        truths.remove(0);
    }
    truths.push(truth);
}

pub(crate) fn check(name: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        Ok(())
    } else {
        let found = format!("{found} cells");
        Err(Error::of("shape-mismatch", name, found).expected(expected))
    }
}

/// A step in a simulator that has ended or was never reset.
fn not_reset(index: usize) -> Error {
    Error::of("call-order", format!("simulator {index}"), "a step after its end").expected("a reset before it")
}

fn observe(simulator: &Simulator, flow: usize, row: &mut [f32]) {
    if let Some(agent) = FlowAgent::of(simulator.sender(flow).cca()) {
        row.copy_from_slice(agent.observation());
    }
}
