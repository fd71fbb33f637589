//! `AgentBatch`: learning flows that Python decides for, stepping into caller-owned arrays.

use std::collections::BTreeMap;
use std::sync::Arc;

use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_run::columns::{COLUMNS, TRUTH_COLUMNS};
use ccgym_schemes::Resources;
use ccgym_sim::agent_batch::{Arrays, Now, RolloutArrays};
use ccgym_sim::Activation;
use numpy::{
    Element, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyReadwriteArray,
    PyReadwriteArray1, PyReadwriteArray2, PyReadwriteArray3,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::Map;

use crate::interrupt::Watch;
use crate::simulate::{build, parse, resources, trace_table, PolicyTable};
use crate::trace::Trace;
use crate::{explained, value_error};

fn agent(json: &str) -> PyResult<AgentSpec> {
    let spec: AgentSpec = serde_json::from_str(json).map_err(|e| PyValueError::new_err(format!("agent: {e}")))?;
    spec.validate().map_err(explained)?;
    Ok(spec)
}

/// Raise ValueError unless this is a valid agent (JSON).
#[pyfunction]
pub fn check_agent(agent_json: &str) -> PyResult<()> {
    agent(agent_json).map(|_| ())
}

/// Describe an agent's observation, action and reward, as JSON.
#[pyfunction]
pub fn describe_agent(agent_json: &str) -> PyResult<String> {
    Ok(agent(agent_json)?.describe().to_string())
}

/// Return all signals, transforms, action maps and reward terms of agents, as JSON.
#[pyfunction]
pub fn agent_vocabulary() -> String {
    ccgym_agent::vocabulary().to_string()
}

/// A policy in training: a network that gives the mean of a Gaussian.
#[pyclass(frozen, module = "ccgym._core")]
pub struct Actor {
    inner: ccgym_sim::Actor,
}

type LayerArrays<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, f32>);

#[pymethods]
impl Actor {
    /// `layers`: weights (outputs × inputs) and biases, first to last; `activation`: "tanh", "relu", "elu" or "silu",
    /// between them; `deviation`, `low`, `high` (A each): standard deviation and bounds of an action. Raises ValueError
    /// if the parts do not fit together.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arrays over")]
    fn new(
        layers: Vec<LayerArrays<'_>>,
        activation: &str,
        deviation: PyReadonlyArray1<'_, f32>,
        low: PyReadonlyArray1<'_, f32>,
        high: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<Self> {
        let kind = Activation::named(activation)
            .ok_or_else(|| value_error(format!("activation: found {activation}, expected tanh, relu, elu or silu")))?;
        let inputs = layers.first().map_or(0, |(weights, _)| weights.as_array().ncols());
        let layers: Vec<(Vec<f32>, Vec<f32>)> = layers
            .iter()
            .map(|(weights, bias)| (weights.as_array().iter().copied().collect(), bias.as_array().to_vec()))
            .collect();
        let bounds = low.as_array().iter().copied().zip(high.as_array().iter().copied()).collect();
        ccgym_sim::Actor::new(inputs, &layers, kind, deviation.as_array().to_vec(), bounds)
            .map(|inner| Self { inner })
            .map_err(value_error)
    }
}

/// N simulators with up to the same number of learning flows each.
#[pyclass(module = "ccgym._core")]
pub struct AgentBatch {
    batch: ccgym_sim::AgentBatch,
    spec: Arc<AgentSpec>,
    resources: Resources,
    watch: Arc<Watch>,
}

#[pymethods]
impl AgentBatch {
    /// Make a batch of `count` simulators with up to `learners` learning flows each; `threads` 0 means one per core.
    #[new]
    #[pyo3(signature = (agent_json, count, learners = 1, threads = 1, policies = PolicyTable::new()))]
    fn new(
        py: Python<'_>,
        agent_json: &str,
        count: usize,
        learners: usize,
        threads: usize,
        policies: PolicyTable,
    ) -> PyResult<Self> {
        if learners == 0 {
            return Err(PyValueError::new_err("learners: found 0, expected at least 1"));
        }
        let spec = Arc::new(agent(agent_json)?);
        let mut batch = ccgym_sim::AgentBatch::new(&spec, count, learners, threads)
            .map_err(|e| PyRuntimeError::new_err(format!("cannot start {threads} threads: {e}")))?;
        let resources = Resources { agent: Some(FlowAgent::new(spec.clone())), ..resources(py, policies) };
        // Report parts that do not fit together here rather than at the first episode.
        ccgym_schemes::create_with("learned", &Map::new(), &resources)
            .map_err(|error| explained(error.coded("agent-invalid")))?;
        let watch = Watch::new(None);
        batch.set_interrupt(watch.interrupt());
        Ok(Self { batch, spec, resources, watch })
    }

    /// Names, with units, of the columns that `step` writes to `stats`.
    #[staticmethod]
    fn columns() -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    /// Names, with units, of the columns that `truth` writes.
    #[staticmethod]
    fn truth_columns() -> Vec<&'static str> {
        TRUTH_COLUMNS.to_vec()
    }

