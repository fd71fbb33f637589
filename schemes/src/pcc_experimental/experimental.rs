//! The states of `pcc_sender.cpp`. Rates are bits per second, except in gradients and moves, which count 2²⁰ bits.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{TimeSpan, Timestamp};

use super::utility::{utility, Outcome, Weights, MEBIBIT};
use crate::monitor_interval::sender::{bounded, Controller, Next, Take, View};
use crate::monitor_interval::step::{Program, Step};
use crate::monitor_interval::{Interval, Length};

/// Ten packets of 1400 bytes in 10 ms, the program's assumed RTT.
const FIRST_RATE: f64 = 11.2e6;
const TRIALS: usize = 4;
/// Min packets of an interval.
const MIN_PACKETS: u64 = 10;
/// Length of an interval in round trips.
const ROUND_TRIPS: f64 = 1.5;
/// Growth of the RTT that ends the start.
const MAX_RTT_GROWTH: f64 = 0.3;
/// Share of the rate that a reversal subtracts.
const STEP_BACK: f64 = 0.02;
const BOUND: f64 = 0.05;
const BOUND_STEP: f64 = 0.06;
/// Weight of the old value in the mean RTT.
const RTT_MEMORY: f64 = 0.75;
/// The same in the transport's RTT, used for loss detection, and its initial value (`core.cpp`).
const LOSS_RTT_MEMORY: f64 = 0.875;
const FIRST_RTT: f64 = 10.0;

/// A trial or a move: interval, its rate, and the utility once it is known.
#[derive(Clone, Copy, Debug)]
struct Sample {
    id: u64,
    rate: f64,
    utility: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Starting,
    Probing,
    DecisionMade,
}

#[derive(Clone, Debug)]
pub struct Experimental {
    weights: Weights,
    probe_step: f64,
    min_rate: f64,
    mode: Mode,
    /// The rate that trials vary, and the current one.
    rate: f64,
    pacing: f64,
    /// Intervals whose results are missing.
    useful: Vec<Sample>,
    first_up: bool,
    increase: bool,
    /// Rate and utility to compare the next move with.
    latest: (f64, f64),
    step: Step,
    mean_rtt: Option<f64>,
    /// The transport's RTT and its deviation, seconds.
    loss_rtt: (f64, f64),
    /// The mean RTT when the current interval began.
    rtt_at_begin: Option<f64>,
}

impl Experimental {
    pub fn new(weights: Weights, probe_step: f64, min_rate: f64) -> Self {
        Self {
            weights,
            probe_step,
            min_rate,
            mode: Mode::Starting,
            rate: FIRST_RATE.max(min_rate),
            pacing: FIRST_RATE.max(min_rate),
            useful: Vec::with_capacity(TRIALS),
            first_up: true,
            increase: true,
            latest: (0.0, 0.0),
            step: Step::new(Program::Uspace, BOUND, BOUND_STEP),
            mean_rtt: None,
            loss_rtt: (FIRST_RTT, FIRST_RTT / 2.0),
            rtt_at_begin: None,
        }
    }

    fn enter_probing(&mut self) {
        match self.mode {
            Mode::Starting => self.rate *= 0.5,
            Mode::DecisionMade if self.increase => self.rate /= 1.0 + STEP_BACK,
            Mode::DecisionMade => self.rate /= 1.0 - STEP_BACK,
            Mode::Probing => {}
        }
        self.mode = Mode::Probing;
        self.rate = self.rate.max(self.min_rate);
    }

    /// Return the move from `other` toward `sample`, at least to the min rate.
    fn change(&mut self, sample: (f64, f64), other: (f64, f64)) -> f64 {
        let apart = (sample.0 - other.0) / MEBIBIT;
        // At equal rates the program moves by its min step.
        let change =
            if apart == 0.0 { 0.5 } else { self.step.change((sample.1 - other.1) / apart, self.rate / MEBIBIT) };
        change.max((self.min_rate - self.rate) / MEBIBIT)
    }

    /// Return the side that both pairs prefer, if it is the same.
    fn decide(&self) -> Option<bool> {
        let mut sides = self.useful.chunks_exact(2).map(|pair| {
            let [a, b] = [pair[0], pair[1]];
            if a.utility > b.utility {
                a.rate > b.rate
            } else {
                a.rate < b.rate
            }
        });
        let up = sides.next()?;
        sides.all(|side| side == up).then_some(up)
    }

    fn end_probing(&mut self) {
        let known = |s: &Sample| (s.rate, s.utility.unwrap_or(0.0));
        let Some(up) = self.decide() else { return self.enter_probing() };
        let results: Vec<_> = self.useful.iter().map(known).collect();
        self.increase = up;
        self.latest = if results[2].1 > results[3].1 { results[2] } else { results[3] };
        let change = self.change(results[0], results[1]);
        self.step.previous = change;
        self.rate = bounded(self.rate + change * MEBIBIT);
        self.mode = Mode::DecisionMade;
    }

