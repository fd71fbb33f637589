//! Vegas (Brakmo and Peterson, 1995; behavior of Linux `net/ipv4/tcp_vegas.c`, and of ns-3.37 `tcp-vegas.cc` as a
//! mode): keeps two to four packets in the queue, judged by the round trip.

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, PacketNumber, TimeSpan, TimeoutEvent, Timestamp};

use crate::ns3_delay::Ns3Delay;
use crate::registry::{Parameter, Parameters, SchemeEntry, SchemeError, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "vegas",
        label: "TCP Vegas",
        reference: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
        summary: "Compares expected with actual rate and keeps a few packets in the queue.",
        style: Some(("slategray", "h")),
        parameters: &[
            Parameter::choice(
                "mode",
                &["linux", "ns3"],
                "linux: as the kernel, halving at a loss. ns3: as TcpVegas of ns-3.37, which gives up one packet \
                 at a loss and judges by smoothed millisecond round trips.",
            ),
            Parameter::integer("alpha", 2, (0, 10_000), "packets", "Grow while fewer than this are queued."),
            Parameter::integer("beta", 4, (0, 10_000), "packets", "Shrink while more than this are queued."),
            Parameter::integer("gamma", 1, (0, 10_000), "packets", "Leave slow start when more than this are queued."),
        ],
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Vegas::new(p)?)),
};

/// Fewest packets in the window, but for the time after a timeout.
const MIN_WINDOW: u64 = 2;
/// With no more samples than this in a round, each may have met a delayed acknowledgement: Reno decides instead.
const TOO_FEW_SAMPLES: u32 = 2;

/// Whether Vegas decides; Reno grows the window otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Vegas,
    /// Until the recovery episode is over.
    Recovery,
    /// After a timeout, until what was in flight then has arrived: slow start goes on meanwhile (RFC 5681 §3.1).
    Loss,
}

/// The state of one flow. Windows are whole packets.
#[derive(Clone, Debug)]
pub struct Vegas {
    ns3: bool,
    alpha: u64,
    beta: u64,
    gamma: u64,
    mss: u64,
    window: u64,
    ssthresh: u64,
    /// Packets acknowledged since Reno last grew the window.
    credit: u64,
    phase: Phase,
    /// A packet number: acknowledging it ends the round.
    round_end: PacketNumber,
    /// Minimum RTT of the flow's life.
    base_rtt: TimeSpan,
    /// Minimum RTT of this round.
    round_min: TimeSpan,
    samples: u32,
    ns3_delay: Ns3Delay,
    /// Packets that the latest judgment saw in the queue.
    queued: u64,
    /// Window and threshold before the latest reduction.
    before: Option<(u64, u64)>,
}

impl Vegas {
    fn new(p: &Parameters) -> Result<Self, SchemeError> {
        let (alpha, beta) = (p.integer("alpha"), p.integer("beta"));
        if alpha > beta {
            return Err(p.refuse(format!("alpha {alpha} above beta {beta}"), "alpha at most beta"));
        }
        Ok(Self {
            ns3: p.word("mode") == "ns3",
            alpha,
            beta,
            gamma: p.integer("gamma"),
            mss: 0,
            window: 0,
            ssthresh: u64::MAX,
            credit: 0,
            phase: Phase::Vegas,
            round_end: 0,
            base_rtt: TimeSpan::MAX,
            round_min: TimeSpan::MAX,
            samples: 0,
            ns3_delay: Ns3Delay::default(),
            queued: 0,
            before: None,
        })
    }

    /// Begin a round whose end is the acknowledgement of packet `end`.
    fn begin_round(&mut self, end: PacketNumber) {
        self.round_end = end;
        self.round_min = TimeSpan::MAX;
        self.samples = 0;
    }

    #[inline]
    fn observe(&mut self, event: &AckEvent<'_>) {
        let Some(sample) = event.rtt_sample else { return };
        let delay = if self.ns3 {
            if event.in_recovery {
                return;
            }
            self.ns3_delay.update(event.now, sample)
        } else {
            // One microsecond more, so that it is never zero.
            TimeSpan(sample.0 + 1_000)
        };
        self.base_rtt = self.base_rtt.min(delay);
        self.round_min = self.round_min.min(delay);
        self.samples += 1;
    }

