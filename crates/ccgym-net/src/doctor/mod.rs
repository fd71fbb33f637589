//! What this machine can do, what it cannot, and what to do about it: `doctor`.
//!
//! One file per matter. Findings are data; who shows them is not our concern.

mod congestion_controls;
mod finding;
mod mahimahi;
mod path;
mod rights;
mod timers;

use std::io::Write;

pub use finding::{Finding, Status};

use serde::Deserialize;

use crate::error::{Context, NetError, Result};
use crate::system::become_capable;

/// Examine this machine. `measure`: also what takes seconds (timers, the path's capacity).
///
/// Call it before the process has threads: without root it enters a user namespace.
#[must_use]
pub fn examine(measure: bool) -> Vec<Finding> {
    // mahimahi is asked first: its programs must be started by the user, not from a user namespace.
    let mahimahi = mahimahi::examine();
    let capability = become_capable();
    let mut findings = rights::examine(&capability);
    findings.extend(congestion_controls::examine());
    if measure {
        findings.push(timers::examine());
        if capability.is_ok() {
            findings.extend(path::examine());
        }
    }
    findings.extend(mahimahi);
    findings
}

/// What the doctor is told (JSON).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoctorJob {
    /// Also what takes seconds.
    pub measure: bool,
}

/// Write the findings as one JSON list on standard output. The exit status.
///
/// # Errors
/// Standard output is closed.
pub fn run(job: &DoctorJob) -> Result<i32> {
    let findings = examine(job.measure);
    let text = serde_json::to_string(&findings).map_err(|error| NetError::new("writing the findings", error))?;
    writeln!(std::io::stdout(), "{text}").context(|| "writing the findings".into())?;
    Ok(0)
}
