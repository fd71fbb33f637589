//! QUIC Cubic: the sender of Chromium's QUIC (2017, as in `google/proto-quic`), which acts as several connections.
//! Sources: `tcp_cubic_sender_base.cc`, `tcp_cubic_sender_bytes.cc`, `cubic_bytes.cc`, `hybrid_slow_start.cc`.

mod curve;

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, Ecn, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp};

use self::curve::{Constants, Curve};
use crate::loss_based::{Reductions, Verdict};
use crate::pacing;
use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};
use crate::slow_start::{HyStart, Input, SlowStart};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "quic",
        label: "QUIC Cubic",
        reference: "Chromium's QUIC of 2017 (google/proto-quic), Ha, Rhee and Xu 2008",
        summary: "Acts as Cubic for two TCP connections at once, as Chromium's QUIC does.",
        parameters: parameters! {
            /// chromium2017: whole packets, a window updated every 30 ms. quiche: with Google's later corrections,
            /// exact to a byte at each ACK.
            mode: choice(&["chromium2017", "quiche"]);
            /// Number of connections that it acts for: a loss reduces the part of one of them.
            connections: integer(2, (1, 100), "");
            /// Share of the window that the connection with a loss keeps.
            beta: number(0.7, (0.1, 0.99), "");
            /// Steepness of the cubic function.
            c: number(0.4, (0.001, 100.0), "packets/s³");
            /// Max window.
            max_window: integer(2000, (2, 1_000_000), "packets");
            /// Pace at 1.25 windows per round trip (2 in slow start).
            pacing: flag(true);
        },
        role: Role::OnRequest,
        implementation: "google/proto-quic, BSD-3-Clause",
        transport: Transport { initial_window: 32, ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Quic::new(p))),
};

/// Min window, also after a timeout, packets.
const MIN_WINDOW: u64 = 2;
/// A window counts as used if it has room for no more than this many packets (`kMaxBurstBytes`).
const ROOM: u64 = 3;
/// Assumed RTT for pacing before the first sample (`kInitialRttMs`).
const INITIAL_RTT: TimeSpan = TimeSpan::from_millis(100);

#[derive(Clone, Debug)]
pub struct Quic {
    max_packets: u64,
    paced: bool,
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    max_window: u64,
    curve: Curve,
    slow_start: SlowStart,
    reductions: Reductions,
    pacing_rate: Rate,
}

impl Quic {
    fn new(p: &Parameters) -> Self {
        let quantized = p.word("mode") == "chromium2017";
        let constants = Constants::new(quantized, p.integer("connections"), p.number("beta"), p.number("c"));
        Self {
            max_packets: p.integer("max_window"),
            paced: p.flag("pacing"),
            mss: 1,
            cwnd: 0,
            ssthresh: u64::MAX,
            max_window: u64::MAX,
            curve: Curve::new(constants, 1),
            slow_start: SlowStart::HyStart(HyStart::chromium()),
            reductions: Reductions::new(Ecn::NotEct),
            pacing_rate: Rate::ZERO,
        }
    }

    const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// True if the window was used: almost all of it, in slow start more than half.
    const fn is_used(&self, in_flight: u64) -> bool {
        in_flight + ROOM * self.mss >= self.cwnd || (self.in_slow_start() && in_flight > self.cwnd / 2)
    }

    fn reduce(&mut self) {
        self.cwnd = self.curve.after_loss(self.cwnd).max(MIN_WINDOW * self.mss);
        self.ssthresh = self.cwnd;
    }

    /// Grow for one acknowledged packet.
    fn grow(&mut self, now: Timestamp, bytes: u64, event: &AckEvent<'_>) {
        if !event.cwnd_limited || !self.is_used(event.prior_in_flight) {
            self.curve.on_application_limited();
        } else if self.cwnd >= self.max_window {
            // No growth, and no start of an epoch.
        } else if self.in_slow_start() {
            self.cwnd += self.mss;
        } else {
            self.cwnd = self.curve.after_ack(now, bytes, self.cwnd, event.rtt.min()).min(self.max_window);
        }
    }

    fn publish(&mut self, srtt: TimeSpan) {
        if self.paced {
            let srtt = if srtt == TimeSpan::ZERO { INITIAL_RTT } else { srtt };
            self.pacing_rate = pacing::of_window(self.cwnd, self.in_slow_start(), srtt);
        }
    }
}

impl CongestionControl for Quic {
    fn capabilities(&self) -> Capabilities {
        Capabilities { bounded: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.max_window = self.max_packets * context.mss;
        self.cwnd = context.initial_window.clamp(MIN_WINDOW * context.mss, self.max_window);
        self.ssthresh = self.max_window;
        self.curve = Curve::new(self.curve.constants, context.mss);
        self.publish(TimeSpan::ZERO);
    }

    fn on_handshake(&mut self, _now: Timestamp, rtt_sample: TimeSpan) {
        self.publish(rtt_sample);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if self.in_slow_start() && event.acked_packets > 0 {
            let step = self.slow_start.on_ack(&Input {
                event,
                cwnd: self.cwnd,
                mss: self.mss,
                delay: event.rtt_sample,
                delay_min: event.rtt.min(),
            });
            if step.exit {
                self.ssthresh = self.cwnd;
            }
        }
        match self.reductions.judge(event) {
            Verdict::Loss => self.reduce(),
            Verdict::Grow => {
                // An acknowledgement of several packets counts as one for each.
                let each = event.acked_bytes / event.acked_packets;
                for i in 1..=event.acked_packets {
                    let bytes = if i == event.acked_packets { event.acked_bytes - each * (i - 1) } else { each };
                    self.grow(event.now, bytes, event);
                }
            }
            Verdict::Hold | Verdict::Mark => {}
        }
        self.publish(event.rtt.smoothed());
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.ssthresh = self.cwnd / 2;
        self.cwnd = MIN_WINDOW * self.mss;
        self.curve.reset();
        self.slow_start.on_timeout();
        self.reductions.on_timeout();
        self.publish(event.rtt.smoothed());
    }

    fn control(&self) -> Control {
        Control { pacing_rate: self.pacing_rate, ..Control::window(self.cwnd) }
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.ssthresh)
    }

