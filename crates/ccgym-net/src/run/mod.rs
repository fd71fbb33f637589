//! A whole run in real time: the description that the simulator takes, to the [`ccgym_run::Outcome`] that the simulator leaves.
//!
//! One process hosts a run: both pipelines of the path, all senders and receivers are its threads. When it ends, however
//! it ends, its devices and namespaces go with it.

mod backend;
mod emulated;
mod flows;
mod outcome;
pub(crate) mod plan;
mod programs;
mod result;
mod workers;

use std::fs;

pub use backend::{Backend, BackendSpec, Host};
pub(crate) use emulated::execute;
pub use emulated::EMULATED;
pub use flows::{carry_flows, start_receivers, start_senders, Ended, FlowEndpoints, Left};
pub use outcome::run_result;
pub use plan::{load_policies, no_guests, MakeGuests, Plan, PolicyFiles, Prepared};
pub use programs::needs_packets;
pub use result::{encode, ClockReport, PathReport, ReleaseSummary, RunResult, TraceReport};
pub use workers::Workers;

use crate::error::{Context, Error, Result};
use crate::shell::FIRST_PORT;
use crate::system::{become_capable, when_parent_ends};

/// Exit status after the parent has ended.
const PARENT_ENDED: i32 = 129;

/// Do a run as a job: carry out its plan and write the result where the plan says. The process ends with its standard
/// input. The exit status.
///
/// # Errors
/// As the plan's backend; a plan without a place for its result, or one that a real path cannot carry out.
pub fn carry_out(plan: Plan, host: &Host<'_>) -> Result<i32> {
    let backend = host.backend(&plan.backend.kind)?;
    plan.check()?;
    let Some(path) = plan.result.clone() else {
        return Err(
            Error::of("argument-missing", "run", "a plan without the place of its result").expected("the key `result`")
        );
    };
    // A user namespace can only be entered while there are no threads, and the watchdog is one.
    if backend.in_user_namespace {
        become_capable()?;
    }
    // With this process all threads, devices and namespaces end.
    when_parent_ends(|| std::process::exit(PARENT_ENDED))?;
    let result = (backend.carry_out)(plan, host.make_guests)?;
    fs::write(&path, result).context(|| format!("writing the result {}", path.display()))?;
    Ok(0)
}

/// Where the receiver of flow `index` listens, UDP or TCP.
const fn port(index: usize) -> u16 {
    FIRST_PORT + index as u16
}

/// Max flows of a run: what the ports allow, and far more than a machine carries.
const MAX_FLOWS: usize = 1000;

/// Prefix of the names of schemes that are the kernel's.
const KERNEL_PREFIX: &str = "tcp:";

/// Prefix of the names of schemes that are those of a QUIC library.
const QUIC_PREFIX: &str = "quic:";

/// Prefix of the names of schemes that are programs of others.
const PROGRAM_PREFIX: &str = "program:";
