//! Tests each rule with numbers, in both modes.

use ccgym_core::congestion_control::FrameEvent;
use ccgym_core::congestion_control::ReceivedEvent;
use ccgym_core::{Ecn, FeedbackReceiver, Rate, TimeSpan, Timestamp};
use serde_json::json;

use super::delay::{DelayTarget, QueueDelay};
use super::media::{Meter, Network, Target};
use super::receiver::ScreamReceiver;
use super::rules::{Rules, PANTHEON, RFC};
use super::window::{Update, Window};
use crate::testing::{at, ms, MockTransport, TestEvent, MSS};

const MARKED: TestEvent = TestEvent { acked: 1, lost: 0, ce: 1, delayed: false };
const RTT: TimeSpan = ms(40);

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found}, not {expected}");
}

/// Make an update with a fully used window, no delay and no trend.
fn full(window: &Window, ms: u64, settled: f64) -> Update {
    Update {
        at: at(ms),
        settled,
        prior_in_flight: window.bytes,
        in_flight: window.bytes,
        delay: 0.0,
        delay_target: 0.1,
        trend: 0.0,
        srtt: 0.04,
        rate: 8e6,
        sent_rate: 8e6,
    }
}

#[test]
fn fast_increase_adds_what_is_acknowledged() {
    let mut host = MockTransport::of("scream", &json!({"mode": "rfc"}));
    assert_eq!(host.observable("cwnd_packets"), 2.0);
    // One packet more may be in flight while there is no queue.
    assert_eq!(host.packets_in_flight(), 3);
    host.advance(RTT);
    host.ack(3);
    assert_eq!((host.observable("cwnd_packets"), host.observable("fast_increase")), (5.0, 1.0));
    // Not if little of the window is used.
    let mut window = Window::new(RFC, MSS, at(0));
    window.bytes = 100_000.0;
    window.update(&Update { in_flight: 60_000.0, ..full(&window, 10, 3000.0) });
    close(window.bytes, 100_000.0);
    window.update(&Update { in_flight: 65_000.0, ..full(&window, 20, 3000.0) });
    close(window.bytes, 103_000.0);
}

#[test]
fn pantheon_grows_no_faster_than_it_sends() {
    let mut window = Window::new(PANTHEON, MSS, at(0));
    window.bytes = 100_000.0;
    window.update(&full(&window, 10, 1500.0));
    window.history.sent(at(10), 200_000.0);
    // 10 ms at 8 Mbit/s are 10,000 bytes.
    let before = window.bytes;
    window.update(&full(&window, 20, 40_000.0));
    close(window.bytes - before, 12_500.0);
    // With less than 0.1 Mbit/s, two packets.
    let before = window.bytes;
    window.update(&Update { rate: 5e4, ..full(&window, 30, 40_000.0) });
    close(window.bytes - before, 3000.0);
}

#[test]
fn losses_and_marks_reduce_once_per_round_trip() {
    for (mode, params, event, left) in [
        ("rfc", json!({}), TestEvent { acked: 1, lost: 1, ..TestEvent::default() }, 0.8),
        ("rfc", json!({"beta_loss": 0.5}), TestEvent { acked: 1, lost: 1, ..TestEvent::default() }, 0.5),
        ("rfc", json!({"ecn": true}), MARKED, 0.9),
        ("rfc", json!({}), MARKED, 1.0),
        ("pantheon", json!({}), TestEvent { acked: 1, lost: 1, ..TestEvent::default() }, 0.6),
    ] {
        let mut params = params;
        params["mode"] = mode.into();
        let mut host = MockTransport::of("scream", &params);
        let marks = params["ecn"] == true;
        assert_eq!(host.scheme.capabilities().ecn, if marks { Ecn::Ect0 } else { Ecn::NotEct });
        (0..4).for_each(|_| {
            host.advance(RTT);
            host.ack(host.packets_in_flight());
        });
        let before = host.observable("cwnd_packets");
        assert!(before > 5.0, "{mode}: {before}");
        host.advance(RTT);
        host.play(event);
        if left < 1.0 {
            close(host.observable("cwnd_packets"), left * before);
            assert_eq!(host.observable("fast_increase"), 0.0);
        } else {
            assert!(host.observable("cwnd_packets") >= before);
        }
        // Further losses in this round trip are the same event. Outside fast increase the window barely moves.
        host.advance(ms(1));
        host.play(event);
        assert!(host.observable("cwnd_packets") > 0.95 * left * before, "{mode}");
    }
}

