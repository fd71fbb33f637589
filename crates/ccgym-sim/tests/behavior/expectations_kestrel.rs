//! What Kestrel must do: keep its queue short alone and among its like, hold its own next to Cubic, notice a path that
//! changes.

use ccgym_core::Timestamp;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_sim::Simulator;
use serde_json::{json, Value};

const S: u64 = 1_000_000_000;

/// Flows on a link of so many Mbit/s with so many packets of buffer, the one-way delay given as the path's element has it,
/// and a packet's time of jitter against phase effects.
fn simulator(rate: &Value, delay: &Value, buffer: u64, flows: &Value) -> Simulator {
    let delay = json!({"kind": "delay", "delay": delay});
    let spec: RunSpec = serde_json::from_value(json!({
        "seed": 1,
        "duration": 100 * S,
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": rate},
             "queue": {"kind": "droptail", "limit": {"packets": buffer}}},
            delay,
            {"kind": "jitter", "distribution": {"kind": "uniform", "max": 250_000}},
        ],
        "downlink": [delay],
        "flows": flows,
    }))
    .expect("valid JSON");
    let schemes = |f: &FlowSpec| ccgym_schemes::create(&f.scheme, &f.params).map_err(|e| e.to_string());
    Simulator::new(&spec, &|_| None, &schemes).expect("a valid specification")
}

fn flow(scheme: &str, start_s: u64) -> Value {
    json!({"scheme": scheme, "start": start_s * S})
}

/// Acknowledged by each flow from one second to another, Mbit/s; and the mean smoothed round trip of the first, ms.
fn rates(sim: &mut Simulator, from: u64, to: u64) -> (Vec<f64>, f64) {
    let acked = |sim: &Simulator| (0..sim.flow_count()).map(|i| sim.sender(i).stats().acked_bytes).collect::<Vec<_>>();
    sim.run_until(Timestamp(from * S)).unwrap();
    let (before, mut rtt) = (acked(sim), 0.0);
    for step in 1..=(to - from) * 10 {
        sim.run_until(Timestamp(from * S + step * S / 10)).unwrap();
        rtt += sim.sender(0).rtt().smoothed().as_millis_f64();
    }
    let mbps = |(now, before): (&u64, &u64)| (now - before) as f64 * 8e-6 / (to - from) as f64;
    (acked(sim).iter().zip(&before).map(mbps).collect(), rtt / ((to - from) * 10) as f64)
}

#[test]
fn kestrel_alone() {
    for (mbps, buffer) in [(12, 40), (48, 1000), (96, 60)] {
        let mut sim = simulator(&json!(mbps * 1_000_000), &json!(20_000_000), buffer, &json!([flow("kestrel", 0)]));
        let (rates, rtt) = rates(&mut sim, 5, 60);
        assert!(rates[0] > 0.97 * mbps as f64, "{mbps}: {rates:?}");
        // 0.2/√rate: 6.3 ms at 1000 packets/s; looks and noise make little of a difference.
        let wanted = 200.0 / (mbps as f64 * 1e6 / 12_000.0).sqrt();
        assert!(rtt - 40.0 < 1.5 * wanted + 1.0, "{mbps}: {rtt} ms");
    }
}

#[test]
fn kestrels_share() {
    for flows in [
        json!([flow("kestrel", 0), flow("kestrel", 10)]),
        json!([flow("kestrel", 0), flow("kestrel", 7), flow("kestrel", 14), flow("kestrel", 21)]),
    ] {
        let mut sim = simulator(&json!(48_000_000), &json!(20_000_000), 160, &flows);
        let (rates, rtt) = rates(&mut sim, 40, 100);
        let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|r| r * r).sum());
        assert!(sum * sum / (rates.len() as f64 * squares) > 0.95, "{rates:?}");
        assert!(sum > 0.96 * 48.0 && rtt < 52.0, "{rates:?} {rtt}");
    }
}

#[test]
fn kestrel_next_to_cubic() {
    for (first, second) in [("kestrel", "cubic"), ("cubic", "kestrel")] {
        for buffer in [160, 640] {
            let flows = json!([flow(first, 0), flow(second, 10)]);
            let (rates, _) = rates(&mut simulator(&json!(48_000_000), &json!(20_000_000), buffer, &flows), 30, 100);
            let share = rates[usize::from(second == "kestrel")] / (rates[0] + rates[1]);
            assert!((0.25..0.75).contains(&share), "{first} first, {buffer}: {rates:?}");
        }
    }
}

/// A newcomer at a queue of four products that Cubic holds begins with slow start: it has its share within half a minute.
#[test]
fn kestrel_comes_to_a_full_queue() {
    let flows = json!([flow("cubic", 0), flow("kestrel", 5)]);
    let (rates, _) = rates(&mut simulator(&json!(24_000_000), &json!(20_000_000), 320, &flows), 20, 35);
    assert!(rates[1] > 0.35 * 24.0, "{rates:?}");
}

/// A link that becomes ten times slower and faster again every half second: what waits is met within the round, which
/// takes up to ten round trips, and what is empty fills.
#[test]
fn kestrel_on_a_link_that_changes_all_the_time() {
    let rate: Vec<_> = (0..40).map(|i| json!([i * S / 2, if i % 2 == 0 { 100_000_000 } else { 10_000_000 }])).collect();
    let mut sim = simulator(&json!(rate), &json!(20_000_000), 333, &json!([flow("kestrel", 0)]));
    let (rates, rtt) = rates(&mut sim, 2, 20);
    assert!(rates[0] > 0.4 * 55.0 && rtt < 250.0, "{rates:?} {rtt}");
}

/// A link that becomes faster after start-up fills without a long queue: 12.6 ms are wanted, and 4 ms are a packet's time.
#[test]
fn kestrel_on_a_link_that_wakes_up() {
    let rate = json!([[0, 240_000], [5 * S, 3_000_000]]);
    let mut sim = simulator(&rate, &json!(100_000_000), 400, &json!([flow("kestrel", 0)]));
    let (rates, rtt) = rates(&mut sim, 10, 20);
    assert!(rates[0] > 0.95 * 3.0 && rtt < 230.0, "{rates:?} {rtt}");
}

/// A queue that is always short does not become the base RTT.
#[test]
fn kestrel_with_little_appetite() {
    let flow = json!({"scheme": "kestrel", "params": {"appetite": 0.05}});
    let mut sim = simulator(&json!(48_000_000), &json!(50_000_000), 800, &json!([flow]));
    let (rates, rtt) = rates(&mut sim, 60, 100);
    assert!(rates[0] > 0.94 * 48.0 && rtt < 101.5, "{rates:?} {rtt}");
}

/// A link that becomes eight times faster is full within seconds, as is a path that becomes twice as long.
#[test]
fn kestrel_on_a_path_that_changes() {
    let rate = json!([[0, 6_000_000], [20 * S, 48_000_000]]);
    let delay = json!([[0, 10_000_000], [40 * S, 20_000_000]]);
    let mut sim = simulator(&rate, &delay, 160, &json!([flow("kestrel", 0)]));
    let (before, _) = rates(&mut sim, 5, 20);
    assert!(before[0] > 5.7, "{before:?}");
    let (faster, _) = rates(&mut sim, 24, 40);
    assert!(faster[0] > 45.0, "{faster:?}");
    let (longer, rtt) = rates(&mut sim, 46, 60);
    assert!(longer[0] > 45.0 && rtt < 48.0, "{longer:?} {rtt}");
}
