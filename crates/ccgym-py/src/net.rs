//! The real path: its jobs, and the results of runs.

use std::path::PathBuf;

use ccgym_net::run::RunResult;
use pyo3::prelude::*;

use crate::result::SimResult;
use crate::value_error;

/// Do a job (`shell`, `sender`, `receiver`, `run` or `doctor`, as a JSON document) and return its exit status. For a
/// process of its own: it may change namespaces, and end with its standard input.
#[pyfunction]
pub fn net(py: Python<'_>, job: &str) -> i32 {
    py.detach(|| ccgym_net::job::run(job))
}

/// What a run in real time left in a file: its result, and what its path reports (JSON). Raises ValueError if the file
/// is no such result.
#[pyfunction]
pub fn load_run(py: Python<'_>, path: PathBuf) -> PyResult<(SimResult, String)> {
    let result = py.detach(|| RunResult::read(&path)).map_err(value_error)?;
    let report = serde_json::to_string(&result.report).map_err(value_error)?;
    Ok((SimResult::of_run(result), report))
}
