//! Vivace as the program that Pantheon runs (StanfordSNR/vivace 2baf862) behaves. Its states are those of branch
//! NSDI-2018 of PCC-Uspace (`sender/app/pcc.h` and `sender/src/core.cpp`); where the two differ, these are the
//! program's.
//!
//! Names of states are the program's. Rates are bits per second, except in gradients and moves (Mbit/s).

use ccgym_core::congestion_control::Observables;
use ccgym_core::TimeSpan;

use super::utility::{self, Weights};
use crate::monitor_interval::sender::{Controller, Next, Take, View};
use crate::monitor_interval::step::{Program, Step};
use crate::monitor_interval::{Interval, Length};

const MEGABIT: f64 = 1e6;
/// A megabit of the utility.
const MEBIBIT: f64 = 1_048_576.0;
/// Rate that the first interval doubles.
const FIRST_RATE: f64 = 0.8e6;
const MIN_START_RATE: f64 = 0.1e6;
const MAX_RATE: f64 = 1024e6;
/// Half the distance of two trials, as a share of the rate and in Mbit/s: the max of the two counts.
const EPSILON: f64 = 0.05;
const MIN_EPSILON: f64 = 0.5e6;
const BOUND: f64 = 0.05;
const BOUND_STEP: f64 = 0.06;
/// Loss above which the rate halves.
const EMERGENCY_LOSS: f64 = 0.5;
/// Loss over all trials up to which they share their mean loss.
const SHARED_LOSS: f64 = 0.01;
/// Min loss at which an unexpected result is checked again, and min packets lost for one.
const DOUBTFUL_LOSS: f64 = 0.05;
const DOUBTFUL_PACKETS: u64 = 2;
/// Moves above this share of the rate need no new trials.
const FAST_MOVE: f64 = 0.1;
/// Min and max packets of an interval.
const PACKETS: (u64, u64) = (10, 3000);
/// RTT before the first result: ten intervals of UDT, which the program sets to a second each.
const FIRST_RTT: f64 = 10.0;
/// Max error of the program's clock: at its start it counts the processor's cycles in 0.1 s of sleep, which ends late.
const SLOW_CLOCK: f64 = 0.08;
/// RTTs above this count as [`LONG_RTT`].
const MAX_RTT: f64 = 1.0;
const LONG_RTT: f64 = 0.3;

/// Result of an interval.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    rate: f64,
    /// Sent rate, 2²⁰ bit/s.
    sent_rate: f64,
    sent: u64,
    lost: u64,
    slope: f64,
    utility: f64,
}

impl Outcome {
    fn loss(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    id: u64,
    rate: f64,
    up: bool,
    outcome: Option<Outcome>,
}

#[derive(Clone, Debug)]
enum State {
    /// Doubling the rate per result.
    Start { interval: Option<u64>, latest: f64 },
    /// The next interval begins a round of trials.
    Search,
    /// Trials, those begun, and the latest interval at the rate itself, with its result.
    Recording { trials: Vec<Trial>, begun: usize },
    /// The interval at the new rate, `None` until it begins; the old rate; the change.
    Moving { target: Option<u64>, rate: f64, change: f64 },
}

#[derive(Clone, Debug)]
pub struct Pantheon {
    weights: Weights,
    min_rate: f64,
    state: State,
    base: f64,
    pacing: f64,
    /// Sent rate over chosen rate.
    clock: f64,
    step: Step,
    /// The latest interval at the base rate while results are missing, and its result.
    reference: Option<(u64, Option<Outcome>)>,
    /// Intervals below this do not halve the rate again.
    stopped_until: Option<u64>,
    may_doubt: bool,
    rtt: f64,
    utility: f64,
}

impl Pantheon {
    pub fn new(weights: Weights, min_rate: f64) -> Self {
        Self {
            weights,
            min_rate: min_rate.min(MAX_RATE),
            state: State::Start { interval: None, latest: f64::NEG_INFINITY },
            base: FIRST_RATE,
            pacing: FIRST_RATE,
            clock: 1.0,
            step: Step::new(Program::Vivace, BOUND, BOUND_STEP),
            reference: None,
            stopped_until: None,
            may_doubt: true,
            rtt: FIRST_RTT,
            utility: 0.0,
        }
    }

    fn epsilon(&self) -> f64 {
        EPSILON.max(MIN_EPSILON / self.base)
    }

    fn set_rate(&mut self, rate: f64) {
        let min = match self.state {
            State::Start { .. } => MIN_START_RATE,
            _ => self.min_rate * (1.0 - self.epsilon()),
        };
        self.pacing = rate.max(min).min(MAX_RATE);
    }

    /// Begin a round of trials with the next interval; the current one continues at its rate.
    fn search(&mut self) {
        self.state = State::Search;
        self.reference = None;
    }

    fn utility_of(&self, o: &Outcome, loss: f64) -> f64 {
        utility::pantheon(&self.weights, o.sent_rate, o.slope, loss)
    }

