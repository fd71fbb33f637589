//! What Synthesized-BBR must do: fill the path on which its published runs were made, and come back from whatever
//! takes the path away for a while.

use ccgym_core::Timestamp;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_sim::Simulator;
use serde_json::{json, Value};

const S: u64 = 1_000_000_000;

/// Indigo's fifth calibrated path as a link of constant rate: 77.72 Mbit/s, 51 ms each way, 94 packets, 0.06 % loss.
struct Path {
    rate: Value,
    delay: Value,
    /// Of data, and of acknowledgements.
    loss: [Value; 2],
    queue: u64,
    flows: Value,
    seed: u64,
}

impl Path {
    fn new(params: &Value) -> Self {
        let flows = json!([{"scheme": "synthesized_bbr", "params": params, "profile": "udp"}]);
        Self {
            rate: json!(77_720_000),
            delay: json!(51_000_000),
            loss: [json!(0.0006), json!(0.0)],
            queue: 94,
            flows,
            seed: 1,
        }
    }

    fn simulator(&self) -> Simulator {
        let delay = json!({"kind": "delay", "delay": self.delay});
        let loss = |probability: &Value| json!({"kind": "loss", "probability": probability});
        let spec: RunSpec = serde_json::from_value(json!({
            "seed": self.seed,
            "duration": 30 * S,
            "uplink": [
                delay,
                loss(&self.loss[0]),
                {"kind": "link", "schedule": {"kind": "rate", "rate": self.rate},
                 "queue": {"kind": "droptail", "limit": {"packets": self.queue}}},
            ],
            "downlink": [loss(&self.loss[1]), delay],
            "flows": self.flows,
        }))
        .expect("valid JSON");
        let schemes = |f: &FlowSpec| ccgym_schemes::create(&f.scheme, &f.params).map_err(|e| e.to_string());
        Simulator::new(&spec, &|_| None, &schemes).expect("a valid specification")
    }

    /// Acknowledged from each of `times` to the next, Mbit/s of flow 0.
    fn rates(&self, times: &[u64]) -> Vec<f64> {
        let mut simulator = self.simulator();
        let mut acked = Vec::new();
        for seconds in times {
            simulator.run_until(Timestamp(seconds * S)).unwrap();
            acked.push(simulator.sender(0).stats().acked_bytes);
        }
        let spans = times.windows(2).zip(acked.windows(2));
        spans.map(|(t, bytes)| (bytes[1] - bytes[0]) as f64 * 8.0 / 1e6 / (t[1] - t[0]) as f64).collect()
    }
}

fn both(check: impl Fn(&str, &Value)) {
    check("nearest", &json!({}));
    check("exact", &json!({"gain_on_estimate": true}));
}

/// Values from so many seconds on.
fn steps<T: Copy + Into<Value>>(of: &[(u64, T)]) -> Value {
    of.iter().map(|(seconds, value)| json!([seconds * S, (*value).into()])).collect()
}

#[test]
fn it_fills_the_path_with_every_seed() {
    both(|name, params| {
        for seed in 0..20 {
            let rate = Path { seed, ..Path::new(params) }.rates(&[0, 30])[0];
            assert!((70.0..77.72).contains(&rate), "{name}, seed {seed}: {rate} Mbit/s");
        }
    });
}

#[test]
fn it_comes_back_from_blackouts_and_bursts_of_loss() {
    // From when to when, how much of data and of acknowledgements is lost, and when the path is full again.
    let cases = [
        (1, 2, 0.0, 1.0, 4),
        (1, 2, 1.0, 0.0, 4),
        (0, 3, 1.0, 0.0, 7),
        (10, 15, 1.0, 0.0, 18),
        (10, 15, 0.0, 1.0, 18),
        (5, 10, 0.5, 0.0, 13),
        (5, 10, 0.9, 0.0, 15),
        (5, 10, 0.9, 0.9, 15),
    ];
    both(|name, params| {
        for (from, to, data, acks, full) in cases {
            let outage = |p: f64| match from {
                0 => steps(&[(0, p), (to, 0.0)]),
                _ => steps(&[(0, 0.0), (from, p), (to, 0.0)]),
            };
            let path = Path { loss: [outage(data), outage(acks)], ..Path::new(params) };
            let rate = path.rates(&[full, 30])[0];
            assert!(rate > 68.0, "{name}: {data} and {acks} lost from {from} to {to} s, then {rate} Mbit/s");
        }
    });
}

#[test]
fn steady_loss_does_not_end_start_up() {
    both(|name, params| {
        for (loss, least) in [(0.05, 68.0), (0.1, 62.0), (0.15, 58.0)] {
            let rate = Path { loss: [json!(loss), json!(0.0)], ..Path::new(params) }.rates(&[5, 30])[0];
            assert!(rate > least, "{name}: {rate} Mbit/s at a loss of {loss}");
        }
    });
}

#[test]
fn it_follows_the_rate() {
    both(|name, params| {
        let rate = steps(&[(0, 10_000_000), (10, 80_000_000), (20, 10_000_000)]);
        let rates = Path { rate, ..Path::new(params) }.rates(&[5, 10, 15, 20, 22, 30]);
        // The second element is the search for the eightfold rate, the fourth what was in flight at its end.
        for (i, least, most) in [(0, 8.5, 10.1), (1, 40.0, 80.0), (2, 72.0, 80.0), (4, 9.0, 10.1)] {
            assert!((least..most).contains(&rates[i]), "{name}: {rates:?}");
        }
    });
}

#[test]
fn a_longer_round_trip_does_not_starve_it_for_ever() {
    both(|name, params| {
        let double = Path { delay: steps(&[(0, 51_000_000), (10, 102_000_000)]), ..Path::new(params) };
        let rates = double.rates(&[10, 15, 30]);
        assert!(rates.iter().all(|rate| *rate > 60.0), "{name}: {rates:?}");
        // The window of round trips ends after 100 intervals of 0.2 s.
        let fourfold = Path { delay: steps(&[(0, 25_000_000), (3, 100_000_000)]), ..Path::new(params) };
        let rates = fourfold.rates(&[0, 26, 30]);
        assert!(rates[1] > 40.0, "{name}: {rates:?}");
    });
}

#[test]
fn small_and_large_queues() {
    both(|name, params| {
        for queue in [1, 10, 700, 4000] {
            let rate = Path { queue, ..Path::new(params) }.rates(&[5, 30])[0];
            assert!(rate > 68.0, "{name}: {rate} Mbit/s at a queue of {queue}");
        }
    });
}
