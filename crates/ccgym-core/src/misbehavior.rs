//! Receivers that misbehave in order to get more than their part of a link: they acknowledge what is not true.

use std::collections::VecDeque;

use crate::packet::Ack;
use crate::sender::HANDSHAKE;
use crate::units::{TimeSpan, Timestamp};

/// What a receiver does that it must not; by default nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misbehavior {
    /// Each acknowledgement leaves so many times: ACK division and `DupACK` spoofing (Savage et al. 1999), as far as
    /// acknowledgements of whole packets express them.
    pub copies: u32,
    /// Optimistic acknowledgements (Savage et al. 1999, RFC 9000 §21.4): with each packet as many further ones are
    /// acknowledged as arrived in the latest so much time. They hide loss, too.
    pub ahead: TimeSpan,
    /// All up to the newest packet is acknowledged, and no mark is reported.
    pub hide_loss: bool,
}

impl Default for Misbehavior {
    fn default() -> Self {
        Self { copies: 1, ahead: TimeSpan::ZERO, hide_loss: false }
    }
}

/// One that does: it changes the acknowledgements of an honest receiver.
#[derive(Clone, Debug)]
pub struct MisbehavingReceiver {
    behavior: Misbehavior,
    /// Arrivals within the latest [`Misbehavior::ahead`].
    arrivals: VecDeque<Timestamp>,
}

impl MisbehavingReceiver {
    /// One that behaves so, if that is a lie.
    #[must_use]
    pub fn new(behavior: Misbehavior) -> Option<Self> {
        (behavior != Misbehavior::default()).then(|| Self { behavior, arrivals: VecDeque::new() })
    }

    /// How often each acknowledgement leaves.
    #[must_use]
    pub const fn copies(&self) -> u32 {
        self.behavior.copies
    }

    /// A data packet arrives at `now`.
    pub fn on_data(&mut self, now: Timestamp) {
        if self.behavior.ahead > TimeSpan::ZERO {
            self.arrivals.push_back(now);
            self.forget(now);
        }
    }

    /// What it makes of an honest acknowledgement that leaves at `now`.
    #[must_use]
    pub fn falsified(&mut self, now: Timestamp, honest: Ack) -> Ack {
        if honest.trigger == HANDSHAKE || !(self.behavior.hide_loss || self.behavior.ahead > TimeSpan::ZERO) {
            return honest;
        }
        self.forget(now);
        // A packet alone is no sign that others are under way: what was never sent must not be acknowledged.
        let further = self.arrivals.len().saturating_sub(1) as u64;
        let mut told = honest;
        told.claim_all_up_to(honest.largest + further);
        if further > 0 {
            // The round trip is that of the newest: it looks shorter than it is.
            told.trigger = told.largest;
        }
        told.ce_total = 0;
        told
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

    /// What a receiver that lies so says of the packets that arrive, one a millisecond: trigger, first and last of what
    /// it acknowledges, marks.
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
    fn what_is_under_way_is_acknowledged() {
        let behavior = Misbehavior { ahead: TimeSpan::from_millis(2), ..Misbehavior::default() };
        assert_eq!(said(behavior, &[0, 1, 3, 4]), [(0, 0, 0, 0), (2, 0, 2, 0), (5, 0, 5, 0), (6, 0, 6, 0)]);
    }

    #[test]
    fn copies_say_what_is_true() {
        let behavior = Misbehavior { copies: 8, ..Misbehavior::default() };
        assert_eq!(said(behavior, &[0, 1, 3]), [(0, 0, 0, 0), (1, 0, 1, 1), (3, 3, 3, 1)]);
        assert!(MisbehavingReceiver::new(Misbehavior::default()).is_none());
    }
}