#[test]
fn window_steers_toward_the_target() {
    // One packet per window without a queue, half of one at half of the target, down above it.
    for (rules, gain_down) in [(RFC, 1.0), (PANTHEON, 2.0)] {
        for (delay, packets) in [(0.0, 1.0), (0.05, 0.5), (0.1, 0.0), (0.15, -0.5 * gain_down)] {
            let mut window = Window::new(rules, MSS, at(0));
            window.reduce(at(0), 1.0);
            window.bytes = 60_000.0;
            window.history.sent(at(0), 60_000.0);
            window.update(&full(&window, 10, 0.0));
            window.bytes = 60_000.0;
            let update = Update { delay, ..full(&window, 60, 60_000.0) };
            window.update(&Update { rate: 1e9, ..update });
            close((window.bytes - 60_000.0) / MSS as f64, packets);
        }
    }
    // The library reduces by at most a quarter at once, the RFC has no such limit.
    for (rules, left) in [(RFC, 3000.0), (PANTHEON, 45_000.0)] {
        let mut window = Window::new(rules, MSS, at(0));
        window.reduce(at(0), 1.0);
        window.bytes = 60_000.0;
        window.history.sent(at(0), 60_000.0);
        window.update(&Update { delay: 10.0, ..full(&window, 10, 60_000.0) });
        close(window.bytes, left);
    }
}

#[test]
fn window_follows_the_bytes_in_flight() {
    let mut window = Window::new(RFC, MSS, at(0));
    window.reduce(at(0), 1.0);
    window.bytes = 60_000.0;
    window.history.sent(at(1000), 20_000.0);
    window.update(&Update { in_flight: 10_000.0, ..full(&window, 1010, 1500.0) });
    close(window.bytes, 22_000.0);
    // The max of five seconds.
    window.history.sent(at(4000), 10_000.0);
    window.update(&Update { in_flight: 10_000.0, ..full(&window, 4010, 1500.0) });
    close(window.bytes, 22_000.0);
    window.history.sent(at(7000), 10_000.0);
    window.update(&Update { in_flight: 10_000.0, trend: 0.3, ..full(&window, 7010, 1500.0) });
    close(window.bytes, 11_000.0);
}

#[test]
fn fast_increase_ends_with_a_trend_and_resumes_after_five_seconds() {
    for rules in [RFC, PANTHEON] {
        let mut window = Window::new(rules, MSS, at(0));
        let mut step = |ms: u64, trend: f64| {
            window.history.sent(at(ms), window.bytes);
            window.update(&Update { trend, ..full(&window, ms, 1500.0) });
            window.fast_increase
        };
        assert!(step(100, 0.19));
        assert!(!step(200, 0.2));
        assert!(!step(5200, 0.1));
        assert!(step(5201, 0.1));
    }
}

#[test]
fn trend_is_that_of_its_formula() {
    // 20 samples on a line: their correlation with the next one is 0.85. The base is the first sample.
    let mut delay = QueueDelay::new(RFC);
    delay.update(at(0), -5_000_000, 1e9);
    let mut average = 0.0;
    for step in 1..=20 {
        delay.update(at(20 * step), -5_000_000 + 5_000 * step as i64, 0.1);
        close(delay.now, 0.005 * step as f64);
        average += 0.1 * (0.05 * step as f64 - average);
    }
    close(delay.average, average);
    close(delay.trend, 0.85 * average);
    let peak = delay.trend;
    // Jitter is no trend: high and low in turn.
    for step in 21..=60 {
        delay.update(at(20 * step), -5_000_000 + 100_000 * (step as i64 % 2), 0.1);
    }
    assert_eq!(delay.trend, 0.0);
    assert!(delay.peak_trend > 0.6 * peak && delay.peak_trend < 0.8 * peak.max(1.0));
}

#[test]
fn pantheon_samples_each_50_ms() {
    let mut delay = QueueDelay::new(PANTHEON);
    delay.update(at(0), 0, 0.1);
    let mut sampled = Vec::new();
    for step in 1..=9 {
        let before = delay.trend;
        delay.update(at(20 * step), 10_000 * step as i64, 0.1);
        if delay.trend != before {
            sampled.push(20 * step);
        }
    }
    // The very first one is no trend: a single sample differs from the zeros before it.
    assert_eq!(sampled, [120, 180]);
}

