//! Packet-timed rounds: one ends with the acknowledgement of a packet that left after it began.

/// The rounds passed and the one that runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Rounds passed.
    pub count: u64,
    /// Whether the latest acknowledgement ended one.
    pub ended: bool,
    /// Delivered count that an acknowledged packet must have been stamped with to end it.
    ends_at: u64,
}

impl Rounds {
    /// A round begins now, with `delivered` bytes arrived.
    pub const fn restart(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }

    /// A packet that left when `prior_delivered` bytes had arrived is acknowledged now that `delivered` have. Returns
    /// whether this ends the round.
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
