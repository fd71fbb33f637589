//! The short-term model: bytes delivered in the last round, and the bounds after losses while the flow is not probing
//! (draft, "When not Probing for Bandwidth"). Bounds last until the next probe.

use ccgym_core::Rate;

use crate::bbr_model::rounds::Rounds;

/// No bound.
pub const UNBOUNDED: u64 = u64::MAX;
const NO_RATE_BOUND: Rate = Rate(UNBOUNDED);

/// The signals of the current round and the bounds. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct ShortTerm {
    /// Max delivery rate of the round.
    rate_latest: Rate,
    /// Max bytes delivered within the flight of one packet in the round.
    pub delivered_latest: u64,
    /// The current round; a loss restarts it.
    pub round: Rounds,
    /// True if a loss was noted in the round.
    pub loss_in_round: bool,
    /// Bound of the rate; [`UNBOUNDED`] if there is none.
    pub rate: Rate,
    /// Bound of the window.
    pub in_flight: u64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self {
            rate_latest: Rate::ZERO,
            delivered_latest: 0,
            round: Rounds::default(),
            loss_in_round: false,
            rate: NO_RATE_BOUND,
            in_flight: UNBOUNDED,
        }
    }
}

/// The fields of one sample that this model uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Delivery rate.
    pub rate: Rate,
    /// Bytes delivered within the flight of its packet.
    pub delivered: u64,
    /// Delivered count when its packet left.
    pub prior_delivered: u64,
}

impl ShortTerm {
    /// Note a loss. The first of a round begins a new one: packets sent before do not show the reaction to it.
    pub const fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.round.restart(delivered);
        }
        self.loss_in_round = true;
    }

    /// Update at the start of an acknowledgement.
    #[inline]
    pub fn observe(&mut self, sample: &Delivery, delivered: u64) {
        self.rate_latest = self.rate_latest.max(sample.rate);
        self.delivered_latest = self.delivered_latest.max(sample.delivered);
        self.round.on_sample(sample.prior_delivered, delivered);
    }

    /// Update at the end of an acknowledgement: the next round begins with its sample.
    #[inline]
    pub const fn advance(&mut self, sample: &Delivery) {
        if self.round.ended {
            self.rate_latest = sample.rate;
            self.delivered_latest = sample.delivered;
        }
    }

    /// Tighten the bounds after a round with loss outside a probe: from the current bounds, or `max_rate` and `cwnd`,
    /// to the delivered values, by the factor `beta` at most.
    pub fn tighten(&mut self, max_rate: Rate, cwnd: u64, beta: f64) {
        if self.rate == NO_RATE_BOUND {
            self.rate = max_rate;
        }
        if self.in_flight == UNBOUNDED {
            self.in_flight = cwnd;
        }
        self.rate = self.rate_latest.max(self.rate.scaled(beta));
        self.in_flight = self.delivered_latest.max((self.in_flight as f64 * beta) as u64);
    }

    /// Reset the round's signals.
    pub const fn reset_signals(&mut self) {
        self.loss_in_round = false;
        self.rate_latest = Rate::ZERO;
        self.delivered_latest = 0;
    }

    /// Remove the bounds.
    pub const fn unbind(&mut self) {
        self.rate = NO_RATE_BOUND;
        self.in_flight = UNBOUNDED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Rate = Rate(10_000_000);

    fn delivery(mbps: u64, delivered: u64, prior_delivered: u64) -> Delivery {
        Delivery { rate: Rate(mbps * 1_000_000), delivered, prior_delivered }
    }

    #[test]
    fn bounds_after_a_round_with_loss() {
        // (rate delivered in Mbit/s, bytes delivered) → (bound of the rate, of the window) from 10 Mbit/s and 100 000.
        for (mbps, delivered, rate, in_flight) in [
            (8, 90_000, 8_000_000, 90_000), // What was delivered …
            (2, 10_000, 7_000_000, 70_000), // … but no less than 0.7 of what was.
            (12, 10_000, 12_000_000, 70_000),
        ] {
            let mut model = ShortTerm::default();
            model.observe(&delivery(mbps, delivered, 0), 0);
            model.tighten(MAX, 100_000, 0.7);
            assert_eq!((model.rate, model.in_flight), (Rate(rate), in_flight));
        }
    }

    #[test]
    fn a_second_round_continues_from_the_first() {
        let mut model = ShortTerm::default();
        model.tighten(MAX, 100_000, 0.7);
        model.tighten(MAX, 100_000, 0.7);
        assert_eq!((model.rate, model.in_flight), (Rate(4_900_000), 49_000));
        model.unbind();
        assert_eq!((model.rate.min(MAX), model.in_flight), (MAX, UNBOUNDED));
    }

    #[test]
    fn a_round_begins_with_its_first_loss_and_ends_with_a_packet_sent_after_it() {
        let mut model = ShortTerm::default();
        model.note_loss(5_000);
        model.observe(&delivery(1, 1_000, 4_999), 6_000);
        assert!(!model.round.ended);
        model.note_loss(6_000);
        model.observe(&delivery(1, 1_000, 5_000), 7_000);
        assert!(model.round.ended, "the second loss does not put the end off");
        model.observe(&delivery(1, 1_000, 6_999), 8_000);
        assert!(!model.round.ended);
    }

    #[test]
    fn signals_are_the_maximum_of_a_round() {
        let mut model = ShortTerm::default();
        model.note_loss(5_000);
        for (mbps, delivered, prior) in [(3, 30, 1_000), (1, 10, 2_000), (2, 20, 5_000)] {
            let sample = delivery(mbps, delivered, prior);
            model.observe(&sample, 6_000);
            assert_eq!(model.delivered_latest, 30);
            model.advance(&sample);
        }
        assert_eq!((model.rate_latest, model.delivered_latest), (Rate(2_000_000), 20), "a new round");
    }
}
