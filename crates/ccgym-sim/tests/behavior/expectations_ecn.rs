//! Schemes that react to marks: DCTCP over a step (Alizadeh et al., SIGCOMM 2010), and all of them where ECN is
//! cleared. Thresholds called ours were calibrated once and are frozen.

use crate::common::{assert_close, flow, l1, run, secs, spec, waits, Net, Steady, MSS, WARM_UP_S};
use ccgym_run::Outcome;
use serde_json::{json, Value};

/// Run one DCTCP flow over 100 Mbit/s and 12 ms, a BDP of 100 packets.
fn dctcp(queue: Value) -> Outcome {
    let record = json!({"series": 1_000_000, "packets": true});
    run(&Net { queue, record, ..Net::new(100.0, 12.0, 0) }.spec(&json!([{"scheme": "dctcp"}]), 40.0))
}

fn quantile(sorted: &[f64], p: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * p) as usize]
}

/// The swing of one flow's queue is that of §3.3, √((C·RTT + K)/2) packets, within a third (ours).
#[test]
fn dctcp_swings_as_published() {
    for k in [20, 40] {
        let queue = json!({"kind": "step", "limit": {"packets": 500}, "threshold": {"packets": k}});
        let waits = waits(&dctcp(queue), 0, 12.0, WARM_UP_S);
        let packets = (quantile(&waits, 0.999) - quantile(&waits, 0.001)) * 100e3 / (MSS * 8.0);
        assert_close(&format!("K = {k}"), packets, ((100.0 + k as f64) / 2.0).sqrt(), 0.34);
    }
}

/// Below a seventh of the BDP the threshold is too low to keep the link busy (§3.4), and a delay has the same effect as
/// a size: 20 packets take 2.4 ms.
#[test]
fn dctcp_needs_its_threshold() {
    let one = |queue: Value| Steady::of(&dctcp(queue));
    let low = one(json!({"kind": "step", "threshold": {"packets": 1}}));
    assert!((90.0..99.0).contains(&low.total()), "{}", low.total());
    let by_size = one(json!({"kind": "step", "threshold": {"packets": 20}}));
    let by_delay = one(json!({"kind": "step", "delay": 2_400_000}));
    assert_close("throughput", by_delay.total(), by_size.total(), 0.01);
    assert_close("queue", by_delay.mean_queue, by_size.mean_queue, 0.15);
}

/// Without marks both act as Reno: over a drop-tail buffer the same throughput within 3 % (ours).
#[test]
fn without_marks_they_are_reno() {
    for buffer in [0.5, 1.0] {
        let total = |scheme: &str| Steady::of(&run(&l1(buffer, &json!([flow(scheme, &json!({}))]), 130.0))).total();
        let reno = total("reno");
        for scheme in ["dctcp", "prague"] {
            let found = total(scheme);
            assert_close(&format!("{scheme}, {buffer} BDP"), found, reno, 0.03);
        }
    }
}

/// If ECN is cleared, before the queue or behind it, each packet has the same times as over the same drop-tail queue:
/// the schemes assume no marks that the path does not bring, and respond to losses.
#[test]
fn with_ecn_cleared_they_respond_to_losses() {
    let link = |queue: Value| json!({"kind": "link", "schedule": {"kind": "rate", "rate": 12_000_000}, "queue": queue});
    let delay = json!({"kind": "delay", "delay": secs(0.02)});
    let limit = json!({"packets": 40});
    let droptail = link(json!({"kind": "droptail", "limit": limit}));
    let step = link(json!({"kind": "step", "limit": limit, "threshold": {"packets": 10}}));
    let bleach = json!({"kind": "bleach"});
    let marking = json!({"ecn": true});
    let of_the_rfc = json!({"mode": "rfc", "ecn": true});
    let none = json!({});
    for (scheme, params) in
        [("dctcp", &none), ("prague", &none), ("reno", &marking), ("cubic", &marking), ("scream", &of_the_rfc)]
    {
        let outcome = |uplink: Value| {
            run(&spec(json!({
                "seed": 1, "duration": secs(30.0), "uplink": uplink, "downlink": [delay], "flows": [flow(scheme, params)],
            })))
        };
        let honest = outcome(json!([droptail, delay]));
        let before = outcome(json!([bleach, step, delay]));
        let behind = outcome(json!([step, bleach, delay]));
        assert!(honest.flows[0].sender.lost_packets > 0, "{scheme}: no loss to respond to");
        assert_eq!(before.links[0].elements[1].1.marked, 0, "{scheme}");
        assert!(behind.links[0].elements[0].1.marked > 1000, "{scheme}: {:?}", behind.links[0]);
        for (place, found) in [("before", &before), ("behind", &behind)] {
            assert_eq!(found.hash, honest.hash, "{scheme}, cleared {place} the queue");
        }
    }
}
