//! A run over our own path.

use std::sync::Arc;
use std::time::Duration;

use ccgym_core::Timestamp;

use super::flows::{FlowEndpoints, Flows};
use super::outcome::run_result;
use super::plan::{MakeGuests, Plan, Prepared};
use super::programs;
use super::result::{PathReport, RunResult};
use super::retry_with_longer_leads;
use crate::clock::Clock;
use crate::error::{NetError, Result};
use crate::shell::{EmulatorSpec, PathEmulator, USUAL_PACKET_MEMORY};
use crate::system::{system_info, Endpoints, IdleSpinner, Placement};

/// How long before time zero everything is set up; longer where a machine proves too slow for that.
const LEADS: [Duration; 3] = [Duration::from_millis(250), Duration::from_millis(1000), Duration::from_millis(4000)];

/// How long a handshake may take: it crosses no queue and no delay.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Carry out a plan.
pub(super) fn execute(plan: Plan, make_guests: MakeGuests<'_>) -> Result<RunResult> {
    let prepared = Arc::new(Prepared::load(plan, make_guests)?);
    retry_with_longer_leads(&prepared.plan, LEADS, |lead| attempt(&prepared, lead))
}

/// Set up within `lead` and run; `None` if setting up took longer.
fn attempt(prepared: &Arc<Prepared>, lead: Duration) -> Result<Option<RunResult>> {
    let spec = &prepared.plan.spec;
    let traces = |name: &str| prepared.traces.get(name).cloned();
    let chains =
        spec.chains(&traces).map_err(|error| error.code_or("description-invalid").within("building the path"))?;
    let [up, down] = chains.try_into().map_err(|_| NetError::of("run-failed", "building the path", "several links"))?;
    let ends = Endpoints::open(Placement::Isolated)?;
    let clock = Clock::starting_in(lead);
    let emulator = PathEmulator::start(
        &ends,
        EmulatorSpec {
            up,
            down,
            clock,
            flows: spec.flows.len() as u32,
            packets: spec.record.packets || programs::any(spec),
            link_events: spec.record.link_events,
            step: spec.record.series,
            packet_memory: USUAL_PACKET_MEMORY,
        },
    )?;
    emulator.end_at(Timestamp::ZERO + spec.duration);
    let _awake = IdleSpinner::start();
    let endpoints = FlowEndpoints {
        inside: ends.inside.namespace.clone(),
        outside: ends.outside.namespace.clone(),
        address: ends.outside.address,
        inside_address: Some(ends.inside.address),
        handshake: HANDSHAKE,
        backlog: Some(emulator.backlog()),
    };
    let Some(flows) = Flows::start(prepared, &endpoints, clock)? else { return Ok(None) };
    let (mut path, mut ended) = flows.finish(prepared, clock, |at| emulator.stop(at))?;
    let programs = programs::measure(spec, &mut path, &mut ended)?;
    let report = PathReport {
        backend: "emulated".into(),
        uplink_release: Some((&path.up.release).into()),
        downlink_release: Some((&path.down.release).into()),
        device_drops: path.up.device_drops + path.down.device_drops,
        limited: path.limited().or_else(|| prepared.fell_behind()),
        started_epoch_ms: clock.epoch_ms(Timestamp::ZERO),
        system: system_info(&endpoints.inside)?,
        programs,
        ..PathReport::default()
    };
    Ok(Some(run_result(spec, path, report, &ended.senders, &ended.received)))
}