    fn reduce(&mut self) {
        self.before = Some((self.window, self.ssthresh));
        let kept = if self.ns3 { self.ssthresh.min(self.window - 1) } else { self.window / 2 };
        self.ssthresh = kept.max(MIN_WINDOW);
        self.window = self.ssthresh;
        self.credit = 0;
    }

    /// Slow start; returns what of `acked` the threshold cut off. ns-3 counts one packet per acknowledgement.
    fn slow_start(&mut self, acked: u64) -> u64 {
        let growth = acked.min(if self.ns3 { 1 } else { self.ssthresh - self.window });
        self.window += growth;
        acked - growth
    }

    fn reno(&mut self, mut acked: u64) {
        if self.window < self.ssthresh {
            acked = self.slow_start(acked);
        }
        if self.window >= self.ssthresh {
            self.credit += acked;
            while self.credit >= self.window {
                self.credit -= self.window;
                self.window += 1;
            }
        }
    }

    /// The judgment at a round's end.
    fn judge(&mut self, event: &AckEvent<'_>) {
        let w = self.window;
        let (base, rtt) = (self.base_rtt.0, self.round_min.0);
        // What would be in flight without a queue.
        let target = w * base / rtt;
        // Linux divides by the base, ns-3 takes what lies above the target.
        let queued = if self.ns3 { w - target } else { w * (rtt - base) / base };
        self.queued = queued;
        if w < self.ssthresh {
            if queued > self.gamma {
                self.window = w.min(target + 1);
                self.lower_threshold();
            } else if event.cwnd_limited {
                self.slow_start(event.acked_packets);
            }
        } else if queued > self.beta {
            self.window = w - 1;
            self.lower_threshold();
        } else if queued < self.alpha && event.cwnd_limited {
            self.window = w + 1;
        }
        self.window = self.window.max(MIN_WINDOW);
        // Both stacks end a round with a threshold of three quarters of the window at least.
        self.ssthresh = self.ssthresh.max(3 * self.window / 4);
    }

    fn lower_threshold(&mut self) {
        let below = self.window.saturating_sub(1);
        self.ssthresh = self.ssthresh.min(below).max(if self.ns3 { MIN_WINDOW } else { 0 });
    }

    #[inline]
    fn grow(&mut self, event: &AckEvent<'_>) {
        if self.phase != Phase::Vegas {
            if event.in_recovery {
                if event.cwnd_limited {
                    self.reno(event.acked_packets);
                }
                return;
            }
            self.phase = Phase::Vegas;
            self.begin_round(event.next_packet_number);
        }
        // The kernel waits for the packet at the edge itself, ns-3 for all before it.
        if event.largest_acked + u64::from(self.ns3) >= self.round_end {
            if self.samples > TOO_FEW_SAMPLES {
                self.judge(event);
            } else if event.cwnd_limited {
                self.reno(event.acked_packets);
            }
            self.begin_round(event.next_packet_number);
        } else if self.window < self.ssthresh && event.cwnd_limited {
            self.slow_start(event.acked_packets);
        }
    }
}

