//! The congestion window. Bytes, and seconds unless stated otherwise.

use std::collections::VecDeque;

use ccgym_core::{TimeSpan, Timestamp};

use super::rules::{Mode, Rules};

/// Factor on the window at a mark (`BETA_ECN`).
pub const BETA_ECN: f64 = 0.9;
/// Trend at which fast increase ends (`QDELAY_TREND_TH`), and below which it resumes … (`QDELAY_TREND_LO`).
const TREND: f64 = 0.2;
/// … after this time (`T_RESUME_FAST_INCREASE`).
const RESUME: TimeSpan = TimeSpan::from_millis(5_000);
/// Fast increase needs this multiple of the bytes in flight, plus those just acknowledged, above the window.
const FAST_SLACK: f64 = 1.5;
/// The window over the maximum in flight (`MAX_BYTES_IN_FLIGHT_HEAD_ROOM`) …
const HEAD_ROOM: f64 = 1.1;
/// … of these seconds.
const SECONDS: u64 = 5;
/// Min window (`MIN_CWND`), but at least two packets.
const MIN_WINDOW: f64 = 3000.0;
/// Pantheon: max share of the window that one decrease for delay takes.
const MAX_CUT: f64 = 0.25;
/// Pantheon: max growth by a feedback, as a multiple of the bytes sent at the measured rate meanwhile, …
const GROWTH: f64 = 1.25;
/// … if that rate, bit/s, is above this; else two packets.
const SLOW: f64 = 1e5;
/// Pantheon: with less than this in flight the window is not limited to it.
const FEW_BYTES: f64 = 5000.0;
/// Pantheon: at a shorter RTT, and a lower trend, the window covers at least this time.
const SHORT_RTT: f64 = 0.01;
const SHORT_RTT_TREND: f64 = 0.1;

/// Bytes in flight in one second.
#[derive(Clone, Copy, Debug)]
struct Second {
    start: u64,
    max: f64,
    sum: f64,
    samples: f64,
}

/// Bytes in flight in the last seconds.
#[derive(Clone, Debug, Default)]
pub struct InFlight(VecDeque<Second>);

impl InFlight {
    fn second(&mut self, at: Timestamp) -> &mut Second {
        let start = at.as_secs_f64() as u64;
        if self.0.back().is_none_or(|latest| latest.start != start) {
            self.0.push_back(Second { start, max: 0.0, sum: 0.0, samples: 0.0 });
        }
        while self.0.front().is_some_and(|oldest| oldest.start + SECONDS < start) {
            self.0.pop_front();
        }
        self.0.back_mut().expect("one was just pushed")
    }

    /// Add the bytes in flight after a departure.
    pub fn sent(&mut self, at: Timestamp, bytes: f64) {
        let second = self.second(at);
        second.max = second.max.max(bytes);
    }

    /// Add the bytes in flight at a feedback.
    fn fed_back(&mut self, at: Timestamp, bytes: f64) {
        let second = self.second(at);
        second.sum += bytes;
        second.samples += 1.0;
    }

    fn max(&self) -> f64 {
        self.0.iter().map(|second| second.max).fold(0.0, f64::max)
    }

    /// Return the max of the seconds' means.
    fn max_mean(&self) -> f64 {
        self.0.iter().filter(|second| second.samples > 0.0).map(|s| s.sum / s.samples).fold(0.0, f64::max)
    }
}

/// Inputs to an update of the window.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    pub at: Timestamp,
    /// Bytes acknowledged or lost since the last update.
    pub settled: f64,
    /// Bytes in flight before and after.
    pub prior_in_flight: f64,
    pub in_flight: f64,
    /// The queueing delay, its target and its trend.
    pub delay: f64,
    pub delay_target: f64,
    pub trend: f64,
    pub srtt: f64,
    /// Measured rate, bit/s: the max of sent and acknowledged rate; and the sent rate.
    pub rate: f64,
    pub sent_rate: f64,
}

#[derive(Clone, Debug)]
pub struct Window {
    rules: Rules,
    mss: f64,
    min: f64,
    pub bytes: f64,
    pub fast_increase: bool,
    pub history: InFlight,
    /// Time of the latest sign of congestion.
    congested: Timestamp,
    updated: Option<Timestamp>,
}

impl Window {
    pub fn new(rules: Rules, mss: u64, now: Timestamp) -> Self {
        let mss = mss as f64;
        let min = match rules.mode {
            Mode::Rfc => MIN_WINDOW.max(2.0 * mss),
            Mode::Pantheon => 2.0 * mss,
        };
        let history = InFlight::default();
        Self { rules, mss, min, bytes: min, fast_increase: true, history, congested: now, updated: None }
    }

    /// Multiply the window by `share` after a loss or a mark.
    pub fn reduce(&mut self, at: Timestamp, share: f64) {
        self.fast_increase = false;
        self.congested = at;
        self.bytes = (self.bytes * share).max(self.min);
    }

    /// Update after feedback without loss and mark. Returns the share by which delay reduced the window.
    pub fn update(&mut self, update: &Update) -> f64 {
        let since = update.at.since(self.updated.replace(update.at).unwrap_or(update.at)).as_secs_f64();
        self.history.fed_back(update.at, update.prior_in_flight);
        let mut cut = 0.0;
        self.fast_increase &= update.trend < TREND;
        let grown = match self.rules.mode {
            Mode::Rfc => update.settled,
            Mode::Pantheon if update.rate > SLOW => update.settled.min(GROWTH * update.rate / 8.0 * since.max(0.001)),
            Mode::Pantheon => 2.0 * self.mss,
        };
        let used = |slack: f64| slack * update.in_flight + update.settled > self.bytes;
        let off_target = 1.0 - update.delay / update.delay_target;
        if self.fast_increase {
            if used(FAST_SLACK) {
                self.bytes += grown;
            }
        } else if off_target > 0.0 {
            if used(self.rules.slack) {
                self.bytes += off_target * grown * self.mss / self.bytes;
            }
        } else {
            let mut less = -self.rules.gain_down * off_target * update.settled * self.mss / self.bytes;
            if self.rules.mode == Mode::Pantheon {
                less = less.min(MAX_CUT * self.bytes);
                self.congested = update.at;
            }
            cut = (less / self.bytes).min(1.0);
            self.bytes -= less;
        }
        self.limit(update);
        self.bytes = self.bytes.max(self.min);
        if update.trend >= TREND {
            self.congested = update.at;
        } else if !self.fast_increase && update.at.since(self.congested) > RESUME {
            self.fast_increase = true;
            self.congested = update.at;
        }
        cut
    }

    /// Limit the window to the bytes recently in flight, plus a margin.
    fn limit(&mut self, update: &Update) {
        match self.rules.mode {
            Mode::Rfc if self.fast_increase => {}
            Mode::Rfc => self.bytes = self.bytes.min(HEAD_ROOM * self.history.max()),
            Mode::Pantheon => {
                let mean = self.history.max_mean().max(update.in_flight);
                let limit = HEAD_ROOM * (self.history.max() * (1.0 - update.trend) + mean * update.trend);
                if limit > FEW_BYTES {
                    self.bytes = self.bytes.min(limit);
                }
                if update.srtt < SHORT_RTT && update.trend < SHORT_RTT_TREND {
                    self.bytes = self.bytes.max(update.sent_rate * SHORT_RTT / 8.0).max(1.5 * limit);
                }
            }
        }
    }
}
