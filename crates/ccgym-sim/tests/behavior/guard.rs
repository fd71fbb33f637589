//! Guarded flows recover from any disturbance and policy once the path is clear, and in normal operation the guard does
//! nothing.

use crate::common::{agent, all_tests, learners as simulator, secs, spec};
use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_core::{Rng, Timestamp};
use ccgym_run::RunSpec;
use ccgym_sim::Simulator;
use serde_json::{json, Value};

/// The calibrated path: 77.72 Mbit/s, 51 ms each way, 94 packets of queue, 0.06 % loss.
const RATE: f64 = 77.72e6;

/// Make Indigo's actions and clock.
fn indigo() -> Value {
    json!({
        "name": "indigo-like",
        "clock": {"kind": "fixed", "interval": 10_000_000, "on_ack": true, "tick": 1_000_000},
        "observation": {"features": [{"signal": "queue_delay", "clip": [0, 100]},
                                     {"signal": "loss_fraction", "clip": [0, 1]},
                                     {"signal": "min_rtt", "clip": [0, 100]}]},
        "action": {"map": {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]}, "target": "cwnd"},
        "startup": {"kind": "window", "packets": 10},
        "guard": {"kind": "recovery"},
    })
}

/// Make Eagle's actions and clock.
fn eagle() -> Value {
    json!({
        "name": "eagle-like",
        "clock": {"kind": "rtt", "multiple": 1.0, "floor": 10_000_000, "no_ack": 100_000_000},
        "observation": indigo()["observation"],
        "action": {"map": {"kind": "discrete",
                           "operations": ["/2.89", "*0.75", "*0.95", "*1", "*1.05", "*1.25", "*2.89"]},
                   "target": "rate", "limits": {"rate": [1e5, 1e10], "packets_per_min_rtt": 2},
                   "cwnd_cap": {"bdp": 2.0, "packets": 4, "estimate": "max(delivery_rate, 10)"}},
        "startup": {"kind": "packets_per_rtt", "packets": 10},
        "guard": {"kind": "recovery"},
    })
}

/// A path and its disturbance. Steps in time are `[[from_ns, value], …]`.
#[derive(Clone)]
struct Path {
    rate: Value,
    up_loss: Value,
    down_loss: Value,
    up_delay: Value,
    down_delay: Value,
    queue: u64,
}

impl Path {
    fn clear() -> Self {
        let delay = json!(51_000_000);
        let (rate, none) = (json!(RATE as u64), json!(0.0));
        Self { rate, up_loss: json!(0.0006), down_loss: none, up_delay: delay.clone(), down_delay: delay, queue: 94 }
    }

    fn spec(&self, flows: &Value, seconds: f64, seed: u64) -> RunSpec {
        let loss = |probability: &Value| json!({"kind": "loss", "probability": probability});
        let delay = |delay: &Value| json!({"kind": "delay", "delay": delay});
        let link = json!({"kind": "link", "schedule": {"kind": "rate", "rate": self.rate},
                          "queue": {"kind": "droptail", "limit": {"packets": self.queue}}});
        spec(json!({
            "seed": seed, "duration": secs(seconds), "flows": flows,
            "uplink": [link, loss(&self.up_loss), delay(&self.up_delay)],
            "downlink": [loss(&self.down_loss), delay(&self.down_delay)],
        }))
    }
}

/// Return `value` instead of `usual` from `from` to `to`, seconds.
fn meanwhile(usual: &Value, value: u64, from: f64, to: f64) -> Value {
    let steps = [json!([0, usual]), json!([secs(from), value]), json!([secs(to), usual])];
    json!(steps[usize::from(from == 0.0)..])
}

/// Return delays with which all acknowledgements that leave from `from` on arrive together, at `to` at the earliest.
/// Order is kept: the first one delays the others.
fn stalled(usual: u64, from: f64, to: f64) -> Value {
    let steps = (secs(to - from) / 20_000_000).max(1);
    let mut delays: Vec<Value> = (from > 0.0).then(|| json!([0, usual])).into_iter().collect();
    for i in 0..steps {
        let at = secs(from) + i * 20_000_000;
        delays.push(json!([at, usual.max(secs(to) - at)]));
    }
    delays.push(json!([secs(to), usual]));
    json!(delays)
}

/// A policy: returns an action for the time in seconds, the agent and its observation.
type Policy = Box<dyn FnMut(f64, &FlowAgent, &[f32]) -> f32>;

const DOWN: f32 = 0.0;

fn rated(agent: &Value) -> bool {
    agent["action"]["target"] == "rate"
}

