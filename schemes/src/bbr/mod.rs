//! BBR version 1: Bottleneck Bandwidth and Round-trip propagation time (Cardwell et al., ACM Queue 2016), with the
//! rules of Linux mainline (`net/ipv4/tcp_bbr.c`) and draft-cardwell-iccrg-bbr-congestion-control-00.
//!
//! One file per phase and per estimator; this one calls them in order. Every acknowledgement updates the model
//! (bandwidth, propagation delay, aggregation, policer), changes the mode, and sets pacing rate and window from both.
//!
//! Known differences from the kernel: gains are `f64` instead of 8-bit fractions (2.885 for 739/256), and packets that
//! left the window but still wait in the pacer count as half a send quantum, since only the transport knows the exact
//! departure time.

mod ack_aggregation;
mod long_term;
mod pacing;
mod parameters;
mod probe_bw;
mod recovery;

#[cfg(test)]
mod tests;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent};
use ccgym_core::rate_sampler::RateSample;
use ccgym_core::units::{float, whole_up};
use ccgym_core::{
    cold_path, AckEvent, CongestionControl, Control, InitContext, Rate, Rng, TimeSpan, TimeoutEvent, Timestamp,
};

use crate::bbr_model::bandwidth::{delivery_rate, product, MaxBandwidth};
use crate::bbr_model::full_pipe::FullPipe;
use crate::bbr_model::pacing::Pacing;
use crate::bbr_model::probe_rtt::{ProbeRtt, Progress};
use crate::bbr_model::rounds::Rounds;
use crate::bbr_model::{capabilities, window, MIN_WINDOW};
use crate::filters::aged_min::AgedMin;
use ack_aggregation::AckAggregation;
use long_term::{LongTerm, PolicerSample};
pub use parameters::{BbrParameters, ENTRY};
use probe_bw::{Cycle, PhaseFacts};
use recovery::{Recovery, RecoveryFacts};

/// Delivered packets before which the window grows regardless of the model (Linux `TCP_INIT_CWND`).
const FIRST_FLIGHT: u64 = 10;
/// Max addition for acknowledgement aggregation to the window, as time at the bandwidth.
const MAX_AGGREGATION: TimeSpan = TimeSpan::from_millis(100);

/// Modes of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Doubling the rate until the pipe is full.
    Startup,
    /// Emptying the queue of STARTUP, at the inverse of its gain, until one BDP is left.
    Drain,
    /// Cycling the gain around the estimated bandwidth.
    ProbeBw,
    /// Emptying the pipe to measure the propagation delay.
    ProbeRtt,
}

impl Mode {
    /// Return the name in the draft.
    const fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Drain => "Drain",
            Self::ProbeBw => "ProbeBW",
            Self::ProbeRtt => "ProbeRTT",
        }
    }

    /// True if `next` may follow (the state machine of Linux `tcp_bbr.c`).
    const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Startup => matches!(self, Self::ProbeRtt),
            Self::Drain => matches!(self, Self::Startup),
            Self::ProbeBw => matches!(self, Self::Drain | Self::ProbeRtt | Self::ProbeBw),
            Self::ProbeRtt => !matches!(self, Self::ProbeRtt),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Bbr {
    parameters: BbrParameters,
    rng: Rng,
    mss: u64,
    initial_window: u64,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,

    // The model.
    bandwidth: MaxBandwidth,
    rtprop: AgedMin,
    aggregation: AckAggregation,
    long_term: LongTerm,
    rounds: Rounds,
    /// Bytes lost since the flow started.
    lost: u64,
    /// Bytes delivered since the flow started, at the latest event.
    delivered: u64,

    // Modes.
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: Recovery,

    // The decision.
    cwnd: u64,
    pacing: Pacing,
    /// Packets that leave back to back.
    quantum: u64,
    /// Bandwidth, RTprop, gain and excess of the model's window, and that window without the quantization budget,
    /// packets.
    window_packets: ((Rate, TimeSpan, f64, u64), u64),
}

