//! Checks of this machine, with remedies: `ccgym doctor`.
//!
//! Findings are data; `ccgym/cli/doctor.py` shows them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ccgym_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::run::{execute, no_guests, Host, RunResult};
use crate::system::{become_capable, precise_timers, Capability, Endpoints, Placement};

/// Congestion controls of the kernel that reports compare with.
const WANTED: [&str; 3] = ["cubic", "bbr", "reno"];
/// Number and spacing of timer measurements.
const TIMER_SAMPLES: u64 = 500;
const TIMER_SPACING: Duration = Duration::from_millis(2);
/// Max lateness of wake-ups and releases at the 99th percentile without effect on results, nanoseconds.
const MAX_LATENESS_NS: u64 = 200_000;
/// Min capacity of a useful path, Mbit/s.
const MIN_CAPACITY_MBPS: f64 = 500.0;

/// Status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Works.
    Ok,
    /// Works with limits.
    Warn,
    /// Does not work here.
    Missing,
}

/// Result of a check that a real path depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the check, such as `timers`.
    pub name: String,
    /// Status of the check.
    pub status: Status,
    /// Result in words.
    pub found: String,
    /// Remedy; empty if none is needed.
    pub remedy: String,
}

impl Finding {
    /// Return a finding with status ok.
    pub fn ok(name: &str, found: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    /// Return a finding with status warn.
    pub fn warn(name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    /// Return a finding with status missing.
    pub fn missing(name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Missing, found: found.into(), remedy: remedy.into() }
    }

    /// Return a finding with status ok if the measurement is `good`, else warn.
    fn measured(name: &str, good: bool, found: String, remedy: &str) -> Self {
        if good {
            Self::ok(name, found)
        } else {
            Self::warn(name, found, remedy)
        }
    }

    /// Return a finding with status missing, from an error.
    fn failed(name: &str, error: Error) -> Self {
        Self::missing(name, format!("{}: {}", error.place, error.found), error.hint)
    }
}

/// Check this machine.
///
/// Call it while the process has one thread: without root it enters a user namespace.
#[must_use]
pub fn examine(job: &DoctorJob, host: &Host<'_>) -> Vec<Finding> {
    // First: programs of a backend may need the user's own rights, outside a user namespace.
    let of_backends: Vec<_> = host.backends.iter().flat_map(|backend| (backend.examine)()).collect();
    let capability = become_capable();
    let mut findings = rights(&capability);
    findings.push(congestion_controls());
    findings.push(quic(job.quic.as_deref()));
    if job.measure {
        findings.push(timers());
        if capability.is_ok() {
            findings.extend([capacity(), punctuality()]);
        }
    }
    findings.extend(of_backends);
    findings
}

/// The job `doctor` (JSON).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoctorJob {
    /// True: measure timers and the capacity of a path, which takes seconds.
    pub measure: bool,
    /// The program `ccgym-quic`, if installed.
    #[serde(default)]
    pub quic: Option<PathBuf>,
}

/// Write the findings as one JSON list to standard output. Return the exit status.
pub fn run(job: &DoctorJob, host: &Host<'_>) -> Result<i32> {
    let findings = examine(job, host);
    let text =
        serde_json::to_string(&findings).map_err(|error| Error::of("run-failed", "writing the findings", error))?;
    writeln!(std::io::stdout(), "{text}").context(|| "writing the findings".into())?;
    Ok(0)
}

/// Check if this process can make namespaces and devices.
fn rights(capability: &Result<Capability>) -> Vec<Finding> {
    let mut findings = vec![match capability {
        Ok(Capability::Root) => Finding::ok("rights", "root: namespaces of our own"),
        Ok(Capability::UserNamespace) => Finding::ok("rights", "an unprivileged user namespace"),
        Err(error) => Finding::missing("rights", error.found.clone(), error.hint.clone()),
    }];
    findings.push(tun());
    if capability.is_ok() {
        findings.push(match Endpoints::open(Placement::Isolated) {
            Ok(ends) => {
                Finding::ok("path", format!("two ends made: {} and {}", ends.inside.device, ends.outside.device))
            }
            Err(error) => Finding::failed("path", error),
        });
    }
    findings
}

fn tun() -> Finding {
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Finding::ok("tun", "/dev/net/tun can be opened"),
        Err(error) => Finding::warn(
            "tun",
            format!("/dev/net/tun: {error}; veth pairs serve instead"),
            "more throughput with TUN: sudo modprobe tun; sudo chmod 666 /dev/net/tun",
        ),
    }
}

