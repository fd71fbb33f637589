//! Signals and their statistics over several intervals, each computed once per interval however often it is used.

use super::signals::{find, Signal, View, SIGNALS};
use ccgym_core::Error;

/// Max window, intervals.
const MAX_WINDOW: u32 = 10_000;

/// Functions of a signal's latest values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Present,
    Mean,
    Min,
    Max,
    Std,
    Sum,
    Previous,
    RttsAgo,
}

/// Max intervals that a min RTT counts as, for `rtts_ago` (Muses).
const MAX_LAG: usize = 30;

/// Names and descriptions of the functions.
pub(crate) const FUNCTIONS: &[(&str, Function, &str)] = &[
    ("mean", Function::Mean, "mean over the latest n intervals, this one included"),
    ("min", Function::Min, "min over the latest n intervals"),
    ("max", Function::Max, "max over the latest n intervals"),
    ("std", Function::Std, "standard deviation over the latest n intervals, divisor their number"),
    ("sum", Function::Sum, "sum over the latest n intervals"),
    ("previous", Function::Previous, "value n intervals ago, or the oldest known"),
    (
        "rtts_ago",
        Function::RttsAgo,
        "value n minimum RTTs ago, or the oldest known; each counts as 1 to 30 whole intervals",
    ),
];

/// A signal, or a function of its latest values.
#[derive(Clone, Copy)]
pub(crate) struct Expression {
    pub signal: &'static Signal,
    pub function: Function,
    pub n: u32,
}

impl Expression {
    /// Read `NAME` or `FUNCTION(NAME, n)`, found at `place`.
    pub(crate) fn parse(place: &str, text: &str) -> Result<Self, Error> {
        let signal = |name: &str| {
            let names = SIGNALS.iter().map(|s| s.name);
            find(name).ok_or_else(|| Error::unknown("unknown-name", place, "the name of a signal", name, names))
        };
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self { signal: signal(text.trim())?, function: Function::Present, n: 1 });
        };
        let name = name.trim();
        let names = FUNCTIONS.iter().map(|f| f.0);
        let row = FUNCTIONS.iter().find(|f| f.0 == name);
        let (_, function, _) = row.ok_or_else(|| Error::unknown("unknown-name", place, "a function", name, names))?;
        let longest = if *function == Function::RttsAgo { MAX_WINDOW / MAX_LAG as u32 } else { MAX_WINDOW };
        let expected = format!("FUNCTION(SIGNAL, n), n from 1 to {longest}");
        let malformed = || Error::new(place, format!("\"{text}\""), expected.as_str());
        let (inside, tail) = rest.rsplit_once(')').ok_or_else(malformed)?;
        let (of, n) = inside.split_once(',').ok_or_else(malformed)?;
        let n: u32 = n.trim().parse().map_err(|_| malformed())?;
        if !tail.trim().is_empty() || n == 0 || n > longest {
            return Err(malformed());
        }
        Ok(Self { signal: signal(of.trim())?, function: *function, n })
    }

    /// As [`Expression::parse`], of a unit.
    pub(crate) fn parse_in(place: &str, text: &str, unit: &str) -> Result<Self, Error> {
        let expression = Self::parse(place, text)?;
        let found = expression.signal.unit;
        Error::ensure(found == unit, place, format!("\"{text}\" in {found}"), format!("an expression in {unit}"))?;
        Ok(expression)
    }

    /// Format it as written.
    pub(crate) fn text(&self) -> String {
        match FUNCTIONS.iter().find(|f| f.1 == self.function) {
            Some((name, ..)) => format!("{name}({}, {})", self.signal.name, self.n),
            None => self.signal.name.to_owned(),
        }
    }

    /// Return the meaning of its signal.
    pub(crate) fn meaning(&self) -> String {
        format!("{} = {}", self.signal.name, self.signal.formula)
    }

    fn same(&self, other: &Self) -> bool {
        self.signal.name == other.signal.name && self.function == other.function && self.n == other.n
    }
}

/// The expressions that an agent uses.
#[derive(Clone, Default)]
pub(crate) struct Expressions {
    all: Vec<Expression>,
}

