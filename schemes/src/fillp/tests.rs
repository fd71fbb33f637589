use ccgym_core::congestion_control::LostPacket;
use ccgym_core::congestion_control::ReceivedEvent;
use ccgym_core::{AckEvent, CongestionControl, FeedbackReceiver, RttEstimator, TimeSpan, Timestamp};
use serde_json::json;

use super::tack::{header, Report, TackReceiver};
use crate::testing::{acknowledgement, context, ms, scheme, MSS};

/// A receiver, and the reports that it sent: time in ms and content.
struct Road {
    half: TackReceiver,
    round_trip: f64,
    reports: Vec<(f64, Report)>,
}

impl Road {
    fn new(round_trip: f64) -> Self {
        let mut half = TackReceiver::default();
        half.start(Timestamp::ZERO, MSS);
        Self { half, round_trip, reports: Vec::new() }
    }

    /// Send the reports due by `now`; those due before `since` leave then.
    fn report(&mut self, since: Timestamp, now: Timestamp) {
        while self.half.next_feedback() <= now {
            let at = self.half.next_feedback().max(since);
            let mut message = Vec::new();
            self.half.write_feedback(at, &mut message);
            self.reports.push((at.0 as f64 / 1e6, Report::read(&message).unwrap()));
        }
    }

    fn arrive(&mut self, at_ms: u64, number: u64) {
        let now = Timestamp::from_millis(at_ms);
        self.report(Timestamp::ZERO, Timestamp(now.0 - 1));
        let header = header(self.round_trip);
        self.half.on_data(&ReceivedEvent { now, number, bytes: MSS, header, ce: false });
        self.report(now, now);
    }

    fn times(&self) -> Vec<f64> {
        self.reports.iter().map(|(at, _)| *at).collect()
    }
}

#[test]
fn an_interval_is_a_quarter_of_the_round_trip_and_20_ms_at_least() {
    for (round_trip, expected) in [(0.0, 20), (0.04, 20), (0.08, 20), (0.2, 50)] {
        let mut road = Road::new(round_trip);
        (1..=100).for_each(|at| road.arrive(at, at - 1));
        let times: Vec<f64> = (1..=100 / expected).map(|i| (i * expected) as f64).collect();
        assert_eq!(road.times(), times);
        for (_, report) in road.reports {
            assert_eq!((u64::from(report.delivered), report.hold_us), (expected * MSS, 0));
            assert_eq!(report.rate(), 12e6);
        }
    }
}

#[test]
fn silence_lowers_no_rate() {
    let mut road = Road::new(0.04);
    // 20 packets at once, 110 ms after the start, and 105 ms later again.
    for (number, at) in (0..20).map(|n| (n, 110)).chain((20..40).map(|n| (n, 215))) {
        road.arrive(at, number);
    }
    road.report(Timestamp::ZERO, Timestamp::from_millis(300));
    assert_eq!(road.times(), [120.0, 220.0]);
    assert!(road.reports.iter().all(|(_, report)| report.rate() == 12e6));
    assert_eq!(road.reports[0].1.hold_us, 10_000);
}

#[test]
fn a_loss_is_told_at_once_and_ends_no_interval() {
    let mut road = Road::new(0.04);
    // Number 1 is lost, which is detected three packets later. Number 6 is only overtaken.
    for (at, number) in [(1, 0), (2, 2), (3, 3), (4, 4), (5, 5), (6, 7), (7, 8), (8, 6), (9, 9), (20, 10)] {
        road.arrive(at, number);
    }
    assert_eq!(road.times(), [4.0, 20.0]);
    assert_eq!(road.reports[0].1.delivered, 0);
    assert_eq!(u64::from(road.reports[1].1.delivered), 10 * MSS, "what the hurried report told counts too");
}

