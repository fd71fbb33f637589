//! BBR version 3 (draft-ietf-ccwg-bbr-06, July 2026, and the corrections in its repository up to 2026-08-03).
//!
//! Version 1 ignores loss; version 3 adds two bounds to the model. A probe for bandwidth with too much loss sets the
//! long-term bound of the bytes in flight; loss at other times sets the short-term bounds of rate and window, until the
//! next probe. One file per part of the model; this one calls them in the draft's order.
//!
//! ECN is left out, as in the draft. Known differences: see `docs/schemes/bbr3.md`.

mod congestion;
mod decision;
mod long_term;
mod min_rtt;
mod parameters;
mod probe_bw;
mod recovery;
mod send_history;
mod startup_loss;
mod state;

#[cfg(test)]
mod tests;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, Rng, TimeSpan, TimeoutEvent, Timestamp};

use crate::bbr_model::ack_excess::AckExcess;
use crate::bbr_model::bandwidth::{delivery_rate, MaxBandwidth};
use crate::bbr_model::capabilities;
use crate::bbr_model::full_pipe::FullPipe;
use crate::bbr_model::pacing::Pacing;
use crate::bbr_model::probe_rtt::{ProbeRtt, Progress};
use crate::bbr_model::rounds::Rounds;
use crate::bbr_model::window::PriorWindow;
use crate::filters::max_of_rounds::MaxOfRounds;
use congestion::{Delivery, ShortTerm, UNBOUNDED};
use decision::quantum;
use long_term::LongTerm;
use min_rtt::MinRtt;
pub use parameters::{Bbr3Parameters, ENTRY};
use recovery::Undo;
use send_history::SendHistory;
use startup_loss::LossRanges;
use state::{AckPhase, State};

/// Age at which a sample leaves the bandwidth filter: it holds the current cycle and the previous one.
const BANDWIDTH_CYCLES: u64 = 1;
/// Max rounds of DRAIN.
const MAX_DRAIN_ROUNDS: u64 = 3;

/// Measurements of one acknowledgement (the draft's `RS`); zero without a rate sample.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    delivery: Delivery,
    lost: u64,
    in_flight_at_send: u64,
    app_limited: bool,
}

#[derive(Clone, Debug)]
pub struct Bbr3 {
    parameters: Bbr3Parameters,
    rng: Rng,
    mss: u64,
    initial_window: u64,
    state: State,

    // The model.
    max_bandwidth: MaxBandwidth,
    /// The current bandwidth: the filter's, bounded by the short-term model.
    bandwidth: Rate,
    min_rtt: MinRtt,
    short_term: ShortTerm,
    long_term: LongTerm,
    ack_excess: AckExcess,
    extra_acked: MaxOfRounds,
    extra_acked_in_startup: MaxOfRounds,
    history: SendHistory,
    /// Bytes delivered since the flow started, at the latest event.
    delivered: u64,

    rounds: Rounds,

    // States.
    full_pipe: FullPipe,
    /// True once the pipe was full.
    full_pipe_once: bool,
    loss_ranges: LossRanges,
    drain_start_round: u64,
    probe_rtt: ProbeRtt,

    // The cycle of PROBE_BW.
    ack_phase: AckPhase,
    /// Cycles passed: the time of the bandwidth filter.
    cycles: u64,
    cycle_start: Timestamp,
    probe_wait: TimeSpan,
    rounds_since_probe: u64,
    /// True while losses are of packets of a probe that has no result yet.
    samples_answer_probe: bool,
    previous_probe_too_high: bool,
    /// True if the latest probe stopped at the level of the previous losses.
    previous_probe_cautious: bool,

    // Recovery.
    in_recovery: bool,
    after_timeout: bool,
    prior_cwnd: PriorWindow,
    undo: Undo,

    // The decision.
    cwnd: u64,
    pacing: Pacing,
    quantum: u64,
}

impl Bbr3 {
    /// Make a flow; `init` gives it its context.
    pub fn new(parameters: Bbr3Parameters) -> Self {
        Self {
            parameters,
            rng: Rng::stream(0, "bbr3", 0),
            mss: 1,
            initial_window: 0,
            state: State::Startup,
            max_bandwidth: MaxBandwidth::new(BANDWIDTH_CYCLES),
            bandwidth: Rate::ZERO,
            min_rtt: MinRtt::new(Timestamp::ZERO),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            ack_excess: AckExcess::new(Timestamp::ZERO),
            extra_acked: MaxOfRounds::new(parameters.extra_acked_window),
            extra_acked_in_startup: MaxOfRounds::new(1),
            history: SendHistory::default(),
            delivered: 0,
            rounds: Rounds::default(),
            full_pipe: FullPipe::default(),
            full_pipe_once: false,
            loss_ranges: LossRanges::default(),
            drain_start_round: 0,
            probe_rtt: ProbeRtt::new(parameters.probe_rtt_duration),
            ack_phase: AckPhase::Idle,
            cycles: 0,
            cycle_start: Timestamp::ZERO,
            probe_wait: TimeSpan::ZERO,
            rounds_since_probe: 0,
            samples_answer_probe: false,
            previous_probe_too_high: false,
            previous_probe_cautious: false,
            in_recovery: false,
            after_timeout: false,
            prior_cwnd: PriorWindow::default(),
            undo: Undo::default(),
            cwnd: 0,
            pacing: Pacing::new(parameters.pacing_margin),
            quantum: 0,
        }
    }

