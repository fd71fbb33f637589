//! PROBE_RTT: a while with little in flight, so that the queue empties and the propagation delay shows.

use ccgym_core::{TimeSpan, Timestamp};

/// Progress of one PROBE_RTT.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeRtt {
    /// When the time at the minimum window is up, once it has begun.
    until: Option<Timestamp>,
    round_done: bool,
    /// Delivered counts (first, last) stamped on packets that this mode held back; their rate is a lower bound.
    limited: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Enter the mode.
    pub const fn enter(&mut self) {
        self.until = None;
        self.round_done = false;
    }

    /// Everything sent from now (`delivered` bytes) until what is in flight now is delivered was limited by this
    /// mode rather than by the path.
    pub fn mark_limited(&mut self, delivered: u64, in_flight: u64) {
        let last = delivered + in_flight;
        self.limited = match self.limited {
            Some((first, until)) if delivered <= until => Some((first, last)),
            _ => Some((delivered, last)),
        };
    }

    /// Whether a packet stamped `prior_delivered` left under that limit.
    #[inline]
    pub const fn was_limited(&self, prior_delivered: u64) -> bool {
        match self.limited {
            Some((first, last)) => first <= prior_delivered && prior_delivered <= last,
            None => false,
        }
    }

    /// One acknowledgement in this mode. Returns whether the minimum window has just been reached: a round of its
    /// own starts then.
    pub fn on_ack(&mut self, now: Timestamp, at_minimum: bool, round_start: bool, duration: TimeSpan) -> bool {
        if self.until.is_none() {
            if at_minimum {
                self.until = Some(now + duration);
                self.round_done = false;
            }
            return at_minimum;
        }
        self.round_done |= round_start;
        false
    }

    /// Whether both the time and the round are over.
    pub fn is_done(&self, now: Timestamp) -> bool {
        self.round_done && self.time_is_up(now)
    }

    /// Whether the time is over: after an idle period there is no round to wait for.
    pub fn time_is_up(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(v: u64) -> TimeSpan {
        TimeSpan::from_millis(v)
    }
    const fn at(v: u64) -> Timestamp {
        Timestamp::from_millis(v)
    }

    #[test]
    fn needs_both_time_and_a_round_at_the_minimum() {
        let mut probe = ProbeRtt::default();
        probe.enter();
        assert!(!probe.on_ack(at(0), false, true, ms(200)), "not at the minimum yet");
        assert!(!probe.is_done(at(1000)));
        assert!(probe.on_ack(at(10), true, true, ms(200)), "the minimum is reached");
        assert!(!probe.on_ack(at(300), true, false, ms(200)));
        assert!(!probe.is_done(at(300)), "time is up, but no round has passed");
        probe.on_ack(at(301), true, true, ms(200));
        assert!(probe.is_done(at(301)));

        probe.enter();
        probe.on_ack(at(1000), true, false, ms(200));
        probe.on_ack(at(1050), true, true, ms(200));
        assert!(!probe.is_done(at(1200)), "a round has passed, but the time is not up");
        assert!(probe.is_done(at(1201)));
    }

    #[test]
    fn limited_packets_are_those_sent_under_the_mark() {
        let mut probe = ProbeRtt::default();
        assert!(!probe.was_limited(0));
        probe.mark_limited(1000, 600);
        probe.mark_limited(1400, 400);
        for (prior_delivered, limited) in [(999, false), (1000, true), (1800, true), (1801, false)] {
            assert_eq!(probe.was_limited(prior_delivered), limited, "{prior_delivered}");
        }
        // A later PROBE_RTT forgets the first.
        probe.mark_limited(50_000, 100);
        assert!(!probe.was_limited(1500) && probe.was_limited(50_000));
    }
}