impl Expressions {
    /// Add the expression at `place`, and return the index of its value.
    pub(crate) fn add(&mut self, place: &str, text: &str) -> Result<usize, Error> {
        Ok(self.insert(Expression::parse(place, text)?))
    }

    /// Add `expression`, and return the index of its value.
    pub(crate) fn insert(&mut self, expression: Expression) -> usize {
        self.all.iter().position(|e| e.same(&expression)).unwrap_or_else(|| {
            self.all.push(expression);
            self.all.len() - 1
        })
    }

    /// True if one of them uses the signal called `name`.
    pub(crate) fn uses(&self, name: &str) -> bool {
        self.all.iter().any(|e| e.signal.name == name)
    }

    /// True if one of them needs the averages over acknowledgements.
    pub(crate) fn needs_rate_samples(&self) -> bool {
        self.all.iter().any(|e| e.signal.needs_rate_samples())
    }
}

/// Values of the expressions for one flow.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    now: Vec<f64>,
    /// One window per expression; empty for current values.
    windows: Vec<Window>,
}

impl Values {
    pub(crate) fn new(expressions: &Expressions) -> Self {
        let windows = expressions.all.iter().map(Window::of).collect();
        Self { now: vec![0.0; expressions.all.len()], windows }
    }

    /// Compute the values that show the reward, or all others. Values that are not finite count as 0.
    pub(crate) fn update(&mut self, expressions: &Expressions, view: &View<'_>, of_reward: bool) {
        let rtt = (view.memory.min_rtt / view.memory.seconds).round();
        let rtt = if rtt.is_finite() { rtt as usize } else { 1 }.clamp(1, MAX_LAG);
        for ((expression, value), window) in expressions.all.iter().zip(&mut self.now).zip(&mut self.windows) {
            if expression.signal.of_reward != of_reward {
                continue;
            }
            let present = (expression.signal.compute)(view);
            let present = if present.is_finite() { present } else { 0.0 };
            *value = match expression.function {
                Function::Present => present,
                Function::RttsAgo => window.push_and_look_back(present, expression.n as usize * rtt),
                function => window.push(function, present),
            };
        }
    }

    /// Return the same with another value of index `i`.
    #[cfg(test)]
    pub(crate) fn with(mut self, i: usize, value: f64) -> Self {
        self.now[i] = value;
        self
    }

    #[inline]
    pub(crate) fn get(&self, i: usize) -> f64 {
        self.now[i]
    }
}

/// The latest values of a signal.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    ring: Vec<f64>,
    /// Number of values.
    len: usize,
    /// Index of the next value.
    next: usize,
    /// Running sum, or extreme.
    state: f64,
}

impl Window {
    fn of(expression: &Expression) -> Self {
        Self::new(match expression.function {
            Function::Present => 0,
            Function::Previous => expression.n as usize + 1,
            Function::RttsAgo => expression.n as usize * MAX_LAG + 1,
            _ => expression.n as usize,
        })
    }

    /// Make a window of the latest `size` values.
    pub(crate) fn new(size: usize) -> Self {
        Self { ring: vec![0.0; size], len: 0, next: 0, state: 0.0 }
    }

    /// Add a value, and return the one that came `lag` values before it, or the oldest.
    fn push_and_look_back(&mut self, value: f64, lag: usize) -> f64 {
        self.push(Function::RttsAgo, value);
        let size = self.ring.len();
        self.ring[(self.next + size - 1 - lag.min(self.len - 1)) % size]
    }

