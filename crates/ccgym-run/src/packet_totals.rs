//! Totals over the packets of a direction, from which Pantheon's table and ccperf's spacing are made.

use crate::recorder::PacketLog;

/// Packets that passed one end of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// How many.
    pub packets: u64,
    /// Their wire bytes.
    pub bytes: u64,
    /// Time of the first, in nanoseconds.
    pub first: u64,
    /// Time of the last, in nanoseconds.
    pub last: u64,
}

impl Passed {
    fn add(&mut self, at: u64, size: u32) {
        self.first = if self.packets == 0 { at } else { self.first.min(at) };
        self.last = self.last.max(at);
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    fn join(&mut self, other: &Self) {
        if other.packets > 0 {
            self.first = if self.packets == 0 { other.first } else { self.first.min(other.first) };
            self.last = self.last.max(other.last);
            self.packets += other.packets;
            self.bytes += other.bytes;
        }
    }
}

/// What entered and what left, with times in the whole microseconds that Pantheon's tunnel counts in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that entered the path.
    pub entered: Passed,
    /// Packets that left it.
    pub left: Passed,
    /// The one-way delay at rank 0.95·(n−1), ties to even, in nanoseconds; nothing if no packet left. Between two
    /// machines, whose clocks differ, it may be negative.
    pub delay_p95: Option<i64>,
}

const MICROSECOND: u64 = 1000;

pub(crate) fn whole_microseconds(ns: u64) -> u64 {
    (ns + MICROSECOND / 2) / MICROSECOND * MICROSECOND
}

/// Rows of the log: time of entering, time of leaving, wire bytes, flow.
pub(crate) fn rows(log: &PacketLog) -> impl Iterator<Item = (u64, u64, u32, usize)> + Clone + '_ {
    let times = log.entered.iter().zip(&log.left).enumerate();
    times.map(|(i, (&entered, &left))| (entered, left, log.size[i], log.flow[i] as usize))
}

/// Return the one-way delay of a packet that left.
pub(crate) fn delay(entered: u64, left: u64) -> i64 {
    whole_microseconds(left) as i64 - whole_microseconds(entered) as i64
}

fn percentile_95(delays: &mut [i64]) -> Option<i64> {
    let rank = (0.95 * delays.len().checked_sub(1)? as f64).round_ties_even() as usize;
    Some(*delays.select_nth_unstable(rank).1)
}

/// Return the totals of all flows together, then those of each of `flows` flows.
#[must_use]
pub fn totals(log: &PacketLog, flows: usize) -> Vec<Totals> {
    let mut found = vec![Totals::default(); flows];
    let mut delays = vec![Vec::new(); flows];
    if let [only] = &mut delays[..] {
        only.reserve_exact(log.left.len());
    }
    for (entered, left, size, flow) in rows(log) {
        let own = &mut found[flow];
        own.entered.add(entered, size);
        if left != u64::MAX {
            own.left.add(left, size);
            delays[flow].push(delay(entered, left));
        }
    }
    let mut all = Totals::default();
    for (own, delays) in found.iter_mut().zip(&mut delays) {
        own.delay_p95 = percentile_95(delays);
        for passed in [&mut own.entered, &mut own.left] {
            (passed.first, passed.last) = (whole_microseconds(passed.first), whole_microseconds(passed.last));
        }
        all.entered.join(&own.entered);
        all.left.join(&own.left);
    }
    all.delay_p95 = match &mut found[..] {
        [only] => only.delay_p95,
        _ => percentile_95(&mut delays.concat()),
    };
    found.insert(0, all);
    found
}

/// Return what left of some flows, from 0, after `begin` and before `end` (nanoseconds), and the one-way delays.
#[must_use]
pub fn departed(log: &PacketLog, flows: &[usize], begin: u64, end: u64) -> (Passed, Vec<i64>) {
    let mut found = Passed::default();
    let mut delays = Vec::new();
    let mut chosen = vec![false; flows.iter().max().map_or(0, |last| last + 1)];
    flows.iter().for_each(|&flow| chosen[flow] = true);
    for (entered, left, size, _) in rows(log).filter(|row| row.1 != u64::MAX && chosen.get(row.3) == Some(&true)) {
        let at = whole_microseconds(left);
        if begin < at && at < end {
            found.add(at, size);
            delays.push(delay(entered, left));
        }
    }
    (found, delays)
}

