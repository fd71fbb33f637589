//! Tests the whole scheme, and its parts with recordings of aiortc and str0m.

use std::collections::BTreeSet;

use ccgym_core::{Rate, TimeSpan, Timestamp};
use serde_json::json;

use super::arrival::Arrivals;
use super::detector::{Detector, Usage};
use super::filter::{Filter, Growth, TrendLine};
use super::loss::LossControl;
use super::rate_control::RateControl;
use super::received_rate::ReceivedRate;
use super::Mode;
use crate::testing::{recorded, MockTransport, TestEvent};

/// Usages by their number in recordings.
const USAGES: [Usage; 3] = [Usage::Normal, Usage::Under, Usage::Over];

fn ms(value: f64) -> Timestamp {
    Timestamp::from_millis(value as u64)
}

#[test]
fn groups_are_those_of_aiortc() {
    let mut arrivals = Arrivals::default();
    for (place, [sent, arrived, send_gap, gap]) in recorded("aiortc_arrivals").into_iter().enumerate() {
        let seen = arrivals.add(ms(sent), ms(arrived));
        let seen = seen.map(|one| (one.send_gap.round(), (one.delay + one.send_gap).round()));
        assert_eq!(seen, (!gap.is_nan()).then_some((send_gap, gap)), "packet {place}");
    }
}

#[test]
fn detector_is_that_of_aiortc() {
    let mut detector = Detector::new((0.0087, 0.039));
    let rows = recorded("aiortc_detections");
    for (place, &[offset, usage, threshold]) in rows.iter().enumerate() {
        let growth = Growth { value: 60.0 * offset, trend: offset };
        detector.detect(growth, 20.0, 20.0 * (place + 1) as f64);
        assert_eq!(detector.usage, USAGES[usage as usize], "group {place}");
        assert!((detector.threshold - threshold).abs() < 1e-9, "group {place}: {} ms", detector.threshold);
    }
    let seen = |usage| rows.iter().any(|row| row[1] == usage);
    assert!(seen(1.0) && seen(2.0));
}

#[test]
fn rate_is_that_of_aiortc() {
    let mut control = RateControl::new(Mode::Libwebrtc, 300_000.0);
    for (place, [usage, received, rate]) in recorded("aiortc_rates").into_iter().enumerate() {
        control.update(USAGES[usage as usize], Some(received), 100.0, 1100.0 + 100.0 * place as f64);
        // aiortc counts whole bits.
        assert!((control.rate - rate).abs() < 1e-3 * rate, "{place}: {}, not {rate}", control.rate);
    }
}

#[test]
fn growth_is_8_per_cent_per_second_and_a_cut_85_per_cent_of_the_received_rate() {
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
fn growth_stops_at_one_and_a_half_times_the_received_rate() {
    for (mode, limit) in [(Mode::Libwebrtc, 760_000.0), (Mode::Draft, 750_000.0)] {
        let mut control = RateControl::new(mode, 700_000.0);
        (0..50).for_each(|second| control.update(Usage::Normal, Some(500_000.0), 50.0, 1e3 * f64::from(second)));
        assert_eq!(control.rate, limit, "{mode:?}");
    }
}

#[test]
fn the_share_of_losses_sets_the_rate() {
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
    assert_eq!(host.scheme.media().unwrap().target_rate(), Rate(1_000_000));
    assert_eq!(host.scheme.control().pacing_rate, Rate(2_500_000));
    assert_eq!(host.scheme.control().cwnd, u64::MAX);
    // A fifth of the packets is lost: the loss-based rate is reduced by a tenth, the other grows.
    host.advance(TimeSpan::from_millis(150));
    host.play(TestEvent { acked: 80, lost: 20, ..TestEvent::default() });
    assert_eq!(host.scheme.media().unwrap().target_rate(), Rate(900_000));
    assert!(host.observable("delay_based_mbps") > 0.9);
    // All packets are lost: the rate halves, down to the min.
    host.time_out();
    assert_eq!(host.scheme.media().unwrap().target_rate(), Rate(450_000));
    (0..10).for_each(|_| host.time_out());
    assert_eq!(host.scheme.media().unwrap().target_rate(), Rate(30_000));
}

/// Recorded arrivals of str0m: packets, and the rate each 100 ms from 1150 ms on.
const PATTERNS: [&str; 4] = ["steady", "growing", "draining", "noisy"];

fn packets(pattern: &str) -> Vec<[f64; 6]> {
    recorded(&format!("str0m_{pattern}_packets"))
}

#[test]
fn trend_line_and_detector_are_those_of_str0m() {
    let mut seen = BTreeSet::new();
    for name in PATTERNS {
        let mut arrivals = Arrivals::default();
        let mut filter = Filter::TrendLine(TrendLine::default());
        let mut detector = Detector::new((0.0087, 0.039));
        let mut deployed = detector.clone();
        let mut groups = 0;
        for [sent, arrived, trend, value, threshold, usage] in packets(name) {
            let variation = arrivals.add(ms(sent), ms(arrived));
            groups += usize::from(variation.is_some());
            assert_eq!(!trend.is_nan(), variation.is_some() && groups >= 20, "{name}, {arrived} ms");
            let Some(variation) = variation else { continue };
            let Some(growth) = filter.add(&variation) else { continue };
            if !trend.is_nan() {
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-3);
                assert!(close(growth.trend, trend), "{name}, {arrived} ms: trend {}, not {trend}", growth.trend);
                assert!(close(growth.value, value), "{name}, {arrived} ms: {}, not {value}", growth.value);
                assert!(close(detector.threshold, threshold), "{name}, {arrived} ms: {} ms", detector.threshold);
                if groups == 20 {
                    // str0m's detector ignores groups before the window is full. libwebrtc's uses them with a trend of
                    // zero, and the threshold has come down.
                    assert_eq!((detector.threshold, deployed.threshold), (12.5, 6.0), "{name}");
                }
                detector.detect(growth, variation.send_gap, variation.arrived);
                assert_eq!(detector.usage, USAGES[usage as usize], "{name}, {arrived} ms");
                seen.insert((name, usage as usize));
            }
            deployed.detect(growth, variation.send_gap, variation.arrived);
        }
    }
    assert!(seen.contains(&("growing", 2)) && seen.contains(&("draining", 2)) && seen.contains(&("draining", 1)));
}

