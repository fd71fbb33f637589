use ccgym_core::{TimeSpan, Timestamp};
use serde_json::json;

use super::alone::Alone;
use super::drain::Drain;
use super::latest::Latest;
use super::losses::Losses;
use super::many_flows::ManyFlows;
use super::probe::{Probe, Reason, Verdict};
use super::queue_raise::QueueRaise;
use super::recent;
use super::round::{Next, Round, Seen, Wants};
use crate::testing::{ms, scheme, MockTransport, MSS};

/// Make the measurements of a round with a window and an RTT in ms, at 12 Mbit/s and 40 ms: 40 packets of 1 ms each.
fn seen(now_ms: u64, window: f64, rtt_ms: f64) -> Seen {
    let (base, rtt) = (0.04, rtt_ms / 1e3);
    let rate = window / rtt;
    let own = 0.2 * rate.sqrt();
    Seen {
        now: Timestamp::ZERO + TimeSpan::from_millis(now_ms),
        base,
        rtt,
        spread: 0.0,
        queue: rtt - base,
        window,
        rate,
        waiting: window * (rtt - base) / rtt,
        wants: Wants { now: own, lasting: own, own },
        loss: 0.0,
        lost: 0,
        excess: false,
        limited: true,
        noise: 0.0,
    }
}

fn alone() -> Alone {
    let mut alone = Alone::default();
    alone.enter(Timestamp::ZERO, 1000.0);
    alone
}

fn window_after(alone: &mut Alone, seen: &Seen, window: f64) -> f64 {
    match alone.next(seen, window, 0.2, &mut seen.now.clone()) {
        Next::Window(window) => window,
        other => panic!("{other:?}"),
    }
}

/// The link has become faster: steps grow, and the window is twenty times as large within twelve rounds.
#[test]
fn an_empty_queue_lets_the_window_grow() {
    let (mut alone, mut window) = (alone(), 40.0);
    for round in 1..13 {
        let next = window_after(&mut alone, &seen(40 * round, window, 40.0), window);
        assert!(next > window && next < 1.7 * window, "{round}: {window} {next}");
        window = next;
    }
    assert!(window > 20.0 * 40.0, "{window}");
}

/// If the number of waiting packets is as wanted the window stays; with more it falls, with less it rises.
#[test]
fn the_window_has_a_fixed_point() {
    // 40 packets of 1000 per second, and 0.2·√1000 in the queue.
    let full = 40.0 + 0.2 * 1000f64.sqrt();
    let same = window_after(&mut alone(), &seen(1, full, full), full);
    assert!((same - full).abs() < 1e-9, "{same} {full}");
    assert!(window_after(&mut alone(), &seen(1, 50.0, 50.0), 50.0) < 48.5);
    assert!(window_after(&mut alone(), &seen(1, 42.0, 42.0), 42.0) > 42.5);
}

#[test]
fn losses_reduce_the_wanted_packets_and_stop_growth() {
    let mut alone = alone();
    let lossy = Seen { loss: 0.1, lost: 5, excess: true, ..seen(1, 50.0, 40.0) };
    let after = window_after(&mut alone, &lossy, 50.0);
    assert_eq!(alone.pressure, 0.5);
    assert!(after < 48.0);
    // Nothing waits, but 45 packets were too many a moment ago.
    for round in 1..10 {
        assert!(window_after(&mut alone, &seen(40 * round, 45.0, 40.0), 45.0) <= 45.0 + 1e-9);
    }
    // An empty queue after losses in a long one means that the link has become faster.
    let mut alone = self::alone();
    window_after(&mut alone, &Seen { loss: 0.1, lost: 5, excess: true, ..seen(1, 50.0, 80.0) }, 50.0);
    assert!(window_after(&mut alone, &seen(40, 45.0, 40.0), 45.0) > 45.0);
    let mut alone = self::alone();
    window_after(&mut alone, &lossy, 50.0);
    let later = window_after(&mut alone, &seen(2000, 45.0, 40.0), 45.0);
    assert!(later > 45.0, "{later}");
}

/// A window that is not used shows nothing of the path.
#[test]
fn an_unused_window_stays() {
    let unused = Seen { limited: false, ..seen(1, 20.0, 40.0) };
    assert!(matches!(alone().next(&unused, 20.0, 0.2, &mut unused.now.clone()), Next::Hold));
}

/// Eight rounds and a second of a queue that does not get shorter: the flow probes.
#[test]
fn a_standing_queue_starts_a_probe() {
    let mut alone = alone();
    for round in 1..60 {
        let now = seen(60 * round, 60.0, 60.0);
        if let Next::Probe(probe) = alone.next(&now, 60.0, 0.2, &mut now.now.clone()) {
            assert_eq!(probe.reason, Reason::Standing);
            assert!(probe.reduced < 0.71 * 40.0 && probe.back < 50.0, "{probe:?}");
            assert!((16..=18).contains(&round), "{round}");
            return;
        }
    }
    panic!("it never looked");
}

