//! The optional view of a scheme that decides once per interval: agents, and schemes written in Python.

use std::any::Any;

use crate::monitor::MonitorInterval;
use crate::units::Timestamp;

/// When a decision interval ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalEnd {
    /// Not before this time; [`Timestamp::NEVER`] while it is not known.
    pub at: Timestamp,
    /// Zero: at that time, by a timer. Else: with the first acknowledgement from then on that is at least this one of
    /// the interval.
    pub acks: u64,
}

impl Default for IntervalEnd {
    fn default() -> Self {
        Self { at: Timestamp::NEVER, acks: 0 }
    }
}

/// A scheme that decides once per interval, on statistics that the sender collects for it.
pub trait IntervalDriven {
    /// An interval ended; the next one begins now.
    fn on_interval(&mut self, interval: &MonitorInterval);
    /// When the running interval ends. Read after each event.
    fn interval_end(&self) -> IntervalEnd;
    /// Whether decisions come from an environment ([`IntervalDriven::decide`]). Constant over the flow's life.
    fn decided_outside(&self) -> bool {
        false
    }
    /// Whether it waits for such a decision. Asked after [`IntervalDriven::on_interval`].
    fn awaits_decision(&self) -> bool {
        false
    }
    /// The decision that [`IntervalDriven::awaits_decision`] waits for.
    fn decide(&mut self, _now: Timestamp, _action: &[f32]) {}
    /// What decides, for an environment that knows its type.
    fn agent(&self) -> &dyn Any;
}
