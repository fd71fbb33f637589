//! The table of schemes: look-up by name, parameters with types and ranges, and errors that say what to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use ccgym_agent::FlowAgent;
use ccgym_core::CongestionControl;
use serde::{Serialize, Serializer};
use serde_json::{json, Map, Value};
use thiserror::Error;

use crate::learned::Policy;
use crate::SCHEMES;

/// All schemes, in the order of documentation.
#[must_use]
pub fn registry() -> &'static [SchemeEntry] {
    SCHEMES
}

/// The scheme called `name`; the error suggests the nearest name.
pub fn find(name: &str) -> Result<&'static SchemeEntry, SchemeError> {
    SCHEMES.iter().find(|entry| entry.info.name == name).ok_or_else(|| SchemeError::UnknownScheme {
        name: name.to_owned(),
        known: SCHEMES.iter().map(|entry| entry.info.name).collect::<Vec<_>>().join(", "),
        hint: suggest(name, SCHEMES.iter().map(|entry| entry.info.name)),
    })
}

/// What a host has loaded for schemes that are made from more than parameters.
#[derive(Clone, Default)]
pub struct Resources {
    /// Exported policies, by the names that flows give.
    pub policies: BTreeMap<String, Arc<Policy>>,
    /// The agent of flows whose decisions come from outside: each gets a copy.
    pub agent: Option<FlowAgent>,
    /// Schemes that the host brings along, by the names that flows give.
    pub guests: BTreeMap<String, Arc<dyn Guest>>,
}

/// A scheme that is not in the registry: the host knows how to make it.
pub trait Guest: Send + Sync {
    /// A new instance with these parameters; what is wrong with them.
    ///
    /// # Errors
    /// It cannot be made.
    fn create(&self, params: &Map<String, Value>) -> Result<Box<dyn CongestionControl>, String>;
    /// After a run in real time: why it could not keep up; `None` if it could.
    fn fell_behind(&self) -> Option<String>;
}

/// A new instance of the scheme called `name`. Parameters left out take their defaults.
pub fn create(name: &str, params: &Map<String, Value>) -> Result<Box<dyn CongestionControl>, SchemeError> {
    create_with(name, params, &Resources::default())
}

/// As [`create`], with what the host has loaded.
pub fn create_with(
    name: &str,
    params: &Map<String, Value>,
    resources: &Resources,
) -> Result<Box<dyn CongestionControl>, SchemeError> {
    if let Some(guest) = resources.guests.get(name) {
        return guest.create(params).map_err(SchemeError::Guest);
    }
    let entry = find(name)?;
    (entry.build)(&Parameters::resolve(&entry.info, params)?, resources)
}

/// A scheme: what it is, and how to make one.
#[derive(Clone, Copy)]
pub struct SchemeEntry {
    /// What it is.
    pub info: SchemeInfo,
    /// Makes one from checked parameters. It may still refuse a combination.
    pub build: BuildScheme,
}

/// Makes a scheme from checked parameters and what the host has loaded.
pub type BuildScheme = fn(&Parameters, &Resources) -> Result<Box<dyn CongestionControl>, SchemeError>;

/// Describes a scheme for look-up, documentation and plots.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SchemeInfo {
    /// Registry name: lower case, as its file.
    pub name: &'static str,
    /// Name in tables and legends.
    pub label: &'static str,
    /// The specification or paper it follows.
    pub reference: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Which comparisons it takes part in.
    pub role: Role,
    /// Where its rules come from.
    pub status: Status,
    /// The implementation that its rules were checked against, and its license; empty where there is none.
    pub implementation: &'static str,
    /// How it is carried, unless a flow says otherwise.
    pub transport: Transport,
}

/// Which comparisons a scheme takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Those that name no scheme, and `all`.
    Default,
    /// `all`, groups, and where it is named.
    OnRequest,
    /// Where it is named: an aid for measuring, no contestant.
    Tool,
}

/// Where a scheme's rules come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A specification, a paper or code that can be read.
    Native,
    /// What is known of a program that cannot be read; its behavior is approximated.
    Reconstructed,
}

/// How a scheme is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Transport {
    /// `tcp` or `udp`, as flows have it.
    pub profile: &'static str,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Header bytes of a packet from the IP header on.
    pub header: u32,
    /// Packets sent before the first acknowledgement.
    pub initial_window: u32,
    /// What hands it data: the kind of a source, with that kind's defaults.
    #[serde(serialize_with = "source_of_kind")]
    pub source: &'static str,
}

