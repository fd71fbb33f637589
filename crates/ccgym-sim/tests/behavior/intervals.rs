//! Ends of intervals: acknowledgements that arrive at that time belong to the next one.

use ccgym_core::Timestamp;
use ccgym_sim::Simulator;
use serde_json::json;

use crate::common::{agent, learners, secs, uncapped};

/// Make a window of one packet on a path of 100 ms without a bottleneck: an acknowledgement every 100 ms exactly.
fn simulator(interval_ms: u64) -> Simulator {
    let agent = agent(&json!({
        "name": "still",
        "clock": {"kind": "fixed", "interval": interval_ms * 1_000_000},
        "observation": {"features": [{"signal": "acked_packets", "clip": [0, 100]}]},
        "action": {"map": {"kind": "discrete", "operations": ["+0"]}, "target": "cwnd", "limits": {"window": [1, 1]}},
        "startup": {"kind": "window", "packets": 1},
    }));
    let mut spec = uncapped(0.0, 1, &json!([{"scheme": "learned"}]), 2.0);
    let delay = json!([{"kind": "delay", "delay": 50_000_000}]);
    spec.uplink = serde_json::from_value(delay).expect("elements");
    spec.downlink.clone_from(&spec.uplink);
    spec.record = serde_json::from_value(json!({})).expect("a record");
    learners(&agent, &spec)
}

/// Return the packets acknowledged in each interval of the first two seconds.
fn acknowledged(interval_ms: u64) -> Vec<u64> {
    let mut simulator = simulator(interval_ms);
    let mut found = Vec::new();
    while let Some(flow) = simulator.run_to_decision(Timestamp(secs(2.0))).unwrap() {
        found.push(simulator.sender(flow).last_interval().acked_packets);
        simulator.hold_decision(flow);
    }
    found
}

#[test]
fn acknowledgements_at_an_intervals_end_belong_to_the_next() {
    // After the handshake, acknowledgements at 200, 300, … ms: each is in the interval that begins then.
    assert_eq!(acknowledged(100)[..5], [0, 0, 1, 1, 1]);
    assert_eq!(acknowledged(200)[..4], [0, 2, 2, 2]);
    assert_eq!(acknowledged(150)[..4], [0, 1, 2, 1]);
}
