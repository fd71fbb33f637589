//! `BatchSimulator`: N simulators stepped together into caller-owned arrays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ccgym_core::{Rate, TimeSpan};
use ccgym_schemes::external::External;
use ccgym_sim::Simulator;
use numpy::{PyReadonlyArray1, PyReadwriteArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::interrupt::{stopped, Watch};
use crate::simulate::{build, parse, trace_table, TraceTable};
use crate::trace::Trace;

/// Columns that `step` writes, in order, with units.
const COLUMNS: [&str; 14] = [
    "duration_s",
    "sent_packets",
    "sent_bytes",
    "acked_packets",
    "acked_bytes",
    "lost_packets",
    "mean_rtt_s",
    "min_rtt_s",
    "srtt_s",
    "flow_min_rtt_s",
    "rtt_slope",
    "half_split_rtt_change_s",
    "in_flight_bytes",
    "cwnd_bytes",
];

/// N independent simulators; one flow of each is observed and, if its scheme is `external`, steered.
#[pyclass(module = "ccgym._core")]
pub struct BatchSimulator {
    batch: ccgym_sim::BatchSimulator,
    traces: TraceTable,
    flow: usize,
    watch: Arc<Watch>,
}

#[pymethods]
impl BatchSimulator {
    /// One simulator per specification; `threads` 0 means one per core.
    #[new]
    #[pyo3(signature = (specs, traces, threads = 0, flow = 0))]
    fn new(
        py: Python<'_>,
        specs: Vec<String>,
        traces: BTreeMap<String, Py<Trace>>,
        threads: usize,
        flow: usize,
    ) -> PyResult<Self> {
        let traces = trace_table(py, traces);
        let watch = Watch::new(None);
        let simulators = specs.iter().map(|s| make(s, &traces, flow, &watch)).collect::<PyResult<Vec<_>>>()?;
        let mut batch = ccgym_sim::BatchSimulator::new(simulators, threads)
            .map_err(|e| PyRuntimeError::new_err(format!("cannot start {threads} threads: {e}")))?;
        batch.set_interrupt(&watch.interrupt());
        Ok(Self { batch, traces, flow, watch })
    }

    /// Names of the columns that `step` writes.
    #[staticmethod]
    fn columns() -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn __len__(&self) -> usize {
        self.batch.len()
    }

    /// Replace simulator `index` by a fresh one.
    fn reset(&mut self, index: usize, spec: &str) -> PyResult<()> {
        self.watch.begin();
        let fresh = make(spec, &self.traces, self.flow, &self.watch)?;
        let slot = self.batch.simulators_mut().get_mut(index).ok_or_else(|| {
            PyValueError::new_err(format!("index: found {index}, expected less than the batch's length"))
        })?;
        *slot = fresh;
        Ok(())
    }

    /// Set window (bytes) and pacing rate (bits per second; 0: unpaced) of the observed flow in each simulator.
    /// Raises ValueError if the flow's scheme is not `external`.
    fn control(&mut self, cwnd: PyReadonlyArray1<'_, u64>, pacing: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let (cwnd, pacing) = (slice(&cwnd)?, slice(&pacing)?);
        if cwnd.len() != self.batch.len() || pacing.len() != self.batch.len() {
            return Err(PyValueError::new_err(format!(
                "control: found arrays of {} and {}, expected {}",
                cwnd.len(),
                pacing.len(),
                self.batch.len()
            )));
        }
        let mut refused = None;
        for i in 0..self.batch.len() {
            self.batch.with_cca(i, self.flow, |cca| match cca.as_any_mut().downcast_mut::<External>() {
                Some(external) => {
                    external.set_cwnd(cwnd[i]);
                    external.set_pacing_rate(Rate(pacing[i]));
                }
                None => refused = Some(cca.name()),
            });
        }
        match refused {
            None => Ok(()),
            Some(name) => Err(PyValueError::new_err(format!("control: found scheme {name:?}, expected \"external\""))),
        }
    }

    /// Advance simulator i by `steps_ns[i]` and write its statistics to row i of `out` (N × columns, float64). The
    /// GIL is released. Returns for each whether its run has ended.
    fn step(
        &mut self,
        py: Python<'_>,
        steps_ns: PyReadonlyArray1<'_, u64>,
        mut out: PyReadwriteArray2<'_, f64>,
    ) -> PyResult<Vec<bool>> {
        let steps = slice(&steps_ns)?;
        let n = self.batch.len();
        let out = out.as_slice_mut().map_err(|e| PyValueError::new_err(e.to_string()))?;
        if steps.len() != n || out.len() != n * COLUMNS.len() {
            return Err(PyValueError::new_err(format!(
                "step: found {} steps and {} cells, expected {n} and {n} × {}",
                steps.len(),
                out.len(),
                COLUMNS.len()
            )));
        }
        let flow = self.flow;
        let failed = Mutex::new(None);
        let Self { batch, watch, .. } = self;
        watch.begin();
        py.detach(|| {
            batch.for_each(out, |i, sim, row| {
                let until = sim.now() + TimeSpan(steps[i]);
                match sim.run_until(until) {
                    Ok(()) => write_row(sim, flow, row),
                    Err(error) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
                }
            });
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(watch.error(stopped(&error)));
        }
        Ok(self.batch.simulators().iter().map(|s| s.now() >= s.end()).collect())
    }
}

fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|e| PyValueError::new_err(e.to_string()))
}

fn make(spec: &str, traces: &TraceTable, flow: usize, watch: &Arc<Watch>) -> PyResult<Simulator> {
    let mut spec = parse(spec).map_err(PyValueError::new_err)?;
    spec.record.monitor = true;
    if flow >= spec.flows.len() {
        let found = format!("flow: found {flow}, expected less than {}", spec.flows.len());
        return Err(PyValueError::new_err(found));
    }
    build(&spec, traces, &ccgym_schemes::Resources::default(), watch)
}

fn write_row(sim: &mut Simulator, flow: usize, row: &mut [f64]) {
    let m = sim.take_interval(flow);
    let secs = |t: Option<TimeSpan>| t.map_or(0.0, TimeSpan::as_secs_f64);
    let known = (m.min_rtt != TimeSpan::MAX).then_some(m.min_rtt);
    row.copy_from_slice(&[
        m.duration().as_secs_f64(),
        m.sent_packets as f64,
        m.sent_bytes as f64,
        m.acked_packets as f64,
        m.acked_bytes as f64,
        m.lost_packets as f64,
        secs(m.mean_rtt()),
        secs(m.interval_min_rtt()),
        m.srtt.as_secs_f64(),
        secs(known),
        m.rtt_slope(),
        m.half_split_rtt_change(),
        m.in_flight as f64,
        m.cwnd as f64,
    ]);
}
