//! Benchmarks of the native core: one JSON line `{name, value, unit, …}` per result on standard output.
//!
//! `ccgym-bench` runs all; `ccgym-bench NAME…` those whose name contains one of the words;
//! `ccgym-bench --once NAME [SCALE]` runs that workload a single time at SCALE (0.05) of its length, without timing:
//! for callgrind.

mod decision;
mod environment;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ccgym_core::Error;
use ccgym_core::{Datagram, Ecn, Timestamp};
use ccgym_path::{build_element, DeliveryTrace, ElementSpec, PathElement};
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::learned::Policy;
use ccgym_sim::Simulator;
use serde_json::json;

/// Make a drop-tail bottleneck of `mbps` with 40 ms RTT and 1 BDP of buffer, and `flows` flows of one scheme.
fn dumbbell(scheme: &str, mbps: f64, flows: usize, seconds: f64) -> RunSpec {
    dumbbell_with("droptail", scheme, mbps, flows, seconds)
}

/// As [`dumbbell`], with another queue.
fn dumbbell_with(queue: &str, scheme: &str, mbps: f64, flows: usize, seconds: f64) -> RunSpec {
    let bdp_packets = (mbps * 1e6 * 0.040 / 8.0 / 1500.0).round().max(1.0) as u64;
    let spec = json!({
        "seed": 1,
        "duration": (seconds * 1e9) as u64,
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": (mbps * 1e6) as u64},
             "queue": {"kind": queue, "limit": {"packets": bdp_packets}}},
            {"kind": "delay", "delay": 20_000_000},
        ],
        "downlink": [{"kind": "delay", "delay": 20_000_000}],
        "flows": (0..flows).map(|i| json!({"scheme": scheme, "start": i as u64 * 1_000_000})).collect::<Vec<_>>(),
    });
    serde_json::from_value(spec).expect("the benchmark's own specification is valid")
}

fn simulator(spec: &RunSpec) -> Simulator {
    let scheme = |f: &FlowSpec| ccgym_schemes::create(&f.scheme, &f.params);
    Simulator::new(spec, &|_| None, &scheme).expect("the benchmark's own specification can be built")
}

/// Return the packets sent by one run, and its wall time without construction.
fn run(spec: &RunSpec) -> (u64, Duration) {
    let mut sim = simulator(spec);
    let start = Instant::now();
    sim.run().expect("the benchmark fits into memory");
    let elapsed = start.elapsed();
    let packets = (0..sim.flow_count()).map(|i| sim.sender(i).stats().sent_packets).sum();
    (packets, elapsed)
}

/// Return the best rate of several runs, since noise only slows runs down.
fn best_rate(mut f: impl FnMut() -> (u64, Duration)) -> f64 {
    let mut best = 0.0f64;
    let begin = Instant::now();
    let mut runs = 0;
    while runs < 3 || begin.elapsed() < Duration::from_secs(2) {
        let (n, t) = f();
        best = best.max(n as f64 / t.as_secs_f64());
        runs += 1;
    }
    best
}

/// Keep a drop-tail link busy.
fn link(kind: &str, packets: u64) -> (u64, Duration) {
    let trace = DeliveryTrace::from_ms("96mbps", vec![1u64; 8]).expect("a valid trace");
    let trace = std::sync::Arc::new(trace);
    let schedule = match kind {
        "rate" => json!({"kind": "rate", "rate": 96_000_000u64}),
        _ => json!({"kind": "trace", "name": "96mbps"}),
    };
    let spec: ElementSpec = serde_json::from_value(json!({
        "kind": "link", "schedule": schedule, "overhead": 4,
        "queue": {"kind": "droptail", "limit": {"packets": 100}},
    }))
    .expect("the benchmark's own specification is valid");
    let mut element = build_element(&spec, 1, 0, &|_| Some(trace.clone())).expect("the link can be built");
    let start = Instant::now();
    for id in 0..packets {
        // 5 % faster than the link, so that the queue is full and packets are dropped.
        let mut datagram = Datagram { id, flow: 0, size: 1500, ecn: Ecn::NotEct };
        std::hint::black_box(element.offer(Timestamp(id * 119_000), &mut datagram));
    }
    (packets, start.elapsed())
}

