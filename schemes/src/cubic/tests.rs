use crate::testing::{context, ms, MockTransport, TestEvent, MSS};
use ccgym_core::TimeSpan;
use serde_json::{json, Value};

fn host(packets: u64, params: &Value) -> MockTransport {
    MockTransport::with_window("cubic", packets, params)
}
/// Make a flow after a loss at a window of `packets` and its recovery: an epoch has begun.
fn after_loss(packets: u64, rtt: TimeSpan, params: &Value) -> MockTransport {
    let mut host = host(packets, params);
    host.lose_and_recover(rtt);
    host.ack_after(rtt);
    host
}
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "found {found}, expected {expected}");
}

/// RFC 9438 §4.2 equation 2: K = cbrt(W_max(1−β)/C).
#[test]
fn time_to_the_plateau() {
    for mode in ["rfc", "linux", "ns3"] {
        for (w_max, k) in [(40, 3.11), (80, 3.91), (100, 4.22), (200, 5.31)] {
            let host = after_loss(w_max, ms(40), &json!({"mode": mode}));
            close(host.observable("k_s"), k, 0.01);
        }
    }
}

/// RFC 9438 §4.2 equation 1: W_cubic(t) = C(t−K)³ + W_max. At K/2 the window has grown by 7/8 of the reduction; at K it
/// equals W_max.
#[test]
fn curve() {
    for mode in ["rfc", "linux", "ns3"] {
        let mut host = after_loss(200, ms(100), &json!({"mode": mode, "tcp_friendliness": "off"}));
        let (start, k) = (host.now, host.observable("k_s"));
        let mut seen = Vec::new();
        for part in [0.5, 1.0, 1.5] {
            while host.now.since(start).as_secs_f64() < part * k {
                host.ack_round(ms(100), TimeSpan::ZERO);
            }
            seen.push(host.window());
        }
        close(seen[0], 140.0 + 60.0 * 7.0 / 8.0, 0.02);
        close(seen[1], 200.0, 0.01);
        close(seen[2], 200.0 + 60.0 / 8.0, 0.02);
    }
}

/// RFC 9438 §4.6: β of the flight, min. two packets.
#[test]
fn decrease() {
    for (mode, window, expected) in
        [("rfc", 100, 70.0), ("linux", 101, 70.0), ("ns3", 101, 70.0), ("rfc", 2, 2.0), ("linux", 2, 2.0)]
    {
        let mut host = host(window, &json!({"mode": mode}));
        host.lose();
        close(host.window(), expected, 1e-4);
    }
}

/// RFC 9438 §4.7: after a loss below the last maximum, W_max is (1+β)/2 of the window.
#[test]
fn fast_convergence() {
    for (on, expected) in [(true, 70.0 * 1.7 / 2.0), (false, 70.0)] {
        let mut host = host(100, &json!({"fast_convergence": on}));
        host.lose_and_recover(ms(40));
        assert_eq!(host.observable("w_max_packets"), 100.0);
        host.lose();
        close(host.observable("w_max_packets"), expected, 0.01);
    }
}

/// RFC 9438 §4.3: W_est rises by α = 3(1−β)/(1+β) = 0.5294 per round trip, by 1 once it reaches cwnd_prior. With an RTT
/// of 1 ms the cubic function has no effect.
#[test]
fn reno_friendly_slope() {
    let mut host = after_loss(100, ms(1), &json!({}));
    let mut climb = |rounds: u32| {
        let before = host.window();
        for _ in 0..rounds {
            host.ack_round(ms(1), TimeSpan::ZERO);
        }
        (host.window() - before) / f64::from(rounds)
    };
    close(climb(20), 0.5294, 0.02);
    climb(60);
    close(climb(20), 1.0, 0.02);
}

/// Linux: one packet per 15/8 windows, which is α = 8/15.
#[test]
fn reno_friendly_slope_in_linux() {
    let mut host = after_loss(200, ms(10), &json!({"mode": "linux", "c": 0.02}));
    // Whole packets follow W_est by one or two: ignore the first rounds.
    let mut before = 0.0;
    for i in 0..90 {
        if i == 15 {
            before = host.window();
        }
        host.ack_round(ms(10), TimeSpan::ZERO);
    }
    close((host.window() - before) / 75.0, 8.0 / 15.0, 0.03);
}

/// RFC 9438 §4.2: the target is at most 1.5 windows, so at most half a packet per packet acknowledged.
#[test]
fn growth_is_limited() {
    for mode in ["rfc", "linux", "ns3"] {
        let mut host = after_loss(20, ms(500), &json!({"mode": mode, "c": 100.0}));
        let (mut acked, before) = (0.0, host.window());
        for _ in 0..8 {
            acked += host.packets_in_flight() as f64;
            host.ack_round(ms(500), TimeSpan::ZERO);
        }
        let share = (host.window() - before) / acked;
        assert!((0.45..0.51).contains(&share), "{mode}: {share}");
    }
}

