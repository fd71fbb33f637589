//! Reno / NewReno (RFC 5681 §3, RFC 6582; with packet numbers RFC 9002 §7): the AIMD baseline.
//!
//! Fast-retransmit inflation and partial acknowledgements (RFC 6582) belong to cumulative acknowledgements; here
//! the transport reports recovery episodes and meters sending in them.

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, PacketNumber, Rate, TimeoutEvent};

use crate::pacing;
use crate::registry::{Parameter, Parameters, SchemeEntry, SchemeInfo};
use crate::slow_start::{Input, SlowStart};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "reno",
        label: "TCP Reno",
        reference: "RFC 5681, RFC 6582, RFC 9002 §7",
        summary: "Adds one packet per round trip and halves at a loss.",
        style: Some(("saddlebrown", "v")),
        parameters: &[
            Parameter::choice(
                "mode",
                &["rfc", "ns3"],
                "rfc: appropriate byte counting, half of the flight at the loss. ns3: as TcpNewReno of ns-3.37, \
                 one step per acknowledgement, half of what is left in flight.",
            ),
            Parameter::choice(
                "start_up",
                &["none", "hystart++", "hystart"],
                "How slow start may end before a loss; none: it does not.",
            ),
            Parameter::flag(
                "pacing",
                false,
                "Pace at 1.25 windows per round trip (2 in slow start) instead of sending on acknowledgements.",
            ),
            Parameter::flag(
                "ecn",
                false,
                "Mark packets ECN-capable; a mark halves the window as a loss does (RFC 3168).",
            ),
        ],
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Reno::new(p))),
};

/// The state of one flow. Windows are whole bytes, so that halving is exact.
#[derive(Clone, Debug)]
pub struct Reno {
    /// Count as ns-3 does.
    ns3: bool,
    paced: bool,
    ecn: bool,
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Bytes acknowledged since the last growth in congestion avoidance (RFC 3465 §2.1).
    counted: u64,
    slow_start: SlowStart,
    /// A packet number: marks on packets below it belong to the reduction already made.
    marks_settled: PacketNumber,
    /// Window and threshold before the latest reduction.
    before: Option<(u64, u64)>,
    /// The recovery under way began with a timeout: slow start goes on in it (RFC 5681 §3.1).
    after_timeout: bool,
    pacing_rate: Rate,
}

impl Reno {
    fn new(p: &Parameters) -> Self {
        let paced = p.flag("pacing");
        Self {
            ns3: p.word("mode") == "ns3",
            paced,
            ecn: p.flag("ecn"),
            mss: 0,
            cwnd: 0,
            ssthresh: u64::MAX,
            counted: 0,
            slow_start: SlowStart::by_name(p.word("start_up"), paced),
            marks_settled: 0,
            before: None,
            after_timeout: false,
            pacing_rate: Rate::ZERO,
        }
    }

    /// RFC 5681 §3.1, equation 4: half of the flight, min. two packets.
    fn reduce(&mut self, flight: u64) {
        self.before = Some((self.cwnd, self.ssthresh));
        self.ssthresh = (flight / 2).max(2 * self.mss);
        self.cwnd = self.ssthresh;
        self.counted = 0;
        self.slow_start.on_congestion();
    }

