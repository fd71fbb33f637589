//! Every kind of term, one row each, in the order of documentation.

use std::sync::Arc;

use super::parameters::Kind;
use super::{over, parameter, Compute, Outcome, Term, TermKind, POSITIVE};

fn term(unit: &str, formula: String, compute: Compute) -> Term {
    Term { unit: unit.to_owned(), formula, compute }
}

pub(super) static KINDS: &[TermKind] = &[
    TermKind {
        name: "throughput",
        help: "A rate.",
        formula: "of, in unit; divided by over if given (0 where that is 0)",
        source: "PCC-RL network_sim.py: 10 per packet/s of receive_rate; Eagle: delivery_rate over its recent maximum",
        needs_truth: false,
        parameters: &[
            parameter("of", Kind::Expression("bit/s"), "\"delivery_rate\"", "a rate: delivery_rate, receive_rate, …"),
            parameter(
                "unit",
                Kind::Word(&["Mbit/s", "packets/s", "MB/s", "bit/s"]),
                "\"Mbit/s\"",
                "unit of the weight; packets are full ones of wire bytes; without effect where over is given",
            ),
            parameter("over", Kind::Expression("bit/s"), "null", "divide by this rate, instead of a unit"),
        ],
        build: |p, _| {
            let (of, unit) = (p.value("of"), p.word("unit"));
            if let Some((divisor, _)) = p.optional_value("over") {
                let formula = format!("{} / {}", p.text("of"), p.text("over"));
                return term("1", formula, Arc::new(move |o| over(o.values.get(of), o.values.get(divisor))));
            }
            let per_packet = unit == "packets/s";
            let bits = match unit {
                "Mbit/s" => 1e6,
                "MB/s" => 8e6,
                _ => 1.0,
            };
            let compute = move |o: &Outcome<'_>| o.values.get(of) / if per_packet { 8.0 * o.memory.mss } else { bits };
            term(unit, p.text("of"), Arc::new(compute))
        },
    },
    TermKind {
        name: "latency",
        help: "A round-trip time.",
        formula: "of, in unit; of an interval without a sample: that of the latest that had one",
        source: "PCC-RL network_sim.py: −1000 per second of the interval's mean round trip (0 there without a sample)",
        needs_truth: false,
        parameters: &[
            parameter("of", Kind::Expression("s"), "\"mean_rtt\"", "a signal in seconds"),
            parameter("unit", Kind::Word(&["s", "ms"]), "\"s\"", "unit of the weight"),
        ],
        build: |p, _| {
            let (of, unit) = (p.value("of"), p.word("unit"));
            let factor = if unit == "ms" { 1e3 } else { 1.0 };
            term(unit, p.text("of"), Arc::new(move |o| o.values.get(of) * factor))
        },
    },
    TermKind {
        name: "queue_delay",
        help: "Round-trip time above the minimum.",
        formula: "min(mean_rtt − min_rtt, max), in unit",
        source: "Eagle: −β·min(d, 2) with d in minimum round trips",
        needs_truth: false,
        parameters: &[
            parameter(
                "unit",
                Kind::Word(&["s", "ms", "min_rtt"]),
                "\"s\"",
                "unit of the weight; min_rtt: relative to it",
            ),
            parameter("max", POSITIVE, "null", "larger values count as this, in the unit"),
        ],
        build: |p, signals| {
            let (delay, unit) = (signals.index("queue_delay"), p.word("unit"));
            let max = p.optional("max").unwrap_or(f64::INFINITY);
            let relative = unit == "min_rtt";
            let factor = if unit == "ms" { 1e3 } else { 1.0 };
            let mut formula = "mean_rtt − min_rtt".to_owned();
            if max.is_finite() {
                formula = format!("min({formula}, {max} {unit})");
            }
            let compute = move |o: &Outcome<'_>| {
                let delay = o.values.get(delay);
                let in_unit = if relative { over(delay, o.memory.min_rtt) } else { delay * factor };
                in_unit.min(max)
            };
            term(unit, formula, Arc::new(compute))
        },
    },
    TermKind {
        name: "loss",
        help: "Fraction of packets lost.",
        formula: "lost / (lost + acked), or lost / sent, packets of the interval; 0 if there were none",
        source: "PCC-RL sender_obs.py, \"loss ratio\": lost / (lost + acked)",
        needs_truth: false,
        parameters: &[parameter(
            "of",
            Kind::Word(&["settled", "sent"]),
            "\"settled\"",
            "of the packets acknowledged or lost in the interval, or of those sent in it",
        )],
        build: |p, signals| {
            let (signal, formula) = match p.word("of") {
                "sent" => ("loss_over_sent", "lost / sent"),
                _ => ("loss_fraction", "lost / (lost + acked)"),
            };
            let loss = signals.index(signal);
            term("1", formula.to_owned(), Arc::new(move |o| o.values.get(loss)))
        },
    },
    TermKind {
        name: "marks",
        help: "Fraction of packets marked with congestion experienced.",
        formula: "ce_packets / acked_packets of the interval; 0 if none was acknowledged, and for an agent without ecn",
        source: "DCTCP: the fraction F of marked packets",
        needs_truth: false,
        parameters: &[],
        build: |_, signals| {
            let marks = signals.index("ce_fraction");
            term("1", "ce_packets / acked_packets".to_owned(), Arc::new(move |o| o.values.get(marks)))
        },
    },
    TermKind {
        name: "utilization",
        help: "A rate over the path's capacity.",
        formula: "min(of / base, max); 0 where base is 0",
        source: "Genet: 500 · throughput over the link's mean rate",
        needs_truth: true,
        parameters: &[
            parameter("of", Kind::Expression("bit/s"), "\"delivery_rate\"", "a rate"),
            parameter(
                "base",
                Kind::Word(&["link_rate", "fair_share"]),
                "\"link_rate\"",
                "the bottleneck's rate, or the flow's fair share of it",
            ),
            parameter("max", POSITIVE, "null", "larger values count as this"),
        ],
        build: |p, _| {
            let (of, fair) = (p.value("of"), p.word("base") == "fair_share");
            let max = p.optional("max").unwrap_or(f64::INFINITY);
            let compute = move |o: &Outcome<'_>| {
                let base = if fair { o.truth.fair_share } else { o.truth.link_rate };
                over(o.values.get(of), base).min(max)
            };
            term("1", format!("{} / {}", p.text("of"), p.word("base")), Arc::new(compute))
        },
    },
    TermKind {
        name: "unfairness",
        help: "How unequally the flows of the path are served.",
        formula: "standard deviation / mean of the rates at which the flows that run were served in the interval: 0 \
                  where all are equal or one is alone, at most √(flows − 1)",
        source: "Astraea: −0.02 · unfairness, the spread of the flows' throughputs",
        needs_truth: true,
        parameters: &[],
        build: |_, _| term("1", "σ(rates of all flows) / mean".to_owned(), Arc::new(|o| o.truth.rate_spread)),
    },
    TermKind {
        name: "orca_power",
        help:
            "Throughput minus losses over the maximum throughput, times closeness to the minimum round trip, as Orca.",
        formula: "(sampled_delivery_rate − loss_factor·lost_rate) / max_sampled_delivery_rate \
                  · min(1, margin·min_rtt / srtt)",
        source: "Orca: loss_factor 5, margin 1.25",
        needs_truth: false,
        parameters: &[
            parameter("loss_factor", POSITIVE, "5.0", "what a lost bit costs in delivered ones"),
            parameter(
                "margin",
                Kind::Number { low: 1.0, high: 1e6 },
                "1.25",
                "up to this multiple of the minimum round trip, delay costs nothing",
            ),
        ],
        build: |p, signals| {
            let (rate, lost) = (signals.index("sampled_delivery_rate"), signals.index("lost_rate"));
            let (max, srtt) = (signals.index("max_sampled_delivery_rate"), signals.index("srtt"));
            let (factor, margin) = (p.number("loss_factor"), p.number("margin"));
            let formula = format!(
                "(sampled_delivery_rate − {factor}·lost_rate) / max_sampled_delivery_rate · min(1, {margin}·min_rtt / srtt)"
            );
            let compute = move |o: &Outcome<'_>| {
                let share = over(o.values.get(rate) - factor * o.values.get(lost), o.values.get(max));
                share * over(margin * o.memory.min_rtt, o.values.get(srtt)).min(1.0)
            };
            term("1", formula, Arc::new(compute))
        },
    },
];