/// Return the action that changes nothing.
fn hold(agent: &Value) -> f32 {
    if rated(agent) {
        3.0
    } else {
        2.0
    }
}

/// Drive every learner of `sim` by its policy until `until`, seconds.
fn drive(sim: &mut Simulator, until: f64, policies: &mut [Policy]) {
    while let Some(flow) = sim.run_to_decision(Timestamp(secs(until))).unwrap() {
        let now = sim.now();
        let agent = agent_of(sim, flow);
        assert!(agent.rate().is_finite() && agent.window().is_finite());
        let action = policies[flow](now.as_secs_f64(), agent, agent.observation());
        sim.decide(flow, &[action]);
    }
}

fn agent_of(sim: &Simulator, flow: usize) -> &FlowAgent {
    FlowAgent::of(sim.sender(flow).cca()).expect("a learner")
}

/// Drive flow 0 alone for `seconds`; returns the acknowledged Mbit/s by second.
fn rates(sim: &mut Simulator, seconds: u32, policy: Policy) -> Vec<f64> {
    let mut policies = [policy];
    let mut before = 0;
    let by_second = (1..=seconds).map(|second| {
        drive(sim, f64::from(second), &mut policies);
        let acked = sim.sender(0).stats().acked_bytes;
        let rate = (acked - before) as f64 * 8.0 / 1e6;
        before = acked;
        rate
    });
    by_second.collect()
}

fn one(profile: &str) -> Value {
    json!([{"scheme": "learned", "profile": profile}])
}

/// Go down to the floor; at the floor and from `after` on, hold.
fn down_then_hold(agent: &Value, after: f64) -> Policy {
    let (rated, hold, mut left_there) = (rated(agent), hold(agent), false);
    Box::new(move |now, agent, seen| {
        let floor = if rated { agent.rate() <= 24_000.0 / f64::from(seen[2]).max(1e-3) } else { agent.window() <= 2.0 };
        left_there |= now >= after && floor;
        if left_there {
            hold
        } else {
            DOWN
        }
    })
}

/// Return disturbances of a path from its first or second second on, and their ends.
fn disturbances() -> Vec<(String, Path, f64)> {
    let mut all = vec![("nothing".to_owned(), Path::clear(), 3.0)];
    for (from, seconds) in [(0.0, 1.0), (1.0, 1.0), (0.0, 3.0), (1.0, 10.0)] {
        let (usual, to) = (Path::clear(), from + seconds);
        let lost = |loss: &Value| meanwhile(loss, 1, from, to);
        let mut add = |what: &str, path: Path| all.push((format!("{what} from {from} s to {to} s"), path, to));
        add("acknowledgements lost", Path { down_loss: lost(&usual.down_loss), ..usual.clone() });
        add("data lost", Path { up_loss: lost(&usual.up_loss), ..usual.clone() });
        add("link silent", Path { rate: meanwhile(&usual.rate, 0, from, to), ..usual.clone() });
        add("everything lost", Path { up_loss: lost(&usual.up_loss), down_loss: lost(&usual.down_loss), ..usual });
    }
    for (from, seconds) in [(0.0, 0.2), (1.0, 0.2), (1.0, 0.5), (0.0, 1.0), (1.0, 1.0), (0.0, 2.0), (1.0, 2.0)] {
        let to = from + seconds;
        let path = Path { down_delay: stalled(51_000_000, from, to), ..Path::clear() };
        all.push((format!("host stalled from {from} s to {to} s"), path, to));
    }
    all
}

#[test]
fn no_disturbance_and_no_policy_keeps_a_flow_down() {
    for json in [indigo(), eagle()] {
        let agent = agent(&json);
        for (what, path, end) in disturbances() {
            for profile in ["udp", "tcp"] {
                let policies: [(&str, Policy); 3] = [
                    ("down, then hold", down_then_hold(&json, end + 0.5)),
                    ("down for ever", Box::new(|_, _, _| DOWN)),
                    ("nothing readable", Box::new(|_, _, _| f32::NAN)),
                ];
                for (name, policy) in policies {
                    let rates = rates(&mut simulator(&agent, &path.spec(&one(profile), 40.0, 1)), 40, policy);
                    let place = format!("{} over {profile}, {what}, {name}: {rates:.1?}", json["name"]);
                    // Timers and clocks have backed off by as much as the path was silent.
                    let latest = (end + 4.0 + end.floor()) as usize;
                    assert!(rates[..latest].iter().any(|rate| *rate >= 0.5 * RATE / 1e6), "{place}");
                    let mean = rates[25..].iter().sum::<f64>() / 15.0;
                    assert!(mean >= 0.5 * RATE / 1e6, "{place}");
                }
            }
        }
    }
}

