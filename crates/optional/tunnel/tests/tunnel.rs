//! Runs between two machines, here two network namespaces with an emulated path between them. The receivers' machine
//! has another monotonic clock; the wall clock is the same, so that the true offset of the wall clocks is zero.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::print_stdout, clippy::print_stderr)]

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use ccgym_net::run::RunResult;
use ccgym_net::shell::PathEmulator;
use ccgym_net::system::{Endpoints, Namespace, Placement};
use ccgym_net::Clock;
use ccgym_tunnel::{join, HalfResult, JoinOptions};
use common::programs::becoming;
use common::{all_tests, delay, link, loss, root, spec, Ran, Sandbox};
use serde_json::{json, Value};

#[path = "../../../ccgym-net/tests/net/common/mod.rs"]
mod common;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccgym-tunnel");
/// Seconds by which the receivers' monotonic clock is ahead.
const AHEAD: &str = "100000";
const MS: u64 = 1_000_000;

// --- Two machines --------------------------------------------------------------------------------------------------

/// Two machines with a path between them; the senders are inside.
struct Machines {
    place: Sandbox,
    ends: Endpoints,
    _path: PathEmulator,
}

impl Machines {
    /// Open a path with these delays there and back, ms, and this fraction of lost packets.
    fn open(there: u64, back: u64, lost: f64) -> Option<Self> {
        let place = Sandbox::open()?;
        let ends = Endpoints::open(Placement::Isolated).unwrap();
        let [there, back] = [there, back].map(|ms| [loss(lost), delay(1000 * ms), link(24.0, 60)]);
        let path = PathEmulator::start(&ends, spec(Clock::start(), &there, &back)).unwrap();
        Some(Self { place, ends, _path: path })
    }

    /// Start an end, whose settings are in `plan["backend"]`.
    fn start(&self, namespace: &Namespace, plan: &Value, later: bool) -> Child {
        let words =
            ["unshare", "--time", "--fork", "--kill-child", "--monotonic", AHEAD, "--boottime", AHEAD, "--", PROGRAM];
        let mut command = self.place.plan(if later { &words } else { &[PROGRAM] }, plan);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        namespace.run(|| command.spawn()).unwrap().unwrap()
    }

    /// Run a plan; either the receivers' end waits or the senders'.
    fn run(&self, plan: &Value, receivers_wait: bool) -> (HalfResult, HalfResult) {
        let folder = &self.place.folder;
        let end = |name: &str, waits: bool, address: String| {
            let mut plan = plan.clone();
            let key = if waits { "listen" } else { "connect" };
            let secret = "000102030405060708090a0b0c0d0e0f";
            plan["backend"] = json!({"kind": "remote", "end": name, "secret": secret, key: address});
            if waits {
                plan["backend"]["status"] = json!(folder.join("status"));
            }
            plan["result"] = json!(folder.join(name));
            plan
        };
        let (inside, outside) = (&self.ends.inside, &self.ends.outside);
        let (waiting, calling) = if receivers_wait { (outside, inside) } else { (inside, outside) };
        let names = if receivers_wait { ["receivers", "senders"] } else { ["senders", "receivers"] };
        let waits = self.start(&waiting.namespace, &end(names[0], true, "0.0.0.0:0".into()), receivers_wait);
        self.place.wait_for("status");
        sleep(Duration::from_millis(50));
        let status: Value = serde_json::from_slice(&self.place.read("status")).unwrap();
        let address = format!("{}:{}", waiting.address, status["listening"]);
        let calls = self.start(&calling.namespace, &end(names[1], false, address), !receivers_wait);
        for child in [waits, calls] {
            Ran::of(child).ok();
        }
        self.place.assert_clean(&["receivers", "senders", "status"], "a run");
        let half = |name| HalfResult::read(&self.place.read(name)).unwrap();
        (half("senders"), half("receivers"))
    }
}

fn plan(flows: Value) -> Value {
    json!({"spec": {
        "duration": 2_000_000_000u64, "uplink": [], "downlink": [], "flows": flows,
        "record": {"packets": true, "series": 100_000_000},
    }})
}

fn joined_result(plan: &Value, halves: &(HalfResult, HalfResult), options: Value) -> RunResult {
    let spec = serde_json::from_value(plan["spec"].clone()).unwrap();
    let options: JoinOptions = serde_json::from_value(options).unwrap();
    join(&spec, halves.0.clone(), halves.1.clone(), options).unwrap()
}

/// Return the min one-way delay of a flow's data, ms.
fn least_ms(result: &RunResult, flow: u32) -> f64 {
    let log = result.outcome.data.as_ref().unwrap();
    let arrived = (0..log.flow.len()).filter(|&i| log.flow[i] == flow && log.left[i] != u64::MAX);
    arrived.map(|i| log.left[i] - log.entered[i]).min().unwrap() as f64 / MS as f64
}

// --- Runs ----------------------------------------------------------------------------------------------------------

