//! BIC (Xu, Harfoush and Rhee, INFOCOM 2004; behavior of Linux `tcp_bic.c`): searches the window between the last loss and
//! its reduction by halves, and probes beyond it.

use ccgym_core::congestion_control::Observables;
use ccgym_core::Timestamp;

use crate::loss_based::{Cause, Congestion, LossBased, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "bic",
        label: "TCP BIC",
        reference: "Xu, Harfoush and Rhee, IEEE INFOCOM 2004",
        summary: "Searches by bisection for the largest window without loss, then probes beyond it.",
        parameters: parameters! {
            /// Share of the window kept at a loss.
            beta: number(0.8, (0.1, 0.99), "");
            /// Max growth per round trip.
            max_increment: number(16.0, (1.0, 1000.0), "packets");
            /// Work as Reno up to this window: add one packet per round trip, halve at a loss.
            low_window: integer(14, (2, 1000), "packets");
            /// Time for the last four packets of growth to the maximum.
            smooth_part: number(20.0, (4.0, 1000.0), "round trips");
            /// Store less than the window at a loss below the last maximum, to make room for other flows.
            fast_convergence: flag(true);
            START_UP;
            PACING;
            ECN;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_bic.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let rule = Bic {
            beta: p.number("beta"),
            max_increment: p.number("max_increment"),
            low_window: p.integer("low_window") as f64,
            smooth_part: p.number("smooth_part"),
            fast_convergence: p.flag("fast_convergence"),
            maximum: None,
            before: None,
        };
        Ok(Box::new(LossBased::new(p, rule)))
    },
};

/// A step of the search goes 1/4 of the way, and the smooth part begins 4 packets from the maximum (`tcp_bic.c`).
const DIVISOR: f64 = 4.0;
/// Min growth per RTT while no maximum is known, in shares of the window.
const SHARE_WITHOUT_MAXIMUM: f64 = 0.05;

#[derive(Clone, Debug)]
struct Bic {
    beta: f64,
    max_increment: f64,
    low_window: f64,
    smooth_part: f64,
    fast_convergence: bool,
    /// Target window of the search, packets; `None` before the first loss.
    maximum: Option<f64>,
    /// The maximum before the latest reduction.
    before: Option<f64>,
}

impl Bic {
    /// Return the packets per RTT at a window.
    fn increment(&self, window: f64) -> f64 {
        if window <= self.low_window {
            return 1.0;
        }
        let distance = window - self.maximum.unwrap_or(0.0);
        let found = if distance < 0.0 {
            let step = -distance / DIVISOR;
            if step <= 1.0 {
                self.smooth()
            } else {
                step.min(self.max_increment)
            }
        } else if distance < DIVISOR {
            self.smooth()
        } else if distance < self.max_increment * (DIVISOR - 1.0) {
            // Slow growth just above the maximum.
            distance / (DIVISOR - 1.0)
        } else {
            self.max_increment
        };
        match self.maximum {
            Some(_) => found,
            None => found.max(SHARE_WITHOUT_MAXIMUM * window),
        }
    }

    fn smooth(&self) -> f64 {
        DIVISOR / self.smooth_part
    }
}

impl Rule for Bic {
    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        let increment = self.increment(window.packets());
        window.add_scaled(increment, acked);
    }

    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        self.before = self.maximum;
        let bytes = congestion.flight.min(window.cwnd) as f64;
        let packets = bytes / window.mss as f64;
        let below = self.maximum.is_some_and(|maximum| packets < maximum);
        self.maximum = match congestion.cause {
            // A timeout drops the maximum.
            Cause::Timeout => None,
            Cause::Loss | Cause::Mark if self.fast_convergence && below => Some(packets * (1.0 + self.beta) / 2.0),
            Cause::Loss | Cause::Mark => Some(packets),
        };
        (bytes * if packets <= self.low_window { 0.5 } else { self.beta }) as u64
    }

    fn undo(&mut self) {
        self.maximum = self.before.take();
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("maximum_packets", self.maximum.unwrap_or(0.0))]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::{json, Value};

    const RTT: TimeSpan = TimeSpan::from_millis(40);

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("bic", packets, params)
    }

    /// Packets per round trip below and above a maximum of 400.
    #[test]
    fn increments() {
        let rule = super::Bic {
            beta: 0.8,
            max_increment: 16.0,
            low_window: 14.0,
            smooth_part: 20.0,
            fast_convergence: true,
            maximum: Some(400.0),
            before: None,
        };
        for (window, expected) in [
            (10.0, 1.0),
            (14.0, 1.0),
            (100.0, 16.0),
            (336.0, 16.0),
            (360.0, 10.0),
            (392.0, 2.0),
            (396.0, 0.2),
            (399.0, 0.2),
            (400.0, 0.2),
            (403.9, 0.2),
            (406.0, 2.0),
            (430.0, 10.0),
            (448.0, 16.0),
            (1000.0, 16.0),
        ] {
            assert_eq!(rule.increment(window), expected, "at {window}");
        }
        let fresh = super::Bic { maximum: None, ..rule };
        assert_eq!(fresh.increment(100.0), 16.0);
        assert_eq!(fresh.increment(1000.0), 50.0);
    }

    /// 0.8 of the window, half of a small one.
    #[test]
    fn a_loss_keeps_beta() {
        for (window, kept) in [(100, 80.0), (15, 12.0), (14, 7.0), (4, 2.0)] {
            let mut host = host(window, &json!({}));
            host.lose();
            assert!((host.window() - kept).abs() < 1e-3, "{window}: {}", host.window());
            assert_eq!(host.observable("maximum_packets"), window as f64);
        }
    }

    /// A loss below the last maximum aims lower, at 0.9 of the window; without fast convergence at the window.
    #[test]
    fn fast_convergence() {
        for (on, expected) in [(true, 0.9), (false, 1.0)] {
            let mut host = host(100, &json!({"fast_convergence": on}));
            host.lose_and_recover(RTT);
            // The window is in use again.
            host.ack_after(RTT);
            let flight = host.packets_in_flight() as f64;
            assert!((75.0..90.0).contains(&flight));
            host.lose();
            assert!((host.observable("maximum_packets") / flight - expected).abs() < 1e-9, "{on}");
        }
    }

    /// From 80 back to 100 by bisection: fast at first, then a plateau, then faster again.
    #[test]
    fn the_window_follows_the_curve() {
        let mut host = host(100, &json!({}));
        host.lose_and_recover(RTT);
        let mut windows = Vec::new();
        for _ in 0..80 {
            host.ack_round(RTT, TimeSpan::ZERO);
            windows.push(host.window());
        }
        let (first, plateau) = (windows[0] - 80.0, windows[40] - windows[20]);
        assert!((3.0..=7.0).contains(&first), "{windows:?}");
        assert!((3.0..=5.0).contains(&plateau), "{windows:?}");
        assert!(windows[79] - windows[69] > 10.0, "{windows:?}");
        assert!(windows.windows(2).all(|w| (0.0..=17.0).contains(&(w[1] - w[0]))), "{windows:?}");
    }

    #[test]
    fn timeouts_forget_and_spurious_losses_restore() {
        let mut host = host(100, &json!({}));
        host.lose();
        host.time_out();
        assert_eq!((host.window(), host.observable("maximum_packets")), (1.0, 0.0));
        let mut host = self::host(100, &json!({}));
        host.lose_and_recover(RTT);
        host.lose();
        host.spurious();
        assert_eq!(host.observable("maximum_packets"), 100.0);
    }
}
