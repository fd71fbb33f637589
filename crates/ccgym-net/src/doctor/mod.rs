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

use crate::error::{NetError, Result, Step};
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

/// `doctor [--quick]`: findings as one JSON list on standard output.
///
/// # Errors
/// An unknown option; standard output is closed.
pub fn main(words: &[String]) -> Result<i32> {
    let quick = match words {
        [] => false,
        [one] if one == "--quick" => true,
        [other, ..] => return Err(NetError::new("doctor", format!("unknown {other}")).expected("--quick or nothing")),
    };
    let text = serde_json::to_string(&examine(!quick)).map_err(|error| NetError::new("writing the findings", error))?;
    writeln!(std::io::stdout(), "{text}").step(|| "writing the findings".into())?;
    Ok(0)
}
