//! The rate at which the link drains the queue of start-up.

use ccgym_core::{TimeSpan, Timestamp};

/// Max window after start-up, as a multiple of half of start-up's window, …
const MAX_MORE: f64 = 1.25;
/// … and the factor on it where packets were lost; the min is half of start-up's window.
const LOSSY: f64 = 0.5;
/// Min packets and time of a rate sample, since acknowledgements may arrive in bursts.
const PACKETS: u64 = 16;
const SPAN: TimeSpan = TimeSpan::from_millis(2);

#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Max ACK rate, packets/s.
    rate: f64,
    lossy: bool,
    since: Timestamp,
    packets: u64,
}

impl Drain {
    /// Start after start-up, which ended with losses (`lossy`) or without.
    pub fn new(now: Timestamp, lossy: bool) -> Self {
        Self { rate: 0.0, lossy, since: now, packets: 0 }
    }

    /// Count `packets` acknowledged at `now`.
    pub fn count(&mut self, now: Timestamp, packets: u64) {
        self.packets += packets;
        let span = now.since(self.since);
        if self.packets >= PACKETS && span >= SPAN {
            self.rate = self.rate.max(self.packets as f64 / (span.0 as f64 * 1e-9));
            (self.since, self.packets) = (now, 0);
        }
    }

    /// Return the window to continue with, packets, from `half` of start-up's. Half may be too little if the link woke
    /// up or lost packets in bursts, and too much if losses were detected late.
    pub fn window(&self, base: f64, half: f64) -> f64 {
        (self.rate * base).clamp(if self.lossy { LOSSY * half } else { half }, MAX_MORE * half)
    }
}
