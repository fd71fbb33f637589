//! Tests of sources, send buffers, and sending during fast recovery.

use crate::common::{run, Net};
use ccgym_core::Timestamp;
use ccgym_run::{Outcome, RunSpec};
use serde_json::{json, Value};

/// Make a path of 10 Mbit/s, 40 ms and a buffer of 50 packets.
fn path(flows: &Value, seconds: f64) -> RunSpec {
    let record = json!({"packets": true, "series": 1_000_000});
    RunSpec { seed: 3, ..Net { record, ..Net::new(10.0, 40.0, 50) }.spec(flows, seconds) }
}

fn with_source(source: &Value, seconds: f64) -> Outcome {
    run(&path(&json!([{"scheme": "cubic", "source": source}]), seconds))
}

#[test]
fn a_constant_rate_with_an_end() {
    let outcome = with_source(&json!({"kind": "rate", "rate": 2_000_000, "bytes": 1_000_000}), 30.0);
    let flow = &outcome.flows[0];
    // 691 segments of 1448 bytes.
    assert_eq!(flow.received.unique_bytes, 691 * 1448);
    let took = flow.finished.since(flow.start).as_secs_f64();
    let last = 690.0 * 1448.0 * 8.0 / 2e6;
    assert!((last..last + 0.2).contains(&took), "{took} s, the last segment after {last} s");
}

#[test]
fn a_poisson_process() {
    let outcome = with_source(&json!({"kind": "poisson", "rate": 2_000_000}), 200.0);
    let rate = outcome.flows[0].received.unique_bytes as f64 * 8.0 / 200.0;
    assert!((rate / 2e6 - 1.0).abs() < 0.02, "{rate} bit/s");
    // For independent arrivals the variance of their number in a time is its mean.
    let data = outcome.data.as_ref().unwrap();
    let mut counts = vec![0.0f64; 2000];
    data.entered.iter().for_each(|at| counts[(at / 100_000_000).min(1999) as usize] += 1.0);
    let mean = counts.iter().sum::<f64>() / 2000.0;
    let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 2000.0;
    assert!((0.85..1.15).contains(&(variance / mean)), "mean {mean}, variance {variance}");
    let ends = with_source(&json!({"kind": "poisson", "rate": 2_000_000, "bytes": 100_000}), 30.0);
    assert_eq!(ends.flows[0].received.unique_bytes, 70 * 1448, "whole segments");
    assert!(ends.flows[0].finished.is_set() && ends.flows[0].transfers.is_empty());
}

