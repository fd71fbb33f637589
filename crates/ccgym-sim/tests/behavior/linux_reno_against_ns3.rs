//! Linux's Reno next to ns-3.37's class of it, alone and with ns-3's Cubic, over one bottleneck for 40 s.
//!
//! The values are from `tests/differential/record/ns3/dumbbell.cc`, built as its head says with Debian's package
//! libns3-dev 3.37-2, payload in Mbit/s. For each rate R (Mbit/s), queue Q (packets) and round trip T (ms):
//!
//!     for reno in TcpLinuxReno TcpRenoOfLinux; do for algs in $reno $reno,TcpCubic; do
//!         ./dumbbell --rate=${R}Mbps --queue=${Q}p --rtts=$T --algs=$algs --seconds=40
//!     done; done
//!
//! `TcpLinuxReno` is ns-3's. It departs from Linux in two rules, and the driver's `TcpRenoOfLinux` is it without them: see
//! "ns-3's Linux Reno" in docs/validation.md. With the latter ours is compared.

use crate::common::{assert_close, run, secs, spec};
use serde_json::json;

const SECONDS: f64 = 40.0;

/// Alone; with Cubic, and what Cubic has.
type Shares = (f64, [f64; 2]);
/// Rate, queue and round trip; of `TcpLinuxReno`; of `TcpRenoOfLinux`.
type Case = ((u64, u64, u64), Shares, Shares);

#[rustfmt::skip]
const NS3: [Case; 9] = [
    ((10, 10, 40), (9.053, [5.750, 3.743]), (8.812, [5.075, 4.339])),
    ((10, 50, 40), (9.615, [4.906, 4.715]), (9.615, [4.251, 5.371])),
    ((10, 100, 20), (9.631, [5.842, 3.791]), (9.631, [4.267, 5.366])),
    ((4, 10, 100), (3.606, [1.950, 1.840]), (3.519, [1.770, 1.985])),
    ((20, 20, 20), (19.034, [10.347, 8.912]), (18.822, [9.973, 9.285])),
    ((20, 15, 80), (15.249, [8.370, 8.711]), (15.003, [8.522, 8.255])),
    ((40, 40, 40), (34.865, [19.200, 18.521]), (34.582, [17.950, 19.705])),
    ((20, 80, 40), (19.213, [8.370, 10.843]), (19.213, [7.786, 11.427])),
    ((8, 40, 60), (7.679, [3.633, 4.056]), (7.680, [3.087, 4.602])),
];

/// Packets of a queue in which single packets decide which of two flows has what. Ours then has 4.7 to 5.9 Mbit/s on the first
/// path where Cubic starts up to 21 ms later, 6.8 to 10.1 on that of 20 Mbit/s and 80 ms; ns-3 is between.
const SHALLOW: u64 = 15;

fn ours(path: (u64, u64, u64), schemes: &[&str]) -> Vec<f64> {
    lossy(path, schemes, 0.0, 1)
}

fn lossy((mbps, queue, rtt_ms): (u64, u64, u64), schemes: &[&str], loss: f64, seed: u64) -> Vec<f64> {
    let way = rtt_ms * 500_000;
    let flow = |scheme: &&str| {
        let mode = if *scheme == "reno" { "linux" } else { "ns3" };
        json!({"scheme": scheme, "params": {"mode": mode}, "profile": "ns3", "ack_every": 1})
    };
    let outcome = run(&spec(json!({
        "seed": seed,
        "duration": secs(SECONDS),
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": mbps * 1_000_000}, "overhead": 2, "device_packets": 1,
             "queue": {"kind": "droptail", "limit": {"packets": queue}}},
            {"kind": "delay", "delay": way},
            {"kind": "loss", "probability": loss},
        ],
        "downlink": [{"kind": "delay", "delay": way}],
        "flows": schemes.iter().map(flow).collect::<Vec<_>>(),
    })));
    outcome.flows.iter().map(|flow| flow.received.unique_bytes as f64 * 8e-6 / SECONDS).collect()
}

/// Within 1.5 % alone. ns-3's own class has up to 3 % more.
#[test]
fn alone() {
    for (path, (as_it_is, _), (as_linux, _)) in NS3 {
        assert_close(&format!("{path:?}"), ours(path, &["reno"])[0], as_linux, 0.015);
        assert!((as_it_is / as_linux - 1.0).abs() < 0.03, "{path:?}");
    }
}

/// Within 1.5 % with Cubic; within 22 % where the queue is shallow. ns-3's own class differs from Linux's rules by up to 37 %.
#[test]
fn with_cubic() {
    for (path, _, (_, [reno, cubic])) in NS3 {
        let (found, bound) = (ours(path, &["reno", "cubic"]), if path.1 <= SHALLOW { 0.22 } else { 0.015 });
        assert_close(&format!("{path:?}: Reno"), found[0], reno, bound);
        assert_close(&format!("{path:?}: Cubic"), found[1], cubic, bound);
    }
}

/// Half a percent of random loss (`--loss=0.005 --draw=1` to 3): within 10 % of the means of three draws. ns-3's own class has
/// 13 % more than Linux's rules, since each recovery gives it a packet.
#[test]
fn under_random_loss() {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (as_it_is, as_linux) = (mean(&[6.020, 5.452, 5.566]), mean(&[5.328, 4.953, 4.846]));
    let found: Vec<f64> = (1..=10).map(|seed| lossy((10, 50, 40), &["reno"], 0.005, seed)[0]).collect();
    assert_close("Reno", mean(&found), as_linux, 0.1);
    assert!(as_it_is / as_linux > 1.12);
}
