//! Delivery rate over what the path would have given.

use std::sync::Arc;

use super::{over, parameter, Kind, Term, TermKind, POSITIVE};

pub(super) const KIND: TermKind = TermKind {
    name: "utilization",
    formula: "min(of / base, at_most); 0 where base is 0",
    source: "Genet: 500 · throughput over the link's mean rate",
    needs_truth: true,
    parameters: &[
        parameter("of", Kind::Expression("bit/s"), "\"delivery_rate\"", "the rate"),
        parameter("base", Kind::Word(&["link_rate", "fair_share"]), "\"link_rate\"", "of the bottleneck in force"),
        parameter("at_most", POSITIVE, "null", "greatest value"),
    ],
    build: |p, _| {
        let (of, fair) = (p.value("of"), p.word("base") == "fair_share");
        let at_most = p.optional("at_most").unwrap_or(f64::INFINITY);
        Term {
            unit: "1".to_owned(),
            formula: format!("{} / {}", p.text("of"), p.word("base")),
            needs_truth: true,
            compute: Arc::new(move |o| {
                let base = if fair { o.truth.fair_share } else { o.truth.link_rate };
                over(o.values.get(of), base).min(at_most)
            }),
        }
    },
};
