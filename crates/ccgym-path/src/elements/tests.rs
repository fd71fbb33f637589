//! Tests of elements without a queue.

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{TimeSpan, Timestamp};
use proptest::prelude::*;

use crate::element::{Fate, PathElement};
use crate::instantiate::build_element;
use crate::spec::{ElementSpec, JitterSpec, Param};

fn make(spec: &ElementSpec) -> Box<dyn PathElement> {
    Box::new(build_element(spec, 11, 0, &|_| None).expect("good spec"))
}

fn offer(element: &mut dyn PathElement, at: Timestamp) -> Option<Timestamp> {
    match element.offer(at, &mut Datagram { id: 0, flow: 0, size: 1500, ecn: Ecn::NotEct }) {
        Fate::Forward(t) => Some(t),
        Fate::Drop => None,
        Fate::Duplicate(_) | Fate::Hold => panic!("these elements hold and copy nothing"),
    }
}

fn lost(element: &mut dyn PathElement, packets: u64, gap: u64) -> f64 {
    for i in 0..packets {
        offer(element, Timestamp(i * gap));
    }
    let counters = element.counters();
    assert_eq!((counters.arrived, counters.forwarded + counters.dropped), (packets, packets));
    counters.dropped as f64 / packets as f64
}

fn ms(t: u64) -> TimeSpan {
    TimeSpan::from_millis(t)
}

#[test]
fn delay_counts_in_ticks() {
    let mut exact = make(&ElementSpec::Delay { delay: Param::Constant(ms(20)), tick: TimeSpan::ZERO });
    assert_eq!(offer(&mut *exact, Timestamp(1_999_999)), Some(Timestamp(21_999_999)));
    let mut ticking = make(&ElementSpec::Delay { delay: Param::Constant(ms(20)), tick: ms(1) });
    assert_eq!(offer(&mut *ticking, Timestamp(1_999_999)), Some(Timestamp(21_000_000)));
    assert_eq!(offer(&mut *ticking, Timestamp(2_000_000)), Some(Timestamp(22_000_000)));
    // A delay that is not a whole number of ticks is released on the next one.
    let mut odd = make(&ElementSpec::Delay { delay: Param::Constant(TimeSpan(1_500_000)), tick: ms(1) });
    assert_eq!(offer(&mut *odd, Timestamp(2_300_000)), Some(Timestamp(4_000_000)));
    let mut none = make(&ElementSpec::Delay { delay: Param::Constant(TimeSpan::ZERO), tick: ms(1) });
    assert_eq!(offer(&mut *none, Timestamp(2_300_000)), Some(Timestamp(2_300_000)));
}

#[test]
fn a_shrinking_delay_keeps_order() {
    let delay = Param::Steps(vec![(Timestamp::ZERO, ms(50)), (Timestamp::from_millis(10), ms(20))]);
    let mut element = make(&ElementSpec::Delay { delay, tick: TimeSpan::ZERO });
    let left: Vec<_> = [9, 10, 29, 31].map(|t| offer(&mut *element, Timestamp::from_millis(t))).to_vec();
    assert_eq!(left, [59, 59, 59, 59].map(|t| Some(Timestamp::from_millis(t))).to_vec());
    assert_eq!(offer(&mut *element, Timestamp::from_millis(40)), Some(Timestamp::from_millis(60)));
}

#[test]
fn loss_is_as_frequent_as_asked() {
    let loss = |p| ElementSpec::Loss { probability: Param::Constant(p) };
    assert!((lost(&mut *make(&loss(0.03)), 200_000, 1) - 0.03).abs() < 0.002);
    assert_eq!(lost(&mut *make(&loss(0.0)), 1000, 1), 0.0);
    assert_eq!(lost(&mut *make(&loss(1.0)), 1000, 1), 1.0);
    let probability = Param::Steps(vec![(Timestamp::ZERO, 0.0), (Timestamp(500), 1.0)]);
    assert_eq!(lost(&mut *make(&ElementSpec::Loss { probability }), 1000, 1), 0.5);
}

