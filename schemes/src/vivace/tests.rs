use ccgym_core::Rng;

use super::{Controller, Next, Pantheon, State, View, Weights, MEGABIT};
use crate::monitor_interval::Interval;
use crate::testing::recorded;

/// A controller and its intervals; the test chooses when results come.
struct Host {
    vivace: Pantheon,
    next: u64,
    rng: Rng,
}

impl Host {
    fn new() -> Self {
        let weights = Weights { exponent: 0.9, latency: 900.0, loss: 11.35 };
        Self { vivace: Pantheon::new(weights, 1.3e6), next: 0, rng: Rng::stream(1, "test", 0) }
    }
    fn at(rate: f64) -> Self {
        let mut host = Self::new();
        host.vivace.base = rate * MEGABIT;
        host.vivace.search();
        host.vivace.set_rate(rate * MEGABIT);
        host
    }
    fn ask<T>(&mut self, question: impl FnOnce(&mut Pantheon, &mut View<'_>) -> T) -> T {
        let mut view = View {
            mss: 1500,
            rtt: 0.04,
            next_id: self.next,
            app_limited: false,
            rtt_at_end: Some(0.04),
            rng: &mut self.rng,
        };
        question(&mut self.vivace, &mut view)
    }
    /// Begin the next interval; returns its number and rate in Mbit/s.
    fn begin(&mut self) -> (u64, f64) {
        let id = self.next;
        self.next += 1;
        (id, self.ask(|vivace, view| vivace.begin(id, view)).0 / MEGABIT)
    }
    fn end(&mut self, id: u64, rate: f64, acked: u64, slope: f64) {
        let interval = Interval::of(id, rate * MEGABIT, 1000, acked, slope);
        self.ask(|vivace, view| vivace.end(&interval, view));
    }
    /// Run a round of trials with these arrivals per thousand packets, by side; returns the number of trials.
    fn round(&mut self, above: u64, below: u64) -> usize {
        let base = self.rate();
        let mut trials = vec![self.begin()];
        let count = match &self.vivace.state {
            State::Recording { trials, .. } => trials.len(),
            other => panic!("{other:?}"),
        };
        trials.extend((1..count).map(|_| self.begin()));
        self.begin();
        for (id, rate) in trials {
            self.end(id, rate, if rate > base { above } else { below }, 0.0);
        }
        count
    }
    fn rate(&self) -> f64 {
        self.vivace.base / MEGABIT
    }
}

/// Twice the rate per result, and half of it when the utility falls.
#[test]
fn start() {
    let mut host = Host::new();
    assert_eq!(host.begin(), (0, 1.6));
    assert_eq!(host.begin(), (1, 1.6));
    host.end(0, 1.6, 1000, 0.0);
    assert_eq!(host.begin(), (2, 3.2));
    // An RTT that grows by 2 % of the time of sending costs more than doubling the rate gains.
    host.end(1, 1.6, 1000, 0.0);
    host.end(2, 3.2, 1000, 0.019);
    assert_eq!(host.begin(), (3, 6.4));
    host.end(3, 6.4, 1000, 0.021);
    assert_eq!(host.rate(), 3.2);
    assert!(matches!(host.vivace.state, State::Search));
}

/// Before the first result an RTT of ten seconds is assumed, which counts as 0.3: 40 packets at 1.6 Mbit/s, twice.
#[test]
fn intervals_are_long_before_the_first_result() {
    let mut host = Host::new();
    let mut packets = || {
        let id = host.next;
        host.next += 1;
        let (_, length) = host.ask(|vivace, view| vivace.begin(id, view));
        length.packets
    };
    assert_eq!([packets(), packets()], [40, 40]);
    host.end(0, 1.6, 1000, 0.0);
    // From then on it is measured: 40 ms are ten packets at 3.2 Mbit/s.
    let (_, length) = host.ask(|vivace, view| vivace.begin(2, view));
    assert_eq!(length.packets, 10);
    let (_, length) = {
        host.vivace.base = 24.0 * MEGABIT;
        host.vivace.search();
        host.ask(|vivace, view| vivace.begin(3, view))
    };
    assert!((76..=84).contains(&length.packets), "{length:?}");
}

/// The program sends up to 8 % slower than intended; the clock error differs by flow.
#[test]
fn the_clock_is_slow() {
    let mut host = Host::new();
    let clocks: Vec<_> = (0..50)
        .map(|_| {
            host.ask(|vivace, view| vivace.init(view));
            host.vivace.pacing_rate() / host.vivace.pacing
        })
        .collect();
    assert!(clocks.iter().all(|clock| (0.92..=1.0).contains(clock)), "{clocks:?}");
    assert!(clocks.iter().any(|&clock| clock < 0.94) && clocks.iter().any(|&clock| clock > 0.98), "{clocks:?}");
}

/// The min applies from the next interval on: a step down may leave the current one nearly without a rate.
#[test]
fn a_step_may_go_below_the_minimum_rate() {
    let mut host = Host::at(1.3);
    host.vivace.follow(-1.2);
    assert!((host.vivace.pacing / MEGABIT - 0.1).abs() < 1e-9, "{}", host.vivace.pacing);
    assert!(host.begin().1 > 0.7 && (host.rate() - 1.3).abs() < 1e-9);
}

/// 5 % or half a megabit, the max of both; four trials, and two once the direction is known.
#[test]
fn trials() {
    for (rate, apart) in [(100.0, 5.0), (4.0, 0.5)] {
        let mut host = Host::at(rate);
        let mut rates: Vec<_> = (0..4).map(|_| host.begin().1).collect();
        assert_eq!(host.begin().1, rate);
        rates.sort_by(f64::total_cmp);
        for (found, expected) in rates.iter().zip([rate - apart, rate - apart, rate + apart, rate + apart]) {
            assert!((found - expected).abs() < 1e-9, "{rate}: {rates:?}");
        }
    }
    let mut host = Host::at(100.0);
    assert_eq!([host.round(1000, 1000), host.round(1000, 1000), host.round(1000, 1000)], [4, 4, 2]);
}

/// Without losses the gradient is that of x^0.9, within the smallest step of 0.5 Mbit/s.
#[test]
fn moves_follow_the_gradient() {
    let mut host = Host::at(20.0);
    host.round(1000, 1000);
    // 0.9·x^−0.1 with x in 2²⁰ bits, per 10⁶.
    let x = 20.0e6 / 1_048_576.0;
    let expected = 20.0 + 0.9 * f64::powf(x, -0.1) * 1e6 / 1_048_576.0;
    assert!((host.rate() - expected).abs() < 1e-3, "{} {expected}", host.rate());
    // Losses at the higher rate: down by the bound of 5 %.
    let before = host.rate();
    host.round(900, 1000);
    assert!((host.rate() / before - 0.95).abs() < 1e-9, "{}", host.rate());
}

/// Trials without a decision are followed by one pair; a decision in the old direction goes on.
#[test]
fn disagreement() {
    let mut host = Host::at(20.0);
    let trials: Vec<_> = (0..5).map(|_| host.begin()).collect();
    for (i, &(id, rate)) in trials[..4].iter().enumerate() {
        // The first pair prefers the higher rate, the second the lower.
        let lossy = if i < 2 { rate < 20.0 } else { rate > 20.0 };
        host.end(id, rate, if lossy { 900 } else { 1000 }, 0.0);
    }
    assert_eq!(host.rate(), 20.0);
    assert_eq!(host.round(1000, 1000), 2);
}

/// More than half lost: half the rate, once for all intervals that had begun, down to the minimum.
#[test]
fn emergency() {
    let mut host = Host::at(20.0);
    let trials: Vec<_> = (0..6).map(|_| host.begin()).collect();
    for &(id, rate) in &trials[..3] {
        host.end(id, rate, 400, 0.0);
    }
    assert_eq!(host.rate(), 10.0);
    host.begin();
    host.end(5, 20.0, 400, 0.0);
    assert_eq!(host.rate(), 5.0);
    let mut host = Host::at(2.0);
    host.begin();
    host.end(0, 2.0, 400, 0.0);
    assert_eq!(host.rate(), 1.3);
}

/// The program's timeout is a hundred seconds: until results come it continues unchanged.
#[test]
fn a_timeout_changes_nothing() {
    let mut host = Host::at(20.0);
    assert_eq!(host.vivace.on_timeout(), Next::GoOn);
    assert_eq!(host.rate(), 20.0);
}

/// A higher rate that seems better although it lost less is checked twice.
#[test]
fn unexpected_results_are_checked_twice() {
    let mut host = Host::at(20.0);
    host.round(930, 900);
    assert_eq!(host.rate(), 20.0, "doubted");
    host.round(930, 900);
    assert!(host.rate() > 20.0, "believed");
}

/// Interval by interval as the program that Pantheon runs (`tests/recorders/vivace_binary.cpp`), with its order of
/// trials. Loss and slope of each row are the result of the interval before the last; state and base rate follow from
/// it.
#[test]
fn decisions_of_the_program() {
    let mut host = Host::new();
    let rows: Vec<[f64; 5]> = recorded("vivace_binary");
    for (i, &[rate, lost, slope, state, base]) in rows.iter().enumerate() {
        let (_, mut begun) = host.begin();
        if let State::Recording { trials, begun: 1 } = &mut host.vivace.state {
            for (k, pair) in trials.chunks_exact_mut(2).enumerate() {
                let up = rows.get(i + 2 * k).is_some_and(|other| other[0] > host.vivace.base / MEGABIT);
                if pair[0].up != up {
                    (pair[0].up, pair[1].up) = (up, !up);
                    (pair[0].rate, pair[1].rate) = (pair[1].rate, pair[0].rate);
                }
            }
            begun = trials[0].rate / MEGABIT;
        }
        assert!((begun / rate - 1.0).abs() < 1e-6, "interval {i}: {begun}, expected {rate}");
        if i >= 2 {
            host.end(i as u64 - 2, rows[i - 2][0], 1000 - lost as u64, slope);
        }
        assert_eq!(host.vivace.observables()[1], ("state", state), "after interval {i}");
        assert!((host.rate() / base - 1.0).abs() < 1e-6, "after interval {i}: {}, expected {base}", host.rate());
    }
}
