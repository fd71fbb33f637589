//! Common parts of the integration tests: the base link L1, steady-state means, a wrapper that checks a scheme, and a
//! path that the test changes.

// Each test binary uses a part of this.
#![allow(dead_code)]

pub mod test_path;

use std::sync::{Arc, Mutex};

use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_core::{forward_hooks, AckEvent, CongestionControl, Control, Error, InitContext, TimeoutEvent, Timestamp};
use ccgym_path::ElementSpec;
use ccgym_run::{FlowSpec, Outcome, RunSpec};
use ccgym_schemes::{create_with, Resources};
use ccgym_sim::Simulator;
use serde_json::{json, Value};

/// True in `make test-all`: then the tests search longer.
pub fn all_tests() -> bool {
    std::env::var_os("CCGYM_TEST_ALL").is_some()
}

/// Wire bytes of a full packet.
pub const MSS: f64 = 1500.0;
/// Bandwidth-delay product of L1 (12 Mbit/s, 40 ms) in packets.
pub const BDP: u64 = 40;
/// Length of the start-up, seconds.
pub const WARM_UP_S: f64 = 10.0;

pub fn secs(s: f64) -> u64 {
    (s * 1e9) as u64
}

pub fn spec(value: Value) -> RunSpec {
    serde_json::from_value(value).unwrap_or_else(|e| panic!("the test's own specification: {e}"))
}

pub fn create(f: &FlowSpec) -> Result<Box<dyn CongestionControl>, Error> {
    ccgym_schemes::create(&f.scheme, &f.params)
}

pub fn simulator(spec: &RunSpec) -> Simulator {
    Simulator::new(spec, &|_| None, &create).unwrap_or_else(|e| panic!("{e}"))
}

/// Return the first flow's observable `name`.
pub fn observable(sim: &Simulator, name: &str) -> f64 {
    let all = sim.sender(0).cca().observables();
    all.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("{name} in {all:?}")).1
}

/// Parse an agent's specification.
pub fn agent(value: &Value) -> AgentSpec {
    AgentSpec::from_json(&value.to_string()).unwrap_or_else(|e| panic!("the test's own agent: {e}"))
}

/// Make a simulator whose flows of scheme `learned` wait for the decisions of `agent`.
pub fn learners(agent: &AgentSpec, spec: &RunSpec) -> Simulator {
    let resources = Resources { agent: Some(FlowAgent::new(Arc::new(agent.clone()))), ..Resources::default() };
    let scheme = |f: &FlowSpec| create_with(&f.scheme, &f.params, &resources);
    Simulator::new(spec, &|_| None, &scheme).unwrap_or_else(|e| panic!("{e}"))
}

pub fn run(spec: &RunSpec) -> Outcome {
    let mut sim = simulator(spec);
    sim.run().unwrap();
    sim.outcome()
}

pub fn flow(scheme: &str, params: &Value) -> Value {
    json!({"scheme": scheme, "params": params})
}

/// Make `n` flows of one scheme that start a millisecond after each other.
pub fn flows(n: u64, scheme: &str, params: &Value) -> Value {
    (0..n).map(|i| json!({"scheme": scheme, "params": params, "start": i * 1_000_000})).collect()
}

/// A bottleneck with the same delay on both ways.
#[derive(Clone)]
pub struct Net {
    /// Fields of the link besides rate and queue.
    pub link: Value,
    /// Rate of the link, bit/s, or its steps.
    pub rate: Value,
    /// Delay of each way, ns, or its steps.
    pub delay: Value,
    pub queue: Value,
    /// Loss before the link, and of acknowledgements.
    pub loss: Value,
    pub ack_loss: Value,
    /// Elements behind the delay.
    pub behind: Vec<Value>,
    pub record: Value,
}

