//! Nanoseconds per packet of the links that answer at arrival: `cargo run --release -p ccgym-link --example eager_cost`.
//!
//! Measuring needs a clock, which the library itself must never have: time on the processor where Linux tells it, so
//! that other work on the machine does not count.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_link::{build_element, DeliveryTrace, ElementSpec, PathElement, Release};

/// Nanoseconds that this thread has been running; the wall clock where the kernel does not say.
fn running_ns(start: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| start.elapsed().as_nanos() as f64)
}

const PACKETS: u64 = 20_000_000;

fn measure(name: &str, json: &str, gap_ns: u64) {
    // 77.72 Mbit/s as Pantheon's calibrated trace: line i at ⌊12·i/77.72⌋.
    let times: Vec<u64> = (0..388_600u64).map(|i| i * 1200 / 7772).collect();
    let Ok(trace) = DeliveryTrace::from_ms("77.72mbps", times).map(Arc::new) else { return };
    let Ok(spec) = serde_json::from_str::<ElementSpec>(json) else { return println!("{name}: bad spec") };
    let Ok(mut element) = build_element(&spec, 1, 0, &|_| Some(Arc::clone(&trace))) else { return };
    let mut out: Vec<Release> = Vec::new();
    let start = Instant::now();
    let before = running_ns(start);
    let mut now = Timestamp::ZERO;
    for id in 0..PACKETS {
        now += TimeSpan(gap_ns);
        while element.next_event() <= now {
            let at = element.next_event();
            element.poll(at, &mut out);
            out.clear();
        }
        black_box(element.offer(now, &mut Datagram { id, flow: 0, size: 1500, ecn: Ecn::NotEct }));
    }
    let ns = (running_ns(start) - before) / PACKETS as f64;
    let dropped = element.counters().dropped as f64 / PACKETS as f64;
    println!("{name:<44} {ns:6.2} ns/packet   ({:.1} % dropped)", 100.0 * dropped);
}

fn main() {
    let link = |schedule: &str, queue: &str| {
        format!(r#"{{"kind":"link","schedule":{schedule},"queue":{queue},"overhead":4}}"#)
    };
    let (infinite, tail) = (r#"{"kind":"infinite"}"#, r#"{"kind":"droptail","limit":{"packets":94}}"#);
    let codel = r#"{"kind":"codel","limit":{"packets":94},"target":5000000,"interval":100000000}"#;
    let rate = r#"{"kind":"rate","rate":77720000}"#;
    let trace = r#"{"kind":"trace","name":"77.72mbps"}"#;
    // A full packet takes 154.8 µs: 140 µs is an overload of 10 %, 160 µs keeps the queue short.
    for (label, gap) in [("overload", 140_000), ("light", 160_000)] {
        measure(&format!("rate, infinite, {label}"), &link(rate, infinite), gap);
        measure(&format!("rate, droptail 94, {label}"), &link(rate, tail), gap);
        measure(&format!("trace, infinite, {label}"), &link(trace, infinite), gap);
        measure(&format!("trace, droptail 94, {label}"), &link(trace, tail), gap);
        measure(&format!("rate, codel, {label}"), &link(rate, codel), gap);
        measure(&format!("trace, codel, {label}"), &link(trace, codel), gap);
    }
    measure("delay", r#"{"kind":"delay","delay":51000000}"#, 150_000);
    measure("delay, tick 1 ms", r#"{"kind":"delay","delay":51000000,"tick":1000000}"#, 150_000);
    measure("loss", r#"{"kind":"loss","probability":0.0006}"#, 150_000);
}
