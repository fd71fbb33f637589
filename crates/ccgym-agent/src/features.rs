//! Transforms of a signal in an observation: minus, over, logarithm, scale, clip.

use super::expressions::{Expression, Expressions, Values};
use super::spec::{FeatureSpec, LogSpec, Operand};
use ccgym_core::Error;

/// Added before a logarithm unless given.
const LOG_PLUS: f64 = 1e-9;

/// A feature, ready to be computed.
#[derive(Clone)]
pub(crate) struct Feature {
    value: usize,
    minus: Option<Source>,
    over: Option<Source>,
    when_undefined: f64,
    /// Addend before the logarithm.
    log: Option<f64>,
    scale: f64,
    /// Bounds.
    pub clip: [f64; 2],
    /// Value before anything was recorded.
    pub empty: f64,
    /// Number of intervals in the observation.
    pub history: usize,
    /// Name, unit and formula for users.
    pub name: String,
    pub unit: String,
    pub formula: String,
}

#[derive(Clone, Copy)]
enum Source {
    Number(f64),
    Value(usize),
}

impl Source {
    #[inline]
    fn get(self, values: &Values) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Value(i) => values.get(i),
        }
    }
}

impl Feature {
    /// Make the feature at `place` in an observation of `history` intervals.
    pub(crate) fn new(
        spec: &FeatureSpec,
        place: &str,
        history: u32,
        expressions: &mut Expressions,
    ) -> Result<Self, Error> {
        let at = |field: &str| format!("{place}.{field}");
        let signal = Expression::parse(&at("signal"), &spec.signal)?;
        let mut unit = signal.signal.unit.to_owned();
        let mut formula = signal.text();
        let mut name = formula.clone();
        let mut meanings = vec![signal.meaning()];
        let value = expressions.insert(signal);

        let mut minus = None;
        if let Some(operand) = &spec.minus {
            let Resolved { source, text, its_unit } = operand.resolve(&at("minus"), expressions, &mut meanings)?;
            if let Some(found) = its_unit.filter(|other| *other != unit) {
                return Err(Error::new(at("minus"), format!("{text} in {found}"), format!("something in {unit}")));
            }
            minus = Some(source);
            formula = format!("{formula} − {text}");
            name = format!("{name} minus {text}");
        }
        let mut over = None;
        if let Some(operand) = &spec.over {
            let Resolved { source, text, its_unit } = operand.resolve(&at("over"), expressions, &mut meanings)?;
            if matches!(source, Source::Number(0.0)) {
                return Err(Error::new(at("over"), "0", "a number other than 0"));
            }
            formula = if minus.is_some() { format!("({formula}) / {text}") } else { format!("{formula} / {text}") };
            match its_unit {
                Some(other) => {
                    formula = format!("{formula} ({} if undefined)", spec.when_undefined);
                    name = format!("{name} over {text}");
                    unit = if other == unit { "1".to_owned() } else { format!("{unit} per {}", singular(other)) };
                }
                None => unit = if unit == "1" { format!("1/{text}") } else { format!("{text} {unit}") },
            }
            over = Some(source);
        }
        Error::ensure(spec.when_undefined.is_finite(), &at("when_undefined"), spec.when_undefined, "a number")?;
        let log = match spec.log {
            LogSpec::Plain(false) => None,
            LogSpec::Plain(true) => Some(LOG_PLUS),
            LogSpec::Plus { plus } => Some(plus),
        };
        if let Some(plus) = log {
            Error::ensure(plus.is_finite() && plus > 0.0, &at("log.plus"), plus, "a number above 0")?;
            formula = format!("ln({plus} + max(0, {formula}))");
            name = format!("log of {name}");
            unit = format!("ln {unit}");
        }
        Error::ensure(spec.scale.is_finite() && spec.scale != 0.0, &at("scale"), spec.scale, "a number, not 0")?;
        if spec.scale != 1.0 {
            formula = format!("{} · ({formula})", spec.scale);
            unit = if unit == "1" { unit } else { format!("{unit} · {}", spec.scale) };
        }
        let [low, high] = spec.clip;
        let ordered = low < high && f64::from(low as f32).is_finite() && (high as f32).is_finite();
        Error::ensure(ordered, &at("clip"), format!("[{low}, {high}]"), "two float32 numbers, the smaller first")?;
        formula = format!("{formula}, within [{low}, {high}]; {}", meanings.join("; "));
        let empty = spec.empty.unwrap_or(0.0f64.clamp(low, high));
        let within = empty >= low && empty <= high;
        Error::ensure(within, &at("empty"), empty, "a number within clip")?;
        let seen = spec.history.unwrap_or(history);
        let possible = seen >= 1 && seen <= history;
        Error::ensure(possible, &at("history"), seen, "1 up to the observation's history")?;
        Ok(Self {
            value,
            minus,
            over,
            when_undefined: spec.when_undefined,
            log,
            scale: spec.scale,
            clip: spec.clip,
            empty,
            history: seen as usize,
            name: spec.name.clone().unwrap_or(name),
            unit,
            formula,
        })
    }

