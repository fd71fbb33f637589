//! The example test cases of draft-ietf-ccwg-bbr (appendix "BBR Example Test Cases", 2026-08-03), one test each, under
//! their names. The long run and flows that share a link are in `expectations_bbr3_long_run.rs`.
//!
//! Unless a case differs the path is L1: 12 Mbit/s and 40 ms, packets of 1500 bytes, of which 41 fill it, and a queue
//! for 160. Numbers that the draft does not give are ours, calibrated once.

use ccgym_core::TimeSpan;
use serde_json::json;

use crate::common::test_path::{Policer, TestPath};

const STARTUP: &str = "Startup";
const DRAIN: &str = "Drain";
const DOWN: &str = "ProbeBW_DOWN";
const CRUISE: &str = "ProbeBW_CRUISE";
const REFILL: &str = "ProbeBW_REFILL";
const UP: &str = "ProbeBW_UP";
const PROBE_RTT: &str = "ProbeRTT";

const MBPS: f64 = 12.0;
const PIPE: f64 = 41.0;

fn path() -> TestPath {
    TestPath::new("bbr3", &json!({}), MBPS, 160)
}

fn state(path: &TestPath) -> &'static str {
    path.state()
}

/// Run until the flow is in `wanted`.
fn reach(path: &mut TestPath, wanted: &str, seconds: f64) -> f64 {
    path.until(&format!("state {wanted}"), seconds, |r| state(r) == wanted).as_secs_f64()
}

/// Run until the flow leaves its state; returns the next one.
fn leave(path: &mut TestPath, seconds: f64) -> &'static str {
    let from = state(path);
    path.until(&format!("leaving state {from}"), seconds, |r| state(r) != from);
    state(path)
}

/// Shorten the path by 20 µs: a lower RTT delays PROBE_RTT.
fn shorten(path: &mut TestPath) {
    path.one_way = TimeSpan(path.one_way.0 - 10_000);
}

#[test]
fn exiting_startup_on_bandwidth_plateau() {
    let mut path = path();
    let mut rounds_at_full_rate = None;
    path.until("DRAIN", 3.0, |r| {
        if r.observable("max_bw_mbps") >= 0.98 * MBPS && rounds_at_full_rate.is_none() {
            rounds_at_full_rate = Some(r.observable("rounds"));
        }
        state(r) != STARTUP
    });
    assert_eq!(state(&path), DRAIN);
    assert_eq!(path.observable("full_bw_reached"), 1.0);
    let bandwidth = path.observable("max_bw_mbps");
    assert!((bandwidth / MBPS - 1.0).abs() < 0.02, "{bandwidth}");
    let flat = path.observable("rounds") - rounds_at_full_rate.unwrap();
    assert!((3.0..=4.0).contains(&flat), "{flat} rounds at the full rate");
    assert!(path.observable("inflight_longterm_packets").is_nan(), "no loss was needed");
}

/// Six separate losses in a round need a larger flight than L1's: 100 Mbit/s, half of it used.
#[test]
fn exiting_startup_on_loss_when_application_limited() {
    let mut path = TestPath::new("bbr3", &json!({}), 100.0, 1000);
    path.app_limit(50.0);
    path.watch(1.0, |_| {});
    assert_eq!(state(&path), STARTUP);
    path.lose_every = 20;
    let took = path.until("the end of STARTUP", 1.0, |r| state(r) != STARTUP).as_secs_f64();
    // The losses of a round, and an RTT to detect them.
    assert!(took > 2.0 * 0.04 && took < 5.0 * 0.04, "{took}");
    // Nothing is queued, so that DRAIN and PROBE_DOWN end with the same acknowledgement.
    assert_eq!(state(&path), CRUISE);
    assert_eq!(path.observable("full_bw_reached"), 1.0);
    assert!(path.observable("inflight_longterm_packets") > 100.0);
}

#[test]
fn exiting_drain_based_on_inflight() {
    let mut path = path();
    reach(&mut path, DRAIN, 3.0);
    assert_eq!(path.observable("pacing_gain"), 0.5);
    let product = |r: &TestPath| r.observable("max_bw_mbps") * r.observable("min_rtt_ms") * 1e3 / 8.0 / 1500.0;
    let mut before = f64::INFINITY;
    path.until("PROBE_BW", 0.2, |r| {
        if state(r) == DRAIN {
            before = r.in_flight();
        }
        state(r) != DRAIN
    });
    // There is no long-term bound for headroom, so that PROBE_DOWN ends with the same acknowledgement.
    assert_eq!(state(&path), CRUISE);
    assert!(before > product(&path) - 1.0, "left with the packet that emptied the queue: {before}");
    assert!(path.in_flight() <= product(&path) + 2.0, "{}", path.in_flight());
}

