//! What rescues a flow that went down although its path is clear.
//!
//! Signals that are ratios look the same at the floor as at a good rate, so a policy that fell down there may stay for
//! ever. A guard sees the floor itself. While it has nothing to rescue it only watches: what the agent decides is then
//! in force to the last bit.

mod floor;
mod recovery;
mod round;
mod search;
#[cfg(test)]
mod tests;

use super::action::{Actions, Actuator};
use super::error::AgentError;
use super::memory::Memory;
use super::spec::GuardSpec;
use ccgym_core::congestion_control::Control;
use ccgym_core::monitor::MonitorInterval;
use floor::FloorRecovery;
use recovery::Recovery;

impl GuardSpec {
    pub(crate) fn check(&self, inner: bool) -> Result<(), AgentError> {
        let alone =
            |kind: &str| AgentError::ensure(!inner, "guard.kind", kind, "none: the scheme below finds its own window");
        match self {
            Self::None {} => Ok(()),
            Self::FloorRecovery { steps, loss, latency_ratio, lift, .. } => {
                alone("floor_recovery")?;
                AgentError::ensure(*steps >= 1, "guard.steps", steps, "at least 1")?;
                AgentError::ensure((0.0..=1.0).contains(loss), "guard.loss", loss, "a fraction, 0 to 1")?;
                let ratio = latency_ratio.is_finite() && *latency_ratio >= 1.0;
                AgentError::ensure(ratio, "guard.latency_ratio", latency_ratio, "a number from 1 on")?;
                AgentError::ensure(lift.is_finite() && *lift > 0.0, "guard.lift", lift, "a number above 0")
            }
            Self::Recovery(spec) => {
                alone("recovery")?;
                spec.check()
            }
        }
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
            Self::Recovery(spec) => spec.describe(),
        }
    }
}

/// The guard of one flow.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    None,
    Floor(FloorRecovery),
    Recovery(Box<Recovery>),
}

impl Guard {
    pub(crate) fn new(spec: &GuardSpec) -> Self {
        match spec {
            GuardSpec::None {} => Self::None,
            GuardSpec::FloorRecovery { .. } => Self::Floor(FloorRecovery::default()),
            GuardSpec::Recovery(spec) => Self::Recovery(Box::new(Recovery::new(spec))),
        }
    }

    /// A timeout was seen.
    pub(crate) fn on_timeout(&mut self) {
        if let Self::Floor(guard) = self {
            guard.on_timeout();
        }
    }

    /// The agent gave an action; whether it could be read.
    pub(crate) fn on_action(&mut self, read: bool) {
        if let Self::Recovery(guard) = self {
            guard.on_action(read);
        }
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
        match (self, spec) {
            (Self::Floor(guard), spec) => guard.on_interval(spec, m, actuator, actions, memory),
            (Self::Recovery(guard), GuardSpec::Recovery(spec)) => {
                guard.on_interval(spec, m, actuator, actions, memory);
            }
            _ => {}
        }
    }

    /// Whether the guard decides instead of the agent.
    pub(crate) fn decides(&self) -> bool {
        matches!(self, Self::Recovery(guard) if guard.decides())
    }

    /// Its decision, if it decides.
    pub(crate) fn control(&self, actions: &Actions, memory: &Memory) -> Option<Control> {
        match self {
            Self::Recovery(guard) => guard.control(actions, memory),
            _ => None,
        }
    }

    /// How often it has lifted the flow, or tried to.
    pub(crate) fn interventions(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Floor(guard) => guard.interventions,
            Self::Recovery(guard) => guard.interventions,
        }
    }
}
