//! Experts for imitation learning: the action that a teacher would take in the agent's place.
//!
//! An expert has a target rate or window; the label is the agent's nearest action. Some experts need the path's ground
//! truth, which the caller passes to [`FlowAgent::label`]. Experts do not affect flows.

mod gain_schedule;
#[cfg(test)]
mod tests;

use super::action::ControlTarget;
use super::memory::Memory;
use super::spec::{AgentSpec, Distance, ExpertSpec, Target};
use super::truth::GroundTruth;
use super::FlowAgent;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::{schema, Error};

use gain_schedule::GainSchedule;

/// Limit assumed for an unlimited queue in Muses' oracle, in BDPs: its deep buffers.
const UNLIMITED: f64 = 0.25;
/// Min window of Muses' oracle, packets.
const FLOOR: f64 = 2.0;

/// The label of one decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// Target of the expert: bit/s if the agent steers a rate, else packets.
    pub target: f64,
    numbers: [f32; 2],
    size: usize,
}

impl Label {
    /// Return the agent's action nearest to the target: one that [`FlowAgent::act`] accepts.
    #[must_use]
    pub fn action(&self) -> &[f32] {
        &self.numbers[..self.size]
    }
}

impl ControlTarget {
    /// Make a target from a rate in bit/s; its window is that of the latest RTT, so that a paced flow settles like a
    /// window.
    fn of_rate(rate: f64, memory: &Memory) -> Option<Self> {
        Self { rate, window: memory.in_packets(rate) }.checked()
    }

    /// Make a target from a window in packets and its rate over the latest RTT.
    fn of_window(window: f64, memory: &Memory) -> Option<Self> {
        Self { rate: 8.0 * memory.mss * window / memory.mean_rtt, window }.checked()
    }

    fn checked(self) -> Option<Self> {
        let usable = |x: f64| x.is_finite() && x > 0.0;
        (usable(self.rate) && usable(self.window)).then_some(self)
    }
}

/// The expert of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Expert {
    spec: ExpertSpec,
    schedule: Option<GainSchedule>,
    /// The flow's best window, if given, packets.
    window: Option<f64>,
    /// Target of the teaching policy, if there is one.
    advice: Option<ControlTarget>,
}

impl Expert {
    pub(crate) fn new(spec: &ExpertSpec, window: Option<f64>) -> Self {
        Self { spec: spec.clone(), schedule: GainSchedule::of(spec), window, advice: None }
    }

    /// Add an interval that `memory` has digested, including the phase.
    pub(crate) fn observe(&mut self, m: &MonitorInterval, memory: &Memory) {
        if let Some(schedule) = &mut self.schedule {
            schedule.observe(m, memory);
        }
    }

    fn target(&self, memory: &Memory, truths: &[GroundTruth]) -> Option<ControlTarget> {
        match &self.spec {
            // A window that fills the path and a few milliseconds of its queue is within a fifth of a percent of
            // Indigo's table on its synthetic links (`dagger/best_cwnds.yml`). On a shared link the fair share counts.
            ExpertSpec::BestWindow { queueing, .. } => {
                let seconds = |truth: &GroundTruth| truth.base_rtt + queueing.as_secs_f64();
                let filling = truths.last().map(|t| t.fair_share * seconds(t) / (8.0 * memory.mss));
                ControlTarget::of_window(self.window.or(filling)?, memory)
            }
            // Muses' oracle (`dagger/oracle.py`): the BDP at the flow's fair share, and a share of the queue less its
            // backlog; the max over the latest samples, since the backlog is observed late.
            ExpertSpec::FluidBdp { queue_fraction, samples, .. } => {
                let latest = &truths[truths.len().saturating_sub(*samples as usize)..];
                let windows = latest.iter().filter(|truth| truth.fair_share > 0.0).map(|truth| {
                    let min_rtt = if memory.min_rtt > 0.0 { memory.min_rtt } else { truth.base_rtt };
                    let bdp = truth.fair_share * min_rtt / (8.0 * memory.mss);
                    let queue = if truth.queue_limit.is_finite() { truth.queue_limit } else { UNLIMITED * bdp };
                    bdp + queue_fraction * queue - truth.backlog
                });
                ControlTarget::of_window(windows.reduce(f64::max)?.max(FLOOR), memory)
            }
            ExpertSpec::GainSchedule { .. } => ControlTarget::of_rate(self.schedule.as_ref()?.rate()?, memory),
            ExpertSpec::Policy { .. } => self.advice,
        }
    }
}

impl FlowAgent {
    /// Return the expert's label for the decision that [`FlowAgent::observe`] asked for. `truths`: ground truth of the
    /// latest intervals that ended in a decision, newest last, at most [`AgentSpec::expert_truths`]. `None` without an
    /// expert, while it has no target, and while a decision has no effect.
    #[must_use]
    pub fn label(&self, truths: &[GroundTruth]) -> Option<Label> {
        let (target, distance) = self.aim(truths)?;
        let plan = &self.plan;
        let numbers = plan.actions.nearest(&self.actuator, target, distance, &self.memory, &self.values);
        let shown = if plan.spec.action.target == Target::Cwnd { target.window } else { target.rate };
        Some(Label { target: shown, numbers: numbers.map(|x| x as f32), size: plan.actions.kind().size() })
    }

    /// Return the distance from the expert's target to the result of each listed action, in the order of the actions;
    /// empty for actions that are real numbers. `truths` and `None` as in [`FlowAgent::label`].
    #[must_use]
    pub fn label_distances(&self, truths: &[GroundTruth]) -> Option<Vec<f64>> {
        let (target, distance) = self.aim(truths)?;
        Some(self.plan.actions.each_distance(&self.actuator, target, distance, &self.memory, &self.values))
    }

