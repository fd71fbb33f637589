//! Validates descriptions by their schema: ranges, units and choices are declared once, with the type, and checked
//! here. Constraints over several values are checked by hand, where they are used.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::{schema_for, JsonSchema};
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::units::NANOS_PER_MS;

/// Max time, nanoseconds: about 11 days, so that sums of several do not overflow.
pub const MAX_SPAN: u64 = 1_000_000_000_000_000;
/// Max rate, bit/s: above a petabit per second the fraction of a nanosecond would not fit.
pub const MAX_RATE: u64 = 1_000_000_000_000_000;
/// Max of whole milliseconds: mahimahi stores them in 32 bits, and signed where it subtracts.
const MAX_MS: u64 = i32::MAX as u64;

/// Functions without arguments for `#[serde(default = "name")]`, one per line.
#[macro_export]
macro_rules! defaults {
    ($($name:ident: $kind:ty = $value:expr;)+) => {
        $(const fn $name() -> $kind {
            $value
        })+
    };
}

/// Return the tag of a description: its kind.
pub fn kind(description: &impl Serialize) -> String {
    let described = serde_json::to_value(description).unwrap_or_default();
    described["kind"].as_str().unwrap_or_default().to_owned()
}

/// Check a description against the schema of its type. `place` says whose it is; if it is empty, its tag does.
///
/// # Errors
/// The first value out of its range.
pub fn check<T: Serialize + JsonSchema + 'static>(place: &str, description: &T) -> Result<(), Error> {
    static SCHEMAS: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let schema = {
        let mut known = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(schema_for!(T).to_value())).clone()
    };
    let value = serde_json::to_value(description).map_err(|error| Error::new(place, error, "what JSON can say"))?;
    let place = if place.is_empty() { value["kind"].as_str().unwrap_or_default() } else { place };
    value_fits(place, &value, &schema, &schema)
}

fn value_fits(at: &str, value: &Value, schema: &Value, root: &Value) -> Result<(), Error> {
    let schema = resolved(schema, root);
    if let Some(alternatives) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        // Of a tagged choice the one with that tag; of an optional value the one that is not null.
        let mut alternatives = alternatives.iter().map(|schema| resolved(schema, root)).filter(|_| !value.is_null());
        let matching = |schema: &&Value| match &schema["properties"]["kind"]["const"] {
            Value::Null => schema["type"] != "null" && schema["const"].is_null(),
            tag => *tag == value["kind"],
        };
        return alternatives.find(matching).map_or(Ok(()), |schema| value_fits(at, value, schema, root));
    }
    match (schema["format"].as_str(), value) {
        (Some("steps"), Value::Array(steps)) => steps_fit(at, steps, &schema["items"], root),
        (Some("steps"), _) => value_fits(at, value, &schema["items"], root),
        (Some("limit"), Value::Object(limits)) => {
            let expected = "`packets`, `bytes` or both; set one, or use the queue `infinite`";
            Error::ensure(limits.values().any(|v| !v.is_null()), at, "no limit", expected)?;
            limits.iter().try_for_each(|(key, limit)| {
                let expected = "at least 1; leave it out for no limit (as mahimahi reads 0)";
                Error::ensure(*limit != 0, &format!("{at}.{key}"), 0, expected)
            })
        }
        (_, Value::Array(values)) => {
            let each = |(i, value)| value_fits(&format!("{at}[{i}]"), value, &schema["items"], root);
            values.iter().enumerate().try_for_each(each)
        }
        (_, Value::Object(values)) => {
            let mut declared = schema["properties"].as_object().into_iter().flatten();
            let each = |(key, schema): (&String, &Value)| match values.get(key) {
                Some(value) => value_fits(&format!("{at}.{key}"), value, schema, root),
                None => Ok(()),
            };
            declared.try_for_each(each)
        }
        // JSON has no NaN and no infinity: they are written as null.
        (_, Value::Null) if schema["type"] == "number" => Err(Error::new(at, "NaN or infinity", "a number")),
        (format, Value::Number(_)) => number_fits(at, value, format, schema),
        _ => Ok(()),
    }
}

fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    name.map_or(schema, |name| &root["$defs"][name])
}

/// Check the times of the steps, from 0 on, and the value of each.
fn steps_fit(at: &str, steps: &[Value], schema: &Value, root: &Value) -> Result<(), Error> {
    let first = steps.first().ok_or_else(|| Error::new(at, "no steps", "at least one step; give [[0, value], …]"))?;
    let expected = "a first step at 0; say what holds from the start: [[0, value], …]";
    Error::ensure(first[0] == 0, at, format_args!("a first step at {} ns", first[0]), expected)?;
    for (i, pair) in steps.windows(2).enumerate() {
        let found = format!("{} ns after {} ns", pair[1][0], pair[0][0]);
        let later = pair[1][0].as_u64() > pair[0][0].as_u64();
        Error::ensure(later, &format!("{at}[{}]", i + 1), found, "strictly increasing times; sort the steps")?;
    }
    let each = |(i, step): (usize, &Value)| value_fits(&format!("{at}[{i}]"), &step[1], schema, root);
    steps.iter().enumerate().try_for_each(each)
}