    /// Return the bytes of acknowledgement aggregation; STARTUP, whose rate still grows, uses the max of one round.
    fn extra_acked(&self) -> u64 {
        if self.full_pipe_once {
            self.extra_acked.get()
        } else {
            self.extra_acked_in_startup.get()
        }
    }

    const fn start_round(&mut self) {
        self.rounds.restart(self.delivered);
    }

    // --- the model ---------------------------------------------------------------------------------------------

    fn sample(&self, event: &AckEvent<'_>) -> Option<Sample> {
        event.rate_sample.map(|s| Sample {
            delivery: Delivery { rate: delivery_rate(s), delivered: s.delivered, prior_delivered: s.prior_delivered },
            lost: s.lost,
            in_flight_at_send: s.in_flight_at_send,
            app_limited: s.app_limited || self.probe_rtt.was_limited(s.prior_delivered),
        })
    }

    fn update_aggregation(&mut self, event: &AckEvent<'_>) {
        let excess = self.ack_excess.on_ack(event.now, event.acked_bytes, self.bandwidth).min(self.cwnd);
        self.extra_acked.update(self.rounds.count, excess);
        self.extra_acked_in_startup.update(self.rounds.count, excess);
    }

    fn update_model(&mut self, event: &AckEvent<'_>, sample: &Sample) {
        self.short_term.observe(&sample.delivery, event.delivered);
        if self.rounds.on_sample(sample.delivery.prior_delivered, self.delivered) {
            self.rounds_since_probe += 1;
        }
        self.max_bandwidth.update(self.cycles, sample.delivery.rate, sample.app_limited);
        let loss_in_round = self.short_term.loss_in_round;
        if self.short_term.round.ended {
            if loss_in_round && !self.state.probing() {
                self.short_term.tighten(self.max_bandwidth.get(), self.cwnd, self.parameters.beta);
            }
            self.short_term.loss_in_round = false;
        }
        self.update_aggregation(event);
        if self.rounds.ended {
            self.full_pipe.on_round(sample.delivery.rate, sample.app_limited);
            self.full_pipe_once |= self.full_pipe.reached();
        }
        self.check_startup_loss(sample, loss_in_round);
        self.check_drain(event);
        self.update_cycle(event, sample);
    }

    // --- states ------------------------------------------------------------------------------------------------

    /// Set the state; tests and debug builds check that the transition is allowed.
    fn transition_to(&mut self, state: State) {
        let allowed = !cfg!(any(test, debug_assertions)) || self.state.may_become(state);
        assert!(allowed, "BBRv3 went from {:?} to {state:?}", self.state);
        self.state = state;
    }

    fn check_drain(&mut self, event: &AckEvent<'_>) {
        if self.state == State::Startup && self.full_pipe_once {
            self.transition_to(State::Drain);
            self.drain_start_round = self.rounds.count;
        }
        if self.state == State::Drain
            && (event.in_flight <= self.with_budget(self.products(1.0))
                || self.rounds.count > self.drain_start_round + MAX_DRAIN_ROUNDS)
        {
            self.start_down(event.now);
        }
    }

