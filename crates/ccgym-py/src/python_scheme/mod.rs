//! Schemes written in Python: a class whose methods are called with events, and whose attributes are the decision.
//!
//! The trait of a congestion control cannot fail; Python code can. A failure is reported to the host, which ends the
//! run; until then the scheme stays as it was and calls nothing more.

mod decision;
pub(crate) mod events;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ccgym_core::congestion_control::{Capabilities, IntervalDriven, IntervalEnd};
use ccgym_core::{
    AckEvent, CongestionControl, Control, Ecn, InitContext, MonitorInterval, TimeSpan, TimeoutEvent, Timestamp,
};
use ccgym_schemes::Guest;
use pyo3::call::PyCallArgs;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use serde_json::{Map, Value};

use self::decision::{Bad, Decision};

create_exception!(
    _core,
    SchemeFailure,
    PyException,
    "A scheme in Python failed: (scheme, method, attribute, value). Attribute and value are those of a decision that \
     cannot be taken, empty where the cause is an exception of its own."
);

/// Handles a failure in the host.
pub(crate) type OnFailure = Arc<dyn Fn(PyErr) + Send + Sync>;

/// Classes by the names that flows give.
pub(crate) type PythonTable = BTreeMap<String, Py<PyType>>;

/// Make schemes of the host from the classes.
pub(crate) fn guests(table: PythonTable, on_failure: &OnFailure, timed: bool) -> BTreeMap<String, Arc<dyn Guest>> {
    let guest = |(name, class): (String, Py<PyType>)| {
        let times = timed.then(Arc::<CallTimes>::default);
        let scheme = PythonClass { name: interned(&name), class, on_failure: on_failure.clone(), times };
        (name, Arc::new(scheme) as Arc<dyn Guest>)
    };
    table.into_iter().map(guest).collect()
}

/// Return the same text with a static lifetime, which names of schemes need. There are as many as loaded classes.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// Durations of calls, in real time.
#[derive(Default)]
struct CallTimes {
    calls: AtomicU64,
    late: AtomicU64,
    max_ns: AtomicU64,
}

/// A call that takes longer comes too late: the emulated path's own schedule is exact to a fraction of it.
const LATE: Duration = Duration::from_millis(1);

impl CallTimes {
    fn add(&self, took: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add(u64::from(took > LATE), Ordering::Relaxed);
        self.max_ns.fetch_max(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Explain that more than one call in a hundred was late, if so.
    fn fell_behind(&self, name: &str) -> Option<String> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (calls, late, max) = (read(&self.calls), read(&self.late), read(&self.max_ns));
        let at_most = format!("{:.1}", max as f64 / 1e6);
        (late * 100 > calls).then(|| {
            format!("{name} took more than 1 ms in {late} of {calls} calls (max {at_most} ms), expected at most 1 %")
        })
    }
}

/// A class, and the handler of failures of an instance.
struct PythonClass {
    name: &'static str,
    class: Py<PyType>,
    on_failure: OnFailure,
    times: Option<Arc<CallTimes>>,
}

impl Guest for PythonClass {
    fn create(&self, params: &Map<String, Value>) -> Result<Box<dyn CongestionControl>, String> {
        let made = Python::attach(|py| -> PyResult<PythonScheme> {
            let keywords = PyDict::new(py);
            for (name, value) in params {
                set_parameter(&keywords, name, value)?;
            }
            let object = self.class.bind(py).call((), Some(&keywords));
            let object = object.map_err(|error| failure(py, self.name, "__init__", None, Some(error)))?;
            let decision = Decision::read_first(&object);
            let decision = decision.map_err(|bad| self.refused(py, "__init__", bad))?;
            let prr = match object.getattr_opt("prr")? {
                Some(value) => value.is_truthy()?,
                None => decision.pacing_rate.0 == 0,
            };
            let ecn = match object.getattr_opt("ecn")? {
                Some(value) => match value.extract::<String>().as_deref() {
                    Ok("ect1") => Ecn::Ect1,
                    _ if value.is_truthy()? => Ecn::Ect0,
                    _ => Ecn::NotEct,
                },
                None => Ecn::NotEct,
            };
            Ok(PythonScheme {
                name: self.name,
                methods: Methods::of(&object)?,
                object: object.unbind(),
                on_failure: self.on_failure.clone(),
                times: self.times.clone(),
                prr,
                ecn,
                decision,
                control: Control::window(0),
                mss: 0,
                interval_end: Timestamp::NEVER,
                failed: false,
            })
        });
        match made {
            Ok(scheme) => Ok(Box::new(scheme)),
            Err(error) => {
                let text = error.to_string();
                (self.on_failure)(error);
                Err(text)
            }
        }
    }