#[test]
fn what_came_before_a_hurried_report_counts_in_its_own_interval() {
    let mut road = Road::new(0.04);
    // Number 16 is lost, which is reported at 20 ms; the next packet comes after the interval's end.
    for (at, number) in (1..=16).map(|at| (at, at - 1)).chain([(17, 17), (18, 18), (19, 19), (22, 20)]) {
        road.arrive(at, number);
    }
    assert_eq!(road.times(), [19.0, 22.0]);
    assert_eq!((u64::from(road.reports[1].1.delivered), road.reports[1].1.interval_us), (20 * MSS, 22_000));
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

/// A sender with a report every 20 ms, 40 ms after the departure of the acknowledged packets.
struct Reports {
    scheme: Box<dyn CongestionControl>,
    now: Timestamp,
    rtt: RttEstimator,
    in_flight: u64,
    round_trip: TimeSpan,
}

impl Reports {
    fn new(name: &str) -> Self {
        let mut scheme = scheme(name, &json!({}));
        scheme.init(context());
        scheme.on_handshake(Timestamp::from_millis(40), ms(40));
        let now = Timestamp::from_millis(40);
        Self { scheme, now, rtt: RttEstimator::default(), in_flight: 10 * MSS, round_trip: ms(40) }
    }

    /// Make a flow in PROBE_BW on a link of 12 Mbit/s, after one cycle of gains.
    fn probing(name: &str) -> Self {
        let mut host = Self::new(name);
        host.hear(60, 12.0);
        assert_eq!(host.scheme.state(), "PROBE_BW");
        host
    }

    /// Process the next report, with losses; returns the pacing rate then, in Mbit/s.
    fn with_losses(&mut self, mbps: f64, lost: u64) -> f64 {
        self.now += ms(20);
        self.scheme.on_timer(self.now);
        let mut message = Vec::new();
        Report { delivered: (mbps * 2500.0) as u32, interval_us: 20_000, hold_us: 0 }.write(&mut message);
        self.scheme.receiver_side().unwrap().on_message(self.now, &message);
        let lost: Vec<LostPacket> =
            (0..lost).map(|number| LostPacket { number, bytes: MSS, sent: self.now, in_flight_at_send: MSS }).collect();
        self.scheme.on_ack(&AckEvent {
            lost: &lost,
            lost_bytes: lost.len() as u64 * MSS,
            rtt_sample: Some(self.round_trip),
            prior_in_flight: self.in_flight,
            in_flight: self.in_flight,
            next_packet_number: 100,
            ..acknowledgement(self.now, 10, &self.rtt)
        });
        self.scheme.control().pacing_rate.as_mbps()
    }

    fn next(&mut self, mbps: f64) -> f64 {
        self.with_losses(mbps, 0)
    }

    /// Process `reports` reports of the same rate.
    fn hear(&mut self, reports: u32, mbps: f64) -> f64 {
        (0..reports).map(|_| self.next(mbps)).last().unwrap()
    }

    fn observable(&self, name: &str) -> f64 {
        self.scheme.observables().into_iter().find(|(known, _)| *known == name).expect("it is shown").1
    }
}

#[test]
fn startup_sends_three_times_the_largest_report_until_seven_do_not_grow() {
    let mut host = Reports::new("fillp");
    assert_eq!(host.scheme.control().pacing_rate.as_mbps(), 2.0);
    assert_eq!(host.next(1.0), 6.0, "2 Mbit/s at least");
    assert_eq!(host.next(3.0), 9.0);
    assert_eq!(host.next(9.0), 27.0);
    // The mean of two grows once more.
    assert_eq!(host.hear(6, 9.0), 27.0);
    assert_eq!(host.scheme.state(), "STARTUP");
    assert_eq!(host.next(9.0), 2.25);
    assert_eq!(host.scheme.state(), "DRAIN");
}

#[test]
fn a_loss_ends_startup() {
    let mut host = Reports::new("fillp");
    host.next(4.0);
    host.with_losses(8.0, 1);
    assert_eq!(host.scheme.state(), "DRAIN");
}

#[test]
fn sixteen_reports_have_two_gains_above_and_one_below_1() {
    let mut host = Reports::probing("fillp");
    let mut rates = [(); 16].map(|()| host.next(12.0));
    let lowest = (0..16).find(|i| rates[*i] == 6.0).unwrap();
    rates.rotate_left((lowest + 14) % 16);
    assert_eq!(rates[..3], [15.0, 15.0, 6.0]);
    assert!(rates[3..].iter().all(|rate| *rate == 12.0));
}

#[test]
fn the_largest_of_21_reports_counts_and_none_grows_by_more_than_a_quarter() {
    let mut host = Reports::probing("fillp");
    host.next(40.0);
    assert_eq!(host.observable("largest_mbps"), 15.0);
    host.hear(20, 12.0);
    assert_eq!(host.observable("largest_mbps"), 15.0);
    host.next(12.0);
    assert_eq!(host.observable("largest_mbps"), 12.0);
    host.next(0.2);
    assert_eq!(host.observable("reported_mbps"), 0.2);
    assert_eq!(host.observable("largest_mbps"), 12.0);
}

#[test]
fn a_pause_removes_packets_in_flight_beyond_the_cap() {
    let mut host = Reports::probing("fillp");
    assert_eq!(host.observable("cap_packets"), 60.0, "12 Mbit/s are a packet per ms: 40 ms and 20");
    // A packet of the program is an eighth less than full.
    host.in_flight = 52 * MSS;
    host.next(12.0);
    assert_eq!(host.scheme.control().cwnd, u64::MAX);
    host.in_flight = 64 * MSS;
    let mbps = host.next(12.0);
    assert_eq!(host.scheme.control().cwnd, MSS);
    let until = host.scheme.next_timer();
    let excess = (64.0 * 1500.0 * 9.1 / 8.0_f64).floor() - 90_000.0;
    assert_eq!(until.since(host.now), TimeSpan::from_secs_f64(excess * 8.0 / (mbps * 1e6)));
    host.scheme.on_timer(until);
    assert_eq!(host.scheme.control().cwnd, u64::MAX);
}

/// The receiver keeps reporting the handshake's RTT: a lasting queue does not become part of it.
#[test]
fn the_minimum_round_trip_is_at_most_the_handshakes() {
    let mut host = Reports::probing("fillp");
    for (round_trip, expected) in [(60, 40.0), (30, 30.0), (60, 40.0)] {
        host.round_trip = ms(round_trip);
        host.hear(600, 12.0);
        assert_eq!(host.observable("min_rtt_ms"), expected, "12 s of {round_trip} ms");
    }
}

/// 30 % of loss is too much for Sheep; 4 of 14 packets are not.
#[test]
fn sheep_backs_off_to_the_middle_report_where_too_much_is_lost() {
    for (lost, base) in [(4, 12.0), (5, 8.0)] {
        let mut host = Reports::probing("fillp_sheep");
        // 21 reports: the means of two are 12 and 10 once, and 8 often.
        host.hear(19, 8.0);
        let gains = [5.0, 4.0, 2.0].map(|quarters| quarters / 4.0 * base);
        let rate = host.with_losses(8.0, lost);
        assert!(gains.contains(&rate), "{lost} lost: {rate}");
    }
}
