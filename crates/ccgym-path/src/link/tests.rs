//! Tests of whole links: worked examples of mahimahi's rules, and equivalence with a slow, literal model.

use std::collections::VecDeque;
use std::sync::Arc;

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{Rate, TimeSpan, Timestamp, NANOS_PER_MS};
use proptest::prelude::*;

use crate::element::{Fate, LinkEvent, PathElement, Release};
use crate::instantiate::build_element;
use crate::link::rate_clock::RateClock;
use crate::link::rate_server::RateServer;
use crate::link::trace_clock::TraceClock;
use crate::link::trace_server::TraceServer;
use crate::link::waiting::Limits;
use crate::link::{FifoLink, HeldLink};
use crate::log::{parse_log, write_events, LogHeader, LogLine};
use crate::queue;
use crate::spec::{ElementSpec, LimitSpec, Param, QueueSpec, ScheduleSpec};
use crate::trace::DeliveryTrace;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Left(Timestamp),
    Dropped,
    Held,
}

/// Interval of the driver's polls; the result must not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Polling {
    AtEachEvent,
    AtEachArrival,
    OnlyAtTheEnd,
}

type Arrival = (Timestamp, u32);

fn settle(outcomes: &mut [Outcome], out: &mut Vec<Release>) {
    for release in out.drain(..) {
        let (id, outcome) = match release {
            Release::Forward(datagram, at) => (datagram.id, Outcome::Left(at)),
            Release::Drop(datagram, _) => (datagram.id, Outcome::Dropped),
        };
        assert_eq!(outcomes[id as usize], Outcome::Held, "packet {id} released twice");
        outcomes[id as usize] = outcome;
    }
}

fn poll_through(link: &mut dyn PathElement, until: Timestamp, outcomes: &mut [Outcome]) {
    let mut out = Vec::new();
    while link.next_event() < until {
        let at = link.next_event();
        out.extend(std::iter::from_fn(|| link.release(at)));
        assert!(!out.is_empty() || link.next_event() > at, "poll at {at:?} did nothing and asks again");
        settle(outcomes, &mut out);
    }
}

fn drive(link: &mut dyn PathElement, arrivals: &[Arrival], polling: Polling) -> Vec<Outcome> {
    drive_from(link, arrivals, 0, polling)
}

fn drive_from(link: &mut dyn PathElement, arrivals: &[Arrival], first: u64, polling: Polling) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Held; arrivals.len() + first as usize];
    for (id, &(at, size)) in (first..).zip(arrivals) {
        match polling {
            Polling::AtEachEvent => poll_through(link, at, &mut outcomes),
            Polling::AtEachArrival => {
                let mut out = Vec::new();
                out.extend(std::iter::from_fn(|| link.release(at)));
                settle(&mut outcomes, &mut out);
            }
            Polling::OnlyAtTheEnd => {}
        }
        let mut datagram = Datagram { id, flow: (id % 3) as u32, size, ecn: Ecn::NotEct };
        match link.offer(at, &mut datagram) {
            Fate::Forward(t) => outcomes[id as usize] = Outcome::Left(t),
            Fate::Drop => outcomes[id as usize] = Outcome::Dropped,
            Fate::Duplicate(_) => panic!("a link copies nothing"),
            Fate::Hold => {}
        }
    }
    poll_through(link, Timestamp::NEVER, &mut outcomes);
    outcomes.split_off(first as usize)
}

fn trace(times: &[u64]) -> Arc<DeliveryTrace> {
    Arc::new(DeliveryTrace::from_ms("t", times).expect("good trace"))
}

fn link_spec(schedule: ScheduleSpec, queue: QueueSpec, overhead: u32, device_packets: u32) -> ElementSpec {
    ElementSpec::Link { schedule, queue, overhead, device_packets }
}

