//! ONNX Runtime, loaded when the first policy is.
//!
//! It is loaded dynamically (crate `ort`) from the Python package `onnxruntime`. The alternative, `tract-onnx` 0.22
//! linked in, decides about as fast (an MLP 30-32-16-1 in 5 µs, an LSTM(64) in 20 µs on one core), but brings 162 crates
//! instead of 15 and 433 s of processor time to a clean release build instead of 16 s, and has neither Sigmoid nor Gemm
//! in float64.

use std::any::Any;
use std::fs;
use std::io::Read;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::OnceLock;

use ort::logging::LogLevel;
use ort::session::builder::GraphOptimizationLevel;
use ort::tensor::TensorElementType;
use ort::value::{TensorRef, ValueType};

use super::card::NetworkShape;
use super::error::{PolicyError, EXPORT_AGAIN};

/// Environment variable with the path of ONNX Runtime's shared library.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// The library that this process uses, once one was tried: a process loads one, and only once.
static LIBRARY: OnceLock<Result<String, PolicyError>> = OnceLock::new();

/// Load ONNX Runtime from the shared library `path`, or from what `ORT_DYLIB_PATH` says; answers with the library in
/// use, which is an earlier one if one was loaded already. Loading a policy does this by itself. This is the only
/// place that touches a file: networks and cards come as bytes.
pub fn load_library(path: Option<&str>) -> Result<&'static str, PolicyError> {
    let library = match LIBRARY.get() {
        Some(known) => known,
        None => {
            let path = path.map(str::to_owned).or_else(|| std::env::var(LIBRARY_VARIABLE).ok());
            let path = check_library(&path.unwrap_or_default())?;
            LIBRARY.get_or_init(|| connect(&path).map(|()| path))
        }
    };
    library.as_ref().map(String::as_str).map_err(Clone::clone)
}

fn library_error(found: String) -> PolicyError {
    PolicyError::new(
        "ONNX Runtime",
        found,
        "the shared library of ONNX Runtime 1.22 or newer",
        format!(
            "pip install onnxruntime, and set {LIBRARY_VARIABLE} to its onnxruntime/capi/libonnxruntime.so.* unless \
             ccgym finds it by itself"
        ),
    )
    .coded("package-missing")
}

/// What can be seen without loading, since a failed load cannot be repeated in the same process.
fn check_library(path: &str) -> Result<String, PolicyError> {
    if path.is_empty() {
        return Err(library_error("no library".into()));
    }
    let full = fs::canonicalize(path).map_err(|e| library_error(format!("{path} ({e})")))?;
    let mut magic = [0; 4];
    fs::File::open(&full)
        .and_then(|mut file| file.read_exact(&mut magic))
        .map_err(|e| library_error(format!("{path} ({e})")))?;
    if cfg!(target_os = "linux") && &magic != b"\x7fELF" {
        return Err(library_error(format!("{path}, which is not a shared library")));
    }
    Ok(full.to_string_lossy().into_owned())
}

fn connect(path: &str) -> Result<(), PolicyError> {
    let environment = guarded(|| {
        ort::init_from(path).with_name("ccgym").with_telemetry(false).commit()?;
        // Whatever is wrong comes back as an error.
        ort::environment::get_environment()?.set_log_level(LogLevel::Fatal);
        Ok(())
    });
    environment.map_err(|message| library_error(format!("{path}: {message}")))
}

/// `f`, with its error or panic as text.
fn guarded<T>(f: impl FnOnce() -> ort::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(panic) => Err(panic_text(&*panic)),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_else(|| "it panicked".into())
}

/// A network that can be computed, by one thread at a time.
pub(super) struct Engine {
    session: ort::session::Session,
    shape: NetworkShape,
}

impl Engine {
    /// Read and optimize a network, and see that its inputs and outputs are those of `shape`.
    pub(super) fn new(onnx: &[u8], shape: NetworkShape) -> Result<Self, PolicyError> {
        load_library(None)?;
        let session = guarded(|| {
            ort::session::Session::builder()?
                // A decision is over before a second thread would have woken up.
                .with_intra_threads(1)?
                .with_inter_threads(1)?
                .with_parallel_execution(false)?
                .with_optimization_level(GraphOptimizationLevel::Level1)?
                .with_log_level(LogLevel::Fatal)?
                .commit_from_memory(onnx)
        });
        let session = session.map_err(|message| {
            PolicyError::new("graph", message, "a network that ONNX Runtime can run", EXPORT_AGAIN)
        })?;
        let memory = shape.state_size > 0;
        let found = session.inputs.iter().map(|i| (i.name.as_str(), &i.input_type)).collect::<Vec<_>>();
        compare(
            "inputs",
            &found,
            &wanted(memory, ("observation", shape.observation_size), ("state", shape.state_size)),
        )?;
        let found = session.outputs.iter().map(|o| (o.name.as_str(), &o.output_type)).collect::<Vec<_>>();
        compare("outputs", &found, &wanted(memory, ("action", shape.action_size), ("state_out", shape.state_size)))?;
        Ok(Self { session, shape })
    }

    /// The answer to one observation, and the state after it; `action` and `after` are overwritten.
    pub(super) fn run(
        &mut self,
        observation: &[f32],
        state: &[f32],
        action: &mut Vec<f32>,
        after: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        let shape = self.shape;
        let fail = |found: String| PolicyError::new("graph", found, "an answer", EXPORT_AGAIN);
        let answer = || -> ort::Result<bool> {
            let observation = TensorRef::from_array_view(([1, observation.len()], observation))?;
            let outputs = if shape.state_size == 0 {
                self.session.run([observation.into()])?
            } else {
                let state = TensorRef::from_array_view(([1, state.len()], state))?;
                self.session.run([observation.into(), state.into()])?
            };
            action.clear();
            action.extend_from_slice(outputs[0].try_extract_tensor::<f32>()?.1);
            after.clear();
            if shape.state_size > 0 {
                after.extend_from_slice(outputs[1].try_extract_tensor::<f32>()?.1);
            }
            Ok(action.len() == shape.action_size && after.len() == shape.state_size)
        };
        match guarded(answer) {
            Ok(true) => Ok(()),
            Ok(false) => Err(fail(format!("{} numbers and {} of state", action.len(), after.len()))),
            Err(message) => Err(fail(message)),
        }
    }
}

type Port<'a> = (&'a str, usize);

fn wanted<'a>(memory: bool, value: Port<'a>, state: Port<'a>) -> Vec<Port<'a>> {
    if memory {
        vec![value, state]
    } else {
        vec![value]
    }
}

fn compare(place: &str, found: &[(&str, &ValueType)], wanted: &[Port<'_>]) -> Result<(), PolicyError> {
    let same = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|((name, kind), (wanted, size))| {
            let batch_and_size = |dims: &[i64]| matches!(dims, [-1 | 1, n] if i64::try_from(*size) == Ok(*n));
            name == wanted
                && kind.tensor_type() == Some(TensorElementType::Float32)
                && kind.tensor_shape().is_some_and(|dims| batch_and_size(dims))
        });
    if same {
        return Ok(());
    }
    let found = found.iter().map(|(name, kind)| format!("{name}: {kind}")).collect::<Vec<_>>().join(", ");
    let wanted = wanted.iter().map(|(name, size)| format!("{name}: float32 [batch, {size}]")).collect::<Vec<_>>();
    let hint = "network and card do not belong together: export the policy again";
    Err(PolicyError::new(format!("graph {place}"), found, wanted.join(", "), hint).coded("shape-mismatch"))
}