/// A rate that falls by a tenth does not outlast a gain of 0.5: the queue is gone within a round. In flight stays above
/// a BDP if the path also becomes so much longer that it holds one at half the rate.
#[test]
fn exiting_drain_based_on_time() {
    // The first round after three is the fourth.
    for (longer, next, rounds) in [(0, CRUISE, 1.0), (60, DOWN, 4.0)] {
        let mut path = path();
        reach(&mut path, DRAIN, 3.0);
        path.mbps *= 0.9;
        path.detour = TimeSpan::from_millis(longer);
        let first = path.observable("rounds");
        let product = path.observable("max_bw_mbps") / MBPS * PIPE;
        let mut least = f64::INFINITY;
        path.until("the end of DRAIN", 2.0, |r| {
            least = least.min(r.in_flight());
            state(r) != DRAIN
        });
        assert_eq!(state(&path), next, "{least} in flight");
        assert_eq!(path.observable("rounds") - first, rounds);
        assert!(next == CRUISE || least > product + 2.0, "{least} {product}");
    }
}

#[test]
fn exiting_probe_up_on_bandwidth_plateau() {
    let mut path = path();
    reach(&mut path, UP, 10.0);
    let (rounds, dropped) = (path.observable("rounds"), path.dropped);
    assert_eq!(path.observable("pacing_gain"), 1.25);
    assert_eq!(path.observable("cwnd_gain"), 2.25);
    assert_eq!(leave(&mut path, 2.0), DOWN);
    assert_eq!(path.dropped, dropped, "without loss");
    assert_eq!(path.observable("rounds") - rounds, 3.0, "three flat rounds");
}

#[test]
fn exiting_probe_up_on_loss_when_application_limited() {
    let mut path = path();
    reach(&mut path, UP, 10.0);
    path.app_limit(MBPS / 2.0);
    path.watch(1.0, |_| {});
    assert_eq!(state(&path), UP);
    let bound = path.observable("inflight_longterm_packets");
    path.lose_every = 15;
    let took = path.until("the end of PROBE_UP", 1.0, |r| state(r) != UP).as_secs_f64();
    // Half of a BDP is in flight: PROBE_DOWN ends with the same acknowledgement.
    assert_eq!(state(&path), CRUISE);
    assert!(took < 0.2, "{took}");
    // In flight of an application-limited flow shows nothing of the path.
    assert!(bound.is_nan() && path.observable("inflight_longterm_packets").is_nan());
}

/// PROBE_RTT is due in any state, five seconds after the last lower RTT: before that the path becomes a little shorter.
/// On a constant path only PROBE_RTT ends the state.
#[test]
fn never_exiting_probe_up_or_startup_when_application_limited_with_no_loss() {
    for wanted in [STARTUP, UP] {
        let mut path = path();
        reach(&mut path, wanted, 10.0);
        path.app_limit(MBPS / 2.0);
        for _ in 0..10 {
            shorten(&mut path);
            path.watch(4.0, |r| assert_eq!(state(r), wanted, "after {:?}", r.now));
        }
        assert_eq!(leave(&mut path, 6.0), PROBE_RTT);
    }
}

#[test]
fn exiting_probe_down_on_inflight() {
    let mut path = path();
    // A buffer of half a BDP, so that probes cause loss and set the bound for headroom.
    path.buffer = 20;
    reach(&mut path, UP, 10.0);
    reach(&mut path, DOWN, 10.0);
    assert_eq!(path.observable("pacing_gain"), 0.9);
    let bound = path.observable("inflight_longterm_packets");
    assert!(bound > PIPE && bound < PIPE + 25.0, "{bound}");
    assert!(path.in_flight() > 0.85 * bound);
    assert_eq!(leave(&mut path, 2.0), CRUISE);
    let target = (0.85 * bound).min(path.observable("max_bw_mbps") / MBPS * PIPE);
    assert!(path.in_flight() <= target + 1.0, "{} {target}", path.in_flight());
    assert!(path.in_flight() >= target - 3.0, "{} {target}", path.in_flight());
}

