//! One direction with a bottleneck: random loss, a drop-tail queue, a link of constant rate, propagation.

use std::collections::VecDeque;
use std::time::Duration;

/// Where the loss of a packet is drawn: xorshift64*, so that recordings can be repeated.
struct Random(u64);

impl Random {
    /// Uniform in [0, 1).
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub struct Path {
    rate: u64,
    /// One way.
    pub propagation: Duration,
    limit: usize,
    loss: f64,
    random: Random,
    /// When each accepted packet begins to leave; the queue are those yet to come.
    starts: VecDeque<Duration>,
    /// When the link is free again.
    free: Duration,
    pub drops: u64,
}

impl Path {
    pub fn new(rate: u64, propagation: Duration, limit: usize, loss: f64, seed: u64) -> Self {
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self { rate, propagation, limit, loss, random, starts: VecDeque::new(), free: Duration::ZERO, drops: 0 }
    }

    /// When a packet of `bytes` on the wire that enters now arrives, if it does.
    pub fn offer(&mut self, now: Duration, bytes: u64) -> Option<Duration> {
        if self.loss > 0.0 && self.random.next() < self.loss {
            return None;
        }
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.limit {
            self.drops += 1;
            return None;
        }
        let start = self.free.max(now);
        self.starts.push_back(start);
        self.free = start + Duration::from_nanos(bytes * 8_000_000_000 / self.rate);
        Some(self.free + self.propagation)
    }
}