    fn observables(&self) -> Observables {
        let packets = |bytes: u64| bytes as f64 / self.mss as f64;
        vec![
            ("cwnd_packets", packets(self.cwnd)),
            ("ssthresh_packets", packets(self.ssthresh)),
            ("w_max_packets", packets(self.curve.last_max)),
            ("w_est_packets", packets(self.curve.w_est)),
            ("k_s", self.curve.k_s()),
            ("slow_start_phase", self.slow_start.phase()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ms, MockTransport, TestEvent, MSS};
    use serde_json::{json, Map, Value};

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("quic", packets, params)
    }

    /// β_N = (N−1+0.7)/N of the window, min. two packets, once per recovery.
    #[test]
    fn decrease() {
        for (connections, before, after) in [(1, 100, 70.0), (2, 100, 85.0), (4, 100, 92.5), (2, 2, 2.0)] {
            let mut host = host(before, &json!({"connections": connections}));
            host.lose();
            assert_eq!(host.window(), after, "{connections} connections");
            assert_eq!(host.observable("ssthresh_packets"), after);
            host.play(TestEvent { lost: 1, ..TestEvent::default() });
            assert_eq!(host.window(), after, "one cut per recovery");
        }
    }

    /// A packet per packet acknowledged, also when one acknowledgement covers several, up to the max window.
    #[test]
    fn slow_start() {
        let mut host = host(32, &json!({"max_window": 70}));
        host.advance(ms(40));
        host.ack(32);
        assert_eq!(host.window(), 64.0);
        for _ in 0..3 {
            host.advance(ms(40));
            host.ack(32);
        }
        assert_eq!(host.window(), 70.0);
    }

    /// Slow start ends at the eighth sample of a round whose min delay rose by clamp(min/8, 4 ms, 16 ms).
    #[test]
    fn slow_start_ends_when_delay_rises() {
        for (base, rise, ends) in [(40, 4, false), (40, 6, true), (100, 12, false), (100, 13, true), (400, 17, true)] {
            let mut host = host(32, &json!({}));
            host.ack_round(ms(base), TimeSpan::ZERO);
            for i in 1..=8 {
                assert_eq!(host.observable("slow_start_phase"), 3.0, "before sample {i}");
                host.ack_after(ms(base + rise));
            }
            assert_eq!(host.observable("slow_start_phase") == 4.0, ends, "{base} + {rise} ms");
            assert_eq!(host.observable("ssthresh_packets") < 2000.0, ends, "{base} + {rise} ms");
        }
    }

    /// A train of acknowledgements as long as the path does not end slow start here.
    #[test]
    fn trains_are_not_judged() {
        let mut host = host(100, &json!({}));
        host.ack_after(ms(40));
        for _ in 1..100 {
            host.advance(ms(1));
            host.ack(1);
            assert_eq!(host.observable("slow_start_phase"), 3.0);
        }
    }

    /// Half of the window becomes ssthresh, two packets the window, then slow start.
    #[test]
    fn timeout() {
        let mut host = host(40, &json!({}));
        host.ack_round(ms(40), TimeSpan::ZERO);
        host.time_out();
        assert_eq!((host.window(), host.observable("ssthresh_packets")), (2.0, 40.0));
        host.ack_round(ms(40), TimeSpan::ZERO);
        assert_eq!(host.window(), 4.0);
        host.time_out();
        host.time_out();
        assert_eq!((host.window(), host.observable("ssthresh_packets")), (2.0, 1.0));
    }

    /// A window is used with room for three packets at most, in slow start with more than half in flight.
    #[test]
    fn used_windows() {
        for (ssthresh, in_flight, used) in
            [(2000, 21, true), (2000, 20, false), (40, 37, true), (40, 36, false), (40, 45, true)]
        {
            let mut quic = Quic::new(&Parameters::resolve(&ENTRY.info, &Map::new()).unwrap());
            (quic.mss, quic.cwnd, quic.ssthresh) = (MSS, 40 * MSS, ssthresh * MSS);
            assert_eq!(quic.is_used(in_flight * MSS), used, "threshold {ssthresh}, {in_flight} in flight");
        }
    }

    /// Two windows per RTT in slow start, then 1.25; before the first sample the RTT counts as 100 ms.
    #[test]
    fn pacing() {
        let rate = |packets: f64, seconds: f64| Rate((packets * 12_000.0 / seconds) as u64);
        let mut host = host(50, &json!({}));
        assert_eq!(host.scheme.control().pacing_rate, rate(100.0, 0.1));
        host.ack_after(ms(40));
        assert_eq!(host.scheme.control().pacing_rate, rate(2.0 * 51.0, 0.04));
        host.lose();
        assert_eq!(host.scheme.control().pacing_rate, rate(1.25 * 0.85 * 51.0, 0.04));
        let unpaced = MockTransport::of("quic", &json!({"pacing": false}));
        assert_eq!(unpaced.scheme.control().pacing_rate, Rate::ZERO);
    }
}
