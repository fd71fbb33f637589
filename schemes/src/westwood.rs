//! Westwood+ (Grieco and Mascolo, ACM CCR 34(2), 2004): Reno's growth; at a loss the window becomes the BDP at the
//! measured bandwidth.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

use crate::loss_based::{Cause, Congestion, LossBased, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "westwood",
        label: "TCP Westwood+",
        reference: "Grieco and Mascolo, ACM CCR 34(2), 2004",
        summary: "Grows as Reno, and sets the window to measured bandwidth times minimum RTT at a loss.",
        parameters: parameters! {
            /// paper: one low-pass filter. linux: two filters of 7/8 in a row, samples of at least 50 ms, and a timeout
            /// restarts the minimum round trip.
            mode: choice(&["paper", "linux"]);
            /// Weight of the old bandwidth estimate at a new sample; mode paper only.
            filter: number(0.9, (0.0, 0.999), "");
            START_UP;
            PACING;
            ECN;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_westwood.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let linux = p.word("mode") == "linux";
        let kept = if linux { LINUX_KEPT } else { p.number("filter") };
        Ok(Box::new(LossBased::new(p, Westwood::new(linux, kept))))
    },
};

/// Weight of the old value in each of the two filters in `tcp_westwood.c`.
const LINUX_KEPT: f64 = 7.0 / 8.0;
/// Min length of a sample in `tcp_westwood.c`.
const LINUX_SAMPLE: TimeSpan = TimeSpan::from_millis(50);

#[derive(Clone, Debug)]
struct Westwood {
    linux: bool,
    kept: f64,
    /// Bytes acknowledged since the sample began.
    acked: u64,
    /// Start of the sample; `NEVER` until the first acknowledgement, before which nothing could arrive.
    sample_began: Timestamp,
    /// Bytes per second: the last stage of the filter, and the one before it.
    bandwidth: f64,
    first_stage: f64,
    /// True after the first sample.
    measured: bool,
    rtt_min: TimeSpan,
}

impl Westwood {
    fn new(linux: bool, kept: f64) -> Self {
        Self {
            linux,
            kept,
            acked: 0,
            sample_began: Timestamp::NEVER,
            bandwidth: 0.0,
            first_stage: 0.0,
            measured: false,
            rtt_min: TimeSpan::MAX,
        }
    }

    /// Apply the low-pass filter to a sample. The first one is taken unchanged: from zero the filter would need ten
    /// round trips, and an early loss would find no bandwidth.
    fn filter(&mut self, sample: f64) {
        if !self.measured {
            self.measured = true;
            self.first_stage = sample;
            self.bandwidth = sample;
            return;
        }
        let mix = |old: f64, new: f64| self.kept * old + (1.0 - self.kept) * new;
        let first_stage = mix(self.first_stage, sample);
        self.bandwidth = mix(self.bandwidth, if self.linux { first_stage } else { sample });
        self.first_stage = first_stage;
    }

    /// Return the BDP with the min RTT, bytes; `None` before both are known.
    fn pipe(&self) -> Option<u64> {
        (self.measured && self.rtt_min < TimeSpan::MAX).then(|| (self.bandwidth * self.rtt_min.as_secs_f64()) as u64)
    }
}

impl Rule for Westwood {
    /// Take one bandwidth sample per round trip: the bytes acknowledged in it.
    #[inline]
    fn observe(&mut self, _window: &Window, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.rtt_min = self.rtt_min.min(sample);
        }
        if event.acked_bytes == 0 {
            return;
        }
        if !self.sample_began.is_set() {
            self.sample_began = event.now;
            return;
        }
        self.acked += event.acked_bytes;
        let span = event.now.since(self.sample_began);
        let shortest = if self.linux { LINUX_SAMPLE } else { TimeSpan(1) };
        if span >= event.rtt.smoothed().max(shortest) {
            self.filter(self.acked as f64 / span.as_secs_f64());
            self.acked = 0;
            self.sample_began = event.now;
        }
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        window.add_per_window(acked);
    }

    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        let pipe = self.pipe().unwrap_or(congestion.flight / 2);
        match congestion.cause {
            Cause::Timeout => {
                if self.linux {
                    self.rtt_min = TimeSpan::MAX;
                }
                pipe
            }
            // A loss never enlarges the window.
            Cause::Loss | Cause::Mark => pipe.min(window.cwnd),
        }
    }

    fn observables(&self, _mss: u64) -> Observables {
        let rtt_min = if self.rtt_min == TimeSpan::MAX { f64::NAN } else { self.rtt_min.as_millis_f64() };
        vec![("bandwidth_mbps", self.bandwidth * 8.0 / 1e6), ("rtt_min_ms", rtt_min)]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::{json, Value};

    const MS: TimeSpan = TimeSpan::from_millis(1);

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("westwood", packets, params)
    }

    /// Make a path of one packet per ms with a base RTT of 40 ms, and 60 packets of window: 20 wait in the queue.
    fn full_path(params: &Value) -> MockTransport {
        let mut host = host(60, params);
        host.cwnd_limited = false;
        // The first packet finds an empty queue; from then on one leaves each millisecond.
        host.advance(TimeSpan::from_millis(40));
        for _ in 0..2_000 {
            host.ack(1);
            host.advance(MS);
        }
        host
    }

    /// One packet per millisecond is 12 Mbit/s, and at a loss the window becomes the BDP at 40 ms.
    #[test]
    fn a_loss_sets_the_window_to_the_bdp() {
        for params in [json!({}), json!({"mode": "linux"})] {
            let mut host = full_path(&params);
            assert!((host.observable("bandwidth_mbps") - 12.0).abs() < 0.3, "{}", host.observable("bandwidth_mbps"));
            assert_eq!(host.observable("rtt_min_ms"), 40.0);
            host.lose();
            assert!((host.window() - 40.0).abs() < 1.0, "{params}: {}", host.window());
        }
    }

    /// A random loss at a window without a queue does not reduce it, where Reno halves.
    #[test]
    fn a_loss_without_a_queue_keeps_the_window() {
        let mut host = host(30, &json!({}));
        host.cwnd_limited = false;
        for _ in 0..40 {
            host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
        }
        host.advance(TimeSpan::from_millis(40));
        host.lose();
        assert!((29.0..=30.0).contains(&host.window()), "{}", host.window());
    }

    #[test]
    fn a_timeout_sets_ssthresh_to_the_bdp() {
        let mut host = full_path(&json!({}));
        host.time_out();
        assert_eq!(host.window(), 1.0);
        assert!((host.observable("ssthresh_packets") - 40.0).abs() < 1.0);
    }

    /// b ← 0.9·b + 0.1·sample; Linux filters twice with 7/8, so that a step changes it by 1/64 at first.
    #[test]
    fn filters() {
        for (linux, kept, expected) in
            [(false, 0.9, 110.0), (false, 0.5, 150.0), (true, 7.0 / 8.0, 100.0 + 100.0 / 64.0)]
        {
            let mut rule = super::Westwood::new(linux, kept);
            rule.filter(100.0);
            assert_eq!(rule.bandwidth, 100.0);
            rule.filter(200.0);
            assert!((rule.bandwidth - expected).abs() < 1e-9, "{linux} {kept}: {}", rule.bandwidth);
        }
    }
}