fn over(times: &[u64], queue: QueueSpec) -> Box<dyn PathElement> {
    let schedule = ScheduleSpec::Trace { name: "t".into(), once: false };
    let trace = trace(times);
    let built = build_element(&link_spec(schedule, queue, 4, 0), 1, 0, &|_| Some(Arc::clone(&trace)));
    Box::new(built.expect("good spec"))
}

fn droptail(packets: Option<u64>, bytes: Option<u64>) -> QueueSpec {
    QueueSpec::Droptail { limit: LimitSpec { packets, bytes } }
}

fn left_ms(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes
        .iter()
        .filter_map(|o| match o {
            Outcome::Left(t) => Some(t.as_millis()),
            _ => None,
        })
        .collect()
}

fn ms(t: u64) -> Timestamp {
    Timestamp::from_millis(t)
}

#[test]
fn partial_packets_carry_over() {
    let outcomes = drive(&mut *over(&[10], QueueSpec::Infinite), &[(ms(0), 1028); 5], Polling::AtEachEvent);
    assert_eq!(left_ms(&outcomes), [10, 20, 30, 30, 40]);
}

#[test]
fn wrapping_serves_full_packets() {
    let link = &mut *over(&[5, 10, 10, 20], QueueSpec::Infinite);
    assert_eq!(left_ms(&drive(link, &[(ms(0), 1500); 8], Polling::AtEachEvent)), [5, 10, 10, 20, 25, 30, 30, 40]);
    let link = &mut *over(&[0, 1, 2, 3], QueueSpec::Infinite);
    // The arrival at 0 uses up the opportunity at 0.
    assert_eq!(left_ms(&drive(link, &[(ms(0), 1500); 8], Polling::AtEachEvent)), [1, 2, 3, 3, 4, 5, 6, 6]);
}

#[test]
fn byte_limits_count_the_prefix() {
    for (limit, holds) in [(9_000, 5), (30_000, 19), (45_000, 29), (90_000, 59)] {
        let link = &mut *over(&[1], droptail(None, Some(limit)));
        assert_eq!(left_ms(&drive(link, &[(ms(0), 1500); 100], Polling::AtEachEvent)).len(), holds);
    }
}

#[test]
fn an_arrival_cannot_use_an_opportunity_of_its_millisecond() {
    let link = &mut *over(&[10], QueueSpec::Infinite);
    let arrivals = [(Timestamp(9_999_999), 1500), (Timestamp(20_000_000), 1500), (Timestamp(39_000_000), 1500)];
    assert_eq!(left_ms(&drive(link, &arrivals, Polling::AtEachEvent)), [10, 30, 40]);
}

#[test]
fn a_packet_in_transit_does_not_count() {
    // At 10 ms the second packet is partly sent, so that one more fits next to the one that waits.
    let arrivals = [(ms(0), 1000), (ms(0), 1000), (ms(15), 1500), (ms(15), 1500)];
    let outcomes = drive(&mut *over(&[10], droptail(Some(2), None)), &arrivals, Polling::AtEachEvent);
    assert_eq!(left_ms(&outcomes), [10, 20, 30, 40]);
    let outcomes = drive(&mut *over(&[10], droptail(Some(1), None)), &arrivals, Polling::AtEachEvent);
    assert_eq!(outcomes, [Outcome::Left(ms(10)), Outcome::Dropped, Outcome::Left(ms(20)), Outcome::Dropped]);
}

#[test]
fn oversize_and_end_of_trace_drop() {
    let link = &mut *over(&[10], QueueSpec::Infinite);
    assert_eq!(drive(link, &[(ms(0), 1501)], Polling::AtEachEvent), [Outcome::Dropped]);
    let mut link = FifoLink::new(TraceClock::new(&trace(&[1, 2]), true), Limits::NONE, 4, 0);
    let outcomes = drive(&mut link, &[(ms(0), 1500), (ms(0), 800), (ms(0), 800), (ms(5), 100)], Polling::AtEachEvent);
    assert_eq!(outcomes, [Outcome::Left(ms(1)), Outcome::Left(ms(2)), Outcome::Dropped, Outcome::Dropped]);
}

