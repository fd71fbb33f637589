//! Reno / NewReno (RFC 5681 §3, RFC 6582; with packet numbers RFC 9002 §7): the AIMD baseline.
//!
//! Fast-retransmit inflation and partial acknowledgements (RFC 6582) are for cumulative acknowledgements; here the
//! transport reports recovery episodes and limits sending in them.

use ccgym_core::{ns3, Timestamp};

use crate::loss_based::{Cause, Congestion, LossBased, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "reno",
        label: "TCP Reno",
        reference: "RFC 5681, RFC 6582, RFC 9002 §7",
        summary: "Adds one packet to the window per round trip and halves it at a loss.",
        parameters: parameters! {
            /// rfc: appropriate byte counting, half of the flight at the loss. linux: half of the window, in whole
            /// packets. ns3: as TcpNewReno of ns-3.37, one step per acknowledgement, half of what is left in
            /// flight.
            mode: choice(&["rfc", "linux", "ns3"]);
            START_UP;
            PACING;
            ECN;
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let mode = match p.word("mode") {
            "linux" => Mode::Linux,
            "ns3" => Mode::Ns3,
            _ => Mode::Rfc,
        };
        Ok(Box::new(LossBased::new(p, Reno { mode })))
    },
};

/// Set of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Rfc,
    Linux,
    Ns3,
}

#[derive(Clone, Debug)]
struct Reno {
    mode: Mode,
}

impl Rule for Reno {
    #[inline]
    fn slow_start(&mut self, window: &mut Window, growth: u64, acked: u64) -> u64 {
        if self.mode == Mode::Ns3 {
            // ns-3 adds one packet per acknowledgement, past ssthresh if need be, and gives the rest of the
            // acknowledged bytes to congestion avoidance.
            window.cwnd += window.mss;
            return acked.saturating_sub(window.mss);
        }
        window.add_to_threshold(growth)
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        if self.mode == Mode::Ns3 {
            // In whole bytes of payload.
            let (segment, held) = (window.mss - ns3::HEADER, ns3::payload_of(window.cwnd, window.mss));
            window.cwnd = ns3::wire_of(held + (segment * segment / held).max(1), window.mss);
        } else {
            window.add_per_window(acked);
        }
    }

    /// Return half of the flight (RFC 5681 §3.1, equation 4); Linux: of the window, in packets (`tcp_reno_ssthresh`).
    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        match self.mode {
            Mode::Linux => window.cwnd / window.mss / 2 * window.mss,
            Mode::Ns3 if congestion.cause == Cause::Loss => congestion.left / 2,
            Mode::Rfc | Mode::Ns3 => congestion.flight / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{MockTransport, TestEvent, MSS};
    use ccgym_core::{Ecn, Rate, TimeSpan};
    use serde_json::{json, Value};

    const RTT: TimeSpan = TimeSpan::from_millis(40);

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("reno", packets, params)
    }
    fn round(host: &mut MockTransport) -> f64 {
        host.ack_round(RTT, TimeSpan::ZERO);
        host.window()
    }

    /// RFC 5681 §3.1: a window per window in slow start.
    #[test]
    fn slow_start_doubles() {
        let mut host = host(10, &json!({}));
        assert_eq!([round(&mut host), round(&mut host), round(&mut host)], [20.0, 40.0, 80.0]);
    }

    /// RFC 5681 §3.1 equation 4: half of the flight, exactly, with a minimum of two packets.
    #[test]
    fn halving_is_exact() {
        for (flight, bytes) in [(40, 20 * MSS), (41, 41 * MSS / 2), (5, 5 * MSS / 2), (4, 2 * MSS), (3, 2 * MSS)] {
            let mut host = host(flight, &json!({}));
            host.lose();
            assert_eq!(host.scheme.control().cwnd, bytes, "flight of {flight}");
            assert_eq!(host.scheme.ssthresh(), Some(bytes), "flight of {flight}");
        }
    }

