//! An agent as data: the schema of these types defines the fields for users. Times are whole nanoseconds, rates bit/s,
//! windows packets of full wire size.

mod action;
mod expert;
mod observation;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use ccgym_core::units::TimeSpan;

pub use action::*;
pub use expert::*;
pub use observation::*;

/// An agent: clock, observation, action and reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
pub struct AgentSpec {
    /// Name.
    #[serde(default = "unnamed")]
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[A-Za-z0-9][\w.+-]*$"))]
    pub name: String,
    /// Times of decisions.
    pub clock: ClockSpec,
    /// Time from a decision to its effect.
    #[serde(default)]
    #[schemars(range(max = 60_000_000_000_u64))]
    pub decision_latency: TimeSpan,
    /// Its observation.
    pub observation: ObservationSpec,
    /// Its action.
    pub action: ActionSpec,
    /// Its reward.
    #[serde(default)]
    pub reward: RewardSpec,
    /// Start of the flow.
    pub startup: StartupSpec,
    /// Guard against a rate that is too low.
    #[serde(default)]
    pub guard: GuardSpec,
    /// Thresholds of the phases that features and reward terms may refer to.
    #[serde(default)]
    pub phases: PhasesSpec,
    /// Intervals over which `min_rtt` is taken; all since the flow started unless given. If a path's RTT grows, the min
    /// since the start stays too low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub min_rtt_window: Option<u32>,
    /// True to send ECN-capable packets, with ECT(0): queues can then mark them instead of dropping, and the signals
    /// `ce_packets` and `ce_fraction` count the marks. A base scheme must react to marks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// Expert whose labels it can imitate; does not affect the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<ExpertSpec>,
}

/// Times of decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Clock")]
pub enum ClockSpec {
    /// At fixed intervals.
    Fixed {
        /// Length.
        #[schemars(range(min = 1000))]
        interval: TimeSpan,
        /// Decide at the first acknowledgement strictly more than `interval` after the previous decision instead of by
        /// a timer (Indigo).
        #[serde(default)]
        on_ack: bool,
        /// With `on_ack`: compare times truncated to whole ticks, as Indigo does with milliseconds. Zero: exact.
        #[serde(default)]
        tick: TimeSpan,
    },
    /// At multiples of a round trip.
    Rtt {
        /// Interval over round trip.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1000))]
        multiple: f64,
        /// RTT that sets the interval.
        #[serde(default)]
        of: RttSource,
        /// Min interval.
        #[serde(default = "millis::<10>")]
        #[schemars(range(min = 1000))]
        floor: TimeSpan,
        /// Max interval; unlimited unless given. After a silence the mean RTT is as long as the silence.
        #[serde(default)]
        #[schemars(range(min = 1))]
        ceiling: Option<TimeSpan>,
        /// Unrecorded time before the first decision, in multiples of the first round-trip sample.
        #[serde(default)]
        #[schemars(range(min = 0, max = 1000))]
        warm_up_rtts: f64,
        /// Length of the first recorded interval in multiples of the first round-trip sample; `multiple` unless given.
        #[serde(default)]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1000))]
        first_rtts: Option<f64>,
        /// Interval while there is no round-trip sample.
        #[serde(default = "millis::<1000>")]
        #[schemars(range(min = 1000))]
        no_ack: TimeSpan,
    },
}

/// RTT that sets the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttSource {
    /// Mean of the previous interval's samples.
    #[default]
    Mean,
    /// Smoothed (RFC 6298).
    Smoothed,
    /// Min since the flow started.
    Min,
}

/// The reward: scale × Σ weight × term.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reward")]
pub struct RewardSpec {
    /// Factor of the sum.
    #[serde(default = "number::<f64, 1>")]
    pub scale: f64,
    /// The terms.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub terms: Vec<TermSpec>,
}

impl Default for RewardSpec {
    fn default() -> Self {
        Self { scale: 1.0, terms: Vec::new() }
    }
}

/// One term of the reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Term")]
pub struct TermSpec {
    /// Its kind.
    pub term: String,
    /// Factor; negative for costs.
    pub weight: f64,
    /// Name to show; the kind unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Phases in which it counts; all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Vec<Phase>>,
    /// The kind's own parameters.
    #[serde(flatten)]
    pub parameters: BTreeMap<String, Value>,
}

/// Phase of a flow, as in Eagle's expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The delivery rate still grows.
    #[default]
    Startup,
    /// The queue of start-up drains.
    Drain,
    /// Afterward.
    Probe,
}

/// Thresholds of the phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Phases")]
pub struct PhasesSpec {
    /// Intervals over which the max delivery rate is taken.
    #[schemars(range(min = 1, max = 1000))]
    pub window: u32,
    /// Relative growth of that rate below which an interval counts as flat.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub growth: f64,
    /// Flat intervals that end start-up.
    #[schemars(range(min = 1, max = 10_000))]
    pub plateau_steps: u32,
    /// One flat interval ends it if the mean round trip exceeds the minimum by more than this fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub exit_queue: Option<f64>,
    /// Relative growth of the max delivery rate above its minimum since start-up at which start-up begins again …
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub reenter_growth: f64,
    /// … if seen in this number of intervals in a row, without a queue.
    #[schemars(range(min = 1, max = 10_000))]
    pub reenter_steps: u32,
}

