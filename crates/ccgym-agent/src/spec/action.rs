//! Actions of an agent, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use ccgym_core::units::TimeSpan;

/// The action of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Action")]
pub struct ActionSpec {
    /// Map from numbers to a rate, a window or a gain.
    pub map: MapSpec,
    /// The steered quantity.
    pub target: Target,
    /// Bounds of the steered quantity.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// Bounds of the numbers, for maps that take real numbers.
    #[serde(default = "unit_interval")]
    #[schemars(extend("format" = "bounds"))]
    pub bounds: [f64; 2],
    /// Part of the current value that each decision keeps, by the min RTT; nothing unless given (Muses' trees).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub smoothing: Vec<SmoothingSpec>,
    /// Pacing of a steered window.
    #[serde(default)]
    pub pace: Pace,
    /// Upper bound of the window.
    #[serde(default)]
    pub cwnd_cap: Option<CapSpec>,
    /// Base scheme whose window the agent overwrites; it continues from there with each acknowledgement (Orca). With
    /// the target `gain`, the scheme whose queue it scales.
    #[serde(default)]
    pub inner: Option<InnerSpec>,
}

/// Map from numbers to a rate, a window or a gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Map")]
pub enum MapSpec {
    /// One of several operations on the value in force: `*x`, `/x`, `+n`, `-n`. Amounts are packets for a window, and
    /// packets per min RTT for a rate.
    Discrete {
        /// The operations.
        #[schemars(length(min = 2, max = 10_000), extend("items" = {"type": "string", "format": "operation"}))]
        operations: Vec<String>,
    },
    /// Times 1 + delta·a, or over 1 − delta·a if a is negative (Aurora).
    SignedMultiply {
        /// Relative change per unit.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
        delta: f64,
    },
    /// Times base to the a-th power (Orca, Sage).
    Exponential {
        /// Base.
        #[schemars(extend("exclusiveMinimum" = 1), range(max = 1e6))]
        base: f64,
    },
    /// One of several gains times an estimate; nothing changes while the estimate is unknown.
    GainOnEstimate {
        /// The gains.
        #[schemars(
            length(min = 2, max = 10_000),
            extend("items" = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6})
        )]
        gains: Vec<f64>,
        /// The estimate: bit/s for a rate, packets for a window.
        #[serde(default = "max_delivery_rate")]
        #[schemars(extend("format" = "expression"))]
        estimate: String,
    },
    /// Two numbers: the first steers the rate, the second the window, each as `signed_multiply`.
    Pair {
        /// Relative change per unit.
        #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e6))]
        delta: f64,
    },
    /// No action: the base scheme decides.
    Passive {},
}

/// The steered quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The pacing rate; the window is open unless capped.
    Rate,
    /// The window.
    Cwnd,
    /// Both.
    Both,
    /// Factor on the packets that the base scheme lets wait in the queue: each decision maps the value 1.
    Gain,
}

impl Target {
    /// True if it includes the rate.
    #[must_use]
    pub const fn has_rate(self) -> bool {
        matches!(self, Self::Rate | Self::Both)
    }

    /// True if it includes the window.
    #[must_use]
    pub const fn has_window(self) -> bool {
        matches!(self, Self::Cwnd | Self::Both)
    }
}

/// Bounds of the steered quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Limits")]
pub struct LimitsSpec {
    /// Bounds of the rate, bit/s.
    #[schemars(extend("format" = "bounds"))]
    pub rate: [f64; 2],
    /// Bounds of the window, packets.
    #[schemars(extend("format" = "bounds"))]
    pub window: [f64; 2],
    /// Min rate in packets per min RTT.
    #[schemars(range(min = 0, max = 1e6))]
    pub packets_per_min_rtt: f64,
    /// Bounds of the gain; [0.01, 100] unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "bounds"))]
    pub gain: Option<[f64; 2]>,
}

impl LimitsSpec {
    /// Return the bounds of the gain.
    #[must_use]
    pub fn gain(&self) -> [f64; 2] {
        self.gain.unwrap_or([0.01, 100.0])
    }
}

impl Default for LimitsSpec {
    fn default() -> Self {
        Self { rate: [1e4, 1e12], window: [2.0, 1e6], packets_per_min_rtt: 0.0, gain: None }
    }
}

/// Part of the current value that a decision keeps: keep · old + (1 − keep) · new.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Smoothing")]
pub struct SmoothingSpec {
    /// Min RTT from which on this counts; of several the last one does.
    pub min_rtt: TimeSpan,
    /// Fraction of the old value.
    #[schemars(range(min = 0, max = 1))]
    pub keep: f64,
}

/// Pacing of a steered window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Unpaced: acknowledgements clock it.
    #[default]
    None,
    /// A window per min RTT.
    CwndOverMinRtt,
    /// A window per smoothed round trip.
    CwndOverSrtt,
}

/// An upper bound of the window: a multiple of the bandwidth-delay product plus packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cap")]
pub struct CapSpec {
    /// Multiple of estimate × min RTT.
    #[schemars(range(min = 0, max = 1e6))]
    pub bdp: f64,
    /// Packets added to that.
    #[schemars(range(min = 0, max = 1e9))]
    pub packets: f64,
    /// Multiple in start-up, where the estimate lags by a round trip; `bdp` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1e6))]
    pub startup: Option<f64>,
    /// The bandwidth, bit/s.
    #[serde(default = "max_delivery_rate")]
    #[schemars(extend("format" = "expression"))]
    pub estimate: String,
}

/// A base scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Inner")]
pub struct InnerSpec {
    /// Its name in the registry.
    #[schemars(length(min = 1, max = 100))]
    pub scheme: String,
    /// Its parameters.
    #[serde(default)]
    pub params: serde_json::Map<String, Value>,
}

const fn unit_interval() -> [f64; 2] {
    [-1.0, 1.0]
}
fn max_delivery_rate() -> String {
    "max_delivery_rate".to_owned()
}
