//! What Westwood+, Hybla, Illinois, H-TCP, BIC and YeAH must do: use a link, share it with their own kind, and show what
//! each of them was made for. Where a bound is not derived in a comment it is ours: calibrated once, then frozen.

use crate::common::{assert_close, flow, flows, l1, run, secs, spec, uncapped, Steady, Wire};
use ccgym_core::{TimeSpan, Timestamp};
use ccgym_run::RunSpec;
use serde_json::{json, Value};

const CLASSICS: [&str; 6] = ["westwood", "hybla", "illinois", "htcp", "bic", "yeah"];

fn one(scheme: &str) -> Value {
    json!([flow(scheme, &json!({}))])
}

/// A path of `mbps` and `rtt_ms` with a drop-tail buffer of `buffer` BDP.
fn path(mbps: u64, rtt_ms: u64, buffer: f64, flows: &Value, seconds: f64) -> RunSpec {
    let packets = (buffer * (mbps * rtt_ms) as f64 * 1e3 / 12_000.0).round().max(1.0) as u64;
    let way = rtt_ms * 500_000;
    spec(json!({
        "seed": 1,
        "duration": secs(seconds),
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": mbps * 1_000_000},
             "queue": {"kind": "droptail", "limit": {"packets": packets}}},
            {"kind": "delay", "delay": way},
        ],
        "downlink": [{"kind": "delay", "delay": way}],
        "flows": flows,
        "record": {"series": 10_000_000},
    }))
}

/// L1 with a buffer of 1 BDP: in use by 95 % or more. (0.999 to 1.000.)
#[test]
fn classics_fill_a_link() {
    for scheme in CLASSICS {
        let steady = Steady::of(&run(&l1(1.0, &one(scheme), 60.0)));
        assert!(steady.total() / 12.0 > 0.95, "{scheme}: {steady:?}");
    }
}

/// Two flows of a kind on L1: Jain > 0.95 for all but BIC, whose plateau holds differences for long. (BIC 0.941, the
/// others 0.999 to 1.000.)
#[test]
fn classics_share_with_their_own_kind() {
    for scheme in CLASSICS {
        let steady = Steady::of(&run(&l1(1.0, &flows(2, scheme, &json!({})), 120.0)));
        let least = if scheme == "bic" { 0.9 } else { 0.95 };
        assert!(steady.jain() > least, "{scheme}: {steady:?}");
    }
}

/// Random losses cost Reno half of its window each; Westwood+ keeps what the measured bandwidth fills, and more than twice of
/// Reno's throughput. (2.7 to 3.3 times.)
#[test]
fn westwood_keeps_its_window_through_random_loss() {
    let rate = |scheme: &str, mode: &str, loss: f64| {
        let flow = json!([flow(scheme, &json!({ "mode": mode }))]);
        let mut path = l1(1.0, &flow, 60.0);
        path.uplink.insert(0, uncapped(loss, 1, &flow, 60.0).uplink[0].clone());
        Steady::of(&run(&path)).total()
    };
    for loss in [0.005, 0.01, 0.02] {
        let reno = rate("reno", "rfc", loss);
        for mode in ["paper", "linux"] {
            let westwood = rate("westwood", mode, loss);
            assert!(westwood > 2.0 * reno, "{mode}, p = {loss}: {westwood} against {reno} Mbit/s");
        }
    }
}

/// With ρ = RTT/25 ms the window under random loss is ρ times Mathis' one, so that the rate is that of a 25 ms path whatever
/// the round trip, ± 20 %: √(1.5/p) = 38.7 packets per 25 ms are 18.6 Mbit/s. Reno's falls with the round trip.
#[test]
fn hybla_is_independent_of_the_round_trip() {
    let rate = |scheme: &str, rtt_ms: u64| {
        let flow = json!([{"scheme": scheme, "extra_rtt": (rtt_ms - 40) * 1_000_000}]);
        (1..=2).map(|seed| Steady::of(&run(&uncapped(1e-3, seed, &flow, 60.0))).total()).sum::<f64>() / 2.0
    };
    for rtt_ms in [40, 80, 160, 320] {
        assert_close(&format!("hybla, {rtt_ms} ms"), rate("hybla", rtt_ms), 18.6, 0.20);
    }
    assert!(rate("reno", 320) < 0.15 * rate("reno", 40));
}

