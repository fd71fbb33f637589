//! Many decisions of a policy in one call, so that no simulator waits for another between two of them.

use ccgym_run::columns::{write_truth, COLUMNS, TRUTH_COLUMNS};

use super::{check, AgentBatch, Arrays, BatchError, Ended, Lane, Widths};
use crate::actor::{Actor, Scratch};
use crate::bounds::Stopped;

/// Where a rollout reads and writes: row-major arrays, simulator by simulator. Those of decisions have `steps` rows per
/// simulator, of which the first `taken` were written by earlier calls.
pub struct RolloutArrays<'a> {
    /// Decisions per simulator.
    pub steps: usize,
    /// Numbers of a standard normal distribution, one per number of an action.
    pub noise: &'a [f32],
    /// Decisions taken so far, one per simulator.
    pub taken: &'a mut [u64],
    /// What each decision was taken on.
    pub observations: &'a mut [f32],
    /// Ground truth then.
    pub truths: &'a mut [f64],
    /// Actions as they were drawn; the flow gets them within the actor's bounds.
    pub actions: &'a mut [f32],
    /// Rewards of the decisions.
    pub rewards: &'a mut [f32],
    /// What is due now: one row per simulator, read and written.
    pub now: Now<'a>,
}

/// The state of each simulator's episode: one row per simulator.
pub struct Now<'a> {
    /// Observations; where an episode has ended, its last one.
    pub observations: &'a mut [f32],
    /// Ground truth.
    pub truths: &'a mut [f64],
    /// Sums of the episodes' rewards.
    pub returns: &'a mut [f64],
    /// The same of each term.
    pub term_sums: &'a mut [f64],
    /// Whether an episode has ended.
    pub ended: &'a mut [u8],
}

/// One simulator's part of [`RolloutArrays`].
struct Part<'a> {
    noise: &'a [f32],
    taken: &'a mut u64,
    observations: &'a mut [f32],
    truths: &'a mut [f64],
    actions: &'a mut [f32],
    rewards: &'a mut [f32],
    observation: &'a mut [f32],
    truth: &'a mut [f64],
    total: &'a mut f64,
    term_sums: &'a mut [f64],
    ended: &'a mut u8,
}