/// A window set from outside keeps the curve and ssthresh: below ssthresh it slow-starts, below the curve it grows by
/// up to half a window per round trip, above it by one packet in 100 windows (`bictcp_update`).
#[test]
fn goes_on_from_a_window_set_from_outside() {
    let params = json!({"mode": "linux", "tcp_friendliness": "off", "start_up": "none"});
    let mut host = after_loss(100, ms(100), &params);
    let state = |host: &MockTransport| ["k_s", "w_max_packets", "ssthresh_packets"].map(|name| host.observable(name));
    let before = state(&host);
    assert_eq!(before[2], 70.0);
    host.steer((35 * MSS + 700) as f64);
    assert_eq!((host.window(), state(&host)), (35.0, before), "whole packets");
    host.ack_round(ms(100), TimeSpan::ZERO);
    assert!((70.0..75.0).contains(&host.window()), "{}: slow start up to the threshold", host.window());
    while host.window() < 99.0 {
        host.ack_round(ms(100), TimeSpan::ZERO);
    }
    host.steer((72 * MSS) as f64);
    host.ack_round(ms(100), TimeSpan::ZERO);
    let grown = host.window() / 72.0;
    assert!((1.2..1.51).contains(&grown), "{grown}: back to the curve");
    host.steer((400 * MSS) as f64);
    host.ack_round(ms(100), TimeSpan::ZERO);
    assert_eq!((host.window(), state(&host)), (400.0, before));
}

/// RFC 9438 §5.8: the clock of the epoch stops while the application limits sending.
#[test]
fn application_limited_time_does_not_count() {
    let mut host = after_loss(100, ms(40), &json!({}));
    host.cwnd_limited = false;
    let held = host.window();
    for _ in 0..500 {
        host.ack_after(ms(40));
    }
    assert_eq!(host.window(), held);
    host.cwnd_limited = true;
    host.ack_round(ms(40), TimeSpan::ZERO);
    assert!(host.window() < held + 4.0, "{held} → {}", host.window());
}

/// RFC 9438 §4.9: the curve continues as before the loss.
#[test]
fn spurious_loss_is_undone() {
    let mut host = after_loss(100, ms(40), &json!({}));
    for _ in 0..20 {
        host.ack_round(ms(40), TimeSpan::ZERO);
    }
    let before: Vec<_> = ["cwnd_packets", "ssthresh_packets", "w_max_packets", "w_est_packets", "k_s"]
        .map(|key| (key, host.observable(key)))
        .into();
    host.lose();
    assert!(host.window() < 0.8 * before[0].1);
    host.spurious();
    for (key, value) in before {
        assert_eq!(host.observable(key), value, "{key}");
    }
}

/// RFC 9438 §4.8: one packet, then slow start to β of the flight, then an epoch with K = 0.
#[test]
fn timeout() {
    for mode in ["rfc", "linux", "ns3"] {
        let mut host = after_loss(100, ms(40), &json!({"mode": mode, "start_up": "none"}));
        host.time_out();
        assert_eq!(host.window(), 1.0);
        close(host.observable("ssthresh_packets"), 49.0, 0.02);
        for _ in 0..5 {
            host.ack_round(ms(40), TimeSpan::ZERO);
        }
        assert_eq!(host.window(), 32.0, "{mode}");
        for _ in 0..2 {
            host.ack_round(ms(40), TimeSpan::ZERO);
        }
        assert_eq!(host.observable("k_s"), 0.0);
    }
}

/// Without a maximum Linux and ns-3 add a packet per 20 acknowledged, or more: here exactly 20, since t is small.
#[test]
fn count_without_a_maximum() {
    let mut host = host(100, &json!({"mode": "ns3"}));
    host.ack_round(ms(40), TimeSpan::ZERO);
    // A delay far above twice the minimum ends slow start (HyStart).
    while host.observable("slow_start_phase") < 4.0 {
        host.ack_after(ms(200));
    }
    let before = host.window();
    for _ in 0..200 {
        host.ack_after(ms(200));
    }
    close(host.window() - before, 10.0, 0.2);
}

#[test]
fn counted_modes_keep_whole_packets() {
    for mode in ["linux", "ns3"] {
        let mut host = after_loss(77, ms(40), &json!({"mode": mode}));
        for _ in 0..300 {
            host.ack_after(ms(40));
            assert_eq!(host.window().fract(), 0.0, "{mode}");
        }
    }
}

#[test]
fn marks_reduce_once_per_window() {
    let marked = TestEvent { acked: 1, ce: 1, ..TestEvent::default() };
    let mut host = host(100, &json!({"ecn": true, "start_up": "none"}));
    for _ in 0..5 {
        host.play(marked);
    }
    close(host.window(), 70.0, 0.01);
}

/// Another scheme continues as Cubic: its window is the plateau; it slow-starts only below a larger ssthresh.
#[test]
fn resumed_it_is_on_its_plateau() {
    let parameters =
        crate::registry::Parameters::resolve(&super::ENTRY.info, &serde_json::Map::new()).expect("defaults");
    let mut cubic = super::Cubic::new(&parameters);
    ccgym_core::CongestionControl::init(&mut cubic, context());
    cubic.resume(100.0, 100.0);
    assert!(!cubic.is_in_slow_start());
    let values = ccgym_core::CongestionControl::observables(&cubic);
    let value = |name| values.iter().find(|(key, _)| *key == name).expect(name).1;
    assert_eq!((value("cwnd_packets"), value("ssthresh_packets"), value("w_max_packets")), (100.0, 100.0, 100.0));
    cubic.resume(100.0, f64::INFINITY);
    assert!(cubic.is_in_slow_start());
}
