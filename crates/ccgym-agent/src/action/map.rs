//! Maps from the numbers of an action to a new rate, window or gain.

use super::super::expressions::{Expression, Expressions, Values};
use super::super::spec::{ActionSpec, MapSpec, Target};
use ccgym_core::Error;

/// An action map, ready for use.
#[derive(Clone)]
pub(crate) enum Map {
    Discrete(Vec<Operation>),
    SignedMultiply(f64),
    Exponential(f64),
    GainOnEstimate { gains: Vec<f64>, estimate: usize, text: String },
    Pair(f64),
    Passive,
}

/// One operation of a discrete map.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    pub text: String,
    pub kind: Kind,
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Multiply.
    Times(f64),
    /// Divide. Not the product with the inverse, whose last bit may differ.
    Over(f64),
    /// Add packets.
    Plus(f64),
}

/// A quantity that a map changes.
#[derive(Clone, Copy)]
pub(crate) struct Quantity {
    /// Its current value.
    pub value: f64,
    /// Value of one packet in its unit; zero while unknown.
    pub packet: f64,
    /// Index of the number of the action that steers it, if there are two.
    pub component: usize,
}

impl Operation {
    fn parse(place: &str, text: &str) -> Result<Self, Error> {
        let expected = "*x, /x, +n or -n, such as \"*1.25\" or \"+10\"";
        let malformed = || Error::new(place, format!("\"{text}\""), expected);
        let sign = text.chars().next().ok_or_else(malformed)?;
        let amount: f64 = text[sign.len_utf8()..].trim().parse().map_err(|_| malformed())?;
        let kind = match sign {
            '*' if amount > 0.0 => Kind::Times(amount),
            '/' if amount > 0.0 => Kind::Over(amount),
            '+' if amount >= 0.0 => Kind::Plus(amount),
            '-' if amount >= 0.0 => Kind::Plus(-amount),
            _ => return Err(malformed()),
        };
        Error::ensure(amount.is_finite(), place, text, expected)?;
        Ok(Self { text: text.to_owned(), kind })
    }

    /// Format the result for the quantity called `x`, to which amounts are added in `unit`.
    pub(crate) fn apply_text(&self, x: &str, unit: &str) -> String {
        match self.kind {
            Kind::Times(factor) => format!("{x} · {factor}"),
            Kind::Over(factor) => format!("{x} / {factor}"),
            Kind::Plus(packets) if packets < 0.0 => format!("{x} − {} {unit}", -packets),
            Kind::Plus(packets) => format!("{x} + {packets} {unit}"),
        }
    }
}

impl Map {
    /// Make the map of `spec`.
    pub(crate) fn new(spec: &ActionSpec, expressions: &mut Expressions) -> Result<Self, Error> {
        let place = "action.map";
        let at = |field: &str| format!("{place}.{field}");
        let positive = |field: &str, x: f64| Error::ensure(x.is_finite() && x > 0.0, &at(field), x, "a number above 0");
        let map = match &spec.map {
            MapSpec::Discrete { operations } => {
                Error::ensure(!operations.is_empty(), &at("operations"), "none", "at least one operation")?;
                let parse = |(i, text): (usize, &String)| Operation::parse(&at(&format!("operations[{i}]")), text);
                let operations = operations.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
                for (i, Operation { text, kind }) in operations.iter().enumerate() {
                    let adds = spec.target == Target::Gain && matches!(kind, Kind::Plus(_));
                    let (place, expected) = (at(&format!("operations[{i}]")), "*x or /x: a gain has no packets to add");
                    Error::ensure(!adds, &place, format!("\"{text}\""), expected)?;
                }
                Self::Discrete(operations)
            }
            MapSpec::SignedMultiply { delta } => positive("delta", *delta).map(|()| Self::SignedMultiply(*delta))?,
            MapSpec::Exponential { base } => {
                Error::ensure(base.is_finite() && *base > 1.0, &at("base"), base, "a number above 1")?;
                Self::Exponential(*base)
            }
            MapSpec::GainOnEstimate { gains, estimate } => {
                Error::ensure(!gains.is_empty(), &at("gains"), "none", "at least one gain")?;
                for (i, gain) in gains.iter().enumerate() {
                    positive(&format!("gains[{i}]"), *gain)?;
                }
                let unit = match spec.target {
                    Target::Rate => "bit/s",
                    Target::Cwnd => "packets",
                    Target::Both | Target::Gain => {
                        let found = format!("{:?}, with gain_on_estimate", spec.target).to_lowercase();
                        return Err(Error::new("action.target", found, "rate or cwnd: the map gives one value"));
                    }
                };
                let estimate = Expression::parse_in(&at("estimate"), estimate, unit)?;
                let text = estimate.text();
                Self::GainOnEstimate { gains: gains.clone(), estimate: expressions.insert(estimate), text }
            }
            MapSpec::Pair { delta } => {
                positive("delta", *delta)?;
                Error::ensure(spec.target == Target::Both, "action.target", "not both", "both, for a pair")?;
                Self::Pair(*delta)
            }
            MapSpec::Passive {} => Self::Passive,
        };
        let passive = matches!(map, Self::Passive) && spec.inner.is_none();
        Error::ensure(!passive, "action.inner", "none", "the scheme that decides where the map is passive")?;
        Ok(map)
    }

