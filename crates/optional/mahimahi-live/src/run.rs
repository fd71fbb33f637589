//! Run inside mahimahi's shells: our flows over mahimahi's path.
//!
//! Packets are captured at both ends of the path, on the devices of the outermost and the innermost shell.

use std::sync::Arc;
use std::time::Duration;

use ccgym_core::units::TimeSpan;
use ccgym_net::error::{Error, Result};
use ccgym_net::run::{
    carry_flows, encode, needs_packets, Backend, FlowEndpoints, MakeGuests, PathReport, Plan, Prepared, RunResult,
    TraceReport,
};
use ccgym_net::shell::{DirectionReport, EmulatorReport, FIRST_PORT};
use ccgym_net::system::Side;
use ccgym_net::Clock;
use ccgym_path::{Counters, LinkEvent};
use nix::unistd::geteuid;
use serde::Deserialize;

use crate::{doctor, match_ends, Session, SessionSpec, Shell, Watch, INGRESS};

/// Backend of mahimahi's shells, which do not start in a user namespace.
pub const MAHIMAHI: Backend = Backend {
    kind: "mahimahi",
    in_user_namespace: false,
    carry_out: |plan, make_guests| encode(&execute(plan, make_guests)?),
    examine: doctor::examine,
};

/// Settings of the backend in a plan.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Shells, the outermost first, each as its words.
    shells: Vec<Shell>,
}

/// Time before time zero for setting up, in addition to some round trips of the path; later attempts get more.
const LEADS: [Duration; 3] = [Duration::from_millis(400), Duration::from_millis(2000), Duration::from_millis(8000)];

/// Max time for a shell to start, after those around it.
const SHELL_START: Duration = Duration::from_millis(100);

/// Round trips for a handshake with one loss.
const ROUND_TRIPS: u32 = 6;

/// Max time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(15);

/// Carry out a plan inside mahimahi's shells.
fn execute(plan: Plan, make_guests: MakeGuests<'_>) -> Result<RunResult> {
    let Settings { shells } = plan.backend.settings()?;
    if !geteuid().is_root() {
        return Err(Error::of("capability-missing", "the mahimahi backend", "this process is not root's")
            .expected("root, to watch packets at both ends of the path")
            .hint("run it with sudo; --backend emulated needs no root"));
    }
    let base_rtt = plan.spec.facts.as_ref().map_or(TimeSpan::ZERO, |facts| facts.base_rtt);
    let meeting = Duration::from_nanos(base_rtt.0) * ROUND_TRIPS + SHELL_START * shells.len() as u32;
    plan.retry_with_longer_leads(LEADS, |lead| {
        let lead_ms = (lead + meeting).as_millis() as u64;
        // Start the shells first: while this process has few threads.
        let mut spec = SessionSpec::new(shells.clone());
        spec.logs = true;
        spec.lead = Some((lead_ms, plan.spec.duration.as_millis()));
        let session = Session::start(&spec)?;
        attempt(&Arc::new(Prepared::load(plan.clone(), make_guests)?), session, lead_ms)
    })
}

/// Set up within `lead_ms` after the start of the links, and run; `None` if setting up took longer.
fn attempt(prepared: &Arc<Prepared>, session: Session, lead_ms: u64) -> Result<Option<RunResult>> {
    let spec = &prepared.plan.spec;
    let starts = session.trace_starts()?;
    // The report has the traces of the outermost link; data enters its uplink.
    let first = starts.first().map(|start| start[0] + lead_ms);
    let clock = first.map_or_else(|| Clock::starting_in(Duration::from_millis(lead_ms)), Clock::starting_at);
    let traces = first.map(|zero| TraceReport {
        lead_ms,
        ahead_ms: starts.iter().map(|link| link.map(|start| (zero as i64) - (start + lead_ms) as i64)).collect(),
    });
    let count = spec.flows.len() as u32;
    let endpoints = FlowEndpoints {
        inside: session.inside.clone(),
        outside: session.outside.clone(),
        address: session.base,
        // Each shell translates addresses: the inside is not reachable.
        inside_address: None,
        handshake: HANDSHAKE,
        backlog: None,
    };
    let watches = if needs_packets(spec) {
        Some((
            Watch::start(&endpoints.inside, INGRESS, Side::Inside, FIRST_PORT, count)?,
            Watch::start(&endpoints.outside, &session.outside_device, Side::Outside, FIRST_PORT, count)?,
        ))
    } else {
        None
    };
    carry_flows(prepared, &endpoints, clock, |at| {
        let (entered, left) = match watches {
            Some((at_senders, at_receivers)) => (at_senders.stop()?, at_receivers.stop()?),
            None => Default::default(),
        };
        session.check()?;
        let logs = session.stop(&clock, at)?;
        let matched = match_ends(&entered, &left, &clock, at);
        let mut notes = vec!["mahimahi draws its losses again in every run: a seed does not repeat them".to_owned()];
        notes.extend(matched.notes);
        let kept = logs.into_iter().next().filter(|_| spec.record.packets || spec.record.link_events);
        let (up_events, down_events) = kept.map_or_else(Default::default, |log| (log.up, log.down));
        let log_of = |log| needs_packets(spec).then_some(log);
        let up = DirectionReport {
            bottleneck: (!up_events.is_empty()).then_some(0),
            counters: vec![("link".to_owned(), counters(&up_events))],
            log: log_of(matched.data),
            events: vec![up_events],
            ..DirectionReport::default()
        };
        let down = DirectionReport {
            bottleneck: Some(0),
            log: log_of(matched.acks),
            events: vec![down_events],
            ..DirectionReport::default()
        };
        let report = PathReport {
            backend: MAHIMAHI.kind.into(),
            device_drops: entered.dropped + left.dropped,
            notes,
            traces,
            ..PathReport::default()
        };
        Ok((EmulatorReport { up, down }, report))
    })
}

/// Count packets in the log of an mm-link. Release 0.98 logs no drops: then every packet that arrived and did not leave
/// counts as dropped, including those that waited at the end.
fn counters(events: &[LinkEvent]) -> Counters {
    let mut link = Counters::default();
    let mut logged = 0;
    for event in events {
        match *event {
            LinkEvent::Arrival(..) => link.arrived += 1,
            LinkEvent::Departure(at, size, _, arrived) => {
                link.forwarded += 1;
                link.forwarded_bytes += u64::from(size);
                link.waited_ns += at.since(arrived).0;
                link.sojourn_ns += at.since(arrived).0;
            }
            LinkEvent::Drop(..) => logged += 1,
            LinkEvent::Opportunity(..) => {}
        }
    }
    link.dropped = if logged > 0 { logged } else { link.arrived.saturating_sub(link.forwarded) };
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_core::Timestamp;

    #[test]
    fn a_link_s_log_is_counted() {
        let ms = Timestamp::from_millis;
        let mut events = vec![
            LinkEvent::Opportunity(ms(1), 1504),
            LinkEvent::Arrival(ms(2), 1504, 0),
            LinkEvent::Arrival(ms(2), 1504, 0),
            LinkEvent::Departure(ms(5), 1504, 0, ms(2)),
        ];
        let link = counters(&events);
        assert_eq!((link.arrived, link.forwarded, link.dropped), (2, 1, 1));
        assert_eq!(link.mean_sojourn(), TimeSpan::from_millis(3));
        events.push(LinkEvent::Arrival(ms(6), 1504, 0));
        events.push(LinkEvent::Drop(ms(6), 1504, 0));
        assert_eq!(counters(&events).dropped, 1, "a log with drops is believed");
    }
}
