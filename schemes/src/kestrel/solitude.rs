//! Whether the flow is the only one on its link: it removes its own packets from the queue, and none are left.

use ccgym_core::{TimeSpan, Timestamp};

use super::k;
use super::round::Seen;

#[derive(Clone, Copy, Debug)]
pub struct Solitude {
    pub known: bool,
    /// When it looks next, and how long after that.
    next: Timestamp,
    wait: f64,
    /// Max rate since it is known, packets/s.
    rate: f64,
    strange: u32,
}

impl Default for Solitude {
    fn default() -> Self {
        Self { known: false, next: Timestamp::ZERO, wait: 0.0, rate: 0.0, strange: 0 }
    }
}

impl Solitude {
    pub fn doubt(&mut self, now: Timestamp, wait: f64) {
        self.known = false;
        self.next = self.next.max(now + TimeSpan::from_secs_f64(wait));
    }

    /// A round in which the law ruled.
    pub fn observe(&mut self, seen: &Seen) {
        if !self.known {
            return;
        }
        self.rate = self.rate.max(seen.rate);
        let strange = seen.queue > 2.0 * seen.noise + 2.0 / seen.rate && seen.waiting > k("KSTRANGE", 2.5) * seen.own.max(1.0);
        self.strange = if strange { self.strange + 1 } else { 0 };
        if seen.excess || self.strange >= k("KSN", 2.0) as u32 || seen.rate < k("KFALL", 0.8) * self.rate {
            self.doubt(seen.now, k("KDOUBT", 3.0));
        }
    }

    pub fn is_due(&self, seen: &Seen) -> bool {
        seen.now >= self.next && seen.waiting > k("KDLO", 0.5) * seen.wanted && seen.waiting < k("KDHI", 2.0) * seen.wanted
            && seen.queue > 2.0 * seen.noise + 1.0 / seen.rate
    }

    pub fn judge(&mut self, queue: f64, seen: &Seen) {
        let packet = 1.0 / seen.rate;
        self.known = seen.queue - packet < k("KLEFT", 0.25) * (queue - packet);
        self.rate = 0.0;
        self.strange = 0;
        self.wait = if self.known { (2.0 * self.wait).clamp(1.0, k("KAGAIN", 10.0)) } else { 0.5 };
        let wait = if self.known { self.wait } else { k("KRETRY", 2.0) };
        let dither = 1.0 + (seen.now.0 % 1_000_003) as f64 / 2_000_006.0;
        self.next = seen.now + TimeSpan::from_secs_f64(wait * dither);
    }
}