fn source_of_kind<S: Serializer>(kind: &str, serializer: S) -> Result<S::Ok, S::Error> {
    json!({ "kind": kind }).serialize(serializer)
}

impl Transport {
    /// Reliable, as Linux.
    pub const TCP: Self = Self { profile: "tcp", mss: 1448, header: 52, initial_window: 10, source: "greedy" };
    /// Datagrams with a receipt for each, of the same size on the wire.
    pub const UDP: Self = Self { profile: "udp", ..Self::TCP };
}

impl SchemeInfo {
    /// What an entry need not say.
    pub const DEFAULT: Self = Self {
        name: "",
        label: "",
        reference: "",
        summary: "",
        parameters: &[],
        role: Role::Default,
        status: Status::Native,
        implementation: "",
        transport: Transport::TCP,
    };
}

/// One parameter of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its key.
    pub name: &'static str,
    /// Type, range and default.
    pub kind: ParameterKind,
    /// Unit of the value; empty if it has none.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
}

/// A table of parameters. Of each its help as a comment, its name, and what the function of [`Parameter`] for its kind
/// takes between these; or the name of a constant that several schemes share.
macro_rules! parameters {
    (@row [] $shared:ident) => { $shared };
    (@row [$($help:literal)+] $name:ident $kind:ident ($($argument:expr),*)) => {
        $crate::registry::Parameter::$kind(
            stringify!($name), $($argument,)* $crate::registry::from_comment(concat!($($help),+)),
        )
    };
    ($($(#[doc = $help:literal])* $name:ident $(: $kind:ident $arguments:tt)?;)*) => {
        &[$($crate::registry::parameters!(@row [$($help)*] $name $($kind $arguments)?)),*]
    };
}
pub(crate) use parameters;

/// The text of a comment, which begins with a space.
pub(crate) const fn from_comment(text: &'static str) -> &'static str {
    match std::str::from_utf8(text.as_bytes().split_at(1).1) {
        Ok(text) => text,
        Err(_) => panic!("a comment begins with a space"),
    }
}

/// Type, range and default of a parameter. Ranges include their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number, and its range.
    Integer(u64, (u64, u64)),
    /// A finite number, and its range.
    Number(f64, (f64, f64)),
    /// One of these words, the first by default.
    Choice(&'static [&'static str]),
    /// Any text, none by default.
    Text,
    /// The content of a file in hexadecimal, none by default. Users give its path, and the host reads it.
    File,
}

/// Bytes in hexadecimal, as a parameter that is a file has them.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("four bits");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| (16 * pair[0] + pair[1]) as u8).collect())
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let described = json!({
            "name": self.name,
            "default": self.default_value(),
            "min": self.min(),
            "max": self.max(),
            "choices": self.choices(),
            "file": self.kind == ParameterKind::File,
            "unit": self.unit,
            "help": self.help,
        });
        described.serialize(serializer)
    }
}

impl Parameter {
    /// `true` or `false`.
    #[must_use]
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Self {
        Self { name, kind: ParameterKind::Bool(default), unit: "", help }
    }
    /// A whole number within `range`.
    #[must_use]
    pub const fn integer(
        name: &'static str,
        default: u64,
        range: (u64, u64),
        unit: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, kind: ParameterKind::Integer(default, range), unit, help }
    }
    /// A number within `range`.
    #[must_use]
    pub const fn number(
        name: &'static str,
        default: f64,
        range: (f64, f64),
        unit: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, kind: ParameterKind::Number(default, range), unit, help }
    }
    /// One of `words`, the first by default.
    #[must_use]
    pub const fn choice(name: &'static str, words: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: ParameterKind::Choice(words), unit: "", help }
    }
    /// Any text, none by default.
    #[must_use]
    pub const fn text(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: ParameterKind::Text, unit: "", help }
    }
    /// A file, none by default.
    #[must_use]
    pub const fn file(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: ParameterKind::File, unit: "", help }
    }

    /// Minimum and maximum, where it has them.
    fn range(&self) -> Option<(f64, f64)> {
        match self.kind {
            ParameterKind::Integer(_, (min, max)) => Some((min as f64, max as f64)),
            ParameterKind::Number(_, range) => Some(range),
            _ => None,
        }
    }
    /// Minimum, where it has one.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        Some(self.range()?.0)
    }
    /// Maximum, where it has one.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        Some(self.range()?.1)
    }
    /// The words allowed, where it is a choice.
    #[must_use]
    pub fn choices(&self) -> &'static [&'static str] {
        match self.kind {
            ParameterKind::Choice(words) => words,
            _ => &[],
        }
    }
    /// The default as a JSON value.
    #[must_use]
    pub fn default_value(&self) -> Value {
        match self.kind {
            ParameterKind::Bool(default) => default.into(),
            ParameterKind::Integer(default, _) => default.into(),
            ParameterKind::Number(default, _) => default.into(),
            ParameterKind::Choice(words) => words[0].into(),
            ParameterKind::Text | ParameterKind::File => "".into(),
        }
    }

    /// What may be given, in words.
    fn expected(&self) -> String {
        match self.kind {
            ParameterKind::Bool(_) => "true or false".to_owned(),
            ParameterKind::Integer(_, (min, max)) => format!("a whole number from {min} to {max}"),
            ParameterKind::Number(_, (min, max)) => format!("a number from {min} to {max}"),
            ParameterKind::Choice(words) => format!("one of {}", words.join(", ")),
            ParameterKind::Text => "text".to_owned(),
            ParameterKind::File => "a file's bytes in hexadecimal".to_owned(),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        match self.kind {
            ParameterKind::Bool(_) => value.is_boolean(),
            ParameterKind::Integer(_, (min, max)) => whole(value).is_some_and(|v| (min..=max).contains(&v)),
            ParameterKind::Number(_, (min, max)) => value.as_f64().is_some_and(|v| (min..=max).contains(&v)),
            ParameterKind::Choice(words) => value.as_str().is_some_and(|v| words.contains(&v)),
            ParameterKind::Text => value.is_string(),
            ParameterKind::File => value.as_str().and_then(from_hexadecimal).is_some(),
        }
    }
}

