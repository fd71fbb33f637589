//! The optional view of a scheme that decides once per interval: agents, and schemes written in Python.

use std::any::Any;

use crate::monitor::MonitorInterval;
use crate::units::Timestamp;

/// End of a decision interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalEnd {
    /// Min time; [`Timestamp::NEVER`] while unknown.
    pub at: Timestamp,
    /// Zero: the interval ends at that time, by a timer. Else: with the first acknowledgement from then on that is at
    /// least this one of the interval.
    pub acks: u64,
}

impl Default for IntervalEnd {
    fn default() -> Self {
        Self { at: Timestamp::NEVER, acks: 0 }
    }
}

/// A scheme that decides once per interval, on statistics from the sender.
pub trait IntervalDriven {
    /// Process an interval that has ended; the next one begins now.
    fn on_interval(&mut self, interval: &MonitorInterval);
    /// Return the end of the current interval. Read after each event.
    fn interval_end(&self) -> IntervalEnd;
    /// True while acknowledgements and losses change nothing until the interval ends, as long as the min RTT stays. Read
    /// after each event.
    fn ignores_acks(&self) -> bool {
        false
    }
    /// True if decisions come from an environment ([`IntervalDriven::decide`]). Never changes.
    fn decided_outside(&self) -> bool {
        false
    }
    /// True if it waits for such a decision. Read after [`IntervalDriven::on_interval`].
    fn awaits_decision(&self) -> bool {
        false
    }
    /// Take the decision that [`IntervalDriven::awaits_decision`] waits for.
    fn decide(&mut self, _now: Timestamp, _action: &[f32]) {}
    /// Return the agent, for an environment that knows its type.
    fn agent(&self) -> &dyn Any;
}
