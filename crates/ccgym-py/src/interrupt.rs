//! Interrupting long native calls: signals, and `Halt`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use ccgym_sim::Interrupt;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use pyo3::sync::MutexExt;

/// Interval at which a call checks for signals: Python's handlers run only while it holds the GIL.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Ends simulations that run in other threads: all that were started with it end soon, also those that start later.
#[pyclass(frozen, module = "ccgym._core")]
#[derive(Default)]
pub struct Halt {
    flag: Arc<AtomicBool>,
    /// Threads whose simulations call schemes in Python, by Python's numbers.
    callers: Mutex<BTreeSet<u64>>,
}

impl Halt {
    /// Note that this thread's simulation calls schemes in Python, until it leaves. Returns its number.
    pub fn enter(&self, py: Python<'_>) -> PyResult<u64> {
        let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
        self.callers(py).insert(thread);
        Ok(thread)
    }

    /// Cancel an exception that was raised too late to end it.
    pub fn leave(&self, py: Python<'_>, thread: u64) -> PyResult<()> {
        self.callers(py).remove(&thread);
        if self.flag.load(Ordering::Relaxed) {
            raise_in(py, thread, py.None().into_bound(py))?;
        }
        Ok(())
    }

    fn callers<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, BTreeSet<u64>> {
        self.callers.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Raise an exception in another thread when it runs next; `None`: cancel it.
fn raise_in<'py>(py: Python<'py>, thread: u64, exception: Bound<'py, PyAny>) -> PyResult<()> {
    let ctypes = py.import("ctypes")?;
    let thread = ctypes.call_method1("c_ulong", (thread,))?;
    ctypes.getattr("pythonapi")?.call_method1("PyThreadState_SetAsyncExc", (thread, exception))?;
    Ok(())
}

#[pymethods]
impl Halt {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// End them. A running scheme in Python gets a KeyboardInterrupt: it may not return by itself.
    fn set(&self, py: Python<'_>) -> PyResult<()> {
        self.flag.store(true, Ordering::Relaxed);
        let exception = py.import("ctypes")?.call_method1("py_object", (py.get_type::<PyKeyboardInterrupt>(),))?;
        for thread in self.callers(py).iter() {
            raise_in(py, *thread, exception.clone())?;
        }
        Ok(())
    }
}

/// Checks for signals and for a `Halt` during calls.
pub(crate) struct Watch {
    halted: Arc<AtomicBool>,
    created: Instant,
    /// The thread that called: Python handles signals in its main thread only.
    caller: Mutex<ThreadId>,
    /// Time of the latest check for signals, nanoseconds after `created`.
    looked: AtomicU64,
    stop: AtomicBool,
    caught: Mutex<Option<PyErr>>,
}

impl Watch {
    pub fn new(halt: Option<&Halt>) -> Arc<Self> {
        Arc::new(Self {
            halted: halt.map(|halt| halt.flag.clone()).unwrap_or_default(),
            #[expect(clippy::disallowed_methods, reason = "what waits for a person goes by the clock")]
            created: Instant::now(),
            caller: Mutex::new(std::thread::current().id()),
            looked: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            caught: Mutex::new(None),
        })
    }

    /// Begin a call of this thread.
    pub fn begin(&self) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = std::thread::current().id();
        self.looked.store(self.clock(), Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
    }

    fn clock(&self) -> u64 {
        self.created.elapsed().as_nanos() as u64
    }

    /// True if the call must stop; called by the thread that called and by its helpers.
    pub fn is_over(&self) -> bool {
        if self.stop.load(Ordering::Relaxed) || self.halted.load(Ordering::Relaxed) {
            return true;
        }
        let now = self.clock();
        if now.saturating_sub(self.looked.load(Ordering::Relaxed)) < POLL_INTERVAL.as_nanos() as u64 {
            return false;
        }
        if *self.caller.lock().unwrap_or_else(PoisonError::into_inner) != std::thread::current().id() {
            return false;
        }
        self.looked.store(now, Ordering::Relaxed);
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                self.end_with(error);
                true
            }
        }
    }

    /// End the call soon, with this exception; the first one counts.
    pub fn end_with(&self, error: PyErr) {
        self.caught.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Return the exception of a call that finished although it was to be ended.
    pub fn check(&self) -> PyResult<()> {
        self.caught.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Return the same as a function for the simulator.
    pub fn interrupt(self: &Arc<Self>) -> Interrupt {
        let watch = self.clone();
        Arc::new(move || watch.is_over())
    }

    /// Return the exception for a call that failed with `error`: the one that it was ended with, if there is one.
    pub fn error(&self, error: PyErr) -> PyErr {
        self.caught.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(error)
    }
}