    #[inline]
    fn grow(&mut self, event: &AckEvent<'_>) {
        let mut acked = event.acked_bytes;
        if self.cwnd < self.ssthresh {
            let step = self.slow_start.on_ack(&Input {
                event,
                cwnd: self.cwnd,
                mss: self.mss,
                delay: event.rtt_sample,
                delay_min: event.rtt.min(),
            });
            if step.exit {
                self.ssthresh = self.cwnd;
            } else if !event.cwnd_limited {
                return;
            } else if self.ns3 {
                // ns-3 adds one packet per acknowledgement, past the threshold if need be, and gives the rest of
                // what was acknowledged to congestion avoidance.
                self.cwnd += self.mss;
                acked -= self.mss.min(acked);
            } else {
                let growth = step.growth.min(self.ssthresh - self.cwnd);
                self.cwnd += growth;
                // What the threshold cut off counts for congestion avoidance (Linux `tcp_slow_start`).
                acked = step.growth - growth;
            }
            if self.cwnd < self.ssthresh {
                return;
            }
        }
        if !event.cwnd_limited || acked == 0 {
            return;
        }
        if self.ns3 {
            self.cwnd += (self.mss * self.mss / self.cwnd).max(1);
            return;
        }
        // RFC 3465 §2.1: one packet for each window acknowledged.
        self.counted += acked;
        while self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            self.cwnd += self.mss;
        }
    }
}

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        ENTRY.info.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { ecn: self.ecn, window_only: !self.paced, pacing_required: self.paced, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.cwnd = context.initial_window;
    }

    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let held = event.in_recovery && !self.after_timeout;
        if event.entered_recovery {
            self.reduce(if self.ns3 { event.in_flight } else { event.prior_in_flight });
            self.marks_settled = event.next_packet_number;
        } else if event.ce_packets > 0 && self.ecn && !held && event.largest_acked >= self.marks_settled {
            // RFC 3168 §6.1.2: once per window of data.
            self.reduce(event.prior_in_flight);
            self.marks_settled = event.next_packet_number;
        } else if !held && event.acked_bytes > 0 {
            self.grow(event);
        }
        self.after_timeout &= event.in_recovery && !event.entered_recovery;
        if self.paced {
            self.pacing_rate = pacing::of_window(self.cwnd, self.cwnd < self.ssthresh, event.rtt.smoothed());
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        // RFC 5681 §3.1: the threshold is set at the first expiry only.
        if event.count <= 1 {
            self.reduce(event.prior_in_flight);
        }
        self.cwnd = self.mss;
        self.counted = 0;
        self.after_timeout = true;
        self.slow_start.on_timeout();
        if self.paced {
            self.pacing_rate = pacing::of_window(self.cwnd, true, event.rtt.smoothed());
        }
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    #[inline]
    fn control(&self) -> Control {
        Control { pacing_rate: self.pacing_rate, ..Control::window(self.cwnd) }
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.ssthresh)
    }

    fn observables(&self) -> Observables {
        let packets = |bytes: u64| if bytes == u64::MAX { f64::INFINITY } else { bytes as f64 / self.mss as f64 };
        vec![
            ("cwnd_packets", packets(self.cwnd)),
            ("ssthresh_packets", packets(self.ssthresh)),
            ("slow_start_phase", self.slow_start.phase()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{context, scheme, MockTransport, TestEvent, MSS};
    use ccgym_core::{InitContext, Rate, TimeSpan};
    use serde_json::{json, Value};

    const RTT: TimeSpan = TimeSpan::from_millis(40);

    fn host(packets: u64, params: &Value) -> MockTransport {
        let context = InitContext { initial_window: packets * MSS, ..context() };
        MockTransport::with_context(scheme("reno", params), context)
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

    /// RFC 5681 §3.1: one packet, half of the flight as threshold, set at the first expiry; slow start from there.
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
        assert!(host.scheme.capabilities().ecn);
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

    /// ns-3.37: half of what is left in flight; one packet per acknowledgement in slow start.
    #[test]
    fn ns3_mode() {
        let mut host = host(40, &json!({"mode": "ns3"}));
        host.lose();
        assert_eq!(host.scheme.control().cwnd, 36 * MSS / 2);
        let mut host = self::host(10, &json!({"mode": "ns3"}));
        host.ack(2);
        assert_eq!(host.window(), 11.0);
    }

    #[test]
    fn pacing_spreads_the_window() {
        let mut host = host(10, &json!({"pacing": true}));
        host.ack_after(RTT);
        // 11 packets in 20 ms: slow start's factor of two.
        assert_eq!(host.scheme.control().pacing_rate, Rate(11 * MSS * 8 * 50));
    }
}
