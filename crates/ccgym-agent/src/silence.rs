//! Silence: limits sending between a timeout and the next acknowledgement, for any policy.
//!
//! A policy decides by feedback. After a timeout there is none, and most policies then assume an empty path: rates
//! would grow without end. So only the transport's timer sends, one packet each time it expires, and it doubles (RFC
//! 6298 §5.5, RFC 8085 §3.1, RFC 9743 §5.2). The current interval lasts until an acknowledgement, on which the policy
//! decides.

use super::action::Actuator;
use super::memory::Memory;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::Control;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// There is feedback, as far as the transport knows.
    #[default]
    Heard,
    /// A timeout, and no acknowledgement since.
    Silent,
    /// It is over, but the interval in which it was has not ended.
    Ended,
}

/// State of the silence of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    stage: Stage,
    /// Rate and window after the latest interval with feedback, while intervals without any follow it.
    heard: Option<(f64, f64)>,
}

impl Silence {
    /// Begin at a timeout. Decisions without feedback that ask for more are cancelled.
    pub(crate) fn begin(&mut self, actuator: &mut Actuator) {
        self.stage = Stage::Silent;
        if let Some((rate, window)) = self.heard {
            (actuator.rate, actuator.window) = (actuator.rate.min(rate), actuator.window.min(window));
        }
    }

    /// End at an acknowledgement.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.stage == Stage::Silent
    }

    /// True if the current interval ends with an acknowledgement.
    #[inline]
    pub(crate) fn awaits_ack(&self) -> bool {
        self.stage != Stage::Heard
    }

    /// Process the end of interval `m`, in which `actuator` was used.
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

    /// Limit `control` to one packet during the silence.
    #[inline]
    pub(crate) fn limit(&self, control: Control, memory: &Memory) -> Control {
        if self.is_on() {
            Control { cwnd: control.cwnd.min(memory.mss as u64), ..control }
        } else {
            control
        }
    }
}
