//! The reward of an agent: a weighted sum of terms, which are rows of `terms.rs`.

mod parameters;
mod terms;

use std::sync::Arc;

use serde_json::{json, Map, Value};

use super::expressions::{Expressions, Values};
use super::memory::Memory;
use super::spec::{Phase, RewardSpec};
use super::truth::GroundTruth;
use ccgym_core::Error;

use parameters::{Kind, Parameter, Parameters};

/// Every kind of term, in the order of documentation.
pub(crate) static KINDS: &[TermKind] = terms::KINDS;

pub(crate) struct TermKind {
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    /// Formula.
    pub formula: &'static str,
    /// Source.
    pub source: &'static str,
    /// True if it needs the simulator's ground truth, with any parameters.
    pub needs_truth: bool,
    pub parameters: &'static [Parameter],
    pub build: fn(&Parameters, &mut Signals<'_>) -> Term,
}

/// Return the JSON schema of a term, one of those in the table.
#[must_use]
pub fn schema() -> Value {
    let variants = KINDS.iter().map(|kind| {
        let mut properties = Map::new();
        properties.insert("term".to_owned(), json!({"type": "string", "const": kind.name}));
        for (name, schema) in [
            ("weight", json!({"type": "number", "description": "Factor; negative for costs."})),
            (
                "name",
                json!({"type": "string", "minLength": 1, "maxLength": 100, "default": null,
                       "description": "Name to show, and in logs; the term's by default."}),
            ),
            (
                "phase",
                json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["startup", "drain", "probe"]},
                       "default": null, "description": "Phases in which it counts; all by default."}),
            ),
        ] {
            properties.insert(name.to_owned(), schema);
        }
        properties.extend(kind.parameters.iter().map(|p| (p.name.to_owned(), p.schema())));
        let required = kind.parameters.iter().filter(|p| p.default.is_empty()).map(|p| p.name);
        let required: Vec<_> = ["term", "weight"].into_iter().chain(required).collect();
        json!({"type": "object", "description": kind.help, "properties": properties, "required": required})
    });
    json!({"description": "One term of a reward.", "oneOf": variants.collect::<Vec<_>>()})
}

/// A term, ready to be computed.
pub(crate) struct Term {
    pub unit: String,
    pub formula: String,
    pub compute: Compute,
}

/// The value of a term, without its weight.
type Compute = Arc<dyn Fn(&Outcome<'_>) -> f64 + Send + Sync>;

/// Inputs of terms.
pub(crate) struct Outcome<'a> {
    /// The flow's memory, this interval included.
    pub memory: &'a Memory,
    /// Values of the expressions in use.
    pub values: &'a Values,
    /// The truth.
    pub truth: &'a GroundTruth,
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
    pub(crate) fn new(spec: &RewardSpec, expressions: &mut Expressions) -> Result<Self, Error> {
        Error::ensure(spec.scale.is_finite(), "reward.scale", spec.scale, "a number")?;
        let mut terms: Vec<Weighted> = Vec::new();
        for (i, term) in spec.terms.iter().enumerate() {
            let place = format!("reward.terms[{i}]");
            let at = |field: &str| format!("{place}.{field}");
            let names = KINDS.iter().map(|kind| kind.name);
            let kind = KINDS.iter().find(|kind| kind.name == term.term);
            let kind =
                kind.ok_or_else(|| Error::unknown("unknown-name", &at("term"), "a kind of term", &term.term, names))?;
            Error::ensure(term.weight.is_finite(), &at("weight"), term.weight, "a number")?;
            let given = Parameters::resolve(kind.parameters, &term.parameters, &place, expressions)?;
            let Term { unit, formula, compute } = (kind.build)(&given, &mut Signals(expressions));
            let needs_truth = kind.needs_truth;
            let name = term.name.clone().unwrap_or_else(|| kind.name.to_owned());
            if terms.iter().any(|other| other.name == name) {
                let expected = "names that differ: give one of the terms a name";
                return Err(Error::new(at("name"), format!("\"{name}\" again"), expected));
            }
            let none = term.phase.as_ref().is_some_and(Vec::is_empty);
            Error::ensure(!none, &at("phase"), "none", "at least one of startup, drain, probe")?;
            let (weight, phases) = (term.weight * spec.scale, term.phase.clone());
            terms.push(Weighted { name, unit, formula, weight, phases, needs_truth, compute });
        }
        Ok(Self { terms })
    }

    /// Write each term, weighted and scaled, to `terms` as far as that reaches; returns the sum of all. A term that is
    /// not finite counts as 0.
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

/// Return `a / b`; 0 if `b` is not positive.
fn over(a: f64, b: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else {
        0.0
    }
}

/// Any number from 0 on.
const POSITIVE: Kind = Kind::Number { low: 0.0, high: f64::MAX };

/// Make a parameter, in one line.
const fn parameter(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Parameter {
    Parameter { name, kind, default, help }
}

/// The signals that a term always needs.
pub(crate) struct Signals<'a>(&'a mut Expressions);

impl Signals<'_> {
    /// Return the index of the value of a signal.
    fn index(&mut self, signal: &'static str) -> usize {
        self.0.add("reward", signal).expect("terms name signals that exist; tests build every kind")
    }
}

#[cfg(test)]
mod tests;
