//! Schemes for media: rows 36 to 38 of the table of expectations of published and derived results, and the video source
//! with other schemes. Thresholds that the table does not give are ours: calibrated once, then frozen.

use ccgym_core::Timestamp;
use ccgym_run::{Outcome, RunSpec};
use serde_json::{json, Value};

use crate::common::{assert_close, l1, observable, run, secs, simulator, Net};

/// A flow with a video encoder of 30 frames per second, at most `max_mbps`.
fn video(scheme: &str, params: &Value, max_mbps: f64) -> Value {
    json!({
        "scheme": scheme, "params": params, "profile": "udp", "mss": 1188, "header": 40,
        "source": {"kind": "media", "max_rate": (max_mbps * 1e6) as u64},
    })
}

/// A path of 40 ms whose rate steps from 3 to 1 Mbit/s after 40 s.
fn step_down(flow: &Value) -> RunSpec {
    let rate = json!([[0, 3_000_000], [secs(40.0), 1_000_000]]);
    Net { rate, record: json!({}), ..Net::new(3.0, 40.0, 100) }.spec(&json!([flow]), 60.0)
}

fn owd_p95_ms(outcome: &Outcome) -> f64 {
    let log = outcome.data.as_ref().unwrap();
    let both = log.entered.iter().zip(&log.left);
    let mut delays: Vec<u64> =
        both.filter(|(_, left)| **left != u64::MAX).map(|(entered, left)| left - entered).collect();
    delays.sort_unstable();
    delays[delays.len() * 95 / 100] as f64 / 1e6
}

/// Row 36: over-use is detected within a second of the step, and the rate falls to 0.85 of the received rate.
#[test]
fn webrtc_falls_to_85_per_cent_of_what_arrives_within_a_second_of_a_step_down() {
    for mode in ["libwebrtc", "draft"] {
        let flow = video("webrtc", &json!({"mode": mode, "start_rate": 2.0}), 2.7);
        let mut sim = simulator(&step_down(&flow));
        let at = |ms: u64| Timestamp::from_millis(40_000 + ms);
        sim.run_until(at(0)).unwrap();
        let mut rate = observable(&sim, "delay_based_mbps");
        let mut found = None;
        for ms in 1..=1000 {
            sim.run_until(at(ms)).unwrap();
            let now = observable(&sim, "delay_based_mbps");
            if now < rate && found.is_none() {
                found = Some((ms, now, observable(&sim, "received_mbps")));
            }
            rate = now;
        }
        let (ms, cut, received) = found.unwrap_or_else(|| panic!("{mode}: no over-use within a second"));
        assert_close(&format!("{mode}: of what arrives, after {ms} ms"), cut / received, 0.85, 1e-6);
    }
}

/// Row 36: on a free path the target grows by 8 % per second.
#[test]
fn webrtc_grows_by_8_per_cent_per_second() {
    let mut sim = simulator(&l1(1.0, &json!([video("webrtc", &json!({}), 20.0)]), 30.0));
    let mut target = |seconds: f64| {
        sim.run_until(Timestamp(secs(seconds))).unwrap();
        observable(&sim, "target_mbps")
    };
    let (early, late) = (target(5.0), target(20.0));
    let growth = (late / early).powf(1.0 / 15.0);
    assert_close("growth per second", growth, 1.08, 0.003);
}

/// Row 38: with Pantheon's encoder no more than 2.5 Mbit/s of payload, and one-way delays below 100 ms.
#[test]
fn webrtc_stays_below_2_5_mbps_and_100_ms() {
    for mode in ["libwebrtc", "draft"] {
        // The draft's loss-based rate grows by 5 % per second: from 0.3 Mbit/s it needs 45 s.
        let start_rate = if mode == "draft" { 1.0 } else { 0.3 };
        let params = json!({"mode": mode, "start_rate": start_rate});
        let mut path = l1(1.0, &json!([video("webrtc", &params, 2.5)]), 60.0);
        path.record.packets = true;
        let outcome = run(&path);
        let frames = &outcome.flows[0].frames;
        let last = &frames[frames.len() / 2..];
        let mbps = last.iter().map(|frame| f64::from(frame.bytes)).sum::<f64>() * 8.0 * 30.0 / last.len() as f64 / 1e6;
        // Frames are whole bytes.
        assert!((2.4..2.501).contains(&mbps), "{mode}: {mbps:.3} Mbit/s in the second half");
        let p95 = owd_p95_ms(&outcome);
        assert!(p95 < 100.0, "{mode}: {p95:.1} ms");
    }
}

/// A link of 1 Mbit/s and a buffer of 1.2 s: the delay-based rate keeps the queue short, and the link in use.
#[test]
fn webrtc_shares_a_narrow_link_with_its_own_queue() {
    let net = Net { record: json!({"packets": true}), ..Net::new(1.0, 40.0, 100) };
    let outcome = run(&net.spec(&json!([video("webrtc", &json!({"start_rate": 0.8}), 2.5)]), 60.0));
    let mbps = outcome.flows[0].received.bytes as f64 * 8.0 / 60.0 / 1e6;
    assert!(mbps > 0.7, "{mbps:.3} Mbit/s");
    let p95 = owd_p95_ms(&outcome);
    assert!(p95 < 400.0, "{p95:.1} ms");
}

/// Make L1 with another rate.
fn at_rate(mbps: f64, flow: &Value, seconds: f64) -> RunSpec {
    let record = json!({"packets": true, "series": 1_000_000});
    Net { record, ..Net::new(mbps, 40.0, 200) }.spec(&json!([flow]), seconds)
}

fn received_mbps(outcome: &Outcome, seconds: f64) -> f64 {
    outcome.flows[0].received.bytes as f64 * 8.0 / seconds / 1e6
}

