//! Copa (Arun and Balakrishnan, NSDI 2018): steer toward the rate 1/(δ·d_q), where d_q is the queueing delay.
//!
//! Two sets of rules: [`paper`] as published, and [`pantheon`] as genericCC behaves, which is what Pantheon's
//! reports measured. Both keep the same round-trip filters and compete with buffer-filling flows by lowering δ when
//! the queue never empties.

mod rtt_window;
mod velocity;

mod pantheon;
mod paper;

use ccgym_core::TimeSpan;

use crate::registry::{parameters, SchemeEntry, SchemeInfo};

pub use pantheon::PantheonCopa;
pub use paper::PaperCopa;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "copa",
        label: "Copa",
        reference: "Arun and Balakrishnan, NSDI 2018; genericCC d0153f8 for mode pantheon",
        summary: "Sets a rate inverse to the queueing delay, and competes harder when the queue never empties.",
        parameters: parameters! {
            /// pantheon: the rules of genericCC, which Pantheon runs. paper: the published rules.
            mode: choice(&["pantheon", "paper"]);
            /// Inverse of the target queue; 0: the mode's default (pantheon 0.1, in reports before March 2020 0.5;
            /// paper 0.5).
            delta: number(0.0, (0.0, 10.0), "1/packets");
            /// auto: lower delta while other flows keep the queue full. off: never lower it.
            competitive: choice(&["auto", "off"]);
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let competitive = p.word("competitive") == "auto";
        let delta = |own: f64| Some(p.number("delta")).filter(|&d| d > 0.0).unwrap_or(own);
        Ok(match p.word("mode") {
            "paper" => Box::new(PaperCopa::new(delta(0.5), competitive)),
            _ => Box::new(PantheonCopa::new(delta(0.1), competitive)),
        })
    },
};

/// Assumed RTT before the first sample: the initial window leaves nearly at once.
const NOMINAL_RTT: TimeSpan = TimeSpan::from_millis(1);
/// Min window, packets: a smaller one would leave the flow without acknowledgements.
const MIN_WINDOW: f64 = 2.0;
