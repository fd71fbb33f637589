//! The application of a flow over the kernel's TCP or QUIC: sizes and times of its writes.

use ccgym_core::Timestamp;
use ccgym_run::source::{Periods, SegmentClock};
use ccgym_run::spec::SourceSpec;

/// Number of bytes that the application can write now.
#[derive(Debug)]
pub struct Application(Kind);

#[derive(Debug)]
enum Kind {
    Greedy,
    /// A finite transfer: bytes left.
    Bytes {
        left: u64,
    },
    OnOff(Periods),
    /// Segments of `mss` bytes at a rate; `due`: bytes to write now.
    Rate {
        clock: SegmentClock,
        mss: u64,
        due: u64,
    },
}

impl Application {
    /// Make an application, as in the simulator: the same seed draws the same periods.
    pub fn new(spec: &SourceSpec, mss: u32, start: Timestamp, seed: u64, flow: u32) -> Self {
        Self(match *spec {
            SourceSpec::Greedy => Kind::Greedy,
            SourceSpec::Bytes { bytes } => Kind::Bytes { left: bytes },
            SourceSpec::OnOff { mean_on, mean_off } => {
                let mut periods = Periods::new(mean_on, mean_off, seed, u64::from(flow));
                periods.next = start;
                Kind::OnOff(periods)
            }
            SourceSpec::Rate { ref rate, bytes } => {
                let mut clock = SegmentClock::new(rate, mss, bytes);
                clock.start(start);
                Kind::Rate { clock, mss: u64::from(mss), due: 0 }
            }
            SourceSpec::Media(_) | SourceSpec::Poisson { .. } | SourceSpec::Requests(_) => {
                unreachable!("a plan with such a source over a transport that is not ours is refused")
            }
        })
    }

    /// Advance to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        match &mut self.0 {
            Kind::Greedy | Kind::Bytes { .. } => {}
            Kind::OnOff(periods) => {
                while periods.next <= now {
                    periods.change(periods.next);
                }
            }
            Kind::Rate { clock, mss, due } => *due += clock.due(now) * *mss,
        }
    }

    /// Return the bytes to write now.
    pub const fn wants(&self) -> u64 {
        match &self.0 {
            Kind::Greedy | Kind::OnOff(Periods { on: true, .. }) => u64::MAX,
            Kind::OnOff(_) => 0,
            Kind::Bytes { left } => *left,
            Kind::Rate { due, .. } => *due,
        }
    }

    /// Count bytes that the transport took.
    pub fn wrote(&mut self, bytes: u64) {
        match &mut self.0 {
            Kind::Greedy | Kind::OnOff(_) => {}
            Kind::Bytes { left: n } | Kind::Rate { due: n, .. } => *n = n.saturating_sub(bytes),
        }
    }

    /// Return the next time at which [`Application::wants`] changes by itself.
    pub fn next_event(&self) -> Timestamp {
        match &self.0 {
            Kind::Greedy | Kind::Bytes { .. } => Timestamp::NEVER,
            Kind::OnOff(periods) => periods.next,
            Kind::Rate { clock, .. } => clock.next_event(),
        }
    }

    /// True if it will never write again.
    pub const fn is_done(&self) -> bool {
        matches!(self.0, Kind::Bytes { left: 0 })
    }

    /// True if its data should not wait long in the transport, because it can stop.
    pub const fn keeps_little_waiting(&self) -> bool {
        matches!(self.0, Kind::OnOff(_))
    }
}

#[cfg(test)]
mod tests {
    use ccgym_core::{Rate, TimeSpan};
    use ccgym_path::Param;

    use super::*;

    #[test]
    fn a_rate_hands_over_whole_segments_even_when_late() {
        let rate = SourceSpec::Rate { rate: Param::Constant(Rate(8 * 1_000_000)), bytes: None };
        let start = Timestamp::from_millis(100);
        let mut source = Application::new(&rate, 1000, start, 0, 0);
        source.advance(Timestamp::from_millis(99));
        assert_eq!((source.wants(), source.next_event()), (0, start));
        source.advance(start);
        assert_eq!((source.wants(), source.next_event()), (1000, Timestamp::from_millis(101)));
        source.advance(Timestamp::from_millis(105));
        assert_eq!((source.wants(), source.next_event()), (6000, Timestamp::from_millis(106)));
        source.wrote(5500);
        assert_eq!((source.wants(), source.is_done()), (500, false));
    }

    #[test]
    fn a_finite_transfer_ends_and_a_greedy_one_does_not() {
        let mut source = Application::new(&SourceSpec::Bytes { bytes: 10 }, 1000, Timestamp::ZERO, 0, 0);
        source.wrote(4);
        assert_eq!((source.wants(), source.is_done()), (6, false));
        source.wrote(6);
        assert!(source.is_done());
        let mut source = Application::new(&SourceSpec::Greedy, 1000, Timestamp::ZERO, 0, 0);
        source.wrote(1 << 40);
        assert!(source.wants() > 1 << 60 && !source.is_done() && source.next_event() == Timestamp::NEVER);
    }

    #[test]
    fn on_off_starts_on_and_alternates() {
        let mean = TimeSpan::from_millis(100);
        let spec = SourceSpec::OnOff { mean_on: mean, mean_off: mean };
        let mut source = Application::new(&spec, 1000, Timestamp::ZERO, 7, 0);
        source.advance(Timestamp::ZERO);
        let mut states = Vec::new();
        for _ in 0..6 {
            states.push(source.wants() > 0);
            source.advance(source.next_event());
        }
        assert_eq!(states, [true, false, true, false, true, false]);
    }
}
