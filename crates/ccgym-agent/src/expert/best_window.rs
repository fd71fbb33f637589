//! A fixed window per path: the best that a search found, or else what fills the path and holds a few milliseconds
//! in its queue, which is within a fifth of a percent of Indigo's table on its synthetic links (`dagger/best_cwnds.yml`).

use super::super::memory::Memory;
use super::super::truth::GroundTruth;
use ccgym_core::units::TimeSpan;

/// The window in packets; `None` if it is neither given nor to be had from the truth. Of a link that is shared, the
/// flow's fair share counts.
pub(super) fn window(
    given: Option<f64>,
    truth: Option<&GroundTruth>,
    queueing: TimeSpan,
    memory: &Memory,
) -> Option<f64> {
    let from_truth = || truth.map(|t| t.fair_share * (t.base_rtt + queueing.as_secs_f64()) / (8.0 * memory.mss));
    given.or_else(from_truth)
}

pub(super) fn describe(queueing: TimeSpan) -> String {
    format!("the flow's expert_window, or fair_share · (base_rtt + {} ms)", queueing.as_millis_f64())
}
