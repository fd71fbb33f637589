//! Separates losses that the flow has caused from those that the path has anyway.

/// Losses are excessive above the usual part plus this part and twice its standard error, …
const EXCESS: f64 = 0.02;
/// … where the usual part is at least this one, …
const MIN_USUAL: f64 = 0.001;
/// … and with more packets lost than these.
const FEW: u64 = 2;
/// Max part of packets that a path can lose as usual.
const MAX_USUAL: f64 = 0.06;
/// In start-up the usual part is unknown: this excess is allowed, and this part enters the standard error.
const NEW_USUAL: f64 = 0.01;
/// Number of packets and rounds of the mean.
const MEMORY_PACKETS: f64 = 1000.0;
const MEMORY_ROUNDS: f64 = 5.0;

#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Usual part of lost packets without a queue, …
    pub usual: f64,
    /// … and number of packets that it was measured on.
    packets: f64,
}

impl Losses {
    /// True if the losses of a round of `sent` packets are excessive; `new`: in start-up.
    pub fn exceed(&self, lost: u64, sent: u64, new: bool) -> bool {
        let (usual, likely) = if new { (MAX_USUAL, NEW_USUAL) } else { (self.usual, MIN_USUAL) };
        let error = (self.usual.max(likely) / sent as f64).sqrt();
        lost > FEW && lost as f64 / sent as f64 > usual + EXCESS + 2.0 * error
    }

    /// Add a round without a queue and without excess.
    pub fn learn(&mut self, lost: u64, sent: u64) {
        let (lost, sent) = (lost as f64, sent as f64);
        self.packets = (self.packets + sent).min((MEMORY_ROUNDS * sent).max(MEMORY_PACKETS));
        self.usual = (self.usual + (lost - sent * self.usual) / self.packets).min(MAX_USUAL);
    }
}
