//! Schemes with a half at the receiver: what their feedback costs, that it survives loss and silence, and what Sprout must
//! do on the base link L1 (row 33 of the table of expectations). One packet takes 1 ms at the bottleneck: packets in its
//! queue are milliseconds of queueing delay. Thresholds without a published number are ours: calibrated once, then frozen.

use ccgym_run::{Outcome, RunSpec};
use serde_json::{json, Value};

use crate::common::{l1, run, secs, spec, Steady};

fn sprout(params: &Value) -> Value {
    json!({"scheme": "sprout", "params": params, "profile": "udp"})
}

/// The 95th percentile of packets that wait at the bottleneck, after the first 10 s.
fn p95_queue(outcome: &Outcome) -> u64 {
    let series = outcome.series.as_ref().expect("series are recorded");
    let from = series.t.iter().position(|t| *t >= secs(10.0)).expect("the run outlasts the warm-up");
    let mut queue = series.links[0].queue_packets[from..].to_vec();
    queue.sort_unstable();
    queue[queue.len() * 95 / 100]
}

/// L1 with a buffer of 10 BDP, everything logged, and something in the way of the feedback.
fn logged(flow: Value, seconds: f64, downlink: Value) -> RunSpec {
    let mut run = serde_json::to_value(l1(10.0, &json!([flow]), seconds)).unwrap();
    run["downlink"] = downlink;
    run["record"]["packets"] = json!(true);
    spec(run)
}

/// Row 33: with any buffer the 95th percentile of queueing is below 100 ms. The rate is as
/// high as the model's rates go, so that the forecast may be believed in full; looking less far ahead, caution shows.
#[test]
fn sprout_keeps_queueing_below_100_ms() {
    for (params, least) in [
        (json!({}), 11.5),
        (json!({"mode": "paper"}), 11.5),
        (json!({"forecast": "ewma"}), 11.5),
        (json!({"lookahead": 4}), 4.0),
    ] {
        let outcome = run(&l1(10.0, &json!([sprout(&params)]), 40.0));
        let (queue, steady) = (p95_queue(&outcome), Steady::of(&outcome));
        assert!(queue < 100, "{params}: {queue} ms");
        assert!(steady.total() > least && steady.drops == 0, "{params}: {steady:?}");
    }
}

/// Two flows share a link, and their queue.
#[test]
fn two_sprouts_share() {
    let outcome = run(&l1(10.0, &json!([sprout(&json!({})), sprout(&json!({}))]), 60.0));
    let steady = Steady::of(&outcome);
    assert!(steady.jain() > 0.9 && steady.total() > 8.0, "{steady:?}");
}

/// A packet each 20 and 21 ms in turn, in silence too, which is as long as what it says.
#[test]
fn feedback_takes_its_bytes_and_goes_on_in_silence() {
    let mut flow = sprout(&json!({}));
    flow["stop"] = json!(secs(2.0));
    let outcome = run(&logged(flow, 20.0, json!([{"kind": "delay", "delay": 20_000_000}])));
    let acks = outcome.acks.expect("acknowledgements are logged");
    let first = acks.entered[0];
    // The first packet is there after 21 ms; the first feedback leaves 20 ms later.
    assert_eq!(first, 41_000_000);
    let since = |i: u64| 20_500_000 * i + 500_000 * (i % 2);
    assert!(acks.entered.iter().zip(0..).all(|(at, i)| *at == first + since(i)), "{:?}", &acks.entered[..9]);
    // It ends 10 s after the last packet.
    let last = acks.entered.last().copied().unwrap_or_default();
    assert!((secs(11.98)..secs(12.3)).contains(&last), "{last}");
    let bytes = |from: f64, to: f64| {
        let within = acks.entered.iter().zip(&acks.size).filter(|(at, _)| (secs(from)..secs(to)).contains(at));
        within.map(|(_, size)| *size).collect::<Vec<_>>()
    };
    // Header and message; of each arrival a difference of numbers (1) and a time (1 to 4); the range.
    let (busy, silent) = (bytes(1.0, 1.9), bytes(3.0, 11.0));
    assert!(silent.iter().all(|size| *size == 52 + 32 + 4), "{silent:?}");
    assert!(busy.iter().all(|size| (52 + 32 + 4 + 8..52 + 32 + 4 + 40 * 5).contains(size)), "{busy:?}");
}

/// A third of the feedback is lost, and what is left comes late or twice: no arrival is taken for a loss.
#[test]
fn lost_feedback_is_no_lost_packet() {
    for downlink in [
        json!([{"kind": "loss", "probability": 0.33}, {"kind": "delay", "delay": 20_000_000}]),
        json!([{"kind": "jitter", "distribution": {"kind": "uniform", "max": 60_000_000}, "reorder": true},
               {"kind": "delay", "delay": 20_000_000}]),
        json!([{"kind": "duplicate", "probability": 0.5}, {"kind": "delay", "delay": 20_000_000}]),
    ] {
        let outcome = run(&logged(sprout(&json!({})), 20.0, downlink.clone()));
        let sender = &outcome.flows[0].sender;
        let data = outcome.data.expect("packets are logged");
        assert_eq!((sender.lost_packets, sender.rtos), (0, 0), "{downlink}: {sender:?}");
        let arrived = data.left.iter().filter(|at| **at < secs(19.8)).count() as u64;
        assert!(sender.acked_packets > arrived - 40 && arrived > 8_000, "{downlink}: {arrived} arrived, {sender:?}");
    }
}

/// An application that sends little does not make the link look slow: it keeps its rate, four times that of probes.
#[test]
fn a_limited_application_keeps_its_rate() {
    let mut flow = sprout(&json!({}));
    flow["source"] = json!({"kind": "rate", "rate": 1_000_000});
    let outcome = run(&l1(10.0, &json!([flow]), 30.0));
    let series = outcome.series.as_ref().expect("series are recorded");
    let payload = series.flows[0].received_unique_bytes.last().copied().unwrap_or_default() as f64 * 8.0 / 30.0 / 1e6;
    assert!(payload > 0.95, "{payload} Mbit/s of 1 arrived");
}
