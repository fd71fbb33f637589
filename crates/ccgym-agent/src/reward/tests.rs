//! Tests of every kind of term on one interval.

use serde_json::{json, Value};

use super::super::expressions::Expressions;
use super::super::signals::View;
use super::super::testing::MSS;
use super::*;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::{Rate, TimeSpan, Timestamp};

/// 100 ms in which 18 of 20 packets arrive (2.16 Mbit/s) and two are lost (0.24 Mbit/s); the round trip is 50 ms, the
/// smallest was 40 ms; delivery-rate samples say 3.24 Mbit/s; the link gives 4.32 Mbit/s to two flows.
fn value(term: Value) -> f64 {
    value_beside(term, 0.4)
}

/// The same with this spread of the rates of the path's flows.
fn value_beside(term: Value, rate_spread: f64) -> f64 {
    let mut spec = json!({"weight": 1.0});
    spec.as_object_mut().expect("object").extend(term.as_object().expect("object").clone());
    let spec: RewardSpec = serde_json::from_value(json!({"terms": [spec]})).expect("a reward");
    let mut expressions = Expressions::default();
    let reward = Reward::new(&spec, &mut expressions).expect("valid");
    let mut m = MonitorInterval::new(Timestamp::ZERO);
    for i in 0..20 {
        m.on_sent(MSS, false);
        if i >= 2 {
            let now = Timestamp::from_millis(60 + i);
            m.on_acked(1, MSS);
            m.on_sample(now, now - TimeSpan::from_millis(50), now - TimeSpan::from_millis(20));
            m.on_rates(TimeSpan::from_millis(50), TimeSpan::from_millis(40), Rate(3_240_000), Rate::ZERO);
        }
    }
    m.on_lost(2, 2 * MSS);
    let mut done = MonitorInterval::new(Timestamp::ZERO);
    let end = Timestamp::from_millis(100);
    m.close_into(&mut done, end, &Default::default(), 0, &ccgym_core::Control::window(10 * MSS), None);
    done.min_rtt = TimeSpan::from_millis(40);
    done.srtt = TimeSpan::from_millis(50);
    let mut memory = Memory::new(MSS);
    memory.max_delivery_rate = 4.32e6;
    memory.max_sampled_delivery_rate = 6.48e6;
    memory.digest(&done, true);
    let mut values = Values::new(&expressions);
    values.update(&expressions, &View { m: &done, memory: &memory }, false);
    let truth = GroundTruth { link_rate: 4.32e6, fair_share: 2.16e6, flows: 2, rate_spread, ..GroundTruth::default() };
    let mut terms = [f64::NAN];
    let sum = reward.compute(&Outcome { memory: &memory, values: &values, truth: &truth }, &mut terms);
    assert_eq!(sum, terms[0]);
    sum
}

#[test]
fn each_kind_by_hand() {
    for (term, expected) in [
        (json!({"term": "throughput"}), 2.16),
        (json!({"term": "throughput", "unit": "packets/s"}), 180.0),
        (json!({"term": "throughput", "unit": "packets/s", "of": "receive_rate"}), 170.0),
        (json!({"term": "throughput", "unit": "MB/s", "of": "send_rate"}), 0.3),
        (json!({"term": "throughput", "over": "max_delivery_rate"}), 0.5),
        (json!({"term": "latency"}), 0.05),
        (json!({"term": "latency", "unit": "ms"}), 50.0),
        (json!({"term": "queue_delay", "unit": "ms"}), 10.0),
        (json!({"term": "queue_delay", "unit": "min_rtt"}), 0.25),
        (json!({"term": "queue_delay", "unit": "min_rtt", "max": 0.2}), 0.2),
        (json!({"term": "loss"}), 0.1),
        (json!({"term": "loss", "of": "sent"}), 0.1),
        (json!({"term": "utilization"}), 0.5),
        (json!({"term": "utilization", "base": "fair_share"}), 1.0),
        (json!({"term": "unfairness"}), 0.4),
        (json!({"term": "orca_power"}), 0.5 - 1.2 / 6.48),
        (json!({"term": "orca_power", "margin": 1}), (0.5 - 1.2 / 6.48) * 0.8),
        (json!({"term": "loss", "phase": ["probe"]}), 0.0),
    ] {
        let got = value(term.clone());
        assert!((got - expected).abs() < 1e-9, "{term}: {got}, by hand {expected}");
    }
}

/// On real paths the rates of other flows are not known.
#[test]
fn what_is_not_known_is_not_rewarded() {
    assert_eq!(value_beside(json!({"term": "unfairness"}), f64::NAN), 0.0);
}

#[test]
fn every_kind_says_what_it_is_and_where_it_comes_from() {
    for kind in KINDS {
        assert!(!kind.help.is_empty() && !kind.formula.is_empty() && !kind.source.is_empty(), "{}", kind.name);
        let mut expressions = Expressions::default();
        let p = Parameters::resolve(kind.parameters, &Default::default(), "t", &mut expressions).expect(kind.name);
        (kind.build)(&p, &mut Signals(&mut expressions));
    }
}
