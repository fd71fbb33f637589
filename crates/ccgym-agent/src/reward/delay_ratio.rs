//! Closeness of the round trip to the smallest one.

use std::sync::Arc;

use super::{over, parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "delay_ratio",
    formula: "min(1, margin · base / mean_rtt); 0 before any round trip",
    source: "MOCC: base over actual latency",
    needs_truth: false,
    parameters: &[
        parameter(
            "base",
            Kind::Word(&["min_rtt", "base_rtt"]),
            "\"min_rtt\"",
            "the flow's smallest round trip, or the path's without a queue",
        ),
        parameter("margin", Kind::Number { low: 1.0, high: 1e6 }, "1", "round trip over base that is free"),
    ],
    build: |p, _| {
        let (base, margin) = (p.word("base"), p.number("margin"));
        let truth = base == "base_rtt";
        Term {
            unit: "1".to_owned(),
            formula: format!("min(1, {margin} · {base} / mean_rtt)"),
            needs_truth: truth,
            compute: Arc::new(move |o| {
                let base = if truth { o.truth.base_rtt } else { o.memory.min_rtt };
                over(margin * base, o.memory.mean_rtt).min(1.0)
            }),
        }
    },
};
