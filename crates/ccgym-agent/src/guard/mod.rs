//! What rescues a flow that went down although its path is clear.
//!
//! Signals that are ratios look the same at the floor as at a good rate, so a policy that fell down there may stay for
//! ever. A guard sees the floor itself. While it has nothing to rescue it only watches: what the agent decides is then
//! in force to the last bit.

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
use recovery::Recovery;

impl GuardSpec {
    pub(crate) fn check(&self, inner: bool) -> Result<(), AgentError> {
        let alone =
            |kind: &str| AgentError::ensure(!inner, "guard.kind", kind, "none: the base scheme finds its own window");
        match self {
            Self::None {} => Ok(()),
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
            Self::Recovery(spec) => spec.describe(),
        }
    }
}

/// The guard of one flow.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    None,
    Recovery(Box<Recovery>),
}

impl Guard {
    pub(crate) fn new(spec: &GuardSpec) -> Self {
        match spec {
            GuardSpec::None {} => Self::None,
            GuardSpec::Recovery(spec) => Self::Recovery(Box::new(Recovery::new(spec))),
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
        if let (Self::Recovery(guard), GuardSpec::Recovery(spec)) = (self, spec) {
            guard.on_interval(spec, m, actuator, actions, memory);
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
            Self::Recovery(guard) => guard.interventions,
        }
    }
}
