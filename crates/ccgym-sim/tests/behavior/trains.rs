//! Trains give the same result as one event per packet: the same runs with packets recorded, which carries each alone.

use ccgym_run::{Outcome, RunSpec};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{json, Value};

use crate::common::{agent, all_tests, learners, spec};

/// Run the agent with a fixed sequence of actions; returns all that may differ.
fn trajectory(clock: &Value, target: &str, startup: &Value, actions: &[f32], spec: &RunSpec) -> (Vec<String>, Outcome) {
    let agent = agent(&json!({
        "name": "any", "clock": clock,
        "observation": {"features": [{"signal": "loss_fraction", "clip": [0.0, 1.0]}]},
        "action": {"map": {"kind": "signed_multiply", "delta": 0.1}, "target": target, "bounds": [-9.0, 9.0],
                   "limits": {"rate": [200_000, 20_000_000], "window": [2, 300]}},
        "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
        "startup": startup,
    }));
    let mut simulator = learners(&agent, spec);
    let mut intervals = Vec::new();
    while let Some(flow) = simulator.run_to_decision(simulator.end()).unwrap() {
        let truth = simulator.ground_truth(flow);
        intervals.push(format!("{:?} {truth:?}", simulator.sender(flow).last_interval()));
        simulator.decide(flow, &[actions[intervals.len() % actions.len()]]);
    }
    let rtt = *simulator.sender(0).rtt();
    intervals.push(format!("{rtt:?} {} {:?}", simulator.sender(0).in_flight(), simulator.sender(0).window()));
    (intervals, simulator.finish())
}

fn element() -> impl Strategy<Value = Value> {
    let rate = 500_000u64..20_000_000;
    let packets = 1u64..60;
    prop_oneof![
        3 => (0.0..0.3).prop_map(|p| json!({"kind": "loss", "probability": p})),
        1 => Just(json!({"kind": "loss", "probability": [[0, 0.0], [2_000_000_000, 0.2]]})),
        1 => Just(json!({"kind": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.2, "loss_bad": 0.9})),
        1 => Just(json!({"kind": "on_off", "mean_on": 900_000_000, "mean_off": 400_000_000})),
        1 => Just(json!({"kind": "jitter", "distribution": {"kind": "exponential", "mean": 5_000_000}})),
        1 => Just(json!({"kind": "jitter", "distribution": {"kind": "exponential", "mean": 5_000_000}, "reorder": true})),
        1 => Just(json!({"kind": "duplicate", "probability": 0.1})),
        2 => (0u64..200_000_000).prop_map(|d| json!({"kind": "delay", "delay": d})),
        1 => Just(json!({"kind": "delay", "delay": 20_000_000, "tick": 1_000_000})),
        6 => (rate.clone(), packets.clone(), 0u64..3000).prop_map(|(rate, packets, overhead)| json!({
            "kind": "link", "schedule": {"kind": "rate", "rate": rate}, "overhead": overhead % 2 * 4,
            "queue": {"kind": "droptail", "limit": {"packets": packets}}, "device_packets": overhead % 3,
        })),
        2 => (rate.clone(), rate, packets.clone()).prop_map(|(a, b, packets)| json!({
            "kind": "link", "schedule": {"kind": "rate", "rate": [[0, a], [1_000_000_000, b], [3_000_000_000u64, a]]},
            "queue": {"kind": "droptail", "limit": {"bytes": packets * 1500}},
        })),
        1 => packets.prop_map(|packets| json!({
            "kind": "link", "schedule": {"kind": "rate", "rate": 3_000_000},
            "queue": {"kind": "codel", "limit": {"packets": packets}},
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if all_tests() { 4000 } else { 100 },
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn trains_are_single_packets(
        seed in any::<u64>(),
        uplink in prop::collection::vec(element(), 1..4),
        downlink in prop_oneof![
            4 => (1u64..100_000_000).prop_map(|d| vec![json!({"kind": "delay", "delay": d})]),
            1 => prop::collection::vec(element(), 0..3),
        ],
        clock in prop_oneof![
            Just(json!({"kind": "rtt", "multiple": 0.5, "of": "mean", "warm_up_rtts": 3.0, "first_rtts": 1.5})),
            Just(json!({"kind": "fixed", "interval": 10_000_000})),
            Just(json!({"kind": "fixed", "interval": 150_000_000})),
            Just(json!({"kind": "fixed", "interval": 20_000_000, "on_ack": true})),
        ],
        target in prop_oneof![3 => Just("rate"), 1 => Just("cwnd")],
        mbps in 1u64..20,
        slow in any::<bool>(),
        actions in prop::collection::vec(-9.0f32..9.0, 1..30),
        extra in prop_oneof![Just(0u64), 0u64..50_000_000],
        stop in prop_oneof![Just(None), (1_000_000_000u64..3_500_000_000).prop_map(Some)],
        others in prop_oneof![4 => Just(0usize), 1 => Just(1)],
    ) {
        let startup = match (slow, target) {
            (true, _) => json!({"kind": "slow_start"}),
            (_, "rate") => json!({"kind": "rate", "rate": mbps * 1_000_000}),
            _ => json!({"kind": "window", "packets": 10}),
        };
        let mut flows = vec![json!({"scheme": "learned", "profile": "udp", "extra_rtt": extra, "stop": stop})];
        flows.extend((0..others).map(|_| json!({"scheme": "cubic", "start": 500_000_000})));
        let link = json!({"kind": "link", "schedule": {"kind": "rate", "rate": 40_000_000},
                          "queue": {"kind": "droptail", "limit": {"packets": 300}}});
        let uplink: Vec<_> = uplink.into_iter().chain([link, json!({"kind": "delay", "delay": 1_000_000})]).collect();
        let mut run = spec(json!({"seed": seed, "duration": 4_000_000_000u64, "uplink": uplink, "downlink": downlink,
                                  "flows": flows, "record": {}}));
        let (intervals, trains) = trajectory(&clock, target, &startup, &actions, &run);
        run.record.packets = true;
        let (expected, mut single) = trajectory(&clock, target, &startup, &actions, &run);
        single.data = None;
        single.acks = None;
        for (found, expected) in intervals.iter().zip(&expected) {
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(intervals.len(), expected.len());
        prop_assert_eq!(format!("{trains:?}"), format!("{single:?}"));
    }
}