/// Long fat paths with small buffers: Reno is still on its way when Illinois has filled the path. (Of 100 Mbit/s with a
/// tenth of a BDP Reno uses 0.70 and Illinois 0.96, of 200 Mbit/s with a quarter 0.84 and 1.00.)
#[test]
fn illinois_beats_reno_on_a_long_fat_path() {
    for (mbps, buffer) in [(100, 0.1), (200, 0.25)] {
        let used = |scheme| Steady::of(&run(&path(mbps, 100, buffer, &one(scheme), 60.0))).total() / mbps as f64;
        let (reno, illinois) = (used("reno"), used("illinois"));
        assert!(illinois > 0.9 && illinois > reno + 0.1, "{mbps} Mbit/s: {illinois} against {reno}");
    }
}

/// The window at times after a loss that is seen 0.1 s after the start, with a round trip of 0.1 s.
fn windows_after_a_loss(scheme: &str, initial: u32, times: &[f64]) -> Vec<f64> {
    let mut wire = Wire::new(scheme, &json!({}), TimeSpan::from_millis(100), initial);
    let mut window = |&time: &f64| {
        wire.run_until(Timestamp(secs(0.1 + time)), |_, number| number == 0);
        wire.observable("cwnd_packets")
    };
    times.iter().map(&mut window).collect()
}

/// H-TCP grows as Reno for a second; then by ∫α(Δ)/RTT = 10·(x + 5·x² + x³/12) packets within x seconds, ± 10 %.
#[test]
fn htcp_takes_off_after_a_second() {
    let htcp = windows_after_a_loss("htcp", 100, &[0.9, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(htcp[0], windows_after_a_loss("reno", 100, &[0.9])[0]);
    for (i, window) in htcp[2..].iter().enumerate() {
        let x = i as f64 + 1.0;
        let expected = htcp[1] + 10.0 * (x + 5.0 * x * x + x.powi(3) / 12.0);
        assert_close(&format!("{x} s after the first second"), *window, expected, 0.10);
    }
}

/// BIC from 0.8·200 packets: the distance to 200 falls by a quarter per round trip until four packets are left, which takes
/// ln(40/4)/ln(4/3) = 8; these take 20, as do the four beyond; then it leaves, faster each round, up to 16 packets.
#[test]
fn bic_bisects_rests_and_leaves() {
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

/// YeAH on 100 Mbit/s and 40 ms with 1 BDP keeps its queue below the 80 packets that it drains at, without losses, in full
/// use; Reno fills the buffer. (Mean 54 and at most 82 packets, Reno 198 and 333.)
#[test]
fn yeah_keeps_the_queue_short() {
    let of = |scheme| Steady::of(&run(&path(100, 40, 1.0, &one(scheme), 60.0)));
    let (yeah, reno) = (of("yeah"), of("reno"));
    assert!(yeah.total() > 99.0 && yeah.drops == 0, "{yeah:?}");
    assert!(yeah.mean_queue < 80.0 && yeah.max_queue < 100, "{yeah:?}");
    assert!(reno.mean_queue > 2.0 * yeah.mean_queue, "{reno:?}");
}

/// Next to Reno, YeAH falls back to Reno's growth and holds its share within 40 and 60 %. (50 % on L1, 44 % of 100 Mbit/s.)
#[test]
fn yeah_is_fair_to_reno() {
    let both = json!([flow("yeah", &json!({})), {"scheme": "reno", "start": 1_000_000}]);
    for path in [l1(1.0, &both, 120.0), path(100, 40, 1.0, &both, 60.0)] {
        let steady = Steady::of(&run(&path));
        let share = steady.rates[0] / steady.total();
        assert!((0.4..=0.6).contains(&share), "{steady:?}");
    }
}
