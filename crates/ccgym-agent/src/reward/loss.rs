//! Part of the packets that was lost.

use std::sync::Arc;

use super::{needs, parameter, Kind, Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "loss",
    formula: "lost / (lost + acked), or lost / sent, packets of the interval; 0 if there were none",
    source: "PCC-RL sender_obs.py, \"loss ratio\": lost / (lost + acked)",
    needs_truth: false,
    parameters: &[parameter("of", Kind::Word(&["settled", "sent"]), "\"settled\"", "settled: acknowledged or lost")],
    build: |p, expressions| {
        let (signal, formula) = match p.word("of") {
            "sent" => ("loss_over_sent", "lost / sent"),
            _ => ("loss_fraction", "lost / (lost + acked)"),
        };
        let loss = needs(expressions, signal);
        Term {
            unit: "1".to_owned(),
            formula: formula.to_owned(),
            needs_truth: false,
            compute: Arc::new(move |o| o.values.get(loss)),
        }
    },
};
