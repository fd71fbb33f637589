use ccgym_core::receiver_half::ReceivedEvent;
use ccgym_core::{ReceiverHalf, TimeSpan, Timestamp};
use serde_json::json;

use super::half::{Header, Report};
use super::model::Forecast;
use crate::testing::{scheme, MockTransport, MSS};

fn ms(time: u64) -> Timestamp {
    Timestamp::from_millis(time)
}

fn message(forecast: Forecast, received_or_lost: u64) -> Vec<u8> {
    let mut message = Vec::new();
    Report { forecast, received_or_lost }.write(&mut message);
    message
}

fn half(params: &serde_json::Value) -> Box<dyn ReceiverHalf> {
    let mut half = scheme("sprout", params).receiver_half().expect("Sprout has one");
    half.start(ms(1000), MSS);
    half
}

fn arrives(half: &mut dyn ReceiverHalf, now: Timestamp, number: u64, header: Header) {
    half.on_data(&ReceivedEvent { now, number, bytes: MSS, header: header.pack(), ce: false });
}

fn report(half: &mut dyn ReceiverHalf) -> Report {
    let mut message = Vec::new();
    half.on_feedback(half.next_feedback(), &mut message);
    Report::read(&message).expect("its own message")
}

#[test]
fn messages_and_headers_come_back() {
    let report = Report { forecast: [0, 3, 7, 12, 20, 300, 301, u16::MAX], received_or_lost: 1 << 40 };
    let mut bytes = Vec::new();
    report.write(&mut bytes);
    assert_eq!(Report::read(&bytes), Some(report));
    assert_eq!((Report::read(&bytes[1..]), Report::read(&[])), (None, None));
    let header = Header { recent: 40_000, time_to_next_ms: 50 };
    assert_eq!(Header::unpack(header.pack()), header);
}

/// The window is what the forecast delivers within five ticks, less what is on its way.
#[test]
fn the_window_is_the_forecast_less_the_queue() {
    for (mode, drained) in [("paper", [2, 4, 6]), ("pantheon", [2, 6, 12])] {
        let mut host = MockTransport::of("sprout", &json!({"mode": mode}));
        host.ack(host.packets_in_flight());
        host.now = ms(10);
        let sent = host.observable("queue_packets") as u64;
        let forecast = [2, 4, 6, 8, 40, 50, 60, 70];
        host.scheme.on_feedback(host.now, &message(forecast, sent - 1));
        // 50 − 2 to come, one on its way.
        assert_eq!((host.observable("forecast_packets"), host.window()), (48.0, 47.0));
        host.send();
        assert_eq!((host.packets_in_flight(), host.observable("queue_packets")), (47, 48.0));
        // Ticks pass without news: what is forecast drains, and the time looked ahead moves on.
        for (tick, drained) in drained.into_iter().enumerate() {
            host.advance(TimeSpan::from_millis(20));
            assert_eq!(host.observable("queue_packets"), 48.0 - f64::from(drained), "{mode}, tick {tick}");
            assert_eq!(host.observable("forecast_tick"), tick as f64 + 1.0);
        }
        // 70 − 8 to come: of them 48 − drained are on their way.
        assert_eq!(host.observable("forecast_packets"), 62.0);
        assert_eq!(host.window() - 47.0, 14.0 + f64::from(drained[2]));
        // Beyond the forecast nothing more is sent but probes.
        host.advance(TimeSpan::from_millis(1000));
        assert_eq!((host.observable("forecast_tick"), host.observable("forecast_packets")), (7.0, 0.0));
    }
}

#[test]
fn without_news_a_probe_leaves_every_50_ms() {
    let mut host = MockTransport::of("sprout", &json!({}));
    host.scheme.on_feedback(host.now, &message([0; 8], 0));
    let before = host.packets_in_flight();
    for probes in 1..20 {
        host.advance(TimeSpan::from_millis(50));
        host.send();
        assert_eq!(host.packets_in_flight(), before + probes);
        assert_eq!(Header::unpack(host.scheme.header()).time_to_next_ms, 50);
    }
}

#[test]
fn nonsense_of_a_receiver_is_ignored() {
    let mut host = MockTransport::of("sprout", &json!({}));
    let before = host.window();
    for nonsense in [vec![], vec![0; 23], message([9; 8], 1 << 60), vec![255; 24]] {
        host.scheme.on_feedback(ms(5), &nonsense);
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
    host.scheme.on_feedback(host.now, &message([1, 2, 3, 4, 5, 6, 7, 8], first as u64 - 1));
    host.cwnd_limited = true;
    host.send();
    let header = Header::unpack(host.scheme.header());
    assert_eq!((usize::from(header.recent), header.time_to_next_ms), (host.packets_in_flight() - 1, 50));
    host.advance(TimeSpan::from_millis(15));
    host.scheme.on_feedback(host.now, &message([1, 2, 3, 4, 5, 60, 70, 80], host.packets_in_flight() as u64 - 1));
    host.send();
    let header = Header::unpack(host.scheme.header());
    assert_eq!((header.recent, header.time_to_next_ms), (57, 50), "58 packets in this flight");
}

#[test]
fn received_or_lost_counts_what_cannot_come_any_more() {
    let mut half = half(&json!({}));
    let header = |recent| Header { recent, time_to_next_ms: 0 };
    for (number, recent, expected) in [(0, 0, 1), (1, 1, 2), (4, 4, 3), (3, 3, 4), (5, 2, 6), (12, 1, 12), (11, 4, 13)]
    {
        arrives(&mut *half, ms(1001), number, header(recent));
        let mut message = Vec::new();
        half.on_feedback(ms(1002), &mut message);
        assert_eq!(Report::read(&message).unwrap().received_or_lost, expected, "after {number}");
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
                    arrives(&mut *half, ms(1000 + 20 * tick + packet), number, Header { recent: 0, time_to_next_ms });
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

/// Sprout-EWMA takes the mean rate for certain: its first tick of ten packets counts an eighth.
#[test]
fn ewma_forecasts_the_mean_rate() {
    let mut half = half(&json!({"forecast": "ewma"}));
    for number in 0..16 {
        arrives(&mut *half, ms(1001), number, Header::default());
    }
    assert_eq!(report(&mut *half).forecast, [2, 4, 6, 8, 10, 12, 14, 16]);
}

/// Hours of silence are worked through in no time, and nothing of before is believed after.
#[test]
fn a_long_silence_is_forgotten() {
    let mut half = half(&json!({}));
    arrives(&mut *half, ms(1001), 0, Header::default());
    arrives(&mut *half, ms(1001) + TimeSpan::from_millis(10 * 3600 * 1000), 1, Header::default());
    assert!(half.next_feedback() > ms(10 * 3600 * 1000));
    let mut message = Vec::new();
    half.on_feedback(half.next_feedback(), &mut message);
    assert_eq!(Report::read(&message).unwrap().received_or_lost, 2);
}
