//! Tests of each expert with numbers, and properties of all of them.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{json, Value};

use super::gain_schedule::GainSchedule;
use super::*;
use crate::spec::Phase;
use crate::testing::{agent, at, interval, ms, plain, with, MSS};
use crate::StartOverrides;

/// Make an agent with Indigo's actions on a window that starts at `window` packets, with a known RTT of 40 ms.
fn window_agent(expert: Value, window: f64, expert_window: Option<u64>) -> FlowAgent {
    let startup = json!({"kind": "window", "packets": window});
    let spec = agent(&with(plain(), json!({"startup": startup, "expert": expert})));
    let mut flow = FlowAgent::new(Arc::new(spec));
    flow.start(at(0), MSS, StartOverrides { expert_window, ..StartOverrides::default() });
    flow.on_rtt(at(40), ms(40), ms(40));
    assert!(flow.observe(&interval(at(0), at(40), &[40]), None));
    flow
}

/// 12 Mbit/s: a packet per millisecond.
fn truth(backlog: f64, queue_limit: f64) -> GroundTruth {
    GroundTruth { link_rate: 24e6, fair_share: 12e6, base_rtt: 0.04, backlog, queue_limit, ..GroundTruth::default() }
}

fn label(flow: &FlowAgent, truths: &[GroundTruth]) -> (f64, Vec<f32>) {
    let label = flow.label(truths).expect("a label");
    (label.target, label.action().to_vec())
}

#[test]
fn the_best_window_is_given_or_follows_from_the_truth() {
    let expert = json!({"kind": "best_window"});
    let flow = window_agent(expert.clone(), 36.0, None);
    // 12 Mbit/s · (40 + 5 ms) / 1500 bytes; 36 + 10 is nearest.
    assert_eq!(label(&flow, &[truth(0.0, 100.0)]), (45.0, vec![3.0]));
    assert_eq!(flow.label(&[]), None);
    let slow = window_agent(json!({"kind": "best_window", "queueing": 60_000_000}), 36.0, None);
    // 72 is nearer to 100 than 46 is.
    assert_eq!(label(&slow, &[truth(0.0, 100.0)]), (100.0, vec![4.0]));
    let given = window_agent(expert, 36.0, Some(22));
    // 18, 26 and 36; the first two are as near.
    assert_eq!(label(&given, &[]), (22.0, vec![0.0]));
}

#[test]
fn muses_oracle_is_the_greatest_of_its_samples() {
    let flow = window_agent(json!({"kind": "fluid_bdp", "samples": 2}), 36.0, None);
    // 40 packets of path + 0.8 · 100 − 30.
    assert_eq!(label(&flow, &[truth(30.0, 100.0)]).0, 90.0);
    assert_eq!(label(&flow, &[truth(0.0, 100.0), truth(30.0, 100.0), truth(50.0, 100.0)]).0, 90.0);
    // Without limit, a quarter of the path counts.
    assert_eq!(label(&flow, &[truth(0.0, f64::INFINITY)]).0, 48.0);
    assert_eq!(label(&flow, &[truth(1000.0, 100.0)]), (2.0, vec![0.0]));
    assert_eq!(flow.label(&[GroundTruth::default()]), None);
}