#[test]
fn without_the_guard_they_stay_down() {
    for json in [indigo(), eagle()] {
        let agent = agent(&without_guard(&json));
        let mut sim = simulator(&agent, &Path::clear().spec(&one("udp"), 40.0, 1));
        let rates = rates(&mut sim, 40, down_then_hold(&json, 1.0));
        assert!(rates[2..].iter().all(|rate| *rate < 0.01 * RATE / 1e6), "{rates:?}");
    }
}

#[test]
fn no_seed_of_a_random_policy_ends_at_the_floor() {
    for json in [indigo(), eagle()] {
        let agent = agent(&json);
        let choices = json["action"]["map"]["operations"].as_array().expect("operations").len() as u64;
        for seed in 0..if all_tests() { 200 } else { 10 } {
            let mut rng = Rng::stream(seed, "guard", 0);
            let from = 0.5 * rng.below(10) as f64;
            let to = from + [0.2, 0.5, 1.0, 2.0, 3.0][rng.below(5) as usize];
            let mut path = Path::clear();
            match rng.below(5) {
                0 => path.down_loss = meanwhile(&path.down_loss, 1, from, to),
                1 => path.up_loss = meanwhile(&path.up_loss, 1, from, to),
                2 => path.rate = meanwhile(&path.rate, 0, from, to),
                3 => path.down_delay = stalled(51_000_000, from, to),
                _ => {}
            }
            let profile = ["udp", "tcp"][rng.below(2) as usize];
            let mut later = down_then_hold(&json, 8.0);
            let policy: Policy = Box::new(
                move |now, agent, seen| {
                    if now < 8.0 {
                        rng.below(choices) as f32
                    } else {
                        later(now, agent, seen)
                    }
                },
            );
            let rates = rates(&mut simulator(&agent, &path.spec(&one(profile), 30.0, seed)), 30, policy);
            let mean = rates[20..].iter().sum::<f64>() / 10.0;
            assert!(mean >= 0.5 * RATE / 1e6, "{} seed {seed} over {profile}: {rates:.1?}", json["name"]);
        }
    }
}

#[test]
fn a_path_that_became_longer_does_not_keep_a_flow_down() {
    for json in [indigo(), eagle()] {
        let path = Path { up_delay: json!([[0, 51_000_000], [secs(2.0), 153_000_000]]), ..Path::clear() };
        let mut sim = simulator(&agent(&json), &path.spec(&one("udp"), 40.0, 1));
        let rates = rates(&mut sim, 40, down_then_hold(&json, 3.0));
        assert!(rates[..30].iter().any(|rate| *rate >= 0.5 * RATE / 1e6), "{rates:?}");
    }
}

fn without_guard(agent: &Value) -> Value {
    let mut agent = agent.clone();
    agent["guard"] = json!({"kind": "none"});
    agent
}

/// Grow until the queue is a tenth of the RTT, and shrink from a quarter, or a tenth of loss, on.
fn sane(agent: &Value) -> Policy {
    let (up, keep, down) = if rated(agent) { (4.0, 3.0, 2.0) } else { (3.0, 2.0, 1.0) };
    Box::new(move |_, _, seen| {
        let [queue, loss, min_rtt] = seen else { panic!("three features") };
        if *loss > 0.1 || *queue > 0.25 * min_rtt {
            down
        } else if *queue > 0.1 * min_rtt {
            keep
        } else {
            up
        }
    })
}

/// Make a path; `rate` may be steps; `rtt` in milliseconds.
fn path(rate: Value, rtt: u64, queue: u64, loss: f64) -> Path {
    let delay = json!(rtt * 500_000);
    Path { rate, up_loss: json!(loss), down_loss: json!(0.0), up_delay: delay.clone(), down_delay: delay, queue }
}

