//! A run over our own path.

use std::sync::Arc;
use std::time::Duration;

use ccgym_core::Timestamp;

use super::flows::{FlowEndpoints, Flows};
use super::outcome::{run_result, PathOutcome};
use super::plan::{Plan, Prepared};
use super::receivers::Receivers;
use super::result::{PathReport, RunResult};
use crate::clock::Clock;
use crate::error::{NetError, Result};
use crate::shell::{emulator_limited, EmulatorReport, EmulatorSpec, PathEmulator, USUAL_PACKET_MEMORY};
use crate::system::{Endpoints, IdleSpinner, Placement};
use crate::udp::{ReceiverResult, SenderResult};

/// How long before time zero everything is set up; longer where a machine proves too slow for that.
const LEADS: [Duration; 3] = [Duration::from_millis(250), Duration::from_millis(1000), Duration::from_millis(4000)];

/// How long a handshake may take: it crosses no queue and no delay.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Carry out a plan.
///
/// # Errors
/// As [`super::execute`].
pub fn execute(plan: Plan) -> Result<RunResult> {
    let prepared = Arc::new(Prepared::load(plan)?);
    for lead in LEADS {
        if let Some(result) = attempt(&prepared, lead)? {
            return Ok(result);
        }
    }
    let found = format!("not done {} s before the start", LEADS[LEADS.len() - 1].as_secs());
    Err(NetError::new("setting up the flows", found).hint("this machine is too busy for a run in real time"))
}

/// Set up within `lead` and run; `None` if setting up took longer.
fn attempt(prepared: &Arc<Prepared>, lead: Duration) -> Result<Option<RunResult>> {
    let spec = &prepared.plan.spec;
    let end = Timestamp::ZERO + spec.duration;
    let traces = |name: &str| prepared.traces.get(name).cloned();
    let (up, down) = spec.chains(&traces).map_err(|error| NetError::new("building the path", error))?;
    let ends = Endpoints::open(Placement::Isolated)?;
    let clock = Clock::starting_in(lead);
    let emulator = PathEmulator::start(
        &ends,
        EmulatorSpec {
            up,
            down,
            clock,
            flows: spec.flows.len() as u32,
            packets: spec.record.packets,
            link_events: spec.record.link_events,
            step: spec.record.series,
            packet_memory: USUAL_PACKET_MEMORY,
        },
    )?;
    emulator.end_at(end);
    let _awake = IdleSpinner::start();
    let receivers = Receivers::start(prepared, &ends.outside.namespace, ends.outside.address, clock)?;
    let endpoints = FlowEndpoints {
        namespace: Some(ends.inside.namespace.clone()),
        receivers: ends.outside.address,
        deadline: HANDSHAKE,
        backlog: Some(emulator.backlog()),
    };
    let flows = Flows::start(prepared, &endpoints, clock)?;
    if clock.has_started() {
        flows.halt();
        return Ok(None);
    }
    let senders = flows.finish();
    let at = end_of_run(prepared, clock, end);
    let report = emulator.stop(at)?;
    let received = receivers.finish();
    let senders = senders.into_iter().collect::<Result<Vec<SenderResult>>>()?;
    let received = received.into_iter().collect::<Result<Vec<ReceiverResult>>>()?;
    Ok(Some(finish(prepared, clock, report, &senders, &received)))
}

/// Wait for the end. Where an environment decides, the run is over as soon as the flows are.
#[must_use]
pub fn end_of_run(prepared: &Prepared, clock: Clock, end: Timestamp) -> Timestamp {
    let at = if prepared.plan.control.is_some() { clock.now().min(end) } else { end };
    clock.sleep_until(at);
    at
}

fn finish(
    prepared: &Prepared,
    clock: Clock,
    emulator: EmulatorReport,
    senders: &[SenderResult],
    received: &[ReceiverResult],
) -> RunResult {
    let report = PathReport {
        backend: "emulated".into(),
        uplink_release: Some((&emulator.up.release).into()),
        downlink_release: Some((&emulator.down.release).into()),
        device_drops: emulator.up.device_drops + emulator.down.device_drops,
        limited: emulator_limited(&emulator),
        started_epoch_ms: clock.epoch_ms(Timestamp::ZERO),
        ..PathReport::default()
    };
    let path = PathOutcome {
        uplink: emulator.up.counters,
        downlink: emulator.down.counters,
        bottleneck: emulator.up.bottleneck,
        data: emulator.up.log,
        acks: emulator.down.log,
        queue: emulator.up.queue,
        up_events: emulator.up.events,
        down_events: emulator.down.events,
    };
    run_result(&prepared.plan.spec, path, report, senders, received)
}
