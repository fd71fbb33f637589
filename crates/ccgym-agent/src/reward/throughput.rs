//! A rate.

use std::sync::Arc;

use super::{over, parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "throughput",
    formula: "of, in unit; divided by over if given (0 where that is 0)",
    source: "PCC-RL network_sim.py: 10 per packet/s of receive_rate; Eagle: delivery_rate over its recent greatest",
    needs_truth: false,
    parameters: &[
        parameter("of", Kind::Expression("bit/s"), "\"delivery_rate\"", "the rate"),
        parameter(
            "unit",
            Kind::Word(&["Mbit/s", "packets/s", "MB/s", "bit/s"]),
            "\"Mbit/s\"",
            "unit; packets are full ones of wire bytes; without effect where over is given",
        ),
        parameter("over", Kind::Expression("bit/s"), "null", "divide by this rate"),
    ],
    build: |p, _| {
        let (of, unit) = (p.value("of"), p.word("unit"));
        if let Some((divisor, _)) = p.optional_value("over") {
            return Term {
                unit: "1".to_owned(),
                formula: format!("{} / {}", p.text("of"), p.text("over")),
                needs_truth: false,
                compute: Arc::new(move |o| over(o.values.get(of), o.values.get(divisor))),
            };
        }
        let per_packet = unit == "packets/s";
        let bits = match unit {
            "Mbit/s" => 1e6,
            "MB/s" => 8e6,
            _ => 1.0,
        };
        Term {
            unit: unit.to_owned(),
            formula: p.text("of"),
            needs_truth: false,
            compute: Arc::new(move |o| o.values.get(of) / if per_packet { 8.0 * o.memory.mss } else { bits }),
        }
    },
};
