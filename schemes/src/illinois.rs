//! Illinois (Liu, Başar and Srikant, Performance Evaluation 65(6–7), 2008): a loss reduces the window, and the queueing
//! delay sets the size of the reduction and the growth.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

use crate::loss_based::{Cause, Congestion, LossBased, Rounds, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "illinois",
        label: "TCP Illinois",
        reference: "Liu, Başar and Srikant, Performance Evaluation 65(6–7), 2008",
        summary: "Adds up to ten packets per round trip while the queue is short, and fewer as it grows.",
        parameters: parameters! {
            /// Growth per round trip at the longest delay.
            alpha_min: number(0.3, (0.01, 1.0), "packets");
            /// Growth per round trip without a queue.
            alpha_max: number(10.0, (1.01, 100.0), "packets");
            /// Share of the reduction at a loss with a short queue.
            beta_min: number(0.125, (0.01, 0.45), "");
            /// Share of the reduction at a loss with a long queue.
            beta_max: number(0.5, (0.46, 0.9), "");
            /// Work as Reno below this window: add one packet per round trip, halve at a loss.
            window_threshold: integer(15, (2, 1000), "packets");
            /// Return to the fastest growth after so many round trips with a short queue in a row.
            theta: integer(5, (1, 100), "round trips");
            START_UP;
            PACING;
            ECN;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_illinois.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let rule = Illinois {
            alpha_min: p.number("alpha_min"),
            alpha_max: p.number("alpha_max"),
            beta_min: p.number("beta_min"),
            beta_max: p.number("beta_max"),
            window_threshold: p.integer("window_threshold") as f64,
            theta: p.integer("theta"),
            // The paper starts with the fastest growth: there is no queue yet.
            alpha: p.number("alpha_max"),
            beta: p.number("beta_max"),
            base: TimeSpan::MAX,
            max: TimeSpan::ZERO,
            round: Rounds::default(),
            short_rounds: 0,
            was_long: false,
        };
        Ok(Box::new(LossBased::new(p, rule)))
    },
};

/// Thresholds of the queueing delay in shares of its max: up to the first growth is fastest, up to the second the
/// reduction is smallest, from the third on largest (the paper's η1 to η3).
const SHORT: f64 = 0.01;
const LEAST_UP_TO: f64 = 0.1;
const MOST_FROM: f64 = 0.8;

#[derive(Clone, Debug)]
struct Illinois {
    alpha_min: f64,
    alpha_max: f64,
    beta_min: f64,
    beta_max: f64,
    window_threshold: f64,
    theta: u64,
    /// Current growth in packets per RTT, and share of the reduction at a loss.
    alpha: f64,
    beta: f64,
    /// Min and max RTT since the flow started.
    base: TimeSpan,
    max: TimeSpan,
    round: Rounds,
    /// Rounds in a row with a short queue, since the last long queue.
    short_rounds: u64,
    was_long: bool,
}

impl Illinois {
    /// Return α(d) = κ1/(κ2 + d) on the curve through (d1, α_max) and (d_max, α_min).
    fn alpha_of(&mut self, delay: f64, delay_max: f64) -> f64 {
        let d1 = SHORT * delay_max;
        if delay > d1 {
            self.was_long = true;
            self.short_rounds = 0;
            let steepness = (self.alpha_max - self.alpha_min) / self.alpha_min;
            return self.alpha_max / (1.0 + steepness * (delay - d1) / (delay_max - d1));
        }
        if self.was_long {
            self.short_rounds += 1;
            if self.short_rounds < self.theta {
                return self.alpha;
            }
            self.was_long = false;
        }
        self.alpha_max
    }

    /// Return β(d): the min up to d2, the max from d3 on, linear between.
    fn beta_of(&self, delay: f64, delay_max: f64) -> f64 {
        let (d2, d3) = (LEAST_UP_TO * delay_max, MOST_FROM * delay_max);
        if delay <= d2 {
            self.beta_min
        } else if delay >= d3 {
            self.beta_max
        } else {
            self.beta_min + (self.beta_max - self.beta_min) * (delay - d2) / (d3 - d2)
        }
    }

    fn act_as_reno(&mut self) {
        self.alpha = 1.0;
        self.beta = 0.5;
    }

    fn judge(&mut self, window: &Window, round: &Rounds) {
        if window.packets() < self.window_threshold {
            self.act_as_reno();
        } else if round.samples > 0 {
            let delay = round.mean().0.saturating_sub(self.base.0) as f64;
            let delay_max = self.max.0.saturating_sub(self.base.0) as f64;
            self.alpha = self.alpha_of(delay, delay_max);
            self.beta = self.beta_of(delay, delay_max);
        }
    }
}

