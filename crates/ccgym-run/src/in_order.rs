//! Payload that the receiving application can read: without a gap before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts the payload of one flow that can be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InOrder {
    /// The first missing segment.
    next: u64,
    /// Payload of the segments that wait for one before them.
    waiting: BTreeMap<u64, u64>,
}

impl InOrder {
    /// Add `payload` bytes of `segment`, which is new. Returns the bytes that can be read since then.
    #[inline]
    pub fn arrived(&mut self, segment: u64, payload: u64) -> u64 {
        if segment != self.next {
            self.waiting.insert(segment, payload);
            return 0;
        }
        self.next += 1;
        let mut bytes = payload;
        while let Some(more) = self.waiting.remove(&self.next) {
            bytes += more;
            self.next += 1;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_gap_waits_for_it() {
        let mut payload = InOrder::default();
        let read = |payload: &mut InOrder, segment| payload.arrived(segment, 100 + segment);
        assert_eq!(read(&mut payload, 0), 100);
        assert_eq!(read(&mut payload, 2), 0);
        assert_eq!(read(&mut payload, 4), 0);
        assert_eq!(read(&mut payload, 1), 101 + 102);
        assert_eq!(read(&mut payload, 3), 103 + 104);
        assert!(payload.waiting.is_empty());
    }
}
