//! Many decisions of a policy in one call, so that no simulator waits for another in between.
//!
//! A decision becomes a sample when its interval closes. Learners of one simulator have clocks of their own, so their
//! samples interleave: a simulator's rows hold those of all its learners, in the order in which their intervals closed.
//! A decision whose interval is open when the rows are full is a sample of the next rollout.

use ccgym_run::columns::{write_truth, COLUMNS, TRUTH_COLUMNS};

use super::{check, not_reset, AgentBatch, Arrays, Ended, Lane, Widths};
use crate::actor::Actor;
use ccgym_core::Error;

/// Arrays that a rollout reads and writes: row-major, simulator by simulator. Those of samples have `samples` rows per
/// simulator; earlier calls wrote the first `taken`.
pub struct RolloutArrays<'a> {
    /// Samples per simulator.
    pub samples: usize,
    /// Numbers of a standard normal distribution, one per number of an action: for `samples` + learners − 1 decisions
    /// per simulator; earlier calls used the first `decided`.
    pub noise: &'a [f32],
    /// Decisions taken so far, one per simulator.
    pub decided: &'a mut [u64],
    /// Samples so far, one per simulator.
    pub taken: &'a mut [u64],
    /// Index of each sample's learner in its simulator.
    pub learners: &'a mut [u32],
    /// Observation of each decision.
    pub observations: &'a mut [f32],
    /// Ground truth of each decision.
    pub truths: &'a mut [f64],
    /// Actions as drawn; the flow gets them within the actor's bounds.
    pub actions: &'a mut [f32],
    /// Rewards of the decisions.
    pub rewards: &'a mut [f32],
    /// Current state: one row per learner, read and written.
    pub now: Now<'a>,
}

/// The state of each simulator's episode: one row per learner, except for `ended`.
pub struct Now<'a> {
    /// Observations of the current decision, or of the next; at the end of an episode, those after a learner's last
    /// interval if that is a sample.
    pub observations: &'a mut [f32],
    /// Ground truth. The same.
    pub truths: &'a mut [f64],
    /// Current actions, as drawn.
    pub actions: &'a mut [f32],
    /// Sums of the episodes' rewards.
    pub returns: &'a mut [f64],
    /// The same of each term.
    pub term_sums: &'a mut [f64],
    /// Number of decisions of the episodes whose interval has closed.
    pub lengths: &'a mut [i64],
    /// 0 for each simulator that runs, else its [`Ended`].
    pub ended: &'a mut [u8],
}

/// One simulator's part of [`RolloutArrays`].
struct Part<'a> {
    noise: &'a [f32],
    decided: &'a mut u64,
    taken: &'a mut u64,
    learners: &'a mut [u32],
    observations: &'a mut [f32],
    truths: &'a mut [f64],
    actions: &'a mut [f32],
    rewards: &'a mut [f32],
    now: Now<'a>,
}

impl AgentBatch {
    /// Let a policy decide for every learner until each simulator has `samples` samples or its episode has ended;
    /// continue after the resets with the same arrays. The result depends neither on the number of threads nor on the
    /// division of the samples into calls.
    ///
    /// Every interval that a flow's own clock closes is one sample. At the end of an episode the open intervals are
    /// cut: they are samples as far as the rows reach.
    ///
    /// # Errors
    /// An array of the wrong size, a policy of another size, or a call for a simulator that has ended.
    pub fn rollout(&mut self, actor: &Actor, arrays: RolloutArrays<'_>) -> Result<(), Error> {
        let (w, m, samples, count, rows) = (self.widths, self.learners, arrays.samples, self.len(), self.rows());
        let decisions = samples + m - 1;
        check("numbers of the policy's action", actor.outputs(), w.action)?;
        if actor.inputs() > w.observation {
            check("inputs of the policy", actor.inputs(), w.observation)?;
        }
        let now = arrays.now;
        check("noise", arrays.noise.len(), count * decisions * w.action)?;
        check("decided", arrays.decided.len(), count)?;
        check("taken", arrays.taken.len(), count)?;
        check("learners", arrays.learners.len(), count * samples)?;
        check("observations", arrays.observations.len(), count * samples * w.observation)?;
        check("truths", arrays.truths.len(), count * samples * TRUTH_COLUMNS.len())?;
        check("actions", arrays.actions.len(), count * samples * w.action)?;
        check("rewards", arrays.rewards.len(), count * samples)?;
        check("obs", now.observations.len(), rows * w.observation)?;
        check("truth", now.truths.len(), rows * TRUTH_COLUMNS.len())?;
        check("drawn", now.actions.len(), rows * w.action)?;
        check("returns", now.returns.len(), rows)?;
        check("term_sums", now.term_sums.len(), rows * w.terms)?;
        check("lengths", now.lengths.len(), rows)?;
        check("ended", now.ended.len(), count)?;
        let unfinished = |index: &usize| arrays.taken[*index] < samples as u64;
        if let Some(index) = (0..count).filter(unfinished).find(|index| self.lanes[*index].ended != Ended::Running) {
            return Err(not_reset(index));
        }
        if samples == 0 || count == 0 {
            return Ok(());
        }
        let mut noise = arrays.noise.chunks_exact(decisions * w.action);
        let mut learners = arrays.learners.chunks_exact_mut(samples);
        let mut observations = arrays.observations.chunks_exact_mut(samples * w.observation);
        let mut truths = arrays.truths.chunks_exact_mut(samples * TRUTH_COLUMNS.len());
        let mut actions = arrays.actions.chunks_exact_mut(samples * w.action);
        let mut rewards = arrays.rewards.chunks_exact_mut(samples);
        let mut now_observations = now.observations.chunks_exact_mut(m * w.observation);
        let mut now_truths = now.truths.chunks_exact_mut(m * TRUTH_COLUMNS.len());
        let mut now_actions = now.actions.chunks_exact_mut(m * w.action);
        let mut returns = now.returns.chunks_exact_mut(m);
        // A reward may have no terms: then each simulator's part of them is empty.
        let mut term_sums = now.term_sums.chunks_exact_mut((m * w.terms).max(1));
        let mut lengths = now.lengths.chunks_exact_mut(m);
        let parts = arrays.decided.iter_mut().zip(arrays.taken).zip(now.ended.chunks_exact_mut(1)).map(
            |((decided, taken), ended)| {
                Some(Part {
                    noise: noise.next()?,
                    decided,
                    taken,
                    learners: learners.next()?,
                    observations: observations.next()?,
                    truths: truths.next()?,
                    actions: actions.next()?,
                    rewards: rewards.next()?,
                    now: Now {
                        observations: now_observations.next()?,
                        truths: now_truths.next()?,
                        actions: now_actions.next()?,
                        returns: returns.next()?,
                        term_sums: term_sums.next().unwrap_or_default(),
                        lengths: lengths.next()?,
                        ended,
                    },
                })
            },
        );
        let parts: Vec<_> = parts.map(|part| part.expect("the sizes were checked")).collect();
        let work = self.lanes.iter_mut().zip(parts);
        let truths = self.truths;
        self.pool.for_each(work, |(lane, part)| lane.stopped = lane.rollout(w, truths, actor, part).err());
        match self.lanes.iter_mut().find_map(|lane| lane.stopped.take()) {
            None => Ok(()),
            Some(stopped) => Err(stopped),
        }
    }
}

