//! How fast the link drains the queue that start-up left.

use ccgym_core::{TimeSpan, Timestamp};

/// A rate is that of at least so many packets and this time: single acknowledgements come in lumps.
const PACKETS: u64 = 16;
const SPAN: TimeSpan = TimeSpan::from_millis(2);

#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Max rate at which packets were acknowledged, packets/s.
    pub rate: f64,
    since: Timestamp,
    packets: u64,
}

impl Drain {
    pub fn new(now: Timestamp) -> Self {
        Self { rate: 0.0, since: now, packets: 0 }
    }

    /// So many packets were acknowledged at this time.
    pub fn count(&mut self, now: Timestamp, packets: u64) {
        self.packets += packets;
        let span = now.since(self.since);
        if self.packets >= PACKETS && span >= SPAN {
            self.rate = self.rate.max(self.packets as f64 / (span.0 as f64 * 1e-9));
            (self.since, self.packets) = (now, 0);
        }
    }
}
