//! How much a rate varies from interval to interval.

use std::sync::Arc;

use super::super::expressions::{Expression, Function};
use super::{over, parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "stability",
    formula: "standard deviation over mean of a rate over the latest window intervals: a cost",
    source: "Astraea: instability of the throughput",
    needs_truth: false,
    parameters: &[
        parameter("of", Kind::Expression("bit/s"), "\"delivery_rate\"", "the rate, a plain signal"),
        parameter("window", Kind::Number { low: 2.0, high: 10_000.0 }, "5", "intervals"),
    ],
    build: |p, expressions| {
        let n = p.number("window") as u32;
        let mut add =
            |function| p.optional_value("of").map_or(0, |(_, of)| expressions.insert(Expression { function, n, ..of }));
        let (std, mean) = (add(Function::Std), add(Function::Mean));
        Term {
            unit: "1".to_owned(),
            formula: format!("std / mean of {} over {n} intervals", p.text("of")),
            needs_truth: false,
            compute: Arc::new(move |o| over(o.values.get(std), o.values.get(mean))),
        }
    },
};