    /// Return the number of operations or gains; `None` if the action is real numbers.
    pub(crate) fn choices(&self) -> Option<usize> {
        match self {
            Self::Discrete(operations) => Some(operations.len()),
            Self::GainOnEstimate { gains, .. } => Some(gains.len()),
            Self::Passive => Some(1),
            _ => None,
        }
    }

    /// Return the number of real numbers in an action.
    pub(crate) fn size(&self) -> usize {
        1 + usize::from(matches!(self, Self::Pair(_)))
    }

    /// Return the result of `action` for `quantity`.
    #[inline]
    pub(crate) fn apply(&self, action: [f64; 2], quantity: Quantity, values: &Values) -> f64 {
        let (a, x) = (action[0], quantity.value);
        match self {
            Self::Discrete(operations) => match operations[a as usize].kind {
                Kind::Times(factor) => x * factor,
                Kind::Over(factor) => x / factor,
                Kind::Plus(packets) => x + packets * quantity.packet,
            },
            Self::SignedMultiply(delta) => signed(x, *delta * a),
            Self::Exponential(base) => x * base.powf(a),
            Self::GainOnEstimate { gains, estimate, .. } => {
                let estimate = values.get(*estimate);
                if estimate > 0.0 {
                    gains[a as usize] * estimate
                } else {
                    x
                }
            }
            Self::Pair(delta) => signed(x, *delta * action[quantity.component]),
            Self::Passive => x,
        }
    }
}

/// Aurora's move: opposite signs cancel.
#[inline]
fn signed(x: f64, change: f64) -> f64 {
    if change >= 0.0 {
        x * (1.0 + change)
    } else {
        x / (1.0 - change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        for (text, kind) in
            [("*2", Kind::Times(2.0)), ("/1.05", Kind::Over(1.05)), ("+0", Kind::Plus(0.0)), ("-10", Kind::Plus(-10.0))]
        {
            assert_eq!(Operation::parse("p", text).expect(text).kind, kind);
        }
        for text in ["", "2", "*0", "/-1", "*x", "+inf", "^2", "÷2"] {
            assert!(Operation::parse("p", text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_map() {
        let values = Values::new(&Expressions::default());
        let operation = |text| Operation::parse("p", text).expect(text);
        let discrete = Map::Discrete(vec![operation("/4"), operation("+3")]);
        for (map, action, value, component, wanted) in [
            (&Map::SignedMultiply(0.025), [2.0, 0.0], 100.0, 0, 105.0),
            (&Map::SignedMultiply(0.025), [-2.0, 0.0], 105.0, 0, 100.0),
            (&Map::Exponential(4.0), [-0.5, 0.0], 100.0, 0, 50.0),
            (&Map::Pair(0.5), [1.0, -2.0], 10.0, 0, 15.0),
            (&Map::Pair(0.5), [1.0, -2.0], 10.0, 1, 5.0),
            (&discrete, [0.0, 0.0], 10.0, 0, 2.5),
            (&discrete, [1.0, 0.0], 10.0, 0, 16.0),
            (&Map::Passive, [0.0, 0.0], 10.0, 0, 10.0),
        ] {
            assert_eq!(map.apply(action, Quantity { value, packet: 2.0, component }, &values), wanted);
        }
    }
}
