//! When feedback is gone: what a flow may send between a timeout and the next acknowledgement, whatever its policy.
//!
//! A policy decides by what came back. After a timeout nothing has, and most policies take that for an empty path: rates
//! would grow without end. So the transport's timer alone sends, one packet each time it expires, and it doubles (RFC 6298
//! §5.5, RFC 8085 §3.1, RFC 9743 §5.2). The running interval lasts until an acknowledgement, on which the policy decides.

use super::action::Actuator;
use super::memory::Memory;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::Control;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Feedback flows, as far as the transport knows.
    #[default]
    Heard,
    /// A timeout, and no acknowledgement since.
    Silent,
    /// It is over, but the interval in which it was has not ended.
    Ended,
}

/// The silence of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    stage: Stage,
    /// Rate and window that the latest interval with feedback led to, while intervals without any follow it.
    heard: Option<(f64, f64)>,
}

impl Silence {
    /// A timeout. What was decided without feedback is void as far as it asks for more.
    pub(crate) fn begin(&mut self, actuator: &mut Actuator) {
        self.stage = Stage::Silent;
        if let Some((rate, window)) = self.heard {
            (actuator.rate, actuator.window) = (actuator.rate.min(rate), actuator.window.min(window));
        }
    }

    /// An acknowledgement arrived.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.stage == Stage::Silent
    }

    /// Whether the running interval ends with an acknowledgement.
    #[inline]
    pub(crate) fn awaits_ack(&self) -> bool {
        self.stage != Stage::Heard
    }

    /// Interval `m` ended, in which `actuator` was in force.
    pub(crate) fn on_interval(&mut self, m: &MonitorInterval, actuator: &Actuator) {
        if m.acked_packets > 0 {
            self.heard = None;
        } else {
            self.heard.get_or_insert((actuator.rate, actuator.window));
        }
        if self.stage == Stage::Ended {
            self.stage = Stage::Heard;
        }
    }

    /// What of `control` holds: one packet while it is silent.
    #[inline]
    pub(crate) fn limit(&self, control: Control, memory: &Memory) -> Control {
        if self.is_on() {
            Control { cwnd: control.cwnd.min(memory.mss as u64), ..control }
        } else {
            control
        }
    }
}
