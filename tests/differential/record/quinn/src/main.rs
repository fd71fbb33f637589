//! Records whole connections of quinn-proto, two endpoints over a small simulated path in virtual time.
//! `record-quinn FOLDER` writes one JSON file per case; `../README.md` says what is in it.

mod connection;
mod path;

use std::path::Path as File;
use std::time::Duration;

use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use serde_json::{json, Value};

use connection::{Pair, Sample};
use path::Path;

/// Bytes of IP and UDP headers.
pub const HEADERS: u64 = 28;
/// Bytes of a full packet on the wire.
pub const PACKET: u64 = 1500;
/// Packets in the first window.
const INITIAL_WINDOW: u64 = 10;
/// Between two samples of the window.
const INTERVAL: Duration = Duration::from_millis(50);

/// Bits per second, round trip in ms, packets that may wait, probability of loss, seconds, runs.
struct Case {
    name: &'static str,
    rate: u64,
    rtt_ms: u64,
    queue: usize,
    loss: f64,
    seconds: u64,
    runs: u64,
}

const CASES: [Case; 4] = [
    Case { name: "12mbps_40ms_1bdp", rate: 12_000_000, rtt_ms: 40, queue: 40, loss: 0.0, seconds: 120, runs: 1 },
    Case { name: "100mbps_20ms_half_bdp", rate: 100_000_000, rtt_ms: 20, queue: 83, loss: 0.0, seconds: 120, runs: 1 },
    Case { name: "48mbps_80ms_half_bdp", rate: 48_000_000, rtt_ms: 80, queue: 160, loss: 0.0, seconds: 180, runs: 1 },
    Case { name: "50mbps_40ms_loss", rate: 50_000_000, rtt_ms: 40, queue: 167, loss: 0.001, seconds: 120, runs: 5 },
];

fn run(case: &Case, controller: &str, seed: u64) -> Value {
    let path = Path::new(case.rate, Duration::from_millis(case.rtt_ms) / 2, case.queue, case.loss, seed);
    let window = INITIAL_WINDOW * (PACKET - HEADERS);
    let mut pair = match controller {
        "reno" => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Pair::new(path, config, seed)
        }
        _ => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Pair::new(path, config, seed)
        }
    };
    let mut samples = Vec::new();
    for i in 1..=case.seconds * 1000 / INTERVAL.as_millis() as u64 {
        pair.run_until(INTERVAL * i as u32);
        samples.push(pair.sample());
    }
    let column = |value: fn(&Sample) -> u64| samples.iter().map(value).collect::<Vec<_>>();
    // Deliveries once a second are enough for a throughput.
    let per_second = 1000 / INTERVAL.as_millis() as usize;
    let delivered: Vec<_> = column(|s| s.delivered).into_iter().skip(per_second - 1).step_by(per_second).collect();
    let last = samples.last().expect("samples");
    json!({
        "seed": seed,
        "cuts": pair.cuts.iter().map(|(at, from, to)| json!([at.as_micros() as f64 / 1e3, from, to])).collect::<Vec<_>>(),
        "window_bytes": column(|s| s.window),
        "delivered_bytes": delivered,
        "congestion_events": last.congestion_events,
        "lost_packets": last.lost_packets,
        "queue_drops": last.queue_drops,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: record-quinn FOLDER")?;
    for case in &CASES {
        for controller in ["cubic", "reno"] {
            let runs: Vec<_> = (1..=case.runs).map(|seed| run(case, controller, seed)).collect();
            let recording = json!({
                "conditions": {
                    "program": "quinn-proto 0.11.19",
                    "controller": controller,
                    "command": "cargo run --release -- ../../recorded/quinn",
                    "rate_bps": case.rate,
                    "rtt_ms": case.rtt_ms,
                    "queue_packets": case.queue,
                    "loss": case.loss,
                    "seconds": case.seconds,
                    "packet_bytes": PACKET,
                    "window_bytes_per_packet": PACKET - HEADERS,
                    "interval_ms": INTERVAL.as_millis() as u64,
                },
                "runs": runs,
            });
            let file = File::new(&folder).join(format!("{}_{controller}.json", case.name));
            std::fs::write(&file, serde_json::to_string(&recording)? + "\n")?;
            eprintln!("{}", file.display());
        }
    }
    Ok(())
}
