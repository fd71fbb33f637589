//! Schemes with a receiver of their own: the size of their feedback, and its robustness to loss and silence. Thresholds
//! without a published number are ours: calibrated once, then frozen.

use ccgym_run::RunSpec;
use serde_json::{json, Value};

use crate::common::{l1, run, secs, spec, Net};

fn sprout(params: &Value) -> Value {
    json!({"scheme": "sprout", "params": params, "profile": "udp"})
}

/// Make L1 with a buffer of 10 BDP, all logs, and elements in the way of the feedback.
fn logged(flow: Value, seconds: f64, downlink: Value) -> RunSpec {
    let mut run = serde_json::to_value(l1(10.0, &json!([flow]), seconds)).unwrap();
    run["downlink"] = downlink;
    run["record"]["packets"] = json!(true);
    spec(run)
}

/// Feedback leaves each 20 and 21 ms in turn, also in silence, with the size of its content.
#[test]
fn feedback_takes_its_bytes_and_goes_on_in_silence() {
    let mut flow = sprout(&json!({}));
    flow["stop"] = json!(secs(2.0));
    let outcome = run(&logged(flow, 20.0, json!([{"kind": "delay", "delay": 20_000_000}])));
    let acks = outcome.acks.expect("acknowledgements are logged");
    let first = acks.entered[0];
    // The first packet arrives after 21 ms; the first feedback leaves 20 ms later.
    assert_eq!(first, 41_000_000);
    let since = |i: u64| 20_500_000 * i + 500_000 * (i % 2);
    assert!(acks.entered.iter().zip(0..).all(|(at, i)| *at == first + since(i)), "{:?}", &acks.entered[..9]);
    // It ends 10 s after the last packet.
    let last = acks.entered.last().copied().unwrap_or_default();
    assert!((secs(11.98)..secs(12.3)).contains(&last), "{last}");
    let bytes = |from: f64, to: f64| {
        let within = acks.entered.iter().zip(acks.size.iter()).filter(|(at, _)| (secs(from)..secs(to)).contains(at));
        within.map(|(_, size)| *size).collect::<Vec<_>>()
    };
    // Header and message; for each arrival a difference of numbers (1) and a time (1 to 4); the range.
    let (busy, silent) = (bytes(1.0, 1.9), bytes(3.0, 11.0));
    assert!(silent.iter().all(|size| *size == 52 + 32 + 4), "{silent:?}");
    assert!(busy.iter().all(|size| (52 + 32 + 4 + 8..52 + 32 + 4 + 40 * 5).contains(size)), "{busy:?}");
}

/// A third of the feedback is lost, and the rest comes late or twice: no arrival counts as a loss.
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

/// TACK's goal: a report each 20 ms, and a few at once for losses, instead of one for every second packet.
#[test]
fn acknowledgements_of_fillp_are_thin() {
    for scheme in ["fillp", "fillp_sheep"] {
        let net = Net { record: json!({"packets": true}), ..Net::new(12.0, 40.0, 2000) };
        let outcome = run(&net.spec(&json!([{"scheme": scheme, "profile": "udp"}]), 24.0));
        let (acks, data) = (outcome.acks.expect("logged"), outcome.data.expect("logged"));
        let within = |times: &[u64]| times.iter().filter(|t| (secs(2.0)..secs(24.0)).contains(t)).count() as f64;
        let (acks, data) = (within(&acks.entered), within(&data.left));
        assert!((acks / 22.0 - 50.0).abs() < 2.0, "{scheme}: {acks} in 22 s");
        assert!(acks < 0.06 * data, "{scheme}: {acks} for {data} packets");
    }
}
