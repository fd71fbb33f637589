//! What the PCC schemes must do on the base link L1 (12 Mbit/s, 40 ms, packets of 1500 bytes): rows 27–32 of the table of
//! expectations of published and derived results, cited above each test. Bounds that no source gives were set once from
//! what these tests measured, with a margin, and stay.

use ccgym_core::Timestamp;
use ccgym_run::RunSpec;
use serde_json::{json, Value};

use crate::common::{secs, simulator, spec, Steady};

/// `flows` on a link of `mbps` with a buffer of `packets` and random loss.
fn path(mbps: f64, rtt_ms: u64, packets: u64, loss: f64, flows: &Value, seconds: f64) -> RunSpec {
    let delay = json!({"kind": "delay", "delay": rtt_ms * 500_000});
    spec(json!({
        "seed": 1,
        "duration": secs(seconds),
        "uplink": [
            {"kind": "loss", "probability": loss},
            {"kind": "link", "schedule": {"kind": "rate", "rate": (mbps * 1e6) as u64},
             "queue": {"kind": "droptail", "limit": {"packets": packets}}},
            delay,
        ],
        "downlink": [delay],
        "flows": flows,
        "record": {"series": 10_000_000},
    }))
}

/// `n` flows over UDP that start a millisecond after each other.
fn flows(n: u64, scheme: &str, params: &Value) -> Value {
    let start = |i: u64| i * 1_000_000;
    (0..n).map(|i| json!({"scheme": scheme, "params": params, "profile": "udp", "start": start(i)})).collect()
}

fn steady(run: &RunSpec) -> Steady {
    let mut sim = simulator(run);
    sim.run().unwrap();
    Steady::of(&sim.outcome())
}

