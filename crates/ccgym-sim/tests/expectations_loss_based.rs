//! What Reno, Cubic and Vegas must do: rows 1–8, 10, 11 and 40 of the table of expectations
//! (`reference/classic-schemes.md` §6). Rows and their tolerances are cited above each test.

mod common;

use ccgym_core::{TimeSpan, Timestamp};
use common::{
    assert_close, flow, flows, jain, l1, run, run_watched, secs, spec, uncapped, Steady, Wire, BDP, MSS,
};
use serde_json::{json, Value};

/// Mathis et al. 1997: the window of AIMD(1, ½) under loss p, in packets.
fn mathis(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

/// Mean window, from the acknowledged rate at 40 ms, over seeds.
fn random_loss_window(scheme: &str, params: &Value, p: f64, seconds: f64) -> f64 {
    let seeds = 1..=4;
    let sum: f64 = seeds
        .clone()
        .map(|seed| Steady::of(&run(&uncapped(p, seed, &json!([flow(scheme, params)]), seconds))).total())
        .sum();
    sum / seeds.count() as f64 * 1e6 * 0.040 / 8.0 / MSS
}

fn every(period: u64) -> impl FnMut(Timestamp, u64) -> bool {
    move |_, number| number % period == period - 1
}

/// Row 1: Reno under random loss, Mathis' window ± 20 %.
#[test]
fn row_01_reno_mathis() {
    for (p, seconds) in [(1e-2, 200.0), (1e-3, 300.0), (1e-4, 600.0)] {
        let found = random_loss_window("reno", &json!({}), p, seconds);
        println_row("1", p, found, mathis(p));
        assert_close(&format!("p = {p}"), found, mathis(p), 0.20);
    }
}

fn println_row(_row: &str, _p: f64, _found: f64, _expected: f64) {
    #[allow(clippy::print_stdout)]
    {
        println!("row {_row}: {_p} found {_found:.4} expected {_expected:.4}");
    }
}

/// Row 2: on L1, 1 BDP of buffer keeps the link full; without a buffer three quarters are used. ± 5 %.
#[test]
fn row_02_reno_utilisation() {
    for (buffer, expected) in [(1.0, 1.0), (0.0, 0.75)] {
        let steady = Steady::of(&run(&l1(buffer, &json!([flow("reno", &json!({}))]), 130.0)));
        println_row("2", buffer, steady.total() / 12.0, expected);
        assert_close(&format!("{buffer} BDP"), steady.total() / 12.0, expected, 0.05);
    }
}

/// Row 3: the window after a loss is half of what was in flight, exactly.
#[test]
fn row_03_reno_halves_exactly() {
    for spec in [
        l1(1.0, &json!([flow("reno", &json!({}))]), 100.0),
        l1(0.25, &flows(3, "reno", &json!({})), 60.0),
        uncapped(1e-3, 7, &json!([flow("reno", &json!({}))]), 60.0),
    ] {
        let (_, records) = run_watched(&spec);
        for seen in records {
            let seen = seen.lock().unwrap();
            println_row("X3", 0.0, seen.cuts.len() as f64, 0.0);
            assert!(seen.cuts.len() >= 1, "{} cuts", seen.cuts.len());
            for &(flight, _, after) in &seen.cuts {
                assert_eq!(after, (flight / 2).max(2 * MSS as u64), "{flight} bytes in flight");
            }
        }
    }
}

/// Row 4: RFC 9438 §5, tables 1 and 2 (round trips of 100 and 10 ms), deterministic loss of every 1/p-th packet,
/// mean window ± 25 %.
#[test]
fn row_04_cubic_rfc_tables() {
    for (rtt_ms, windows) in [(100, [12.0, 38.0, 187.0, 1054.0, 5926.0]), (10, [12.0, 38.0, 120.0, 379.0, 1200.0])] {
        for (i, expected) in windows.into_iter().enumerate() {
            let period = 10u64.pow(i as u32 + 2);
            let rtt = rtt_ms as f64 / 1e3;
            // Some 8 losses to settle, 8 to measure.
            let cycle = period as f64 / expected * rtt;
            let mut wire = Wire::new("cubic", &json!({}), TimeSpan::from_millis(rtt_ms), 10);
            let found = wire.mean_window(8.0 * cycle, 16.0 * cycle, every(period));
            println_row("4", period as f64, found, expected);
            assert_close(&format!("{rtt_ms} ms, p = 1/{period}"), found, expected, 0.25);
        }
    }
}

/// Row 5: above the Reno-friendly region the mean window is 1.054·RTT^¾/p^¾ ± 15 %.
#[test]
fn row_05_cubic_response_function() {
    for (rtt_ms, period) in [(40, 100_000), (100, 10_000), (100, 100_000), (200, 10_000), (400, 10_000)] {
        let rtt = rtt_ms as f64 / 1e3;
        let expected = 1.054 * (rtt * period as f64).powf(0.75);
        assert!(expected > mathis(1.0 / period as f64), "the setting is Reno-friendly");
        let cycle = period as f64 / expected * rtt;
        let mut wire = Wire::new("cubic", &json!({}), TimeSpan::from_millis(rtt_ms), 10);
        let found = wire.mean_window(8.0 * cycle, 18.0 * cycle, every(period));
        println_row("5", period as f64, found, expected);
        assert_close(&format!("{rtt_ms} ms, p = 1/{period}"), found, expected, 0.15);
    }
}

/// Row 6: K = cbrt(0.3·W_max/0.4), 3.11/3.91/4.22/5.31 s for W_max of 40/80/100/200 packets, ± 1 %.
#[test]
fn row_06_cubic_k() {
    for (w_max, k) in [(40, 3.11), (80, 3.91), (100, 4.22), (200, 5.31)] {
        let mut wire = Wire::new("cubic", &json!({}), TimeSpan::from_millis(40), w_max);
        // The very first packet is lost, so the window is the initial one then. Two round trips later the episode is
        // over and the epoch has begun.
        wire.run_until(Timestamp::from_millis(130), |_, number| number == 0);
        assert_eq!(wire.observable("w_max_packets"), f64::from(w_max));
        println_row("6", f64::from(w_max), wire.observable("k_s"), k);
        assert_close(&format!("W_max = {w_max}"), wire.observable("k_s"), k, 0.01);
    }
}

/// Row 7: in the Reno-friendly region Cubic's mean window is Reno's, ± 15 %: with deterministic loss, which is the
/// model behind α = 3(1−β)/(1+β).
#[test]
fn row_07_cubic_friendly_deterministic() {
    for period in [1_000, 10_000] {
        let expected = mathis(1.0 / period as f64);
        let cycle = period as f64 / expected * 0.040;
        let mut wire = Wire::new("cubic", &json!({}), TimeSpan::from_millis(40), 10);
        let found = wire.mean_window(8.0 * cycle, 24.0 * cycle, every(period));
        println_row("7 det", period as f64, found, expected);
        assert_close(&format!("p = 1/{period}"), found, expected, 0.15);
    }
}

/// Row 7 with random loss.
#[test]
fn row_07_cubic_friendly_random() {
    for (p, seconds) in [(1e-3, 300.0), (1e-4, 600.0)] {
        let found = random_loss_window("cubic", &json!({}), p, seconds);
        println_row("7 random", p, found, mathis(p));
        let found = random_loss_window("cubic", &json!({"mode": "linux"}), p, seconds);
        println_row("7 random linux", p, found, mathis(p));
    }
}

/// Row 8: when losses come to all flows at once, throughput goes with the inverse of the round trip (RFC 9438
/// §3.3), Reno's with about its square, ± 30 %. Synchronised: one packet of each flow every 10 s. Round trips long
/// enough that Cubic is above its Reno-friendly region.
#[test]
fn row_08_rtt_fairness_under_synchronised_loss() {
    let throughput = |scheme: &str, rtt_ms: u64| {
        let mut next = secs(1.0);
        let lost = move |now: Timestamp, _: u64| {
            let due = now.0 >= next;
            if due {
                next += secs(10.0);
            }
            due
        };
        let mut wire = Wire::new(scheme, &json!({}), TimeSpan::from_millis(rtt_ms), 10);
        wire.mean_window(200.0, 400.0, lost) / rtt_ms as f64
    };
    for (short, long) in [(100, 200), (100, 400)] {
        let ratio = long as f64 / short as f64;
        let cubic = throughput("cubic", short) / throughput("cubic", long);
        println_row("8 cubic", ratio, cubic, ratio);
        assert_close("cubic", cubic, ratio, 0.30);
        let reno = throughput("reno", short) / throughput("reno", long);
        println_row("8 reno", ratio, reno, ratio * ratio);
        assert_close("reno", reno, ratio * ratio, 0.30);
    }
}

/// Row 8: equal round trips share equally, Jain > 0.95.
#[test]
fn row_08_equal_rtt_is_fair() {
    for n in [2, 4] {
        let steady = Steady::of(&run(&l1(1.0, &flows(n, "cubic", &json!({})), 200.0)));
        println_row("8 jain", n as f64, steady.jain(), 0.95);
        assert!(steady.jain() > 0.95, "{n} flows: {steady:?}");
        assert!(steady.total() > 11.4, "{n} flows: {steady:?}");
    }
}

/// Row 10: Vegas on L1 with 1 BDP keeps 2–4 packets in the queue, four flows 8–16, ± 1, without loss.
#[test]
fn row_10_vegas_queue() {
    for (n, low, high) in [(1, 2.0, 4.0), (4, 8.0, 16.0)] {
        let steady = Steady::of(&run(&l1(1.0, &flows(n, "vegas", &json!({})), 120.0)));
        println_row("10", n as f64, steady.mean_queue, low);
        assert!((low - 1.0..=high + 1.0).contains(&steady.mean_queue), "{n} flows: {steady:?}");
        assert_eq!(steady.drops, 0, "{n} flows: {steady:?}");
        assert!(steady.total() > 11.9, "{n} flows: {steady:?}");
    }
}

/// Row 11: two Vegas flows share fairly, Jain ≥ 0.95.
#[test]
fn row_11_vegas_fairness() {
    let steady = Steady::of(&run(&l1(1.0, &flows(2, "vegas", &json!({})), 120.0)));
    println_row("11", 2.0, steady.jain(), 0.95);
    assert!(steady.jain() >= 0.95, "{steady:?}");
}

#[test]
fn explore() {
    for (rtt_ms, period) in [(100u64, 10_000u64), (200, 10_000), (400, 10_000)] {
        let rtt = rtt_ms as f64 / 1e3;
        let expected = 1.054 * (rtt * period as f64).powf(0.75);
        let cycle = period as f64 / expected * rtt;
        for fc in [true, false] {
            for from in [8.0, 40.0] {
                let mut wire = Wire::new("cubic", &json!({"fast_convergence": fc}), TimeSpan::from_millis(rtt_ms), 10);
                let found = wire.mean_window(from * cycle, (from + 20.0) * cycle, every(period));
                println_row(&format!("X5 {rtt_ms} fc {fc} from {from}"), period as f64, found / expected, expected);
            }
        }
    }
    for (scheme, rtt_ms, p) in [("cubic", 100, 10.0), ("cubic", 200, 10.0), ("cubic", 400, 10.0), ("reno", 100, 10.0), ("reno", 200, 10.0)] {
        let mut next = secs(1.0);
        let mut lost = move |now: Timestamp, _: u64| {
            let due = now.0 >= next;
            if due {
                next += secs(p);
            }
            due
        };
        let mut wire = Wire::new(scheme, &json!({}), TimeSpan::from_millis(rtt_ms), 10);
        for i in 0..20 {
            let w = wire.mean_window(i as f64 * 20.0, (i + 1) as f64 * 20.0, &mut lost);
            println_row(&format!("X8 {scheme} {rtt_ms} {i}"), wire.observable("cwnd_packets"), w, wire.sender.stats().rtos as f64);
        }
    }
    for (n, spread) in [(2u64, 0u64), (2, 7), (4, 0), (4, 7), (4, 10)] {
        let list: Value = (0..n)
            .map(|i| json!({"scheme": "vegas", "start": i * spread * 1_000_000, "initial_window": 2}))
            .collect();
        let steady = Steady::of(&run(&l1(1.0, &list, 120.0)));
        println_row(&format!("X10 {n} {spread} {steady:?}"), n as f64, steady.mean_queue, steady.jain());
    }
}

/// Row 40: the index itself.
#[test]
fn row_40_jain() {
    for (x, expected) in [([1.0, 0.0], 0.5), ([3.0, 1.0], 0.8), ([2.0, 1.0], 0.9)] {
        assert!((jain(&x) - expected).abs() < 1e-12);
    }
    // The setting of the other rows: 40 packets on the way at 12 Mbit/s and 40 ms.
    assert_eq!(BDP as f64, 12e6 * 0.040 / 8.0 / MSS);
    let _ = spec(json!({"duration": 1, "uplink": [], "downlink": [], "flows": [{"scheme": "reno"}]}));
}
