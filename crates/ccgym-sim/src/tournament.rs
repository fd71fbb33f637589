//! The earliest of many timers, with O(log n) update: a winner tree.

use ccgym_core::Timestamp;

/// Time, and order among equal times: sequence numbers are assigned as events are scheduled. Orders are below 2⁴⁴.
pub type Key = (Timestamp, u64);

/// No event.
pub const IDLE: Key = (Timestamp::NEVER, u64::MAX >> SLOT_BITS);

const SLOT_BITS: u32 = 20;
/// Largest number of slots.
pub const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// Winner tree over `n` slots. No two keys may be equal, other than [`IDLE`].
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Time, order and slot of the earliest event below each node: `nodes[1]` is the overall winner; the children of `i`
    /// are `2i` and `2i+1`; leaves begin at `leaves`.
    nodes: Vec<u128>,
    leaves: usize,
}

impl Tournament {
    /// Make `n` idle slots; [`Tournament::first`] is one of them only after all have been updated.
    pub fn new(n: usize) -> Self {
        assert!(n <= MAX_SLOTS, "{n} slots");
        let leaves = n.next_power_of_two();
        Self { nodes: vec![u128::MAX; 2 * leaves], leaves }
    }

    /// Return the earliest slot, and the time of its key.
    #[inline]
    pub fn first(&self) -> (usize, Timestamp) {
        let winner = self.nodes[1];
        (winner as usize % MAX_SLOTS, Timestamp((winner >> u64::BITS) as u64))
    }

    /// Give `slot` a new key.
    #[inline]
    pub fn update(&mut self, slot: usize, (time, order): Key) {
        let nodes = self.nodes.as_mut_slice();
        let mut winner = (u128::from(time.0) << u64::BITS) | u128::from(order << SLOT_BITS) | slot as u128;
        let i = self.leaves + slot;
        nodes[i] = winner;
        // In a loop the compiler makes a branch of each comparison, and among paced flows many are mispredicted.
        macro_rules! climb {
            ($($level:literal)*) => {$(
                if i >> $level <= 1 {
                    return;
                }
                winner = winner.min(nodes[(i >> $level) ^ 1]);
                nodes[i >> ($level + 1)] = winner;
            )*};
        }
        climb!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_of_the_largest_number_of_slots_may_win() {
        let mut t = Tournament::new(MAX_SLOTS);
        t.update(0, (Timestamp(2), 0));
        t.update(MAX_SLOTS - 1, (Timestamp(1), IDLE.1));
        assert_eq!(t.first(), (MAX_SLOTS - 1, Timestamp(1)));
    }

    proptest! {
        #[test]
        fn always_finds_the_minimum(n in 1usize..200, ops in prop::collection::vec((0usize..200, 0u64..50, 0u64..4), 1..400)) {
            let mut t = Tournament::new(n);
            let mut plain = vec![IDLE; n];
            for (slot, time, seq) in ops {
                let slot = slot % n;
                let key = (Timestamp(time), 200 * seq + slot as u64);
                t.update(slot, key);
                plain[slot] = key;
                let best = (0..n).min_by_key(|&slot| plain[slot]).unwrap();
                prop_assert_eq!(t.first(), (best, plain[best].0));
            }
        }
    }
}