/// Return when the packets of a flow left, in order of entry, and their one-way delays; in nanoseconds.
#[must_use]
pub fn departures(log: &PacketLog, flow: usize) -> (Vec<i64>, Vec<i64>) {
    let left = rows(log).filter(|row| row.1 != u64::MAX && row.3 == flow);
    left.map(|(entered, left, ..)| (whole_microseconds(left) as i64, delay(entered, left))).unzip()
}

/// Return the moving average of the gaps between a flow's packets, in milliseconds, as it is at each of the ascending
/// `times` (nanoseconds); a new gap has weight `weight`. NaN before the second packet.
#[must_use]
pub fn gap_average(log: &PacketLog, flow: u32, times: &[u64], weight: f64) -> Vec<f64> {
    let mut sent = log.entered.iter().zip(log.flow.iter()).filter(|(_, &of)| of == flow).map(|(&at, _)| at).peekable();
    let (mut before, mut average) = (None, f64::NAN);
    times
        .iter()
        .map(|&time| {
            while let Some(at) = sent.next_if(|&at| at <= time) {
                if let Some(before) = before {
                    let gap = (at - before) as f64 / 1e6;
                    average = if average.is_nan() { gap } else { average + weight * (gap - average) };
                }
                before = Some(at);
            }
            average
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ccgym_core::Timestamp;

    use super::*;

    fn log() -> PacketLog {
        let mut log = PacketLog::default();
        for (at, flow, delay) in
            [(400, 0, Some(1_600)), (2_000_400, 1, None), (4_000_000, 0, Some(3_000)), (6_000_000, 0, None)]
        {
            let handle = log.enter(Timestamp(at), 1500 + flow, flow);
            if let Some(delay) = delay {
                log.leave(handle, Timestamp(at + delay));
            }
        }
        log
    }

    #[test]
    fn totals_are_of_all_flows_and_of_each() {
        let [all, first, second, third] = totals(&log(), 3)[..] else { panic!("four") };
        assert_eq!(first.entered, Passed { packets: 3, bytes: 4500, first: 0, last: 6_000_000 });
        assert_eq!(first.left, Passed { packets: 2, bytes: 3000, first: 2_000, last: 4_003_000 });
        assert_eq!((first.delay_p95, second.delay_p95), (Some(3_000), None));
        assert_eq!((second.entered.packets, second.left), (1, Passed::default()));
        assert_eq!(third, Totals::default());
        assert_eq!((all.entered.bytes, all.left, all.delay_p95), (6001, first.left, Some(3_000)));
    }

    #[test]
    fn what_left_in_a_part_is_of_some_flows_and_of_neither_end() {
        let (found, delays) = departed(&log(), &[0, 1], 2_000, 5_000_000);
        assert_eq!(
            (found, delays),
            (Passed { packets: 1, bytes: 1500, first: 4_003_000, last: 4_003_000 }, vec![3_000])
        );
        assert_eq!(departed(&log(), &[0], 1_999, 4_003_001).1, [2_000, 3_000]);
        assert_eq!(departed(&log(), &[1], 0, u64::MAX), (Passed::default(), vec![]));
    }

    #[test]
    fn a_packet_may_leave_before_it_entered_by_another_clock() {
        let mut log = PacketLog::default();
        let handle = log.enter(Timestamp(5_000), 1500, 0);
        log.leave(handle, Timestamp(2_000));
        assert_eq!(totals(&log, 1)[1].delay_p95, Some(-3_000));
    }

    #[test]
    fn gaps_are_averaged_up_to_each_time() {
        let found = gap_average(&log(), 0, &[1_000_000, 4_000_000, 5_000_000, 7_000_000], 0.5);
        assert!(found[0].is_nan());
        assert_eq!(found[1..], [3.9996, 3.9996, (3.9996 + 2.0) / 2.0]);
    }
}
