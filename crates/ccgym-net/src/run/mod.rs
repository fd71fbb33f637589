//! A whole run in real time: the description that the simulator takes, to the [`ccgym_run::Outcome`] that the simulator leaves.
//!
//! One process hosts a run: both pipelines of the path, all senders and receivers are its threads. When it ends, however
//! it ends, its devices and namespaces go with it.

mod emulated;
mod flows;
mod in_shells;
mod join;
mod outcome;
pub(crate) mod plan;
mod programs;
mod remote;
mod result;
mod workers;

use std::time::Duration;

pub use join::{join, HalfResult, JoinOptions};
pub use plan::{no_guests, Backend, Half, MakeGuests, Plan, PolicyFiles, TunnelEnd};
pub use result::{ClockReport, PathReport, ReleaseSummary, RunResult, TraceReport};

pub(crate) use crate::shell::FIRST_PORT;

use crate::error::{NetError, Result};
use crate::system::{become_capable, when_parent_ends};

/// Exit status after the parent has ended.
const PARENT_ENDED: i32 = 129;

/// Do a run as a job: carry out its plan and write the result where the plan says. The process ends with its standard
/// input. The exit status.
///
/// # Errors
/// As `execute`; a plan without a place for its result, or one that a real path cannot carry out.
pub fn carry_out(plan: Plan, make_guests: MakeGuests<'_>) -> Result<i32> {
    plan.check()?;
    let Some(path) = plan.result.clone() else {
        return Err(NetError::of("argument-missing", "run", "a plan without the place of its result")
            .expected("the key `result`"));
    };
    // A user namespace can only be entered while there are no threads, and the watchdog is one. mahimahi's shells must
    // be started by the user, not from a user namespace.
    if !matches!(plan.backend, Backend::Mahimahi { .. }) {
        become_capable()?;
    }
    // With this process all threads, devices and namespaces end.
    when_parent_ends(|| std::process::exit(PARENT_ENDED))?;
    match plan.backend.clone() {
        Backend::Remote(end) => result::write(&remote::execute(plan, &end, make_guests)?, &path)?,
        _ => result::write(&execute(plan, make_guests)?, &path)?,
    }
    Ok(0)
}

/// Carry out a plan. An emulated path needs [`become_capable`] before.
pub(crate) fn execute(plan: Plan, make_guests: MakeGuests<'_>) -> Result<RunResult> {
    match plan.backend.clone() {
        Backend::Emulated => emulated::execute(plan, make_guests),
        Backend::Mahimahi { shells } => in_shells::execute(plan, &shells, make_guests),
        Backend::Remote(_) => {
            Err(NetError::of("backend-unsuitable", "carrying out a plan", "one end of a run between two machines")
                .expected("a run of this machine alone"))
        }
    }
}

/// Programs of others take their time to listen: setting up may take that many times as long.
const PROGRAMS_TAKE: u32 = 4;

/// Try to set up a run within each of these times; `attempt` returns `None` if it took longer.
fn retry_with_longer_leads(
    plan: &Plan,
    leads: [Duration; 3],
    mut attempt: impl FnMut(Duration) -> Result<Option<RunResult>>,
) -> Result<RunResult> {
    let leads = if plan.programs.is_empty() { leads } else { leads.map(|lead| lead * PROGRAMS_TAKE) };
    for lead in leads {
        if let Some(result) = attempt(lead)? {
            return Ok(result);
        }
    }
    let found = format!("not done {} s before the start", leads[2].as_secs());
    Err(NetError::of("run-stalled", "setting up the flows", found)
        .hint("this machine is too busy for a run in real time"))
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
