//! What an emulated path carries here, and how punctually.

use std::collections::BTreeMap;

use ccgym_run::RunSpec;

use super::Finding;
use crate::error::{NetError, Result};
use crate::run::{execute, Backend, Plan, RunResult};

/// A path that carries less than this is of little use.
const USEFUL_MBPS: f64 = 500.0;
/// How late packets may be at the 99th percentile, nanoseconds.
const PUNCTUAL_NS: u64 = 200_000;

pub(super) fn examine() -> Vec<Finding> {
    vec![capacity(), punctuality()]
}

/// One second of one kernel flow through delay, loss and a link at `rate` bit/s.
fn flow(rate: u64) -> Result<RunResult> {
    let text = format!(
        r#"{{"duration": 1000000000, "record": {{"packets": false}},
            "uplink": [{{"kind": "link", "schedule": {{"kind": "rate", "rate": {rate}}},
                         "queue": {{"kind": "droptail", "limit": {{"packets": 10000}}}}}},
                       {{"kind": "loss", "probability": 0.0}}, {{"kind": "delay", "delay": 1000000}}],
            "downlink": [{{"kind": "delay", "delay": 1000000}}],
            "flows": [{{"scheme": "tcp:reno"}}]}}"#
    );
    let spec: RunSpec = serde_json::from_str(&text).map_err(|error| NetError::new("the doctor's path", error))?;
    execute(Plan {
        spec,
        traces: BTreeMap::new(),
        policies: BTreeMap::new(),
        agent: None,
        onnx_runtime: None,
        control: None,
        backend: Backend::Emulated,
        result: None,
    })
}

fn capacity() -> Finding {
    let name = "capacity of an emulated path";
    match flow(40_000_000_000) {
        Ok(result) => {
            let bytes: u64 = result.outcome.flows.iter().map(|f| f.received.unique_bytes).sum();
            let mbps = bytes as f64 * 8.0 / 1e6;
            let found = format!("{mbps:.0} Mbit/s for one kernel flow through delay, loss and link");
            if mbps >= USEFUL_MBPS {
                Finding::ok(name, found)
            } else {
                Finding::warn(name, found, "stay well below this rate, or let nothing else run")
            }
        }
        Err(error) => Finding::missing(name, format!("{}: {}", error.place, error.found), error.hint),
    }
}

fn punctuality() -> Finding {
    let name = "punctuality at 100 Mbit/s";
    match flow(100_000_000).map(|result| result.report.uplink_release.unwrap_or_default()) {
        Ok(release) => {
            let us = |ns: u64| ns as f64 / 1e3;
            let found = format!("packets leave {:.0} µs late at the 99th percentile", us(release.p99_ns));
            if release.p99_ns <= PUNCTUAL_NS {
                Finding::ok(name, found)
            } else {
                Finding::warn(name, found, "let nothing else run; delays measured here carry this error")
            }
        }
        Err(error) => Finding::missing(name, format!("{}: {}", error.place, error.found), error.hint),
    }
}