#[test]
fn rate_is_that_of_str0m_until_it_grows_after_a_cut() {
    let mut seen = BTreeSet::new();
    for name in PATTERNS {
        let mut received = ReceivedRate::weighted();
        let mut control = RateControl::new(Mode::Libwebrtc, 500_000.0);
        let mut packets = packets(name).into_iter().peekable();
        let mut before = 500_000.0;
        // Times of the latest changes of both rates; str0m refused to reduce; libwebrtc holds its rate.
        let (mut changed, mut changed_here, mut refused, mut held) = (None, None, false, true);
        let mut cuts = 0;
        for (place, [usage, arriving, rate]) in recorded(&format!("str0m_{name}_rates")).into_iter().enumerate() {
            let usage = usage as usize;
            let now = 1150.0 + 100.0 * place as f64;
            while let Some([_, arrived, ..]) = packets.next_if(|one| one[1] < now) {
                received.add(arrived, 1200.0);
            }
            let at = format!("{name}, {now} ms");
            let Some(bps) = received.bps() else {
                // str0m does not update its rate yet.
                assert_eq!((arriving, rate), (0.0, before), "{at}");
                continue;
            };
            // str0m counts whole bits.
            assert!((bps - arriving).abs() < 1e-5 * bps, "{at}: {bps} bit/s arrive, not {arriving}");
            let growth = |ms: f64| (before * (1.08f64.powf(ms.min(1000.0) / 1e3) - 1.0)).max(1000.0);
            let since = |then: Option<f64>| then.map_or(0.0, |then: f64| now - then);
            control.rate = before;
            control.update(USAGES[usage], Some(bps), 150.0, now);
            let too_early = usage == 2 && changed.is_some() && since(changed) < 150.0;
            let here = control.rate - before;
            let kind = if usage != 0 || cuts == 0 {
                assert!((control.rate - rate).abs() < 1e-5 * rate, "{at}: {}, not {rate}", control.rate);
                ["growth", "under", "over"][usage]
            } else {
                // The rules of libwebrtc: growth begins where the hold ends, additive near the mean of the maxima.
                let since_here = if held { 0.0 } else { since(changed_here) };
                let frame = before / 30.0;
                let packet = frame / (frame / 9600.0).ceil();
                let additive = packet / 500.0 * since_here;
                let expected = if control.near_maximum() { additive } else { growth(since_here) };
                assert!((here - expected).abs() < 1e-6, "{at}: {here} more, not {expected}");
                // The rules of str0m: a refused reduction costs one more update, all time since the last change counts,
                // and growth is multiplicative.
                let there = if refused { 0.0 } else { growth(since(changed)) };
                assert!((rate - before - there).abs() < 1e-6, "{at}: str0m {} more, not {there}", rate - before);
                if control.near_maximum() {
                    "additive"
                } else {
                    "multiplicative"
                }
            };
            seen.insert(kind);
            cuts += usize::from(usage == 2 && !too_early);
            if usage == 0 && !refused || usage == 2 && !too_early {
                changed = Some(now);
            }
            if usage == 0 || usage == 2 && !too_early {
                changed_here = Some(now);
            }
            held = usage == 1 || usage == 2 && (!too_early || held);
            refused = too_early;
            before = rate;
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn over_use_as_deployed_with_nothing_or_more_than_the_rate_arriving() {
    // The received rate is unknown: each update halves the rate, and growth continues from there.
    let mut control = RateControl::new(Mode::Libwebrtc, 800_000.0);
    control.update(Usage::Normal, None, 150.0, 0.0);
    for (now, rate) in [(10.0, 400_500.0), (20.0, 200_250.0)] {
        control.update(Usage::Over, None, 150.0, now);
        assert_eq!(control.rate, rate);
    }
    // 0.85 of the received rate is above the rate: there is no max to return to, so it stays; then there is one.
    let mut control = RateControl::new(Mode::Libwebrtc, 800_000.0);
    control.update(Usage::Over, Some(1e6), 150.0, 0.0);
    assert_eq!(control.rate, 800_000.0);
    control.rate = 870_000.0;
    control.update(Usage::Over, Some(1.1e6), 150.0, 500.0);
    assert_eq!(control.rate, 850_000.0);
    // A reduction is an RTT after the last change, unless less than half arrives.
    control.update(Usage::Over, Some(900_000.0), 150.0, 649.0);
    assert_eq!(control.rate, 850_000.0);
    control.update(Usage::Over, Some(400_000.0), 150.0, 649.0);
    assert_eq!(control.rate, 340_000.0);
}
