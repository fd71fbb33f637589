//! BBR's gains on the agent's own steps: the max delivery rate of the latest intervals times a gain that depends on the
//! phase. It needs no ground truth.

use super::super::expressions::{Function, Window};
use super::super::memory::Memory;
use super::super::spec::{ExpertSpec, Phase};
use ccgym_core::monitor::MonitorInterval;

/// Max intervals by which a gain below 1 is prolonged while more than the BDP is in flight. The action nearest to 0.75
/// after 1.25 leaves the rate at 0.94 of the estimate, which drains a quarter of the probe's queue: without this, every
/// cycle adds to a standing queue. Only one, since the queue may belong to other flows.
const PROLONGED: u32 = 1;
/// Min gain when the cycle's is 1 and more than the BDP is in flight. Actions are 5 % apart, so that the rate may be up
/// to 2.5 % above the estimate; this drains the resulting queue, but in a queue kept full by others the flow yields by
/// no more than this.
const TRIMMED: f64 = 0.95;

/// The schedule of one flow.
#[derive(Clone, Debug)]
pub(super) struct GainSchedule {
    startup: f64,
    drain: f64,
    cycle: Vec<f64>,
    /// Delivery rates of the latest intervals with acknowledgements, bit/s.
    recent: Window,
    max_rate: f64,
    /// Position in the cycle, and number of additional intervals there.
    position: usize,
    prolonged: u32,
    phase: Phase,
    /// Gain of the interval that begins now.
    gain: f64,
}

impl GainSchedule {
    /// Make the schedule of `spec`, if it is one.
    pub(super) fn of(spec: &ExpertSpec) -> Option<Self> {
        let ExpertSpec::GainSchedule { startup, drain, cycle, window, .. } = spec else { return None };
        Some(Self {
            startup: *startup,
            drain: *drain,
            cycle: cycle.clone(),
            recent: Window::new(*window as usize),
            max_rate: 0.0,
            position: 0,
            prolonged: 0,
            phase: Phase::Startup,
            gain: *startup,
        })
    }

    /// Add an interval that `memory` has digested. One without acknowledgements shows nothing of the path, and does not
    /// advance the clock of rounds, as in BBR: else a pause would empty the window.
    pub(super) fn observe(&mut self, m: &MonitorInterval, memory: &Memory) {
        if m.acked_packets == 0 {
            return;
        }
        self.max_rate = self.recent.push(Function::Max, memory.delivery_rate);
        let before = std::mem::replace(&mut self.phase, memory.phase);
        self.gain = match self.phase {
            Phase::Startup => self.startup,
            Phase::Drain => self.drain,
            Phase::Probe => {
                let bdp = memory.in_packets(self.max_rate) * memory.mss;
                self.probe(before, if bdp > 0.0 { m.in_flight as f64 / bdp - 1.0 } else { 0.0 })
            }
        };
    }

    /// Return the gain of the next interval in the phase of probing; `excess`: in flight beyond the BDP, as a share of
    /// it.
    fn probe(&mut self, before: Phase, excess: f64) -> f64 {
        if before != Phase::Probe {
            (self.position, self.prolonged) = (0, 0);
        } else if self.cycle[self.position] < 1.0 && excess > 0.0 && self.prolonged < PROLONGED {
            self.prolonged += 1;
        } else {
            (self.position, self.prolonged) = ((self.position + 1) % self.cycle.len(), 0);
        }
        let gain = self.cycle[self.position];
        // The gain that leaves at most one BDP in flight after an RTT.
        let min = if self.prolonged > 0 { gain } else { TRIMMED };
        if self.prolonged > 0 || gain == 1.0 {
            (1.0 - excess).clamp(min, 1.0)
        } else {
            gain
        }
    }

    /// Return the target rate, bit/s; `None` before anything was delivered.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.max_rate > 0.0).then_some(self.gain * self.max_rate)
    }
}

pub(super) fn describe(startup: f64, drain: f64, cycle: &[f64], window: u32) -> String {
    let cycle: Vec<_> = cycle.iter().map(f64::to_string).collect();
    format!(
        "the max delivery_rate of {window} intervals times {startup} in start-up, {drain:.4} in drain, then {} in \
         turn, less (down to {TRIMMED} for 1) while more than that rate moves in min_rtt is in flight",
        cycle.join(", ")
    )
}