    fn judge(&mut self, interval: &Interval) -> Outcome {
        let sent_rate = interval.bytes as f64 * 8.0 / MEBIBIT / interval.duration().max(1e-6);
        let mut o = Outcome {
            rate: interval.rate,
            sent_rate,
            sent: interval.sent,
            lost: interval.missing(),
            slope: interval.rtt_slope(),
            utility: 0.0,
        };
        o.utility = self.utility_of(&o, o.loss());
        self.utility = o.utility;
        o
    }

    fn new_trials(&self, id: u64, view: &mut View<'_>) -> Vec<Trial> {
        let pairs = if self.step.trend >= 1 { 1 } else { 2 };
        let mut trials = Vec::with_capacity(2 * pairs);
        for _ in 0..pairs {
            let first_up = view.rng.bernoulli(0.5);
            for up in [first_up, !first_up] {
                let direction = if up { 1.0 } else { -1.0 };
                let rate = self.base * (1.0 + direction * self.epsilon());
                trials.push(Trial { id: id + trials.len() as u64, rate, up, outcome: None });
            }
        }
        trials
    }

    /// Handle a round without a decision, or with an unexpected one: the next has two trials and no direction.
    fn undecided(&mut self) {
        self.step.trend = 2;
        self.step.previous = 0.0;
        self.search();
    }

    /// Set the new rate for the current interval. The min applies from the next one on: until then a step that is
    /// larger than the rate may nearly stop the flow.
    fn follow(&mut self, change: f64) {
        self.base += change * MEGABIT;
        self.search();
        self.set_rate(self.base);
    }

    fn change(&mut self, utility: f64, rate: f64) -> f64 {
        let gradient = if rate == 0.0 { 0.0 } else { utility / (rate / MEGABIT) };
        let change = self.step.change(gradient, self.base / MEGABIT);
        self.step.previous = change;
        change
    }

    fn decide(&mut self, mut trials: Vec<Trial>) {
        let of = |t: &Trial| t.outcome;
        let (sent, lost) = trials.iter().filter_map(of).fold((0, 0), |(s, l), o| (s + o.sent, l + o.lost));
        let overall = lost as f64 / sent.max(1) as f64;
        if overall <= SHARED_LOSS {
            for outcome in trials.iter_mut().filter_map(|t| t.outcome.as_mut()) {
                outcome.utility = self.utility_of(outcome, overall);
            }
        }
        let utility = |t: &Trial| t.outcome.map_or(0.0, |o| o.utility);
        let mut votes = 0i32;
        for pair in trials.chunks_exact(2) {
            let (a, b) = (utility(&pair[0]), utility(&pair[1]));
            if a != b {
                votes += if (a > b) == pair[0].up { 1 } else { -1 };
            }
        }
        let lost = |up: bool| trials.iter().filter(|t| t.up == up).filter_map(of).map(|o| o.lost).sum::<u64>();
        let (lost_up, lost_down) = (lost(true), lost(false));
        // The higher rate seems better although it lost less: check again before using the result.
        let doubtful = lost_down > lost_up + DOUBTFUL_PACKETS && lost_up != 0 && overall >= DOUBTFUL_LOSS;
        if doubtful && votes > 0 {
            if self.may_doubt {
                votes = 0;
            } else {
                self.step.trend = 2;
            }
            self.may_doubt = !self.may_doubt;
        } else {
            self.may_doubt = true;
        }
        if votes == 0 {
            return self.undecided();
        }
        let pairs = (trials.len() / 2) as f64;
        let sum = |up: bool| trials.iter().filter(|t| t.up == up).map(utility).sum::<f64>() / pairs;
        let rate = |up: bool| trials.iter().find(|t| t.up == up).map_or(0.0, |t| t.rate);
        let change = self.change(sum(true) - sum(false), rate(true) - rate(false));
        if change * MEGABIT / self.base <= FAST_MOVE {
            self.follow(change);
        } else {
            self.state = State::Moving { target: None, rate: self.base + change * MEGABIT, change };
        }
    }

    /// Compare the result at the rate that a fast move reached with the one at the rate before.
    fn end_move(&mut self, id: u64, target: &Outcome, moved: f64) {
        let Some((_, Some(reference))) = self.reference else { return self.undecided() };
        let change = self.change(target.utility - reference.utility, target.rate - reference.rate);
        let overall = (reference.lost + target.lost) as f64 / (reference.sent + target.lost).max(1) as f64;
        let against = (reference.rate - target.rate) * (reference.loss() - target.loss()) < 0.0;
        let clear = reference.lost.abs_diff(target.lost) > DOUBTFUL_PACKETS;
        if against && (clear || overall >= DOUBTFUL_LOSS) {
            self.undecided();
        } else if change * moved <= 0.0 {
            self.follow(change);
        } else if change * MEGABIT / self.base <= FAST_MOVE {
            self.follow(change);
            self.step.trend = 2;
        } else {
            self.reference = Some((id, Some(*target)));
            self.state = State::Moving { target: None, rate: target.rate + change * MEGABIT, change };
        }
    }

