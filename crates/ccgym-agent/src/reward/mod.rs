//! What an agent is rewarded for: a weighted sum of terms, one file each.

mod delay_ratio;
mod delay_target;
mod delivery;
mod fair_gauss;
mod fairness;
mod latency;
mod log_power;
mod loss;
mod orca_power;
mod parameters;
mod queue_delay;
mod signal;
mod square_power;
mod stability;
mod throughput;
mod utilization;

use std::sync::Arc;

use super::error::AgentError;
use super::expressions::{Expressions, Values};
use super::memory::Memory;
use super::spec::{Phase, RewardSpec};
use super::truth::PathTruth;
use ccgym_core::monitor::MonitorInterval;

use parameters::{Kind, Parameter, Parameters};

/// Every kind of term, in the order of documentation.
pub(crate) static KINDS: &[&TermKind] = &[
    &throughput::KIND,
    &latency::KIND,
    &queue_delay::KIND,
    &loss::KIND,
    &utilization::KIND,
    &log_power::KIND,
    &square_power::KIND,
    &orca_power::KIND,
    &delay_target::KIND,
    &delay_ratio::KIND,
    &delivery::KIND,
    &fairness::KIND,
    &fair_gauss::KIND,
    &stability::KIND,
    &signal::KIND,
];

/// A kind of term.
pub(crate) struct TermKind {
    pub name: &'static str,
    /// What it is, in one line.
    pub formula: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it needs what only the simulator knows, whatever its parameters.
    pub needs_truth: bool,
    pub parameters: &'static [Parameter],
    pub build: fn(&Parameters, &mut Expressions) -> Term,
}

/// A term, ready to be computed.
pub(crate) struct Term {
    pub unit: String,
    pub formula: String,
    pub needs_truth: bool,
    pub compute: Compute,
}

/// The value of a term, without its weight.
type Compute = Arc<dyn Fn(&Outcome<'_>) -> f64 + Send + Sync>;

/// What terms are computed from.
pub(crate) struct Outcome<'a> {
    /// The interval that ended.
    pub m: &'a MonitorInterval,
    /// The flow's memory, this interval included.
    pub memory: &'a Memory,
    /// Values of the expressions in use.
    pub values: &'a Values,
    /// The truth.
    pub truth: &'a PathTruth,
}

/// A reward, ready to be computed.
#[derive(Clone)]
pub(crate) struct Reward {
    /// Its terms.
    pub terms: Vec<Weighted>,
}

/// A term with its weight, the reward's scale included.
#[derive(Clone)]
pub(crate) struct Weighted {
    pub name: String,
    pub unit: String,
    pub formula: String,
    pub weight: f64,
    pub phases: Option<Vec<Phase>>,
    pub needs_truth: bool,
    compute: Compute,
}

impl Reward {
    /// Make the reward of `spec`.
    pub(crate) fn new(spec: &RewardSpec, expressions: &mut Expressions) -> Result<Self, AgentError> {
        AgentError::ensure(spec.scale.is_finite(), "reward.scale", spec.scale, "a number")?;
        let mut terms: Vec<Weighted> = Vec::new();
        for (i, term) in spec.terms.iter().enumerate() {
            let place = format!("reward.terms[{i}]");
            let at = |field: &str| format!("{place}.{field}");
            let names = KINDS.iter().map(|kind| kind.name);
            let kind = KINDS.iter().find(|kind| kind.name == term.term);
            let kind = kind.ok_or_else(|| AgentError::unknown(&at("term"), "a kind of term", &term.term, names))?;
            AgentError::ensure(term.weight.is_finite(), &at("weight"), term.weight, "a number")?;
            let given = Parameters::resolve(kind.parameters, &term.parameters, &place, expressions)?;
            let Term { unit, formula, needs_truth, compute } = (kind.build)(&given, expressions);
            let name = term.name.clone().unwrap_or_else(|| kind.name.to_owned());
            if terms.iter().any(|other| other.name == name) {
                let expected = "names that differ: give one of the terms a name";
                return Err(AgentError::new(at("name"), format!("\"{name}\" again"), expected));
            }
            let none = term.phase.as_ref().is_some_and(Vec::is_empty);
            AgentError::ensure(!none, &at("phase"), "none", "at least one of startup, drain, probe")?;
            let (weight, phases) = (term.weight * spec.scale, term.phase.clone());
            terms.push(Weighted { name, unit, formula, weight, phases, needs_truth, compute });
        }
        Ok(Self { terms })
    }

    /// Each term, weighted and scaled, into `terms` as far as that reaches; returns the sum of all. A term that is not
    /// finite counts as 0.
    pub(crate) fn compute(&self, outcome: &Outcome<'_>, terms: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for (i, term) in self.terms.iter().enumerate() {
            let counts = term.phases.as_ref().is_none_or(|phases| phases.contains(&outcome.memory.phase));
            let value = if counts { term.weight * (term.compute)(outcome) } else { 0.0 };
            let value = if value.is_finite() { value } else { 0.0 };
            sum += value;
            if let Some(term) = terms.get_mut(i) {
                *term = value;
            }
        }
        sum
    }
}

/// `a / b`; 0 where `b` is not positive.
fn over(a: f64, b: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else {
        0.0
    }
}

/// Any number from 0 on.
const POSITIVE: Kind = Kind::Number { low: 0.0, high: f64::MAX };

/// A parameter, in one line.
const fn parameter(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Parameter {
    Parameter { name, kind, default, help }
}

/// The index of the value of a signal that a term always needs.
fn needs(expressions: &mut Expressions, signal: &'static str) -> usize {
    expressions.add("reward", signal).expect("terms name signals that exist; tests build every kind")
}

#[cfg(test)]
mod tests;
