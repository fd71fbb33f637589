//! Part of the packets that arrived.

use std::sync::Arc;

use super::{needs, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "delivery",
    formula: "1 − lost / (lost + acked), packets of the interval; 1 if there were none",
    source: "MOCC: 1 − loss",
    needs_truth: false,
    parameters: &[],
    build: |_, expressions| {
        let loss = needs(expressions, "loss_fraction");
        Term {
            unit: "1".to_owned(),
            formula: "1 − lost / (lost + acked)".to_owned(),
            needs_truth: false,
            compute: Arc::new(move |o| 1.0 - o.values.get(loss)),
        }
    },
};
