//! The whole state machine on a path of 12 Mbit/s and 40 ms (40 packets), or with hand-made events.

use ccgym_core::{Rate, TimeSpan};
use serde_json::json;

use crate::testing::{MockTransport, TestEvent, MSS};

const RTT: TimeSpan = TimeSpan::from_millis(40);
/// Time of one packet at the bottleneck.
const SERVICE: TimeSpan = TimeSpan::from_millis(1);
const STARTUP: &str = "Startup";
const DRAIN: &str = "Drain";
const PROBE_BW: &str = "ProbeBW";
const PROBE_RTT: &str = "ProbeRTT";

/// Make a host. It ignores pacing, so acknowledgements come in bursts: the estimator of aggregation is off.
fn host() -> MockTransport {
    MockTransport::of("bbr", &json!({"extra_acked_gain": 0.0}))
}

/// Make a flow in PROBE_BW.
fn cruising() -> MockTransport {
    let mut h = host();
    while h.scheme.state() != DRAIN {
        h.advance(SERVICE);
        h.ack_after(RTT);
        assert!(h.now.as_millis() < 3_000, "start-up must end");
    }
    // The host ignores pacing, so the test drains the queue.
    h.play(TestEvent { acked: h.packets_in_flight() - 45, ..TestEvent::default() });
    assert_eq!(h.scheme.state(), PROBE_BW);
    h
}

#[test]
fn paces_the_first_window_over_a_millisecond_then_over_the_round_trip() {
    let mut h = host();
    assert_eq!(h.window(), 10.0);
    // 2.885 · 10 packets / 1 ms · 0.99.
    assert_eq!(h.scheme.control().pacing_rate, Rate::from_mbps(2.885 * 120.0 * 0.99));
    h.ack_after(RTT);
    // The same window over 40 ms. The bandwidth sample of one packet is lower, and the rate does not fall to it.
    assert_eq!(h.scheme.control().pacing_rate, Rate::from_mbps(2.885 * 3.0 * 0.99));
}

#[test]
fn startup_doubles_per_round_and_leaves_three_flat_rounds_after_filling() {
    let mut h = host();
    let mut windows = Vec::new();
    while h.scheme.state() == STARTUP && h.now.as_millis() < 3_000 {
        windows.push(h.window());
        h.ack_round(RTT, SERVICE);
    }
    // Each round doubles until the pipe of 40 packets is full.
    assert_eq!(&windows[..3], &[10.0, 20.0, 40.0]);
    assert!((h.observable("btl_bw_mbps") - 12.0).abs() < 0.24, "{:?}", h.scheme.observables());
    assert_eq!(h.observable("full_pipe"), 1.0);
    // 10, 20, 40 and 80 packets, then three flat rounds, whose ends are detected within the next.
    assert!((7..=9).contains(&windows.len()), "{windows:?}");
    // Before the pipe is full the window is bounded by 2.885 products, rounded, plus three quanta.
    assert!(windows.iter().all(|&w| w <= 2.885 * 41.0 + 10.0), "{windows:?}");
}

#[test]
fn drain_paces_below_the_bandwidth_until_the_queue_is_gone() {
    let mut h = host();
    while h.scheme.state() == STARTUP {
        h.advance(SERVICE);
        h.ack_after(RTT);
    }
    assert_eq!(h.scheme.state(), DRAIN);
    assert!((h.observable("pacing_gain") - 1.0 / 2.885).abs() < 1e-12);
    assert_eq!(h.observable("cwnd_gain"), 2.885);
    // The host ignores pacing, so the test empties the flight, down to one BDP and its budget.
    let mut clone = h.clone();
    clone.play(TestEvent { acked: clone.packets_in_flight() - 60, ..TestEvent::default() });
    assert_eq!(clone.scheme.state(), DRAIN);
    h.play(TestEvent { acked: h.packets_in_flight() - 40, ..TestEvent::default() });
    assert_eq!(h.scheme.state(), PROBE_BW);
    assert_eq!(h.observable("cwnd_gain"), 2.0);
    assert_ne!(h.observable("cycle_phase"), 1.0, "the first phase never drains");
}

#[test]
fn steady_window_is_two_products_and_three_quanta() {
    let mut h = cruising();
    for _ in 0..40 {
        h.ack_round(RTT, SERVICE);
        // 12 Mbit/s · RTprop, times two, plus 3 · 2 packets, even, plus 2 while probing.
        let product = 12e6 * h.observable("rtprop_ms") / 1e3 / 8.0 / MSS as f64;
        assert!(h.window() <= 2.0 * product * 1.02 + 6.0 + 2.0 + 2.0, "{} {product}", h.window());
        assert!(h.window() >= 2.0 * product, "{} {product}", h.window());
    }
}

#[test]
fn gains_cycle() {
    let mut h = cruising();
    let mut seen = Vec::new();
    for _ in 0..3_000 {
        h.advance(SERVICE);
        h.ack_after(RTT);
        let phase = h.observable("cycle_phase") as usize;
        if h.scheme.state() == PROBE_BW && seen.last() != Some(&phase) {
            seen.push(phase);
            let expected = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][phase];
            assert_eq!(h.observable("pacing_gain"), expected);
        }
    }
    assert!(seen.len() > 16);
    assert!(seen.windows(2).all(|w| w[1] == (w[0] + 1) % 8), "{seen:?}");
}