#[test]
fn in_ordinary_operation_the_guard_does_nothing() {
    let paths = [
        path(json!(10_000_000), 20, 1000, 0.0),
        path(json!(12_000_000), 40, 40, 0.0),
        path(json!(20_000_000), 20, 30, 0.0),
        Path::clear(),
        path(json!(100_000_000), 160, 2000, 0.0),
        path(json!(12_000_000), 40, 40, 0.05),
        path(json!([[0, 60_000_000], [secs(10.0), 30_000_000], [secs(20.0), 90_000_000]]), 100, 83, 0.0),
    ];
    for json in [indigo(), eagle()] {
        for (i, path) in paths.iter().enumerate() {
            for profile in ["udp", "tcp"] {
                let run = |json: &Value| {
                    let mut sim = simulator(&agent(json), &path.spec(&one(profile), 30.0, 1));
                    drive(&mut sim, 30.0, &mut [sane(json)]);
                    (agent_of(&sim, 0).interventions(), sim.trajectory_hash())
                };
                let (guarded, plain) = (run(&json), run(&without_guard(&json)));
                assert_eq!(guarded, (0, plain.1), "{} over {profile} on path {i}", json["name"]);
            }
        }
    }
}

/// Return the acknowledged Mbit/s of all flows and the mean one-way delay in ms after a minute.
fn minute(agent: &AgentSpec, path: &Path, flows: &Value, policies: &mut [Policy]) -> (f64, f64) {
    let mut spec = path.spec(flows, 60.0, 1);
    spec.record.packets = true;
    let mut sim = simulator(agent, &spec);
    drive(&mut sim, 60.0, policies);
    let outcome = sim.outcome();
    let acked: u64 = outcome.flows.iter().map(|f| f.sender.acked_bytes).sum();
    let log = outcome.data.expect("packets are recorded");
    let arrived = log.entered.iter().zip(&log.left).filter(|(_, left)| **left != u64::MAX);
    let (sum, count) = arrived.fold((0, 0u64), |(sum, count), (entered, left)| (sum + (left - entered), count + 1));
    (acked as f64 * 8.0 / 60e6, sum as f64 / count as f64 / 1e6)
}

#[test]
fn where_a_low_rate_is_right_little_changes() {
    let learners = |n: u64| -> Value {
        (0..n).map(|i| json!({"scheme": "learned", "profile": "udp", "start": i * 100_000_000})).collect()
    };
    let among = |scheme: &str| -> Value {
        (0..5).map(|i| json!({"scheme": if i == 0 { "learned" } else { scheme }, "profile": "udp"})).collect()
    };
    let falls = |to: u64| path(json!([[0, 60_000_000], [secs(10.0), to]]), 40, 200, 0.0);
    // Path, its packets per second at the end, flows, and true if their policy is sane; else it goes to the floor.
    let cases = [
        ("Nepal", path(json!(570_000), 56, 14, 0.0477), 47.5, learners(1), true),
        ("0.2 Mbit/s", path(json!(200_000), 100, 20, 0.0), 16.7, learners(1), true),
        ("0.5 Mbit/s", path(json!(500_000), 40, 20, 0.0), 41.7, learners(1), true),
        ("0.5 Mbit/s, floor", path(json!(500_000), 40, 20, 0.0), 41.7, learners(1), false),
        ("10 % loss", path(json!(12_000_000), 40, 40, 0.1), 1000.0, learners(1), true),
        ("20 % loss", path(json!(12_000_000), 40, 40, 0.2), 1000.0, learners(1), true),
        ("falls to a 20th", falls(3_000_000), 250.0, learners(1), true),
        ("falls to a 100th", falls(600_000), 50.0, learners(1), true),
        ("five", path(json!(10_000_000), 40, 40, 0.0), 833.0, learners(5), true),
        ("ten", path(json!(77_000_000), 100, 94, 0.0), 6417.0, learners(10), true),
        ("among cubic", path(json!(40_000_000), 40, 133, 0.0), 3333.0, among("cubic"), false),
        ("among bbr", path(json!(40_000_000), 40, 133, 0.0), 3333.0, among("bbr"), false),
    ];
    for json in [indigo(), eagle()] {
        for (name, path, packets, flows, is_sane) in &cases {
            let run = |json: &Value| {
                let n = flows.as_array().expect("flows").len();
                let policy = |_| -> Policy {
                    if *is_sane {
                        sane(json)
                    } else {
                        Box::new(|_, _, _| DOWN)
                    }
                };
                minute(&agent(json), path, flows, &mut (0..n).map(policy).collect::<Vec<_>>())
            };
            let (guarded, plain) = (run(&json), run(&without_guard(&json)));
            let place = format!("{}, {name}: {guarded:?} with the guard, {plain:?} without", json["name"]);
            assert!(guarded.0 >= 0.98 * plain.0, "{place}");
            // A millisecond, and one packet: on a slow link a search of a few packets takes time.
            assert!(guarded.1 <= plain.1 + 1.0 + 1000.0 / packets, "{place}");
        }
    }
}