#[test]
fn bleaching_clears_what_it_is_asked_to() {
    let half = Param::Steps(vec![(Timestamp::ZERO, 0.0), (Timestamp(500), 1.0)]);
    for (probability, share, tolerance) in [
        (Param::Constant(0.03), 0.03, 0.002),
        (Param::Constant(0.0), 0.0, 0.0),
        (Param::Constant(1.0), 1.0, 0.0),
        (half, 0.9975, 0.0),
    ] {
        let mut element = make(&ElementSpec::Bleach { probability });
        let mut cleared = 0;
        for i in 0..200_000 {
            let sent = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce][i as usize % 3];
            let mut datagram = Datagram { id: i, flow: 0, size: 1500, ecn: sent };
            assert_eq!(element.offer(Timestamp(i), &mut datagram), Fate::Forward(Timestamp(i)));
            assert!(datagram.ecn == sent || datagram.ecn == Ecn::NotEct);
            cleared += u32::from(datagram.ecn == Ecn::NotEct);
        }
        let found = f64::from(cleared) / 200_000.0;
        assert!((found - share).abs() <= tolerance, "{found} instead of {share}");
        assert_eq!(element.counters().forwarded, 200_000);
    }
}

#[test]
fn copies_are_as_frequent_as_asked_and_leave_with_the_original() {
    for (probability, share, tolerance) in
        [(Param::Constant(0.03), 0.03, 0.002), (Param::Constant(0.0), 0.0, 0.0), (Param::Constant(1.0), 1.0, 0.0)]
    {
        let mut element = make(&ElementSpec::Duplicate { probability });
        let mut copies = 0;
        for i in 0..200_000 {
            match element.offer(Timestamp(i), &mut Datagram { id: 0, flow: 0, size: 1500, ecn: Ecn::NotEct }) {
                Fate::Duplicate(at) if at == Timestamp(i) => copies += 1,
                fate => assert_eq!(fate, Fate::Forward(Timestamp(i))),
            }
        }
        assert!((copies as f64 / 200_000.0 - share).abs() <= tolerance, "{copies} copies, expected a share of {share}");
        let c = element.counters();
        assert_eq!((c.arrived, c.dropped, c.duplicated, c.forwarded), (200_000, 0, copies, 200_000 + copies));
        assert_eq!(c.forwarded_bytes, 1500 * c.forwarded);
    }
}

#[test]
fn gilbert_elliott_is_bad_for_its_share_and_in_bursts() {
    let spec = ElementSpec::GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.19, loss_good: 0.0, loss_bad: 1.0 };
    // Stationary share of the bad state: 0.01 / (0.01 + 0.19).
    assert!((lost(&mut *make(&spec), 400_000, 1) - 0.05).abs() < 0.003);
    let mut element = make(&spec);
    let fates: Vec<_> = (0..200_000).map(|i| offer(&mut *element, Timestamp(i)).is_none()).collect();
    let losses = fates.iter().filter(|&&l| l).count() as f64;
    let bursts = fates.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
    assert!((losses / bursts - 1.0 / 0.19).abs() < 0.3, "mean burst {}", losses / bursts);
}

