//! H-TCP (Leith and Shorten, PFLDnet 2004; draft-leith-tcp-htcp-06): grows faster with the time since the last loss,
//! and reduces by the queue at a loss.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

use crate::loss_based::{Congestion, LossBased, Rule, Window, ECN, PACING, START_UP};
use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "htcp",
        label: "H-TCP",
        reference: "Leith and Shorten, PFLDnet 2004; draft-leith-tcp-htcp-06",
        summary: "Grows faster the longer the last loss is past, and gives up its queue at a loss.",
        parameters: parameters! {
            /// Time after a loss during which it grows as Reno, by one packet per round trip.
            delta_l: number(1.0, (0.0, 100.0), "s");
            /// Keep the ratio of minimum to maximum round trip at a loss (0.5 to 0.8); false: keep one half.
            adaptive_backoff: flag(true);
            /// Multiply growth by the round trip / 100 ms (0.1 to 2), so that long paths get the same share.
            rtt_scaling: flag(true);
            START_UP;
            PACING;
            ECN;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_htcp.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(LossBased::new(p, Htcp::new(p)))),
};

const BETA_MIN: f64 = 0.5;
const BETA_MAX: f64 = 0.8;
/// Relative change of the throughput since the last loss above which the window halves.
const THROUGHPUT_CHANGE: f64 = 0.2;
/// RTT at which scaling changes nothing, in seconds, and the scale's range.
const SCALE_RTT: f64 = 0.1;
const SCALE_RANGE: (f64, f64) = (0.1, 2.0);
/// Factor on the span between min and max RTT at a loss: old queues are forgotten (`tcp_htcp.c`).
const RTT_SPAN_KEPT: f64 = 0.95;
/// Max step by which a sample raises the max RTT: outliers are ignored (`tcp_htcp.c`).
const RTT_MAX_STEP: TimeSpan = TimeSpan::from_millis(20);
/// Min RTT of paths that do not always halve (`tcp_htcp.c`).
const RTT_FOR_ADAPTATION: TimeSpan = TimeSpan::from_millis(10);
/// Round trips after a loss in which throughput samples replace the smoothed value.
const FRESH_ROUNDS: u64 = 3;

/// State since the last loss.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    began: Timestamp,
    /// Bytes acknowledged since the throughput sample began.
    acked: u64,
    sample_began: Timestamp,
    /// Bytes per second: smoothed, its max in this epoch, and the max of the one before.
    throughput: f64,
    throughput_max: f64,
    previous_max: f64,
}

#[derive(Clone, Debug)]
struct Htcp {
    delta_l: f64,
    adaptive_backoff: bool,
    rtt_scaling: bool,
    /// Share of the window after a loss.
    beta: f64,
    /// Growth in packets per RTT.
    alpha: f64,
    rtt_min: TimeSpan,
    rtt_max: TimeSpan,
    epoch: Epoch,
    /// True if the throughput at the last loss was steady: the backoff adapts from the second one on.
    adapt: bool,
    /// State that a spurious loss restores.
    before: Option<(Epoch, TimeSpan)>,
}

impl Htcp {
    fn new(p: &Parameters) -> Self {
        Self {
            delta_l: p.number("delta_l"),
            adaptive_backoff: p.flag("adaptive_backoff"),
            rtt_scaling: p.flag("rtt_scaling"),
            beta: BETA_MIN,
            alpha: 1.0,
            rtt_min: TimeSpan::MAX,
            rtt_max: TimeSpan::ZERO,
            epoch: Epoch::default(),
            adapt: false,
            before: None,
        }
    }

    /// Return α(Δ) = 1 + 10·(Δ−Δ_L) + ((Δ−Δ_L)/2)², times 2·(1−β), which compensates for a smaller reduction.
    fn alpha_after(&self, now: Timestamp) -> f64 {
        let late = now.since(self.epoch.began).as_secs_f64() - self.delta_l;
        let mut factor = if late > 0.0 { 1.0 + 10.0 * late + (late / 2.0).powi(2) } else { 1.0 };
        if self.rtt_scaling && self.rtt_min < TimeSpan::MAX {
            let scale = self.rtt_min.as_secs_f64() / SCALE_RTT;
            factor = (factor * scale.clamp(SCALE_RANGE.0, SCALE_RANGE.1)).max(1.0);
        }
        2.0 * (1.0 - self.beta) * factor
    }

