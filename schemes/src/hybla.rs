//! Hybla (Caini and Firrincieli, Int. J. Satellite Communications and Networking 22(5), 2004): a flow with a long RTT
//! grows as a Reno flow with a short one.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

use crate::loss_based::{Congestion, LossBased, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "hybla",
        label: "TCP Hybla",
        reference: "Caini and Firrincieli, Int. J. Satellite Communications and Networking 22(5), 2004",
        summary: "Grows as fast in packets per second as Reno would over a reference RTT.",
        parameters: parameters! {
            /// Round trip of the Reno flow that it grows as fast as.
            reference_rtt: number(25.0, (1.0, 1000.0), "ms");
            START_UP;
            PACING;
            ECN;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_hybla.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let reference_rtt = TimeSpan::from_secs_f64(p.number("reference_rtt") / 1e3);
        Ok(Box::new(LossBased::new(p, Hybla { reference_rtt, smallest: TimeSpan::MAX, rho: 1.0 })))
    },
};

/// Max exponent in slow start, and max window in packets (Linux `tcp_hybla.c`).
const MAX_EXPONENT: f64 = 16.0;
const MAX_WINDOW: u64 = 65_535;

#[derive(Clone, Debug)]
struct Hybla {
    reference_rtt: TimeSpan,
    /// Min smoothed RTT.
    smallest: TimeSpan,
    /// ρ: RTT over the reference, at least 1.
    rho: f64,
}

impl Rule for Hybla {
    #[inline]
    fn observe(&mut self, _window: &Window, event: &AckEvent<'_>) {
        let srtt = event.rtt.smoothed();
        if event.rtt_sample.is_some() && srtt < self.smallest {
            self.smallest = srtt;
            self.rho = (srtt.as_secs_f64() / self.reference_rtt.as_secs_f64()).max(1.0);
        }
    }

    /// Add 2^ρ − 1 packets for each acknowledged one.
    #[inline]
    fn slow_start(&mut self, window: &mut Window, growth: u64, _acked: u64) -> u64 {
        let factor = self.rho.min(MAX_EXPONENT).exp2() - 1.0;
        let room = (MAX_WINDOW * window.mss).saturating_sub(window.cwnd);
        let rest = window.add_to_threshold(((factor * growth as f64) as u64).min(room));
        (rest as f64 / factor) as u64
    }

    /// Add ρ² packets for each window acknowledged.
    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        window.add_scaled(self.rho * self.rho, acked);
        window.cwnd = window.cwnd.min(MAX_WINDOW * window.mss);
    }

    /// Return half of the flight, as Reno.
    fn reduce(&mut self, _window: &Window, congestion: &Congestion) -> u64 {
        congestion.flight / 2
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("rho", self.rho)]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::{json, Value};

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("hybla", packets, params)
    }

    /// ρ = RTT/25 ms, min. 1. An acknowledged packet adds 2^ρ − 1 in slow start.
    #[test]
    fn slow_start_grows_by_the_exponent() {
        for (rtt, params, rho, grown) in [
            (10, json!({}), 1.0, 1.0),
            (25, json!({}), 1.0, 1.0),
            (50, json!({}), 2.0, 3.0),
            (100, json!({}), 4.0, 15.0),
            (50, json!({"reference_rtt": 50}), 1.0, 1.0),
            // The window ends at 65,535.
            (1000, json!({}), 40.0, 65_525.0),
        ] {
            let mut host = host(10, &params);
            host.ack_after(TimeSpan::from_millis(rtt));
            assert!((host.observable("rho") - rho).abs() < 1e-9, "{rtt} ms");
            assert!((host.window() - 10.0 - grown).abs() < 1e-2, "{rtt} ms: {}", host.window());
        }
    }

    /// ρ² packets per window in congestion avoidance.
    #[test]
    fn avoidance_grows_by_the_square() {
        for (rtt, grown) in [(20, 1.0), (50, 4.0), (75, 9.0)] {
            let rtt = TimeSpan::from_millis(rtt);
            let mut host = host(400, &json!({}));
            host.ack_after(rtt);
            host.lose_and_recover(rtt);
            let before = host.window();
            assert!(before >= 200.0);
            host.ack_round(rtt, TimeSpan::ZERO);
            let found = host.window() - before;
            assert!((found - grown).abs() <= 1.0, "{rtt:?}: {found} instead of {grown}");
        }
    }

    /// No window above 65,535 packets, in congestion avoidance, too.
    #[test]
    fn the_window_has_a_maximum() {
        let rtt = TimeSpan::from_millis(4000);
        let mut host = host(100, &json!({}));
        for _ in 0..3 {
            host.ack_after(rtt);
        }
        assert_eq!(host.window(), 65_535.0);
        host.lose_and_recover(rtt);
        // ρ² = 25,600 packets per window acknowledged, of which at most 2000 packets are in flight here.
        for _ in 0..60 {
            host.ack_round(rtt, TimeSpan::ZERO);
            assert!(host.window() <= 65_535.0, "{}", host.window());
        }
        assert_eq!(host.window(), 65_535.0);
    }

    /// Below the reference it is Reno.
    #[test]
    fn short_round_trips_are_as_in_reno() {
        let rtt = TimeSpan::from_millis(20);
        let mut reno = MockTransport::of("reno", &json!({}));
        let mut hybla = MockTransport::of("hybla", &json!({}));
        for i in 0..40 {
            for host in [&mut reno, &mut hybla] {
                host.ack_round(rtt, TimeSpan::ZERO);
                if i % 7 == 3 {
                    host.lose();
                }
            }
            assert_eq!(reno.window(), hybla.window(), "round {i}");
        }
    }
}
