//! Computes pacing rate, quantum and window from the model (draft, "Updating Control Parameters").

use ccgym_core::{AckEvent, Rate};

use super::state::State;
use super::Bbr3;
use crate::bbr_model::bandwidth::product;
use crate::bbr_model::{window, MIN_WINDOW};

/// Duration of a quantum at the pacing rate, ms.
const QUANTUM_MS: u64 = 1;
/// Bounds of a quantum: packets and bytes.
const MIN_QUANTUM_PACKETS: u64 = 2;
const MAX_QUANTUM_BYTES: u64 = 64 * 1024;
/// Quanta that the offloads of sender and receiver hold (draft, "TCP Offload Budget").
const OFFLOAD_QUANTA: u64 = 3;
/// Addition in PROBE_UP, so that even a tiny pipe has more in flight. Packets.
const PROBE_UP_EXTRA: u64 = 2;

/// Return the bytes that leave back to back at `rate`.
pub(super) fn quantum(rate: Rate, mss: u64) -> u64 {
    (rate.0 / 8 * QUANTUM_MS / 1000).min(MAX_QUANTUM_BYTES).max(MIN_QUANTUM_PACKETS * mss)
}

impl Bbr3 {
    /// Return the gains of pacing and of the window in the current state.
    pub(super) fn gains(&self) -> (f64, f64) {
        let p = &self.parameters;
        match self.state {
            State::Startup => (p.startup_pacing_gain, p.cwnd_gain),
            State::Drain => (p.drain_pacing_gain, p.cwnd_gain),
            State::ProbeDown => (p.down_pacing_gain, p.cwnd_gain),
            State::ProbeCruise | State::ProbeRefill => (1.0, p.cwnd_gain),
            State::ProbeUp => (p.up_pacing_gain, p.up_cwnd_gain),
            State::ProbeRtt => (1.0, p.probe_rtt_cwnd_gain),
        }
    }

    pub(super) fn pace(&mut self, gain: f64) {
        if self.pacing.follow(self.bandwidth, gain, self.full_pipe_once) {
            self.quantum = quantum(self.pacing.rate(), self.mss);
        }
    }

    /// Return `gain` BDPs at `bandwidth`; the initial window while the RTT is unknown.
    pub(super) fn products_of(&self, bandwidth: Rate, gain: f64) -> u64 {
        match self.min_rtt.get() {
            None => self.initial_window,
            Some(rtt) => product(bandwidth, rtt, gain) as u64,
        }
    }

    /// Return `gain` BDPs at the current bandwidth.
    pub(super) fn products(&self, gain: f64) -> u64 {
        self.products_of(self.bandwidth, gain)
    }

    /// Raise `bytes` to the min that offloads and delayed acknowledgements need.
    pub(super) fn with_budget(&self, bytes: u64) -> u64 {
        let floor = (OFFLOAD_QUANTA * self.quantum).max(MIN_WINDOW * self.mss);
        let extra = if self.state == State::ProbeUp { PROBE_UP_EXTRA * self.mss } else { 0 };
        bytes.max(floor) + extra
    }

    /// Return the target in flight: a BDP, or the window if congestion reduced it below that.
    pub(super) fn target_in_flight(&self) -> u64 {
        self.products(1.0).min(self.cwnd)
    }

    pub(super) fn headroom_bound(&self) -> u64 {
        self.long_term.with_headroom(self.parameters.headroom, self.mss, MIN_WINDOW * self.mss)
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.products(self.parameters.probe_rtt_cwnd_gain).max(MIN_WINDOW * self.mss)
    }

    pub(super) fn set_cwnd(&mut self, event: &AckEvent<'_>) {
        let (_, gain) = self.gains();
        let max_window = self.with_budget(self.products(gain) + self.extra_acked());
        let early = event.delivered < self.initial_window;
        let cwnd = window::toward(max_window, self.cwnd, event.acked_bytes, self.full_pipe_once, early);
        self.cwnd = cwnd.max(MIN_WINDOW * self.mss);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_cwnd();
    }

    fn bound_cwnd(&mut self) {
        let long_term = match self.state {
            State::ProbeDown | State::ProbeRefill | State::ProbeUp => self.long_term.bound,
            State::ProbeRtt | State::ProbeCruise => self.headroom_bound(),
            State::Startup | State::Drain => u64::MAX,
        };
        let bound = long_term.min(self.short_term.in_flight).max(MIN_WINDOW * self.mss);
        self.cwnd = self.cwnd.min(bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_lasts_a_millisecond() {
        for (mbps, bytes) in [(0.5, 3_000), (24.0, 3_000), (80.0, 10_000), (1000.0, 65_536)] {
            assert_eq!(quantum(Rate::from_mbps(mbps), 1500), bytes, "{mbps} Mbit/s");
        }
    }
}
