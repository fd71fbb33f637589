//! Every kind of term on one interval, by hand.

use serde_json::{json, Value};

use super::super::expressions::Expressions;
use super::super::signals::View;
use super::super::testing::MSS;
use super::*;
use ccgym_core::units::{TimeSpan, Timestamp};

/// 100 ms in which 18 of 20 packets arrive (2.16 Mbit/s) and two are lost (0.24 Mbit/s); the round trip is 50 ms, the
/// smallest was 40 ms; the link gives 4.32 Mbit/s to two flows.
fn value(term: Value) -> f64 {
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
    memory.digest(&done, true);
    let mut values = Values::new(&expressions);
    values.update(&expressions, &View { m: &done, memory: &memory }, false);
    let truth = PathTruth {
        link_rate: 4.32e6,
        base_rtt: 0.03,
        fair_share: 2.16e6,
        flows: 2,
        rates: vec![2.16e6, 0.72e6],
        ..PathTruth::default()
    };
    let mut terms = [f64::NAN];
    let sum = reward.compute(&Outcome { m: &done, memory: &memory, values: &values, truth: &truth }, &mut terms);
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
        (json!({"term": "queue_delay", "unit": "min_rtt", "at_most": 0.2}), 0.2),
        (json!({"term": "loss"}), 0.1),
        (json!({"term": "loss", "of": "sent"}), 0.1),
        (json!({"term": "utilization"}), 0.5),
        (json!({"term": "utilization", "base": "fair_share"}), 1.0),
        (json!({"term": "log_power"}), (0.27f64 + 1e-5).ln() - 0.2 * (10.0f64 + 1e-5).ln()),
        // (0.5 − 2·0.24/4.32)², and 40/50 reaches forgive.
        (json!({"term": "square_power", "forgive": 0.79}), (0.5f64 - 0.48 / 4.32).powi(2)),
        (json!({"term": "square_power", "forgive": 0.9}), (0.5f64 - 0.48 / 4.32).powi(2) * 0.8),
        (json!({"term": "square_power", "loss_factor": 10, "forgive": 0.79}), -(0.5f64 - 2.4 / 4.32).powi(2)),
        (json!({"term": "orca_power"}), 0.5 - 1.2 / 4.32),
        (json!({"term": "orca_power", "margin": 1}), (0.5 - 1.2 / 4.32) * 0.8),
        (json!({"term": "delay_target", "target": 100_000_000}), 18.0 * 2.16 * 0.5),
        (json!({"term": "delay_target", "target": 40_000_000}), -18.0 * 2.16 * 1.25),
        (json!({"term": "delay_target", "target": 40_000_000, "cap": 3}), -3.0),
        (json!({"term": "delay_ratio"}), 0.8),
        (json!({"term": "delay_ratio", "base": "base_rtt", "margin": 1.5}), 0.9),
        (json!({"term": "delivery"}), 0.9),
        (json!({"term": "fairness"}), 2.88 * 2.88 / (2.0 * (2.16 * 2.16 + 0.72 * 0.72))),
        (json!({"term": "fair_gauss"}), (-8.0f64 * (1.0 / 0.95 - 1.0) * (1.0 / 0.95 - 1.0)).exp()),
        (json!({"term": "stability"}), 0.0),
        (json!({"term": "signal", "of": "rtt_count"}), 18.0),
        (json!({"term": "delivery", "phase": ["probe"]}), 0.0),
    ] {
        let got = value(term.clone());
        assert!((got - expected).abs() < 1e-9, "{term}: {got}, by hand {expected}");
    }
}

#[test]
fn bad_terms_are_refused() {
    for (term, place, words) in [
        (json!({"term": "troughput"}), "reward.terms[0].term", "did you mean \"throughput\"?"),
        (json!({"term": "loss", "off": 1}), "reward.terms[0]", "did you mean \"of\"?"),
        (json!({"term": "loss", "of": "send"}), "reward.terms[0].of", "did you mean \"sent\"?"),
        (json!({"term": "latency", "of": "cwnd"}), "reward.terms[0].of", "an expression in s"),
        (json!({"term": "delay_target"}), "reward.terms[0].target", "round trip"),
        (json!({"term": "delay_ratio", "margin": 0.5}), "reward.terms[0].margin", "from 1"),
        (json!({"term": "loss", "phase": []}), "reward.terms[0].phase", "at least one"),
    ] {
        let mut spec = json!({"weight": 1.0});
        spec.as_object_mut().expect("object").extend(term.as_object().expect("object").clone());
        let spec: RewardSpec = serde_json::from_value(json!({"terms": [spec]})).expect("a reward");
        let error = Reward::new(&spec, &mut Expressions::default()).err().expect(place);
        assert_eq!(error.place, place);
        assert!(error.expected.contains(words), "{error}");
    }
}

#[test]
fn every_kind_declares_whether_it_needs_the_truth_and_where_it_comes_from() {
    for kind in KINDS {
        assert!(!kind.formula.is_empty() && !kind.source.is_empty(), "{}", kind.name);
        let given = [("target".to_owned(), json!(1e7)), ("of".to_owned(), json!("cwnd"))];
        let given = given
            .into_iter()
            .filter(|(name, _)| kind.parameters.iter().any(|p| p.name == name && p.default.is_empty()));
        let mut expressions = Expressions::default();
        let p = Parameters::resolve(kind.parameters, &given.collect(), "t", &mut expressions).expect(kind.name);
        let term = (kind.build)(&p, &mut expressions);
        assert_eq!(term.needs_truth, kind.needs_truth, "{}", kind.name);
    }
}