    #[inline]
    pub(crate) fn compute(&self, values: &Values) -> f32 {
        let mut x = values.get(self.value);
        if let Some(minus) = self.minus {
            x -= minus.get(values);
        }
        if let Some(over) = self.over {
            let divisor = over.get(values);
            x = if divisor == 0.0 { self.when_undefined } else { x / divisor };
        }
        if let Some(plus) = self.log {
            x = (plus + x.max(0.0)).ln();
        }
        x *= self.scale;
        let x = if x.is_nan() { self.empty } else { x };
        x.clamp(self.clip[0], self.clip[1]) as f32
    }
}

impl Operand {
    /// Resolve an operand; the meaning of its signal is added to `meanings`.
    fn resolve(
        &self,
        place: &str,
        expressions: &mut Expressions,
        meanings: &mut Vec<String>,
    ) -> Result<Resolved, Error> {
        match self {
            Self::Number(number) => {
                Error::ensure(number.is_finite(), place, number, "a number")?;
                Ok(Resolved { source: Source::Number(*number), text: plain(*number), its_unit: None })
            }
            Self::Expression(text) => {
                let expression = Expression::parse(place, text)?;
                if !meanings.contains(&expression.meaning()) {
                    meanings.push(expression.meaning());
                }
                let source = Source::Value(expressions.insert(expression));
                Ok(Resolved { source, text: expression.text(), its_unit: Some(expression.signal.unit) })
            }
        }
    }
}

/// A resolved operand: index of its value, text, and its unit if it has one.
struct Resolved {
    source: Source,
    text: String,
    its_unit: Option<&'static str>,
}

/// Return a unit after "per".
fn singular(unit: &str) -> &str {
    match unit {
        "packets" | "bytes" | "acks" | "samples" | "timeouts" => &unit[..unit.len() - 1],
        _ => unit,
    }
}

/// Format a number without needless digits: 2e8, not 200000000.
fn plain(number: f64) -> String {
    let (long, short) = (format!("{number}"), format!("{number:e}"));
    if long.len() <= 6 || long.len() <= short.len() {
        long
    } else {
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::signals::View;
    use ccgym_core::monitor::MonitorInterval;
    use ccgym_core::units::{TimeSpan, Timestamp};
    use serde_json::{json, Value};

    /// Return values of the feature `spec` for the numbers of packets in `sent`, at 100 ms per interval.
    fn run(spec: Value, sent: &[u64]) -> Vec<f32> {
        let spec: FeatureSpec = serde_json::from_value(spec).expect("a feature");
        let mut expressions = Expressions::default();
        let feature = Feature::new(&spec, "f", 1, &mut expressions).expect("valid");
        let mut values = Values::new(&expressions);
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.2;
        sent.iter()
            .map(|packets| {
                let mut m = MonitorInterval::new(Timestamp::ZERO);
                m.end = m.start + TimeSpan::from_millis(100);
                m.sent_packets = *packets;
                m.acked_packets = 2;
                memory.digest(&m, true);
                values.update(&expressions, &View { m: &m, memory: &memory }, false);
                feature.compute(&values)
            })
            .collect()
    }

    #[test]
    fn each_transform_by_itself() {
        let wide = json!([-1000, 1000]);
        let one = |extra: Value| {
            let mut spec = json!({"signal": "sent_packets", "clip": wide});
            spec.as_object_mut().expect("object").extend(extra.as_object().expect("object").clone());
            run(spec, &[4, 6, 10, 10])
        };
        assert_eq!(one(json!({})), [4.0, 6.0, 10.0, 10.0]);
        assert_eq!(one(json!({"minus": "acked_packets"})), [2.0, 4.0, 8.0, 8.0]);
        assert_eq!(one(json!({"over": 2})), [2.0, 3.0, 5.0, 5.0]);
        assert_eq!(one(json!({"over": "max(sent_packets, 2)"})), [1.0; 4]);
        assert_eq!(one(json!({"over": "lost_packets", "when_undefined": 7})), [7.0; 4]);
        assert_eq!(one(json!({"log": {"plus": 1.0}}))[2], 11f64.ln() as f32);
        assert_eq!(one(json!({"scale": -2})), [-8.0, -12.0, -20.0, -20.0]);
        assert_eq!(one(json!({"clip": [5, 7]})), [5.0, 6.0, 7.0, 7.0]);
        assert_eq!(one(json!({"signal": "previous(sent_packets, 1)"})), [4.0, 4.0, 6.0, 10.0]);
    }

    #[test]
    fn the_order_is_fixed() {
        let spec = json!({"signal": "sent_packets", "minus": 1, "over": 3, "scale": 2, "clip": [0, 7]});
        assert_eq!(run(spec, &[4, 10, 13]), [2.0, 6.0, 7.0]);
    }
}