impl Net {
    /// Make a link with a drop-tail queue of `packets`.
    pub fn new(mbps: f64, rtt_ms: f64, packets: u64) -> Self {
        Self {
            link: json!({"kind": "link"}),
            rate: json!((mbps * 1e6) as u64),
            delay: json!((rtt_ms * 5e5) as u64),
            queue: json!({"kind": "droptail", "limit": {"packets": packets}}),
            loss: json!(0.0),
            ack_loss: json!(0.0),
            behind: Vec::new(),
            record: json!({"series": 1_000_000}),
        }
    }

    pub fn spec(&self, flows: &Value, seconds: f64) -> RunSpec {
        let loss = |p: &Value| (*p != json!(0.0)).then(|| json!({"kind": "loss", "probability": p}));
        let delay = json!({"kind": "delay", "delay": self.delay});
        let mut link = self.link.clone();
        (link["schedule"], link["queue"]) = (json!({"kind": "rate", "rate": self.rate}), self.queue.clone());
        let up: Vec<_> = loss(&self.loss).into_iter().chain([link, delay.clone()]).chain(self.behind.clone()).collect();
        let down: Vec<_> = loss(&self.ack_loss).into_iter().chain([delay]).collect();
        spec(json!({"seed": 1, "duration": secs(seconds), "uplink": up, "downlink": down, "flows": flows,
                    "record": self.record}))
    }
}

/// Make L1 with a drop-tail buffer of `buffer` BDP, at least one packet: a link without any buffer would drop the
/// second of the two packets that a growing window releases at once.
pub fn l1(buffer: f64, flows: &Value, seconds: f64) -> RunSpec {
    Net::new(12.0, 40.0, ((buffer * BDP as f64).round() as u64).max(1)).spec(flows, seconds)
}

/// Make a path without any link: random loss and 40 ms.
pub fn uncapped(loss: f64, seed: u64, flows: &Value, seconds: f64) -> RunSpec {
    let net = Net { loss: json!(loss), record: json!({"series": 10_000_000}), ..Net::new(1.0, 40.0, 1) };
    let mut spec = RunSpec { seed, ..net.spec(flows, seconds) };
    spec.uplink.retain(|element| !matches!(element, ElementSpec::Link { .. }));
    spec
}

/// Return the milliseconds of each packet of a flow in queue and transmission from `start` seconds on, sorted.
pub fn waits(outcome: &Outcome, flow: u32, rtt_ms: f64, start: f64) -> Vec<f64> {
    let log = outcome.data.as_ref().expect("packets are recorded");
    let propagation = secs(rtt_ms / 2e3);
    let mut waits: Vec<f64> = (0..log.entered.len())
        .filter(|&i| log.flow[i] == flow && log.left[i] != u64::MAX && log.entered[i] >= secs(start))
        .map(|i| (log.left[i] - log.entered[i] - propagation) as f64 / 1e6)
        .collect();
    waits.sort_by(f64::total_cmp);
    waits
}

/// Return the cells of each line of the tables of a text, and the heading above it.
pub fn cells(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut heading = "";
    text.lines().filter_map(move |line| {
        heading = line.strip_prefix("### ").unwrap_or(heading);
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some((heading, cells.split(" | ").collect()))
    })
}

/// Means after [`WARM_UP_S`].
#[derive(Debug)]
pub struct Steady {
    /// Acknowledged, Mbit/s, per flow.
    pub rates: Vec<f64>,
    /// Mean window, packets, per flow.
    pub windows: Vec<f64>,
    /// Mean queue at the bottleneck, packets.
    pub mean_queue: f64,
    /// Max queue at the bottleneck, packets.
    pub max_queue: u64,
    /// Packets dropped at the bottleneck.
    pub drops: u64,
}

impl Steady {
    pub fn of(outcome: &Outcome) -> Self {
        Self::since(outcome, WARM_UP_S)
    }