/// RTTs grow while the window shrinks, over seconds: other flows take the capacity it yields.
#[test]
fn competes_if_others_take_the_capacity() {
    let mut alone = alone();
    let mut window = 40.0;
    for round in 1..200 {
        window *= 0.99;
        let rtt = 44.0 + 0.02 * round as f64;
        if let Next::Compete(from) =
            alone.next(&seen(40 * round, window, rtt), window, 0.2, &mut Timestamp(40_000_000 * round))
        {
            assert!(from > window, "{from} {window}");
            assert!((24..80).contains(&round), "{round}");
            return;
        }
    }
    panic!("it never competed");
}

fn verdict(reason: Reason, before_ms: f64, after_ms: f64, span_ms: f64) -> Verdict {
    let probe = Probe::new(reason, 30.0, 40.0, (before_ms - 40.0) / 1e3, before_ms / 1e3);
    probe.judge(&seen(1, 30.0, after_ms), span_ms / 1e3, false, 0.0, 30.0)
}

#[test]
fn verdicts_of_probes() {
    // The queue left with the packets; it stayed; it stayed, and had not changed before either.
    for (reason, after, expected) in [
        (Reason::Standing, 43.0, Verdict::Own),
        (Reason::Standing, 58.0, Verdict::Others),
        (Reason::Competing, 44.0, Verdict::Own),
    ] {
        assert_eq!(verdict(reason, 60.0, after, 5.0), expected, "{reason:?} {after}");
    }
    assert_eq!(verdict(Reason::Standing, 60.0, 60.0, 0.1), Verdict::Longer);
    assert_eq!(verdict(Reason::Age, 60.0, 60.1, 0.1), Verdict::Longer);
    assert_eq!(verdict(Reason::Age, 60.0, 50.0, 0.1), Verdict::Nothing);
    assert!(matches!(verdict(Reason::Started, 60.0, 58.0, 5.0), Verdict::Again(window) if window < 30.0));
    // Two probes show the same RTT, far below the one before: the path itself.
    let probe = Probe::new(Reason::Competing, 30.0, 90.0, 0.05, 0.09);
    assert_eq!(probe.judge(&seen(1, 30.0, 60.0), 0.01, false, 0.0601, 30.0), Verdict::Longer);
}

/// The queue raise lasts while other flows make room, which they do not on an empty link.
#[test]
fn the_queue_raise_lasts_while_the_rate_grows() {
    let rounds = |growth: f64, empty: bool| {
        let (mut queue_raise, mut rate) = (QueueRaise::default(), 1000.0);
        (1..200).find(|_| {
            queue_raise.pass(rate, empty);
            rate *= growth;
            queue_raise.gain < 1.0
        })
    };
    let (alone, growing) = (rounds(1.0, false).unwrap(), rounds(1.03, false).unwrap());
    assert!(alone < 10, "{alone}");
    assert!(growing > 5 * alone, "{growing} {alone}");
    assert!(rounds(1.5, true).unwrap() < 4);
}

/// A loss of half of a link's capacity is excessive; the path's usual loss is not, and neither is a packet or two.
#[test]
fn usual_losses_are_not_excessive() {
    let mut losses = Losses::default();
    assert!(losses.exceed(500, 1000, true) && losses.exceed(500, 1000, false));
    assert!(!losses.exceed(2, 16, false));
    assert!(losses.exceed(30, 1000, false));
    assert!(!losses.exceed(30, 1000, true), "a new path may lose so many");
    for _ in 0..10 {
        losses.learn(30, 1000);
    }
    assert!((losses.usual - 0.03).abs() < 1e-9, "{}", losses.usual);
    assert!(!losses.exceed(30, 1000, false));
    assert!(losses.exceed(80, 1000, false));
    losses.learn(10_000, 10_000);
    assert_eq!(losses.usual, 0.06);
}

/// The ACK rate while a queue drains is the rate of the link: one packet per millisecond, after seconds with few
/// packets. The window that follows is near half of start-up's, or a quarter if packets were lost.
#[test]
fn a_queue_that_drains_shows_the_rate() {
    let (mut drain, mut lossy) = (Drain::new(Timestamp::ZERO, false), Drain::new(Timestamp::ZERO, true));
    let mut now = Timestamp::ZERO;
    for (packets, gap) in [(20, 100), (500, 1)] {
        for _ in 0..packets {
            now += ms(gap);
            drain.count(now, 1);
            lossy.count(now, 1);
        }
    }
    let product = drain.window(0.04, 39.0);
    assert!((product - 40.0).abs() < 1.0, "{product}");
    assert_eq!([drain.window(0.04, 20.0), drain.window(0.04, 60.0)], [25.0, 60.0]);
    assert_eq!([lossy.window(0.04, 60.0), lossy.window(0.04, 100.0)], [product, 50.0]);
}

