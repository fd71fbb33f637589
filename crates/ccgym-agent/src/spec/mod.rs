//! An agent as data. Times are whole nanoseconds, rates bit/s, windows packets of full wire size.
//!
//! ```text
//! { "name": "aurora",
//!   "clock": {"kind": "fixed", "interval": ns, "on_ack": false, "tick": 0}
//!          | {"kind": "rtt", "multiple": 0.5, "of": "mean|smoothed|min", "floor": ns, "ceiling": null | ns,
//!             "warm_up_rtts": 0.0, "first_rtts": multiple, "no_ack": ns}
//!          | {"kind": "per_ack", "every": 1},
//!   "decision_latency": 0,
//!   "observation": {"features": [FEATURE…], "history": 1, "previous_action": "none|value|one_hot",
//!                   "initial_action": null},
//!   "action": {"map": MAP, "target": "rate|cwnd|both", "limits": {"rate": [1e4, 1e12], "window": [2, 1e6],
//!              "packets_per_min_rtt": 0}, "bounds": [-1, 1], "smoothing": w | [[min_rtt_ns, w], …],
//!              "pace": "none|cwnd_over_min_rtt|cwnd_over_srtt",
//!              "cwnd_cap": null | {"bdp": 2.0, "packets": 4, "startup": null, "estimate": "max_delivery_rate"},
//!              "inner": null | {"scheme": "cubic", "params": {}, "role": "gain|cap"}},
//!   "reward": {"scale": 1.0, "terms": [{"term": NAME, "weight": w, "name": null, "phase": null, …parameters}]},
//!   "startup": {"kind": "rate", "rate": bit/s} | {"kind": "window", "packets": 10}
//!            | {"kind": "packets_per_rtt", "packets": 10}
//!            | {"kind": "slow_start", "packets": 10, "exit": ["loss", "plateau", "delay"]}
//!            | {"kind": "inner"} | {"kind": "none"},
//!   "guard": {"kind": "none"} | {"kind": "floor_recovery", "steps": 20, "loss": 0.05, "latency_ratio": 1.2,
//!             "lift": 0.5, "after_timeout": true}
//!          | {"kind": "recovery", "share": 0.125, "near": 2, "memory": ns, "patience": ns, "loss": 0.1, "lift": 0.9,
//!             "hold": ns, "longest": ns},
//!   "phases": {"window": 10, "growth": 0.25, "plateau_steps": 3, "reenter_growth": 0.25, "reenter_steps": 2},
//!   "min_rtt_window": null | n,
//!   "expert": null | EXPERT (expert.rs) }
//!
//! EXPRESSION = "SIGNAL" | "FUNCTION(SIGNAL, n)" with FUNCTION mean, min, max, std or sum over the latest n intervals,
//!              or previous: the value n intervals ago.
//! FEATURE = {"signal": EXPRESSION, "name": null, "minus": EXPRESSION|number, "over": EXPRESSION|number,
//!            "when_undefined": 0, "difference": n | {"steps": n | "rtts": x, "at_most": n, "relative": false},
//!            "log": false | true | {"plus": eps}, "ewma": alpha, "scale": 1, "clip": [lo, hi], "empty": 0,
//!            "history": null}, applied in this order.
//! MAP = {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]} | {"kind": "signed_multiply", "delta": d}
//!     | {"kind": "exponential", "base": b} | {"kind": "gain_on_estimate", "gains": […], "estimate": EXPRESSION}
//!     | {"kind": "set", "low": x, "high": y, "log": false} | {"kind": "pair", "delta": d} | {"kind": "passive"}
//! ```

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

/// An agent: when it decides, what it sees, what it does, and what it is rewarded for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
pub struct AgentSpec {
    /// Name.
    #[serde(default = "unnamed")]
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[A-Za-z0-9][\w.+-]*$"))]
    pub name: String,
    /// When it decides.
    pub clock: ClockSpec,
    /// Time from a decision to its effect.
    #[serde(default)]
    pub decision_latency: TimeSpan,
    /// What it sees.
    pub observation: ObservationSpec,
    /// What it does.
    pub action: ActionSpec,
    /// What it is rewarded for.
    #[serde(default)]
    pub reward: RewardSpec,
    /// How the flow starts.
    pub startup: StartupSpec,
    /// What rescues it.
    #[serde(default)]
    pub guard: GuardSpec,
    /// Thresholds of the phases that features and reward terms may refer to.
    #[serde(default)]
    pub phases: PhasesSpec,
    /// Intervals over which the smallest round trip is taken, for everything that this says `min_rtt` of; the flow's life
    /// unless given. Where a path's round trip grows, what was the smallest once is wrong for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub min_rtt_window: Option<u32>,
    /// Who teaches it; of no effect on what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<ExpertSpec>,
}

/// When decisions are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Clock")]
pub enum ClockSpec {
    /// At equal distances.
    Fixed {
        /// Distance.
        #[schemars(range(min = 1))]
        interval: TimeSpan,
        /// Decide at the first acknowledgement strictly more than `interval` after the previous decision instead of by
        /// a timer (Indigo).
        #[serde(default)]
        on_ack: bool,
        /// With `on_ack`: compare times cut to whole ticks, as Indigo's clock of whole milliseconds does. Zero: exact.
        #[serde(default)]
        tick: TimeSpan,
    },
    /// At multiples of a round trip.
    Rtt {
        /// Interval over round trip.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1000))]
        multiple: f64,
        /// Which round trip.
        #[serde(default)]
        of: RttSource,
        /// Shortest interval.
        #[serde(default = "ten_milliseconds")]
        #[schemars(range(min = 1))]
        floor: TimeSpan,
        /// Longest interval; none unless given. After a silence the mean round trip is as long as that was.
        #[serde(default)]
        #[schemars(range(min = 1))]
        ceiling: Option<TimeSpan>,
        /// Unrecorded time before the first decision, in round trips of the first sample.
        #[serde(default)]
        #[schemars(range(min = 0, max = 1000))]
        warm_up_rtts: f64,
        /// Length of the first recorded interval in round trips of the first sample; `multiple` unless given.
        #[serde(default)]
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1000))]
        first_rtts: Option<f64>,
        /// Interval while there is no round-trip sample.
        #[serde(default = "one_second")]
        #[schemars(range(min = 1))]
        no_ack: TimeSpan,
    },
}

