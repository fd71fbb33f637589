//! Vivace as published (NSDI 2018, §4 and §5): doubles until the utility falls, then two trials per decision.
//!
//! Constants of §5, compared with the implementation in WebRTC's `modules/congestion_controller/pcc` (BSD-3-Clause).

use ccgym_core::congestion_control::Observables;
use ccgym_core::TimeSpan;

use super::utility::{self, Weights};
use crate::monitor_interval::sender::{bounded, Controller, Next, Take, View};
use crate::monitor_interval::{Interval, Length};

/// ε: trials are at r(1±ε).
const EPSILON: f64 = 0.05;
/// θ₀: Mbit/s per unit of the gradient.
const CONVERSION: f64 = 1.0;
/// ω₀ and δ: first bound of a move as a share of the rate, and its growth per hit.
const BOUND: f64 = 0.05;
const BOUND_STEP: f64 = 0.1;
/// Streaks up to this length count fully, longer ones nearly twice.
const SHORT_STREAK: u32 = 3;
/// Min packets of an interval: with fewer the slope is noise. Ours.
const MIN_PACKETS: u64 = 10;
const MEGABIT: f64 = 1e6;

/// Result of an interval.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    utility: f64,
    loss: f64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubling; rate and utility of the latest result.
    Start { latest: Option<(f64, f64)> },
    /// The next interval begins a pair of trials.
    Ready,
    /// The interval of the first trial, its direction, trials begun, and the result of the first.
    Trial { first: u64, direction: f64, begun: u32, result: Option<Outcome> },
}

#[derive(Clone, Debug)]
pub struct Paper {
    weights: Weights,
    min_rate: f64,
    phase: Phase,
    /// Rates, bits per second: the one that trials vary, and the current one.
    rate: f64,
    pacing: f64,
    /// Moves in one direction, and hits of the bound in one direction.
    streak: u32,
    hits: u32,
    direction: f64,
    /// The gradient of a pair of trials that is repeated.
    doubted: Option<f64>,
    utility: f64,
}

impl Paper {
    pub fn new(weights: Weights, min_rate: f64) -> Self {
        Self {
            weights,
            min_rate,
            phase: Phase::Start { latest: None },
            rate: min_rate,
            pacing: min_rate,
            streak: 0,
            hits: 0,
            direction: 0.0,
            doubted: None,
            utility: 0.0,
        }
    }

    /// Return the move along `gradient` (utility per Mbit/s), Mbit/s.
    fn change(&mut self, gradient: f64) -> f64 {
        let direction = if gradient == 0.0 { 0.0 } else { gradient.signum() };
        if direction != self.direction {
            (self.direction, self.streak, self.hits) = (direction, 0, 0);
        }
        self.streak = self.streak.saturating_add(1);
        // m(τ): the confidence amplifier.
        let amplifier =
            if self.streak <= SHORT_STREAK { self.streak } else { 2 * self.streak.min(1 << 20) - SHORT_STREAK };
        let wanted = (CONVERSION * gradient * f64::from(amplifier)).abs();
        let rate = self.rate / MEGABIT;
        let bound = |hits: u32| (BOUND + BOUND_STEP * f64::from(hits)) * rate;
        let change = wanted.min(bound(self.hits));
        if wanted > change {
            self.hits = self.hits.saturating_add(1);
        } else {
            // The smallest bound that allows the move.
            while self.hits > 0 && wanted <= bound(self.hits - 1) {
                self.hits -= 1;
            }
        }
        change * direction
    }

    fn judge(&self, interval: &Interval) -> Outcome {
        let loss = interval.loss_rate();
        let utility = utility::paper(&self.weights, interval.rate / MEGABIT, interval.rtt_slope(), loss);
        Outcome { utility, loss }
    }

    /// Decide after both trials of a pair: move, or repeat it.
    fn decide(&mut self, higher: Outcome, lower: Outcome) -> Next {
        let gradient = (higher.utility - lower.utility) / (2.0 * EPSILON * self.rate / MEGABIT);
        // Sending faster hardly ever lowers the loss (§4.3): such a pair must be confirmed.
        let gradient = match (self.doubted.take(), higher.loss < lower.loss) {
            (None, true) => {
                self.doubted = Some(gradient);
                return self.settle_at(self.rate);
            }
            (Some(before), true) => (before + gradient) / 2.0,
            (_, false) => gradient,
        };
        let change = self.change(gradient);
        self.settle_at(self.rate + change * MEGABIT)
    }

