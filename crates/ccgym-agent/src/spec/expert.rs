//! Who teaches an agent, as data.
//!
//! ```text
//! EXPERT = {"kind": "best_window", "queueing": ns}
//!        | {"kind": "fluid_bdp", "queue_fraction": 0.8, "samples": 5}
//!        | {"kind": "gain_schedule", "startup": 2.89, "drain": 0.346, "cycle": [1.25, 0.75, 1, 1, 1, 1, 1, 1],
//!           "window": 10}
//!        | {"kind": "scheme", "scheme": "bbr", "params": {}}, each with "nearest": null | "log" | "linear"
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use ccgym_core::units::TimeSpan;

/// What knows better, in training: its target is turned into the action that comes nearest to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Expert")]
pub enum ExpertSpec {
    /// A fixed window: the flow's own (parameter `expert_window` of the scheme `learned`), or what fills the path and
    /// a little of its queue.
    BestWindow {
        /// Time that the queue may take.
        #[serde(default = "five_milliseconds")]
        queueing: TimeSpan,
        /// How the distance of an action's result from the target is measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
    /// The window that fills the path and a share of its queue, less what stands there (Muses).
    FluidBdp {
        /// Share of the queue's limit.
        #[serde(default = "most_of_the_queue")]
        #[schemars(extend("format" = "probability"))]
        queue_fraction: f64,
        /// Decisions over which the greatest such window counts.
        #[serde(default = "five")]
        #[schemars(range(min = 1, max = 1000))]
        samples: u32,
        /// How the distance of an action's result from the target is measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
    /// The greatest delivery rate of the latest intervals, times a gain that depends on the phase (BBR).
    GainSchedule {
        /// Gain while the delivery rate grows.
        #[serde(default = "startup_gain")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 100))]
        startup: f64,
        /// Gain while the queue of start-up drains.
        #[serde(default = "drain_gain")]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 100))]
        drain: f64,
        /// Gains afterward, one per interval, over and over.
        #[serde(default = "probe_cycle")]
        #[schemars(length(min = 1, max = 1000))]
        cycle: Vec<f64>,
        /// Intervals with acknowledgements over which the greatest delivery rate is taken.
        #[serde(default = "ten_intervals")]
        #[schemars(range(min = 1, max = 1000))]
        window: u32,
        /// How the distance of an action's result from the target is measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Distance>,
    },
}

/// Which of two results is nearer to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// That with the smaller |ln(result / target)|.
    Log,
    /// That with the smaller |result − target|.
    Linear,
}

impl ExpertSpec {
    /// How distances are measured, if the declaration says so.
    #[must_use]
    pub fn nearest(&self) -> Option<Distance> {
        match self {
            Self::BestWindow { nearest, .. } | Self::FluidBdp { nearest, .. } | Self::GainSchedule { nearest, .. } => {
                *nearest
            }
        }
    }
}

const fn five_milliseconds() -> TimeSpan {
    TimeSpan::from_millis(5)
}
const fn most_of_the_queue() -> f64 {
    0.8
}
const fn five() -> u32 {
    5
}
const fn ten_intervals() -> u32 {
    10
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
