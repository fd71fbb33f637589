//! Tests of learning flows: decisions in the simulator, and the arrays of a batch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use ccgym_agent::AgentSpec;
use ccgym_core::Error;
use ccgym_run::columns::{COLUMNS, TRUTH_COLUMNS};
use ccgym_run::RunSpec;
use ccgym_sim::agent_batch::{AgentBatch, Arrays, Ended, Now, RolloutArrays};
use ccgym_sim::{Activation, Actor};
use serde_json::{json, Value};

use crate::common::{learners as simulator, Net};

fn agent() -> AgentSpec {
    crate::common::agent(&json!({
        "name": "aurora-like",
        "clock": {"kind": "rtt", "multiple": 0.5, "of": "mean", "warm_up_rtts": 3.0, "first_rtts": 1.5},
        "observation": {"history": 3, "features": [
            {"signal": "rtt_inflation", "clip": [-1.0, 10.0]},
            {"signal": "latency_ratio", "clip": [1.0, 1e4], "empty": 1.0},
            {"signal": "send_ratio", "clip": [0.0, 1000.0], "empty": 1.0},
        ]},
        "action": {"map": {"kind": "signed_multiply", "delta": 0.025}, "target": "rate", "bounds": [-100.0, 100.0]},
        "reward": {"scale": 0.001, "terms": [
            {"term": "throughput", "weight": 10.0, "unit": "packets/s"}, {"term": "latency", "weight": -1000.0},
            {"term": "loss", "weight": -2000.0},
        ]},
        "startup": {"kind": "rate", "rate": 2_400_000},
    }))
}

fn spec(flows: Value, seconds: u64, seed: u64) -> RunSpec {
    let lossy = vec![json!({"kind": "loss", "probability": 0.02})];
    let net = Net { behind: lossy, record: json!({}), ..Net::new(3.6, 60.0, 100) };
    let mut spec = RunSpec { seed, ..net.spec(&flows, seconds as f64) };
    spec.facts = serde_json::from_value(json!({"capacity": [[0, 3_600_000]], "base_rtt": 60_000_000})).expect("facts");
    spec
}

/// The arrays of a batch.
struct Store {
    actions: Vec<f32>,
    observations: Vec<f32>,
    rewards: Vec<f64>,
    terms: Vec<f64>,
    stats: Vec<f64>,
    due: Vec<u8>,
    ended: Vec<u8>,
}

impl Store {
    fn of(batch: &AgentBatch, terms: usize) -> Self {
        let rows = batch.rows();
        Self {
            actions: vec![0.0; rows * batch.action_size()],
            observations: vec![0.0; rows * batch.observation_size()],
            rewards: vec![0.0; rows],
            terms: vec![0.0; rows * terms],
            stats: vec![0.0; rows * COLUMNS.len()],
            due: vec![0; rows],
            ended: vec![0; batch.len()],
        }
    }

    fn step(&mut self, batch: &mut AgentBatch) -> Result<(), Error> {
        batch.step(Arrays {
            actions: &self.actions,
            observations: &mut self.observations,
            rewards: &mut self.rewards,
            terms: &mut self.terms,
            stats: &mut self.stats,
            due: &mut self.due,
            ended: &mut self.ended,
        })
    }
}

