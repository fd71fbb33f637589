//! What LEDBAT and Verus must do on the base link L1 (12 Mbit/s, 40 ms, packets of 1500 bytes): rows 24–26 and 34 of the
//! table of expectations of published and derived results. Rows are cited above each test.
//!
//! One packet takes 1 ms at the bottleneck: packets in its queue are milliseconds of queueing delay. Where the table names
//! no number the thresholds are ours: calibrated once, then frozen.

use ccgym_run::RunSpec;
use serde_json::{json, Value};

use crate::common::{l1, run, Steady};

/// What is known before steady state: LEDBAT grows by two packets per round trip, or one, to about 140.
const START_S: f64 = 20.0;

fn udp(scheme: &str, params: &Value) -> Value {
    json!({"scheme": scheme, "params": params, "profile": "udp"})
}

/// L1 with a buffer of so many milliseconds; the start-up is cut off.
fn steady(buffer_ms: f64, flows: &Value, seconds: f64) -> Steady {
    let spec: RunSpec = l1(buffer_ms / 40.0, flows, START_S + seconds);
    Steady::since(&run(&spec), START_S)
}

/// Row 24: with a buffer of 200 ms the queue settles at the target, 100 ± 10 ms.
#[test]
fn ledbat_settles_at_its_target() {
    for mode in ["libutp", "rfc"] {
        for target in [100.0, 50.0] {
            let flows = json!([udp("ledbat", &json!({"mode": mode, "target": target}))]);
            let steady = steady(200.0, &flows, 20.0);
            assert!((steady.mean_queue - target).abs() <= 10.0, "{mode}, {target} ms: {steady:?}");
            assert!(steady.total() > 11.9 && steady.drops == 0, "{mode}, {target} ms: {steady:?}");
        }
    }
}

/// Row 25: with a buffer of 50 ms the target is out of reach: the flow fills the buffer and loses.
#[test]
fn ledbat_overflows_a_buffer_below_its_target() {
    for mode in ["libutp", "rfc"] {
        let steady = steady(50.0, &json!([udp("ledbat", &json!({"mode": mode}))]), 40.0);
        // The packet on the link is not in the queue.
        assert!(steady.max_queue >= 49 && steady.drops > 0, "{mode}: {steady:?}");
        assert!(steady.total() > 11.0, "{mode}: {steady:?}");
    }
}

/// Row 26: next to Reno with a buffer of 200 ms less than 20 %.
#[test]
fn ledbat_gives_way_to_reno() {
    for mode in ["libutp", "rfc"] {
        let flows = json!([udp("ledbat", &json!({"mode": mode})), {"scheme": "reno"}]);
        let steady = steady(200.0, &flows, 60.0);
        let share = steady.rates[0] / steady.total();
        assert!(share < 0.2, "{mode}: share {share:.3}, {steady:?}");
        assert!(steady.total() > 11.5, "{mode}: {steady:?}");
    }
}