    fn check_probe_rtt(&mut self, event: &AckEvent<'_>, expired: bool) {
        if self.state != State::ProbeRtt && self.probe_rtt.is_due(expired) {
            self.transition_to(State::ProbeRtt);
            self.save_cwnd();
            self.probe_rtt.enter();
            self.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            match self.probe_rtt.on_ack(event, self.probe_rtt_window(), self.rounds.ended) {
                Progress::Waiting => {}
                Progress::RoundBegins => self.start_round(),
                Progress::Done => self.leave_probe_rtt(event.now),
            }
        }
        if event.acked_bytes > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    fn leave_probe_rtt(&mut self, now: Timestamp) {
        self.min_rtt.renew(now);
        self.restore_cwnd();
        self.short_term.unbind();
        if self.full_pipe_once {
            // In flight is below a BDP already.
            self.start_down(now);
            self.start_cruise();
        } else {
            self.transition_to(State::Startup);
        }
    }

    fn pace_by_rtt(&mut self, srtt: Option<TimeSpan>) {
        if self.pacing.start(self.initial_window, srtt, self.parameters.startup_pacing_gain) {
            self.quantum = quantum(self.pacing.rate(), self.mss);
        }
    }
}

impl CongestionControl for Bbr3 {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss.max(1);
        self.initial_window = context.initial_window;
        self.cwnd = context.initial_window;
        self.rng = context.rng;
        self.min_rtt = MinRtt::new(context.now);
        self.ack_excess = AckExcess::new(context.now);
        self.pace_by_rtt(None);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.min_rtt.start(now, rtt_sample);
        self.pace_by_rtt(Some(rtt_sample));
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.delivered = event.delivered;
        self.history.on_delivered(event.now, event.delivered);
        if event.entered_recovery {
            self.save_for_undo();
        }
        for packet in event.lost {
            self.on_lost_packet(event.now, packet);
        }
        let was_in_recovery = self.in_recovery;
        self.in_recovery = event.in_recovery;
        self.after_timeout &= event.in_recovery && !event.entered_recovery;
        // Losses that a timer detected reach the rest of the model with the next acknowledgement.
        if event.acked_packets == 0 {
            return;
        }
        self.rounds.ended = false;
        self.short_term.round.ended = false;
        let sample = self.sample(event);
        if let Some(sample) = &sample {
            self.update_model(event, sample);
        }
        let expired = self.min_rtt.update(
            event.now,
            event.rtt_sample,
            self.parameters.probe_rtt_interval,
            self.parameters.min_rtt_window,
        );
        self.check_probe_rtt(event, expired);
        if let Some(sample) = &sample {
            self.short_term.advance(&sample.delivery);
        }
        self.bandwidth = self.max_bandwidth.get().min(self.short_term.rate);

        if self.pacing.awaits_rtt() && event.rtt.samples() > 0 {
            self.pace_by_rtt(Some(event.rtt.smoothed()));
        }
        self.pace(self.gains().0);
        if was_in_recovery && !self.in_recovery {
            self.restore_cwnd();
        }
        self.set_cwnd(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.save_for_undo();
        self.in_recovery = true;
        self.after_timeout = true;
        for packet in event.lost {
            self.on_lost_packet(event.now, packet);
        }
        // Nothing is in flight any more; from one packet the window grows back to the model's.
        self.cwnd = self.mss;
    }

    fn on_spurious_loss(&mut self, event: &SpuriousLossEvent) {
        // A REFILL that begins now lasts until packets sent from now on arrive.
        self.delivered = event.delivered;
        self.undo_losses();
    }

    fn on_app_limited(&mut self, now: Timestamp, in_flight: u64) {
        self.history.on_app_limited(now, self.delivered, in_flight);
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        self.probe_rtt.idle_restart = true;
        self.ack_excess.restart(now);
        if self.state.in_probe_bw() {
            // Nothing is queued: neither probing nor draining makes sense.
            self.pace(1.0);
        } else if self.state == State::ProbeRtt && self.probe_rtt.time_is_up(now) {
            self.leave_probe_rtt(now);
        }
    }

    fn control(&self) -> Control {
        Control { pacing_rate: self.pacing.rate(), ..Control::window(self.cwnd) }
    }

    fn send_quantum(&self) -> u64 {
        self.quantum
    }

    fn state(&self) -> &'static str {
        self.state.name()
    }

    fn observables(&self) -> Observables {
        let packets = |bytes: u64| if bytes == UNBOUNDED { f64::NAN } else { bytes as f64 / self.mss as f64 };
        let bounded = self.short_term.rate.0 != UNBOUNDED;
        let (pacing_gain, cwnd_gain) = self.gains();
        vec![
            ("max_bw_mbps", self.max_bandwidth.get().as_mbps()),
            ("bw_shortterm_mbps", if bounded { self.short_term.rate.as_mbps() } else { f64::NAN }),
            ("min_rtt_ms", self.min_rtt.get().map_or(f64::NAN, TimeSpan::as_millis_f64)),
            ("pacing_gain", pacing_gain),
            ("cwnd_gain", cwnd_gain),
            ("rounds", self.rounds.count as f64),
            ("full_bw_reached", f64::from(u8::from(self.full_pipe_once))),
            ("inflight_longterm_packets", packets(self.long_term.bound)),
            ("inflight_shortterm_packets", packets(self.short_term.in_flight)),
            ("extra_acked_packets", packets(self.extra_acked())),
            ("idle_restart", f64::from(u8::from(self.probe_rtt.idle_restart))),
        ]
    }
}