#[test]
fn the_gain_schedule_by_hand() {
    let spec: ExpertSpec = serde_json::from_value(json!({"kind": "gain_schedule", "window": 2})).expect("an expert");
    let mut schedule = GainSchedule::of(&spec).expect("a schedule");
    let mut memory = Memory::new(1500);
    memory.min_rtt = 0.1;
    let mut m = MonitorInterval::new(at(0));
    assert_eq!(schedule.rate(), None);
    use Phase::{Drain, Probe, Startup};
    for (i, (phase, mbps, in_flight, wanted)) in [
        (Startup, 4.0, 0, 2.89 * 4.0),
        (Drain, 2.0, 0, 4.0 / 2.89),
        // At 4 Mbit/s 50,000 bytes fill 100 ms. A window of two forgets them after two more.
        (Probe, 4.0, 50_000, 1.25 * 4.0),
        (Probe, 4.0, 60_000, 0.75 * 4.0),
        // A fifth too much in flight: an interval at 0.8 drains it, but no more than one.
        (Probe, 4.0, 60_000, 0.8 * 4.0),
        (Probe, 4.0, 60_000, 0.95 * 4.0),
        (Probe, 4.0, 50_500, 0.99 * 4.0),
        (Probe, 4.0, 40_000, 4.0),
        // Nothing acknowledged, nothing changed.
        (Probe, 0.0, 0, 4.0),
        (Probe, 3.0, 0, 4.0),
        (Probe, 3.0, 0, 3.0),
        (Probe, 3.0, 0, 3.0),
        (Probe, 3.0, 0, 1.25 * 3.0),
        // Drained at once: one interval at 0.75 is enough.
        (Probe, 3.0, 0, 0.75 * 3.0),
        (Probe, 3.0, 0, 3.0),
        (Startup, 3.0, 0, 2.89 * 3.0),
        (Probe, 3.0, 0, 1.25 * 3.0),
    ]
    .into_iter()
    .enumerate()
    {
        (memory.phase, memory.delivery_rate) = (phase, mbps * 1e6);
        (m.in_flight, m.acked_packets) = (in_flight, u64::from(mbps > 0.0));
        schedule.observe(&m, &memory);
        let found = schedule.rate().expect("something was delivered") / 1e6;
        assert!((found - wanted).abs() < 1e-9, "step {i}: {found}, not {wanted}");
    }
}

#[test]
fn an_agent_with_a_schedule_tracks_phases() {
    let flow = window_agent(json!({"kind": "gain_schedule"}), 36.0, None);
    // One packet in 40 ms, 2.89 of them in 40 ms: 36 / 2 is nearest.
    let (target, action) = label(&flow, &[]);
    assert!((target - 2.89).abs() < 1e-9);
    assert_eq!(action, [0.0]);
    let mut flow = flow;
    for i in 1..6 {
        flow.observe(&interval(at(40 * i), at(40 * i + 40), &[40]), None);
    }
    assert_eq!(flow.phase(), Phase::Probe);
}

#[test]
fn a_window_is_a_rate_per_round_trip() {
    let spec = agent(&rate_agent(json!({"kind": "best_window"}), json!({"kind": "exponential", "base": 2.0})));
    let mut flow = FlowAgent::new(Arc::new(spec));
    flow.start(at(0), MSS, StartOverrides { expert_window: Some(100), ..StartOverrides::default() });
    // No RTT yet, and no decision.
    assert_eq!(flow.label(&[]), None);
    flow.on_rtt(at(40), ms(40), ms(40));
    flow.observe(&interval(at(0), at(60), &[40, 60]), None);
    // 100 packets in 50 ms are 24 Mbit/s; 10 packets in 40 ms are 3 Mbit/s: three doublings.
    let (target, action) = label(&flow, &[]);
    assert!((target - 24e6).abs() < 1.0, "{target}");
    assert!((action[0] - 3.0).abs() < 1e-6, "{action:?}");
    flow.act(at(60), &action);
    assert!((flow.rate() - 24e6).abs() < 100.0);
}

fn rate_agent(expert: Value, map: Value) -> Value {
    let action = json!({"map": map, "target": "rate", "bounds": [-8.0, 8.0]});
    let startup = json!({"kind": "packets_per_rtt", "packets": 10});
    let change = json!({"clock": {"interval": 50_000_000}, "action": action, "startup": startup, "expert": expert});
    with(plain(), change)
}

