//! Feedback that a scheme's receiver sends in place of plain acknowledgements.

use crate::packet::{AckRange, PacketNumber};
use crate::units::{TimeSpan, Timestamp};

/// Max number of arrivals in one feedback: it leaves early when as many wait. With feedback every 20 ms and 1500 bytes
/// that happens from 77 Mbit/s on.
pub const MAX_ARRIVALS: usize = 128;
/// Max number of ranges that one feedback repeats, the newest first.
pub const MAX_FEEDBACK_RANGES: usize = 64;
/// Max bytes of the scheme's own message.
pub const MAX_MESSAGE: usize = 64;
/// Upper bound of packet numbers.
const NUMBERS: u64 = 1 << 62;

/// A packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// Packet number.
    pub number: PacketNumber,
    /// Arrival, on the receiver's clock.
    pub at: Timestamp,
}

/// A batch of arrivals with their times, the ranges of earlier batches, and the scheme's own message. Each of them may
/// be empty.
///
/// Every arrival is in exactly one batch. If that is lost, the ranges of the next ones acknowledge its packets, but
/// without their arrival times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Feedback {
    /// Index of the flow.
    pub flow: u32,
    /// Bytes on the wire from the IP header on.
    pub size: u32,
    /// Departure, on the receiver's clock.
    pub sent: Timestamp,
    /// Congestion-experienced packets seen by the receiver so far, wrapping.
    pub ce_total: u32,
    /// Ranges that have arrived so far, newest first; disjoint, and not touching.
    pub ranges: Vec<AckRange>,
    /// Arrivals since the previous feedback, in order of arrival.
    pub arrivals: Vec<Arrived>,
    /// Message of the scheme's receiver to its sender.
    pub message: Vec<u8>,
}