    fn observe_throughput(&mut self, window: &Window, event: &AckEvent<'_>) {
        let e = &mut self.epoch;
        if event.in_recovery {
            e.acked = 0;
            e.sample_began = event.now;
            return;
        }
        e.acked += event.acked_bytes;
        let span = event.now.since(e.sample_began);
        if e.acked < window.cwnd.saturating_sub((self.alpha.max(1.0) * window.mss as f64) as u64)
            || span < self.rtt_min
            || span == TimeSpan::ZERO
        {
            return;
        }
        let sample = e.acked as f64 / span.as_secs_f64();
        if event.now.since(e.began).0 <= FRESH_ROUNDS * self.rtt_min.0 {
            e.throughput = sample;
            e.throughput_max = sample;
        } else {
            e.throughput = 0.75 * e.throughput + 0.25 * sample;
            e.throughput_max = e.throughput_max.max(e.throughput);
        }
        e.acked = 0;
        e.sample_began = event.now;
    }

    /// Update β by the draft's section on adaptive backoff.
    fn update_beta(&mut self) {
        let (found, previous) = (self.epoch.throughput_max, self.epoch.previous_max);
        let steady = (found - previous).abs() <= THROUGHPUT_CHANGE * previous;
        let long_enough = self.rtt_min > RTT_FOR_ADAPTATION && self.rtt_min < TimeSpan::MAX;
        self.beta = if self.adaptive_backoff && steady && self.adapt && long_enough && self.rtt_max > TimeSpan::ZERO {
            (self.rtt_min.0 as f64 / self.rtt_max.0 as f64).clamp(BETA_MIN, BETA_MAX)
        } else {
            BETA_MIN
        };
        self.adapt = steady;
    }
}

impl Rule for Htcp {
    fn init(&mut self, now: Timestamp) {
        self.epoch.began = now;
        self.epoch.sample_began = now;
    }

