//! An application's bound on delay.

use std::sync::Arc;

use super::{needs, parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "delay_target",
    formula: "±min(samples · delivery_rate in Mbit/s · mean_rtt / target, cap), negative where mean_rtt > target",
    source: "DeepCC: cap 100",
    needs_truth: false,
    parameters: &[
        parameter("target", Kind::Number { low: 1.0, high: 1e12 }, "", "round trip that the application can bear, ns"),
        parameter("cap", Kind::Number { low: 0.0, high: 1e12 }, "100", "greatest magnitude"),
    ],
    build: |p, expressions| {
        let (rate, rtt) = (needs(expressions, "delivery_rate"), needs(expressions, "mean_rtt"));
        let (target, cap) = (p.number("target") / 1e9, p.number("cap"));
        Term {
            unit: "Mbit/s".to_owned(),
            formula: format!("±min(samples · delivery_rate · mean_rtt / {target} s, {cap}), negative above the target"),
            needs_truth: false,
            compute: Arc::new(move |o| {
                let rtt = o.values.get(rtt);
                let value = (o.m.rtt_count() as f64 * o.values.get(rate) / 1e6 * rtt / target).min(cap);
                if rtt > target {
                    -value
                } else {
                    value
                }
            }),
        }
    },
};