#[test]
fn gilbert_elliott_changes_its_state_before_it_loses() {
    let spec = ElementSpec::GilbertElliott { good_to_bad: 1.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
    let mut element = make(&spec);
    let passed: Vec<_> = (0..4).map(|i| offer(&mut *element, Timestamp(i)).is_some()).collect();
    assert_eq!(passed, [false, true, false, true]);
}

#[test]
fn on_and_off() {
    let spec = ElementSpec::OnOff { mean_on: ms(300), mean_off: ms(100), hold: false };
    assert!((lost(&mut *make(&spec), 2_000_000, 1_000_000) - 0.25).abs() < 0.02);
    assert!(offer(&mut *make(&spec), Timestamp::ZERO).is_some(), "starts on");
    let mut element = make(&ElementSpec::Intermittent { on: ms(3), off: ms(2) });
    let passed: Vec<_> = (0..10).map(|t| offer(&mut *element, Timestamp::from_millis(t)).is_some()).collect();
    assert_eq!(passed, [true, true, true, false, false, true, true, true, false, false]);
}

#[test]
fn held_while_off() {
    let held = || make(&ElementSpec::OnOff { mean_on: ms(300), mean_off: ms(100), hold: true });
    assert_eq!(lost(&mut *held(), 1_000_000, 1_000_000), 0.0);
    let (mut holds, mut drops) =
        (held(), make(&ElementSpec::OnOff { mean_on: ms(300), mean_off: ms(100), hold: false }));
    let (mut last, mut bursts) = (Timestamp::ZERO, 0);
    for t in 0..100_000 {
        let now = Timestamp::from_millis(t);
        let leaves = offer(&mut *holds, now).unwrap();
        // Late exactly where the other drops, in order, and together.
        assert_eq!(leaves > now, offer(&mut *drops, now).is_none());
        assert!(leaves >= last);
        bursts += u32::from(leaves > now && leaves > last);
        last = leaves;
    }
    assert!((200..300).contains(&bursts), "{bursts}");
}

#[test]
fn jitter_means() {
    for (distribution, mean) in [
        (JitterSpec::Uniform { max: ms(10) }, 5e6),
        (JitterSpec::Normal { mean: ms(10), std: ms(1) }, 10e6),
        (JitterSpec::Exponential { mean: ms(3) }, 3e6),
        // Up to 1 ms earlier if there is a wait: with probability 1 - 1/e.
        (JitterSpec::WiFi { mean: Param::Constant(ms(1)) }, 1e6 - 0.5e6 * (1.0 - (-1.0f64).exp())),
        (JitterSpec::WiFi { mean: Param::Constant(ms(7)) }, 7e6 - 0.5e6 * (1.0 - (-1.0f64).exp())),
    ] {
        let mut element =
            make(&ElementSpec::Jitter { distribution: distribution.clone(), reorder: true, flows: Vec::new() });
        assert!(!element.preserves_order());
        let sum: u64 = (0..100_000).filter_map(|_| offer(&mut *element, Timestamp::ZERO)).map(|t| t.0).sum();
        let found = sum as f64 / 1e5;
        assert!((found / mean - 1.0).abs() < 0.02, "{distribution:?}: mean {found}");
    }
}

#[test]
fn quantized_packets_leave_at_multiples_of_the_period() {
    let distribution = JitterSpec::Quantized { period: ms(60) };
    let mut element = make(&ElementSpec::Jitter { distribution, reorder: false, flows: Vec::new() });
    for (arrives, leaves) in [(0, 0), (1, 60), (59, 60), (60, 60), (61, 120)] {
        assert_eq!(offer(&mut *element, Timestamp(arrives * 1_000_000)), Some(Timestamp(leaves * 1_000_000)));
    }
}

#[test]
fn jitter_of_one_flow_lets_the_others_pass() {
    let distribution = JitterSpec::Quantized { period: ms(60) };
    let mut element = make(&ElementSpec::Jitter { distribution, reorder: false, flows: vec![2] });
    assert!(!element.preserves_order());
    for (flow, leaves) in [(0, 1), (1, 60), (2, 1)] {
        let mut packet = Datagram { id: 0, flow, size: 1500, ecn: Ecn::NotEct };
        let fate = element.offer(Timestamp(1_000_000), &mut packet);
        assert!(matches!(fate, Fate::Forward(at) if at == Timestamp(leaves * 1_000_000)), "flow {flow}");
    }
}

proptest! {
    #[test]
    fn nothing_leaves_early_and_order_is_kept(
        gaps in proptest::collection::vec(0u64..3_000_000, 1..60), delay in 0u64..30_000_000, tick in 0u64..2_000_000,
    ) {
        let jitter = JitterSpec::Normal { mean: TimeSpan(delay), std: ms(5) };
        for spec in [
            ElementSpec::Delay { delay: Param::Constant(TimeSpan(delay)), tick: TimeSpan(tick) },
            ElementSpec::Jitter { distribution: jitter, reorder: false, flows: Vec::new() },
        ] {
            let mut element = make(&spec);
            let (mut now, mut last) = (Timestamp::ZERO, Timestamp::ZERO);
            for gap in &gaps {
                now = Timestamp(now.0 + gap);
                let left = offer(&mut *element, now);
                prop_assert!(left >= Some(now) && left >= Some(last));
                last = left.unwrap_or(last);
                prop_assert_eq!(offer(&mut *element.clone(), now), offer(&mut *element.clone(), now));
            }
        }
    }
}
