//! Invariants of all runs, on random small paths: packets are conserved, nothing is faster than propagation, windows
//! limit sending, and flows do not stall on a path that delivers.

use std::sync::{Arc, Mutex};

use crate::common::{create, secs, simulator, spec, Net, Seen, Watched};
use ccgym_core::{CongestionControl, Error, Timestamp};
use ccgym_path::{DeliveryTrace, ElementSpec, QueueSpec};
use ccgym_run::{FlowSpec, Outcome, RunSpec};
use ccgym_sim::Simulator;
use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::RngSeed;
use schemars::{schema_for, JsonSchema};
use serde_json::{json, Value};

const SCHEMES: [&str; 7] = ["reno", "cubic", "vegas", "bbr", "copa", "fixed_rate", "fixed_window"];

/// Run with the records of [`Watched`], with a trace of bursts and gaps under the name "bursty".
fn run_watched(spec: &RunSpec) -> (Simulator, Outcome, Vec<Arc<Mutex<Seen>>>) {
    let trace = Arc::new(DeliveryTrace::from_ms("bursty", vec![1, 1, 2, 3, 5, 8, 8, 8, 13, 21, 21, 34]).unwrap());
    let records = Mutex::new(Vec::new());
    let factory = |f: &FlowSpec| -> Result<Box<dyn CongestionControl>, Error> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        records.lock().unwrap().push(Arc::clone(&seen));
        Ok(Box::new(Watched::new(create(f)?, seen)))
    };
    let mut sim = Simulator::new(spec, &|name| (name == "bursty").then(|| Arc::clone(&trace)), &factory).unwrap();
    sim.run().unwrap();
    let outcome = sim.outcome();
    let records = std::mem::take(&mut *records.lock().unwrap());
    (sim, outcome, records)
}

// ---- random specifications ---------------------------------------------------------------------------------------

/// Draw any variant that the schema of a description lists, except those called `except`, with its required parameters,
/// flags and limits; the others keep their defaults.
fn any_of<T: JsonSchema>(except: &[&str]) -> BoxedStrategy<Value> {
    let schema = schema_for!(T).to_value();
    any_variant(&schema, &schema["$defs"], except)
}

fn any_variant(schema: &Value, definitions: &Value, except: &[&str]) -> BoxedStrategy<Value> {
    let variants = schema["oneOf"].as_array().unwrap().iter();
    let variants: Vec<_> = variants
        .filter(|variant| !except.iter().any(|kind| variant["properties"]["kind"]["const"] == *kind))
        .map(|variant| {
            let required = variant["required"].as_array().unwrap();
            let drawn = variant["properties"].as_object().unwrap().iter();
            let drawn: Vec<_> = drawn
                .filter(|(name, part)| {
                    part["type"] == "boolean" || part["format"] == "limit" || required.iter().any(|one| one == *name)
                })
                .map(|(name, part)| (Just(name.clone()), any_value(part, definitions)))
                .collect();
            drawn.prop_map(|pairs| Value::Object(pairs.into_iter().collect())).boxed()
        })
        .collect();
    Union::new(variants).boxed()
}

fn any_value(schema: &Value, definitions: &Value) -> BoxedStrategy<Value> {
    if let Some(name) = schema["$ref"].as_str() {
        return any_variant(&definitions[name.rsplit('/').next().unwrap()], definitions, &[]);
    }
    if let Some(constant) = schema.get("const") {
        return Just(constant.clone()).boxed();
    }
    match (schema["format"].as_str(), schema["type"].as_str()) {
        (Some("steps"), _) => any_value(&schema["items"], definitions),
        (Some("limit"), _) => prop_oneof![
            (3u64..150).prop_map(|n| json!({"packets": n})),
            (6_000u64..200_000).prop_map(|n| json!({"bytes": n})),
            (3u64..150, 6_000u64..200_000).prop_map(|(p, b)| json!({"packets": p, "bytes": b})),
        ]
        .boxed(),
        (Some("probability"), _) => (0.0..0.05).prop_map(Value::from).boxed(),
        (Some("time" | "milliseconds"), _) => (5u64..100).prop_map(|ms| json!(ms * 1_000_000)).boxed(),
        (_, Some("boolean")) => any::<bool>().prop_map(Value::from).boxed(),
        (_, Some("integer")) => (0..100u64)
            .prop_map({
                let min = schema["minimum"].as_u64().unwrap_or(0);
                move |n| json!(min + n)
            })
            .boxed(),
        _ => panic!("how is this drawn? {schema}"),
    }
}

fn queue() -> impl Strategy<Value = Value> {
    any_of::<QueueSpec>(&[])
}