fn number_fits(at: &str, value: &Value, format: Option<&str>, schema: &Value) -> Result<(), Error> {
    let bounds = |min: f64, max: f64| {
        let bound = |key: &str, otherwise| schema[key].as_f64().unwrap_or(otherwise);
        (bound("minimum", min), bound("maximum", max))
    };
    let fits = |(min, max): (f64, f64)| value.as_f64().is_some_and(|value| (min..=max).contains(&value));
    let judged = |ok: bool, found: &dyn Display, expected: &dyn Display| Error::ensure(ok, at, found, expected);
    match format {
        Some("time") => {
            let (min, max) = bounds(0.0, MAX_SPAN as f64);
            let expected = format!("{min} to {max} ns; times are in nanoseconds");
            judged(fits((min, max)), &format_args!("{value} ns"), &expected)
        }
        Some("rate") => {
            let (min, max) = bounds(0.0, MAX_RATE as f64);
            let expected = format!("{min} to {max} bit/s; rates are in bits per second");
            judged(fits((min, max)), &format_args!("{value} bit/s"), &expected)
        }
        Some("probability") => judged(fits((0.0, 1.0)), value, &"a probability in [0, 1]; divide percentages by 100"),
        Some("milliseconds") => {
            let ns = value.as_u64().unwrap_or(0);
            let whole = ns % NANOS_PER_MS == 0 && (1..=MAX_MS).contains(&(ns / NANOS_PER_MS));
            let expected = format!("whole milliseconds, 1 to {MAX_MS}; mahimahi counts whole milliseconds");
            judged(whole, &format_args!("{ns} ns"), &expected)
        }
        _ => {
            let (min, max) = bounds(f64::NEG_INFINITY, f64::INFINITY);
            let expected = match (min.is_finite(), max.is_finite()) {
                (true, true) => format!("{min} to {max}"),
                (true, false) => format!("at least {min}"),
                _ => format!("at most {max}"),
            };
            judged(fits((min, max)), value, &expected).map_err(|error| error.hint("leave it out for the usual value"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Rate, TimeSpan};

    /// An inner description.
    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Inner {
        Plain,
        Limited {
            #[schemars(range(min = 2, max = 5))]
            count: u32,
        },
    }

    #[derive(Serialize, JsonSchema)]
    struct Outer {
        span: Option<TimeSpan>,
        rate: Rate,
        #[schemars(range(max = 2.0))]
        factor: f64,
        inner: Vec<Inner>,
        choice: Option<Inner>,
        #[schemars(extend("format" = "steps", "items" = {"type": "number", "format": "probability"}))]
        steps: Value,
    }

    fn good() -> Outer {
        Outer {
            span: None,
            rate: Rate(1),
            factor: 1.0,
            inner: vec![Inner::Plain],
            choice: None,
            steps: Value::from(0.5),
        }
    }

    #[test]
    fn errors_of_range_name_the_place() {
        let steps = |text| Outer { steps: serde_json::from_str(text).unwrap(), ..good() };
        assert_eq!(check("it", &good()), Ok(()));
        assert_eq!(check("it", &steps("[[0, 0.0], [7, 1.0]]")), Ok(()));
        for (outer, place) in [
            (Outer { span: Some(TimeSpan(MAX_SPAN + 1)), ..good() }, "it.span"),
            (Outer { rate: Rate(MAX_RATE + 1), ..good() }, "it.rate"),
            (Outer { factor: 2.1, ..good() }, "it.factor"),
            (Outer { factor: f64::NAN, ..good() }, "it.factor"),
            (Outer { inner: vec![Inner::Plain, Inner::Limited { count: 6 }], ..good() }, "it.inner[1].count"),
            (Outer { choice: Some(Inner::Limited { count: 1 }), ..good() }, "it.choice.count"),
            (steps("1.5"), "it.steps"),
            (steps("[]"), "it.steps"),
            (steps("[[1, 0.5]]"), "it.steps"),
            (steps("[[0, 0.5], [5, 0.5], [5, 0.5]]"), "it.steps[2]"),
            (steps("[[0, 0.5], [5, -0.5]]"), "it.steps[1]"),
        ] {
            assert_eq!(check("it", &outer).unwrap_err().place, place);
        }
    }
}
