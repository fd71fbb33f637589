//! The memory of a RemyCC: three smoothed gaps and a ratio of RTTs, updated by acknowledgements.

use ccgym_core::congestion_control::AckedPacket;
use ccgym_core::{PacketNumber, TimeSpan, Timestamp};

/// Weight of a new gap in the smoothed ones.
const GAIN: f64 = 1.0 / 8.0;
/// Weight of a new gap in the slow one.
const SLOW_GAIN: f64 = 1.0 / 256.0;

/// A point in the space that a rule table divides, in the order of [`Axis`]: milliseconds, and a ratio.
pub type Point = [f64; 4];

/// Coordinates of a [`Point`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Smoothed time between departures.
    Send,
    /// Smoothed time between arrivals at the receiver.
    Received,
    /// Latest RTT over the min.
    RttRatio,
    /// As [`Axis::Received`], over about 256 packets.
    SlowReceived,
}

/// The packet that the next gaps are measured from.
#[derive(Clone, Copy, Debug)]
struct Reference {
    sent: Timestamp,
    received: Timestamp,
}

/// The memory of one flow, in the terms of `memory-default.cc` of genericCC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    point: Point,
    reference: Option<Reference>,
    min_rtt: TimeSpan,
    /// Max acknowledged packet number.
    largest: PacketNumber,
}

impl Memory {
    pub fn point(&self) -> Point {
        self.point
    }
    pub fn get(&self, axis: Axis) -> f64 {
        self.point[axis as usize]
    }

    /// Add the receipt of a packet that reached the receiver at `received`, by its clock.
    ///
    /// The first one is only the reference. A gap counts if no packet is missing between the two; after a loss or
    /// reordering the next gap spans the missing packets.
    pub fn on_receipt(&mut self, now: Timestamp, packet: &AckedPacket, received: Timestamp) {
        let rtt = TimeSpan(now.since(packet.sent).0.max(1));
        let next = Reference { sent: packet.sent, received };
        match self.reference {
            None => {
                self.reference = Some(next);
                self.min_rtt = rtt;
            }
            Some(reference) => {
                if packet.number == self.largest + 1 {
                    let send_gap = next.sent.since(reference.sent).as_millis_f64();
                    let gap = next.received.since(reference.received).as_millis_f64();
                    self.smooth(Axis::Send, GAIN, send_gap);
                    self.smooth(Axis::Received, GAIN, gap);
                    self.smooth(Axis::SlowReceived, SLOW_GAIN, gap);
                    self.reference = Some(next);
                }
                self.min_rtt = self.min_rtt.min(rtt);
                self.point[Axis::RttRatio as usize] = rtt.0 as f64 / self.min_rtt.0 as f64;
            }
        }
        self.largest = self.largest.max(packet.number);
    }

    fn smooth(&mut self, axis: Axis, gain: f64, gap: f64) {
        let value = &mut self.point[axis as usize];
        *value = (1.0 - gain) * *value + gain * gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, sent, received, acknowledged, in milliseconds.
    type Receipt = (u64, u64, u64, u64);

    /// Process receipts; the receiver's clock is 500 ms ahead.
    fn after(receipts: &[Receipt]) -> Memory {
        let mut memory = Memory::default();
        for &(number, sent, received, acked) in receipts {
            let sent = Timestamp::from_millis(sent);
            let packet = AckedPacket { number, bytes: 1440, sent, received: None };
            memory.on_receipt(Timestamp::from_millis(acked), &packet, Timestamp::from_millis(received + 500));
        }
        memory
    }

    #[test]
    fn every_branch() {
        let cases: [(&str, &[Receipt], Point); 6] = [
            ("the first is the reference", &[(0, 0, 50, 100)], [0.0; 4]),
            ("gaps of 8 and 16 ms", &[(0, 0, 50, 100), (1, 8, 66, 116)], [1.0, 2.0, 1.08, 0.0625]),
            (
                "and again: 7/8 of the old value, 255/256 of the slow one",
                &[(0, 0, 50, 100), (1, 8, 66, 116), (2, 16, 74, 116)],
                [1.875, 2.75, 1.0, 0.0625 * 255.0 / 256.0 + 0.03125],
            ),
            (
                "after a gap the ratio moves, the smoothed gaps do not",
                &[(0, 0, 50, 100), (2, 8, 66, 208)],
                [0.0, 0.0, 2.0, 0.0],
            ),
            (
                "the next in order spans the hole",
                &[(0, 0, 50, 100), (2, 8, 66, 208), (3, 16, 82, 116)],
                [2.0, 4.0, 1.0, 0.125],
            ),
            (
                "a straggler moves the ratio and its minimum alone",
                &[(0, 0, 50, 100), (2, 8, 58, 108), (1, 4, 60, 54)],
                [0.0, 0.0, 1.0, 0.0],
            ),
        ];
        for (name, receipts, expected) in cases {
            assert_eq!(after(receipts).point(), expected, "{name}");
        }
    }

    #[test]
    fn a_new_minimum_lowers_later_ratios() {
        let memory = after(&[(0, 0, 50, 100), (1, 0, 50, 50), (2, 0, 50, 75)]);
        assert_eq!(memory.get(Axis::RttRatio), 1.5);
        assert_eq!(memory.min_rtt, TimeSpan::from_millis(50));
    }
}
