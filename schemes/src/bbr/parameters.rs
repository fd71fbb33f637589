//! The registry entry and its parameters. Defaults are Linux mainline's (`net/ipv4/tcp_bbr.c`).

use ccgym_core::TimeSpan;

use super::Bbr;
use crate::bbr_model::PACING_MARGIN;
use crate::registry::{parameters, Parameter, Parameters, SchemeEntry, SchemeInfo};

const STARTUP_GAIN: Parameter = Parameter::number(
    "startup_gain",
    2.885,
    (1.1, 8.0),
    "",
    "Pacing and window gain of STARTUP; DRAIN paces at its inverse. 2885/1000 is about 2/ln 2, the smallest gain that \
     doubles the delivery rate each round.",
);
const CWND_GAIN: Parameter =
    Parameter::number("cwnd_gain", 2.0, (1.0, 16.0), "BDP", "Window in PROBE_BW, in bandwidth-delay products.");
const BW_WINDOW: Parameter =
    Parameter::integer("bw_window", 10, (1, 1000), "rounds", "Length of the bandwidth filter.");
const PROBE_RTT_INTERVAL: Parameter = Parameter::number(
    "probe_rtt_interval",
    10.0,
    (0.1, 1e6),
    "s",
    "Age of the RTprop estimate that calls for PROBE_RTT.",
);

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "bbr",
        label: "TCP BBR",
        reference: "Cardwell et al., ACM Queue 2016; Linux net/ipv4/tcp_bbr.c; draft-cardwell-iccrg-bbr-00",
        summary: "Paces at the measured bottleneck bandwidth, and probes for more bandwidth and for the min RTT (v1).",
        parameters: parameters! {
            STARTUP_GAIN;
            CWND_GAIN;
            BW_WINDOW;
            PROBE_RTT_INTERVAL;
            /// Minimum time at four packets in flight in PROBE_RTT; zero turns the mode off.
            probe_rtt_duration: number(200.0, (0.0, 10_000.0), "ms");
            PACING_MARGIN;
            /// Weight of measured ACK aggregation in the window; zero turns it off.
            extra_acked_gain: number(1.0, (0.0, 10.0), "");
            /// Detect token-bucket policers and fix the rate at theirs.
            long_term: flag(true);
            /// First phase of each PROBE_BW (0: gain 1.25, 1: 0.75, others 1); random draws one other than 1.
            initial_phase: choice(&["random", "0", "1", "2", "3", "4", "5", "6", "7"]);
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Bbr::new(BbrParameters::from(p)))),
};

/// Parameters of BBR v1, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrParameters {
    /// Pacing and window gain of STARTUP.
    pub startup_gain: f64,
    /// Window gain of PROBE_BW.
    pub cwnd_gain: f64,
    /// Share of the modeled rate at which to pace.
    pub pacing_margin: f64,
    /// Length of the bandwidth filter, packet-timed rounds.
    pub bw_window: u64,
    /// Age of the RTprop estimate after which PROBE_RTT begins.
    pub probe_rtt_interval: TimeSpan,
    /// Minimum time at the minimum window; zero turns PROBE_RTT off.
    pub probe_rtt_duration: TimeSpan,
    /// True to detect policers.
    pub long_term: bool,
    /// First phase of each PROBE_BW; `None`: random.
    pub initial_phase: Option<u8>,
    /// Weight of acknowledgement aggregation in the window.
    pub extra_acked_gain: f64,
}

impl From<&Parameters> for BbrParameters {
    fn from(p: &Parameters) -> Self {
        Self {
            startup_gain: p.number("startup_gain"),
            cwnd_gain: p.number("cwnd_gain"),
            pacing_margin: p.number("pacing_margin"),
            bw_window: p.integer("bw_window"),
            probe_rtt_interval: TimeSpan::from_secs_f64(p.number("probe_rtt_interval")),
            probe_rtt_duration: TimeSpan::from_secs_f64(p.number("probe_rtt_duration") / 1e3),
            long_term: p.flag("long_term"),
            // "random" is the only word; all others are numbers.
            initial_phase: p.word("initial_phase").parse().ok(),
            extra_acked_gain: p.number("extra_acked_gain"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_can_be_fixed() {
        let given = serde_json::json!({"initial_phase": "3"});
        let p = Parameters::resolve(&ENTRY.info, given.as_object().unwrap()).unwrap();
        assert_eq!(BbrParameters::from(&p).initial_phase, Some(3));
    }
}
