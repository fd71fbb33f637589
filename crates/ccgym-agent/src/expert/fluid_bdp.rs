//! Muses' oracle (`dagger/oracle.py`): what the path holds in flight at the flow's fair share, and a share of the queue
//! less its current backlog; the maximum over the latest samples, since the backlog is seen late.

use super::super::memory::Memory;
use super::super::truth::GroundTruth;

/// What a queue without limit counts as, in bandwidth-delay products: Muses' deep buffers.
const UNLIMITED: f64 = 0.25;
/// Minimum window, packets.
const FLOOR: f64 = 2.0;

/// The window in packets; `None` while the path is unknown.
pub(super) fn window(truths: &[GroundTruth], samples: u32, queue_fraction: f64, memory: &Memory) -> Option<f64> {
    let latest = &truths[truths.len().saturating_sub(samples as usize)..];
    let each = latest.iter().filter(|truth| truth.fair_share > 0.0).map(|truth| {
        let min_rtt = if memory.min_rtt > 0.0 { memory.min_rtt } else { truth.base_rtt };
        let bdp = truth.fair_share * min_rtt / (8.0 * memory.mss);
        let queue = if truth.queue_limit.is_finite() { truth.queue_limit } else { UNLIMITED * bdp };
        bdp + queue_fraction * queue - truth.backlog
    });
    each.reduce(f64::max).map(|window| window.max(FLOOR))
}

pub(super) fn describe(queue_fraction: f64, samples: u32) -> String {
    format!(
        "fair_share · min_rtt + {queue_fraction} · queue_limit − backlog, the max of {samples} decisions, at least \
         {FLOOR} packets (a queue without limit counts as {UNLIMITED} · fair_share · min_rtt)"
    )
}
