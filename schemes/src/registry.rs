//! The table of schemes: look-up by name, parameters with types and ranges, and errors that say what to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use ccgym_agent::FlowAgent;
use ccgym_core::{CongestionControl, Error};
use serde::{Serialize, Serializer};
use serde_json::{json, Map, Value};

use crate::learned::Policy;
use crate::SCHEMES;

/// Return all schemes, in the order of the documentation.
#[must_use]
pub fn registry() -> &'static [SchemeEntry] {
    SCHEMES
}

/// Find the scheme called `name`; the error suggests the nearest name.
pub fn find(name: &str) -> Result<&'static SchemeEntry, Error> {
    let names = SCHEMES.iter().map(|entry| entry.info.name);
    let known = SCHEMES.iter().find(|entry| entry.info.name == name);
    known.ok_or_else(|| Error::unknown("unknown-scheme", "scheme", "the name of a scheme", name, names))
}

/// Objects that a host has loaded, for schemes that are made from more than parameters.
#[derive(Clone, Default)]
pub struct Resources {
    /// Exported policies, by the names that flows give.
    pub policies: BTreeMap<String, Arc<Policy>>,
    /// The agent of flows whose decisions come from outside; each flow gets a copy.
    pub agent: Option<FlowAgent>,
    /// Schemes that the host adds, by the names that flows give.
    pub guests: BTreeMap<String, Arc<dyn Guest>>,
}

/// A scheme that is not in the registry; the host makes it.
pub trait Guest: Send + Sync {
    /// Make a new instance with these parameters.
    ///
    /// # Errors
    /// The parameters are invalid.
    fn create(&self, params: &Map<String, Value>) -> Result<Box<dyn CongestionControl>, String>;
    /// Explain, after a run in real time, why it could not keep up; `None` if it could.
    fn fell_behind(&self) -> Option<String>;
}

/// Make a new instance of the scheme called `name`. Parameters that are absent take their defaults.
pub fn create(name: &str, params: &Map<String, Value>) -> Result<Box<dyn CongestionControl>, Error> {
    create_with(name, params, &Resources::default())
}

/// As [`create`], with the objects that the host has loaded.
pub fn create_with(
    name: &str,
    params: &Map<String, Value>,
    resources: &Resources,
) -> Result<Box<dyn CongestionControl>, Error> {
    if let Some(guest) = resources.guests.get(name) {
        return guest.create(params).map_err(|found| Error::of("parameter-invalid", format!("scheme {name}"), found));
    }
    let entry = find(name)?;
    (entry.build)(&Parameters::resolve(&entry.info, params)?, resources)
}

/// A scheme: its description, and how to make one.
#[derive(Clone, Copy)]
pub struct SchemeEntry {
    /// Name, reference, parameters and status.
    pub info: SchemeInfo,
    /// Makes one from checked parameters. It may still refuse a combination.
    pub build: BuildScheme,
}

/// Makes a scheme from checked parameters and what the host has loaded.
pub type BuildScheme = fn(&Parameters, &Resources) -> Result<Box<dyn CongestionControl>, Error>;

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
    /// Parameters that users can set.
    pub parameters: &'static [Parameter],
    /// Comparisons that it takes part in.
    pub role: Role,
    /// Origin of its rules.
    pub status: Status,
    /// The implementation that its rules were checked against, and its license; empty where there is none.
    pub implementation: &'static str,
    /// Transport profile, unless a flow sets another.
    pub transport: Transport,
}

/// The comparisons that a scheme takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Comparisons that name no scheme, and `all`.
    Default,
    /// `all`, groups, and comparisons that name it.
    OnRequest,
    /// Comparisons that name it: an aid for measuring, not a contestant.
    Tool,
}

/// The origin of a scheme's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A specification, a paper, or open source code.
    Native,
    /// Published descriptions of a program without open source code; its behavior is approximated.
    Reconstructed,
}

/// The transport profile of a scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Transport {
    /// `tcp` or `udp`, as in the specification of a flow.
    pub profile: &'static str,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Header bytes of a packet from the IP header on.
    pub header: u32,
    /// Packets sent before the first acknowledgement.
    pub initial_window: u32,
    /// Kind of the data source, with that kind's defaults.
    #[serde(serialize_with = "source_of_kind")]
    pub source: &'static str,
}

fn source_of_kind<S: Serializer>(kind: &str, serializer: S) -> Result<S::Ok, S::Error> {
    json!({ "kind": kind }).serialize(serializer)
}

impl Transport {
    /// Reliable transport, as in Linux.
    pub const TCP: Self = Self { profile: "tcp", mss: 1448, header: 52, initial_window: 10, source: "greedy" };
    /// Datagrams, each acknowledged by a receipt, of the same size on the wire.
    pub const UDP: Self = Self { profile: "udp", ..Self::TCP };
}

impl SchemeInfo {
    /// Values of the fields that an entry leaves out.
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
    /// Name, the key in JSON.
    pub name: &'static str,
    /// Type, range and default.
    pub kind: ParameterKind,
    /// Unit of the value; empty if it has none.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
}

/// A table of parameters: for each the help as a comment, the name, and the arguments of its kind's function in
/// [`Parameter`] between name and help; or the name of a constant that several schemes share.
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

/// Return the text of a comment without its first space.
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

