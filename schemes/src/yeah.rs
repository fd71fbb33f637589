//! YeAH (Baiocchi, Castellani and Vacirca, PFLDnet 2007; behavior of Linux `tcp_yeah.c`): fast while the queue is
//! short, slow as Reno while it is long; it drains its own queue before an overflow.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

use crate::loss_based::{Congestion, LossBased, Rounds, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "yeah",
        label: "TCP YeAH",
        reference: "Baiocchi, Castellani and Vacirca, PFLDnet 2007",
        summary: "Grows as Scalable TCP while the queue is short and as Reno while it is long, and drains it early.",
        parameters: parameters! {
            /// Drain the queue while more than this are queued.
            alpha: integer(80, (1, 10_000), "packets");
            /// The queue also counts as long if its delay exceeds the minimum round trip divided by this.
            phi: integer(8, (1, 1000), "");
            /// Halve at a loss after so many round trips in slow mode in a row, because a Reno flow competes.
            rho: integer(16, (1, 1000), "round trips");
            /// Forget a competing flow after so many round trips in fast mode.
            zeta: integer(50, (1, 10_000), "round trips");
            /// Acknowledged packets per packet of growth, in fast mode.
            scalable_count: integer(100, (2, 10_000), "packets");
            START_UP;
            PACING;
            ECN;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_yeah.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(LossBased::new(p, Yeah::new(p)))),
};

/// Min share of the reduction at a loss in fast mode: δ = 3 in `tcp_yeah.c`, as a shift.
const LEAST_SHARE: f64 = 1.0 / 8.0;
/// Max share of the decongestion: ε = 1, as a shift.
const MOST_SHARE: f64 = 0.5;
/// Min estimate of Reno's window, packets.
const RENO_MIN: f64 = 2.0;
/// Max samples of a round that do not count: each may have met a delayed acknowledgement.
const TOO_FEW_SAMPLES: u32 = 2;

/// Counts and queue are those of the paper; windows here are packets.
#[derive(Clone, Debug)]
struct Yeah {
    alpha: f64,
    phi: u64,
    rho: u64,
    zeta: u64,
    scalable_count: f64,
    base: TimeSpan,
    round: Rounds,
    /// Packets in the queue at the latest judgment.
    queued: f64,
    /// Number of rounds in slow mode in a row; zero: fast mode.
    slow_rounds: u64,
    /// Number of rounds in fast mode since a loss.
    fast_rounds: u64,
    /// Window of a Reno flow by now: the min after decongestion.
    reno: f64,
}

impl Yeah {
    fn new(p: &Parameters) -> Self {
        Self {
            alpha: p.integer("alpha") as f64,
            phi: p.integer("phi"),
            rho: p.integer("rho"),
            zeta: p.integer("zeta"),
            scalable_count: p.integer("scalable_count") as f64,
            base: TimeSpan::MAX,
            round: Rounds::default(),
            queued: 0.0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno: RENO_MIN,
        }
    }

    /// Set the mode at a round's end, and drain the queue.
    fn judge(&mut self, window: &mut Window, rtt: TimeSpan) {
        let delay = rtt.0.saturating_sub(self.base.0);
        let packets = window.packets();
        self.queued = packets * delay as f64 / rtt.0.max(1) as f64;
        if self.queued <= self.alpha && delay <= self.base.0 / self.phi {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > self.zeta {
                self.reno = RENO_MIN;
                self.fast_rounds = 0;
            }
            return;
        }
        if self.queued > self.alpha && packets > self.reno {
            let left = (packets - self.queued.min(packets * MOST_SHARE)).max(self.reno);
            window.cwnd = window.bytes(left).max(2 * window.mss);
            window.ssthresh = window.cwnd;
        }
        self.reno = if self.reno <= RENO_MIN { (window.packets() / 2.0).max(RENO_MIN) } else { self.reno + 1.0 };
        self.slow_rounds += 1;
    }
}

