//! Misbehaving receivers: they send false acknowledgements to get more than their share of a link.

use std::collections::VecDeque;

use crate::packet::Ack;
use crate::sender::HANDSHAKE;
use crate::units::{TimeSpan, Timestamp};

/// Misbehavior of a receiver; none by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misbehavior {
    /// Number of copies of each acknowledgement: ACK division and `DupACK` spoofing (Savage et al. 1999), as far as
    /// acknowledgements of whole packets can express them.
    pub copies: u32,
    /// Optimistic acknowledgements (Savage et al. 1999, RFC 9000 §21.4): with each packet it acknowledges as many
    /// further ones as arrived in the latest time of this length. They hide loss, too.
    pub ahead: TimeSpan,
    /// True to acknowledge all packets up to the newest, and to report no mark.
    pub hide_loss: bool,
}

impl Default for Misbehavior {
    fn default() -> Self {
        Self { copies: 1, ahead: TimeSpan::ZERO, hide_loss: false }
    }
}

/// A misbehaving receiver: it changes the acknowledgements of an honest one.
#[derive(Clone, Debug)]
pub struct MisbehavingReceiver {
    behavior: Misbehavior,
    /// Arrivals within the latest [`Misbehavior::ahead`].
    arrivals: VecDeque<Timestamp>,
}

impl MisbehavingReceiver {
    /// Make one with this behavior, if it is not honest.
    #[must_use]
    pub fn new(behavior: Misbehavior) -> Option<Self> {
        (behavior != Misbehavior::default()).then(|| Self { behavior, arrivals: VecDeque::new() })
    }

    /// Return the number of copies of each acknowledgement.
    #[must_use]
    pub const fn copies(&self) -> u32 {
        self.behavior.copies
    }

    /// Process a data packet that arrives at `now`.
    pub fn on_data(&mut self, now: Timestamp) {
        if self.behavior.ahead > TimeSpan::ZERO {
            self.arrivals.push_back(now);
            self.forget(now);
        }
    }

    /// Falsify an honest acknowledgement that leaves at `now`.
    #[must_use]
    pub fn falsified(&mut self, now: Timestamp, honest: Ack) -> Ack {
        if honest.trigger == HANDSHAKE || !(self.behavior.hide_loss || self.behavior.ahead > TimeSpan::ZERO) {
            return honest;
        }
        self.forget(now);
        // A packet alone does not mean that others are in flight, which must not be acknowledged before they are sent.
        let further = self.arrivals.len().saturating_sub(1) as u64;
        let mut forged = honest;
        forged.claim_all_up_to(honest.largest + further);
        if further > 0 {
            // The RTT is that of the newest packet: it looks shorter than it is.
            forged.trigger = forged.largest;
        }
        forged.ce_total = 0;
        forged
    }

    fn forget(&mut self, now: Timestamp) {
        while self.arrivals.front().is_some_and(|at| *at + self.behavior.ahead < now) {
            self.arrivals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, Packet};
    use crate::receiver::{Receiver, ReceiverConfig};

    /// Return the acknowledgements of such a receiver for packets that arrive, one a millisecond: trigger, first and
    /// last number, marks.
    fn said(behavior: Misbehavior, arriving: &[u64]) -> Vec<(u64, u64, u64, u32)> {
        let mut honest = Receiver::new(ReceiverConfig::default());
        let mut misbehaving = MisbehavingReceiver::new(behavior).expect("a lie");
        let answer = |(i, number): (usize, &u64)| {
            let now = Timestamp::from_millis(i as u64);
            let ecn = if i == 1 { Ecn::Ce } else { Ecn::Ect0 };
            let packet = Packet { number: *number, segment: *number, ecn, size: 1500, ..Packet::default() };
            misbehaving.on_data(now);
            let ack = misbehaving.falsified(now, honest.on_data(now, &packet).1.expect("each is acknowledged"));
            (ack.trigger, ack.range(0).first, ack.range(0).last, ack.ce_total)
        };
        arriving.iter().enumerate().map(answer).collect()
    }

    #[test]
    fn loss_and_marks_are_hidden() {
        let behavior = Misbehavior { hide_loss: true, ..Misbehavior::default() };
        assert_eq!(said(behavior, &[0, 3, 4]), [(0, 0, 0, 0), (3, 0, 3, 0), (4, 0, 4, 0)]);
    }

    #[test]
    fn packets_in_flight_are_acknowledged() {
        let behavior = Misbehavior { ahead: TimeSpan::from_millis(2), ..Misbehavior::default() };
        assert_eq!(said(behavior, &[0, 1, 3, 4]), [(0, 0, 0, 0), (2, 0, 2, 0), (5, 0, 5, 0), (6, 0, 6, 0)]);
    }

    #[test]
    fn copies_are_honest() {
        let behavior = Misbehavior { copies: 8, ..Misbehavior::default() };
        assert_eq!(said(behavior, &[0, 1, 3]), [(0, 0, 0, 0), (1, 0, 1, 1), (3, 3, 3, 1)]);
        assert!(MisbehavingReceiver::new(Misbehavior::default()).is_none());
    }
}
