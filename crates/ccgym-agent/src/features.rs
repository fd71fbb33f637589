//! What is done to a signal before the agent sees it: minus, over, difference, logarithm, mean, scale, clip.

use super::error::AgentError;
use super::expressions::{Expression, Expressions, Values};
use super::memory::Memory;
use super::spec::{DifferenceSpec, FeatureSpec, LagSpec, LogSpec, Operand};

/// Added before a logarithm unless given.
const LOG_PLUS: f64 = 1e-9;
/// Most intervals of a difference over round trips unless given.
const MOST_LAG: u32 = 30;

/// A feature, ready to be computed.
#[derive(Clone)]
pub(crate) struct Feature {
    value: usize,
    minus: Option<Source>,
    over: Option<Source>,
    when_undefined: f64,
    difference: Option<Lag>,
    /// What is added before the logarithm.
    log: Option<f64>,
    ewma: Option<f64>,
    scale: f64,
    /// Bounds.
    pub clip: [f64; 2],
    /// Value before anything was recorded.
    pub empty: f64,
    /// Intervals seen.
    pub history: usize,
    /// Name, unit and formula for people.
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

#[derive(Clone, Copy)]
struct Lag {
    length: Length,
    most: u32,
    relative: bool,
}

#[derive(Clone, Copy)]
enum Length {
    Steps,
    Rtts(f64),
}

impl Feature {
    /// Make the feature that stands at `place` in an observation of `history` intervals.
    pub(crate) fn new(
        spec: &FeatureSpec,
        place: &str,
        history: u32,
        expressions: &mut Expressions,
    ) -> Result<Self, AgentError> {
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
                return Err(AgentError::new(at("minus"), format!("{text} in {found}"), format!("something in {unit}")));
            }
            minus = Some(source);
            formula = format!("{formula} − {text}");
            name = format!("{name} minus {text}");
        }
        let mut over = None;
        if let Some(operand) = &spec.over {
            let Resolved { source, text, its_unit } = operand.resolve(&at("over"), expressions, &mut meanings)?;
            if matches!(source, Source::Number(0.0)) {
                return Err(AgentError::new(at("over"), "0", "a number other than 0"));
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
        AgentError::ensure(spec.when_undefined.is_finite(), &at("when_undefined"), spec.when_undefined, "a number")?;
        let difference = spec.difference.as_ref().map(|d| Lag::new(d, &at("difference"))).transpose()?;
        if let Some(lag) = &difference {
            formula = format!("{} of ({formula}) over {}", lag.word(), lag.text());
            name = format!("{} of {name}", lag.word());
            if lag.relative {
                unit = "1".to_owned();
            }
        }
        let log = match spec.log {
            LogSpec::Plain(false) => None,
            LogSpec::Plain(true) => Some(LOG_PLUS),
            LogSpec::Plus { plus } => Some(plus),
        };
        if let Some(plus) = log {
            AgentError::ensure(plus.is_finite() && plus > 0.0, &at("log.plus"), plus, "a number above 0")?;
            formula = format!("ln({plus} + max(0, {formula}))");
            name = format!("log of {name}");
            unit = format!("ln {unit}");
        }
        if let Some(alpha) = spec.ewma {
            AgentError::ensure(alpha > 0.0 && alpha <= 1.0, &at("ewma"), alpha, "a weight above 0 and up to 1")?;
            formula = format!("ewma of ({formula}), new values weighing {alpha}");
            name = format!("ewma of {name}");
        }
        AgentError::ensure(spec.scale.is_finite() && spec.scale != 0.0, &at("scale"), spec.scale, "a number, not 0")?;
        if spec.scale != 1.0 {
            formula = format!("{} · ({formula})", spec.scale);
            unit = if unit == "1" { unit } else { format!("{unit} · {}", spec.scale) };
        }
        let [low, high] = spec.clip;
        let ordered = low < high && f64::from(low as f32).is_finite() && (high as f32).is_finite();
        AgentError::ensure(ordered, &at("clip"), format!("[{low}, {high}]"), "two float32 numbers, the smaller first")?;
        formula = format!("{formula}, within [{low}, {high}]; {}", meanings.join("; "));
        let empty = spec.empty.unwrap_or(0.0f64.clamp(low, high));
        let within = empty >= low && empty <= high;
        AgentError::ensure(within, &at("empty"), empty, "a number within clip")?;
        let seen = spec.history.unwrap_or(history);
        let possible = seen >= 1 && seen <= history;
        AgentError::ensure(possible, &at("history"), seen, "1 up to the observation's history")?;
        Ok(Self {
            value,
            minus,
            over,
            when_undefined: spec.when_undefined,
            difference,
            log,
            ewma: spec.ewma,
            scale: spec.scale,
            clip: spec.clip,
            empty,
            history: seen as usize,
            name: spec.name.clone().unwrap_or(name),
            unit,
            formula,
        })
    }

    /// Its value for the interval that `values` are of.
    #[inline]
    pub(crate) fn compute(&self, state: &mut FeatureState, values: &Values, memory: &Memory) -> f32 {
        let mut x = values.get(self.value);
        if let Some(minus) = self.minus {
            x -= minus.get(values);
        }
        if let Some(over) = self.over {
            let divisor = over.get(values);
            x = if divisor == 0.0 { self.when_undefined } else { x / divisor };
        }
        if let Some(lag) = &self.difference {
            x = state.change(lag, x, memory);
        }
        if let Some(plus) = self.log {
            x = (plus + x.max(0.0)).ln();
        }
        if let Some(alpha) = self.ewma {
            let mean = state.mean.map_or(x, |mean| mean + alpha * (x - mean));
            state.mean = mean.is_finite().then_some(mean);
            x = mean;
        }
        x *= self.scale;
        let x = if x.is_nan() { self.empty } else { x };
        x.clamp(self.clip[0], self.clip[1]) as f32
    }
}

impl Operand {
    /// Look up what it stands for; the meaning of its signal joins `meanings`.
    fn resolve(
        &self,
        place: &str,
        expressions: &mut Expressions,
        meanings: &mut Vec<String>,
    ) -> Result<Resolved, AgentError> {
        match self {
            Self::Number(number) => {
                AgentError::ensure(number.is_finite(), place, number, "a number")?;
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

/// An operand, looked up: where its value is, how it is written, and its unit if it has one.
struct Resolved {
    source: Source,
    text: String,
    its_unit: Option<&'static str>,
}

/// A unit after "per".
fn singular(unit: &str) -> &str {
    match unit {
        "packets" | "bytes" | "acks" | "samples" | "timeouts" => &unit[..unit.len() - 1],
        _ => unit,
    }
}

/// A number without needless digits: 2e8 rather than 200000000.
fn plain(number: f64) -> String {
    let (long, short) = (format!("{number}"), format!("{number:e}"));
    if long.len() <= 6 || long.len() <= short.len() {
        long
    } else {
        short
    }
}

impl Lag {
    fn new(spec: &DifferenceSpec, place: &str) -> Result<Self, AgentError> {
        let spec = match spec {
            DifferenceSpec::Steps(steps) => LagSpec { steps: Some(*steps), rtts: None, at_most: None, relative: false },
            DifferenceSpec::Lag(spec) => spec.clone(),
        };
        let (length, most) = match (spec.steps, spec.rtts) {
            (Some(steps), None) => (Length::Steps, spec.at_most.map_or(steps, |most| most.min(steps))),
            (None, Some(rtts)) => {
                AgentError::ensure(rtts.is_finite() && rtts > 0.0, &format!("{place}.rtts"), rtts, "above 0")?;
                (Length::Rtts(rtts), spec.at_most.unwrap_or(MOST_LAG))
            }
            _ => return Err(AgentError::new(place, "both or none of steps and rtts", "one of steps and rtts")),
        };
        AgentError::ensure((1..=10_000).contains(&most), place, most, "1 to 10000 intervals")?;
        Ok(Self { length, most, relative: spec.relative })
    }

    fn word(&self) -> &'static str {
        if self.relative {
            "relative change"
        } else {
            "change"
        }
    }

    fn text(&self) -> String {
        match self.length {
            Length::Steps if self.most == 1 => "1 interval".to_owned(),
            Length::Steps => format!("{} intervals", self.most),
            Length::Rtts(rtts) => format!("{rtts} min_rtt (1 to {} intervals)", self.most),
        }
    }
}

/// What a feature remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeatureState {
    /// Latest values before the difference.
    ring: Vec<f64>,
    len: usize,
    next: usize,
    /// Exponentially weighted mean.
    mean: Option<f64>,
}

impl FeatureState {
    pub(crate) fn new(feature: &Feature) -> Self {
        let size = feature.difference.map_or(0, |lag| lag.most as usize + 1);
        Self { ring: vec![0.0; size], ..Self::default() }
    }

    /// How far `x` is from the value some intervals ago, or from the oldest known.
    fn change(&mut self, lag: &Lag, x: f64, memory: &Memory) -> f64 {
        let size = self.ring.len();
        self.ring[self.next] = x;
        let present = self.next;
        self.next = (self.next + 1) % size;
        self.len = (self.len + 1).min(size);
        let back = match lag.length {
            Length::Steps => lag.most as usize,
            Length::Rtts(rtts) if memory.seconds > 0.0 => {
                ((rtts * memory.min_rtt / memory.seconds).round() as usize).clamp(1, lag.most as usize)
            }
            Length::Rtts(_) => 1,
        };
        let old = self.ring[(present + size - back.min(self.len - 1)) % size];
        match lag.relative {
            false => x - old,
            true if old == 0.0 => 0.0,
            true => (x - old) / old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::View;
    use ccgym_core::monitor::MonitorInterval;
    use ccgym_core::units::{TimeSpan, Timestamp};
    use serde_json::{json, Value};

    /// Values of the feature `spec` while the number of packets sent runs through `sent`, at 100 ms per interval.
    fn run(spec: Value, sent: &[u64]) -> Vec<f32> {
        let spec: FeatureSpec = serde_json::from_value(spec).expect("a feature");
        let mut expressions = Expressions::default();
        let feature = Feature::new(&spec, "f", 1, &mut expressions).expect("valid");
        let (mut values, mut state) = (Values::new(&expressions), FeatureState::new(&feature));
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
                feature.compute(&mut state, &values, &memory)
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
        assert_eq!(one(json!({"difference": 1})), [0.0, 2.0, 4.0, 0.0]);
        assert_eq!(one(json!({"difference": 2})), [0.0, 2.0, 6.0, 4.0]);
        // 0.2 s of round trip are two intervals.
        assert_eq!(one(json!({"difference": {"rtts": 1.0}})), [0.0, 2.0, 6.0, 4.0]);
        assert_eq!(one(json!({"difference": {"steps": 1, "relative": true}})), [0.0, 0.5, 4.0 / 6.0, 0.0]);
        assert_eq!(one(json!({"log": {"plus": 1.0}}))[2], 11f64.ln() as f32);
        assert_eq!(one(json!({"ewma": 0.5})), [4.0, 5.0, 7.5, 8.75]);
        assert_eq!(one(json!({"scale": -2})), [-8.0, -12.0, -20.0, -20.0]);
        assert_eq!(one(json!({"clip": [5, 7]})), [5.0, 6.0, 7.0, 7.0]);
        assert_eq!(one(json!({"signal": "previous(sent_packets, 1)"})), [4.0, 4.0, 6.0, 10.0]);
    }

    #[test]
    fn the_order_is_fixed() {
        let spec = json!({"signal": "sent_packets", "minus": 1, "over": 3, "difference": 1, "scale": 10,
                          "clip": [0, 12]});
        assert_eq!(run(spec, &[4, 10, 13]), [0.0, 12.0, 10.0]);
    }

    #[test]
    fn bad_features_are_refused() {
        for (spec, place, words) in [
            (json!({"signal": "cwn", "clip": [0, 1]}), "f.signal", "did you mean \"cwnd\"?"),
            (json!({"signal": "cwnd", "clip": [1, 1]}), "f.clip", "smaller first"),
            (json!({"signal": "cwnd", "clip": [0, 1e39]}), "f.clip", "float32"),
            (json!({"signal": "cwnd", "clip": [0, 1], "minus": "mean_rtt"}), "f.minus", "something in packets"),
            (json!({"signal": "cwnd", "clip": [0, 1], "over": 0}), "f.over", "other than 0"),
            (json!({"signal": "cwnd", "clip": [0, 1], "ewma": 0}), "f.ewma", "above 0"),
            (json!({"signal": "cwnd", "clip": [0, 1], "difference": 0}), "f.difference", "1 to 10000"),
            (json!({"signal": "cwnd", "clip": [0, 1], "empty": 2}), "f.empty", "within clip"),
            (json!({"signal": "cwnd", "clip": [0, 1], "history": 2}), "f.history", "history"),
        ] {
            let spec: FeatureSpec = serde_json::from_value(spec).expect("a feature");
            let error = Feature::new(&spec, "f", 1, &mut Expressions::default()).err().expect(place);
            assert_eq!(error.place, place);
            assert!(error.expected.contains(words), "{error}");
        }
    }
}
