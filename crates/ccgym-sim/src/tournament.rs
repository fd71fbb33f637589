//! The earliest of many timers, with O(log n) update: a winner tree.

use ccgym_core::Timestamp;

/// Time, and order among equal times: sequence numbers are assigned as events are scheduled.
pub type Key = (Timestamp, u64);

/// No event.
pub const IDLE: Key = (Timestamp::NEVER, u64::MAX);

/// Winner tree over `n` slots. No two keys may be equal, other than [`IDLE`].
#[derive(Clone, Debug)]
pub struct Tournament {
    /// `nodes[1]` is the overall winner; the children of `i` are `2i` and `2i+1`; leaves begin at `leaves`.
    nodes: Vec<Node>,
    leaves: usize,
}

/// The earliest key below a node, and its slot.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    slot: u32,
}

impl Node {
    /// Return the key as one number, to compare without branches: no branch predictor could predict them.
    #[inline]
    const fn order(self) -> u128 {
        ((self.key.0 .0 as u128) << 64) | self.key.1 as u128
    }
}

impl Tournament {
    /// Make `n` idle slots.
    pub fn new(n: usize) -> Self {
        let leaves = n.next_power_of_two();
        let nodes = (0..2 * leaves).map(|i| Node { key: IDLE, slot: (i % leaves) as u32 }).collect();
        Self { nodes, leaves }
    }

    /// Return the earliest slot and its key.
    #[inline]
    pub fn first(&self) -> (usize, Key) {
        let Node { key, slot } = self.nodes[1];
        (slot as usize, key)
    }

    /// Give `slot` a new key.
    #[inline]
    pub fn update(&mut self, slot: usize, key: Key) {
        let mut winner = Node { key, slot: slot as u32 };
        let mut i = self.leaves + slot;
        self.nodes[i] = winner;
        while i > 1 {
            let rival = self.nodes[i ^ 1];
            winner = if rival.order() < winner.order() { rival } else { winner };
            i /= 2;
            self.nodes[i] = winner;
        }
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
                let key = (Timestamp(time), 20 * seq + slot as u64);
                t.update(slot, key);
                plain[slot] = key;
                let (i, key) = t.first();
                let best = plain.iter().copied().min().unwrap();
                prop_assert_eq!(key, best);
                prop_assert_eq!(i, plain.iter().position(|&k| k == best).unwrap());
            }
        }
    }
}
