use ccgym_core::congestion_control::ReceivedEvent;
use ccgym_core::{FeedbackReceiver, TimeSpan, Timestamp};
use serde_json::json;

use super::model::Forecast;
use super::receiver::{Header, Report};
use super::{content, FULL, NUMBERING};
use crate::testing::{at, scheme, MockTransport, MSS};

fn message(forecast: Forecast, settled: usize) -> Vec<u8> {
    numbered(1, forecast, settled)
}

fn numbered(number: u32, forecast: Forecast, settled: usize) -> Vec<u8> {
    let mut message = Vec::new();
    Report { number, forecast, settled: settled as u64, arrived_above: 0 }.write(&mut message);
    message
}

fn half(params: &serde_json::Value) -> Box<dyn FeedbackReceiver> {
    let mut half = scheme("sprout", params).receiver_side().expect("Sprout has one").receiver();
    half.start(at(1000), MSS);
    half
}

fn arrives(half: &mut dyn FeedbackReceiver, now: Timestamp, number: u64, header: Header) {
    half.on_data(&ReceivedEvent { now, number, bytes: MSS, header: header.pack(), ce: false });
}

fn report(half: &mut dyn FeedbackReceiver) -> Report {
    let mut message = Vec::new();
    half.write_feedback(half.next_feedback(), &mut message);
    Report::read(&message).expect("its own message")
}

#[test]
fn messages_and_headers_come_back() {
    let report =
        Report { number: 7, forecast: [0, 3, 7, 12, 20, 300, 301, u16::MAX], settled: 1 << 40, arrived_above: 1 << 20 };
    let mut bytes = Vec::new();
    report.write(&mut bytes);
    assert_eq!(Report::read(&bytes), Some(report));
    assert_eq!((Report::read(&bytes[1..]), Report::read(&[])), (None, None));
    let header = Header { recent: 40_000, time_to_next_ms: 50 };
    assert_eq!(Header::unpack(header.pack()), header);
}

/// The window is the forecast deliveries within five ticks, less the packets in flight.
#[test]
fn the_window_is_the_forecast_less_the_queue() {
    for (mode, drained) in [("paper", [2, 4, 6]), ("pantheon", [2, 6, 12])] {
        let mut host = MockTransport::of("sprout", &json!({"mode": mode}));
        let sent = host.packets_in_flight();
        host.ack(sent);
        host.now = at(10);
        let forecast = [2, 4, 6, 8, 40, 50, 60, 70];
        host.scheme.receiver_side().unwrap().on_message(host.now, &message(forecast, sent));
        // 50 − 2 to come, nothing in flight.
        assert_eq!((host.observable("forecast_packets"), host.observable("queue_packets")), (48.0, 0.0));
        host.send();
        // The last packet is shorter.
        assert_eq!((host.packets_in_flight(), host.observable("queue_packets")), (48, 48.0));
        // Ticks pass without reports: the forecast drains, and the lookahead moves on.
        for (tick, drained) in drained.into_iter().enumerate() {
            host.advance(TimeSpan::from_micros(20_120));
            assert_eq!(host.observable("queue_packets"), 48.0 - f64::from(drained), "{mode}, tick {tick}");
            assert_eq!(host.observable("forecast_tick"), tick as f64 + 1.0);
        }
        // 70 − 8 to come: of them 48 − drained are in flight.
        assert_eq!(host.observable("forecast_packets"), 62.0);
        host.send();
        assert_eq!(host.observable("queue_packets"), 62.0);
        // Beyond the forecast only probes are sent.
        host.advance(TimeSpan::from_millis(1000));
        assert_eq!((host.observable("forecast_tick"), host.observable("forecast_packets")), (7.0, 0.0));
    }
}

/// A packet in flight counts 52 bytes more than one of the forecast; arrivals above the settled ones, two.
#[test]
fn reports_count_bytes_of_the_numbering() {
    let mut host = MockTransport::of("sprout", &json!({}));
    let sent = host.packets_in_flight();
    let forecast = [20, 40, 60, 80, 100, 120, 140, 160];
    host.scheme.receiver_side().unwrap().on_message(at(10), &message(forecast, sent));
    host.send();
    let queue = |host: &MockTransport| (host.observable("queue_packets") * 1400.0).round() as u64;
    host.scheme.receiver_side().unwrap().on_message(at(10), &message(forecast, sent));
    assert_eq!(queue(&host), 100 * 1400, "a copy of a report changes nothing");
    host.scheme.receiver_side().unwrap().on_message(at(10), &numbered(2, forecast, sent));
    let flying = 100 * 1400;
    assert_eq!(queue(&host), flying + 100 * NUMBERING);
    let mut bytes = Vec::new();
    Report { number: 3, forecast, settled: sent as u64 + 10, arrived_above: 3 * FULL as u32 }.write(&mut bytes);
    host.scheme.receiver_side().unwrap().on_message(at(10), &bytes);
    assert_eq!(queue(&host), flying + 100 * NUMBERING - 10 * (FULL + NUMBERING) - 3 * FULL);
    // Settled packets stay settled.
    host.scheme.receiver_side().unwrap().on_message(at(10), &numbered(4, [0; 8], sent));
    assert_eq!(host.observable("forecast_packets"), 100.0);
}

