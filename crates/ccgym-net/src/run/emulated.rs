//! A run over the emulated path.

use std::sync::Arc;
use std::time::Duration;

use ccgym_core::Timestamp;

use super::backend::Backend;
use super::flows::{carry_flows, FlowEndpoints};
use super::plan::{MakeGuests, Plan, Prepared};
use super::programs::needs_packets;
use super::result::{encode, PathReport, RunResult};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::shell::{EmulatorSpec, PathEmulator, USUAL_PACKET_MEMORY};
use crate::system::{Endpoints, IdleSpinner, Placement};

/// The emulated path, in this process.
pub const EMULATED: Backend = Backend {
    kind: "emulated",
    in_user_namespace: true,
    carry_out: |plan, make_guests| encode(&execute(plan, make_guests)?),
    examine: Vec::new,
};

/// Time from setup to time zero; the next one is tried if a machine is too slow.
const LEADS: [Duration; 3] = [Duration::from_millis(250), Duration::from_millis(1000), Duration::from_millis(4000)];

/// Max time of a handshake: it crosses no queue and no delay.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Carry out a plan. A process without root must call [`become_capable`](crate::system::become_capable) before.
pub(crate) fn execute(plan: Plan, make_guests: MakeGuests<'_>) -> Result<RunResult> {
    let prepared = Arc::new(Prepared::load(plan, make_guests)?);
    prepared.plan.retry_with_longer_leads(LEADS, |lead| attempt(&prepared, lead))
}

/// Set up within `lead` and run; `None` if the setup took longer.
fn attempt(prepared: &Arc<Prepared>, lead: Duration) -> Result<Option<RunResult>> {
    let spec = &prepared.plan.spec;
    let traces = |name: &str| prepared.traces.get(name).cloned();
    let chains =
        spec.chains(&traces).map_err(|error| error.code_or("description-invalid").within("building the path"))?;
    let [up, down] = chains.try_into().map_err(|_| Error::of("run-failed", "building the path", "several links"))?;
    let ends = Endpoints::open(Placement::Isolated)?;
    let clock = Clock::starting_in(lead);
    let emulator = PathEmulator::start(
        &ends,
        EmulatorSpec {
            up,
            down,
            clock,
            flows: spec.flows.len() as u32,
            packets: needs_packets(spec),
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
    carry_flows(prepared, &endpoints, clock, |at| {
        let path = emulator.stop(at)?;
        let report = PathReport {
            backend: EMULATED.kind.into(),
            uplink_release: Some((&path.up.release).into()),
            downlink_release: Some((&path.down.release).into()),
            device_drops: path.up.device_drops + path.down.device_drops,
            limited: path.limited(),
            ..PathReport::default()
        };
        Ok((path, report))
    })
}