/// A whole number, also when written as `10.0`: YAML and Python callers do not always keep the difference.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    })
}

/// Parameters after checking, defaults filled in. The getters panic on a key that the entry does not declare or
/// declares with another type: that is a bug in the scheme's file, and the contract test meets it.
#[derive(Clone, Debug)]
pub struct Parameters {
    scheme: &'static str,
    values: Map<String, Value>,
}

impl Parameters {
    /// Check `given` against `info` and fill in the defaults.
    pub fn resolve(info: &SchemeInfo, given: &Map<String, Value>) -> Result<Self, SchemeError> {
        for (key, value) in given {
            let Some(parameter) = info.parameters.iter().find(|p| p.name == key) else {
                return Err(SchemeError::UnknownParameter {
                    scheme: info.name,
                    parameter: key.clone(),
                    known: match info.parameters {
                        [] => "no parameters".to_owned(),
                        some => some.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                    },
                    hint: suggest(key, info.parameters.iter().map(|p| p.name)),
                });
            };
            if !parameter.accepts(value) {
                return Err(SchemeError::InvalidValue {
                    scheme: info.name,
                    parameter: parameter.name,
                    found: value.to_string(),
                    expected: parameter.expected(),
                    default: parameter.default_value().to_string(),
                });
            }
        }
        let values = info
            .parameters
            .iter()
            .map(|p| (p.name.to_owned(), given.get(p.name).cloned().unwrap_or_else(|| p.default_value())))
            .collect();
        Ok(Self { scheme: info.name, values })
    }

    fn get<'a, T>(&'a self, key: &str, read: impl Fn(&'a Value) -> Option<T>) -> T {
        match self.values.get(key).and_then(read) {
            Some(value) => value,
            None => panic!("scheme {} reads parameter {key}, which its entry does not declare so", self.scheme),
        }
    }
    /// A number.
    #[must_use]
    pub fn number(&self, key: &str) -> f64 {
        self.get(key, Value::as_f64)
    }
    /// A whole number.
    #[must_use]
    pub fn integer(&self, key: &str) -> u64 {
        self.get(key, whole)
    }
    /// A truth value.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.get(key, Value::as_bool)
    }
    /// A word: a choice or text.
    #[must_use]
    pub fn word(&self, key: &str) -> &str {
        self.get(key, Value::as_str)
    }
    /// The content of a file; empty if none was given.
    #[must_use]
    pub fn content(&self, key: &str) -> Vec<u8> {
        self.get(key, |value| value.as_str().and_then(from_hexadecimal))
    }
    /// The error for a file whose content the scheme refuses.
    #[must_use]
    pub fn refuse_file(&self, parameter: &'static str, error: &impl std::fmt::Display, expected: &str) -> SchemeError {
        SchemeError::InvalidValue {
            scheme: self.scheme,
            parameter,
            found: error.to_string(),
            expected: expected.to_owned(),
            default: "the default".to_owned(),
        }
    }
    /// The error for a combination that the scheme refuses.
    #[must_use]
    pub fn refuse(&self, found: String, expected: &'static str) -> SchemeError {
        SchemeError::InvalidCombination { scheme: self.scheme, found, expected }
    }
}