impl Lane {
    fn rollout(&mut self, w: Widths, truths: usize, actor: &Actor, part: Part<'_>) -> Result<(), Error> {
        let (m, samples) = (self.due.len(), part.rewards.len());
        let mut scratch = Vec::new();
        let mut actions = vec![0.0; m * w.action];
        let mut before = vec![0.0; m * w.observation];
        let (mut rewards, mut terms, mut stats, mut due) =
            (vec![0.0; m], vec![0.0; m * w.terms], vec![0.0; m * COLUMNS.len()], vec![0; m]);
        for learner in 0..self.flows.len() {
            if self.due[learner] {
                self.write_truth(learner, part.now.truths);
            }
        }
        while self.ended == Ended::Running && *part.taken < samples as u64 {
            for learner in 0..self.flows.len() {
                if self.due[learner] {
                    let noise = row(part.noise, *part.decided as usize, w.action);
                    let observation = row(part.now.observations, learner, w.observation);
                    let drawn = row_mut(part.now.actions, learner, w.action);
                    actor.act(&mut scratch, observation, noise, drawn, row_mut(&mut actions, learner, w.action));
                    *part.decided += 1;
                }
            }
            before.copy_from_slice(part.now.observations);
            let arrays = Arrays {
                actions: &actions,
                observations: &mut *part.now.observations,
                rewards: &mut rewards,
                terms: &mut terms,
                stats: &mut stats,
                due: &mut due,
                ended: &mut *part.now.ended,
            };
            self.step(w, truths, arrays)?;
            let over = self.ended != Ended::Running;
            // The learner that is due comes first: its interval was not cut.
            let due = self.due.iter().position(|due| *due);
            let cut = (0..self.flows.len()).filter(|learner| over && Some(*learner) != due);
            for learner in due.into_iter().chain(cut) {
                let last = row(&before, learner, w.observation);
                if self.logs[learner].has_begun() {
                    let sums = row_mut(part.now.term_sums, learner, w.terms);
                    part.now.returns[learner] += rewards[learner];
                    part.now.lengths[learner] += 1;
                    sums.iter_mut().zip(row(&terms, learner, w.terms)).for_each(|(sum, term)| *sum += term);
                    if *part.taken == samples as u64 {
                        row_mut(part.now.observations, learner, w.observation).copy_from_slice(last);
                        continue;
                    }
                    let place = *part.taken as usize;
                    let truth = row(part.now.truths, learner, TRUTH_COLUMNS.len());
                    part.learners[place] = learner as u32;
                    row_mut(part.observations, place, w.observation).copy_from_slice(last);
                    row_mut(part.truths, place, TRUTH_COLUMNS.len()).copy_from_slice(truth);
                    row_mut(part.actions, place, w.action).copy_from_slice(row(part.now.actions, learner, w.action));
                    part.rewards[place] = rewards[learner] as f32;
                    *part.taken += 1;
                }
                self.write_truth(learner, part.now.truths);
            }
        }
        Ok(())
    }

    /// Write the ground truth of a learner to its row.
    fn write_truth(&mut self, learner: usize, rows: &mut [f64]) {
        let (Some(simulator), Some(&flow)) = (&mut self.simulator, self.flows.get(learner)) else { return };
        let truth = simulator.ground_truth(flow);
        write_truth(&truth, simulator.sender(flow), row_mut(rows, learner, TRUTH_COLUMNS.len()));
    }
}

fn row<T>(cells: &[T], row: usize, width: usize) -> &[T] {
    &cells[row * width..(row + 1) * width]
}

fn row_mut<T>(cells: &mut [T], row: usize, width: usize) -> &mut [T] {
    &mut cells[row * width..(row + 1) * width]
}
