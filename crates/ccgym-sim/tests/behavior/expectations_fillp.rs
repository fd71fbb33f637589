//! What FillP and FillP-Sheep must do (row 39 of the table of expectations), and how thin their acknowledgements are. The link
//! is L1 (12 Mbit/s, 40 ms) with a buffer of 2000 packets; after 24 s it has half of its rate. Thresholds
//! without a published number are ours: calibrated once, then frozen.

use ccgym_run::Outcome;
use serde_json::json;

use crate::common::{run, secs, spec};

/// When the rate halves, s.
const HALVED: f64 = 24.0;
/// Packets in flight that fill L1 without a queue: 40 ms, and 1 ms for the packet itself.
const BDP: u64 = 41;
fn halved(scheme: &str) -> Outcome {
    let rate = json!([[0, 12_000_000], [secs(HALVED), 6_000_000]]);
    run(&spec(json!({
        "seed": 1,
        "duration": secs(40.0),
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": rate},
             "queue": {"kind": "droptail", "limit": {"packets": 2000}}},
            {"kind": "delay", "delay": 20_000_000},
        ],
        "downlink": [{"kind": "delay", "delay": 20_000_000}],
        "flows": [{"scheme": scheme, "profile": "udp"}],
        "record": {"series": 10_000_000, "packets": true},
    })))
}

/// Packets in flight, the most between `from` and `to` seconds.
fn most_in_flight(outcome: &Outcome, from: f64, to: f64) -> u64 {
    let series = outcome.series.as_ref().expect("series are recorded");
    let within =
        series.t.iter().zip(&series.flows[0].in_flight_bytes).filter(|(t, _)| (secs(from)..secs(to)).contains(t));
    within.map(|(_, bytes)| bytes / 1500).max().expect("samples")
}

/// Row 39: when the rate halves under a deep buffer, a second later what is in flight has come down with it: to the cap, 60 ms
/// at the new rate, and what gains of 1.25 and reports of a packet too many add.
#[test]
fn what_is_in_flight_follows_the_rate() {
    for scheme in ["fillp", "fillp_sheep"] {
        let outcome = halved(scheme);
        for (from, to, most) in [(3.0, 24.0, 2 * BDP), (HALVED + 1.0, 40.0, BDP + BDP / 10)] {
            let flight = most_in_flight(&outcome, from, to);
            assert!(flight <= most, "{scheme}, {from} s to {to} s: {flight}");
        }
    }
}

/// Both fill the link.
#[test]
fn fillp_fills_the_link() {
    for scheme in ["fillp", "fillp_sheep"] {
        let outcome = halved(scheme);
        let series = outcome.series.as_ref().expect("series are recorded");
        let acked = |s: f64| {
            let at = series.t.iter().position(|t| *t >= secs(s)).expect("the run lasts so long");
            series.flows[0].acked_bytes[at] as f64 * 8e-6
        };
        let rate = (acked(HALVED) - acked(4.0)) / (HALVED - 4.0);
        assert!(rate > 0.95 * 12.0, "{scheme}: {rate} Mbit/s");
    }
}

/// TACK's point: a report each 20 ms, and a few at once for losses, instead of one for every second packet.
#[test]
fn acknowledgements_are_thin() {
    for scheme in ["fillp", "fillp_sheep"] {
        let outcome = halved(scheme);
        let (acks, data) = (outcome.acks.expect("logged"), outcome.data.expect("logged"));
        let within = |times: &[u64]| times.iter().filter(|t| (secs(2.0)..secs(HALVED)).contains(t)).count() as f64;
        let (acks, data) = (within(&acks.entered), within(&data.left));
        assert!((acks / (HALVED - 2.0) - 50.0).abs() < 2.0, "{scheme}: {acks} in 22 s");
        assert!(acks < 0.06 * data, "{scheme}: {acks} for {data} packets");
    }
}
