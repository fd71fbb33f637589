//! The observation of an agent, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;

/// The observation of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Observation")]
pub struct ObservationSpec {
    /// Features of one interval, in order.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub features: Vec<FeatureSpec>,
    /// Number of intervals, oldest first.
    #[serde(default = "number::<u32, 1>")]
    #[schemars(range(min = 1, max = 1000))]
    pub history: u32,
    /// Form in which each interval also shows its action.
    #[serde(default)]
    pub previous_action: PreviousAction,
    /// Value shown as the action before the first; zeros unless given.
    #[serde(default)]
    pub initial_action: Option<f64>,
}

/// Form of the previous action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreviousAction {
    /// Not shown.
    #[default]
    None,
    /// As its numbers.
    Value,
    /// As one number per possible action: 1 for the one taken, else 0.
    OneHot,
}

/// One number of the observation: a signal, transformed in the order of the fields.
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
    /// The result if the divisor is zero.
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
    /// Number of intervals of this feature; at most the observation's `history`, which is the default.
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

/// Logarithm of a value, if any.
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
