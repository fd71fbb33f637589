//! PCC Vivace (Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, NSDI 2018): measures the gradient of a utility
//! of throughput, latency and loss, and follows it upward.
//!
//! Two sets of rules: [`pantheon`], those of the program that Pantheon runs; and [`paper`] as published.

mod pantheon;
mod paper;
mod utility;

use crate::monitor_interval::sender::PccSender;
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo, Transport};

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
        summary: "Moves its rate along the slope of a utility of throughput, RTT growth and loss.",
        parameters: parameters! {
            /// pantheon: the authors' program, which Pantheon runs. paper: the published rules.
            mode: choice(&["pantheon", "paper"]);
            /// latency: growth of the round trip lowers the utility. loss: it depends on throughput and loss only.
            utility: choice(&["latency", "loss"]);
            /// Exponent of the rate in the utility.
            throughput_exponent: number(0.9, (0.1, 0.999), "");
            /// Weight of the slope of the round trip.
            latency_weight: number(900.0, (0.0, 1e6), "");
            /// Weight of the share of lost packets.
            loss_weight: number(11.35, (0.0, 1e4), "");
            /// Minimum rate at any loss; 0: the mode's default (pantheon 1.3, paper 0.5).
            min_rate_mbps: number(0.0, (0.0, 1000.0), "Mbit/s");
        },
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