/// Which round trip paces the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttSource {
    /// Mean of the previous interval's samples.
    #[default]
    Mean,
    /// Smoothed (RFC 6298).
    Smoothed,
    /// Smallest of the flow's life.
    Min,
}

/// What the agent is rewarded for: scale × Σ weight × term.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reward")]
pub struct RewardSpec {
    /// Factor of the sum.
    #[serde(default = "unity")]
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

/// Where a flow stands, as Eagle's expert divides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The delivery rate still grows.
    #[default]
    Startup,
    /// The queue that start-up built leaves.
    Drain,
    /// Afterward.
    Probe,
}

/// Thresholds of the phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Phases")]
pub struct PhasesSpec {
    /// Intervals over which the greatest delivery rate is taken.
    #[schemars(range(min = 1, max = 1000))]
    pub window: u32,
    /// Relative growth of it below which an interval counts as flat.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub growth: f64,
    /// Flat intervals that end start-up.
    #[schemars(range(min = 1, max = 10_000))]
    pub plateau_steps: u32,
    /// A single one ends it if the mean round trip exceeds the smallest by more than this part of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub exit_queue: Option<f64>,
    /// Relative growth of it above its lowest value since start-up from which start-up begins again …
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub reenter_growth: f64,
    /// … if it is seen in so many intervals in a row, without a queue.
    #[schemars(range(min = 1, max = 10_000))]
    pub reenter_steps: u32,
}

impl Default for PhasesSpec {
    fn default() -> Self {
        Self { window: 10, growth: 0.25, plateau_steps: 3, exit_queue: None, reenter_growth: 0.25, reenter_steps: 2 }
    }
}

/// How the flow starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Start")]
pub enum StartupSpec {
    /// At a rate.
    Rate {
        /// bit/s.
        #[schemars(extend("format" = "flow_rate"))]
        rate: f64,
    },
    /// With a window.
    Window {
        /// Packets.
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 1e9))]
        packets: f64,
    },
    /// With so many packets, unpaced, before the first round-trip sample; then at so many per that round trip.
    PacketsPerRtt {
        /// Packets.
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 1e9))]
        packets: f64,
    },
    /// Doubling each round trip until a sign says to stop; the agent is not asked before.
    SlowStart {
        /// Packets at first.
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 1e9))]
        packets: f64,
        /// The signs.
        #[serde(default = "every_exit")]
        #[schemars(length(min = 1))]
        exit: Vec<Exit>,
    },
    /// As the base scheme starts; the agent is not asked before that has left slow start.
    Inner {},
    /// As the base scheme starts, the agent being asked from the first interval on.
    None {},
}

/// A sign that ends slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// A loss or a timeout.
    Loss,
    /// The greatest delivery rate grew by less than a quarter in each of three round trips.
    Plateau,
    /// The smallest round trip of the latest round is an eighth above the smallest of the flow's life.
    Delay,
}

/// What rescues the flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Guard")]
pub enum GuardSpec {
    /// Nothing.
    None {},
    /// Search upwards from a rate that is low for no visible reason, as slow start does.
    Recovery(RecoverySpec),
}

impl Default for GuardSpec {
    fn default() -> Self {
        Self::None {}
    }
}

/// When a rate is low for no visible reason, and what is done about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Recovery")]
pub struct RecoverySpec {
    /// Low is what is at most this part of the greatest rate that the path is known to carry …
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1))]
    pub fraction: f64,
    /// … and at most this multiple of the floor.
    #[schemars(range(min = 1, max = 1e6))]
    pub near: f64,
    /// For how long that knowledge holds. Silence does not count.
    #[schemars(range(min = 1))]
    pub memory: TimeSpan,
    /// How long the rate must be low, and the path clear, before the first search.
    #[schemars(range(min = 1))]
    pub patience: TimeSpan,
    /// A path is clear up to this loss over that time, 0–1; a search ends where loss rises by more.
    #[schemars(extend("format" = "probability"))]
    pub loss: f64,
    /// Part of the rate found that the flow is left at.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1))]
    pub lift: f64,
    /// How long it is held there before the agent decides again; doubles each time the agent falls back at once.
    #[schemars(range(min = 1))]
    pub hold: TimeSpan,
    /// Longest hold, longest wait between searches that find nothing, and how long a rate may be low on a path that is
    /// not clear: twice that the second time, four times from the third on.
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

fn unnamed() -> String {
    "agent".to_owned()
}
const fn ten_milliseconds() -> TimeSpan {
    TimeSpan::from_millis(10)
}
const fn one_second() -> TimeSpan {
    TimeSpan::from_millis(1000)
}
const fn one() -> u32 {
    1
}
const fn unity() -> f64 {
    1.0
}
const fn ten() -> f64 {
    10.0
}
fn every_exit() -> Vec<Exit> {
    vec![Exit::Loss, Exit::Plateau, Exit::Delay]
}