impl AgentBatch {
    /// Let a policy decide in every simulator until `steps` decisions are taken there or its episode has ended; go on
    /// after the resets with the same arrays. Every simulator has one learner. The result does not depend on the number
    /// of threads, nor on how the decisions are divided into calls.
    ///
    /// # Errors
    /// An array of the wrong size, several learners per simulator, a policy of another size, or a simulator that is to
    /// go on after its end.
    pub fn rollout(&mut self, actor: &Actor, arrays: RolloutArrays<'_>) -> Result<(), BatchError> {
        let (w, steps, count) = (self.widths, arrays.steps, self.len());
        check("learners of a rollout", self.learners, 1)?;
        check("numbers of the policy's action", actor.outputs(), w.action)?;
        if actor.inputs() > w.observation {
            return Err(BatchError::Size {
                name: "inputs of the policy",
                found: actor.inputs(),
                expected: w.observation,
            });
        }
        let now = arrays.now;
        check("noise", arrays.noise.len(), count * steps * w.action)?;
        check("taken", arrays.taken.len(), count)?;
        check("observations", arrays.observations.len(), count * steps * w.observation)?;
        check("truths", arrays.truths.len(), count * steps * TRUTH_COLUMNS.len())?;
        check("actions", arrays.actions.len(), count * steps * w.action)?;
        check("rewards", arrays.rewards.len(), count * steps)?;
        check("obs", now.observations.len(), count * w.observation)?;
        check("truth", now.truths.len(), count * TRUTH_COLUMNS.len())?;
        check("returns", now.returns.len(), count)?;
        check("term_sums", now.term_sums.len(), count * w.terms)?;
        check("ended", now.ended.len(), count)?;
        let unfinished = |index: &usize| arrays.taken[*index] < steps as u64;
        if let Some(index) = (0..count).filter(unfinished).find(|index| self.lanes[*index].ended != Ended::Running) {
            return Err(BatchError::NotReset(index));
        }
        if steps == 0 || count == 0 {
            return Ok(());
        }
        // A reward may have no terms: then each simulator's part of them is empty.
        let mut rest = now.term_sums;
        let term_sums = std::iter::repeat_with(move || {
            let (terms, others) = std::mem::take(&mut rest).split_at_mut(w.terms);
            rest = others;
            terms
        });
        let parts = arrays
            .noise
            .chunks_exact(steps * w.action)
            .zip(arrays.taken)
            .zip(arrays.observations.chunks_exact_mut(steps * w.observation))
            .zip(arrays.truths.chunks_exact_mut(steps * TRUTH_COLUMNS.len()))
            .zip(arrays.actions.chunks_exact_mut(steps * w.action))
            .zip(arrays.rewards.chunks_exact_mut(steps))
            .zip(now.observations.chunks_exact_mut(w.observation))
            .zip(now.truths.chunks_exact_mut(TRUTH_COLUMNS.len()))
            .zip(now.returns)
            .zip(term_sums)
            .zip(now.ended)
            .map(
                |(
                    (
                        ((((((((noise, taken), observations), truths), actions), rewards), observation), truth), total),
                        term_sums,
                    ),
                    ended,
                )| {
                    Part {
                        noise,
                        taken,
                        observations,
                        truths,
                        actions,
                        rewards,
                        observation,
                        truth,
                        total,
                        term_sums,
                        ended,
                    }
                },
            );
        let work = self.lanes.iter_mut().zip(parts);
        let truths = self.truths;
        self.pool.for_each(work, |(lane, part)| lane.stopped = lane.rollout(w, truths, actor, steps, part).err());
        match self.lanes.iter_mut().find_map(|lane| lane.stopped.take()) {
            None => Ok(()),
            Some(stopped) => Err(stopped.into()),
        }
    }
}

impl Lane {
    fn rollout(
        &mut self,
        w: Widths,
        truths: usize,
        actor: &Actor,
        steps: usize,
        part: Part<'_>,
    ) -> Result<(), Stopped> {
        let mut scratch = Scratch::default();
        let mut action = vec![0.0; w.action];
        let (mut reward, mut terms, mut stats, mut due) = ([0.0], vec![0.0; w.terms], [0.0; COLUMNS.len()], [0]);
        self.write_truth(part.truth);
        while self.ended == Ended::Running && *part.taken < steps as u64 {
            let step = *part.taken as usize;
            row_mut(part.observations, step, w.observation).copy_from_slice(part.observation);
            row_mut(part.truths, step, TRUTH_COLUMNS.len()).copy_from_slice(part.truth);
            let noise = &part.noise[step * w.action..][..w.action];
            let drawn = row_mut(part.actions, step, w.action);
            actor.act(&mut scratch, part.observation, noise, drawn, &mut action);
            let arrays = Arrays {
                actions: &action,
                observations: &mut *part.observation,
                rewards: &mut reward,
                terms: &mut terms,
                stats: &mut stats,
                due: &mut due,
                ended: std::slice::from_mut(&mut *part.ended),
            };
            self.step(w, truths, arrays)?;
            self.write_truth(part.truth);
            part.rewards[step] = reward[0] as f32;
            *part.total += reward[0];
            part.term_sums.iter_mut().zip(&terms).for_each(|(sum, term)| *sum += term);
            *part.taken += 1;
        }
        Ok(())
    }

    /// The ground truth of the only learner.
    fn write_truth(&mut self, cells: &mut [f64]) {
        let (Some(simulator), Some(&flow)) = (&mut self.simulator, self.flows.first()) else { return };
        let truth = simulator.ground_truth(flow);
        write_truth(&truth, simulator.sender(flow), cells);
    }
}

fn row_mut<T>(cells: &mut [T], row: usize, width: usize) -> &mut [T] {
    &mut cells[row * width..(row + 1) * width]
}
