//! Round trip beyond the smallest.

use std::sync::Arc;

use super::{needs, over, parameter, Kind, Term, TermKind, POSITIVE};

pub(super) const KIND: TermKind = TermKind {
    name: "queue_delay",
    formula: "min(mean_rtt − min_rtt, at_most), in unit",
    source: "Eagle: −β·min(d, 2) with d in smallest round trips",
    needs_truth: false,
    parameters: &[
        parameter("unit", Kind::Word(&["s", "ms", "min_rtt"]), "\"s\"", "unit; min_rtt: relative to it"),
        parameter("at_most", POSITIVE, "null", "greatest value, in the unit"),
    ],
    build: |p, expressions| {
        let (delay, unit) = (needs(expressions, "queue_delay"), p.word("unit"));
        let at_most = p.optional("at_most").unwrap_or(f64::INFINITY);
        let relative = unit == "min_rtt";
        let factor = if unit == "ms" { 1e3 } else { 1.0 };
        let mut formula = "mean_rtt − min_rtt".to_owned();
        if at_most.is_finite() {
            formula = format!("min({formula}, {at_most} {unit})");
        }
        Term {
            unit: unit.to_owned(),
            formula,
            needs_truth: false,
            compute: Arc::new(move |o| {
                let delay = o.values.get(delay);
                let shown = if relative { over(delay, o.memory.min_rtt) } else { delay * factor };
                shown.min(at_most)
            }),
        }
    },
};
