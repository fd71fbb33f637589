//! The states of Allegro: start, trials, moves.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{TimeSpan, Timestamp};

use super::utility::{self, Outcome};
use crate::monitor_interval::sender::{bounded, Controller, Next, Take, View};
use crate::monitor_interval::{Interval, Length};

/// Intervals of one trial: two pairs of a higher and a lower rate.
const TRIALS: usize = 4;
/// Min packets of an interval (§3.1; `start_monitor` in `core.cpp`).
const MIN_PACKETS: u64 = 10;
/// Min length, s, of an interval of Pantheon's program that is not measured in RTTs (`core.cpp`).
const MIN_DURATION: f64 = 5e-3;
/// Packets that the receiver of Pantheon's program reports together (`processData` in `core.cpp`).
const REPORT: usize = 20;
/// Interval at which its receiver measures the RTT, from an acknowledgement to the sender's reply, and averages: a new
/// sample has a weight of an eighth. Before, it assumes an RTT of ten times as much.
const SYN: TimeSpan = TimeSpan::from_millis(10);
const FIRST_RTT: f64 = 0.1;
const RTT_GAIN: f64 = 0.125;
/// Max rate, Mbit/s, at which Pantheon's program assumes that its host keeps up, and max lag, Mbit/s.
const RESYNC: (f64, f64) = (200.0, 30.0);
const MEGABIT: f64 = 1e6;

/// Differences of the paper and Pantheon's program.
#[derive(Clone, Debug)]
pub struct Rules {
    pantheon: bool,
    utility: fn(&Outcome, f64) -> f64,
}

impl Rules {
    /// Published.
    pub fn paper() -> Self {
        Self { pantheon: false, utility: utility::paper }
    }
    /// modong/pcc 1afc958.
    pub fn pantheon() -> Self {
        Self { pantheon: true, utility: utility::pantheon }
    }
}

/// A round of trials.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Number of the first trial's interval.
    first: u64,
    rates: [f64; TRIALS],
    utilities: [Option<f64>; TRIALS],
    begun: usize,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubling the rate in each interval, until the utility falls.
    Start {
        /// Interval, rate and utility of the best result; before the first one no interval and the first rate.
        best: (Option<u64>, f64, f64),
        next_rate: f64,
    },
    /// The next interval begins a round of trials.
    Ready,
    Trial(Trial),
    Move {
        /// The interval whose result is missing.
        target: u64,
        direction: f64,
        /// Size of the latest move, in units of the step.
        size: f64,
        /// The rate before it.
        from: f64,
        /// Utility of the rate before it; `None` while its result is missing.
        previous: Option<f64>,
    },
}

#[derive(Clone, Debug)]
pub struct Allegro {
    rules: Rules,
    loss_limit: f64,
    step: f64,
    max_trial: u64,
    /// Rates, bits per second: the one that trials vary, and the current one.
    rate: f64,
    pacing: f64,
    /// Width of the latest trial in steps.
    width: u64,
    phase: Phase,
    previous_rtt: Option<f64>,
    /// RTT measured by the program's receiver, seconds, and time of its next sample.
    rtt: f64,
    next_sample: Option<Timestamp>,
    utility: f64,
}

impl Allegro {
    pub fn new(rules: Rules, loss_limit: f64, step: f64, max_trial: u64) -> Self {
        Self {
            rules,
            loss_limit,
            step,
            max_trial,
            rate: bounded(0.0),
            pacing: bounded(0.0),
            width: 0,
            phase: Phase::Ready,
            previous_rtt: None,
            rtt: FIRST_RTT,
            next_sample: None,
            utility: 0.0,
        }
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = bounded(rate);
        self.pacing = self.rate;
    }

    fn judge(&mut self, interval: &Interval, view: &View<'_>) -> f64 {
        let rtt = view.rtt_at_end.or(interval.mean_rtt()).unwrap_or(view.rtt).max(1e-6);
        // The program uses the sent rate, the paper the chosen rate.
        let sent_rate = if self.rules.pantheon {
            interval.sent as f64 / interval.duration().max(1e-6)
        } else {
            interval.rate / MEGABIT
        };
        let outcome = Outcome {
            sent_rate,
            loss: interval.loss_rate(),
            rtt_ms: rtt * 1e3,
            previous_rtt_ms: self.previous_rtt.unwrap_or(rtt) * 1e3,
        };
        self.previous_rtt = Some(rtt);
        (self.rules.utility)(&outcome, self.loss_limit)
    }

