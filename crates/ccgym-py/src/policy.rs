//! `Policy`: an exported policy, parsed once and shared by every flow that uses it.

use std::sync::Arc;

use numpy::ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;

use crate::{explained, value_error};

/// An exported policy.
#[pyclass(frozen, module = "ccgym._core")]
pub struct Policy {
    pub(crate) inner: Arc<ccgym_schemes::learned::Policy>,
}

type Rows<'py> = (Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray2<f32>>>);

#[pymethods]
impl Policy {
    /// Load the bytes of an ONNX file and the text of its card. Raises ValueError with what is wrong.
    #[staticmethod]
    fn load(py: Python<'_>, onnx: &[u8], card: &str) -> PyResult<Self> {
        let loaded = py.detach(|| ccgym_schemes::learned::Policy::load(onnx, card));
        loaded.map(|inner| Self { inner }).map_err(explained)
    }

    /// Name on the card.
    #[getter]
    fn name(&self) -> String {
        self.inner.name().to_owned()
    }

    /// Cells of the recurrent state; 0 without one.
    #[getter]
    fn state_size(&self) -> usize {
        self.inner.session().state().len()
    }

    /// The nodes of a tree and how many decisions of the training reached each, as JSON; None for a network.
    fn tree(&self) -> Option<String> {
        let tree = self.inner.tree()?;
        Some(serde_json::json!({"nodes": tree.nodes(), "visits": tree.visits()}).to_string())
    }

    /// Decide for each row of `observations` (n × D), from the recurrent `state` (n × S; None: the initial one).
    /// Returns the actions (n × A) and the states after them, None for a policy without memory.
    #[pyo3(signature = (observations, state = None))]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        observations: PyReadonlyArray2<'py, f32>,
        state: Option<PyReadonlyArray2<'py, f32>>,
    ) -> PyResult<Rows<'py>> {
        let rows = observations.as_array();
        let mut actions = Vec::new();
        let mut states = Vec::new();
        let mut action = Vec::new();
        for (i, row) in rows.outer_iter().enumerate() {
            let mut session = self.inner.session();
            if let Some(state) = &state {
                let state = state.as_array();
                if state.nrows() != rows.nrows() {
                    let (found, expected) = (state.nrows(), rows.nrows());
                    return Err(value_error(format!("state: found {found} rows, expected {expected}")));
                }
                session.set_state(&state.row(i).to_vec()).map_err(explained)?;
            }
            session.decide(&row.to_vec(), &mut action).map_err(explained)?;
            actions.extend_from_slice(&action);
            states.extend_from_slice(session.state());
        }
        let n = rows.nrows();
        let matrix = |cells: Vec<f32>| {
            let width = cells.len().checked_div(n).unwrap_or(0);
            Array2::from_shape_vec((n, width), cells).map_err(value_error)
        };
        let memory = self.state_size() > 0;
        let states = if memory { Some(matrix(states)?.to_pyarray(py)) } else { None };
        Ok((matrix(actions)?.to_pyarray(py), states))
    }
}
