//! A run inside mahimahi's shells: our flows over mahimahi's path.
//!
//! Packets are watched at both ends of the path, where the first and the last shell has its device.

use std::sync::Arc;
use std::time::Duration;

use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_link::{Counters, LinkEvent};
use nix::unistd::geteuid;

use super::emulated::end_of_run;
use super::flows::{FlowEndpoints, Flows};
use super::outcome::{run_result, PathOutcome};
use super::plan::{Plan, Prepared};
use super::receivers::Receivers;
use super::result::{PathReport, RunResult};
use super::FIRST_PORT;
use crate::clock::Clock;
use crate::error::{NetError, Result};
use crate::mahimahi::{match_ends, Session, SessionSpec, Shell, Watch};
use crate::udp::{ReceiverResult, SenderResult};

/// How long before time zero everything is set up, in addition to some round trips of the path.
const LEADS: [Duration; 3] = [Duration::from_millis(400), Duration::from_millis(2000), Duration::from_millis(8000)];

/// Round trips for a handshake, with one that is lost.
const ROUND_TRIPS: u32 = 6;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(15);

/// Carry out a plan inside mahimahi's shells.
///
/// # Errors
/// As [`super::execute`].
pub fn execute(plan: Plan, shells: &[Shell]) -> Result<RunResult> {
    if !geteuid().is_root() {
        return Err(NetError::new("the mahimahi backend", "this process is not root's")
            .expected("root, to watch packets at both ends of the path")
            .hint("run it with sudo; --backend emulated needs no root"));
    }
    for lead in LEADS {
        // Shells first: they are started by a process that has few threads.
        let mut spec = SessionSpec::new(shells.to_vec());
        spec.logs = plan.spec.record.packets || plan.spec.record.link_events;
        let session = Session::start(&spec)?;
        let prepared = Arc::new(Prepared::load(plan.clone())?);
        if let Some(result) = attempt(&prepared, session, lead)? {
            return Ok(result);
        }
    }
    Err(NetError::new("setting up the flows", "not done before the start")
        .hint("this machine is too busy for a run in real time"))
}

/// Set up within `lead` and run; `None` if setting up took longer.
fn attempt(prepared: &Arc<Prepared>, session: Session, lead: Duration) -> Result<Option<RunResult>> {
    let spec = &prepared.plan.spec;
    let end = Timestamp::ZERO + spec.duration;
    let base_rtt = spec.facts.as_ref().map_or(TimeSpan::ZERO, |facts| facts.base_rtt);
    let clock = Clock::starting_in(lead + Duration::from_nanos(base_rtt.0) * ROUND_TRIPS);
    let count = spec.flows.len() as u32;
    let (inside, outside) = (session.inside().clone(), session.outside().clone());
    let watches = if spec.record.packets {
        Some((
            Watch::inside(&inside, session.inside_device(), FIRST_PORT, count)?,
            Watch::outside(&outside, session.outside_device(), FIRST_PORT, count)?,
        ))
    } else {
        None
    };
    let receivers = Receivers::start(prepared, &outside, session.base(), clock)?;
    let endpoints =
        FlowEndpoints { namespace: Some(inside), receivers: session.base(), deadline: HANDSHAKE, backlog: None };
    let flows = Flows::start(prepared, &endpoints, clock)?;
    if clock.has_started() {
        flows.halt();
        return Ok(None);
    }
    let senders = flows.finish();
    let at = end_of_run(prepared, clock, end);
    let (entered, left) = match watches {
        Some((at_senders, at_receivers)) => (at_senders.stop()?, at_receivers.stop()?),
        None => Default::default(),
    };
    session.check()?;
    let logs = session.stop(&clock, at)?;
    let received = receivers.finish();
    let senders = senders.into_iter().collect::<Result<Vec<SenderResult>>>()?;
    let received = received.into_iter().collect::<Result<Vec<ReceiverResult>>>()?;
    let matched = match_ends(&entered, &left, &clock, at);

    let mut notes = vec!["mahimahi draws its losses anew in every run: a seed does not repeat them".to_owned()];
    notes.extend(matched.notes.iter().cloned());
    let (up_events, down_events) = logs.into_iter().next().map_or_else(Default::default, |log| (log.up, log.down));
    let report = PathReport {
        backend: "mahimahi".into(),
        device_drops: entered.dropped + left.dropped,
        notes,
        started_epoch_ms: clock.epoch_ms(Timestamp::ZERO),
        ..PathReport::default()
    };
    let link = counters(&up_events);
    let path = PathOutcome {
        bottleneck: (!up_events.is_empty()).then_some(0),
        uplink: vec![("link".to_owned(), link)],
        data: spec.record.packets.then_some(matched.data),
        acks: spec.record.packets.then_some(matched.acks),
        up_events,
        down_events,
        ..PathOutcome::default()
    };
    Ok(Some(run_result(spec, path, report, &senders, &received)))
}

/// What mm-link's log says of its packets. Release 0.98 logs no drops: then what came and did not go is counted as
/// dropped, also what still waited at the end.
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
