//! Tests of queue disciplines by their control laws.

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::queue::{from_spec, QueueDiscipline, Queued};
use crate::spec::{LimitSpec, QueueSpec};

const ROOMY: LimitSpec = LimitSpec { packets: Some(10_000), bytes: None };

fn packet(id: u64, flow: u32, at_ms: u64, ecn: Ecn) -> Queued {
    let datagram = Datagram { id, flow, size: 1500, ecn };
    Queued { datagram, wire: 1504, arrived: Timestamp::from_millis(at_ms) }
}

/// A packet of 1500 bytes, numbered by the time of its arrival.
pub fn full_packet(ms: u64, ecn: Ecn) -> Queued {
    Queued { wire: 1500, ..packet(ms, 0, ms, ecn) }
}

fn make(spec: &QueueSpec) -> Box<dyn QueueDiscipline> {
    from_spec(spec, 1, 0)
}

fn codel(ecn: bool) -> QueueSpec {
    let (target, interval) = (TimeSpan::from_millis(5), TimeSpan::from_millis(100));
    QueueSpec::Codel { limit: ROOMY, target, interval, ecn, ns3: false }
}

/// (millisecond, packet)
type Events = Vec<(u64, u64)>;

/// Queue 2000 packets at time 0 and take one per millisecond; returns those sent, dropped and marked, as (ms, id).
fn drain(queue: &mut dyn QueueDiscipline, ecn: Ecn) -> (Events, Events, Vec<u64>) {
    let (mut sent, mut lost, mut marked, mut dropped) = (vec![], vec![], vec![], vec![]);
    for id in 0..2000 {
        assert!(queue.enqueue(Timestamp::ZERO, packet(id, 0, 0, ecn), &mut dropped));
    }
    for ms in 1..600 {
        let out = queue.dequeue(Timestamp::from_millis(ms), &mut dropped).expect("not empty");
        sent.push((ms, out.datagram.id));
        if out.datagram.ecn == Ecn::Ce {
            marked.push(ms);
        }
        lost.extend(dropped.drain(..).map(|p| (ms, p.datagram.id)));
    }
    (sent, lost, marked)
}

/// Return RFC 8289's drops: above target from 5 ms on, dropping from 105 ms, then every 100/√n ms.
fn law(milliseconds: u64) -> Vec<u64> {
    let (mut times, mut next, mut n) = (vec![105], 205.0f64, 1.0f64);
    while next < milliseconds as f64 {
        times.push(next.ceil() as u64);
        n += 1.0;
        next += 100.0 / n.sqrt();
    }
    times
}

#[test]
fn codel_drops_by_the_control_law() {
    let (sent, lost, marked) = drain(&mut *make(&codel(false)), Ecn::Ect0);
    assert_eq!(lost.iter().map(|l| l.0).collect::<Vec<_>>(), law(599));
    assert!(marked.is_empty());
    // The head is dropped and the one behind it sent.
    assert_eq!((lost[0].1, sent[104].1), (104, 105));
}

#[test]
fn codel_marks_where_it_would_drop() {
    let mut queue = make(&codel(true));
    let (_, lost, marked) = drain(&mut *queue, Ecn::Ect0);
    assert_eq!((lost, marked), (vec![], law(599)));
    assert_eq!(queue.marked(), law(599).len() as u64);
    // Packets that are not ECN-capable are dropped.
    let (_, lost, marked) = drain(&mut *make(&codel(true)), Ecn::NotEct);
    assert_eq!((lost.len(), marked.len()), (law(599).len(), 0));
}

#[test]
fn codel_spares_a_short_queue() {
    let mut queue = make(&codel(false));
    let mut dropped = vec![];
    for i in 0..100 {
        queue.enqueue(Timestamp::from_millis(i * 50), packet(i, 0, i * 50, Ecn::NotEct), &mut dropped);
        if i > 0 {
            // One packet waits for 50 ms all the time, but never more than one.
            assert!(queue.dequeue(Timestamp::from_millis(i * 50), &mut dropped).is_some());
        }
    }
    assert!(dropped.is_empty());
}

#[test]
fn mahimahi_codel_delivers_the_first_and_drops_the_one_behind() {
    let mut queue = make(&QueueSpec::MahimahiCodel {
        limit: ROOMY,
        target: TimeSpan::from_millis(5),
        interval: TimeSpan::from_millis(100),
    });
    let (sent, lost, _) = drain(&mut *queue, Ecn::NotEct);
    // As the textbook, with 100/√n cut to whole milliseconds: 105, 205, +70, +57, +50, …
    assert_eq!(lost[..5].iter().map(|l| l.0).collect::<Vec<_>>(), [105, 205, 275, 332, 382]);
    assert_eq!((sent[104].1, lost[0].1, sent[105].1), (104, 105, 106));
}