#[test]
fn clocks_are_estimated_up_to_the_asymmetry_and_a_time_server_adds_it() {
    let Some(machines) = Machines::open(10, 30, 0.0) else { return };
    let plan = plan(json!([{"scheme": "cubic", "mss": 1400}]));
    let halves = machines.run(&plan, true);
    let alone = joined_result(&plan, &halves, json!({}));
    let clocks = alone.report.clocks.as_ref().unwrap();
    // The true offset is 0 and the true asymmetry 20 ms: half of it appears as offset. A packet takes 0.5 ms.
    assert!((clocks.offset_ms - -10.0).abs() < 2.0, "{clocks:?}");
    assert!(clocks.bound_ms > 20.0 && clocks.bound_ms < 23.0, "{clocks:?}");
    assert!(clocks.drift_ppm.abs() < 1000.0 && clocks.applied == "in-band", "{clocks:?}");
    assert!((least_ms(&alone, 0) - 20.5).abs() < 2.0, "{}", least_ms(&alone, 0));
    let asked = joined_result(&plan, &halves, json!({"ntp_offset_ns": {"senders": 0, "receivers": 0}}));
    assert_eq!(asked.report.clocks.as_ref().unwrap().applied, "ntp");
    assert!((least_ms(&asked, 0) - 10.5).abs() < 2.0, "{}", least_ms(&asked, 0));

    // The result covers this time span and this path only.
    let end = 2_000_000_000;
    let log = alone.outcome.data.as_ref().unwrap();
    assert!(log.entered.iter().chain(log.left.iter().filter(|&&at| at != u64::MAX)).all(|&at| at <= end));
    let flow = &alone.outcome.flows[0];
    assert!(flow.received.bytes > 1_000_000, "{:?}", flow.received);
    assert_eq!((alone.report.device_drops, alone.report.rejected_datagrams), (0, 0));
    // Both clocks of the run agree up to the asymmetry of the path: the receiver's series start with the run.
    let arrived = log.left.iter().filter(|&&at| at <= 1_000_000_000).count() as f64;
    let series = &alone.outcome.series.as_ref().unwrap().flows[0];
    let counted = series.received_bytes[9] as f64 / f64::from(log.size.iter().copied().max().unwrap());
    assert!((arrived - counted).abs() < 0.1 * arrived + 60.0, "{arrived} packets, {counted} in the series");
}

#[test]
fn every_kind_of_flow_crosses_and_the_senders_may_wait() {
    let Some(machines) = Machines::open(5, 5, 0.0) else { return };
    let mut plan = plan(json!([
        {"scheme": "cubic", "mss": 1400}, {"scheme": "tcp:cubic", "mss": 1400},
        {"scheme": "program:test"}, {"scheme": "tcp:nosuch"},
    ]));
    let [sender, receiver] =
        ["source_that_listens", "sink_that_asks"].map(|name| ["/bin/sh".into(), "-c".into(), becoming(name)]);
    let programs = json!({"listens": "sender", "sender": sender, "receiver": receiver});
    plan["programs"] = json!({"2": programs});
    let result = joined_result(&plan, &machines.run(&plan, false), json!({}));
    for flow in 0..3 {
        let received = &result.outcome.flows[flow].received;
        assert!(received.bytes > 200_000, "flow {flow}: {received:?}");
        // The delay, plus the wait in the flows' common queue of 60 packets.
        let least = least_ms(&result, flow as u32);
        assert!(least > 4.0 && least < 45.0, "flow {flow}: {least} ms");
    }
    assert_eq!(result.report.unavailable.len(), 1);
    assert!(result.report.unavailable[0].1.contains("nosuch"), "{:?}", result.report.unavailable);
    assert!(result.report.clocks.unwrap().offset_ms.abs() < 2.0);
}

#[test]
fn ends_meet_over_a_long_path_that_loses_packets() {
    let Some(machines) = Machines::open(150, 150, 0.1) else { return };
    let mut plan = plan(json!([{"scheme": "bbr", "mss": 1400}]));
    plan["spec"]["duration"] = json!(2_600_000_000u64);
    let result = joined_result(&plan, &machines.run(&plan, true), json!({}));
    let clocks = result.report.clocks.as_ref().unwrap();
    assert!(clocks.offset_ms.abs() < 3.0 && (clocks.bound_ms - 150.5).abs() < 3.0, "{clocks:?}");
    let log = result.outcome.data.as_ref().unwrap();
    // Packets that could arrive before the end.
    let sent: Vec<_> = (0..log.flow.len()).filter(|&i| log.entered[i] < 2_300_000_000).collect();
    let lost = sent.iter().filter(|&&i| log.left[i] == u64::MAX).count();
    let fraction = lost as f64 / sent.len() as f64;
    assert!(sent.len() > 50 && fraction > 0.02 && fraction < 0.3, "{lost} of {}", sent.len());
    // The receivers' series start with the run, though time requests take 300 ms or more.
    let first = log.left.iter().min().copied().unwrap();
    let series = &result.outcome.series.as_ref().unwrap().flows[0].received_bytes;
    let begun = series.iter().position(|&bytes| bytes > 0).unwrap() as u64;
    assert!((first / (100 * MS)).abs_diff(begun) <= 1, "{first} {begun}");
}

#[test]
fn an_end_without_a_peer_explains_the_remedy() {
    if !all_tests() {
        return eprintln!("SKIPPED: `make test-all` runs it");
    }
    let Some(machines) = Machines::open(1, 1, 0.0) else { return };
    let mut plan = plan(json!([{"scheme": "cubic"}]));
    let address = format!("{}:9", machines.ends.outside.address);
    let secret = "0".repeat(32);
    plan["backend"] = json!({"kind": "remote", "end": "senders", "secret": secret, "connect": address});
    plan["result"] = json!(machines.place.folder.join("senders"));
    let ran = Ran::of(machines.start(&machines.ends.inside.namespace, &plan, false));
    ran.refused("no-answer", &address);
    machines.place.assert_clean(&[], "an end alone");
}

#[test]
fn the_receivers_machine_has_another_clock() {
    // Check the assumption of the other tests.
    if !root() {
        return;
    }
    let words = ["--time", "--fork", "--monotonic", AHEAD, "--boottime", AHEAD, "--", "cat", "/proc/uptime"];
    let ran = Command::new("unshare").args(words).output().unwrap();
    let there: f64 = String::from_utf8_lossy(&ran.stdout).split(' ').next().unwrap().parse().unwrap();
    let here: f64 = std::fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((there - here - 100_000.0).abs() < 5.0, "{there} {here}");
}