#[test]
fn the_log_example_of_the_reference() {
    let mut link = over(&[1, 4, 7], droptail(Some(2), None));
    link.record_events();
    drive(&mut *link, &[(ms(3), 1500); 3], Polling::AtEachEvent);
    let events = link.take_events(ms(7));
    let header = LogHeader {
        title: "mm-link (Uplink) [demo.trace] > up.log".into(),
        command: "'mm-link' 'demo.trace' 'demo.trace' '--uplink-log=up.log' '--' './run'".into(),
        queue: "droptail [packets=2]".into(),
        init_ms: 1_700_000_000_000,
        base_ms: 40,
        config: Some("[delay 20 ms] [loss up=0.01] ".into()),
    };
    let mut text = header.to_string().into_bytes();
    write_events(&mut text, header.base_ms, &events).expect("a vector takes all");
    let expected = "\
# mahimahi mm-link (Uplink) [demo.trace] > up.log
# command line: 'mm-link' 'demo.trace' 'demo.trace' '--uplink-log=up.log' '--' './run'
# queue: droptail [packets=2]
# init timestamp: 1700000000000
# base timestamp: 40
# mahimahi config: [delay 20 ms] [loss up=0.01] 
41 # 1504
43 + 1504
43 + 1504
43 + 1504
# 43 d 1 1504
44 # 1504
44 - 1504 1
47 # 1504
47 - 1504 4
";
    assert_eq!(String::from_utf8_lossy(&text), expected);
    let (read, lines) = parse_log(&text).expect("own log");
    assert_eq!(read, header);
    assert_eq!(lines.len(), 9);
    // mahimahi's master writes drops as separate lines.
    let of_master = expected.replace("# 43 d", "43 d");
    assert_eq!(parse_log(of_master.as_bytes()).expect("a log of mahimahi's master"), (read, lines.clone()));
    assert_eq!(lines[4], LogLine::Drop { ms: 43, packets: 1, bytes: 1504 });
    assert_eq!(lines[8], LogLine::Departure { ms: 47, bytes: 1504, delay_ms: 4 });
}

#[test]
fn several_opportunities_in_one_millisecond_keep_their_departures() {
    let mut link = over(&[5, 5, 10], QueueSpec::Infinite);
    link.record_events();
    drive(&mut *link, &[(ms(1), 1500), (ms(2), 500), (ms(2), 500), (ms(5), 100)], Polling::AtEachEvent);
    let mut text = Vec::new();
    write_events(&mut text, 0, &link.take_events(ms(10))).expect("a vector takes all");
    let expected = "1 + 1504\n2 + 504\n2 + 504\n5 # 1504\n5 - 1504 4\n5 # 1504\n5 - 504 3\n5 - 504 3\n5 + 104\n\
                    10 # 1504\n10 - 104 5\n";
    assert_eq!(String::from_utf8_lossy(&text), expected);
}

#[test]
fn a_rate_notes_its_capacity() {
    let mut link = FifoLink::new(RateClock::new(&Param::Constant(Rate::from_mbps(12.0))), Limits::NONE, 4, 0);
    link.record_events();
    drive(&mut link, &[(ms(0), 1496), (ms(0), 1496), (ms(9), 100)], Polling::AtEachEvent);
    let events = link.take_events(ms(5));
    let opportunities = |events: &[LinkEvent]| {
        let one = |event: &LinkEvent| match *event {
            LinkEvent::Opportunity(at, bytes) => Some((at, bytes)),
            _ => None,
        };
        events.iter().filter_map(one).collect::<Vec<_>>()
    };
    let full = |t| (ms(t), 1500);
    assert_eq!(opportunities(&events), [(ms(0), 0), full(1), full(2), full(3), full(4), full(5)]);
    assert_eq!(events.iter().filter(|e| matches!(e, LinkEvent::Departure(..))).count(), 2);
    // The rest comes with the next call.
    let rest = link.take_events(ms(10));
    assert_eq!(opportunities(&rest), [full(6), full(7), full(8), full(9), full(10)]);
    assert_eq!(rest.iter().filter(|e| matches!(e, LinkEvent::Arrival(..))).count(), 1);
}

