//! Tests of whole agents: published ones with numbers, start-ups, guards, late decisions, and properties over arbitrary
//! intervals.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{json, Value};

use super::signals::SIGNALS;
use super::testing::{agent, at, gaining, interval, ms, over_cubic, plain, with, MSS};
use super::*;

fn aurora() -> Value {
    json!({
        "name": "aurora",
        "clock": {"kind": "rtt", "multiple": 0.5, "floor": 1_000_000, "warm_up_rtts": 3.0, "first_rtts": 1.5,
                  "no_ack": 5_000_000_000u64},
        "observation": {"history": 10, "features": [
            {"signal": "rtt_inflation", "clip": [-1, 10], "empty": 0},
            {"signal": "latency_ratio", "clip": [1, 10000], "empty": 1},
            {"signal": "send_ratio", "clip": [0, 1000], "empty": 1}]},
        "action": {"map": {"kind": "signed_multiply", "delta": 0.025}, "target": "rate", "bounds": [-1e12, 1e12],
                   "limits": {"rate": [480_000, 12_000_000]}},
        "reward": {"scale": 0.001, "terms": [
            {"term": "throughput", "weight": 10, "of": "receive_rate", "unit": "packets/s"},
            {"term": "latency", "weight": -1000}, {"term": "loss", "weight": -2000}]},
        "startup": {"kind": "rate", "rate": 3_000_000}
    })
}

fn started(json: &Value) -> FlowAgent {
    let mut flow = FlowAgent::new(Arc::new(agent(json)));
    flow.start(at(0), MSS, StartOverrides::default());
    flow
}

/// Return the window in packets and the rate in bit/s.
fn in_force(flow: &FlowAgent) -> (f64, u64) {
    let control = flow.control(None);
    (control.cwnd as f64 / MSS as f64, control.pacing_rate.0)
}

#[test]
fn aurora_by_hand() {
    let mut flow = started(&aurora());
    assert_eq!(in_force(&flow), (u64::MAX as f64 / MSS as f64, 3_000_000));
    flow.on_rtt(at(100), ms(100), ms(100));
    assert_eq!(flow.next_decision(), at(300));
    // Warm-up: a decision, but nothing recorded.
    assert!(flow.observe(&interval(at(0), at(300), &[100, 90]), None));
    let empty: Vec<f32> = [0.0, 1.0, 1.0].repeat(10);
    assert_eq!(flow.observation(), empty);
    flow.act(at(300), &[2.0]);
    // 3 Mbit/s · (1 + 0.025 · 2).
    assert_eq!(in_force(&flow).1, 3_150_000);
    assert_eq!(flow.next_decision(), at(450));

    // Four packets: halves 105 and 115 ms. Inflation 10 ms / 150 ms; ratio 1, as 95 ms of the warm-up do not count;
    // sent 4, received 4 − 1 packets.
    let m = interval(at(300), at(450), &[100, 110, 110, 120]);
    assert!(flow.observe(&m, None));
    assert_eq!(flow.observation()[..27], empty[..27]);
    assert_eq!(flow.observation()[27..], [(0.01f64 / 0.15) as f32, 1.0, (4.0f64 / 3.0) as f32]);
    let mut terms = [0.0; 3];
    let reward = flow.reward(&GroundTruth::default(), &mut terms);
    // 20 packets/s and 110 ms.
    let by_hand = [0.001 * 10.0 * 20.0, -0.001 * 1000.0 * 0.11, 0.0];
    assert!(terms.iter().zip(by_hand).all(|(a, b)| (a - b).abs() < 1e-12), "{terms:?}");
    assert!((reward - 0.09).abs() < 1e-12);
    flow.act(at(450), &[-4.0]);
    assert_eq!(in_force(&flow).1, (3_150_000.0f64 / 1.1) as u64);

    // Half the mean RTT of 110 ms later; one packet acknowledged: nothing received, so the send ratio is 1.
    assert_eq!(flow.next_decision(), at(505));
    assert!(flow.observe(&interval(at(450), at(505), &[143]), None));
    assert_eq!(flow.observation()[27..], [0.0, (0.143f64 / 0.11) as f32, 1.0]);
    assert_eq!(flow.observation()[24..27], [(0.01f64 / 0.15) as f32, 1.0, (4.0f64 / 3.0) as f32]);
    // No sample: latency ratio 1, the latency of the reward is the last known, and the interval's length stays.
    let m = interval(at(505), at(576), &[]);
    assert!(flow.observe(&m, None));
    assert_eq!(flow.observation()[27..], [0.0, 1.0, 1.0]);
    assert!((flow.reward(&GroundTruth::default(), &mut []) + 0.143).abs() < 1e-12);
    assert_eq!(flow.next_decision(), Timestamp(at(576).0 + 71_500_000));
    // Unbounded actions end at the limits.
    flow.act(at(576), &[3e38]);
    assert_eq!(in_force(&flow).1, 12_000_000);
    flow.act(at(576), &[-1e12]);
    assert_eq!(in_force(&flow).1, 480_000);
}

