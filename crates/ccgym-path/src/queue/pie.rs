//! PIE (RFC 8033) with ECN: a probability of dropping, from the queueing delay and its growth.
//!
//! Delay is measured by time stamps (§4.3), as the age of the oldest packet. Of the optional parts (§5) it has ECN, the
//! cap on growth and spacing of drops; it is always active, as in Linux.

use ccgym_core::rng::Rng;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::queue::fifo::Rule;
use crate::queue::pi::PiController;
use crate::queue::store::Store;
use crate::queue::Queued;

/// Waiting bytes below which nothing is dropped early: two packets (§4.1).
const MIN_BYTES: u64 = 2 * 1500;
/// Probability below which a low delay stops early drops (§4.1).
const LOW_PROBABILITY: f64 = 0.2;
/// Factor on the probability at an update when two delays in a row are below half of the target (appendix A; §4.2
/// requires two of zero).
const DECAY: f64 = 0.98;
/// Probability from which on an update adds at most [`MAX_GROWTH`] (§5.5).
const GROWTH_CAPPED_FROM: f64 = 0.1;
const MAX_GROWTH: f64 = 0.02;
/// Probability summed since the last drop: below the first no drop, from the second on a drop (§5.4).
const SPACING: (f64, f64) = (0.85, 8.5);
/// Upper bound of a probability, and divisor of the controller's change (§4.2).
const TUNING: [(f64, f64); 6] = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// PIE of one queue.
#[derive(Clone, Debug)]
pub struct Pie {
    controller: PiController,
    max_burst: TimeSpan,
    /// Max probability at which ECN-capable packets are marked; `None`: never.
    mark_up_to: Option<f64>,
    probability: f64,
    /// Remaining time of a burst that passes without early drops.
    burst: TimeSpan,
    /// Probability since the last drop.
    summed: f64,
    rng: Rng,
}

impl Pie {
    /// Start at time 0. ECN-capable packets are marked up to a probability of `mark_up_to`, if there is one.
    pub fn new(
        controller: PiController,
        max_burst: TimeSpan,
        mark_up_to: Option<f64>,
        (seed, index): (u64, u64),
    ) -> Self {
        Self {
            controller,
            max_burst,
            mark_up_to,
            probability: 0.0,
            burst: max_burst,
            summed: 0.0,
            rng: Rng::stream(seed, "queue/pie", index),
        }
    }

    /// True if a delay is below half of the target.
    fn low(&self, delay: TimeSpan) -> bool {
        delay.0 < self.controller.target().0 / 2
    }

    /// Make the updates that are due.
    fn catch_up(&mut self, now: Timestamp, store: &Store) {
        loop {
            let at_rest = store.is_empty() && self.probability == 0.0 && self.burst == TimeSpan::ZERO;
            let Some(at) = self.controller.due(now, at_rest) else { return };
            self.update(store.age(at));
        }
    }

    fn update(&mut self, delay: TimeSpan) {
        let before = self.controller.previous();
        let mut change = self.controller.change(delay);
        let tuning = TUNING.iter().find(|(below, _)| self.probability < *below);
        change /= tuning.map_or(1.0, |(_, divisor)| *divisor);
        if self.probability >= GROWTH_CAPPED_FROM {
            change = change.min(MAX_GROWTH);
        }
        self.probability += change;
        if self.low(delay) && self.low(before) {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst = TimeSpan(self.burst.0.saturating_sub(self.controller.interval().0));
    }

    /// True if the arrival is chosen.
    fn chooses(&mut self, store: &Store) -> bool {
        let calm = self.low(self.controller.previous()) && self.probability < LOW_PROBABILITY;
        if self.burst > TimeSpan::ZERO || calm || store.bytes() <= MIN_BYTES {
            return false;
        }
        if self.probability == 0.0 {
            self.summed = 0.0;
        }
        self.summed += self.probability;
        let chosen = self.summed >= SPACING.0 && (self.summed >= SPACING.1 || self.rng.bernoulli(self.probability));
        if chosen {
            self.summed = 0.0;
        }
        chosen
    }
}

impl Rule for Pie {
    fn admit(&mut self, now: Timestamp, packet: &mut Queued, store: &mut Store, room: bool) -> bool {
        self.catch_up(now, store);
        if self.probability == 0.0 && self.low(store.age(now)) && self.low(self.controller.previous()) {
            self.burst = self.max_burst;
        }
        if !room {
            self.summed = 0.0;
            return false;
        }
        let marks = self.mark_up_to.is_some_and(|max| self.probability <= max);
        !self.chooses(store) || (marks && store.mark(packet))
    }

