//! Experts that an agent can imitate, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{millis, number};
use ccgym_core::units::TimeSpan;

/// A teacher in training: its label is the action nearest to its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Expert")]
pub enum ExpertSpec {
    /// A fixed window: the flow's own (parameter `expert_window` of the scheme `learned`), or one that fills the path
    /// and a little of its queue.
    BestWindow {
        /// Queuing delay.
        #[serde(default = "millis::<5>")]
        queueing: TimeSpan,
        /// Measure of the distance from an action's result to the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
    /// The window that fills the path and a fraction of its queue, less the backlog (Muses).
    FluidBdp {
        /// Fraction of the queue's limit.
        #[serde(default = "most_of_the_queue")]
        #[schemars(extend("format" = "probability"))]
        queue_fraction: f64,
        /// Decisions over which the max window is taken.
        #[serde(default = "number::<u32, 5>")]
        #[schemars(range(min = 1, max = 1000))]
        samples: u32,
        /// Measure of the distance from an action's result to the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
    /// The max delivery rate of the latest intervals, times a gain that depends on the phase (BBR).
    GainSchedule {
        /// Gain while the delivery rate grows.
        #[serde(default = "startup_gain")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 100))]
        startup: f64,
        /// Gain while the queue of start-up drains.
        #[serde(default = "drain_gain")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 100))]
        drain: f64,
        /// Gains afterward, one per interval, in a cycle.
        #[serde(default = "probe_cycle")]
        #[schemars(length(min = 1, max = 1000))]
        cycle: Vec<f64>,
        /// Intervals with acknowledgements over which the max delivery rate is taken.
        #[serde(default = "number::<u32, 10>")]
        #[schemars(range(min = 1, max = 1000))]
        window: u32,
        /// Measure of the distance from an action's result to the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
    /// Another policy, which observes the flow through its own agent, decides when the learner does, and targets the
    /// result of its decision for the current rate or window.
    Policy {
        /// The policy: a pretrained one, a run directory, or a `.onnx` file.
        #[schemars(length(min = 1, max = 4096))]
        policy: String,
        /// Measure of the distance from an action's result to the target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
}

/// Measure of the distance from a result to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// |ln(result / target)|.
    Log,
    /// |result − target|.
    Linear,
}

impl ExpertSpec {
    /// Return the measure of distances, if the declaration has one.
    #[must_use]
    pub fn nearest(&self) -> Option<Distance> {
        match self {
            Self::BestWindow { nearest, .. }
            | Self::FluidBdp { nearest, .. }
            | Self::GainSchedule { nearest, .. }
            | Self::Policy { nearest, .. } => *nearest,
        }
    }
}

const fn most_of_the_queue() -> f64 {
    0.8
}
const fn startup_gain() -> f64 {
    2.89
}
const fn drain_gain() -> f64 {
    1.0 / 2.89
}
fn probe_cycle() -> Vec<f64> {
    vec![1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
}
