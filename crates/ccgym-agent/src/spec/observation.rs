//! What an agent sees, as data.

use serde::{Deserialize, Serialize};

use super::{one, unity};

/// What the agent sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservationSpec {
    /// Features of one interval, in order.
    pub features: Vec<FeatureSpec>,
    /// Intervals seen, oldest first.
    #[serde(default = "one")]
    pub history: u32,
    /// Whether each interval also shows the action in force during it.
    #[serde(default)]
    pub previous_action: PreviousAction,
    /// What is shown as the action before the first; nothing (zeros) unless given.
    #[serde(default)]
    pub initial_action: Option<f64>,
}

/// How the previous action appears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviousAction {
    /// Not.
    #[default]
    None,
    /// As the numbers that were given.
    Value,
    /// As one number per possible action, 1 for the one taken.
    OneHot,
}

/// One number that the agent sees: a signal and what is done to it, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureSpec {
    /// The signal, or a statistic of it over several intervals.
    pub signal: String,
    /// Name to show; made from the parts unless given.
    #[serde(default)]
    pub name: Option<String>,
    /// Subtracted.
    #[serde(default)]
    pub minus: Option<Operand>,
    /// Divided by.
    #[serde(default)]
    pub over: Option<Operand>,
    /// The ratio where the divisor is zero.
    #[serde(default)]
    pub when_undefined: f64,
    /// Change since some intervals ago.
    #[serde(default)]
    pub difference: Option<DifferenceSpec>,
    /// Natural logarithm.
    #[serde(default)]
    pub log: LogSpec,
    /// Weight of a new value in an exponentially weighted mean.
    #[serde(default)]
    pub ewma: Option<f64>,
    /// Multiplied by.
    #[serde(default = "unity")]
    pub scale: f64,
    /// Least and greatest value.
    pub clip: [f64; 2],
    /// Value before anything was recorded.
    #[serde(default)]
    pub empty: Option<f64>,
    /// Intervals seen of this feature; the observation's `history` unless given, and not more.
    #[serde(default)]
    pub history: Option<u32>,
}

/// A number, or the value of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Operand {
    /// A constant, in the signal's unit.
    Number(f64),
    /// An expression.
    Expression(String),
}

/// Over how many intervals a difference is taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DifferenceSpec {
    /// So many.
    Steps(u32),
    /// As many as make up a time.
    Lag(LagSpec),
}

/// A difference in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LagSpec {
    /// Intervals.
    #[serde(default)]
    pub steps: Option<u32>,
    /// Smallest round trips, turned into intervals by the length of the present one (at least one interval).
    #[serde(default)]
    pub rtts: Option<f64>,
    /// Most intervals.
    #[serde(default)]
    pub at_most: Option<u32>,
    /// Divide the change by the old value (0 where that is 0).
    #[serde(default)]
    pub relative: bool,
}

/// Whether and how a logarithm is taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LogSpec {
    /// Not, or with a billionth added.
    Plain(bool),
    /// With a number of one's own added.
    Plus {
        /// The number.
        plus: f64,
    },
}

impl Default for LogSpec {
    fn default() -> Self {
        Self::Plain(false)
    }
}