    fn dequeue(&mut self, now: Timestamp, store: &mut Store, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.catch_up(now, store);
        store.pop()
    }
}

#[cfg(test)]
mod tests {
    use ccgym_core::packet::Ecn;

    use super::*;
    use crate::queue::fifo::Fifo;
    use crate::queue::tests::full_packet;
    use crate::queue::QueueDiscipline;
    use crate::spec::LimitSpec;

    const MS: TimeSpan = TimeSpan::from_millis(1);

    fn pie(mark_up_to: Option<f64>) -> Fifo<Pie> {
        let controller = PiController::new(TimeSpan(15 * MS.0), TimeSpan(15 * MS.0), 0.125, 1.25);
        let limit = LimitSpec { packets: Some(10_000), bytes: None };
        Fifo::new(&limit, Pie::new(controller, TimeSpan(150 * MS.0), mark_up_to, (1, 0)))
    }

    /// RFC 8033 §4.2: α = 0.125/s, β = 1.25/s, target 15 ms; (probability, old delay, delay in ms) → probability.
    #[test]
    fn probability_follows_the_equation() {
        for (before, old, delay, after) in [
            // 0.125·0.015 + 1.25·0.03 = 0.039375, in each range of tuning.
            (0.0, 0, 30, 0.039_375 / 2048.0),
            (5e-6, 0, 30, 5e-6 + 0.039_375 / 512.0),
            (5e-5, 0, 30, 5e-5 + 0.039_375 / 128.0),
            (5e-4, 0, 30, 5e-4 + 0.039_375 / 32.0),
            (5e-3, 0, 30, 5e-3 + 0.039_375 / 8.0),
            (5e-2, 0, 30, 5e-2 + 0.039_375 / 2.0),
            // Capped from 0.1 on.
            (0.1, 0, 30, 0.12),
            // 0.125·(−0.005) + 1.25·(−0.01) = −0.013125.
            (0.5, 20, 10, 0.5 - 0.013_125),
            // Nothing waits: −0.125·0.015 = −0.001875, then 2 % off.
            (0.5, 0, 0, (0.5 - 0.001_875) * 0.98),
            // 7 ms is below half of the target: −0.125·0.008 = −0.001. 8 ms is not, now or before.
            (0.5, 7, 7, (0.5 - 0.001) * 0.98),
            (0.5, 8, 7, 0.5 - 0.001 - 0.001_25),
            (0.5, 7, 8, 0.5 - 0.000_875 + 0.001_25),
            // A decrease is scaled like growth, but not capped: 0.125·(−0.005) + 1.25·(−0.08) = −0.100625.
            (0.05, 90, 10, 0.05 - 0.100_625 / 2.0 + 0.000_312_5),
            (0.5, 90, 10, 0.5 - 0.100_625),
            (0.0, 0, 0, 0.0),
            (1.0, 15, 900, 1.0),
        ] {
            let mut queue = pie(None);
            queue.rule.probability = before;
            queue.rule.controller.change(TimeSpan(old * MS.0));
            queue.rule.update(TimeSpan(delay * MS.0));
            let found = queue.rule.probability;
            assert!((found - after).abs() < 1e-12, "{before} {old} {delay}: {found} instead of {after}");
        }
    }

