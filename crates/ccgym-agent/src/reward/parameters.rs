//! Parameters of reward terms: declared in a table, read with defaults; errors have a place and a suggestion.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use super::super::expressions::{Expression, Expressions};
use ccgym_core::Error;

/// Type of a parameter.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A number within bounds.
    Number { low: f64, high: f64 },
    /// One of several words.
    Word(&'static [&'static str]),
    /// An expression in this unit.
    Expression(&'static str),
}

/// One parameter.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    /// Default as JSON text; "null": optional. Empty: required.
    pub default: &'static str,
    pub help: &'static str,
}

impl Parameter {
    /// Return its JSON schema.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Number { low, high } => {
                let bound = |x: f64| if x.abs() < f64::MAX { json!(x) } else { Value::Null };
                json!({"type": "number", "minimum": bound(low), "maximum": bound(high)})
            }
            Kind::Word(words) => json!({"type": "string", "enum": words}),
            Kind::Expression(unit) => json!({"type": "string", "format": "expression", "unit": unit}),
        };
        schema["description"] = json!(self.help);
        if !self.default.is_empty() {
            schema["default"] = serde_json::from_str(self.default).expect("defaults are JSON");
        }
        schema
    }
}

/// The parameters of one term, checked. Expressions are indices of values.
pub(crate) struct Parameters {
    resolved: BTreeMap<&'static str, Resolved>,
}

enum Resolved {
    Number(f64),
    Word(&'static str),
    Value { index: usize, expression: Expression },
}

impl Parameters {
    /// Check `given`, found at `place`, against `table`.
    pub(crate) fn resolve(
        table: &'static [Parameter],
        given: &BTreeMap<String, Value>,
        place: &str,
        expressions: &mut Expressions,
    ) -> Result<Self, Error> {
        if let Some(name) = given.keys().find(|name| table.iter().all(|p| p.name != *name)) {
            let names = table.iter().map(|p| p.name).chain(["weight", "name", "phase"]);
            return Err(Error::unknown("unknown-name", place, "a parameter of this term", name, names));
        }
        let mut resolved = BTreeMap::new();
        for parameter in table {
            let at = format!("{place}.{}", parameter.name);
            let default = || serde_json::from_str(parameter.default).unwrap_or(Value::Null);
            let value = given.get(parameter.name).cloned().unwrap_or_else(default);
            if value.is_null() {
                Error::ensure(parameter.default == "null", &at, "nothing", parameter.help)?;
                continue;
            }
            resolved.insert(parameter.name, parameter.kind.read(&at, &value, expressions)?);
        }
        Ok(Self { resolved })
    }

    /// Return a number that has a default.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.optional(name).unwrap_or_default()
    }

    /// Return an optional number.
    pub(crate) fn optional(&self, name: &str) -> Option<f64> {
        match self.resolved.get(name) {
            Some(Resolved::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn word(&self, name: &str) -> &'static str {
        match self.resolved.get(name) {
            Some(Resolved::Word(word)) => word,
            _ => "",
        }
    }

    /// Return the index of the value of an expression that has a default.
    pub(crate) fn value(&self, name: &str) -> usize {
        self.optional_value(name).map_or(0, |(index, _)| index)
    }

    /// Return an optional expression.
    pub(crate) fn optional_value(&self, name: &str) -> Option<(usize, Expression)> {
        match self.resolved.get(name) {
            Some(Resolved::Value { index, expression }) => Some((*index, *expression)),
            _ => None,
        }
    }

    /// Return the text of the expression `name`.
    pub(crate) fn text(&self, name: &str) -> String {
        self.optional_value(name).map(|(_, expression)| expression.text()).unwrap_or_default()
    }
}

impl Kind {
    fn read(self, place: &str, value: &Value, expressions: &mut Expressions) -> Result<Resolved, Error> {
        match (self, value) {
            (Self::Number { low, high }, Value::Number(_)) => {
                let number = value.as_f64().unwrap_or(f64::NAN);
                let expected = format!("a number from {low} to {high}");
                Error::ensure(number >= low && number <= high, place, value, expected)?;
                Ok(Resolved::Number(number))
            }
            (Self::Number { .. }, _) => Err(Error::new(place, value.to_string(), "a number")),
            (Self::Word(words), Value::String(word)) => match words.iter().find(|known| *known == word) {
                Some(word) => Ok(Resolved::Word(word)),
                None => Err(Error::unknown(
                    "unknown-name",
                    place,
                    "one of the words known here",
                    word,
                    words.iter().copied(),
                )),
            },
            (Self::Word(words), _) => Err(Error::new(place, value.to_string(), words.join(", "))),
            (Self::Expression(unit), Value::String(text)) => {
                let expression = Expression::parse_in(place, text, unit)?;
                Ok(Resolved::Value { index: expressions.insert(expression), expression })
            }
            (Self::Expression(_), _) => Err(Error::new(place, value.to_string(), "the name of a signal")),
        }
    }
}
