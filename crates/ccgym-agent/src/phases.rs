//! STARTUP, DRAIN and PROBE, detected from delivery rates alone: like BBR's states, for agents without them.

use super::expressions::{Function, Window};
use super::memory::Memory;
use super::spec::{Phase, PhasesSpec};
use ccgym_core::monitor::MonitorInterval;

/// Loss of a flat interval from which on the path counts as full at once: start-up sends three times the path's rate,
/// and the excess is lost. More than a path's usual loss, which must not end start-up.
const FULL: f64 = 0.2;
/// Part of the min RTT by which the mean one may exceed it without a queue.
const QUEUED: f64 = 1.0 / 8.0;

/// The phase machine of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    spec: PhasesSpec,
    /// Delivery rates of the latest intervals with acknowledgements.
    recent: Window,
    /// Max delivery rate: in start-up when it last grew, afterward its min so far.
    full: f64,
    /// Intervals without growth in start-up, intervals in drain.
    flat: u32,
    rises: u32,
    phase: Phase,
}

impl Phases {
    pub(crate) fn new(spec: PhasesSpec) -> Self {
        let recent = Window::new(spec.window as usize);
        Self { spec, recent, full: 0.0, flat: 0, rises: 0, phase: Phase::Startup }
    }

    /// Add an interval that `memory` has digested. One without acknowledgements has no effect.
    pub(crate) fn update(&mut self, m: &MonitorInterval, memory: &Memory) -> Phase {
        if m.acked_packets == 0 {
            return self.phase;
        }
        let max_rate = self.recent.push(Function::Max, memory.delivery_rate);
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
    use Phase::{Drain, Probe, Startup};

    /// Delivery rate in Mbit/s, bytes in flight, mean round trip in seconds, packets lost with 90 acknowledged ones
    /// (none where nothing is delivered), and the phase afterward.
    type Step = (f64, u64, f64, u64, Phase);

    /// Run through `steps`, where the minimum RTT is 100 ms.
    fn run(spec: PhasesSpec, steps: &[Step]) {
        let mut phases = Phases::new(spec);
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        for (i, (mbps, in_flight, rtt, lost, phase)) in steps.iter().enumerate() {
            (memory.delivery_rate, memory.mean_rtt) = (mbps * 1e6, *rtt);
            let acked = if *mbps > 0.0 { 90 } else { 0 };
            (m.in_flight, m.acked_packets, m.lost_packets) = (*in_flight, acked, *lost);
            assert_eq!(phases.update(&m, &memory), *phase, "step {i}");
        }
    }

    #[test]
    fn grows_drains_probes_and_starts_again() {
        let growth = [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 4.0, 4.5, 4.4].map(|mbps| (mbps, 100_000, 0.1, 0, Startup));
        let then = [
            // Third flat interval; then 4.5 Mbit/s · 0.1 s = 56,250 bytes.
            (4.5, 100_000, 0.12, 0, Drain),
            (4.5, 56_251, 0.12, 0, Drain),
            (4.5, 56_250, 0.12, 0, Probe),
            // Less does not matter; a quarter more twice, without a queue, does.
            (1.0, 0, 0.1, 0, Probe),
            (5.7, 0, 0.1, 0, Probe),
            (5.0, 0, 0.1126, 0, Probe),
            (5.0, 0, 0.1125, 0, Probe),
            (5.0, 0, 0.1, 0, Startup),
            // It begins again where it left off.
            (7.2, 0, 0.1, 0, Startup),
        ];
        run(PhasesSpec::default(), &[&growth[..], &then].concat());
    }

    #[test]
    fn what_must_be_in_flight_is_no_queue() {
        // Three packets, where two fill the path.
        let steps = [(0.15, Startup), (0.15, Startup), (0.15, Startup), (0.15, Drain), (0.15, Drain)];
        let steps = [&steps[..], &[(0.1126, Drain), (0.1125, Probe)]].concat();
        let steps: Vec<Step> = steps.into_iter().map(|(rtt, phase)| (0.24, 4500, rtt, 0, phase)).collect();
        run(PhasesSpec::default(), &steps);
    }

    #[test]
    fn starts_again_from_what_the_window_still_holds() {
        let rates = [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 2.0, 2.0, 2.0, 2.4, 2.5, 2.5];
        let phases = [&[Startup, Startup, Startup, Drain][..], &[Probe; 7], &[Startup]].concat();
        let steps: Vec<Step> = rates.into_iter().zip(phases).map(|(mbps, phase)| (mbps, 0, 0.1, 0, phase)).collect();
        run(PhasesSpec { window: 3, ..PhasesSpec::default() }, &steps);
    }

    #[test]
    fn a_queue_or_heavy_loss_ends_start_up_where_the_rate_is_flat() {
        // Neither a queue while the rate grows nor a flat rate alone is a sign; an eighth more is the path's noise.
        let queue = [(1.0, 0.2, Startup), (1.3, 0.2, Startup), (1.3, 0.12, Startup), (1.3, 0.1251, Drain)];
        let spec = PhasesSpec { exit_queue: Some(0.25), ..PhasesSpec::default() };
        run(spec, &queue.map(|(mbps, rtt, phase)| (mbps, 1_000_000, rtt, 0, phase)));
        let losses = [(50, Startup), (22, Startup), (23, Drain)];
        run(PhasesSpec::default(), &losses.map(|(lost, phase)| (1.0, 1_000_000, 0.2, lost, phase)));
    }
}