    /// Halve the rate, once per flight, since more than half was lost.
    fn stop(&mut self, id: u64, view: &View<'_>) {
        if self.stopped_until.is_some_and(|until| id < until) {
            return;
        }
        self.stopped_until = Some(view.next_id.saturating_sub(1));
        self.base = (self.base * 0.5).max(self.min_rate);
        self.search();
        self.set_rate(self.base);
    }
}

impl Controller for Pantheon {
    const TAKE: Take = Take::AtLastAck;

    fn init(&mut self, view: &mut View<'_>) {
        self.clock = 1.0 - SLOW_CLOCK * view.rng.uniform();
    }

    fn begin(&mut self, id: u64, view: &mut View<'_>) -> (f64, Length) {
        if matches!(self.state, State::Search) {
            self.base = self.base.clamp(self.min_rate, MAX_RATE);
            self.state = State::Recording { trials: self.new_trials(id, view), begun: 0 };
        }
        let mut rate = self.base;
        match &mut self.state {
            State::Start { interval, .. } => {
                if interval.is_none() {
                    *interval = Some(id);
                    if !view.app_limited {
                        self.base = (2.0 * self.base).min(MAX_RATE);
                    }
                    rate = self.base;
                }
            }
            State::Recording { trials, begun } => match trials.get(*begun) {
                Some(trial) => {
                    rate = trial.rate;
                    *begun += 1;
                }
                None => self.reference = Some((id, None)),
            },
            State::Moving { target, rate: moved, .. } => {
                target.get_or_insert(id);
                self.base = moved.clamp(self.min_rate, MAX_RATE);
                rate = self.base;
            }
            State::Search => {}
        }
        self.set_rate(rate);
        let rtt = if self.rtt > MAX_RTT { LONG_RTT } else { self.rtt };
        let packets = ((rtt / view.packet_time(self.pacing)) as u64).clamp(PACKETS.0, PACKETS.1);
        (self.pacing, Length { packets, span: TimeSpan::ZERO })
    }

    fn end(&mut self, interval: &Interval, view: &mut View<'_>) -> Next {
        self.rtt = view.rtt_at_end.or(interval.mean_rtt()).unwrap_or(self.rtt);
        if !interval.usable() {
            return self.end_unusable(interval);
        }
        let outcome = self.judge(interval);
        if let Some((id, result)) = &mut self.reference {
            if *id == interval.id {
                *result = Some(outcome);
            }
        }
        if outcome.loss() > EMERGENCY_LOSS {
            self.stop(interval.id, view);
        } else {
            self.stopped_until = None;
        }
        match &mut self.state {
            State::Start { interval: waited, latest } if *waited == Some(interval.id) => {
                *waited = None;
                if *latest > outcome.utility {
                    self.base /= 2.0;
                    self.search();
                } else {
                    *latest = outcome.utility;
                }
            }
            State::Recording { trials, .. } => {
                if let Some(trial) = trials.iter_mut().find(|t| t.id == interval.id) {
                    trial.outcome = Some(outcome);
                }
                if trials.iter().all(|t| t.outcome.is_some()) {
                    let trials = std::mem::take(trials);
                    self.decide(trials);
                }
            }
            &mut State::Moving { target: Some(target), change, .. } if interval.id >= target => {
                // Results come in the order of sending: the reference has its result.
                self.end_move(interval.id, &outcome, change);
            }
            _ => {}
        }
        Next::GoOn
    }

    fn patience(&self) -> TimeSpan {
        TimeSpan::MAX
    }

    fn pacing_rate(&self) -> f64 {
        self.pacing * self.clock
    }

    fn observables(&self) -> Observables {
        let state = match self.state {
            State::Start { .. } => 0.0,
            State::Search => 1.0,
            State::Recording { .. } => 2.0,
            State::Moving { .. } => 3.0,
        };
        vec![
            ("base_rate_mbps", self.base / MEGABIT),
            ("state", state),
            ("amplifier", self.step.amplification()),
            ("utility", self.utility),
        ]
    }
}

impl Pantheon {
    /// Handle an application-limited interval: its trial or move starts again at the same rate.
    fn end_unusable(&mut self, interval: &Interval) -> Next {
        match &mut self.state {
            State::Start { interval: waited, .. } if *waited == Some(interval.id) => *waited = None,
            State::Recording { trials, .. } if trials.iter().any(|t| t.id == interval.id) => self.search(),
            State::Moving { target: Some(target), .. } if interval.id >= *target => {
                self.base = self.reference.and_then(|(_, result)| result).map_or(self.base, |r| r.rate);
                self.undecided();
            }
            _ => {}
        }
        Next::GoOn
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
