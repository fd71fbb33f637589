use super::*;
use crate::testing::{context, ms, scheme, MockTransport, MSS};
use serde_json::{json, Value};

const RTT: TimeSpan = TimeSpan::from_millis(40);

fn host(params: &Value) -> MockTransport {
    let context = InitContext { initial_window: MSS, ..context() };
    MockTransport::with_context(scheme("verus", params), context)
}

/// Make a model after slow start, with a profile of 40 ms and one more per packet beyond 40.
fn verus() -> Verus {
    let mut verus = Verus::new(&Parameters::resolve(&ENTRY.info, &serde_json::Map::new()).unwrap());
    verus.init(context());
    for w in 1..=150 {
        verus.model.profile.observe(w, 40.0 + (w as f64 - 40.0).max(0.0));
    }
    assert!(verus.model.profile.fit(-4.0));
    verus.model.fit_due = Timestamp::NEVER;
    verus.model.slow_start = false;
    verus.model.d_min = 40.0;
    verus.model.d_mean = 60.0;
    verus
}

/// One packet first; each acknowledgement adds one to the window, so a round trip doubles it.
#[test]
fn slow_start_doubles() {
    let mut host = host(&json!({}));
    assert_eq!(host.packets_in_flight(), 1);
    for round in 1..=6 {
        host.ack_round(RTT, TimeSpan::ZERO);
        assert_eq!((host.observable("window_packets"), host.packets_in_flight()), (f64::from(1 << round), 1 << round));
    }
}

/// A packet with a delay above 500 ms ends slow start with 0.7 of the window it left under, and a loss phase until a
/// packet of the smaller window is acknowledged.
#[test]
fn slow_start_ends_above_its_delay() {
    let mut host = host(&json!({}));
    for _ in 0..6 {
        host.ack_round(RTT, TimeSpan::ZERO);
    }
    // Early enough that the timeout, of five delays, does not come first. Both packets left under a window of 33.
    host.ack_after(ms(190));
    assert_eq!(host.observable("slow_start"), 1.0);
    host.ack_after(ms(501));
    assert_eq!((host.observable("slow_start"), host.observable("loss_phase")), (0.0, 1.0));
    let window = host.observable("window_packets");
    assert!((window - 0.7 * 33.0).abs() < 0.1, "{window}");
}

/// A loss counts 150 ms after the packet was found missing, once per loss phase, by the window of the lost packet; it
/// ends slow start above 20 packets.
#[test]
fn losses_count_when_they_expire() {
    for (rounds, slow_start) in [(6, 0.0), (4, 1.0)] {
        let mut host = host(&json!({}));
        for _ in 0..rounds {
            host.ack_round(RTT, TimeSpan::ZERO);
        }
        host.lose();
        let before = host.observable("window_packets");
        host.advance(ms(140));
        assert_eq!((host.observable("loss_phase"), host.observable("window_packets")), (0.0, before));
        // An acknowledgement prevents the timeout.
        host.ack(1);
        host.advance(ms(15));
        assert_eq!(
            (host.observable("loss_phase"), host.observable("slow_start")),
            (1.0, slow_start),
            "{rounds} rounds"
        );
        if slow_start > 0.0 {
            // The lost packet left under a window of 8 or 9.
            let window = host.observable("window_packets");
            assert!((5.6..=6.4).contains(&window), "{window}");
        }
    }
}

/// S = W + flight·(2 − n)/(n − 1) with n epochs per mean delay; the quotient is cut toward zero.
#[test]
fn packets_per_epoch() {
    let epoch = ms(5);
    for (d_mean, window, outstanding, expected) in [
        (40.0, 40.0, 40, 6),
        (40.0, 40.0, 47, 0),
        (41.0, 40.0, 40, 5),
        (10.0, 12.0, 30, 12),
        (5.0, 12.0, 5, 7),
        (5.0, 12.0, 15, 0),
        (0.0, 3.0, 1, 2),
    ] {
        let model = Model { d_mean, window, outstanding, ..Model::new() };
        assert_eq!(model.packets_now(epoch), expected, "{d_mean} ms, window {window}, {outstanding} in flight");
    }
}