impl CongestionControl for Vegas {
    fn name(&self) -> &'static str {
        ENTRY.info.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { window_only: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.window = (context.initial_window / context.mss).max(MIN_WINDOW);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        if self.ns3 {
            self.ns3_delay.update(now, rtt_sample);
        }
    }

    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.observe(event);
        if event.entered_recovery {
            self.reduce();
            self.phase = Phase::Recovery;
        } else if (!event.in_recovery || self.phase == Phase::Loss) && event.acked_packets > 0 {
            self.grow(event);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        // RFC 5681 §3.1: the threshold is set at the first expiry only.
        if event.count <= 1 {
            self.reduce();
        }
        self.window = 1;
        self.credit = 0;
        self.phase = Phase::Loss;
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {
        if let Some((window, ssthresh)) = self.before.take() {
            self.window = self.window.max(window);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    fn on_idle_restart(&mut self, _now: Timestamp) {
        // The next acknowledgement ends this round with too few samples, and a fresh one begins.
        self.begin_round(0);
    }

    #[inline]
    fn control(&self) -> Control {
        Control::window(self.window * self.mss)
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.ssthresh.saturating_mul(self.mss))
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.window as f64),
            ("ssthresh_packets", if self.ssthresh == u64::MAX { f64::INFINITY } else { self.ssthresh as f64 }),
            ("base_rtt_ms", self.base_rtt.as_millis_f64()),
            ("queued_packets", self.queued as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{context, scheme, MockTransport, MSS};
    use ccgym_core::{InitContext, TimeSpan};
    use serde_json::{json, Value};

    fn ms(value: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(value / 1e3)
    }
    fn host(packets: u64, params: &Value) -> MockTransport {
        let context = InitContext { initial_window: packets * MSS, ..context() };
        MockTransport::with_context(scheme("vegas", params), context)
    }
    fn round(host: &mut MockTransport, rtt: f64) -> f64 {
        let before = host.window();
        host.ack_round(ms(rtt), TimeSpan::ZERO);
        host.window() - before
    }
    /// In avoidance at a window of 20 with a base of 40 ms and three packets queued: one packet is 2 ms of delay.
    fn avoidance(params: &Value) -> MockTransport {
        let mut host = host(40, params);
        host.ack_after(ms(40.0));
        host.lose_and_recover(ms(40.0));
        while host.window() > 20.0 {
            round(&mut host, 60.0);
        }
        for _ in 0..3 {
            round(&mut host, 46.0);
        }
        host
    }

    /// W·(rtt−base)/base, truncated: below α one more packet per round, above β one less, hold between.
    #[test]
    fn branches() {
        for (rtt, expected) in [(40.0, 1.0), (43.8, 1.0), (44.2, 0.0), (49.8, 0.0), (50.2, -1.0), (80.0, -1.0)] {
            let mut host = avoidance(&json!({}));
            assert_eq!((host.window(), host.packets_in_flight()), (20.0, 20));
            round(&mut host, rtt);
            // The round is judged at the first acknowledgement of the next.
            host.ack_after(ms(rtt));
            let moved = host.window() - 20.0;
            assert_eq!(if moved == 0.0 { 0.0 } else { moved.signum() }, expected, "{rtt} ms: {moved}");
        }
    }

    #[test]
    fn wider_bounds() {
        let mut host = avoidance(&json!({"alpha": 8, "beta": 12}));
        for _ in 0..100 {
            // A pipe of 20 packets: what is beyond stands in the queue.
            let rtt = 40.0 * (host.window() / 20.0).max(1.0);
            round(&mut host, rtt);
        }
        assert!((26.0..=32.0).contains(&host.window()), "{}", host.window());
    }

    /// Slow start ends when more than γ packets are queued: the window falls to what would leave none, plus one.
    #[test]
    fn gamma_ends_slow_start() {
        let mut host = host(20, &json!({}));
        host.ack_round(ms(40.0), TimeSpan::ZERO);
        let doubled = host.window();
        assert_eq!(doubled, 40.0);
        // 40·4/40 = 4 packets queued; 40·40/44 = 36 would leave none.
        host.ack_round(ms(44.0), TimeSpan::ZERO);
        host.ack_round(ms(44.0), TimeSpan::ZERO);
        assert!(host.scheme.ssthresh() < Some(80 * MSS));
        assert!(host.window() < 80.0, "{}", host.window());
        let threshold = host.observable("ssthresh_packets");
        assert!(threshold >= (0.75 * host.window()).floor(), "{threshold}");
    }

    /// With two samples in a round Reno decides: no judgment is made.
    #[test]
    fn too_few_samples() {
        let mut host = host(2, &json!({}));
        for rtt in [40.0, 80.0, 80.0] {
            host.ack_after(ms(rtt));
            host.ack_after(ms(rtt));
        }
        assert_eq!(host.observable("queued_packets"), 0.0);
        assert!(host.window() > 4.0);
    }

    #[test]
    fn losses() {
        for (mode, expected) in [("linux", 20.0), ("ns3", 39.0)] {
            let mut host = host(40, &json!({"mode": mode}));
            host.lose();
            assert_eq!(host.window(), expected, "{mode}");
            host.spurious();
            assert_eq!(host.window(), 40.0);
        }
        let mut host = host(40, &json!({}));
        host.time_out();
        assert_eq!((host.window(), host.scheme.ssthresh()), (1.0, Some(20 * MSS)));
        round(&mut host, 40.0);
        assert_eq!(host.window(), 2.0);
    }

    #[test]
    fn bounds_must_be_in_order() {
        let params = json!({"alpha": 5});
        let error = crate::create("vegas", params.as_object().unwrap()).err().unwrap().to_string();
        assert_eq!(
            error,
            "scheme vegas: found alpha 5 above beta 4, expected alpha at most beta; change one of the two"
        );
    }
}