/// Row 37: the arguments of Pantheon's program limit it to 0.2 Mbit/s on any link, and no queue forms.
#[test]
fn scream_of_pantheon_stays_at_0_2_mbps() {
    for mbps in [1.0, 12.0, 100.0] {
        let flow = video("scream", &json!({}), 2.5);
        let outcome = run(&at_rate(mbps, &flow, 30.0));
        let found = received_mbps(&outcome, 30.0);
        let p95 = owd_p95_ms(&outcome);
        assert_close(&format!("Mbit/s over {mbps} Mbit/s"), found, 0.2, 0.15);
        assert!(p95 < 35.0, "{p95:.1} ms over {mbps} Mbit/s");
    }
}

/// The mean queueing delay stays below 100 ms at 5 Mbit/s, with the link in use once the target has reached it.
#[test]
fn scream_of_the_rfc_queues_for_less_than_100_ms() {
    let flow = video("scream", &json!({"mode": "rfc"}), 20.0);
    let outcome = run(&at_rate(5.0, &flow, 120.0));
    let log = outcome.data.as_ref().unwrap();
    let late = log.entered.iter().zip(&log.left).filter(|(entered, left)| **entered > secs(40.0) && **left != u64::MAX);
    let (count, sum) =
        late.fold((0.0, 0.0), |(count, sum), (entered, left)| (count + 1.0, sum + (left - entered) as f64));
    let queueing = sum / count / 1e6 - 20.0;
    assert!((20.0..100.0).contains(&queueing), "{queueing:.1} ms");
    let frames = &outcome.flows[0].frames[40 * 30..];
    let mbps = frames.iter().map(|frame| f64::from(frame.bytes)).sum::<f64>() * 8e-6 / 80.0;
    // 48 of 1248 bytes are headers: 4.8 Mbit/s of payload fill the link.
    assert!(mbps > 4.5, "{mbps:.3} Mbit/s");
}

/// RFC 8298 §4.1.3: on a free path the target grows by half of itself per second, then by 0.2 Mbit/s.
#[test]
fn scream_ramps_up_by_0_2_mbps_per_second() {
    let mut sim = simulator(&at_rate(20.0, &video("scream", &json!({"mode": "rfc"}), 20.0), 30.0));
    let mut target = |seconds: f64| {
        sim.run_until(Timestamp(secs(seconds))).unwrap();
        observable(&sim, "target_mbps")
    };
    let (early, late) = (target(5.0), target(25.0));
    // Updates come with frames, 33 ms apart, so that there are 20 in 4.67 s rather than in 4.
    let growth = (late - early) / 20.0;
    assert!((0.165..0.2).contains(&growth), "{growth:.4} Mbit/s per second");
}

/// A queue that marks instead of dropping: marks leave 0.9 of the window, so the queue is short and nothing is lost.
#[test]
fn scream_answers_marks() {
    let loss_and_delay = |ecn: bool| {
        let queue = json!({"kind": "codel", "limit": {"packets": 200}, "ecn": true});
        let flow = video("scream", &json!({"mode": "rfc", "ecn": ecn, "start_rate": 4.0}), 20.0);
        let net = Net { queue, record: json!({"packets": true}), ..Net::new(5.0, 40.0, 200) };
        let outcome = run(&net.spec(&json!([flow]), 60.0));
        (outcome.flows[0].sender.lost_packets, received_mbps(&outcome, 60.0), owd_p95_ms(&outcome))
    };
    let (lost, mbps, p95) = loss_and_delay(true);
    assert_eq!(lost, 0);
    assert!(mbps > 4.0 && p95 < 60.0, "{mbps:.3} Mbit/s, {p95:.1} ms");
    assert!(loss_and_delay(false).0 > 0, "CoDel drops what cannot be marked");
}

/// After a step from 3 to 1 Mbit/s the target is below the encoder's rate within a second and down within ten; the
/// queue of 350 ms shrinks to the target of the delay.
#[test]
fn scream_follows_a_step_down() {
    let mut sim = simulator(&step_down(&video("scream", &json!({"mode": "rfc", "start_rate": 2.0}), 2.7)));
    let mut after = |seconds: f64| {
        sim.run_until(Timestamp(secs(40.0 + seconds))).unwrap();
        (observable(&sim, "target_mbps"), observable(&sim, "queueing_delay_ms"))
    };
    // The target may be up to twice the encoder's rate.
    assert!(after(0.0).0 > 2.7);
    assert!(after(1.0).0 < 2.7);
    let (target, delay) = after(10.0);
    assert!(target < 1.1 && delay < 200.0, "{target:.3} Mbit/s, {delay:.1} ms");
}

/// With a scheme without a target rate the encoder follows the sending rate; frames leave in order and whole.
#[test]
fn video_follows_any_scheme() {
    for scheme in ["cubic", "bbr"] {
        let outcome = run(&step_down(&video(scheme, &json!({}), 2.5)));
        let frames = &outcome.flows[0].frames;
        let mbps = |from: usize, to: usize| {
            frames[from * 30..to * 30].iter().map(|frame| f64::from(frame.bytes)).sum::<f64>() * 8e-6
                / (to - from) as f64
        };
        assert!(mbps(20, 40) > 2.3, "{scheme}: {:.3} Mbit/s before the step", mbps(20, 40));
        assert!((0.6..1.05).contains(&mbps(45, 60)), "{scheme}: {:.3} Mbit/s after it", mbps(45, 60));
        let packets: u64 = frames.iter().map(|frame| u64::from(frame.packets)).sum();
        assert!(outcome.flows[0].sender.sent_packets <= packets, "{scheme}");
    }
}
