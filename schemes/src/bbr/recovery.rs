//! The window under loss: packet conservation for one round, then the model's window, then the window before the loss.
//!
//! BBR v1 does not take loss as a congestion signal. It limits the window for a round, in case a full buffer caused the
//! loss.

use crate::bbr_model::window::PriorWindow;

/// Min window after losses, packets, as for every scheme here (the kernel: one).
const MIN_CONSERVED: u64 = 2;

/// Congestion state of the flow, as the transport keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The fields of one acknowledgement that recovery uses. Sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryFacts {
    /// Newly acknowledged.
    pub acked: u64,
    /// Newly lost.
    pub lost: u64,
    /// In flight after both.
    pub in_flight: u64,
    /// True if a recovery episode begins here.
    pub entered: bool,
    /// True if the flow is in recovery.
    pub in_recovery: bool,
    /// Size of one packet.
    pub mss: u64,
}

/// Decision of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The window, bytes.
    pub cwnd: u64,
    /// True if the window is final; otherwise the model changes it further.
    pub conserved: bool,
    /// True if a new round starts with this acknowledgement.
    pub starts_round: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    state: State,
    conserving: bool,
    /// The window to return to.
    pub prior: PriorWindow,
}

impl Recovery {
    /// Save the window before an episode, or PROBE_RTT, reduces it.
    pub fn save(&mut self, cwnd: u64, in_probe_rtt: bool) {
        self.prior.save(cwnd, self.state != State::Open || in_probe_rtt);
    }

    /// End the packet conservation after a packet-timed round.
    #[inline]
    pub const fn on_round(&mut self) {
        self.conserving = false;
    }

    /// Handle an expired retransmission timer.
    pub const fn on_timeout(&mut self) {
        self.state = State::Loss;
    }

    /// Return the window after one acknowledgement, before the model's changes.
    #[inline]
    pub fn on_ack(&mut self, mut cwnd: u64, facts: &RecoveryFacts) -> Verdict {
        let before = self.state;
        if before == State::Open && !facts.in_recovery && facts.lost == 0 && !self.conserving {
            return Verdict { cwnd, conserved: false, starts_round: false };
        }
        if facts.lost > 0 {
            cwnd = cwnd.saturating_sub(facts.lost).max(MIN_CONSERVED * facts.mss);
        }
        self.state = match (facts.in_recovery, before) {
            (false, _) => State::Open,
            (true, State::Loss) if !facts.entered => State::Loss,
            (true, _) => State::Recovery,
        };
        let entering = self.state == State::Recovery && before != State::Recovery;
        if entering {
            self.conserving = true;
            cwnd = (facts.in_flight + facts.acked).max(MIN_CONSERVED * facts.mss);
        } else if self.state == State::Open && before != State::Open {
            cwnd = self.prior.restore(cwnd);
            self.conserving = false;
        }
        if self.conserving {
            cwnd = cwnd.max(facts.in_flight + facts.acked);
        }
        Verdict { cwnd, conserved: self.conserving, starts_round: entering }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1500;

    const fn facts(acked: u64, lost: u64, in_flight: u64, in_recovery: bool) -> RecoveryFacts {
        RecoveryFacts {
            acked: acked * MSS,
            lost: lost * MSS,
            in_flight: in_flight * MSS,
            entered: false,
            in_recovery,
            mss: MSS,
        }
    }

    #[test]
    fn conserves_for_a_round_then_grows_then_restores() {
        let mut r = Recovery::default();
        let v = r.on_ack(80 * MSS, &facts(1, 0, 79, false));
        assert_eq!(v, Verdict { cwnd: 80 * MSS, conserved: false, starts_round: false });

        // Entry: window = in flight + acknowledged, at any window before.
        r.save(80 * MSS, false);
        let v = r.on_ack(80 * MSS, &facts(1, 3, 76, true));
        assert_eq!(v, Verdict { cwnd: 77 * MSS, conserved: true, starts_round: true });

        // Within the round: one in for each one out; a loss reduces the window by its size.
        let v = r.on_ack(77 * MSS, &facts(1, 0, 76, true));
        assert_eq!(v, Verdict { cwnd: 77 * MSS, conserved: true, starts_round: false });
        let v = r.on_ack(77 * MSS, &facts(1, 2, 73, true));
        assert_eq!(v, Verdict { cwnd: 75 * MSS, conserved: true, starts_round: false });

        // Next round: the model continues from here.
        r.on_round();
        let v = r.on_ack(75 * MSS, &facts(1, 0, 74, true));
        assert_eq!(v, Verdict { cwnd: 75 * MSS, conserved: false, starts_round: false });

        // Exit: the window before the episode.
        let v = r.on_ack(76 * MSS, &facts(1, 0, 75, false));
        assert_eq!(v, Verdict { cwnd: 80 * MSS, conserved: false, starts_round: false });
    }

    #[test]
    fn losses_never_take_the_last_two_packets() {
        let mut r = Recovery::default();
        assert_eq!(r.on_ack(10 * MSS, &facts(1, 9, 0, true)).cwnd, 2 * MSS);
        let mut r = Recovery::default();
        r.on_timeout();
        assert_eq!(r.on_ack(3 * MSS, &facts(1, 5, 0, true)).cwnd, 2 * MSS);
    }

    #[test]
    fn nested_episodes_keep_the_best_window() {
        let mut r = Recovery::default();
        r.save(80 * MSS, false);
        r.on_ack(80 * MSS, &facts(1, 1, 78, true));
        r.save(40 * MSS, false);
        assert_eq!(r.prior.restore(0), 80 * MSS);
        // PROBE_RTT with its four packets must not replace it either.
        let mut r = Recovery::default();
        r.save(80 * MSS, false);
        r.save(4 * MSS, true);
        assert_eq!(r.prior.restore(0), 80 * MSS);
    }

    #[test]
    fn timeout_restores_after_recovery() {
        let mut r = Recovery::default();
        r.save(80 * MSS, false);
        r.on_timeout();
        let v = r.on_ack(MSS, &facts(1, 0, 0, true));
        assert_eq!(v, Verdict { cwnd: MSS, conserved: false, starts_round: false });
        let v = r.on_ack(8 * MSS, &facts(1, 0, 7, false));
        assert_eq!(v.cwnd, 80 * MSS);
    }
}