/// Per epoch: −2 ms beyond the ratio, −1 ms when the maximum rises, else +2 ms.
#[test]
fn the_delay_aimed_for() {
    for (d_max, epoch_max, expected) in
        [(100.0, 100.0, 92.0), (100.0, 99.0, 92.0), (100.0, 101.0, 89.0), (239.0, 239.0, 92.0), (241.0, 100.0, 88.0)]
    {
        let mut verus = verus();
        verus.model.d_est = 90.0;
        verus.model.d_max = Some(d_max);
        verus.model.epoch_max = Some(epoch_max);
        verus.decide(Timestamp::from_millis(100));
        assert_eq!(verus.model.d_est, expected, "{d_max} → {epoch_max}");
        assert!((verus.model.d_max.unwrap() - (0.2 * d_max + 0.8 * epoch_max)).abs() < 1e-9);
        let by_curve = verus.model.profile.window_at(expected).unwrap();
        assert_eq!(verus.model.window, by_curve);
        assert!((by_curve - expected).abs() <= 3.0, "{by_curve}");
    }
}

/// At the minimum and still beyond the ratio: nothing is sent while two packets are in flight, then the minimum rises.
#[test]
fn the_minimum_rises_when_the_smallest_window_is_too_large() {
    for (outstanding, d_min) in [(2, 40.0), (1, 50.0)] {
        let mut verus = verus();
        verus.model.d_est = 41.0;
        verus.model.d_max = Some(1000.0);
        verus.model.outstanding = outstanding;
        verus.budget = 7;
        verus.decide(Timestamp::from_millis(100));
        assert_eq!((verus.model.d_est, verus.model.d_min), (40.0, d_min));
        assert_eq!(verus.budget == 0, outstanding == 2);
    }
}

/// An epoch without an acknowledgement counts as delay.
#[test]
fn silence_counts_as_delay() {
    let mut verus = verus();
    verus.model.d_est = 90.0;
    verus.model.d_max = Some(100.0);
    verus.last_ack = Timestamp::from_millis(50);
    verus.decide(Timestamp::from_millis(140));
    assert_eq!((verus.model.d_est, verus.model.d_max), (92.0, Some(100.0)));
    verus.decide(Timestamp::from_millis(200));
    assert_eq!(verus.model.d_est, 91.0);
}

/// In a loss phase acknowledgements add no points; they add 1/W, and the target delay stays below the curve's.
#[test]
fn a_loss_phase_grows_like_congestion_avoidance() {
    let mut verus = verus();
    verus.model.loss_phase = true;
    verus.model.window = 50.0;
    verus.model.d_est = 90.0;
    verus.delay = 77.0;
    verus.learn(120);
    assert_eq!(verus.model.window, 50.02);
    assert!((verus.model.d_est - 50.02).abs() < 1.0, "{}", verus.model.d_est);
    assert_eq!(verus.model.epoch_max, Some(77.0));
}

#[test]
fn a_delay_beyond_the_curve_restarts() {
    let mut verus = verus();
    verus.model.d_est = 1e300;
    verus.decide(Timestamp::from_millis(100));
    assert!(verus.model.slow_start && verus.budget == 1 && verus.model.window == 1.0);
}

/// Before the first acknowledgement: slow start restarts after a second. In slow start: it ends. Later: a loss phase at
/// the min delay.
#[test]
fn timeouts() {
    let mut host = host(&json!({}));
    host.advance(ms(1_001));
    assert_eq!(host.packets_in_flight(), 1);
    host.send();
    assert_eq!((host.packets_in_flight(), host.observable("slow_start")), (2, 1.0));
    host.ack_round(RTT, TimeSpan::ZERO);
    for _ in 0..5 {
        host.ack_round(RTT, TimeSpan::ZERO);
    }
    // Five delays of 40 ms.
    host.advance(ms(195));
    assert_eq!(host.observable("slow_start"), 1.0);
    host.advance(ms(10));
    assert_eq!(host.observable("slow_start"), 0.0);
    let mut verus = verus();
    verus.model.acked = true;
    verus.model.d_est = 90.0;
    verus.model.outstanding = 30;
    verus.time_out(Timestamp::from_millis(500));
    assert_eq!((verus.model.d_est, verus.model.outstanding, verus.model.loss_phase), (40.0, 0, true));
}

/// Windows that the application does not use raise neither the target delay nor slow start's window.
#[test]
fn unused_windows_do_not_grow() {
    let mut verus = verus();
    verus.model.d_est = 90.0;
    verus.model.d_max = Some(60.0);
    verus.model.epoch_max = Some(60.0);
    verus.in_flight = 5 * MSS;
    verus.on_app_limited(Timestamp::from_millis(100), 5 * MSS);
    verus.decide(Timestamp::from_millis(100));
    assert_eq!(verus.model.d_est, 90.0);
    let mut host = host(&json!({}));
    host.ack_round(RTT, TimeSpan::ZERO);
    let before = host.observable("window_packets");
    host.app_limit();
    host.ack_after(RTT);
    assert_eq!(host.observable("window_packets"), before);
}