#[test]
fn pantheon_measures_the_base_again_under_a_standing_delay() {
    let mut delay = QueueDelay::new(PANTHEON);
    delay.update(at(0), 0, 0.1);
    // The path becomes 60 ms longer. The average of the min rises by a thousandth each 60 ms: it is 25 of 60 ms after
    // 540 samples, in 32 s.
    let found = (1..5_000).find(|step| {
        delay.update(at(20 * step), 60_000, 0.1);
        delay.now == 0.0
    });
    assert!(found.is_some_and(|step| (32_000..33_000).contains(&(20 * step))), "{found:?}");
}

#[test]
fn delay_target_rises_with_flows_that_fill_the_queue() {
    let mut target = DelayTarget::new(0.1, 0.4);
    // A stable delay of 0.2 s is the target; with losses half more; within the bounds.
    target.update(0.2, 0.0);
    close(target.now, 0.2);
    target.update(0.2, 0.01);
    close(target.now, 0.3);
    let mut target = DelayTarget::new(0.1, 0.4);
    target.update(3.0, 0.0);
    close(target.now, 0.4);
    // A varying delay lowers it: by a tenth while it is above the min.
    target.update(0.0, 0.0);
    close(target.now, 0.36);
    // Without room to rise it stays.
    let mut target = DelayTarget::new(0.1, 0.1);
    target.update(3.0, 0.1);
    close(target.now, 0.1);
}

const FAST: Network = Network { fast_increase: true, trend: 0.0, peak_trend: 0.0 };
const SLOW: Network = Network { fast_increase: false, ..FAST };

/// Make a meter after a second at this rate of packets and frames.
fn metered(rules: &Rules, bps: u64) -> Meter {
    let mut meter = Meter::new(rules, at(0));
    for step in 1..=20 {
        meter.count(bps / 160, bps / 160, bps / 160);
        meter.advance(at(50 * step), bps as f64);
    }
    meter
}

fn frame(ms: u64, waiting: u64) -> FrameEvent {
    FrameEvent { now: at(ms), bytes: 1000, waiting }
}

#[test]
fn target_ramps_up_by_200_kbps_per_second() {
    let meter = metered(&RFC, 10_000_000);
    close(meter.rate(), 1e7);
    let mut target = Target::new(RFC, at(0));
    // Half of the target per second while it is low.
    target.on_frame(&frame(200, 0), &meter, &FAST);
    close(target.rate, 330e3);
    target.on_frame(&frame(399, 0), &meter, &FAST);
    close(target.rate, 330e3);
    target.rate = 1e6;
    target.on_frame(&frame(400, 0), &meter, &FAST);
    close(target.rate, 1.04e6);
    // A loss leaves 0.9, and growth near that target is a fifth as fast.
    target.reduce(at(450), 0.9, meter.rate());
    close(target.rate, 936e3);
    target.on_frame(&frame(700, 0), &meter, &FAST);
    close(target.rate, 944e3);
}

#[test]
fn rfc_target_falls_while_frames_wait_and_follows_the_encoder() {
    let meter = metered(&RFC, 2_000_000);
    let mut target = Target::new(RFC, at(0));
    target.rate = 1e6;
    // 20 ms at 2 Mbit/s are 5000 bytes.
    target.on_frame(&frame(200, 5000), &meter, &SLOW);
    close(target.rate, 1.04e6);
    target.on_frame(&frame(400, 5001), &meter, &SLOW);
    close(target.rate, 0.95 * 1.08e6);
    // No more than twice what the encoder makes; once if there is congestion.
    target.rate = 9e6;
    target.on_frame(&frame(600, 0), &meter, &FAST);
    close(target.rate, 4e6);
    target.on_frame(&frame(800, 0), &meter, &Network { peak_trend: 1.0, ..FAST });
    close(target.rate, 2e6);
}

#[test]
fn program_target_follows_the_rate_less_waiting_bits() {
    let rules = Rules { max_rate: 50e6, start_rate: 2e6, ramp_up: 200e3, ..PANTHEON };
    let meter = metered(&rules, 2_000_000);
    let mut target = Target::new(rules, at(0));
    target.on_frame(&frame(200, 10_000), &meter, &SLOW);
    // The average of the waiting bits is half of them at first. The encoder gets a little more at low rates.
    let push = 1.0 + 0.05 * 50e3 / 2e6;
    close(target.rate, push * 2e6 - 0.3 * 40e3);
    target.on_frame(&frame(400, 10_000), &meter, &Network { trend: 0.5, ..SLOW });
    let push = 1.0 + 0.05 * 50e3 / (push * 2e6 - 12e3);
    close(target.rate, push * 2e6 * 0.95 - 0.3 * 60e3);
    // No growth if the encoder makes little.
    let mut idle = metered(&rules, 2_000_000);
    idle.media = 1e6;
    let before = target.rate;
    target.on_frame(&frame(600, 10_000), &idle, &SLOW);
    close(target.rate, before);
}