/// The gain of 0.9 and the pacing margin send a hundredth less than a link that lost a tenth: the flight shrinks by 9
/// packets per second after the first RTT. On a path of 500 ms that leaves it above the headroom until it is time to
/// probe.
#[test]
fn exiting_probe_down_after_max_time() {
    let mut path = path();
    path.one_way = TimeSpan::from_millis(250);
    // STARTUP causes losses and sets the bound for headroom.
    path.buffer = 460;
    reach(&mut path, REFILL, 20.0);
    // Otherwise PROBE_RTT would come before the time is up.
    shorten(&mut path);
    reach(&mut path, UP, 10.0);
    reach(&mut path, DOWN, 3.0);
    path.mbps *= 0.9;
    let began = path.now;
    let headroom = 0.85 * path.observable("inflight_longterm_packets");
    let mut least = f64::INFINITY;
    path.until("the end of PROBE_DOWN", 5.0, |r| {
        if state(r) == DOWN {
            least = least.min(r.in_flight());
        }
        state(r) != DOWN
    });
    assert_eq!(state(&path), REFILL, "not CRUISE");
    assert!(least > headroom, "{least} {headroom}");
    // Reno's rounds, 63 at most, would take half a minute.
    let waited = path.now.since(began).as_secs_f64();
    assert!((2.0..3.0).contains(&waited), "{waited}");
}

#[test]
fn entering_and_exiting_probe_rtt() {
    let mut path = path();
    reach(&mut path, CRUISE, 3.0);
    reach(&mut path, PROBE_RTT, 6.0);
    let entered = path.now.as_secs_f64();
    assert!((5.0..5.2).contains(&entered), "5 s after the first round trip: {entered}");
    assert_eq!(path.observable("cwnd_gain"), 0.5);
    let mut low = f64::INFINITY;
    let held = path.until("the end of PROBE_RTT", 1.0, |r| {
        low = low.min(r.in_flight());
        state(r) != PROBE_RTT
    });
    assert_eq!(state(&path), CRUISE);
    assert!((low - PIPE / 2.0).abs() < 2.0, "half a product in flight: {low}");
    // 200 ms, the round before it in which the window takes effect, and the acknowledgement that ends it.
    assert!((0.2..0.32).contains(&held.as_secs_f64()), "{held:?}");
    assert!(path.watch(1.0, |_| {}) > 0.9 * MBPS, "sending goes on");
    let again = reach(&mut path, PROBE_RTT, 6.0) + 1.0;
    assert!((4.9..5.2).contains(&again), "{again}");
}

#[test]
fn skipping_probe_rtt_due_to_application_limited_sending() {
    let mut path = path();
    reach(&mut path, CRUISE, 3.0);
    path.pause();
    path.until("nothing in flight", 1.0, |r| r.in_flight() == 0.0);
    path.idle(TimeSpan::from_millis(6_000));
    path.greedy();
    let mut seen = false;
    path.watch(2.0, |r| {
        seen |= r.observable("idle_restart") == 1.0;
        assert_ne!(state(r), PROBE_RTT);
    });
    assert!(seen, "the restart was noted");
    assert_eq!(path.observable("idle_restart"), 0.0, "and ended with the first acknowledgement");
}

#[test]
fn achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    let mut path = path();
    path.batch = TimeSpan::from_millis(20);
    let (mut extra, mut products) = (0f64, 0f64);
    path.until("DRAIN", 3.0, |r| {
        extra = extra.max(r.observable("extra_acked_packets"));
        let product = r.observable("max_bw_mbps") * r.observable("min_rtt_ms") / 12.0;
        if r.observable("rounds") >= 4.0 {
            products = products.max(r.window() / product);
        }
        state(r) != STARTUP
    });
    let bandwidth = path.observable("max_bw_mbps") / MBPS;
    assert!((0.98..1.3).contains(&bandwidth), "{bandwidth}");
    // A batch holds 20 packets.
    assert!((10.0..41.0).contains(&extra), "{extra}");
    assert!(products > 2.0, "{products}");
}

#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    let mut path = path();
    reach(&mut path, CRUISE, 3.0);
    // Start-up's excess leaves the filter after ten rounds.
    path.watch(0.6, |_| {});
    let before = path.observable("extra_acked_packets");
    path.batch = TimeSpan::from_millis(20);
    path.watch(1.0, |_| {});
    let extra = path.observable("extra_acked_packets");
    assert!(before < 8.0 && extra >= 18.0, "{before} {extra}");
    let mut most = 0f64;
    let rate = path.watch(4.0, |r| most = most.max(r.window()));
    assert!(rate > 0.95 * MBPS, "{rate}");
    assert!(most > 2.0 * PIPE + 15.0, "the window holds the batch as well: {most}");
}