    /// Return the means after `start` seconds.
    pub fn since(outcome: &Outcome, start: f64) -> Self {
        let series = outcome.series.as_ref().expect("series are recorded");
        let from = series.t.iter().position(|&t| t >= secs(start)).expect("the run outlasts the warm-up");
        let last = series.t.len() - 1;
        let span = (series.t[last] - series.t[from]) as f64 / 1e9;
        let mean = |v: &[u64]| v[from..].iter().map(|&v| v as f64).sum::<f64>() / v[from..].len() as f64;
        let rate = |v: &[u64]| (v[last] - v[from]) as f64 * 8.0 / 1e6 / span;
        Self {
            rates: series.flows.iter().map(|f| rate(&f.acked_bytes)).collect(),
            windows: series.flows.iter().map(|f| mean(&f.cwnd_bytes) / MSS).collect(),
            mean_queue: mean(&series.links[0].queue_packets),
            max_queue: *series.links[0].queue_packets[from..].iter().max().expect("samples"),
            drops: series.links[0].drops[last] - series.links[0].drops[from],
        }
    }

    pub fn total(&self) -> f64 {
        self.rates.iter().sum()
    }

    pub fn jain(&self) -> f64 {
        jain(&self.rates)
    }
}

/// Return Jain's index of fairness.
pub fn jain(x: &[f64]) -> f64 {
    let sum: f64 = x.iter().sum();
    sum * sum / (x.len() as f64 * x.iter().map(|v| v * v).sum::<f64>())
}

/// Print a result for `tools/published.py`.
#[allow(clippy::print_stdout)]
pub fn print_expected(test: &str, what: &str, found: f64, expected: f64, tolerance: f64) {
    println!("EXPECTED {test}: {what}: {expected} within {tolerance}, found {found}");
}

pub fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    print_expected(&test, what, found, expected, tolerance);
    assert!(
        off.abs() <= tolerance,
        "{what}: found {found:.3}, expected {expected:.3} within {tolerance}, off {off:.3}"
    );
}

/// A window of this many bytes counts as unlimited: only pacing decides.
pub const NO_LIMIT: u64 = 100_000_000;

// ---- a watched scheme -------------------------------------------------------------------------------------------

/// Records of a [`Watched`] scheme.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Per recovery episode: bytes in flight at the loss, window before it, window after it.
    pub cuts: Vec<(u64, u64, u64)>,
    /// Packets sent beyond the window while the window alone decided.
    pub beyond_window: u64,
    /// Max window below [`NO_LIMIT`], bytes, and true if there was an unlimited one.
    pub max_window: u64,
    pub unlimited: bool,
    /// Max pacing rate, and max bytes in flight.
    pub max_pacing_bps: u64,
    pub max_in_flight: u64,
    /// Differences between acknowledged bytes of events and counters, and other errors.
    pub nonsense: Vec<String>,
    /// Max bytes in flight at the next event, by the windows since the last one.
    allowed: u64,
}

/// Forwards all calls to another scheme and records them.
#[derive(Clone)]
pub struct Watched {
    inner: Box<dyn CongestionControl>,
    seen: Arc<Mutex<Seen>>,
    recovery: bool,
    timed_out: bool,
    /// Number of acknowledgements.
    acks: u64,
    /// Observables that are NaN at the start.
    unknown: Vec<&'static str>,
}

impl Watched {
    pub fn new(inner: Box<dyn CongestionControl>, seen: Arc<Mutex<Seen>>) -> Self {
        Self { inner, seen, recovery: false, timed_out: false, acks: 0, unknown: Vec::new() }
    }
}

impl Watched {
    /// Record it if more was sent than the window allowed since the last event.
    fn check(&mut self, in_flight: u64) {
        // During fast recovery PRR limits sending, if the scheme uses it.
        let metered = self.recovery && !self.timed_out && self.inner.capabilities().prr;
        let mut seen = self.seen.lock().expect("one thread");
        seen.beyond_window += u64::from(!metered && in_flight > seen.allowed);
    }

    /// Allow the current `in_flight` bytes, and those of the window.
    fn allow(&mut self, in_flight: u64) {
        self.seen.lock().expect("one thread").allowed = in_flight;
    }