    fn settle_at(&mut self, rate: f64) -> Next {
        self.rate = bounded(rate.max(self.min_rate));
        self.phase = Phase::Ready;
        Next::Begin
    }
}

impl Controller for Paper {
    const TAKE: Take = Take::Settled;

    fn init(&mut self, view: &mut View<'_>) {
        // Two packets per round trip, as Allegro.
        self.rate = bounded((2.0 * view.mss as f64 * 8.0 / view.rtt.max(1e-6)).max(self.min_rate));
        self.pacing = self.rate;
    }

    fn begin(&mut self, id: u64, view: &mut View<'_>) -> (f64, Length) {
        if matches!(self.phase, Phase::Ready) {
            let direction = if view.rng.bernoulli(0.5) { 1.0 } else { -1.0 };
            self.phase = Phase::Trial { first: id, direction, begun: 0, result: None };
        }
        match &mut self.phase {
            Phase::Start { .. } => {
                if id > 0 && !view.app_limited {
                    self.rate = bounded(2.0 * self.rate);
                }
                self.pacing = self.rate;
            }
            Phase::Trial { direction, begun, .. } => {
                let side = [1.0, -1.0].get(*begun as usize).map_or(0.0, |side| side * *direction);
                self.pacing = self.rate * (1.0 + EPSILON * side);
                *begun += 1;
            }
            Phase::Ready => {}
        }
        (self.pacing, Length { packets: MIN_PACKETS, span: TimeSpan::from_secs_f64(view.rtt) })
    }

    fn end(&mut self, interval: &Interval, _view: &mut View<'_>) -> Next {
        let found = interval.usable().then(|| self.judge(interval));
        self.utility = found.map_or(self.utility, |f| f.utility);
        match (&mut self.phase, found) {
            (Phase::Start { latest }, Some(found)) => match *latest {
                Some((rate, utility)) if found.utility < utility => self.settle_at(rate),
                _ => {
                    *latest = Some((interval.rate, found.utility));
                    Next::GoOn
                }
            },
            (Phase::Trial { first, .. }, None) if interval.id >= *first && interval.id < *first + 2 => {
                self.settle_at(self.rate)
            }
            (Phase::Trial { first, result, .. }, Some(found)) if interval.id == *first => {
                *result = Some(found);
                Next::GoOn
            }
            (&mut Phase::Trial { first, direction, result: Some(other), .. }, Some(found))
                if interval.id == first + 1 =>
            {
                if direction > 0.0 {
                    self.decide(other, found)
                } else {
                    self.decide(found, other)
                }
            }
            _ => Next::GoOn,
        }
    }

    fn on_timeout(&mut self) -> Next {
        // §4.3, for intervals without results: half the rate.
        (self.direction, self.streak, self.hits) = (0.0, 0, 0);
        self.doubted = None;
        self.settle_at(self.rate / 2.0);
        Next::Forget
    }

    fn pacing_rate(&self) -> f64 {
        self.pacing
    }

