//! PCC Vivace (Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, NSDI 2018): measure the gradient of a utility
//! of throughput, latency and loss, and climb it.
//!
//! Two sets of rules: [`pantheon`], from branch NSDI-2018 of PCC-Uspace, whose constants those of the binary that
//! Pantheon runs are; and [`paper`] as published.

mod pantheon;
mod paper;
mod utility;

use crate::monitor_interval::sender::PccSender;
use crate::registry::{Parameter, Role, SchemeEntry, SchemeInfo, Transport};

use pantheon::Pantheon;
use paper::Paper;
use utility::Weights;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "vivace",
        label: "PCC-Vivace",
        reference:
            "Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, NSDI 2018; branch NSDI-2018 of PCC-Uspace for \
                    mode pantheon",
        summary: "Climbs the gradient of a utility of throughput, latency growth and loss.",
        parameters: &[
            Parameter::choice(
                "mode",
                &["pantheon", "paper"],
                "pantheon: the authors' program, which Pantheon runs. paper: the published rules.",
            ),
            Parameter::choice(
                "utility",
                &["latency", "loss"],
                "latency: growth of the round trip lowers the utility. loss: only throughput and loss count.",
            ),
            Parameter::number("throughput_exponent", 0.9, (0.1, 0.999), "", "Exponent of the rate in the utility."),
            Parameter::number(
                "latency_weight",
                0.0,
                (0.0, 1e6),
                "",
                "Weight of the slope of the round trip; 0 takes the mode's own: 11330 in pantheon, 900 in paper.",
            ),
            Parameter::number("loss_weight", 11.35, (0.0, 1e4), "", "Weight of the share of lost packets."),
            Parameter::number(
                "min_rate_mbps",
                0.0,
                (0.0, 1000.0),
                "Mbit/s",
                "The rate is never chosen below this, whatever is lost; 0 takes the mode's own: 1.3 in pantheon, 0.5 in \
                 paper.",
            ),
        ],
        role: Role::OnRequest,
        implementation: "PCC-Uspace NSDI-2018, BSD-3-Clause",
        transport: Transport::UDP,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let pantheon = p.word("mode") == "pantheon";
        let min_rate = match p.number("min_rate_mbps") {
            rate if rate > 0.0 => rate.max(0.01) * 1e6,
            _ if pantheon => 1.3e6,
            // As the authors' later program (PCC-Uspace, `pcc_vivace_sender.cpp`).
            _ => 0.5e6,
        };
        let latency = match (p.word("utility"), p.number("latency_weight")) {
            ("loss", _) => 0.0,
            (_, weight) if weight > 0.0 => weight,
            _ if pantheon => 11_330.0,
            _ => 900.0,
        };
        let weights = Weights { exponent: p.number("throughput_exponent"), latency, loss: p.number("loss_weight") };
        Ok(if pantheon {
            Box::new(PccSender::new(Pantheon::new(weights, min_rate)))
        } else {
            Box::new(PccSender::new(Paper::new(weights, min_rate)))
        })
    },
};
