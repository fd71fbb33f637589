//! PROBE_BW: the cycle DOWN, CRUISE, REFILL, UP, and the bounds that it moves (draft, "ProbeBW Algorithm Details").

use ccgym_core::{AckEvent, TimeSpan, Timestamp};

use super::congestion::UNBOUNDED;
use super::long_term::too_high;
use super::state::{AckPhase, State};
use super::{Bbr3, Sample};

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Timestamp) {
        self.short_term.reset_signals();
        self.long_term.stop();
        // Flows that share a bottleneck must probe at different times.
        self.rounds_since_probe = self.rng.below(2);
        let seconds = self.parameters.probe_wait + self.parameters.probe_wait_spread * self.rng.uniform();
        self.probe_wait = TimeSpan::from_secs_f64(seconds);
        self.cycle_start = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round();
        self.transition_to(State::ProbeDown);
    }

    pub(super) fn start_cruise(&mut self) {
        self.transition_to(State::ProbeCruise);
    }

    pub(super) fn start_refill(&mut self) {
        self.short_term.unbind();
        self.long_term.prepare();
        self.previous_probe_cautious = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.transition_to(State::ProbeRefill);
    }

    fn start_up(&mut self, sample: &Sample) {
        self.ack_phase = AckPhase::Starting;
        self.start_round();
        self.full_pipe.restart(sample.delivery.rate);
        self.transition_to(State::ProbeUp);
        self.long_term.steepen(self.cwnd, self.mss);
    }

    /// Process one acknowledgement in the steady state.
    pub(super) fn update_cycle(&mut self, event: &AckEvent<'_>, sample: &Sample) {
        if !self.full_pipe_once || self.adapt_long_term(event, sample) {
            return;
        }
        match self.state {
            State::ProbeDown => {
                if self.is_time_to_probe(event.now) {
                    self.start_refill();
                } else if self.is_time_to_cruise(event.in_flight) {
                    self.start_cruise();
                }
            }
            State::ProbeCruise if self.is_time_to_probe(event.now) => self.start_refill(),
            State::ProbeRefill if self.rounds.ended => {
                self.samples_answer_probe = true;
                self.start_up(sample);
            }
            State::ProbeUp => self.update_up(event, sample),
            _ => {}
        }
    }

    fn update_up(&mut self, event: &AckEvent<'_>, sample: &Sample) {
        if self.is_time_to_go_down(event, sample) {
            self.previous_probe_too_high = false;
            self.start_down(event.now);
        }
    }

    /// True if it is time to probe: by the clock, or after as many rounds as Reno needs to grow by its window.
    fn is_time_to_probe(&self, now: Timestamp) -> bool {
        let reno_rounds = self.target_in_flight() / self.mss;
        now.since(self.cycle_start) > self.probe_wait
            || self.rounds_since_probe >= reno_rounds.min(self.parameters.probe_wait_rounds)
    }

    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        in_flight <= self.headroom_bound()
            && in_flight <= self.with_budget(self.products_of(self.max_bandwidth.get(), 1.0))
    }

    fn is_time_to_go_down(&mut self, event: &AckEvent<'_>, sample: &Sample) -> bool {
        // After a probe with too much loss the next one stops at the level of that loss.
        if self.previous_probe_too_high && event.in_flight >= self.long_term.bound {
            self.previous_probe_cautious = true;
            return true;
        }
        if event.cwnd_limited && self.cwnd >= self.long_term.bound {
            // Flat because the bound limits the probe: this shows nothing of the path.
            self.full_pipe.restart(sample.delivery.rate);
            return false;
        }
        self.full_pipe.reached()
    }

    /// Follow the acknowledgements of the probe and change the long-term bound. Returns true if it changed the state.
    fn adapt_long_term(&mut self, event: &AckEvent<'_>, sample: &Sample) -> bool {
        if self.ack_phase == AckPhase::Starting && self.rounds.ended {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.rounds.ended {
            self.samples_answer_probe = false;
            self.ack_phase = AckPhase::Idle;
            if self.state.in_probe_bw() {
                if !sample.app_limited {
                    self.cycles += 1;
                }
                if self.previous_probe_cautious && !self.previous_probe_too_high {
                    // The cautious probe met no loss: probe again at once, without stopping short.
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.long_term.bound != UNBOUNDED
            && !too_high(sample.lost, sample.in_flight_at_send, self.parameters.loss_threshold)
        {
            self.long_term.bound = self.long_term.bound.max(sample.in_flight_at_send);
            if self.state == State::ProbeUp {
                self.raise_long_term(event);
            }
        }
        false
    }

    fn raise_long_term(&mut self, event: &AckEvent<'_>) {
        if !event.cwnd_limited || self.cwnd < self.long_term.bound {
            return;
        }
        self.long_term.grow(event.acked_bytes, self.mss);
        if self.rounds.ended {
            self.long_term.steepen(self.cwnd, self.mss);
        }
    }

    /// Handle a lost packet of the probe, sent with `in_flight` bytes out, where losses exceeded the threshold.
    pub(super) fn on_probe_too_high(&mut self, now: Timestamp, in_flight: u64, app_limited: bool) {
        self.previous_probe_too_high = true;
        // One reaction per probe.
        self.samples_answer_probe = false;
        if !app_limited {
            let min_bound = (self.target_in_flight() as f64 * self.parameters.beta) as u64;
            self.long_term.bound = in_flight.max(min_bound);
        }
        if self.state == State::ProbeUp {
            self.undo.state = Some(State::ProbeUp);
            self.start_down(now);
        }
    }
}