    #[inline]
    fn observe(&mut self, window: &Window, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.rtt_min = self.rtt_min.min(sample);
            if !event.in_recovery {
                self.rtt_max = self.rtt_max.max(self.rtt_min);
                if sample <= self.rtt_max + RTT_MAX_STEP {
                    self.rtt_max = self.rtt_max.max(sample);
                }
            }
        }
        self.observe_throughput(window, event);
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, now: Timestamp, acked: u64) {
        self.alpha = self.alpha_after(now);
        window.add_scaled(self.alpha, acked);
    }

    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        self.before = Some((self.epoch, self.rtt_max));
        self.update_beta();
        let e = &mut self.epoch;
        *e = Epoch {
            began: congestion.now,
            acked: 0,
            sample_began: congestion.now,
            previous_max: e.throughput_max,
            ..*e
        };
        if self.rtt_max > self.rtt_min {
            let span = self.rtt_max.0 - self.rtt_min.0;
            self.rtt_max = self.rtt_min + TimeSpan((span as f64 * RTT_SPAN_KEPT) as u64);
        }
        self.alpha = self.alpha_after(congestion.now);
        (congestion.flight.min(window.cwnd) as f64 * self.beta) as u64
    }

    fn undo(&mut self) {
        if let Some((epoch, rtt_max)) = self.before.take() {
            self.epoch = epoch;
            self.rtt_max = self.rtt_max.max(rtt_max);
        }
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("alpha_packets", self.alpha), ("beta", self.beta), ("throughput_mbps", self.epoch.throughput * 8.0 / 1e6)]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::{json, Map, Value};

    use crate::registry::Parameters;

    const RTT: TimeSpan = TimeSpan::from_millis(100);

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("htcp", packets, params)
    }

    /// α(Δ) with Δ_L = 1 s, β = ½ and an RTT of 100 ms, where scaling changes nothing.
    #[test]
    fn growth_by_time_since_the_loss() {
        for (seconds, alpha) in [(0.5, 1.0), (1.0, 1.0), (1.5, 6.0625), (2.0, 11.25), (3.0, 22.0), (11.0, 126.0)] {
            let mut host = host(40, &json!({}));
            host.ack_after(RTT);
            host.lose();
            host.advance(TimeSpan::from_secs_f64(seconds));
            let rest = host.packets_in_flight();
            host.ack(rest);
            let found = host.observable("alpha_packets");
            assert!((found - alpha).abs() < 1e-6, "{seconds} s: {found}");
        }
    }

    /// Scaling: half of it at 50 ms, at most twice, never below Reno's packet.
    #[test]
    fn growth_scales_with_the_round_trip() {
        for (rtt, scaling, expected) in [(50, true, 5.625), (50, false, 11.25), (400, true, 22.5), (10, true, 1.125)] {
            let mut host = host(40, &json!({"rtt_scaling": scaling}));
            host.ack_after(TimeSpan::from_millis(rtt));
            host.lose();
            host.advance(TimeSpan::from_secs_f64(2.0));
            let rest = host.packets_in_flight();
            host.ack(rest);
            let found = host.observable("alpha_packets");
            assert!((found - expected).abs() < 1e-6, "{rtt} ms, {scaling}: {found}");
        }
    }

    /// RTT_min/RTT_max within ½ and 0.8, if the throughput is within a fifth of the one before the last loss, twice in
    /// a row; else one half.
    #[test]
    fn backoff() {
        let base = super::Htcp::new(&Parameters::resolve(&super::ENTRY.info, &Map::new()).unwrap());
        for (previous, found, adapt, rtts, expected) in [
            (1e6, 1e6, true, (100, 145), 100.0 / 145.0),
            (1e6, 1.19e6, true, (100, 145), 100.0 / 145.0),
            (1e6, 0.81e6, true, (100, 145), 100.0 / 145.0),
            (1e6, 1.21e6, true, (100, 145), 0.5),
            (1e6, 0.79e6, true, (100, 145), 0.5),
            (1e6, 1e6, false, (100, 145), 0.5),
            (1e6, 1e6, true, (100, 104), 0.8),
            (1e6, 1e6, true, (100, 400), 0.5),
            (1e6, 1e6, true, (9, 12), 0.5),
        ] {
            let mut rule = base.clone();
            (rule.epoch.previous_max, rule.epoch.throughput_max, rule.adapt) = (previous, found, adapt);
            (rule.rtt_min, rule.rtt_max) = (TimeSpan::from_millis(rtts.0), TimeSpan::from_millis(rtts.1));
            rule.update_beta();
            assert_eq!(rule.beta, expected, "{previous} {found} {adapt} {rtts:?}");
        }
    }

    /// A window of 40 per 100 ms is 4.8 Mbit/s.
    #[test]
    fn throughput_is_measured_by_windows() {
        let mut host = host(40, &json!({}));
        host.cwnd_limited = false;
        for _ in 0..20 {
            host.ack_round(RTT, TimeSpan::ZERO);
        }
        let found = host.observable("throughput_mbps");
        assert!((found - 4.8).abs() < 0.3, "{found}");
    }

    #[test]
    fn a_spurious_loss_does_not_restart_the_clock() {
        for (spurious, expected) in [(false, 1.0), (true, 12.3025)] {
            let mut host = host(40, &json!({"rtt_scaling": false}));
            host.ack_after(RTT);
            host.lose();
            host.advance(TimeSpan::from_secs_f64(2.0));
            let rest = host.packets_in_flight();
            host.ack(rest);
            host.advance(RTT);
            host.lose();
            if spurious {
                host.spurious();
            }
            let rest = host.packets_in_flight();
            host.ack(rest);
            let found = host.observable("alpha_packets");
            assert!((found - expected).abs() < 1e-6, "{spurious}: {found}");
        }
    }
}
