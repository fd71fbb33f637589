//! Several links: routes over them, parking lots, and flows in both directions.

use crate::common::{run, secs, spec, MSS};
use ccgym_run::{Outcome, RunSpec};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{json, Value};

/// Make a link of `mbps` with a buffer of `packets`, and `delay_ms` in each direction.
fn link(name: &str, mbps: f64, packets: u64, delay_ms: u64) -> Value {
    let link = json!({"kind": "link", "schedule": {"kind": "rate", "rate": (mbps * 1e6) as u64},
                      "queue": {"kind": "droptail", "limit": {"packets": packets}}});
    let delay = json!({"kind": "delay", "delay": delay_ms * 1_000_000});
    json!({"name": name, "uplink": [link, delay], "downlink": [delay]})
}

fn network(links: &[Value], flows: &Value, seconds: f64) -> RunSpec {
    spec(json!({"seed": 1, "duration": secs(seconds), "uplink": [], "downlink": [], "links": links, "flows": flows,
                "record": {"packets": true, "series": 10_000_000}}))
}

/// Return the payload rates, Mbit/s.
fn rates(outcome: &Outcome, seconds: f64) -> Vec<f64> {
    outcome.flows.iter().map(|f| f.received.unique_bytes as f64 * 8e-6 / seconds).collect()
}

/// Check that packets into a link leave, are dropped, or wait; those that leave reach the route's next link.
fn check_conservation(outcome: &Outcome) {
    for link in &outcome.links {
        for (kind, c) in &link.elements {
            assert!(c.forwarded + c.dropped <= c.arrived + c.duplicated, "{} {kind}: {c:?}", link.name);
        }
    }
    for (i, f) in outcome.flows.iter().enumerate() {
        assert!(f.received.packets <= f.sender.sent_packets, "flow {i}: {f:?}");
        assert!(f.sender.acked_packets <= f.received.packets, "flow {i}: {f:?}");
    }
}

/// Three links in a row: one flow crosses all, three flows cross one each.
#[test]
fn a_parking_lot() {
    let links = ["a", "b", "c"].map(|name| link(name, 10.0, 50, 5));
    let flows = json!([
        {"scheme": "reno"},
        {"scheme": "reno", "route": ["a"]}, {"scheme": "reno", "route": ["b"]}, {"scheme": "reno", "route": ["c"]},
    ]);
    let outcome = run(&network(&links, &flows, 60.0));
    check_conservation(&outcome);
    let rates = rates(&outcome, 60.0);
    let carried = 10.0 * 1448.0 / MSS;
    for cross in &rates[1..] {
        assert!(*cross > rates[0], "the long flow has three queues to pass: {rates:?}");
        assert!((0.9 * carried..=carried).contains(&(rates[0] + cross)), "a link is not full: {rates:?}");
    }
    assert!(rates[0] > 0.5, "the long flow is not starved: {rates:?}");
    // Its round trip is at least that of the three links.
    assert!(outcome.flows[0].min_rtt.as_secs_f64() >= 0.030 && outcome.flows[1].min_rtt.as_secs_f64() < 0.030);
    let names: Vec<_> = outcome.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["a", "a:reverse", "b", "b:reverse", "c", "c:reverse"]);
    let series = outcome.series.as_ref().unwrap();
    assert_eq!(series.links.iter().map(|link| link.direction).collect::<Vec<_>>(), [0, 2, 4]);
    assert!(series.links.iter().all(|link| link.drops.last() > Some(&0)), "each of the links is contended for");
}

/// The slowest link of its route is a flow's bottleneck.
#[test]
fn the_slowest_link_is_the_bottleneck() {
    let links = [link("fast", 20.0, 50, 5), link("slow", 5.0, 50, 5)];
    let flows = json!([{"scheme": "cubic"}, {"scheme": "cubic", "route": ["fast"]}]);
    let outcome = run(&network(&links, &flows, 20.0));
    assert_eq!([outcome.flows[0].bottleneck, outcome.flows[1].bottleneck], [2, 0]);
    let rates = rates(&outcome, 20.0);
    assert!(rates[0] < 5.0 && rates[1] > 13.0, "{rates:?}");
}