/// A rising rate over a CoDel that marks: only an agent whose packets are ECN-capable gets marks, and their penalty.
#[test]
fn marks_reach_an_agent_that_asks_for_them() {
    let outcome = |ecn: bool, profile: &str| {
        let agent: AgentSpec = serde_json::from_value(json!({
            "name": "marked", "ecn": ecn, "clock": {"kind": "fixed", "interval": 50_000_000},
            "observation": {"features": [{"signal": "ce_fraction", "clip": [0.0, 1.0]}]},
            "action": {"map": {"kind": "exponential", "base": 1.05}, "target": "rate"},
            "reward": {"terms": [{"term": "marks", "weight": -1.0}]},
            "startup": {"kind": "rate", "rate": 2_400_000},
        }))
        .expect("valid JSON");
        let mut spec = spec(json!([{"scheme": "learned", "profile": profile}]), 10, 1);
        spec.uplink = serde_json::from_value(json!([
            {"kind": "link", "schedule": {"kind": "rate", "rate": 3_600_000},
             "queue": {"kind": "codel", "limit": {"packets": 40}, "ecn": true}},
            {"kind": "delay", "delay": 30_000_000},
        ]))
        .expect("valid JSON");
        let mut batch = AgentBatch::new(&agent, 1, 1, 1).unwrap();
        let mut store = Store::of(&batch, 1);
        batch.reset(0, simulator(&agent, &spec), 0, &mut store.observations).unwrap();
        let (mut seen, mut paid) = (0.0_f32, 0.0);
        store.actions.fill(1.0);
        while store.ended[0] == 0 {
            store.step(&mut batch).unwrap();
            seen = seen.max(store.observations[0]);
            paid += store.terms[0];
            assert!((store.terms[0] + f64::from(store.observations[0])).abs() < 1e-6);
        }
        (seen, paid)
    };
    for profile in ["udp", "tcp"] {
        let (seen, paid) = outcome(true, profile);
        assert!(seen > 0.1 && paid < -0.5, "{profile}: saw {seen}, paid {paid}");
        assert_eq!(outcome(false, profile), (0.0, 0.0), "{profile}");
    }
}

#[test]
fn stopping_for_decisions_changes_nothing() {
    let udp = |scheme: &str, params: Value| json!([{"scheme": scheme, "params": params, "profile": "udp"}]);
    let mut plain = simulator(&agent(), &spec(udp("fixed_rate", json!({"rate_mbps": 2.4})), 20, 5));
    plain.run().unwrap();
    let mut held = simulator(&agent(), &spec(udp("learned", json!({})), 20, 5));
    let mut decisions = 0;
    while let Some(flow) = held.run_to_decision(held.end()).unwrap() {
        held.decide(flow, &[0.0]);
        decisions += 1;
    }
    let mut ignored = simulator(&agent(), &spec(udp("learned", json!({})), 20, 5));
    ignored.run().unwrap();
    assert!(decisions > 300, "{decisions}");
    assert_eq!(held.trajectory_hash(), plain.trajectory_hash());
    assert_eq!(ignored.trajectory_hash(), plain.trajectory_hash());
}