    fn fell_behind(&self) -> Option<String> {
        self.times.as_ref()?.fell_behind(self.name)
    }
}

impl PythonClass {
    fn refused(&self, py: Python<'_>, method: &str, bad: Bad) -> PyErr {
        failure(py, self.name, method, Some((bad.attribute, bad.value)), bad.cause)
    }
}

fn set_parameter(keywords: &Bound<'_, PyDict>, name: &str, value: &Value) -> PyResult<()> {
    match value {
        Value::Bool(flag) => keywords.set_item(name, *flag),
        Value::String(text) => keywords.set_item(name, text),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => keywords.set_item(name, whole),
            None => keywords.set_item(name, number.as_f64()),
        },
        other => Err(crate::value_error(format!("parameter {name}: found {other}, expected a number, a flag or text"))),
    }
}

/// Make the exception of a failure. Ctrl-C stays unchanged.
fn failure(
    py: Python<'_>,
    scheme: &str,
    method: &str,
    bad: Option<(&'static str, String)>,
    cause: Option<PyErr>,
) -> PyErr {
    match cause {
        Some(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => error,
        cause => {
            let (attribute, value) = bad.unwrap_or(("", String::new()));
            let error = SchemeFailure::new_err((scheme.to_owned(), method.to_owned(), attribute, value));
            error.set_cause(py, cause);
            error
        }
    }
}

/// The methods of a class, bound to its instance.
struct Methods {
    start: Option<Py<PyAny>>,
    ack: Option<Py<PyAny>>,
    loss: Option<Py<PyAny>>,
    timeout: Option<Py<PyAny>>,
    interval: Option<Py<PyAny>>,
}

impl Methods {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let method = |name: &str| Ok::<_, PyErr>(object.getattr_opt(name)?.map(Bound::unbind));
        Ok(Self {
            start: method("on_start")?,
            ack: method("on_ack")?,
            loss: method("on_loss")?,
            timeout: method("on_timeout")?,
            interval: method("on_interval")?,
        })
    }
}

/// An instance.
struct PythonScheme {
    name: &'static str,
    object: Py<PyAny>,
    methods: Methods,
    on_failure: OnFailure,
    times: Option<Arc<CallTimes>>,
    prr: bool,
    ecn: Ecn,
    decision: Decision,
    control: Control,
    mss: u64,
    interval_end: Timestamp,
    failed: bool,
}

impl Clone for PythonScheme {
    fn clone(&self) -> Self {
        Python::attach(|py| {
            let copied = || -> PyResult<_> {
                let copy = py.import("copy")?.call_method1("deepcopy", (self.object.bind(py),))?;
                Ok((Methods::of(&copy)?, copy.unbind()))
            };
            let (methods, object, failed) = match copied() {
                Ok((methods, object)) => (methods, object, self.failed),
                Err(error) => {
                    (self.on_failure)(failure(py, self.name, "__deepcopy__", None, Some(error)));
                    (Methods { start: None, ack: None, loss: None, timeout: None, interval: None }, py.None(), true)
                }
            };
            Self { object, methods, failed, on_failure: self.on_failure.clone(), times: self.times.clone(), ..*self }
        })
    }
}

impl PythonScheme {
    /// Call one of the methods, and apply its decision.
    fn call<'py, E>(
        &mut self,
        py: Python<'py>,
        which: fn(&Methods) -> &Option<Py<PyAny>>,
        name: &'static str,
        event: impl FnOnce() -> E,
    ) where
        (E,): PyCallArgs<'py>,
    {
        let Some(method) = which(&self.methods) else { return };
        if self.failed {
            return;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "whether Python keeps up in real time is a question of the clock"
        )]
        let begun = self.times.is_some().then(Instant::now);
        let result = method.call1(py, (event(),));
        if let (Some(times), Some(begun)) = (&self.times, begun) {
            times.add(begun.elapsed());
        }
        let read = match result {
            Ok(_) => Decision::read(self.object.bind(py)),
            Err(error) => return self.fail(failure(py, self.name, name, None, Some(error))),
        };
        match read
            .and_then(|decision| decision.control(self.mss, self.methods.interval.is_some()).map(|c| (decision, c)))
        {
            Ok((decision, control)) => (self.decision, self.control) = (decision, control),
            Err(bad) => self.fail(failure(py, self.name, name, Some((bad.attribute, bad.value)), bad.cause)),
        }
    }

    fn fail(&mut self, error: PyErr) {
        self.failed = true;
        (self.on_failure)(error);
    }

    /// Begin the next interval.
    fn begin_interval(&mut self, now: Timestamp, srtt: TimeSpan) {
        if self.methods.interval.is_none() {
            return;
        }
        self.interval_end = now + self.decision.interval.unwrap_or(srtt).max(decision::MIN_INTERVAL);
    }
}

