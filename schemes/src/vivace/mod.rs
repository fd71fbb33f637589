//! PCC Vivace (Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, NSDI 2018): measure the gradient of a utility
//! of throughput, latency and loss, and climb it.
//!
//! Two sets of rules: [`pantheon`], those of the binary that Pantheon runs; and [`paper`] as published.

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
            "Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, NSDI 2018; StanfordSNR/vivace 2baf862 for mode \
                    pantheon",
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
            Parameter::number("latency_weight", 900.0, (0.0, 1e6), "", "Weight of the slope of the round trip."),
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
        let latency = if p.word("utility") == "loss" { 0.0 } else { p.number("latency_weight") };
        let weights = Weights { exponent: p.number("throughput_exponent"), latency, loss: p.number("loss_weight") };
        Ok(if pantheon {
            Box::new(PccSender::new(Pantheon::new(weights, min_rate)))
        } else {
            Box::new(PccSender::new(Paper::new(weights, min_rate)))
        })
    },
};