proptest! {
    /// The rate that Pantheon and mahimahi's scripts compute from the log, sum / (last − first), is the link's, up to
    /// the nanosecond to which the last opportunity is rounded.
    #[test]
    fn the_opportunities_of_a_rate_average_to_it(kbps in 100u64..2_000_000, overhead in 0u32..40) {
        let mut link = FifoLink::new(RateClock::new(&Param::Constant(Rate(kbps * 1000))), Limits::NONE, overhead, 0);
        link.record_events();
        let (mut bytes, mut first, mut last) = (0, None, ms(0));
        for event in link.take_events(ms(500)) {
            let LinkEvent::Opportunity(at, size) = event else { continue };
            bytes += u64::from(size);
            last = at;
            first.get_or_insert(at);
        }
        let span = last.0 - first.expect("one at time zero").0;
        prop_assert_eq!(span, (bytes * 8 * 1_000_000).div_ceil(kbps));
    }
}

#[test]
fn means_follow_from_the_counters() {
    // Three packets at once at 1 ms each: waits 0 + 1 + 2, sojourns 1 + 2 + 3 ms.
    let mut link = FifoLink::new(RateClock::new(&Param::Constant(Rate::from_mbps(12.0))), Limits::NONE, 0, 0);
    drive(&mut link, &[(ms(0), 1500); 3], Polling::AtEachEvent);
    let counters = link.counters();
    assert_eq!(counters.mean_sojourn(), TimeSpan::from_millis(2));
    assert!((counters.mean_queue_packets(TimeSpan::from_millis(3)) - 1.0).abs() < 1e-12);
}

/// A slow and literal model of mahimahi's link: opportunities one by one, bytes one opportunity at a time.
fn model_trace(times: &[u64], limits: Limits, overhead: u32, arrivals: &[Arrival]) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Held; arrivals.len()];
    let mut waiting: VecDeque<(usize, u32)> = VecDeque::new();
    let mut transit: Option<(usize, u32)> = None;
    let (mut line, mut base) = (0, 0u64);
    let mut next_arrival = 0;
    while next_arrival < arrivals.len() || transit.is_some() || !waiting.is_empty() {
        let opportunity = base + times[line];
        let arrives = arrivals.get(next_arrival).map_or(u64::MAX, |a| a.0 .0 / NANOS_PER_MS);
        if opportunity <= arrives {
            line += 1;
            if line == times.len() {
                line = 0;
                base += times[times.len() - 1];
            }
            let mut left = 1504;
            while left > 0 {
                if transit.is_none() {
                    transit = waiting.pop_front();
                }
                let Some((id, to_go)) = transit else { break };
                let sent = left.min(to_go);
                left -= sent;
                transit = (to_go > sent).then_some((id, to_go - sent));
                if transit.is_none() {
                    outcomes[id] = Outcome::Left(ms(opportunity));
                }
            }
        } else {
            let wire = arrivals[next_arrival].1 + overhead;
            let packets = waiting.len() as u64 + 1;
            let bytes: u64 = waiting.iter().map(|w| u64::from(w.1)).sum::<u64>() + u64::from(wire);
            if wire <= 1504 && packets <= limits.packets && bytes <= limits.bytes {
                waiting.push_back((next_arrival, wire));
            } else {
                outcomes[next_arrival] = Outcome::Dropped;
            }
            next_arrival += 1;
        }
    }
    outcomes
}

