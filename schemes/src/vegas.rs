//! Vegas (Brakmo and Peterson, 1995; behavior of Linux `net/ipv4/tcp_vegas.c`, and of ns-3.37 `tcp-vegas.cc` as a
//! mode): keeps two to four packets in the queue, judged by the RTT.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, Error, TimeSpan, Timestamp};

use crate::loss_based::{Congestion, LossBased, Rounds, Rule, Window};
use crate::ns3_delay::Ns3Delay;
use crate::registry::{parameters, Parameters, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "vegas",
        label: "TCP Vegas",
        reference: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
        summary: "Computes its queue from expected and actual rate, and holds it at two to four packets.",
        parameters: parameters! {
            /// linux: as the kernel, which halves at a loss. ns3: as TcpVegas of ns-3.37, which reduces by one packet
            /// at a loss and uses smoothed round trips in milliseconds.
            mode: choice(&["linux", "ns3"]);
            /// Grow while fewer than this are queued.
            alpha: integer(2, (0, 10_000), "packets");
            /// Shrink while more than this are queued.
            beta: integer(4, (0, 10_000), "packets");
            /// Leave slow start when more than this are queued.
            gamma: integer(1, (0, 10_000), "packets");
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(LossBased::plain(Vegas::new(p)?))),
};

/// Min window after a judgment, packets.
const MIN_WINDOW: u64 = 2;
/// Max samples of a round with which Reno decides instead: each may have met a delayed acknowledgement.
const TOO_FEW_SAMPLES: u32 = 2;

/// The window stays in whole packets.
#[derive(Clone, Debug)]
struct Vegas {
    ns3: bool,
    alpha: u64,
    beta: u64,
    gamma: u64,
    /// Min RTT since the flow started.
    base_rtt: TimeSpan,
    round: Rounds,
    ns3_delay: Ns3Delay,
    /// Packets in the queue at the latest judgment.
    queued: u64,
    /// True from a reduction to the end of its recovery: the samples taken meanwhile do not count as a round.
    recovering: bool,
    /// True if Reno decides at this acknowledgement.
    reno: bool,
}

impl Vegas {
    fn new(p: &Parameters) -> Result<Self, Error> {
        let (alpha, beta) = (p.integer("alpha"), p.integer("beta"));
        if alpha > beta {
            return Err(p.refuse(format!("alpha {alpha} above beta {beta}"), "alpha at most beta"));
        }
        Ok(Self {
            ns3: p.word("mode") == "ns3",
            alpha,
            beta,
            gamma: p.integer("gamma"),
            base_rtt: TimeSpan::MAX,
            round: Rounds::default(),
            ns3_delay: Ns3Delay::default(),
            queued: 0,
            recovering: false,
            reno: false,
        })
    }

    /// Begin a round: the kernel waits for the packet at the edge itself, ns-3 for all before it.
    fn begin_round(&mut self, event: &AckEvent<'_>) {
        self.round = Rounds::up_to(event.next_packet_number - u64::from(self.ns3));
    }

    /// Judge the queue at a round's end, in packets.
    fn judge(&mut self, window: &mut Window, rtt: TimeSpan, used: bool) {
        let (w, threshold) = (window.cwnd / window.mss, window.ssthresh / window.mss);
        // In flight without a queue.
        let target = w * self.base_rtt.0 / rtt.0;
        // Linux divides by the base, ns-3 takes the part above the target.
        let queued = if self.ns3 { w - target } else { w * (rtt.0 - self.base_rtt.0) / self.base_rtt.0 };
        self.queued = queued;
        let starting = w < threshold;
        let shrinks = queued > if starting { self.gamma } else { self.beta };
        let left = match (starting, shrinks) {
            (true, true) => w.min(target + 1),
            (false, true) => w - 1,
            (false, false) if queued < self.alpha && used => w + 1,
            (_, false) => w,
        };
        let left_at_least = left.max(MIN_WINDOW);
        window.cwnd = left_at_least * window.mss;
        let min_window = if self.ns3 { MIN_WINDOW } else { 0 };
        let lowered = if shrinks { threshold.min(left.saturating_sub(1)).max(min_window) } else { threshold };
        // Both stacks end a round with ssthresh at three quarters of the window at min_window.
        let lowered = lowered.max(3 * left_at_least / 4);
        if lowered != threshold {
            window.ssthresh = lowered * window.mss;
        }
    }
}

