//! Environment steps without Python: flows like Aurora's, steered at random, over paths like those of its training.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_core::rng::Rng;
use ccgym_run::columns::COLUMNS;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::{create_with, Resources};
use ccgym_sim::agent_batch::{AgentBatch, Arrays};
use ccgym_sim::Simulator;
use serde_json::json;

const LANES: usize = 64;
const STEPS: u64 = 400;

fn agent() -> AgentSpec {
    serde_json::from_value(json!({
        "name": "aurora",
        "clock": {"kind": "rtt", "multiple": 0.5, "warm_up_rtts": 3.0, "first_rtts": 1.5, "no_ack": 5_000_000_000u64},
        "observation": {"history": 10, "features": [
            {"signal": "rtt_inflation", "clip": [-1.0, 10.0]},
            {"signal": "latency_ratio", "clip": [1.0, 1e4], "empty": 1.0},
            {"signal": "send_ratio", "clip": [0.0, 1000.0], "empty": 1.0},
        ]},
        "action": {"map": {"kind": "signed_multiply", "delta": 0.025}, "target": "rate", "bounds": [-1e12, 1e12],
                   "limits": {"rate": [480_000.0, 12_000_000.0]}},
        "reward": {"scale": 0.001, "terms": [
            {"term": "throughput", "weight": 10.0, "unit": "packets/s"}, {"term": "latency", "weight": -1000.0},
            {"term": "loss", "weight": -2000.0},
        ]},
        "startup": {"kind": "rate", "rate": 3_000_000},
    }))
    .expect("the benchmark's own agent is valid")
}

/// Draw a path from the ranges that Aurora is trained on.
fn draw(rng: &mut Rng, seed: u64) -> RunSpec {
    let mut between = |low: f64, high: f64| low + (high - low) * rng.uniform();
    let rate = between(100.0, 500.0) * 12_000.0;
    let delay = (between(0.05, 0.5) * 1e9) as u64;
    let queue = 1 + between(0.0, 8.0).exp() as u64;
    let (loss, start) = (between(0.0, 0.05), between(0.3, 1.5));
    serde_json::from_value(json!({
        "seed": seed,
        "duration": 100_000_000_000_000u64,
        "uplink": [
            {"kind": "loss", "probability": loss},
            {"kind": "link", "schedule": {"kind": "rate", "rate": rate as u64},
             "queue": {"kind": "droptail", "limit": {"packets": queue}}},
            {"kind": "delay", "delay": delay},
        ],
        "downlink": [{"kind": "delay", "delay": delay}],
        "flows": [{"scheme": "learned", "profile": "udp", "params": {"start_rate_mbps": rate * start / 1e6}}],
        "facts": {"capacity": [[0, rate as u64]], "base_rtt": 2 * delay},
    }))
    .expect("the benchmark's own specification is valid")
}

/// Return the steps of all environments, including restarted episodes, and the time they took.
pub fn run(scale: f64) -> (u64, Duration) {
    let agent = agent();
    let resources = Resources { agent: Some(FlowAgent::new(Arc::new(agent.clone()))), ..Resources::default() };
    let scheme = |f: &FlowSpec| create_with(&f.scheme, &f.params, &resources);
    let mut batch = AgentBatch::new(&agent, LANES, 1, 1).expect("no threads are needed");
    let mut rng = Rng::stream(1, "benchmark", 0);
    let (size, terms) = (batch.observation_size(), agent.term_names().len());
    let mut actions = vec![0.0f32; LANES];
    let mut observations = vec![0.0f32; LANES * size];
    let (mut rewards, mut term_cells) = (vec![0.0; LANES], vec![0.0; LANES * terms]);
    let mut stats = vec![0.0; LANES * COLUMNS.len()];
    let (mut due, mut ended) = (vec![0u8; LANES], vec![1u8; LANES]);
    let rounds = (scale * 2.0 * STEPS as f64).ceil() as u64;
    let start = Instant::now();
    for round in 0..rounds {
        for lane in 0..LANES {
            if ended[lane] != 0 {
                let spec = draw(&mut rng, round * LANES as u64 + lane as u64);
                let simulator = Simulator::new(&spec, &|_| None, &scheme).expect("it can be built");
                let row = &mut observations[lane * size..(lane + 1) * size];
                batch.reset(lane, simulator, STEPS, row).expect("it can begin");
            }
            actions[lane] = rng.normal() as f32;
        }
        batch
            .step(Arrays {
                actions: &actions,
                observations: &mut observations,
                rewards: &mut rewards,
                terms: &mut term_cells,
                stats: &mut stats,
                due: &mut due,
                ended: &mut ended,
            })
            .expect("the arrays fit");
    }
    (rounds * LANES as u64, start.elapsed())
}
