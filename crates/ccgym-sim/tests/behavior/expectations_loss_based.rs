//! Reno and Cubic with random losses and with deterministic ones: rows 3 to 8 of the expectations; row 40, the index of
//! fairness. Rows and their tolerances are cited above each test.

use crate::common::test_path::TestPath;
use crate::common::{assert_close, flow, flows, jain, l1, run, run_watched, secs, uncapped, Steady, MSS};
use ccgym_core::{TimeSpan, Timestamp};
use serde_json::{json, Value};

/// Return the window of AIMD(1, ½) under loss p, in packets (Mathis et al. 1997).
fn mathis(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

/// Return the mean window, from the acknowledged rate at 40 ms, over seeds.
fn random_loss_window(scheme: &str, params: &Value, p: f64, seconds: f64) -> f64 {
    let seeds = 1..=4;
    let sum: f64 = seeds
        .clone()
        .map(|seed| Steady::of(&run(&uncapped(p, seed, &json!([flow(scheme, params)]), seconds))).total())
        .sum();
    sum / seeds.count() as f64 * 1e6 * 0.040 / 8.0 / MSS
}

/// Row 3: the window after a loss is exactly half of the packets in flight.
#[test]
fn row_03_reno_halves_exactly() {
    let reno = |n| flows(n, "reno", &json!({}));
    for spec in [l1(1.0, &reno(1), 100.0), l1(0.25, &reno(3), 60.0), uncapped(1e-3, 7, &reno(1), 60.0)] {
        let (_, records) = run_watched(&spec);
        let mut cuts = 0;
        for seen in records {
            let seen = seen.lock().unwrap();
            cuts += seen.cuts.len();
            for &(flight, _, after) in &seen.cuts {
                assert_eq!(after, (flight / 2).max(2 * MSS as u64), "{flight} bytes in flight");
            }
        }
        assert!(cuts > 30, "{cuts} cuts");
    }
}

/// Return the mean window under periodic loss: the first `settle` loss cycles are ignored, `measure` count.
fn window_under_periodic_loss(rtt_ms: u64, period: u64, expected: f64, settle: f64, measure: f64) -> f64 {
    let cycle = period as f64 / expected * rtt_ms as f64 / 1e3;
    let mut wire = TestPath::wire("cubic", &json!({}), TimeSpan::from_millis(rtt_ms), 10);
    wire.mean_window(settle * cycle, (settle + measure) * cycle, |_, number| number % period == period - 1)
}

/// Row 4: RFC 9438 §5, tables 1 and 2 (round trips of 100 and 10 ms), deterministic loss of every 1/p-th packet,
/// mean window ± 25 %.
#[test]
fn row_04_cubic_rfc_tables() {
    for (rtt_ms, windows) in [(100, [12.0, 38.0, 187.0, 1054.0, 5926.0]), (10, [12.0, 38.0, 120.0, 379.0, 1200.0])] {
        for (i, expected) in windows.into_iter().enumerate() {
            let period = 10u64.pow(i as u32 + 2);
            let cycles = if i == 4 { 3.0 } else { 10.0 };
            let found = window_under_periodic_loss(rtt_ms, period, expected, cycles, cycles);
            assert_close(&format!("{rtt_ms} ms, p = 1/{period}"), found, expected, 0.25);
        }
    }
}

/// Row 5: above the Reno-friendly region the mean window is 1.054·RTT^¾/p^¾ ± 15 %. The result is some 10 % lower: the
/// formula includes neither the RTTs spent in recovery nor fast convergence.
#[test]
fn row_05_cubic_response_function() {
    for (rtt_ms, period) in [(40, 100_000), (100, 10_000), (100, 100_000), (200, 10_000), (400, 10_000)] {
        let expected = 1.054 * (rtt_ms as f64 / 1e3 * period as f64).powf(0.75);
        assert!(expected > mathis(1.0 / period as f64), "the setting is Reno-friendly");
        // The fixed point is approached slowly: the curve is flat there.
        let settle = if period == 10_000 { 40.0 } else { 10.0 };
        let found = window_under_periodic_loss(rtt_ms, period, expected, settle, 20.0);
        assert_close(&format!("{rtt_ms} ms, p = 1/{period}"), found, expected, 0.15);
    }
}

/// Row 6: K = cbrt(0.3·W_max/0.4), 3.11/3.91/4.22/5.31 s for W_max of 40/80/100/200 packets, ± 1 %.
#[test]
fn row_06_cubic_k() {
    for (w_max, k) in [(40, 3.11), (80, 3.91), (100, 4.22), (200, 5.31)] {
        let mut wire = TestPath::wire("cubic", &json!({}), TimeSpan::from_millis(40), w_max);
        // The very first packet is lost, so the window is the initial one then. Two RTTs later the episode is over and
        // the epoch has begun.
        wire.run_until(Timestamp::from_millis(130), |_, number| number == 0);
        assert_eq!(wire.observable("w_max_packets"), f64::from(w_max));
        assert_close(&format!("W_max = {w_max}"), wire.observable("k_s"), k, 0.01);
    }
}

/// Row 7: in the Reno-friendly region Cubic's mean window is Reno's, ± 15 %: with deterministic loss, which is the
/// model behind α = 3(1−β)/(1+β), Mathis' window …
#[test]
fn row_07_cubic_is_reno_friendly_under_deterministic_loss() {
    for period in [1_000, 10_000] {
        let expected = mathis(1.0 / period as f64);
        let found = window_under_periodic_loss(40, period, expected, 10.0, 20.0);
        assert_close(&format!("p = 1/{period}"), found, expected, 0.15);
    }
}

/// … and with random loss Reno's window under the same loss. Compared with Mathis' formula mode `rfc` is 18 % high at p
/// = 1e-4, of which 6 % are Reno's own and the rest is RFC 9438 §4.3: once W_est has passed cwnd_prior, which only
/// random loss allows, α becomes 1. Linux keeps α and stays within 15 % of the formula too.
#[test]
fn row_07_cubic_is_reno_friendly_under_random_loss() {
    for (p, seconds) in [(1e-3, 300.0), (1e-4, 600.0)] {
        let reno = random_loss_window("reno", &json!({}), p, seconds);
        let rfc = random_loss_window("cubic", &json!({}), p, seconds);
        let linux = random_loss_window("cubic", &json!({"mode": "linux"}), p, seconds);
        assert_close(&format!("rfc, p = {p}"), rfc, reno, 0.15);
        assert_close(&format!("linux, p = {p}"), linux, reno, 0.15);
        assert_close(&format!("linux, p = {p}"), linux, mathis(p), 0.15);
    }
}

/// Row 8: if losses affect all flows at once, Cubic's throughput is proportional to the inverse of the RTT (RFC 9438
/// §3.3), Reno's to about its square, ± 30 %. Synchronised: each flow loses one packet every 6 s. Then Cubic's fixed
/// point is 0.4·6³/0.3 = 288 packets at any RTT, above the Reno-friendly region; flows start there, since the flat
/// curve would take hours to approach it from slow start.
#[test]
fn row_08_rtt_fairness_under_synchronised_loss() {
    let throughput = |scheme: &str, rtt_ms: u64| {
        let mut next = 0;
        let lost = move |now: Timestamp, _: u64| {
            let due = now.0 >= next;
            if due {
                next += secs(6.0);
            }
            due
        };
        let mut wire = TestPath::wire(scheme, &json!({}), TimeSpan::from_millis(rtt_ms), 288);
        wire.mean_window(60.0, 180.0, lost) / rtt_ms as f64
    };
    for (short, long) in [(100, 150), (100, 200), (150, 300)] {
        let ratio = long as f64 / short as f64;
        let cubic = throughput("cubic", short) / throughput("cubic", long);
        assert_close(&format!("cubic, {short} and {long} ms"), cubic, ratio, 0.30);
        let reno = throughput("reno", short) / throughput("reno", long);
        assert_close(&format!("reno, {short} and {long} ms"), reno, ratio * ratio, 0.30);
    }
}

/// Row 40: the index itself.
#[test]
fn row_40_jain() {
    for (x, expected) in [([1.0, 0.0], 0.5), ([3.0, 1.0], 0.8), ([2.0, 1.0], 0.9)] {
        assert!((jain(&x) - expected).abs() < 1e-12);
    }
}
