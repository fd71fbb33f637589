//! A whole run in real time: the description that the simulator takes, to the [`Outcome`] that the simulator leaves.
//!
//! One process hosts a run: both pipelines of the path, all senders and receivers are its threads. When it ends, however
//! it ends, its devices and namespaces go with it.

pub mod emulated;
pub mod flows;
pub mod in_shells;
pub mod outcome;
pub mod parent_watchdog;
pub mod plan;
pub mod receivers;
pub mod result;

pub use plan::{Backend, Plan, PolicyFiles, Prepared};
pub use result::{PathReport, ReleaseSummary, RunResult};

pub use crate::shell::FIRST_PORT;

use crate::error::{NetError, Result};
use crate::system::become_capable;

/// Do a run as a job: carry out its plan and write the result where the plan says. The process ends with its standard
/// input. The exit status.
///
/// # Errors
/// As [`execute`]; a plan without a place for its result, or one that a real path cannot carry out.
pub fn carry_out(plan: Plan) -> Result<i32> {
    plan.check()?;
    let Some(result) = plan.result.clone() else {
        return Err(NetError::new("run", "a plan without the place of its result").expected("the key `result`"));
    };
    // A user namespace can only be entered while there are no threads, and the watchdog is one. mahimahi's shells must
    // be started by the user, not from a user namespace.
    if matches!(plan.backend, Backend::Emulated) {
        become_capable()?;
    }
    parent_watchdog::start()?;
    execute(plan)?.write(&result)?;
    Ok(0)
}

/// Carry out a plan. An emulated path needs [`become_capable`] before.
///
/// # Errors
/// The plan cannot be used, or a step of the run failed; the error names it.
pub fn execute(plan: Plan) -> Result<RunResult> {
    match plan.backend.clone() {
        Backend::Emulated => emulated::execute(plan),
        Backend::Mahimahi { shells } => in_shells::execute(plan, &shells),
    }
}

/// Where the receiver of flow `index` listens, UDP or TCP.
#[must_use]
pub const fn port(index: usize) -> u16 {
    FIRST_PORT + index as u16
}

/// Most flows of a run: what the ports allow, and far more than a machine carries.
pub const MAX_FLOWS: usize = 1000;

/// Prefix of the names of schemes that are the kernel's.
pub const KERNEL_PREFIX: &str = "tcp:";
