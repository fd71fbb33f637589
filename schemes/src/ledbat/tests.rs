use crate::testing::{context, ms, scheme, MockTransport, TestEvent, MSS};
use ccgym_core::{InitContext, TimeSpan, Timestamp};
use serde_json::{json, Value};

/// RTT without a queue. The mock's one-way delay is half of the RTT.
const RTT_MS: u64 = 40;

fn host(packets: u64, params: &Value) -> MockTransport {
    MockTransport::with_window("ledbat", packets, params)
}

fn bytes(host: &MockTransport) -> f64 {
    host.scheme.control().cwnd as f64
}

/// Acknowledge several flights with `queue` ms in the forward direction, then one more packet; returns its change of
/// the window, in bytes, times window over packet: the change per RTT.
fn change_per_round(host: &mut MockTransport, queue: u64) -> f64 {
    let rtt = ms(RTT_MS + 2 * queue);
    host.ack_round(rtt, TimeSpan::ZERO);
    let before = bytes(host);
    host.ack_after(rtt);
    (bytes(host) - before) * before / MSS as f64
}

/// Make a flow after slow start, with the base known.
fn steady(packets: u64, params: &Value) -> MockTransport {
    let mut host = host(packets, params);
    host.ack_after(ms(RTT_MS));
    host.lose_and_recover(ms(RTT_MS));
    host
}

/// libutp: 3000 bytes per round trip · (target − delay)/target; RFC 6817: one packet.
#[test]
fn the_gain_is_proportional_to_the_distance_from_the_target() {
    for (mode, max_gain) in [("libutp", 3000.0), ("rfc", MSS as f64)] {
        for (queue, factor) in [(0, 1.0), (50, 0.5), (100, 0.0), (150, -0.5), (300, -2.0)] {
            let mut host = steady(80, &json!({"mode": mode}));
            let change = change_per_round(&mut host, queue);
            // The change of one acknowledgement is whole bytes: ± 1 byte is ± 30 to 80 per round trip.
            let rounding = bytes(&host) / MSS as f64 + 1.0;
            assert!((change - factor * max_gain).abs() <= rounding, "{mode}, {queue} ms: {change}");
        }
    }
}

#[test]
fn parameters_scale_the_gain() {
    for (params, queue, expected) in [
        (json!({"target": 25.0}), 50, -3000.0),
        (json!({"increase": 1500.0}), 0, 1500.0),
        (json!({"mode": "rfc", "target": 50.0}), 100, -1500.0),
        (json!({"mode": "rfc", "gain": 0.5}), 0, 750.0),
    ] {
        let mut host = steady(80, &params);
        let change = change_per_round(&mut host, queue);
        assert!((change - expected).abs() <= bytes(&host) / MSS as f64 + 1.0, "{params}: {change}");
    }
}

/// One late packet among others is no queue: the current delay is the min of the latest 3 or 4.
#[test]
fn the_minimum_of_the_latest_samples_counts() {
    for (params, samples) in [(json!({}), 3), (json!({"mode": "rfc"}), 4), (json!({"current_filter": 2}), 2)] {
        let mut host = steady(80, &params);
        host.ack_round(ms(RTT_MS), TimeSpan::ZERO);
        for n in 1..=samples {
            host.ack_after(ms(RTT_MS + 100));
            assert_eq!(host.observable("queueing_delay_ms") > 0.0, n == samples, "{params}, sample {n}");
        }
    }
}

/// libutp: the max of one packet and the gain per window; ends at 0.9 of the target, or above ssthresh.
#[test]
fn slow_start() {
    for (increase, expected) in [(3000.0, 2.0), (500.0, 1.0)] {
        let mut host = host(20, &json!({"increase": increase}));
        host.ack_round(ms(RTT_MS), TimeSpan::ZERO);
        let grown = host.window() - 20.0;
        assert!((grown - expected).abs() < 0.1, "{increase}: {grown}");
        assert_eq!(host.observable("slow_start"), 1.0);
    }
    for (queue, slow_start) in [(85, 1.0), (95, 0.0)] {
        let mut host = host(20, &json!({}));
        host.ack_after(ms(RTT_MS));
        host.ack_round(ms(RTT_MS + 2 * queue), TimeSpan::ZERO);
        assert_eq!(host.observable("slow_start"), slow_start, "{queue} ms");
    }
    let mut host = host(20, &json!({"send_buffer": 21 * MSS}));
    for _ in 0..5 {
        host.ack_round(ms(RTT_MS), TimeSpan::ZERO);
    }
    assert_eq!((host.window(), host.observable("slow_start")), (21.0, 0.0));
}