#[test]
fn aurora_describes_itself() {
    let spec = agent(&aurora());
    assert_eq!((spec.observation_size(), FlowAgent::new(Arc::new(spec.clone())).needs_rate_samples()), (30, false));
    let (low, high) = crate::testing::observation_bounds(&spec);
    assert_eq!((&low[..3], &high[27..]), (&[-1.0, 1.0, 0.0][..], &[10.0, 10000.0, 1000.0][..]));
    assert_eq!(spec.action_kind(), ActionKind::Box { size: 1, low: -1e12, high: 1e12 });
    assert_eq!(spec.term_names(), ["throughput", "latency", "loss"]);
    let words = spec.describe();
    assert_eq!(words["observation"][0]["name"], "rtt_inflation [t−9]");
    assert_eq!(words["observation"][28]["name"], "latency_ratio");
    assert_eq!(words["observation"][0]["unit"], "s/s");
    let action = words["action"][0]["formula"].as_str().expect("text");
    assert!(action.starts_with("rate ← rate · (1 + 0.025·a) if a ≥ 0, else rate / (1 − 0.025·a)"), "{action}");
    assert_eq!(words["reward"][0]["weight"], 0.01);
    assert!(words["clock"].as_str().expect("text").contains("0.5 × the previous interval's mean round trip"));
    let action = json!({"target": "rate", "limits": {"packets_per_min_rtt": 2}, "cwnd_cap": {"bdp": 2, "packets": 4}});
    let words = agent(&with(plain(), json!({"action": action}))).describe();
    assert_eq!(words["action"].as_array().expect("rows").len(), 5);
    assert_eq!(
        words["action"][1]["formula"],
        "rate ← rate − 10 packets per min_rtt; rate at least \
         2 packets per min_rtt; cwnd at most 2 · max_delivery_rate · min_rtt + 4 packets"
    );
    assert_eq!(vocabulary()["signals"].as_array().expect("rows").len(), SIGNALS.len());
}

#[test]
fn json_goes_there_and_back() {
    for json in [aurora(), plain()] {
        let spec = agent(&json);
        let text = serde_json::to_string(&spec).expect("serializes");
        assert_eq!(AgentSpec::from_json(&text).expect("reads its own writing"), spec);
    }
}

#[test]
fn windows_keep_fractions_and_their_floor() {
    let mut flow = started(&plain());
    assert_eq!(in_force(&flow), (10.0, 0));
    for (index, window) in [(0.0, 5.0), (0.0, 2.5), (0.4, 2.0), (3.0, 12.0), (9.0, 24.0), (2.0, 24.0), (1.0, 14.0)] {
        flow.act(at(0), &[index]);
        assert_eq!(in_force(&flow).0, window);
    }
    for action in [&[f32::NAN][..], &[f32::INFINITY], &[], &[1.0, 1.0]] {
        flow.act(at(0), action);
        assert_eq!((in_force(&flow).0, flow.window()), (14.0, 14.0));
    }
    assert_eq!(flow.rejected_actions(), 4);
}