    /// Return the rate and window of the agent's decision.
    fn steered(&self) -> Option<ControlTarget> {
        let (actuator, memory) = (&self.actuator, &self.memory);
        match self.plan.spec.action.target {
            Target::Rate => ControlTarget::of_rate(actuator.rate, memory),
            Target::Cwnd => ControlTarget::of_window(actuator.window, memory),
            Target::Both => ControlTarget { rate: actuator.rate, window: actuator.window }.checked(),
            Target::Gain => None,
        }
    }

    /// Continue from the decision of another agent of the same flow, which the next decision changes.
    pub fn follow(&mut self, other: &Self) {
        if let Some(target) = other.steered() {
            (self.actuator.rate, self.actuator.window) = (target.rate, target.window);
            self.actuator.bound(&self.plan.actions, &self.memory);
        }
    }

    /// Take another agent's result for this one's rate and window of the same flow as this one's own: the previous
    /// action becomes the nearest one to it. It stays this agent's proposal if that is as near, and if decisions have
    /// no effect.
    pub fn repeat(&mut self, other: &Self) {
        if let (Some(target), Some(proposed), true) = (other.steered(), self.memory.action, other.is_in_force()) {
            let (actions, memory) = (&self.plan.actions, &self.memory);
            let done = actions.nearest(&self.actuator, target, Distance::Log, memory, &self.values);
            let each = actions.each_distance(&self.actuator, target, Distance::Log, memory, &self.values);
            let of = |action: [f64; 2]| each.get(action[0] as usize);
            // No action that is a real number is as near.
            let as_near = of(proposed).zip(of(done)).is_some_and(|(proposed, done)| *proposed <= done + 1e-9);
            self.memory.action = Some(if as_near { proposed } else { done });
        }
        self.follow(other);
    }

    /// Take the decision of `teacher`, another agent of the same flow, as the target: an expert of kind `policy`.
    pub fn advise(&mut self, teacher: &Self) {
        if let Some(expert) = &mut self.expert {
            expert.advice = teacher.steered();
        }
    }

    /// Return the expert's target, and the measure of distances from it.
    fn aim(&self, truths: &[GroundTruth]) -> Option<(ControlTarget, Distance)> {
        let expert = self.expert.as_ref()?;
        if !self.startup.is_over() {
            return None;
        }
        let target = expert.target(&self.memory, truths)?;
        let distance = expert.spec.nearest().unwrap_or(match self.plan.spec.action.target {
            Target::Cwnd => Distance::Linear,
            Target::Rate | Target::Both | Target::Gain => Distance::Log,
        });
        Some((target, distance))
    }
}

impl AgentSpec {
    /// Return the number of latest intervals whose ground truth the expert needs; 0 if it needs none.
    #[must_use]
    pub fn expert_truths(&self) -> usize {
        match &self.expert {
            Some(ExpertSpec::BestWindow { .. }) => 1,
            Some(ExpertSpec::FluidBdp { samples, .. }) => *samples as usize,
            Some(ExpertSpec::GainSchedule { .. } | ExpertSpec::Policy { .. }) | None => 0,
        }
    }
}

impl ExpertSpec {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let positive = |field: &str, x: f64| {
            Error::ensure(x.is_finite() && x > 0.0, &format!("expert.{field}"), x, "a number above 0")
        };
        schema::check("expert", self)?;
        match self {
            Self::BestWindow { .. } | Self::FluidBdp { .. } => Ok(()),
            Self::GainSchedule { startup, drain, cycle, .. } => {
                positive("startup", *startup)?;
                positive("drain", *drain)?;
                Error::ensure(!cycle.is_empty(), "expert.cycle", "none", "at least one gain")?;
                cycle.iter().enumerate().try_for_each(|(i, gain)| positive(&format!("cycle[{i}]"), *gain))
            }
            Self::Policy { policy, .. } => {
                Error::ensure(!policy.is_empty(), "expert.policy", "\"\"", "the name of a policy")
            }
        }
    }

    /// True if it needs the phase.
    pub(crate) fn is_phased(&self) -> bool {
        matches!(self, Self::GainSchedule { .. })
    }

    pub(crate) fn describe(&self, steered: Target) -> String {
        let target = match self {
            Self::BestWindow { queueing, .. } => {
                format!("the flow's expert_window, or fair_share · (base_rtt + {} ms)", queueing.as_millis_f64())
            }
            Self::FluidBdp { queue_fraction, samples, .. } => format!(
                "fair_share · min_rtt + {queue_fraction} · queue_limit − backlog, the max of {samples} decisions, at \
                 least {FLOOR} packets (a queue without limit counts as {UNLIMITED} · fair_share · min_rtt)"
            ),
            Self::GainSchedule { startup, drain, cycle, window, .. } => {
                gain_schedule::describe(*startup, *drain, cycle, *window)
            }
            Self::Policy { policy, .. } => {
                format!("what the policy {policy}, through its own agent, would make of the value in force")
            }
        };
        let distance = match (self.nearest(), steered) {
            (Some(Distance::Linear), _) | (None, Target::Cwnd) => "by absolute distance",
            _ => "by ratio",
        };
        let truth = if matches!(self, Self::BestWindow { .. } | Self::FluidBdp { .. }) {
            "; knows the path's ground truth"
        } else {
            ""
        };
        format!("{target}; the label is the action whose result is nearest to that, {distance}{truth}")
    }
}
