//! Verus on the base link L1 (12 Mbit/s, 40 ms): row 34 of the expectations. Thresholds that it does not give are ours:
//! calibrated once, then frozen.

use ccgym_core::Timestamp;
use ccgym_run::RunSpec;
use serde_json::{json, Value};

use crate::common::{l1, observable, secs, simulator, Net};

fn verus() -> Value {
    json!([{"scheme": "verus", "profile": "udp"}])
}

/// Return max over min delay as Verus measures them, and the acknowledged rate, each 100 ms.
fn watch_verus(spec: &RunSpec) -> Vec<(f64, f64)> {
    let mut sim = simulator(spec);
    let mut acked = 0;
    (1..=spec.duration.as_millis() / 100)
        .map(|tenth| {
            sim.run_until(Timestamp::from_millis(tenth * 100)).unwrap();
            let before = std::mem::replace(&mut acked, sim.sender(0).stats().acked_bytes);
            (observable(&sim, "d_max_ms") / observable(&sim, "d_min_ms"), (acked - before) as f64 * 8.0 / 1e5)
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
    let samples = watch_verus(&l1(20.0, &verus(), 60.0));
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
    let rate = json!([[0, 12_000_000], [secs(20.0), 1_200_000], [secs(40.0), 12_000_000]]);
    let net = Net { rate, ..Net::new(12.0, 40.0, 800) };
    let samples = watch_verus(&net.spec(&verus(), 60.0));
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