#[test]
fn drophead_keeps_the_newest() {
    let mut queue = make(&QueueSpec::Drophead { limit: LimitSpec { packets: Some(2), bytes: None } });
    let mut dropped = vec![];
    for id in 0..5 {
        assert!(queue.enqueue(Timestamp::ZERO, packet(id, 0, 0, Ecn::NotEct), &mut dropped));
    }
    assert_eq!(dropped.iter().map(|p| p.datagram.id).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(queue.dequeue(Timestamp::ZERO, &mut dropped).map(|p| p.datagram.id), Some(3));
    // The arrival itself is larger than the limit.
    let mut queue = make(&QueueSpec::Drophead { limit: LimitSpec { packets: None, bytes: Some(1503) } });
    dropped.clear();
    assert!(!queue.enqueue(Timestamp::ZERO, packet(0, 0, 0, Ecn::NotEct), &mut dropped));
    assert!(dropped.is_empty() && queue.backlog() == (0, 0));
}

#[test]
fn pie_holds_its_reference_delay() {
    // 2 arrivals and 1 departure per millisecond that slow down when packets are lost would be TCP; here the overload
    // is fixed at 10 %, and the probability must settle at about that.
    let mahimahi = r#"{"kind": "mahimahi_pie", "limit": {"packets": 10000}, "qdelay_ref": 20000000,
                       "max_burst": 100000000}"#;
    for json in [mahimahi, r#"{"kind": "pie", "limit": {"packets": 10000}, "target": 20000000}"#] {
        holds_20_ms(&serde_json::from_str(json).expect("a queue"));
    }
}

fn holds_20_ms(spec: &QueueSpec) {
    let mut queue = make(spec);
    let (mut dropped, mut lost, mut late) = (vec![], 0u32, 0);
    for ms in 0..120_000u64 {
        let now = Timestamp::from_millis(ms);
        for k in 0..if ms % 10 == 0 { 2 } else { 1 } {
            let accepted = queue.enqueue(now, packet(2 * ms + k, 0, ms, Ecn::NotEct), &mut dropped);
            lost += u32::from(!accepted && ms >= 60_000);
        }
        if let Some(out) = queue.dequeue(now, &mut dropped) {
            late = late.max(if ms >= 60_000 { ms - out.arrived.as_millis() } else { 0 });
        }
    }
    assert!((5_000..7_000).contains(&lost), "{lost} of about 6000 too many were dropped");
    assert!(late < 80, "delay of {late} ms with a reference of 20 ms");
}

#[test]
fn pie_catches_up_at_once_when_at_rest() {
    let mahimahi =
        r#"{"kind": "mahimahi_pie", "limit": {"packets": 9}, "qdelay_ref": 20000000, "max_burst": 100000000}"#;
    for json in [mahimahi, r#"{"kind": "pie"}"#] {
        let mut queue = make(&serde_json::from_str(json).expect("a queue"));
        // Step by step this would take hours.
        let late = Timestamp::from_millis(1_000_000_000_000);
        assert!(queue.enqueue(late, packet(0, 0, 0, Ecn::NotEct), &mut vec![]), "{json}");
    }
}

fn fq(limit: LimitSpec) -> QueueSpec {
    let (target, interval) = (TimeSpan::from_millis(5), TimeSpan::from_millis(100));
    QueueSpec::FqCodel { limit, target, interval, quantum: 1514, flows: 1024, ecn: false }
}

#[test]
fn fq_codel_takes_turns_and_serves_new_flows_first() {
    let mut queue = make(&fq(ROOMY));
    let mut dropped = vec![];
    let now = Timestamp::from_millis(1);
    for id in 0..10 {
        queue.enqueue(now, packet(id, 1, 1, Ecn::NotEct), &mut dropped);
    }
    assert_eq!(queue.dequeue(now, &mut dropped).map(|p| p.datagram.flow), Some(1));
    for id in 10..20 {
        queue.enqueue(now, packet(id, 2, 1, Ecn::NotEct), &mut dropped);
    }
    let order: Vec<_> = (0..19).filter_map(|_| queue.dequeue(now, &mut dropped)).map(|p| p.datagram.flow).collect();
    let twos = order[..10].iter().filter(|&&f| f == 2).count();
    assert!((4..=6).contains(&twos), "{order:?}");
    assert_eq!((order.len(), queue.backlog()), (19, (0, 0)));
    assert!(queue.dequeue(now, &mut dropped).is_none());
}

#[test]
fn fq_codel_sheds_from_the_fattest() {
    let mut queue = make(&fq(LimitSpec { packets: Some(50), bytes: None }));
    let mut dropped = vec![];
    for id in 0..50 {
        assert!(queue.enqueue(Timestamp::ZERO, packet(id, 1, 0, Ecn::NotEct), &mut dropped));
    }
    assert!(queue.enqueue(Timestamp::ZERO, packet(50, 2, 0, Ecn::NotEct), &mut dropped));
    assert_eq!(dropped.iter().map(|p| p.datagram.id).collect::<Vec<_>>(), (0..25).collect::<Vec<_>>());
    assert_eq!(queue.backlog(), (26, 26 * 1504));
}

/// ns-3's square roots come from one step of Newton's method per drop, in 16 bits: the first ones computed by hand.
#[test]
fn codel_of_ns3_drops_by_newtons_method() {
    let QueueSpec::Codel { limit, target, interval, ecn, .. } = codel(false) else { unreachable!() };
    let (_, exact, _) = drain(&mut *make(&codel(false)), Ecn::NotEct);
    let (_, lost, _) = drain(&mut *make(&QueueSpec::Codel { limit, target, interval, ecn, ns3: true }), Ecn::NotEct);
    let times: Vec<u64> = lost.iter().map(|l| l.0).collect();
    // 100 ms, then 100/√n by steps from 1: 0.5 for two drops (instead of 0.707), 0.5625 for three, 0.4878 for four.
    assert_eq!(times[..5], [105, 205, 255, 312, 361], "{times:?}");
    assert_ne!(times, exact.iter().map(|l| l.0).collect::<Vec<_>>());
}
