//! `simulate` and its relatives: JSON in, results out.

use std::collections::BTreeMap;
use std::sync::Arc;

use ccgym_core::Error;
use ccgym_path::{DeliveryTrace, ElementSpec};
use ccgym_run::spec::SizeSpec;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::Resources;
use ccgym_sim::Simulator;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{json, Map, Value};

use crate::interrupt::{Halt, Watch};
use crate::policy::Policy;
use crate::python_scheme::{guests, OnFailure, PythonTable};
use crate::result::SimResult;
use crate::trace::Trace;
use crate::{explained, value_error};

/// Traces by name, without Python objects.
pub(crate) type TraceTable = BTreeMap<String, Arc<DeliveryTrace>>;

pub(crate) fn trace_table(py: Python<'_>, traces: BTreeMap<String, Py<Trace>>) -> TraceTable {
    traces.into_iter().map(|(name, t)| (name, t.bind(py).get().inner.clone())).collect()
}

/// Policies by name, without Python objects.
pub(crate) type PolicyTable = BTreeMap<String, Py<Policy>>;

pub(crate) fn resources(py: Python<'_>, policies: PolicyTable) -> Resources {
    let policies = policies.into_iter().map(|(name, p)| (name, p.bind(py).get().inner.clone())).collect();
    Resources { policies, ..Resources::default() }
}

/// Parse a specification; the error names the place in the JSON.
pub(crate) fn parse(spec: &str) -> Result<RunSpec, String> {
    serde_json::from_str(spec).map_err(|e| format!("simulation specification: {e}"))
}

/// Build a simulator from a parsed specification, which `watch` may interrupt.
pub(crate) fn build(
    spec: &RunSpec,
    traces: &TraceTable,
    resources: &Resources,
    watch: &Arc<Watch>,
) -> PyResult<Simulator> {
    let scheme = |flow: &FlowSpec| {
        if watch.is_over() {
            return Err(Error::of("run-abandoned", "simulation", "an interrupt before its start"));
        }
        ccgym_schemes::create_with(&flow.scheme, &flow.params, resources)
    };
    let mut simulator =
        Simulator::new(spec, &|name| traces.get(name).cloned(), &scheme).map_err(|e| watch.error(explained(e)))?;
    simulator.set_interrupt(watch.interrupt());
    Ok(simulator)
}

/// Run one simulation. Raises ValueError when the specification cannot be run, MemoryError when it would hold more than
/// it may, RuntimeError when `halt` was set, SchemeFailure when a scheme in Python failed, and what a signal's handler
/// raises.
#[pyfunction]
#[pyo3(signature = (spec_json, traces, policies = PolicyTable::new(), python = PythonTable::new(), halt = None))]
pub fn simulate(
    py: Python<'_>,
    spec_json: &str,
    traces: BTreeMap<String, Py<Trace>>,
    policies: PolicyTable,
    python: PythonTable,
    halt: Option<Py<Halt>>,
) -> PyResult<SimResult> {
    let traces = trace_table(py, traces);
    let watch = Watch::new(halt.as_ref().map(Py::get));
    let on_failure: OnFailure = {
        let watch = watch.clone();
        Arc::new(move |error| watch.end_with(error))
    };
    let calling = halt.as_ref().filter(|_| !python.is_empty()).map(Py::get);
    let thread = calling.map(|halt| halt.enter(py)).transpose()?;
    let resources = Resources { guests: guests(python, &on_failure, false), ..resources(py, policies) };
    let result = py.detach(|| {
        let spec = parse(spec_json).map_err(PyValueError::new_err)?;
        let mut simulator = build(&spec, &traces, &resources, &watch)?;
        simulator.run().map_err(|e| watch.error(explained(e)))?;
        watch.check()?;
        Ok(SimResult::new(simulator.finish(), &spec))
    });
    if let (Some(halt), Some(thread)) = (calling, thread) {
        halt.leave(py, thread)?;
    }
    result
}

/// True if something on a path bounds the growth of a greedy flow (two JSON lists of elements).
#[pyfunction]
pub fn limits_flows(uplink_json: &str, downlink_json: &str) -> PyResult<bool> {
    let elements = |json| serde_json::from_str::<Vec<ElementSpec>>(json).map_err(value_error);
    Ok(ccgym_run::spec::limits_flows(elements(uplink_json)?.iter(), elements(downlink_json)?.iter()))
}

/// A transfer's size in bytes, by a law (JSON object); `uniform` gives numbers from 0 up to, not including, 1. Raises what
/// it raises.
#[pyfunction]
pub fn draw_size(size_json: &str, uniform: &Bound<'_, PyAny>) -> PyResult<u64> {
    let size = size_distribution(size_json)?;
    let mut failure = None;
    let mut next = || match uniform.call0().and_then(|number| number.extract::<f64>()) {
        Ok(number) => number,
        Err(error) => {
            failure = Some(error);
            0.0
        }
    };
    let bytes = size.draw(&mut next);
    failure.map_or(Ok(bytes), Err)
}

/// The mean size of transfers in bytes, by a law (JSON object).
#[pyfunction]
pub fn mean_size(size_json: &str) -> PyResult<f64> {
    size_distribution(size_json).map(|size| size.mean())
}

fn size_distribution(size_json: &str) -> PyResult<SizeSpec> {
    let size: SizeSpec = serde_json::from_str(size_json).map_err(value_error)?;
    size.validate("size").map_err(explained)?;
    Ok(size)
}

/// Raise ValueError unless the scheme exists and takes these parameters (JSON object).
#[pyfunction]
pub fn check_scheme(name: &str, params_json: &str) -> PyResult<()> {
    let params: Map<String, Value> =
        serde_json::from_str(params_json).map_err(|e| PyValueError::new_err(format!("{name}: parameters: {e}")))?;
    ccgym_schemes::create(name, &params).map(|_| ()).map_err(explained)
}

/// The registry as JSON: one object per scheme.
#[pyfunction]
pub fn schemes() -> PyResult<String> {
    let mut table = Vec::new();
    for entry in ccgym_schemes::registry() {
        let info = &entry.info;
        let c = ccgym_schemes::create(info.name, &Map::new()).map_err(value_error)?.capabilities();
        let mut row = json!(info);
        row["capabilities"] = json!({
            "pacing_required": c.pacing_required,
            "knows_path": c.knows_path,
            "ecn": c.ecn,
            "prr": c.prr,
            "bounded": c.bounded,
        });
        table.push(row);
    }
    serde_json::to_string(&table).map_err(value_error)
}