fn schedule() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1_000_000u64..40_000_000).prop_map(|r| json!({"kind": "rate", "rate": r})),
        (1_000_000u64..40_000_000, 1_000_000u64..40_000_000).prop_map(|(a, b)| json!({"kind": "rate",
            "rate": [[0, a], [1_000_000_000, b], [1_500_000_000, 0], [1_800_000_000, a]]})),
        Just(json!({"kind": "trace", "name": "bursty"})),
    ]
}

fn link() -> impl Strategy<Value = Value> {
    (schedule(), queue(), prop_oneof![Just(0), Just(4)]).prop_map(|(schedule, queue, overhead)| {
        json!({"kind": "link", "schedule": schedule, "queue": queue,
                                                       "overhead": overhead})
    })
}

fn delay() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0u64..60_000_000).prop_map(|d| json!({"kind": "delay", "delay": d})),
        (1_000_000u64..60_000_000).prop_map(|d| json!({"kind": "delay", "delay": d, "tick": 1_000_000})),
        (1_000_000u64..60_000_000).prop_map(|d| json!({"kind": "delay", "delay": [[0, d], [2_000_000_000, d / 2]]})),
    ]
}

fn trouble() -> impl Strategy<Value = Value> {
    any_of::<ElementSpec>(&["link", "delay"])
}

/// Elements in any order.
fn uplink() -> impl Strategy<Value = Vec<Value>> {
    (link(), delay(), prop::collection::vec(trouble(), 0..3), prop::option::of(link()))
        .prop_map(|(link, delay, trouble, second)| [vec![link, delay], trouble, second.into_iter().collect()].concat())
        .prop_shuffle()
}

fn downlink() -> impl Strategy<Value = Vec<Value>> {
    (delay(), prop::collection::vec(trouble(), 0..2), prop::option::of(link()))
        .prop_map(|(delay, trouble, link)| [vec![delay], trouble, link.into_iter().collect()].concat())
        .prop_shuffle()
}

fn source() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(json!({"kind": "greedy"})),
        1 => (1u64..2_000_000).prop_map(|bytes| json!({"kind": "bytes", "bytes": bytes})),
        1 => Just(json!({"kind": "on_off", "mean_on": 200_000_000, "mean_off": 200_000_000})),
        1 => (100_000u64..5_000_000).prop_map(|rate| json!({"kind": "rate", "rate": rate})),
        1 => (100_000u64..5_000_000, prop::option::of(1u64..500_000))
            .prop_map(|(rate, bytes)| json!({"kind": "poisson", "rate": rate, "bytes": bytes})),
        1 => (100_000u64..5_000_000, 100u64..50_000).prop_map(|(rate, median)| json!({
            "kind": "poisson", "rate": rate, "size": {"kind": "lognormal", "median": median, "sigma": 1.5}})),
        1 => (100u64..50_000, 0u64..100_000_000, prop::option::of(0u32..2)).prop_map(|(min, think, group)| json!({
            "kind": "requests", "think": think, "group": group,
            "size": {"kind": "pareto", "min": min, "shape": 1.2, "max": 1_000_000}})),
    ]
}

/// Draw a flow that has stopped by 3 s.
fn a_flow() -> impl Strategy<Value = Value> {
    let transport = (prop::bool::weighted(0.7), 1u32..4, 0u32..20, 200u32..1448);
    let host = prop_oneof![
        2 => Just(json!({})),
        1 => (0u64..3_000_000, 1u32..20, 0u64..30_000_000)
            .prop_map(|(wakeup, batch, busy)| json!({"wakeup": wakeup, "batch": batch, "busy": busy})),
    ];
    (
        prop::sample::select(&SCHEMES[..]),
        0u64..1_000_000_000,
        1u64..2_000_000_000,
        0u64..50_000_000,
        source(),
        transport,
        host,
    )
        .prop_map(|(scheme, start, length, extra, source, (tcp, every, quick, mss), host)| {
            // Transfers need a reliable transport.
            let tcp = tcp || (source["kind"] == "poisson" && !source["size"].is_null());
            let buffer = (tcp && quick < 5 && source["kind"] == "greedy").then_some(40_000);
            json!({"scheme": scheme, "start": start, "stop": start + length, "extra_rtt": extra, "source": source,
                   "profile": if tcp { "tcp" } else { "udp" }, "ack_every": every, "quick_acks": quick, "mss": mss,
                   "recovery": if quick < 10 { "prr" } else { "classic" }, "send_buffer": buffer,
                   "host": host})
        })
}

