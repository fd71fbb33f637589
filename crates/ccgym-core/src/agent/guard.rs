//! A rescue for flows that stand at their lower bound although the path is clear.
//!
//! Signals that are ratios look the same at the floor as at a good rate, so a policy that fell down there may stay for
//! ever. The guard sees the floor itself.

use super::action::{Actions, Actuator};
use super::error::AgentError;
use super::memory::Memory;
use super::spec::{GuardSpec, Target};
use crate::monitor::MonitorInterval;

/// What counts as the floor, as a multiple of it.
const NEAR: f64 = 1.01;
/// A lift that would not lift doubles instead.
const LEAST_LIFT: f64 = 2.0;

impl GuardSpec {
    pub(crate) fn check(&self, inner: bool) -> Result<(), AgentError> {
        let Self::FloorRecovery { steps, loss, latency_ratio, lift, .. } = self else { return Ok(()) };
        AgentError::ensure(!inner, "guard.kind", "floor_recovery", "none: the scheme below finds its own window")?;
        AgentError::ensure(*steps >= 1, "guard.steps", steps, "at least 1")?;
        AgentError::ensure((0.0..=1.0).contains(loss), "guard.loss", loss, "a fraction, 0 to 1")?;
        let ratio = latency_ratio.is_finite() && *latency_ratio >= 1.0;
        AgentError::ensure(ratio, "guard.latency_ratio", latency_ratio, "a number from 1 on")?;
        AgentError::ensure(lift.is_finite() && *lift > 0.0, "guard.lift", lift, "a number above 0")
    }

    /// In words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::None {} => "none".to_owned(),
            Self::FloorRecovery { steps, loss, latency_ratio, lift, after_timeout } => {
                let timeout = if *after_timeout { " (one after a timeout)" } else { "" };
                format!(
                    "after {steps} intervals at the lower bound{timeout} with loss up to {loss} and latency ratio up \
                     to {latency_ratio}: lift to {lift} of the greatest delivery rate"
                )
            }
        }
    }
}

/// The guard of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Clean intervals at the lower bound in a row.
    low: u32,
    timed_out: bool,
    /// How often it has lifted the flow.
    pub interventions: u64,
}

impl Guard {
    /// A timeout was seen.
    pub(crate) fn on_timeout(&mut self) {
        self.timed_out = true;
    }

    /// Take in an interval that `memory` has digested; lift the flow if it needs it.
    pub(crate) fn on_interval(
        &mut self,
        spec: &GuardSpec,
        m: &MonitorInterval,
        actuator: &mut Actuator,
        actions: &Actions,
        memory: &Memory,
    ) {
        let GuardSpec::FloorRecovery { steps, loss, latency_ratio, lift, after_timeout } = spec else { return };
        self.timed_out |= m.timeouts > 0;
        let floor = actions.rate_floor(memory);
        let low_rate = actions.target != Target::Cwnd && actuator.rate <= NEAR * floor;
        let low_window = actions.target != Target::Rate && actuator.window <= NEAR * actions.limits.window[0];
        let ratio = if memory.min_mean_rtt > 0.0 { memory.mean_rtt / memory.min_mean_rtt } else { 1.0 };
        let clean = m.acked_packets > 0 && m.timeouts == 0 && m.loss_fraction() <= *loss && ratio <= *latency_ratio;
        if !clean || !(low_rate || low_window) {
            // A timeout is over once the flow is off its lower bound and hears from the path.
            self.timed_out &= low_rate || low_window || m.acked_packets == 0;
            self.low = 0;
            return;
        }
        self.low += 1;
        if self.low < *steps && !(*after_timeout && self.timed_out) {
            return;
        }
        if low_rate {
            actuator.rate = (lift * memory.max_delivery_rate).max(LEAST_LIFT * actuator.rate);
        }
        if low_window {
            actuator.window = (lift * memory.bdp()).max(LEAST_LIFT * actuator.window);
        }
        actuator.bound(actions, memory);
        (self.low, self.timed_out) = (0, false);
        self.interventions += 1;
    }
}