/// Run a dependent chain of multiplications and additions: the speed of one core, to compare machines.
fn reference_loop() -> (u64, Duration) {
    let n = 100_000_000u64;
    let start = Instant::now();
    let mut x = 1u64;
    for i in 0..n {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
    }
    std::hint::black_box(x);
    (n, start.elapsed())
}

type Workload = Box<dyn FnMut(f64) -> (u64, Duration)>;

fn workloads() -> Vec<(String, &'static str, Workload)> {
    let mut list: Vec<(String, &'static str, Workload)> =
        vec![("machine_reference_ops_per_second".into(), "ops/s", Box::new(|_| reference_loop()))];
    let mut add = |name: String, unit, f: Workload| list.push((name, unit, f));
    for scheme in ["reno", "cubic", "bbr", "vegas", "copa"] {
        add(
            format!("sim_packets_per_second/{scheme}"),
            "packets/s",
            Box::new(move |scale| run(&dumbbell(scheme, 100.0, 1, 100.0 * scale))),
        );
    }
    for scheme in ["cubic", "bbr"] {
        add(
            format!("sim_packets_per_second_100_flows/{scheme}"),
            "packets/s",
            Box::new(move |scale| run(&dumbbell(scheme, 1000.0, 100, 10.0 * scale))),
        );
    }
    for flows in [2usize, 10, 1000] {
        add(
            format!("sim_packets_per_second_by_flows/cubic/{flows}"),
            "packets/s",
            Box::new(move |scale| run(&dumbbell("cubic", 1000.0, flows, 10.0 * scale))),
        );
    }
    for mbps in [10u32, 1000, 10_000] {
        add(
            format!("sim_packets_per_second_by_rate/cubic/{mbps}mbps"),
            "packets/s",
            Box::new(move |scale| run(&dumbbell("cubic", f64::from(mbps), 1, scale * 10_000.0 / f64::from(mbps)))),
        );
    }
    for queue in ["codel", "fq_codel"] {
        add(
            format!("sim_packets_per_second_by_queue/cubic/{queue}"),
            "packets/s",
            Box::new(move |scale| run(&dumbbell_with(queue, "cubic", 1000.0, 1, 10.0 * scale))),
        );
    }
    for kind in ["rate", "trace"] {
        add(
            format!("link_packets_per_second/{kind}"),
            "packets/s",
            Box::new(move |scale| link(kind, (5_000_000.0 * scale) as u64)),
        );
    }
    list.push(("env_steps_per_second/native".into(), "steps/s", Box::new(environment::run)));
    list
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [once, name, rest @ ..] = args.as_slice() {
        if once == "--once" {
            let scale = rest.first().map_or(Ok(0.05), |s| s.parse::<f64>()).unwrap_or_else(|_| {
                eprintln!("--once: found scale {:?}, expected a number", rest[0]);
                std::process::exit(2)
            });
            for (n, _, mut f) in workloads() {
                if n == *name {
                    let (count, _) = f(scale);
                    println!("{}", json!({"name": n, "value": count, "unit": "packets"}));
                    return;
                }
            }
            eprintln!("--once: found {name:?}, expected one of the benchmark names");
            std::process::exit(2);
        }
    }
    for (name, unit, mut f) in workloads() {
        if args.is_empty() || args.iter().any(|a| name.contains(a.as_str())) {
            println!("{}", json!({"name": name, "value": best_rate(|| f(1.0)), "unit": unit}));
        }
    }
    for (name, policy) in decision::policies() {
        let name = format!("decision_microseconds/{name}");
        if args.is_empty() || args.iter().any(|a| name.contains(a.as_str())) {
            match policy.and_then(|policy| best_decision(&policy).map_err(|error| error.to_string())) {
                Ok(value) => println!("{}", json!({"name": name, "value": value, "unit": "us"})),
                Err(error) => {
                    eprintln!("{name}: {error}");
                    std::process::exit(2);
                }
            }
        }
    }
}

/// Return the best mean time of a decision in several batches, microseconds.
fn best_decision(policy: &Arc<Policy>) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let (decisions, elapsed) = decision::run(policy, 5_000)?;
        best = best.min(elapsed.as_secs_f64() * 1e6 / decisions as f64);
    }
    Ok(best)
}
