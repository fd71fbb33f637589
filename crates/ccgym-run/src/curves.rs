//! What the figures of a run show, made of its packets: throughput per bin, and delays on a grid that is finer than
//! what can be seen: 30 s at 77.72 Mbit/s are 200,000 packets, a figure 12 in wide has 1,200 columns.

use std::iter;

use crate::packet_totals::{delay, rows, whole_microseconds};
use crate::recorder::PacketLog;

/// Width of a bin in nanoseconds: Pantheon's 500 ms.
const BIN: i64 = 500_000_000;
/// Columns of the delay grid over the whole run.
const TIME_CELLS: i64 = 1500;
/// Rows of the delay grid over the range of delays of one flow.
const DELAY_CELLS: i64 = 800;

/// Throughput and delays of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Mbit/s that entered the path, per bin from the first event of any flow to the last of this one.
    pub ingress_mbps: Vec<f64>,
    /// Mbit/s that left the path. The same.
    pub egress_mbps: Vec<f64>,
    /// Departure times of the delay points in seconds since the first event.
    pub delay_time_s: Vec<f64>,
    /// Their one-way delays in milliseconds.
    pub delay_ms: Vec<f64>,
}

/// Return the curves of each of `flows` flows.
///
/// `entered` has the time in nanoseconds, the wire bytes and the flow of each packet; `left` the same and the one-way
/// delay in nanoseconds. What happens after `duration` nanoseconds belongs to the last bin before; 0: it is not known.
pub fn curves(
    entered: impl Iterator<Item = (i64, u64, usize)> + Clone,
    left: impl Iterator<Item = (i64, u64, usize, i64)> + Clone,
    flows: usize,
    duration: i64,
) -> Vec<Curves> {
    let origin = entered.clone().map(|row| row.0).chain(left.clone().map(|row| row.0)).min().unwrap_or(0);
    let last = if duration > 0 { (duration - 1) / BIN } else { i64::MAX };
    let add = |bins: &mut Vec<f64>, at: i64, size: u64| {
        let bin = ((at - origin) / BIN).min(last) as usize;
        if bins.len() <= bin {
            bins.resize(bin + 1, 0.0);
        }
        bins[bin] += size as f64;
    };
    let mut found = vec![Curves::default(); flows];
    let mut points = vec![Vec::new(); flows];
    entered.for_each(|(at, size, flow)| add(&mut found[flow].ingress_mbps, at, size));
    for (at, size, flow, delay) in left {
        add(&mut found[flow].egress_mbps, at, size);
        points[flow].push((at - origin, delay));
    }
    for (own, points) in iter::zip(&mut found, points) {
        own.ingress_mbps.iter_mut().chain(&mut own.egress_mbps).for_each(|sum| *sum *= 8000.0 / BIN as f64);
        (own.delay_time_s, own.delay_ms) = thin(&points);
    }
    found
}

/// Return the curves of each flow of a log, as [`curves`] does, with times in whole microseconds.
#[must_use]
pub fn of_log(log: &PacketLog, flows: usize, duration: i64) -> Vec<Curves> {
    let entered = rows(log).map(|(at, _, size, flow)| (whole_microseconds(at) as i64, u64::from(size), flow));
    let left = rows(log)
        .filter(|row| row.1 != u64::MAX)
        .map(|(entered, at, size, flow)| (whole_microseconds(at) as i64, u64::from(size), flow, delay(entered, at)));
    curves(entered, left, flows, duration)
}

/// Return the centers of the occupied cells, in order of time, of points in nanoseconds, as seconds and milliseconds: a
/// point is off by at most 1/1600 of the range of delays and 1/3000 of the run, less than half a pixel.
fn thin(points: &[(i64, i64)]) -> (Vec<f64>, Vec<f64>) {
    let Some(last) = points.iter().map(|point| point.0).max() else { return Default::default() };
    let (low, high) = points.iter().fold((i64::MAX, i64::MIN), |(low, high), &(_, d)| (low.min(d), high.max(d)));
    let (width, height) = (last / TIME_CELLS + 1, (high - low) / DELAY_CELLS + 1);
    let mut occupied = vec![0_u64; (TIME_CELLS * (DELAY_CELLS + 1)) as usize / 64 + 1];
    for &(at, delay) in points {
        let cell = (at / width * (DELAY_CELLS + 1) + (delay - low) / height) as usize;
        occupied[cell / 64] |= 1 << (cell % 64);
    }
    let cells = (0..).step_by(64).zip(occupied).filter(|word| word.1 != 0);
    let cells =
        cells.flat_map(|(first, word)| (0..64).filter(move |bit| (word >> bit) & 1 == 1).map(move |bit| first + bit));
    let center = |cell: i64, size: i64| (cell as f64 + 0.5) * size as f64;
    let time = |cell| center(cell / (DELAY_CELLS + 1), width).min(last as f64);
    let delay = |cell| (low as f64 + center(cell % (DELAY_CELLS + 1), height)).clamp(low as f64, high as f64);
    cells.map(|cell| (time(cell) / 1e9, delay(cell) / 1e6)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_of_each_flow() {
        let entered = [(1_000, 1500, 0), (500_001_000, 1500, 1), (1_000_001_000, 500, 0)];
        let left = [(600_001_000, 1500, 1, 100_000_000), (1_100_001_000, 500, 0, 100_000_000)];
        let [first, second, third] = &curves(entered.into_iter(), left.into_iter(), 3, 0)[..] else { panic!("three") };
        assert_eq!(first.ingress_mbps, [0.024, 0.0, 0.008]);
        assert_eq!((&first.egress_mbps, &second.egress_mbps), (&vec![0.0, 0.0, 0.008], &vec![0.0, 0.024]));
        assert_eq!((second.delay_time_s.len(), &second.delay_ms[..]), (1, &[100.0][..]));
        assert_eq!(*third, Curves::default());
        // What happens at the very end opens no bin of its own.
        assert_eq!(curves(entered.into_iter(), left.into_iter(), 2, 1_000_000_000)[0].ingress_mbps, [0.024, 0.008]);
    }

    #[test]
    fn points_are_the_centers_of_cells() {
        let (times, delays) = thin(&[(2_999, 10), (0, 810), (1, 11), (0, 10)]);
        assert_eq!(times.len(), 3);
        assert_eq!((times[0], times[2]), (1e-9, 2_999e-9));
        assert_eq!(delays, [11e-6, 810e-6, 11e-6]);
    }
}