#[test]
fn content_is_that_of_the_program() {
    for (bytes, mss, expected) in
        [(1500, 1500, FULL), (100, 1500, 2), (500, 500, FULL), (299, 500, FULL / 2), (50, 90, 0)]
    {
        assert_eq!(content(bytes, mss), expected, "{bytes} of {mss}");
    }
}

#[test]
fn without_news_a_probe_leaves_every_50_ms() {
    let mut host = MockTransport::of("sprout", &json!({}));
    host.scheme.receiver_side().unwrap().on_message(host.now, &message([0; 8], 0));
    let before = host.packets_in_flight();
    for probes in 1..20 {
        host.advance(TimeSpan::from_millis(50));
        host.send();
        assert_eq!(host.packets_in_flight(), before + probes);
        assert_eq!(Header::unpack(host.scheme.receiver_side().unwrap().header()).time_to_next_ms, 50);
    }
}

#[test]
fn nonsense_of_a_receiver_is_ignored() {
    let mut host = MockTransport::of("sprout", &json!({}));
    let before = host.window();
    for nonsense in [vec![], vec![0; 31], message([9; 8], 1 << 60), vec![255; 32]] {
        host.scheme.receiver_side().unwrap().on_message(at(5), &nonsense);
        assert_eq!(host.window(), before);
    }
}

/// Only the last packet of a flight announces silence; each counts those sent in the 10 ms before it.
#[test]
fn headers_tell_flights_and_reordering() {
    let mut host = MockTransport::of("sprout", &json!({}));
    let first = host.packets_in_flight();
    assert!(first >= 1);
    host.advance(TimeSpan::from_millis(5));
    host.scheme.receiver_side().unwrap().on_message(host.now, &message([1, 2, 3, 4, 5, 6, 7, 8], first - 1));
    host.cwnd_limited = true;
    host.send();
    let header = Header::unpack(host.scheme.receiver_side().unwrap().header());
    assert_eq!((usize::from(header.recent), header.time_to_next_ms), (host.packets_in_flight() - 1, 50));
    host.advance(TimeSpan::from_millis(15));
    let report = numbered(2, [1, 2, 3, 4, 5, 60, 70, 80], host.packets_in_flight());
    host.scheme.receiver_side().unwrap().on_message(host.now, &report);
    host.send();
    let header = Header::unpack(host.scheme.receiver_side().unwrap().header());
    assert_eq!((header.recent, header.time_to_next_ms), (58, 50), "59 packets in this flight");
}

#[test]
fn received_or_lost_counts_what_cannot_come_any_more() {
    let mut half = half(&json!({}));
    let header = |recent| Header { recent, time_to_next_ms: 0 };
    for (number, recent, expected) in [(0, 0, 1), (1, 1, 2), (4, 4, 3), (3, 3, 4), (5, 2, 6), (12, 1, 12), (11, 4, 13)]
    {
        arrives(&mut *half, at(1001), number, header(recent));
        let mut message = Vec::new();
        half.write_feedback(at(1002), &mut message);
        let report = Report::read(&message).unwrap();
        assert_eq!(report.settled + u64::from(report.arrived_above) / FULL, expected, "after {number}");
    }
}

/// A silence that the sender announced does not count as an outage; any other one does.
#[test]
fn announced_silence_says_nothing() {
    for forecast in ["bayes", "ewma"] {
        let after = |time_to_next_ms| {
            let mut half = half(&json!({"forecast": forecast}));
            let mut number = 0;
            for tick in 0..50 {
                for packet in 0..10 {
                    let time_to_next_ms = if tick == 49 && packet == 9 { time_to_next_ms } else { 0 };
                    arrives(&mut *half, at(1000 + 20 * tick + packet), number, Header { recent: 0, time_to_next_ms });
                    number += 1;
                }
                report(&mut *half);
            }
            // Two ticks without arrivals.
            let before = report(&mut *half).forecast[5];
            (before, report(&mut *half).forecast[5])
        };
        let (announced, silent) = (after(60), after(0));
        assert!(announced.0 > 20, "{forecast}: 10 packets a tick: {announced:?}");
        assert!(silent.1 < silent.0 && silent.1 < announced.1, "{forecast}: {announced:?}, {silent:?}");
    }
}

/// Sprout-EWMA takes the mean rate as certain: its first tick of ten packets counts an eighth.
#[test]
fn ewma_forecasts_the_mean_rate() {
    let mut half = half(&json!({"forecast": "ewma"}));
    for number in 0..16 {
        arrives(&mut *half, at(1001), number, Header::default());
    }
    assert_eq!(report(&mut *half).forecast, [2, 4, 6, 8, 10, 12, 14, 16]);
}

/// Hours of silence are processed at once, and the belief from before is gone.
#[test]
fn a_long_silence_is_forgotten() {
    let mut half = half(&json!({}));
    arrives(&mut *half, at(1001), 0, Header::default());
    let now = at(1001) + TimeSpan::from_millis(10 * 3600 * 1000);
    arrives(&mut *half, now, 1, Header::default());
    let mut message = Vec::new();
    half.write_feedback(now, &mut message);
    assert!(half.next_feedback() > now);
    let report = Report::read(&message).unwrap();
    assert_eq!((report.settled, u64::from(report.arrived_above)), (1, FULL));
}