/// A slow model of a FIFO at a constant rate in exact fractions of a nanosecond: times are scaled by the rate.
fn model_rate(rate: u64, limits: Limits, overhead: u32, device: usize, arrivals: &[Arrival]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    // (start, rounded up; wire bytes) of all accepted so far.
    let mut accepted: Vec<(u64, u32)> = Vec::new();
    let mut free = 0u128;
    for &(at, size) in arrivals {
        let wire = size + overhead;
        let waits: Vec<_> = accepted.iter().filter(|a| a.0 > at.0).collect();
        let queued = &waits[waits.len().min(device)..];
        let bytes: u64 = queued.iter().map(|a| u64::from(a.1)).sum::<u64>() + u64::from(wire);
        if queued.len() as u64 + 1 > limits.packets || bytes > limits.bytes {
            outcomes.push(Outcome::Dropped);
            continue;
        }
        let now = u128::from(at.0) * u128::from(rate);
        let start = free.max(now);
        free = start + u128::from(wire) * 8_000_000_000;
        accepted.push((start.div_ceil(u128::from(rate)) as u64, wire));
        outcomes.push(Outcome::Left(Timestamp(free.div_ceil(u128::from(rate)) as u64)));
    }
    outcomes
}

fn times() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(0u64..50, 1..40).prop_map(|mut times| {
        times.sort_unstable();
        let last = times.len() - 1;
        times[last] = times[last].max(1);
        times
    })
}

/// Make bursts and pauses, full and small packets, at whole milliseconds and other times.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        4 => Just(0u64),
        3 => 0u64..3_000_000,
        2 => (0u64..5).prop_map(|g| g * NANOS_PER_MS),
        1 => 0u64..200_000_000,
    ];
    let size = prop_oneof![4 => Just(1500u32), 3 => 1u32..1500, 1 => 1400u32..1520];
    proptest::collection::vec((gap, size), 1..120).prop_map(|packets| {
        let mut now = 0;
        packets
            .into_iter()
            .map(|(gap, size)| {
                now += gap;
                (Timestamp(now), size)
            })
            .collect()
    })
}

fn limits() -> impl Strategy<Value = LimitSpec> {
    (proptest::option::of(1u64..12), proptest::option::of(1u64..20_000))
        .prop_filter("a limit", |(p, b)| p.is_some() || b.is_some())
        .prop_map(|(packets, bytes)| LimitSpec { packets, bytes })
}

fn any_queue() -> impl Strategy<Value = QueueSpec> {
    limits().prop_flat_map(|limit| {
        let span = TimeSpan::from_millis;
        prop_oneof![
            Just(QueueSpec::Infinite),
            Just(QueueSpec::Droptail { limit }),
            Just(QueueSpec::Drophead { limit }),
            (1u64..20, 1u64..60).prop_map(move |(target_ms, interval_ms)| QueueSpec::MahimahiCodel {
                limit,
                target: TimeSpan::from_millis(target_ms),
                interval: TimeSpan::from_millis(interval_ms)
            }),
            (1u64..30, 1u64..60).prop_map(move |(qdelay_ref_ms, max_burst_ms)| QueueSpec::MahimahiPie {
                limit: LimitSpec { packets: Some(200), bytes: None },
                qdelay_ref: TimeSpan::from_millis(qdelay_ref_ms),
                max_burst: TimeSpan::from_millis(max_burst_ms)
            }),
            (1u64..20, 1u64..60, any::<bool>()).prop_map(move |(t, i, ns3)| QueueSpec::Codel {
                limit: LimitSpec { packets: Some(100), ..limit },
                target: span(t),
                interval: span(i),
                ecn: false,
                ns3
            }),
            (1u64..20, 1u64..60, 1u32..3000, 1u32..5).prop_map(move |(t, i, quantum, flows)| QueueSpec::FqCodel {
                limit,
                target: span(t),
                interval: span(i),
                quantum,
                flows,
                ecn: false
            }),
        ]
    })
}