impl Bbr {
    /// Make a flow; `init` gives it its context.
    pub fn new(parameters: BbrParameters) -> Self {
        Self {
            parameters,
            rng: Rng::stream(0, "bbr", 0),
            mss: 1,
            initial_window: 0,
            mode: Mode::Startup,
            pacing_gain: parameters.startup_gain,
            cwnd_gain: parameters.startup_gain,
            bandwidth: MaxBandwidth::new(parameters.bw_window),
            rtprop: AgedMin::new(Timestamp::ZERO),
            aggregation: AckAggregation::new(Timestamp::ZERO),
            long_term: LongTerm::default(),
            rounds: Rounds::default(),
            lost: 0,
            delivered: 0,
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::new(parameters.probe_rtt_duration),
            recovery: Recovery::default(),
            cwnd: 0,
            pacing: Pacing::new(parameters.pacing_margin),
            quantum: 1,
            window_packets: ((Rate::ZERO, TimeSpan::ZERO, 0.0, 0), 0),
        }
    }

    /// Return the current bandwidth: a pinned policer rate has priority over the filter.
    #[inline]
    fn modeled_bandwidth(&self) -> Rate {
        self.long_term.pinned().unwrap_or(self.bandwidth.get())
    }

    /// Return `gain` BDPs in whole packets; the initial window while RTprop is unknown.
    #[inline]
    fn bdp_packets(&self, bandwidth: Rate, gain: f64) -> u64 {
        if !self.rtprop.is_known() {
            return self.initial_window / self.mss;
        }
        whole_up(product(bandwidth, self.rtprop.get(), gain) / float(self.mss))
    }

    /// Return `packets` with the quantization budget, in bytes.
    #[inline]
    fn with_budget(&self, packets: u64) -> u64 {
        let probing_up = self.mode == Mode::ProbeBw && self.cycle.probing_up();
        pacing::quantized(packets, self.quantum, probing_up) * self.mss
    }

    /// Return the bytes in flight that keep the pipe full `gain` times.
    #[inline]
    fn flight_target(&self, gain: f64) -> u64 {
        self.with_budget(self.bdp_packets(self.bandwidth.get(), gain))
    }

    /// Return the bytes in the network when the pacer releases the next packet: on average half a quantum's time from
    /// now. A probe includes the quantum sent then.
    #[inline]
    fn in_network(&self, in_flight: u64) -> u64 {
        let half_quantum = self.quantum * self.mss / 2;
        if self.pacing_gain > 1.0 {
            in_flight + half_quantum
        } else {
            in_flight.saturating_sub(half_quantum)
        }
    }

    // --- the model ---------------------------------------------------------------------------------------------

    fn update_bandwidth(&mut self, event: &AckEvent<'_>, sample: &RateSample, limited: bool) {
        if self.rounds.on_sample(sample.prior_delivered, event.delivered) {
            self.recovery.on_round();
        }
        if self.parameters.long_term && (event.lost_bytes > 0 || self.long_term.is_active()) {
            self.watch_policer(event.now, event.lost_bytes > 0, limited);
        }
        self.bandwidth.update(self.rounds.count, delivery_rate(sample), limited);
    }

    fn watch_policer(&mut self, now: Timestamp, new_loss: bool, app_limited: bool) {
        if self.long_term.pinned().is_some() {
            if self.mode == Mode::ProbeBw && self.rounds.ended && self.long_term.on_pinned_round() {
                self.enter_probe_bw(now);
            }
            return;
        }
        self.long_term.update(&PolicerSample {
            now,
            delivered: self.delivered,
            lost: self.lost,
            new_loss,
            round_start: self.rounds.ended,
            app_limited,
        });
    }

    fn update_model(&mut self, event: &AckEvent<'_>) {
        self.rounds.ended = false;
        let sample = event.rate_sample;
        let limited = sample.is_some_and(|s| s.app_limited || self.probe_rtt.was_limited(s.prior_delivered));
        if let Some(sample) = sample {
            self.update_bandwidth(event, sample, limited);
            if self.parameters.extra_acked_gain > 0.0 {
                self.aggregation.on_ack(
                    event.now,
                    event.acked_bytes,
                    self.modeled_bandwidth(),
                    self.cwnd,
                    self.mss,
                    self.rounds.ended,
                );
            }
        }
        if self.mode == Mode::ProbeBw {
            self.update_cycle(event);
        }
        if self.rounds.ended {
            self.full_pipe.on_round(self.bandwidth.get(), limited);
        }
        self.check_drain(event);
        self.update_rtprop(event);
        self.update_gains();
    }

    // --- modes -------------------------------------------------------------------------------------------------

