//! What BBR v1 and Copa must do on the base link L1 (12 Mbit/s, 40 ms, packets of 1500 bytes): rows 12–22 of the
//! table of expectations of published and derived results. Rows are cited above each test.
//!
//! One packet takes 1 ms at the bottleneck, so a round trip without a queue is 41 ms and holds 41 packets.

use ccgym_core::Timestamp;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_sim::Simulator;
use serde_json::{json, Value};

use crate::common::assert_close;

/// Packets in flight that fill L1 without a queue.
const PIPE: f64 = 41.0;
/// Round trip of L1 without a queue, milliseconds.
const RTT_MS: f64 = 41.0;
const MSS: f64 = 1500.0;

/// `flows` on a link of `mbps` and 40 ms with a buffer of `packets` and random loss.
fn simulator(mbps: f64, packets: u64, loss: f64, flows: Value, seconds: u64) -> Simulator {
    let delay = json!({"kind": "delay", "delay": 20_000_000});
    let spec: RunSpec = serde_json::from_value(json!({
        "seed": 1,
        "duration": seconds * 1_000_000_000,
        "uplink": [
            {"kind": "loss", "probability": loss},
            {
                "kind": "link",
                "schedule": {"kind": "rate", "rate": (mbps * 1e6) as u64},
                "queue": {"kind": "droptail", "limit": {"packets": packets}},
            },
            delay,
        ],
        "downlink": [delay],
        "flows": flows,
    }))
    .unwrap();
    let schemes = |f: &FlowSpec| ccgym_schemes::create(&f.scheme, &f.params).map_err(|e| e.to_string());
    Simulator::new(&spec, &|_| None, &schemes).unwrap()
}

fn flow(scheme: &str, params: &Value) -> Value {
    json!({"scheme": scheme, "params": params})
}

fn flow_from(start_ms: u64, scheme: &str, params: &Value) -> Value {
    json!({"scheme": scheme, "params": params, "start": start_ms * 1_000_000})
}

fn observable(sim: &Simulator, flow: usize, name: &str) -> f64 {
    let all = sim.sender(flow).cca().observables();
    all.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("{name} in {all:?}")).1
}

/// What a run shows after its first seconds, sampled each millisecond.
#[derive(Debug)]
struct Steady {
    /// Acknowledged, Mbit/s per flow.
    rates: Vec<f64>,
    /// Packets in flight of all flows.
    mean_flight: f64,
    max_flight: f64,
}

impl Steady {
    fn total(&self) -> f64 {
        self.rates.iter().sum()
    }
    fn share(&self, flow: usize) -> f64 {
        self.rates[flow] / self.total()
    }
    fn jain(&self) -> f64 {
        self.total().powi(2) / (self.rates.len() as f64 * self.rates.iter().map(|r| r * r).sum::<f64>())
    }
}

/// Run from `from` to `to` seconds and show each millisecond to `look`.
fn watch(sim: &mut Simulator, from: u64, to: u64, mut look: impl FnMut(u64, &Simulator)) -> Steady {
    let flows = sim.flow_count();
    sim.run_until(Timestamp::from_millis(from * 1000)).unwrap();
    let acked = |sim: &Simulator| (0..flows).map(|f| sim.sender(f).stats().acked_bytes).collect::<Vec<_>>();
    let before = acked(sim);
    let (mut sum, mut max) = (0.0, 0f64);
    for ms in from * 1000 + 1..=to * 1000 {
        sim.run_until(Timestamp::from_millis(ms)).unwrap();
        let flight = (0..flows).map(|f| sim.sender(f).in_flight()).sum::<u64>() as f64 / MSS;
        sum += flight;
        max = max.max(flight);
        look(ms, sim);
    }
    let seconds = (to - from) as f64;
    Steady {
        rates: acked(sim).iter().zip(before).map(|(a, b)| (a - b) as f64 * 8.0 / 1e6 / seconds).collect(),
        mean_flight: sum / (seconds * 1e3),
        max_flight: max,
    }
}

/// Row 12: mean queue 1.25/δ = 2.5 packets ± 1, peak 5, period 5 RTT = 200 ms ± 30 %. The mode switch must not take
/// a lone flow for a crowd, although whole packets make a tenth of the swing hard to see.
#[test]
fn copa_paper_alone() {
    for competitive in ["auto", "off"] {
        let params = json!({"mode": "paper", "competitive": competitive});
        let mut sim = simulator(12.0, 160, 0.0, json!([flow("copa", &params)]), 60);
        let (mut high, mut periods, mut competing) = (false, 0u32, 0u32);
        let steady = watch(&mut sim, 10, 60, |_, sim| {
            let window = observable(sim, 0, "cwnd_packets");
            if high && window < 43.0 {
                high = false;
            } else if !high && window > 45.0 {
                high = true;
                periods += 1;
            }
            competing += observable(sim, 0, "competitive") as u32;
        });
        assert_close(&format!("competitive {competitive}: packets in queue"), steady.mean_flight - PIPE, 2.5, 0.4);
        assert!(steady.max_flight - PIPE <= 6.0, "{competitive}: {steady:?}");
        assert!(steady.total() > 11.9, "{competitive}: {steady:?}");
        let period_ms = 50_000.0 / f64::from(periods);
        assert_close(&format!("competitive {competitive}: ms per cycle"), period_ms, 200.0, 0.3);
        assert!(competing < 500, "{competitive}: competing for {competing} of 50000 ms");
    }
}

