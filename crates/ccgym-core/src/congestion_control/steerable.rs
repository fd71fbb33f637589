//! The optional view of a scheme that an agent builds on: what another may set in it.

/// What can be set in a scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steered {
    /// The congestion window in wire bytes. The scheme goes on from there, all other state as it was, as a scheme of Linux
    /// does whose `snd_cwnd` is written.
    Cwnd,
    /// How much may wait in the queue, as a multiple of the packets that the scheme itself lets wait there: finite and
    /// above 0. It stays until the next call; 1 holds until the first.
    Gain,
}

/// A scheme in which one quantity can be set from outside.
pub trait Steerable {
    /// Which one. Constant over the flow's life.
    fn steered(&self) -> Steered;
    /// Sets it.
    fn steer(&mut self, value: f64);
}
