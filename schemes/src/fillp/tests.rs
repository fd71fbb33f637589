use ccgym_core::receiver_half::ReceivedEvent;
use ccgym_core::{Rate, ReceiverHalf, TimeSpan, Timestamp};
use serde_json::json;

use super::tack::{header, Frequency, Report, TackHalf};
use crate::testing::{ms, MockTransport, TestEvent, MSS};

/// A receiver that packets reach, and the reports that it sent: time in ms and content.
struct Road {
    half: TackHalf,
    min_rtt: Option<TimeSpan>,
    reports: Vec<(f64, Report)>,
}

impl Road {
    fn new(min_rtt: Option<TimeSpan>) -> Self {
        let mut half = TackHalf::new(Frequency { packets: 2, per_rtt: 4.0 });
        half.start(Timestamp::ZERO, MSS);
        Self { half, min_rtt, reports: Vec::new() }
    }

    /// Send what is due by `now`; what was due before `since` leaves then.
    fn report(&mut self, since: Timestamp, now: Timestamp) {
        while self.half.next_feedback() <= now {
            let at = self.half.next_feedback().max(since);
            let mut message = Vec::new();
            self.half.on_feedback(at, &mut message);
            self.reports.push((at.0 as f64 / 1e6, Report::read(&message).unwrap()));
        }
    }

    fn arrive(&mut self, at_ms: u64, number: u64) {
        let now = Timestamp::from_millis(at_ms);
        self.report(Timestamp::ZERO, Timestamp(now.0 - 1));
        let header = header(self.min_rtt);
        self.half.on_data(&ReceivedEvent { now, number, bytes: MSS, header, ce: false });
        self.report(now, now);
    }

    fn times(&self) -> Vec<f64> {
        self.reports.iter().map(|(at, _)| *at).collect()
    }
}

#[test]
fn its_state_is_that_of_bbr() {
    let states = ["fillp", "bbr"].map(|name| MockTransport::of(name, &json!({})).scheme.state());
    assert!(!states[0].is_empty() && states[0] == states[1], "{states:?}");
}

#[test]
fn four_reports_per_round_trip_with_the_rate_of_the_latest_round_trip() {
    let mut road = Road::new(Some(ms(40)));
    (1..=60).for_each(|at| road.arrive(at, at - 1));
    assert_eq!(road.times(), [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    for ((_, report), packets) in road.reports.iter().zip([10, 20, 30, 40, 40, 40]) {
        assert_eq!((u64::from(report.delivered), report.interval_us, report.hold_us), (packets * MSS, 40_000, 0));
    }
}

#[test]
fn a_burst_counts_for_the_round_trip_that_it_came_in() {
    let mut road = Road::new(Some(ms(40)));
    // 20 packets at once every 20 ms.
    (0..100).for_each(|number| road.arrive(20 * (number / 20 + 1), number));
    let highest = road.reports.iter().map(|(_, report)| u64::from(report.delivered)).max();
    assert_eq!(highest, Some(40 * MSS));
    assert!(road.reports.iter().all(|(_, report)| report.interval_us == 40_000));
}

#[test]
fn slow_arrivals_are_told_in_pairs_and_wait_25_ms_at_most() {
    let mut road = Road::new(Some(ms(40)));
    for (number, at) in [20, 40, 60, 80, 200].into_iter().enumerate() {
        road.arrive(at, number as u64);
    }
    road.report(Timestamp::ZERO, Timestamp::from_millis(300));
    assert_eq!(road.times(), [40.0, 80.0, 225.0]);
    assert_eq!(road.reports[2].1.hold_us, 25_000);
}

#[test]
fn packets_next_to_each_other_are_no_high_rate() {
    let mut road = Road::new(Some(ms(40)));
    // The packet after the one that completed a pair comes 2 ms later, and waits for company.
    for (number, at) in [10, 34, 36].into_iter().enumerate() {
        road.arrive(at, number as u64);
    }
    road.report(Timestamp::ZERO, Timestamp::from_millis(100));
    assert_eq!(road.times(), [34.0, 61.0]);
    let last = road.reports[1].1;
    assert_eq!((u64::from(last.delivered), last.interval_us), (3 * MSS, 40_000));
}

#[test]
fn no_rate_before_the_round_trip_is_known() {
    let mut road = Road::new(None);
    (1..=6).for_each(|at| road.arrive(at, at - 1));
    assert_eq!(road.times(), [2.0, 4.0, 6.0]);
    assert!(road.reports.iter().all(|(_, report)| report.delivered == 0));
}

#[test]
fn a_loss_is_told_at_once_and_ends_no_interval() {
    let mut road = Road::new(Some(ms(40)));
    // Number 1 is lost: three packets later that is known. Number 6 is only overtaken.
    for (at, number) in [(1, 0), (2, 2), (3, 3), (4, 4), (5, 5), (6, 7), (7, 8), (8, 6), (9, 9), (10, 10)] {
        road.arrive(at, number);
    }
    assert_eq!(road.times(), [4.0, 10.0]);
    assert_eq!(road.reports[0].1.delivered, 0);
    assert_eq!(u64::from(road.reports[1].1.delivered), 10 * MSS, "what the hurried report told counts too");
}

#[test]
fn messages_that_make_no_sense_are_not_read() {
    let mut message = Vec::new();
    let report = Report { delivered: 15_000, interval_us: 10_000, hold_us: 3 };
    report.write(&mut message);
    assert_eq!(Report::read(&message), Some(report));
    assert_eq!(Report::read(&message[1..]), None);
    message[4..8].fill(0);
    message[0..4].fill(255);
    assert_eq!(Report::read(&message), None, "faster than any link");
}

/// A flow whose flight is acknowledged at once after 40 ms, with this report.
fn reported(report: Report) -> MockTransport {
    let mut host = MockTransport::of("fillp", &json!({}));
    host.advance(ms(40));
    let mut message = Vec::new();
    report.write(&mut message);
    host.scheme.on_feedback(host.now, &message);
    host.ack(10);
    host
}

#[test]
fn the_receiver_measures_rate_and_wait() {
    // The mock's receiver gets packets half way: after 20 ms. They waited 12 ms.
    let host = reported(Report { delivered: 15_000, interval_us: 10_000, hold_us: 12_000 });
    assert_eq!(host.observable("reported_mbps"), 12.0);
    assert_eq!(host.observable("btl_bw_mbps"), Rate::from_mbps(12.0).as_mbps());
    assert_eq!(host.observable("rtprop_ms"), 28.0);
    // A report without a rate leaves the model's as it is.
    assert_eq!(reported(Report::default()).observable("btl_bw_mbps"), 0.0);
}

#[test]
fn two_rounds_of_loss_end_startup() {
    for (lost, full) in [(1, 0.0), (3, 1.0)] {
        let mut host = MockTransport::of("fillp_sheep", &json!({}));
        // The bandwidth doubles each round: no round is flat.
        for _ in 0..5 {
            host.advance(ms(40));
            let flight = host.packets_in_flight();
            host.play(TestEvent {
                lost: flight * lost / 20,
                acked: flight - flight * lost / 20,
                ..TestEvent::default()
            });
        }
        assert_eq!(host.observable("full_pipe"), full, "{lost} of 20 lost");
    }
}
