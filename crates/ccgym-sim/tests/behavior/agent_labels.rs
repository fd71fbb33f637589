//! Labels of experts for simulated flows, which do not affect the flows.

use ccgym_agent::AgentSpec;
use ccgym_run::columns::COLUMNS;
use ccgym_run::RunSpec;
use ccgym_sim::agent_batch::{AgentBatch, Arrays};
use ccgym_sim::Simulator;
use serde_json::{json, Value};

use crate::common::{learners, Net};

/// Make Indigo's clock, actions and start, on a window.
fn agent(expert: Value) -> AgentSpec {
    let mut json = json!({
        "name": "indigo-like",
        "clock": {"kind": "fixed", "interval": 10_000_000, "on_ack": true},
        "observation": {"features": [{"signal": "cwnd", "clip": [0.0, 1000.0]}]},
        "action": {"map": {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]}, "target": "cwnd"},
        "startup": {"kind": "window", "packets": 10},
    });
    if !expert.is_null() {
        json["expert"] = expert;
    }
    crate::common::agent(&json)
}

/// Make a simulator with 12 Mbit/s, 40 ms and 100 packets, some lost.
fn simulator(agent: &AgentSpec, params: Value, others: &[&str]) -> Simulator {
    let mut flows = vec![json!({"scheme": "learned", "params": params, "profile": "udp"})];
    flows.extend(others.iter().map(|scheme| json!({"scheme": scheme})));
    let net = Net { loss: json!(0.002), record: json!({}), ..Net::new(12.0, 40.0, 100) };
    let mut spec = RunSpec { seed: 7, ..net.spec(&json!(flows), 10.0) };
    spec.facts = serde_json::from_value(json!({"capacity": [[0, 12_000_000]], "base_rtt": 40_000_000})).expect("facts");
    learners(agent, &spec)
}

/// A batch of one, and the arrays of its steps.
struct One {
    batch: AgentBatch,
    observation: [f32; 1],
    stats: [f64; COLUMNS.len()],
    reward: [f64; 1],
    due: [u8; 1],
    ended: [u8; 1],
}

impl One {
    fn new(agent: &AgentSpec, params: Value, others: &[&str]) -> Self {
        let mut batch = AgentBatch::new(agent, 1, 1, 1).expect("no threads");
        let mut observation = [0.0];
        let simulator = simulator(agent, params, others);
        batch.reset(0, simulator, 0, &mut observation).expect("an episode");
        Self { batch, observation, stats: [0.0; COLUMNS.len()], reward: [0.0], due: [0], ended: [0] }
    }

    /// Return the label and its target.
    fn label(&self) -> (f32, f64) {
        let (mut label, mut target) = ([0.0], [0.0]);
        self.batch.labels(&mut label, &mut target).expect("arrays of the right size");
        (label[0], target[0])
    }

    fn act(&mut self, action: f32) -> bool {
        let arrays = Arrays {
            actions: &[action],
            observations: &mut self.observation,
            rewards: &mut self.reward,
            terms: &mut [],
            stats: &mut self.stats,
            due: &mut self.due,
            ended: &mut self.ended,
        };
        self.batch.step(arrays).expect("a step");
        self.ended[0] == 0
    }

    fn hash(&self) -> u64 {
        self.batch.simulator(0).expect("a simulator").trajectory_hash()
    }
}

#[test]
fn following_the_best_window_keeps_it() {
    let agent = agent(json!({"kind": "best_window"}));
    // 12 Mbit/s · 45 ms are 45 packets; a parameter sets another window.
    for (params, target, near) in [(json!({}), 45.0, 5.0), (json!({"expert_window": 70}), 70.0, 5.0)] {
        let mut one = One::new(&agent, params, &[]);
        for step in 0..400 {
            let (label, found) = one.label();
            assert_eq!((label, found), one.label(), "asked twice");
            assert_eq!(found, target);
            assert!(one.act(label));
            assert!(step < 20 || (f64::from(one.observation[0]) - target).abs() <= near, "{:?}", one.observation);
        }
    }
}

#[test]
fn muses_oracle_subtracts_the_backlog() {
    let agent = agent(json!({"kind": "fluid_bdp", "queue_fraction": 0.5, "samples": 3}));
    let mut one = One::new(&agent, json!({}), &[]);
    let mut windows = Vec::new();
    while windows.len() < 500 {
        let (label, target) = one.label();
        // 41 packets of path, half of the queue, less the backlog.
        assert!((2.0..92.0).contains(&target), "{target}");
        assert!(one.act(label));
        windows.push(f64::from(one.observation[0]));
    }
    // At 41 + 50 − q = 41 + q.
    let mean = windows[200..].iter().sum::<f64>() / 300.0;
    assert!((60.0..72.0).contains(&mean), "{mean}");
}

#[test]
fn a_fair_share_is_taken_of_a_link_with_others() {
    let agent = agent(json!({"kind": "best_window"}));
    let mut one = One::new(&agent, json!({}), &["reno"]);
    for _ in 0..50 {
        assert!(one.act(2.0));
    }
    assert_eq!(one.label().1, 22.5);
}

#[test]
fn experts_do_not_touch_the_flow() {
    let mut hashes = Vec::new();
    let experts = [json!(null), json!({"kind": "gain_schedule"}), json!({"kind": "fluid_bdp"})];
    for expert in experts {
        let agent = agent(expert.clone());
        let mut one = One::new(&agent, json!({}), &["cubic"]);
        let mut labels = 0;
        for step in 0..300 {
            labels += u32::from(!one.label().0.is_nan());
            assert!(one.act([2.0, 3.0, 3.0, 1.0, 4.0, 0.0][step % 6]));
        }
        assert_eq!(labels > 250, !expert.is_null(), "{expert}: {labels} labels");
        hashes.push(one.hash());
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
}

#[test]
fn arrays_of_the_wrong_size_are_refused() {
    let one = One::new(&agent(json!({"kind": "best_window"})), json!({}), &[]);
    let error = one.batch.labels(&mut [], &mut [0.0]).expect_err("too small");
    assert_eq!((&*error.code, &*error.place), ("shape-mismatch", "labels"));
    assert!(one.batch.labels(&mut [0.0], &mut []).is_err());
}