/// Encode bytes in hexadecimal, the form of a file as a parameter.
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
    /// Make a parameter that is `true` or `false`.
    #[must_use]
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Self {
        Self { name, kind: ParameterKind::Bool(default), unit: "", help }
    }
    /// Make a parameter that is a whole number within `range`.
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
    /// Make a parameter that is a number within `range`.
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
    /// Make a parameter that is one of `words`, the first by default.
    #[must_use]
    pub const fn choice(name: &'static str, words: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: ParameterKind::Choice(words), unit: "", help }
    }
    /// Make a parameter that is any text, none by default.
    #[must_use]
    pub const fn text(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: ParameterKind::Text, unit: "", help }
    }
    /// Make a parameter that is a file, none by default.
    #[must_use]
    pub const fn file(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: ParameterKind::File, unit: "", help }
    }

    /// Return min and max, if the parameter has a range.
    fn range(&self) -> Option<(f64, f64)> {
        match self.kind {
            ParameterKind::Integer(_, (min, max)) => Some((min as f64, max as f64)),
            ParameterKind::Number(_, range) => Some(range),
            _ => None,
        }
    }
    /// Return the min, if the parameter has a range.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        Some(self.range()?.0)
    }
    /// Return the max, if the parameter has a range.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        Some(self.range()?.1)
    }
    /// Return the allowed words of a choice.
    #[must_use]
    pub fn choices(&self) -> &'static [&'static str] {
        match self.kind {
            ParameterKind::Choice(words) => words,
            _ => &[],
        }
    }
    /// Return the default as a JSON value.
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

    /// Describe the values that are accepted.
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

/// Return a whole number, also if written as `10.0`: YAML and Python do not always keep the difference.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    })
}

/// Checked parameters, defaults filled in. The getters panic on a key that the entry does not declare, or declares with
/// another type: the contract test finds such a bug of a scheme.
#[derive(Clone, Debug)]
pub struct Parameters {
    scheme: &'static str,
    values: Map<String, Value>,
}

impl Parameters {
    /// Check `given` against `info` and fill in the defaults.
    pub fn resolve(info: &SchemeInfo, given: &Map<String, Value>) -> Result<Self, Error> {
        for (key, value) in given {
            let Some(parameter) = info.parameters.iter().find(|p| p.name == key) else {
                let place = format!("scheme {}", info.name);
                let names = info.parameters.iter().map(|p| p.name);
                return Err(Error::unknown("unknown-parameter", &place, "a parameter of it", key, names));
            };
            if !parameter.accepts(value) {
                return Err(invalid(info.name, parameter.name, value)
                    .expected(parameter.expected())
                    .hint(format!("leave it out for {}", parameter.default_value())));
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
    /// Return a number.
    #[must_use]
    pub fn number(&self, key: &str) -> f64 {
        self.get(key, Value::as_f64)
    }
    /// Return a whole number.
    #[must_use]
    pub fn integer(&self, key: &str) -> u64 {
        self.get(key, whole)
    }
    /// Return a truth value.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.get(key, Value::as_bool)
    }
    /// Return a word: a choice or text.
    #[must_use]
    pub fn word(&self, key: &str) -> &str {
        self.get(key, Value::as_str)
    }
    /// Return the content of a file; empty if none was given.
    #[must_use]
    pub fn content(&self, key: &str) -> Vec<u8> {
        self.get(key, |value| value.as_str().and_then(from_hexadecimal))
    }
    /// Make the error for a file whose content the scheme rejects.
    #[must_use]
    pub fn refuse_file(&self, parameter: &str, error: impl std::fmt::Display, expected: &str) -> Error {
        invalid(self.scheme, parameter, error).expected(expected).hint("leave it out for the default")
    }
    /// Make the error for a combination that the scheme rejects.
    #[must_use]
    pub fn refuse(&self, found: String, expected: &str) -> Error {
        impossible(self.scheme, found, expected)
    }
}

fn invalid(scheme: &str, parameter: &str, found: impl std::fmt::Display) -> Error {
    Error::of("parameter-invalid", format!("scheme {scheme}, parameter {parameter}"), found)
}

/// Values that are right one by one but not together.
pub(crate) fn impossible(scheme: &str, found: String, expected: &str) -> Error {
    Error::of("parameter-invalid", format!("scheme {scheme}"), found).expected(expected).hint("change one of the two")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }
    fn error(name: &str, params: Value) -> Error {
        create(name, &object(params)).err().unwrap()
    }

    #[test]
    fn errors_say_where_what_and_what_to_do() {
        let unknown = error("cubci", json!({}));
        assert_eq!((&*unknown.code, &*unknown.found), ("unknown-scheme", "\"cubci\""));
        assert!(unknown.hint.contains("\"cubic\""), "{unknown}");
        assert_eq!(error("quantum", json!({})).hint, "");
        let parameter = error("cubic", json!({"betta": 0.7}));
        assert_eq!((&*parameter.code, &*parameter.place), ("unknown-parameter", "scheme cubic"));
        assert!(parameter.hint.contains("\"beta\""), "{parameter}");
        for (name, value) in [("beta", json!(1.5)), ("fast_convergence", json!(1)), ("mode", json!("windows"))] {
            let error = error("cubic", json!({name: value}));
            assert_eq!((&*error.code, error.found), ("parameter-invalid", value.to_string()));
            assert_eq!(error.place, format!("scheme cubic, parameter {name}"));
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