    /// Names of the columns that `step` writes to `terms`.
    fn terms(&self) -> Vec<String> {
        self.spec.term_names()
    }

    /// Number of learners of all simulators.
    #[getter]
    fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// Size of an observation.
    #[getter]
    fn observation_size(&self) -> usize {
        self.batch.observation_size()
    }

    /// Size of an action; a discrete one is its index.
    #[getter]
    fn action_size(&self) -> usize {
        self.batch.action_size()
    }

    fn __len__(&self) -> usize {
        self.batch.len()
    }

    /// Begin an episode in simulator `index`: run it to its first decision and write its rows of `obs`. `max_steps`:
    /// decisions after which it ends; 0: no limit. Raises ValueError if it cannot be run, MemoryError if it would hold
    /// more than it may.
    #[pyo3(signature = (index, spec_json, traces, max_steps, obs))]
    fn reset(
        &mut self,
        py: Python<'_>,
        index: usize,
        spec_json: &str,
        traces: BTreeMap<String, Py<Trace>>,
        max_steps: u64,
        mut obs: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        self.check(index)?;
        let obs = contiguous_mut(&mut obs)?;
        let cells = self.batch.rows() / self.batch.len() * self.batch.observation_size();
        let rows = obs.get_mut(index * cells..(index + 1) * cells).ok_or_else(|| {
            PyValueError::new_err(format!("obs: found too few cells, expected {}", self.batch.len() * cells))
        })?;
        let traces = trace_table(py, traces);
        let Self { batch, resources, watch, .. } = self;
        watch.begin();
        py.detach(|| {
            let simulator = build(&parse(spec_json).map_err(value_error)?, &traces, resources, watch)?;
            batch.reset(index, simulator, max_steps, rows).map_err(|e| watch.error(explained(e)))
        })
    }

