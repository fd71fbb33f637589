//! Mahimahi's `codel`, including its deviations (`src/packet`; behavior checked against its public source, own code).
//!
//! Differences from RFC 8289: the clock counts whole milliseconds; the packet taken first is always the one delivered,
//! and a drop discards the packet *behind* it; the queue never drops its last packet.

use ccgym_core::units::Timestamp;

use crate::queue::fifo::Rule;
use crate::queue::store::Store;
use crate::queue::Queued;
use crate::trace::OPPORTUNITY_BYTES;

/// CoDel as in mahimahi.
#[derive(Clone, Debug)]
pub struct MahimahiCodel {
    target_ms: u64,
    interval_ms: u64,
    /// Time at which the delay will have been above target for an interval.
    ripe_ms: Option<u64>,
    next_drop_ms: u64,
    count: u32,
    count_at_entry: u32,
    dropping: bool,
}

impl MahimahiCodel {
    /// Make it; times in whole milliseconds.
    pub fn new(target_ms: u64, interval_ms: u64) -> Self {
        Self { target_ms, interval_ms, ripe_ms: None, next_drop_ms: 0, count: 0, count_at_entry: 0, dropping: false }
    }

    /// Take the head; returns true with it if its delay has been above target for long enough.
    fn take(&mut self, now_ms: u64, store: &mut Store) -> Option<(Queued, bool)> {
        let packet = store.pop()?;
        let sojourn = now_ms.saturating_sub(packet.arrived.as_millis());
        // The size is tested after the removal; this also covers the empty queue.
        if sojourn < self.target_ms || store.bytes() <= u64::from(OPPORTUNITY_BYTES) {
            self.ripe_ms = None;
            return Some((packet, false));
        }
        let ripe = *self.ripe_ms.get_or_insert(now_ms + self.interval_ms);
        // A new time is an interval ahead, at least 1 ms.
        Some((packet, now_ms >= ripe))
    }

    fn after(&self, from_ms: u64) -> u64 {
        from_ms + (self.interval_ms as f64 / f64::from(self.count).sqrt()) as u64
    }
}

impl Rule for MahimahiCodel {
    fn dequeue(&mut self, now: Timestamp, store: &mut Store, dropped: &mut Vec<Queued>) -> Option<Queued> {
        let now_ms = now.as_millis();
        let (first, ripe) = self.take(now_ms, store)?;
        if self.dropping {
            self.dropping = ripe;
            while self.dropping && now_ms >= self.next_drop_ms {
                let Some((behind, still_ripe)) = self.take(now_ms, store) else { break };
                dropped.push(behind);
                self.count = self.count.wrapping_add(1);
                if still_ripe {
                    self.next_drop_ms = self.after(self.next_drop_ms);
                } else {
                    self.dropping = false;
                }
            }
        } else if ripe {
            if let Some((behind, _)) = self.take(now_ms, store) {
                dropped.push(behind);
            }
            self.dropping = true;
            let grown = self.count.wrapping_sub(self.count_at_entry);
            // Unsigned, as in mahimahi: a future next drop counts as long ago.
            let recent = now_ms.wrapping_sub(self.next_drop_ms) < 16 * self.interval_ms;
            self.count = if grown > 1 && recent { grown } else { 1 };
            self.next_drop_ms = self.after(now_ms);
            self.count_at_entry = self.count;
        }
        Some(first)
    }
}
