//! Losses: their meaning for a probe, the end of STARTUP, and the undo if they were spurious (draft, "Updating the
//! Model Upon Packet Loss" and "Updating the Model Upon Detecting a Spurious Loss Recovery").

use ccgym_core::congestion_control::LostPacket;
use ccgym_core::{Rate, Timestamp};

use super::long_term::{in_flight_at_loss, too_high};
use super::state::State;
use super::{Bbr3, Sample};

/// State to restore if an episode of loss was spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The state that the losses ended.
    pub state: Option<State>,
    short_term_rate: Rate,
    short_term_in_flight: u64,
    long_term: u64,
}

impl Bbr3 {
    /// Save the window before an episode, or PROBE_RTT, reduces it.
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd.save(self.cwnd, self.in_recovery || self.state == State::ProbeRtt);
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.prior_cwnd.restore(self.cwnd);
    }

    /// Save the state at the start of an episode, which may be spurious.
    pub(super) fn save_for_undo(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            short_term_rate: self.short_term.rate,
            short_term_in_flight: self.short_term.in_flight,
            long_term: self.long_term.bound,
        };
    }

    pub(super) fn on_lost_packet(&mut self, now: Timestamp, packet: &LostPacket) {
        self.history.on_lost(now, packet.bytes);
        self.short_term.note_loss(self.delivered);
        self.loss_ranges.note(packet);
        if !self.samples_answer_probe {
            return;
        }
        let then = self.history.at(packet.sent);
        let lost = self.history.now().lost - then.lost;
        let threshold = self.parameters.loss_threshold;
        if too_high(lost, packet.in_flight_at_send, threshold) {
            let in_flight = in_flight_at_loss(packet.in_flight_at_send, packet.bytes, lost, threshold);
            self.on_probe_too_high(now, in_flight, then.app_limited);
        }
    }

    /// Check losses in STARTUP over a full round of fast recovery, which began with the first of them.
    pub(super) fn check_startup_loss(&mut self, sample: &Sample, loss_in_round: bool) {
        if !self.short_term.round.ended {
            return;
        }
        let enough = self.loss_ranges.enough();
        self.loss_ranges.reset();
        let high = too_high(sample.lost, sample.in_flight_at_send, self.parameters.loss_threshold);
        if self.full_pipe_once || self.after_timeout || !loss_in_round || !enough || !high {
            return;
        }
        self.undo.state = Some(State::Startup);
        self.full_pipe_once = true;
        self.long_term.bound = self.products(1.0).max(self.short_term.delivered_latest);
    }

    /// Restore the state before the latest episode, whose losses were spurious.
    pub(super) fn undo_losses(&mut self) {
        self.restore_cwnd();
        self.short_term.loss_in_round = false;
        self.full_pipe.restart(Rate::ZERO);
        self.short_term.rate = self.short_term.rate.max(self.undo.short_term_rate);
        self.short_term.in_flight = self.short_term.in_flight.max(self.undo.short_term_in_flight);
        self.long_term.bound = self.long_term.bound.max(self.undo.long_term);
        let probing_rtt = self.state == State::ProbeRtt;
        match self.undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe_once = false;
                if !probing_rtt {
                    self.transition_to(State::Startup);
                }
            }
            Some(State::ProbeUp) if self.state != State::ProbeUp && !probing_rtt => self.start_refill(),
            _ => {}
        }
        self.undo.state = None;
    }
}
