//! Packet-timed rounds: one ends with the acknowledgement of a packet that left after it began.

/// Number of rounds, and the current one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Number of completed rounds.
    pub count: u64,
    /// True if the latest acknowledgement ended a round.
    pub ended: bool,
    /// The round ends with a packet whose stamped delivered count is at least this.
    ends_at: u64,
}

impl Rounds {
    /// Begin a round now, with `delivered` bytes arrived.
    pub const fn restart(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }

    /// Process an acknowledgement, with `delivered` bytes arrived now, of a packet that left when `prior_delivered`
    /// had. Returns true if it ends the round.
    #[inline]
    pub fn on_sample(&mut self, prior_delivered: u64, delivered: u64) -> bool {
        self.ended = prior_delivered >= self.ends_at;
        if self.ended {
            self.restart(delivered);
            self.count += 1;
        }
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_a_packet_that_left_after_it_began() {
        let mut rounds = Rounds::default();
        // Delivered when the packet left, delivered now, whether a round ends.
        for (prior_delivered, delivered, ends) in
            [(0, 1, true), (0, 5, false), (1, 6, true), (5, 7, false), (6, 8, true)]
        {
            assert_eq!(rounds.on_sample(prior_delivered, delivered), ends, "{prior_delivered}");
            assert_eq!(rounds.ended, ends);
        }
        assert_eq!(rounds.count, 3);
        rounds.restart(20);
        assert!(!rounds.on_sample(19, 21) && rounds.on_sample(20, 22));
    }
}