#[test]
fn the_previous_action_is_seen() {
    let features = json!([{"signal": "rtt_count", "clip": [0, 9]}]);
    let seen = |observation: Value| {
        let observation = with(observation, json!({"features": features}));
        let mut flow = started(&with(plain(), json!({"observation": observation})));
        let before = flow.observation().to_vec();
        flow.act(at(0), &[3.0]);
        flow.observe(&interval(at(0), at(10), &[5, 5]), None);
        (before, flow.observation().to_vec())
    };
    let (before, after) = seen(json!({"previous_action": "one_hot", "initial_action": 4}));
    assert_eq!(before, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(after, [2.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let (before, after) = seen(json!({"previous_action": "value", "history": 2}));
    assert_eq!(before, [0.0; 4]);
    assert_eq!(after, [0.0, 0.0, 2.0, 3.0]);
}

#[test]
fn late_decisions_take_effect_in_order() {
    let mut flow = started(&with(plain(), json!({"decision_latency": 25_000_000})));
    flow.act(at(10), &[4.0]);
    flow.act(at(20), &[3.0]);
    assert_eq!((in_force(&flow).0, flow.next_timer()), (10.0, at(35)));
    flow.on_timer(at(35));
    assert_eq!((in_force(&flow).0, flow.next_timer()), (20.0, at(45)));
    flow.on_timer(at(50));
    assert_eq!((in_force(&flow).0, flow.next_timer()), (30.0, Timestamp::NEVER));
}

#[test]
fn pacing_and_caps() {
    let action = |extra: Value| with(plain(), json!({"action": extra}));
    let mut flow = started(&action(json!({"pace": "cwnd_over_min_rtt"})));
    assert_eq!(in_force(&flow), (10.0, 0));
    flow.on_rtt(at(5), ms(100), ms(100));
    // 10 packets of 12,000 bits in 0.1 s; a smaller round trip counts at once.
    assert_eq!(in_force(&flow), (10.0, 1_200_000));
    flow.on_rtt(at(6), ms(50), ms(50));
    assert_eq!(in_force(&flow), (10.0, 2_400_000));

    let cap = json!({"bdp": 2.0, "packets": 4, "estimate": "max(delivery_rate, 2)"});
    let mut flow = started(&action(json!({"cwnd_cap": cap, "target": "rate"})));
    flow.start(at(0), MSS, StartOverrides { rate: Some(Rate(1_000_000)), ..StartOverrides::default() });
    assert_eq!(flow.control(None).cwnd, u64::MAX);
    flow.observe(&interval(at(0), at(50), &[50; 5]), None);
    // 5 packets in one minimum RTT.
    assert_eq!(in_force(&flow), (14.0, 1_000_000));

    // In start-up another multiple; it ends when the delivery rate has been flat for three intervals.
    let cap = json!({"bdp": 1.0, "packets": 4, "startup": 3.0});
    let mut flow = started(&action(json!({"cwnd_cap": cap, "target": "rate"})));
    flow.start(at(0), MSS, StartOverrides { rate: Some(Rate(1_000_000)), ..StartOverrides::default() });
    let windows = [0, 1, 2, 3, 4].map(|i| {
        flow.observe(&interval(at(50 * i), at(50 * (i + 1)), &[50; 5]), None);
        in_force(&flow).0
    });
    assert_eq!(windows, [19.0, 19.0, 19.0, 9.0, 9.0]);
}

#[test]
fn rates_per_round_trip() {
    let action = json!({"map": {"kind": "discrete", "operations": ["+1", "/100"]}, "target": "rate",
                        "limits": {"packets_per_min_rtt": 2}});
    let spec = with(plain(), json!({"action": action, "startup": {"kind": "packets_per_rtt", "packets": 10}}));
    let mut flow = started(&spec);
    assert_eq!(in_force(&flow), (10.0, 0));
    flow.act(at(1), &[1.0]);
    assert_eq!(in_force(&flow), (10.0, 0));
    flow.on_rtt(at(100), ms(100), ms(100));
    assert_eq!(in_force(&flow).1, 1_200_000);
    flow.act(at(100), &[0.0]);
    assert_eq!(in_force(&flow).1, 1_320_000);
    flow.act(at(100), &[1.0]);
    assert_eq!(in_force(&flow).1, 240_000);
}

#[test]
fn both_knobs() {
    let action = json!({"map": {"kind": "pair", "delta": 1.0}, "target": "both"});
    let mut flow = started(&with(plain(), json!({"action": action, "startup": {"kind": "rate", "rate": 1_200_000}})));
    assert_eq!((flow.control(None).cwnd as f64 / MSS as f64, flow.control(None).pacing_rate.0), (1e6, 1_200_000));
    // Twice 1.2 Mbit/s over 100 ms.
    flow.on_rtt(at(100), ms(100), ms(100));
    assert_eq!(in_force(&flow), (20.0, 1_200_000));
    flow.act(at(100), &[1.0, -1.0]);
    assert_eq!(in_force(&flow), (10.0, 2_400_000));
    flow.start(at(0), MSS, StartOverrides { rate: Some(Rate(500_000)), window: Some(7), expert_window: None });
    assert_eq!(in_force(&flow), (7.0, 500_000));
}

#[test]
fn slow_start_doubles_and_leaves_by_each_sign() {
    let spec = |exit: &str| with(plain(), json!({"startup": {"kind": "slow_start", "exit": [exit]}}));
    let mut flow = started(&spec("loss"));
    for _ in 0..10 {
        flow.on_rtt(at(100), ms(100), ms(100));
    }
    assert_eq!(in_force(&flow).0, 20.0);
    // Ten samples were counted as they came; five packets more were acknowledged without one.
    let mut m = interval(at(0), at(100), &[100; 10]);
    m.acked_packets += 5;
    assert!(!flow.observe(&m, None));
    assert_eq!(in_force(&flow).0, 25.0);
    flow.act(at(100), &[0.0]);
    assert_eq!(in_force(&flow).0, 25.0);
    flow.on_loss();
    assert!(flow.observe(&interval(at(100), at(200), &[100; 20]), None));
    // The max delivery rate is 20 packets per min RTT.
    assert_eq!((in_force(&flow).0, flow.startup.is_over()), (20.0, true));

    let mut flow = started(&spec("plateau"));
    let rounds = [10u64, 20, 40, 44, 48, 49];
    for (i, acked) in rounds.into_iter().enumerate() {
        let (from, to) = (at(100 * i as u64), at(100 * (i as u64 + 1)));
        let rtts = vec![100; acked as usize];
        assert_eq!(flow.observe(&interval(from, to, &rtts), None), i == 5);
    }
    let mut flow = started(&spec("delay"));
    flow.on_rtt(at(100), ms(100), ms(100));
    for (from, shortest, over) in [(0, 112, false), (100, 113, true)] {
        let mut m = interval(at(from), at(from + 100), &[130, shortest]);
        m.min_rtt = ms(100);
        assert_eq!(flow.observe(&m, None), over);
    }
}

#[test]
fn after_a_timeout_a_packet_at_a_time_until_something_is_acknowledged() {
    let double: &[f32] = &[1.0];
    let clock = json!({"kind": "rtt", "multiple": 1.0});
    let action = json!({"map": {"kind": "signed_multiply", "delta": 1.0}, "target": "rate"});
    let spec = with(plain(), json!({"clock": clock, "action": action, "startup": {"kind": "rate", "rate": 1_000_000}}));
    let mut flow = started(&spec);
    flow.on_rtt(at(100), ms(100), ms(100));
    assert!(flow.observe(&interval(at(0), at(100), &[100; 5]), None));
    flow.act(at(100), double);
    // No acknowledgement arrives, which looks like an empty path.
    for i in 1..4 {
        assert!(flow.observe(&interval(at(100 * i), at(100 * (i + 1)), &[]), None));
        flow.act(at(100 * (i + 1)), double);
    }
    let sent = |flow: &FlowAgent| (flow.control(None).cwnd, flow.control(None).pacing_rate.0);
    assert_eq!(sent(&flow), (u64::MAX, 16_000_000));
    assert!(!flow.on_ack_only());
    flow.on_timeout();
    assert_eq!(sent(&flow), (MSS, 2_000_000), "what was heard led to it");
    assert!(flow.on_ack_only(), "a silence is one interval");
    flow.act(at(450), double);
    flow.on_timeout();
    assert_eq!(sent(&flow), (MSS, 2_000_000));
    flow.on_acked();
    assert_eq!(sent(&flow), (u64::MAX, 2_000_000));
    assert!(flow.on_ack_only(), "the interval of the silence ends with the acknowledgement");
    assert!(flow.observe(&interval(at(400), at(9000), &[100]), None));
    flow.act(at(9000), double);
    assert_eq!(flow.control(None).pacing_rate.0, 4_000_000);
    assert!(!flow.on_ack_only());
}

#[test]
fn a_silence_limits_an_agent_over_a_base_scheme_unless_it_is_passive() {
    for (map, limited) in [(json!({"kind": "exponential", "base": 4}), true), (json!({"kind": "passive"}), false)] {
        let mut flow = started(&with(over_cubic(), json!({"action": {"map": map}, "startup": {"kind": "none"}})));
        flow.on_timeout();
        let window = flow.control(Some(&Control::window(10 * MSS))).cwnd;
        assert_eq!((window, flow.on_ack_only()), if limited { (MSS, true) } else { (10 * MSS, false) }, "{map}");
    }
}

#[test]
fn the_window_of_a_base_scheme_is_overwritten() {
    let action = json!({"map": {"kind": "exponential", "base": 4}, "limits": {"window": [4, 1000]}});
    let spec = with(over_cubic(), json!({"action": action}));
    let mut flow = started(&spec);
    let inner = |packets: u64| Control { pacing_rate: Rate(8_000_000), ..Control::window(packets * MSS) };
    let mut m = interval(at(0), at(10), &[5]);
    m.ssthresh = Some(u64::MAX);
    assert!(!flow.observe(&m, Some(&inner(10))));
    flow.act(at(10), &[1.0]);
    assert_eq!((flow.take_window(), flow.control(Some(&inner(10)))), (None, inner(10)));
    (m.ssthresh, m.cwnd) = (Some(8 * MSS), 9 * MSS);
    assert!(flow.observe(&m, Some(&inner(9))));
    // Once for each decision: twice what the scheme had when the interval ended, then no less than the floor.
    flow.act(at(20), &[0.5]);
    assert_eq!((flow.take_window(), flow.take_window()), (Some(18 * MSS), None));
    flow.act(at(30), &[-1.0]);
    assert_eq!(flow.take_window(), Some(4 * MSS));
    // In between the scheme decides; the max window limits its growth.
    assert_eq!(flow.control(Some(&inner(11))), inner(11));
    assert_eq!(flow.control(Some(&inner(1001))).cwnd, 1000 * MSS);

    // A start-up that multiplies, a window that is paced, a decision that is late.
    let late = json!({"action": {"pace": "cwnd_over_min_rtt"}, "startup": {"gain": 1.5},
                      "decision_latency": 5_000_000});
    let mut flow = started(&with(spec.clone(), late));
    m.ssthresh = Some(u64::MAX);
    assert!(!flow.observe(&m, Some(&inner(10))));
    assert_eq!(flow.take_window(), Some(15 * MSS));
    flow.on_rtt(at(10), ms(100), ms(100));
    assert_eq!(flow.control(Some(&inner(15))).pacing_rate, Rate(1_800_000));
    m.ssthresh = Some(8 * MSS);
    assert!(flow.observe(&m, Some(&inner(9))));
    flow.act(at(20), &[0.5]);
    assert_eq!(flow.take_window(), None);
    flow.on_timer(at(25));
    assert_eq!(flow.take_window(), Some(18 * MSS));

    let passive = json!({"action": {"map": {"kind": "passive"}}, "startup": {"kind": "none"}});
    let mut flow = started(&with(spec, passive));
    assert!(flow.observe(&m, Some(&inner(20))));
    flow.act(at(10), &[0.0]);
    assert_eq!(flow.control(Some(&inner(3000))), inner(3000));
}

#[test]
fn the_gain_of_a_base_scheme_is_a_map_of_one() {
    let inner = Control { pacing_rate: Rate(8_000_000), ..Control::window(2_000_000 * MSS) };
    let mut flow = started(&gaining());
    assert!(flow.sets_gain() && !flow.overwrites());
    let step = |flow: &mut FlowAgent, i: u64, action: f32| {
        assert!(flow.observe(&interval(at(10 * i), at(10 * (i + 1)), &[5]), Some(&inner)));
        flow.act(at(10 * (i + 1)), &[action]);
        flow.observation()[0]
    };
    assert_eq!((flow.gain(), flow.take_gain()), (1.0, None));
    // The observed action is that of the interval before the decision.
    for (i, (action, seen, gain)) in
        [(1.0, 1.0, 2.0), (1.0, 2.0, 2.0), (9.0, 2.0, 4.0), (-3.0, 4.0, 0.125), (-9.0, 0.125, 0.125)]
            .into_iter()
            .enumerate()
    {
        assert_eq!(step(&mut flow, i as u64, action), seen);
        assert_eq!((flow.take_gain(), flow.take_gain(), flow.gain()), (Some(gain), None, gain));
        // Rate and window are the base scheme's, beyond the limits of those, too.
        assert_eq!((flow.take_window(), flow.control(Some(&inner))), (None, inner));
    }
    // An invalid action changes nothing.
    assert_eq!(step(&mut flow, 9, f32::NAN), 0.125);
    assert_eq!((flow.take_gain(), flow.gain(), flow.rejected_actions()), (None, 0.125, 1));
    // Nor does a timeout, after which the base scheme continues alone.
    flow.on_timeout();
    assert_eq!((flow.control(Some(&inner)), flow.on_ack_only()), (inner, false));
    step(&mut flow, 10, 0.0);
    assert_eq!(flow.take_gain(), Some(1.0));
    flow.start(at(0), MSS, StartOverrides::default());
    assert_eq!((flow.gain(), flow.take_gain()), (1.0, None));

    let action = |extra: Value| with(gaining(), json!({"action": extra}));
    let operations = json!({"kind": "discrete", "operations": ["/8", "*1", "*4"]});
    let mut flow = started(&action(json!({"map": operations, "limits": {"gain": [0.5, 3]}})));
    for (choice, gain) in [(0.0, 0.5), (1.0, 1.0), (2.0, 3.0), (1.0, 1.0)] {
        step(&mut flow, 0, choice);
        assert_eq!(flow.take_gain(), Some(gain));
    }
    let mut flow = started(&action(json!({"map": {"kind": "signed_multiply", "delta": 1}})));
    step(&mut flow, 0, -3.0);
    assert_eq!(flow.take_gain(), Some(0.25));
    // A passive agent has no decisions.
    let mut flow = started(&action(json!({"map": {"kind": "passive"}})));
    step(&mut flow, 0, 0.0);
    assert_eq!((flow.sets_gain(), flow.take_gain(), flow.control(Some(&inner))), (false, None, inner));
}

#[test]
fn a_gain_waits_for_the_start_up_and_for_late_decisions() {
    let inner = Control::window(10 * MSS);
    let mut flow = started(&with(gaining(), json!({"startup": {"kind": "inner"}, "decision_latency": 5_000_000})));
    assert!(!flow.observe(&interval(at(0), at(10), &[5]), Some(&inner)));
    flow.on_loss();
    assert!(flow.observe(&interval(at(10), at(20), &[5]), Some(&inner)));
    flow.act(at(20), &[1.0]);
    assert_eq!((flow.take_gain(), flow.next_timer()), (None, at(25)));
    flow.on_timer(at(25));
    assert_eq!((flow.take_gain(), flow.take_window()), (Some(2.0), None));
}

#[test]
fn a_gain_is_described() {
    let described = |spec: &Value| agent(spec).describe()["action"].clone();
    let row = &described(&gaining())[0];
    assert_eq!(
        [&row["name"], &row["low"], &row["high"]],
        [&json!("gain of the base scheme"), &json!(-3.0), &json!(2.0)]
    );
    assert_eq!(
        row["formula"],
        "gain of the base scheme ← 1 · 2^a, within [0.01, 100]; so many times what it lets wait in the queue, 1 being its \
         own; cwnd and pacing stay its own"
    );
    let operations = json!({"kind": "discrete", "operations": ["/2", "*1.5"]});
    let listed = with(gaining(), json!({"action": {"map": operations}}));
    let rows = described(&listed);
    let text = rows[1]["formula"].as_str().expect("text");
    assert!(text.starts_with("gain of the base scheme ← 1 · 1.5; so many times"), "{text}");
    assert_eq!((&rows[0]["unit"], &rows[0]["low"], &rows[0]["high"]), (&json!("1"), &json!(0.01), &json!(100.0)));

    // Cards of agents that steer no gain stay unchanged.
    assert!(!serde_json::to_string(&agent(&plain())).expect("serializes").contains("gain"));
}

#[test]
fn starting_again_forgets_everything() {
    let spec = with(aurora(), json!({"guard": {"kind": "recovery"}}));
    let (fresh, mut used) = (started(&spec), started(&spec));
    used.on_rtt(at(9), ms(9), ms(9));
    for i in 0..5 {
        used.observe(&interval(at(100 * i), at(100 * i + 100), &[9, 12]), None);
        used.act(at(100 * i + 100), &[f32::NAN]);
        used.act(at(100 * i + 100), &[30.0]);
    }
    used.start(at(0), MSS, StartOverrides::default());
    let state = |flow: &FlowAgent| {
        (flow.observation().to_vec(), flow.control(None), flow.next_decision(), flow.rejected_actions(), flow.rate())
    };
    assert_eq!(state(&fresh), state(&used));
    used.start(at(0), MSS, StartOverrides { rate: Some(Rate(1_234_567)), ..StartOverrides::default() });
    assert_eq!(in_force(&used).1, 1_234_567);
}

/// Make an agent that observes every signal in several ways.
fn all_seeing(history: u32) -> Value {
    let mut features = Vec::new();
    for (i, signal) in SIGNALS.iter().enumerate() {
        let name = signal.name;
        features.push(json!({"signal": name, "clip": [-3, 3], "history": 1 + i as u32 % history}));
        features.push(json!({"signal": format!("std({name}, 3)"), "over": name, "clip": [-1e30, 1e30]}));
        features.push(json!({"signal": format!("mean({name}, 2)"), "log": true, "clip": [-20, 20]}));
        features.push(json!({"signal": format!("previous({name}, 2)"), "scale": 1e300, "clip": [0, 1]}));
    }
    json!({"features": features, "history": history, "previous_action": "value"})
}

prop_compose! {
    fn arbitrary_interval()(
        duration in 0u64..3_000_000_000,
        sent in 0u64..100_000,
        acked in 0u64..100_000,
        lost in 0u64..100_000,
        rtts in prop::collection::vec(0u64..10_000_000_000, 0..6),
        cwnd in any::<u64>(),
        rate in any::<u64>(),
        srtt in 0u64..10_000_000_000,
        known in any::<bool>(),
        ssthresh in any::<Option<u64>>(),
        timeouts in 0u64..2,
        ewma in any::<f64>(),
    ) -> MonitorInterval {
        let from = Timestamp(20_000_000_000);
        let to = Timestamp(from.0 + duration);
        let millis: Vec<u64> = rtts.iter().map(|rtt| rtt / 1_000_000).collect();
        let mut m = interval(from, to, &millis);
        (m.sent_packets, m.sent_bytes) = (sent, sent * MSS);
        (m.acked_packets, m.acked_bytes) = (acked, acked * MSS);
        (m.lost_packets, m.lost_bytes, m.timeouts) = (lost, lost * MSS, timeouts);
        (m.cwnd, m.pacing_rate, m.ssthresh, m.srtt) = (cwnd, Rate(rate), ssthresh, TimeSpan(srtt));
        m.min_rtt = if known { m.interval_min_rtt().unwrap_or(TimeSpan(1)) } else { TimeSpan::MAX };
        m.on_rates(TimeSpan(srtt), TimeSpan(srtt), Rate(rate), Rate(rate));
        m.ewma.delivery_rate = ewma;
        m
    }
}

/// Make agents of every map and target.
fn agents() -> Vec<Value> {
    let discrete = json!({"kind": "discrete", "operations": ["/2", "-10", "+10", "*2"]});
    let gains = |estimate: &str| json!({"kind": "gain_on_estimate", "gains": [0.1, 3], "estimate": estimate});
    let actions = [
        json!({"map": discrete, "target": "both"}),
        json!({"map": {"kind": "signed_multiply", "delta": 5}, "target": "rate", "bounds": [-1e12, 1e12],
               "limits": {"packets_per_min_rtt": 2}, "cwnd_cap": {"bdp": 0, "packets": 0}}),
        json!({"map": {"kind": "exponential", "base": 100}, "target": "cwnd", "bounds": [-1e9, 1e9],
               "pace": "cwnd_over_srtt"}),
        json!({"map": gains("max(delivery_rate, 3)"), "target": "rate"}),
        json!({"map": gains("bdp"), "target": "cwnd", "pace": "cwnd_over_min_rtt"}),
        json!({"map": {"kind": "pair", "delta": 1e6}, "target": "both"}),
    ];
    let starts = [
        json!({"kind": "slow_start"}),
        json!({"kind": "packets_per_rtt", "packets": 10}),
        json!({"kind": "window", "packets": 1e9}),
    ];
    let guards = [json!({"kind": "recovery", "patience": 1}), json!({"kind": "none"})];
    let terms = json!([{"term": "orca_power", "weight": 1e300}, {"term": "latency", "weight": -1, "phase": ["drain"]}]);
    let agent = |(i, action): (usize, Value)| {
        json!({"name": "any", "clock": {"kind": "rtt", "multiple": 1.0}, "observation": all_seeing(4), "action": action,
               "startup": starts[i % 3], "guard": guards[i % 2], "reward": {"terms": terms}})
    };
    actions.into_iter().enumerate().map(agent).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn observations_stay_in_bounds_and_control_above_its_floor(
        steps in prop::collection::vec((arbitrary_interval(), any::<f32>(), any::<f32>()), 1..12),
    ) {
        for json in agents() {
            let spec = Arc::new(agent(&json));
            let (low, high) = crate::testing::observation_bounds(&spec);
            let size = spec.action_kind().size();
            let limits = spec.action.limits;
            let mut flow = started(&json);
            for (m, a, b) in &steps {
                if m.min_rtt != TimeSpan::MAX {
                    flow.on_rtt(m.start, m.min_rtt, m.min_rtt);
                }
                flow.observe(m, None);
                let bounds = low.iter().zip(&high);
                for ((x, (low, high)), i) in flow.observation().iter().zip(bounds).zip(0..) {
                    prop_assert!(x.is_finite() && x >= low && x <= high, "number {i} is {x}, not in {low} to {high}");
                }
                prop_assert!(flow.reward(&GroundTruth::default(), &mut []).is_finite());
                prop_assert!(flow.next_decision() > m.end);
                flow.act(m.end, &[*a, *b][..size]);
                let control = flow.control(None);
                prop_assert!(control.cwnd >= limits.window[0] as u64 * MSS);
                prop_assert!(flow.rate().is_finite() && flow.window().is_finite());
                if flow.startup.is_over() && spec.action.target.has_rate() {
                    prop_assert!(control.pacing_rate.0 as f64 >= limits.rate[0]);
                    prop_assert!(control.pacing_rate.0 as f64 <= limits.rate[1]);
                }
            }
        }
    }

    #[test]
    fn history_agrees_with_a_list(steps in prop::collection::vec((arbitrary_interval(), -5f32..5.0), 1..12)) {
        let shape = json!({"kind": "fixed", "interval": 10_000_000});
        let make = |observation: Value| with(aurora(), json!({"clock": shape, "observation": observation}));
        let history = 4u32;
        let (long, mut short) = (all_seeing(history), all_seeing(history));
        for feature in short["features"].as_array_mut().expect("features") {
            feature["history"] = json!(1);
        }
        short["history"] = json!(1);
        let (mut long, mut short) = (started(&make(long)), started(&make(short)));
        let mut slots = vec![short.observation().to_vec(); history as usize];
        for (m, action) in &steps {
            for flow in [&mut long, &mut short] {
                flow.observe(m, None);
                flow.act(m.end, &[*action]);
            }
            slots.push(short.observation().to_vec());
            let mut expected = Vec::new();
            for age in (0..history as usize).rev() {
                let slot = &slots[slots.len() - 1 - age];
                for (i, feature) in long.spec().observation.features.iter().enumerate() {
                    if feature.history.unwrap_or(history) as usize > age {
                        expected.push(slot[i]);
                    }
                }
                expected.push(slot[slot.len() - 1]);
            }
            prop_assert_eq!(long.observation(), expected);
        }
    }
}
