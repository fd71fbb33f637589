//! How fast the link drains the queue that start-up left.

use ccgym_core::{TimeSpan, Timestamp};

/// What follows start-up is at most so many times half of its window, …
const MAX_MORE: f64 = 1.25;
/// … and at least half of it; where packets were lost, this part of that.
const LOSSY: f64 = 0.5;
/// A rate is that of at least so many packets and this time: single acknowledgements come in lumps.
const PACKETS: u64 = 16;
const SPAN: TimeSpan = TimeSpan::from_millis(2);

#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Max rate at which packets were acknowledged, packets/s.
    rate: f64,
    lossy: bool,
    since: Timestamp,
    packets: u64,
}

impl Drain {
    /// Start-up ended, with losses or without.
    pub fn new(now: Timestamp, lossy: bool) -> Self {
        Self { rate: 0.0, lossy, since: now, packets: 0 }
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

    /// The window to go on with, packets, after `half` of start-up's. Half may be too little where the link woke up or
    /// packets were lost in bursts, and too much where losses were seen late.
    pub fn window(&self, base: f64, half: f64) -> f64 {
        (self.rate * base).clamp(if self.lossy { LOSSY * half } else { half }, MAX_MORE * half)
    }
}
