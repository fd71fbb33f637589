//! RTprop and PROBE_RTT: the propagation delay is only visible when the queue is empty, so the flow empties its
//! share of it every ten seconds.

use ccgym_core::{TimeSpan, Timestamp};

/// The propagation estimate and its age.
#[derive(Clone, Copy, Debug)]
pub struct RtProp {
    value: TimeSpan,
    stamp: Timestamp,
}

impl RtProp {
    /// Nothing measured; ages from `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { value: TimeSpan::MAX, stamp: now }
    }

    /// The estimate; [`TimeSpan::MAX`] before the first sample.
    #[inline]
    pub const fn get(&self) -> TimeSpan {
        self.value
    }

    /// Whether a sample was taken.
    #[inline]
    pub const fn is_known(&self) -> bool {
        self.value.0 != TimeSpan::MAX.0
    }

    /// Take a sample and say whether the estimate was older than `interval` before it. Only a strictly lower sample
    /// renews the estimate in time (an equal one would suppress PROBE_RTT forever on a noise-free path); an expired
    /// estimate takes any sample that did not wait at the receiver.
    #[inline]
    pub fn update(&mut self, now: Timestamp, sample: Option<TimeSpan>, delayed: bool, interval: TimeSpan) -> bool {
        let expired = now.since(self.stamp) > interval;
        if let Some(rtt) = sample {
            if rtt < self.value || (expired && !delayed) {
                self.value = rtt;
                self.stamp = now;
            }
        }
        expired
    }

    /// PROBE_RTT has just looked: the estimate is fresh.
    pub const fn renew(&mut self, now: Timestamp) {
        self.stamp = now;
    }
}

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
    fn rtprop_rules() {
        let interval = ms(10_000);
        // (time, sample, delayed) after a first sample of 40 ms at 100 ms → (expired, estimate, stamp)
        for (name, now, sample, delayed, expected) in [
            ("lower renews", 200, Some(39), false, (false, 39, 200)),
            ("lower renews even when delayed", 200, Some(39), true, (false, 39, 200)),
            ("equal does not renew", 200, Some(40), false, (false, 40, 100)),
            ("higher does not renew", 200, Some(41), false, (false, 40, 100)),
            ("ten seconds old is not yet expired", 10_100, Some(41), false, (false, 40, 100)),
            ("expired takes any sample", 10_101, Some(55), false, (true, 55, 10_101)),
            ("expired refuses a delayed one", 10_101, Some(55), true, (true, 40, 100)),
            ("expired without a sample", 10_101, None, false, (true, 40, 100)),
        ] {
            let mut rtprop = RtProp::new(Timestamp::ZERO);
            assert!(!rtprop.is_known());
            rtprop.update(at(100), Some(ms(40)), false, interval);
            let expired = rtprop.update(at(now), sample.map(ms), delayed, interval);
            assert_eq!((expired, rtprop.get(), rtprop.stamp), (expected.0, ms(expected.1), at(expected.2)), "{name}");
        }
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