fn any_schedule() -> impl Strategy<Value = ScheduleSpec> {
    prop_oneof![
        any::<bool>().prop_map(|once| ScheduleSpec::Trace { name: "t".into(), once }),
        (50_000u64..50_000_000).prop_map(|r| ScheduleSpec::Rate { rate: Param::Constant(Rate(r)) }),
        proptest::collection::vec((1u64..80, 0u64..20_000_000), 0..5).prop_map(|steps| {
            let mut at = 0;
            let mut all = vec![(Timestamp::ZERO, Rate(1_000_000))];
            for (gap, rate) in steps {
                at += gap;
                all.push((ms(at), Rate(rate)));
            }
            all.push((ms(at + 50), Rate(3_000_000)));
            ScheduleSpec::Rate { rate: Param::Steps(all) }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn trace_links_are_the_literal_model(
        times in times(), arrivals in arrivals(), limit in limits(), infinite in any::<bool>(), overhead in 0u32..5,
    ) {
        let limit = if infinite { LimitSpec { packets: Some(u64::MAX), bytes: None } } else { limit };
        let limits = Limits::from(&limit);
        let expected = model_trace(&times, limits, overhead, &arrivals);
        let mut eager = FifoLink::new(TraceClock::new(&trace(&times), false), limits, overhead, 0);
        prop_assert_eq!(&drive(&mut eager, &arrivals, Polling::AtEachEvent), &expected);
        for polling in [Polling::AtEachEvent, Polling::AtEachArrival, Polling::OnlyAtTheEnd] {
            let queue = queue::from_spec(&QueueSpec::Droptail { limit }, 1, 0);
            let mut held = HeldLink::new(TraceServer::new(&trace(&times), false), queue, overhead);
            prop_assert_eq!(&drive(&mut held, &arrivals, polling), &expected);
            prop_assert_eq!(held.counters(), eager.counters());
        }
    }

    #[test]
    fn rate_links_are_the_exact_model(
        rate in 50_000u64..200_000_000, arrivals in arrivals(), limit in limits(), overhead in 0u32..5, device in 0u32..4,
    ) {
        let limits = Limits::from(&limit);
        let expected = model_rate(rate, limits, overhead, device as usize, &arrivals);
        let rate = Param::Constant(Rate(rate));
        let mut eager = FifoLink::new(RateClock::new(&rate), limits, overhead, device);
        prop_assert_eq!(&drive(&mut eager, &arrivals, Polling::AtEachEvent), &expected);
        for polling in [Polling::AtEachEvent, Polling::AtEachArrival, Polling::OnlyAtTheEnd] {
            let queue = queue::from_spec(&QueueSpec::Droptail { limit }, 1, 0);
            let mut held = HeldLink::new(RateServer::new(&rate, device), queue, overhead);
            prop_assert_eq!(&drive(&mut held, &arrivals, polling), &expected);
            prop_assert_eq!(held.counters(), eager.counters());
        }
    }

    #[test]
    fn held_and_eager_agree_with_steps_and_logs(
        schedule in any_schedule(), times in times(), arrivals in arrivals(), limit in limits(), device in 0u32..3,
    ) {
        let queue = queue::from_spec(&QueueSpec::Droptail { limit }, 1, 0);
        let limits = Limits::from(&limit);
        let trace = trace(&times);
        let (mut eager, mut held): (Box<dyn PathElement>, Box<dyn PathElement>) = match &schedule {
            ScheduleSpec::Trace { .. } => (
                Box::new(FifoLink::new(TraceClock::new(&trace, false), limits, 4, 0)),
                Box::new(HeldLink::new(TraceServer::new(&trace, false), queue, 4)),
            ),
            ScheduleSpec::Rate { rate } => (
                Box::new(FifoLink::new(RateClock::new(rate), limits, 4, device)),
                Box::new(HeldLink::new(RateServer::new(rate, device), queue, 4)),
            ),
        };
        eager.record_events();
        held.record_events();
        let expected = drive(&mut *eager, &arrivals, Polling::AtEachEvent);
        prop_assert_eq!(drive(&mut *held, &arrivals, Polling::AtEachEvent), expected);
        let until = Timestamp::from_millis(60_000);
        let (ours, theirs) = (eager.take_events(until), held.take_events(until));
        prop_assert_eq!(ours, theirs);
        prop_assert_eq!(eager.backlog(until), held.backlog(until));
    }

    #[test]
    fn every_link_conserves_orders_and_repeats(
        schedule in any_schedule(), times in times(), queue in any_queue(), arrivals in arrivals(), cut in 0usize..120,
        polling in prop_oneof![Just(Polling::AtEachEvent), Just(Polling::AtEachArrival), Just(Polling::OnlyAtTheEnd)],
    ) {
        let flows = matches!(queue, QueueSpec::FqCodel { .. });
        let trace = trace(&times);
        let spec = link_spec(schedule, queue, 4, 0);
        let make = || Box::new(build_element(&spec, 7, 3, &|_| Some(Arc::clone(&trace))).expect("good spec"));
        let mut link = make();
        let outcomes = drive(&mut *link, &arrivals, polling);

        let count = |o: fn(&Outcome) -> bool| outcomes.iter().filter(|x| o(x)).count() as u64;
        let counters = link.counters();
        prop_assert_eq!(counters.arrived, arrivals.len() as u64);
        prop_assert_eq!(counters.forwarded, count(|o| matches!(o, Outcome::Left(_))));
        prop_assert_eq!(counters.dropped, count(|o| *o == Outcome::Dropped));
        prop_assert_eq!(count(|o| *o == Outcome::Held), 0, "the schedules of this test drain every queue");
        prop_assert!(counters.waited_ns <= counters.sojourn_ns);

        let mut last = Timestamp::ZERO;
        for (outcome, (at, _)) in outcomes.iter().zip(&arrivals) {
            if let Outcome::Left(t) = outcome {
                prop_assert!(t >= at, "leaves before it arrives");
                prop_assert!(flows || *t >= last, "out of order");
                last = *t;
            }
        }

        // The result is the same for the same seed, any polling, and a clone in the middle.
        prop_assert_eq!(&drive(&mut *make(), &arrivals, Polling::AtEachEvent), &outcomes);
        let cut = cut.min(arrivals.len());
        let mut original = make();
        for (id, &(at, size)) in arrivals[..cut].iter().enumerate() {
            original.offer(at, &mut Datagram { id: id as u64, flow: (id % 3) as u32, size, ecn: Ecn::NotEct });
        }
        let mut out = Vec::new();
        out.extend(std::iter::from_fn(|| original.release(arrivals[cut.saturating_sub(1)].0)));
        let mut copy = original.clone();
        let rest = |link: &mut dyn PathElement| {
            let mut seen = Vec::new();
            for (id, &(at, size)) in arrivals[cut..].iter().enumerate() {
                let mut out = Vec::new();
                out.extend(std::iter::from_fn(|| link.release(at)));
                let mut datagram = Datagram { id: id as u64, flow: 0, size, ecn: Ecn::Ect0 };
                seen.push((Some(link.offer(at, &mut datagram)), out, link.backlog(at), link.next_event()));
            }
            let mut out = Vec::new();
            out.extend(std::iter::from_fn(|| link.release(Timestamp::from_millis(100_000))));
            seen.push((None, out, (0, 0), link.next_event()));
            (seen, link.counters())
        };
        prop_assert_eq!(rest(&mut *original), rest(&mut *copy));
    }

    #[test]
    fn log_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[0-9 #+\\-d\n]{0,80}") {
        let _ = parse_log(&bytes).map_err(|e| e.to_string());
        let _ = parse_log(text.as_bytes()).map_err(|e| e.to_string());
    }
}
