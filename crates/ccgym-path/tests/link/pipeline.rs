//! Compares a pipeline with a plain model: one element after the other, each over the whole sequence of its arrivals.

use std::sync::Arc;

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{Rate, TimeSpan, Timestamp};
use ccgym_path::spec::JitterSpec;
use ccgym_path::{
    build_element, Chain, DeliveryTrace, ElementSpec, Exit, Fate, LimitSpec, Param, PathElement, Pipeline, QueueSpec,
    Release, ScheduleSpec,
};
use proptest::prelude::*;

fn trace(_: &str) -> Option<Arc<DeliveryTrace>> {
    Some(Arc::new(DeliveryTrace::from_ms("t", [0, 1, 1, 4, 9, 9, 10]).expect("a trace")))
}

/// An arrival: (time, flow, size, ECN); its index is its identity.
type Arrival = (u64, u32, u32, Ecn);
/// An exit: time, identity, ECN or dropped.
type Out = (u64, usize, Option<Ecn>);

/// Apply each element in turn, over all packets.
fn model(specs: &[ElementSpec], arrivals: &[Arrival]) -> Vec<Out> {
    let mut packets: Vec<(Timestamp, usize, Ecn)> =
        arrivals.iter().enumerate().map(|(i, a)| (Timestamp(a.0), i, a.3)).collect();
    let mut out = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let mut element = Box::new(build_element(spec, 7, 3 + index as u64, &trace).expect("a valid element"));
        let mut next = Vec::new();
        let mut releases = Vec::new();
        let mut collect = |releases: &mut Vec<Release>, next: &mut Vec<(Timestamp, usize, Ecn)>| {
            for release in releases.drain(..) {
                match release {
                    Release::Forward(datagram, at) => next.push((at, datagram.id as usize, datagram.ecn)),
                    Release::Drop(datagram, at) => out.push((at.0, datagram.id as usize, None)),
                }
            }
        };
        let mut lost = Vec::new();
        for (at, i, ecn) in packets {
            while element.next_event() <= at {
                let due = element.next_event();
                releases.extend(std::iter::from_fn(|| element.release(due)));
            }
            collect(&mut releases, &mut next);
            let mut datagram = Datagram { id: i as u64, flow: arrivals[i].1, size: arrivals[i].2, ecn };
            match element.offer(at, &mut datagram) {
                Fate::Forward(t) => next.push((t, i, datagram.ecn)),
                Fate::Duplicate(t) => next.extend([(t, i, datagram.ecn); 2]),
                Fate::Drop => lost.push((at.0, i, None)),
                Fate::Hold => {}
            }
        }
        while element.next_event().is_set() {
            let due = element.next_event();
            releases.extend(std::iter::from_fn(|| element.release(due)));
        }
        collect(&mut releases, &mut next);
        out.extend(lost);
        next.sort_by_key(|p| p.0);
        packets = next;
    }
    out.extend(packets.into_iter().map(|(at, i, ecn)| (at.0, i, Some(ecn))));
    out
}

/// Run the pipeline, advanced at its own events or else every `pace` nanoseconds, and check it in between.
fn pipeline(specs: &[ElementSpec], arrivals: &[Arrival], pace: Option<u64>) -> Vec<Out> {
    let chain = Chain::new(specs, 7, 3, &trace).expect("valid elements");
    let mut pipeline = Pipeline::new(chain);
    let mut exits = Vec::new();
    let mut woken = 0;
    let mut catch_up = |pipeline: &mut Pipeline<usize>, until: u64| loop {
        let due = match pace {
            None => pipeline.next_event(),
            Some(_) if !pipeline.next_event().is_set() => return,
            Some(pace) => Timestamp((woken + pace).max(pipeline.next_event().0 / pace * pace)),
        };
        if due.0 > until || !due.is_set() {
            return;
        }
        woken = due.0;
        let before = exits.len();
        pipeline.advance(due, &mut exits);
        pipeline.backlog(due);
        assert!(pace.is_some() || exits.len() > before || pipeline.next_event() > due, "an event without effect");
    };
    for (i, &(at, flow, size, ecn)) in arrivals.iter().enumerate() {
        catch_up(&mut pipeline, at);
        pipeline.enter(Timestamp(at), flow, size, ecn, i);
    }
    catch_up(&mut pipeline, u64::MAX - 1);
    assert_eq!(pipeline.next_event(), Timestamp::NEVER);
    let mut under_way = vec![1; arrivals.len()];
    let out = exits
        .into_iter()
        .filter_map(|exit| match exit {
            Exit::Left { at, packet, ecn } => {
                under_way[packet] -= 1;
                Some((at.0, packet, Some(ecn)))
            }
            Exit::Dropped { at, packet } => {
                under_way[packet] -= 1;
                Some((at.0, packet, None))
            }
            Exit::Duplicated { packet } => {
                // A copy must be reported while the packet is inside, or a driver would have forgotten it.
                assert!(under_way[packet] > 0, "packet {packet} was copied after its last exit");
                under_way[packet] += 1;
                None
            }
        })
        .collect();
    assert!(under_way.iter().all(|&count| count == 0), "what entered, and each copy, exits once: {under_way:?}");
    out
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    let limit = |packets| LimitSpec { packets: Some(packets), bytes: None };
    let (target, interval) = (TimeSpan::from_millis(2), TimeSpan::from_millis(12));
    prop_oneof![
        Just(QueueSpec::Infinite),
        (1..20u64).prop_map(move |n| QueueSpec::Droptail { limit: limit(n) }),
        (1..20u64).prop_map(move |n| QueueSpec::Drophead { limit: limit(n) }),
        (1..40u64).prop_map(move |n| QueueSpec::MahimahiCodel {
            limit: limit(n),
            target: TimeSpan::from_millis(2),
            interval: TimeSpan::from_millis(12)
        }),
        (2..40u64).prop_map(move |n| QueueSpec::MahimahiPie {
            limit: limit(n),
            qdelay_ref: TimeSpan::from_millis(3),
            max_burst: TimeSpan::from_millis(1)
        }),
        (1..40u64).prop_map(move |n| QueueSpec::Codel {
            limit: limit(n),
            target,
            interval,
            ecn: n % 2 == 0,
            ns3: n % 3 == 0
        }),
        (1..40u64).prop_map(move |n| QueueSpec::FqCodel {
            limit: limit(n),
            target,
            interval,
            quantum: 1514,
            flows: 4,
            ecn: n % 2 == 0,
        }),
        (1..40u64).prop_map(move |n| QueueSpec::Pie {
            limit: limit(n),
            target,
            interval: TimeSpan::from_millis(1),
            alpha: 10.0,
            beta: 100.0,
            max_burst: interval,
            ecn: n % 2 == 0,
            mark_up_to: 0.5,
        }),
        (1..40u64).prop_map(move |n| QueueSpec::Red {
            limit: limit(n),
            min: 2,
            max: 6,
            max_probability: 0.3,
            weight: 0.2,
            gentle: n % 3 == 0,
            ecn: n % 2 == 0,
        }),
        (1..40u64).prop_map(move |n| QueueSpec::Step {
            limit: limit(n),
            threshold: (n % 3 > 0).then(|| limit(n / 4 + 1)),
            delay: (n % 3 < 2).then_some(target),
        }),
        (1..40u64).prop_map(move |n| QueueSpec::Dualpi2 {
            limit: limit(n),
            target,
            interval: TimeSpan::from_millis(1),
            alpha: 1.0,
            beta: 20.0,
            coupling: 2.0,
            step: TimeSpan::from_millis(n % 3),
            classic_share: 0.1,
        }),
    ]
}

