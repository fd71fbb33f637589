//! The design goals of Westwood+, H-TCP and BIC. Bounds that are not derived in a comment are ours: calibrated once,
//! then frozen.

use crate::common::test_path::TestPath;
use crate::common::{assert_close, flow, run, secs, Net, Steady};
use ccgym_core::{TimeSpan, Timestamp};
use serde_json::json;

/// Random losses cost Reno half of its window each; Westwood+ keeps the BDP of the measured bandwidth, and more than
/// twice Reno's throughput. (2.7 to 3.3 times.)
#[test]
fn westwood_keeps_its_window_through_random_loss() {
    let rate = |scheme: &str, mode: &str, loss: f64| {
        let flow = json!([flow(scheme, &json!({ "mode": mode }))]);
        Steady::of(&run(&Net { loss: json!(loss), ..Net::new(12.0, 40.0, 40) }.spec(&flow, 60.0))).total()
    };
    for loss in [0.005, 0.01, 0.02] {
        let reno = rate("reno", "rfc", loss);
        for mode in ["paper", "linux"] {
            let westwood = rate("westwood", mode, loss);
            assert!(westwood > 2.0 * reno, "{mode}, p = {loss}: {westwood} against {reno} Mbit/s");
        }
    }
}

/// Return the window at times after a loss that is detected 0.1 s after the start, with an RTT of 0.1 s.
fn windows_after_a_loss(scheme: &str, initial: u32, times: &[f64]) -> Vec<f64> {
    let mut wire = TestPath::wire(scheme, &json!({}), TimeSpan::from_millis(100), initial);
    let mut window = |&time: &f64| {
        wire.run_until(Timestamp(secs(0.1 + time)), |_, number| number == 0);
        wire.observable("cwnd_packets")
    };
    times.iter().map(&mut window).collect()
}

/// H-TCP grows as Reno for a second; then by ∫α(Δ)/RTT = 10·(x + 5·x² + x³/12) packets within x seconds, ± 10 %.
#[test]
fn htcp_grows_faster_after_a_second() {
    let htcp = windows_after_a_loss("htcp", 100, &[0.9, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(htcp[0], windows_after_a_loss("reno", 100, &[0.9])[0]);
    for (i, window) in htcp[2..].iter().enumerate() {
        let x = i as f64 + 1.0;
        let expected = htcp[1] + 10.0 * (x + 5.0 * x * x + x.powi(3) / 12.0);
        assert_close(&format!("{x} s after the first second"), *window, expected, 0.10);
    }
}

/// BIC from 0.8·200 packets: the distance to 200 falls by a quarter per RTT until four packets are left, which takes
/// ln(40/4)/ln(4/3) = 8; these take 20, as do the four beyond; then growth rises each round, up to 16 packets.
#[test]
fn bic_follows_its_curve() {
    let rounds = |from: usize, to: usize| (from..=to).map(|i| 0.1 * i as f64 + 0.05).collect::<Vec<_>>();
    // The episode lasts a round trip.
    let w = windows_after_a_loss("bic", 200, &rounds(1, 70));
    for (i, window) in w[..8].iter().enumerate() {
        assert_close(&format!("round {i}"), *window, 200.0 - 40.0 * 0.75f64.powi(i as i32 + 1), 0.015);
    }
    assert!(w[9..=45].iter().all(|window| (195.0..=205.0).contains(window)), "{w:?}");
    let last = w[69] - w[68];
    assert!(w[60] > 240.0 && (15.0..=17.0).contains(&last), "{w:?}");
}