/// 0.1 Mbit/s: a packet takes 120 ms, so that 40 ms are a third of it.
#[test]
fn correctly_managing_sub_packet_bdps() {
    let mut path = TestPath::new("bbr3", &json!({}), 0.1, 20);
    reach(&mut path, CRUISE, 20.0);
    let mut least = f64::INFINITY;
    let rate = path.watch(30.0, |r| least = least.min(r.window()));
    assert_eq!(least, 4.0);
    assert!(rate > 0.95 * 0.1, "{rate}");
    let bandwidth = path.observable("max_bw_mbps");
    assert!((0.09..0.11).contains(&bandwidth), "{bandwidth}");
}

#[test]
fn increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    // A start on a buffer of half a BDP sets the long-term bound.
    let mut path = TestPath::new("bbr3", &json!({}), 10.0, 17);
    reach(&mut path, UP, 10.0);
    reach(&mut path, CRUISE, 10.0);
    let bound = path.observable("inflight_longterm_packets");
    assert!(bound < 60.0, "{bound}");
    path.mbps = 100.0;
    path.buffer = 340;
    reach(&mut path, UP, 10.0);
    let start = path.observable("rounds");
    // Growth of the bound in each round of probing.
    let (mut round, mut last, mut growth) = (start, bound, Vec::new());
    let took = path.until("the full rate", 20.0, |r| {
        if r.observable("rounds") > round && state(r) == UP {
            let now = r.observable("inflight_longterm_packets");
            growth.push(now - last);
            last = now;
        }
        round = r.observable("rounds");
        r.observable("max_bw_mbps") > 95.0
    });
    let rounds = path.observable("rounds") - start;
    // One packet, two, four, … per round, once the bound limits the flow.
    let first = growth.iter().position(|&g| g > 0.0).unwrap();
    let doubled = growth[first..].windows(2).take(3).all(|pair| (1.8..2.3).contains(&(pair[1] / pair[0])));
    assert!(doubled, "{growth:?}");
    // A quarter more per round takes eleven rounds.
    assert!(rounds <= 25.0, "{rounds} {took:?} {growth:?}");
}

#[test]
fn decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    let mut path = TestPath::new("bbr3", &json!({}), 100.0, 340);
    reach(&mut path, CRUISE, 3.0);
    path.watch(0.5, |_| {});
    path.mbps = 10.0;
    path.buffer = 34;
    let shortterm = path.until("a lower short-term bound", 5.0, |r| r.observable("bw_shortterm_mbps") < 15.0);
    let mut cycles = 0;
    let mut last = state(&path);
    let took = path.until("a lower maximum", 20.0, |r| {
        cycles += i32::from(state(r) == UP && last != UP);
        last = state(r);
        r.observable("max_bw_mbps") < 11.0
    });
    assert!(shortterm.as_secs_f64() < 1.0, "{shortterm:?}");
    assert!(cycles <= 2, "{cycles} cycles, {took:?}");
}

#[test]
fn handling_token_bucket_policers() {
    let mut path = path();
    reach(&mut path, CRUISE, 3.0);
    path.policer = Some(Policer { mbps: 6.0, burst: 60_000.0, tokens: 60_000.0, since: path.now });
    path.until("short-term bounds", 3.0, |r| {
        !r.observable("bw_shortterm_mbps").is_nan() && !r.observable("inflight_shortterm_packets").is_nan()
    });
    path.watch(10.0, |_| {});
    let (sent, dropped) = (path.sender.stats().sent_packets, path.dropped);
    let rate = path.watch(20.0, |_| {});
    let loss = (path.dropped - dropped) as f64 / (path.sender.stats().sent_packets - sent) as f64;
    assert!(rate > 0.95 * 6.0 && rate <= 6.05, "{rate}");
    assert!(loss < 0.06, "{loss}");
}

fn bounds(path: &TestPath) -> [f64; 3] {
    ["bw_shortterm_mbps", "inflight_shortterm_packets", "inflight_longterm_packets"].map(|name| path.observable(name))
}

