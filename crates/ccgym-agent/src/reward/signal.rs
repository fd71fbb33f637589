//! Any signal.

use std::sync::Arc;

use super::{parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "signal",
    formula: "of, as it is",
    source: "none: for rewards of one's own",
    needs_truth: false,
    parameters: &[parameter("of", Kind::Expression(""), "", "a signal, or a function of one")],
    build: |p, _| {
        let of = p.value("of");
        let unit = p.optional_value("of").map_or("", |(_, expression)| expression.signal.unit);
        Term {
            unit: unit.to_owned(),
            formula: p.text("of"),
            needs_truth: false,
            compute: Arc::new(move |o| o.values.get(of)),
        }
    },
};