fn congestion_controls() -> Finding {
    let available = crate::tcp::available();
    let missing: Vec<&str> = WANTED.into_iter().filter(|name| !available.iter().any(|a| a == name)).collect();
    let found = available.join(" ");
    if missing.is_empty() {
        Finding::ok("congestion controls", found)
    } else {
        let modules: Vec<String> = missing.iter().map(|name| format!("tcp_{name}")).collect();
        let remedy = format!("sudo modprobe {}", modules.join(" "));
        Finding::warn("congestion controls", format!("{found}; not {}", missing.join(", ")), remedy)
    }
}

/// Check if the program of QUIC flows is installed and runs.
fn quic(program: Option<&Path>) -> Finding {
    let name = "quic";
    let remedy = "in a checkout: make setup; elsewhere: cargo install --path crates/optional/quic-flows";
    let Some(program) = program else {
        return Finding::warn(name, "no program ccgym-quic: no flows quic:NAME", remedy);
    };
    match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            Finding::ok(name, format!("{} ({})", String::from_utf8_lossy(&output.stdout).trim(), program.display()))
        }
        Ok(output) => Finding::warn(name, format!("{} --version: {}", program.display(), output.status), remedy),
        Err(error) => Finding::warn(name, format!("{}: {error}", program.display()), remedy),
    }
}

/// Measure the lateness of wake-ups.
fn timers() -> Finding {
    // An error of this call shows in the measurement.
    precise_timers();
    let clock = Clock::start();
    let mut late: Vec<u64> = (1..=TIMER_SAMPLES)
        .map(|k| {
            let due = Timestamp(k * TIMER_SPACING.as_nanos() as u64);
            clock.sleep_until(due);
            clock.now().since(due).0
        })
        .collect();
    late.sort_unstable();
    let at = |p: f64| late[((late.len() - 1) as f64 * p) as usize];
    let [p50, p99, max] = [at(0.5), at(0.99), at(1.0)].map(|ns| ns as f64 / 1e3);
    let found =
        format!("wakes {p50:.0} µs late in the median, {p99:.0} µs at the 99th percentile, {max:.0} µs at maximum");
    let remedy = "let nothing else run; on a virtual machine, give it cores of its own";
    Finding::measured("timers", at(0.99) <= MAX_LATENESS_NS, found, remedy)
}

/// Run one kernel flow for one second through delay, loss and a link at `rate` bit/s.
fn flow(rate: u64) -> Result<RunResult> {
    let plan = json!({"spec": {
        "duration": 1_000_000_000,
        "record": {"packets": false},
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": rate},
             "queue": {"kind": "droptail", "limit": {"packets": 10_000}}},
            {"kind": "loss", "probability": 0.0},
            {"kind": "delay", "delay": 1_000_000},
        ],
        "downlink": [{"kind": "delay", "delay": 1_000_000}],
        "flows": [{"scheme": "tcp:reno"}],
    }});
    let plan = serde_json::from_value(plan).map_err(|error| Error::of("run-failed", "the doctor's path", error))?;
    execute(plan, &no_guests)
}

/// Measure the capacity of an emulated path.
fn capacity() -> Finding {
    let name = "capacity of an emulated path";
    match flow(40_000_000_000) {
        Ok(result) => {
            let bytes: u64 = result.outcome.flows.iter().map(|f| f.received.unique_bytes).sum();
            let mbps = bytes as f64 * 8.0 / 1e6;
            let found = format!("{mbps:.0} Mbit/s for one kernel flow through delay, loss and link");
            let remedy = "stay well below this rate, or let nothing else run";
            Finding::measured(name, mbps >= MIN_CAPACITY_MBPS, found, remedy)
        }
        Err(error) => Finding::failed(name, error),
    }
}

/// Measure the lateness of packets that leave an emulated path.
fn punctuality() -> Finding {
    let name = "punctuality at 100 Mbit/s";
    match flow(100_000_000).map(|result| result.report.uplink_release.unwrap_or_default()) {
        Ok(release) => {
            let found = format!("packets leave {:.0} µs late at the 99th percentile", release.p99_ns as f64 / 1e3);
            let remedy = "let nothing else run; delays measured here carry this error";
            Finding::measured(name, release.p99_ns <= MAX_LATENESS_NS, found, remedy)
        }
        Err(error) => Finding::failed(name, error),
    }
}
