//! One seed gives one outcome, for any number of threads, size of steps, snapshots on the way, and for packets carried
//! eagerly or through the event heap.

use crate::common::{run, simulator, spec, Net};
use ccgym_core::{TimeSpan, Timestamp};
use ccgym_run::recorder::PacketLog;
use ccgym_run::{Outcome, RunSpec};
use ccgym_sim::Simulator;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{json, Value};

/// Return the whole outcome of a run as text.
fn fingerprint(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

const SCHEMES: [&str; 5] = ["reno", "cubic", "vegas", "bbr", "copa"];

/// Make a path with every kind of randomness, and flows of every kind.
fn busy(seed: u64, seconds: u64) -> RunSpec {
    spec(json!({
        "seed": seed,
        "duration": seconds * 1_000_000_000,
        "uplink": [
            {"kind": "gilbert_elliott", "good_to_bad": 0.001, "bad_to_good": 0.3, "loss_bad": 0.5},
            {"kind": "jitter", "distribution": {"kind": "exponential", "mean": 500_000}, "reorder": true},
            {"kind": "link", "schedule": {"kind": "rate", "rate": 20_000_000},
             "queue": {"kind": "mahimahi_pie", "limit": {"packets": 200}, "qdelay_ref": 20_000_000, "max_burst": 100_000_000}},
            {"kind": "on_off", "mean_on": 900_000_000, "mean_off": 20_000_000},
            {"kind": "delay", "delay": 15_000_000},
        ],
        "downlink": [
            {"kind": "delay", "delay": 15_000_000},
            {"kind": "loss", "probability": 0.01},
            {"kind": "jitter", "distribution": {"kind": "normal", "mean": 1_000_000, "std": 500_000}},
        ],
        "flows": [
            {"scheme": "cubic", "ack_every": 2, "quick_acks": 16},
            {"scheme": "bbr", "start": 100_000_000, "extra_rtt": 20_000_000,
             "host": {"wakeup": 1_000_000, "batch": 3, "busy": 2_000_000}},
            {"scheme": "copa", "profile": "udp", "start": 200_000_000, "stop": 2_500_000_000u64},
            {"scheme": "reno", "source": {"kind": "on_off", "mean_on": 300_000_000, "mean_off": 200_000_000}},
            {"scheme": "vegas", "source": {"kind": "bytes", "bytes": 300_000}},
            {"scheme": "cubic", "params": {"mode": "linux"}, "source": {"kind": "rate", "rate": 1_000_000}},
        ],
        "record": {"packets": true, "series": 10_000_000, "link_events": true},
    }))
}

/// Make a lone flow on the fast path: nothing waits in the heap, and the flow continues alone between samples.
fn lone(seed: u64, scheme: &str, loss: f64) -> RunSpec {
    let net = Net { loss: json!(loss), record: json!({"packets": true}), ..Net::new(12.0, 40.0, 40) };
    RunSpec { seed, ..net.spec(&json!([{"scheme": scheme}]), 8.0) }
}

#[test]
fn same_seed_same_bytes() {
    let first = run(&busy(3, 5));
    assert!(first.flows.iter().all(|f| f.sender.acked_packets > 50), "{:?}", first.flows);
    assert_eq!(fingerprint(&first), fingerprint(&run(&busy(3, 5))));
    for scheme in SCHEMES {
        let spec = lone(3, scheme, 0.002);
        assert_eq!(fingerprint(&run(&spec)), fingerprint(&run(&spec)), "{scheme}");
    }
}

#[test]
fn another_seed_another_outcome() {
    assert_ne!(run(&busy(3, 3)).hash, run(&busy(4, 3)).hash);
    for scheme in SCHEMES {
        assert_ne!(run(&lone(3, scheme, 0.01)).hash, run(&lone(4, scheme, 0.01)).hash, "{scheme}");
    }
    // Without any randomness the seed has no effect.
    for scheme in ["reno", "cubic", "vegas"] {
        assert_eq!(fingerprint(&run(&lone(3, scheme, 0.0))), fingerprint(&run(&lone(4, scheme, 0.0))), "{scheme}");
    }
}

#[test]
fn a_snapshot_continues_identically() {
    let mut specs = vec![busy(5, 4)];
    specs.extend(SCHEMES.iter().map(|scheme| lone(5, scheme, 0.01)));
    for s in specs {
        let mut sim = simulator(&s);
        for at in [0, 333_333_333, 1_000_000_000, 2_100_000_001] {
            sim.run_until(Timestamp(at)).unwrap();
            let mut copy = sim.clone();
            copy.run().unwrap();
            let whole = run(&s);
            assert!(fingerprint(&copy.outcome()) == fingerprint(&whole), "a copy taken at {at} ns");
        }
        // The original is not affected.
        sim.run().unwrap();
        assert!(fingerprint(&sim.outcome()) == fingerprint(&run(&s)));
    }
}

#[test]
fn many_small_steps_are_one_run() {
    let mut specs = vec![busy(6, 3)];
    specs.extend(SCHEMES.iter().map(|scheme| lone(6, scheme, 0.003)));
    for s in specs {
        let whole = fingerprint(&run(&s));
        for step in [100_003u64, 1_000_000, 40_000_000, 777_777_777] {
            let mut sim = simulator(&s);
            while sim.now() < sim.end() {
                let until = sim.now() + TimeSpan(step);
                sim.run_until(until).unwrap();
            }
            assert!(fingerprint(&sim.outcome()) == whole, "steps of {step} ns");
        }
    }
}

// ---- the eager way and the heap --------------------------------------------------------------------------------

/// Return equivalent paths: the given one, and some on which packets must wait in the heap for their time.
fn through_the_heap(spec: &Value) -> Vec<(&'static str, Value)> {
    let zero = json!({"kind": "jitter", "distribution": {"kind": "uniform", "max": 0}, "reorder": true});
    let mut ways = Vec::new();
    let mut add = |name, edit: &dyn Fn(&mut Value)| {
        let mut copy = spec.clone();
        edit(&mut copy);
        ways.push((name, copy));
    };
    let push = |v: &mut Value, direction: &str| v[direction].as_array_mut().unwrap().push(zero.clone());
    add("data wait at the receiver", &|v| push(v, "uplink"));
    add("acknowledgements wait at the sender", &|v| push(v, "downlink"));
    add("both wait", &|v| {
        push(v, "uplink");
        push(v, "downlink");
    });
    // A held link whose limit is never reached is an infinite queue.
    if spec["uplink"].to_string().contains("infinite") {
        add("a held link", &|v| {
            for element in v["uplink"].as_array_mut().unwrap() {
                if element["kind"] == "link" {
                    element["queue"] = json!({"kind": "drophead", "limit": {"packets": 1_000_000}});
                }
            }
        });
    }
    // Recording and a wrapped scheme must have no effect either.
    add("sampled", &|v| v["record"]["series"] = json!(1_000_003));
    ways
}

/// Return the parts that must agree: all but the elements' own list and the series. The logs are in order of entry;
/// entries at the same time are sorted here.
fn essence(outcome: &Outcome) -> [String; 4] {
    let log = |log: &Option<PacketLog>| {
        let log = log.as_ref().unwrap();
        assert!(log.entered.is_sorted());
        let mut rows: Vec<_> =
            (0..log.entered.len()).map(|i| (log.entered[i], log.flow[i], log.left[i], log.size[i])).collect();
        rows.sort_unstable();
        format!("{rows:?}")
    };
    [format!("{:?}", outcome.flows), log(&outcome.data), log(&outcome.acks), format!("{}", outcome.hash)]
}

fn check_ways(name: &str, path: &Value) {
    let plain = run(&spec(path.clone()));
    assert!(plain.flows.iter().all(|f| f.received.packets > 20), "{name}: {:?}", plain.flows);
    let expected = essence(&plain);
    for (way, other) in through_the_heap(path) {
        let found = essence(&run(&spec(other)));
        assert!(found[0] == expected[0], "{name}, {way}: flows differ:\n{}\n{}", expected[0], found[0]);
        assert!(found[1] == expected[1], "{name}, {way}: data logs differ");
        assert!(found[2] == expected[2], "{name}, {way}: acknowledgement logs differ");
        assert!(found[3] == expected[3], "{name}, {way}: trajectories differ");
    }
}

fn path(queue: &Value, loss: f64, flows: &Value) -> Value {
    json!({
        "seed": 11,
        "duration": 6_000_000_000u64,
        "uplink": [
            {"kind": "loss", "probability": loss},
            {"kind": "link", "schedule": {"kind": "rate", "rate": 11_987_654}, "queue": queue},
            {"kind": "delay", "delay": 20_000_000},
        ],
        "downlink": [{"kind": "loss", "probability": loss}, {"kind": "delay", "delay": 20_000_000}],
        "flows": flows,
        "record": {"packets": true},
    })
}

/// One flow, each scheme, both profiles, each acknowledgement policy.
#[test]
fn eager_and_heap_agree_for_one_flow() {
    for scheme in SCHEMES {
        for queue in [json!({"kind": "infinite"}), json!({"kind": "droptail", "limit": {"packets": 30}})] {
            for (profile, every) in [("tcp", 1), ("tcp", 2), ("udp", 1)] {
                for loss in [0.0, 0.005] {
                    let flow = json!([{"scheme": scheme, "profile": profile, "ack_every": every,
                        "extra_rtt": 7_000_000, "params": {}}]);
                    let name = format!("{scheme}, {queue}, {profile}, every {every}, loss {loss}");
                    // The window of a flow without losses would grow forever in an infinite queue.
                    if queue["kind"] == "infinite" && loss == 0.0 && ["reno", "cubic"].contains(&scheme) {
                        continue;
                    }
                    check_ways(&name, &path(&queue, loss, &flow));
                }
            }
        }
    }
}

/// Several flows that acknowledge each packet.
#[test]
fn eager_and_heap_agree_for_several_flows() {
    let flows = json!([
        {"scheme": "cubic"},
        {"scheme": "bbr", "start": 100_000_123, "extra_rtt": 30_000_000},
        {"scheme": "copa", "start": 200_000_789, "extra_rtt": 11_111_111, "profile": "udp",
         "host": {"wakeup": 700_000, "busy": 3_000_000}},
        {"scheme": "vegas", "start": 5_000_000, "extra_rtt": 3_000_000},
        {"scheme": "reno", "start": 300_000_000, "stop": 4_000_000_000u64},
    ]);
    for queue in [json!({"kind": "infinite"}), json!({"kind": "droptail", "limit": {"packets": 30}})] {
        for loss in [0.0, 0.005] {
            check_ways(&format!("{queue}, loss {loss}"), &path(&queue, loss, &flows));
        }
    }
}

/// Several flows with delayed acknowledgements: timers send some of them, between those that data triggers.
#[test]
fn eager_and_heap_agree_for_several_flows_with_delayed_acknowledgements() {
    let flows = json!([
        {"scheme": "cubic", "ack_every": 2},
        {"scheme": "bbr", "ack_every": 3, "start": 100_000_123, "extra_rtt": 30_000_000},
        {"scheme": "reno", "ack_every": 2, "ack_delay": 10_000_000, "start": 200_000_789,
         "source": {"kind": "rate", "rate": 800_000}},
    ]);
    for queue in [json!({"kind": "infinite"}), json!({"kind": "droptail", "limit": {"packets": 30}})] {
        for loss in [0.0, 0.005] {
            check_ways(&format!("{queue}, loss {loss}"), &path(&queue, loss, &flows));
        }
    }
}

/// A simulator is a plain value: it can move to another thread while it runs.
#[test]
fn simulators_move_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Simulator>();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A transfer that outlasts the run has an application to tell of acknowledgements, so that its flow is not plain,
    /// and a flow with a send buffer takes the general road: both must send the same packets as a flow without end.
    #[test]
    fn plain_flows_are_flows(
        seed in 0u64..1000,
        schemes in prop::collection::vec(prop::sample::select(&SCHEMES[..]), 1..4),
        rate in 1_000_000u64..200_000_000,
        packets in 4u64..400,
        queue in prop::sample::select(&["droptail", "droptail", "codel", "fq_codel"][..]),
        delay in 1_000_000u64..40_000_000,
        loss in prop::sample::select(&[0.0, 0.0005, 0.02][..]),
        steps in any::<bool>(),
        stop in prop::option::of(700_000_000u64..3_000_000_000),
        recorded in any::<bool>(),
    ) {
        let rate = if steps { json!([[0, rate], [1_000_000_000, rate / 3], [2_000_000_000, rate]]) } else { json!(rate) };
        let mut uplink = vec![
            json!({"kind": "link", "schedule": {"kind": "rate", "rate": rate},
                   "queue": {"kind": queue, "limit": {"packets": packets}}}),
            json!({"kind": "delay", "delay": delay}),
        ];
        if loss > 0.0 {
            uplink.insert(0, json!({"kind": "loss", "probability": loss}));
        }
        let record = if recorded { json!({"packets": true, "series": 10_000_000}) } else { json!({}) };
        let outcome = |source: Value, buffer: Option<u64>| {
            let flow = |(i, scheme)| json!({"scheme": scheme, "start": i * 300_000_000, "stop": stop, "source": source,
                                            "send_buffer": buffer});
            let mut outcome = run(&spec(json!({
                "seed": seed, "duration": 4_000_000_000u64, "uplink": uplink,
                "downlink": [{"kind": "delay", "delay": delay}],
                "flows": schemes.iter().enumerate().map(flow).collect::<Vec<_>>(), "record": record,
            })));
            // Only a transfer that is stopped counts as finished, and only a send buffer shows what is read.
            for flow in &mut outcome.flows {
                (flow.finished, flow.application) = (Timestamp::NEVER, None);
            }
            fingerprint(&outcome)
        };
        let plain = outcome(json!({"kind": "greedy"}), None);
        prop_assert_eq!(&plain, &outcome(json!({"kind": "bytes", "bytes": 1u64 << 40}), None));
        prop_assert_eq!(&plain, &outcome(json!({"kind": "greedy"}), Some(1 << 30)));
    }
}
