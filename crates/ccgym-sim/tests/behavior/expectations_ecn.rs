//! What queues that mark and drop early, and the schemes made for them, must do together: DCTCP over a step (Alizadeh et
//! al., SIGCOMM 2010), Prague and Cubic over DualPI2 (RFC 9332), Cubic over PIE (RFC 8033), Reno over RED (1993).
//! Thresholds called ours were calibrated once and are frozen.

use crate::common::{assert_close, flow, flows, l1, run, secs, spec, Steady, MSS, WARM_UP_S};
use ccgym_run::{Outcome, RunSpec};
use serde_json::{json, Value};

/// A link with a queue in front of half of `rtt_ms`, recorded.
fn path(rate_mbps: u64, rtt_ms: f64, queue: &Value, flows: &Value, seconds: f64) -> RunSpec {
    let delay = secs(rtt_ms / 2e3);
    spec(json!({
        "seed": 1,
        "duration": secs(seconds),
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": rate_mbps * 1_000_000}, "queue": queue},
            {"kind": "delay", "delay": delay},
        ],
        "downlink": [{"kind": "delay", "delay": delay}],
        "flows": flows,
        "record": {"series": 1_000_000, "packets": true, "acks": false},
    }))
}

/// Milliseconds in queue and transmission of the packets of a flow, sorted, after the warm-up.
fn waits(outcome: &Outcome, flow: u32, rtt_ms: f64) -> Vec<f64> {
    let log = outcome.data.as_ref().expect("packets are recorded");
    let propagation = secs(rtt_ms / 2e3);
    let mut waits: Vec<f64> = (0..log.entered.len())
        .filter(|&i| log.flow[i] == flow && log.left[i] != u64::MAX && log.entered[i] >= secs(WARM_UP_S))
        .map(|i| (log.left[i] - log.entered[i] - propagation) as f64 / 1e6)
        .collect();
    waits.sort_by(f64::total_cmp);
    waits
}

fn quantile(sorted: &[f64], p: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * p) as usize]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Alizadeh et al. §3.3: the windows of N flows swing by D = √((C·RTT + K)/2N) packets each, the queue between K + N − N·D
/// and K + N. 100 Mbit/s and 12 ms hold 100 packets.
#[test]
fn dctcp_holds_the_queue_at_the_threshold() {
    for (n, k) in [(1, 20), (1, 40), (2, 20), (4, 40)] {
        let queue = json!({"kind": "step", "limit": {"packets": 500}, "threshold": {"packets": k}});
        let outcome = run(&path(100, 12.0, &queue, &flows(n, "dctcp", &json!({})), 40.0));
        let steady = Steady::of(&outcome);
        let (n, k) = (n as f64, k as f64);
        let swing = n * ((100.0 + k) / (2.0 * n)).sqrt();
        // No loss, and the link is full: K is above a seventh of what the path holds.
        assert_eq!(steady.drops, 0, "N = {n}, K = {k}");
        assert_close(&format!("N = {n}, K = {k}: throughput"), steady.total(), 100.0, 0.01);
        assert!(steady.jain() > 0.95, "N = {n}, K = {k}: {:?}", steady.rates);
        let (top, bottom) = (k + n, k + n - swing);
        assert!((bottom - n..=top + n).contains(&steady.mean_queue), "N = {n}, K = {k}: mean {}", steady.mean_queue);
        assert!(steady.max_queue as f64 <= top + 2.0 * n, "N = {n}, K = {k}: max. {}", steady.max_queue);
    }
}

/// The swing of one flow's queue is that of §3.3, √((C·RTT + K)/2) packets, within a third (ours).
#[test]
fn dctcp_swings_as_published() {
    for k in [20, 40] {
        let queue = json!({"kind": "step", "limit": {"packets": 500}, "threshold": {"packets": k}});
        let outcome = run(&path(100, 12.0, &queue, &flows(1, "dctcp", &json!({})), 40.0));
        let waits = waits(&outcome, 0, 12.0);
        let packets = (quantile(&waits, 0.999) - quantile(&waits, 0.001)) * 100e3 / (MSS * 8.0);
        assert_close(&format!("K = {k}"), packets, ((100.0 + k as f64) / 2.0).sqrt(), 0.34);
    }
}

/// Below a seventh of what the path holds the threshold is too low to keep the link busy (§3.4), and with a delay in place
/// of a size it is the same threshold: 20 packets take 2.4 ms.
#[test]
fn dctcp_needs_its_threshold() {
    let one = |queue: Value| Steady::of(&run(&path(100, 12.0, &queue, &flows(1, "dctcp", &json!({})), 40.0)));
    let low = one(json!({"kind": "step", "threshold": {"packets": 1}}));
    assert!((90.0..99.0).contains(&low.total()), "{}", low.total());
    let by_size = one(json!({"kind": "step", "threshold": {"packets": 20}}));
    let by_delay = one(json!({"kind": "step", "delay": 2_400_000}));
    assert_close("throughput", by_delay.total(), by_size.total(), 0.01);
    assert_close("queue", by_delay.mean_queue, by_size.mean_queue, 0.15);
}

