use ccgym_core::congestion_control::{AckedPacket, SentEvent};
use ccgym_core::{AckEvent, CongestionControl, InitContext, Rng, RttEstimator, TimeSpan, Timestamp};

use super::{Allegro, Phase, Rules};
use crate::monitor_interval::sender::{Controller, Next, PccSender, View};
use crate::monitor_interval::Interval;
use crate::testing::acknowledgement;

const MBPS: f64 = 1e6;

/// A controller and its intervals; the test chooses when results come.
struct Host {
    allegro: Allegro,
    next: u64,
    rtt: f64,
    rng: Rng,
}

impl Host {
    fn new(rules: Rules) -> Self {
        let mut host =
            Self { allegro: Allegro::new(rules, 0.05, 0.01, 5), next: 0, rtt: 0.04, rng: Rng::stream(1, "test", 0) };
        host.ask(|allegro, view| allegro.init(view));
        host
    }
    fn ask<T>(&mut self, question: impl FnOnce(&mut Allegro, &mut View<'_>) -> T) -> T {
        let mut view = View {
            mss: 1500,
            rtt: self.rtt,
            next_id: self.next,
            app_limited: false,
            rtt_at_end: Some(self.rtt),
            rng: &mut self.rng,
        };
        question(&mut self.allegro, &mut view)
    }
    /// Begin the next interval; returns its number and rate in Mbit/s.
    fn begin(&mut self) -> (u64, f64) {
        let id = self.next;
        let (rate, _) = self.ask(|allegro, view| allegro.begin(id, view));
        self.next += 1;
        (id, rate / MBPS)
    }
    /// End interval `id` at `rate` Mbit/s, with `acked` of a hundred packets arrived.
    fn end(&mut self, id: u64, rate: f64, acked: u64) {
        let interval = Interval::of(id, rate * MBPS, 100, acked, 0.0);
        if self.ask(|allegro, view| allegro.end(&interval, view)) == Next::Begin {
            self.begin();
        }
    }
    fn rate(&self) -> f64 {
        self.allegro.rate / MBPS
    }
    /// Run a round of trials with the arrivals `acked` by side; returns its width, in per cent.
    fn trial(&mut self, acked: [(u64, u64); 2]) -> f64 {
        let rate = self.rate();
        let begun = match self.allegro.phase {
            Phase::Trial(trial) => trial.begun,
            _ => 0,
        };
        let mut trials: Vec<_> = match self.allegro.phase {
            Phase::Trial(trial) => (0..begun).map(|i| (trial.first + i as u64, trial.rates[i] / MBPS)).collect(),
            _ => Vec::new(),
        };
        while trials.len() < 4 {
            trials.push(self.begin());
        }
        self.begin();
        for (i, &(id, tried)) in trials.iter().enumerate() {
            let (above, below) = acked[i / 2];
            self.end(id, tried, if tried > rate { above } else { below });
        }
        ((trials[0].1 / rate - 1.0).abs() * 1e4).round() / 1e2
    }
    /// End the interval of a move.
    fn moved(&mut self, acked: u64) {
        let Phase::Move { target, .. } = self.allegro.phase else { panic!("{:?}", self.allegro.phase) };
        while self.next <= target + 1 {
            self.begin();
        }
        self.end(target, self.rate(), acked);
    }
    fn start_over_at(&mut self, rate: f64) {
        self.allegro.set_rate(rate * MBPS);
        self.allegro.phase = Phase::Ready;
    }
}

const UP: [(u64, u64); 2] = [(100, 100); 2];
/// The higher rate loses a tenth.
const DOWN: [(u64, u64); 2] = [(90, 100); 2];
const TORN: [(u64, u64); 2] = [(100, 100), (90, 100)];

#[test]
fn start_doubles_each_interval_and_falls_back() {
    let mut host = Host::new(Rules::pantheon());
    let begun: Vec<_> = (0..4).map(|_| host.begin()).collect();
    assert_eq!(begun.iter().map(|b| b.1).collect::<Vec<_>>(), [2.0, 4.0, 8.0, 16.0]);
    host.end(0, 2.0, 100);
    host.end(1, 4.0, 100);
    host.end(2, 8.0, 50);
    assert_eq!(host.rate(), 4.0);
    // The interval of 16 Mbit/s continues at that rate to its end.
    assert!(matches!(host.allegro.phase, Phase::Ready) && host.allegro.pacing == 4.0 * MBPS);
    host.begin();
    assert!(matches!(host.allegro.phase, Phase::Trial(trial) if trial.begun == 1));
    // Two packets per round trip in the paper, and the trials begin at once.
    let mut host = Host::new(Rules::paper());
    let begun: Vec<_> = (0..4).map(|_| host.begin()).collect();
    assert!((begun[0].1 - 0.6).abs() < 1e-9);
    host.end(0, 0.6, 100);
    host.end(1, 1.2, 50);
    assert!(matches!(host.allegro.phase, Phase::Trial(trial) if trial.begun == 1));
}

/// Return the utility after `acked` of sixty packets, 6 ms apart, are acknowledged: the first interval has 25 to 28 of
/// them. RTTs are 40 ms, except those of packets 35 and 39.
fn utility_after(acked: u64, rtt_of_35: u64, rtt_of_39: u64) -> f64 {
    let mut sender = PccSender::new(Allegro::new(Rules::pantheon(), 0.05, 0.01, 5));
    let rng = Rng::stream(1, "test", 0);
    sender.init(InitContext { now: Timestamp::ZERO, mss: 1500, initial_window: 15_000, flow: 0, rng, path: None });
    let left = |number| Timestamp::from_millis(6 * number);
    for number in 0..60 {
        sender.on_packet_sent(&SentEvent { now: left(number), number, bytes: 1500, in_flight: 0, more: true });
    }
    for number in 0..acked {
        let rtt = TimeSpan::from_millis(match number {
            35 => rtt_of_35,
            39 => rtt_of_39,
            _ => 40,
        });
        let now = left(number) + rtt;
        let packet = AckedPacket { number, bytes: 1500, sent: left(number), received: Some(now) };
        sender.on_ack(&AckEvent {
            acked: &[packet],
            rtt_sample: Some(rtt),
            largest_acked: number,
            next_packet_number: 60,
            ..acknowledgement(now, 1, &RttEstimator::default())
        });
    }
    sender.observables().iter().find(|o| o.0 == "utility").unwrap().1
}

/// The receiver reports twenty packets at once, and the RTT is that of the last of them.
#[test]
fn reports_of_twenty_packets() {
    assert_eq!(utility_after(39, 40, 40), 0.0);
    let known = utility_after(40, 40, 40);
    assert!(known > 0.0);
    assert_eq!(utility_after(40, 80, 40), known);
    assert!((utility_after(40, 40, 80) / known - 0.5).abs() < 1e-9);
}

/// The program's timer waits a hundred seconds: it has no result before later packets arrive. The paper does not wait.
#[test]
fn a_timeout_gives_no_result() {
    for (rules, expected) in [(Rules::pantheon(), TimeSpan::MAX), (Rules::paper(), TimeSpan::ZERO)] {
        assert_eq!(Host::new(rules).allegro.patience(), expected);
    }
}

/// 100 ms at first; then the receiver's samples, each with a weight of an eighth: every 10 ms, the first one of a
/// packet that left when the first acknowledgement arrived.
#[test]
fn round_trips_of_the_receiver() {
    let mut host = Host::new(Rules::pantheon());
    for (ms, expected) in [(40, 0.1), (79, 0.1), (80, 0.0925), (89, 0.0925), (90, 0.085_937_5)] {
        host.allegro.on_rtt(Timestamp::from_millis(ms), 0.04);
        assert!((host.allegro.rtt - expected).abs() < 1e-9, "{ms} ms: {}", host.allegro.rtt);
    }
}

#[test]
fn a_skipped_result_ends_the_start() {
    for (known, expected) in [(0, 2.0), (1, 2.0), (2, 4.0)] {
        let mut host = Host::new(Rules::pantheon());
        for _ in 0..5 {
            host.begin();
        }
        for id in 0..known {
            host.end(id, 2f64.powi(1 + id as i32), 100);
        }
        host.end(known + 1, 2f64.powi(2 + known as i32), 100);
        assert_eq!(host.rate(), expected, "{known} results");
    }
}

/// 1 % wider each time that the pairs disagree; past 5 % the program starts again at 1 %, the paper stays.
#[test]
fn trials_widen() {
    for (rules, expected) in [
        (Rules::pantheon(), [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0]),
        (Rules::paper(), [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]),
    ] {
        let mut host = Host::new(rules);
        host.start_over_at(10.0);
        for width in expected {
            assert_eq!(host.trial(TORN), width);
            assert_eq!(host.rate(), 10.0);
        }
    }
}

/// The program's first move is (⌊n/2⌋+1) %, then 2 %, 3 %, … of the rate reached, and back by the latest percentage.
#[test]
fn moves_of_the_program() {
    for (torn, outcome, direction, first) in [(0, UP, 1.0, 1.0), (1, UP, 1.0, 2.0), (3, DOWN, -1.0, 3.0)] {
        let mut host = Host::new(Rules::pantheon());
        host.start_over_at(100.0);
        for _ in 0..torn {
            host.trial(TORN);
        }
        host.trial(outcome);
        let mut expected = 100.0 * (1.0 + 0.01 * first * direction);
        assert!((host.rate() - expected).abs() < 1e-9, "{}", host.rate());
        // Fewer losses each time, so that the utility rises.
        for (size, acked) in [(2.0, 96), (3.0, 97), (4.0, 98)] {
            host.moved(acked);
            expected *= 1.0 + 0.01 * size * direction;
            assert!((host.rate() - expected).abs() < 1e-9, "{} {expected}", host.rate());
        }
        host.moved(80);
        expected *= 1.0 - 0.04 * direction;
        assert!((host.rate() - expected).abs() < 1e-9, "{} {expected}", host.rate());
        assert_eq!(host.trial(TORN), 1.0);
    }
}

/// The paper moves to the trial's rate, then by 1 %, 2 %, …, and back to the rate before.
#[test]
fn moves_of_the_paper() {
    let mut host = Host::new(Rules::paper());
    host.start_over_at(100.0);
    host.trial(TORN);
    host.trial(UP);
    let mut expected = 102.0;
    for (acked, size) in [(96, 1.0), (97, 2.0), (98, 3.0)] {
        assert!((host.rate() - expected).abs() < 1e-9, "{} {expected}", host.rate());
        host.moved(acked);
        expected *= 1.0 + 0.01 * size;
    }
    host.moved(80);
    assert!((host.rate() - 102.0 * 1.01 * 1.02).abs() < 1e-9, "{}", host.rate());
}

/// Above 200 Mbit/s a host that lags by more than 30 Mbit/s gets the reached rate.
#[test]
fn resynchronization() {
    for (rate, reached, expected) in [(300.0, 250.0, 250.0), (300.0, 280.0, 309.06), (150.0, 50.0, 154.53)] {
        let mut host = Host::new(Rules::pantheon());
        host.start_over_at(rate);
        host.trial(UP);
        let Phase::Move { target, .. } = host.allegro.phase else { panic!("it did not move") };
        host.end(target, reached, 100);
        assert!((host.rate() - expected).abs() < 1e-6, "{rate} {reached}: {}", host.rate());
    }
}

/// Lengths at 40 ms: 1.5 to 1.7 RTTs of packets in the program, at least ten packets.
#[test]
fn lengths() {
    let mut host = Host::new(Rules::pantheon());
    host.allegro.rtt = 0.04;
    for (rate, expected) in [(0.3, 10..=10), (12.0, 60..=68), (120.0, 600..=680)] {
        for _ in 0..20 {
            host.allegro.pacing = rate * MBPS;
            let length = host.ask(|allegro, view| allegro.length(view));
            assert!(expected.contains(&length.packets), "{rate}: {length:?}");
        }
    }
    let mut host = Host::new(Rules::paper());
    for _ in 0..20 {
        let length = host.ask(|allegro, view| allegro.length(view));
        assert!(length.packets == 10 && (0.068..=0.088).contains(&length.span.as_secs_f64()), "{length:?}");
    }
}

#[test]
fn application_limited_intervals_are_not_judged() {
    let mut host = Host::new(Rules::pantheon());
    let (id, rate) = host.begin();
    let mut interval = Interval::of(id, rate * MBPS, 100, 100, 0.0);
    interval.app_limited = true;
    host.ask(|allegro, view| allegro.end(&interval, view));
    assert_eq!(host.allegro.utility, 0.0);
    // A trial is repeated at its width.
    host.start_over_at(10.0);
    let (id, _) = host.begin();
    let mut interval = Interval::of(id, 10.0 * MBPS, 100, 100, 0.0);
    interval.app_limited = true;
    host.ask(|allegro, view| allegro.end(&interval, view));
    assert_eq!(host.trial(UP), 1.0);
}
