//! The result of a run, from the counts of senders, receivers and the path.

use std::collections::BTreeMap;

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_run::recorder::{FlowSeries, LinkSeries, Series};
use ccgym_run::{FlowOutcome, LinkOutcome, Outcome, RunSpec};

use super::flows::Ended;
use super::programs;
use super::result::{PathReport, RunResult};
use crate::error::Result;
use crate::shell::{DirectionReport, EmulatorReport};
use crate::udp::{ReceiverResult, SenderResult};

/// Assemble the result of a run. `report` describes the path; the endpoints' part is added here. The path can have
/// fewer samples than the run.
///
/// # Errors
/// An external program that sent nothing.
pub fn run_result(
    spec: &RunSpec,
    mut path: EmulatorReport,
    mut report: PathReport,
    mut ended: Ended,
) -> Result<RunResult> {
    report.programs = programs::measure(spec, &mut path, &mut ended)?;
    let (senders, receivers) = (&ended.senders, &ended.received);
    report.device_drops += receivers.iter().map(|receiver| receiver.overflowed).sum::<u64>();
    report.rejected_datagrams +=
        senders.iter().map(|s| s.rejected).sum::<u64>() + receivers.iter().map(|r| r.rejected).sum::<u64>();
    report.unavailable =
        senders.iter().enumerate().filter_map(|(i, sender)| Some((i, sender.unavailable.clone()?))).collect();
    Ok(RunResult {
        outcome: outcome(spec, path, senders, receivers),
        report,
        stops: spec.flows.iter().map(|flow| flow.stop.map(|at| at.0)).collect(),
        extra: extra(spec, senders),
    })
}

fn outcome(spec: &RunSpec, path: EmulatorReport, flows: &[SenderResult], receivers: &[ReceiverResult]) -> Outcome {
    let end = Timestamp::ZERO + spec.duration;
    let EmulatorReport { mut up, mut down } = path;
    for log in [&mut up.log, &mut down.log].into_iter().flatten() {
        log.cut(end);
    }
    let links = vec![link("uplink", &mut up), link("downlink", &mut down)];
    let series = (spec.record.series > TimeSpan::ZERO).then(|| series(spec, &up.queue, flows, receivers));
    Outcome {
        end,
        hash: flows.iter().fold(0xcbf2_9ce4_8422_2325, |hash, f| (hash ^ f.hash).wrapping_mul(0x0000_0100_0000_01b3)),
        flows: flows
            .iter()
            .zip(&spec.flows)
            .zip(receivers)
            .map(|((report, flow), receiver)| FlowOutcome {
                name: report.name.clone(),
                start: flow.start,
                sender: report.stats,
                received: receiver.received,
                min_rtt: report.min_rtt,
                finished: report.finished,
                frames: report.frames.clone(),
                transfers: Vec::new(),
                application: None,
                bottleneck: 0,
            })
            .collect(),
        links,
        data: up.log,
        acks: down.log,
        series,
    }
}

fn link(name: &str, direction: &mut DirectionReport) -> LinkOutcome {
    let events = direction.bottleneck.and_then(|index| direction.events.get_mut(index));
    LinkOutcome {
        name: name.to_owned(),
        events: events.map(std::mem::take).unwrap_or_default(),
        elements: std::mem::take(&mut direction.counters),
        bottleneck: direction.bottleneck,
    }
}

/// Return the extra columns of each flow, stretched to the run's length.
fn extra(spec: &RunSpec, flows: &[SenderResult]) -> Vec<BTreeMap<String, Vec<f64>>> {
    let count = spec.duration.0.checked_div(spec.record.series.0).unwrap_or(0) as usize;
    let stretch = |column: &Vec<f64>, first: usize| {
        let mut cells = vec![f64::NAN; first.min(count)];
        cells.extend(column.iter().take(count - cells.len()));
        cells.resize(count, f64::NAN);
        cells
    };
    let columns = |flow: &SenderResult| {
        flow.extra.iter().map(|(name, column)| (name.clone(), stretch(column, flow.first_sample))).collect()
    };
    flows.iter().map(columns).collect()
}

fn series(spec: &RunSpec, queue: &LinkSeries, flows: &[SenderResult], receivers: &[ReceiverResult]) -> Series {
    let step = spec.record.series;
    let count = (spec.duration.0 / step.0) as usize;
    let t = (1..=count as u64).map(|k| k * step.0).collect();
    let flows = flows.iter().zip(receivers).map(|(flow, receiver)| columns(flow, receiver, count)).collect();
    let link = LinkSeries {
        direction: 0,
        queue_packets: stretched(&queue.queue_packets, 0, count),
        queue_bytes: stretched(&queue.queue_bytes, 0, count),
        drops: stretched(&queue.drops, 0, count),
    };
    Series::assembled(step, t, flows, link)
}

fn columns(flow: &SenderResult, receiver: &ReceiverResult, count: usize) -> FlowSeries {
    let (s, first) = (&flow.series, flow.first_sample);
    FlowSeries {
        cwnd_bytes: stretched(&s.cwnd_bytes, first, count),
        in_flight_bytes: stretched(&s.in_flight_bytes, first, count),
        srtt_ns: stretched(&s.srtt_ns, first, count),
        pacing_bps: stretched(&s.pacing_bps, first, count),
        sent_bytes: stretched(&s.sent_bytes, first, count),
        sent_packets: stretched(&s.sent_packets, first, count),
        acked_bytes: stretched(&s.acked_bytes, first, count),
        lost_packets: stretched(&s.lost_packets, first, count),
        received_bytes: stretched(&receiver.received_bytes, 0, count),
        received_unique_bytes: stretched(&receiver.received_unique_bytes, 0, count),
        read_bytes: stretched(&receiver.read_bytes, 0, count),
        state: stretched(&s.state, first, count),
        states: s.states.clone(),
    }
}

/// Return a column of `count` cells: zeros before sample number `first`, the last value after the last sample.
fn stretched(column: &[u64], first: usize, count: usize) -> Vec<u64> {
    let mut cells = vec![0; first.min(count)];
    cells.extend(column.iter().take(count - cells.len()));
    cells.resize(count, column.last().copied().unwrap_or(0));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_begin_and_end_with_their_flow() {
        assert_eq!(stretched(&[5, 6], 2, 6), [0, 0, 5, 6, 6, 6]);
        assert_eq!(stretched(&[5, 6, 7], 0, 2), [5, 6]);
        assert_eq!(stretched(&[], 3, 2), [0, 0]);
        assert_eq!(stretched(&[9], 4, 3), [0, 0, 0]);
    }
}
