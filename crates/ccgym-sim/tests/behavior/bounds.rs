//! Tests that no simulation grows without end or ignores an interrupt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use ccgym_core::congestion_control::Capabilities;
use ccgym_core::{AckEvent, CongestionControl, Control, Error, InitContext, TimeoutEvent, Timestamp};
use ccgym_path::DeliveryTrace;
use ccgym_run::RunSpec;
use ccgym_sim::{projected_memory, MemoryUse, Simulator};
use serde_json::{json, Value};

use crate::common::{create, run, simulator, spec, Net};

const MS: u64 = 1_000_000;

/// Make two ways of 20 ms, with `elements` on the forward way.
fn path(elements: &[Value], flow: Value, rest: Value) -> RunSpec {
    let delay = json!({"kind": "delay", "delay": 20 * MS});
    let uplink = [elements, std::slice::from_ref(&delay)].concat();
    let mut description = json!({
        "duration": 1000 * MS,
        "uplink": uplink,
        "downlink": [delay],
        "flows": [flow],
    });
    for (key, value) in rest.as_object().expect("an object") {
        description[key] = value.clone();
    }
    spec(description)
}

fn link(mbps: u64) -> Value {
    json!({"kind": "link", "schedule": {"kind": "rate", "rate": mbps * 1_000_000}, "queue": {"kind": "infinite"}})
}

fn refusal(spec: &RunSpec) -> Error {
    Simulator::new(spec, &|_| None, &create).err().expect("it must be refused")
}

/// What it holds when its memory ends.
fn memory(sim: &mut Simulator) -> MemoryUse {
    assert_eq!(sim.run().unwrap_err().code, "memory-exceeded");
    sim.memory_use()
}

#[test]
fn unlimited_flows_are_refused() {
    for scheme in ["reno", "cubic", "vegas", "bbr", "copa"] {
        for source in [json!({"kind": "greedy"}), json!({"kind": "on_off", "mean_on": 5 * MS, "mean_off": MS})] {
            let error = refusal(&path(&[], json!({"scheme": scheme, "source": source}), json!({})));
            assert_eq!((&*error.code, &*error.place), ("path-without-link", "flows[0]"));
        }
    }
}

#[test]
fn limited_flows_run() {
    let bytes = json!({"scheme": "cubic", "source": {"kind": "bytes", "bytes": 1_000_000}});
    let rate = json!({"scheme": "cubic", "source": {"kind": "rate", "rate": 8_000_000}});
    let cubic = json!({"scheme": "cubic"});
    let loss = json!({"kind": "loss", "probability": 0.01});
    for (elements, flow) in [
        (vec![], json!({"scheme": "fixed_rate", "params": {"rate_mbps": 8.0}})),
        (vec![], json!({"scheme": "fixed_window", "params": {"cwnd": 50}})),
        (vec![], bytes),
        (vec![], rate),
        (vec![loss], cubic.clone()),
        (vec![link(12)], cubic),
    ] {
        let outcome = run(&path(&elements, flow.clone(), json!({})));
        assert!(outcome.flows[0].sender.acked_packets > 0, "{flow}");
    }
}

#[test]
fn packets_in_flight_are_bounded() {
    // No rule can predict this: BBR doubles in spite of occasional losses.
    let bounds = json!({"max_memory": 50_000_000, "duration": 5000 * MS});
    let loss = json!({"kind": "loss", "probability": 0.001});
    let mut sim = simulator(&path(&[loss], json!({"scheme": "bbr"}), bounds.clone()));
    let held = memory(&mut sim);
    assert!(held.total() > 50_000_000 && held.in_flight > 49_000_000, "{held}");
    assert_eq!(memory(&mut sim), held, "it stays where it stopped");
    // An unbounded window: one event sends all packets at once, on both ways of carrying.
    let jitter = json!({"kind": "jitter", "distribution": {"kind": "uniform", "max": MS}, "reorder": true});
    for elements in [vec![], vec![jitter]] {
        let flow = json!({"scheme": "fixed_window", "params": {"cwnd": 10_000_000}});
        let held = memory(&mut simulator(&path(&elements, flow, bounds.clone())));
        assert!(held.in_flight > 49_000_000, "{held}");
    }
}

