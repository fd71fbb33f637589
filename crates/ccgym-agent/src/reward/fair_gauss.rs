//! Closeness to the fair share.

use std::sync::Arc;

use super::{needs, over, parameter, Kind, Term, TermKind, POSITIVE};

pub(super) const KIND: TermKind = TermKind {
    name: "fair_gauss",
    formula: "exp(−width·(x − 1)²) with x = min(delivery_rate / (headroom · fair_share), at_most)",
    source: "Sage, against other flows: weight 25, width 8, headroom 0.95, at_most 2",
    needs_truth: true,
    parameters: &[
        parameter("headroom", Kind::Number { low: 0.01, high: 1.0 }, "0.95", "part of the fair share to aim at"),
        parameter("width", POSITIVE, "8", "how fast it falls"),
        parameter("at_most", POSITIVE, "2", "greatest x"),
    ],
    build: |p, expressions| {
        let rate = needs(expressions, "delivery_rate");
        let (headroom, width, at_most) = (p.number("headroom"), p.number("width"), p.number("at_most"));
        Term {
            unit: "1".to_owned(),
            formula: format!("exp(−{width}·(x − 1)²), x = min(delivery_rate / ({headroom}·fair_share), {at_most})"),
            needs_truth: true,
            compute: Arc::new(move |o| {
                let x = over(o.values.get(rate), headroom * o.truth.fair_share).min(at_most);
                (-width * (x - 1.0) * (x - 1.0)).exp()
            }),
        }
    },
};