/// Return the min delay of a path.
fn propagation(elements: &[Value]) -> u64 {
    let least = |e: &Value| {
        let delay = &e["delay"];
        let delay = delay.as_u64().unwrap_or_else(|| delay[1][1].as_u64().unwrap());
        // A tick can shorten the delay by a tick.
        delay.saturating_sub(e["tick"].as_u64().unwrap_or(0))
    };
    elements.iter().filter(|e| e["kind"] == "delay").map(least).sum()
}

// ---- invariants -----------------------------------------------------------------------------------------------------

/// Check that each element of a drained chain passes on the packets that it does not drop, and the copies it makes.
/// Returns the number of packets that came out, were dropped and copied.
fn check_chain(name: &str, chain: &[(String, ccgym_path::Counters)], offered: u64) -> (u64, u64, u64) {
    let mut flowing = offered;
    for (kind, c) in chain {
        assert_eq!(c.arrived, flowing, "{name}: arrivals at the {kind}");
        assert_eq!(c.arrived + c.duplicated, c.forwarded + c.dropped, "{name}: balance of the {kind}: {c:?}");
        flowing = c.forwarded;
    }
    let sum = |f: &dyn Fn(&ccgym_path::Counters) -> u64| chain.iter().map(|(_, c)| f(c)).sum();
    (flowing, sum(&|c| c.dropped), sum(&|c| c.duplicated))
}

/// Check the packets of a log that never left: those dropped, unless a copy arrived.
fn check_log(name: &str, log: &ccgym_run::recorder::PacketLog, dropped: u64, copies: u64) {
    let gone = log.left.iter().filter(|&&t| t == u64::MAX).count() as u64;
    assert!((dropped.saturating_sub(copies)..=dropped).contains(&gone), "{name}: {gone} gone, {dropped} dropped");
}

fn check(value: Value, up: &[Value], down: &[Value]) {
    let spec = spec(value);
    let (sim, outcome, records) = run_watched(&spec);
    let (data, acks) = (outcome.data.as_ref().unwrap(), outcome.acks.as_ref().unwrap());
    let total = |f: &dyn Fn(&ccgym_run::FlowOutcome) -> u64| outcome.flows.iter().map(f).sum::<u64>();

    // Packets are conserved: the run ends long after the last packet.
    let (sent, received) = (total(&|f| f.sender.sent_packets), total(&|f| f.received.packets));
    let (came, dropped, copies) = check_chain("uplink", &outcome.links[0].elements, sent);
    assert_eq!((came, data.entered.len() as u64), (received, sent));
    check_log("uplink", data, dropped, copies);
    let (came, dropped, ack_copies) = check_chain("downlink", &outcome.links[1].elements, acks.entered.len() as u64);
    assert_eq!(came, acks.entered.len() as u64 + ack_copies - dropped);
    check_log("downlink", acks, dropped, ack_copies);
    assert!(acks.entered.len() as u64 <= received);

    // Nothing is faster than propagation.
    for (name, log, least, share) in [("uplink", data, propagation(up), 2), ("downlink", acks, propagation(down), 1)] {
        for i in 0..log.entered.len() {
            let extra = spec.flows[log.flow[i] as usize].extra_rtt.0;
            let extra = if share == 2 { extra / 2 } else { extra - extra / 2 };
            assert!(log.left[i] >= log.entered[i] + least + extra, "{name}: packet {i} took less than {least} ns");
        }
    }

    for (i, (f, seen)) in outcome.flows.iter().zip(&records).enumerate() {
        let (s, sender) = (&f.sender, sim.sender(i));
        assert!(s.acked_packets <= f.received.packets, "flow {i}: {f:?}");
        assert!(f.received.packets <= s.sent_packets + copies, "flow {i}: {f:?}, {copies} copies");
        assert!(copies > 0 || f.received.bytes <= s.sent_bytes, "flow {i}: {f:?}");
        assert!(s.acked_bytes <= f.received.bytes, "flow {i}: {f:?}");
        assert!(f.received.unique_bytes <= s.sent_bytes, "flow {i}: {f:?}");
        assert!(f.received.unique_bytes <= f.received.bytes, "flow {i}: {f:?}");
        // Each packet sent was acknowledged, declared lost, both (a spurious loss), or is still outstanding.
        let settled = s.acked_packets + s.lost_packets - s.spurious_losses;
        assert!(settled <= s.sent_packets, "flow {i}: {s:?}");
        assert_eq!(settled == s.sent_packets, sender.in_flight() == 0, "flow {i}: {s:?}, {}", sender.in_flight());
        if let Some(bytes) = spec_bytes(&spec, i) {
            assert!(f.received.unique_bytes <= bytes, "flow {i}: {f:?}");
        }
        let seen = seen.lock().unwrap();
        assert!(seen.nonsense.is_empty(), "flow {i}: {:?}", seen.nonsense);
        // A probe may exceed the window, and so may packets in flight again after a spurious timeout.
        let beyond = s.probes + if s.spurious_losses > 0 { s.rtos } else { 0 };
        assert!(seen.beyond_window <= beyond, "flow {i}: {} beyond the window, {s:?}", seen.beyond_window);
    }
}