    /// Apply the actions of the rows that are due and run each simulator to its next decision or its end; returns whether
    /// some simulator has ended. Rows that are then due, and every row of a simulator that ends, are written. `ended`: 0
    /// running, 1 its steps are over, 2 its time is; such a simulator stays as it is until its reset. The GIL is released.
    /// Raises ValueError for arrays of the wrong size, and where none runs.
    #[expect(clippy::too_many_arguments, reason = "one array each")]
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArray2<'_, f32>,
        mut obs: PyReadwriteArray2<'_, f32>,
        mut reward: PyReadwriteArray1<'_, f64>,
        mut terms: PyReadwriteArray2<'_, f64>,
        mut stats: PyReadwriteArray2<'_, f64>,
        mut due: PyReadwriteArray1<'_, u8>,
        mut ended: PyReadwriteArray1<'_, u8>,
    ) -> PyResult<bool> {
        let arrays = Arrays {
            actions: contiguous(&actions)?,
            observations: contiguous_mut(&mut obs)?,
            rewards: contiguous_mut(&mut reward)?,
            terms: contiguous_mut(&mut terms)?,
            stats: contiguous_mut(&mut stats)?,
            due: contiguous_mut(&mut due)?,
            ended: contiguous_mut(&mut ended)?,
        };
        let Self { batch, watch, .. } = self;
        watch.begin();
        py.detach(|| batch.step(arrays)).map_err(|e| watch.error(explained(e)))?;
        Ok(contiguous_mut(&mut ended)?.iter().any(|ended| *ended != 0))
    }

    /// Let `actor` decide for every learner until each simulator has K samples, decisions whose interval has closed, or its
    /// episode has ended; after the resets a call with the same arrays goes on. Per sample (simulators × K × …), in the
    /// order in which the intervals closed: `learners` (whose it is), `obs`, `truth`, `actions` (before they are clipped)
    /// and `rewards` are written, from row `taken` of each simulator on, which moves. `noise` (simulators × (K + learners
    /// − 1) × A) is read from row `decided` on, which moves too. Per learner, read and written: `now_obs`, `now_truth`,
    /// `drawn` (its action in force), `returns`, `term_sums`, `lengths`; per simulator `ended`. The GIL is released.
    /// Raises ValueError for arrays of the wrong size, and after an end without reset.
    #[expect(clippy::too_many_arguments, reason = "one array each")]
    fn rollout(
        &mut self,
        py: Python<'_>,
        actor: &Actor,
        noise: PyReadonlyArray3<'_, f32>,
        mut decided: PyReadwriteArray1<'_, u64>,
        mut taken: PyReadwriteArray1<'_, u64>,
        mut learners: PyReadwriteArray2<'_, u32>,
        mut obs: PyReadwriteArray3<'_, f32>,
        mut truth: PyReadwriteArray3<'_, f64>,
        mut actions: PyReadwriteArray3<'_, f32>,
        mut rewards: PyReadwriteArray2<'_, f32>,
        mut now_obs: PyReadwriteArray2<'_, f32>,
        mut now_truth: PyReadwriteArray2<'_, f64>,
        mut drawn: PyReadwriteArray2<'_, f32>,
        mut returns: PyReadwriteArray1<'_, f64>,
        mut term_sums: PyReadwriteArray2<'_, f64>,
        mut lengths: PyReadwriteArray1<'_, i64>,
        mut ended: PyReadwriteArray1<'_, u8>,
    ) -> PyResult<()> {
        let arrays = RolloutArrays {
            samples: rewards.as_array().shape()[1],
            noise: contiguous(&noise)?,
            decided: contiguous_mut(&mut decided)?,
            taken: contiguous_mut(&mut taken)?,
            learners: contiguous_mut(&mut learners)?,
            observations: contiguous_mut(&mut obs)?,
            truths: contiguous_mut(&mut truth)?,
            actions: contiguous_mut(&mut actions)?,
            rewards: contiguous_mut(&mut rewards)?,
            now: Now {
                observations: contiguous_mut(&mut now_obs)?,
                truths: contiguous_mut(&mut now_truth)?,
                actions: contiguous_mut(&mut drawn)?,
                returns: contiguous_mut(&mut returns)?,
                term_sums: contiguous_mut(&mut term_sums)?,
                lengths: contiguous_mut(&mut lengths)?,
                ended: contiguous_mut(&mut ended)?,
            },
        };
        let Self { batch, watch, .. } = self;
        watch.begin();
        py.detach(|| batch.rollout(&actor.inner, arrays)).map_err(|e| watch.error(explained(e)))
    }

    /// Replace the policies that flows of the episodes to come may decide by.
    fn set_policies(&mut self, py: Python<'_>, policies: PolicyTable) {
        self.resources.policies = resources(py, policies).policies;
    }

    /// Write 1 for each row that waits for an action, else 0.
    fn due(&self, mut out: PyReadwriteArray1<'_, u8>) -> PyResult<()> {
        flags(contiguous_mut(&mut out)?, self.batch.rows(), self.batch.due())
    }

    /// Write 1 for each row whose latest decision has an open interval, else 0.
    fn open(&self, mut out: PyReadwriteArray1<'_, u8>) -> PyResult<()> {
        flags(contiguous_mut(&mut out)?, self.batch.rows(), self.batch.open())
    }

    /// Write the ground truth of every row's path: privileged, for experts, critics and reports.
    fn truth(&mut self, mut out: PyReadwriteArray2<'_, f64>) -> PyResult<()> {
        self.batch.truth(contiguous_mut(&mut out)?).map_err(value_error)
    }

    /// Write the expert's actions for every row that is due to `labels` (rows × action_size), and its targets (bit/s of
    /// a steered rate, else packets) to `targets` (rows). NaN where there is none.
    fn labels(&self, mut labels: PyReadwriteArray2<'_, f32>, mut targets: PyReadwriteArray1<'_, f64>) -> PyResult<()> {
        self.batch.labels(contiguous_mut(&mut labels)?, contiguous_mut(&mut targets)?).map_err(value_error)
    }

    /// Write the distance from the expert's target to the result of each listed action to `out` (rows × actions), for
    /// every row that is due. NaN where there is no label.
    fn label_distances(&self, mut out: PyReadwriteArray2<'_, f64>) -> PyResult<()> {
        self.batch.label_distances(contiguous_mut(&mut out)?).map_err(value_error)
    }

    /// Number of intervals whose truth the agent's expert needs; 0 if it needs none.
    #[getter]
    fn expert_truths(&self) -> usize {
        self.spec.expert_truths()
    }

    /// Summary of the episode of simulator `index` so far, as JSON: one object per learner.
    fn summary(&self, index: usize) -> PyResult<String> {
        self.check(index)?;
        serde_json::to_string(&self.batch.summary(index)).map_err(value_error)
    }

    /// Hash over every acknowledgement of simulator `index` so far.
    fn trajectory_hash(&self, index: usize) -> PyResult<String> {
        self.check(index)?;
        Ok(self.batch.simulator(index).map_or_else(String::new, |s| format!("{:016x}", s.trajectory_hash())))
    }
}

impl AgentBatch {
    fn check(&self, index: usize) -> PyResult<()> {
        if index < self.batch.len() {
            Ok(())
        } else {
            Err(value_error(format!("index: found {index}, expected less than {}", self.batch.len())))
        }
    }
}

fn flags(out: &mut [u8], rows: usize, values: impl Iterator<Item = bool>) -> PyResult<()> {
    if out.len() != rows {
        return Err(value_error(format!("out: found {} cells, expected {rows}", out.len())));
    }
    out.iter_mut().zip(values).for_each(|(cell, value)| *cell = u8::from(value));
    Ok(())
}

fn contiguous<'a, T: Element, D: numpy::ndarray::Dimension>(array: &'a PyReadonlyArray<'_, T, D>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(value_error)
}

fn contiguous_mut<'a, T: Element, D: numpy::ndarray::Dimension>(
    array: &'a mut PyReadwriteArray<'_, T, D>,
) -> PyResult<&'a mut [T]> {
    array.as_slice_mut().map_err(value_error)
}
