//! The registry entry and its parameters. Defaults are the draft's.

use ccgym_core::TimeSpan;

use super::Bbr3;
use crate::bbr_model::PACING_MARGIN;
use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "bbr3",
        label: "BBRv3",
        reference: "draft-ietf-ccwg-bbr-06 with the repository's corrections up to 2026-08-03",
        summary: "Paces at the measured bottleneck bandwidth, and bounds the data in flight by loss (v3).",
        role: Role::OnRequest,
        implementation: "tquic 1.6.0 bbr3.rs, Apache-2.0",
        parameters: parameters! {
            /// Pacing gain of STARTUP.
            startup_pacing_gain: number(2.77, (1.1, 8.0), "");
            /// Pacing gain of DRAIN.
            drain_pacing_gain: number(0.5, (0.05, 1.0), "");
            /// Pacing gain of PROBE_DOWN (Linux: 0.91).
            down_pacing_gain: number(0.9, (0.05, 1.0), "");
            /// Pacing gain of PROBE_UP.
            up_pacing_gain: number(1.25, (1.0, 8.0), "");
            /// Window, in bandwidth-delay products.
            cwnd_gain: number(2.0, (1.0, 16.0), "BDP");
            /// Window in PROBE_UP, in bandwidth-delay products.
            up_cwnd_gain: number(2.25, (1.0, 16.0), "BDP");
            /// Window in PROBE_RTT, in bandwidth-delay products.
            probe_rtt_cwnd_gain: number(0.5, (0.01, 1.0), "BDP");
            /// Share of lost bytes per round above which a probe was too high.
            loss_threshold: number(0.02, (0.0, 1.0), "");
            /// Minimum factor on the short-term bounds after a round with loss.
            beta: number(0.7, (0.1, 1.0), "");
            /// Share of the long-term bound that PROBE_CRUISE leaves to other flows.
            headroom: number(0.15, (0.0, 0.9), "");
            /// Length of the minimum filter of the round trip.
            min_rtt_window: number(10.0, (0.1, 1e6), "s");
            /// Time between two PROBE_RTT.
            probe_rtt_interval: number(5.0, (0.1, 1e6), "s");
            /// Minimum time at the reduced window in PROBE_RTT; zero turns the mode off.
            probe_rtt_duration: number(200.0, (0.0, 10_000.0), "ms");
            /// Minimum time from one PROBE_DOWN to the next probe.
            probe_wait: number(2.0, (0.0, 1e6), "s");
            /// Maximum random addition to `probe_wait`.
            probe_wait_spread: number(1.0, (0.0, 1e6), "s");
            /// Maximum rounds to the next probe, since Reno needs as many as its window has packets.
            probe_wait_rounds: integer(63, (1, 1_000_000), "rounds");
            /// Length of the maximum filter of ACK aggregation.
            extra_acked_window: integer(10, (1, 1000), "rounds");
            PACING_MARGIN;
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Bbr3::new(Bbr3Parameters::from(p)))),
};

/// Parameters of BBR v3, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr3Parameters {
    pub startup_pacing_gain: f64,
    pub drain_pacing_gain: f64,
    pub down_pacing_gain: f64,
    pub up_pacing_gain: f64,
    pub cwnd_gain: f64,
    pub up_cwnd_gain: f64,
    pub probe_rtt_cwnd_gain: f64,
    pub loss_threshold: f64,
    pub beta: f64,
    pub headroom: f64,
    pub min_rtt_window: TimeSpan,
    pub probe_rtt_interval: TimeSpan,
    pub probe_rtt_duration: TimeSpan,
    /// Seconds.
    pub probe_wait: f64,
    /// Seconds.
    pub probe_wait_spread: f64,
    pub probe_wait_rounds: u64,
    pub extra_acked_window: u64,
    pub pacing_margin: f64,
}

impl From<&Parameters> for Bbr3Parameters {
    fn from(p: &Parameters) -> Self {
        Self {
            startup_pacing_gain: p.number("startup_pacing_gain"),
            drain_pacing_gain: p.number("drain_pacing_gain"),
            down_pacing_gain: p.number("down_pacing_gain"),
            up_pacing_gain: p.number("up_pacing_gain"),
            cwnd_gain: p.number("cwnd_gain"),
            up_cwnd_gain: p.number("up_cwnd_gain"),
            probe_rtt_cwnd_gain: p.number("probe_rtt_cwnd_gain"),
            loss_threshold: p.number("loss_threshold"),
            beta: p.number("beta"),
            headroom: p.number("headroom"),
            min_rtt_window: TimeSpan::from_secs_f64(p.number("min_rtt_window")),
            probe_rtt_interval: TimeSpan::from_secs_f64(p.number("probe_rtt_interval")),
            probe_rtt_duration: TimeSpan::from_secs_f64(p.number("probe_rtt_duration") / 1e3),
            probe_wait: p.number("probe_wait"),
            probe_wait_spread: p.number("probe_wait_spread"),
            probe_wait_rounds: p.integer("probe_wait_rounds"),
            extra_acked_window: p.integer("extra_acked_window"),
            pacing_margin: p.number("pacing_margin"),
        }
    }
}
