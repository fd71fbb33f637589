//! The reduction of QUIC Cubic's window, row 9 of the expectations, and its max. Its other rows are in
//! `expectations.md`.

use crate::common::{assert_close, l1, run, run_watched, secs, uncapped, Steady, MSS};
use serde_json::{json, Value};

/// Make a flow with Pantheon's transport.
fn quic(params: &Value) -> Value {
    json!({"scheme": "quic", "params": params, "profile": "udp", "initial_window": 32})
}

/// Row 9: a reduction keeps exactly 0.85 of the window (whole bytes, at least two packets), at any flight; with N
/// connections (N - 0.3)/N.
#[test]
fn row_09_quic_cut() {
    for (connections, kept) in [(2, 0.85), (1, 0.7), (4, 0.925)] {
        for spec in [
            l1(1.0, &json!([quic(&json!({"connections": connections}))]), 60.0),
            uncapped(1e-3, 7, &json!([quic(&json!({"connections": connections}))]), 60.0),
        ] {
            let (_, records) = run_watched(&spec);
            let seen = records[0].lock().unwrap();
            assert!(seen.cuts.len() > 3, "{} cuts", seen.cuts.len());
            for &(_, before, after) in &seen.cuts {
                assert_eq!(after, ((before as f64 * kept) as u64).max(2 * MSS as u64), "from {before} bytes");
            }
        }
    }
}

/// Its window ends at 2000 packets: on an uncapped path of 40 ms without loss that is 600 Mbit/s.
#[test]
fn largest_window() {
    let outcome = run(&uncapped(0.0, 1, &json!([quic(&json!({}))]), 14.0));
    let series = outcome.series.as_ref().unwrap();
    assert_eq!(*series.flows[0].cwnd_bytes.last().unwrap(), 2000 * MSS as u64);
    assert!(series.t.last().unwrap() > &secs(13.0));
    assert_close("rate", Steady::of(&outcome).total(), 600.0, 0.02);
}
