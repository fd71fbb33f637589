//! A set of integers that fills from below: a prefix, and a few islands above it.
//!
//! Both ends of a flow keep one over segment numbers (arrived, or acknowledged). In order it costs one comparison;
//! islands exist only around losses.

use std::collections::VecDeque;

use crate::packet::AckRange;

/// Integers `0..next` and the islands above, sorted, disjoint and not touching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet {
    next: u64,
    /// A deque, since holes are filled from the front.
    islands: VecDeque<AckRange>,
}

impl IntervalSet {
    /// Return the smallest missing integer.
    #[inline]
    pub const fn first_missing(&self) -> u64 {
        self.next
    }

    /// Return the number of holes between integers of the set; each takes 16 bytes.
    #[inline]
    pub fn gaps(&self) -> usize {
        self.islands.len()
    }

    /// Add the smallest missing integer to a set without islands.
    #[inline]
    pub fn extend(&mut self) {
        debug_assert!(self.islands.is_empty());
        self.next += 1;
    }

    /// Add `value`; returns true if it is new.
    #[inline]
    pub fn insert(&mut self, value: u64) -> bool {
        if value == self.next {
            self.next += 1;
            if !self.islands.is_empty() {
                self.absorb();
            }
            return true;
        }
        if value < self.next {
            return false;
        }
        self.insert_island(value)
    }

    /// True if `value` is in the set.
    pub fn contains(&self, value: u64) -> bool {
        if value < self.next {
            return true;
        }
        let i = self.islands.partition_point(|island| island.last < value);
        self.islands.get(i).is_some_and(|island| island.first <= value)
    }

    /// Return the bytes of the islands.
    pub fn held_bytes(&self) -> usize {
        self.islands.capacity() * std::mem::size_of::<AckRange>()
    }

    fn absorb(&mut self) {
        while let Some(&AckRange { first, last }) = self.islands.front() {
            if first > self.next {
                break;
            }
            self.next = last + 1;
            self.islands.pop_front();
        }
    }

    fn insert_island(&mut self, value: u64) -> bool {
        // Islands nearly always grow at the top.
        if let Some(top) = self.islands.back_mut() {
            if value == top.last + 1 {
                top.last = value;
                return true;
            }
        }
        insert(&mut self.islands, value)
    }
}

/// Add `value` to ranges that are sorted, disjoint and not touching; returns true if it is new.
pub(crate) fn insert(ranges: &mut VecDeque<AckRange>, value: u64) -> bool {
    let i = ranges.partition_point(|range| range.last < value);
    if ranges.get(i).is_some_and(|range| range.first <= value) {
        return false;
    }
    let joins_below = i > 0 && ranges[i - 1].last + 1 == value;
    let joins_above = ranges.get(i).is_some_and(|range| range.first == value + 1);
    match (joins_below, joins_above) {
        (true, true) => {
            ranges[i - 1].last = ranges[i].last;
            ranges.remove(i);
        }
        (true, false) => ranges[i - 1].last = value,
        (false, true) => ranges[i].first = value,
        (false, false) => ranges.insert(i, AckRange { first: value, last: value }),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fills_and_absorbs() {
        let mut s = IntervalSet::default();
        assert!(s.insert(0) && s.insert(2) && s.insert(3) && s.insert(5));
        assert_eq!((s.first_missing(), s.gaps()), (1, 2));
        assert!(s.insert(1));
        assert_eq!(s.first_missing(), 4);
        assert!(!s.insert(3) && !s.insert(5));
        assert!(s.insert(4));
        assert_eq!(s.first_missing(), 6);
        assert_eq!(s, IntervalSet { next: 6, islands: VecDeque::new() });
    }

    proptest! {
        #[test]
        fn equals_a_plain_set(values in prop::collection::vec(0u64..60, 0..200)) {
            let mut s = IntervalSet::default();
            let mut plain = std::collections::BTreeSet::new();
            for v in values {
                prop_assert_eq!(s.insert(v), plain.insert(v));
                let missing = (0..).find(|x| !plain.contains(x)).unwrap();
                prop_assert_eq!(s.first_missing(), missing);
                for x in 0..62 {
                    prop_assert_eq!(s.contains(x), plain.contains(&x));
                }
            }
        }
    }
}