/// Acknowledge at the path's rate until `mode` is reached; returns the time until then.
fn run_until(h: &mut MockTransport, mode: &str, limit_ms: u64) -> TimeSpan {
    let start = h.now;
    while h.scheme.state() != mode {
        h.advance(SERVICE);
        h.ack_after(RTT);
        assert!(h.now.since(start) < TimeSpan::from_millis(limit_ms), "mode {mode} must come");
    }
    h.now.since(start)
}

#[test]
fn probes_the_round_trip_every_ten_seconds_for_at_least_200_ms() {
    let mut h = cruising();
    let before = h.window();
    run_until(&mut h, PROBE_RTT, 11_000);
    assert!((10_000..10_200).contains(&h.now.as_millis()), "RTprop was seen at the start: {:?}", h.now);
    assert_eq!(h.window(), 4.0);
    assert_eq!(h.observable("pacing_gain"), 1.0);
    // The queue of one product drains (about 40 ms), then 200 ms, and the acknowledgement that ends it.
    let held = run_until(&mut h, PROBE_BW, 1_000).as_millis_f64();
    assert!((200.0..340.0).contains(&held), "{held}");
    assert!(h.window() > before - 10.0, "restored: {} {before}", h.window());
    let again = run_until(&mut h, PROBE_RTT, 11_000).as_millis_f64();
    assert!((10_000.0..10_100.0).contains(&again), "{again}");
}

#[test]
fn probe_rtt_keeps_the_bandwidth() {
    // With 5 ms a PROBE_RTT lasts forty rounds, four times the bandwidth filter.
    let rtt = TimeSpan::from_millis(5);
    let service = TimeSpan::from_micros(100);
    let mut h = host();
    let mut min_bandwidth: f64 = f64::MAX;
    let mut probes = 0;
    while h.now.as_millis() < 11_000 {
        h.advance(service);
        h.ack_after(rtt);
        if h.scheme.state() == PROBE_RTT {
            probes += 1;
            min_bandwidth = min_bandwidth.min(h.observable("btl_bw_mbps"));
        }
    }
    assert!(probes > 0);
    assert!(min_bandwidth > 0.98 * 120.0, "{min_bandwidth}");
}

#[test]
fn loss_conserves_packets_for_a_round_and_leaves_the_rate() {
    let mut h = cruising();
    h.ack_round(RTT, SERVICE);
    h.ack_round(RTT, SERVICE);
    let (window, rate) = (h.window(), h.scheme.control().pacing_rate);
    let flight = h.packets_in_flight();
    h.play(TestEvent { lost: 5, acked: 1, ..TestEvent::default() });
    assert!(h.in_recovery());
    // In flight plus acknowledged: lost packets are not replaced.
    assert_eq!(h.window(), flight as f64 - 5.0);
    assert!(h.scheme.control().pacing_rate.0 as f64 >= 0.7 * rate.0 as f64, "only the cycle may change the rate");
    while h.in_recovery() {
        h.advance(SERVICE);
        h.ack_after(RTT);
    }
    assert!(h.window() >= window - 4.0, "restored: {} {window}", h.window());
}

#[test]
fn timeout_rebuilds_from_one_packet_and_restores_after() {
    let mut h = cruising();
    h.ack_round(RTT, SERVICE);
    let before = h.window();
    let bandwidth = h.observable("btl_bw_mbps");
    h.time_out();
    assert_eq!(h.window(), 1.0);
    assert_eq!(h.observable("btl_bw_mbps"), bandwidth, "the model stays");
    h.ack_after(RTT);
    assert!(h.window() < before / 2.0, "the window grows with what is acknowledged");
    while h.in_recovery() {
        h.ack_after(RTT);
    }
    h.ack_after(RTT);
    assert!(h.window() > before - 10.0, "{} {before}", h.window());
}

#[test]
fn idle_restart_paces_at_the_bandwidth() {
    let mut h = cruising();
    h.ack_round(RTT, SERVICE);
    h.idle(TimeSpan::from_millis(12_000));
    let rate = h.scheme.control().pacing_rate.as_mbps();
    assert!((rate - 0.99 * h.observable("btl_bw_mbps")).abs() < 1e-3, "{rate}");
    // RTprop is old, but the restart comes first.
    h.ack_after(RTT);
    assert_eq!(h.scheme.state(), PROBE_BW);
}

#[test]
fn application_limited_samples_raise_but_never_lower() {
    let mut h = cruising();
    let before = h.observable("btl_bw_mbps");
    for _ in 0..30 {
        // Half of the path's rate, limited by the application.
        h.app_limit();
        for _ in 0..10 {
            h.advance(TimeSpan::from_millis(4));
            h.ack_after(RTT);
            h.app_limit();
        }
    }
    assert!(h.observable("btl_bw_mbps") >= before * 0.99, "{} {before}", h.observable("btl_bw_mbps"));
}

#[test]
fn equal_events_give_equal_decisions() {
    let run = || {
        let mut h = host();
        for i in 0..5_000 {
            h.advance(SERVICE);
            if i % 701 == 700 {
                h.lose();
            } else {
                h.ack_after(RTT);
            }
        }
        h
    };
    let (a, b) = (run(), run());
    assert_eq!(a.scheme.control(), b.scheme.control());
    let clone = a.clone();
    assert_eq!(clone.scheme.control(), a.scheme.control());
    assert_eq!(format!("{:?}", a.scheme.observables()), format!("{:?}", b.scheme.observables()));
}