/// What can be wrong with a request for a scheme: where, what was found, what was expected, what to do.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SchemeError {
    /// No scheme has this name.
    #[error("scheme: found \"{name}\", expected one of {known}{hint}")]
    UnknownScheme {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
        /// The nearest name, if one is near.
        hint: Hint,
    },
    /// The scheme has no such parameter.
    #[error("scheme {scheme}: found parameter \"{parameter}\", expected {known}{hint}")]
    UnknownParameter {
        /// The scheme.
        scheme: &'static str,
        /// What was given.
        parameter: String,
        /// What there is.
        known: String,
        /// The nearest name, if one is near.
        hint: Hint,
    },
    /// The value has the wrong type or lies out of range.
    #[error("scheme {scheme}, parameter {parameter}: found {found}, expected {expected}; leave it out for {default}")]
    InvalidValue {
        /// The scheme.
        scheme: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was given, as JSON.
        found: String,
        /// What may be given.
        expected: String,
        /// The default, as JSON.
        default: String,
    },
    /// Values that are right one by one but not together.
    #[error("scheme {scheme}: found {found}, expected {expected}; change one of the two")]
    InvalidCombination {
        /// The scheme.
        scheme: &'static str,
        /// What was given.
        found: String,
        /// What may be given.
        expected: &'static str,
    },
    /// A scheme of the host cannot be made.
    #[error("{0}")]
    Guest(String),
}

impl SchemeError {
    /// What is wrong, by a code of `ccgym/errors.py`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownScheme { .. } => "unknown-scheme",
            Self::UnknownParameter { .. } => "unknown-parameter",
            Self::InvalidValue { .. } | Self::InvalidCombination { .. } | Self::Guest(_) => "parameter-invalid",
        }
    }
}

/// The nearest known name; shown as the last part of an error, or as nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint(pub Option<&'static str>);

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(name) => write!(f, "; did you mean \"{name}\"?"),
            None => Ok(()),
        }
    }
}

fn suggest(found: &str, known: impl Iterator<Item = &'static str>) -> Hint {
    // A third of the letters may be wrong, but at least one.
    let limit = (found.chars().count() / 3).max(1);
    let found = found.to_lowercase();
    let nearest = known.map(|name| (strsim::osa_distance(&found, name), name)).min_by_key(|(distance, _)| *distance);
    Hint(nearest.filter(|(distance, _)| *distance <= limit).map(|(_, name)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }
    fn error(name: &str, params: Value) -> SchemeError {
        create(name, &object(params)).err().unwrap()
    }

    #[test]
    fn errors_say_where_what_and_what_to_do() {
        let unknown = |name: &str| match error(name, json!({})) {
            SchemeError::UnknownScheme { name, hint, .. } => (name, hint.0),
            other => panic!("{other}"),
        };
        assert_eq!(unknown("cubci"), ("cubci".to_owned(), Some("cubic")));
        assert_eq!(unknown("quantum").1, None);
        let parameter = error("cubic", json!({"betta": 0.7}));
        assert!(
            matches!(&parameter, SchemeError::UnknownParameter { scheme: "cubic", hint: Hint(Some("beta")), .. }),
            "{parameter}"
        );
        for (name, value) in [("beta", json!(1.5)), ("fast_convergence", json!(1)), ("mode", json!("windows"))] {
            match error("cubic", json!({name: value})) {
                SchemeError::InvalidValue { scheme: "cubic", parameter, found, .. } => {
                    assert_eq!((parameter, found), (name, value.to_string()));
                }
                other => panic!("{name}: {other}"),
            }
        }
    }

    #[test]
    fn files_are_hexadecimal() {
        for (text, expected) in [
            ("", Some(vec![])),
            ("00ff10", Some(vec![0, 255, 16])),
            ("0", None),
            ("zz", None),
            ("+1", None),
            ("€€", None),
        ] {
            assert_eq!(from_hexadecimal(text), expected, "{text}");
        }
        assert_eq!(hexadecimal(&[0, 255, 16]), "00ff10");
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        assert_eq!(whole(&json!(10.0)), Some(10));
        assert_eq!(whole(&json!(10)), Some(10));
        assert_eq!(whole(&json!(10.5)), None);
        assert_eq!(whole(&json!(-1)), None);
    }
}