    /// Add a value, and return the function of the values. The function must always be the same.
    pub(crate) fn push(&mut self, function: Function, value: f64) -> f64 {
        let full = self.len == self.ring.len();
        let gone = std::mem::replace(&mut self.ring[self.next], value);
        self.next = (self.next + 1) % self.ring.len();
        self.len += usize::from(!full);
        let held = &self.ring[..self.len];
        let oldest = if self.len == self.ring.len() { self.next } else { 0 };
        match function {
            Function::Present => value,
            Function::Previous | Function::RttsAgo => self.ring[oldest],
            Function::Min => {
                let rescan = self.len == 1 || (full && gone <= self.state);
                self.state = if rescan { held.iter().copied().fold(f64::MAX, f64::min) } else { self.state.min(value) };
                self.state
            }
            Function::Max => {
                let rescan = self.len == 1 || (full && gone >= self.state);
                self.state = if rescan { held.iter().copied().fold(f64::MIN, f64::max) } else { self.state.max(value) };
                self.state
            }
            Function::Sum | Function::Mean => {
                // Summed again once per turn, to keep rounding errors small.
                self.state =
                    if self.next == 0 { held.iter().sum() } else { self.state + value - if full { gone } else { 0.0 } };
                if function == Function::Sum {
                    self.state
                } else {
                    self.state / self.len as f64
                }
            }
            Function::Std => {
                let n = self.len as f64;
                let mean = held.iter().sum::<f64>() / n;
                (held.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_writes_expressions() {
        for text in ["mean_rtt", "max(delivery_rate, 10)", "previous(cwnd, 3)"] {
            assert_eq!(Expression::parse("p", text).expect(text).text(), text);
        }
        for (text, code) in [
            ("mean_rt", "unknown-name"),
            ("maxx(delivery_rate, 10)", "unknown-name"),
            ("max(delivery_rate)", "invalid-value"),
            ("max(delivery_rate, 0)", "invalid-value"),
            ("max(delivery_rate, 3) * 2", "invalid-value"),
            ("rtts_ago(cwnd, 400)", "invalid-value"),
        ] {
            let error = Expression::parse("f[0]", text).err().expect(text);
            assert_eq!((&*error.code, &*error.place), (code, "f[0]"), "{error}");
        }
        let near = Expression::parse("f[0]", "mean_rt").err().expect("no signal").hint;
        assert!(near.contains("\"mean_rtt\""), "{near}");
        assert!(Expression::parse_in("p", "mean_rtt", "bit/s").is_err());
    }

    #[test]
    fn looks_back_by_round_trips() {
        let mut window = Window::of(&Expression { signal: &SIGNALS[0], function: Function::RttsAgo, n: 2 });
        let seen: Vec<f64> = (0..100).map(|i| window.push_and_look_back(f64::from(i), 4)).collect();
        assert_eq!(seen[..6], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(seen[99], 95.0);
        // The lag may change, up to twice thirty intervals.
        assert_eq!(window.push_and_look_back(100.0, 60), 40.0);
        assert_eq!(window.push_and_look_back(101.0, 1), 100.0);
    }

    #[test]
    fn equal_expressions_are_computed_once() {
        let mut all = Expressions::default();
        assert_eq!(all.add("p", "max(cwnd, 2)").expect("good"), 0);
        assert_eq!(all.add("p", "max(cwnd, 3)").expect("good"), 1);
        assert_eq!(all.add("p", "max( cwnd,2 )").expect("good"), 0);
    }

    proptest! {
        #[test]
        fn windows_agree_with_a_scan(values in prop::collection::vec(-10i32..10, 1..60), n in 1u32..8) {
            for (_, function, _) in FUNCTIONS {
                let signal = &SIGNALS[0];
                let mut window = Window::of(&Expression { signal, function: *function, n });
                for end in 1..=values.len() {
                    let latest_value = f64::from(values[end - 1]);
                    let got = match function {
                        Function::RttsAgo => window.push_and_look_back(latest_value, n as usize),
                        _ => window.push(*function, latest_value),
                    };
                    let latest: Vec<f64> =
                        values[end.saturating_sub(n as usize)..end].iter().map(|v| f64::from(*v)).collect();
                    let sum: f64 = latest.iter().sum();
                    let mean = sum / latest.len() as f64;
                    let want = match function {
                        Function::Mean => mean,
                        Function::Sum => sum,
                        Function::Min => latest.iter().copied().fold(f64::MAX, f64::min),
                        Function::Max => latest.iter().copied().fold(f64::MIN, f64::max),
                        Function::Std => {
                            (latest.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / latest.len() as f64).sqrt()
                        }
                        _ => f64::from(values[(end - 1).saturating_sub(n as usize)]),
                    };
                    prop_assert!((got - want).abs() < 1e-9, "{function:?} {got} {want}");
                }
            }
        }
    }
}
