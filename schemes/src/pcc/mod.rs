//! PCC Allegro (Dong, Li, Zarchy, Godfrey and Schapira, NSDI 2015): tries a slightly higher and a slightly lower rate,
//! and moves to the one with the higher utility.
//!
//! Two sets of constants and utilities for one state machine: [`Rules::pantheon`], the program that Pantheon runs
//! (github.com/modong/pcc, commit 1afc958, `sender/app/cc.h` and `sender/src/core.cpp`), and [`Rules::paper`].

mod allegro;
mod utility;

use crate::monitor_interval::sender::PccSender;
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo, Transport};

use allegro::{Allegro, Rules};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "pcc",
        label: "PCC-Allegro",
        reference: "Dong, Li, Zarchy, Godfrey and Schapira, NSDI 2015; modong/pcc 1afc958 for mode pantheon",
        summary: "Tries rates slightly above and below its own, and moves to the one with the higher utility.",
        parameters: parameters! {
            /// pantheon: the program that Pantheon runs, with a utility that falls when the round trip grows. paper:
            /// the published rules, with a utility of throughput and loss.
            mode: choice(&["pantheon", "paper"]);
            /// Share of lost packets near which the utility collapses.
            loss_limit: number(0.05, (0.001, 0.9), "");
            /// Unit of all trials and moves, as a share of the rate.
            step: number(0.01, (0.001, 0.1), "");
            /// Widest trial.
            max_trial: integer(5, (1, 10), "steps");
        },
        role: Role::OnRequest,
        implementation: "modong/pcc, BSD-3-Clause",
        transport: Transport::UDP,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let rules = match p.word("mode") {
            "paper" => Rules::paper(),
            _ => Rules::pantheon(),
        };
        let allegro = Allegro::new(rules, p.number("loss_limit"), p.number("step"), p.integer("max_trial"));
        Ok(Box::new(PccSender::new(allegro)))
    },
};
