//! Flows of external programs: the path counts their packets, since they do not report counts.

use ccgym_core::Timestamp;
use ccgym_run::{Received, RunSpec};

use super::flows::Ended;
use super::PROGRAM_PREFIX;
use crate::error::Result;
use crate::program::{sent_nothing, ProgramLog};
use crate::shell::EmulatorReport;

/// Return the indices of flows of external programs.
fn flows(spec: &RunSpec) -> impl Iterator<Item = usize> + '_ {
    (0..spec.flows.len()).filter(|&index| spec.flows[index].scheme.starts_with(PROGRAM_PREFIX))
}

/// True if the path must log each packet: for the run's record, or to count such flows.
#[must_use]
pub fn needs_packets(spec: &RunSpec) -> bool {
    spec.record.packets || flows(spec).next().is_some()
}

/// Fill in the path's counts of such flows and return the programs' output. Copies of packets count twice; all bytes but
/// those of the profile's header count as payload.
///
/// # Errors
/// A program that sent nothing.
pub(super) fn measure(spec: &RunSpec, path: &mut EmulatorReport, ended: &mut Ended) -> Result<Vec<ProgramLog>> {
    let end = (Timestamp::ZERO + spec.duration).0;
    let samples = |events: &[(u64, u64)]| cumulative(events, spec.record.series.0, end);
    if flows(spec).next().is_none() {
        return Ok(Vec::new());
    }
    let log = path.up.log.take().unwrap_or_default();
    for index in flows(spec) {
        let flow = &spec.flows[index];
        let (sender, receiver) = (&mut ended.senders[index], &mut ended.received[index]);
        if sender.unavailable.is_some() {
            continue;
        }
        let packets = || (0..log.flow.len()).filter(|&i| log.flow[i] == index as u32 && log.entered[i] <= end);
        let size = |i: usize| u64::from(log.size[i]);
        let sent: Vec<_> = packets().map(|i| (log.entered[i], size(i))).collect();
        if sent.is_empty() {
            return Err(sent_nothing(index, &flow.scheme, &ended.said));
        }
        let mut arrived: Vec<_> = packets().filter(|&i| log.left[i] <= end).map(|i| (log.left[i], size(i))).collect();
        arrived.sort_unstable();
        let payload: Vec<_> = arrived.iter().map(|&(at, size)| (at, size.saturating_sub(flow.header.into()))).collect();
        let sum = |events: &[(u64, u64)]| events.iter().map(|event| event.1).sum();
        sender.stats.sent_packets = sent.len() as u64;
        sender.stats.sent_bytes = sum(&sent);
        sender.series.sent_bytes = samples(&sent);
        sender.series.sent_packets = samples(&sent.iter().map(|&(at, _)| (at, 1)).collect::<Vec<_>>());
        receiver.received =
            Received { packets: arrived.len() as u64, bytes: sum(&arrived), unique_bytes: sum(&payload) };
        receiver.received_bytes = samples(&arrived);
        receiver.received_unique_bytes = samples(&payload);
        // The order of its data is unknown.
        receiver.read_bytes = receiver.received_unique_bytes.clone();
    }
    path.up.log = Some(log).filter(|_| spec.record.packets);
    if !spec.record.packets {
        path.down.log = None;
    }
    Ok(std::mem::take(&mut ended.said))
}

/// Return the sums up to each multiple of `step`; none if that is zero. Events must be in order of time.
fn cumulative(events: &[(u64, u64)], step: u64, end: u64) -> Vec<u64> {
    let (mut next, mut sum) = (0, 0);
    let until = |k: u64| {
        while let Some(&(_, amount)) = events.get(next).filter(|event| event.0 <= k * step) {
            sum += amount;
            next += 1;
        }
        sum
    };
    (1..=end.checked_div(step).unwrap_or(0)).map(until).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_taken_at_the_multiples_of_the_step() {
        let events = [(0, 1), (10, 2), (11, 4), (35, 8)];
        assert_eq!(cumulative(&events, 10, 40), [3, 7, 7, 15]);
        assert_eq!(cumulative(&events, 10, 9), [0; 0]);
        assert_eq!(cumulative(&events, 0, 40), [0; 0]);
    }
}