impl Default for PhasesSpec {
    fn default() -> Self {
        Self { window: 10, growth: 0.25, plateau_steps: 3, exit_queue: None, reenter_growth: 0.25, reenter_steps: 2 }
    }
}

/// Start of the flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Start")]
pub enum StartupSpec {
    /// At a rate.
    Rate {
        /// bit/s.
        #[schemars(range(min = 1), extend("format" = "flow_rate"))]
        rate: f64,
    },
    /// With a window.
    Window {
        /// Packets.
        #[serde(default = "number::<f64, 10>")]
        #[schemars(range(min = 1, max = 1e9))]
        packets: f64,
    },
    /// A number of packets, unpaced, before the first round-trip sample; then at that number per round trip.
    PacketsPerRtt {
        /// Packets.
        #[serde(default = "number::<f64, 10>")]
        #[schemars(range(min = 1, max = 1e9))]
        packets: f64,
    },
    /// Doubling each round trip until one of the exits; the agent does not decide before.
    SlowStart {
        /// Packets at first.
        #[serde(default = "number::<f64, 10>")]
        #[schemars(range(min = 1, max = 1e9))]
        packets: f64,
        /// Events that end it.
        #[serde(default = "every_exit")]
        #[schemars(length(min = 1))]
        exit: Vec<Exit>,
    },
    /// As the base scheme starts; the agent does not decide before that has left slow start.
    Inner {
        /// Until then each interval multiplies the window of the base scheme by this.
        #[serde(default = "number::<f64, 1>")]
        #[schemars(range(min = 1, max = 10))]
        gain: f64,
    },
    /// As the base scheme starts; the agent decides from the first interval on.
    None {},
}

/// Event that ends slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// A loss or a timeout.
    Loss,
    /// The max delivery rate grew by less than a quarter in each of three round trips.
    Plateau,
    /// The min RTT of the latest round is an eighth above the min since the flow started.
    Delay,
}

/// Guard against a rate that is too low.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Guard")]
pub enum GuardSpec {
    /// No guard.
    None {},
    /// Search upwards from a rate that is low for no visible reason, as slow start does.
    Recovery(RecoverySpec),
}

impl AgentSpec {
    /// Return the same agent as a teacher on another agent's flow: it decides at once, and only its policy changes its
    /// decision.
    #[must_use]
    pub fn as_teacher(&self) -> Self {
        Self {
            decision_latency: TimeSpan::ZERO,
            startup: StartupSpec::Window { packets: 10.0 },
            guard: GuardSpec::None {},
            expert: None,
            ..self.clone()
        }
    }
}

impl Default for GuardSpec {
    fn default() -> Self {
        Self::None {}
    }
}

/// Conditions of a low rate for no visible reason, and the reaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Recovery")]
pub struct RecoverySpec {
    /// A rate is low up to this fraction of the max rate that the path is known to carry …
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1))]
    pub fraction: f64,
    /// … or up to this multiple of the lower bound.
    #[schemars(range(min = 1, max = 1e6))]
    pub near: f64,
    /// Time for which the max rate is remembered; silence does not count.
    #[schemars(range(min = 1))]
    pub memory: TimeSpan,
    /// Time of a low rate on a clear path before the first search.
    #[schemars(range(min = 1))]
    pub patience: TimeSpan,
    /// Loss over that time up to which a path is clear, 0–1; a search ends if loss rises by more.
    #[schemars(extend("format" = "probability"))]
    pub loss: f64,
    /// Fraction of the rate found at which the flow is held.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1))]
    pub lift: f64,
    /// Time of holding before the agent decides again; doubles each time the rate falls back at once.
    #[schemars(range(min = 1))]
    pub hold: TimeSpan,
    /// Max hold, max wait between searches that find nothing, and time of a low rate on a path that is not clear: twice
    /// that the second time, four times from the third on.
    #[schemars(range(min = 1))]
    pub max_hold: TimeSpan,
}

impl Default for RecoverySpec {
    fn default() -> Self {
        Self {
            fraction: 0.125,
            near: 2.0,
            memory: TimeSpan::from_millis(60_000),
            patience: TimeSpan::from_millis(500),
            loss: 0.1,
            lift: 0.9,
            hold: TimeSpan::from_millis(1_000),
            max_hold: TimeSpan::from_millis(16_000),
        }
    }
}

const fn millis<const N: u64>() -> TimeSpan {
    TimeSpan::from_millis(N)
}
fn number<T: From<u32>, const N: u32>() -> T {
    T::from(N)
}
fn unnamed() -> String {
    "agent".to_owned()
}
fn every_exit() -> Vec<Exit> {
    vec![Exit::Loss, Exit::Plateau, Exit::Delay]
}
