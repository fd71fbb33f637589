//! A whole run in real time: the description that the simulator takes, to the [`Outcome`] that the simulator leaves.
//!
//! One process hosts a run: both pipelines of the path, all senders and receivers are its threads. When it ends, however
//! it ends, its devices and namespaces go with it.

pub mod assemble;
pub mod command;
pub mod emulated;
pub mod flows;
pub mod in_shells;
pub mod life_line;
pub mod plan;
pub mod receivers;
pub mod result;

pub use plan::{Backend, Plan, PolicyFiles, Prepared};
pub use result::{PathReport, ReleaseSummary, RunResult};

use crate::error::Result;

/// Carry out a plan. Call it before the process has threads: without root it enters a user namespace.
///
/// # Errors
/// The plan cannot be used, or a step of the run failed; the error names it.
pub fn execute(plan: Plan) -> Result<RunResult> {
    match plan.backend.clone() {
        Backend::Emulated => emulated::execute(plan),
        Backend::Mahimahi { command } => in_shells::execute(plan, &command),
    }
}

/// Where the receiver of flow `index` listens, UDP or TCP.
#[must_use]
pub const fn port(index: usize) -> u16 {
    FIRST_PORT + index as u16
}

/// The receiver's port of the first flow.
pub const FIRST_PORT: u16 = 5001;

/// Most flows of a run: what the ports allow, and far more than a machine carries.
pub const MAX_FLOWS: usize = 1000;

/// Prefix of the names of schemes that are the kernel's.
pub const KERNEL_PREFIX: &str = "tcp:";