    /// RFC 3465 §2.1: one packet for each window acknowledged.
    #[test]
    fn avoidance_adds_one_packet_per_window() {
        let mut host = host(40, &json!({}));
        host.lose_and_recover(RTT);
        assert_eq!(host.window(), 20.0);
        for expected in 21..60 {
            let mut acked = 0.0;
            while host.window() < f64::from(expected) {
                host.ack_after(RTT);
                acked += 1.0;
            }
            assert!((acked - f64::from(expected - 1)).abs() <= 1.0, "{acked} acknowledged for window {expected}");
        }
    }

    /// RFC 9002 §7.3.2: losses of packets sent before the episode began do not reduce again.
    #[test]
    fn one_reduction_per_episode() {
        let mut host = host(40, &json!({}));
        host.lose();
        host.lose();
        assert_eq!(host.window(), 20.0);
        while host.in_recovery() {
            host.ack_after(RTT);
        }
        host.lose();
        assert!(host.window() < 11.0);
    }

    /// RFC 5681 §3.1: one packet, half of the flight as ssthresh, set at the first expiry; slow start from there.
    #[test]
    fn timeout() {
        let mut host = host(40, &json!({}));
        host.time_out();
        assert_eq!((host.window(), host.scheme.ssthresh()), (1.0, Some(20 * MSS)));
        host.time_out();
        assert_eq!((host.window(), host.scheme.ssthresh()), (1.0, Some(20 * MSS)));
        assert_eq!([round(&mut host), round(&mut host), round(&mut host)], [2.0, 4.0, 8.0]);
        assert!(host.in_recovery(), "slow start must not wait for the recovery's end");
        round(&mut host);
        round(&mut host);
        assert!((20.0..=21.0).contains(&host.window()), "{}", host.window());
    }

    #[test]
    fn spurious_loss_is_undone() {
        let mut host = host(40, &json!({}));
        host.lose();
        host.spurious();
        assert_eq!((host.window(), host.scheme.ssthresh()), (40.0, Some(u64::MAX)));
    }

    /// RFC 3168 §6.1.2: a mark halves, once per window of data.
    #[test]
    fn marks_reduce_once_per_window() {
        let marked = TestEvent { acked: 1, ce: 1, ..TestEvent::default() };
        let mut host = host(40, &json!({"ecn": true}));
        assert_eq!(host.scheme.capabilities().ecn, Ecn::Ect0);
        for _ in 0..5 {
            host.play(marked);
            assert_eq!(host.window(), 20.0);
        }
        host.ack(36);
        host.play(marked);
        assert!(host.window() <= 11.0);

        let mut deaf = self::host(40, &json!({}));
        deaf.play(marked);
        assert_eq!(deaf.window(), 41.0);
    }

    /// ns-3.37: half of the remaining flight; one packet per acknowledgement in slow start.
    #[test]
    fn ns3_mode() {
        let mut host = host(40, &json!({"mode": "ns3"}));
        host.lose();
        assert_eq!(host.scheme.control().cwnd, 36 * MSS / 2);
        let mut host = self::host(10, &json!({"mode": "ns3"}));
        host.ack(2);
        assert_eq!(host.window(), 11.0);
    }

    /// Linux: half of the window in whole packets, at any flight (`tcp_reno_ssthresh`).
    #[test]
    fn linux_mode() {
        for (window, kept) in [(40, 20), (41, 20), (5, 2), (3, 2)] {
            let mut host = host(window, &json!({"mode": "linux"}));
            host.lose();
            assert_eq!(host.scheme.control().cwnd, kept * MSS, "window of {window}");
        }
        let [linux, rfc] = ["linux", "rfc"].map(|mode| {
            let mut host = host(40, &json!({"mode": mode}));
            host.steer((81 * MSS) as f64);
            host.lose();
            host.window()
        });
        assert_eq!((linux, rfc), (40.0, 20.0));
    }

    #[test]
    fn pacing_spreads_the_window() {
        let mut host = host(10, &json!({"pacing": true}));
        host.ack_after(RTT);
        // 11 packets in 20 ms: slow start's factor of two.
        assert_eq!(host.scheme.control().pacing_rate, Rate(11 * MSS * 8 * 50));
    }
}
