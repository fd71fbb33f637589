//! Square of the share of the link, times closeness to the smallest round trip.

use std::sync::Arc;

use super::{needs, over, parameter, Kind, Term, TermKind, POSITIVE};

pub(super) const KIND: TermKind = TermKind {
    name: "square_power",
    formula: "x·|x|·q with x = (delivery_rate − loss_factor·lost_rate) / link_rate and q = min_rtt / mean_rtt, 1 from \
              forgive on",
    source: "Sage, for a flow alone: weight 25, loss_factor 2, forgive 0.8",
    needs_truth: true,
    parameters: &[
        parameter("loss_factor", POSITIVE, "2", "what a lost bit costs in delivered ones"),
        parameter("forgive", Kind::Number { low: 0.0, high: 1.0 }, "0.8", "a q from this on counts as 1"),
    ],
    build: |p, expressions| {
        let (rate, lost) = (needs(expressions, "delivery_rate"), needs(expressions, "lost_rate"));
        let (factor, forgive) = (p.number("loss_factor"), p.number("forgive"));
        Term {
            unit: "1".to_owned(),
            formula: format!("x·|x|·q, x = (delivery_rate − {factor}·lost_rate) / link_rate, q = min_rtt / mean_rtt"),
            needs_truth: true,
            compute: Arc::new(move |o| {
                let x = over(o.values.get(rate) - factor * o.values.get(lost), o.truth.link_rate);
                let q = over(o.memory.min_rtt, o.memory.mean_rtt);
                x * x.abs() * if q >= forgive { 1.0 } else { q }
            }),
        }
    },
};
