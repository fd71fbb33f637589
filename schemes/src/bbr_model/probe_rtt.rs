//! PROBE_RTT: a time with few packets in flight, so that the queue empties and the propagation delay can be measured.

use ccgym_core::{AckEvent, TimeSpan, Timestamp};

/// Effect of an acknowledgement in the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Waiting,
    /// The reduced window has just been reached: a new round begins.
    RoundBegins,
    /// Time and round are over.
    Done,
}

/// Entry conditions of the mode, and its progress.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRtt {
    /// Min time at the reduced window; zero turns the mode off.
    duration: TimeSpan,
    /// True if sending restarts after idle time, which emptied the queue as the mode would have.
    pub idle_restart: bool,
    /// End of the time at the reduced window, once it has begun.
    until: Option<Timestamp>,
    round_done: bool,
    /// Delivered counts (first, last) stamped on packets that this mode limited; their rate is a lower bound.
    limited: Option<(u64, u64)>,
}

impl ProbeRtt {
    pub const fn new(duration: TimeSpan) -> Self {
        Self { duration, idle_restart: false, until: None, round_done: false, limited: None }
    }

    /// True if the mode must begin; `expired`: the min RTT is too old.
    #[inline]
    pub const fn is_due(&self, expired: bool) -> bool {
        expired && self.duration.0 > 0 && !self.idle_restart
    }

    /// Enter the mode.
    pub const fn enter(&mut self) {
        self.until = None;
        self.round_done = false;
    }

    /// Mark as limited by this mode all packets sent from now (`delivered` bytes) until the packets now in flight are
    /// delivered.
    fn mark_limited(&mut self, delivered: u64, in_flight: u64) {
        let last = delivered + in_flight;
        self.limited = match self.limited {
            Some((first, until)) if delivered <= until => Some((first, last)),
            _ => Some((delivered, last)),
        };
    }

    /// True if a packet stamped `prior_delivered` left under that limit.
    #[inline]
    pub const fn was_limited(&self, prior_delivered: u64) -> bool {
        match self.limited {
            Some((first, last)) => first <= prior_delivered && prior_delivered <= last,
            None => false,
        }
    }

    /// Process one acknowledgement in this mode, whose window is `window` bytes; `round_ended`: it ended a round.
    pub fn on_ack(&mut self, event: &AckEvent<'_>, window: u64, round_ended: bool) -> Progress {
        self.mark_limited(event.delivered, event.in_flight);
        self.advance(event.now, event.in_flight <= window, round_ended)
    }

    fn advance(&mut self, now: Timestamp, reduced: bool, round_ended: bool) -> Progress {
        if self.until.is_none() {
            if !reduced {
                return Progress::Waiting;
            }
            self.until = Some(now + self.duration);
            self.round_done = false;
            return Progress::RoundBegins;
        }
        self.round_done |= round_ended;
        if self.round_done && self.time_is_up(now) {
            Progress::Done
        } else {
            Progress::Waiting
        }
    }

    /// True if the time is over: after an idle period there is no round to wait for.
    pub fn time_is_up(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: TimeSpan = TimeSpan::from_millis(200);

    #[test]
    fn needs_both_time_and_a_round_at_the_reduced_window() {
        use Progress::{Done, RoundBegins, Waiting};
        let mut probe = ProbeRtt::new(DURATION);
        // Time in ms, window reached, round ended, and the progress.
        let time_first = [
            (0, false, true, Waiting),
            (1000, false, true, Waiting),
            (1010, true, true, RoundBegins),
            (1300, true, false, Waiting), // Time is up, but no round has passed.
            (1301, true, true, Done),
        ];
        let round_first = [
            (2000, true, false, RoundBegins),
            (2050, true, true, Waiting),
            (2200, true, false, Waiting),
            (2201, true, false, Done),
        ];
        for stay in [&time_first[..], &round_first[..]] {
            probe.enter();
            for &(ms, reduced, round_ended, expected) in stay {
                let progress = probe.advance(Timestamp::from_millis(ms), reduced, round_ended);
                assert_eq!(progress, expected, "{ms} ms");
            }
        }
    }

    #[test]
    fn due_unless_off_or_replaced_by_idle_time() {
        let mut probe = ProbeRtt::new(DURATION);
        assert!(probe.is_due(true) && !probe.is_due(false));
        assert!(!ProbeRtt::new(TimeSpan::ZERO).is_due(true));
        probe.idle_restart = true;
        assert!(!probe.is_due(true));
    }

    #[test]
    fn limited_packets_are_those_sent_under_the_mark() {
        let mut probe = ProbeRtt::new(DURATION);
        assert!(!probe.was_limited(0));
        probe.mark_limited(1000, 600);
        probe.mark_limited(1400, 400);
        for (prior_delivered, limited) in [(999, false), (1000, true), (1800, true), (1801, false)] {
            assert_eq!(probe.was_limited(prior_delivered), limited, "{prior_delivered}");
        }
        // A later PROBE_RTT replaces the mark of the first.
        probe.mark_limited(50_000, 100);
        assert!(!probe.was_limited(1500) && probe.was_limited(50_000));
    }
}