impl Feedback {
    /// Return the ranges as small numbers: the distance from the last of each down to the first of the one before (for
    /// the first: its last itself), and the range's length; both less their min.
    pub fn range_values(&self) -> impl Iterator<Item = u64> + '_ {
        let mut above = None;
        self.ranges.iter().flat_map(move |range| {
            let last = above.map_or(range.last, |first: u64| first.saturating_sub(range.last + 2));
            above = Some(range.first);
            [last, range.last - range.first]
        })
    }

    /// Return the arrivals as small numbers: the difference to the number before (to the largest number in the ranges,
    /// for the first), odd if it is negative; and the nanoseconds since the one before (for the first: from it to the
    /// departure).
    pub fn arrival_values(&self) -> impl Iterator<Item = u64> + '_ {
        let mut number = self.ranges.first().map_or(0, |range| range.last);
        let mut before = None;
        self.arrivals.iter().flat_map(move |arrived| {
            let difference = arrived.number.wrapping_sub(number) as i64;
            number = arrived.number;
            let since = before.map_or_else(|| self.sent.since(arrived.at), |before| arrived.at.since(before));
            before = Some(arrived.at);
            [((difference << 1) ^ (difference >> 63)) as u64, since.0]
        })
    }

    /// Decode one range from its [values](Feedback::range_values) and append it. Returns false, and appends nothing, if
    /// the values are no valid range or there are already [`MAX_FEEDBACK_RANGES`].
    pub fn push_range(&mut self, last: u64, length: u64) -> bool {
        let last = match self.ranges.last() {
            None => Some(last),
            Some(above) => above.first.checked_sub(2).and_then(|highest| highest.checked_sub(last)),
        };
        let range = last.and_then(|last| Some(AckRange { first: last.checked_sub(length)?, last }));
        match range {
            Some(range) if range.last < NUMBERS && self.ranges.len() < MAX_FEEDBACK_RANGES => {
                self.ranges.push(range);
                true
            }
            _ => false,
        }
    }

    /// Decode one arrival from its [values](Feedback::arrival_values) and append it; call it after all ranges. Returns
    /// false, and appends nothing, if the values are no valid arrival or there are already [`MAX_ARRIVALS`].
    pub fn push_arrival(&mut self, difference: u64, since: u64) -> bool {
        let difference = (difference >> 1) as i64 ^ -((difference & 1) as i64);
        let (from, at) = match self.arrivals.last() {
            None => (self.ranges.first().map_or(0, |range| range.last), self.sent.0.checked_sub(since)),
            Some(before) => (before.number, before.at.0.checked_add(since)),
        };
        let number = from.checked_add_signed(difference).filter(|number| *number < NUMBERS);
        match (number, at) {
            (Some(number), Some(at)) if at <= self.sent.0 && self.arrivals.len() < MAX_ARRIVALS => {
                self.arrivals.push(Arrived { number, at: Timestamp(at) });
                true
            }
            _ => false,
        }
    }

    /// Return the bytes of ranges, arrivals and message, if each value takes a byte for every seven bits.
    #[must_use]
    pub fn content_bytes(&self) -> u32 {
        let bytes = |value: u64| (70 - (value | 1).leading_zeros()) / 7;
        self.range_values().chain(self.arrival_values()).map(bytes).sum::<u32>() + self.message.len() as u32
    }

    /// Return the delay of an arrival at the receiver.
    #[must_use]
    pub fn wait(&self, arrived: &Arrived) -> TimeSpan {
        self.sent.since(arrived.at)
    }

    /// Return the bytes of memory in use.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        std::mem::size_of::<Self>()
            + self.ranges.capacity() * std::mem::size_of::<AckRange>()
            + self.arrivals.capacity() * std::mem::size_of::<Arrived>()
            + self.message.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(values: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let values: Vec<u64> = values.collect();
        values.chunks(2).map(|pair| (pair[0], pair[1])).collect()
    }

    #[test]
    fn near_numbers_are_small() {
        let ranges = vec![AckRange { first: 90, last: 100 }, AckRange { first: 5, last: 88 }];
        let arrived = |number, at| Arrived { number, at: Timestamp(at) };
        let arrivals = vec![arrived(99, 400), arrived(100, 410), arrived(88, 410)];
        let feedback = Feedback { ranges, arrivals, sent: Timestamp(500), message: vec![7; 3], ..Feedback::default() };
        assert_eq!(pairs(feedback.range_values()), [(100, 10), (0, 83)]);
        assert_eq!(pairs(feedback.arrival_values()), [(1, 100), (2, 10), (23, 0)]);
        assert_eq!(feedback.content_bytes(), 4 + 6 + 3);
        assert_eq!(feedback.wait(&feedback.arrivals[0]), TimeSpan(100));
    }

    proptest! {
        /// All values that are accepted are encoded to the same values.
        #[test]
        fn values_and_feedback_are_one_to_one(
            ranges in prop::collection::vec((0u64..1 << 20, 0u64..1 << 12), 0..80),
            arrivals in prop::collection::vec((any::<u64>(), 0u64..1 << 30, any::<bool>()), 0..160),
            start in 0u64..1 << 63,
        ) {
            let mut feedback = Feedback { sent: Timestamp(1 << 34), ..Feedback::default() };
            let (mut taken_ranges, mut taken_arrivals) = (Vec::new(), Vec::new());
            for (i, (last, length)) in ranges.into_iter().enumerate() {
                let last = if i == 0 { start } else { last };
                if feedback.push_range(last, length) {
                    taken_ranges.push((last, length));
                }
            }
            for (difference, since, near) in arrivals {
                let difference = if near { difference % 1000 } else { difference };
                if feedback.push_arrival(difference, since) {
                    taken_arrivals.push((difference, since));
                }
            }
            prop_assert_eq!(pairs(feedback.range_values()), taken_ranges);
            prop_assert_eq!(pairs(feedback.arrival_values()), taken_arrivals);
            prop_assert!(feedback.ranges.len() <= MAX_FEEDBACK_RANGES && feedback.arrivals.len() <= MAX_ARRIVALS);
            prop_assert!(feedback.ranges.windows(2).all(|pair| pair[1].last + 1 < pair[0].first));
            prop_assert!(feedback.arrivals.iter().all(|arrived| arrived.at <= feedback.sent));
        }
    }
}