/// A reverse flow takes the way of the acknowledgements: they queue behind its data, and the load of one direction does
/// not limit the other.
#[test]
fn flows_in_both_directions() {
    let both = |flows: Value| {
        let mut way = link("", 10.0, 50, 10);
        way["downlink"] = way["uplink"].clone();
        run(&spec(json!({"seed": 1, "duration": secs(30.0), "uplink": way["uplink"], "downlink": way["downlink"],
                         "flows": flows, "record": {"packets": true}})))
    };
    let alone = both(json!([{"scheme": "cubic"}]));
    let with = both(json!([{"scheme": "cubic"}, {"scheme": "cubic", "reverse": true}]));
    check_conservation(&with);
    assert_eq!([with.flows[0].bottleneck, with.flows[1].bottleneck], [0, 1]);
    let [one, other] = rates(&with, 30.0)[..] else { panic!() };
    assert!(one > 8.0 && other > 8.0, "{one}, {other}");
    let mean_delay = |outcome: &Outcome| {
        let log = outcome.acks.as_ref().unwrap();
        let own = (0..log.flow.len()).filter(|&i| log.flow[i] == 0 && log.left[i] != u64::MAX);
        let waits: Vec<_> = own.map(|i| (log.left[i] - log.entered[i]) as f64 / 1e6).collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    assert!(mean_delay(&alone) < 11.0);
    assert!(mean_delay(&with) > 20.0, "acknowledgements wait behind the other flow's data: {}", mean_delay(&with));
}

/// Set few cases, always the same.
fn cases(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

/// Elements of a direction.
fn elements() -> impl Strategy<Value = Vec<Value>> {
    let queue = prop_oneof![
        Just(json!({"kind": "droptail", "limit": {"packets": 30}})),
        Just(json!({"kind": "codel", "limit": {"packets": 100}})),
        Just(json!({"kind": "fq_codel"})),
    ];
    let link = (2_000_000u64..20_000_000, queue)
        .prop_map(|(rate, queue)| json!({"kind": "link", "schedule": {"kind": "rate", "rate": rate}, "queue": queue}));
    let delay = (1_000_000u64..20_000_000).prop_map(|delay| json!({"kind": "delay", "delay": delay}));
    let trouble = prop_oneof![
        (0.0..0.02).prop_map(|p| json!({"kind": "loss", "probability": p})),
        (1u64..3_000_000, any::<bool>()).prop_map(|(max, reorder)| json!({"kind": "jitter", "reorder": reorder,
            "distribution": {"kind": "uniform", "max": max}})),
    ];
    (link, delay, prop::option::of(trouble))
        .prop_map(|(link, delay, trouble)| [vec![link, delay], trouble.into_iter().collect()].concat())
}

fn a_flow() -> impl Strategy<Value = Value> {
    let scheme = prop::sample::select(&["reno", "cubic", "bbr", "copa"][..]);
    (scheme, 0u64..500_000_000, 0u64..20_000_000, 1u32..3).prop_map(|(scheme, start, extra, every)| {
        json!({"scheme": scheme, "start": start, "stop": start + 3_000_000_000, "extra_rtt": extra, "ack_every": every})
    })
}

proptest! {
    #![proptest_config(cases(40))]

    /// A network in which every flow crosses one link, the same one, is the path with that link.
    #[test]
    fn a_network_with_one_link_in_use_is_that_path(
        up in elements(), down in elements(), flows in prop::collection::vec(a_flow(), 1..4), seed in 0u64..1000,
    ) {
        let record = json!({"packets": true, "series": 50_000_000});
        let plain = run(&spec(json!({"seed": seed, "duration": secs(5.0), "uplink": &up, "downlink": &down,
                                     "flows": &flows, "record": record})));
        let routed: Vec<Value> = flows.iter().cloned().map(|mut flow| {
            flow["route"] = json!(["used"]);
            flow
        }).collect();
        let used = json!({"name": "used", "uplink": &up, "downlink": &down});
        let unused = json!({"name": "unused", "uplink": &up, "downlink": &down});
        let network = run(&spec(json!({"seed": seed, "duration": secs(5.0), "uplink": [], "downlink": [],
                                       "links": [used, unused], "flows": routed, "record": record})));
        prop_assert_eq!(plain.hash, network.hash);
        for (mut a, b) in plain.links.into_iter().zip(network.links) {
            a.name.clone_from(&b.name);
            prop_assert_eq!(format!("{:?}", a), format!("{:?}", b));
        }
        prop_assert_eq!(format!("{:?}", plain.series), format!("{:?}", network.series));
    }

    /// Over any routes packets are conserved: those that the links passed on are received.
    #[test]
    fn packets_are_conserved_over_routes(
        links in prop::collection::vec((elements(), elements()), 2..4),
        flows in prop::collection::vec((a_flow(), any::<bool>(), prop::collection::vec(0usize..3, 1..4)), 1..5),
        seed in 0u64..1000,
    ) {
        let name = |i: usize| ["a", "b", "c"][i];
        let flows: Vec<Value> = flows.into_iter().map(|(mut flow, reverse, route)| {
            let mut names: Vec<_> = Vec::new();
            for i in route {
                let one = name(i.min(links.len() - 1));
                if !names.contains(&one) {
                    names.push(one);
                }
            }
            flow["route"] = json!(names);
            flow["reverse"] = json!(reverse);
            flow
        }).collect();
        let links: Vec<Value> = links.iter().enumerate()
            .map(|(i, (up, down))| json!({"name": name(i), "uplink": up, "downlink": down})).collect();
        // The run ends long after the last packet.
        let spec = RunSpec { seed, ..network(&links, &json!(flows), 60.0) };
        let outcome = run(&spec);
        let mut lost = 0;
        for link in &outcome.links {
            for (kind, c) in &link.elements {
                prop_assert_eq!(c.arrived, c.forwarded + c.dropped, "{} {}: {:?}", link.name, kind, c);
                lost += c.dropped;
            }
            for pair in link.elements.windows(2) {
                prop_assert_eq!(pair[0].1.forwarded, pair[1].1.arrived, "{}: {:?}", link.name, link.elements);
            }
        }
        let (data, acks) = (outcome.data.as_ref().unwrap(), outcome.acks.as_ref().unwrap());
        let gone = |left: &[u64]| left.iter().filter(|at| **at == u64::MAX).count() as u64;
        prop_assert_eq!(gone(&data.left) + gone(&acks.left), lost);
        let sent: u64 = outcome.flows.iter().map(|f| f.sender.sent_packets).sum();
        let received: u64 = outcome.flows.iter().map(|f| f.received.packets).sum();
        prop_assert_eq!((data.entered.len() as u64, sent - received), (sent, gone(&data.left)));
        check_conservation(&outcome);
        // A second run gives the same outcome.
        prop_assert_eq!(format!("{:?}", run(&spec)), format!("{outcome:?}"));
    }
}

/// A link with packets to send is never idle: two flows that ask for more than its capacity get all of it.
#[test]
fn a_shared_link_is_never_idle() {
    let links = [link("a", 100.0, 500, 1), link("b", 10.0, 50, 5), link("c", 100.0, 500, 1)];
    let flow = |route: Value| json!({"scheme": "fixed_window", "params": {"cwnd": 40}, "route": route});
    let flows = json!([flow(json!(["a", "b"])), flow(json!(["b", "c"])), flow(json!(["c", "b", "a"]))]);
    let outcome = run(&network(&links, &flows, 10.0));
    let passed = outcome.links[2].elements[0].1.forwarded_bytes as f64 * 8e-6 / 10.0;
    assert!((9.95..=10.2).contains(&passed), "{passed} Mbit/s: what waits at the end counts as passed on");
}
