//! A round trip.

use std::sync::Arc;

use super::{parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "latency",
    formula: "of, in unit; of an interval without a sample: that of the latest that had one",
    source: "PCC-RL network_sim.py: −1000 per second of the interval's mean round trip (0 there without a sample)",
    needs_truth: false,
    parameters: &[
        parameter("of", Kind::Expression("s"), "\"mean_rtt\"", "the time"),
        parameter("unit", Kind::Word(&["s", "ms"]), "\"s\"", "unit"),
    ],
    build: |p, _| {
        let (of, unit) = (p.value("of"), p.word("unit"));
        let factor = if unit == "ms" { 1e3 } else { 1.0 };
        Term {
            unit: unit.to_owned(),
            formula: p.text("of"),
            needs_truth: false,
            compute: Arc::new(move |o| o.values.get(of) * factor),
        }
    },
};