/// All schemes with their modes.
fn all() -> [(&'static str, Value); 5] {
    let (pantheon, paper) = (json!({}), json!({"mode": "paper"}));
    [
        ("pcc", pantheon.clone()),
        ("pcc", paper.clone()),
        ("vivace", pantheon.clone()),
        ("vivace", paper),
        ("pcc_experimental", pantheon),
    ]
}

/// Row 27: above the capacity C the slope of the round trip is (x−C)/C and costs 900·x·slope, so the best rate is C with
/// a queue that is nearly empty. Utilization at least 0.85.
#[test]
fn vivace_alone() {
    for (mode, max_mean_queue) in [("pantheon", 2.0), ("paper", 4.0)] {
        for buffer in [40, 160] {
            let found = steady(&path(12.0, 40, buffer, 0.0, &flows(1, "vivace", &json!({"mode": mode})), 60.0));
            assert!(found.total() > 0.85 * 12.0, "{mode} {buffer}: {found:?}");
            assert!(found.mean_queue < max_mean_queue, "{mode} {buffer}: {found:?}");
            assert_eq!(found.drops, 0, "{mode} {buffer}: {found:?}");
        }
    }
}

/// Row 28: without the latency term Vivace outbids random loss until 0.9·x^−0.1 = 11.35·L, so up to L = 6.2 % at 12 and
/// 5.0 % at 100 Mbit/s, each within a percentage point. (At 12 Mbit/s an interval of 40 packets tells a loss of one
/// percent from another only in the mean, hence the margins of use. At 100 Mbit/s the start of the binary, which
/// forgives no loss, ends far below the link, and beyond 3 % the way up is too slow for the run. The published rules,
/// with one pair of trials per decision, drown in that noise: `schemes/src/vivace/paper.rs` checks them with and without it.)
#[test]
fn vivace_under_random_loss() {
    for (mbps, rtt, tolerated, not_tolerated) in [(12.0, 40, 0.052, 0.072), (100.0, 100, 0.025, 0.06)] {
        let used = |loss| {
            let buffer = (mbps * rtt as f64 / 12.0) as u64;
            let run = path(mbps, rtt, buffer, loss, &flows(1, "vivace", &json!({"utility": "loss"})), 80.0);
            steady(&run).total() / mbps
        };
        let (below, above) = (used(tolerated), used(not_tolerated));
        assert!(below > 0.5 && above < 0.5, "{mbps}: {below} at {tolerated}, {above} at {not_tolerated}");
    }
}

/// Row 29: n flows without the latency term keep no overflow while n < 12.6·x^0.1 (13 at 2, 16 at 12 Mbit/s each). The
/// program takes losses up to 3 % for next to nothing, so it overflows to that extent at any n. (Its utility is checked
/// against the bound itself in `schemes/src/vivace/utility.rs`.)
#[test]
fn vivace_without_latency_among_its_own() {
    let params = json!({"utility": "loss"});
    for (n, mbps, low, high) in [(2, 24.0, 0.0, 0.04), (4, 48.0, 0.0, 0.04), (40, 80.0, 0.06, 0.12)] {
        let found = steady(&path(mbps, 40, (mbps * 40.0 / 12.0) as u64, 0.0, &flows(n, "vivace", &params), 30.0));
        let dropped = found.drops as f64 * 0.012 / 20.0;
        let share = dropped / (dropped + found.total());
        assert!((low..high).contains(&share), "{n}: {share} {found:?}");
        assert!(found.total() > 0.98 * mbps, "{n}: {found:?}");
    }
}

/// Row 30: the utility per rate of Allegro is positive until about 7 % loss: nearly the full rate at 2 %, and a collapse
/// at 10 %.
#[test]
fn allegro_under_random_loss() {
    for mode in ["pantheon", "paper"] {
        let used =
            |loss| steady(&path(12.0, 40, 40, loss, &flows(1, "pcc", &json!({"mode": mode})), 60.0)).total() / 12.0;
        let (light, heavy) = (used(0.02), used(0.1));
        assert!(light > 0.9, "{mode}: {light} at 2 %");
        assert!(heavy < 0.4, "{mode}: {heavy} at 10 %");
    }
}

/// Row 31: two flows share with a Jain index above 0.9 over 60 s, whatever the order of their trials.
#[test]
fn flows_share() {
    for (scheme, params) in all() {
        for seed in 1..=3 {
            let run = RunSpec { seed, ..path(12.0, 40, 40, 0.0, &flows(2, scheme, &params), 60.0) };
            let found = steady(&run);
            assert!(found.jain() > 0.9, "{scheme} {params} {seed}: {found:?}");
            assert!(found.total() > 0.85 * 12.0, "{scheme} {params} {seed}: {found:?}");
        }
    }
}

/// Row 32: PCC-Expr backs off when round trips grow by 2 % within an interval, so its queue is shallow, however much room
/// there is.
#[test]
fn experimental_alone() {
    for buffer in [40, 160] {
        let found = steady(&path(12.0, 40, buffer, 0.0, &flows(1, "pcc_experimental", &json!({})), 60.0));
        assert!(found.total() > 0.9 * 12.0, "{buffer}: {found:?}");
        assert!(found.mean_queue < 12.0, "{buffer}: {found:?}");
    }
}

/// From 1 ms to 2 s of round trip, and from 1 to 100 Mbit/s: at least half of the link is used. (In 60 s at 2 s there are
/// thirty round trips. Vivace and PCC-Expr have minima above 1 Mbit/s, which they hold against any loss.)
#[test]
fn short_long_slow_and_fast_paths() {
    for (scheme, params) in all() {
        for (mbps, rtt, buffer) in
            [(12.0, 1, 40), (12.0, 200, 200), (12.0, 2000, 2000), (1.0, 40, 40), (100.0, 20, 167)]
        {
            let found = steady(&path(mbps, rtt, buffer, 0.0, &flows(1, scheme, &params), 60.0));
            assert!(found.total() > 0.5 * mbps, "{scheme} {params} {mbps} Mbit/s {rtt} ms: {found:?}");
        }
    }
}

/// At 1 Gbit/s and 20 ms at least 0.85 of the link is used from the third second on.
#[test]
fn a_gigabit() {
    for (scheme, params) in all() {
        let mut sim = simulator(&path(1000.0, 20, 1667, 0.0, &flows(1, scheme, &params), 4.0));
        let mut acked = |seconds: u64| {
            sim.run_until(Timestamp::from_millis(1000 * seconds)).unwrap();
            sim.sender(0).stats().acked_bytes as f64 * 8e-6
        };
        let before = acked(3);
        let rate = acked(4) - before;
        assert!(rate > 850.0, "{scheme} {params}: {rate}");
    }
}

/// Five seconds without any packet arriving: two seconds after them at least half of the link is used again.
#[test]
fn blackout() {
    for (scheme, params) in all() {
        let mut run = path(12.0, 40, 40, 0.0, &flows(1, scheme, &params), 20.0);
        let probability = json!([[0, 0.0], [secs(8.0), 1.0], [secs(13.0), 0.0]]);
        run.uplink[0] = serde_json::from_value(json!({"kind": "loss", "probability": probability})).unwrap();
        let mut sim = simulator(&run);
        let mut acked = |seconds: u64| {
            sim.run_until(Timestamp::from_millis(1000 * seconds)).unwrap();
            sim.sender(0).stats().acked_bytes as f64 * 8e-6
        };
        let [a, b, c, d] = [9, 13, 15, 20].map(&mut acked);
        let (during, after) = (b - a, d - c);
        assert!(during < 0.1, "{scheme} {params}: {during}");
        assert!(after > 0.5 * 5.0 * 12.0, "{scheme} {params}: {after}");
    }
}

/// An application that produces 3 Mbit/s or pauses: all of it arrives, and the rate stops growing while there is nothing
/// to send.
#[test]
fn limited_applications() {
    let steady_source = json!({"kind": "rate", "rate": 3_000_000});
    let pauses = json!({"kind": "on_off", "mean_on": secs(0.5), "mean_off": secs(2.0)});
    for (scheme, params) in all() {
        for (source, low, high) in [(&steady_source, 3.0, 3.2), (&pauses, 1.5, 5.0)] {
            let flow = json!([{"scheme": scheme, "params": params, "profile": "udp", "source": source}]);
            let mut sim = simulator(&path(12.0, 40, 40, 0.0, &flow, 30.0));
            let mut fastest = 0f64;
            for ms in 1..30_000 {
                sim.run_until(Timestamp::from_millis(ms)).unwrap();
                fastest = fastest.max(sim.sender(0).cca().control().pacing_rate.as_mbps());
            }
            sim.run().unwrap();
            let found = Steady::of(&sim.outcome());
            assert!((low..high).contains(&found.total()), "{scheme} {params} {source}: {found:?}");
            // The start doubles before the first results are in: the published rules begin at two packets per round trip.
            assert!(fastest < 65.0, "{scheme} {params} {source}: {fastest} Mbit/s");
        }
    }
}

/// Without any acknowledgement the start doubles until the flow window of the authors' programs is full, and no farther.
#[test]
fn nothing_heard_at_the_start() {
    let mut run = path(12.0, 40, 40, 0.0, &flows(1, "pcc", &json!({})), 3.0);
    run.downlink.insert(0, serde_json::from_value(json!({"kind": "loss", "probability": 1.0})).unwrap());
    let mut sim = simulator(&run);
    sim.run().unwrap();
    let stats = sim.sender(0).stats();
    assert_eq!(stats.sent_packets - stats.probes, 100_000 - 1000, "{stats:?}");
}