impl Rule for Yeah {
    #[inline]
    fn observe(&mut self, _window: &Window, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.base = self.base.min(sample);
            self.round.observe(event);
        }
    }

    #[inline]
    fn before_growth(&mut self, window: &mut Window, event: &AckEvent<'_>) {
        if let Some(round) = self.round.ended_by(event) {
            if round.samples > TOO_FEW_SAMPLES && event.cwnd_limited {
                self.judge(window, round.min);
            }
        }
    }

    /// Add one packet per 100 acknowledged in fast mode, or per window if that is smaller; per window in slow mode.
    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        let increase = if self.slow_rounds == 0 { (window.packets() / self.scalable_count).max(1.0) } else { 1.0 };
        window.add_scaled(increase, acked);
    }

    /// Reduce by the queue at a loss in fast mode, within 1/8 and 1/2 of the window; by half next to greedy flows.
    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        let packets = congestion.flight.min(window.cwnd) as f64 / window.mss as f64;
        let half = packets / 2.0;
        let given_up = if self.slow_rounds < self.rho { self.queued.clamp(packets * LEAST_SHARE, half) } else { half };
        self.fast_rounds = 0;
        self.reno = (self.reno / 2.0).max(RENO_MIN);
        window.bytes(packets - given_up)
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![
            ("queued_packets", self.queued),
            ("slow_mode", if self.slow_rounds > 0 { 1.0 } else { 0.0 }),
            ("reno_packets", self.reno),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MockTransport, MSS};
    use serde_json::{json, Map, Value};

    const BASE: TimeSpan = TimeSpan::from_millis(40);

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("yeah", packets, params)
    }
    fn rule() -> Yeah {
        Yeah { base: BASE, ..Yeah::new(&Parameters::resolve(&ENTRY.info, &Map::new()).unwrap()) }
    }
    /// Make a flow in congestion avoidance after a loss at a window of `packets`, which left 7/8.
    fn avoidance(packets: u64) -> MockTransport {
        let mut host = host(packets, &json!({}));
        host.ack_after(BASE);
        host.lose_and_recover(BASE);
        host
    }

    /// The queue is W·(RTT−base)/RTT; slow above 80 packets of it or an eighth of the base.
    #[test]
    fn modes() {
        for (packets, rtt_ms, slow) in [(50, 40, 0), (50, 45, 0), (50, 46, 1), (1000, 44, 0), (2000, 44, 1)] {
            let mut host = avoidance(packets);
            for _ in 0..3 {
                host.ack_round(TimeSpan::from_millis(rtt_ms), TimeSpan::ZERO);
            }
            host.ack_after(TimeSpan::from_millis(rtt_ms));
            assert_eq!(host.observable("slow_mode"), f64::from(slow), "{packets} packets at {rtt_ms} ms");
        }
    }

    /// Scalable in fast mode, one packet per round in slow mode.
    #[test]
    fn growth_by_mode() {
        for (rtt_ms, expected) in [(40, 875.0 / 100.0), (46, 1.0)] {
            let mut host = avoidance(1000);
            let rtt = TimeSpan::from_millis(rtt_ms);
            for _ in 0..2 {
                host.ack_round(rtt, TimeSpan::ZERO);
            }
            host.ack_after(rtt);
            let before = host.window();
            for _ in 0..host.packets_in_flight() {
                host.ack_after(rtt);
            }
            let found = host.window() - before;
            if rtt_ms == 40 {
                assert!((found - expected).abs() <= 1.0, "{rtt_ms} ms: {found}");
            } else {
                assert!(found <= 1.0, "{rtt_ms} ms: {found}");
            }
        }
    }

    /// More than 80 packets in the queue are drained, at most half of the window, and not below Reno's window.
    #[test]
    fn decongestion() {
        for (packets, rtt_ms, reno, expected) in [
            (1000.0, 50, 2.0, 800.0),
            (1000.0, 100, 2.0, 500.0),
            (1000.0, 50, 900.0, 900.0),
            (1000.0, 50, 1200.0, 1000.0),
            (300.0, 50, 2.0, 300.0),
        ] {
            let mut rule = Yeah { reno, ..rule() };
            let mut window = Window::of_packets(packets, MSS);
            rule.judge(&mut window, TimeSpan::from_millis(rtt_ms));
            assert!((window.packets() - expected).abs() < 1e-2, "{packets} {rtt_ms} ms: {}", window.packets());
            assert_eq!(rule.slow_rounds, 1);
        }
    }

    /// The reduction at a loss: the queue, within 1/8 and 1/2; after 16 slow rounds one half.
    #[test]
    fn losses() {
        for (queued, slow_rounds, kept) in [(0.0, 0, 87.5), (20.0, 3, 80.0), (70.0, 15, 50.0), (0.0, 16, 50.0)] {
            let mut rule = Yeah { queued, slow_rounds, reno: 40.0, ..rule() };
            let window = Window::of_packets(100.0, MSS);
            let flight = window.cwnd;
            let congestion =
                Congestion { cause: crate::loss_based::Cause::Loss, now: Timestamp::ZERO, flight, left: 0 };
            assert_eq!(rule.reduce(&window, &congestion), (kept * MSS as f64) as u64, "{queued} {slow_rounds}");
            assert_eq!((rule.reno, rule.fast_rounds), (20.0, 0));
        }
    }

    /// After ζ = 50 rounds of fast mode Reno's window is reset; slow rounds raise it.
    #[test]
    fn memory_of_competitors() {
        let mut rule = Yeah { reno: 30.0, ..rule() };
        let mut window = Window::of_packets(60.0, MSS);
        for round in 1..=51 {
            rule.judge(&mut window, BASE);
            assert_eq!(rule.reno, if round <= 50 { 30.0 } else { 2.0 }, "round {round}");
        }
        for expected in [30.0, 31.0, 32.0] {
            rule.judge(&mut window, TimeSpan::from_millis(60));
            assert_eq!(rule.reno, expected);
        }
    }
}
