//! `floor_recovery`: lifts a flow that has stood at its lower bound for some clear intervals in a row.

use super::super::action::{Actions, Actuator};
use super::super::memory::Memory;
use super::super::spec::{GuardSpec, Target};
use ccgym_core::monitor::MonitorInterval;

/// What counts as the floor, as a multiple of it.
const NEAR: f64 = 1.01;
/// A lift that would not lift doubles instead.
const LEAST_LIFT: f64 = 2.0;

/// This guard, of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct FloorRecovery {
    /// Clean intervals at the lower bound in a row.
    low: u32,
    timed_out: bool,
    /// How often it has lifted the flow.
    pub interventions: u64,
}

impl FloorRecovery {
    /// A timeout was seen.
    pub(crate) fn on_timeout(&mut self) {
        self.timed_out = true;
    }

    /// Take in an interval that `memory` has digested; lift the flow if it needs it.
    pub(crate) fn on_interval(
        &mut self,
        spec: &GuardSpec,
        m: &MonitorInterval,
        actuator: &mut Actuator,
        actions: &Actions,
        memory: &Memory,
    ) {
        let GuardSpec::FloorRecovery { steps, loss, latency_ratio, lift, after_timeout } = spec else { return };
        self.timed_out |= m.timeouts > 0;
        let floor = actions.rate_floor(memory);
        let low_rate = actions.target != Target::Cwnd && actuator.rate <= NEAR * floor;
        let low_window = actions.target != Target::Rate && actuator.window <= NEAR * actions.limits.window[0];
        let ratio = if memory.min_mean_rtt > 0.0 { memory.mean_rtt / memory.min_mean_rtt } else { 1.0 };
        let clean = m.acked_packets > 0 && m.timeouts == 0 && m.loss_fraction() <= *loss && ratio <= *latency_ratio;
        if !clean || !(low_rate || low_window) {
            // A timeout is over once the flow is off its lower bound and hears from the path.
            self.timed_out &= low_rate || low_window || m.acked_packets == 0;
            self.low = 0;
            return;
        }
        self.low += 1;
        if self.low < *steps && !(*after_timeout && self.timed_out) {
            return;
        }
        if low_rate {
            actuator.rate = (lift * memory.max_delivery_rate).max(LEAST_LIFT * actuator.rate);
        }
        if low_window {
            actuator.window = (lift * memory.bdp()).max(LEAST_LIFT * actuator.window);
        }
        actuator.bound(actions, memory);
        (self.low, self.timed_out) = (0, false);
        self.interventions += 1;
    }
}
