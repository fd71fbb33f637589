//! STARTUP, DRAIN and PROBE, told from delivery rates alone: after BBR's states, for agents without them.

use super::memory::Memory;
use super::spec::{Phase, PhasesSpec};
use crate::monitor::MonitorInterval;

/// The phase machine of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    spec: PhasesSpec,
    /// Delivery rates of the latest intervals.
    recent: Vec<f64>,
    next: usize,
    /// Greatest delivery rate when it last grew.
    full: f64,
    flat: u32,
    /// Delivery rate over the greatest, of the previous interval.
    share: f64,
    rises: u32,
    phase: Phase,
}

impl Phases {
    pub(crate) fn new(spec: PhasesSpec) -> Self {
        let recent = vec![0.0; spec.window as usize];
        Self { spec, recent, next: 0, full: 0.0, flat: 0, share: 0.0, rises: 0, phase: Phase::Startup }
    }

    /// Take in an interval that `memory` has digested.
    pub(crate) fn update(&mut self, m: &MonitorInterval, memory: &Memory) -> Phase {
        let delivery = memory.delivery_rate;
        self.recent[self.next] = delivery;
        self.next = (self.next + 1) % self.recent.len();
        let greatest = self.recent.iter().copied().fold(0.0, f64::max);
        let share = if greatest > 0.0 { delivery / greatest } else { 0.0 };
        let rises = share > (1.0 + self.spec.reenter_growth) * self.share && self.share > 0.0;
        self.rises = if rises { self.rises + 1 } else { 0 };
        self.share = share;
        match self.phase {
            Phase::Startup => {
                // Intervals before the first delivery say nothing.
                if greatest > 0.0 && greatest >= (1.0 + self.spec.growth) * self.full {
                    (self.full, self.flat) = (greatest, 0);
                } else if greatest > 0.0 {
                    self.flat += 1;
                }
                if self.flat >= self.spec.plateau_steps {
                    self.phase = Phase::Drain;
                }
            }
            Phase::Drain => {
                if m.in_flight as f64 <= memory.in_packets(greatest) * memory.mss {
                    self.phase = Phase::Probe;
                }
            }
            Phase::Probe => {
                if self.rises >= self.spec.reenter_steps {
                    self.phase = Phase::Startup;
                    (self.full, self.flat, self.rises) = (greatest, 0, 0);
                }
            }
        }
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timestamp;

    #[test]
    fn grows_drains_probes_and_starts_again() {
        let mut phases = Phases::new(PhasesSpec::default());
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        let mut step = |mbps: f64, in_flight: u64| {
            memory.delivery_rate = mbps * 1e6;
            m.in_flight = in_flight;
            phases.update(&m, &memory)
        };
        for mbps in [0.0, 1.0, 2.0, 4.0, 4.5, 4.4] {
            assert_eq!(step(mbps, 100_000), Phase::Startup, "{mbps}");
        }
        // Third flat interval; then 4.5 Mbit/s · 0.1 s = 56,250 bytes.
        assert_eq!(step(4.5, 100_000), Phase::Drain);
        assert_eq!(step(4.5, 56_251), Phase::Drain);
        assert_eq!(step(4.5, 56_250), Phase::Probe);
        assert_eq!(step(1.0, 0), Phase::Probe);
        assert_eq!(step(1.3, 0), Phase::Probe);
        assert_eq!(step(2.0, 0), Phase::Startup);
    }
}