#[test]
fn handling_spurious_fast_recovery() {
    let mut path = path();
    reach(&mut path, UP, 10.0);
    path.watch(0.06, |_| {});
    assert_eq!(state(&path), UP);
    let before = bounds(&path);
    // Five packets take a detour that lets later ones overtake.
    path.detour = TimeSpan::from_millis(12);
    path.watch(0.005, |_| {});
    path.detour = TimeSpan::ZERO;
    let mut visited = Vec::new();
    path.until("the verdict", 0.3, |r| {
        if visited.last() != Some(&state(r)) {
            visited.push(state(r));
        }
        r.sender.stats().spurious_losses > 0
    });
    // Lost while probing: the long-term bound is set, and the probe ends.
    assert_eq!(visited, [UP, DOWN]);
    assert!(before.iter().all(|bound| bound.is_nan()), "{before:?}");
    let set = bounds(&path)[2];
    assert!(set > PIPE, "{set}");
    path.watch(0.1, |r| {
        if visited.last() != Some(&state(r)) {
            visited.push(state(r));
        }
    });
    assert_eq!(visited, [UP, DOWN, REFILL, UP]);
    assert!(bounds(&path).iter().all(|bound| bound.is_nan()), "{:?}", bounds(&path));
    assert_eq!(path.sender.stats().spurious_losses, path.sender.stats().lost_packets);
}

/// Acknowledgements wait until the timer has expired; then the newest overtakes all others, and shows at once that
/// nothing was lost.
#[test]
fn handling_spurious_rto_recovery() {
    let mut path = path();
    reach(&mut path, UP, 10.0);
    path.watch(0.06, |_| {});
    assert_eq!(state(&path), UP);
    let (before, window) = (bounds(&path), path.window());
    path.hold = true;
    let mut visited = vec![UP];
    let mut note = |r: &TestPath| {
        if visited.last() != Some(&state(r)) {
            visited.push(state(r));
        }
    };
    path.until("the timeout", 1.0, |r| {
        note(r);
        r.sender.stats().rtos > 0
    });
    note(&path);
    assert_eq!(path.window(), 1.0);
    assert!(before.iter().all(|bound| bound.is_nan()), "{before:?}");
    assert!(bounds(&path)[2] > PIPE, "{:?}", bounds(&path));
    path.release();
    path.until("the verdict", 0.1, |r| r.sender.stats().spurious_losses > 0);
    note(&path);
    assert!(path.window() >= window, "{} {window}", path.window());
    assert!(bounds(&path).iter().all(|bound| bound.is_nan()), "{:?}", bounds(&path));
    path.watch(0.2, note);
    assert_eq!(visited, [UP, DOWN, REFILL, UP]);
    assert_eq!(path.sender.stats().rtos, 1);
    assert_eq!(path.sender.stats().spurious_losses, path.sender.stats().lost_packets);
}

#[test]
fn entering_and_exiting_probe_rtt_during_startup() {
    let mut path = path();
    path.app_limit(2.0);
    let entered = reach(&mut path, PROBE_RTT, 6.0);
    assert!(entered > 5.0, "{entered}");
    assert_eq!(path.observable("full_bw_reached"), 0.0);
    assert_eq!(leave(&mut path, 1.0), STARTUP);
    path.greedy();
    assert_eq!(leave(&mut path, 2.0), DRAIN);
    let bandwidth = path.observable("max_bw_mbps");
    assert!((bandwidth / MBPS - 1.0).abs() < 0.02, "{bandwidth}");
}

#[test]
fn handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    let mut path = path();
    path.buffer = 20;
    reach(&mut path, UP, 10.0);
    reach(&mut path, CRUISE, 10.0);
    path.buffer = 160;
    // The first probe after one with too much loss stops early; the next does not.
    reach(&mut path, UP, 10.0);
    reach(&mut path, REFILL, 10.0);
    reach(&mut path, UP, 10.0);
    path.watch(0.06, |_| {});
    assert_eq!(state(&path), UP);
    let bound = path.observable("inflight_longterm_packets");
    path.lose_every = 10;
    let flight = path.in_flight();
    let took = path.until("the end of PROBE_UP", 0.2, |r| state(r) != UP);
    assert_eq!(state(&path), DOWN);
    let lower = path.observable("inflight_longterm_packets");
    assert!(took.as_secs_f64() < 0.15, "{took:?}");
    // In flight at the second loss within a flight, and at least 0.7 of a BDP.
    assert!(lower < bound && lower > 0.7 * PIPE, "{bound} {lower} {flight}");
}

#[test]
fn handling_application_limited_sending_during_probe_refill() {
    let mut path = path();
    reach(&mut path, REFILL, 10.0);
    let before = path.observable("max_bw_mbps");
    path.app_limit(1.0);
    assert_eq!(leave(&mut path, 1.0), UP);
    assert_eq!(path.observable("max_bw_mbps"), before);
    path.greedy();
    assert_eq!(leave(&mut path, 2.0), DOWN);
    let after = path.observable("max_bw_mbps");
    assert!((after / MBPS - 1.0).abs() < 0.02, "{after}");
}