/// On a large pipe slow start and velocity overshoot by hundreds of packets: the mode switch must not take the flow's
/// own queue for another's.
#[test]
fn copa_paper_alone_on_a_large_pipe() {
    let mut sim = simulator(300.0, 4000, 0.0, json!([flow("copa", &json!({"mode": "paper"}))]), 40);
    let mut competing = 0u32;
    let steady = watch(&mut sim, 10, 40, |_, sim| competing += observable(sim, 0, "competitive") as u32);
    assert!(steady.total() > 0.98 * 300.0, "{steady:?}");
    assert!(competing < 300, "competing for {competing} of 30000 ms");
}

/// Row 13: mean queue 1.25/δ = 12.5 packets ± 30 %. The peak of 25 that goes with it holds for steps of one; the
/// step size doubles within a cycle in these rules and takes it to about 40.
#[test]
fn copa_pantheon_alone() {
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("copa", &json!({}))]), 60);
    let steady = watch(&mut sim, 10, 60, |_, _| {});
    assert_close("packets in queue", steady.mean_flight - PIPE, 12.5, 0.3);
    assert!(steady.max_flight - PIPE < 45.0, "{steady:?}");
    assert!(steady.total() > 0.9 * 12.0, "{steady:?}");
}

/// Row 15: n flows keep n times the queue of one and share equally, started together or not.
#[test]
fn copa_paper_among_its_own() {
    let p = json!({"mode": "paper"});
    let three = json!([flow("copa", &p), flow_from(3300, "copa", &p), flow_from(7700, "copa", &p)]);
    let four = json!([flow("copa", &p), flow("copa", &p), flow("copa", &p), flow("copa", &p)]);
    for (mbps, flows) in [(12.0, json!([flow("copa", &p), flow("copa", &p)])), (12.0, three), (48.0, four)] {
        let mut sim = simulator(mbps, 640, 0.0, flows, 60);
        let steady = watch(&mut sim, 20, 60, |_, _| {});
        let expected = 2.5 * steady.rates.len() as f64;
        // 40 ms of packets, and the one in transmission.
        let queue = steady.mean_flight - mbps / 12.0 * 40.0 - 1.0;
        assert!(steady.jain() > 0.95, "{steady:?}");
        assert!((queue - expected).abs() < 1f64.max(0.3 * expected), "{queue} {expected} {steady:?}");
    }
}

/// Row 15 for Pantheon's rules: equal rates. (Alone among their own they may take each other for Cubic and fill the
/// buffer: their detector looks for less than a tenth of the swing within four round trips.)
#[test]
fn copa_pantheon_among_its_own() {
    let params = json!({});
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("copa", &params), flow_from(3300, "copa", &params)]), 60);
    let steady = watch(&mut sim, 20, 60, |_, _| {});
    assert!(steady.jain() > 0.95, "{steady:?}");

    let params = json!({"competitive": "off"});
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("copa", &params), flow_from(3300, "copa", &params)]), 60);
    let steady = watch(&mut sim, 20, 60, |_, _| {});
    assert!(steady.jain() > 0.95, "{steady:?}");
    assert!((17.5..32.5).contains(&(steady.mean_flight - PIPE)), "2 · 12.5 packets: {steady:?}");
}

/// Row 16: next to a flow that fills the buffer, 30–70 % in competitive mode; without it, next to nothing.
#[test]
fn copa_against_loss_based() {
    for rival in ["cubic", "reno"] {
        for buffer in [40, 80] {
            for mode in ["paper", "pantheon"] {
                let flows = json!([flow("copa", &json!({"mode": mode})), flow(rival, &json!({}))]);
                let mut sim = simulator(12.0, buffer, 0.0, flows, 90);
                let mut competing = 0u32;
                let steady = watch(&mut sim, 20, 90, |_, sim| competing += observable(sim, 0, "competitive") as u32);
                assert!((0.3..0.7).contains(&steady.share(0)), "{mode} {rival} {buffer}: {steady:?}");
                assert!(competing > 50_000, "{mode} {rival} {buffer}: competing for {competing} of 70000 ms");
            }
            let flows = json!([flow("copa", &json!({"mode": "paper", "competitive": "off"})), flow(rival, &json!({}))]);
            let mut sim = simulator(12.0, buffer, 0.0, flows, 90);
            let steady = watch(&mut sim, 20, 90, |_, _| {});
            assert!(steady.share(0) < 0.2, "off {rival} {buffer}: {steady:?}");
        }
    }
}

