//! The real path: its jobs, and the results of runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ccgym_mahimahi::MAHIMAHI;
use ccgym_net::run::{Host, RunResult, EMULATED};
use ccgym_run::RunSpec;
use ccgym_schemes::Guest;
use ccgym_tunnel::{join, HalfResult, JoinOptions, REMOTE};
use pyo3::prelude::*;
use serde_json::Value;

use crate::python_scheme::{guests, OnFailure, PythonTable};
use crate::result::SimResult;
use crate::{explained, value_error};

/// Do a job (`shell`, `sender`, `receiver`, `run` or `doctor`, as a JSON document) and return its exit status. For a
/// process of its own: it may change namespaces, and end with its standard input.
#[pyfunction]
pub fn net(py: Python<'_>, job: &str) -> i32 {
    py.detach(|| {
        let host = Host { make_guests: &python_guests, backends: &[EMULATED, MAHIMAHI, REMOTE] };
        ccgym_net::job::run(job, &host)
    })
}

/// Make the schemes in Python that a plan names: the package makes their classes, and reports their failures, which end
/// the process. It is imported only here, since it may start threads.
fn python_guests(asked: &BTreeMap<String, Value>) -> Result<BTreeMap<String, Arc<dyn Guest>>, String> {
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let load = |py: Python<'_>| -> PyResult<_> {
        let package = py.import("ccgym.emulation.python_schemes")?;
        let sources = serde_json::to_string(asked).map_err(value_error)?;
        let classes: PythonTable = package.call_method1("make_all", (sources,))?.extract()?;
        let end = package.getattr("end_process")?.unbind();
        let on_failure: OnFailure = Arc::new(move |error| {
            // It does not return: it ends the process.
            Python::attach(|py| drop(end.call1(py, (error.into_value(py),))));
        });
        Ok(guests(classes, &on_failure, true))
    };
    Python::attach(load).map_err(|error| error.to_string())
}

/// Load the file of a run in real time: its result, and the report of its path (JSON). Raises ValueError if the file
/// is no such result.
#[pyfunction]
pub fn load_run(py: Python<'_>, path: PathBuf) -> PyResult<(SimResult, String)> {
    let result = py.detach(|| RunResult::read(&path)).map_err(explained)?;
    let report = serde_json::to_string(&result.report).map_err(value_error)?;
    Ok((SimResult::of_run(result), report))
}

/// A run between two machines, from what each of them left: the result, and what its path reports (JSON). `spec` is the
/// run's specification and `options` what is known from elsewhere, both JSON. Raises ValueError if they do not fit.
#[pyfunction]
pub fn join_run(
    py: Python<'_>,
    spec: &str,
    senders: &[u8],
    receivers: &[u8],
    options: &str,
) -> PyResult<(SimResult, String)> {
    let spec: RunSpec = serde_json::from_str(spec).map_err(value_error)?;
    let options: JoinOptions = serde_json::from_str(options).map_err(value_error)?;
    let joined = || join(&spec, HalfResult::read(senders)?, HalfResult::read(receivers)?, options);
    let result = py.detach(joined).map_err(explained)?;
    let report = serde_json::to_string(&result.report).map_err(value_error)?;
    Ok((SimResult::of_run(result), report))
}