/// libutp halves once per 100 ms, RFC 6817 once per recovery episode and not below two packets.
#[test]
fn losses() {
    let mut host = host(40, &json!({}));
    host.advance(ms(40));
    for (wait, expected) in [(0, 20.0), (50, 20.0), (51, 10.0)] {
        host.advance(ms(wait));
        host.play(TestEvent { lost: 1, ..TestEvent::default() });
        assert_eq!(host.window(), expected, "after {wait} ms more");
    }
    for (packets, expected) in [(40, 20.0), (3, 2.0), (2, 2.0)] {
        let context = InitContext { initial_window: packets * MSS, ..context() };
        let mut host = MockTransport::with_context(scheme("ledbat", &json!({"mode": "rfc"})), context);
        host.play(TestEvent { lost: 1, ..TestEvent::default() });
        host.play(TestEvent { lost: 1, ..TestEvent::default() });
        assert_eq!(host.window(), expected, "from {packets}");
    }
}

#[test]
fn a_timeout_leaves_one_packet() {
    for mode in ["libutp", "rfc"] {
        let mut host = steady(40, &json!({"mode": mode}));
        host.time_out();
        assert_eq!(host.window(), 1.0, "{mode}");
    }
    let mut host = steady(40, &json!({}));
    assert_eq!(host.observable("slow_start"), 0.0);
    host.time_out();
    assert_eq!(host.observable("slow_start"), 1.0);
}

/// libutp: with the queue far above the target the window falls below a packet; the retransmission timer, of at least a
/// second, opens it again.
#[test]
fn on_a_full_path_the_flow_waits_for_the_timer() {
    let mut host = steady(10, &json!({}));
    while host.packets_in_flight() > 0 {
        host.ack_after(ms(RTT_MS + 1000));
    }
    assert!(host.window() < 1.0, "{}", host.window());
    let due = host.scheme.next_timer();
    assert!(due >= host.now + ms(1_000) && due < Timestamp::NEVER, "{due:?}");
    host.advance(due.since(host.now));
    assert_eq!((host.window(), host.scheme.next_timer()), (1.0, Timestamp::NEVER));
}

/// libutp: after 1 s, 3 s, 7 s, … of idle time a third of the window is removed each time, down to one packet.
#[test]
fn idle_time_reduces_the_window_by_thirds() {
    for (seconds, expected) in [(0, 1.0), (2, 2.0 / 3.0), (5, 4.0 / 9.0), (10, 8.0 / 27.0)] {
        let mut host = steady(60, &json!({}));
        // The growth of the last acknowledgement before the idle time is in this too.
        let mut twin = host.clone();
        twin.idle(TimeSpan::ZERO);
        host.idle(ms(1000 * seconds));
        let kept = host.window() / twin.window();
        assert!((kept - expected).abs() < 1e-3, "{seconds} s: {kept}");
    }
    let mut host = steady(10, &json!({}));
    host.idle(ms(100_000));
    assert_eq!(host.window(), 1.0);
}

/// libutp: a window that has not limited sending for a second does not grow; RFC 6817: never beyond the bytes in flight
/// and one packet.
#[test]
fn unused_windows_do_not_grow() {
    for slow_start in [true, false] {
        let mut host = if slow_start { host(20, &json!({})) } else { steady(40, &json!({})) };
        host.ack_round(ms(RTT_MS), TimeSpan::ZERO);
        host.cwnd_limited = false;
        host.advance(ms(1_001));
        let before = host.window();
        host.ack_round(ms(RTT_MS), TimeSpan::ZERO);
        assert!(host.window() <= before, "slow start {slow_start}: {before} → {}", host.window());
    }
    let mut host = steady(20, &json!({"mode": "rfc"}));
    let in_flight = host.packets_in_flight();
    host.ack(in_flight);
    assert!(host.window() <= in_flight as f64 + 1.0, "{} of {in_flight}", host.window());
}
