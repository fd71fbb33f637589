//! The host of a sender: an event loop with latency.

use ccgym_core::{Rng, TimeSpan, Timestamp};
use ccgym_run::HostSpec;

/// Decides when a sender's host handles events.
///
/// A packet wakes a sleeping loop at once, a timer does so late: timers of user space are rounded up, to milliseconds
/// or by the kernel's slack, so the lateness is uniform. A busy loop handles all events at times of its own: one in
/// each period of `busy`, anywhere in its first half, so that it does not synchronize with the link.
#[derive(Clone, Debug)]
pub struct Host {
    wakeup: TimeSpan,
    busy: TimeSpan,
    /// Lateness of the next timer.
    late: TimeSpan,
    /// Time of the latest event handling.
    awake: Timestamp,
    latenesses: Rng,
    /// Seed of the busy loop's times.
    moments: u64,
}

impl Host {
    /// Make the host of flow `flow`; `None` if it handles all events at once.
    pub fn new(spec: &HostSpec, seed: u64, flow: u64) -> Option<Self> {
        let mut latenesses = Rng::stream(seed, "host", flow);
        let (moments, HostSpec { wakeup, busy, .. }) = (latenesses.next_u64(), *spec);
        let host = Self { wakeup, busy, late: TimeSpan::ZERO, awake: Timestamp::ZERO, latenesses, moments };
        (wakeup > TimeSpan::ZERO || busy > TimeSpan::ZERO).then_some(host)
    }

    /// Return when it handles a packet that arrives, or a timer that expires, at these times (perhaps never).
    pub fn turn(&self, packet: Timestamp, timer: Timestamp) -> Timestamp {
        let late = if timer > self.awake { self.late } else { TimeSpan::ZERO };
        let due = packet.min(timer.saturating_add(late)).max(self.awake);
        if self.busy == TimeSpan::ZERO || !due.is_set() {
            return due;
        }
        let period = due.0 / self.busy.0;
        let place = |period| Rng::stream(self.moments, "moment", period).below(self.busy.0 / 2);
        let moment = |period| period * self.busy.0 + place(period);
        let this = moment(period);
        Timestamp(if this >= due.0 { this } else { moment(period + 1) })
    }

    /// Handle events at `now`.
    pub fn wake(&mut self, now: Timestamp) {
        self.awake = now;
        self.late = TimeSpan(self.latenesses.below(self.wakeup.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Timestamp = Timestamp::NEVER;

    fn host(wakeup_us: u64, busy_us: u64) -> Host {
        let [wakeup, busy] = [wakeup_us, busy_us].map(TimeSpan::from_micros);
        let mut host = Host::new(&HostSpec { wakeup, busy, ..HostSpec::default() }, 1, 0).unwrap();
        host.wake(Timestamp::ZERO);
        host
    }

    #[test]
    fn timers_wake_late_and_packets_do_not() {
        let mut host = host(1000, 0);
        let mut latest = 0;
        for ms in 1..1000 {
            let due = Timestamp::from_millis(10 * ms);
            let turn = host.turn(NEVER, due);
            assert_eq!(host.turn(due, NEVER), due);
            assert_eq!(host.turn(due, due + TimeSpan(1)), due, "a packet wakes it");
            assert_eq!(host.turn(NEVER, due), turn, "asked again");
            latest = latest.max(turn.since(due).0);
            assert!(turn >= due);
            host.wake(turn);
            assert_eq!(host.turn(NEVER, due), turn, "what was due is served in the same turn");
        }
        assert!((990_000..1_000_000).contains(&latest), "{latest}");
        assert_eq!(host.turn(NEVER, NEVER), NEVER);
    }

    #[test]
    fn a_busy_host_has_a_moment_in_each_period() {
        let mut host = host(0, 12_000);
        let mut moments: Vec<u64> = Vec::new();
        while moments.len() < 1000 {
            let due = Timestamp(moments.last().map_or(0, |last| last + 1));
            let turn = host.turn(due, NEVER);
            assert_eq!(host.turn(NEVER, due), turn);
            host.wake(turn);
            assert_eq!(host.turn(turn, NEVER), turn, "it reads all that is there");
            moments.push(turn.0);
        }
        let periods: Vec<u64> = moments.iter().map(|at| at / 12_000_000).collect();
        assert_eq!(periods, (0..1000).collect::<Vec<_>>());
        let mean = moments.iter().map(|at| (at % 12_000_000) as f64).sum::<f64>() / 1000.0;
        assert!((mean - 3e6).abs() < 0.25e6, "{mean}");
        assert_eq!(host.turn(NEVER, NEVER), NEVER);
    }

    #[test]
    fn each_flow_has_its_own() {
        let spec = HostSpec { busy: TimeSpan::from_millis(1), ..HostSpec::default() };
        let turn = |seed, flow| Host::new(&spec, seed, flow).unwrap().turn(Timestamp(1), NEVER);
        assert_eq!(turn(1, 0), turn(1, 0));
        assert_ne!(turn(1, 0), turn(1, 1));
        assert_ne!(turn(1, 0), turn(2, 0));
        assert!(Host::new(&HostSpec { batch: 44, ..HostSpec::default() }, 1, 0).is_none());
    }
}
