use ccgym_core::{Rng, TimeSpan, Timestamp};
use serde_json::json;

use super::{Experimental, Mode, Sample, MEBIBIT};
use crate::monitor_interval::sender::{Controller, Next, View};
use crate::monitor_interval::Interval;
use crate::pcc_experimental::utility::{utility, Outcome, Weights};
use crate::testing::{recorded, MockTransport};

const WEIGHTS: Weights = Weights { latency: 1.0, loss: 11.35 };

/// The states in the program's order.
const MODES: [Mode; 3] = [Mode::Starting, Mode::Probing, Mode::DecisionMade];

fn sender() -> Experimental {
    Experimental::new(WEIGHTS, 0.05, 2.0 * MEBIBIT)
}

/// Compare numbers; the program uses 32-bit floats.
fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs().max(1.0)
}

/// Intervals of PCC-Uspace cd43e34 (`tests/recorders/pcc_uspace.cpp`), with round trips of 40 ms that grow by a share.
#[test]
fn utilities_of_the_program() {
    for [packets, lost, micros, growth, expected] in recorded("pcc_uspace_utilities") {
        let loss = lost / packets;
        let (packets, lost) = (packets as u64, lost as u64);
        let acked = packets - lost;
        let rtt = |k: u64| (40_000.0 * (1.0 + growth * k as f64 / packets as f64)).trunc();
        let half = acked / 2;
        let outcome = Outcome {
            packets,
            bytes: packets * 1400,
            loss,
            seconds: micros / 1e6,
            rtt_halves: ((0..half).map(rtt).sum(), (half..2 * half).map(rtt).sum()),
        };
        let found = utility(&WEIGHTS, &outcome);
        assert!(close(found, expected), "{packets} {lost} {growth}: found {found}, expected {expected}");
    }
}

/// A flow whose best rate is 100 and then 20 Mbit/s (of 2²⁰ bits), with noisy utilities.
#[test]
fn decisions_of_the_program() {
    let mut sender = sender();
    for (i, row) in recorded::<10>("pcc_uspace_decisions").into_iter().enumerate() {
        let (results, [mode, rate]) = (&row[..8], [row[8], row[9]]);
        let results = results.chunks(2).filter(|one| !one[0].is_nan());
        sender.useful = results.map(|one| Sample { id: 0, rate: one[0], utility: Some(one[1]) }).collect();
        sender.conclude();
        assert_eq!(sender.mode, MODES[mode as usize], "decision {i}");
        assert!(close(sender.rate, rate), "decision {i}: {} {rate}", sender.rate);
    }
}

/// Trials in random order at r(1±0.05), then the rate itself until the results are in.
#[test]
fn trials() {
    let mut rng = Rng::stream(1, "test", 0);
    let mut view = View { mss: 1500, rtt: 0.04, next_id: 0, app_limited: false, rtt_at_end: None, rng: &mut rng };
    let mut first = [0, 0];
    for _ in 0..50 {
        let mut sender = sender();
        sender.on_rtt(Timestamp::ZERO, 0.04);
        sender.mode = Mode::Probing;
        sender.rate = 10e6;
        let rates: Vec<_> = (0..6).map(|id| (sender.begin(id, &mut view).0 / 1e5).round()).collect();
        for pair in rates[..4].chunks(2) {
            assert!(pair == [105.0, 95.0] || pair == [95.0, 105.0], "{rates:?}");
        }
        assert_eq!(rates[4..], [100.0, 100.0]);
        first[usize::from(rates[0] > 100.0)] += 1;
    }
    assert!(first.iter().all(|&n| n > 10), "{first:?}");
}

/// If RTTs grow by 2 % within an interval the rate falls, with 1 % it does not.
#[test]
fn round_trips_that_grow() {
    // Round trips of 40 ms; the means of the halves of 100 packets are 50 gaps of 1 ms apart.
    for (slope, up) in [(0.0, true), (0.008, true), (0.05, false)] {
        let mut sender = sender();
        sender.on_rtt(Timestamp::ZERO, 0.04);
        (sender.mode, sender.rate) = (Mode::DecisionMade, 12e6);
        (sender.latest, sender.step.previous) = ((11.5e6, 8.0), 0.5);
        let mut rng = Rng::stream(1, "test", 0);
        let mut view = View { mss: 1500, rtt: 0.04, next_id: 1, app_limited: false, rtt_at_end: None, rng: &mut rng };
        sender.begin(0, &mut view);
        let next = sender.end(&Interval::of(0, 12e6, 100, 100, slope), &mut view);
        assert_eq!(next, Next::Begin);
        assert_eq!(sender.rate > 12e6, up, "{slope}: {}", sender.rate);
    }
}

/// An RTT 30 % above the one at the interval's begin ends the start at half the rate.
#[test]
fn inflation_ends_the_start() {
    for (factor, mode, rate) in [(1.29, Mode::Starting, 11.2e6), (1.31, Mode::Probing, 5.6e6)] {
        let mut sender = sender();
        sender.on_rtt(Timestamp::ZERO, 0.04);
        sender.rtt_at_begin = Some(0.04);
        sender.on_rtt(Timestamp::ZERO, 0.04 * factor);
        assert_eq!((sender.mode, sender.rate), (mode, rate), "{factor}");
    }
}

/// A loss is detected two RTTs and four deviations after the packet left; both start at seconds.
#[test]
fn losses_are_awaited() {
    let mut sender = sender();
    assert_eq!(sender.patience(), TimeSpan::from_millis(40_000));
    for _ in 0..200 {
        sender.on_rtt(Timestamp::ZERO, 0.04);
    }
    assert!((sender.patience().as_secs_f64() - 0.08).abs() < 1e-6, "{:?}", sender.patience());
    sender.on_rtt(Timestamp::ZERO, 0.12);
    // 50 ms, and an eighth of the remaining 70 ms.
    assert!((sender.patience().as_secs_f64() - 0.135).abs() < 1e-6, "{:?}", sender.patience());
}

/// Packets that all left at once, or an application that pauses, give no result.
#[test]
fn no_result_without_a_rate() {
    let mut host = MockTransport::of("pcc_experimental", &json!({}));
    for _ in 0..20 {
        host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
        host.app_limit();
    }
    assert_eq!(host.observable("base_rate_mbps"), 11.2);
}