/// The purpose of RFC 9332: next to each other over DualPI2, a Prague flow and a Cubic flow get like shares (a factor of two, ours),
/// Prague waits 2 ms at most, 99 times of 100, and Cubic about 15 ms.
#[test]
fn prague_and_cubic_share_over_dualpi2() {
    for (rate_mbps, rtt_ms) in [(40, 10.0), (40, 20.0), (100, 20.0), (40, 40.0)] {
        let pair = json!([flow("prague", &json!({})), flow("cubic", &json!({}))]);
        let outcome = run(&path(rate_mbps, rtt_ms, &json!({"kind": "dualpi2"}), &pair, 60.0));
        let steady = Steady::of(&outcome);
        let (prague, cubic) = (waits(&outcome, 0, rtt_ms), waits(&outcome, 1, rtt_ms));
        let what = format!("{rate_mbps} Mbit/s, {rtt_ms} ms");
        let ratio = steady.rates[0] / steady.rates[1];
        assert!((0.5..=2.0).contains(&ratio), "{what}: {:?}", steady.rates);
        assert!(steady.total() > 0.95 * rate_mbps as f64, "{what}: {}", steady.total());
        assert!(quantile(&prague, 0.99) <= 2.0, "{what}: {} ms", quantile(&prague, 0.99));
        assert!((10.0..=20.0).contains(&mean(&cubic)), "{what}: {} ms", mean(&cubic));
    }
}

/// Alone over DualPI2 Prague fills the link with a queue of about the step.
#[test]
fn prague_alone_fills_dualpi2() {
    for rtt_ms in [5.0, 20.0, 40.0] {
        let outcome = run(&path(40, rtt_ms, &json!({"kind": "dualpi2"}), &flows(1, "prague", &json!({})), 40.0));
        let (steady, waits) = (Steady::of(&outcome), waits(&outcome, 0, rtt_ms));
        assert!(steady.total() > 0.95 * 40.0, "{rtt_ms} ms: {}", steady.total());
        assert!(quantile(&waits, 0.99) <= 2.0, "{rtt_ms} ms: {} ms", quantile(&waits, 0.99));
        assert_eq!(steady.drops, 0, "{rtt_ms} ms");
    }
}

/// Flows of 24 and 4 ms share within a factor of two, since both grow and respond as with 25 ms; without this the short one
/// gets more than three times as much (the draft's RTT independence; both thresholds ours).
#[test]
fn prague_depends_little_on_the_round_trip() {
    let ratio = |reference_rtt: f64| {
        let params = json!({"reference_rtt": reference_rtt});
        let unequal = json!([
            {"scheme": "prague", "params": params, "extra_rtt": 20_000_000},
            {"scheme": "prague", "params": params, "start": 1_000_000},
        ]);
        let rates = Steady::of(&run(&path(40, 4.0, &json!({"kind": "dualpi2"}), &unequal, 60.0))).rates;
        rates[1] / rates[0]
    };
    let (independent, plain) = (ratio(25.0), ratio(0.1));
    assert!((0.5..=2.0).contains(&independent), "{independent}");
    assert!(plain > 3.0, "{plain}");
}

/// Without marks both are Reno: over a drop-tail buffer the same throughput within 3 % (ours).
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

/// Where ECN is cleared, before the queue or behind it, they do to the packet what they do over the same drop-tail queue:
/// they take nothing from a mark that the path does not bring, and respond to losses.
#[test]
fn with_ecn_cleared_they_live_on_losses() {
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

/// Cubic waits about the target over PIE and over DualPI2 (15 ms ± 5 ms, ours), and hardly less with marks than with
/// drops; the link stays busy.
#[test]
fn pie_and_dualpi2_hold_their_target() {
    for queue in [json!({"kind": "pie"}), json!({"kind": "pie", "ecn": true}), json!({"kind": "dualpi2"})] {
        for ecn in [false, true] {
            let outcome = run(&path(40, 40.0, &queue, &flows(4, "cubic", &json!({"ecn": ecn})), 60.0));
            let (steady, waits) = (Steady::of(&outcome), waits(&outcome, 0, 40.0));
            let marked = outcome.links[0].elements[0].1.marked;
            assert!((10.0..=20.0).contains(&mean(&waits)), "{queue} {ecn}: {} ms", mean(&waits));
            assert!(steady.total() > 0.95 * 40.0, "{queue} {ecn}: {}", steady.total());
            let marks = ecn && queue != json!({"kind": "pie"});
            assert_eq!((marked > 0, steady.drops == 0), (marks, marks), "{queue} {ecn}");
        }
    }
}

/// The average queue over RED lies between the thresholds, of 20 and 60 packets here (1993, §V). 32 Reno flows with some 5
/// packets each need 5 % of loss, so 0.025 before spacing: a quarter of the way.
#[test]
fn red_holds_the_average_between_its_thresholds() {
    let queue = json!({"kind": "red", "min": 20, "max": 60});
    let steady = Steady::of(&run(&path(40, 40.0, &queue, &flows(32, "reno", &json!({})), 60.0)));
    assert!((20.0..60.0).contains(&steady.mean_queue), "{}", steady.mean_queue);
    assert!(steady.total() > 0.95 * 40.0, "{}", steady.total());
}