/// Sixteen copies of a packet each way, so 256 acknowledgements: their memory is counted while they are made.
#[test]
fn copies_are_bounded() {
    let copies = |count: usize| vec![json!({"kind": "duplicate", "probability": 1.0}); count];
    let most = 30_000_000;
    let described = |there: usize, back: usize| {
        let delay = json!({"kind": "delay", "delay": 20 * MS});
        let downlink = [copies(back), vec![delay]].concat();
        let flow = json!({"scheme": "fixed_window", "params": {"cwnd": 100_000}});
        path(&copies(there), flow, json!({"downlink": downlink, "max_memory": most, "duration": 5000 * MS}))
    };
    for (there, back, way) in [(5, 0, "uplink"), (0, 5, "downlink"), (30, 0, "uplink")] {
        let error = refusal(&described(there, back));
        assert!(error.place.starts_with(way), "{error}");
    }
    let mut sim = simulator(&described(4, 4));
    let before = resident();
    assert!(memory(&mut sim).in_flight > most as usize / 2);
    assert!(resident() < before + 4 * most, "it held {} more", resident() - before);
}

/// Return the bytes of memory that this process uses.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap() * 4096
}

#[test]
fn records_are_bounded() {
    let recorded = |record: Value, most: u64| {
        let flow = json!({"scheme": "fixed_rate", "params": {"rate_mbps": 80.0}});
        path(&[link(100)], flow, json!({"duration": 60_000 * MS, "max_memory": most, "record": record}))
    };
    let held = memory(&mut simulator(&recorded(json!({"packets": true}), 10_000_000)));
    assert!(held.packets > held.total() as usize / 2, "{held}");
    // Memory known beforehand is reported beforehand.
    let projected = |spec: &RunSpec| {
        assert_eq!(refusal(spec).code, "memory-exceeded");
        projected_memory(spec, &|_| None)
    };
    let series = projected(&recorded(json!({"series": 1_000}), 10_000_000));
    assert!(series.series > 10_000_000 && series.total() == series.series as u64, "{series}");
    let events = projected(&recorded(json!({"link_events": true}), 10_000_000));
    assert!(events.link_events > 10_000_000 && events.packets == 0, "{events}");
    let crowd: Vec<_> = (0..100_000).map(|_| json!({"scheme": "cubic"})).collect();
    let flows = refusal(&path(&[link(100)], json!({}), json!({"flows": crowd, "max_memory": 10_000_000})));
    assert_eq!(flows.code, "memory-exceeded");
    // With enough memory all of it is allowed.
    let all = json!({"packets": true, "series": 10 * MS, "link_events": true});
    assert_eq!(run(&recorded(all, 4_000_000_000)).end, Timestamp(60_000 * MS));
}

/// A trace that is played once has the opportunities of one period, for any length of the run.
#[test]
fn opportunities_of_a_trace_are_projected() {
    let foreseen = |once: bool, seconds: u64| {
        let schedule = json!({"kind": "trace", "name": "1s", "once": once});
        let link = json!({"kind": "link", "schedule": schedule, "queue": {"kind": "infinite"}});
        let rest = json!({"duration": seconds * 1000 * MS, "max_memory": 1, "record": {"link_events": true}});
        let spec = path(&[link], json!({"scheme": "fixed_window", "params": {"cwnd": 2}}), rest);
        let trace = Arc::new(DeliveryTrace::from_ms("1s", (1..=1000).collect::<Vec<_>>()).unwrap());
        projected_memory(&spec, &|_| Some(trace.clone())).link_events
    };
    let period = foreseen(false, 1);
    assert!(period > 1000);
    assert_eq!(foreseen(false, 60), 60 * period);
    assert_eq!(foreseen(true, 60), period);
}

