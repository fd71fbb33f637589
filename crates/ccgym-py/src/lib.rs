//! Python face of the native core, and nothing else: conversions, and the GIL released around long work.

use pyo3::prelude::*;

mod batch;
mod logs;
mod result;
mod simulate;
mod trace;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<trace::Trace>()?;
    m.add_class::<result::SimResult>()?;
    m.add_class::<batch::BatchSimulator>()?;
    m.add_function(wrap_pyfunction!(simulate::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::simulate_many, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::check_scheme, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::schemes, m)?)?;
    Ok(())
}
