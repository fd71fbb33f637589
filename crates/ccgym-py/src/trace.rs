//! `Trace`: an immutable delivery trace, parsed once and shared by every simulation.

use std::sync::Arc;

use ccgym_path::DeliveryTrace;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::{explained, value_error};

/// A mahimahi delivery trace.
#[pyclass(frozen, module = "ccgym._core")]
pub struct Trace {
    pub(crate) inner: Arc<DeliveryTrace>,
}

#[pymethods]
impl Trace {
    /// Parse the text of a trace file. Raises ValueError("name:line: …").
    #[staticmethod]
    fn parse(text: &[u8], name: &str) -> PyResult<Self> {
        let inner = DeliveryTrace::parse(text, name).map_err(explained)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A trace from millisecond times. Raises ValueError as `parse` does.
    #[staticmethod]
    fn from_ms(times: PyReadonlyArray1<'_, u64>, name: &str) -> PyResult<Self> {
        let times = times.as_slice().map_err(value_error)?;
        let inner = DeliveryTrace::from_ms(name, times.to_vec()).map_err(explained)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// A copy of the times in milliseconds.
    #[getter]
    fn times_ms<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.inner.times_ms().to_vec().into_pyarray(py)
    }

    /// Mean rate in bits per second of IP bytes of full packets: 12000·lines/last.
    #[getter]
    fn mean_rate_bps(&self) -> f64 {
        self.inner.times_ms().len() as f64 * 12_000.0 / *self.inner.times_ms().last().unwrap_or(&1) as f64 * 1e3
    }

    fn __len__(&self) -> usize {
        self.inner.times_ms().len()
    }
}