    fn observables(&self) -> Observables {
        vec![
            ("base_rate_mbps", self.rate / MEGABIT),
            ("starting", f64::from(u8::from(matches!(self.phase, Phase::Start { .. })))),
            ("streak", self.direction * f64::from(self.streak)),
            ("utility", self.utility),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rate: f64) -> Paper {
        let mut paper = Paper::new(Weights { exponent: 0.9, latency: 900.0, loss: 11.35 }, 1e5);
        paper.rate = rate * MEGABIT;
        paper
    }

    /// Streaks of 1, 2, 3 count fully, then 2τ−3; a change of sign restarts.
    #[test]
    fn amplifier() {
        let mut paper = of(1000.0);
        for (gradient, expected) in [
            (1.0, 1.0),
            (1.0, 2.0),
            (1.0, 3.0),
            (1.0, 5.0),
            (1.0, 7.0),
            (-1.0, -1.0),
            (-1.0, -2.0),
            (0.0, 0.0),
            (1.0, 1.0),
        ] {
            assert_eq!(paper.change(gradient), expected, "{gradient}");
        }
    }

    /// 5 % of the rate, 10 % more per hit, back to the smallest that allows the move.
    #[test]
    fn boundary() {
        let mut paper = of(100.0);
        for (gradient, expected) in
            [(1e3, 5.0), (1e3, 15.0), (1e3, 25.0), (0.8, 4.0), (1e3, 5.0), (-1e3, -5.0), (-1e3, -15.0)]
        {
            let change = paper.change(gradient);
            assert!((change - expected).abs() < 1e-9, "{gradient}: {change}, expected {expected}");
        }
    }

    /// In an interval where the rate affects neither loss nor RTT, the gradient is that of x^0.9.
    #[test]
    fn gradient_of_a_pair() {
        for direction in [1.0, -1.0] {
            let mut paper = of(100.0);
            paper.phase = Phase::Trial { first: 5, direction, begun: 2, result: None };
            let mut rng = ccgym_core::Rng::stream(1, "test", 0);
            let mut view =
                View { mss: 1500, rtt: 0.04, next_id: 8, app_limited: false, rtt_at_end: None, rng: &mut rng };
            for (id, side) in [(5, direction), (6, -direction)] {
                paper.end(&Interval::of(id, 100e6 * (1.0 + EPSILON * side), 100, 100, 0.0), &mut view);
            }
            let expected = 100.0 + 0.9 * 100f64.powf(-0.1);
            assert!((paper.rate / MEGABIT - expected).abs() < 1e-3, "{}", paper.rate);
        }
    }

    /// Return the share of a link of `capacity` Mbit/s that is used in the long run if each packet is lost with this
    /// probability, packets beyond the capacity are lost, too, and intervals have `packets` packets; with `None` losses
    /// equal their expectation.
    fn used(capacity: f64, probability: f64, packets: Option<u64>) -> f64 {
        const DECISIONS: usize = 2000;
        let mut paper = of(capacity);
        paper.weights.latency = 0.0;
        let mut rng = ccgym_core::Rng::stream(1, "test", 0);
        let mut used = 0.0;
        for decision in 0..DECISIONS {
            let rate = paper.rate / MEGABIT;
            let mut trial = |rate: f64| {
                let expected = 1.0 - (1.0 - probability) * (capacity / rate).min(1.0);
                let loss = packets.map_or(expected, |packets| {
                    (0..packets).filter(|_| rng.bernoulli(expected)).count() as f64 / packets as f64
                });
                Outcome { utility: utility::paper(&paper.weights, rate, 0.0, loss), loss }
            };
            let (higher, lower) = (trial(rate * (1.0 + EPSILON)), trial(rate * (1.0 - EPSILON)));
            paper.decide(higher, lower);
            if decision >= DECISIONS / 2 {
                used += (rate / capacity).min(1.0);
            }
        }
        used / (DECISIONS - DECISIONS / 2) as f64
    }

    /// If losses are measured without error, the formula's random loss is tolerated: 6.2 % at 12 and 5.0 % at 100
    /// Mbit/s. In an interval of 40 packets noise outweighs the rate's effect on the loss.
    #[test]
    fn tolerated_random_loss() {
        for (capacity, expected, in_40_packets) in [(12.0, 0.062, 0.018), (100.0, 0.050, 0.013)] {
            let tolerated = |packets| (0..100).map(|i| f64::from(i) / 1e3).find(|&p| used(capacity, p, packets) < 0.5);
            for (packets, expected) in [(None, expected), (Some(40), in_40_packets)] {
                let found = tolerated(packets).unwrap();
                assert!((found - expected).abs() <= 0.01, "{capacity} {packets:?}: {found}, expected {expected}");
            }
        }
    }

    /// A result with fewer losses at the higher rate counts when it occurs twice, with the mean of both gradients.
    #[test]
    fn abnormal_pairs_are_tried_twice() {
        let outcome = |utility, loss| Outcome { utility, loss };
        // Utilities that give gradients of 2 and 4 per Mbit/s at 100 Mbit/s.
        let (lower, two, four) = (outcome(0.0, 0.1), outcome(20.0, 0.05), outcome(40.0, 0.05));
        let mut paper = of(100.0);
        paper.decide(two, lower);
        assert_eq!(paper.rate, 100.0 * MEGABIT);
        paper.decide(four, lower);
        assert!((paper.rate / MEGABIT - 103.0).abs() < 1e-9, "{}", paper.rate);
        // A second pair that does not confirm the first decides alone.
        let mut paper = of(100.0);
        paper.decide(two, lower);
        paper.decide(outcome(0.0, 0.1), outcome(20.0, 0.0));
        assert!((paper.rate / MEGABIT - 98.0).abs() < 1e-9, "{}", paper.rate);
    }

    #[test]
    fn a_timeout_halves_the_rate() {
        let mut paper = of(100.0);
        assert_eq!(paper.on_timeout(), Next::Forget);
        assert_eq!(paper.rate, 50.0 * MEGABIT);
        // It also ends the start.
        assert!(matches!(paper.phase, Phase::Ready));
    }
}