#[test]
fn acknowledgements_are_logged_only_if_wanted() {
    let logged = |record: Value| run(&path(&[link(12)], json!({"scheme": "cubic"}), json!({"record": record})));
    let (both, one) = (logged(json!({"packets": true})), logged(json!({"packets": true, "acks": false})));
    assert!(both.acks.is_some() && one.acks.is_none());
    assert_eq!((both.hash, both.data.map(|d| d.left)), (one.hash, one.data.map(|d| d.left)));
}

/// Without any acknowledgement the start of PCC doubles only until the flow window of the authors' programs is full.
#[test]
fn pcc_without_acknowledgements_is_bounded() {
    let net = Net { ack_loss: json!(1.0), ..Net::new(12.0, 40.0, 40) };
    let mut sim = simulator(&net.spec(&json!([{"scheme": "pcc", "profile": "udp"}]), 3.0));
    sim.run().unwrap();
    let stats = sim.sender(0).stats();
    assert_eq!(stats.sent_packets - stats.probes, 100_000 - 1000, "{stats:?}");
}

/// A scheme whose timer is always due.
#[derive(Clone)]
struct Restless;

impl CongestionControl for Restless {
    fn capabilities(&self) -> Capabilities {
        Capabilities { timers: true, ..Capabilities::default() }
    }
    fn init(&mut self, _context: InitContext) {}
    fn on_ack(&mut self, _event: &AckEvent<'_>) {}
    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {}
    fn next_timer(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn control(&self) -> Control {
        Control::window(15_000)
    }
}

#[test]
fn timers_without_end_are_an_error() {
    let spec = path(&[link(12)], json!({"scheme": "cubic"}), json!({}));
    let mut sim = Simulator::new(&spec, &|_| None, &|_| Ok(Box::new(Restless))).unwrap();
    assert_eq!(sim.run().unwrap_err().code, "run-stalled");
}

#[test]
fn an_interrupt_ends_any_simulation_soon() {
    let jitter = json!({"kind": "jitter", "distribution": {"kind": "uniform", "max": MS}, "reorder": true});
    let crowd: Vec<_> = (0..2000).map(|_| json!({"scheme": "cubic"})).collect();
    let (cubic, hour) = (json!({"scheme": "cubic"}), json!({"duration": 3_600_000 * MS}));
    let endless = json!({"scheme": "fixed_window", "params": {"cwnd": 10_000_000}});
    for spec in [
        path(&[link(100)], cubic.clone(), hour.clone()),
        path(&[jitter, link(100)], cubic.clone(), hour.clone()),
        path(&[link(100)], json!({}), json!({"flows": crowd})),
        path(&[], endless, json!({})),
        path(&[link(0)], cubic, json!({"duration": 3_600_000 * MS, "record": {"series": 1_000_000}})),
    ] {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let mut sim = simulator(&spec);
        sim.set_interrupt(Arc::new(move || counter.fetch_add(1, Ordering::Relaxed) == 10));
        assert_eq!(sim.run().unwrap_err().code, "run-abandoned");
        assert_eq!(asked.load(Ordering::Relaxed), 11, "it went on after the answer");
    }
}

#[test]
fn checks_change_nothing() {
    for flow in [json!({"scheme": "cubic"}), json!({"scheme": "bbr", "profile": "udp"})] {
        let spec = path(&[link(30)], flow, json!({"duration": 5_000 * MS}));
        let mut watched = simulator(&spec);
        watched.set_interrupt(Arc::new(|| false));
        watched.run().unwrap();
        let mut halved = simulator(&spec);
        halved.run_until(Timestamp(1_234_567_891)).unwrap();
        halved.run().unwrap();
        let whole = run(&spec);
        assert_eq!((watched.trajectory_hash(), halved.trajectory_hash()), (whole.hash, whole.hash));
    }
}
