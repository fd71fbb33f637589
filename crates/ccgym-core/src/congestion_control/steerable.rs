//! The optional view of a scheme whose window or gain an agent sets.

/// Quantities of a scheme that can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steered {
    /// The congestion window in wire bytes. The scheme continues from it with all other state unchanged, as a scheme of
    /// Linux does when its `snd_cwnd` is written.
    Cwnd,
    /// Factor on the packets that the scheme lets wait in the queue: finite and above 0. It stays until the next call;
    /// 1 before the first.
    Gain,
}

/// A scheme in which one quantity can be set from outside.
pub trait Steerable {
    /// Return the quantity. Never changes.
    fn steered(&self) -> Steered;
    /// Set the quantity.
    fn steer(&mut self, value: f64);
}
