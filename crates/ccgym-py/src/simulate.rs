//! `simulate` and its relatives: JSON in, results out.

use std::collections::BTreeMap;
use std::sync::Arc;

use ccgym_link::DeliveryTrace;
use ccgym_schemes::Resources;
use ccgym_sim::{FlowSpec, Outcome, SimSpec, Simulator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;
use serde_json::{json, Map, Value};

use crate::policy::Policy;
use crate::result::SimResult;
use crate::trace::Trace;

/// Traces by name, without Python objects.
pub(crate) type TraceTable = BTreeMap<String, Arc<DeliveryTrace>>;

pub(crate) fn trace_table(py: Python<'_>, traces: BTreeMap<String, Py<Trace>>) -> TraceTable {
    traces.into_iter().map(|(name, t)| (name, t.bind(py).get().inner.clone())).collect()
}

/// Policies by name, without Python objects.
pub(crate) type PolicyTable = BTreeMap<String, Py<Policy>>;

pub(crate) fn resources(py: Python<'_>, policies: PolicyTable) -> Resources {
    let policies = policies.into_iter().map(|(name, p)| (name, p.bind(py).get().inner.clone())).collect();
    Resources { policies, agent: None }
}

/// Parse a specification; the error names the place in the JSON.
pub(crate) fn parse(spec: &str) -> Result<SimSpec, String> {
    serde_json::from_str(spec).map_err(|e| format!("simulation specification: {e}"))
}

/// Build a simulator from a parsed specification.
pub(crate) fn build(spec: &SimSpec, traces: &TraceTable, resources: &Resources) -> Result<Simulator, String> {
    let scheme =
        |flow: &FlowSpec| ccgym_schemes::create_with(&flow.scheme, &flow.params, resources).map_err(|e| e.to_string());
    Simulator::new(spec, &|name| traces.get(name).cloned(), &scheme).map_err(|e| e.to_string())
}

fn run(spec: &str, traces: &TraceTable, resources: &Resources) -> Result<(Outcome, SimSpec), String> {
    let spec = parse(spec)?;
    let mut simulator = build(&spec, traces, resources)?;
    simulator.run();
    Ok((simulator.outcome(), spec))
}

/// Run one simulation. Raises ValueError when the specification cannot be run.
#[pyfunction]
#[pyo3(signature = (spec_json, traces, policies = PolicyTable::new()))]
pub fn simulate(
    py: Python<'_>,
    spec_json: &str,
    traces: BTreeMap<String, Py<Trace>>,
    policies: PolicyTable,
) -> PyResult<SimResult> {
    let (traces, resources) = (trace_table(py, traces), resources(py, policies));
    py.detach(|| run(spec_json, &traces, &resources))
        .map(|(outcome, spec)| SimResult::new(outcome, &spec))
        .map_err(PyValueError::new_err)
}

/// Run many simulations on `threads` threads (0: one per core); results in the order of `specs`, the same on any
/// number of threads.
#[pyfunction]
#[pyo3(signature = (specs, traces, threads, policies = PolicyTable::new()))]
pub fn simulate_many(
    py: Python<'_>,
    specs: Vec<String>,
    traces: BTreeMap<String, Py<Trace>>,
    threads: usize,
    policies: PolicyTable,
) -> PyResult<Vec<SimResult>> {
    let (traces, resources) = (trace_table(py, traces), resources(py, policies));
    let outcomes = py.detach(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
        pool.install(|| specs.par_iter().map(|s| run(s, &traces, &resources)).collect::<Result<Vec<_>, _>>())
    });
    Ok(outcomes
        .map_err(PyValueError::new_err)?
        .into_iter()
        .map(|(outcome, spec)| SimResult::new(outcome, &spec))
        .collect())
}

/// Raise ValueError unless the scheme exists and takes these parameters (JSON object).
#[pyfunction]
pub fn check_scheme(name: &str, params_json: &str) -> PyResult<()> {
    let params: Map<String, Value> =
        serde_json::from_str(params_json).map_err(|e| PyValueError::new_err(format!("{name}: parameters: {e}")))?;
    ccgym_schemes::create(name, &params).map(|_| ()).map_err(|e| PyValueError::new_err(e.to_string()))
}

fn parameter(p: &ccgym_schemes::Parameter) -> Value {
    json!({
        "name": p.name,
        "default": p.default_value(),
        "min": p.min(),
        "max": p.max(),
        "choices": p.choices(),
        "unit": p.unit,
        "help": p.help,
    })
}

/// The registry as JSON: one object per scheme.
#[pyfunction]
pub fn schemes() -> PyResult<String> {
    let mut table = Vec::new();
    for entry in ccgym_schemes::registry() {
        let info = &entry.info;
        let parameters: Vec<Value> = info.parameters.iter().map(parameter).collect();
        let c = ccgym_schemes::create(info.name, &Map::new())
            .map_err(|e| PyValueError::new_err(e.to_string()))?
            .capabilities();
        table.push(json!({
            "name": info.name,
            "label": info.label,
            "color": info.color,
            "marker": info.marker,
            "reference": info.reference,
            "summary": info.summary,
            "parameters": parameters,
            "capabilities": {
                "per_packet_receipts": c.per_packet_receipts,
                "pacing_required": c.pacing_required,
                "knows_path": c.knows_path,
                "ecn": c.ecn,
                "prr": c.prr,
            },
        }));
    }
    serde_json::to_string(&table).map_err(|e| PyValueError::new_err(e.to_string()))
}
