//! Losses that end STARTUP: many separate ones over a full round, and a larger share of the bytes in flight than the
//! threshold (draft, "Exiting Startup Based on Packet Loss").

use ccgym_core::congestion_control::LostPacket;
use ccgym_core::PacketNumber;

/// Min separate ranges of lost packets (draft, `BBRStartupFullLossCnt`).
const ENOUGH_RANGES: u32 = 6;

/// The separate ranges of packets lost in a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossRanges {
    count: u32,
    last: Option<PacketNumber>,
}

impl LossRanges {
    /// Add a lost packet. Packets are sorted within an event.
    pub fn note(&mut self, packet: &LostPacket) {
        let continues = self.last.is_some_and(|last| last + 1 == packet.number);
        if !continues {
            self.count = self.count.saturating_add(1);
        }
        self.last = Some(packet.number);
    }

    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// True if there are enough ranges.
    pub const fn enough(&self) -> bool {
        self.count >= ENOUGH_RANGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_core::Timestamp;

    #[test]
    fn six_separate_ranges() {
        for (name, numbers, enough) in [
            ("one long burst", (0..60).collect::<Vec<_>>(), false),
            ("six single losses", vec![1, 3, 5, 7, 9, 11], true),
            ("five ranges", vec![1, 2, 4, 5, 7, 8, 10, 11, 13], false),
        ] {
            let mut ranges = LossRanges::default();
            for number in numbers {
                ranges.note(&LostPacket { number, bytes: 1, sent: Timestamp::ZERO, in_flight_at_send: 1 });
            }
            assert_eq!(ranges.enough(), enough, "{name}");
            ranges.reset();
            assert!(!ranges.enough());
        }
    }
}