    fn end_move(&mut self, result: (f64, f64)) {
        let change = self.change(result, self.latest);
        if (change > 0.0) == (self.step.previous > 0.0) {
            self.step.previous = change;
            self.rate = bounded(self.rate + change * MEBIBIT);
            self.latest = result;
        } else {
            self.enter_probing();
        }
    }

    /// Decide after all results are in.
    fn conclude(&mut self) {
        let result = self.useful[0];
        let result = (result.rate, result.utility.unwrap_or(0.0));
        match self.mode {
            Mode::Starting if result.1 > self.latest.1 => {
                self.rate = bounded(2.0 * self.rate);
                self.latest = result;
            }
            Mode::Starting => self.enter_probing(),
            Mode::Probing => self.end_probing(),
            Mode::DecisionMade => self.end_move(result),
        }
    }
}

impl Controller for Experimental {
    const TAKE: Take = Take::Settled;

    fn begin(&mut self, id: u64, view: &mut View<'_>) -> (f64, Length) {
        let wanted = if self.mode == Mode::Probing { TRIALS } else { 1 };
        self.pacing = self.rate;
        // Results count once there is an RTT to compare with.
        if self.mean_rtt.is_some() && self.useful.len() < wanted {
            if self.mode == Mode::Probing {
                let second = self.useful.len() % 2 == 1;
                if !second {
                    self.first_up = view.rng.bernoulli(0.5);
                }
                let side = if self.first_up == second { -1.0 } else { 1.0 };
                self.pacing = self.rate * (1.0 + side * self.probe_step);
            }
            self.useful.push(Sample { id, rate: self.pacing, utility: None });
        }
        self.rtt_at_begin = self.mean_rtt;
        let Some(rtt) = self.mean_rtt else { return (self.pacing, Length { packets: 1, span: TimeSpan::ZERO }) };
        (self.pacing, Length { packets: MIN_PACKETS, span: TimeSpan::from_secs_f64(ROUND_TRIPS * rtt) })
    }

    fn end(&mut self, interval: &Interval, _view: &mut View<'_>) -> Next {
        let Some(sample) = self.useful.iter_mut().find(|s| s.id == interval.id) else { return Next::GoOn };
        if !interval.usable() {
            // No utility: all awaited trials are repeated.
            self.useful.clear();
            return Next::Begin;
        }
        sample.utility = Some(utility(
            &self.weights,
            &Outcome {
                packets: interval.sent,
                bytes: interval.bytes,
                loss: interval.loss_rate(),
                seconds: interval.first_to_last(),
                rtt_halves: interval.rtt_halves(),
            },
        ));
        let wanted = if self.mode == Mode::Probing { TRIALS } else { 1 };
        if self.useful.len() < wanted || self.useful.iter().any(|s| s.utility.is_none()) {
            return Next::GoOn;
        }
        self.conclude();
        self.useful.clear();
        Next::Begin
    }

    fn patience(&self) -> TimeSpan {
        TimeSpan::from_secs_f64(2.0 * self.loss_rtt.0 + 4.0 * self.loss_rtt.1)
    }

    fn on_rtt(&mut self, _now: Timestamp, sample: f64) -> Next {
        let mean = |before: f64, new: f64| LOSS_RTT_MEMORY * before + (1.0 - LOSS_RTT_MEMORY) * new;
        let rtt = mean(self.loss_rtt.0, sample);
        self.loss_rtt = (rtt, mean(self.loss_rtt.1, (sample - rtt).abs()));
        self.mean_rtt = Some(self.mean_rtt.map_or(sample, |mean| RTT_MEMORY * mean + (1.0 - RTT_MEMORY) * sample));
        let inflated = self.rtt_at_begin.is_some_and(|rtt| sample > (1.0 + MAX_RTT_GROWTH) * rtt);
        if self.mode == Mode::Starting && inflated {
            self.enter_probing();
            self.useful.clear();
            return Next::Forget;
        }
        Next::GoOn
    }

    fn pacing_rate(&self) -> f64 {
        self.pacing
    }

    fn observables(&self) -> Observables {
        let mode = match self.mode {
            Mode::Starting => 0.0,
            Mode::Probing => 1.0,
            Mode::DecisionMade => 2.0,
        };
        vec![
            ("base_rate_mbps", self.rate / 1e6),
            ("mode", mode),
            ("amplifier", self.step.amplification()),
            ("latest_utility", self.latest.1),
        ]
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