fn spec_bytes(spec: &RunSpec, flow: usize) -> Option<u64> {
    match spec.flows[flow].source {
        ccgym_run::spec::SourceSpec::Bytes { bytes } => Some(bytes),
        _ => None,
    }
}

/// Set few cases, always the same ones: this test finds errors, it does not search at random.
fn cases(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn packets_are_conserved(
        seed in 0u64..1000,
        up in uplink(),
        down in downlink(),
        flows in prop::collection::vec(a_flow(), 1..4),
    ) {
        check(json!({"seed": seed, "duration": secs(60.0), "uplink": &up, "downlink": &down, "flows": flows,
                     "record": {"packets": true}}), &up, &down);
    }

    /// A finite TCP transfer over a path that keeps delivering ends, not too early, with every byte once.
    #[test]
    fn finite_transfers_end(
        seed in 0u64..1000,
        rate in 1_000_000u64..40_000_000,
        queue in queue(),
        loss in 0.0f64..0.03,
        jitter in 0u64..10_000_000,
        scheme in prop::sample::select(&SCHEMES[..5]),
        bytes in 1u64..1_000_000,
        every in 1u32..4,
    ) {
        let spec = spec(json!({
            "seed": seed,
            "duration": secs(300.0),
            "uplink": [
                {"kind": "loss", "probability": loss},
                {"kind": "link", "schedule": {"kind": "rate", "rate": rate}, "queue": queue},
                {"kind": "delay", "delay": 10_000_000},
                {"kind": "jitter", "distribution": {"kind": "uniform", "max": jitter}, "reorder": true},
            ],
            "downlink": [{"kind": "delay", "delay": 10_000_000}, {"kind": "loss", "probability": loss}],
            "flows": [{"scheme": scheme, "ack_every": every, "start": 5_000_000,
                       "source": {"kind": "bytes", "bytes": bytes}}],
        }));
        let (_, outcome, _) = run_watched(&spec);
        let f = &outcome.flows[0];
        prop_assert!(f.finished.is_set(), "{f:?}");
        prop_assert_eq!(f.received.unique_bytes, bytes);
        let took = f.finished.since(f.start).as_secs_f64();
        prop_assert!(took >= bytes as f64 * 8.0 / rate as f64 + 0.020, "{took} s: {f:?}");
        // Heavy loss leaves some packets per RTT; timeouts cost more.
        prop_assert!(took < 5.0 * bytes as f64 * 8.0 / rate as f64 + 100.0, "{took} s: {f:?}");
    }
}

#[cfg(debug_assertions)]
const CASES: u32 = 150;
#[cfg(not(debug_assertions))]
const CASES: u32 = 500;

// ---- progress -------------------------------------------------------------------------------------------------------

/// On a path with interruptions that is on most of the time, a flow progresses in every minute. (With 30 % of the time
/// on, eight backed-off timeouts in a row may fall into gaps, and the ninth comes minutes later: RFC 6298. And a timer
/// of 60 s would always meet the same phase of a one-second cycle; these periods do not synchronize.)
#[test]
fn flows_survive_an_intermittent_path() {
    for (on, off) in [(903, 104), (730, 311), (3_100, 2_000)] {
        let path = json!({"kind": "intermittent", "on": on * 1_000_000u64, "off": off * 1_000_000u64});
        let net = Net { record: json!({}), ..Net::new(4.0, 40.0, 30) };
        for scheme in SCHEMES {
            for profile in ["tcp", "udp"] {
                let mut spec = net.spec(&json!([{"scheme": scheme, "profile": profile}]), 200.0);
                spec.uplink.insert(0, serde_json::from_value(path.clone()).expect("an element"));
                let mut sim = simulator(&spec);
                let p = [0, 60, 120, 180].map(|seconds| {
                    sim.run_until(Timestamp::from_millis(1000 * seconds)).unwrap();
                    sim.sender(0).stats().acked_packets
                });
                assert!(p.windows(2).all(|w| w[1] > w[0] + 10), "{scheme}, {profile}, {on}/{off} ms: {p:?}");
            }
        }
    }
}