    /// Record the extremes of decisions and flight, and check the observables at intervals.
    fn note(&mut self, now: Timestamp, in_flight: u64) {
        let Control { cwnd, pacing_rate, .. } = self.inner.control();
        let mut seen = self.seen.lock().expect("one thread");
        seen.unlimited |= cwnd >= NO_LIMIT;
        if cwnd < NO_LIMIT {
            seen.max_window = seen.max_window.max(cwnd);
        }
        seen.max_pacing_bps = seen.max_pacing_bps.max(pacing_rate.0);
        seen.max_in_flight = seen.max_in_flight.max(in_flight);
        self.acks += 1;
        if self.acks % 64 == 0 && seen.nonsense.is_empty() {
            // Only values that are NaN at the start may be NaN later.
            let undefined = |(key, value): &(&'static str, f64)| value.is_nan() && !self.unknown.contains(key);
            let undefined = self.inner.observables().into_iter().find(undefined);
            seen.nonsense.extend(undefined.map(|(key, _)| format!("{key} is not a number at {now:?}")));
        }
    }
}

impl CongestionControl for Watched {
    forward_hooks!(self, Some(&self.inner), Some(&mut self.inner);
        capabilities on_handshake on_packet_sent on_spurious_loss next_timer on_timer on_app_limited on_idle_restart
        send_quantum ssthresh state observables media receiver_side);
    fn init(&mut self, context: InitContext) {
        self.inner.init(context);
        let unknown = self.inner.observables().into_iter().filter(|(_, value)| value.is_nan());
        self.unknown = unknown.map(|(key, _)| key).collect();
    }
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.check(event.prior_in_flight);
        let before = self.inner.control().cwnd;
        self.inner.on_ack(event);
        self.allow(event.in_flight);
        self.note(event.now, event.prior_in_flight);
        let mut seen = self.seen.lock().expect("one thread");
        if event.entered_recovery {
            seen.cuts.push((event.prior_in_flight, before, self.inner.control().cwnd));
        }
        if !event.lost.windows(2).all(|p| p[0].number < p[1].number) {
            seen.nonsense.push(format!("losses out of order at {:?}", event.now));
        }
        if event.lost.iter().map(|l| l.bytes).sum::<u64>() != event.lost_bytes {
            seen.nonsense.push(format!("lost bytes do not add up at {:?}", event.now));
        }
        if event.in_flight > event.prior_in_flight {
            seen.nonsense.push(format!("an acknowledgement put packets in flight at {:?}", event.now));
        }
        drop(seen);
        self.recovery = event.in_recovery;
        self.timed_out &= event.in_recovery && !event.entered_recovery;
    }
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.check(event.prior_in_flight);
        self.recovery = true;
        self.timed_out = true;
        self.inner.on_timeout(event);
        self.allow(0);
        self.note(event.now, event.prior_in_flight);
    }
    /// Read after each event, so that packets sent until the next one may fill this window.
    fn control(&self) -> Control {
        let control = self.inner.control();
        let mut seen = self.seen.lock().expect("one thread");
        seen.allowed = seen.allowed.max(control.cwnd);
        seen.max_pacing_bps = seen.max_pacing_bps.max(control.pacing_rate.0);
        control
    }
}

/// Run with every scheme wrapped; returns one record per flow.
pub fn run_watched(spec: &RunSpec) -> (Outcome, Vec<Arc<Mutex<Seen>>>) {
    let records = Mutex::new(Vec::new());
    let factory = |f: &FlowSpec| -> Result<Box<dyn CongestionControl>, Error> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        records.lock().expect("one thread").push(Arc::clone(&seen));
        Ok(Box::new(Watched::new(create(f)?, seen)))
    };
    let mut sim = Simulator::new(spec, &|_| None, &factory).unwrap_or_else(|e| panic!("{e}"));
    sim.run().unwrap();
    let outcome = sim.outcome();
    let records = std::mem::take(&mut *records.lock().expect("one thread"));
    (outcome, records)
}