#[test]
fn a_batch_writes_observations_rewards_and_statistics() {
    let agent = agent();
    let mut batch = AgentBatch::new(&agent, 2, 1, 1).unwrap();
    let mut store = Store::of(&batch, 3);
    for i in 0..2 {
        let flows = json!([{"scheme": "learned", "profile": "udp", "params": {"start_rate_mbps": 1.8}}]);
        let row = &mut store.observations[i * 9..(i + 1) * 9];
        batch.reset(i, simulator(&agent, &spec(flows, 1000, i as u64)), 50, row).unwrap();
    }
    // Nothing was recorded yet: every slot of the history is empty.
    assert_eq!(store.observations[..9], [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    let column = |name: &str| COLUMNS.iter().position(|c| *c == name).unwrap();
    for step in 1..=50 {
        store.step(&mut batch).unwrap();
        let last = step == 50;
        assert_eq!(store.ended, [if last { Ended::Steps as u8 } else { 0 }; 2]);
        assert_eq!(store.due, [1, 1]);
        for row in 0..2 {
            let stats = &store.stats[row * COLUMNS.len()..];
            let (rate, rtt) = (stats[column("delivery_rate_bps")], stats[column("mean_rtt_s")]);
            let loss = stats[column("loss_fraction")];
            // Half of the link, no queue.
            assert!((0.0633..0.0702).contains(&rtt), "{rtt}");
            let terms = &store.terms[row * 3..(row + 1) * 3];
            let expected = [0.01 * rate / 12_000.0, -rtt, -2.0 * loss];
            for (found, expected) in terms.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{terms:?} {expected}");
            }
            assert!((terms.iter().sum::<f64>() - store.rewards[row]).abs() < 1e-12);
        }
    }
    assert_eq!(store.step(&mut batch).unwrap_err().code, "call-order");
    let mut truth = vec![0.0; 2 * TRUTH_COLUMNS.len()];
    batch.truth(&mut truth).unwrap();
    assert_eq!(truth[..2], [3_600_000.0, 0.06]);
    assert_eq!((truth[3], truth[5], truth[6]), (100.0, 1.0, 3_600_000.0));
    let [summary] = batch.summary(0)[..] else { panic!("one learner") };
    assert_eq!(summary.steps, 50);
    assert!((summary.utilization.unwrap() - 0.49).abs() < 0.02, "{summary:?}");
    assert!((summary.delay_p95_ms.unwrap() - 33.3).abs() < 0.5, "{summary:?}");
}

#[test]
fn threads_do_not_matter() {
    let agent = agent();
    let run = |threads| {
        let mut batch = AgentBatch::new(&agent, 7, 1, threads).unwrap();
        let mut store = Store::of(&batch, 3);
        for i in 0..7 {
            let flows = json!([{"scheme": "learned", "profile": "udp"}, {"scheme": "cubic", "profile": "udp"}]);
            let row = &mut store.observations[i * 9..(i + 1) * 9];
            batch.reset(i, simulator(&agent, &spec(flows, 20, i as u64)), 0, row).unwrap();
        }
        let mut total = 0.0;
        for step in 0..40 {
            store.actions.iter_mut().enumerate().for_each(|(i, a)| *a = ((i * 7 + step * 3) % 5) as f32 - 2.0);
            store.step(&mut batch).unwrap();
            total += store.rewards.iter().sum::<f64>();
        }
        let hashes: Vec<u64> = (0..7).map(|i| batch.simulator(i).unwrap().trajectory_hash()).collect();
        (total.to_bits(), hashes)
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn a_waiting_thread_interrupts_all_simulations() {
    let mut agent = agent();
    agent.clock = serde_json::from_value(json!({"kind": "fixed", "interval": 1_000_000_000_000u64})).unwrap();
    // The second interval has so many packets that it takes minutes.
    let flows = json!([
        {"scheme": "learned", "profile": "udp", "params": {"start_rate_mbps": 0.1}},
        {"scheme": "fixed_rate", "profile": "udp", "params": {"rate_mbps": 100_000}, "start": 1_001_000_000_000u64},
    ]);
    for threads in [1, 2] {
        let mut batch = AgentBatch::new(&agent, 2, 1, threads).unwrap();
        let mut store = Store::of(&batch, 3);
        // Only the waiting thread polls it, as with signals; the others must be stopped.
        let here = std::thread::current().id();
        let (armed, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (is_armed, is_over) = (Arc::clone(&armed), Arc::clone(&over));
        batch.set_interrupt(Arc::new(move || {
            if is_armed.load(Ordering::Relaxed) && std::thread::current().id() == here {
                is_over.store(true, Ordering::Relaxed);
            }
            is_over.load(Ordering::Relaxed)
        }));
        for i in 0..2 {
            let row = &mut store.observations[i * 9..(i + 1) * 9];
            batch.reset(i, simulator(&agent, &spec(flows.clone(), 3000, i as u64)), 0, row).unwrap();
        }
        armed.store(true, Ordering::Relaxed);
        let stopped = store.step(&mut batch);
        assert_eq!(stopped.unwrap_err().code, "run-abandoned", "{threads} threads");
    }
}

#[test]
fn several_learners_take_turns() {
    let agent = agent();
    let flow = |rtt: u64| json!({"scheme": "learned", "profile": "udp", "extra_rtt": rtt});
    let flows = json!([flow(0), {"scheme": "reno"}, flow(150_000_000)]);
    let mut batch = AgentBatch::new(&agent, 1, 2, 1).unwrap();
    let mut store = Store::of(&batch, 3);
    batch.reset(0, simulator(&agent, &spec(flows, 12, 3)), 0, &mut store.observations).unwrap();
    let mut turns = [0, 0];
    let mut time = 0.0;
    while store.ended[0] == Ended::Running as u8 {
        store.step(&mut batch).unwrap();
        let now = store.stats.chunks(COLUMNS.len()).map(|s| s[0]).fold(0.0, f64::max);
        assert!(now >= time);
        time = now;
        if store.ended[0] == Ended::Running as u8 {
            assert_eq!(store.due.iter().sum::<u8>(), 1);
            turns[usize::from(store.due[1])] += 1;
        }
    }
    assert_eq!((store.ended[0], time), (Ended::Time as u8, 12.0));
    // The RTT of the second is longer, so it decides less often.
    assert!(turns[0] > turns[1] && turns[1] > 20, "{turns:?}");
}

/// The arrays of a rollout of one simulator.
struct Rollout {
    noise: Vec<f32>,
    decided: [u64; 1],
    taken: [u64; 1],
    learners: Vec<u32>,
    observations: Vec<f32>,
    truths: Vec<f64>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
}

/// The arrays of its current state.
struct Standing {
    observations: Vec<f32>,
    truths: Vec<f64>,
    actions: Vec<f32>,
    returns: Vec<f64>,
    term_sums: Vec<f64>,
    lengths: Vec<i64>,
    ended: [u8; 1],
}

impl Standing {
    fn of(batch: &AgentBatch) -> Self {
        let rows = batch.rows();
        Self {
            observations: vec![0.0; rows * batch.observation_size()],
            truths: vec![0.0; rows * TRUTH_COLUMNS.len()],
            actions: vec![0.0; rows * batch.action_size()],
            returns: vec![0.0; rows],
            term_sums: vec![0.0; rows * 3],
            lengths: vec![0; rows],
            ended: [0],
        }
    }
}

impl Rollout {
    fn take(batch: &mut AgentBatch, samples: usize, standing: &mut Standing) -> Self {
        let mut rollout = Self {
            noise: (0..samples + batch.rows() - 1).map(|i| ((i * 7 % 5) as f32 - 2.0) / 2.0).collect(),
            decided: [0],
            taken: [0],
            learners: vec![0; samples],
            observations: vec![0.0; samples * batch.observation_size()],
            truths: vec![0.0; samples * TRUTH_COLUMNS.len()],
            actions: vec![0.0; samples],
            rewards: vec![0.0; samples],
        };
        let layers = [(vec![0.1; batch.observation_size()], vec![0.0])];
        let inputs = batch.observation_size();
        let actor = Actor::new(inputs, &layers, Activation::Tanh, vec![2.0], vec![(-3.0, 3.0)]).expect("it fits");
        let arrays = RolloutArrays {
            samples,
            noise: &rollout.noise,
            decided: &mut rollout.decided,
            taken: &mut rollout.taken,
            learners: &mut rollout.learners,
            observations: &mut rollout.observations,
            truths: &mut rollout.truths,
            actions: &mut rollout.actions,
            rewards: &mut rollout.rewards,
            now: Now {
                observations: &mut standing.observations,
                truths: &mut standing.truths,
                actions: &mut standing.actions,
                returns: &mut standing.returns,
                term_sums: &mut standing.term_sums,
                lengths: &mut standing.lengths,
                ended: &mut standing.ended,
            },
        };
        batch.rollout(&actor, arrays).expect("sizes fit");
        rollout
    }
}

#[test]
fn every_interval_of_every_learner_is_one_sample() {
    let agent = agent();
    let flow = |start: u64, rtt: u64| json!({"scheme": "learned", "profile": "udp", "start": start, "extra_rtt": rtt});
    let flows = json!([flow(0, 0), {"scheme": "reno"}, flow(3_000_000_000, 100_000_000), flow(1_000_000_000, 0)]);
    // A slot for a fourth learner, which stays unused.
    let batch = || AgentBatch::new(&agent, 1, 4, 1).unwrap();
    let (mut rolled, mut stepped) = (batch(), batch());
    let mut standing = Standing::of(&rolled);
    rolled.reset(0, simulator(&agent, &spec(flows.clone(), 12, 3)), 0, &mut standing.observations).unwrap();
    let (mut samples, mut decided) = (Vec::new(), 0);
    while standing.ended[0] == Ended::Running as u8 {
        let part = Rollout::take(&mut rolled, 37, &mut standing);
        decided += part.decided[0];
        for i in 0..part.taken[0] as usize {
            let seen = part.observations[i * 9..][..9].to_vec();
            samples.push((part.learners[i] as usize, seen, part.actions[i], part.rewards[i]));
        }
    }
    // Expected: steps with the same actions, in the order in which intervals close.
    let mut store = Store::of(&stepped, 3);
    stepped.reset(0, simulator(&agent, &spec(flows, 12, 3)), 0, &mut store.observations).unwrap();
    let mut actions: Vec<_> =
        (0..4).map(|learner| samples.iter().filter(move |sample| sample.0 == learner).map(|sample| sample.2)).collect();
    let mut open: [Option<(Vec<f32>, f32)>; 4] = Default::default();
    let mut expected = Vec::new();
    let mut due: Vec<usize> = stepped.due().enumerate().filter(|(_, due)| *due).map(|(row, _)| row).collect();
    while store.ended[0] == Ended::Running as u8 {
        for &learner in &due {
            let drawn = actions[learner].next().unwrap_or_default();
            store.actions[learner] = drawn.clamp(-3.0, 3.0);
            open[learner] = Some((store.observations[learner * 9..][..9].to_vec(), drawn));
        }
        store.step(&mut stepped).unwrap();
        due = (0..4).filter(|&learner| store.due[learner] == 1).collect();
        let over = store.ended[0] != Ended::Running as u8;
        for (learner, open) in open.iter_mut().enumerate() {
            if due.contains(&learner) || over {
                let Some((seen, drawn)) = open.take() else { continue };
                expected.push((learner, seen, drawn, store.rewards[learner] as f32));
            }
        }
    }
    assert_eq!(samples, expected[..samples.len()]);
    // When the time is over all intervals are cut at once; here there are rows for all of them.
    assert_eq!((samples.len(), samples.len() as u64), (expected.len(), decided));
    let of = |learner: usize| samples.iter().filter(|sample| sample.0 == learner).count();
    assert!(of(0) > of(2) && of(2) > of(1) && of(1) > 20 && of(3) == 0, "{} {} {}", of(0), of(1), of(2));
    assert_eq!(standing.lengths, [of(0) as i64, of(1) as i64, of(2) as i64, 0]);
    assert_eq!(rolled.simulator(0).unwrap().trajectory_hash(), stepped.simulator(0).unwrap().trajectory_hash());
}

#[test]
fn the_spread_of_rates_is_that_of_the_interval() {
    let agent = agent();
    let udp = |scheme: &str, params: Value| json!({"scheme": scheme, "params": params, "profile": "udp"});
    let own = udp("learned", json!({"start_rate_mbps": 0.6}));
    let spread = |flows: Value| {
        let mut simulator = simulator(&agent, &spec(flows, 20, 5));
        let mut last = f64::NAN;
        while let Some(flow) = simulator.run_to_decision(simulator.end()).unwrap() {
            last = simulator.ground_truth(flow).rate_spread;
            simulator.decide(flow, &[0.0]);
        }
        last
    };
    assert_eq!(spread(json!([own])), 0.0);
    // One flow has 0.6 Mbit/s, the other 1.8: the mean is 1.2, the deviation 0.6. Losses of 2 % make it vary.
    let other = udp("fixed_rate", json!({"rate_mbps": 1.8}));
    let found = spread(json!([own, other]));
    assert!((found - 0.5).abs() < 0.25, "{found}");
}

#[test]
fn invalid_episodes_are_refused() {
    let agent = agent();
    let mut batch = AgentBatch::new(&agent, 1, 1, 1).unwrap();
    let mut row = [0.0; 9];
    let none = simulator(&agent, &spec(json!([{"scheme": "cubic"}]), 10, 1));
    assert_eq!(batch.reset(0, none, 0, &mut row).unwrap_err().code, "wrong-count");
    let mut short = spec(json!([{"scheme": "learned", "profile": "udp"}]), 1, 1);
    short.duration = ccgym_core::TimeSpan::from_millis(50);
    let short = simulator(&agent, &short);
    assert_eq!(batch.reset(0, short, 0, &mut row).unwrap_err().code, "out-of-range");
    let mut store = Store::of(&batch, 3);
    assert_eq!(store.step(&mut batch).unwrap_err().code, "call-order");
    store.actions.push(0.0);
    let error = store.step(&mut batch).unwrap_err();
    assert_eq!((&*error.code, &*error.place), ("shape-mismatch", "actions"));
}
