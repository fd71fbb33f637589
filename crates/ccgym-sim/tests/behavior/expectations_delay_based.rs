//! What LEDBAT and Verus must do on the base link L1 (12 Mbit/s, 40 ms, packets of 1500 bytes): rows 24–26 and 34 of the
//! table of expectations of published and derived results. Rows are cited above each test.
//!
//! One packet takes 1 ms at the bottleneck: packets in its queue are milliseconds of queueing delay. Where the table names
//! no number the thresholds are ours: calibrated once, then frozen.

use ccgym_core::Timestamp;
use ccgym_run::RunSpec;
use serde_json::{json, Value};

use crate::common::{assert_close, l1, run, simulator, spec, Steady};

/// What is known before steady state: LEDBAT grows by two packets per round trip, or one, to about 140.
const START_S: f64 = 20.0;

fn udp(scheme: &str, params: &Value) -> Value {
    json!({"scheme": scheme, "params": params, "profile": "udp"})
}

/// L1 with a buffer of so many milliseconds; the start-up is cut off.
fn steady(buffer_ms: f64, flows: &Value, seconds: f64) -> Steady {
    Steady::since(&run(&l1(buffer_ms / 40.0, flows, START_S + seconds)), START_S)
}

/// Row 24: with a buffer of 200 ms the queue settles at the target, 100 ± 10 ms.
#[test]
fn ledbat_settles_at_its_target() {
    for mode in ["libutp", "rfc"] {
        for target in [100.0, 50.0] {
            let flows = json!([udp("ledbat", &json!({"mode": mode, "target": target}))]);
            let steady = steady(200.0, &flows, 20.0);
            assert_close(&format!("{mode}, target {target} ms: ms in queue"), steady.mean_queue, target, 10.0 / target);
            assert!(steady.total() > 11.9 && steady.drops == 0, "{mode}, {target} ms: {steady:?}");
        }
    }
}

/// Row 25: with a buffer of 50 ms the target is out of reach: the flow fills the buffer and loses.
#[test]
fn ledbat_overflows_a_buffer_below_its_target() {
    for mode in ["libutp", "rfc"] {
        let steady = steady(50.0, &json!([udp("ledbat", &json!({"mode": mode}))]), 40.0);
        // The packet on the link is not in the queue.
        assert!(steady.max_queue >= 49 && steady.drops > 0, "{mode}: {steady:?}");
        assert!(steady.total() > 11.0, "{mode}: {steady:?}");
    }
}

/// Row 26: next to Reno with a buffer of 200 ms less than 20 %.
#[test]
fn ledbat_gives_way_to_reno() {
    for mode in ["libutp", "rfc"] {
        let flows = json!([udp("ledbat", &json!({"mode": mode})), {"scheme": "reno"}]);
        let steady = steady(200.0, &flows, 60.0);
        let share = steady.rates[0] / steady.total();
        assert!(share < 0.2, "{mode}: share {share:.3}, {steady:?}");
        assert!(steady.total() > 11.5, "{mode}: {steady:?}");
    }
}

/// L1 whose rate falls to a tenth at 20 s and comes back at 40 s.
fn step_change(flows: &Value) -> RunSpec {
    let mut value = serde_json::to_value(l1(20.0, flows, 60.0)).unwrap();
    value["uplink"][0]["schedule"]["rate"] =
        json!([[0, 12_000_000], [20_000_000_000u64, 1_200_000], [40_000_000_000u64, 12_000_000]]);
    spec(value)
}

/// Largest over smallest delay as Verus sees them, and what was acknowledged, each 100 ms.
fn watch_verus(spec: &RunSpec) -> Vec<(f64, f64)> {
    let mut sim = simulator(spec);
    let mut acked = 0;
    (1..=spec.duration.as_millis() / 100)
        .map(|tenth| {
            sim.run_until(Timestamp::from_millis(tenth * 100)).unwrap();
            let sender = sim.sender(0);
            let all = sender.cca().observables();
            let value = |name: &str| all.iter().find(|(key, _)| *key == name).unwrap().1;
            let before = std::mem::replace(&mut acked, sender.stats().acked_bytes);
            (value("d_max_ms") / value("d_min_ms"), (acked - before) as f64 * 8.0 / 1e5)
        })
        .collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Row 34, steady link with a buffer of 800 ms: dMax/dMin stays about the ratio of 6.
#[test]
fn verus_holds_its_ratio() {
    let samples = watch_verus(&l1(20.0, &json!([udp("verus", &json!({}))]), 60.0));
    let steady = &samples[100..];
    let ratio = mean(steady.iter().map(|s| s.0));
    let largest = steady.iter().map(|s| s.0).fold(0.0, f64::max);
    assert!((4.5..6.0).contains(&ratio) && largest < 7.0, "mean {ratio:.2}, largest {largest:.2}");
    assert!(mean(steady.iter().map(|s| s.1)) > 11.9);
}

/// Row 34, the rate falls to a tenth at 20 s and comes back at 40 s: within 5 s the delay is within the ratio again, and the
/// link is used.
#[test]
fn verus_recovers_from_a_step() {
    let samples = watch_verus(&step_change(&json!([udp("verus", &json!({}))])));
    let after = |from: usize, to: usize| &samples[from * 10..to * 10];
    let back = after(20, 40).iter().skip_while(|s| s.0 < 10.0).position(|s| s.0 < 6.0);
    let rate = |from, to| mean(after(from, to).iter().map(|s| s.1));
    let mut ratios: Vec<_> = after(25, 40).iter().map(|s| s.0).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    assert!(back.is_some_and(|tenths| tenths < 50), "back after {back:?} tenths of a second");
    assert!(median < 8.0, "median {median:.2}");
    assert!(rate(25, 40) > 0.8 * 1.2, "{:.2} of 1.2 Mbit/s", rate(25, 40));
    assert!(rate(45, 60) > 0.9 * 12.0, "{:.2} of 12 Mbit/s", rate(45, 60));
}
