//! Mahimahi's `pie`, with its deviations (`src/packet`; behavior checked against its public source), seeded.
//!
//! Differences from RFC 8033: delays enter the control equation in whole milliseconds, the drain rate is whole bytes
//! per millisecond, and updates are made late, one for every 30 ms that have passed.

use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::queue::fifo::Rule;
use crate::queue::store::Store;
use crate::queue::Queued;
use crate::trace::OPPORTUNITY_BYTES;

const UPDATE_MS: u64 = 30;
const SAMPLE_BYTES: u64 = 16_384;
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;

/// PIE as in mahimahi.
#[derive(Clone, Debug)]
pub struct MahimahiPie {
    rng: Rng,
    reference_ms: i64,
    max_burst_ms: u64,
    probability: f64,
    burst_ms: u64,
    /// Estimated queueing delay at the last two updates, in milliseconds.
    delay_ms: i64,
    old_delay_ms: i64,
    /// The current drain-rate measurement: start, and bytes so far.
    sample: Option<(u64, u64)>,
    /// Bytes per millisecond; 0: unknown.
    drain_rate: u64,
    updated_ms: u64,
}

impl MahimahiPie {
    /// Start at time 0.
    pub fn new(qdelay_ref_ms: u64, max_burst_ms: u64, seed: u64, index: u64) -> Self {
        Self {
            rng: Rng::stream(seed, "queue/mahimahi_pie", index),
            reference_ms: qdelay_ref_ms as i64,
            max_burst_ms,
            probability: 0.0,
            burst_ms: 0,
            delay_ms: 0,
            old_delay_ms: 0,
            sample: None,
            drain_rate: 0,
            updated_ms: 0,
        }
    }

    /// Make the updates that are due.
    fn catch_up(&mut self, now_ms: u64, store: &Store) {
        while now_ms.saturating_sub(self.updated_ms) > UPDATE_MS {
            if self.at_rest(store) {
                self.updated_ms += (now_ms - self.updated_ms - 1) / UPDATE_MS * UPDATE_MS;
                return;
            }
            self.update(store);
            self.updated_ms += UPDATE_MS;
        }
    }

    /// True if another update would change nothing: an empty queue, long idle.
    fn at_rest(&self, store: &Store) -> bool {
        store.is_empty()
            && self.probability == 0.0
            && self.drain_rate == 0
            && self.burst_ms == 0
            && self.delay_ms == 0
            && self.old_delay_ms == 0
    }

    fn update(&mut self, store: &Store) {
        self.old_delay_ms = self.delay_ms;
        self.delay_ms = store.bytes().checked_div(self.drain_rate).unwrap_or(0) as i64;
        let above = (self.delay_ms - self.reference_ms) as f64;
        let growth = (self.delay_ms - self.old_delay_ms) as f64;
        let step = ALPHA * above + BETA * growth;
        let scale = match self.probability {
            p if p < 0.01 => 128.0,
            p if p < 0.1 => 32.0,
            _ => 16.0,
        };
        let wanted = self.probability + step / scale;
        self.probability = wanted.clamp(0.0, 1.0);
        // A delay of zero with packets waiting means that the rate is unknown or high: no decay then.
        if self.delay_ms == 0 && self.old_delay_ms == 0 && store.is_empty() && wanted <= 1.0 {
            self.probability *= 0.98;
        }
        self.burst_ms = self.burst_ms.saturating_sub(UPDATE_MS);
        let half = self.reference_ms / 2;
        if self.probability == 0.0 && self.delay_ms < half && self.old_delay_ms < half && self.drain_rate > 0 {
            self.sample = None;
            self.drain_rate = 0;
            self.burst_ms = self.max_burst_ms;
        }
    }

    fn drops_early(&mut self, store: &Store) -> bool {
        let calm = self.old_delay_ms < self.reference_ms / 2 && self.probability < 0.2;
        if self.burst_ms > 0 || calm || store.bytes() < 2 * u64::from(OPPORTUNITY_BYTES) {
            return false;
        }
        self.rng.bernoulli(self.probability)
    }

    /// Measure the drain rate over at least 16,384 bytes.
    fn measure(&mut self, now_ms: u64, wire: u32, store: &Store) {
        let backlogged = store.bytes() >= SAMPLE_BYTES;
        if self.sample.is_none() && backlogged {
            self.sample = Some((now_ms, 0));
        }
        let Some((since, bytes)) = &mut self.sample else { return };
        *bytes += u64::from(wire);
        let elapsed = now_ms.saturating_sub(*since);
        if *bytes <= SAMPLE_BYTES || elapsed == 0 {
            return;
        }
        let rate = *bytes / elapsed;
        self.drain_rate =
            if self.drain_rate == 0 { rate } else { self.drain_rate - (self.drain_rate >> 3) + (rate >> 3) };
        self.sample = backlogged.then_some((now_ms, 0));
        self.burst_ms = self.burst_ms.saturating_sub(elapsed);
    }
}

impl Rule for MahimahiPie {
    fn admit(&mut self, now: Timestamp, _packet: &mut Queued, store: &mut Store, room: bool) -> bool {
        self.catch_up(now.as_millis(), store);
        room && !self.drops_early(store)
    }

    fn dequeue(&mut self, now: Timestamp, store: &mut Store, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        let packet = store.pop()?;
        self.measure(now.as_millis(), packet.wire, store);
        self.catch_up(now.as_millis(), store);
        Some(packet)
    }
}