/// Row 17: start-up doubles per round and leaves three flat rounds after filling the pipe; then goodput at least
/// 0.95 of capacity and the bandwidth estimate within 2 % of it.
#[test]
fn bbr_alone() {
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("bbr", &json!({}))]), 30);
    // The estimate at the end of each round of start-up.
    let mut by_round: Vec<(f64, f64)> = Vec::new();
    let _ = watch(&mut sim, 0, 1, |_, sim| {
        if observable(sim, 0, "full_pipe") == 0.0 {
            let now = (observable(sim, 0, "rounds"), observable(sim, 0, "btl_bw_mbps"));
            match by_round.last_mut() {
                Some(last) if last.0 == now.0 => *last = now,
                _ => by_round.push(now),
            }
        }
    });
    let estimates: Vec<f64> = by_round.iter().map(|r| r.1).collect();
    let filled = estimates.iter().position(|&e| e > 0.98 * 12.0).unwrap();
    // Round 0 measures nothing, and the last before the pipe is full may be cut short.
    let per_round = (estimates[filled - 1] / estimates[1]).powf(1.0 / (filled as f64 - 2.0));
    assert!((1.7..2.3).contains(&per_round), "doubles per round: {estimates:?}");
    let flat = estimates.len() - 1 - filled;
    assert!((2..=3).contains(&flat), "leaves when the third flat round ends: {estimates:?}");

    let steady = watch(&mut sim, 10, 30, |ms, sim| {
        let estimate = observable(sim, 0, "btl_bw_mbps");
        assert!((estimate / 12.0 - 1.0).abs() < 0.02, "{ms} ms: {estimate}");
    });
    assert!(steady.total() > 0.95 * 12.0, "{steady:?}");
}

/// Row 18: a cycle of eight phases takes about 8·RTprop ± 15 %, with gains 1.25, 0.75 and 1.
#[test]
fn bbr_gain_cycle() {
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("bbr", &json!({}))]), 10);
    let (mut starts, mut last) = (Vec::new(), 9.0);
    let _ = watch(&mut sim, 1, 9, |ms, sim| {
        let phase = observable(sim, 0, "cycle_phase");
        let expected = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][phase as usize];
        assert_eq!(observable(sim, 0, "pacing_gain"), expected);
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
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("bbr", &json!({}))]), 45);
    let (mut entries, mut held, mut was) = (Vec::new(), Vec::new(), false);
    let steady = watch(&mut sim, 5, 45, |ms, sim| {
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
    let mut sim = simulator(12.0, 160, 0.0, json!([flow("bbr", &never)]), 45);
    let without = watch(&mut sim, 5, 45, |_, _| {});
    let cost = 1.0 - steady.total() / without.total();
    assert!((0.01..0.035).contains(&cost), "{cost}");
}

/// Row 20: at most two products and three quanta in flight outside start-up; several flows on a deep buffer keep a
/// queue of 1 to 1.5 products (Hock et al., ICNP 2017).
#[test]
fn bbr_in_flight() {
    let mut sim = simulator(12.0, 400, 0.0, json!([flow("bbr", &json!({}))]), 30);
    let steady = watch(&mut sim, 2, 30, |_, _| {});
    // Two products, 3 · 2 packets, one of aggregation, rounding to even, two while probing.
    assert!(steady.max_flight <= 2.0 * PIPE + 6.0 + 1.0 + 1.0 + 2.0, "{steady:?}");

    let p = json!({});
    let mut sim = simulator(12.0, 400, 0.0, json!([flow("bbr", &p), flow_from(2000, "bbr", &p)]), 60);
    let steady = watch(&mut sim, 20, 60, |_, _| {});
    assert!((1.0..1.6).contains(&(steady.mean_flight / PIPE - 1.0)), "{steady:?}");
    assert!(steady.jain() > 0.95, "{steady:?}");
}

/// Row 21: on a buffer of a quarter of a product BBR takes more than 70 % next to Reno.
#[test]
fn bbr_against_reno_on_a_shallow_buffer() {
    let mut sim = simulator(12.0, 10, 0.0, json!([flow("bbr", &json!({})), flow("reno", &json!({}))]), 60);
    let steady = watch(&mut sim, 10, 60, |_, _| {});
    assert!(steady.share(0) > 0.7, "{steady:?}");
}

/// Row 22: at 5 % random loss BBR keeps at least 80 % of the capacity and Cubic less than 20 %; past the loss that
/// its probes can outbid (1 − 1/1.25) BBR gives way.
#[test]
fn bbr_under_random_loss() {
    for (scheme, loss, low, high) in
        [("bbr", 0.05, 0.8, 1.0), ("cubic", 0.05, 0.0, 0.2), ("bbr", 0.1, 0.8, 1.0), ("bbr", 0.25, 0.0, 0.3)]
    {
        let mut sim = simulator(12.0, 160, loss, json!([flow(scheme, &json!({}))]), 60);
        let steady = watch(&mut sim, 10, 60, |_, _| {});
        let used = steady.total() / 12.0;
        assert!((low..high).contains(&used), "{scheme} at {loss}: {steady:?}");
    }
}