    /// §4.4: 150 ms pass without a drop, at any length of the queue.
    #[test]
    fn bursts_pass() {
        let mut queue = pie(None);
        for ms in 0..150 {
            assert!(queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::NotEct), &mut vec![]), "{ms}");
            queue.rule.probability = 1.0;
        }
        assert!(!queue.enqueue(Timestamp::from_millis(150), full_packet(150, Ecn::NotEct), &mut vec![]));
    }

    /// §4.4: the allowance is restored when the probability is zero and both delays are below half of the target.
    #[test]
    fn the_allowance_is_refilled_once_congestion_is_over() {
        for (probability, before, waits, refilled) in
            [(0.0, 7, 7, true), (1e-9, 7, 7, false), (0.0, 8, 7, false), (0.0, 7, 8, false), (0.0, 0, 0, true)]
        {
            let mut queue = pie(None);
            queue.rule.burst = TimeSpan::ZERO;
            queue.rule.probability = probability;
            queue.rule.controller.change(TimeSpan(before * MS.0));
            queue.store.push(full_packet(0, Ecn::NotEct));
            assert!(queue.enqueue(Timestamp::from_millis(waits), full_packet(waits, Ecn::NotEct), &mut vec![]));
            let full = queue.rule.burst == TimeSpan(150 * MS.0);
            assert_eq!(full, refilled, "probability {probability}, {before} ms, then {waits} ms");
        }
    }

    /// §4.1: no early drop while the delay at the last update is less than half of the target, unless the probability
    /// has reached 0.2, nor from a queue of two packets.
    #[test]
    fn a_calm_queue_drops_nothing_early() {
        for (probability, delay, packets, drops) in
            [(0.19, 7, 10, false), (0.2, 7, 10, true), (0.19, 8, 10, true), (1.0, 100, 2, false), (1.0, 100, 3, true)]
        {
            let mut queue = pie(None);
            queue.rule.burst = TimeSpan::ZERO;
            queue.rule.probability = probability;
            queue.rule.summed = SPACING.1;
            queue.rule.controller.change(TimeSpan(delay * MS.0));
            for id in 0..packets {
                queue.store.push(full_packet(id, Ecn::NotEct));
            }
            assert_eq!(queue.rule.chooses(&queue.store), drops, "{probability} {delay} ms, {packets} packets");
        }
    }

    /// §5.4: after a drop, 0.85/p packets pass at least, and 8.5/p at most.
    #[test]
    fn drops_are_spaced() {
        let mut queue = pie(None);
        for ms in 0..200 {
            queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::NotEct), &mut vec![]);
        }
        let (mut gaps, mut gap) = (vec![], 0);
        for _ in 0..20_000 {
            queue.rule.probability = 0.05;
            gap += 1;
            if queue.rule.chooses(&queue.store) {
                gaps.push(gap);
                gap = 0;
            }
        }
        // The first one includes the sum from before.
        let (min, max) = (gaps[1..].iter().min(), gaps[1..].iter().max());
        assert!(min >= Some(&17) && max <= Some(&170), "{min:?} to {max:?}");
        // A geometric wait of 1/p after the first 0.85/p.
        let mean = gaps[1..].iter().sum::<i32>() as f64 / (gaps.len() - 1) as f64;
        assert!((mean - 36.0).abs() < 3.0, "{mean}");
    }

    /// §5.1: marks up to 10 %, drops above, and drops packets that are not ECN-capable.
    #[test]
    fn marks_while_the_probability_is_low() {
        for (probability, ecn, marked) in
            [(0.1, Ecn::Ect0, true), (0.1, Ecn::Ect1, true), (0.1, Ecn::NotEct, false), (0.11, Ecn::Ect0, false)]
        {
            let mut queue = pie(Some(0.1));
            for ms in 0..200 {
                queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, ecn), &mut vec![]);
            }
            queue.rule.probability = probability;
            queue.rule.summed = SPACING.1;
            queue.store.marked = 0;
            let accepted = queue.enqueue(Timestamp::from_millis(200), full_packet(200, ecn), &mut vec![]);
            assert_eq!((accepted, queue.store.marked), (marked, u64::from(marked)), "{probability} {ecn:?}");
        }
    }
}
