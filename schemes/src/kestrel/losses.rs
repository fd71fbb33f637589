//! Which losses the flow has caused, and which the path has anyway.

/// Losses are excessive beyond the usual part, this one and twice its standard error, …
const EXCESS: f64 = 0.02;
/// … at which this part is usual at least, …
const MIN_USUAL: f64 = 0.001;
/// … and of more packets than these.
const FEW: u64 = 2;
/// Max part of packets that a path can lose as usual.
const MAX_USUAL: f64 = 0.06;
/// In start-up nothing is known yet: as many as that are no excess, and this part is usual in the standard error.
const NEW_USUAL: f64 = 0.01;
/// The usual part is a mean over so many packets and rounds.
const MEMORY_PACKETS: f64 = 1000.0;
const MEMORY_ROUNDS: f64 = 5.0;

#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Part of packets that the path loses without a queue, …
    pub usual: f64,
    /// … as so many packets have shown.
    packets: f64,
}

impl Losses {
    /// Whether a round's losses are excessive, of so many packets; `new`: in start-up.
    pub fn exceed(&self, lost: u64, sent: u64, new: bool) -> bool {
        let (usual, likely) = if new { (MAX_USUAL, NEW_USUAL) } else { (self.usual, MIN_USUAL) };
        let error = (self.usual.max(likely) / sent as f64).sqrt();
        lost > FEW && lost as f64 / sent as f64 > usual + EXCESS + 2.0 * error
    }

    /// A round without a queue, and without excess.
    pub fn learn(&mut self, lost: u64, sent: u64) {
        let (lost, sent) = (lost as f64, sent as f64);
        self.packets = (self.packets + sent).min((MEMORY_ROUNDS * sent).max(MEMORY_PACKETS));
        self.usual = (self.usual + (lost - sent * self.usual) / self.packets).min(MAX_USUAL);
    }
}
