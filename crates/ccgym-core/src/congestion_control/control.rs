//! The decision of a scheme.

use crate::units::Rate;

/// Limits for the transport. Read once after each event, and small enough to be returned in two registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Congestion window in wire bytes; `u64::MAX` means unlimited.
    pub cwnd: u64,
    /// Pacing rate in wire bits per second; zero means unpaced (sending is clocked by acknowledgements).
    pub pacing_rate: Rate,
}

impl Control {
    /// Make a plain window without pacing.
    #[must_use]
    pub const fn window(cwnd: u64) -> Self {
        Self { cwnd, pacing_rate: Rate::ZERO }
    }
}
