//! The earliest of many timers, with O(log n) update: a winner tree.

use ccgym_core::Timestamp;

/// Time, and order among equal times: sequence numbers are assigned as events are scheduled.
pub type Key = (Timestamp, u64);

/// No event.
pub const IDLE: Key = (Timestamp::NEVER, u64::MAX);

/// Winner tree over `n` slots.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Keys of the slots.
    keys: Vec<Key>,
    /// `winners[1]` is the overall winner; the children of `i` are `2i` and `2i+1`; leaves begin at `leaves`.
    winners: Vec<u32>,
    leaves: usize,
}

impl Tournament {
    /// Make `n` idle slots.
    pub fn new(n: usize) -> Self {
        let leaves = n.next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (i, w) in winners[leaves..].iter_mut().enumerate() {
            *w = i as u32;
        }
        let mut t = Self { keys: vec![IDLE; leaves], winners, leaves };
        for i in (1..leaves).rev() {
            t.play(i);
        }
        t
    }

    /// Return the earliest slot and its key.
    #[inline]
    pub fn first(&self) -> (usize, Key) {
        let w = self.winners[1] as usize;
        (w, self.keys[w])
    }

    /// Give `slot` a new key.
    #[inline]
    pub fn update(&mut self, slot: usize, key: Key) {
        self.keys[slot] = key;
        let mut i = (self.leaves + slot) / 2;
        while i >= 1 {
            self.play(i);
            i /= 2;
        }
    }

    #[inline]
    fn play(&mut self, i: usize) {
        let (a, b) = (self.winners[2 * i], self.winners[2 * i + 1]);
        // The smaller slot wins a tie of equal keys, so the order never depends on history.
        self.winners[i] = if self.keys[b as usize] < self.keys[a as usize] { b } else { a };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn always_finds_the_minimum(n in 1usize..20, ops in prop::collection::vec((0usize..20, 0u64..50, 0u64..4), 1..100)) {
            let mut t = Tournament::new(n);
            let mut plain = vec![IDLE; n];
            for (slot, time, seq) in ops {
                let slot = slot % n;
                t.update(slot, (Timestamp(time), seq));
                plain[slot] = (Timestamp(time), seq);
                let (i, key) = t.first();
                let best = plain.iter().copied().min().unwrap();
                prop_assert_eq!(key, best);
                prop_assert_eq!(i, plain.iter().position(|&k| k == best).unwrap());
            }
        }
    }
}