/// Blocks have equal length in time: a long round does not measure a shorter queue than a short one.
#[test]
fn the_standing_round_trip_is_a_mean_of_minima() {
    let mut round = Round::new(Timestamp::ZERO, 0);
    for i in 0..240u64 {
        // 1 ms apart; a queue of 10 ms, of 20 in the second half, and jitter.
        let queue = if i < 120 { 10 } else { 20 };
        round.sample(Timestamp(i * 1_000_000), (40 + queue + i % 5) as f64 / 1e3);
    }
    assert!((round.standing(0.04) - 0.053).abs() < 0.003, "{}", round.standing(0.04));
    assert_eq!(round.min, 0.05);
    // With a base RTT of 10 ms a span of 14 is a burst.
    assert_eq!(round.standing(0.01), 0.05);
}

/// Sixteen packets in 2 ms, or four in a quarter of the base RTT; of packets that arrive in a burst the last has waited
/// the shortest time.
#[test]
fn the_latest_round_trip_excludes_bursts() {
    let ends = |gap_us: u64| {
        let mut latest = Latest::default();
        (0..100u64)
            .find_map(|i| latest.sample(Timestamp(i * gap_us * 1000), 0.05 + i as f64, Some(0.04)).map(|_| i + 1))
    };
    assert_eq!([ends(10_000), ends(4_000), ends(200), ends(50), ends(0)], [Some(4), Some(4), Some(16), Some(41), None]);
    let mut latest = Latest::default();
    let starting = (0..100).find(|_| latest.sample(Timestamp::ZERO, 0.05, None).is_some());
    assert_eq!(starting, Some(15));
}

#[test]
fn extremes_are_forgotten() {
    let mut base = recent(f64::INFINITY, f64::min);
    assert_eq!(base.get(), Some(f64::INFINITY));
    base.update(Timestamp(1), 0.04);
    base.update(Timestamp(11_000_000_000), 0.06);
    assert_eq!(base.get(), Some(0.04));
    base.update(Timestamp(22_000_000_000), 0.06);
    assert_eq!(base.get(), Some(0.06));
    base.restart(Timestamp(23_000_000_000), 0.08);
    assert_eq!(base.get(), Some(0.08));
}

#[test]
fn start_up_ends_at_a_queue_of_its_own() {
    let mut host = MockTransport::of("kestrel", &json!({}));
    assert_eq!(host.scheme.state(), "startup");
    while host.scheme.state() == "startup" {
        let rtt = 40.0 * (host.window() / 40.0).max(1.0);
        host.ack_round(TimeSpan::from_secs_f64(rtt / 1e3), TimeSpan(100_000));
        assert!(host.window() < 200.0);
    }
    assert_eq!(host.scheme.state(), "look");
    assert!(host.window() < 100.0, "{}", host.window());
}

#[test]
fn timeouts_leave_one_packet() {
    let mut host = MockTransport::of("kestrel", &json!({}));
    host.ack_round(ms(40), TimeSpan::ZERO);
    host.time_out();
    assert_eq!((host.window(), host.scheme.state()), (1.0, "startup"));
}

/// A queue that stays belongs to other flows, until an empty one shows that it was the flow's own.
#[test]
fn many_flows_raise_the_gain() {
    let at = |s: u64| Timestamp(s * 1_000_000_000);
    let mut many_flows = ManyFlows::default();
    assert_eq!(many_flows.gain(at(1), 0.5), 0.5);
    many_flows.probe(at(1), 0.006, 0.01);
    assert_eq!(
        [many_flows.gain(at(2), 0.5), many_flows.gain(at(2), 2.0), many_flows.gain(at(21), 0.5)],
        [1.5, 2.0, 0.5]
    );
    many_flows.probe(at(30), 0.006, 0.01);
    many_flows.probe(at(33), 0.004, 0.01);
    assert_eq!(many_flows.gain(at(34), 0.5), 0.5);
}

/// The number of waiting packets scales with the gain; the detection of other flows does not.
#[test]
fn the_gain_scales_the_waiting_packets() {
    let mut kestrel = scheme("kestrel", &json!({}));
    assert!(kestrel.capabilities().pacing_required);
    kestrel.steerable().unwrap().steer(0.5);
    let gain = kestrel.observables().into_iter().find(|(name, _)| *name == "gain");
    assert_eq!(gain, Some(("gain", 0.5)));
    assert_eq!(MSS, 1500);
}
