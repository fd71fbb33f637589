//! Constants of the two sets of rules.

use ccgym_core::TimeSpan;

/// Set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Rfc,
    Pantheon,
}

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub mode: Mode,
    /// Factor on the window at a loss (`BETA_LOSS`).
    pub beta_loss: f64,
    /// Gain of the window while the delay is above its target; below the target it is 1.
    pub gain_down: f64,
    /// Outside fast increase the window grows only if this multiple of the bytes in flight, plus those just
    /// acknowledged, exceeds it.
    pub slack: f64,
    /// Length and number of the slots whose min is the base delay.
    pub base: (TimeSpan, usize),
    /// Time between two samples of the delay's history; zero: each feedback is a sample.
    pub sampling: TimeSpan,
    /// Factor on the remembered trend at each sample.
    pub memory: f64,
    /// Length and number of the intervals whose mean is a rate.
    pub rates: (TimeSpan, usize),
    /// Initial, min and max target, bit/s.
    pub start_rate: f64,
    pub min_rate: f64,
    pub max_rate: f64,
    /// Max growth of the target, bit/s per s.
    pub ramp_up: f64,
    /// Time between two feedbacks; `None`: depends on the rate of arrival.
    pub feedback: Option<TimeSpan>,
}

/// RFC 8298 §4.1.1.1. Bounds and start of the target are ours; the RFC leaves them to the encoder.
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
/// `registerNewStream` are for a version without a start rate, so that the value meant as the ramp becomes the max.
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
