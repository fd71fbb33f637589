//! What a scheme decides.

use crate::units::Rate;

/// What the transport should do now. Read once after each event, and small enough to come in two registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Congestion window in wire bytes; `u64::MAX` means unlimited.
    pub cwnd: u64,
    /// Pacing rate in wire bits per second; zero means unpaced (sending is clocked by acknowledgements).
    pub pacing_rate: Rate,
}

impl Control {
    /// A plain window without pacing.
    #[must_use]
    pub const fn window(cwnd: u64) -> Self {
        Self { cwnd, pacing_rate: Rate::ZERO }
    }
}
