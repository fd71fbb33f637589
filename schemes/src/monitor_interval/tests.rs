use ccgym_core::congestion_control::{AckedPacket, LostPacket, SentEvent};
use ccgym_core::{AckEvent, RttEstimator, TimeSpan, Timestamp};

use super::{Intervals, Length};
use crate::testing::acknowledgement;

const LENGTH: Length = Length { packets: 4, span: TimeSpan::ZERO };

/// Make intervals of four packets that leave each millisecond, the first at one.
fn sent(packets: u64) -> Intervals {
    let mut intervals = Intervals::default();
    intervals.begin(Timestamp::ZERO, 1e6, LENGTH);
    for number in 0..packets {
        let now = Timestamp::from_millis(number + 1);
        if intervals.on_sent(&SentEvent { now, number, bytes: 1500, in_flight: 0, more: true }) {
            intervals.begin(now, 1e6, LENGTH);
        }
    }
    intervals
}

/// Acknowledge packets with these RTTs in milliseconds, and lose others.
fn ack(intervals: &mut Intervals, acked: &[(u64, u64)], lost: &[u64]) {
    let lost: Vec<_> = lost
        .iter()
        .map(|&number| LostPacket { number, bytes: 1500, sent: Timestamp::ZERO, in_flight_at_send: 0 })
        .collect();
    for (i, &(number, rtt)) in acked.iter().enumerate() {
        let sent = Timestamp::from_millis(number + 1);
        let now = sent + TimeSpan::from_millis(rtt);
        let acked = [AckedPacket { number, bytes: 1500, sent, received: Some(now) }];
        let lost = if i == 0 { &lost[..] } else { &[] };
        let rtt = RttEstimator::default();
        let event = AckEvent { acked: &acked, lost, largest_acked: number, ..acknowledgement(now, 1, &rtt) };
        intervals.on_ack(&event, true);
    }
}

#[test]
fn packets_belong_to_the_interval_they_left_in() {
    let mut intervals = sent(6);
    ack(&mut intervals, &[(0, 40), (1, 40), (3, 40), (4, 40)], &[2]);
    let first = intervals.take_settled(Timestamp::ZERO, TimeSpan::ZERO).unwrap();
    assert_eq!((first.id, first.sent, first.bytes, first.acked, first.missing()), (0, 4, 6000, 3, 1));
    assert_eq!((first.loss_rate(), first.duration(), first.first_to_last()), (0.25, 0.004, 0.003));
    assert!(intervals.take_settled(Timestamp::ZERO, TimeSpan::ZERO).is_none());
    assert_eq!(intervals.filling().map(|i| (i.id, i.sent, i.acked)), Some((1, 2, 1)));
}

#[test]
fn late_arrivals_are_no_losses() {
    let mut intervals = sent(4);
    ack(&mut intervals, &[(3, 40)], &[0, 1]);
    assert!(intervals.take_settled(Timestamp::ZERO, TimeSpan::ZERO).is_none());
    ack(&mut intervals, &[(0, 50), (2, 50)], &[]);
    let settled = intervals.take_settled(Timestamp::ZERO, TimeSpan::ZERO).unwrap();
    assert_eq!((settled.acked, settled.missing()), (3, 1));
    // The interval was taken.
    ack(&mut intervals, &[(1, 60)], &[]);
    assert!(intervals.take_settled(Timestamp::ZERO, TimeSpan::ZERO).is_none());
}

/// Losses count after the patience, and only losses delay an interval.
#[test]
fn losses_count_after_their_patience() {
    let patience = TimeSpan::from_millis(60);
    for (acked, lost, ms, known) in [
        (&[(0, 40), (1, 40), (3, 40)][..], &[2][..], 59, false),
        (&[(0, 40), (1, 40), (3, 40)], &[2], 60, true),
        (&[(0, 40), (1, 40), (2, 40), (3, 40)], &[], 1, true),
    ] {
        let mut intervals = sent(6);
        ack(&mut intervals, acked, lost);
        assert_eq!(intervals.take_settled(Timestamp::from_millis(ms), patience).is_some(), known, "{lost:?} {ms}");
    }
}

/// Without waiting for losses: newest first, and the last packet counts only on request.
#[test]
fn intervals_before_a_packet() {
    let take = |packets, number, and_last| {
        let mut intervals = sent(packets);
        std::iter::from_fn(|| intervals.take_before(number, and_last).map(|i| i.id)).collect::<Vec<_>>()
    };
    for (packets, number, and_last, expected) in [
        (6, 3, false, vec![]),
        (6, 3, true, vec![0]),
        (6, 4, false, vec![0]),
        (14, 11, false, vec![1, 0]),
        (14, 11, true, vec![2, 1, 0]),
        (14, 13, true, vec![2, 1, 0]),
    ] {
        assert_eq!(take(packets, number, and_last), expected, "{packets} {number} {and_last}");
    }
}

/// Round trips of 40, 42, 44 and 46 ms in packets a millisecond apart: a slope of two.
#[test]
fn round_trips() {
    let mut intervals = sent(4);
    assert_eq!(intervals.filling().unwrap().rtt_slope(), 0.0);
    ack(&mut intervals, &[(0, 40), (1, 42), (2, 44), (3, 46)], &[]);
    let settled = intervals.take_settled(Timestamp::ZERO, TimeSpan::ZERO).unwrap();
    assert!((settled.rtt_slope() - 2.0).abs() < 1e-9);
    assert!((settled.mean_rtt().unwrap() - 0.043).abs() < 1e-12);
    let (a, b) = settled.rtt_halves();
    assert!((a - 0.082).abs() < 1e-12 && (b - 0.090).abs() < 1e-12);
}

#[test]
fn unusable_intervals() {
    let mut intervals = sent(2);
    assert!(intervals.filling().unwrap().usable());
    intervals.mark_app_limited();
    assert!(!intervals.filling().unwrap().usable());
    // The next one is not marked, and one without packets is replaced.
    for _ in 0..2 {
        intervals.begin(Timestamp::from_millis(9), 2e6, LENGTH);
        assert_eq!(intervals.filling().map(|i| (i.app_limited, i.sent)), Some((false, 0)));
    }
    assert_eq!(intervals.next_id(), 3);
    intervals.on_sent(&SentEvent { now: Timestamp::from_millis(10), number: 2, bytes: 1500, in_flight: 0, more: true });
    assert!(!intervals.filling().unwrap().usable(), "a single packet tells nothing of its rate");
}

#[test]
fn an_interval_needs_its_packets_and_its_time() {
    let mut intervals = Intervals::default();
    intervals.begin(Timestamp::ZERO, 1e6, Length { packets: 2, span: TimeSpan::from_millis(3) });
    for (number, ms, full) in [(0, 1, false), (1, 2, false), (2, 3, true)] {
        let now = Timestamp::from_millis(ms);
        assert_eq!(intervals.on_sent(&SentEvent { now, number, bytes: 1500, in_flight: 0, more: true }), full);
    }
}