impl CongestionControl for PythonScheme {
    fn capabilities(&self) -> Capabilities {
        Capabilities { rate_samples: true, prr: self.prr, ecn: self.ecn, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        Python::attach(|py| {
            match self.decision.control(self.mss, self.methods.interval.is_some()) {
                Ok(control) => self.control = control,
                Err(bad) => {
                    self.control = Control::window(context.initial_window);
                    self.fail(failure(py, self.name, "__init__", Some((bad.attribute, bad.value)), bad.cause));
                }
            }
            self.call(py, |methods| &methods.start, "on_start", || events::Start::new(&context));
        });
        self.begin_interval(context.now, decision::FIRST_INTERVAL);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let acked = event.acked_packets > 0 && self.methods.ack.is_some();
        let lost = !event.lost.is_empty() && self.methods.loss.is_some();
        if self.failed || !(acked || lost) {
            return;
        }
        let mss = self.mss;
        Python::attach(|py| {
            if lost {
                self.call(py, |methods| &methods.loss, "on_loss", || events::Loss::new(event, mss));
            }
            if acked {
                self.call(py, |methods| &methods.ack, "on_ack", || events::Ack::new(event, mss));
            }
        });
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        Python::attach(|py| self.call(py, |methods| &methods.timeout, "on_timeout", || events::Timeout::new(event)));
    }

    #[inline]
    fn control(&self) -> Control {
        self.control
    }

    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        self.methods.interval.as_ref().map(|_| self as &dyn IntervalDriven)
    }

    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        self.methods.interval.is_some().then_some(self as &mut dyn IntervalDriven)
    }
}

impl IntervalDriven for PythonScheme {
    fn on_interval(&mut self, interval: &MonitorInterval) {
        let mss = self.mss;
        Python::attach(|py| {
            self.call(py, |methods| &methods.interval, "on_interval", || events::Interval::new(interval, mss));
        });
        let measured = interval.min_rtt != TimeSpan::MAX;
        self.begin_interval(interval.end, if measured { interval.srtt } else { decision::FIRST_INTERVAL });
    }

    fn interval_end(&self) -> IntervalEnd {
        IntervalEnd { at: self.interval_end, acks: 0 }
    }

    fn agent(&self) -> &dyn Any {
        self
    }
}