impl Rule for Vegas {
    fn handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        if self.ns3 {
            self.ns3_delay.update(now, rtt_sample);
        }
    }

    #[inline]
    fn observe(&mut self, _window: &Window, event: &AckEvent<'_>) {
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
        self.round.add(delay);
    }

    #[inline]
    fn before_growth(&mut self, window: &mut Window, event: &AckEvent<'_>) {
        // After a timeout Reno grows the window until all packets in flight then have arrived (RFC 5681 §3.1).
        self.reno = event.in_recovery;
        if self.reno {
            return;
        }
        if std::mem::take(&mut self.recovering) {
            self.begin_round(event);
        }
        if let Some(round) = self.round.ended_by(event) {
            self.begin_round(event);
            self.reno = round.samples <= TOO_FEW_SAMPLES;
            if !self.reno {
                self.judge(window, round.min, event.cwnd_limited);
            }
        }
    }

    /// ns-3 counts one packet per acknowledgement.
    fn slow_start(&mut self, window: &mut Window, _growth: u64, acked: u64) -> u64 {
        let acked = whole_packets(window, acked);
        if self.ns3 {
            window.cwnd += window.mss;
            return acked.saturating_sub(window.mss);
        }
        window.add_to_threshold(acked)
    }

    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        if self.reno {
            window.add_per_window(whole_packets(window, acked));
        }
    }

    fn reduce(&mut self, window: &Window, _congestion: &Congestion) -> u64 {
        self.recovering = true;
        if self.ns3 {
            window.ssthresh.min(window.cwnd - window.mss)
        } else {
            window.cwnd / window.mss / 2 * window.mss
        }
    }

    fn idle_restart(&mut self) {
        // The next acknowledgement ends this round with too few samples, and a fresh one begins.
        self.round = Rounds::default();
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("base_rtt_ms", self.base_rtt.as_millis_f64()), ("queued_packets", self.queued as f64)]
    }
}

/// Count a packet that is not full as one, so that windows stay whole.
fn whole_packets(window: &Window, acked: u64) -> u64 {
    acked.div_ceil(window.mss) * window.mss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MockTransport, MSS};
    use serde_json::{json, Value};

    fn ms(value: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(value / 1e3)
    }
    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("vegas", packets, params)
    }
    fn round(host: &mut MockTransport, rtt: f64) -> f64 {
        let before = host.window();
        host.ack_round(ms(rtt), TimeSpan::ZERO);
        host.window() - before
    }
    /// Make a flow in avoidance at a window of 20 with a base of 40 ms and three packets, of 2 ms each, queued.
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

    /// W·(rtt−base)/base, truncated: below α one more packet per round, above β one less, no change between.
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
            // A pipe of 20 packets: the rest is queued.
            let rtt = 40.0 * (host.window() / 20.0).max(1.0);
            round(&mut host, rtt);
        }
        assert!((26.0..=32.0).contains(&host.window()), "{}", host.window());
    }

    /// Slow start ends when more than γ packets are queued: the window falls to the BDP plus one packet.
    #[test]
    fn gamma_ends_slow_start() {
        let mut host = host(20, &json!({}));
        host.ack_round(ms(40.0), TimeSpan::ZERO);
        let doubled = host.window();
        assert_eq!(doubled, 40.0);
        // 40·4/40 = 4 packets queued; 40·40/44 = 36 would leave an empty queue.
        host.ack_round(ms(44.0), TimeSpan::ZERO);
        host.ack_round(ms(44.0), TimeSpan::ZERO);
        assert!(host.scheme.ssthresh() < Some(80 * MSS));
        assert!(host.window() < 80.0, "{}", host.window());
        let threshold = host.observable("ssthresh_packets");
        assert!(threshold >= (0.75 * host.window()).floor(), "{threshold}");
    }

    /// With two samples in a round Reno decides, not Vegas.
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
    fn without_acknowledged_packets_avoidance_adds_nothing() {
        let mut vegas = Vegas {
            ns3: true,
            alpha: 2,
            beta: 4,
            gamma: 1,
            base_rtt: TimeSpan::MAX,
            round: Rounds::default(),
            ns3_delay: Ns3Delay::default(),
            queued: 0,
            recovering: false,
            reno: false,
        };
        let mut window = Window { mss: MSS, cwnd: 10 * MSS, ssthresh: u64::MAX, counted: 0 };
        let left = [0, MSS, 3 * MSS].map(|acked| vegas.slow_start(&mut window, 0, acked));
        assert_eq!(left, [0, 0, 2 * MSS]);
    }

    #[test]
    fn bounds_must_be_in_order() {
        let params = json!({"alpha": 5});
        let error = crate::create("vegas", params.as_object().unwrap()).err().unwrap();
        assert_eq!((&*error.code, &*error.place), ("parameter-invalid", "scheme vegas"));
    }
}