    fn new_trial(&mut self, id: u64, view: &mut View<'_>) -> Trial {
        // Wider after each round without a decision. After the widest the program starts again with the narrowest.
        self.width = match self.width + 1 {
            wider if wider <= self.max_trial => wider,
            _ if self.rules.pantheon => 1,
            _ => self.max_trial,
        };
        let epsilon = self.width as f64 * self.step;
        let mut rates = [0.0; TRIALS];
        for pair in rates.chunks_exact_mut(2) {
            let direction = if view.rng.bernoulli(0.5) { 1.0 } else { -1.0 };
            pair[0] = self.rate * (1.0 + direction * epsilon);
            pair[1] = self.rate * (1.0 - direction * epsilon);
        }
        Trial { first: id, rates, utilities: [None; TRIALS], begun: 0 }
    }

    fn length(&self, view: &mut View<'_>) -> Length {
        if !self.rules.pantheon {
            let span = TimeSpan::from_secs_f64(view.rtt * (1.7 + 0.5 * view.rng.uniform()));
            return Length { packets: MIN_PACKETS, span };
        }
        let period = view.packet_time(self.pacing);
        let round_trips = 1.5 + 0.1 * view.rng.below(3) as f64;
        let packets = if self.rtt * 1.1 / period > MIN_PACKETS as f64 {
            (self.rtt * round_trips / period) as u64
        } else {
            ((MIN_DURATION / period) as u64).max(MIN_PACKETS)
        };
        Length { packets, span: TimeSpan::ZERO }
    }

    /// Return the direction in which both pairs agree, if they do.
    fn decide(trial: &Trial) -> Option<f64> {
        let mut votes = 0;
        for pair in 0..TRIALS / 2 {
            let [a, b] = [2 * pair, 2 * pair + 1];
            let (utility, rates) = ((trial.utilities[a]?, trial.utilities[b]?), (trial.rates[a], trial.rates[b]));
            let up = (utility.0 > utility.1 && rates.0 > rates.1) || (utility.0 < utility.1 && rates.0 < rates.1);
            votes += if up { 1 } else { -1 };
        }
        (votes != 0).then(|| f64::from(votes).signum())
    }

    /// Move by `size` steps; the next interval shows the result.
    fn go(&mut self, target: u64, direction: f64, size: f64, previous: Option<f64>) {
        let from = self.rate;
        self.set_rate(from * (1.0 + size * self.step * direction));
        self.phase = Phase::Move { target, direction, size, from, previous };
    }

    fn end_start(&mut self, interval: &Interval, utility: f64) {
        let Phase::Start { best: (id, rate, best), .. } = self.phase else { return };
        let expected = id.map_or(interval.id, |id| id + 1);
        // A result was skipped: all packets of an interval were lost.
        let skipped = interval.id > expected || (id.is_none() && interval.id > 0);
        if !skipped && (utility > best || id.is_none()) {
            if let Phase::Start { best, .. } = &mut self.phase {
                *best = (Some(interval.id), interval.rate, utility);
            }
            return;
        }
        self.set_rate(rate);
        self.phase = Phase::Ready;
    }

    fn end_trial(&mut self, mut trial: Trial, interval: &Interval, utility: Option<f64>, view: &View<'_>) -> Next {
        let Some(place) = interval.id.checked_sub(trial.first).filter(|&i| i < TRIALS as u64) else {
            return Next::GoOn;
        };
        if utility.is_none() {
            // The same width again.
            self.width -= 1;
            self.phase = Phase::Ready;
            return Next::GoOn;
        }
        trial.utilities[place as usize] = utility;
        self.phase = Phase::Trial(trial);
        if trial.utilities.iter().any(Option::is_none) {
            return Next::GoOn;
        }
        let Some(direction) = Self::decide(&trial) else {
            self.phase = Phase::Ready;
            return self.cut();
        };
        let size = if self.rules.pantheon { (self.width / 2 + 1) as f64 } else { self.width as f64 };
        self.width = 0;
        self.go(view.next_id, direction, size, None);
        self.cut()
    }

