//! Orca's power: throughput less losses over the greatest throughput, times closeness to the smallest round trip.

use std::sync::Arc;

use super::{needs, over, parameter, Kind, Term, TermKind, POSITIVE};

pub(super) const KIND: TermKind = TermKind {
    name: "orca_power",
    formula: "(delivery_rate − loss_factor·lost_rate) / max_delivery_rate · min(1, margin·min_rtt / srtt)",
    source: "Orca: loss_factor 5, margin 1.25",
    needs_truth: false,
    parameters: &[
        parameter("loss_factor", POSITIVE, "5", "what a lost bit costs in delivered ones"),
        parameter("margin", Kind::Number { low: 1.0, high: 1e6 }, "1.25", "round trip over smallest that is free"),
    ],
    build: |p, expressions| {
        let (rate, lost) = (needs(expressions, "delivery_rate"), needs(expressions, "lost_rate"));
        let (greatest, srtt) = (needs(expressions, "max_delivery_rate"), needs(expressions, "srtt"));
        let (factor, margin) = (p.number("loss_factor"), p.number("margin"));
        Term {
            unit: "1".to_owned(),
            formula: format!(
                "(delivery_rate − {factor}·lost_rate) / max_delivery_rate · min(1, {margin}·min_rtt / srtt)"
            ),
            needs_truth: false,
            compute: Arc::new(move |o| {
                let share = over(o.values.get(rate) - factor * o.values.get(lost), o.values.get(greatest));
                share * over(margin * o.memory.min_rtt, o.values.get(srtt)).min(1.0)
            }),
        }
    },
};
