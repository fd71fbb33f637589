//! Logarithm of throughput minus logarithms of delay and loss.

use std::sync::Arc;

use super::{needs, parameter, Term, TermKind, POSITIVE};

pub(super) const KIND: TermKind = TermKind {
    name: "log_power",
    formula: "throughput_weight·ln(ε + delivery_rate in MB/s) − delay_weight·ln(ε + max_queue_delay in ms) − \
              loss_weight·ln(ε + lost MB), ε = epsilon",
    source: "mvfst-rl: weights 1, 0.2, 0 and ε 1e-5",
    needs_truth: false,
    parameters: &[
        parameter("throughput_weight", POSITIVE, "1", "factor of the throughput's logarithm"),
        parameter("delay_weight", POSITIVE, "0.2", "factor of the delay's logarithm"),
        parameter("loss_weight", POSITIVE, "0", "factor of the loss's logarithm"),
        parameter("epsilon", super::Kind::Number { low: 1e-12, high: 1.0 }, "1e-5", "added before each logarithm"),
    ],
    build: |p, expressions| {
        let (rate, delay) = (needs(expressions, "delivery_rate"), needs(expressions, "max_queue_delay"));
        let (a, b, c) = (p.number("throughput_weight"), p.number("delay_weight"), p.number("loss_weight"));
        let e = p.number("epsilon");
        Term {
            unit: "1".to_owned(),
            formula: format!(
                "{a}·ln({e} + delivery_rate/MB/s) − {b}·ln({e} + max_queue_delay/ms) − {c}·ln({e} + lost/MB)"
            ),
            needs_truth: false,
            compute: Arc::new(move |o| {
                let rate = o.values.get(rate) / 8e6;
                let delay = o.values.get(delay) * 1e3;
                a * (e + rate).ln() - b * (e + delay).ln() - c * (e + o.m.lost_bytes as f64 / 1e6).ln()
            }),
        }
    },
};