    fn end_move(&mut self, interval: &Interval, utility: Option<f64>, view: &View<'_>) -> Next {
        let Phase::Move { target, direction, size, from, previous } = self.phase else { return Next::GoOn };
        if interval.id < target {
            return Next::GoOn;
        }
        let Some(utility) = utility else {
            // No result supports the latest move.
            self.set_rate(from);
            self.phase = Phase::Ready;
            return Next::GoOn;
        };
        let sent = interval.bytes as f64 * 8.0 / interval.duration().max(1e-6);
        if self.rules.pantheon && self.rate > RESYNC.0 * MEGABIT && self.rate > sent + RESYNC.1 * MEGABIT {
            self.set_rate(sent);
            self.phase = Phase::Ready;
            return Next::GoOn;
        }
        match previous {
            // The first move within this phase is one step in the paper, two in the program.
            None => self.go(view.next_id, direction, if self.rules.pantheon { 2.0 } else { 1.0 }, Some(utility)),
            Some(previous) if utility > previous => self.go(view.next_id, direction, size + 1.0, Some(utility)),
            Some(_) => {
                // The program subtracts the percentage from the reached rate.
                let back = if self.rules.pantheon { self.rate * (1.0 - size * self.step * direction) } else { from };
                self.set_rate(back);
                self.phase = Phase::Ready;
            }
        }
        self.cut()
    }

    /// In the program the current interval ends at its new rate; in the paper a decision begins a new one.
    fn cut(&self) -> Next {
        if self.rules.pantheon {
            Next::GoOn
        } else {
            Next::Begin
        }
    }
}

impl Controller for Allegro {
    const TAKE: Take = Take::AtLaterAck;

    fn init(&mut self, view: &mut View<'_>) {
        // §3.2: two packets per round trip; `cc.h`: one doubled.
        let first = if self.rules.pantheon { 2.0 * MEGABIT } else { 2.0 * view.mss as f64 * 8.0 / view.rtt.max(1e-6) };
        let first = bounded(first);
        self.set_rate(first);
        self.phase = Phase::Start { best: (None, first, f64::NEG_INFINITY), next_rate: first };
    }

    fn begin(&mut self, id: u64, view: &mut View<'_>) -> (f64, Length) {
        if matches!(self.phase, Phase::Ready) {
            self.phase = Phase::Trial(self.new_trial(id, view));
        }
        match &mut self.phase {
            Phase::Start { next_rate, .. } => {
                if !view.app_limited {
                    self.pacing = *next_rate;
                    *next_rate = bounded(2.0 * *next_rate);
                }
            }
            Phase::Trial(trial) if trial.begun < TRIALS => {
                self.pacing = bounded(trial.rates[trial.begun]);
                trial.begun += 1;
            }
            // Until all results are in the program keeps the rate of the last trial.
            Phase::Trial(_) if self.rules.pantheon => {}
            _ => self.pacing = self.rate,
        }
        (self.pacing, self.length(view))
    }

    fn end(&mut self, interval: &Interval, view: &mut View<'_>) -> Next {
        let mut utility = interval.usable().then(|| self.judge(interval, view));
        if let (Some(u), Phase::Start { .. }, 0) = (utility.as_mut(), &self.phase, interval.id) {
            if self.rules.pantheon {
                *u /= 2.0;
            }
        }
        self.utility = utility.unwrap_or(self.utility);
        match self.phase {
            Phase::Start { ref mut best, .. } => {
                match utility {
                    Some(utility) => self.end_start(interval, utility),
                    // It has no result, but it was not skipped.
                    None => best.0 = best.0.max(Some(interval.id)),
                }
                if matches!(self.phase, Phase::Ready) {
                    self.cut()
                } else {
                    Next::GoOn
                }
            }
            Phase::Ready => Next::GoOn,
            Phase::Trial(trial) => self.end_trial(trial, interval, utility, view),
            Phase::Move { .. } => self.end_move(interval, utility, view),
        }
    }

    fn report(&self) -> usize {
        if self.rules.pantheon {
            REPORT
        } else {
            1
        }
    }

    fn patience(&self) -> TimeSpan {
        if self.rules.pantheon {
            TimeSpan::MAX
        } else {
            TimeSpan::ZERO
        }
    }

    fn on_rtt(&mut self, now: Timestamp, sample: f64) -> Next {
        // The first answer leaves when the first acknowledgement arrives.
        let next = *self.next_sample.get_or_insert(now + TimeSpan::from_secs_f64(sample));
        if now >= next {
            self.rtt += RTT_GAIN * (sample - self.rtt);
            self.next_sample = Some(now + SYN);
        }
        Next::GoOn
    }

    fn pacing_rate(&self) -> f64 {
        self.pacing
    }

    fn observables(&self) -> Observables {
        let phase = match self.phase {
            Phase::Start { .. } => 0.0,
            Phase::Ready | Phase::Trial(_) => 1.0,
            Phase::Move { .. } => 2.0,
        };
        vec![
            ("base_rate_mbps", self.rate / MEGABIT),
            ("phase", phase),
            ("trial_width_steps", self.width as f64),
            ("utility", self.utility),
        ]
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
