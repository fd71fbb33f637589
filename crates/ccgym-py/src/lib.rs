//! Python interface of the native core: conversions, and the GIL released during long work.
//!
//! Start with `simulate.rs`. May import every crate but `ccgym-quic` and `ccgym-quinn`; no crate imports it, the package `ccgym` loads it.

use ccgym_core::Error;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

mod agent;
mod interrupt;
#[cfg(target_os = "linux")]
mod net;
mod policy;
mod python_scheme;
mod result;
mod schema;
mod simulate;
mod trace;

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The exception of an error, whose parts are its attributes. RuntimeError where a run was abandoned, MemoryError where
/// it would hold more than it may, ValueError otherwise.
fn explained(error: Error) -> PyErr {
    let raised = match &*error.code {
        "run-abandoned" => PyRuntimeError::new_err(error.to_string()),
        "memory-exceeded" => PyMemoryError::new_err(error.to_string()),
        _ => value_error(&error),
    };
    let Error { code, place, found, expected, hint } = error;
    let parts = [("code", &*code), ("place", &place), ("found", &found), ("expected", &expected), ("hint", &hint)];
    let set = |py: Python<'_>| parts.iter().try_for_each(|(name, text)| raised.value(py).setattr(*name, *text));
    Python::attach(set).err().unwrap_or(raised)
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<trace::Trace>()?;
    m.add_class::<result::SimResult>()?;
    m.add_class::<interrupt::Halt>()?;
    m.add_class::<agent::Actor>()?;
    m.add_class::<agent::AgentBatch>()?;
    m.add_class::<policy::Policy>()?;
    m.add("SchemeFailure", m.py().get_type::<python_scheme::SchemeFailure>())?;
    m.add_class::<python_scheme::events::Start>()?;
    m.add_class::<python_scheme::events::Ack>()?;
    m.add_class::<python_scheme::events::Loss>()?;
    m.add_class::<python_scheme::events::Timeout>()?;
    m.add_class::<python_scheme::events::Interval>()?;
    m.add_function(wrap_pyfunction!(agent::check_agent, m)?)?;
    m.add_function(wrap_pyfunction!(agent::describe_agent, m)?)?;
    m.add_function(wrap_pyfunction!(agent::agent_vocabulary, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::limits_flows, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::draw_size, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::mean_size, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::check_scheme, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::schemes, m)?)?;
    m.add_function(wrap_pyfunction!(result::log_curves, m)?)?;
    m.add_function(wrap_pyfunction!(schema::schema, m)?)?;
    #[cfg(target_os = "linux")]
    {
        m.add_function(wrap_pyfunction!(net::net, m)?)?;
        m.add_function(wrap_pyfunction!(net::load_run, m)?)?;
        m.add_function(wrap_pyfunction!(net::join_run, m)?)?;
    }
    Ok(())
}
