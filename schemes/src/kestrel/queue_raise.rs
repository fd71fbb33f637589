//! A flow that has just begun wants more in the queue, since others may be there before it: it reaches its share sooner.

/// The gain at first, …
const FIRST: f64 = 2.5;
/// … and less per round, in which the rate grows by more than this part, or not: then no other flow makes room.
const PAYS: f64 = 0.01;
const DECAY: (f64, f64) = (0.02, 0.75);
/// Weight of a round in that growth.
const WEIGHT: f64 = 1.0 / 8.0;

#[derive(Clone, Copy, Debug)]
pub struct QueueRaise {
    /// The gain is at least this.
    pub gain: f64,
    /// Rate of the last round, packets/s, and by what part it grows per round.
    last_rate: f64,
    growth: f64,
}

impl Default for QueueRaise {
    fn default() -> Self {
        Self { gain: FIRST, last_rate: 0.0, growth: 2.0 * PAYS }
    }
}

impl QueueRaise {
    /// A round has passed, with this rate in packets/s. With an `empty` queue the flow grows into unused capacity, not into
    /// what others give up: that does not count.
    pub fn pass(&mut self, rate: f64, empty: bool) {
        if self.last_rate > 0.0 {
            self.growth += WEIGHT * ((rate / self.last_rate).ln() - self.growth);
        }
        self.last_rate = rate;
        let pays = self.growth > PAYS && !empty;
        self.gain = (self.gain - if pays { DECAY.0 } else { DECAY.1 }).max(0.0);
    }
}