#[test]
fn experts_describe_themselves_and_say_what_they_must_know() {
    for (expert, words, truths) in [
        (
            json!({"kind": "best_window"}),
            "fair_share · (base_rtt + 5 ms); the label is the action whose result is \
            nearest to that, by ratio; knows the path's ground truth",
            1,
        ),
        (json!({"kind": "fluid_bdp", "nearest": "linear"}), "by absolute distance; knows", 5),
        (json!({"kind": "gain_schedule"}), "times 2.89 in start-up, 0.3460 in drain, then 1.25, 0.75, 1,", 0),
    ] {
        let spec = agent(&rate_agent(expert, json!({"kind": "exponential", "base": 2.0})));
        let text = spec.describe()["expert"].as_str().expect("text").to_owned();
        assert!(text.contains(words), "{text}");
        assert_eq!(spec.expert_truths(), truths);
        let written = serde_json::to_value(&spec).expect("JSON");
        assert_eq!(serde_json::from_value::<AgentSpec>(written).expect("as it was"), spec);
    }
    let spec = agent(&plain());
    assert_eq!(spec.describe()["expert"], Value::Null);
    assert!(serde_json::to_value(&spec).expect("JSON").get("expert").is_none());
}

proptest! {
    /// For any input of an expert, its label is an action, and no action is nearer.
    #[test]
    fn labels_are_valid_actions(
        map in 0usize..4,
        kind in 0usize..3,
        steps in prop::collection::vec((0u64..300, prop::option::of(1u64..500), 0.0f64..1e10), 1..12),
        linear in any::<bool>(),
    ) {
        let map = [
            json!({"kind": "discrete", "operations": ["*2.89", "*1.25", "*1", "/2", "+10", "-10"]}),
            json!({"kind": "signed_multiply", "delta": 0.5}),
            json!({"kind": "exponential", "base": 4.0}),
            json!({"kind": "gain_on_estimate", "gains": [0.5, 1.0, 2.0], "estimate": "max(delivery_rate, 3)"}),
        ][map].clone();
        let nearest = if linear { "linear" } else { "log" };
        let expert = [
            json!({"kind": "best_window", "nearest": nearest}),
            json!({"kind": "fluid_bdp", "nearest": nearest}),
            json!({"kind": "gain_schedule", "nearest": nearest}),
        ][kind].clone();
        let spec = Arc::new(agent(&rate_agent(expert, map)));
        let mut flow = FlowAgent::new(spec.clone());
        flow.start(at(0), MSS, StartOverrides::default());
        let mut now = 0;
        for (length, rtt, rate) in steps {
            let rtts: Vec<_> = rtt.into_iter().collect();
            if let Some(rtt) = rtt {
                flow.on_rtt(at(now + length), ms(rtt), ms(rtt));
            }
            flow.observe(&interval(at(now), at(now + length), &rtts), None);
            now += length;
            let truth = GroundTruth { fair_share: rate, ..truth(rate / 1e8, f64::INFINITY) };
            let Some(label) = flow.label(&[truth]) else { continue };
            prop_assert!(label.target.is_finite() && label.target > 0.0);
            match spec.action_kind() {
                crate::ActionKind::Discrete(n) => {
                    let index = label.action()[0];
                    prop_assert!(index.fract() == 0.0 && (0.0..n as f32).contains(&index));
                }
                crate::ActionKind::Box { size, low, high } => {
                    prop_assert_eq!(label.action().len(), size);
                    prop_assert!(label.action().iter().all(|a| (low..=high).contains(a)));
                }
            }
            // Within the limits, and no other action ends nearer.
            let wanted = label.target.clamp(1e4, 1e12);
            let end = |action: &[f32]| {
                let mut copy = flow.clone();
                copy.act(at(now), action);
                if linear { (copy.rate() - wanted).abs() } else { (copy.rate() / wanted).ln().abs() }
            };
            let found = end(label.action());
            for i in 0..17 {
                let other = end(&[if spec.action_kind().size() == 1 { i as f32 - 8.0 } else { 0.0 }]);
                prop_assert!(found <= other * 1.000_01 + wanted * 1e-5, "{found} {other}");
            }
            flow.act(at(now), label.action());
            prop_assert_eq!(flow.rejected_actions(), 0);
        }
    }
}
