//! What an agent sees, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;

/// What the agent sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Observation")]
pub struct ObservationSpec {
    /// Features of one interval, in order.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub features: Vec<FeatureSpec>,
    /// Number of intervals seen, oldest first.
    #[serde(default = "number::<u32, 1>")]
    #[schemars(range(min = 1, max = 1000))]
    pub history: u32,
    /// Whether each interval also shows the action in force during it.
    #[serde(default)]
    pub previous_action: PreviousAction,
    /// Shown as the action before the first; zeros unless given.
    #[serde(default)]
    pub initial_action: Option<f64>,
}

/// How the previous action appears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreviousAction {
    /// It does not.
    #[default]
    None,
    /// As its numbers.
    Value,
    /// As one number per possible action: 1 for the one taken, else 0.
    OneHot,
}

/// One number that the agent sees: a signal, transformed in the order of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Feature")]
pub struct FeatureSpec {
    /// The signal, or a statistic of it over several intervals.
    #[schemars(extend("format" = "expression"))]
    pub signal: String,
    /// Name to show; made from the parts unless given.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// Subtracted.
    #[serde(default)]
    #[schemars(extend("format" = "operand"))]
    pub minus: Option<Operand>,
    /// Divided by.
    #[serde(default)]
    #[schemars(extend("format" = "operand"))]
    pub over: Option<Operand>,
    /// The ratio where the divisor is zero.
    #[serde(default)]
    pub when_undefined: f64,
    /// Natural logarithm.
    #[serde(default)]
    pub log: LogSpec,
    /// Multiplied by.
    #[serde(default = "number::<f64, 1>")]
    pub scale: f64,
    /// Min and max.
    #[schemars(extend("format" = "bounds"))]
    pub clip: [f64; 2],
    /// Value before anything was recorded.
    #[serde(default)]
    pub empty: Option<f64>,
    /// Intervals seen of this feature; the observation's `history` unless given, and not more.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub history: Option<u32>,
}

/// A number, or the value of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Operand {
    /// A constant, in the signal's unit.
    Number(f64),
    /// An expression.
    Expression(String),
}

/// Whether and how a logarithm is taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Log")]
pub enum LogSpec {
    /// No logarithm, or with 1e-9 added first.
    Plain(bool),
    /// With another number added first.
    Plus {
        /// Added first, in the unit of the value.
        #[schemars(extend("exclusiveMinimum" = 0))]
        plus: f64,
    },
}

impl Default for LogSpec {
    fn default() -> Self {
        Self::Plain(false)
    }
}
