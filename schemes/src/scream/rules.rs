//! What the two sets of rules have as numbers.

use ccgym_core::TimeSpan;

/// Whose rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Rfc,
    Pantheon,
}

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub mode: Mode,
    /// What a loss leaves of the window (`BETA_LOSS`).
    pub beta_loss: f64,
    /// Gain of the window while the delay is above its target; below it is 1.
    pub gain_down: f64,
    /// Outside fast increase the window grows only if so many times the bytes in flight, and those just acknowledged,
    /// exceed it.
    pub slack: f64,
    /// The base delay is the minimum of so many slots of this length.
    pub base: (TimeSpan, usize),
    /// Time between two samples of the delay's history; zero: each feedback is one.
    pub sampling: TimeSpan,
    /// What a sample leaves of the remembered trend.
    pub memory: f64,
    /// Rates are means of so many intervals of this length.
    pub rates: (TimeSpan, usize),
    /// First, minimum and maximum target, bit/s.
    pub start_rate: f64,
    pub min_rate: f64,
    pub max_rate: f64,
    /// Maximum growth of the target, bit/s per s.
    pub ramp_up: f64,
    /// Time between two feedbacks; `None`: it follows the rate of arrival.
    pub feedback: Option<TimeSpan>,
}

/// RFC 8298 §4.1.1.1. The bounds of the target and the start are ours, the encoder's there.
pub const RFC: Rules = Rules {
    mode: Mode::Rfc,
    beta_loss: 0.8,
    gain_down: 1.0,
    slack: 1.25,
    base: (TimeSpan::from_millis(60_000), 10),
    sampling: TimeSpan::ZERO,
    memory: 0.99,
    rates: (TimeSpan::from_millis(200), 1),
    start_rate: 0.3e6,
    min_rate: 0.05e6,
    max_rate: 30e6,
    ramp_up: 200e3,
    feedback: None,
};

/// EricssonResearch/scream c3370fd, `ScreamTx.*`, as StanfordSNR/scream f099118 calls it: its arguments of
/// `registerNewStream` are those of a version without a start rate, so that what was meant as the ramp is the maximum.
pub const PANTHEON: Rules = Rules {
    mode: Mode::Pantheon,
    beta_loss: 0.6,
    gain_down: 2.0,
    slack: 1.2,
    base: (TimeSpan::from_millis(10_000), 50),
    sampling: TimeSpan::from_millis(50),
    memory: 0.98,
    rates: (TimeSpan::from_millis(50), 4),
    start_rate: 100e6,
    min_rate: 64e3,
    max_rate: 0.2e6,
    ramp_up: 2.0,
    feedback: Some(TimeSpan::from_millis(5)),
};