    /// Set the mode; tests and debug builds check that the transition is allowed.
    fn transition_to(&mut self, mode: Mode) {
        let allowed = !cfg!(any(test, debug_assertions)) || self.mode.may_become(mode);
        assert!(allowed, "BBR went from {:?} to {mode:?}", self.mode);
        self.mode = mode;
    }

    fn update_cycle(&mut self, event: &AckEvent<'_>) {
        let gain = if self.cycle.probing_up() { self.pacing_gain } else { 1.0 };
        self.cycle.advance(&PhaseFacts {
            now: event.now,
            rtprop: self.rtprop.get(),
            in_network: self.in_network(event.prior_in_flight),
            target: if self.cycle.has_target() { self.flight_target(gain) } else { 0 },
            lost: event.lost_bytes > 0,
        });
    }

    fn check_drain(&mut self, event: &AckEvent<'_>) {
        if self.mode == Mode::Startup && self.full_pipe.reached() {
            self.transition_to(Mode::Drain);
        }
        if self.mode == Mode::Drain && self.in_network(event.in_flight) <= self.flight_target(1.0) {
            self.enter_probe_bw(event.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Timestamp) {
        self.transition_to(Mode::ProbeBw);
        self.cycle.start(now, self.parameters.initial_phase, &mut self.rng);
    }

    fn update_rtprop(&mut self, event: &AckEvent<'_>) {
        let interval = self.parameters.probe_rtt_interval;
        let expired = self.rtprop.update(event.now, event.rtt_sample, event.ack_delayed, interval);
        if self.mode != Mode::ProbeRtt && self.probe_rtt.is_due(expired) {
            self.transition_to(Mode::ProbeRtt);
            self.recovery.save(self.cwnd, true);
            self.probe_rtt.enter();
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt.on_ack(event, MIN_WINDOW * self.mss, self.rounds.ended) {
                Progress::Waiting => {}
                Progress::RoundBegins => self.rounds.restart(event.delivered),
                Progress::Done => self.leave_probe_rtt(event.now),
            }
        }
        if event.rate_sample.is_some_and(|s| s.delivered > 0) {
            self.probe_rtt.idle_restart = false;
        }
    }

    fn leave_probe_rtt(&mut self, now: Timestamp) {
        self.rtprop.renew(now);
        self.cwnd = self.recovery.prior.restore(self.cwnd);
        if self.full_pipe.reached() {
            self.enter_probe_bw(now);
        } else {
            self.transition_to(Mode::Startup);
        }
    }

    fn update_gains(&mut self) {
        let p = &self.parameters;
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (p.startup_gain, p.startup_gain),
            Mode::Drain => (1.0 / p.startup_gain, p.startup_gain),
            // Behind a policer a probe only causes loss.
            Mode::ProbeBw if self.long_term.pinned().is_some() => (1.0, p.cwnd_gain),
            Mode::ProbeBw => (self.cycle.gain(), p.cwnd_gain),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    // --- the decision ------------------------------------------------------------------------------------------

    fn pace(&mut self, gain: f64) {
        if self.pacing.follow(self.modeled_bandwidth(), gain, self.full_pipe.reached()) {
            self.quantum = pacing::quantum_packets(self.pacing.rate(), self.mss);
        }
    }

    fn pace_by_rtt(&mut self, srtt: Option<TimeSpan>) {
        if self.pacing.start(self.cwnd, srtt, self.parameters.startup_gain * self.parameters.pacing_margin) {
            self.quantum = pacing::quantum_packets(self.pacing.rate(), self.mss);
        }
    }

    fn set_cwnd(&mut self, event: &AckEvent<'_>) {
        let verdict = self.recovery.on_ack(
            self.cwnd,
            &RecoveryFacts {
                acked: event.acked_bytes,
                lost: event.lost_bytes,
                in_flight: event.in_flight,
                entered: event.entered_recovery,
                in_recovery: event.in_recovery,
                mss: self.mss,
            },
        );
        self.cwnd = verdict.cwnd;
        if verdict.starts_round {
            self.rounds.restart(event.delivered);
        }
        if !verdict.conserved {
            let target = self.cwnd_target();
            let early = event.delivered < FIRST_FLIGHT * self.mss;
            let cwnd = window::toward(target, self.cwnd, event.acked_bytes, self.full_pipe.reached(), early);
            self.cwnd = cwnd.max(MIN_WINDOW * self.mss);
        }
        self.cap_for_probe_rtt();
    }

    /// Return the window of the model, bytes.
    #[inline]
    fn cwnd_target(&mut self) -> u64 {
        let bandwidth = self.modeled_bandwidth();
        let excess = if self.full_pipe.reached() { self.aggregation.max_excess() } else { 0 };
        let inputs = (bandwidth, self.rtprop.get(), self.cwnd_gain, excess);
        // They rarely change from one acknowledgement to the next.
        if self.window_packets.0 != inputs {
            cold_path();
            self.window_packets = (inputs, self.bdp_packets(bandwidth, self.cwnd_gain) + self.extra_acked());
        }
        self.with_budget(self.window_packets.1)
    }

    fn cap_for_probe_rtt(&mut self) {
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_WINDOW * self.mss);
        }
    }

    /// Return the addition for acknowledgement aggregation, packets; steady state only.
    #[inline]
    fn extra_acked(&self) -> u64 {
        if !self.full_pipe.reached() || self.parameters.extra_acked_gain <= 0.0 {
            return 0;
        }
        let max_bytes = self.modeled_bandwidth().0 as f64 * MAX_AGGREGATION.0 as f64 / 8e9;
        let excess = self.aggregation.max_excess() as f64 * self.parameters.extra_acked_gain;
        excess.min(max_bytes) as u64 / self.mss
    }
}

impl CongestionControl for Bbr {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss.max(1);
        self.initial_window = context.initial_window;
        self.cwnd = context.initial_window;
        self.rng = context.rng;
        self.rtprop = AgedMin::new(context.now);
        self.aggregation = AckAggregation::new(context.now);
        self.pace_by_rtt(None);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        // The kernel starts its filter and its first pacing rate from the handshake's RTT (`bbr_init`).
        self.rtprop.update(now, Some(rtt_sample), false, TimeSpan::MAX);
        self.pace_by_rtt(Some(rtt_sample));
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.lost += event.lost_bytes;
        self.delivered = event.delivered;
        if event.entered_recovery {
            self.recovery.save(self.cwnd, self.mode == Mode::ProbeRtt);
        }
        // Losses that a timer detected reach the model with the next acknowledgement, as in the kernel.
        if event.acked_packets == 0 {
            return;
        }
        self.update_model(event);
        if self.pacing.awaits_rtt() && event.rtt.samples() > 0 {
            self.pace_by_rtt(Some(event.rtt.smoothed()));
        }
        self.pace(self.pacing_gain);
        self.set_cwnd(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.lost += event.lost.iter().map(|p| p.bytes).sum::<u64>();
        self.recovery.save(self.cwnd, self.mode == Mode::ProbeRtt);
        self.recovery.on_timeout();
        // Nothing is in flight any more; from one packet the window grows back to the model's.
        self.cwnd = self.mss;
        self.full_pipe.on_timeout();
        // A timeout ends a round, and counts as a loss in the policer model.
        self.rounds.ended = true;
        if self.parameters.long_term {
            self.watch_policer(event.now, true, false);
        }
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {
        self.full_pipe.on_spurious_loss();
        self.long_term.reset();
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        self.probe_rtt.idle_restart = true;
        self.aggregation.restart_epoch(now);
        match self.mode {
            // Nothing is queued, so neither probing nor draining makes sense.
            Mode::ProbeBw => self.pace(1.0),
            Mode::ProbeRtt if self.probe_rtt.time_is_up(now) => self.leave_probe_rtt(now),
            _ => {}
        }
    }

    fn control(&self) -> Control {
        Control { pacing_rate: self.pacing.rate(), ..Control::window(self.cwnd) }
    }

    fn send_quantum(&self) -> u64 {
        self.quantum * self.mss
    }

    fn state(&self) -> &'static str {
        self.mode.name()
    }

    fn observables(&self) -> Observables {
        vec![
            ("btl_bw_mbps", self.modeled_bandwidth().as_mbps()),
            ("rtprop_ms", if self.rtprop.is_known() { self.rtprop.get().as_millis_f64() } else { 0.0 }),
            ("pacing_gain", self.pacing_gain),
            ("cwnd_gain", self.cwnd_gain),
            ("cycle_phase", f64::from(self.cycle.phase)),
            ("rounds", self.rounds.count as f64),
            ("full_pipe", f64::from(u8::from(self.full_pipe.reached()))),
            ("long_term_pinned", f64::from(u8::from(self.long_term.pinned().is_some()))),
            ("extra_acked_packets", self.extra_acked() as f64),
        ]
    }
}