#[test]
fn pantheon_stays_at_its_maximum() {
    let mut host = MockTransport::of("scream", &json!({"mode": "pantheon"}));
    assert_eq!(host.scheme.media().unwrap().target_rate(), Rate(200_000));
    host.advance(RTT);
    host.lose();
    assert_eq!(host.scheme.media().unwrap().target_rate(), Rate(180_000));
    // It gains 2 bit/s per second.
    let meter = metered(&PANTHEON, 200_000);
    let mut target = Target::new(PANTHEON, at(0));
    target.rate = 100e3;
    target.on_frame(&frame(200, 0), &meter, &FAST);
    close(target.rate, 100e3 + 0.4);
}

#[test]
fn a_timeout_reduces_the_window_and_its_losses_the_target() {
    let mut host = MockTransport::of("scream", &json!({"mode": "rfc", "start_rate": 1.0}));
    for _ in 0..3 {
        host.advance(RTT);
        host.ack(host.packets_in_flight());
    }
    let before = host.observable("cwnd_packets");
    host.advance(ms(500));
    host.time_out();
    close(host.observable("cwnd_packets"), 0.8 * before);
    assert_eq!(host.observable("target_mbps"), 1.0);
    // Packets sent after the timeout arrive, and none of those in flight before.
    host.advance(RTT);
    host.ack(1);
    close(host.observable("target_mbps"), 0.9);
}

#[test]
fn a_silent_program_probes() {
    let mut host = MockTransport::of("scream", &json!({"mode": "pantheon"}));
    let before = host.packets_in_flight();
    host.advance(ms(199));
    host.send();
    assert_eq!(host.packets_in_flight(), before);
    host.advance(ms(1));
    host.send();
    assert_eq!(host.packets_in_flight(), before + 1);
}

#[test]
fn pacing_is_the_window_per_round_trip() {
    let mut host = MockTransport::of("scream", &json!({"mode": "rfc"}));
    assert_eq!(host.scheme.control().pacing_rate, Rate::ZERO);
    host.advance(RTT);
    host.ack(1);
    assert_eq!(host.scheme.control().pacing_rate, Rate(3 * MSS * 8 * 25));
    // The program paces only while there is a queue.
    let mut host = MockTransport::of("scream", &json!({"mode": "pantheon"}));
    for _ in 0..10 {
        host.advance(RTT);
        host.ack(host.packets_in_flight());
    }
    assert_eq!(host.scheme.control().pacing_rate, Rate::ZERO);
    for _ in 0..10 {
        host.advance(ms(140));
        host.ack(host.packets_in_flight());
    }
    assert!(host.scheme.control().pacing_rate > Rate::ZERO);
}

#[test]
fn feedback_leaves_at_its_intervals() {
    let data = |half: &mut ScreamReceiver, ms: u64, bytes: u64| {
        half.on_data(&ReceivedEvent { now: at(ms), number: 0, bytes, header: 0, ce: false });
        half.next_feedback()
    };
    let mut half = ScreamReceiver::new(Some(ms(5)));
    half.start(at(100), MSS);
    assert_eq!(half.next_feedback(), Timestamp::NEVER);
    assert!(data(&mut half, 100, 1000) <= at(100));
    half.write_feedback(at(100), &mut Vec::new());
    assert_eq!(half.next_feedback(), Timestamp::NEVER);
    assert_eq!(data(&mut half, 102, 1000), at(105));
    // By the rate: 100 ms at first, 20 ms at a Mbit/s, 40 ms at 0.25 Mbit/s.
    let mut half = ScreamReceiver::new(None);
    half.start(at(0), MSS);
    half.write_feedback(at(0), &mut Vec::new());
    assert_eq!(data(&mut half, 1, 1000), at(100));
    for (ms, bytes, interval) in [(200, 24_000, 20), (400, 6250, 40), (600, 10, 100)] {
        half.write_feedback(at(ms), &mut Vec::new());
        assert_eq!(data(&mut half, ms, bytes), at(ms + interval));
    }
}