impl Rule for Illinois {
    #[inline]
    fn observe(&mut self, _window: &Window, event: &AckEvent<'_>) {
        let Some(sample) = event.rtt_sample else { return };
        self.base = self.base.min(sample);
        self.max = self.max.max(sample);
        self.round.observe(event);
    }

    #[inline]
    fn before_growth(&mut self, window: &mut Window, event: &AckEvent<'_>) {
        if let Some(round) = self.round.ended_by(event) {
            self.judge(window, &round);
        }
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        window.add_scaled(self.alpha, acked);
    }

    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        if congestion.cause == Cause::Timeout {
            self.act_as_reno();
            self.was_long = false;
            self.short_rounds = 0;
        }
        (congestion.flight.min(window.cwnd) as f64 * (1.0 - self.beta)) as u64
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("alpha_packets", self.alpha), ("beta", self.beta)]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{ms, MockTransport};
    use ccgym_core::TimeSpan;
    use serde_json::{json, Value};

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("illinois", packets, params)
    }
    /// Run congestion avoidance with RTTs of 40 to 140 ms, and `rounds` rounds of `rtt` afterwards.
    fn after(rtt: u64, rounds: usize) -> MockTransport {
        let mut host = host(200, &json!({}));
        host.ack_after(ms(40));
        host.ack_after(ms(140));
        host.lose_and_recover(ms(140));
        host.ack_round(ms(100), TimeSpan::ZERO);
        for _ in 0..rounds {
            host.ack_round(ms(rtt), TimeSpan::ZERO);
        }
        // The first acknowledgement after a round judges it.
        host.ack_after(ms(rtt));
        host
    }

    /// With d_max = 100 ms: α = 10 up to 1 ms, 10/(1 + 32.33·(d−1)/99), 0.3 at 100 ms; β = 1/8 up to 10 ms, 1/2 from 80 ms
    /// on, 1/8 + 3/8·(d−10)/70 between.
    #[test]
    fn curves() {
        for (rtt, alpha, beta) in [
            (42, 10.0 / (1.0 + 97.0 / 3.0 / 99.0), 0.125),
            (50, 10.0 / (1.0 + 97.0 / 3.0 * 9.0 / 99.0), 0.125),
            (85, 10.0 / (1.0 + 97.0 / 3.0 * 44.0 / 99.0), 0.3125),
            (120, 10.0 / (1.0 + 97.0 / 3.0 * 79.0 / 99.0), 0.5),
            (140, 0.3, 0.5),
        ] {
            let host = after(rtt, 4);
            assert!(
                (host.observable("alpha_packets") - alpha).abs() < 0.02,
                "{rtt} ms: {:?}",
                host.observable("alpha_packets")
            );
            assert!((host.observable("beta") - beta).abs() < 0.005, "{rtt} ms: {:?}", host.observable("beta"));
        }
    }

    /// After a long queue growth is fastest again after θ = 5 rounds with a short one.
    #[test]
    fn theta_short_rounds_bring_fast_growth_back() {
        for (rounds, fast) in [(1, false), (4, false), (7, true)] {
            assert_eq!(after(40, rounds).observable("alpha_packets") == 10.0, fast, "{rounds} rounds");
        }
    }

    #[test]
    fn growth_follows_alpha() {
        let mut host = after(140, 3);
        let before = host.window();
        for _ in 0..10 {
            host.ack_round(ms(140), TimeSpan::ZERO);
        }
        let grown = host.window() - before;
        assert!((2.0..=4.0).contains(&grown), "{grown} packets in ten rounds");
        let mut host = after(40, 8);
        let before = host.window();
        host.ack_round(ms(40), TimeSpan::ZERO);
        let grown = host.window() - before;
        assert!((9.0..=11.0).contains(&grown), "{grown} packets in a round");
    }

    #[test]
    fn a_loss_reduces_by_beta() {
        for (rtt, kept) in [(45, 0.875), (130, 0.5)] {
            let mut host = after(rtt, 4);
            let before = host.packets_in_flight() as f64;
            host.advance(ms(rtt));
            host.lose();
            assert!((host.window() / before - kept).abs() < 0.01, "{rtt} ms: {} of {before}", host.window());
        }
    }

    #[test]
    fn small_windows_and_timeouts_act_as_reno() {
        let mut small = host(14, &json!({}));
        small.ack_after(ms(40));
        assert_eq!((small.observable("alpha_packets"), small.observable("beta")), (1.0, 0.5));
        let mut host = after(40, 8);
        host.time_out();
        assert_eq!((host.observable("alpha_packets"), host.observable("beta")), (1.0, 0.5));
        assert_eq!(host.window(), 1.0);
    }
}
