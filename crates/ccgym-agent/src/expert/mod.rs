//! Experts: what a teacher would do in the place of the agent.
//!
//! An expert aims at a rate or a window; the label is the agent's own action that comes nearest to it. Some know the
//! path's truth, which no deployed agent does: whoever knows it hands it to [`FlowAgent::label`]. Nothing here changes
//! what a flow does.

mod best_window;
mod fluid_bdp;
mod gain_schedule;
#[cfg(test)]
mod tests;

use super::action::Goal;
use super::error::AgentError;
use super::memory::Memory;
use super::spec::{AgentSpec, Distance, ExpertSpec, Target};
use super::truth::PathTruth;
use super::FlowAgent;
use ccgym_core::monitor::MonitorInterval;

use gain_schedule::GainSchedule;

/// What the expert would do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// What it aims at: bit/s if the agent steers a rate, else packets.
    pub target: f64,
    numbers: [f32; 2],
    size: usize,
}

impl Label {
    /// The agent's action that comes nearest to the target: one that [`FlowAgent::act`] accepts.
    #[must_use]
    pub fn action(&self) -> &[f32] {
        &self.numbers[..self.size]
    }
}

/// What an expert aims at; bit/s and packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    Rate(f64),
    Window(f64),
}

impl Aim {
    /// As rate and window. A rate is a window per round trip, the latest known, so that a paced flow comes to rest
    /// where a window would; a window is what a rate moves in the smallest round trip.
    fn goal(self, memory: &Memory) -> Option<Goal> {
        let (rate, window) = match self {
            Self::Rate(rate) => (rate, memory.in_packets(rate)),
            Self::Window(window) => (8.0 * memory.mss * window / memory.mean_rtt, window),
        };
        (rate.is_finite() && window.is_finite() && rate > 0.0 && window > 0.0).then_some(Goal { rate, window })
    }
}

/// The expert of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Expert {
    spec: ExpertSpec,
    schedule: Option<GainSchedule>,
    /// The flow's best window, if it was given one, packets.
    window: Option<f64>,
}

impl Expert {
    pub(crate) fn new(spec: &ExpertSpec, window: Option<f64>) -> Self {
        Self { spec: spec.clone(), schedule: GainSchedule::of(spec), window }
    }

    /// Take in an interval that `memory` has digested, phase included.
    pub(crate) fn observe(&mut self, m: &MonitorInterval, memory: &Memory) {
        if let Some(schedule) = &mut self.schedule {
            schedule.observe(m, memory);
        }
    }

    fn aim(&self, memory: &Memory, truths: &[PathTruth]) -> Option<Aim> {
        match &self.spec {
            ExpertSpec::BestWindow { queueing, .. } => {
                best_window::window(self.window, truths.last(), *queueing, memory).map(Aim::Window)
            }
            ExpertSpec::FluidBdp { queue_fraction, samples, .. } => {
                fluid_bdp::window(truths, *samples, *queue_fraction, memory).map(Aim::Window)
            }
            ExpertSpec::GainSchedule { .. } => self.schedule.as_ref()?.rate().map(Aim::Rate),
        }
    }
}

impl FlowAgent {
    /// What the expert would do now, for the decision that [`FlowAgent::observe`] asked for. `truths` are those of the
    /// latest intervals that ended in a decision, newest last, as many as [`AgentSpec::expert_truths`] says, or as there
    /// are. `None` without an expert, while it knows nothing yet, and while a decision has no effect.
    #[must_use]
    pub fn label(&self, truths: &[PathTruth]) -> Option<Label> {
        let (plan, expert) = (&self.plan, self.expert.as_ref()?);
        if !self.startup.is_over() {
            return None;
        }
        let goal = expert.aim(&self.memory, truths)?.goal(&self.memory)?;
        let steered = plan.spec.action.target;
        let distance = expert.spec.nearest().unwrap_or(match steered {
            Target::Cwnd => Distance::Linear,
            Target::Rate | Target::Both => Distance::Log,
        });
        let numbers = plan.actions.nearest(&self.actuator, goal, distance, &self.memory, &self.values);
        let target = if steered == Target::Cwnd { goal.window } else { goal.rate };
        Some(Label { target, numbers: numbers.map(|x| x as f32), size: plan.actions.kind().size() })
    }
}

impl AgentSpec {
    /// How many of the latest intervals' truths the expert has to be told; 0 for one that any sender could ask.
    #[must_use]
    pub fn expert_truths(&self) -> usize {
        match &self.expert {
            Some(ExpertSpec::BestWindow { .. }) => 1,
            Some(ExpertSpec::FluidBdp { samples, .. }) => *samples as usize,
            Some(ExpertSpec::GainSchedule { .. }) | None => 0,
        }
    }
}

impl ExpertSpec {
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let positive = |field: &str, x: f64| {
            AgentError::ensure(x.is_finite() && x > 0.0, &format!("expert.{field}"), x, "a number above 0")
        };
        let few = |field: &str, n: u32| {
            AgentError::ensure((1..=1000).contains(&n), &format!("expert.{field}"), n, "1 to 1000 intervals")
        };
        match self {
            Self::BestWindow { .. } => Ok(()),
            Self::FluidBdp { queue_fraction, samples, .. } => {
                let share = (0.0..=1.0).contains(queue_fraction);
                AgentError::ensure(share, "expert.queue_fraction", queue_fraction, "a share, 0 to 1")?;
                few("samples", *samples)
            }
            Self::GainSchedule { startup, drain, cycle, window, .. } => {
                positive("startup", *startup)?;
                positive("drain", *drain)?;
                AgentError::ensure(!cycle.is_empty(), "expert.cycle", "none", "at least one gain")?;
                cycle.iter().enumerate().try_for_each(|(i, gain)| positive(&format!("cycle[{i}]"), *gain))?;
                few("window", *window)
            }
        }
    }

    /// Whether it asks for the phase.
    pub(crate) fn is_phased(&self) -> bool {
        matches!(self, Self::GainSchedule { .. })
    }

    /// In words.
    pub(crate) fn describe(&self, steered: Target) -> String {
        let aim = match self {
            Self::BestWindow { queueing, .. } => best_window::describe(*queueing),
            Self::FluidBdp { queue_fraction, samples, .. } => fluid_bdp::describe(*queue_fraction, *samples),
            Self::GainSchedule { startup, drain, cycle, window, .. } => {
                gain_schedule::describe(*startup, *drain, cycle, *window)
            }
        };
        let distance = match (self.nearest(), steered) {
            (Some(Distance::Linear), _) | (None, Target::Cwnd) => "by absolute distance",
            _ => "by ratio",
        };
        let truth = if matches!(self, Self::BestWindow { .. } | Self::FluidBdp { .. }) {
            "; knows the path's truth"
        } else {
            ""
        };
        format!("{aim}; the label is the action whose result is nearest to that, {distance}{truth}")
    }
}
