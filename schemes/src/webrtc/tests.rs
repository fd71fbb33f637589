//! The whole scheme, and its parts against recordings of aiortc.

use ccgym_core::{Rate, TimeSpan, Timestamp};
use serde_json::json;

use super::arrival::Arrivals;
use super::detector::{Detector, Usage};
use super::filter::Growth;
use super::loss::LossControl;
use super::rate_control::RateControl;
use super::{recorded, Mode};
use crate::testing::{MockTransport, TestEvent};

const USAGES: [Usage; 3] = [Usage::Normal, Usage::Under, Usage::Over];

#[test]
fn groups_are_those_of_aiortc() {
    let mut arrivals = Arrivals::default();
    for (place, (sent, arrived, expected)) in recorded::ARRIVALS.into_iter().enumerate() {
        let seen = arrivals.add(Timestamp::from_millis(sent), Timestamp::from_millis(arrived));
        let seen = seen.map(|one| (one.send_gap.round() as i64, (one.delay + one.send_gap).round() as i64));
        assert_eq!(seen, expected, "packet {place}");
    }
}

#[test]
fn detector_is_that_of_aiortc() {
    let mut detector = Detector::new((0.0087, 0.039));
    for (place, (offset, usage, threshold)) in recorded::DETECTIONS.into_iter().enumerate() {
        let growth = Growth { value: 60.0 * offset, trend: offset };
        detector.detect(growth, 20.0, 20.0 * (place + 1) as f64);
        assert_eq!(detector.usage, USAGES[usage as usize], "group {place}");
        assert!((detector.threshold - threshold).abs() < 1e-9, "group {place}: {} ms", detector.threshold);
    }
    let seen = |usage| recorded::DETECTIONS.iter().any(|one| one.1 == usage);
    assert!(seen(1) && seen(2));
}

#[test]
fn rate_is_that_of_aiortc() {
    let mut control = RateControl::new(Mode::Libwebrtc, 300_000.0);
    for (place, (usage, received, rate)) in recorded::RATES.into_iter().enumerate() {
        control.update(USAGES[usage as usize], Some(received as f64), 100.0, 1100.0 + 100.0 * place as f64);
        // aiortc counts whole bits.
        assert!((control.rate - rate as f64).abs() < 1e-3 * rate as f64, "{place}: {}, not {rate}", control.rate);
    }
}

#[test]
fn growth_is_8_per_cent_per_second_and_a_cut_85_per_cent_of_what_arrives() {
    for mode in [Mode::Libwebrtc, Mode::Draft] {
        let mut control = RateControl::new(mode, 1e6);
        control.update(Usage::Normal, Some(1e6), 50.0, 0.0);
        let before = control.rate;
        for step in 1..=10 {
            control.update(Usage::Normal, Some(1e6), 50.0, 100.0 * f64::from(step));
        }
        assert!((control.rate / before - 1.08).abs() < 1e-9, "{mode:?}: {}", control.rate / before);
        control.update(Usage::Over, Some(900_000.0), 50.0, 1100.0);
        assert!((control.rate - 765_000.0).abs() < 1e-6, "{mode:?}: {}", control.rate);
        // From then on the steps are additive: half a packet per response time of 150 ms, or more.
        control.update(Usage::Under, Some(700_000.0), 50.0, 1200.0);
        control.update(Usage::Normal, Some(700_000.0), 50.0, 1300.0);
        control.update(Usage::Normal, Some(700_000.0), 50.0, 1400.0);
        let low = control.rate;
        control.update(Usage::Normal, Some(700_000.0), 50.0, 1500.0);
        let packet = low / 30.0 / (low / 30.0 / 9600.0).ceil();
        assert!((control.rate - low - 0.5 * packet * 100.0 / 150.0).abs() < 1.0, "{mode:?}: {}", control.rate - low);
    }
}

#[test]
fn growth_stops_at_one_and_a_half_times_what_arrives() {
    for (mode, limit) in [(Mode::Libwebrtc, 760_000.0), (Mode::Draft, 750_000.0)] {
        let mut control = RateControl::new(mode, 700_000.0);
        (0..50).for_each(|second| control.update(Usage::Normal, Some(500_000.0), 50.0, 1e3 * f64::from(second)));
        assert_eq!(control.rate, limit, "{mode:?}");
    }
}

#[test]
fn loss_is_answered_as_its_share_says() {
    for (mode, growth) in [(Mode::Libwebrtc, 1_081_000.0), (Mode::Draft, 1_050_000.0)] {
        for (lost, expected) in [(1, growth), (5, 1e6), (20, 900_000.0)] {
            let mut control = LossControl::new(mode, 1e6);
            control.count(100, lost);
            control.update(1e9, 50.0, 2000.0);
            assert!((control.rate - expected).abs() < 1e-6, "{mode:?}, {lost} %: {}", control.rate);
        }
    }
}

#[test]
fn target_is_the_lower_rate_and_pacing_is_above_it() {
    let mut host = MockTransport::of("webrtc", &json!({"start_rate": 1.0}));
    assert_eq!(host.scheme.media_target(), Some(Rate(1_000_000)));
    assert_eq!(host.scheme.control().pacing_rate, Rate(2_500_000));
    assert_eq!(host.scheme.control().cwnd, u64::MAX);
    // A fifth of the packets is lost: the loss-based rate is cut by a tenth, the other grows.
    host.advance(TimeSpan::from_millis(150));
    host.play(TestEvent { acked: 80, lost: 20, ..TestEvent::default() });
    assert_eq!(host.scheme.media_target(), Some(Rate(900_000)));
    assert!(host.observable("delay_based_mbps") > 0.9);
    // All is lost: half of it, down to the minimum.
    host.time_out();
    assert_eq!(host.scheme.media_target(), Some(Rate(450_000)));
    (0..10).for_each(|_| host.time_out());
    assert_eq!(host.scheme.media_target(), Some(Rate(30_000)));
}
