//! STARTUP, DRAIN and PROBE, told from delivery rates alone: after BBR's states, for agents without them.

use super::memory::Memory;
use super::spec::{Phase, PhasesSpec};
use ccgym_core::monitor::MonitorInterval;

/// Loss of a flat interval from which on the path counts as full at once: what start-up sends beyond that, three times
/// the path's rate, is lost. More than what a path loses by itself, which must not end start-up.
const FULL: f64 = 0.2;
/// Part of the minimum RTT by which the mean one may exceed it without a queue.
const QUEUED: f64 = 1.0 / 8.0;

/// The phase machine of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    spec: PhasesSpec,
    /// Delivery rates of the latest intervals with acknowledgements.
    recent: Vec<f64>,
    next: usize,
    /// Max delivery rate: in start-up when it last grew, afterward its minimum so far.
    full: f64,
    /// Intervals without growth in start-up, intervals in drain.
    flat: u32,
    rises: u32,
    phase: Phase,
}

impl Phases {
    pub(crate) fn new(spec: PhasesSpec) -> Self {
        let recent = vec![0.0; spec.window as usize];
        Self { spec, recent, next: 0, full: 0.0, flat: 0, rises: 0, phase: Phase::Startup }
    }

    /// Take in an interval that `memory` has digested. One without acknowledgements says nothing.
    pub(crate) fn update(&mut self, m: &MonitorInterval, memory: &Memory) -> Phase {
        if m.acked_packets == 0 {
            return self.phase;
        }
        self.recent[self.next] = memory.delivery_rate;
        self.next = (self.next + 1) % self.recent.len();
        let max_rate = self.recent.iter().copied().fold(0.0, f64::max);
        let clear = memory.mean_rtt <= (1.0 + QUEUED) * memory.min_rtt;
        match self.phase {
            Phase::Startup => {
                if max_rate >= (1.0 + self.spec.growth) * self.full {
                    (self.full, self.flat) = (max_rate, 0);
                } else {
                    self.flat += 1;
                }
                let queued = self.spec.exit_queue.is_some_and(|part| memory.mean_rtt > (1.0 + part) * memory.min_rtt);
                let full = queued || m.loss_fraction() > FULL;
                if self.flat >= self.spec.plateau_steps || (self.flat > 0 && full) {
                    (self.phase, self.flat) = (Phase::Drain, 0);
                }
            }
            Phase::Drain => {
                // A queue that is still there when the window has forgotten start-up is not the flow's own, or the
                // round trip has grown: waiting on would starve it.
                self.flat += 1;
                // At the min rate the amount in flight cannot fall: the round trip shows that the queue has drained.
                let drained = m.in_flight as f64 <= memory.in_packets(max_rate) * memory.mss || clear;
                if drained || self.flat >= self.spec.window {
                    (self.phase, self.full, self.rises) = (Phase::Probe, max_rate, 0);
                }
            }
            Phase::Probe => {
                // Probing found more, and no end of it. Rises of single intervals are not enough of a sign: a few
                // packets per interval rise and fall by more, and probes rise too seldom for two in a row. A path that
                // began at a tenth of its rate (pantheon-2, pantheon-3) was then never filled within 30 s.
                self.full = self.full.min(max_rate);
                let rises = clear && max_rate >= (1.0 + self.spec.reenter_growth) * self.full;
                self.rises = if rises { self.rises + 1 } else { 0 };
                if self.rises >= self.spec.reenter_steps {
                    (self.phase, self.full, self.flat) = (Phase::Startup, max_rate, 0);
                }
            }
        }
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_core::units::Timestamp;

    #[test]
    fn grows_drains_probes_and_starts_again() {
        let mut phases = Phases::new(PhasesSpec::default());
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        let mut step = |mbps: f64, in_flight: u64, rtt: f64| {
            memory.delivery_rate = mbps * 1e6;
            memory.mean_rtt = rtt;
            (m.in_flight, m.acked_packets) = (in_flight, u64::from(mbps > 0.0));
            phases.update(&m, &memory)
        };
        for mbps in [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 4.0, 4.5, 4.4] {
            assert_eq!(step(mbps, 100_000, 0.1), Phase::Startup, "{mbps}");
        }
        // Third flat interval; then 4.5 Mbit/s · 0.1 s = 56,250 bytes.
        assert_eq!(step(4.5, 100_000, 0.12), Phase::Drain);
        assert_eq!(step(4.5, 56_251, 0.12), Phase::Drain);
        assert_eq!(step(4.5, 56_250, 0.12), Phase::Probe);
        // Less does not matter; a quarter more twice, without a queue, does.
        assert_eq!(step(1.0, 0, 0.1), Phase::Probe);
        assert_eq!(step(5.7, 0, 0.1), Phase::Probe);
        assert_eq!(step(5.0, 0, 0.1126), Phase::Probe);
        assert_eq!(step(5.0, 0, 0.1125), Phase::Probe);
        assert_eq!(step(5.0, 0, 0.1), Phase::Startup);
        // It begins again where it left off.
        assert_eq!(step(7.2, 0, 0.1), Phase::Startup);
    }

    #[test]
    fn what_must_be_in_flight_is_no_queue() {
        let mut phases = Phases::new(PhasesSpec::default());
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        (m.in_flight, m.acked_packets) = (4500, 3);
        // Three packets, where two fill the path.
        memory.delivery_rate = 240e3;
        let mut step = |rtt: f64| {
            memory.mean_rtt = rtt;
            phases.update(&m, &memory)
        };
        assert_eq!([0.15; 5].map(&mut step)[3..], [Phase::Drain; 2]);
        assert_eq!(step(0.1126), Phase::Drain);
        assert_eq!(step(0.1125), Phase::Probe);
    }

    #[test]
    fn starts_again_from_what_the_window_still_holds() {
        let mut phases = Phases::new(PhasesSpec { window: 3, ..PhasesSpec::default() });
        let mut memory = Memory::new(1500);
        (memory.min_rtt, memory.mean_rtt) = (0.1, 0.1);
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        m.acked_packets = 1;
        let mut step = |mbps: f64| {
            memory.delivery_rate = mbps * 1e6;
            phases.update(&m, &memory)
        };
        let found = [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 2.0, 2.0, 2.0, 2.4, 2.5, 2.5].map(&mut step);
        assert_eq!(found[4..], [[Phase::Probe; 7].as_slice(), &[Phase::Startup]].concat());
    }

    #[test]
    fn a_queue_ends_start_up_where_the_rate_is_flat() {
        let mut phases = Phases::new(PhasesSpec { exit_queue: Some(0.25), ..PhasesSpec::default() });
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        (m.in_flight, m.acked_packets) = (1_000_000, 90);
        let mut step = |mbps: f64, rtt: f64| {
            memory.delivery_rate = mbps * 1e6;
            memory.mean_rtt = rtt;
            phases.update(&m, &memory)
        };
        // Neither a queue while the rate grows nor a flat rate alone is a sign; an eighth more is the path's noise.
        assert_eq!(step(1.0, 0.2), Phase::Startup);
        assert_eq!(step(1.3, 0.2), Phase::Startup);
        assert_eq!(step(1.3, 0.12), Phase::Startup);
        assert_eq!(step(1.3, 0.1251), Phase::Drain);
    }

    #[test]
    fn heavy_loss_ends_start_up_where_the_rate_is_flat() {
        let mut phases = Phases::new(PhasesSpec::default());
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        let mut step = |mbps: f64, lost: u64| {
            memory.delivery_rate = mbps * 1e6;
            (m.in_flight, m.acked_packets, m.lost_packets) = (1_000_000, 90, lost);
            phases.update(&m, &memory)
        };
        assert_eq!(step(1.0, 50), Phase::Startup);
        assert_eq!(step(1.0, 22), Phase::Startup);
        assert_eq!(step(1.0, 23), Phase::Drain);
    }
}
