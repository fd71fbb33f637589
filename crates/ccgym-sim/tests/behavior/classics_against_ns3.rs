//! The classics next to ns-3.37's own implementations of them, one flow at a time.
//!
//! The values are from our runs of Debian's package libns3-dev 3.37-2, a separate program: one bulk flow over a dumbbell of
//! point-to-point links, access links of 10 Gbit/s that carry the whole delay, a device queue of one packet below a FIFO
//! queue discipline. Segments of 1,448 bytes, SACK, timestamps, initial window 10, `DelAckCount` 1, `TcpPrrRecovery`, send
//! buffer 40 MB; Westwood with `ProtocolType` WestwoodPlus. Random losses are drawn behind the bottleneck (`RateErrorModel`
//! per packet, seed 42, runs 1 to 3; means of the three).
//!
//! Parameters are ns-3's where its defaults differ from ours: 50 ms as Hybla's reference, a smooth part of 5 in BIC, no RTT
//! scaling in H-TCP. Where ns-3 departs from the rules of Illinois, H-TCP and YeAH, the values are those of a build of its
//! class with that rule changed: see "ns-3's own Westwood+ to YeAH" in docs/validation.md.

use crate::common::{assert_close, run, secs, spec, MSS};
use serde_json::{json, Value};

/// A path: rate, round trip, queue, probability of loss, and how long a run lasts.
struct Path {
    mbps: u64,
    rtt_ms: u64,
    queue: u64,
    loss: f64,
    seconds: f64,
}

const BDP: Path = Path { mbps: 16, rtt_ms: 40, queue: 53, loss: 0.0, seconds: 60.0 };
const LONG: Path = Path { mbps: 48, rtt_ms: 80, queue: 80, loss: 0.0, seconds: 40.0 };
const LOSSY: Path = Path { loss: 0.005, ..BDP };

fn params(scheme: &str) -> Value {
    match scheme {
        "reno" => json!({"mode": "ns3"}),
        "hybla" => json!({"reference_rtt": 50}),
        "bic" => json!({"smooth_part": 5}),
        "htcp" => json!({"rtt_scaling": false}),
        _ => json!({}),
    }
}

/// Payload in Mbit/s and mean window in packets, over the whole run.
fn ours(scheme: &str, path: &Path, seed: u64) -> (f64, f64) {
    let way = path.rtt_ms * 500_000;
    let outcome = run(&spec(json!({
        "seed": seed,
        "duration": secs(path.seconds),
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": path.mbps * 1_000_000}, "overhead": 2, "device_packets": 1,
             "queue": {"kind": "droptail", "limit": {"packets": path.queue}}},
            {"kind": "delay", "delay": way},
            {"kind": "loss", "probability": path.loss},
        ],
        "downlink": [{"kind": "delay", "delay": way}],
        "flows": [{"scheme": scheme, "params": params(scheme), "profile": "ns3", "ack_every": 1}],
        "record": {"series": 5_000_000},
    })));
    let series = outcome.series.as_ref().expect("series are recorded");
    let (acked, windows) = (&series.flows[0].acked_bytes, &series.flows[0].cwnd_bytes);
    let payload = acked[acked.len() - 1] as f64 * 1448.0 / MSS;
    let window = windows.iter().sum::<u64>() as f64 / windows.len() as f64 / MSS;
    (payload * 8.0 / 1e6 / path.seconds, window)
}

/// A buffer of one BDP: throughput within 2 %, window within 5 %.
#[test]
fn on_a_path_with_one_bdp() {
    for (scheme, throughput, window) in
        [("westwood", 15.031, 81.954), ("hybla", 15.387, 85.460), ("bic", 15.391, 98.634), ("yeah", 15.389, 85.485)]
    {
        let found = ours(scheme, &BDP, 1);
        assert_close(&format!("{scheme}: throughput"), found.0, throughput, 0.02);
        assert_close(&format!("{scheme}: window"), found.1, window, 0.05);
    }
}

/// A longer path with a quarter of a BDP of buffer, on which start-up counts: throughput and window within 10 %.
#[test]
fn on_a_longer_path() {
    for (scheme, throughput, window) in
        [("westwood", 31.342, 230.09), ("hybla", 38.727, 288.10), ("bic", 45.725, 353.42), ("yeah", 40.961, 304.27)]
    {
        let found = ours(scheme, &LONG, 1);
        assert_close(&format!("{scheme}: throughput"), found.0, throughput, 0.10);
        assert_close(&format!("{scheme}: window"), found.1, window, 0.10);
    }
}

/// Means of three draws, in Mbit/s and packets.
fn under_loss(scheme: &str) -> (f64, f64) {
    let draws = [1, 2, 3].map(|seed| ours(scheme, &LOSSY, seed));
    (draws.iter().map(|d| d.0).sum::<f64>() / 3.0, draws.iter().map(|d| d.1).sum::<f64>() / 3.0)
}

/// Half a percent of random loss: throughput within 10 %.
#[test]
fn under_random_loss() {
    for (scheme, throughput) in [("reno", 4.686), ("westwood", 14.482), ("hybla", 5.505), ("bic", 10.404)] {
        assert_close(scheme, under_loss(scheme).0, throughput, 0.10);
    }
}

/// ns-3 with the rules that it departs from: Illinois keeps the fraction of what α adds, H-TCP has its extremes, its measure of
/// throughput and α in packets, YeAH takes 1/φ for a fraction. Throughput and window within 5 %.
#[test]
fn with_the_rules_that_ns3_departs_from() {
    for (scheme, path, throughput, window) in [
        ("illinois", "one BDP", 15.387, 93.052),
        ("illinois", "longer", 43.987, 350.25),
        ("illinois", "lossy", 14.166, 57.06),
        ("htcp", "one BDP", 15.389, 76.760),
        ("htcp", "longer", 43.508, 327.69),
        ("htcp", "lossy", 5.012, 19.41),
        ("yeah", "lossy", 10.106, 37.58),
    ] {
        let found = match path {
            "one BDP" => ours(scheme, &BDP, 1),
            "longer" => ours(scheme, &LONG, 1),
            _ => under_loss(scheme),
        };
        assert_close(&format!("{scheme}, {path}: throughput"), found.0, throughput, 0.05);
        assert_close(&format!("{scheme}, {path}: window"), found.1, window, 0.05);
    }
}
