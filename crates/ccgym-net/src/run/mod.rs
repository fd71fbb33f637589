//! A whole run in real time: from a description, as for the simulator, to an [`ccgym_run::Outcome`], as of the simulator.
//!
//! One process hosts a run: both directions of the path, all senders and receivers are its threads. When it ends, for any
//! reason, its devices and namespaces are removed.

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

/// Exit status if the parent has ended.
const PARENT_ENDED: i32 = 129;

/// Carry out a plan as a job and write the result to the plan's file. The process ends when its standard input
/// closes. Return the exit status.
///
/// # Errors
/// As the plan's backend; a plan without a result file, or one that a real path cannot carry out.
pub fn carry_out(plan: Plan, host: &Host<'_>) -> Result<i32> {
    let backend = host.backend(&plan.backend.kind)?;
    plan.check()?;
    let Some(path) = plan.result.clone() else {
        return Err(
            Error::of("argument-missing", "run", "a plan without the place of its result").expected("the key `result`")
        );
    };
    // Enter the user namespace before the watchdog starts: it permits only one thread.
    if backend.in_user_namespace {
        become_capable()?;
    }
    // All threads, devices and namespaces end with this process.
    when_parent_ends(|| std::process::exit(PARENT_ENDED))?;
    let result = (backend.carry_out)(plan, host.make_guests)?;
    fs::write(&path, result).context(|| format!("writing the result {}", path.display()))?;
    Ok(0)
}

/// Return the port of the receiver of flow `index`, UDP or TCP.
const fn port(index: usize) -> u16 {
    FIRST_PORT + index as u16
}

/// Max flows of a run: limited by the ports, and far above the capacity of a machine.
const MAX_FLOWS: usize = 1000;

/// Prefix of the names of the kernel's schemes.
const KERNEL_PREFIX: &str = "tcp:";

/// Prefix of the names of the QUIC library's schemes.
const QUIC_PREFIX: &str = "quic:";

/// Prefix of the names of external programs' schemes.
const PROGRAM_PREFIX: &str = "program:";