fn element() -> impl Strategy<Value = ElementSpec> {
    let steps = Param::Steps(vec![(Timestamp(0), TimeSpan(3_000_000)), (Timestamp(20_000_000), TimeSpan(500_000))]);
    let jitter = JitterSpec::Exponential { mean: TimeSpan(1_500_000) };
    prop_oneof![
        2 => (0..4_000_000u64).prop_map(|d| ElementSpec::Delay { delay: Param::Constant(TimeSpan(d)), tick: TimeSpan(0) }),
        1 => Just(ElementSpec::Delay { delay: steps, tick: TimeSpan(0) }),
        1 => Just(ElementSpec::Delay { delay: Param::Constant(TimeSpan(2_000_000)), tick: TimeSpan(1_000_000) }),
        1 => Just(ElementSpec::Duplicate { probability: Param::Constant(0.2) }),
        1 => Just(ElementSpec::Bleach { probability: Param::Constant(0.2) }),
        1 => Just(ElementSpec::Loss { probability: Param::Constant(0.2) }),
        1 => any::<bool>().prop_map(|hold| {
            ElementSpec::OnOff { mean_on: TimeSpan(9_000_000), mean_off: TimeSpan(2_000_000), hold }
        }),
        1 => (any::<bool>(), proptest::collection::vec(1u32..4, 0..3)).prop_map(move |(reorder, flows)| {
            ElementSpec::Jitter { distribution: jitter.clone(), reorder, flows }
        }),
        4 => (queue(), any::<bool>()).prop_map(|(queue, by_trace)| {
            let by_rate = ScheduleSpec::Rate { rate: Param::Constant(Rate(9_000_000)) };
            let by_name = ScheduleSpec::Trace { name: "t".into(), once: false };
            ElementSpec::Link { schedule: if by_trace { by_name } else { by_rate }, queue, overhead: 4, device_packets: 0 }
        }),
    ]
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0u64), 0..300_000u64, Just(1_000_000), 0..6_000_000u64];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1)];
    proptest::collection::vec((gap, 0..3u32, 40..1500u32, ecn), 1..120).prop_map(|packets| {
        let mut now = 0;
        packets
            .into_iter()
            .map(|(gap, flow, size, ecn)| {
                now += gap;
                (now, flow, size, ecn)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// The exits are the same, in order of time, for any wake-ups of the driver.
    #[test]
    fn exits_are_those_of_the_elements_one_by_one(
        specs in proptest::collection::vec(element(), 0..5),
        arrivals in arrivals(),
        pace in 1..5_000_000u64,
    ) {
        let mut expected = model(&specs, &arrivals);
        let on_time = pipeline(&specs, &arrivals, None);
        prop_assert!(on_time.windows(2).all(|pair| pair[0].0 <= pair[1].0), "out of order: {on_time:?}");
        let late = pipeline(&specs, &arrivals, Some(pace));
        let mut sorted = on_time.clone();
        // Drops at the time of an exit may be reported in either order.
        for outs in [&mut expected, &mut sorted] {
            outs.sort_by_key(|out| (out.0, out.2.is_some()));
        }
        let (mut dropped, mut model_dropped) = (sorted.clone(), expected.clone());
        for outs in [&mut dropped, &mut model_dropped] {
            outs.retain(|out| out.2.is_none());
            outs.sort_unstable_by_key(|out| (out.0, out.1));
        }
        sorted.retain(|out| out.2.is_some());
        expected.retain(|out| out.2.is_some());
        prop_assert_eq!(&sorted, &expected);
        prop_assert_eq!(&dropped, &model_dropped);
        let mut late_left = late;
        late_left.retain(|out| out.2.is_some());
        prop_assert_eq!(&late_left, &expected);
    }
}
