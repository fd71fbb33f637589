//! BBR v1 and Copa on the base link L1 (12 Mbit/s, 40 ms, packets of 1500 bytes): rows 12 and 17 to 19 of the
//! expectations. Rows are cited above each test. The RTT without a queue is 41 ms.

use ccgym_core::Timestamp;
use ccgym_sim::Simulator;
use serde_json::{json, Value};

use crate::common::{assert_close, flow, l1, observable, simulator, MSS};

/// Round trip of L1 without a queue, milliseconds.
const RTT_MS: f64 = 41.0;

/// Make one flow on L1 with a buffer of four BDPs.
fn one(scheme: &str, params: &Value, seconds: f64) -> Simulator {
    simulator(&l1(4.0, &json!([flow(scheme, params)]), seconds))
}

/// Run from `from` to `to` seconds and call `look` each millisecond; returns the bytes acknowledged.
fn watch(sim: &mut Simulator, from: u64, to: u64, mut look: impl FnMut(u64, &Simulator)) -> f64 {
    sim.run_until(Timestamp::from_millis(from * 1000)).unwrap();
    let before = sim.sender(0).stats().acked_bytes;
    for ms in from * 1000 + 1..=to * 1000 {
        sim.run_until(Timestamp::from_millis(ms)).unwrap();
        look(ms, sim);
    }
    (sim.sender(0).stats().acked_bytes - before) as f64
}

/// Row 12: the window swings with a period of 5 RTT = 200 ms ± 30 %.
#[test]
fn copa_paper_cycles() {
    for competitive in ["auto", "off"] {
        let mut sim = one("copa", &json!({"mode": "paper", "competitive": competitive}), 60.0);
        let (mut high, mut periods) = (false, 0u32);
        watch(&mut sim, 10, 60, |_, sim| {
            let window = observable(sim, "cwnd_packets");
            periods += u32::from(!high && window > 45.0);
            high = window > 45.0 || (high && window >= 43.0);
        });
        let period_ms = 50_000.0 / f64::from(periods);
        assert_close(&format!("competitive {competitive}: ms per cycle"), period_ms, 200.0, 0.3);
    }
}

/// Row 17: start-up doubles per round and leaves three flat rounds after filling the pipe.
#[test]
fn bbr_starts_up() {
    let mut sim = one("bbr", &json!({}), 30.0);
    // The estimate at the end of each round of start-up.
    let mut by_round: Vec<(f64, f64)> = Vec::new();
    watch(&mut sim, 0, 1, |_, sim| {
        if observable(sim, "full_pipe") == 0.0 {
            let now = (observable(sim, "rounds"), observable(sim, "btl_bw_mbps"));
            match by_round.last_mut() {
                Some(last) if last.0 == now.0 => *last = now,
                _ => by_round.push(now),
            }
        }
    });
    let estimates: Vec<f64> = by_round.iter().map(|r| r.1).collect();
    let filled = estimates.iter().position(|&e| e > 0.98 * 12.0).unwrap();
    // Round 0 has no sample, and the last before the pipe is full may be cut short.
    let per_round = (estimates[filled - 1] / estimates[1]).powf(1.0 / (filled as f64 - 2.0));
    assert!((1.7..2.3).contains(&per_round), "doubles per round: {estimates:?}");
    let flat = estimates.len() - 1 - filled;
    assert!((2..=3).contains(&flat), "leaves when the third flat round ends: {estimates:?}");
}

/// Row 18: a cycle of eight phases takes about 8·RTprop ± 15 %, with gains 1.25, 0.75 and 1.
#[test]
fn bbr_gain_cycle() {
    let mut sim = one("bbr", &json!({}), 10.0);
    let (mut starts, mut last) = (Vec::new(), 9.0);
    watch(&mut sim, 1, 9, |ms, sim| {
        let phase = observable(sim, "cycle_phase");
        let expected = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][phase as usize];
        assert_eq!(observable(sim, "pacing_gain"), expected);
        if phase == 0.0 && last == 7.0 {
            starts.push(ms as f64);
        }
        last = phase;
    });
    let period = (starts[starts.len() - 1] - starts[0]) / (starts.len() - 1) as f64;
    assert_close("ms per cycle", period, 8.0 * RTT_MS, 0.15);
}

/// Row 19: every 10 s without a lower round trip, at least 200 ms at four packets or fewer; it costs about 2 %.
#[test]
fn bbr_probes_the_round_trip() {
    let mut sim = one("bbr", &json!({}), 45.0);
    let (mut entries, mut held, mut was) = (Vec::new(), Vec::new(), false);
    let acked = watch(&mut sim, 5, 45, |ms, sim| {
        let probing = sim.sender(0).cca().state() == "ProbeRTT";
        if probing && !was {
            entries.push(ms);
            held.push(0);
        }
        if probing && sim.sender(0).in_flight() as f64 <= 4.0 * MSS {
            *held.last_mut().unwrap() += 1;
        }
        was = probing;
    });
    assert!((3..=4).contains(&entries.len()), "{entries:?}");
    assert!(entries.windows(2).all(|w| (10_000..10_500).contains(&(w[1] - w[0]))), "{entries:?}");
    assert!(held.iter().all(|ms| (200..300).contains(ms)), "{held:?}");
    // Against a flow that does not probe.
    let never = json!({"probe_rtt_duration": 0.0});
    let mut sim = one("bbr", &never, 45.0);
    let without = watch(&mut sim, 5, 45, |_, _| {});
    let cost = 1.0 - acked / without;
    assert!((0.01..0.035).contains(&cost), "{cost}");
}
