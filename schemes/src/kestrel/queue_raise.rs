//! A new flow wants more packets in the queue, since other flows may be there: it reaches its share sooner.

/// Initial gain, …
const FIRST: f64 = 2.5;
/// … which falls per round, by the first amount if the rate grows by more than this part, else by the second.
const PAYS: f64 = 0.01;
const DECAY: (f64, f64) = (0.02, 0.75);
/// Weight of a round in that growth.
const WEIGHT: f64 = 1.0 / 8.0;

#[derive(Clone, Copy, Debug)]
pub struct QueueRaise {
    /// Min of the gain.
    pub gain: f64,
    /// Rate of the last round, packets/s, and its growth per round.
    last_rate: f64,
    growth: f64,
}

impl Default for QueueRaise {
    fn default() -> Self {
        Self { gain: FIRST, last_rate: 0.0, growth: 2.0 * PAYS }
    }
}

impl QueueRaise {
    /// Add a round with this rate, packets/s. With an `empty` queue the flow grows into unused capacity, not into the
    /// share of other flows: that does not count.
    pub fn pass(&mut self, rate: f64, empty: bool) {
        if self.last_rate > 0.0 {
            self.growth += WEIGHT * ((rate / self.last_rate).ln() - self.growth);
        }
        self.last_rate = rate;
        let pays = self.growth > PAYS && !empty;
        self.gain = (self.gain - if pays { DECAY.0 } else { DECAY.1 }).max(0.0);
    }
}
