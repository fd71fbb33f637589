//! What QUIC Cubic must do: row 9 of the table of expectations, and the rows of Reno and Cubic that carry over to it
//! with its own constants. Thresholds marked as ours were calibrated once and are frozen.

use crate::common::{assert_close, l1, run, run_watched, secs, uncapped, Steady, MSS};
use serde_json::{json, Value};

/// A flow as Pantheon carries it.
fn quic(params: &Value) -> Value {
    json!({"scheme": "quic", "params": params, "profile": "udp", "initial_window": 32})
}

/// Row 9: a cut keeps 0.85 of the window, exactly (whole bytes, two packets at least), whatever is in flight; with N
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

/// Row 9: against one flow of RFC 9438 Cubic on L1 with 1 BDP it takes more than 55 %, in both modes; one emulated
/// connection takes less than two, and two more than one.
#[test]
fn row_09_quic_against_cubic() {
    let share = |params: Value| {
        let flows = json!([quic(&params), {"scheme": "cubic"}]);
        let steady = Steady::of(&run(&l1(1.0, &flows, 190.0)));
        assert!(steady.total() > 11.4, "{steady:?}");
        steady.rates[0] / steady.total()
    };
    let (first, later) = (share(json!({})), share(json!({"mode": "quiche"})));
    assert!(first > 0.55, "{first}");
    assert!(later > 0.55, "{later}");
    let one = share(json!({"connections": 1}));
    assert!(one < first, "{one} and {first}");
}

/// Row 7: in the Reno-friendly region the window is that of its constants, sqrt(alpha/(1-beta)*(1+beta)/2/p), which with
/// alpha = 3N^2(1-beta)/(1+beta) is N*sqrt(1.5/p): twice Mathis' window for two connections.
#[test]
fn row_07_quic_counts_as_two_renos() {
    for (connections, p) in [(1, 1e-3), (2, 1e-3), (2, 1e-2)] {
        let mean: f64 = (1..=4)
            .map(|seed| {
                let flow = quic(&json!({"connections": connections, "mode": "quiche"}));
                Steady::of(&run(&uncapped(p, seed, &json!([flow]), 200.0))).total()
            })
            .sum::<f64>()
            / 4.0;
        let window = mean * 1e6 * 0.040 / 8.0 / MSS;
        let expected = f64::from(connections) * (1.5 / p).sqrt();
        assert_close(&format!("{connections} connections, p = {p}"), window, expected, 0.2);
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