/// Transfers that arrive as a Poisson process overlap, end in order, and have the offered rate.
#[test]
fn transfers_as_a_poisson_process() {
    let size = json!({"kind": "pareto", "min": 4000, "shape": 1.5, "max": 1_000_000});
    let source = |rate: u64| json!({"kind": "poisson", "rate": rate, "size": size});
    let outcome = with_source(&source(5_000_000), 400.0);
    let transfers = &outcome.flows[0].transfers;
    let offered = transfers.iter().map(|t| t.bytes).sum::<u64>() as f64 * 8.0 / 400.0;
    assert!((offered / 5e6 - 1.0).abs() < 0.1, "{offered} bit/s");
    let gaps: Vec<_> = transfers.windows(2).map(|pair| pair[1].asked.since(pair[0].asked).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((deviation / mean - 1.0).abs() < 0.05, "exponential gaps: mean {mean}, deviation {deviation}");
    assert!(transfers.windows(2).all(|pair| pair[0].finished <= pair[1].finished), "in order, over one connection");
    assert!(transfers.windows(2).any(|pair| pair[1].asked < pair[0].finished), "none waits for the one before it");
    // At 10 Mbit/s and 40 ms: propagation, and the time to send, without headers.
    for one in transfers.iter().filter(|t| t.finished.is_set()) {
        assert!(one.finished.since(one.asked).as_secs_f64() >= 0.040 + one.bytes as f64 * 8.0 / 10e6, "{one:?}");
    }
    assert!(transfers.iter().rev().skip(20).all(|t| t.finished.is_set()));
    let same = with_source(&source(5_000_000), 400.0);
    assert_eq!((same.hash, &same.flows[0].transfers), (outcome.hash, transfers), "drawn by the seed");
    let mut ends = source(5_000_000);
    ends["bytes"] = json!(300_000);
    let ends = with_source(&ends, 30.0);
    let sizes: Vec<_> = ends.flows[0].transfers.iter().map(|t| t.bytes).collect();
    let total = sizes.iter().sum::<u64>();
    assert!(total >= 300_000 && total - sizes[sizes.len() - 1] < 300_000, "it ends with the one that reaches it");
    assert_eq!(ends.flows[0].received.unique_bytes, total);
    assert!(ends.flows[0].finished.is_set());
}

#[test]
fn requests_and_responses() {
    let source = json!({"kind": "requests", "size": {"kind": "constant", "bytes": 100_000}, "think": 100_000_000});
    let outcome = with_source(&source, 60.0);
    let transfers = &outcome.flows[0].transfers;
    assert!(transfers.len() > 100, "{}", transfers.len());
    for pair in transfers.windows(2) {
        assert!(pair[0].finished.is_set() && pair[1].asked >= pair[0].finished, "one after the other: {pair:?}");
    }
    let thought: Vec<_> = transfers.windows(2).map(|p| p[1].asked.since(p[0].finished).as_secs_f64()).collect();
    let mean = thought.iter().sum::<f64>() / thought.len() as f64;
    assert!((0.08..0.12).contains(&mean), "{mean} s");
    let answered = transfers.iter().filter(|t| t.finished.is_set()).count() as u64;
    assert!((answered..=answered + 1).contains(&(outcome.flows[0].received.unique_bytes / 100_000)));
    // At 10 Mbit/s and 40 ms 100 kB take 123 ms at least.
    assert!(transfers.iter().filter(|t| t.finished.is_set()).all(|t| t.finished.since(t.asked).as_secs_f64() > 0.12));
    let three = with_source(&json!({"kind": "requests", "size": {"kind": "constant", "bytes": 1}, "count": 3}), 5.0);
    assert_eq!((three.flows[0].transfers.len(), three.flows[0].received.unique_bytes), (3, 3));
}

/// All servers of a group get requests at the same time, when the last one has answered.
#[test]
fn incast() {
    let flow = |bytes: u64| {
        json!({"scheme": "reno", "source": {"kind": "requests", "group": 1, "think": 10_000_000, "count": 20,
               "size": {"kind": "constant", "bytes": bytes}}})
    };
    let outcome = run(&path(&json!([flow(10_000), flow(20_000), flow(100_000), flow(10_000)]), 60.0));
    for round in 0..20 {
        let asked: Vec<_> = outcome.flows.iter().map(|f| f.transfers[round].asked).collect();
        assert!(asked.iter().all(|at| *at == asked[0]), "round {round}: {asked:?}");
        if round > 0 {
            let last = outcome.flows.iter().map(|f| f.transfers[round - 1].finished).max().unwrap();
            assert!(asked[0] >= last && last.is_set(), "round {round}: {asked:?}, last {last:?}");
        }
    }
    assert!(outcome.flows.iter().all(|f| f.transfers.len() == 20 && f.transfers[19].finished.is_set()));
    // A flow that stops does not delay the others.
    let mut stops = flow(1_000_000_000);
    stops["stop"] = json!(500_000_000);
    let outcome = run(&path(&json!([flow(10_000), stops]), 60.0));
    assert_eq!(outcome.flows[0].transfers.len(), 20);
    assert_eq!(outcome.flows[1].transfers[0].finished, Timestamp::NEVER);
}

/// A greedy application fills the buffer at once; its data then waits for the whole buffer to drain.
#[test]
fn a_send_buffer() {
    let flow = |bytes: u64| json!([{"scheme": "reno", "profile": "ns3", "send_buffer": bytes}]);
    let outcome = run(&path(&flow(1_000_000), 30.0));
    let f = &outcome.flows[0];
    let app = f.application.unwrap();
    assert_eq!(app.read_bytes, f.received.unique_bytes, "nothing is missing in the middle at the end");
    // Data written and not read: the buffer, less the data acknowledged half an RTT later.
    let waiting = app.written_bytes - app.read_bytes;
    assert!((850_000..=1_000_000).contains(&waiting), "{waiting}");
    // Little's law: a megabyte at 9.6 Mbit/s of payload.
    let delay = app.mean_delay().as_secs_f64();
    assert!((0.75..0.85).contains(&delay), "{delay} s");
    // A buffer smaller than the window bounds the rate.
    let small = run(&path(&flow(14_480), 30.0));
    let rate = small.flows[0].received.unique_bytes as f64 * 8.0 / 30.0;
    let bound = 14_480.0 * 8.0 / 0.040;
    assert!((0.9 * bound..=bound).contains(&rate), "{rate} bit/s of {bound}");
    // A large one only changes the measurement.
    let free = run(&path(&json!([{"scheme": "reno", "profile": "ns3"}]), 30.0));
    assert_eq!(run(&path(&flow(4_000_000), 30.0)).hash, free.hash);
}

/// During fast recovery PRR sends a part of the delivered bytes; the classic rule waits until half of the window has
/// drained, and then has the same window.
/// and then has the same window.
#[test]
fn classic_recovery_is_silent_first() {
    let outcome =
        |recovery: &str| run(&path(&json!([{"scheme": "reno", "profile": "tcp", "recovery": recovery}]), 30.0));
    let (prr, classic) = (outcome("prr"), outcome("classic"));
    for one in [&prr, &classic] {
        assert!(one.flows[0].sender.recoveries > 2 && one.flows[0].sender.rtos == 0, "{:?}", one.flows[0].sender);
        assert!(one.flows[0].received.unique_bytes as f64 * 8.0 / 30.0 > 9e6);
    }
    // The longest gap of the sender after its first loss, in packets of the link: 1.2 ms each.
    let silence = |outcome: &Outcome| {
        let sent = &outcome.data.as_ref().unwrap().entered;
        sent.windows(2).filter(|pair| pair[0] > 5_000_000_000).map(|pair| pair[1] - pair[0]).max().unwrap() as f64
            / 1.2e6
    };
    assert!(silence(&prr) < 10.0, "{}", silence(&prr));
    assert!(silence(&classic) > 20.0, "{}", silence(&classic));
}
